"""On which grids are finite laws summed, or compared in convex order? Chosen in floats.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> choose_sum(((Laplace(2.0), 1),), 0.2, width=1e-2).sums[0].first
0
>>> proof = choose_order(((Allocation(1.0, 100, "remove"), 10),), 1.7, width=1e-2)
>>> 0.03 < proof.width < 0.06, 5_000 < proof.cells < 40_000
(True, True)
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

from dpcal.accountants import interface
from dpcal.accountants.certificates.proofs import (
    MAX_POINTS,
    MAX_TERMS,
    Grid,
    OrderProof,
    Parts,
    SumProof,
)
from dpcal.accountants.certificates.search.contour import about_log_delta, saddle
from dpcal.accountants.certificates.search.grids import Accuracy, choose_grid, log_rest
from dpcal.accountants.events import RandomAllocationDpEvent, SelfComposedDpEvent
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["choose_order", "choose_sum"]

# Most grids of a sum, each chosen for ten times the width of the last. Widths above a tenth change
# nothing, so that 13 of them cover 1e-12 to 0.1.
_AIMS = 13
# Largest width that a grid is chosen for.
_WIDEST_AIM = 0.1
# Squared width of intervals, in variances of a batch's likelihood ratio, over the relative width of
# bounds for each nat of 1 / delta: measured.
_SHARE = 1.5
# Ratios of neighboring nodes are finer than intervals, since a run multiplies epochs.
_FINER = 4.0
# Nats of 1 / delta beyond which grids do not grow.
_MOST_NATS = 600.0
# Share of delta, times the width, that may be beyond a grid.
_BEYOND = 0.1
# Widest intervals, in standard deviations of a batch's likelihood ratio.
_WIDEST = 2.0


def choose_sum(parts: Parts, epsilon: float, *, width: float) -> SumProof:
    """Return the sum on a grid of a single use, or of a discrete loss of several uses.

    The bounds may be further apart than ``width``.
    """
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


def choose_order(parts: Parts, epsilon: float, *, width: float) -> OrderProof:
    """Return grids whose bounds on delta are about ``width`` apart, for one random allocation.

    Grids for deltas of about the same size are the same, so that their laws are computed once.
    """
    loss, epochs = parts[0]
    if len(parts) != 1 or not isinstance(loss, Allocation):
        raise UnsupportedEvent("A proof by convex order covers epochs of one random allocation.")
    sigma, batches = loss.noise_multiplier, loss.batches
    both = [((replace(loss, direction=name), epochs),) for name in ("remove", "add")]
    found = max(about_log_delta(each, epsilon) for each in both)
    nats = min(max(1.0, 4.0 * math.ceil(-found / 4)), _MOST_NATS)
    aim = float(2.0 ** math.floor(math.log2(width)))
    share = math.sqrt(_SHARE * aim / nats)
    variance = math.expm1(sigma**-2)
    # What is beyond by little has a larger mass, which lower bounds lose.
    beyond = math.exp(-nats) * aim * _BEYOND * min(1.0, math.sqrt(variance / batches))
    epoch = RandomAllocationDpEvent(sigma, batches)
    largest = math.exp(interface.epsilon(epoch, delta=beyond / epochs).upper) * batches
    farthest = interface.epsilon(SelfComposedDpEvent(epoch, epochs), delta=beyond).upper
    interval = max(share * math.sqrt(variance), largest / (MAX_POINTS - 1))
    step = share * math.sqrt(variance / batches) / _FINER
    half = math.ceil(farthest / step)
    if interval > _WIDEST * math.sqrt(variance) or 2 * half > MAX_POINTS:
        raise OutOfReach
    return OrderProof(interval, math.ceil(largest / interval), Grid(step, -half, half))
