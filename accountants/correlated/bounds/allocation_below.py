"""What does a random subset of the rounds of an epoch cost at least? Groups of outcomes, composed.

A law whose outcomes are gathered in groups tells less: what it costs is a lower bound, in both
directions. Groups have edges of a geometric grid, and masses without and with the record, so that
epochs are plain convolutions. What is cut off is left out: both functions whose means are taken
are >= 0.
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
from scipy.special import logsumexp

__all__ = ["Below", "power"]

Floats = NDArray[np.float64]
Law = TypeVar("Law")

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


def _total(values: Floats) -> float:
    """Return the sum of the values above 0, rounded down."""
    return float(values[values > 0].sum()) * (1 - MARGIN)
