r"""What does one uniformly random round an epoch cost at least? The lower end of a bracket.

By Jensen's inequality, a law whose atoms are replaced by the conditional means of groups of them is
smaller in convex order, and so is every sum and product of such laws: what they cost is a lower
bound, in both directions. Here groups are cells of a geometric grid. A law is kept as masses and
means, E (X; X in the cell), so that an atom is anywhere in its cell and no mean is moved; errors
are of second order in the ratio of the grid. Pairs of cells are grouped by where their lower edges
meet, whose masses and means are plain convolutions. What is cut off is left out: both functions
whose means are taken are >= 0.

>>> below = AllocationBelow(norm=1.0, rounds=100, epochs=1, ratio=1.004)
>>> 2.1544e-3 < below.directions(0.25)[0] < 2.1635e-3
True
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import logsumexp, ndtr

__all__ = [
    "CUT",
    "FOURIER",
    "MARGIN",
    "AllocationBelow",
    "Below",
    "Moments",
    "cells",
    "power_of_law",
    "reach",
]

Floats = NDArray[np.float64]
Law = TypeVar("Law")

# Standard deviations of log X to which the grid reaches. The part beyond has a mean below 1e-38.
_REACH = 13.0
# Mass, and mean, that is cut off at each end of the law of a sum.
CUT = 1e-36
# Relative margin for the rounding of sums, outward.
MARGIN = 1e-9
# Error of a Fourier convolution for each factor, in units of the largest sum, which is 1: a few
# roundings for each of up to 30 halvings of its length.
FOURIER = 2e-14
# Groups whose tilted scale has a logarithm of a larger size than this have negligible weight.
_SCALE = 600.0
# Distances of the tilts that are tried from 0 and 1, between which no side is bounded. Every tilt
# gives a valid bound; a coarser choice rounds more.
_DISTANCES = np.geomspace(0.05, 200.0, 60)


def reach(norm: float) -> float:
    """Return the width of the grid for the logarithm of exp(mu N - mu^2 / 2), both sides."""
    return (2 * _REACH + norm) * norm


def cells(norm: float, ratio: float) -> tuple[int, Floats, Floats]:
    """Return the first edge, and masses and means over cells, of exp(mu N - mu^2 / 2).

    Cell i lies between ``ratio^(first + i)`` and the next power; its mean is E (X; X in the cell).
    """
    step = math.log(ratio)
    first = math.floor((-0.5 * norm * norm - _REACH * norm) / step)
    last = math.ceil((0.5 * norm * norm + _REACH * norm) / step)
    z = (np.arange(first, last + 1) * step + 0.5 * norm * norm) / norm
    # Differences are taken in the smaller tail, so that they keep their digits.
    chance, mean = np.diff(ndtr(z)), np.diff(ndtr(z - norm))
    far = z[:-1] > 0
    chance[far] = -np.diff(ndtr(-z))[far]
    mean_far = z[:-1] - norm > 0
    mean[mean_far] = -np.diff(ndtr(norm - z))[mean_far]
    return first, chance, mean


def power(one: Law, times: int, sum_of: Callable[[Law, Law], Law]) -> Law:
    """Return the law of the sum of ``times`` >= 1 independent numbers, by doubling.

    >>> power(3, 5, lambda first, second: first + second)
    15
    """
    total = None
    while True:
        if times & 1:
            total = one if total is None else sum_of(total, one)
        times >>= 1
        if not times:
            break
        one = sum_of(one, one)
    assert total is not None
    return total


@dataclass(frozen=True, eq=False)
class Moments:
    """Logarithms of the means of exp(a X) at some tilts a, computed once for all levels."""

    tilts: Floats
    logs: Floats

    @classmethod
    def both(cls, nodes: Floats, log_masses: Floats) -> tuple[Moments, Moments]:
        """Return the moments at tilts above 1 and at tilts below 0, of masses on nodes."""
        above, below = (
            cls(tilts, logsumexp(log_masses + tilts[:, None] * nodes, axis=1))
            for tilts in (1 + _DISTANCES, -_DISTANCES)
        )
        return above, below

    def best_tilt(self, level: float) -> float:
        """Return the tilt with the smallest exponential bound on the law at a level."""
        return float(self.tilts[np.argmin(self.logs - self.tilts * level)])


def power_of_law(log_masses: Floats, exponents: Floats, epochs: int) -> tuple[Floats, float]:
    """Return tilted masses of a sum of independent numbers, and the logarithm of their total.

    Masses of one number are exp(log_masses + exponents), divided by their total.
    """
    tilted = log_masses + exponents
    total = float(logsumexp(tilted))
    weights: Floats = np.exp(tilted - total)
    size = epochs * (len(tilted) - 1) + 1
    if epochs > 1:
        length = next_fast_len(size, real=True)
        weights = irfft(rfft(weights, length) ** epochs, length)[:size]
    return weights, epochs * total


@dataclass(frozen=True)
class _Cells:
    """Masses and means over cells of the grid, of which the first starts at ``ratio^first``."""

    first: int
    masses: Floats
    means: Floats

    def trimmed(self) -> _Cells:
        """Return the law without ends whose masses are negligible."""
        high = np.cumsum(self.means[::-1])[::-1] > CUT
        low = np.cumsum(self.masses) > CUT
        kept = np.flatnonzero(high & low)
        part = slice(kept[0], kept[-1] + 1)
        return _Cells(self.first + int(kept[0]), self.masses[part], self.means[part])

    def within(self, low: int, high: int) -> tuple[Floats, Floats]:
        """Return masses and means over the cells from ``low`` to ``high``."""
        padded = np.zeros((2, high - low))
        start = self.first - low
        padded[:, start : start + len(self.masses)] = self.masses, self.means
        return padded[0], padded[1]


def _sum(one: _Cells, other: _Cells, ratio: float) -> _Cells:
    """Return the law of the sum of two independent numbers, reduced in convex order."""
    step = math.log(ratio)
    low = min(one.first, other.first)
    high = max(one.first + len(one.masses), other.first + len(other.masses))
    (p, px), (q, qx) = one.within(low, high), other.within(low, high)
    size = high - low
    masses, means = np.zeros((2, size + math.ceil(math.log(2.0) / step) + 2))
    for gap in range(size):
        # The lower edges of cells i and i - gap add up to a number in this cell after i.
        up = int(math.log1p(math.exp(-gap * step)) / step)
        head, tail = slice(gap, size), slice(0, size - gap)
        into = slice(gap + up, size + up)
        masses[into] += p[head] * q[tail]
        means[into] += px[head] * q[tail] + p[head] * qx[tail]
        if gap:
            masses[into] += q[head] * p[tail]
            means[into] += qx[head] * p[tail] + q[head] * px[tail]
    return _Cells(low, masses, means).trimmed()


class Below(ABC):
    """Lower bounds on both directions, from groups of an epoch's outputs and independent epochs.

    Attributes
    ----------
    epochs
        Number >= 1 of epochs.
    margin
        Relative margin for the rounding of masses, outward.
    """

    epochs: int
    margin: ClassVar[float] = MARGIN

    @property
    @abstractmethod
    def law(self) -> tuple[Floats, Floats, Floats, float]:
        """Logarithms of the edges of L, and of masses of its groups without and with the record.

        The last number, > 0, is the distance of neighboring edges.
        """

    @cached_property
    def _moments(self) -> tuple[Moments, Moments]:
        """Moments of the masses without the record, at tilts above 1 and below 0."""
        edges, masses, _, _ = self.law
        return Moments.both(edges, masses)

    def composed(self, tilt: float, outward: int) -> tuple[Floats, Floats]:
        """Return masses without and with the record over all epochs, where their scale is at hand.

        Both are tilted by the same power of the edges, so that neither loses its small values.
        ``outward`` is 1 for masses from above and means from below, and -1 for the reverse.
        """
        edges, masses, means, step = self.law
        k = self.epochs
        error = FOURIER * k if k > 1 else 0.0
        weights, total = power_of_law(masses, tilt * edges, k)
        values, mean_total = power_of_law(means, (tilt - 1) * edges, k)
        places = k * edges[0] + np.arange(len(weights)) * step
        scale, mean_scale = total - tilt * places, mean_total - (tilt - 1) * places
        near = (np.abs(scale) < _SCALE) & (np.abs(mean_scale) < _SCALE)
        margin = self.margin * k
        weights = weights * (1 + outward * margin) + outward * error
        values = values * (1 - outward * margin) - outward * error
        found = weights[near] * np.exp(scale[near])
        return np.asarray(found), np.asarray(values[near] * np.exp(mean_scale[near]))

    def directions(self, epsilon: float) -> tuple[float, float]:
        """Return lower bounds on delta of removing and of adding a record at an epsilon >= 0."""
        rising, falling = self._moments
        level = epsilon / self.epochs
        above, below = _composed(self, rising.best_tilt(level), 1)
        remove = _total(below - math.exp(epsilon) * above)
        below, above = _composed(self, falling.best_tilt(-level), -1)
        return remove, _total(below - math.exp(epsilon) * above)


@lru_cache(maxsize=8)
def _composed(below: Below, tilt: float, outward: int) -> tuple[Floats, Floats]:
    """Return the composition for a tilt; nearby epsilons share it."""
    return below.composed(tilt, outward)


@dataclass(frozen=True, eq=False)
class AllocationBelow(Below):
    """Lower bounds on both directions for one uniformly random round an epoch.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds
        Number t >= 1 of rounds of an epoch.
    epochs
        Number >= 1 of epochs, whose rounds are drawn independently.
    ratio
        Ratio > 1 of neighboring edges of the grid.
    """

    norm: float
    rounds: int
    epochs: int
    ratio: float

    @property
    def law(self) -> tuple[Floats, Floats, Floats, float]:
        """Logarithms of the edges of L, of the masses and means of its cells, and the ratio's."""
        return _of_an_epoch(self.norm, self.rounds, self.ratio)


@lru_cache(maxsize=4)
def _of_an_epoch(norm: float, rounds: int, ratio: float) -> tuple[Floats, Floats, Floats, float]:
    """Return the law of L, by log2(rounds) sums; it is kept for all epsilons."""
    one = _Cells(*cells(norm, ratio)).trimmed()
    total = power(one, rounds, lambda first, second: _sum(first, second, ratio))
    step = math.log(ratio)
    edges = (total.first + np.arange(len(total.masses))) * step
    with np.errstate(divide="ignore"):
        masses, means = np.log(total.masses), np.log(total.means)
    shift = math.log(rounds)
    return np.asarray(edges - shift), np.asarray(masses), np.asarray(means - shift), step


def _total(values: Floats) -> float:
    """Return the sum of the values above 0, rounded down."""
    return float(values[values > 0].sum()) * (1 - MARGIN)
