"""A sum of privacy losses without an inversion: moments, supremum, closed bounds.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> log_mgf, mean, variance = Total(((Gaussian(2.0), 8),)).cumulants([1.0])[0]
>>> print(log_mgf, mean, variance)
2.0 3.0 2.0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dpcal.accountants.losses import sampled_gaussian
from dpcal.accountants.losses.base import Parts, Reals
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT, sum_up

# Losses whose closed bounds are one array: 13 MB at the tilts of a search.
_AT_ONCE = 256


def _log_complement_up(log_value: float) -> float:
    """Return log(1 - exp(log_value)), rounded up; -infinity for log_value >= 0."""
    if log_value >= 0:
        return -math.inf
    value = math.log(-math.expm1(log_value))
    return min(0.0, value + UNIT * (8 + 4 * abs(value)))


class Total:
    """The law of a sum of independent losses.

    Parameters
    ----------
    parts
        Losses and how often each adds up.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log M, mean and variance of the sums tilted by each c; shape (len(c), 3)."""
        c = np.asarray(c, dtype=float)
        return self._summed([loss.cumulants(c)[:, :3] for loss, _ in self.parts], len(c))

    def _summed(self, rows: list[Reals], n: int) -> Reals:
        """Return the sum of rows of all parts; each is added so often as its part is."""
        times = np.array([float(times) for _, times in self.parts])
        found = np.moveaxis(np.array(rows).reshape(-1, n, 3), 0, -1) * times
        # NumPy adds numbers along the last axis in pairs: rounding does not grow with the parts.
        return np.asarray(np.ascontiguousarray(found).sum(axis=-1))

    @cached_property
    def variance(self) -> float:
        """Variance of the law."""
        return float(self.cumulants([0.0])[0, 2])

    @cached_property
    def steep(self) -> float:
        """Tilt, about, up to which rare large losses do not count; 0 where it is not known."""
        parts = self.parts
        steeps = (loss.steep if isinstance(loss, SampledGaussian) else 0.0 for loss, _ in parts)
        return min(steeps, default=0.0)

    def moments(self, c: Reals | Sequence[float]) -> Reals:
        """Return the sum of the parts' Renyi bounds on log M at c > 0, and two derivatives."""
        return self._summed([loss.moments(c) for loss, _ in self.parts], len(c))

    @property
    def renyi_is_tighter(self) -> bool:
        """Whether some part's Renyi divergences are tighter than its dominating pair's."""
        return any(loss.renyi_is_tighter for loss, _ in self.parts)

    @cached_property
    def upper(self) -> float:
        """Supremum of the sum, rounded up."""
        return sum_up((loss.upper for loss, _ in self.parts), (times for _, times in self.parts))

    def log_support_bound(self, epsilon: float) -> float:
        """Return an upper bound on log delta(epsilon): its value with all mass at the supremum."""
        return _log_complement_up(epsilon - self.upper)

    @property
    def log_delta_bound(self) -> float:
        """Log of the chance, rounded up, that any step depends on the record: above every delta."""
        unaffected = math.fsum(times * loss.log_unaffected for loss, times in self.parts)
        return _log_complement_up(unaffected)

    def log_mgf_bounds(self, c: Reals) -> Reals:
        """Return a closed-form upper bound on log M at each of many tilts > 0."""
        bound, alike = np.zeros(len(c)), []
        for loss, times in self.parts:
            if isinstance(loss, SampledGaussian):
                alike.append((loss, float(times)))
            else:
                bound += times * np.array([loss.log_mgf_bound(float(at)) for at in c])
        for start in range(0, len(alike), _AT_ONCE):
            losses, counts = zip(*alike[start : start + _AT_ONCE], strict=True)
            bound += np.array(counts) @ sampled_gaussian.log_mgf_bounds_of(losses, c)
        # All terms are positive; each may be rounded down when it is added.
        return bound * (1 + len(self.parts) * UNIT)
