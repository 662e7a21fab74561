r"""Equally spaced points for integrals that are analytic in a strip: one lattice for every loss.

The trapezoid rule with step h has an error of about exp(-2 pi w / h) if the integrand is analytic,
and not much larger than on the points, within a distance w of them. Losses differ in their
integrands, in the line or curve of their points, and in its length. The step, the limits of the
lattice, the width of the strip, and the choice of the points that count are the same for all
losses, and are here.

>>> step = step_within(1.0, growth=0.0)
>>> x = spaced(-RANGE, RANGE, step, most=1000)
>>> print(f"{step * np.exp(-(x**2) / 2).sum() / math.sqrt(2 * math.pi):.15f}")
1.000000000000000
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.losses.base import Complexes, OutOfReach, Reals

__all__ = [
    "LARGEST_ANGLE",
    "LOG_TOLERANCE",
    "RANGE",
    "growth_of",
    "narrowed",
    "relevant",
    "restricted_moments",
    "spaced",
    "step_within",
]

# Log of the rule's largest error, relative to terms of second order in the loss. At 1e-19 the error
# is a thousandth of a unit in the last place.
LOG_TOLERANCE = math.log(1e-19)
# Half-width of the range in standard deviations of the noise: beyond it a normal law has 2e-21.
RANGE = 9.5
# Largest angle of a shifted line, in radians of the argument of the density ratio. The strip ends
# at pi, and the rule's error is bounded at twice the angle.
LARGEST_ANGLE = 1.5
# Largest growth of an integrand up to the far edge of the strip; with more growth the strip is
# narrowed. The bound on the rule's error has room for a factor of exp(4).
_MAX_GROWTH = 8.0
# Most times that a strip is narrowed, each by a factor of sqrt(2).
_MOST_NARROWED = 60
# Log of a weight that does not change a probability: exp(-200) is far below a unit in the last
# place.
_NO_WEIGHT = -200.0
# Probabilities of the events to which a law is restricted when its decay is bounded: with more
# events the bound is sharper, and each takes a table look-up.
_SHARES = np.array([0.6, 0.75, 0.85, 0.93, 0.97, 0.99, 0.999, 0.9999, 1.0])


def step_within(width: float, growth: float) -> float:
    """Return the step whose error is negligible for an integrand analytic in a strip.

    Parameters
    ----------
    width
        Distance > 0 of the points from the edge of the strip.
    growth
        Log of a bound on how much the integral of the absolute value grows up to that edge.
    """
    return 2 * math.pi * width / (4.0 - LOG_TOLERANCE + growth)


def spaced(low: float, high: float, step: float, *, most: int) -> Reals:
    """Return the multiples of a step that cover [low, high].

    Raises
    ------
    OutOfReach
        If there are more than ``most``.
    """
    if not (high - low) / step <= most:
        raise OutOfReach
    return step * np.arange(math.floor(low / step), math.ceil(high / step) + 1.0)


def growth_of(on_line: Reals, on_edge: Reals) -> float:
    """Return the growth of a sum from the real line to an edge, from the logs of its terms."""
    peak = on_line.max()
    return float(np.exp(np.minimum(on_edge - peak, 700.0)).sum() / np.exp(on_line - peak).sum())


def narrowed(angle: float, growth: Callable[[float], float]) -> float:
    """Return the first of angle, angle / sqrt(2), angle / 2, ... whose growth is small.

    Raises
    ------
    OutOfReach
        If none is found, or if ``growth`` raises it.
    """
    for _ in range(_MOST_NARROWED):
        if growth(angle) < _MAX_GROWTH:
            return angle
        angle /= math.sqrt(2.0)
    raise OutOfReach


def relevant(
    values: Complexes,
    exponents: Complexes,
    mean: float,
    variance: float,
    *,
    least: float = math.inf,
) -> NDArray[np.bool_]:
    """Return a mask of the points whose weights count, also in the variance.

    Parameters
    ----------
    values, exponents
        The losses of the points, and the logs of their weights.
    mean, variance
        Mean and variance of the law that the points represent.
    least
        Weights are compared with the largest one, or with this logarithm where that is smaller.
    """
    square = (values.real - mean) ** 2 + values.imag**2
    sizes = exponents.real + np.log1p(square / variance)
    return np.asarray(sizes > LOG_TOLERANCE + min(sizes.max(), least))


def restricted_moments(ell: Reals, log_base: Reals, power: float, moments: Reals) -> Reals:
    """Return probability, variance, fourth central moment of a tilted law on the events x <= x_j.

    ``moments`` holds the law's log mass and mean. Leaving out rare large losses makes the fourth
    moment commensurate with the variance.
    """
    exponents = log_base + power * ell - moments[0]
    rows = np.flatnonzero(exponents > _NO_WEIGHT)
    weights = np.exp(exponents[rows])
    centered = ell[rows] - moments[1]
    table = np.cumsum(weights * np.vander(centered, 5, increasing=True).T, axis=1)
    chosen = np.searchsorted(table[0], _SHARES * table[0, -1])
    mass, *raw = table[:, np.minimum(chosen, len(weights) - 1)]
    m1, m2, m3, m4 = raw / mass
    variance = m2 - m1**2
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    # This rounds outward; an event whose moments are mostly rounding is left out.
    rows = np.column_stack([mass * (1 - 1e-9), variance * (1 - 1e-6), fourth * (1 + 1e-6)])
    return np.asarray(rows[(variance > 1e-6 * m2) & (fourth > 0)])
