"""Where does a tilted integrand peak? The Chernoff factor of delta, and a safeguarded root finder.

>>> import math
>>> known = lambda c: (c - 1 / c, 1 + 1 / c**2, math.nan)
>>> print(f"{increasing_root(known, 30.0, 1e-9):.6f}")
1.000000
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcal.accountants.losses.base import OutOfReach, Reals

Equation = Callable[[float], tuple[float, float, float]]

# The largest tilt, as a loss of 1e-12 cannot be told from 0, and most evaluations.
_LARGEST, _EVALUATIONS = 1e12, 200
# Tolerance of a root: its contour's peak is within a factor of exp(5e-5) of the smallest.
_COARSE = 0.01
_SURE = 8.0
_INSIDE = 1e-3


def log_chernoff(c: Reals | float) -> Reals:
    """Return log sup_l (1 - exp(-l)) exp(-c l), l > 0, for c > 0; 0 for -1 <= c <= 0.

    It is C = c log c - (1 + c) log(1 + c) for c > 0. So log delta(epsilon) <= log M(c) - c epsilon
    + C, and for -1 <= c <= 0 log M(c) - c epsilon bounds log(1 - delta(epsilon)).
    """
    c = np.maximum(np.asarray(c, dtype=float), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = c * -np.log1p(1.0 / c) - np.log1p(c)
    return np.where(c > 0, value, 0.0)


def increasing_root(equation: Equation, guess: float, tolerance: float = _COARSE) -> float:
    """Return the root c > 0 of an increasing function, by safeguarded Newton steps.

    ``equation`` returns value, derivative and integral, or raises :class:`OutOfReach` beyond some
    point. This function raises it as well, after 200 evaluations. Where the integral,
    which is convex, has a kink, its tangents on both sides meet there.

    ``value`` is the derivative of a convex function, and is compared with the square root of its
    slope: at the tolerance t the function is within t^2 / 2 of its minimum. A coarse root is enough
    for a contour: every bound holds on any contour, and the saddle only makes it cheap.
    """
    c, low, high, far, before = guess, 0.0, math.inf, _LARGEST, math.inf
    ends = {-1: (math.nan, math.nan), 1: (math.nan, math.nan)}
    for _ in range(_EVALUATIONS):
        try:
            value, slope, integral = equation(c)
        except OutOfReach:
            if not (low < c / 1.05 if low > 0 else c > _SURE):
                raise
            far, c = c, math.sqrt(low * c) if low > 0 else max(c / 32, _SURE)
            continue
        if math.isnan(value):
            raise OutOfReach
        if abs(value) <= tolerance * math.sqrt(max(slope, 0.0)):
            return c
        low, high = (low, c) if value > 0 else (c, high)
        ends[1 if value > 0 else -1] = value, integral
        step, plateau = c - value / slope if slope > 0 else math.nan, -ends[-1][0]
        if value > 8 * plateau and slope > 0:
            step = c - (value + plateau) / slope * math.log1p(value / plateau)
        # Newton's steps are short where the function is like a pole, or exponential.
        slow, before = 4 * abs(value) > before, abs(value)
        if math.isinf(high):
            step = step if low < step < 8 * c and not slow else 4 * c
            step = step if step < far else math.sqrt(c * far)
            if c > far / 1.05:
                raise OutOfReach
        elif slow or not low < step < high:
            step = _meeting_point(low, high, ends)
            if not _INSIDE * (high - low) < min(step - low, high - step):
                step = math.sqrt(low * high) if low > 0 else high / 4
            before = math.inf
        if step == c:
            return c
        c = step
    raise OutOfReach


def _meeting_point(low: float, high: float, ends: dict[int, tuple[float, float]]) -> float:
    """Return where the tangents of a convex function at two points meet; NaN if it is not known."""
    (below, at_low), (above, at_high) = ends[-1], ends[1]
    return low + (at_high - at_low - above * (high - low)) / (below - above)
