r"""Compositions of exponential mechanisms, by the adversary's recursion from both sides.

The ratio Y of a mechanism of epsilon-bounded range lies, whatever was answered before, in some
interval [T / E, T], 1 <= T <= E = exp(epsilon), and its mean under Q is 1. So delta of k of them,
each chosen from the past, is U_k(1) with

    U_0(x) = (x - exp(epsilon'))_+,     U_k(x) = sup over T of E_Q U_{k-1}(x Y).

U_k is convex, so the sup is taken by the Y that is T or T / E (Dong, Durfee and Rogers 2020).
Further U_k(0) = 0 and its slope is at most 1. Let V_k(u) = U_k(x) / x with u = log x - epsilon', so
that V_k(-epsilon') is delta at epsilon' and V_0(u) = (1 - exp(-u))_+. On the lattice of u with a
step h that divides epsilon:

* The adversary who keeps log T on the lattice is one of those allowed: a lower bound.
* Let T_0 < T_1 be neighbors on the lattice, and p_0, p_1 the probabilities under P of their upper
  ends. Between them U_{k-1} lies below its chords, at both ends of Y. With chords, E_Q U_{k-1}(x Y)
  times T is a quadratic polynomial in T. Its ratio to T is a mean of its three Bernstein
  coefficients over those of T, and so at most the largest. Two are the values at T_0 and T_1; the
  third is r (p_0 V(u + t_1) + (1 - p_0) V(u + t_1 - epsilon)) + (1 - r) (p_1 V(u + t_0) +
  (1 - p_1) V(u + t_0 - epsilon)), with r = 1 / (1 + exp(-h)) and V = V_{k-1}.

Both are within O(h^2) of V_k in a round. All terms are positive, so rounding is relative.

>>> from dpcal.accountants.losses.laplace import BoundedRange
>>> direction = Direction("both", ((BoundedRange(0.1), 100),))
>>> bounds = epsilon_by_recursion(direction, math.log(1e-6), 3.0)
>>> print(f"{bounds.lower:.2f} {bounds.upper:.2f}")
2.25 2.25
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.base import Reals
from dpcal.accountants.losses.laplace import BoundedRange
from dpcal.accountants.rounding import UNIT, exp_down, exp_up

_METHOD = "adaptive recursion"

# Range of the lattice's steps in one epsilon, powers of 2: errors fall with their square.
_MOST_STEPS, _FEWEST_STEPS = 256, 8
# Most terms of a recursion: about a tenth of a second.
_MOST_TERMS = 16_000_000
# Largest epsilon of one mechanism: the rounding of exponents is counted up to it.
_LARGEST = 16.0
# Smallest delta: underflow is below its rounding.
_SMALLEST = 1e-280
# Rounding errors, in units in the last place: of one round, and of the last step.
_PER_ROUND, _ONCE = 64, 1024


class _Profile(NamedTuple):
    """Points u that rise, by steps h, and bounds on V there."""

    u: Reals
    h: float
    low: Reals
    high: Reals


@functools.lru_cache(maxsize=32)
def _profile(epsilon: float, times: int, bottom: int, top: int) -> _Profile | None:
    """Return bounds on V between -bottom and top, in units of epsilon; None if that is dear."""
    steps, size = _MOST_STEPS, (bottom + top) * times
    while size * steps * steps > _MOST_TERMS:
        steps //= 2
    if steps < _FEWEST_STEPS:
        return None
    h = epsilon / steps
    u = h * np.arange(-bottom * steps, top * steps + 1, dtype=float)
    t = h * np.arange(steps + 1)[:, None]
    p = np.expm1(-t[::-1]) / math.expm1(-epsilon)
    q = np.exp(-t[::-1]) * np.expm1(-t) / math.expm1(-epsilon)
    r = 1 / (1 + math.exp(-h))
    further = t[1:, 0]
    low = high = -np.expm1(-np.maximum(u, 0.0))
    start = -np.expm1(-(u[-1] + further))
    zeros = np.zeros(steps)
    for _ in range(times):
        # V is at least 0 below the bottom, and at least its first value above the top.
        up, down = _shifted(np.concatenate([zeros, low, start]), steps)
        low = (p * up + q * down).max(axis=0)
        # V is at most its value at the bottom, below it; above the top the slope of U is at most 1.
        beyond = np.exp(-further) * high[-1] - np.expm1(-further)
        up, down = _shifted(np.concatenate([zeros + high[0], high, beyond]), steps)
        between = r * (p[:-1] * up[1:] + q[:-1] * down[1:])
        between += (1 - r) * (p[1:] * up[:-1] + q[1:] * down[:-1])
        high = np.maximum((p * up + q * down).max(axis=0), between.max(axis=0))
    rounding = UNIT * (_PER_ROUND * times + _ONCE)
    low = np.maximum.accumulate(low * (1 - rounding))
    high = np.maximum.accumulate(np.minimum(high * (1 + rounding), 1.0))
    return _Profile(u, h, low, high)


def _shifted(values: Reals, steps: int) -> tuple[Reals, Reals]:
    """Return V(u + t) and V(u + t - epsilon), in rows for t, from values on a longer lattice."""
    windows = sliding_window_view(values, steps + 1).T
    return windows[:, steps:], windows[:, :-steps]


def _profile_to(direction: Direction, epsilon: float) -> _Profile | None:
    """Return bounds on V that reach epsilon; None for other compositions, or if they are dear."""
    (loss, times), *others = direction.parts
    if others or times < 2 or not isinstance(loss, BoundedRange) or loss.epsilon > _LARGEST:
        return None
    wide = math.isqrt(times - 1) + 1
    bottom = wide * (math.ceil(min(epsilon / loss.epsilon, times) / wide) + 2)
    return _profile(loss.epsilon, times, min(bottom, times), min(2 * wide, times))


def log_delta_by_recursion(direction: Direction, epsilon: float) -> Bounds | None:
    """Return bounds on log delta at an epsilon >= 0 of exponential mechanisms of one epsilon.

    None for other compositions, and if the recursion is dear or delta is below 1e-280.
    """
    found = _profile_to(direction, epsilon)
    if found is None:
        return None
    below, above = (-epsilon * (1 + sign * 8 * UNIT) for sign in (1, -1))
    i, j = (int(np.searchsorted(found.u, at, side="right")) - 1 for at in (above, below))
    if min(i, j) < 0:
        return None
    share = math.expm1(-min(above - float(found.u[i]), found.h)) / math.expm1(-found.h)
    upper = (1 - share) * float(found.high[i]) + share * float(found.high[i + 1])
    if upper < _SMALLEST:
        return None
    return Bounds.of_logarithms(float(found.low[j]), min(upper, 1.0), _METHOD)


def epsilon_by_recursion(direction: Direction, log_delta: float, most: float) -> Bounds | None:
    """Return bounds on epsilon, which is at most ``most``, at a log delta < 0; or None.

    It is None where :func:`log_delta_by_recursion` is.
    """
    found = _profile_to(direction, most) if log_delta > math.log(_SMALLEST) else None
    if found is None:
        return None
    u, h, low, high = found
    least, target = exp_down(log_delta), exp_up(log_delta)
    i, j = int((high <= least).sum()), int((low <= target).sum())
    lower = max(0.0, -float(u[j]) * (1 - 8 * UNIT)) if j < len(u) else 0.0
    if i == 0:
        return None
    if u[i - 1] >= 0:
        return Bounds(0.0, 0.0, _METHOD)
    share = (float(high[i]) - least) / float(high[i] - high[i - 1])
    upper = -float(u[i]) + math.log1p(share * math.expm1(h))
    return Bounds(min(lower, upper), upper * (1 + 16 * UNIT), _METHOD)
