r"""At which points is a sampled Gaussian integrated? The trapezoid rule, with its error bounded.

Every moment of a Poisson-sampled Gaussian is an integral of phi_sigma(x) w(x)^p over the noise x,
with w(x) = 1 - q + q exp((2 x - 1) / (2 sigma^2)). The integrand is analytic in the strip abs(Im x)
< pi sigma^2, so that the rule with equally spaced points converges geometrically, on the real line
and on lines Im x = shift within the strip.

>>> rule = TrapezoidRule(0.01, 1.0, lowest=0.0, highest=8.0)
>>> print(f"{math.fsum(np.exp(rule.log_base)):.12f}")          # Q has mass 1
1.000000000000
>>> print(f"{math.fsum(np.exp(rule.log_base + rule.ell)):.12f}")  # and so has P
1.000000000000
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.contour import mixture_log_weights, prepared_moments
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.quadrature import argument_sizes, exponents_of

__all__ = ["LOG_TOLERANCE", "RANGE", "Limits", "TrapezoidRule", "restricted_moments"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Log of what the rule may miss, relative to terms of second order in the loss. At 1e-19 the error
# is a thousandth of a unit in the last place. Half as many digits would show in every answer; twice
# as many would double the points and show nowhere.
LOG_TOLERANCE = math.log(1e-19)
# Half-width of the range in standard deviations of the noise: beyond it a normal law has 2e-21. At
# half of it the tails that are left out would exceed the tolerance; twice of it doubles the points.
RANGE = 9.5
# Largest angle of the shifted line, in radians of the argument of exp((2 x - 1) / (2 sigma^2)). The
# strip ends at pi, and the rule's error is bounded at twice the angle. Half of it doubles the
# points.
_LARGEST_ANGLE = 1.5
# Points of a rule without limits of its own: 2 MB for each array. With more, one evaluation takes
# longer than a whole answer may; with half as many, small noise is refused an exact answer.
_MAX_POINTS = 1 << 18
# Growth of an integrand of negative power up to the far edge of the strip, at which the strip is
# wide enough: the bound on the rule's error has room for a factor of exp(4).
_MAX_GROWTH = 8.0
# Smallest power up to which a rule serves: a search for a saddle begins below it. Half of it makes
# such searches build several rules; twice of it makes all rules longer.
_LEAST_POWER = 8.0
# Log of a weight that a probability does not feel: exp(-200) is far below a unit in the last place.
_NO_WEIGHT = -200.0
# Probabilities of the events to which a law is restricted when its decay is bounded: the more of
# them, the sharper the bound, at a table look-up each.
_SHARES = np.array([0.6, 0.75, 0.85, 0.93, 0.97, 0.99, 0.999, 0.9999, 1.0])


@dataclass(frozen=True)
class Limits:
    """Where a rule begins and ends, how far its line is shifted, and how many points it has.

    Attributes
    ----------
    angle
        Largest angle of the shifted line, in (0, 1.5].
    floor, ceiling
        No point lies below the floor or above the ceiling.
    points
        With more points than this the rule is refused.
    width
        Width of the narrowest normal law by which the integrand is multiplied; infinite for none.
    """

    angle: float = _LARGEST_ANGLE
    floor: float = -math.inf
    ceiling: float = math.inf
    points: int = _MAX_POINTS
    width: float = math.inf


class TrapezoidRule:
    """Points for the integrals of phi_sigma(x) w(x)^p, lowest <= p <= highest.

    The step makes the rule's error, bounded on the lines Im x = +-shift of the strip of
    analyticity, smaller than :data:`LOG_TOLERANCE` says, both on the real line and on the shifted
    line Im x = shift.

    Parameters
    ----------
    q, sigma
        Sampling probability in (0, 1) and noise multiplier > 0.
    lowest, highest
        The powers.
    limits
        Of the points.

    Raises
    ------
    OutOfReach
        If the rule takes more points than its limits allow.
    """

    def __init__(
        self,
        q: float,
        sigma: float,
        lowest: float,
        highest: float,
        limits: Limits | None = None,
    ) -> None:
        self.q, self.sigma = q, sigma
        self._limits = limits = limits or Limits()
        # Rounded outward, so that a search for a saddle seldom needs a wider lattice.
        self.lowest = 0.0
        if lowest < 0:
            self.lowest = -(2.0 ** math.ceil(math.log2(max(_LEAST_POWER, -lowest))))
        self.highest = max(_LEAST_POWER, highest)
        if math.isinf(limits.ceiling):
            self.highest = 2.0 ** math.ceil(math.log2(self.highest))
        at_zero = q * math.exp(-0.5 / sigma**2) if sigma > 0.03 else 0.0
        self.low = -RANGE * sigma + self.lowest * min(1.0, at_zero / (1 - q + at_zero))
        self.low = max(self.low, limits.floor)
        # Everything above a floor is included, however improbable it is.
        end = RANGE * sigma + self.highest if limits.floor == -math.inf else math.inf
        self.high = min(end, limits.ceiling)
        angle = min(limits.angle, _LARGEST_ANGLE / sigma)
        if self.lowest < 0:
            angle = self._angle_for_negative_powers(angle)
        self.angle = angle
        self.step = self._step(angle)
        self.x = self._points(self.step)
        self.ell = self.log_weight(self.x, 0.0).real.copy()
        self.log_base = self.log_density(self.x, 0.0).real.copy()
        self.prepared = prepared_moments(self.ell, self.log_base)

    def serves(self, powers: Reals) -> bool:
        """Whether the rule is long enough for these powers."""
        return bool(self.lowest <= powers.min() and powers.max() <= self.highest)

    def _step(self, angle: float) -> float:
        shift = angle * self.sigma**2
        # Far from the real line the density grows, and so does a cut's share.
        growth = 2 * (shift / self.sigma) ** 2 + 2 * (shift / self._limits.width) ** 2
        return 2 * math.pi * shift / (4.0 - LOG_TOLERANCE + growth)

    def _points(self, step: float) -> Reals:
        if (self.high - self.low) / step > self._limits.points:
            raise OutOfReach
        return step * np.arange(math.floor(self.low / step), math.ceil(self.high / step) + 1.0)

    def _angle_for_negative_powers(self, angle: float) -> float:
        """Shrink the strip until abs(w)^p on its far edge is within a factor of the real line."""
        while True:
            x = self._points(self._step(angle))
            density = self.log_density(x, 0.0).real
            on_line = density + self.lowest * self.log_weight(x, 0.0).real
            on_edge = density + self.lowest * self.log_weight(x, 2 * angle).real
            peak = on_line.max()
            growth = np.exp(np.minimum(on_edge - peak, 700.0)).sum() / np.exp(on_line - peak).sum()
            if growth < _MAX_GROWTH:
                return angle
            angle /= math.sqrt(2.0)

    def tilted(
        self,
        power: float,
        moments: Reals,
        angle: float,
        log_share: Callable[[Reals, float], Any] | None = None,
    ) -> tuple[Complexes, Complexes, Reals]:
        """Return log w, weights and points on a shifted line, without points that do not count.

        Parameters
        ----------
        power
            The weights are proportional to the density times w^power.
        moments
            Log mass, mean and variance of log w under these weights. Points whose weight is
            negligible, also in the variance, are left out.
        angle
            The line is Im x = angle sigma^2.
        log_share
            Log of a factor of the density, from points x and the line's distance; None for 1.
        """
        log_mass, mean, variance = moments[:3]
        rows = self._window(power, moments)
        x = self.x[rows]
        ell = self.log_weight(x, angle)
        share = 0.0 if log_share is None else log_share(x, angle * self.sigma**2)
        exponents = self.log_density(x, angle) + power * ell - log_mass + share
        square = (ell.real - mean) ** 2 + ell.imag**2
        relevant = exponents.real + np.log1p(square / variance)
        keep = relevant > LOG_TOLERANCE + relevant.max()
        return ell[keep], np.exp(exponents[keep]), x[keep]

    def _window(self, power: float, moments: Reals) -> slice | NDArray[np.intp]:
        """Rows that may count on a shifted line: a superset, from the weights on the real one.

        For positive powers abs(w) is largest on the real line, so that a point's weight relative to
        the mass grows by at most exp((angle sigma)^2 / 2) < 4, and the sum over the shifted line
        has the same mass.
        """
        if power < 0:
            return slice(None)
        sizes = self.log_base + power * self.ell - moments[0]
        # Angles are below 2, and squares of imaginary parts of log w with them.
        sizes += np.log1p(((self.ell - moments[1]) ** 2 + 4.0) / moments[2])
        return np.flatnonzero(sizes > LOG_TOLERANCE - 20.0)

    def exponents(
        self, ell: Complexes, weights: Complexes, x: Reals, power: float, log_mass: float
    ) -> Reals:
        """Sizes of the terms of the logarithms of weights on the shifted line."""
        u: Complexes = (x - 0.5) / self.sigma**2 + np.complex128(1j * self.angle)
        sizes = exponents_of(ell, weights, power, log_mass)
        return np.asarray(sizes + abs(power) * argument_sizes(self.q, u, ell))

    def log_density(self, x: Reals, angle: float) -> Complexes:
        """log(step phi_sigma(x + i angle sigma^2))."""
        scaled = x / self.sigma
        size = -0.5 * scaled * scaled + 0.5 * (angle * self.sigma) ** 2
        step = getattr(self, "step", 1.0)
        size += math.log(step / (self.sigma * math.sqrt(2 * math.pi)))
        return size - 1j * angle * x

    def log_weight(self, x: Reals, angle: float) -> Complexes:
        """Log w(x + i angle sigma^2), keeping the digits of w - 1."""
        return mixture_log_weights(x, self.q, self.sigma, angle)


def restricted_moments(ell: Reals, log_base: Reals, power: float, moments: Reals) -> Reals:
    """Probability, variance and fourth central moment of a tilted law on the events x <= x_j.

    ``moments`` holds its log mass and mean. Leaving out rare large losses makes the fourth moment
    commensurate with the variance.
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
    # Rounding outward; an event too small for its digits is no help anyway.
    rows = np.column_stack([mass * (1 - 1e-9), variance * (1 - 1e-6), fourth * (1 + 1e-6)])
    return np.asarray(rows[(variance > 1e-6 * m2) & (fourth > 0)])
