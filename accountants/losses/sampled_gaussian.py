"""The Poisson-sampled Gaussian mechanism: its privacy loss in either direction.

>>> loss = SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction="remove")
>>> print(f"{loss.mean:.6e} {loss.std:.6e}")
8.381221e-05 1.310078e-02

Its moments are integrals over the noise, by the trapezoid rule with its error bounded:

>>> rule = TrapezoidRule(0.01, 1.0, lowest=0.0, highest=8.0)
>>> print(f"{math.fsum(np.exp(rule.log_base)):.12f}")          # Q has mass 1
1.000000000000
>>> print(f"{math.fsum(np.exp(rule.log_base + rule.ell)):.12f}")  # and so has P
1.000000000000
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext.question import Law, mixture_log_weights, moments
from dpcal.accountants.losses.base import Points, PrivacyLoss, Reals
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.losses.lattice import (
    LARGEST_ANGLE,
    RANGE,
    growth_of,
    narrowed,
    spaced,
    step_within,
)
from dpcal.accountants.losses.quadrature import argument_sizes, log_mixture, unit_of
from dpcal.accountants.rounding import UNIT

__all__ = [
    "Limits",
    "SampledGaussian",
    "TrapezoidRule",
    "log_expm1_over",
    "log_mgf_bounds_of",
]

# Angle of the line on which decay is bounded, times sigma. Weights are smaller on a line nearer to
# the real one, which helps at early times, but they fall more slowly.
_NEARER = 0.6
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
    """Points for the integrals of phi_sigma(x) w(x)^p of a :class:`SampledGaussian`.

    Integrands are analytic in the strip abs(Im x) < pi sigma^2, so that the rule with equally
    spaced points converges geometrically, on the real line and on lines Im x = shift within the
    strip. The error of the rule is bounded on the lines Im x = +-shift. The step makes it smaller
    than :data:`~dpcal.accountants.losses.lattice.LOG_TOLERANCE`, both on the real line and on the
    shifted line Im x = shift.

    Parameters
    ----------
    q, sigma
        Sampling probability in (0, 1) and noise multiplier > 0.
    lowest, highest
        The least and the largest power p.
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
        self.log_base = self.log_density(self.x)

    def serves(self, lowest: float, highest: float) -> bool:
        """Return whether the rule is long enough for all powers between these."""
        return self.lowest <= lowest and highest <= self.highest

    def _step(self, angle: float) -> float:
        shift = angle * self.sigma**2
        # Far from the real line the density grows, and so does the share of a cut.
        growth = 2 * (shift / self.sigma) ** 2 + 2 * (shift / self._limits.width) ** 2
        # Up to 2^18 times a step of 35 digits is a number: next to a cut, rounding it would count.
        digits, power = math.frexp(step_within(shift, growth))
        return math.ldexp(math.floor(math.ldexp(digits, 35)), power - 35)

    def _points(self, step: float) -> Reals:
        return spaced(self.low, self.high, step, most=self._limits.points)

    @property
    def exact(self) -> NDArray[Any]:
        """The points, as multiples of the step in the widest numbers."""
        return np.asarray(np.longdouble(self.step) * np.rint(self.x / self.step))

    def _growth(self, angle: float) -> float:
        """Return the growth of the integral of the lowest power up to the strip's far edge."""
        x = self._points(self._step(angle))
        density = self.log_density(x)
        on_line = density + self.lowest * self.log_weight(x, 0.0)
        return growth_of(on_line, density + self.lowest * self.log_weight(x, 2 * angle).real)

    @property
    def _log_scale(self) -> float:
        """Log of the largest density, times the step."""
        return math.log(getattr(self, "step", 1.0) / (self.sigma * math.sqrt(2 * math.pi)))

    def log_density(self, x: Reals) -> Reals:
        """Return log(step phi_sigma(x))."""
        scaled = x / self.sigma
        return -0.5 * scaled * scaled + self._log_scale

    def log_weight(self, x: Reals, angle: float) -> Any:
        """Return log w(x + i angle sigma^2), with the digits of w - 1; real for an angle of 0."""
        return mixture_log_weights(x, self.q, self.sigma, angle)


class _Kept:
    """The last quadrature of a loss, and one with its rows of points, at once for threads."""

    rule: TrapezoidRule | None = None
    rows: tuple[TrapezoidRule | None, Reals] = (None, np.empty((5, 0)))


@dataclass(frozen=True)
class SampledGaussian(PrivacyLoss):
    """The Poisson-sampled Gaussian mechanism in one direction of add-or-remove-one.

    With w(x) = 1 - q + q exp((2 x - 1) / (2 sigma^2)), the mixture (1 - q) N(0, sigma^2) + q N(1,
    sigma^2) has density w relative to N(0, sigma^2). ``"remove"`` has the mixture as P and N(0,
    sigma^2) as Q, ``"add"`` the reverse; together they dominate every pair of neighbors (Zhu, Dong
    and Wang 2022, Theorem 11).

    Parameters
    ----------
    sampling_probability
        q in (0, 1).
    noise_multiplier
        sigma > 0.
    direction
        ``"remove"`` or ``"add"``.

    Notes
    -----
    M(z) is the integral of phi_sigma(x) w(x)^p with p = 1 + z (remove) or p = -z (add). The
    integrand is analytic for abs(Im x) < pi sigma^2. On the line Im x = y > 0 (remove; y < 0 for
    add) every factor w^(i t), t > 0, shrinks, so the trapezoid rule there has an error bounded
    uniformly in t, and its absolute sum bounds abs(M(c + i t)) from above by a quantity that falls
    with t.
    """

    sampling_probability: float
    noise_multiplier: float
    direction: str

    def __post_init__(self) -> None:
        _validate.probability(sampling_probability=self.sampling_probability)
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.choice(("remove", "add"), direction=self.direction)

    @property
    def opposite(self) -> SampledGaussian:
        """The loss of the other direction."""
        return replace(self, direction="add" if self.direction == "remove" else "remove")

    @property
    def upper(self) -> float:
        """Infinity when removing; -log(1 - q), rounded up, when adding."""
        largest = -math.log1p(-self.sampling_probability)
        return math.inf if self.direction == "remove" else largest * (1 + 4 * UNIT)

    @property
    def steep(self) -> float:
        """Tilt, about, up to which sampled records do not count; 0 when adding.

        There q exp(c^2 / (2 sigma^2)) is 1.
        """
        if self.direction == "add":
            return 0.0
        return self.noise_multiplier * math.sqrt(-2 * math.log(self.sampling_probability))

    @property
    def log_unaffected(self) -> float:
        """log(1 - q): the record is not sampled."""
        return math.log1p(-self.sampling_probability)

    @cached_property
    def _kept(self) -> _Kept:
        return _Kept()

    def _power(self, c: Any) -> Any:
        return 1.0 + c if self.direction == "remove" else -c

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "remove" else -1.0

    def _rule(self, lowest: float, highest: float) -> TrapezoidRule:
        """Return the quadrature that serves all powers between these; the last one is kept."""
        rule = self._kept.rule
        if rule is None or not rule.serves(lowest, highest):
            rule = TrapezoidRule(self.sampling_probability, self.noise_multiplier, lowest, highest)
            self._kept.rule = rule
        return rule

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, by the trapezoid rule."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        highest = max(0.0, float(c.max()))
        rule = self._rule(*sorted(self._power(at) for at in (-1.0, highest)))
        known, rows = self._kept.rows
        if known is not rule:
            rows = self.points(highest).real_rows(0.0)
            self._kept.rows = rule, rows
        return moments(rows, c)

    def points(self, highest: float) -> Points:
        """Return the points of the rule on the real line."""
        return self._on(highest, 0.0).real

    def _on(self, highest: float, angle: float) -> Points:
        """Return the points of the rule on a shifted line, at most at the rule's own angle."""
        q, sigma = self.sampling_probability, np.longdouble(self.noise_multiplier)
        lowest, most = sorted(self._power(c) for c in (-1.0, highest))
        rule = self._rule(lowest, most)
        x, turn = rule.exact, 1j * min(angle, rule.angle)
        u = (x - 0.5) / sigma**2 + turn
        ell = log_mixture(q, u)
        logs = -0.5 * (x / sigma + turn * sigma) ** 2 + np.log(rule.step / sigma)
        logs -= 0.5 * np.log(2 * np.longdouble(math.pi))
        if self.direction == "add":
            values, logs = -ell.conj(), logs.conj()
        else:
            values, logs = ell, logs + ell
        unit = unit_of(ell)
        sizes = np.abs(ell) + unit * argument_sizes(q, u, ell)
        terms = np.abs(x / sigma) ** 2 + np.abs(turn * sigma) ** 2 + np.abs(turn * x)
        return Points(values, logs, sizes, unit * (np.abs(logs) + terms + sizes))

    def line(self, highest: float) -> Points:
        """Return the points of the rule on its shifted line."""
        return self._on(highest, math.inf)

    def nearer(self, highest: float) -> Points:
        """Return points on a line on which weights are smaller, which helps at early times."""
        return self._on(highest, _NEARER / self.noise_multiplier)

    def log_mgf_bound(self, c: float) -> float:
        """Return log(1 - q + q exp((c^2 + c) / (2 sigma^2))).

        It is a bound by convexity of x^(1 + c) and x^(-c).
        """
        return float(self.log_mgf_bounds(np.array([c]))[0])

    def log_mgf_bounds(self, c: Reals) -> Reals:
        """Return the bound at each of many tilts."""
        return np.asarray(log_mgf_bounds_of([self], c)[0])

    @cached_property
    def compiled(self) -> Law:
        """The loss as one compiled call takes it."""
        q, sigma = self.sampling_probability, self.noise_multiplier
        return Law.sampled_gaussian(q, sigma, self.direction == "add")

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form of a single use: the Gaussian's delta at an amplified epsilon.

        With exp(u) = 1 + (exp(epsilon) - 1) / q the sampled mechanism has delta = q
        delta_Gaussian(u) when removing (Balle, Barthe and Gaboardi 2018, Theorem 2); when adding,
        delta = exp(epsilon) q (exp(u) Phi(b) - Phi(a)) at the point where the loss is epsilon,
        which is again a Gaussian's delta by symmetry.
        """
        q, mu = self.sampling_probability, 1.0 / self.noise_multiplier
        if self.direction == "remove":
            shifted = log_expm1_over(epsilon, q)
            log_delta, error = log_gaussian_delta(shifted, mu)
            return math.log(q) + log_delta, error + 4 * UNIT * (1 + abs(shifted) / mu**2)
        if epsilon >= self.upper:
            return -math.inf, 0.0
        # exp(u) Phi(b) - Phi(a) = exp(u) (1 - Phi(-b)) - (1 - Phi(-a)), the Gaussian's delta at -u
        # times exp(u).
        u = math.log1p(max(math.expm1(-epsilon) / q, UNIT - 1.0))
        log_delta, error = log_gaussian_delta(-u, mu)
        conditioning = (1 + abs(u) / mu**2) * (1 + abs(math.expm1(-epsilon)) / (q * math.exp(u)))
        return epsilon + math.log(q) + u + log_delta, error + 8 * UNIT * conditioning


def log_expm1_over(epsilon: float, q: float) -> float:
    """Return log(1 + (exp(epsilon) - 1) / q), without overflow."""
    if epsilon < 700:
        return math.log1p(math.expm1(epsilon) / q)
    return epsilon - math.log(q)


def log_mgf_bounds_of(losses: Sequence[SampledGaussian], c: Reals) -> Reals:
    """Return :meth:`SampledGaussian.log_mgf_bound` of losses at tilts, (len(losses), len(c))."""
    q = np.array([[loss.sampling_probability] for loss in losses])
    sigma = np.array([[loss.noise_multiplier] for loss in losses])
    return log_mixture(q, (c * c + c) / (2 * sigma**2))
