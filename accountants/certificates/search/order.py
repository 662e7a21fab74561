"""On which grids are laws compared in convex order, and how finely? Chosen in floats.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> bits, proof = choose_order(((Laplace(2.0), 3),), 1.0, log_delta=-3.0, width=1e-2)
>>> proof.step, proof.uses[0].cells.points
(0.0, 16)
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from dpcal._roots import Sides, Stop, bisect
from dpcal.accountants import interface
from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.batches import Batched
from dpcal.accountants.certificates.composed import MAX_LEVEL, Batch, OrderProof, Use, law_of
from dpcal.accountants.certificates.cost import BITS, MAX_WORK_OF_PROOF, work
from dpcal.accountants.certificates.pairs import Line, Pair, oriented, pair_of
from dpcal.accountants.certificates.proofs import MAX_POINTS, Cells, Grid, Parts
from dpcal.accountants.certificates.search.contour import about_log_delta
from dpcal.accountants.events import RandomAllocationDpEvent
from dpcal.accountants.losses.allocation import Allocation, UnequalAllocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.laplace import Laplace

__all__ = ["choose_order", "laws"]


# Widths of the attempts over the wanted one, until bounds are as narrow; and where that one takes
# too many nodes, of which the first is taken.
_FINER, _WIDER = (1.0, 1 / 8, 1 / 64), tuple(4.0**k for k in range(1, 8))
_WIDEST_AIM = 0.5
# Share of delta, times the width, that laws may cut off, and that nodes and cells may add.
_CUT, _SHARE = 1 / 32, 1 / 4
# Least variance that grids may add, over that of the loss.
_LEAST_SHARE = 1e-6
# Bits beside those of delta, of its width and of uses, and those of a first look.
_BITS, _BITS_OF_LOOK = 112, 96
# Cells of a first look in a standard deviation of the noise.
_CELLS_OF_LOOK = 8
# Nodes of a law in a standard deviation of the loss, times this, are the most that a law has, or
# a number that takes no time.
_REACH, _LEAST_NODES = 64, 1 << 13
# Nats beyond which tails are not followed.
_MOST_NATS = 3000.0
# Logarithms of a delta that stands for 0 where cells are chosen, and where bits are.
_SMALL, _LEAST_DELTA = -50.0, -700.0
# Mass under P of a largest ratio that is a node.
_ATOM = 0.02
# Largest tilt that is tried, and halvings of its range.
_MOST_TILT, _HALVINGS = 1e4, 50
# Width of the intervals of a ratio of random allocation, over its deviation and the share of nodes,
# and the widest; and the share of delta that is beyond them.
_INTERVAL, _WIDEST, _BEYOND = 2.5, 2.0, 0.1


@dataclass(frozen=True)
class _Aim:
    """A width, an epsilon of one use, and what it may leave out.

    This is the logarithm of a mass, and that times exp(-epsilon). The finest step is relative to
    the deviation of the loss. Of a loss above ``top`` it does not matter by how
    much: the others together are less than -c with a probability of at most exp(-c).
    """

    width: float
    epsilon: float
    log_rest: float
    log_rest_of_q: float
    finest: float
    top: float


def laws(parts: Parts, epsilon: float, width: float) -> Iterator[tuple[int, OrderProof]]:
    """Yield precisions and proofs to try, of which the first is as narrow as is affordable."""
    log_delta = None
    with contextlib.suppress(OutOfReach):
        log_delta = about_log_delta(parts, epsilon) if parts else None
    found = False
    for share in (*_FINER, *_WIDER):
        if found and share > 1:
            return
        with contextlib.suppress(OutOfReach):
            aim = min(share * width, _WIDEST_AIM)
            bits, proof = choose_order(parts, epsilon, log_delta=log_delta, width=aim)
            if work(proof, parts, bits) < MAX_WORK_OF_PROOF:
                yield bits, proof
                found = True


def choose_order(
    parts: Parts,
    epsilon: float,
    *,
    log_delta: float | None,
    width: float,
    cells: Cells | None = None,
) -> tuple[int, OrderProof]:
    """Return a precision, and a proof whose bounds are about ``width`` apart, relative to delta.

    ``log_delta`` is the logarithm of delta, roughly; None if it is 0. Of a shuffle, ``cells`` are
    those of its statistic.

    Raises
    ------
    UnsupportedEvent
        If no certificate covers a loss.
    OutOfReach
        If no grid of affordable size is as fine.
    """
    count = sum(times for _, times in parts)
    nothing, log_delta = log_delta is None, _SMALL if log_delta is None else log_delta
    log_tail = max(log_delta + math.log(_CUT * width), -_MOST_NATS)
    log_rest = log_tail - math.log(max(count, 1)) - 1
    nats = math.log(max(count, 1) / width) - (_LEAST_DELTA if nothing else log_delta)
    bits = _BITS + math.ceil(nats / math.log(2))
    finest = math.sqrt(_SHARE * width / max(1.0, -log_delta))
    log_rest_of_q = log_rest - min(epsilon, _MOST_NATS)
    top = max(epsilon, 0.0) - log_rest + 8
    once = max(epsilon, 0.0) / math.sqrt(max(count, 1))
    aim = _Aim(width, once, log_rest, log_rest_of_q, finest, top)
    with balls.workprec(_BITS_OF_LOOK):
        looks = [_look(oriented(loss)[0], times, aim, cells) for loss, times in parts]
    ways = [oriented(loss)[1] for loss, _ in parts]
    at = 0.0 if nothing else epsilon
    widest_variance = math.fsum(look.variance * look.times for look in _tilted(looks, 0.0)[0])
    looks, tilt = _tilted(looks, at if all(way is not False for way in ways) else -at)
    variance = math.fsum(look.variance * look.times for look in looks)
    spread = math.sqrt(variance)
    # A moment of a ratio grows by tilt (tilt - 1) / 2 of what the variance of its logarithm does.
    grows = max(abs(tilt * (tilt - 1)) / 2, 1 / (4 * variance) if variance > 0 else 1.0)
    # Next to the largest sum the law is narrow, and finer grids would not end.
    allowed = max(_SHARE * width / grows, _LEAST_SHARE * widest_variance)
    finest = math.sqrt(allowed / variance) if variance > 0 else 1.0
    allowed /= max(len(looks), 1)
    tail = 0.0 if nothing or log_tail < -700 else math.exp(log_tail)
    chosen = [
        _cells(look.loss, look.pair, aim, look.factor(allowed)) if cells is None else cells
        for look in looks
    ]
    base, steps = _steps(looks, chosen, spread, allowed)
    step = min(steps, default=1.0)
    if base is not None:
        step = steps[base] / 2.0 ** math.ceil(math.log2(steps[base] / step))
    # One use has all of its nodes.
    widest = max(
        (np.ptp(look.losses) / step for look, step in zip(looks, steps, strict=True)), default=0.0
    )
    nodes = min(math.ceil(max(_REACH / finest, 1.05 * widest, _LEAST_NODES)), MAX_POINTS)
    if len(looks) == 1 and isinstance(looks[0].loss, LatticeLoss | DiscreteGaussian):
        # These laws are exact as long as no mass moves.
        nodes = min(math.ceil(widest + 1) * count + 1, MAX_POINTS)
    levels = [min(math.floor(math.log2(each / step) + 1e-9), MAX_LEVEL) for each in steps]
    uses = tuple(
        Use(look.offset(step * 2.0**level), level, each)
        for look, level, each in zip(looks, levels, chosen, strict=True)
    )
    return min(bits, BITS[1]), OrderProof(step if base is None else 0.0, nodes, tail, uses)


def _steps(
    looks: list[_Look], chosen: list[Cells], spread: float, allowed: float
) -> tuple[int | None, list[float]]:
    """Return the first part that has a lattice of its own, if any, and each part's step."""
    with balls.workprec(_BITS_OF_LOOK):
        lattices = [look.pair.lattice(each) for look, each in zip(looks, chosen, strict=True)]
    own = [None if each is None else float(each[1].mid()) for each in lattices]
    base = next((index for index, step in enumerate(own) if step is not None), None)
    steps = [
        each if index == base and each is not None else look.step(spread, allowed)
        for index, (look, each) in enumerate(zip(looks, own, strict=True))
    ]
    return base, steps


def _tilted(looks: list[_Look], epsilon: float) -> tuple[list[_Look], float]:
    """Return the looks by the law under which the sum of losses is about epsilon, and its tilt.

    Masses under Q are times the tilt-th power of ratios. A tilt of 1 is P; of the other direction
    it is at most 0.
    """
    ends = (1.0, _MOST_TILT) if epsilon >= 0 else (-_MOST_TILT, 0.0)

    def weights(look: _Look, tilt: float) -> Reals:
        with np.errstate(divide="ignore"):
            logs = np.log(look.of_q) + tilt * look.losses
        found = np.exp(logs - logs.max(initial=-math.inf))
        return np.asarray(found / found.sum())

    def mean(tilt: float) -> float:
        return sum(x.times * float(np.dot(weights(x, tilt), x.losses)) for x in looks)

    tilt = ends[0] if epsilon >= 0 else ends[1]
    if looks and (mean(tilt) < epsilon) == (epsilon >= 0):
        low, high = ends
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if mean(middle) < epsilon else (low, middle)
        tilt = low
    return [replace(look, masses=weights(look, tilt)) for look in looks], tilt


@dataclass(frozen=True)
class _Look:
    """What a first look at one part shows: masses under Q and P in balls, by ascending losses.

    Other masses are those under Q, and under a tilted law, in floats.
    """

    loss: PrivacyLoss
    times: int
    pair: Pair
    cells: Any
    rows: Sequence[tuple[Any, Any]]
    losses: Reals
    of_q: Reals
    masses: Reals
    least: float

    @property
    def variance(self) -> float:
        """Variance of the loss of one use."""
        mean = np.average(self.losses, weights=self.masses)
        return float(np.average((self.losses - mean) ** 2, weights=self.masses))

    def offset(self, step: float) -> float:
        """Return the logarithm of the mean of all ratios that are nearly the least one.

        Rare samples tell nearly always as little. What is left of such a group, up to the next node
        above it, must have as much beyond that node to be gathered with.
        """
        if len(self.losses) and self.of_q[-1] * math.exp(min(self.losses[-1], 700.0)) > _ATOM:
            # No mass is above a largest ratio, to be gathered with.
            with balls.workprec(_BITS_OF_LOOK):
                q, p = self.rows[-1]
                return math.nextafter(float((p / q).log().upper()), math.inf)
        beyond = self.losses - self.least - step
        if not len(beyond) or beyond[0] < -1.5 * step:
            return 0.0
        over = self.of_q * np.expm1(np.minimum(beyond, 700.0))
        lacking = -np.cumsum(np.where(beyond < 0, over, 0.0)[::-1])[::-1]
        small = np.flatnonzero((beyond < -step / 2) | (lacking > over[beyond > 0].sum() / 2))
        small = small[beyond[small] < 0]
        if not len(small):
            return 0.0
        with balls.workprec(_BITS_OF_LOOK):
            q, p = (sum((self.rows[k][i] for k in small.tolist()), balls.arb(0)) for i in (0, 1))
            # A node that is not below the mean, where all of these ratios are one.
            return math.nextafter(float((p / q).log().upper()), math.inf)

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

    def factor(self, allowed: float) -> float:
        """Return by how much cells must be finer to add no more variance than is allowed."""
        widths = np.abs(np.gradient(self.losses)) if len(self.losses) > 1 else np.zeros(1)
        added = self.times * float(np.dot(self.masses, widths**2)) / 6
        return math.sqrt(max(added / allowed, 1e-4)) if allowed else 1.0


def _look(loss: PrivacyLoss, times: int, aim: _Aim, given: Cells | None) -> _Look:
    pair = pair_of(loss, False, False)
    cells = _cells(loss, pair, aim) if given is None else given
    outcomes = pair.outcomes(cells, above=False)
    rows = [(q, p, None) for q, p in outcomes.cells if q > 0 and p > 0]
    rows += [(q, q * at.exp(), at) for at, q, _ in outcomes.points]
    ells = [float(((p / q).log() if at is None else at).mid()) for q, p, at in rows]
    order = np.argsort(ells)
    losses = np.array(ells)[order]
    of_q = np.array([float(q.mid()) for q, _, _ in rows])[order]
    sorted_rows = [rows[k][:2] for k in order]
    least = float(pair.least.mid())
    return _Look(loss, times, pair, cells, sorted_rows, losses, of_q, of_q, least)


@singledispatch
def _cells(loss: Any, pair: Pair, aim: _Aim, finer: float = 1.0) -> Any:
    """Return cells that leave out no more than they may, finer than a first look's by a factor."""
    line = getattr(pair, "line", pair)
    if not isinstance(line, Line):
        return Grid(1.0, 0, 1)
    sigma = float(line.sigma.mid())
    ends = [
        (float(mean.mid()), math.sqrt(2 * max(_nats(aim, weight), 4.0)))
        for side in (line.numerator, line.denominator)
        for mean, weight in side
    ]
    step = sigma / _CELLS_OF_LOOK / finer
    low = min(mean - sigma * reach for mean, reach in ends) / step
    high = max(mean + sigma * reach for mean, reach in ends) / step

    def tells(x: float) -> bool:
        with balls.workprec(_BITS_OF_LOOK):
            return float(line.loss(balls.arb(x * step)).mid()) > aim.top

    if tells(high):
        high = bisect(tells, Sides(meet=high, miss=low), Stop(absolute=0.5)).meet
    if not high - low < MAX_POINTS - 2:
        raise OutOfReach
    return Grid(step, math.floor(low), math.ceil(high))


def _nats(aim: _Aim, weight: Any) -> float:
    return math.log(max(float(weight.mid()), 1e-300)) - aim.log_rest


@_cells.register
def _(loss: Laplace, pair: Pair, aim: _Aim, finer: float = 1.0) -> Any:
    count = 1 << max(math.ceil(math.log2(64 * finer)), 1)
    if count > MAX_POINTS:
        raise OutOfReach
    return Grid(1.0, 0, count)


@_cells.register
def _(loss: DiscreteGaussian, pair: Pair, aim: _Aim, finer: float = 1.0) -> Any:
    far = math.ceil(loss.sigma * math.sqrt(-2 * aim.log_rest_of_q)) + 1
    if 2 * far + loss.sensitivity > MAX_POINTS:
        raise OutOfReach
    return Grid(1.0, -far, loss.sensitivity + far)


@_cells.register
def _(loss: Allocation, pair: Pair, aim: _Aim, finer: float = 1.0) -> Any:
    if isinstance(loss, UnequalAllocation):
        raise OutOfReach
    deviation = math.sqrt(math.expm1(loss.noise_multiplier**-2))
    epoch = RandomAllocationDpEvent(loss.noise_multiplier, loss.batches)
    beyond = _BEYOND * math.exp(max(aim.log_rest, -600.0)) / deviation
    largest = math.exp(interface.epsilon(epoch, delta=min(beyond, 0.1)).upper) * loss.batches
    interval = max(_INTERVAL * aim.finest * deviation, largest / (MAX_POINTS - 1))
    if interval > _WIDEST * deviation:
        raise OutOfReach
    return Grid(interval / loss.batches, 0, math.ceil(largest / interval))


@_cells.register
def _(loss: Batched, pair: Pair, aim: _Aim, finer: float = 1.0) -> Batch:
    width = min(aim.width / finer**2, _WIDEST_AIM)
    at = math.log1p(math.expm1(min(aim.epsilon, 500.0)) * loss.among / loss.drawn)
    log_delta = aim.log_rest - math.log(_CUT * width)
    bits, law = choose_order(loss.answers, at, log_delta=log_delta, width=width)
    if not loss.epoch:
        return Batch(law, None)
    with balls.workprec(bits):
        found = law_of(loss.answers, law, False, True)
        assert found is not None
        ratios = np.array([float(found.log_node(k).exp().mid()) for k in range(len(found.masses))])
        masses = np.array([float(mass.mid()) for mass in found.masses])
    deviation = math.sqrt(max(float(masses @ (ratios - 1) ** 2), 1e-12))
    far = math.sqrt(-2 * max(aim.log_rest, -_MOST_NATS) * loss.among) * deviation
    largest = loss.among + far + float(ratios.max())
    interval = max(_INTERVAL * aim.finest / finer * deviation, largest / (MAX_POINTS - 1))
    if interval > _WIDEST * deviation:
        raise OutOfReach
    return Batch(law, Grid(interval / loss.among, 0, math.ceil(largest / interval)))
