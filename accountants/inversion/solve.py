"""Which contours invert a law, and at which epsilon does log delta reach a target?

A law is inverted on one contour, or, where a tilt does not serve its rare large losses, on one of
the law below a cut. Epsilon is found by Newton's method on the nodes of a contour, or, where log
delta has a closed form, by Brent's method. Both ends of the interval are proved by bounds on log
delta there.

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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpcal._ext import question
from dpcal._internal import lazy
from dpcal._internal.roots import NoBracket, Sides, Stop, bisect, bracket, brent
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.gaussian import log_gaussian_delta

Way = Callable[[], Bounds | None]

_cut = lazy.Module("dpcal.accountants.inversion.cut")

# Width of bounds on log delta, and relative width on epsilon, that ends the search: six digits.
_TIGHT = 1e-6
_LEAST, _MOST, _ABOUT = 1e-12, 1e6, 0.05
_CUTS, _NEAR = 6, 0.02
# Relative distance of the sides of a root by Brent's method: a thousand units.
_SIDES = Stop(relative=1e-13)
# Log delta that stands for delta = 0: Brent's method interpolates between finite numbers.
_OF_ZERO = -1e300


def log_delta_on_contours(total: Total, epsilon: float) -> Bounds | None:
    """Return bounds on log delta(epsilon), epsilon >= 0, by one contour or by a cut.

    It is None if there is no contour of affordable size.
    """
    ask = partial(question.log_delta, epsilon=epsilon)
    return _inverted(total, ask, partial(_at_cut, total, epsilon), of_epsilon=False)


def _inverted(total: Total, ask: Any, cut: Way, *, of_epsilon: bool) -> Bounds | None:
    """Return the result of the contours of a compiled question: a long one.

    Where large losses may be rare, a short one and one below a cut are quicker, and closer where
    they have both ends.
    """
    direction = Direction("", total.parts)

    def on_one(patient: bool) -> Bounds | None:
        """Return the answer about as many points as it takes, or None."""
        laws = direction.laws
        found = None if laws is None else ask(laws, patient=patient)
        if found is None and (laws := direction.pointed) is not None:
            found = ask(laws, patient=patient)
        return None if found is None else Bounds(*found)

    found = None
    if any(loss.has_rare_losses for loss, _ in total.parts):
        found = together([partial(on_one, False), cut], of_epsilon=of_epsilon)
        if found is not None and found.lower > (0.0 if of_epsilon else -math.inf):
            return found
    return together([lambda: found, partial(on_one, True)], of_epsilon=of_epsilon)


def together(ways: Sequence[Way], *, of_epsilon: bool) -> Bounds | None:
    """Return the intersection of several ways, up to the first close one; None if all are infinite.

    For an epsilon the relative width counts. A way that is out of reach, or None, is left out.
    """
    found = None
    for way in ways:
        with contextlib.suppress(OutOfReach):
            found = found.both(way()) if found else way()
        if found is not None:
            allowed = _TIGHT * found.upper if of_epsilon else _TIGHT
            exact = found.lower == found.upper < math.inf
            if exact or found.upper - found.lower <= allowed < math.inf:
                break
    return found


def _at_cut(total: Total, epsilon: float) -> Bounds | None:
    """Return bounds by a contour of the law below a cut, which is chosen for the size of delta."""
    found, size = None, _estimate(total, epsilon)
    for _ in range(2):
        laws, beyond = _cut.split(total.parts, epsilon, size)
        ends = question.log_delta(laws, epsilon, True, beyond)
        found = found if ends is None else Bounds(ends[0], ends[1], "cut")
        if ends is None or ends[1] - ends[0] < _TIGHT:
            break
        size = ends[0]
    return found


def _estimate(total: Total, epsilon: float) -> float:
    """Return a rough log delta: of single steps, or of a normal loss with the same variance."""
    logs = [log_gaussian_delta(epsilon, math.sqrt(max(total.variance, _LEAST**2)))[0]]
    for loss, times in total.parts:
        closed = loss.log_delta(epsilon)
        if closed is not None and closed[1] < 1.0:
            logs.append(math.log(times) + closed[0])
    return min(float(np.logaddexp.reduce(logs)), 0.0)


def _epsilon_estimate(total: Total, log_delta: float) -> float:
    """Return about the epsilon at which log delta reaches a target."""
    sides = Sides(meet=math.log(_MOST), miss=math.log(_LEAST))
    found = bisect(
        lambda at: _estimate(total, math.exp(at)) <= log_delta, sides, Stop(absolute=_ABOUT)
    )
    return math.exp(found.meet)


def epsilon_on_contours(total: Total, log_delta: float) -> Bounds | None:
    """Return bounds on the smallest epsilon >= 0 with log delta(epsilon) <= ``log_delta`` < 0.

    It is None if no contour has a root.
    """
    ask = partial(question.epsilon, log_delta=log_delta)
    return _inverted(total, ask, partial(_on_cut, total, log_delta), of_epsilon=True)


def _on_cut(total: Total, log_delta: float) -> Bounds | None:
    """Return bounds by contours of the law below a cut, which is moved with the root."""
    epsilon, found = _epsilon_estimate(total, log_delta), None
    with contextlib.suppress(OutOfReach):
        for _ in range(_CUTS):
            laws, beyond = _cut.split(total.parts, epsilon, log_delta)
            ends = question.epsilon(laws, log_delta, True, beyond)
            if ends is None:
                break
            lower, upper, _ = ends
            if found is None or upper - lower < found.upper - found.lower:
                found = Bounds(lower, upper, "cut")
            # Above the cut, where the put is large, a root has no upper end.
            root = lower if math.isinf(upper) else upper
            if upper - lower <= _TIGHT * root or not root > 0:
                break
            if abs(root - epsilon) < _NEAR * epsilon:
                break
            epsilon = root
    return found


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
        last = _LEAST * near
        most = bracket(lambda at: excess(at) <= 0, miss=0.0, start=near, factor=0.25, last=last)
        near = brent(excess, 0.0, most.meet, _SIDES).meet
        method = known[near].method

    def below(gap: float) -> bool:
        return near <= gap or bounds(near - gap).lower >= log_delta

    gap = bracket(below, miss=0.0, start=_SIDES.relative * near).meet
    return Bounds(max(0.0, near - gap), near, method)
