"""What is delta of random allocations? A contour in ball arithmetic, by put-call parity.

Where the likelihood ratio of two laws has mean 1, and the loss of one direction is its logarithm,
delta of this direction is E (ratio - K)_+ = E (K - ratio)_+ - (K - 1), K = exp(epsilon), and the
last mean is K times delta of the other direction at -epsilon. One contour of a put
(:mod:`dpcal.accountants.inversion.puts`) answers for both directions, at all epsilons up to a
largest one. Gaussians and Poisson samples of them are epochs, too: of one batch, which is drawn or
not.

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
from functools import lru_cache, partial
from typing import Any

from dpcal._ext import question
from dpcal._lazy import Module
from dpcal._roots import Stop, bracket, brent
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.allocation import Allocation, Group, UnequalAllocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT

__all__ = ["epsilon_by_parity", "has_allocation", "has_contour", "log_delta_by_parity"]

Epochs = tuple[tuple[Allocation, int], ...]

# Contours in ball arithmetic, which other runs do not load.
_BALLS = Module("dpcal.accountants.inversion.puts")
_METHOD = "contour in balls"
# About the most seconds of a contour: where it takes longer, finite laws bound delta within a few
# thousandths of epsilon in two seconds.
_SECONDS = 8.0
# Nats by which errors lie below delta, and width of delta at which its guess was small enough.
_NATS, _NARROW = 26.0, 1e-9
# Guesses of delta, each of twice the logarithm of the last, and that of the first one where Poisson
# batches have none.
_GUESSES, _LOG_DELTA = 5, -30.0
# The first guess of epsilon over that of Poisson batches, which cost about as much.
_ROOM = 1.05
# Distance of both ends of epsilon, relative to it, from its root.
_ROOT = Stop(relative=1e-13)


def has_allocation(direction: Direction) -> bool:
    """Return whether a direction has random allocations, whose contours are not in doubles."""
    return any(isinstance(loss, Allocation) for loss, _ in direction.parts)


def has_contour(direction: Direction) -> bool:
    """Return whether all losses are random allocations of Gaussians, Gaussians or Poisson samples.

    Failures are counted apart.
    """
    return _added(direction.finite[1]) is not None


def _added(direction: Direction) -> Epochs | None:
    """Return the losses of adding a record; None if some are not epochs of Gaussians."""
    found = [(_as_epoch(loss), times) for loss, times in direction.parts]
    known = tuple((epoch, times) for epoch, times in found if epoch is not None)
    return known if len(known) == len(found) else None


def _as_epoch(loss: PrivacyLoss) -> Allocation | None:
    """Return the epoch with a likelihood ratio of the same law when adding; None for others."""
    if isinstance(loss, Allocation):
        return loss if loss.direction == "add" else loss.opposite
    if type(loss) is Gaussian:
        return Allocation(loss.noise_multiplier, 1, "add")
    if type(loss) is SampledGaussian:
        q, sigma = loss.sampling_probability, loss.noise_multiplier
        return UnequalAllocation.of((Group(sigma, 1, q), Group(math.inf, 1, 1 - q)), "add")
    return None


@lru_cache(maxsize=4)
def _known_puts(parts: Epochs) -> list[Any]:
    """Return the contours that were found for these epochs."""
    return []


def _deltas(
    direction: Direction, parts: Epochs, most: float, log_delta: float
) -> Callable[[float], tuple[float, float]]:
    """Return the function that bounds deltas of about this size, up to a largest epsilon."""
    nats = _NATS - log_delta + most
    fits = (put for put in _known_puts(parts) if put.most >= most and put.nats >= nats)
    put = next(fits, None)
    if put is None:
        put = _BALLS.Put(parts, most, nats, _SECONDS)
        _known_puts(parts).append(put)
    adds = any(getattr(loss, "direction", None) == "add" for loss, _ in direction.parts)
    return put.added if adds else put.removed  # type: ignore[no-any-return]


def _as_poisson(parts: Epochs) -> list[Any] | None:
    """Return compiled losses of Poisson batches in place of epochs."""
    batches = [
        (SampledGaussian(p / m, sigma, "remove") if p < m else Gaussian(sigma), m * times)
        for loss, times in parts
        for sigma, m, p in loss.groups
        if sigma < math.inf
    ]
    return Direction("remove", tuple(batches)).compiled


def _about_epsilon(parts: Epochs, log_delta: float) -> float:
    """Return a little more than the epsilon of Poisson batches, or of a normal loss."""
    poisson = _as_poisson(parts)
    found = poisson and question.epsilon(poisson, log_delta)
    if found and found[1] > 0:
        return _ROOM * found[1]
    variance = sum(times * loss.variance for loss, times in parts)
    return math.sqrt(-2 * log_delta * variance) + variance / 2


def log_delta_by_parity(direction: Direction, epsilon: float) -> Bounds | None:
    """Return bounds on log delta at an epsilon >= 0; None where a contour is out of reach."""
    parts = _added(direction)
    if parts is None:
        return None
    poisson = _as_poisson(parts)
    found = poisson and question.log_delta(poisson, epsilon)
    guess = min(found[1] if found else _LOG_DELTA, _LOG_DELTA)
    with contextlib.suppress(OutOfReach):
        for _ in range(_GUESSES):
            low, high = _deltas(direction, parts, epsilon, guess)(epsilon)
            if high - low <= _NARROW * low:
                return Bounds(_logarithm(low, 1), _logarithm(high, -1), _METHOD)
            guess *= 2
    return None


def _logarithm(delta: float, side: int) -> float:
    """Return the logarithm of a number <= 1, rounded up or down."""
    return math.log(delta) * (1 + side * 4 * UNIT) if delta > 0 else -math.inf


def epsilon_by_parity(direction: Direction, log_delta: float) -> Bounds | None:
    """Return bounds on the least epsilon >= 0 with log delta <= ``log_delta`` < 0, or None."""
    parts = _added(direction)
    if parts is None:
        return None
    most = _about_epsilon(parts, log_delta)
    with contextlib.suppress(OutOfReach):
        while True:
            deltas = _deltas(direction, parts, most, log_delta)
            if _excess(deltas, 1, log_delta, most) <= 0:
                return _root(deltas, log_delta, most)
            most *= 2
    return None


def _excess(
    deltas: Callable[[float], tuple[float, float]], end: int, log_delta: float, epsilon: float
) -> float:
    """Return by how much an end of log delta at an epsilon, rounded outward, exceeds a target."""
    return _logarithm(deltas(epsilon)[end], 1 - 2 * end) - log_delta


def _root(deltas: Callable[[float], tuple[float, float]], log_delta: float, most: float) -> Bounds:
    """Return bounds on epsilon, whose upper end is at most a given one."""
    upper, lower = (partial(_excess, deltas, end, log_delta) for end in (1, 0))
    if upper(0.0) <= 0:
        return Bounds(0.0, 0.0, _METHOD)
    near = brent(upper, 0.0, most, _ROOT).meet
    # The lower end stands at an epsilon at which delta is proved to be as large.
    start = _ROOT.relative * near
    gap = bracket(lambda gap: near <= gap or lower(near - gap) >= 0, miss=0.0, start=start).meet
    return Bounds(max(0.0, near - gap), near, _METHOD)
