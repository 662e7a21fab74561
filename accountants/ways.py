"""Which way answers a question about finite losses? An exact sum, contours, or moments.

A single use has a closed form, and a sum of few values is enumerated. All other laws are inverted:
on one contour, or on one of the law below a cut. Beside these stand bounds that take no
inversion: by the chance that any step depends on the record, by the largest loss, by Renyi
divergences, and for exponential mechanisms by a recursion. What several ways prove holds together.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> direction = Direction("both", ((Gaussian(2.0), 8),))
>>> log_delta(direction, 4.0).method, f"{epsilon(direction, -6.0).upper:.6f}"
('contour', '4.429161')
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

from dpcal import _lazy
from dpcal.accountants import renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.solve import (
    epsilon_of,
    epsilon_on_contours,
    log_delta_on_contours,
)
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import NO_LOSS
from dpcal.accountants.losses.discrete import log_delta_of_sum
from dpcal.accountants.losses.laplace import are_few_uses, log_delta_of_few_uses

__all__ = ["epsilon", "exact_log_delta", "log_delta"]

# The recursion of exponential mechanisms, which few questions need.
_recursion = _lazy.Module("dpcal.accountants.inversion.bounded_range")

# Width of bounds on log delta, and relative width of bounds on epsilon, at which no further way is
# tried: six digits.
_CLOSE = 1e-6
# Distances from the largest loss, relative to it, at which lower ends are tried.
_BELOW_AN_ATOM = (1e-9, 1e-5)
# Relative error from which a closed form or an exact sum says nothing.
_MOST_LOST = 0.5

Way = Callable[[], Bounds | None]


def exact_log_delta(direction: Direction, epsilon: float) -> Bounds | None:
    """Return bounds on log delta(epsilon) in closed form or by an exact sum, or None."""
    parts, loss = direction.parts, direction.once
    if not parts or epsilon >= Total(parts).upper:
        return Bounds(-math.inf, -math.inf, "closed form")
    found, method = loss.log_delta(epsilon) if loss is not None else None, "closed form"
    if found is None:
        method = "convolution"
        if are_few_uses(parts):
            found = log_delta_of_few_uses(*parts[0], epsilon)
        else:
            found = log_delta_of_sum(parts, epsilon)
    return Bounds.around(*found, method) if found and found[1] < _MOST_LOST else None


def log_delta(direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta(epsilon) of finite losses, at any finite number epsilon >= 0."""
    total = Total(direction.parts)

    def inverted() -> Bounds | None:
        return _of_pair(direction, log_delta_on_contours(total, epsilon), -math.inf)

    ways: list[Way] = [
        lambda: exact_log_delta(direction, epsilon),
        inverted,
        lambda: Bounds(-math.inf, total.log_delta_bound, "sampling"),
        lambda: Bounds(-math.inf, total.log_support_bound(epsilon), "support"),
        lambda: renyi.log_delta_bounds(direction, epsilon),
        lambda: _recursion.log_delta_by_recursion(direction, epsilon),
        lambda: _of_one(direction, lambda one: log_delta(one, epsilon)),
    ]
    bounds = Bounds(-math.inf, 0.0, "no bound")
    for way in ways:
        bounds = bounds.both(way())
        if bounds.upper == bounds.lower or bounds.upper - bounds.lower < _CLOSE:
            break
    return bounds


def epsilon(direction: Direction, log_delta: float) -> Bounds:
    """Return bounds on the smallest epsilon >= 0 of finite losses, at any log delta < 0."""
    total = Total(direction.parts)

    @cache
    def by_renyi() -> Bounds:
        return renyi.epsilon_bounds(direction, log_delta)

    def exactly() -> Bounds | None:
        if exact_log_delta(direction, 0.0) is None:
            return None
        bounds_at = partial(exact_log_delta, direction)
        return epsilon_of(bounds_at, by_renyi(), log_delta)

    def inverted() -> Bounds | None:
        return _of_pair(direction, epsilon_on_contours(total, log_delta), 0.0)

    ways: list[Way] = [
        lambda: Bounds(0.0, 0.0, "sampling") if total.log_delta_bound <= log_delta else None,
        exactly,
        inverted,
        by_renyi,
        lambda: _recursion.epsilon_by_recursion(direction, log_delta, by_renyi().upper),
        lambda: _of_one(direction, lambda one: epsilon(one, log_delta)),
        lambda: _next_to_largest(direction, log_delta),
    ]
    bounds = Bounds(0.0, math.inf, "no bound")
    for way in ways:
        bounds = bounds.both(way())
        if bounds.upper - bounds.lower <= _CLOSE * bounds.upper < math.inf:
            break
    return bounds


def _next_to_largest(direction: Direction, target: float) -> Bounds | None:
    """Return the largest loss, and a lower end next to it, if delta is no less than a target there.

    Next to an atom at the end of a law no sum has a root.
    """
    largest = Total(direction.parts).upper
    if not 0 < largest < math.inf:
        return None
    for gap in _BELOW_AN_ATOM:
        if log_delta(direction, near := largest * (1 - gap)).lower >= target:
            return Bounds(near, largest, "support")
    return Bounds(0.0, largest, "support")


def _of_pair(direction: Direction, bounds: Bounds | None, nothing: float) -> Bounds | None:
    """Return bounds on the dominating pair as bounds on what it dominates.

    Where Renyi divergences of several mechanisms are smaller than those of the pair, its lower end
    is not theirs.
    """
    if bounds is None or not Total(direction.parts).renyi_is_tighter:
        return bounds
    return Bounds(nothing, bounds.upper, bounds.method)


def _of_one(direction: Direction, bounds_of: Callable[[Direction], Bounds]) -> Bounds | None:
    """Return the lower end of one mechanism of each class that a loss dominates, if one does."""
    if not Total(direction.parts).renyi_is_tighter:
        return None
    attained = ((loss.attained, times) for loss, times in direction.parts)
    parts = tuple((loss, times) for loss, times in attained if loss is not NO_LOSS)
    found = bounds_of(Direction(direction.name, parts))
    return Bounds(found.lower, math.inf, found.method)
