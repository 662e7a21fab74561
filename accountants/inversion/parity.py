"""Delta of random allocations: a contour in ball arithmetic, by put-call parity.

Where the likelihood ratio of two laws has mean 1, and the loss of one direction is its logarithm,
delta of this direction is E (ratio - K)_+ = E (K - ratio)_+ - (K - 1), K = exp(epsilon), and the
last mean is K times delta of the other direction at -epsilon. One contour of a put
(:mod:`dpcal.accountants.inversion.puts`) answers for both directions, at all epsilons up to a
largest one. Gaussians and Poisson samples of them are epochs, too: with one batch, which is drawn
or not.

>>> from dpcal.accountants.losses.allocation import Allocation
>>> narrow = Direction("remove", ((Allocation(30.0, 1600, "remove"), 10),))
>>> found = epsilon_by_parity(narrow, math.log(1e-5), most=0.01)
>>> print(f"{found.upper:.8f}", found.upper - found.lower < 1e-8)
0.00603349 True
"""

from __future__ import annotations

import contextlib
import math
from functools import lru_cache, partial
from typing import Any

from dpcal._internal.lazy import Module
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.solve import epsilon_of
from dpcal.accountants.losses.allocation import Allocation, Group, UnequalAllocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT

Epochs = tuple[tuple[Allocation, int], ...]

_BALLS = Module("dpcal.accountants.inversion.puts")
_METHOD = "contour in balls"
# Seconds of contours; finite laws answer sooner, within a few thousandths of epsilon.
_SECONDS = 7.5
# Nats from delta down to errors, and width of log delta of a guess that was small enough.
_NATS, _NARROW = 26.0, 1e-9
_GUESSES = 5
# Factor on a guess of epsilon from a chord of log delta, which is concave.
_ROOM = 1.05


def has_allocation(direction: Direction) -> bool:
    """Return whether a direction has random allocations: no contour in doubles serves them."""
    return any(isinstance(loss, Allocation) for loss, _ in direction.parts)


def _added(direction: Direction) -> Epochs | None:
    """Return the losses of adding a record; None if some are not epochs of Gaussians."""
    found = [(_as_epoch(loss), times) for loss, times in direction.parts]
    known = tuple((epoch, times) for epoch, times in found if epoch is not None)
    return known if len(known) == len(found) else None


def _as_epoch(loss: PrivacyLoss) -> Allocation | None:
    """Return the epoch with a likelihood ratio of the same law when adding; None for others."""
    if isinstance(loss, Allocation):
        return loss if loss.direction == "add" else loss.opposite
    if isinstance(loss, Gaussian) and loss.below is None:
        return Allocation(loss.noise_multiplier, 1, "add")
    if isinstance(loss, SampledGaussian):
        q, sigma = loss.sampling_probability, loss.noise_multiplier
        return UnequalAllocation.of((Group(sigma, 1, q), Group(math.inf, 1, 1 - q)), "add")
    return None


@lru_cache(maxsize=4)
def _known_puts(parts: Epochs) -> list[Any]:
    """Return the contours that were found for these epochs."""
    return []


def _put(parts: Epochs, most: float, log_delta: float, seconds: float = _SECONDS) -> Any:
    """Return the contour for deltas of about this size, up to a largest epsilon."""
    nats = _NATS - log_delta + most
    fits = (put for put in _known_puts(parts) if put.most >= most and put.nats >= nats)
    put = next(fits, None)
    if put is None:
        put = _BALLS.Put(parts, most, nats, seconds)
        _known_puts(parts).append(put)
    return put


def _log_delta_of(put: Any, direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta, rounded outward."""
    adds = any(getattr(loss, "direction", None) == "add" for loss, _ in direction.parts)
    low, high = put.delta(epsilon, added=adds)
    found = Bounds.of_logarithms(low, high, _METHOD)
    return Bounds(found.lower * (1 + 4 * UNIT), found.upper * (1 - 4 * UNIT), _METHOD)


def as_poisson(direction: Direction) -> Direction | None:
    """Return the losses of Poisson batches in place of epochs, which cost about as much, or None.

    It is None if some losses are not epochs of Gaussians.
    """
    batches = [
        (SampledGaussian(p / m, sigma, "remove") if p < m else Gaussian(sigma), m * times)
        for loss, times in _added(direction) or ()
        for sigma, m, p in loss.groups
        if sigma < math.inf
    ]
    return Direction("remove", tuple(batches)) if batches else None


def log_delta_by_parity(direction: Direction, epsilon: float, guess: float) -> Bounds | None:
    """Return bounds on log delta at an epsilon >= 0, from a guess of it.

    It is None where a contour is out of reach, or if some losses are not epochs of Gaussians.
    """
    parts = _added(direction) or ()
    with contextlib.suppress(OutOfReach):
        for _ in range(_GUESSES if parts else 0):
            bounds = _log_delta_of(_put(parts, epsilon, guess), direction, epsilon)
            if bounds.upper - bounds.lower <= _NARROW:
                return bounds
            guess *= 2
    return None


def epsilon_by_parity(direction: Direction, log_delta: float, most: float) -> Bounds | None:
    """Return bounds on the least epsilon >= 0 with log delta <= ``log_delta`` < 0, or None.

    It is about at most ``most``.
    """
    parts, seconds = _added(direction) or (), _SECONDS
    with contextlib.suppress(OutOfReach):
        while parts:
            put = _put(parts, most, log_delta, seconds)
            bounds_at = partial(_log_delta_of, put, direction)
            missed = bounds_at(most).upper - log_delta
            if missed <= 0:
                return epsilon_of(bounds_at, Bounds(0.0, most, _METHOD), log_delta)
            fallen = bounds_at(most / _ROOM).upper - log_delta - missed
            chord = missed / fallen * (1 - 1 / _ROOM) if fallen > 0 else 1.0
            most, seconds = most * min(2.0, _ROOM + chord), seconds - put.seconds
    return None
