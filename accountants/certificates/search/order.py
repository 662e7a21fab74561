"""On which grids are laws compared in convex order, and how finely? Chosen in floats.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> bits, proof = choose_order(((Laplace(2.0), 3),), 1.0, log_delta=-3.0, width=1e-2)
>>> proof.step, proof.uses[0].cells.points
(0.0, 32)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.cost import BITS
from dpcal.accountants.certificates.pairs import Line, Pair, oriented, pair_of
from dpcal.accountants.certificates.proofs import (
    MAX_LEVEL,
    MAX_POINTS,
    Cells,
    Grid,
    OrderProof,
    Parts,
    Use,
)
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.laplace import Laplace

__all__ = ["choose_order"]

Reals = NDArray[np.float64]

# Share of delta, times the width, that laws may cut off, and that nodes and cells may add.
_CUT, _SHARE = 1 / 32, 1 / 4
# Bits beside those of delta, of its width and of uses, and those of a first look.
_BITS, _BITS_OF_LOOK = 112, 96
# Cells of a first look in a standard deviation of the noise.
_CELLS_OF_LOOK = 8
# Nodes of a law in a standard deviation of the loss, times this, are the most that a law has.
_REACH = 64
# Nats beyond which tails are not followed.
_MOST_NATS = 3000.0


@dataclass(frozen=True)
class _Aim:
    """The logarithm of the mass that a use may leave out, and that times exp(-epsilon)."""

    log_rest: float
    log_rest_of_q: float


def choose_order(
    parts: Parts, epsilon: float, *, log_delta: float, width: float, cells: Cells | None = None
) -> tuple[int, OrderProof]:
    """Return a precision, and a proof whose bounds are about ``width`` apart, relative to delta.

    Of a shuffle, ``cells`` are those of its statistic.

    Raises
    ------
    UnsupportedEvent
        If no certificate covers a loss.
    OutOfReach
        If no grid of affordable size is as fine.
    """
    count = sum(times for _, times in parts)
    log_tail = max(log_delta + math.log(_CUT * width), -_MOST_NATS)
    log_rest = log_tail - math.log(max(count, 1)) - 1
    aim = _Aim(log_rest, log_rest - min(epsilon, _MOST_NATS))
    bits = _BITS + math.ceil((math.log(max(count, 1) / width) - log_delta) / math.log(2))
    # Relative variances that grids may add: a tail of z deviations grows by z^2 / 2 of it.
    finest = math.sqrt(_SHARE * width / max(1.0, -log_delta))
    with balls.workprec(_BITS_OF_LOOK):
        looks = [_look(oriented(loss)[0], times, aim, cells) for loss, times in parts]
    spread = math.sqrt(math.fsum(look.variance * look.times for look in looks))
    allowed = (finest * spread) ** 2 / max(len(looks), 1)
    tail = math.exp(log_tail) if log_tail > -700 else 0.0
    chosen = [look.finer(allowed) if cells is None else cells for look in looks]
    own = [_step_of(look.pair, each) for look, each in zip(looks, chosen, strict=True)]
    base = next((index for index, step in enumerate(own) if step is not None), None)
    steps = [
        own[base] if index == base else look.step(spread, allowed)
        for index, look in enumerate(looks)
    ]
    step = min(steps, default=1.0)
    if base is not None:
        step = own[base] / 2.0 ** math.ceil(math.log2(own[base] / step))
    # One use has all of its nodes.
    widest = max(
        (np.ptp(look.losses) / step for look, step in zip(looks, steps, strict=True)), default=0.0
    )
    nodes = min(math.ceil(max(_REACH / finest, 1.05 * widest, 64)), MAX_POINTS)
    levels = [min(math.floor(math.log2(each / step) + 1e-9), MAX_LEVEL) for each in steps]
    uses = tuple(
        Use(look.offset(step * 2.0**level), level, each)
        for look, level, each in zip(looks, levels, chosen, strict=True)
    )
    return min(bits, BITS[1]), OrderProof(step if base is None else 0.0, nodes, tail, uses)


def _step_of(pair: Pair, cells: Cells) -> float | None:
    """Return the step of a pair's own lattice, if it has one."""
    with balls.workprec(_BITS_OF_LOOK):
        lattice = pair.lattice(cells)
        return None if lattice is None else float(lattice[1].mid())


@dataclass(frozen=True)
class _Look:
    """What a first look at one part shows: losses, and their masses under Q and P."""

    loss: PrivacyLoss
    times: int
    pair: Pair
    cells: Cells
    losses: Reals
    of_q: Reals
    of_p: Reals
    least: float

    @property
    def masses(self) -> Reals:
        """Half the masses of P and Q together."""
        return (self.of_q + self.of_p) / 2

    @property
    def variance(self) -> float:
        """Variance of the loss of one use."""
        mean = np.average(self.losses, weights=self.masses)
        return float(np.average((self.losses - mean) ** 2, weights=self.masses))

    def offset(self, step: float) -> float:
        """Return the mean logarithm of all ratios that are within half a step of the least one.

        Rare samples tell nearly always as little.
        """
        small = np.abs(self.losses - self.least) <= step / 2
        if not small[:1].any():
            return 0.0
        weights = self.of_q[small]
        return float(np.average(self.losses[small], weights=weights)) if weights.any() else 0.0

    def step(self, spread: float, allowed: float) -> float:
        """Return the widest step whose nodes add no more variance than is allowed."""
        step = 2.0 ** math.floor(math.log2(spread)) if spread > 0 else 1.0
        for _ in range(MAX_LEVEL):
            beyond = np.mod(self.losses - self.least, step)
            if self.times * np.dot(self.masses, beyond * (step - beyond)) <= allowed:
                break
            step /= 2
        if np.ptp(self.losses) / step > MAX_POINTS * 0.9:
            raise OutOfReach
        return step

    def finer(self, allowed: float) -> Cells:
        """Return cells that add no more variance than is allowed."""
        widths = np.abs(np.gradient(self.losses)) if len(self.losses) > 1 else np.zeros(1)
        added = self.times * float(np.dot(self.masses, widths**2)) / 6
        return _finer(
            self.loss, self.cells, math.sqrt(max(added / allowed, 1e-4)) if allowed else 1.0
        )


def _look(loss: PrivacyLoss, times: int, aim: _Aim, given: Cells | None) -> _Look:
    pair = pair_of(loss, False, False)
    cells = _cells(loss, pair, aim) if given is None else given
    outcomes = pair.outcomes(cells, above=False)
    rows = [(q, p, None) for q, p in outcomes.cells if q > 0 and p > 0]
    rows += [(q, q * at.exp(), at) for at, q, _ in outcomes.points]
    ells = [float(((p / q).log() if at is None else at).mid()) for q, p, at in rows]
    masses = [[float(row[side].mid()) for row in rows] for side in (0, 1)]
    order = np.argsort(ells)
    losses, of_q, of_p = (np.array(each)[order] for each in (ells, *masses))
    return _Look(loss, times, pair, cells, losses, of_q, of_p, float(pair.least.mid()))


@singledispatch
def _cells(loss: Any, pair: Pair, aim: _Aim) -> Cells:
    """Return coarse cells that leave out no more than they may; of a line of Gaussians."""
    line = getattr(pair, "line", pair)
    if not isinstance(line, Line):
        return Grid(1.0, 0, 1)
    sigma = float(line.sigma.mid())
    ends = [
        (float(mean.mid()), math.sqrt(2 * max(_nats(aim, weight), 4.0)))
        for side in (line.numerator, line.denominator)
        for mean, weight in side
    ]
    low = min(mean - sigma * reach for mean, reach in ends)
    high = max(mean + sigma * reach for mean, reach in ends)
    step = sigma / _CELLS_OF_LOOK
    return Grid(step, math.floor(low / step), math.ceil(high / step))


def _nats(aim: _Aim, weight: Any) -> float:
    return math.log(max(float(weight.mid()), 1e-300)) - aim.log_rest


@_cells.register
def _(loss: Laplace, pair: Pair, aim: _Aim) -> Cells:
    return Grid(1.0, 0, 64)


@_cells.register
def _(loss: DiscreteGaussian, pair: Pair, aim: _Aim) -> Cells:
    far = math.ceil(loss.sigma * math.sqrt(-2 * aim.log_rest_of_q)) + 1
    if 2 * far + loss.sensitivity > MAX_POINTS:
        raise OutOfReach
    return Grid(1.0, -far, loss.sensitivity + far)


@_cells.register
def _(loss: Allocation, pair: Pair, aim: _Aim) -> Cells:
    raise OutOfReach


@singledispatch
def _finer(loss: Any, cells: Grid, factor: float) -> Cells:
    """Return cells that are finer by a factor; of a line of Gaussians."""
    step = cells.step / factor
    low, high = cells.first * cells.step / step, cells.last * cells.step / step
    if high - low > MAX_POINTS:
        raise OutOfReach
    return Grid(step, math.floor(low), math.ceil(high))


@_finer.register
def _(loss: Laplace, cells: Grid, factor: float) -> Cells:
    count = 1 << max(math.ceil(math.log2(cells.points * factor)), 1)
    if count > MAX_POINTS:
        raise OutOfReach
    return Grid(1.0, 0, count)


@_finer.register
def _(loss: DiscreteGaussian, cells: Grid, factor: float) -> Cells:
    return cells
