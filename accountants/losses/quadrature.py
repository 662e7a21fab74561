"""Privacy losses that are integrated over points: sums for real tilts, and their functions.

>>> complex_log1p(np.array([1e-30 + 0j])).tolist()  # no digit is lost next to 0
[(1e-30+0j)]
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.question import moments
from dpcal.accountants.losses.base import Complexes, Points, PrivacyLoss, Reals

__all__ = ["PointLoss", "argument_sizes", "complex_log1p"]

# Stands for log 0, in nats: its multiples stay finite, and their exponentials are 0.
_LOG_OF_ZERO = -1e6


def complex_log1p(z: Any) -> Complexes:
    """Return log(1 + z) with full relative precision for small z; huge and finite at z = -1."""
    a, b = z.real, z.imag
    with np.errstate(divide="ignore"):
        near = 0.5 * np.log1p(a * (2 + a) + b * b)
        size = np.where(np.abs(z) < 0.5, near, np.log(np.abs(1 + z)))
    return np.asarray(np.maximum(size, _LOG_OF_ZERO) + 1j * np.arctan2(b, 1 + a))


def argument_sizes(q: float, u: Complexes, ell: Complexes) -> Reals:
    """Return the size of u in ell = log(1 - q + q exp(u)), times the posterior probability."""
    return np.asarray(np.abs(u) * np.exp(np.minimum(math.log(q) + (u - ell).real, 0.0)))


class PointLoss(PrivacyLoss):
    """A privacy loss that is integrated over points.

    With points l_j and masses P_j, M(c) is the sum of P_j exp(c l_j) for real c. On a line that is
    shifted into the complex plane, where Im l_j >= 0, the same sum is M(c + i t) for every t >= 0.
    A family of losses has these two sets of points, and the rest follows from them.
    """

    @abstractmethod
    def points(self, highest: float) -> Points:
        """Return points on the real line for -1 < c <= highest, in increasing order."""

    @abstractmethod
    def line(self, highest: float) -> Points:
        """Return points on a line on which each factor exp(i t l), t > 0, shrinks."""

    @cached_property
    def _kept(self) -> dict[str, tuple[float, Points]]:
        return {}

    def _served(self, c: float) -> tuple[float, Points]:
        """Return a tilt >= c and the points that serve it; the last ones are kept."""
        kept = self._kept.get("last")
        if kept is None or kept[0] < c:
            highest = 2.0 ** math.ceil(math.log2(max(8.0, c)))
            kept = self._kept["last"] = highest, self.points(highest)
        return kept

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, as sums over points."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        _, points = self._served(float(c.max()))
        return moments(points.real_rows(0.0), c)
