r"""Equally spaced points for integrals that are analytic in a strip: one lattice for every loss.

The trapezoid rule with step h has an error of about exp(-2 pi w / h) if the integrand is analytic,
and not much larger than on the points, within a distance w of them. Losses differ in their
integrands, in the line or curve of their points, and in its length. The step, the limits of the
lattice and the width of the strip are the same for all losses, and are here.

>>> step = step_within(1.0, growth=0.0)
>>> x = spaced(-RANGE, RANGE, step)
>>> print(f"{step * np.exp(-(x**2) / 2).sum() / math.sqrt(2 * math.pi):.15f}")
1.000000000000000
"""

from __future__ import annotations

import math

import numpy as np

from dpcal.accountants.losses.base import OutOfReach, Reals

# Log of the rule's largest error: a thousandth of a unit in the last place.
LOG_TOLERANCE = math.log(1e-19)
# Half-width of the range in standard deviations of the noise: beyond it a normal law has 2e-21.
RANGE = 9.5
# Largest angle of a shifted line, in radians: twice it is below the strip's end at pi.
LARGEST_ANGLE = 1.5
MOST_POINTS = 400_000


def step_within(width: float, growth: float) -> float:
    """Return a step with a negligible error for an integrand analytic in a strip.

    It has 33 digits, so that its multiples on a lattice are doubles.

    Parameters
    ----------
    width
        Distance > 0 of the points from the edge of the strip.
    growth
        Log of a bound on how much the integral of the absolute value grows up to that edge.
    """
    digits, power = math.frexp(2 * math.pi * width / (4.0 - LOG_TOLERANCE + growth))
    return math.ldexp(math.floor(math.ldexp(digits, 33)), power - 33)


def spaced(low: float, high: float, step: float) -> Reals:
    """Return the multiples of a step that cover [low, high].

    Raises
    ------
    OutOfReach
        If there are more than 400,000.
    """
    if not (high - low) / step <= MOST_POINTS:
        raise OutOfReach
    return step * np.arange(math.floor(low / step), math.ceil(high / step) + 1.0)
