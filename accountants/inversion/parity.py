"""What is delta of one direction, from contours of the other? Put-call parity.

Where the likelihood ratio of two laws has mean 1, and the loss of one direction is its logarithm,
delta of this direction is E (ratio - K)_+ = E (K - ratio)_+ - (K - 1), K = exp(epsilon), and the
last mean is K times delta of the other direction at -epsilon. Its contour is short where the loss
is narrow, and epsilon small. There the difference keeps digits: what is subtracted is about
epsilon.

>>> from dpcal.accountants.losses.allocation import Allocation
>>> narrow = Direction("remove", ((Allocation(30.0, 1600, "remove"), 10),))
>>> found = epsilon_by_parity(narrow, math.log(1e-5))
>>> print(f"{found.upper:.8f}", found.upper - found.lower < 1e-8)
0.00603349 True
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpcal._roots import NoBracket, Sides, Stop, bisect, bracket
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.tilts import saddle_tilt
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["epsilon_by_parity", "is_narrow", "log_delta_by_parity"]

# Contours at better and better guesses of epsilon, and how close the last ones are.
_GUESSES, _CLOSE = 4, 0.02
# Largest epsilon at which digits may be left.
_LARGEST = 20.0
_METHOD = "contour, by parity"
# Tilt, of a normal loss of the same variance, from which contours are dear or out of reach.
_STEEP = 40.0


def is_narrow(direction: Direction, *, epsilon: float = 0.0, log_delta: float = 0.0) -> bool:
    """Return whether parity comes first: a contour of the direction itself has a steep tilt."""
    other = _other(direction)
    return other is not None and max(epsilon, _likely(other, log_delta)) > _STEEP * other.at_zero[1]


def _other(direction: Direction) -> Total | None:
    """Return the law of the other direction; None where a loss does not tell its other."""
    parts = [(loss.opposite, times) for loss, times in direction.parts]
    known = tuple((loss, times) for loss, times in parts if loss is not None)
    asymmetric = any(one[0] is not two[0] for one, two in zip(known, direction.parts, strict=False))
    return Total(known) if asymmetric and len(known) == len(parts) else None


def _contour(other: Total, epsilon: float) -> Contour:
    """Return the contour for delta of the other direction at -epsilon."""
    c = saddle_tilt(other, -epsilon, positive=True)
    return Contour(other, c, -epsilon, smooth=False)


def _ends(contour: Contour, epsilon: float) -> tuple[float, float]:
    """Return lower and upper end of delta at an epsilon."""
    low, high = contour.log_bounds_at(np.array([-epsilon]))
    if epsilon > _LARGEST:
        return 0.0, 1.0
    k, less = math.exp(epsilon), math.expm1(epsilon)
    puts = k * math.exp(float(low[0])), k * math.exp(float(high[0]))
    margin = 8 * UNIT * (puts[1] + less)
    return max(0.0, puts[0] - less - margin), min(1.0, max(0.0, puts[1] - less + margin))


def log_delta_by_parity(direction: Direction, epsilon: float) -> Bounds | None:
    """Return bounds on log delta at an epsilon >= 0; None where parity does not tell."""
    other = _other(direction)
    if other is None or epsilon > _LARGEST:
        return None
    with contextlib.suppress(OutOfReach):
        low, high = _ends(_contour(other, epsilon), epsilon)
        if 0 < low <= high:
            return Bounds(math.log(low) * (1 + 4 * UNIT), math.log(high) * (1 - 4 * UNIT), _METHOD)
    return None


def epsilon_by_parity(direction: Direction, log_delta: float) -> Bounds | None:
    """Return bounds on the least epsilon >= 0 with log delta <= ``log_delta``, or None."""
    other = _other(direction)
    if other is None:
        return None
    delta = math.exp(log_delta) * (1 - 4 * UNIT)
    with contextlib.suppress(OutOfReach, NoBracket):
        near = min(_LARGEST, _likely(other, log_delta))
        for _ in range(_GUESSES):
            contour, guess = _contour(other, near), near
            near = _threshold(partial(_is_met, contour, delta), guess).meet
            if abs(near - guess) <= _CLOSE * near:
                break
        # The lower end stands at the largest epsilon at which delta is proved to be as large.
        less = _threshold(lambda at: _ends(contour, at)[0] * (1 - 8 * UNIT) < delta, near)
        if near <= _LARGEST:
            return Bounds(min(less.miss, near), near, _METHOD)
    return None


def _is_met(contour: Contour, delta: float, epsilon: float) -> bool:
    """Return whether delta is proved to be met at an epsilon."""
    return _ends(contour, epsilon)[1] <= delta


def _likely(measure: Total, log_delta: float) -> float:
    """Return about the epsilon of a normal loss of the same variance."""
    variance = measure.at_zero[1]
    return math.sqrt(-2 * log_delta * variance) + variance / 2


def _threshold(meets: Callable[[float], bool], guess: float) -> Sides:
    """Return both sides of the least epsilon >= 0 at which a condition holds."""
    if guess <= 0 or meets(0.0):
        return Sides(meet=0.0, miss=0.0)
    return bisect(
        meets, bracket(meets, miss=0.0, start=guess, last=2 * _LARGEST), Stop(relative=1e-13)
    )
