r"""Epsilon by Renyi differential privacy. The log-MGF on the real axis, at real orders.

The Renyi divergence of order 1 + c is log M(c) / c; it adds under composition. Its conversion

    delta(epsilon) <= exp(log M(c) - c epsilon) c^c / (1 + c)^(1 + c)     for every c > 0

(Canonne, Kamath and Steinke 2020, Proposition 12) is the Chernoff bound of the privacy loss. Both
questions are smooth one-dimensional problems in c, solved by Newton's method rather than on a grid
of orders.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> direction = decompose(event, "add-or-remove-one").directions[0]
>>> print(f"{epsilon_bounds(direction, math.log(1e-6)).upper:.4f}")
7.4137
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcal._internal.roots import minimum
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion import failure
from dpcal.accountants.inversion.saddle import increasing_root, log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, Reals
from dpcal.accountants.rounding import UNIT

# Tolerance of the root finder over orders: the bound exceeds the best one by under 100 units.
_TOLERANCE = 1e-7
# Relative error of log M, and of each term that is added to it.
_ERROR = 32 * UNIT


def divergence(direction: Direction, order: float) -> float:
    """Return the Renyi divergence of a composition at any real order > 1, rounded up."""
    c = order - 1.0
    return max(0.0, log_mgf(Total(direction.parts), c)) * (1 + _ERROR) / c


def log_mgf(total: Total, c: float) -> float:
    """Return the Renyi bound on log M(c), c > 0, in closed form where no quadrature is in reach."""
    known = Total(tuple(item for item in total.parts if item[0].has_law))
    # A loss without a law is bounded by its moments; their derivatives would cost more.
    rest = sum(n * loss.log_mgf_bound(c) for loss, n in total.parts if not loss.has_law)
    try:
        return float(known.moments([c])[0, 0]) + rest
    except OutOfReach:
        return float(known.log_mgf_bounds(np.array([c]))[0]) + rest


# Tilts for closed forms where no quadrature is affordable: 40 a decade, then refined.
_TILTS = np.geomspace(1e-20, 1e12, 1281)
# Golden-section steps that refine a tilt to 1e-5, and its bound to the square of that.
_SECTIONS = 20

Cost = Callable[[Any, Any], Any]


def _least(
    total: Total, cost: Cost, guess: Callable[[float, float], float], epsilon: float | None = None
) -> tuple[float, str]:
    """Return the least cost over all tilts c, in closed form where no quadrature is in reach.

    The slope of a cost that bounds log delta is log M'(c) + log(c / (1 + c)) less ``epsilon``; c
    times the slope of one that bounds epsilon is the same less the cost, and ``epsilon`` is None.
    ``guess`` takes the mean and the variance of the loss.
    """

    def equation(c: float) -> tuple[float, float, float]:
        log_mgf, mean, variance = (float(value) for value in total.moments([c])[0])
        bound = float(cost(c, log_mgf + float(log_chernoff(c))))
        value = mean + math.log(c) - math.log1p(c) - (bound if epsilon is None else epsilon)
        return value, variance + 1 / (c * (1 + c)), math.nan if epsilon is None else bound

    try:
        _, mean, variance = (float(value) for value in total.moments([0.0])[0])
        start = min(guess(mean, max(variance, 1e-12)), max(8.0, total.steep))
        c = increasing_root(equation, start, _TOLERANCE)
        log_mgf = float(total.moments([c])[0, 0])
    except OutOfReach:
        c, log_mgf = _closed_form(total, cost)
    log_bound = log_mgf + float(log_chernoff(c)) + _ERROR * (abs(log_mgf) + 4)
    return float(cost(c, log_bound)), f"Renyi order {1 + c:.6g}"


def _closed_form(total: Total, cost: Cost) -> tuple[float, float]:
    """Return the tilt c of least cost by bounds on log M(c), and that bound."""

    @np.errstate(over="ignore")
    def costs(c: Reals) -> Reals:
        log_mgf = total.log_mgf_bounds(c)
        found = cost(c, np.where(np.isfinite(log_mgf), log_mgf, math.inf) + log_chernoff(c))
        return np.asarray(found)

    found = costs(_TILTS)
    at = int(np.argmin(found))
    if math.isinf(found[at]):
        return 1.0, math.inf
    low, high = np.log(_TILTS[[max(at - 1, 0), min(at + 1, len(_TILTS) - 1)]]).tolist()
    inner = math.exp(minimum(lambda x: costs(np.exp([x]))[0], low, high, sections=_SECTIONS))
    tilts = np.array([_TILTS[at], inner])
    c = tilts[np.argmin(costs(tilts))]
    return float(c), float(total.log_mgf_bounds(np.array([c]))[0])


def epsilon_bounds(direction: Direction, log_delta: float) -> Bounds:
    """Return an upper bound on epsilon at a log delta < 0, over all orders.

    The lower one is 0, or infinite if a loss is infinite too often.
    """
    bounds = failure.epsilon(direction, direction, log_delta, _finite_epsilon)
    # Failures of losses that are rounded up bound nothing from below.
    return bounds if direction.below is None else Bounds(0.0, bounds.upper, bounds.method)


def _finite_epsilon(direction: Direction, log_delta: float) -> Bounds:
    """Return an upper bound on epsilon where every loss is finite."""
    if not direction.parts:
        return Bounds(0.0, 0.0, "no loss")
    total = Total(direction.parts)
    upper, method = _least(
        total,
        lambda c, log_bound: (log_bound - log_delta * (1 + _ERROR)) / c,
        lambda mean, variance: max(math.sqrt(-2 * log_delta / variance), 1e-6),
    )
    if total.upper <= upper:
        return Bounds(0.0, total.upper, "support")
    return Bounds(0.0, max(0.0, upper), method)


def log_delta_bounds(direction: Direction, epsilon: float) -> Bounds:
    """Return an upper bound on log delta at an epsilon >= 0, over all orders.

    The lower one is the log probability of an infinite loss.
    """
    bounds = failure.log_delta(direction, lambda given: _finite_log_delta(given, epsilon))
    return bounds if direction.below is None else Bounds(-math.inf, bounds.upper, bounds.method)


def log_deltas_by_tilts(direction: Direction, epsilons: Reals, tilts: Reals) -> Reals:
    """Return upper bounds on log delta at many epsilons >= 0, each the smallest over tilts.

    With more than a thousand epsilons, neighbors share the best tilt of the first of them.
    """
    log_finite, given = direction.finite
    total = Total(given.parts)
    upper = np.where(epsilons < total.upper, min(total.log_delta_bound, 0.0), -math.inf)
    with contextlib.suppress(OutOfReach):
        log_mgf = total.moments(tilts)[:, 0]

        def bounds(at: Reals, m: Reals, c: Reals) -> Reals:
            margins = 64 * UNIT * (np.abs(m) + at * c + 4)
            return m - at * c + log_chernoff(c) + margins

        together = 1 + len(epsilons) // 1000
        best = bounds(epsilons[::together, None], log_mgf, tilts).argmin(axis=1)
        best = np.repeat(best, together)[: len(epsilons)]
        upper = np.minimum(upper, bounds(epsilons, log_mgf[best], tilts[best]))
    return failure.combine(log_finite, -math.inf, upper)[1]


def _finite_log_delta(direction: Direction, epsilon: float) -> Bounds:
    """Return an upper bound on log delta(epsilon) where every loss is finite."""
    total = Total(direction.parts)
    if epsilon >= total.upper:
        return Bounds(-math.inf, -math.inf, "support")
    upper, method = _least(
        total,
        lambda c, log_bound: log_bound - c * epsilon * (1 - _ERROR),
        lambda mean, variance: max((epsilon - mean) / variance, 0.1),
        epsilon,
    )
    return Bounds(-math.inf, min(0.0, upper), method)
