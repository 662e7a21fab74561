"""Rounding outward: answers that stay safe although doubles round to nearest.

Every bound of this package adds its own error, in units in the last place, and rounds away from the
true value. The functions that round so are here.

>>> from fractions import Fraction
>>> rounded_up(1 / 3, Fraction(1, 3)) > Fraction(1, 3)
True
>>> exp_down(-1.0) < math.exp(-1.0) < exp_up(-1.0)
True
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from fractions import Fraction
from itertools import repeat

# Distance from 1 to the next double: it covers the relative error of two operations.
UNIT = 2.0**-52
# In nats; the exponential of a smaller number rounds to 0.
_LOG_OF_SMALLEST = -745.0
# The smallest positive double, which bounds exponentials that underflow.
_SMALLEST = 5e-324


def next_up(value: float) -> float:
    """Return the next larger double, which exceeds the exact result of one rounded operation."""
    return math.nextafter(value, math.inf)


def rounded_up(nearest: float, exact: Fraction) -> float:
    """Return the rounding of an exact number, or the next double if it is below the number."""
    return nearest if nearest >= exact else next_up(nearest)


def sum_up(values: Iterable[float], times: Iterable[int] = repeat(1)) -> float:
    """Return an upper bound on a sum of numbers times counts."""
    exact, pairs = Fraction(0), list(zip(values, times, strict=False))
    if not all(math.isfinite(value) for value, _ in pairs):
        return math.fsum(value for value, count in pairs if count)
    for value, count in pairs:
        exact += Fraction(value) * count
    try:
        return rounded_up(float(exact), exact)
    except OverflowError:
        return math.inf if exact > 0 else -sys.float_info.max


def exp_down(log_value: float) -> float:
    """Return a double not above exp(log_value)."""
    if log_value < _LOG_OF_SMALLEST:
        return 0.0
    value = math.exp(log_value) * (1 - (4 + abs(log_value)) * UNIT)
    return max(value - 2 * _SMALLEST, 0.0)


def exp_up(log_value: float) -> float:
    """Return a double not below exp(log_value), at most 1 for a probability's logarithm <= 0."""
    if log_value == -math.inf:
        return 0.0
    if log_value < _LOG_OF_SMALLEST:
        return _SMALLEST
    value = math.exp(max(log_value, _LOG_OF_SMALLEST)) * (1 + (4 + abs(log_value)) * UNIT)
    return max(min(value + 2 * _SMALLEST, 1.0), _SMALLEST)


def log_of(x: Fraction) -> float:
    """Return the logarithm of a positive fraction, with its digits near 1 and at any size."""
    if abs(x - 1) < Fraction(1, 4):
        return math.log1p(float(x - 1))
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    return math.log(x / Fraction(2) ** shift) + shift * math.log(2.0)
