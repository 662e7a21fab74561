r"""Infinite privacy losses: delta is split into that event and the rest.

If every loss of a composition is finite with probability F under P, then

    delta(epsilon) = 1 - F + F delta(epsilon | all losses finite),

exactly, since an infinite loss counts in full. An (epsilon, delta)-private mechanism is dominated
by a pair that reveals everything with probability delta (Kairouz, Oh and Viswanath 2015), so F is
the product of 1 - delta over the mechanisms.

>>> lower, upper = combine(math.log1p(-1e-6), math.log(0.25), math.log(0.25))
>>> print(f"{math.exp(upper):.10f}")
0.2500007500
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import Reals
from dpcal.accountants.rounding import UNIT


def _log_infinite(log_finite: float) -> float:
    """Return log(1 - F)."""
    return math.log(-math.expm1(log_finite))


def combine(log_finite: float, lower: ArrayLike, upper: ArrayLike) -> tuple[Reals, Reals]:
    """Return ends of log delta from ends given that all losses are finite, at log F <= 0."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if log_finite == 0:
        return low, high
    infinite = _log_infinite(log_finite)
    margin = 16 * UNIT * (1 + abs(infinite))
    low = np.maximum(np.logaddexp(infinite, log_finite + low), infinite) - margin
    return low, np.minimum(np.logaddexp(infinite, log_finite + high) + margin, 0.0)


def log_delta(direction: Direction, bounds_of: Callable[[Direction], Bounds]) -> Bounds:
    """Return bounds on log delta of losses that may be infinite, from ``bounds_of`` finite ones."""
    log_finite, given = direction.finite
    bounds = bounds_of(given)
    lower, upper = combine(log_finite, bounds.lower, bounds.upper)
    return Bounds(float(lower), float(upper), bounds.method)


def epsilon(
    direction: Direction,
    below: Direction,
    log_delta: float,
    bounds_of: Callable[[Direction, float], Bounds],
) -> Bounds:
    """Return bounds on epsilon of losses that may be infinite, from ``bounds_of`` finite ones.

    The upper end is for a direction, and the lower one for a direction ``below``, at a log delta <=
    0.
    """

    def given_finite(direction: Direction, way: int) -> Bounds:
        """Compute it at (delta - (1 - F)) / F; round down (-1) for upper ends, up (1) for lower."""
        log_finite, given = direction.finite
        if log_finite == 0:
            return bounds_of(direction, log_delta)
        infinite = _log_infinite(log_finite)
        target = log_delta + way * 16 * UNIT * (1 + abs(infinite) + abs(log_delta))
        if target < infinite:
            return Bounds(math.inf, math.inf, "infinite loss")
        if target == infinite:
            support = Total(given.parts).upper
            return Bounds(support, support, "support")
        left = target + math.log(-math.expm1(infinite - target)) - log_finite
        return bounds_of(given, left) if left < 0 else Bounds(0.0, 0.0, "infinite loss")

    upper = given_finite(direction, -1)
    if below is direction and direction.finite[0] == 0:
        return upper
    lower = given_finite(below, 1).lower
    return Bounds(min(lower, upper.upper), upper.upper, upper.method)
