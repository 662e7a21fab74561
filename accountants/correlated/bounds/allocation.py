r"""What does one uniformly random round an epoch cost, without draws? Independent noise.

Two ways answer: the exact transform of the loss, inverted on contours
(:mod:`dpcal.accountants.losses.allocation`), and, where these contours are out of reach, a law on a
grid.

A record takes part in one of t rounds of an epoch. With noise that is not correlated, and mu the
norm of a contribution over sigma, the likelihood ratio of an epoch is a mean of t exponentials

    L = (1 / t) (X_1 + ... + X_t),    X_i = exp(mu N_i - mu^2 / 2) independent under Q,

and those of epochs multiply. Both directions are convex in L: E_Q (L - e^eps)_+ to remove, and
E_Q (1 - e^eps L)_+ to add. Any law that is larger in convex order therefore gives an upper bound,
and sums and products of independent laws keep that order. Laws are kept on a geometric grid, on
which a number between two nodes is spread over both with its mean preserved. Errors are of second
order in the ratio of the nodes, where rounding up would make them of first order (compare Feldman
and Shenfeld 2026, who round).

>>> bound = Allocation(norm=1.0, rounds=10, epochs=1)
>>> 2.1544e-3 < Allocation(norm=1.0, rounds=100, epochs=1).delta(0.25) < 2.1635e-3
True
>>> bound.epsilon(1e-12).value < 10
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpcal.accountants import events
from dpcal.accountants.answers import Epsilon, LogDelta
from dpcal.accountants.correlated.bounds.allocation_below import (
    CUT,
    FOURIER,
    MARGIN,
    AllocationBelow,
    Moments,
    cells,
    power,
    power_of_law,
    reach,
)
from dpcal.accountants.correlated.bounds.base import Bound, Curve, Proof
from dpcal.accountants.interface import epsilon as event_epsilon, log_delta as event_log_delta

__all__ = ["LARGEST_NORM", "Allocated", "Allocation"]

Floats = NDArray[np.float64]

# Log of the ratio of neighboring nodes, as a part of mu / sqrt(rounds). The error is quadratic in
# it, and below a thousandth of epsilon here.
_FINENESS = 0.04
# Most nodes of the grid of one exponential; a grid that needs more of them is coarser.
_MOST_NODES = 6000
# Above this norm numbers on the grid would overflow. So little noise reveals participations, and
# the bound for known participations is then as good.
LARGEST_NORM = 20.0


@dataclass(frozen=True)
class _Law:
    """Masses at ``ratio^(first + i)``, a mass at 0, and the mean of the part cut off."""

    first: int
    masses: Floats
    zero: float
    lost: float

    def trimmed(self, ratio: float) -> _Law:
        """Return the law without its ends: large numbers move to the last node, small ones to 0."""
        values = ratio ** (self.first + np.arange(len(self.masses)))
        means = np.cumsum((self.masses * values)[::-1])[::-1]
        last = max(1, int((means > CUT).sum()))
        start = min(last - 1, int((np.cumsum(self.masses) <= CUT).sum()))
        # A small number x is spread over 0 and the first node that is kept, with its mean.
        small = self.masses[:start] * values[:start] / values[start]
        kept = self.masses[start:last].copy()
        kept[0] += small.sum()
        zero = self.zero + max(0.0, float((self.masses[:start] - small).sum() if start else 0.0))
        lost = self.lost + (float(means[last]) if last < len(means) else 0.0)
        kept[-1] += float(self.masses[last:].sum())
        return _Law(self.first + start, kept, zero, lost)


def _one(norm: float, ratio: float) -> _Law:
    """Return the law of exp(mu N - mu^2 / 2), enlarged in convex order, on the grid."""
    # The masses of a polygon through E (X - k)_+ at the nodes are its changes of slope, which are
    # differences of means of X between neighbors: nothing cancels in E (X; a < X < b).
    first, chance, mean = cells(norm, ratio)
    edges = (first + np.arange(len(chance) + 1)) * math.log(ratio)
    x, z = np.exp(edges), (edges + 0.5 * norm * norm) / norm
    # Within a cell, the mass goes to both ends so that its mean stays.
    share = np.clip((mean - x[:-1] * chance) / np.diff(x), 0.0, chance)
    masses = np.zeros(len(x))
    masses[:-1] += chance - share
    masses[1:] += share
    below, mean_below = float(ndtr(z[0])), float(ndtr(z[0] - norm))
    masses[0] += mean_below / x[0]
    masses[-1] += float(ndtr(-z[-1]))
    zero = max(0.0, below - mean_below / x[0])
    return _Law(first, masses, zero, float(ndtr(norm - z[-1])))


def _sum(one: _Law, other: _Law, ratio: float) -> _Law:
    """Return the law of a sum of two independent numbers, enlarged in convex order, on the grid."""
    step = math.log(ratio)
    low = min(one.first, other.first)
    high = max(one.first + len(one.masses), other.first + len(other.masses))
    size = high - low
    p, q = np.zeros(size), np.zeros(size)
    p[one.first - low : one.first - low + len(one.masses)] = one.masses
    q[other.first - low : other.first - low + len(other.masses)] = other.masses
    room = math.ceil(math.log(2.0) / step) + 2
    out = np.zeros(size + room)
    out[:size] += p * other.zero + q * one.zero
    for gap in range(size):
        both = p[gap:] * q[: size - gap]
        if gap:
            both = both + q[gap:] * p[: size - gap]
        # ratio^i + ratio^(i - gap) lies this far above node i.
        value = 1.0 + math.exp(-gap * step)
        up = min(int(math.log(value) / step), room - 2)
        floor = math.exp(up * step)
        share = min(max((value / floor - 1.0) / (ratio - 1.0), 0.0), 1.0)
        out[gap + up : size + up] += (1.0 - share) * both
        out[gap + up + 1 : size + up + 1] += share * both
    lost = one.lost + other.lost
    return _Law(low, out, one.zero * other.zero, lost).trimmed(ratio)


@lru_cache(maxsize=4)
def _of_an_epoch(norm: float, rounds: int, ratio: float) -> tuple[Floats, Floats, float, float]:
    """Return the law of L, by log2(rounds) sums; it is kept for all epsilons."""
    total = power(_one(norm, ratio), rounds, lambda first, second: _sum(first, second, ratio))
    places = (total.first + np.arange(len(total.masses))) * math.log(ratio)
    nodes: Floats = np.asarray(places - math.log(rounds), dtype=np.float64)
    with np.errstate(divide="ignore"):
        masses: Floats = np.log(total.masses)
    return nodes, masses, total.zero, total.lost / rounds


@dataclass(frozen=True, eq=False)
class Allocation(Curve):
    """Bounds on both directions for one uniformly random round an epoch, and independent noise.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds
        Number t >= 1 of rounds of an epoch.
    epochs
        Number >= 1 of epochs, whose rounds are drawn independently.
    """

    norm: float
    rounds: int
    epochs: int

    method: ClassVar[str] = "convolutions on a geometric grid"

    @cached_property
    def _below(self) -> AllocationBelow:
        """The lower bounds, on the same grid."""
        return AllocationBelow(self.norm, self.rounds, self.epochs, self._ratio)

    @cached_property
    def _ratio(self) -> float:
        widest = reach(self.norm) / _MOST_NODES
        return math.exp(max(_FINENESS * self.norm / math.sqrt(self.rounds), widest))

    @property
    def _epoch(self) -> tuple[Floats, Floats, float, float]:
        """Logarithms of L and of its masses, the mass at 0, and the mean of the part cut off."""
        return _of_an_epoch(self.norm, self.rounds, self._ratio)

    def composed(self, tilt: float) -> tuple[Floats, Floats, float]:
        """Return nodes of the sum over epochs, their tilted masses, and the log of their total."""
        nodes, masses, _, _ = self._epoch
        weights, total = power_of_law(masses, tilt * nodes, self.epochs)
        if self.epochs > 1:
            weights = np.maximum(weights, 0.0) + FOURIER * self.epochs
        places = self.epochs * nodes[0] + np.arange(len(weights)) * math.log(self._ratio)
        return places, weights, total

    @cached_property
    def _moments(self) -> tuple[Moments, Moments]:
        """Moments of L, at tilts above 1 and below 0."""
        nodes, masses, _, _ = self._epoch
        return Moments.both(nodes, masses)

    def directions(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on delta of removing and of adding a record at an epsilon >= 0."""
        _, _, zero, lost = self._epoch
        rising, falling = self._moments
        tilt = rising.best_tilt(epsilon / self.epochs)
        places, weights, total = _composed(self, tilt)
        above = places > epsilon
        gain = -np.expm1(epsilon - places[above])
        exponent = total + (1 - tilt) * places[above]
        remove = float((weights[above] * gain * np.exp(np.minimum(exponent, 600.0))).sum())
        remove = remove * (1 + MARGIN) + self.epochs * lost * (1 + MARGIN) * 1.01
        tilt = falling.best_tilt(-epsilon / self.epochs)
        places, weights, total = _composed(self, tilt)
        below = places < -epsilon
        gain = -np.expm1(epsilon + places[below])
        exponent = total - tilt * places[below]
        add = float((weights[below] * gain * np.exp(np.minimum(exponent, 600.0))).sum())
        add = add * (1 + MARGIN) + self.epochs * zero * 1.01
        return min(1.0, remove), min(1.0, add)

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta of both directions at an epsilon >= 0."""
        return max(self.directions(epsilon))

    def lower_delta(self, epsilon: float) -> float:
        """Return a number below delta at an epsilon >= 0."""
        return max(self._below.directions(epsilon))


# Width of an interval from contours, for log delta and for epsilon relative to itself, above which
# the grid is asked, too: it takes seconds.
_CLOSE = 5e-4


@dataclass(frozen=True, eq=False)
class Allocated(Bound):
    """Bounds on both directions for one uniformly random round an epoch, by the closer way.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds
        Number t >= 1 of rounds of an epoch.
    epochs
        Number >= 1 of epochs, whose rounds are drawn independently.
    """

    norm: float
    rounds: int
    epochs: int

    method: ClassVar[str] = "contour"

    @cached_property
    def _event(self) -> events.DpEvent:
        epoch = events.RandomAllocationDpEvent(1 / self.norm, self.rounds)
        return events.SelfComposedDpEvent(epoch, self.epochs)

    @cached_property
    def _grid(self) -> Allocation:
        return Allocation(self.norm, self.rounds, self.epochs)

    @cached_property
    def _found(self) -> dict[tuple[str, float], tuple[Proof, float]]:
        return {}

    def _both(self, asked: str, at: float) -> tuple[Proof, float]:
        """Return upper and lower end of log delta at an epsilon, or of epsilon at a delta."""
        if (asked, at) in self._found:
            return self._found[asked, at]
        wanted = asked == "epsilon"
        exact: Epsilon | LogDelta = (
            event_epsilon(self._event, delta=at)
            if wanted
            else event_log_delta(self._event, epsilon=at)
        )
        proof, lower = Proof(exact.upper, exact.method), exact.lower
        if exact.upper - lower > (_CLOSE * exact.upper if wanted else _CLOSE):
            other = self._grid
            proof = min(proof, other.epsilon(at) if wanted else other.log_delta(at))
            below = other.lower_epsilon(at) if wanted else other.lower_delta(at)
            if not wanted:
                below = math.log(below) if below > 0 else -math.inf
            lower = max(lower, below)
        self._found[asked, at] = proof, lower
        return self._found[asked, at]

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        return self._both("log delta", epsilon)[0]

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        return self._both("epsilon", delta)[0]

    def lower_delta(self, epsilon: float) -> float:
        """Return a number below delta at an epsilon >= 0."""
        return math.exp(self._both("log delta", epsilon)[1]) * (1 - 1e-15)

    def lower_epsilon(self, delta: float) -> float:
        """Return a number below epsilon at a delta in (0, 1)."""
        return self._both("epsilon", delta)[1]


@lru_cache(maxsize=4)
def _composed(bound: Allocation, tilt: float) -> tuple[Floats, Floats, float]:
    """Return the composition for a tilt; nearby epsilons share it."""
    return bound.composed(tilt)
