"""What are the moments of an epoch whose batches differ? In floats, when adding a record.

With L the mean of Y_j weighted by probabilities p_j, and q = -c < 0,

    E L^q = 1 / Gamma(c) * integral over v of exp(c v) * product of E exp(-exp(v) p_j Y_j).

>>> from dpcal.accountants.losses.allocation import Allocation, Group, UnequalAllocation
>>> alike = UnequalAllocation.of((Group(1.0, 40, 0.4), Group(1.0, 60, 0.6)), "add")
>>> found, known = untold(alike), Allocation(1.0, 100, "add")
>>> bool(abs(found.cumulants([5.0]) - known.cumulants([5.0])).max() < 1e-6)
True
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from dpcal.accountants.losses.allocation import UnequalAllocation
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["untold"]

Reals = NDArray[np.float64]

# Least power of 1 / L whose moments are summed; smaller ones have about the same mean and variance.
_LEAST = 0.05
# Points x of a table, over standard deviations on either side.
_X = np.linspace(-9.0, 9.0, 181)
_WEIGHTS = np.exp(-_X * _X / 2) / np.exp(-_X * _X / 2).sum()
# Nats below the peak at which sums over v end, and most points of them.
_NATS, _MOST = 40.0, 200_000
# Relative error of moments, which contours are chosen by.
_ERROR = 1e-9


class _Untold(UnequalAllocation):
    """The epoch itself, and not one that tells a record's group."""

    def values(self, c: float) -> tuple[Reals, float]:
        """Return log M(c), three moments of the tilted loss, and the error of M(c), relative."""
        if self.direction == "remove" or c < 0:
            raise OutOfReach
        if c not in self._known:
            rows = self._moments(max(c, _LEAST))
            rows[0] *= c >= _LEAST
            self._known[c] = rows, _ERROR
        return self._known[c]  # type: ignore[no-any-return]

    def _moments(self, c: float) -> Reals:
        largest = 1 / self.noise_multiplier
        low = math.log(c) - _NATS / c - 1 - largest**2
        high, step = math.log(c) + 8 * largest + 6, 0.1 / math.sqrt(1 + c)
        if not high - low < step * _MOST:
            raise OutOfReach
        v = np.arange(low, high, step)
        logs = c * v + self._log_means(v)
        weights = np.exp(logs - logs.max())
        total = float(weights.sum())
        weights /= total
        mean = float(weights @ v)
        second, fourth = (float(weights @ (v - mean) ** k) for k in (2, 4))
        log_mass = float(logs.max()) + math.log(total * step) - float(gammaln(c))
        # The log of the ratio is v less that of a Gamma law, of whose law it is independent.
        variance = max(second - float(polygamma(1, c)), 1e-12)
        rest = fourth - 3 * second**2 - float(polygamma(3, c)) + 3 * variance**2
        return np.array([log_mass, mean - float(digamma(c)), variance, max(rest, variance**2)])

    def _log_means(self, v: Reals) -> Reals:
        """Return the log of the product of E exp(-exp(v) p_j Y_j)."""
        total = np.zeros_like(v)
        for sigma, m, chance in self.unequal:
            y = math.log(chance / m) + _X / sigma - 1 / (2 * sigma * sigma)
            for block in np.array_split(np.arange(len(v)), 1 + len(v) // 4096):
                sizes = np.exp(np.minimum(v[block, None] + y, 700.0))
                total[block] += m * np.log1p(np.maximum(np.expm1(-sizes) @ _WEIGHTS, -1 + 2**-53))
        return total

    def log_decay_of_mean(self, c: float, t: Reals) -> Reals:
        """Return -t^2 over twice the sum of variances of noise."""
        return np.asarray(-t * t / (2 * sum(m * sigma**2 for sigma, m, _ in self.unequal)))


@lru_cache(maxsize=64)
def untold(loss: UnequalAllocation) -> UnequalAllocation:
    """Return the loss of the epoch itself, where that of an epoch that tells groups is given."""
    return _Untold(loss.noise_multiplier, loss.batches, loss.direction, loss.numbers, loss.unequal)
