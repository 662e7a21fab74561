r"""Delta(epsilon) of a composition, by Laplace inversion with every error bounded.

Where one contour serves, and the losses have a compiled form, the answer is one call of
``_ext/contour.h``. All others are bounds on finite losses: an infinite loss counts in full, and
losses that are rounded up are rounded down for the lower end. For finite losses there is a list of
ways, and the first close answer ends the search. A single use has a closed form, and a sum of few
values is enumerated. All other laws are inverted: on one contour, or below a cut at their rare
large losses; epochs of random allocation on a contour in balls, or as finite laws. Bounds without
an inversion join them: the chance that any step depends on the record, the largest loss, Renyi
divergences, and a recursion for exponential mechanisms. The result is the intersection of all of
them. Every answer is an interval and names its method.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> direction = decompose(event, "add-or-remove-one").directions[0]
>>> bounds = log_delta_bounds(direction, 8.0)
>>> print(f"{math.exp(bounds.upper):.10e} {bounds.method}")
2.0283809415e-08 contour

One contour serves an interval of epsilons around its saddle; its nodes take nearly all of the work,
and a further epsilon is a sum over them. Epsilons that no contour serves are computed one by one.

>>> lower, upper = DirectionProfile(direction).log_bounds(np.linspace(0.0, 9.0, 91))
>>> f"{upper[80]:.9f}", bool((upper - lower).max() < 1e-9)
('-17.713442835', True)
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial

import numpy as np

from dpcal._ext import question
from dpcal._ext.question import Law
from dpcal._internal import lazy
from dpcal.accountants import renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion import failure, parity, solve
from dpcal.accountants.inversion.amplification import on_finite_laws
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, Reals
from dpcal.accountants.losses.discrete import log_delta_of_sum
from dpcal.accountants.rounding import UNIT
from dpcal.errors import UnsupportedEvent

_recursion = lazy.Module("dpcal.accountants.inversion.bounded_range")
# Tilts at which moments are compared, times epsilon / log(1 / delta): a Gaussian's is 1 to 2.
_TILTS = np.array([0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
# Tilts of the Chernoff bounds of a whole curve, over the scale of the loss: ten a decade.
_MANY_TILTS = np.geomspace(1e-2, 1e3, 48)
# Moments are not compared from this tilt on: sums of losses times it have no digits.
_LARGEST_TILT = 1e12
# Width of bounds on log delta from which an epsilon gets a contour of its own.
_CLOSE = 1e-6
_BELOW_AN_ATOM = (1e-9, 1e-5)
# Contours in balls need no guess of log delta below this one.
_LEAST_GUESS = -30.0
# Largest relative error of a closed form or an exact sum that is used.
_MOST_LOST = 0.5
# Numbers that underflow are far below the rounding of the sums that they join.
_silent = np.errstate(under="ignore")

Way = Callable[[], Bounds | None]


@_silent
def log_delta_bounds(direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta of one direction at an epsilon, any finite number >= 0."""
    parts, below = direction.compiled, direction.below
    if parts is not None and (found := question.log_delta(parts, epsilon)) is not None:
        return Bounds(*found)
    given_finite = partial(finite_log_delta, epsilon=epsilon)
    bounds = failure.log_delta(direction, given_finite)
    if below is None:
        return bounds
    lower = failure.log_delta(below, given_finite).lower
    return Bounds(min(lower, bounds.upper), bounds.upper, f"rounded, {bounds.method}")


@_silent
def epsilon_bounds(direction: Direction, log_delta: float) -> Bounds:
    """Return bounds on the smallest epsilon >= 0 at a log delta, a negative number of any size."""
    parts, below = direction.compiled, direction.below
    if parts is not None and (found := question.epsilon(parts, log_delta)) is not None:
        return Bounds(*found)
    bounds = failure.epsilon(direction, below or direction, log_delta, finite_epsilon)
    if below is None:
        return bounds
    return Bounds(bounds.lower, bounds.upper, f"rounded, {bounds.method}")


def is_smaller(direction: Direction, epsilon: float, log_delta: float) -> bool:
    """Return whether moments prove delta no larger, where close bounds may take seconds."""
    if not (0 < epsilon < math.inf and -_LARGEST_TILT * epsilon < log_delta < 0):
        return False
    tilts = -log_delta / epsilon * _TILTS
    return bool(renyi.log_deltas_by_tilts(direction, np.array([epsilon]), tilts)[0] <= log_delta)


def worst_log_delta_bounds(directions: Sequence[Direction], epsilon: float) -> Bounds:
    """Return bounds on the largest log delta of one or more directions at an epsilon >= 0."""
    found: list[Bounds] = []
    for direction in directions:
        slow = bool(found) and direction.compiled is None
        if slow and is_smaller(direction, epsilon, found[-1].lower):
            continue
        found.append(log_delta_bounds(direction, epsilon))
        if found[-1].lower >= -UNIT and found[-1].upper == 0.0:
            break
    return Bounds.worst(found)


def worst_epsilon_bounds(directions: Sequence[Direction], log_delta: float) -> Bounds:
    """Return bounds on the largest epsilon of one or more directions at a log delta < 0.

    A direction that provably needs no larger epsilon than the first one is left out, unless the
    first one has no lower end.
    """
    found: list[Bounds] = []
    for direction in directions:
        less = bool(found) and _needs_less(direction, found[0], log_delta)
        if less and not found[0].lower == 0.0 < found[0].upper:
            continue
        bounds = epsilon_bounds(direction, log_delta)
        found.append(Bounds(bounds.lower, found[0].upper, found[0].method) if less else bounds)
    return Bounds.worst(found)


def _needs_less(direction: Direction, found: Bounds, log_delta: float) -> bool:
    """Return whether one direction provably needs no larger epsilon than another one."""
    if found.upper == math.inf:
        return True
    parts = direction.compiled
    known = None if parts is None else question.at_most(parts, found.upper, log_delta)
    if known is not None:
        return known
    if is_smaller(direction, found.lower, log_delta):
        return True
    given_finite = partial(finite_log_delta, epsilon=found.upper)
    return failure.log_delta(direction, given_finite).upper <= log_delta


def exact_log_delta(direction: Direction, epsilon: float) -> Bounds | None:
    """Return bounds on log delta(epsilon) in closed form or by an exact sum, or None."""
    parts, loss = direction.parts, direction.once
    if not parts or epsilon >= Total(parts).upper:
        return Bounds(-math.inf, -math.inf, "closed form")
    found, method = loss.log_delta(epsilon) if loss is not None else None, "closed form"
    if found is None:
        found, method = log_delta_of_sum(parts, epsilon), "convolution"
    return Bounds.around(*found, method) if found and found[1] < _MOST_LOST else None


def finite_log_delta(direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta(epsilon) of finite losses, at any finite number epsilon >= 0."""
    total, one = Total(direction.parts), _one_of_class(direction)

    def in_balls() -> Bounds:
        if (poisson := parity.as_poisson(direction)) is not None:
            guess = min(renyi.log_delta_bounds(poisson, epsilon).upper, _LEAST_GUESS)
            if (found := parity.log_delta_by_parity(direction, epsilon, guess)) is not None:
                return found
        return log_delta_bounds(on_finite_laws(direction), epsilon)

    def inverted() -> Bounds | None:
        found = solve.log_delta_on_contours(total, epsilon)
        return Bounds(-math.inf, found.upper, found.method) if found and one else found

    by_renyi = partial(renyi.log_delta_bounds, direction, epsilon)
    ways: list[Way] = [
        lambda: exact_log_delta(direction, epsilon),
        inverted,
        lambda: Bounds(-math.inf, total.log_delta_bound, "sampling"),
        lambda: Bounds(-math.inf, total.log_support_bound(epsilon), "support"),
        by_renyi,
        lambda: _recursion.log_delta_by_recursion(direction, epsilon),
        lambda: finite_log_delta(one, epsilon).from_below if one else None,
    ]
    if parity.has_allocation(direction):
        ways = [in_balls, by_renyi]
    return solve.together(ways, of_epsilon=False) or Bounds(-math.inf, 0.0, "no bound")


def finite_epsilon(direction: Direction, log_delta: float) -> Bounds:
    """Return bounds on the smallest epsilon >= 0 of finite losses, at any log delta < 0."""
    total, one = Total(direction.parts), _one_of_class(direction)
    by_renyi = cache(partial(renyi.epsilon_bounds, direction, log_delta))
    exact = partial(exact_log_delta, direction)

    def in_balls() -> Bounds:
        if (poisson := parity.as_poisson(direction)) is not None:
            guess = renyi.epsilon_bounds(poisson, log_delta).upper
            if (found := parity.epsilon_by_parity(direction, log_delta, guess)) is not None:
                return found
        return epsilon_bounds(on_finite_laws(direction), log_delta)

    def inverted() -> Bounds | None:
        found = solve.epsilon_on_contours(total, log_delta)
        return Bounds(0.0, found.upper, found.method) if found and one else found

    ways: list[Way] = [
        lambda: Bounds(0.0, 0.0, "sampling") if total.log_delta_bound <= log_delta else None,
        lambda: solve.epsilon_of(exact, by_renyi(), log_delta) if exact(0.0) else None,
        inverted,
        by_renyi,
        lambda: _recursion.epsilon_by_recursion(direction, log_delta, by_renyi().upper),
        lambda: finite_epsilon(one, log_delta).from_below if one else None,
        lambda: _next_to_largest(direction, log_delta),
    ]
    if parity.has_allocation(direction):
        ways = [in_balls, by_renyi]
    return solve.together(ways, of_epsilon=True) or Bounds(0.0, math.inf, "no bound")


def _next_to_largest(direction: Direction, target: float) -> Bounds | None:
    """Return the largest loss, and a lower end next to it, if delta is no less than a target there.

    Next to an atom at the end of a law no sum has a root.
    """
    largest = Total(direction.parts).upper
    if not 0 < largest < math.inf:
        return None
    near = (largest * (1 - gap) for gap in _BELOW_AN_ATOM)
    lower = next((x for x in near if finite_log_delta(direction, x).lower >= target), 0.0)
    return Bounds(lower, largest, "support")


def _one_of_class(direction: Direction) -> Direction | None:
    """Return one mechanism of each class that a loss dominates; None if no loss dominates a class.

    Renyi divergences may be smaller than those of the pair: then the pair's lower end does not
    hold, and one mechanism's does.
    """
    if not Total(direction.parts).renyi_is_tighter:
        return None
    parts = tuple((loss.attained, times) for loss, times in direction.parts)
    return Direction(direction.name, parts)


class DirectionProfile:
    """Log delta of one direction at many epsilons.

    Raises
    ------
    UnsupportedEvent
        If only Renyi divergences of a loss are known.
    """

    def __init__(self, direction: Direction) -> None:
        if parity.has_allocation(direction) and parity.as_poisson(direction.finite[1]) is None:
            direction = on_finite_laws(direction)
        # Infinite losses have no transform: the law is inverted given that none occurs.
        self._log_finite, self._direction = direction.finite
        for loss, _ in self._direction.parts:
            if not loss.has_law:
                raise UnsupportedEvent(f"Only Renyi divergences are known of {loss!r}.")
        below = direction.below
        self._below = None if below is None else DirectionProfile(below)
        self._total = Total(self._direction.parts)

    def log_bounds(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return lower and upper bounds on log delta at epsilons >= 0 in any order, shape (n,)."""
        points, places = np.unique(epsilons, return_inverse=True)
        lower, upper = np.full((2, len(points)), math.nan)
        if self._laws is not None:
            lower, upper = question.log_deltas(self._laws, points, patient=True)
        with np.errstate(invalid="ignore"):
            wide = np.isnan(lower) | (upper - lower > _CLOSE)
        for i in np.flatnonzero(wide):
            bounds = finite_log_delta(self._direction, float(points[i]))
            lower[i] = np.fmax(lower[i], bounds.lower)
            upper[i] = np.fmin(upper[i], bounds.upper)
        lower, upper = failure.combine(self._log_finite, lower, upper)
        if self._below is not None:
            lower = np.minimum(self._below.log_bounds(points)[0], upper)
        upper = np.minimum.accumulate(upper)
        lower = np.minimum(np.maximum.accumulate(lower[::-1])[::-1], upper)
        return lower[places], upper[places]

    @cached_property
    def _laws(self) -> list[tuple[Law, int]] | None:
        """The losses of one contour; None where bounds of a class, or an exact sum, are closer."""
        exact = exact_log_delta(self._direction, 0.0) is not None
        alone = exact or self._total.renyi_is_tighter or parity.has_allocation(self._direction)
        return None if alone else self._direction.laws

    def log_chernoff(self, epsilons: Reals) -> Reals:
        """Return crude upper bounds on log delta, from a grid of tilts."""
        scale = 0.0
        with contextlib.suppress(OutOfReach):
            scale = math.sqrt(max(self._total.variance, 0.0))
        crude = renyi.log_deltas_by_tilts(self._direction, epsilons, _MANY_TILTS / (scale or 1.0))
        return failure.combine(self._log_finite, -math.inf, crude)[1]
