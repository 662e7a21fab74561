"""Which contours invert a law, and at which epsilon does log delta reach a target?

A law is inverted on one contour; where its bounds are not close, on one for each layer of its rare
losses. Epsilon is found by Newton's method on the nodes of one inversion, or, where log delta has a
closed form, by Brent's method. Both ends of the interval are proved by bounds on log delta there.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> total = Total(((Gaussian(2.0), 8),))
>>> log_delta_on_contours(total, 4.0).method
'contour'
>>> bounds = epsilon_on_contours(total, -6.0)
>>> print(f"{bounds.lower:.6f} {bounds.upper:.6f}")
4.429161 4.429161
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dpcal import _lazy
from dpcal._ext import question
from dpcal._ext.question import Law
from dpcal._roots import NoBracket, Sides, Stop, bisect, bracket, brent
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.limits import EPSILON, TIGHT
from dpcal.accountants.inversion.transform import Total, has_rare_losses
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["epsilon_of", "epsilon_on_contours", "log_delta_on_contours"]

if TYPE_CHECKING:
    from dpcal.accountants.inversion.layers.inversion import Inversion

# Layers, which few questions need.
_layered = _lazy.Module("dpcal.accountants.inversion.layers.layered")
_tilts = _lazy.Module("dpcal.accountants.inversion.layers.tilts")

Invert = Callable[[float], "Inversion"]

# Correction of log delta at which Newton's method ends: the next is of the order of its square.
_CONVERGED = 1e-7
# Distance from the target, in log delta, that is close enough for Newton's method on one inversion.
_NEAR = 4.0
# Largest step of Newton's method with a new inversion at each step, in log epsilon.
_FARTHEST = 2.5
# Log delta from which delta is 1 to rounding, and its slope is no more than rounding.
_CERTAIN = -1e-9
# Factor of a gap between the root and an end, so that the first one proves it: the next is twice as
# long.
_LONGER = 1.001
# Relative distance of the sides between which Brent's method leaves a root: a thousand units.
_SIDES = Stop(relative=1e-13)
# Log delta that stands for that of delta = 0: Brent's method interpolates between finite numbers.
_OF_ZERO = -1e300


def log_delta_on_contours(total: Total, epsilon: float) -> Bounds | None:
    """Return bounds on log delta(epsilon), epsilon >= 0, by one contour or by those of layers.

    It is None if there is no contour of affordable size.
    """
    found: list[Bounds] = []
    long = partial(_at_one_contour, patient=True)
    for way in (_at_one_contour, _at_layers, long) if _are_rare(total) else (long,):
        with contextlib.suppress(OutOfReach):
            bounds = way(total, epsilon)
            if bounds is not None:
                found.append(bounds)
                if bounds.upper == bounds.lower or bounds.upper - bounds.lower < TIGHT:
                    break
    return min(found, key=lambda bounds: (_width(bounds), bounds.upper), default=None)


def _width(bounds: Bounds) -> float:
    return 0.0 if bounds.upper == bounds.lower else bounds.upper - bounds.lower


def _are_rare(total: Total) -> bool:
    """Return whether large losses may be rare: layers are then quicker than a long contour."""
    return any(has_rare_losses(loss) for loss, _ in total.parts)


def _at_one_contour(total: Total, epsilon: float, *, patient: bool = False) -> Bounds | None:
    return _first_found(total, partial(question.log_delta, epsilon=epsilon, patient=patient))


def _first_found(
    total: Total, ask: Callable[[list[tuple[Law, int]]], tuple[float, float, str] | None]
) -> Bounds | None:
    """Return the answer to a compiled question, about as many points as it takes, or None."""
    direction = Direction("", total.parts)
    laws = direction.laws
    found = None if laws is None else ask(laws)
    if found is None and (laws := direction.pointed) is not None:
        found = ask(laws)
    return None if found is None else Bounds(*found)


def _at_layers(total: Total, epsilon: float) -> Bounds | None:
    found: Bounds = _layered.invert_layered(total, epsilon).log_bounds(epsilon)
    return found


def epsilon_on_contours(total: Total, log_delta: float) -> Bounds | None:
    """Return bounds on the smallest epsilon >= 0 with log delta(epsilon) <= ``log_delta`` < 0.

    It is None if no contour has a root.
    """
    found: list[Bounds] = []
    long = partial(_on_one_contour, patient=True)
    ways = (_on_one_contour, _on_layers, long) if _are_rare(total) else (long,)
    for way in (*ways, _by_halving):
        if way is _by_halving and any(bounds.lower > 0 for bounds in found):
            break
        with contextlib.suppress(OutOfReach):
            bounds = way(total, log_delta)
            if bounds is not None:
                found.append(bounds)
                if bounds.upper - bounds.lower <= TIGHT * bounds.upper:
                    break
    return min(found, key=lambda bounds: bounds.upper - bounds.lower, default=None)


def _on_one_contour(total: Total, log_delta: float, *, patient: bool = False) -> Bounds | None:
    return _first_found(total, partial(question.epsilon, log_delta=log_delta, patient=patient))


def _by_halving(total: Total, log_delta: float) -> Bounds | None:
    """Return bounds where delta is below its rounding at the estimate, which is far too large."""
    lower, upper, method, first = 0.0, math.inf, "", _tilts.epsilon_estimate(total, log_delta)

    def misses(epsilon: float) -> bool:
        nonlocal lower, method
        bounds = log_delta_on_contours(total, epsilon)
        if bounds is None:
            raise OutOfReach
        lower, method = epsilon if bounds.lower >= log_delta else lower, bounds.method
        return bounds.upper > log_delta

    if first <= 0:
        return None
    with contextlib.suppress(NoBracket):
        last = first / 2**EPSILON.halvings
        miss = bracket(misses, miss=2 * first, start=first, factor=0.5, last=last).meet
        sides = Sides(meet=2 * miss, miss=miss)
        upper = bisect(lambda at: not misses(at), sides, Stop(evaluations=EPSILON.halvings)).meet
        for further in (miss / 2, miss / 4):
            if lower == 0:
                misses(further)
        return Bounds(lower, upper, method)
    return None


def _on_layers(total: Total, log_delta: float) -> Bounds | None:
    """Return bounds by Newton's method on logarithms, with new layers at each step.

    From an epsilon of 0, only whether the target is met there is found.
    """
    layers = _layered.Layers(total.parts, log_delta + _layered.NEGLIGIBLE_REST)

    def at(epsilon: float) -> Inversion:
        found: Inversion = _layered.invert_in_layers(layers, epsilon, log_delta)
        return found

    epsilon = _epsilon_of_single_steps(total, log_delta)
    low, high = 0.0, math.inf
    for _ in range(EPSILON.layered):
        try:
            inversion = at(epsilon)
        except OutOfReach:
            if low == 0:
                raise
            # Layers for the target have no contour where delta is far smaller.
            high, epsilon = epsilon, math.sqrt(low * epsilon)
            continue
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
            found = _solved(inversion, at, epsilon, log_delta)
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
    """Return about the epsilon at which the deltas of single steps add up to the target, or 0."""

    def meets(log_epsilon: float) -> bool:
        return bool(_layered.single_step_log_delta(total, math.exp(log_epsilon)) <= log_delta)

    sides = Sides(meet=math.log(EPSILON.most), miss=math.log(EPSILON.least))
    return math.exp(bisect(meets, sides, Stop(absolute=5e-8)).miss)


def _solved(
    inversion: Inversion | None, at: Invert, epsilon: float, log_delta: float
) -> Bounds | None:
    """Return bounds by Newton's method on nodes near epsilon; None if it fails."""
    for _ in range(EPSILON.inversions):
        inversion = inversion or at(epsilon)
        found = _newton(inversion, epsilon, log_delta)
        if found is None:
            return None
        bounds = inversion.log_bounds(found)
        tight = bounds.upper - bounds.lower < TIGHT
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
        if math.isinf(step):
            return None
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


def epsilon_of(
    bounds_at: Callable[[float], Bounds | None], first: Bounds, log_delta: float
) -> Bounds:
    """Return bounds on the smallest epsilon >= 0 at a log delta, by Brent's method.

    Parameters
    ----------
    bounds_at
        Bounds on log delta at an epsilon, as close as rounding, or None where there are none.
    first
        Bounds on epsilon from another way.
    log_delta
        The target.
    """
    known: dict[float, Bounds] = {}

    def bounds(epsilon: float) -> Bounds:
        known[epsilon] = bounds_at(epsilon) or Bounds(-math.inf, 0.0, "no bound")
        return known[epsilon]

    def excess(epsilon: float) -> float:
        return max(bounds(epsilon).upper, _OF_ZERO) - log_delta

    near, method = first.upper, first.method
    if near == 0 or excess(0.0) <= 0:
        return Bounds(0.0, 0.0, method if near == 0 else known[0.0].method)
    with contextlib.suppress(NoBracket):
        # Far above the root a closed form may have no digits.
        last = EPSILON.least * near
        most = bracket(lambda at: excess(at) <= 0, miss=0.0, start=near, factor=0.25, last=last)
        near = brent(excess, 0.0, most.meet, _SIDES).meet
        method = known[near].method

    def below(gap: float) -> bool:
        return near <= gap or bounds(near - gap).lower >= log_delta

    gap = bracket(below, miss=0.0, start=_SIDES.relative * near).meet
    return Bounds(max(0.0, near - gap), near, method)
