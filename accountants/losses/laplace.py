r"""Losses with a density proportional to exp(l / 2) on [-a, a]: Laplace noise, bounded range.

The privacy loss of Laplace noise of scale 1 / a has that density, less than half of its mass, and
point masses at both ends. If the loss on any two neighbors lies in some interval of length a, a
density dominates the mechanism (:class:`BoundedRange`).

>>> loss = Laplace(scale=2.0)
>>> print(f"{loss.upper} {loss.cumulants([1.0])[0, 0]:.12f}")
0.5 0.200303896174
>>> print(f"{math.log(2 / 3 * math.exp(0.5) + math.exp(-1.0) / 3):.12f}")  # Mironov (2017)
0.200303896174
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpcal.accountants.losses.base import Complexes, Points, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import pure
from dpcal.accountants.losses.lattice import step_within
from dpcal.accountants.rounding import UNIT, rounded_up


@dataclass(frozen=True)
class _Arc:
    """Points on the arc x + i bend (1 - x^2) / 2 from -1 to 1.

    The rule is the trapezoid rule in v, x = tanh(v / 2). In the strip of w = v + i y, abs(y) <=
    strip, the arc is z = s + i bend (1 - s^2) / 2 with s = tanh(w / 2). There

        Im z = sin y / (cosh v + cos y) + bend (1 + cosh v cos y) / (cosh v + cos y)^2

    is not negative where bend >= tan(strip), so that no factor exp(i t z), t >= 0, grows, and

        1 - Re z = ((exp(-v) + cos y) (cosh v + cos y) - bend sinh v sin y) / (cosh v + cos y)^2
                >= near (1 - x),    near = cos(strip) - bend sin(strip) > 0,

    as abs(sinh v) < cosh v + cos y; likewise 1 + Re z >= near (1 + x). With abs(s) < 1, dz / dw is
    at most (1 + bend) / cos^2(strip / 2) times dx / dv. So the integral of abs(exp(rate z) dz) on
    each line of the strip is at most (1 + bend) / (near cos^2(strip / 2)) times that on [-1, 1].
    This bounds the error of the rule for exp((rate + i t) z), for every real rate and t >= 0.

    Parameters
    ----------
    bend
        Twice the height of the arc; 0 for the interval.
    strip
        Half-width of the strip; at most atan(bend) where t > 0.
    beyond
        Length of the rule at each end, in v, beyond 1 / rate.
    """

    bend: float
    strip: float
    beyond: float

    def points(self, rate: float) -> tuple[Complexes, Complexes, float]:
        """Return the distances 1 - z from the upper end, weights, and the last distance.

        The points that the rule leaves out at an end are one point, at their mean: the error is of
        second order in the distance.
        """
        near = math.cos(self.strip) - self.bend * math.sin(self.strip)
        growth = (1 + self.bend) / (near * math.cos(self.strip / 2) ** 2)
        step = step_within(self.strip, math.log(growth))
        count = math.ceil((self.beyond + math.log(max(1.0, 2 * rate))) / step)
        v = step * np.arange(-count, count + 1.0)
        # Each 1 - abs(x), and the weight dx; the tails of a geometric series are left out.
        gap = 2 / (1 + np.exp(np.abs(v)))
        size = step * gap * (1 - gap / 2)
        last = 2 * math.exp(-count * step)
        gap = np.pad(gap, 1, constant_values=last / (math.exp(step) + 1))
        size = np.pad(size, 1, constant_values=step * last / math.expm1(step))
        # Distances from the upper end keep their digits there.
        fall = np.where(np.arange(len(gap)) > count, gap, 2 - gap)
        z = fall - 0.5j * self.bend * gap * (2 - gap)
        return z, size * (1 - 1j * self.bend * (1 - fall)), float(gap[0])


_REAL = _Arc(bend=0.0, strip=1.2, beyond=16.0)
_SHIFTED = _Arc(bend=0.85, strip=0.7, beyond=24.0)


class IntervalLoss(PrivacyLoss):
    """A loss with density e l / 2 on [-a, a] under P, times a constant, perhaps with point masses.

    By symmetry it is the same in both directions.
    """

    quick = False
    log_end: float
    """Log of the point mass at a under P; -infinity if there is none."""
    log_density: float
    """Log of the density under P at a."""

    def points(self, highest: float, *, shifted: bool = False) -> Points:
        """Return points between the ends, on the interval or on an arc above it, and the ends."""
        a = self.upper
        fall, weights, gap = (_SHIFTED if shifted else _REAL).points((highest + 0.5) * a)
        logs, merged = self.log_density + np.log(a * weights) - a * fall / 2, 0
        if self.log_end > -math.inf:
            fall = np.concatenate([[2.0], fall, [0.0]])
            logs, merged = np.concatenate([[self.log_end - a], logs, [self.log_end]]), 1
        values, places = a * (1 - fall), (merged, len(fall) - 1 - merged)
        return Points(values, logs, np.full(len(fall), a), np.abs(logs), places, a * gap)

    def log_mgf_bound(self, c: float) -> float:
        """Return c a."""
        return c * self.upper


@dataclass(frozen=True)
class Laplace(IntervalLoss):
    """The Laplace mechanism: P = Laplace(1, b) against Q = Laplace(0, b).

    Parameters
    ----------
    scale
        b > 0, the scale of the noise over the L1 sensitivity.
    """

    scale: float
    log_end = -math.log(2.0)
    log_density = -math.log(4.0)

    @cached_property
    def upper(self) -> float:
        """1 / b, the largest loss, rounded up."""
        nearest = 1.0 / self.scale
        return nearest if math.isinf(nearest) else rounded_up(nearest, 1 / Fraction(self.scale))

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return 1 - exp((epsilon - a) / 2), the closed form for 0 <= epsilon < a."""
        gap = self.upper - epsilon
        if gap <= 0:
            return -math.inf, 0.0
        size = 1 + self.upper / gap
        return math.log(-math.expm1(-gap / 2)), 16 * UNIT * size


@dataclass(frozen=True)
class BoundedRange(IntervalLoss):
    """The tightest pair that dominates every mechanism of bounded range.

    If the loss on any two neighbors lies in an interval of length epsilon, then in the worst case
    it is t or t - epsilon, for some t (Dong, Durfee and Rogers 2020). The supremum over t of these
    privacy profiles at x = exp(epsilon') is (sqrt(E) - sqrt(x))^2 / (E - 1), E = exp(epsilon): it
    is convex, hence the profile of a pair (Zhu, Dong and Wang 2022, Proposition 8) with this law of
    the loss. Compositions of a dominating pair dominate adaptive ones (their Theorem 10). At each
    single order the worst t gives a smaller Renyi divergence than the pair has.

    Parameters
    ----------
    epsilon
        Length > 0 of the interval.
    """

    epsilon: float
    renyi_is_tighter = True
    log_end = -math.inf
    """The ends have no mass of their own."""

    @property
    def upper(self) -> float:
        """Epsilon."""
        return self.epsilon

    @property
    def log_density(self) -> float:  # type: ignore[override]
        """Log of 1 / (2 - 2 exp(-epsilon))."""
        return -math.log(2.0) - math.log(-math.expm1(-self.epsilon))

    @property
    def attained(self) -> PrivacyLoss:
        """The loss of an answer with loss epsilon / 2 or -epsilon / 2."""
        return pure(self.epsilon / 2)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form (sqrt(E) - sqrt(x))^2 / (E - 1)."""
        gap = self.epsilon - epsilon
        if gap <= 0:
            return -math.inf, 0.0
        size = 1 + self.epsilon / gap
        log_delta = 2 * math.log(-math.expm1(-gap / 2)) - math.log(-math.expm1(-self.epsilon))
        return log_delta, 32 * UNIT * size

    def moments(self, c: ArrayLike) -> Reals:
        """Return the largest log M(c) of any pair of losses t and t - epsilon, and derivatives.

        With T = exp(t), M(c) is T^c (A - B T) / (E - 1), A = E - E^-c, B = 1 - E^-c, largest at T =
        c A / ((1 + c) B).
        """
        c = np.atleast_1d(np.asarray(c, dtype=float))
        return self.by_differences(self._worst, c, 1e-4 * np.maximum(c, 1e-3))

    def _worst(self, c: Reals) -> Reals:
        epsilon = self.epsilon
        # The formula has a removable singularity at c = 0.
        c = np.where(np.abs(c) < 1e-12, 1e-12, c)
        log_a = np.log(-np.expm1(-(1 + c) * epsilon)) - np.log1p(c)
        log_t = epsilon + log_a - np.log(-np.expm1(-c * epsilon) / c)
        large = np.maximum(c, 1.0)
        ratio = np.exp(-large * epsilon) * np.expm1(-epsilon) / np.expm1(-large * epsilon)
        log_t = np.where(c > 1, epsilon - np.log1p(1 / large) + np.log1p(ratio), log_t)
        return np.asarray(c * np.minimum(log_t, epsilon) + log_a - math.log(-math.expm1(-epsilon)))
