"""Where does a monotone condition begin to hold? Thresholds, of which the safe side is returned.

>>> def meets(x):
...     return x * x >= 2
>>> sides = bisect(meets, bracket(meets, miss=0.0, start=1.0), Stop(relative=1e-12))
>>> print(f"{sides.meet:.10f}", meets(sides.meet), meets(sides.miss))
1.4142135624 True False
>>> sides = brent(lambda x: 2 - x * x, 1.0, 2.0, Stop(relative=1e-12))
>>> print(f"{sides.meet:.10f}", meets(sides.meet), meets(sides.miss))
1.4142135624 True False
>>> largest_whole(lambda k: (k * k - 1000, 2.0 * k), most=10**6)
31

Every search holds two arguments: ``meet``, at which the condition was evaluated and held, and
``miss``, at which it was evaluated and failed. (The caller may give the first two without an
evaluation.) An excess meets the condition if it is at most 0; NaN does not.

*Proof that the returned side is safe.* A search changes ``meet`` only to an argument at which the
condition has just held, and ``miss`` only to one at which it has just failed. The returned floats
are these arguments themselves, so no rounding of the search enters: the condition holds at ``meet``
whatever the function and wherever the search stopped. If the condition is monotone, it also holds
at all arguments beyond ``meet``, and its threshold lies between the two sides, so ``meet`` is
within their distance of the best argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Excess = Callable[[float], tuple[float, float | None]]

_GOLDEN = (math.sqrt(5) - 1) / 2
# Largest step of Newton's method, and step without a slope, where one side is not known yet.
_REACH = 2.0


class NoBracket(ArithmeticError):  # noqa: N818 -- reads as what happened
    """The condition held at every argument that was tried, or failed at every one.

    Parameters
    ----------
    at
        The last argument that was tried.
    meets
        Whether the condition held there.
    """

    def __init__(self, at: float, *, meets: bool) -> None:
        super().__init__(f"The condition {'holds' if meets else 'fails'} at all arguments to {at}.")
        self.at = at
        self.meets = meets


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Where a search ends: at the first of these limits, or where no float lies between the sides.

    Attributes
    ----------
    relative
        Distance of the sides over the larger of their absolute values.
    absolute
        Distance of the sides.
    value
        :func:`newton` ends where the condition holds with an excess above minus this one.
    evaluations
        Number of evaluations between the first two sides.
    """

    relative: float = 0.0
    absolute: float = 0.0
    value: float = 0.0
    evaluations: int = 200

    def reached(self, meet: float, miss: float) -> bool:
        """Return whether two sides are close enough."""
        width = max(self.absolute, self.relative * max(abs(meet), abs(miss)))
        return abs(meet - miss) <= width


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Two neighboring arguments, in any order.

    Attributes
    ----------
    meet
        The condition holds here.
    miss
        The condition fails here.
    root
        The side with the smaller absolute excess; NaN where no excess was compared.
    """

    meet: float
    miss: float
    root: float = math.nan


def bracket(
    meets: Callable[[float], bool],
    *,
    miss: float,
    start: float,
    factor: float = 2.0,
    last: float = math.inf,
) -> Sides:
    """Return the first of start, factor start, factor^2 start, ... that meets, and the one before.

    Parameters
    ----------
    meets
        The condition.
    miss
        An argument at which it is known to fail, which is not tried.
    start
        The first argument that is tried, not 0.
    factor
        Positive; below 1 for arguments that fall.
    last
        No argument beyond this one is tried.

    Raises
    ------
    NoBracket
        If none of them meets.
    """
    at = start
    while not meets(at):
        miss, at = at, factor * at
        if math.isinf(at) or not min(start, last) <= at <= max(start, last):
            raise NoBracket(miss, meets=False)
    return Sides(meet=at, miss=miss)


def bisect(
    meets: Callable[[float], bool], sides: Sides, stop: Stop, *, geometric: bool = False
) -> Sides:
    """Return the sides of a threshold between two sides, by halving their distance.

    Parameters
    ----------
    meets
        The condition.
    sides
        The two sides to begin with, which are not tried.
    stop
        Where to end.
    geometric
        Whether the ratio of the sides, both positive, is halved in its logarithm instead.
    """
    meet, miss = sides.meet, sides.miss
    for _ in range(stop.evaluations):
        if stop.reached(meet, miss):
            break
        middle = math.sqrt(meet * miss) if geometric else 0.5 * (meet + miss)
        if not min(meet, miss) < middle < max(meet, miss):
            break
        meet, miss = (middle, miss) if meets(middle) else (meet, middle)
    return Sides(meet=meet, miss=miss)


def newton(excess: Excess, start: float, lowest: float, highest: float, stop: Stop) -> Sides:
    """Return the sides of a root in [lowest, highest], by Newton's method kept between the sides.

    Parameters
    ----------
    excess
        Maps an argument to a value, which changes its sign once, and its slope. Where the slope is
        None, the value is taken to fall.
    start
        The first argument that is tried.
    lowest, highest
        No argument outside is tried.
    stop
        Where to end; ``relative`` is not used. ``miss`` may be NaN at an end by ``value``.

    Raises
    ------
    NoBracket
        If a side is missing.
    """
    miss = meet = math.nan
    width, x = stop.absolute, start
    for _ in range(stop.evaluations):
        value, slope = excess(x)
        miss, meet = (miss, x) if value <= 0 else (x, meet)
        if -stop.value < value <= 0:
            return Sides(meet=meet, miss=miss)
        if abs(meet - miss) <= width:
            break
        step = x - value / slope if slope else math.nan
        if slope and abs(step - x) < width / 4:
            # The search has converged to one side; a step over the root finds the other one.
            ahead = step - x or (slope if value <= 0 else -slope)
            step = x + math.copysign(width / 2, ahead)
        x = _next(x, step, miss, meet, lowest, highest, not value <= 0)
        if math.isnan(x):
            break
    if math.isnan(miss):
        raise NoBracket(meet, meets=True)
    if math.isnan(meet):
        raise NoBracket(miss, meets=False)
    return Sides(meet=meet, miss=miss)


def secant(
    value: Callable[[float], float], slope: float, known: Sequence[tuple[float, float]] = ()
) -> Excess:
    """Return a function with slopes for :func:`newton`, each through its last four values.

    Parameters
    ----------
    value
        A function that falls, which may be infinite.
    slope
        Negative; taken where no slope is known yet, or it does not fall.
    known
        Arguments and values to begin with.
    """
    points = list(known)

    def excess(x: float) -> tuple[float, float]:
        found = value(x)
        points[:] = [item for item in points if item[0] != x][-3:]
        points.append((x, found))
        through = math.nan
        for count in (len(points), 2):
            step = _through(points[-count:]) - x
            through = -found / step if step else math.nan
            if -math.inf < through < 0:
                return found, through
        return found, slope

    return excess


def _through(points: Sequence[tuple[float, float]]) -> float:
    """Return the root of the inverse polynomial through points (Neville's scheme), or NaN."""
    table, values = [x for x, _ in points], [value for _, value in points]
    for order in range(1, len(points)):
        for i in range(len(points) - order):
            left, right = values[i], values[i + order]
            if left == right or not math.isfinite(left - right):
                return math.nan
            table[i] = (table[i + 1] * left - table[i] * right) / (left - right)
    return table[0] if len(points) > 1 else math.nan


def _next(
    x: float, step: float, miss: float, meet: float, lowest: float, highest: float, missed: bool
) -> float:
    """Return a step if it lies between the sides, else their middle; outward where one is NaN."""
    if not (math.isnan(miss) or math.isnan(meet)):
        inside = min(miss, meet) < step < max(miss, meet)
        return step if inside else 0.5 * (miss + meet)
    if x in (lowest, highest) and not lowest < step < highest:
        return math.nan
    if math.isnan(step):
        step = x + (_REACH if missed else -_REACH)
    return min(max(step, x - _REACH, lowest), x + _REACH, highest)


def brent(excess: Callable[[float], float], low: float, high: float, stop: Stop) -> Sides:
    """Return the sides of a root between two arguments, by Brent's method.

    Parameters
    ----------
    excess
        A continuous function. Where it jumps or is NaN, the method only takes longer.
    low, high
        It has different signs there.
    stop
        Where to end; ``absolute`` and ``relative`` add up.

    Raises
    ------
    NoBracket
        If it has one sign at both ends.

    Notes
    -----
    Brent 1973, Algorithms for minimization without derivatives, chapter 4: inverse quadratic
    interpolation and the secant method, with bisections where they converge slowly. The arguments
    are, to the last bit, those of ``scipy.optimize.brentq`` with ``xtol`` the absolute and ``rtol``
    the relative limit, which does not return both sides and is slow to import.
    """

    def value_at(x: float) -> float:
        value = excess(x)
        return math.inf if math.isnan(value) else value

    before, x = low, high
    value_before, value = value_at(before), value_at(x)
    if (value <= 0) == (value_before <= 0):
        raise NoBracket(x, meets=value <= 0)
    other, value_other, step, step_before = before, value_before, 0.0, 0.0
    for _ in range(stop.evaluations + 1):
        if (value <= 0) != (value_before <= 0):
            other, value_other, step_before = before, value_before, x - before
            step = step_before
        if abs(value_other) < abs(value):
            before, x, other = x, other, x
            value_before, value, value_other = value, value_other, value
        least = (stop.absolute + stop.relative * abs(x)) / 2
        half = (other - x) / 2
        if value == 0 or abs(half) < least or not min(x, other) < x + half < max(x, other):
            break
        tried = math.nan
        if abs(step_before) > least and abs(value) < abs(value_before):
            tried = _interpolated((x, value), (before, value_before), (other, value_other))
        accepted = 2 * abs(tried) < min(abs(step_before), 3 * abs(half) - least)
        step_before, step = (step, tried) if accepted else (half, half)
        before, value_before = x, value
        x += step if abs(step) > least else math.copysign(least, half)
        value = value_at(x)
    meet, miss = (x, other) if value <= 0 else (other, x)
    return Sides(meet=meet, miss=miss, root=x)


def _interpolated(
    last: tuple[float, float], before: tuple[float, float], other: tuple[float, float]
) -> float:
    """Return the step from the last point to the root of the curve through three or two points."""
    (x, value), (x1, value1), (x2, value2) = last, before, other
    if x1 == x2:
        return -value * (x - x1) / (value - value1)
    slope1, slope2 = (value1 - value) / (x1 - x), (value2 - value) / (x2 - x)
    below = slope2 * slope1 * (value2 - value1)
    return -value * (value2 * slope2 - value1 * slope1) / below if below else math.nan


def largest_whole(
    excess: Callable[[int], tuple[float, float | None]], *, most: int, start: int = 100
) -> int:
    """Return the largest whole number in [1, most] whose excess is at most 0.

    The number is exact for an excess that increases: it was evaluated and meets, and so was its
    successor unless it is ``most``.

    Parameters
    ----------
    excess
        Maps a whole number to a value and its slope, or None where no slope is known.
    most
        The largest number that is tried.
    start
        The first number that is tried, if it is not above ``most``.

    Raises
    ------
    NoBracket
        If 1 does not meet.
    """
    meet, miss = 0, most + 1
    count = min(start, most)
    while miss - meet > 1:
        value, slope = excess(count)
        meet, miss = (count, miss) if value <= 0 else (meet, count)
        guess = count - value / slope if slope and slope > 0 else math.nan
        if guess < 1 and not meet and slope:
            # A power law through the same value and slope is never below 0.
            guess = max(1.0, count * math.exp(-value / (slope * count)))
        if math.isfinite(guess):
            # Next to a known side, the number beyond the root is tried.
            count = math.floor(guess) + (1 if meet == math.floor(guess) else 0)
        if not meet < count < miss or not math.isfinite(guess):
            count = 4 * meet if miss > most and 0 < 4 * meet < miss else (meet + miss) // 2
        if miss > most and meet:
            count = min(count, 64 * meet)
    if meet == 0:
        raise NoBracket(1, meets=False)
    return meet


def minimum(of: Callable[[float], float], low: float, high: float, *, sections: int) -> float:
    """Return where a function that falls and then rises is least, by the golden section.

    Parameters
    ----------
    of
        The function.
    low, high
        Ends of the interval.
    sections
        Each one takes two evaluations and divides the interval by 1.618.
    """
    for _ in range(sections):
        one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, two) if of(one) < of(two) else (one, high)
    return (low + high) / 2
