"""On which grid is delta of one loss summed? Chosen in floats.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> choose_sum(((Laplace(2.0), 1),), 0.2, width=1e-2).sums[0].first
0
"""

from __future__ import annotations

import contextlib

from dpcal.accountants.certificates.proofs import MAX_TERMS, Grid, Parts, SumProof
from dpcal.accountants.certificates.search.contour import about_log_delta, saddle
from dpcal.accountants.certificates.search.grids import (
    Accuracy,
    check_covered,
    choose_grid,
    log_rest,
)
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["choose_sum"]

# Most grids, each chosen for ten times the width of the last. Widths above a tenth change nothing,
# so that 13 of them cover 1e-12 to 0.1.
_AIMS = 13
# Largest width that a grid is chosen for.
_WIDEST_AIM = 0.1


def choose_sum(parts: Parts, epsilon: float, *, width: float) -> SumProof:
    """Return the sum on a grid of a single use, or of a discrete loss of several uses.

    Parameters
    ----------
    parts
        Losses, and how often each is used.
    epsilon
        Where delta is bounded.
    width
        Wanted relative width of the bounds. A larger one is taken if needed.

    Raises
    ------
    UnsupportedEvent
        If no proof covers a loss.
    OutOfReach
        If there are several losses, or if no sum of affordable size exists.
    """
    check_covered(parts)
    if len(parts) != 1:
        raise OutOfReach
    loss, times = parts[0]
    log_delta = about_log_delta(parts, epsilon)
    rest = log_rest(parts, width, log_delta)
    slope = 1.0
    if isinstance(loss, Gaussian | SampledGaussian):
        # The tilt at which these losses are large determines the step of their grids.
        slope = max(1.0, saddle(Total(parts), epsilon)[0])
    for aim in (width * 10.0**k for k in range(_AIMS)):
        with contextlib.suppress(OutOfReach):
            grid = choose_grid(loss, Accuracy(slope, min(aim, _WIDEST_AIM), log_delta, rest))
            break
    else:
        raise OutOfReach
    if times > 1 and not 0 < _degree(loss, grid) * times <= MAX_TERMS:
        raise OutOfReach
    return SumProof((grid,))


def _degree(loss: PrivacyLoss, grid: Grid) -> int:
    """Return the number of equally spaced values on a grid less one; 0 for other values."""
    if isinstance(loss, LatticeLoss):
        return len(loss.multiples) - 1
    return grid.points if isinstance(loss, DiscreteGaussian) else 0
