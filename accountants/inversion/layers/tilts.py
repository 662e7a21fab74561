"""At which tilt is a measure inverted? Its saddle, and Chernoff bounds at some tilts.

>>> from dpcal.accountants.inversion.layers.measures import Product
>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> print(f"{saddle_tilt(Product([(Gaussian(2.0), 8)]), 4.0):.2f}")
1.93
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.inversion.layers.measures import Measure
from dpcal.accountants.inversion.limits import SADDLE
from dpcal.accountants.inversion.saddle import chernoff_at, increasing_root
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["ChernoffBounds", "epsilon_estimate", "saddle_tilt"]

Reals = NDArray[np.float64]

# Range of first guesses at a tilt that a quadrature can reach; Newton's method moves on from there.
_FIRST_TILTS = 1e-9, 8.0
# Tilts, over the saddle, at which a small measure is bounded: good for every epsilon nearby.
_AROUND = np.array([0.8, 0.9, 1.0, 1.1, 1.2])


def _first_tilt(guess: float, measure: Measure | Total) -> float:
    """Return a first guess that a quadrature can reach."""
    return min(max(guess, _FIRST_TILTS[0]), max(_FIRST_TILTS[1], measure.steep))


def _spread(measure: Measure | Total) -> tuple[float, float]:
    """Return mean and variance of a measure; refuse an atom, which has no saddle."""
    mean, variance = measure.at_zero
    if not (variance > 0 and math.isfinite(mean) and math.isfinite(variance)):
        raise OutOfReach
    return mean, variance


def saddle_tilt(measure: Measure, epsilon: float) -> float:
    """Return the minimiser c > 0 of K(c) - epsilon c - log c - log(1 + c), K the log transform.

    Raises
    ------
    OutOfReach
        If there is no saddle that a quadrature of affordable size reaches.
    """

    def equation(c: float) -> tuple[float, float, float]:
        log_mass, mean, variance = (float(value) for value in measure.cumulants([c])[0])
        value = mean - epsilon - 1 / c - 1 / (1 + c)
        integral = log_mass - epsilon * c - math.log(c) - math.log1p(c)
        return value, variance + 1 / c**2 + 1 / (1 + c) ** 2, integral

    start = measure.near
    if not start:
        mean, variance = _spread(measure)
        gap = epsilon - mean
        # Root of variance c^2 - gap c - 1, written without cancellation.
        root = math.sqrt(gap * gap + 4 * variance)
        guess = (gap + root) / (2 * variance) if gap >= 0 else 2 / (root - gap)
        start = _first_tilt(guess, measure)
    found = increasing_root(equation, 0.0, math.inf, start)
    # A guess is replaced, not made: layers are closer where each search finds its own root.
    measure.near = measure.near and found
    return found


def epsilon_estimate(measure: Measure | Total, log_delta: float) -> float:
    """Return the epsilon at which the saddle-point estimate of log delta equals ``log_delta``.

    Raises
    ------
    OutOfReach
        If no quadrature of affordable size reaches its saddle.
    """

    def equation(c: float) -> tuple[float, float, float]:
        log_mgf, mean, variance = measure.cumulants([c])[0]
        epsilon = mean - 1 / c - 1 / (1 + c)
        curvature = variance + 1 / c**2 + 1 / (1 + c) ** 2
        estimate = (
            log_mgf - c * epsilon - math.log(c * (1 + c)) - 0.5 * math.log(2 * math.pi * curvature)
        )
        return float(log_delta - estimate), float(c * curvature), math.nan

    _, variance = _spread(measure)
    guess = math.sqrt(max(-2 * log_delta, 0.1) / variance)
    c = increasing_root(equation, 0.0, math.inf, _first_tilt(guess, measure))
    _, mean, _ = measure.cumulants([c])[0]
    return float(mean - 1 / c - 1 / (1 + c))


@dataclass(frozen=True)
class ChernoffBounds:
    """Bounds on the contribution of a measure to delta, at some tilts, good for every epsilon.

    Attributes
    ----------
    tilts
        The tilts, all >= 0.
    constants
        At each tilt c, the bound on log delta(epsilon) plus c epsilon.
    saddle
        The saddle of the measure at the given epsilon; None where it is out of reach.
    """

    tilts: Reals
    constants: Reals
    saddle: float | None = None

    @classmethod
    def of_probability(cls, log_probability: float) -> ChernoffBounds:
        """Return the bounds of a measure of which only the mass is known."""
        return cls(np.zeros(1), np.full(1, log_probability))

    @classmethod
    def at_saddle(cls, measure: Measure, epsilon: float) -> ChernoffBounds:
        """Return bounds at tilts around the saddle, which must be in reach."""
        saddle = saddle_tilt(measure, epsilon)
        tilts = saddle * _AROUND
        return cls(tilts, measure.log_chernoff(tilts), saddle)

    @classmethod
    def within_reach(cls, measure: Measure, epsilon: float) -> ChernoffBounds:
        """Return bounds around the saddle; where it is out of reach, at the largest tilts in reach.

        Raises
        ------
        OutOfReach
            If no tilt is in reach.
        """
        with contextlib.suppress(OutOfReach):
            return cls.at_saddle(measure, epsilon)
        c = min(1.0 / max(epsilon, 1 / SADDLE.tilt), SADDLE.tilt)
        reached: list[tuple[float, float]] = []
        for _ in range(SADDLE.trials):
            try:
                reached.append((c, float(measure.log_chernoff(np.array([c]))[0])))
                c *= 2.0
            except OutOfReach:
                if reached:
                    break
                c /= 4.0
        if not reached:
            raise OutOfReach
        tilts, constants = np.array(reached).T
        return cls(tilts, constants)

    def log_bound(self, epsilon: float) -> float:
        """Return the upper bound on log delta(epsilon)."""
        return float(chernoff_at(self.constants, self.tilts, np.array([epsilon]))[0])
