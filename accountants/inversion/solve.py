"""At which epsilon does log delta reach a target? Newton's method on the nodes of one inversion.

Every answer is an interval whose ends are proved by bounds on log delta there. Where inversions are
costly or seldom possible, a search brackets the answer instead (:func:`bracketed`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial

from dpcal._roots import NoBracket, Sides, Stop, bisect, bracket
from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.inversion import TIGHT, Inversion
from dpcal.accountants.inversion.layered import (
    NEGLIGIBLE_REST,
    invert_in_layers,
    single_step_log_delta,
)
from dpcal.accountants.inversion.limits import BRACKET, EPSILON
from dpcal.accountants.inversion.rare_losses import Layers
from dpcal.accountants.inversion.strategy import invert_on_one_contour
from dpcal.accountants.inversion.tilts import epsilon_estimate
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["bracketed", "epsilon_on_contours"]

Invert = Callable[[float], Inversion]

# A contour whose bounds on log delta are this close at the root is good enough for epsilon: nine
# digits.
_ACCEPTED_WIDTH = 5e-10
# Correction of log delta at which Newton's method ends: the next is of the order of its square.
_CONVERGED = 1e-7
# Ratio up to which a saddle's epsilon of many losses is nearer to the answer than single steps'.
_LIKE = 30.0
# Ratio of these from which layers out of reach at the saddle's epsilon are so at the answer.
_FAR_ABOVE = 2.0
# Distance from the target, in log delta, that is close enough for Newton's method.
_NEAR = 4.0
# Largest step of Newton's method with a new inversion at each step, in log epsilon.
_FARTHEST = 2.5
# Log delta from which delta is 1 to rounding, and its slope is no more than rounding.
_CERTAIN = -1e-9
# Number of times that the target of a subset is corrected by the error of its guess.
_CORRECTIONS = 3
# Width of the bounds on log delta from which an inversion of many losses is given up: another one
# nearby would lack the same contours.
_LEAST_SAID = 1.0
# Distances from an atom at the end of a law, relative to epsilon, at which lower ends are tried.
_BELOW_AN_ATOM = (1e-9, 1e-5)
# Factor of a gap between the root and an end, so that the first one proves it: the next is twice as
# long.
_LONGER = 1.001
# Share of a bracket at each end in which no point is tried.
_AWAY_FROM_ENDS = 0.02
# Width of a bracket, relative to epsilon, at which a search ends.
_NARROW = 1e-12


def epsilon_on_contours(total: Total, log_delta: float) -> Bounds | None:
    """Return bounds on the smallest epsilon >= 0 with log delta(epsilon) <= ``log_delta``.

    Parameters
    ----------
    total
        The law of the composed loss.
    log_delta
        Negative number, of any size.

    Returns
    -------
    Bounds or None
        None if no contour has a root.
    """
    if total.log_delta_bound <= log_delta:
        return Bounds(0.0, 0.0, "sampling")
    found, near = [], None
    with contextlib.suppress(OutOfReach):
        epsilon = max(0.0, epsilon_estimate(total, log_delta))
        near = epsilon if total.is_many else None
        found.append(_solved(None, partial(invert_on_one_contour, total), epsilon, log_delta))
    if not any(bounds and _is_close(bounds) for bounds in found):
        found.append(_epsilon_on_layers(total, log_delta, near))
    known = [bounds for bounds in found if bounds is not None]
    return min(known, key=lambda bounds: bounds.upper - bounds.lower, default=None)


def _is_close(bounds: Bounds) -> bool:
    """Return whether bounds on epsilon are so close that no other way is tried."""
    return bounds.upper - bounds.lower <= TIGHT * bounds.upper


def _epsilon_on_layers(total: Total, log_delta: float, near: float | None = None) -> Bounds | None:
    """Return the epsilon of a law layer by layer, with new contours at every epsilon tried.

    The search begins near an epsilon, if one is known that is not much larger than that of single
    steps, and then there.
    """
    with contextlib.suppress(OutOfReach):
        layers = Layers(total.parts, log_delta + NEGLIGIBLE_REST)

        def at(epsilon: float) -> Inversion:
            return invert_in_layers(layers, epsilon, log_delta)

        subset = total.subset
        if subset is not None:
            return _from_subset(at, subset, log_delta)
        single = _epsilon_of_single_steps(total, log_delta)
        if near is not None and near < _LIKE * single:
            with contextlib.suppress(OutOfReach):
                found = _searched(at, near, log_delta)
                if found is not None:
                    return found
            if near > _FAR_ABOVE * single:
                return None
        return _searched(at, single, log_delta)
    return None


def _from_subset(at: Invert, subset: Total, log_delta: float) -> Bounds | None:
    """Return bounds from the epsilon of a subset of the losses, whose error corrects the target."""
    target = log_delta
    for _ in range(_CORRECTIONS):
        near = _epsilon_on_layers(subset, target)
        if near is None or not EPSILON.least <= near.upper < math.inf:
            break
        inversion = at(near.upper)
        if inversion.width(near.upper) > _LEAST_SAID:
            break
        value, _ = inversion.slopes(near.upper)
        if abs(value - log_delta) < _NEAR:
            return _solved(inversion, at, near.upper, log_delta, TIGHT)
        target += log_delta - value
    return None


def _searched(at: Invert, epsilon: float, log_delta: float) -> Bounds | None:
    """Return bounds by Newton's method on logarithms, with a new inversion at each step.

    From an epsilon of 0, only whether the target is met there is found.
    """
    low, high = 0.0, math.inf
    for _ in range(EPSILON.layered):
        inversion = at(epsilon)
        if epsilon == 0:
            bounds = inversion.log_bounds(0.0)
            return Bounds(0.0, 0.0, bounds.method) if bounds.upper <= log_delta else None
        value, slope = inversion.slopes(epsilon)
        # Where delta is 1 to rounding, epsilon is far above: the next step is the longest one.
        change = _FARTHEST
        if not value > _CERTAIN:
            if not math.isfinite(value) or slope >= 0:
                # The sum is below its own rounding, hence far below the target.
                value, slope = -math.inf, -1.0
            change = min(max((log_delta - value) / (slope * epsilon), -_FARTHEST), _FARTHEST)
        if abs(value - log_delta) < _NEAR:
            found = _solved(inversion, at, epsilon, log_delta, TIGHT)
            # Near its own rounding, delta has bounds although no root is found.
            return found or _outward(inversion, epsilon, log_delta)
        low, high = (epsilon, high) if value > log_delta else (low, epsilon)
        step = epsilon * math.exp(change)
        if not low < step < high:
            step = math.sqrt(low * high) if low > 0 else high / math.exp(_FARTHEST)
        epsilon = step
        if epsilon < EPSILON.least:
            break
    return None


def _epsilon_of_single_steps(total: Total, log_delta: float) -> float:
    """Return the epsilon at which the deltas of single steps add up to the target, or about 0."""

    def meets(log_epsilon: float) -> bool:
        return single_step_log_delta(total, math.exp(log_epsilon)) <= log_delta

    sides = Sides(meet=math.log(EPSILON.most), miss=math.log(EPSILON.least))
    return math.exp(bisect(meets, sides, Stop(absolute=5e-8)).miss)


def _solved(
    inversion: Inversion | None,
    at: Invert,
    epsilon: float,
    log_delta: float,
    accepted: float = _ACCEPTED_WIDTH,
) -> Bounds | None:
    """Return bounds by Newton's method on nodes near epsilon; None if it fails."""
    for _ in range(EPSILON.inversions):
        inversion = inversion or at(epsilon)
        found = _newton(inversion, epsilon, log_delta)
        if found is None:
            return None
        bounds = inversion.log_bounds(found)
        tight = bounds.upper - bounds.lower < accepted
        if tight or abs(found - epsilon) * inversion.reach <= 1.0:
            return _outward(inversion, found, log_delta)
        epsilon, inversion = found, None
    return None


def _newton(inversion: Inversion, epsilon: float, log_delta: float) -> float | None:
    """Return the root of the inversion's log delta, clipped at 0; None if it is not found.

    Where the law is a bulk with rare jumps, log delta bends both ways: Newton's steps are kept
    inside the bracket of the points seen so far.
    """
    low, high = 0.0, math.inf
    for iteration in range(EPSILON.newton):
        value, slope = inversion.slopes(epsilon)
        if not (math.isfinite(value) and slope < 0):
            return None
        step = max(epsilon + (log_delta - value) / slope, 0.0)
        if abs((step - epsilon) * slope) < _CONVERGED or step == epsilon:
            return step
        low, high = (max(low, epsilon), high) if value > log_delta else (low, min(high, epsilon))
        if math.isfinite(high) and (iteration > EPSILON.unsafe or not low <= step <= high):
            step = (low + high) / 2
        epsilon = step
    return None


def _outward(inversion: Inversion, epsilon: float, log_delta: float) -> Bounds:
    """Return ends on both sides of the root, moved outward until the bounds on delta prove them."""
    bounds = inversion.log_bounds(epsilon)
    _, slope = inversion.slopes(epsilon)
    if not slope < 0:
        # Log delta is flat up to rounding, as next to the largest delta.
        raise OutOfReach
    margin = 2 * UNIT * max(epsilon, 1e-300)
    lower = upper = epsilon

    def above(gap: float) -> bool:
        return inversion.log_bounds(epsilon + gap).upper <= log_delta

    def below(gap: float) -> bool:
        return epsilon <= gap or inversion.log_bounds(epsilon - gap).lower >= log_delta

    if not bounds.upper <= log_delta:
        gap = (bounds.upper - log_delta) / -slope * _LONGER
        upper = epsilon + _first_gap(above, margin + gap)
    if not bounds.lower >= log_delta:
        gap = (log_delta - bounds.lower) / -slope * _LONGER
        lower = max(0.0, epsilon - _first_gap(below, margin + gap))
    return Bounds(lower, upper, bounds.method)


def _first_gap(proves: Callable[[float], bool], gap: float) -> float:
    """Return the first of gap, 2 gap, 4 gap, ... that proves an end; infinity if none does."""
    try:
        return bracket(proves, miss=0.0, start=gap, last=EPSILON.outward * gap).meet
    except NoBracket:
        return math.inf


def bracketed(
    bounds_at: Callable[[float], Bounds], first: Bounds, total: Total, log_delta: float
) -> Bounds:
    """Return bounds on epsilon from a safeguarded secant on the upper bound of log delta.

    The ends are the smallest epsilon found to meet the target and the largest epsilon proved to
    miss it. Few points are tried if each takes contours.

    Parameters
    ----------
    bounds_at
        Bounds on log delta at an epsilon.
    first
        Bounds on epsilon to begin from, of which the upper end meets the target.
    total
        The law of the composed loss.
    log_delta
        The target.
    """
    known: dict[float, Bounds] = {}

    def excess(epsilon: float) -> float:
        known[epsilon] = bounds_at(epsilon)
        return max(known[epsilon].upper, -1e300) - log_delta

    meet, method = first.upper, first.method
    if total.is_many:
        # For many losses two more evaluations seldom gain anything.
        return Bounds(0.0, meet, method)
    miss, at_miss = 0.0, excess(0.0)
    if at_miss <= 0:
        return Bounds(0.0, 0.0, known[0.0].method)
    at_meet = min(excess(meet), 0.0)
    costly = BRACKET.few if len(total.parts) > BRACKET.losses else BRACKET.costly
    while len(known) < BRACKET.cheap and _dear(known) < costly:
        # The secant's point is kept inside the bracket and away from its ends.
        step = at_miss / (at_miss - at_meet) if at_meet < 0 else 0.5
        share = min(max(step, _AWAY_FROM_ENDS), 1 - _AWAY_FROM_ENDS)
        middle = miss + (meet - miss) * share
        if meet - miss <= _NARROW * meet or not miss < middle < meet:
            break
        value = excess(middle)
        if value > 0:
            miss, at_miss, at_meet = middle, value, at_meet / 2
        else:
            meet, at_meet, at_miss, method = middle, value, at_miss / 2, known[middle].method
    proved = [point for point, bounds in known.items() if bounds.lower >= log_delta]
    # Near the end of a law with an atom there, delta stays large until it falls to 0.
    for share in _BELOW_AN_ATOM if math.isfinite(total.upper) else ():
        if max(proved, default=0.0) < (1 - 1e-3) * meet:
            below = (1 - share) * meet
            proved += [below] if bounds_at(below).lower >= log_delta else []
    return Bounds(min(max(proved, default=0.0), meet), meet, method)


def _dear(known: dict[float, Bounds]) -> int:
    """Return the number of bounds that took a contour, and one for epsilon 0."""
    exact = ("closed form", "convolution")
    return 1 + sum(point > 0 and item.method not in exact for point, item in known.items())
