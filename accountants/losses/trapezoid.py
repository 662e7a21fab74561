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
from dpcal.accountants.losses.base import Complexes, Reals
from dpcal.accountants.losses.lattice import (
    LARGEST_ANGLE,
    LOG_TOLERANCE,
    RANGE,
    growth_of,
    narrowed,
    relevant,
    spaced,
    step_within,
)
from dpcal.accountants.losses.quadrature import argument_sizes, exponents_of

__all__ = ["Limits", "TrapezoidRule"]

# Points of a rule without limits of its own: 2 MB for each array. With fewer, small noise has
# no exact answer; with more, one evaluation takes longer than a whole answer may.
_MAX_POINTS = 1 << 18
# Least power that every rule serves: a search for a saddle begins below it.
_LEAST_POWER = 8.0


@dataclass(frozen=True)
class Limits:
    """Limits of a rule: its ends, the shift of its line, and its number of points.

    Attributes
    ----------
    angle
        Largest angle of the shifted line, in (0, 1.5].
    floor, ceiling
        No point lies below the floor or above the ceiling.
    points
        Most points: a rule with more is refused.
    width
        Width of the narrowest normal law that multiplies the integrand; infinite for none.
    """

    angle: float = LARGEST_ANGLE
    floor: float = -math.inf
    ceiling: float = math.inf
    points: int = _MAX_POINTS
    width: float = math.inf


class TrapezoidRule:
    """Points for the integrals of phi_sigma(x) w(x)^p, lowest <= p <= highest.

    The error of the rule is bounded on the lines Im x = +-shift of the strip of analyticity. The
    step makes it smaller than :data:`LOG_TOLERANCE`, both on the real line and on the shifted line
    Im x = shift.

    Parameters
    ----------
    q, sigma
        Sampling probability in (0, 1) and noise multiplier > 0.
    lowest, highest
        The powers.
    limits
        Limits of the points.

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
        # All points above a floor are included, however improbable.
        end = RANGE * sigma + self.highest if limits.floor == -math.inf else math.inf
        self.high = min(end, limits.ceiling)
        angle = min(limits.angle, LARGEST_ANGLE / sigma)
        if self.lowest < 0:
            angle = narrowed(angle, self._growth)
        self.angle = angle
        self.step = self._step(angle)
        self.x = self._points(self.step)
        self.ell = self.log_weight(self.x, 0.0)
        self.log_base = self.log_density(self.x, 0.0)
        self.prepared = prepared_moments(self.ell, self.log_base)

    def serves(self, lowest: float, highest: float) -> bool:
        """Return whether the rule is long enough for all powers between these."""
        return self.lowest <= lowest and highest <= self.highest

    def _step(self, angle: float) -> float:
        shift = angle * self.sigma**2
        # Far from the real line the density grows, and so does the share of a cut.
        growth = 2 * (shift / self.sigma) ** 2 + 2 * (shift / self._limits.width) ** 2
        return step_within(shift, growth)

    def _points(self, step: float) -> Reals:
        return spaced(self.low, self.high, step, most=self._limits.points)

    def _growth(self, angle: float) -> float:
        """Return the growth of the integral of the lowest power up to the strip's far edge."""
        x = self._points(self._step(angle))
        density = self.log_density(x, 0.0)
        on_line = density + self.lowest * self.log_weight(x, 0.0)
        return growth_of(on_line, density + self.lowest * self.log_weight(x, 2 * angle).real)

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
        keep = relevant(ell, exponents, mean, variance)
        return ell[keep], np.exp(exponents[keep]), x[keep]

    def _window(self, power: float, moments: Reals) -> slice | NDArray[np.intp]:
        """Return a superset of the rows that count on a shifted line, from the real weights.

        For positive powers abs(w) is largest on the real line, so that a point's weight relative to
        the mass grows by at most exp((angle sigma)^2 / 2) < 4, and the sum over the shifted line
        has the same mass.
        """
        if power < 0:
            return slice(None)
        sizes = self.log_base + power * self.ell - moments[0]
        # Angles are below 2, so the squares of imaginary parts of log w are below 4.
        sizes += np.log1p(((self.ell - moments[1]) ** 2 + 4.0) / moments[2])
        return np.flatnonzero(sizes > LOG_TOLERANCE - 20.0)

    def exponents(
        self, ell: Complexes, weights: Complexes, x: Reals, power: float, log_mass: float
    ) -> Reals:
        """Return the sizes of the terms of the logarithms of weights on the shifted line."""
        u: Complexes = (x - 0.5) / self.sigma**2 + np.complex128(1j * self.angle)
        sizes = exponents_of(ell, weights, power, log_mass)
        return np.asarray(sizes + abs(power) * argument_sizes(self.q, u, ell))

    def log_density(self, x: Reals, angle: float) -> Any:
        """Return log(step phi_sigma(x + i angle sigma^2)); real for an angle of 0."""
        scaled = x / self.sigma
        size = -0.5 * scaled * scaled + 0.5 * (angle * self.sigma) ** 2
        step = getattr(self, "step", 1.0)
        size += math.log(step / (self.sigma * math.sqrt(2 * math.pi)))
        return size - 1j * angle * x if angle else size

    def log_weight(self, x: Reals, angle: float) -> Any:
        """Return log w(x + i angle sigma^2), with the digits of w - 1; real for an angle of 0."""
        return mixture_log_weights(x, self.q, self.sigma, angle)
