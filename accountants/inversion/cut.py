r"""Steps with rare losses above epsilon: a law below a cut, and a closed form beyond.

If a record is rarely sampled, the loss of a step when the record is removed has the tail of a
log-normal law. No tilt serves such a law: losses far beyond epsilon weigh more than those next to
it. So each step's law is a sum of two positive measures, A = B + J: the share Phi((k - x) / w) of a
point x of the noise belongs to B, the rest to J. Steps are independent, so that

    delta(A^T) = delta(B^T) + delta(D),   D = A^T - B^T >= 0,

where some step lies beyond its cut. B^T has bounded losses, so one contour serves it. Beyond a cut
at losses above epsilon the gain 1 - exp(epsilon - l) is almost never negative, and

    delta(D) = P(D) - exp(epsilon) Q(D) + put,   0 <= put <= D(a) exp(C(-1 - a) - a epsilon)

for every tilt a < -1, with D(a) the integral of exp(a l) and C of
:func:`~dpcal.accountants.inversion.saddle.log_chernoff`: the put is the integral of
(exp(epsilon - l) - 1)_+, and exp(C(m - 1)) the supremum of (exp(y) - 1) exp(-m y) over y > 0.
P(J) and Q(J) are normal probabilities, as a smooth cut of a normal law is a sharp one of a wider
law; and D(a) <= prod A(a)^T sum T J(a) / A(a).

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> below, beyond = split(((SampledGaussian(1e-6, 1.0, "remove"), 100),), 1.0, -30.0)
>>> print(f"{beyond.p:.6e} {beyond.q:.6e}")
2.458880e-25 2.383707e-25
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcal._ext.question import Law
from dpcal.accountants.directions import MOST_TIMES
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, Parts, PrivacyLoss, Reals

# Width b of a cut over the loss: at delta exp(-s) the rest grows by up to exp((s b)^2 / 2).
_LOSSES, _TILTED = 0.15, 1.3
_BELOW_CELLS = -800.0
_TILTS = 4.0 * 3.0 ** np.arange(6)
_GAPS = 6.0 * 1.3 ** np.arange(14)
_NEGLIGIBLE = -18.0
# Largest epsilon, and size of log delta, at which probabilities are doubles with all digits.
_MOST = 600.0


@dataclass(frozen=True)
class Beyond:
    """The part of delta beyond the cuts: p - exp(epsilon) q, and a put.

    Attributes
    ----------
    p, q, units
        P(D) and Q(D), and their relative error in units.
    tilts, bounds
        The put is at most exp(bound - tilt epsilon) for each tilt.
    """

    p: float
    q: float
    units: float
    tilts: Reals
    bounds: Reals

    def log_delta(self, epsilon: float) -> float:
        """Return the log of p - exp(epsilon) q, or minus infinity."""
        gap = self.p - math.exp(epsilon) * self.q
        return math.log(gap) if gap > 0 else -math.inf

    def log_width(self, epsilon: float) -> float:
        """Return the log of a bound on the rest beyond the cuts: the put, or all of it."""
        return min(float((self.bounds - self.tilts * epsilon).min()), math.log(max(self.p, 1e-300)))


def split(parts: Parts, epsilon: float, log_size: float) -> tuple[list[tuple[Law, int]], Beyond]:
    """Return laws below a cut near epsilon, with their counts, and the part beyond it.

    Parameters
    ----------
    parts
        Losses and how often each adds up; some are sampled Gaussians when removing.
    epsilon
        A number >= 0.
    log_size
        A guess of log delta there.

    Raises
    ------
    OutOfReach
        If a loss has no other direction, a count is no double, delta is too small, or no cut leaves
        a small put.
    """
    reversible = all(loss.opposite is not None and loss.surplus == 0.0 for loss, _ in parts)
    counted = all(times <= MOST_TIMES for _, times in parts)
    if not (reversible and counted) or max(-log_size, epsilon) > _MOST:
        raise OutOfReach
    scale = max(epsilon, math.sqrt(Total(parts).variance))
    tilts, logs = _log_masses(parts, scale)
    log_rest = log_size + _NEGLIGIBLE - math.log(2 * sum(times for _, times in parts))
    share = min(_LOSSES, _TILTED / (5.0 - log_size))
    for level in scale * (1.0 + _GAPS / (5.0 - log_size)):
        pieces = [(loss.cut_at(level, share, log_rest), n) for loss, n in parts]
        beyond = _beyond(pieces, tilts, logs)
        if beyond.log_width(epsilon) < max(beyond.log_delta(epsilon), log_size) + _NEGLIGIBLE:
            break
    else:
        raise OutOfReach
    first = 2.0 ** math.ceil(math.log2((5.0 - log_size) / (2.0 * scale)))
    laws = []
    for (piece, n), (loss, _) in zip(pieces, parts, strict=True):
        law = loss.compiled if piece is loss else Law.points(piece, first)
        if law is None:
            raise OutOfReach
        laws.append((law, n))
    return laws, beyond


def _log_masses(parts: Parts, scale: float) -> tuple[Reals, list[Reals]]:
    """Return tilts a < -1 in reach, and log A(a) of each loss there."""
    # The integral of exp(a l) dP is that of exp(c l') dQ, l' = -l and c = -1 - a.
    losses = [loss.opposite for loss, _ in parts if loss.opposite is not None]
    # Beyond that tilt, only rare losses on the other side count.
    steepest = min((loss.steep for loss in losses if loss.upper == math.inf), default=math.inf)
    for last in range(len(_TILTS) - 1, -1, -1):
        c = np.minimum(np.minimum(_TILTS, _TILTS[last]) / scale, steepest)
        with contextlib.suppress(OutOfReach):
            return -1.0 - c, [loss.cumulants(c)[:, 0] for loss in losses]
    raise OutOfReach


def _beyond(
    pieces: Sequence[tuple[PrivacyLoss, int]], tilts: Reals, logs: Sequence[Reals]
) -> Beyond:
    """Return the part beyond the cuts, from log A(a) of each loss at the tilts."""
    kept, units, odds = np.zeros(2), 0.0, np.full(len(tilts), -math.inf)
    for (piece, times), log_mass in zip(pieces, logs, strict=True):
        *gone, error = piece.gone
        if gone[0] > 0:
            kept += times * np.log1p(-np.array(gone))
            units = max(units, error)
            share = np.logaddexp(piece.log_beyond(tilts) - log_mass, _BELOW_CELLS)
            odds = np.logaddexp(odds, math.log(times) + share)
    p, q = -np.expm1(kept)
    whole = sum(times * log_mass for (_, times), log_mass in zip(pieces, logs, strict=True))
    constants = log_chernoff(-1.0 - tilts)
    known = np.where(np.isneginf(odds), 0.0, odds)
    sizes = 1.0 + np.abs(whole) + np.abs(known) + np.abs(constants)
    bounds = whole + odds + constants + 1e-9 * sizes
    return Beyond(float(p), float(q), units + 16.0 + 4.0 * len(pieces), tilts, bounds)
