"""What is delta of one direction, from contours of the other? Put-call parity.

Where the likelihood ratio of two laws has mean 1, and the loss of one direction is its logarithm,
delta of this direction is E (ratio - K)_+ = E (K - ratio)_+ - (K - 1), K = exp(epsilon), and the
last mean is K times delta of the other direction at -epsilon. Its contour is short where the loss
is narrow, and epsilon small. There the difference keeps digits: what is subtracted is about
epsilon. Where a small delta leaves too few of them, they are those of ball arithmetic
(:mod:`dpcal.accountants.inversion.puts`).

>>> from dpcal.accountants.losses.allocation import Allocation, UnequalAllocation
>>> narrow = Direction("remove", ((Allocation(30.0, 1600, "remove"), 10),))
>>> found = epsilon_by_parity(narrow, math.log(1e-5))
>>> print(f"{found.upper:.8f}", found.upper - found.lower < 1e-8)
0.00603349 True
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dpcal._lazy import Module
from dpcal._roots import NoBracket, Sides, Stop, bisect, bracket, brent
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.solve import epsilon_on_contours
from dpcal.accountants.inversion.tilts import saddle_tilt
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.allocation import (
    Allocation,
    Group,
    MixedAllocation,
    UnequalAllocation,
)
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT

__all__ = ["both_log_deltas", "epsilon_by_parity", "is_told_apart", "log_delta_by_parity"]

Epochs = tuple[tuple[Allocation, int], ...]

# Contours in ball arithmetic, which other runs do not load.
_BALLS = Module("dpcal.accountants.inversion.puts")
# Epochs whose batches are alike.
_EQUAL = {Allocation, MixedAllocation}
# Contours at better and better guesses of epsilon, and how close the last ones are.
_GUESSES, _CLOSE = 4, 0.02
# Largest epsilon at which digits may be left.
_LARGEST = 20.0
_METHOD, _IN_BALLS = "contour, by parity", "contour in balls"
# Largest epsilon in ball arithmetic: precision and its cost grow with it.
_LARGEST_IN_BALLS = 60.0
# Least noise in ball arithmetic: below it nodes decay too slowly for a contour that ends.
_LEAST_NOISE = 0.25
# Guesses of log delta, by which its errors are chosen.
_LOG_DELTAS = (-30.0, -100.0, -300.0, -740.0)
# The first guess of epsilon over that of Poisson batches.
_ROOM = 1.05
# Nats by which errors in ball arithmetic lie below delta.
_BELOW_DELTA = 26.0
# Seconds that a contour in balls may take about: before contours in doubles, if these are steep
# with little or much noise, and after them or where there are no others; and each of those for
# guesses of delta.
_QUICK, _IF_STEEP, _PATIENT, _FOR_A_GUESS = 0.15, (0.9, 3.0), 20.0, 6.0
# Noise from which no single batch stands out, and steep contours in doubles are long.
_MUCH_NOISE = 1.0
# Width of delta, relative to itself, at which a guess of its logarithm was small enough.
_SURE = 1e-6
# Tilts, of a normal loss of the same variance, from which contours are out of reach, and from which
# they are dear.
_STEEP, _DEAR = 40.0, 15.0


def _is_narrow(other: Total, epsilon: float, steep: float) -> bool:
    """Return whether a contour of the direction itself has a steep tilt."""
    return epsilon > steep * other.at_zero[1]


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


def _adds(direction: Direction) -> bool:
    """Return whether the losses are those of adding a record."""
    return all(loss.opposite is None for loss, _ in direction.parts)


def _added(direction: Direction) -> Epochs | None:
    """Return the losses of adding a record, if all are epochs with fixed numbers of batches.

    Beside batches that differ, Gaussians and Poisson samples are epochs, too: of one batch, which
    is drawn or not.
    """
    kinds = {type(loss) for loss, _ in direction.parts}
    if not kinds <= _EQUAL and UnequalAllocation not in kinds:
        return None
    found = [(_as_epoch(loss), times) for loss, times in direction.parts]
    known = [(epoch, times) for epoch, times in found if epoch is not None]
    if not known or len(known) < len(found):
        return None
    if min(epoch.noise_multiplier for epoch, _ in known) < _LEAST_NOISE:
        return None
    return tuple((epoch.opposite or epoch, times) for epoch, times in known)


def _as_epoch(loss: PrivacyLoss) -> Allocation | None:
    """Return the epoch with a likelihood ratio of the same law when adding; None for others."""
    if type(loss) is Gaussian:
        return UnequalAllocation.of((Group(loss.noise_multiplier, 1, 1.0),), "add")
    if type(loss) is SampledGaussian:
        q, sigma = loss.sampling_probability, loss.noise_multiplier
        return UnequalAllocation.of((Group(sigma, 1, q), Group(math.inf, 1, 1 - q)), "add")
    if isinstance(loss, Allocation) and type(loss) in {*_EQUAL, UnequalAllocation}:
        return loss
    return None


@lru_cache(maxsize=4)
def _puts(parts: Epochs) -> list[Any]:
    """Return the contours in ball arithmetic that were found for these epochs."""
    return []


def _put(parts: Epochs, most: float, nats: float, seconds: float) -> Any:
    """Return a contour in ball arithmetic, one that is known where it serves."""
    for put in _puts(parts):
        if put.most >= most and put.nats >= nats:
            return put
    found = _BALLS.Put(parts, most, nats, seconds)
    _puts(parts).append(found)
    return found


def _delta_of(direction: Direction, put: Any) -> Callable[[float], tuple[float, float]]:
    """Return the function that bounds delta of a direction at every epsilon up to a largest one."""
    return put.added if _adds(direction) else put.removed  # type: ignore[no-any-return]


def _in_balls(
    direction: Direction,
    parts: Epochs,
    epsilon: float,
    log_delta: float,
    *,
    first: bool,
    seconds: float = _PATIENT,
) -> Callable[[float], tuple[float, float]]:
    """Return the function that bounds delta near a guess, at every epsilon up to a largest one."""
    nats = _BELOW_DELTA - log_delta + epsilon
    if first and not is_told_apart(direction):
        seconds = _QUICK
        if _is_narrow(Total(parts), epsilon, _DEAR):
            much = min(loss.noise_multiplier for loss, _ in parts) >= _MUCH_NOISE
            seconds = _IF_STEEP[much]
        # Contours in doubles take as many transforms.
        seconds *= max(loss.transforms for loss, _ in parts)
    return _delta_of(direction, _put(parts, epsilon, nats, seconds))


def _guesses(
    direction: Direction, parts: Epochs, epsilon: float, *, first: bool
) -> Iterator[Callable[[float], tuple[float, float]]]:
    """Yield functions that bound delta at an epsilon, for smaller and smaller deltas.

    Contours of adding are short, so that new balls come second there.
    """
    if epsilon < _LARGEST_IN_BALLS:
        for put in tuple(_puts(parts)):
            if put.most >= epsilon:
                yield _delta_of(direction, put)
        for log_delta in () if first and _adds(direction) else _LOG_DELTAS:
            yield _in_balls(direction, parts, epsilon, log_delta, first=first, seconds=_FOR_A_GUESS)


def is_told_apart(direction: Direction) -> bool:
    """Return whether ball arithmetic alone knows the laws: others tell which batches were drawn."""
    unequal = any(isinstance(loss, UnequalAllocation) for loss, _ in direction.parts)
    return unequal and _added(direction) is not None


def log_delta_by_parity(
    direction: Direction, epsilon: float, *, first: bool = False
) -> Bounds | None:
    """Return bounds on log delta at an epsilon >= 0; None where parity does not tell.

    ``first`` admits only what is cheaper than contours of the direction itself.
    """
    parts, other = _added(direction), _other(direction)
    late = 0.0 if first else _LARGEST
    with contextlib.suppress(OutOfReach):
        if parts is not None:
            for delta in _guesses(direction, parts, epsilon, first=first):
                low, high = delta(epsilon)
                if high - low <= _SURE * low:
                    return _logarithms(low, high, _IN_BALLS)
        elif other is not None and epsilon < (
            _LARGEST if _is_narrow(other, epsilon, _STEEP) else late
        ):
            return _logarithms(*_ends(_contour(other, epsilon), epsilon), _METHOD)
    return None


def both_log_deltas(adding: Direction, epsilon: float) -> tuple[Bounds, Bounds] | None:
    """Return bounds on log delta at an epsilon >= 0 of removing and of adding a record, or None.

    Both are from one contour of the losses of adding, whose likelihood ratio has mean 1.
    """
    with contextlib.suppress(OutOfReach):
        contour = _contour(Total(adding.parts), epsilon)
        removed = _logarithms(*_ends(contour, epsilon), _METHOD)
        return None if removed is None else (removed, contour.log_bounds(epsilon))
    return None


def _logarithms(low: float, high: float, method: str) -> Bounds | None:
    """Return bounds on the logarithm of a number; None where one of them is 0."""
    if not 0 < low <= high:
        return None
    return Bounds(math.log(low) * (1 + 4 * UNIT), math.log(high) * (1 - 4 * UNIT), method)


def epsilon_by_parity(
    direction: Direction, log_delta: float, *, first: bool = False
) -> Bounds | None:
    """Return bounds on the least epsilon >= 0 with log delta <= ``log_delta`` < 0, or None.

    ``first`` admits only what is cheaper than contours of the direction itself.
    """
    parts, other = _added(direction), _other(direction)
    if first and _adds(direction):
        return None
    delta = math.exp(log_delta) * (1 - 4 * UNIT)
    if delta == 0:
        return None
    with contextlib.suppress(OutOfReach, NoBracket):
        if parts is not None:
            return _epsilon_in_balls(direction, parts, log_delta, first=first)
        if other is None or not (_is_narrow(other, _likely(other, log_delta), _STEEP) or not first):
            return None
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


def _epsilon_in_balls(
    direction: Direction, parts: Epochs, log_delta: float, *, first: bool
) -> Bounds | None:
    """Return bounds on epsilon from a contour in ball arithmetic; None if epsilon is too large."""
    if not is_told_apart(direction) and _likely(Total(parts), log_delta) > _LARGEST_IN_BALLS:
        return None
    target, most = math.exp(log_delta), _ROOM * _as_poisson(parts, log_delta)
    delta = _in_balls(direction, parts, most, log_delta, first=first)
    while delta(most)[1] > target:
        most *= 2
        if most > _LARGEST_IN_BALLS:
            return None
        delta = _in_balls(direction, parts, most, log_delta, first=first)

    def excess(end: int, at: float) -> float:
        # The logarithm, below 0, is rounded outward.
        found = delta(at)[end]
        log_found = math.log(found) if found > 0 else -math.inf
        return log_found * (1 - 4 * UNIT if end else 1 + 4 * UNIT) - log_delta

    if excess(1, 0.0) <= 0:
        return Bounds(0.0, 0.0, _IN_BALLS)
    near = brent(partial(excess, 1), 0.0, most, Stop(relative=1e-13)).meet
    # The lower end stands at an epsilon at which delta is proved to be as large.
    start = 1e-13 * near
    gap = bracket(lambda gap: near <= gap or excess(0, near - gap) >= 0, miss=0.0, start=start).meet
    return Bounds(max(0.0, near - gap), near, _IN_BALLS)


def _as_poisson(parts: Epochs, log_delta: float) -> float:
    """Return about the epsilon of Poisson batches: allocation's is close, and rarely larger."""
    poisson = tuple(
        (SampledGaussian(chance / m, sigma, "remove"), m * times)
        for loss, times in parts
        for sigma, m, chance in loss.groups
        if chance < m and sigma < math.inf
    )
    with contextlib.suppress(OutOfReach):
        found = epsilon_on_contours(Total(poisson), log_delta)
        if found is not None and found.upper > 0:
            return found.upper
    return _likely(Total(parts), log_delta)


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
