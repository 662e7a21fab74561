r"""What if a privacy loss may be infinite? delta taken apart into that event and the rest.

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

__all__ = ["combine", "epsilon_with_failures", "log_delta_with_failures"]


def _log_infinite(log_finite: float) -> float:
    """Return log(1 - F)."""
    return math.log(-math.expm1(log_finite))


def combine(log_finite: float, lower: ArrayLike, upper: ArrayLike) -> tuple[Reals, Reals]:
    """Return ends of log delta from those given that all losses are finite, at log F <= 0."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if log_finite == 0:
        return low, high
    infinite = _log_infinite(log_finite)
    margin = 16 * UNIT * (1 + abs(infinite))
    low = np.maximum(np.logaddexp(infinite, log_finite + low), infinite) - margin
    return low, np.minimum(np.logaddexp(infinite, log_finite + high) + margin, 0.0)


def _left(log_delta: float, infinite: float, log_finite: float) -> float | None:
    """Return log((delta - (1 - F)) / F), or None for delta < 1 - F."""
    if log_delta < infinite:
        return None
    if log_delta == infinite:
        return -math.inf
    return log_delta + math.log(-math.expm1(infinite - log_delta)) - log_finite


def log_delta_with_failures(
    direction: Direction, bounds_of: Callable[[Direction], Bounds]
) -> Bounds:
    """Return bounds on log delta of losses that may be infinite, from ``bounds_of`` finite ones."""
    log_finite, given = direction.finite
    bounds = bounds_of(given if log_finite < 0 else direction)
    lower, upper = combine(log_finite, bounds.lower, bounds.upper)
    return Bounds(float(lower), float(upper), bounds.method)


def epsilon_with_failures(
    direction: Direction,
    log_delta: float,
    bounds_of: Callable[[Direction, float], Bounds],
    side: int = 0,
) -> Bounds:
    """Return bounds on epsilon of losses that may be infinite, from ``bounds_of`` finite ones.

    The log of the target is <= 0, and ``side`` is 1 or -1 if only the upper or the lower end
    counts, which saves a search, and 0 if both do.
    """
    log_finite, given = direction.finite
    if log_finite == 0.0:
        return bounds_of(direction, log_delta)
    infinite = _log_infinite(log_finite)
    margin = 16 * UNIT * (1 + abs(infinite) + abs(log_delta))
    # Log of the target for finite losses, rounded down for the upper end and up for the lower.
    least = _left(log_delta - margin, infinite, log_finite)
    most = _left(log_delta + margin, infinite, log_finite)
    if side:
        least = most = least if side > 0 else most
    if most is None:
        return Bounds(math.inf, math.inf, "infinite loss")
    if most >= 0.0:
        low = Bounds(0.0, 0.0, "infinite loss")
    elif most == -math.inf:
        support = Total(given.parts).upper
        low = Bounds(support, support, "support")
    else:
        low = bounds_of(given, most)
    if least is None:
        return Bounds(low.lower, math.inf, "infinite loss")
    high = low if least == most else bounds_of(given, least)
    return Bounds(min(low.lower, high.upper), high.upper, high.method)
