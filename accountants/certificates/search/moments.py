"""At which tilt is a bound by moments best? Chosen in floats.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> proof = choose_chernoff(((Gaussian(1.0), 1),), 3.0, width=1e-3)
>>> 2.0 < proof.tilt < 4.0, proof.sums
(True, (None,))
"""

from __future__ import annotations

import math

import numpy as np

from dpcal.accountants.certificates.proofs import ChernoffProof, ConvexityProof, Grid, Parts
from dpcal.accountants.certificates.search.contour import log_moment, pieces_of
from dpcal.accountants.certificates.search.grids import limited_grid, total_on_grids
from dpcal.accountants.certificates.search.mixtures import CUT_FAMILIES, line_of
from dpcal.accountants.certificates.search.threshold import large_outputs
from dpcal.accountants.inversion.limits import SADDLE
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss

__all__ = ["choose_chernoff", "choose_convexity", "choose_cut_chernoff"]

# Tilts that are tried first: powers of 2 from 1/16 to 4,096. Outside this range, bounds whose delta
# is a double are rare; denser tilts follow around the best one.
_FIRST_TILTS = tuple(2.0**i for i in range(-4, 13))
# Shares of epsilon above which a single loss counts as large. The best is usually 0.5 to 0.95.
_LARGE_SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0)
# Intervals of a grid up to the first large loss.
_INTERVALS = 1000
# Standard deviations below the smallest mean at which such a grid starts: beyond 8 of them less
# than 1e-15 of the mass has its loss rounded up.
_LOW_REACH = 8.0
# Logarithm of the least delta that a grid is chosen for: far below the range of a double.
_LEAST_LOG_DELTA = -1e6


def _log_bound(total: Total, c: float, epsilon: float) -> float:
    """Return the logarithm of the Chernoff bound at tilt c; infinity if it is out of reach."""
    return log_moment(total, c) + float(log_chernoff(c)) - c * epsilon


def choose_chernoff(parts: Parts, epsilon: float, *, width: float) -> ChernoffProof:
    """Return a Chernoff bound with a good tilt; ``width`` is the accuracy of its moments."""
    total = Total(parts)
    best = min(_FIRST_TILTS, key=lambda c: _log_bound(total, c, epsilon))
    finer = [best * 2.0 ** (k / 8) for k in range(-7, 8)]
    tilts = sorted({*_FIRST_TILTS, *finer}, key=lambda c: _log_bound(total, c, epsilon))
    for c in tilts:
        try:
            log_delta = max(min(_log_bound(total, c, epsilon), -1.0), _LEAST_LOG_DELTA)
            pieces = pieces_of(parts, (c,), width, log_delta, {})
            return ChernoffProof(c, tuple(item.substitute() for item in pieces))
        except OutOfReach:
            continue
    raise OutOfReach


def choose_cut_chernoff(parts: Parts, epsilon: float) -> ChernoffProof:
    """Return a Chernoff bound given that no single loss is large, plus the chance that one is."""
    if not all(isinstance(loss, CUT_FAMILIES) for loss, _ in parts) or epsilon <= 0:
        raise OutOfReach
    found = [_cut_at(parts, epsilon, share) for share in _LARGE_SHARES]
    return min(found, key=lambda item: item[0])[1]


def _cut_at(parts: Parts, epsilon: float, share: float) -> tuple[float, ChernoffProof]:
    """Return an approximate bound with losses above a share of epsilon infinite, and its proof."""
    grids: dict[PrivacyLoss, Grid] = {}
    beyond = 0.0
    for loss, times in parts:
        outputs, line = large_outputs(loss), line_of(loss)
        at = outputs.threshold(share * epsilon)
        at = float(outputs.x[-1]) if at is None else at
        first = line.first(_LOW_REACH)
        step = max(at - first, line.sigma) / _INTERVALS
        grids[loss] = limited_grid(step, first / step, max(at, first + line.sigma) / step)
        if math.isinf(loss.upper):
            beyond += times * outputs.chances(grids[loss].last * step)[0]
    tilts = np.geomspace(0.1, 1e4, 120) / min(epsilon, 1.0)
    cumulants = total_on_grids(parts, grids).cumulants(tilts)
    bounds = cumulants[:, 0] + log_chernoff(tilts) - tilts * epsilon
    best = int(np.argmin(bounds))
    value = beyond + math.exp(min(float(bounds[best]), 0.0))
    return value, ChernoffProof(float(tilts[best]), tuple(grids[loss] for loss, _ in parts))


def choose_convexity(parts: Parts, epsilon: float) -> ConvexityProof:
    """Return a proof with the best tilt of bounds by convexity on the moments."""
    total = Total(parts)
    tilts = np.geomspace(1e-6, SADDLE.tilt, 400)
    sizes = total.log_mgf_bounds(tilts) - tilts * epsilon + log_chernoff(tilts)
    return ConvexityProof(float(tilts[int(np.argmin(sizes))]))
