r"""What is epsilon by Renyi differential privacy? The log-MGF on the real axis, at real orders.

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

import numpy as np
from numpy.typing import NDArray

from dpcal._roots import minimum
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.failure import (
    combine,
    epsilon_with_failures,
    log_delta_with_failures,
)
from dpcal.accountants.inversion.saddle import increasing_root, log_chernoff
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

Reals = NDArray[np.float64]

# Tolerance of the root finder over orders. The bound exceeds the best one by half its square, less
# than a hundred units.
_TOLERANCE = 1e-7

__all__ = ["divergence", "epsilon_bounds", "log_delta_bounds", "log_deltas_by_tilts"]


def divergence(direction: Direction, order: float) -> float:
    """Return the Renyi divergence of a composition at any real order > 1, rounded up."""
    c = order - 1.0
    total = Total(direction.parts)
    try:
        log_mgf = float(total.moments([c])[0, 0])
    except OutOfReach:
        log_mgf = float(total.log_mgf_bounds(np.array([c]))[0])
    return max(0.0, log_mgf) * (1 + 32 * UNIT) / c


# Tilts at which bounds in closed form are compared if no quadrature is affordable: 40 a decade,
# between which the best is refined.
_TILTS = np.geomspace(1e-20, 1e12, 1281)
# Steps that refine it: the tilt is then known to 1e-5, and its bound to the square of that.
_SECTIONS = 20


def _best_tilt(
    total: Total,
    equation: Callable[[float], tuple[float, float, float]],
    cost: Callable[[float, float, float], float],
    guess: Callable[[float, float], float],
) -> tuple[float, float]:
    """Return the tilt c at the root of an equation, or by :func:`_closed_form`, and log M(c)."""
    try:
        _, mean, variance = (float(value) for value in total.moments([0.0])[0])
        start = min(guess(mean, max(variance, 1e-12)), max(8.0, total.steep))
        c = increasing_root(equation, 0.0, math.inf, start, _TOLERANCE)
        return c, float(total.moments([c])[0, 0])
    except OutOfReach:
        return _closed_form(total, cost)


def _closed_form(total: Total, cost: Callable[[float, float, float], float]) -> tuple[float, float]:
    """Return the tilt c of least ``cost(c, log M(c), log chernoff(c))``, and log M(c)."""

    def bounds(c: Reals) -> list[tuple[float, float, float]]:
        terms = (each.tolist() for each in (c, total.log_mgf_bounds(c), log_chernoff(c)))
        return [
            (cost(at, log_mgf, factor) if math.isfinite(log_mgf) else math.inf, at, log_mgf)
            for at, log_mgf, factor in zip(*terms, strict=True)
        ]

    def refined(log_c: float) -> tuple[float, float, float]:
        return bounds(np.exp([log_c]))[0]

    found = bounds(_TILTS)
    best = min(found)
    if math.isinf(best[0]):
        return 1.0, math.inf
    # The minimum is refined between the neighbors of the best tilt.
    at = found.index(best)
    neighbors = _TILTS[max(at - 1, 0)], _TILTS[min(at + 1, len(_TILTS) - 1)]
    ends = math.log(neighbors[0]), math.log(neighbors[1])
    inner = minimum(lambda x: refined(x)[0], *ends, sections=_SECTIONS)
    return min(best, refined(inner))[1:]


def epsilon_bounds(direction: Direction, log_delta: float) -> Bounds:
    """Return an upper bound on epsilon at a log delta < 0, over all orders.

    The lower one is 0, or infinite if a loss is infinite too often.
    """
    bounds = epsilon_with_failures(direction, log_delta, _finite_epsilon)
    # Failures of losses that are rounded up bound nothing from below.
    return bounds if direction.below is None else Bounds(0.0, bounds.upper, bounds.method)


def _finite_epsilon(direction: Direction, log_delta: float) -> Bounds:
    """Return an upper bound on epsilon where every loss is finite."""
    if not direction.parts:
        return Bounds(0.0, 0.0, "no loss")
    total = Total(direction.parts)

    def equation(c: float) -> tuple[float, float, float]:
        # The value is c times the derivative in c of (log M(c) + log chernoff(c) - log_delta) / c.
        log_mgf, mean, variance = total.moments([c])[0]
        slope = mean + math.log(c) - math.log1p(c)
        value = slope - (log_mgf + float(log_chernoff(c)) - log_delta) / c
        return float(value), float(variance + 1 / (c * (1 + c))), math.nan

    def cost(c: float, log_mgf: float, chernoff: float) -> float:
        return (log_mgf + chernoff - log_delta) / c

    def guess(mean: float, variance: float) -> float:
        return max(math.sqrt(-2 * log_delta / variance), 1e-6)

    c, log_mgf = _best_tilt(total, equation, cost, guess)
    value = log_mgf + float(log_chernoff(c)) - log_delta
    margin = 32 * UNIT * (abs(log_mgf) + abs(log_delta) + 4)
    upper = max(0.0, (value + margin) / c)
    if total.upper <= upper:
        return Bounds(0.0, total.upper, "support")
    return Bounds(0.0, upper, f"Renyi order {1 + c:.6g}")


def log_delta_bounds(direction: Direction, epsilon: float) -> Bounds:
    """Return an upper bound on log delta at an epsilon >= 0, over all orders.

    The lower one is the log probability of an infinite loss.
    """
    bounds = log_delta_with_failures(direction, lambda given: _finite_log_delta(given, epsilon))
    return bounds if direction.below is None else Bounds(-math.inf, bounds.upper, bounds.method)


def log_deltas_by_tilts(direction: Direction, epsilons: Reals, tilts: Reals) -> Reals:
    """Return upper bounds on log delta at many epsilons >= 0, each the least of those at tilts."""
    log_finite, given = direction.finite
    total = Total(given.parts)
    upper = np.where(epsilons < total.upper, min(total.log_delta_bound, 0.0), -math.inf)
    with contextlib.suppress(OutOfReach):
        log_mgf = total.moments(tilts)[:, 0]
        products = np.outer(epsilons, tilts)
        margins = 64 * UNIT * (np.abs(log_mgf) + products + 4)
        bounds = log_mgf - products + log_chernoff(tilts) + margins
        upper = np.minimum(upper, bounds.min(axis=1))
    return combine(log_finite, -math.inf, upper)[1]


def _finite_log_delta(direction: Direction, epsilon: float) -> Bounds:
    """Return an upper bound on log delta(epsilon) where every loss is finite."""
    if not direction.parts:
        return Bounds(-math.inf, -math.inf, "no loss")
    total = Total(direction.parts)
    if epsilon >= total.upper:
        return Bounds(-math.inf, -math.inf, "support")

    def equation(c: float) -> tuple[float, float, float]:
        log_mgf, mean, variance = (float(value) for value in total.moments([c])[0])
        value = mean - epsilon + math.log(c) - math.log1p(c)
        integral = log_mgf - epsilon * c + float(log_chernoff(c))
        return value, variance + 1 / (c * (1 + c)), integral

    def cost(c: float, log_mgf: float, chernoff: float) -> float:
        return log_mgf - c * epsilon + chernoff

    def guess(mean: float, variance: float) -> float:
        return max((epsilon - mean) / variance, 0.1)

    c, log_mgf = _best_tilt(total, equation, cost, guess)
    margin = 32 * UNIT * (abs(log_mgf) + abs(c * epsilon) + 4)
    value = log_mgf - c * epsilon + float(log_chernoff(c)) + margin
    return Bounds(-math.inf, min(0.0, value), f"Renyi order {1 + c:.6g}")
