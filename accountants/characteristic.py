r"""What is delta(epsilon) of a composition? Laplace inversion, with every error bounded.

Where one contour serves, and the losses have a compiled form, the answer is one call of
``_ext/contour.h``. All others are those of :mod:`dpcal.accountants.ways`, for finite losses: an
infinite loss counts in full, and losses that are rounded up are rounded down for the lower end.
Every answer is an interval and names its method.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> direction = decompose(event, "add-or-remove-one").directions[0]
>>> bounds = log_delta_bounds(direction, 8.0)
>>> print(f"{math.exp(bounds.upper):.10e} {bounds.method}")
2.0283809415e-08 contour
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dpcal import _lazy
from dpcal._ext import question
from dpcal.accountants import renyi, ways
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.failure import epsilon_with_failures, log_delta_with_failures
from dpcal.accountants.inversion.parity import (
    epsilon_by_parity,
    has_allocation,
    log_delta_by_parity,
)

__all__ = [
    "epsilon_bounds",
    "finite_log_delta",
    "is_smaller",
    "log_delta_bounds",
    "worst_epsilon_bounds",
]

# Laws of epochs, which few questions need.
_allocated = _lazy.Module("dpcal.accountants.inversion.allocated")
# Tilts at which moments are compared, over log(1 / delta) / epsilon: the saddle of a Gaussian loss
# lies between one and two.
_TILTS = np.array([0.7, 1.0, 1.4, 2.0, 2.8, 4.0])
# Tilt from which moments are not compared: sums of losses times it have no digits.
_LARGEST_TILT = 1e12
# What underflows is far below the rounding of what it is added to.
_silent = np.errstate(under="ignore")


@_silent
def log_delta_bounds(direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta of one direction at an epsilon, any finite number >= 0."""
    parts = direction.compiled
    if parts is not None and (found := question.log_delta(parts, epsilon)) is not None:
        return Bounds(*found)
    given_finite = partial(finite_log_delta, epsilon=epsilon)
    return _rounded(direction, lambda item, _: log_delta_with_failures(item, given_finite))


def finite_log_delta(direction: Direction, epsilon: float) -> Bounds:
    """Return bounds on log delta of finite losses; allocations without balls are finite laws."""
    if not has_allocation(direction):
        return ways.log_delta(direction, epsilon)
    exact = log_delta_by_parity(direction, epsilon)
    return exact or log_delta_bounds(_allocated.on_finite_laws(direction), epsilon).both(
        renyi.log_delta_bounds(direction, epsilon)
    )


@_silent
def epsilon_bounds(direction: Direction, log_delta: float) -> Bounds:
    """Return bounds on the smallest epsilon >= 0 at a log delta, a negative number of any size."""
    parts = direction.compiled
    if parts is not None and (found := question.epsilon(parts, log_delta)) is not None:
        return Bounds(*found)

    def on_side(item: Direction, side: int) -> Bounds:
        return epsilon_with_failures(item, log_delta, _finite_epsilon, side)

    return _rounded(direction, on_side)


def _finite_epsilon(direction: Direction, log_delta: float) -> Bounds:
    """Return bounds on epsilon of finite losses; allocations without balls are finite laws."""
    if not has_allocation(direction):
        return ways.epsilon(direction, log_delta)
    exact = epsilon_by_parity(direction, log_delta)
    return exact or epsilon_bounds(_allocated.on_finite_laws(direction), log_delta).both(
        renyi.epsilon_bounds(direction, log_delta)
    )


def _rounded(direction: Direction, bounds_of: Callable[[Direction, int], Bounds]) -> Bounds:
    """Return bounds if losses may be rounded up; the lower end is of losses rounded down.

    ``bounds_of`` takes the end that counts: 1 for the upper one, -1 for the lower one, 0 for both.
    """
    below = direction.below
    if below is None:
        return bounds_of(direction, 0)
    bounds = bounds_of(direction, 1)
    lower = bounds_of(below, -1).lower
    return Bounds(min(lower, bounds.upper), bounds.upper, f"rounded, {bounds.method}")


def is_smaller(direction: Direction, epsilon: float, log_delta: float) -> bool:
    """Return whether moments prove delta no larger, where close bounds may take seconds."""
    if not (0 < epsilon < math.inf and -_LARGEST_TILT * epsilon < log_delta < 0):
        return False
    tilts = -log_delta / epsilon * _TILTS
    return bool(renyi.log_deltas_by_tilts(direction, np.array([epsilon]), tilts)[0] <= log_delta)


def worst_epsilon_bounds(
    directions: Sequence[Direction],
    log_delta: float,
    known: Sequence[Bounds | None] = (),
) -> Bounds:
    """Return bounds on the largest epsilon of one or more directions at a log delta < 0.

    A direction that provably needs no larger epsilon than the first one is left out, unless the
    first one has no lower end. Bounds on each direction's epsilon that are ``known``, or None for
    each that has none, save a search.
    """
    found: list[Bounds] = []
    for direction, bounds in zip(directions, known or [None] * len(directions), strict=True):
        less = bool(found) and _needs_less(direction, found[0], log_delta)
        if less and not found[0].lower == 0.0 < found[0].upper:
            continue
        bounds = bounds or epsilon_bounds(direction, log_delta)
        found.append(Bounds(bounds.lower, found[0].upper, found[0].method) if less else bounds)
    return Bounds.worst(found)


def _needs_less(direction: Direction, found: Bounds, log_delta: float) -> bool:
    """Return whether a direction provably needs no larger epsilon than that of another one."""
    if found.upper == math.inf:
        return True
    parts = direction.compiled
    known = None if parts is None else question.at_most(parts, found.upper, log_delta)
    if known is not None:
        return known
    if is_smaller(direction, found.lower, log_delta):
        return True
    return log_delta_bounds(direction, found.upper).upper <= log_delta
