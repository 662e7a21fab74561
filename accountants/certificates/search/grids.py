"""Which grid should replace a loss? One that is fine and wide enough for a width of the bounds.

Nothing here is trusted: a bad grid makes a proof's interval wide.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> choose_grid(Laplace(2.0), Accuracy(tilt=1.0, width=1e-2, log_delta=-10.0, log_rest=-20.0))
Grid(step=1.0, first=0, last=45)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from dpcal.accountants.certificates.proofs import MAX_POINTS, Grid, Parts
from dpcal.accountants.certificates.search.mixtures import LINE_FAMILIES, line_of
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss, ScatteredLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.laplace import Laplace
from dpcal.errors import UnsupportedEvent

__all__ = [
    "SHARE",
    "Accuracy",
    "check_covered",
    "choose_grid",
    "limited_grid",
    "log_rest",
    "on_grid",
    "total_on_grids",
]

# Families whose losses do not grow along the outputs of Gaussian mixtures.
_OTHER_FAMILIES = (Laplace, LatticeLoss, DiscreteGaussian, Allocation)
# Share of the width that each of aliasing, truncation and quadrature may take.
SHARE = 1 / 16
# Logarithm of the largest probability that a single use leaves out: it rarely has an effect, and
# keeps grids wider than four standard deviations.
_MOST_LOG_REST = -8.0
# Largest intervals, in standard deviations of the noise.
_WIDEST_STEP = 0.5


@dataclass(frozen=True)
class Accuracy:
    """The wanted accuracy of a grid.

    Attributes
    ----------
    tilt
        Largest tilt > 0 at which moments of the law on the grid are taken.
    width
        Wanted relative width of the bounds on delta.
    log_delta
        Approximate logarithm of delta.
    log_rest
        Logarithm of the probability that the grid may leave out.
    """

    tilt: float
    width: float
    log_delta: float
    log_rest: float

    @property
    def step(self) -> float:
        """Width of intervals, in standard deviations of the law that is cut.

        An interval of width d adds at most about d^2 / 6 to the variance of a loss.
        """
        return math.sqrt(2 * self.width / max(1.0, -self.log_delta))

    @property
    def reach(self) -> float:
        """Half-width of the grid, in standard deviations: a normal law has only the rest beyond."""
        return math.sqrt(-2 * self.log_rest)


def check_covered(parts: Parts) -> None:
    """Raise UnsupportedEvent for a loss of a family that no proof covers."""
    for loss, _ in parts:
        if not isinstance(loss, (*LINE_FAMILIES, *_OTHER_FAMILIES)):
            raise UnsupportedEvent(f"No certificate covers {loss!r}.")


def log_rest(parts: Parts, width: float, log_delta: float) -> float:
    """Return the logarithm of the probability that a single use may leave out."""
    uses = sum(times for _, times in parts)
    return min(log_delta + math.log(SHARE * width / uses), _MOST_LOG_REST)


def limited_grid(step: float, first: float, last: float) -> Grid:
    """Return the grid that covers first step to last step; refuse one of too many intervals."""
    if not last - first < MAX_POINTS / 4:
        raise OutOfReach
    return Grid(step, math.floor(first), math.ceil(last))


@singledispatch
def choose_grid(loss: Any, aim: Accuracy) -> Grid:
    """Return a grid whose finite laws bound a loss as closely as required."""
    line = line_of(loss)
    sigma, (low, high) = line.sigma, line.ends
    gap = max(high - low, 1.0)
    step = sigma * min(aim.step, math.sqrt(aim.width) * sigma / (aim.tilt * gap), _WIDEST_STEP)
    # A component of weight w leaves out at most w.
    last = max(
        mean + sigma * math.sqrt(-2 * min(aim.log_rest - math.log(max(weight, 1e-300)), -4.0))
        for mean, weight in line.mixtures[0]
    )
    return limited_grid(step, line.first(aim.reach) / step, last / step)


@choose_grid.register
def _(loss: Allocation, aim: Accuracy) -> Grid:
    raise OutOfReach  # It has no law on a grid.


@choose_grid.register
def _(loss: LatticeLoss, aim: Accuracy) -> Grid:
    # The loss has finitely many values, so that the grid is not used.
    return Grid(1.0, 0, 1)


@choose_grid.register
def _(loss: Laplace, aim: Accuracy) -> Grid:
    size = min(aim.step * loss.half_width, math.sqrt(aim.width) / aim.tilt)
    return limited_grid(1.0, 0.0, 2 * loss.half_width / size)


@choose_grid.register
def _(loss: DiscreteGaussian, aim: Accuracy) -> Grid:
    far = math.ceil(loss.sigma * aim.reach) + 1
    return limited_grid(1.0, loss.sensitivity - far, loss.sensitivity + far)


def on_grid(loss: PrivacyLoss, grid: Grid) -> ScatteredLoss:
    """Return an approximate law of one loss on a grid: rarer large losses are cut off."""
    line = line_of(loss)
    x = grid.step * np.arange(grid.first, grid.last + 1.0)
    x = x[x > line.first(0.0)] if line.mirrored else x
    q = -np.diff(line.tails(x, 1))
    ell = line.losses((x[1:] + x[:-1]) / 2)
    if line.mirrored:
        # The losses of a fixed batch are those of one record, their mirror image, and an atom at 0.
        ell, q = np.concatenate([-ell, ell]), np.concatenate([q * np.exp(ell), q])
        ell, q = np.append(ell, 0.0), np.append(q, max(1 - q.sum(), 0.0))
    # A mass that underflows is left out, for any size of the loss there.
    order = np.argsort(ell)[q[np.argsort(ell)] > 0]
    ell, log_q = ell[order], np.log(q[order] / q.sum())
    # The losses are shifted so that the masses of P sum to 1 as well.
    ell -= math.log(math.fsum(np.exp(log_q + ell)))
    return ScatteredLoss(tuple(ell), tuple(log_q), "a grid")


def total_on_grids(parts: Parts, grids: Mapping[PrivacyLoss, Grid]) -> Total:
    """Return a sum of losses of which some are replaced by their laws on grids."""
    return Total(
        tuple(
            (on_grid(loss, grids[loss]) if loss in grids else loss, times) for loss, times in parts
        )
    )
