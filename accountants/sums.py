"""Sums of independent privacy losses: cumulants, the Chernoff bound, and their root finder.

>>> from dpcal.accountants.loss import Gaussian
>>> log_mgf, mean, variance = LossSum(((Gaussian(2.0), 8),))([1.0])[0]
>>> print(log_mgf, mean, variance)
2.0 3.0 2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.loss import OutOfReach, PrivacyLoss

__all__ = ["MAX_TILT", "LossSum", "increasing_root", "log_chernoff"]

Reals = NDArray[np.float64]

# A saddle beyond this tilt is not searched for.
MAX_TILT = 1e12


class LossSum:
    """Cumulants of a sum of independent losses."""

    def __init__(self, parts: tuple[tuple[PrivacyLoss, int], ...]) -> None:
        self.parts = parts

    def __call__(self, c: Reals | Sequence[float]) -> Reals:
        """Log M, mean, variance for each tilt c; shape (len(c), 3)."""
        total = np.zeros((len(c), 3))
        for loss, times in self.parts:
            total += times * loss.cumulants(c)[:, :3]
        return total

    @cached_property
    def at_zero(self) -> tuple[float, float]:
        """Mean and variance of the untilted sum."""
        _, mean, variance = self([0.0])[0]
        return float(mean), float(variance)

    @property
    def upper(self) -> float:
        """Supremum of the sum."""
        return sum(times * loss.upper for loss, times in self.parts)

    def log_mgf_bound(self, c: float) -> float:
        """Closed-form upper bound on log M(c), c > 0."""
        return sum(times * loss.log_mgf_bound(c) for loss, times in self.parts)


def log_chernoff(c: Reals | float) -> NDArray[np.float64]:
    """Log sup_l (1 - exp(-l)) exp(-c l) = log(c^c / (1 + c)^(1 + c)) for c > 0; 0 for -1 <= c <= 0.

    So log delta(epsilon) <= log M(c) - c epsilon + this, and for -1 <= c <= 0 the same bounds
    log(1 - delta(epsilon)).
    """
    c = np.maximum(np.asarray(c, dtype=float), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = c * -np.log1p(1.0 / c) - np.log1p(c)
    return np.where(c > 0, value, 0.0)


def increasing_root(
    equation: Callable[[float], tuple[float, float]],
    low: float,
    high: float,
    guess: float,
    tolerance: float = 0.01,
) -> float:
    """Root in (low, high) of an increasing function, by safeguarded Newton steps.

    ``equation`` returns value and derivative.

    As the derivative of a convex function, ``value`` is compared with the square root of its slope:
    at the tolerance t the function is within t^2 / 2 of its minimum. A coarse root is enough for a
    contour: every bound holds on any, the saddle only makes it cheap.
    """
    c = guess
    for _ in range(200):
        value, slope = equation(c)
        if abs(value) <= tolerance * math.sqrt(max(slope, 0.0)):
            break
        low, high = (low, c) if value > 0 else (c, high)
        step = c - value / slope if slope > 0 else math.nan
        if math.isinf(high):
            step = step if low < step < 8 * c else 4 * c
            if step > MAX_TILT:
                raise OutOfReach
        elif not low < step < high:
            step = high / 4 if low == 0 else math.sqrt(low * high) if low > 0 else (low + high) / 2
        if step == c:
            break
        c = step
    return c
