"""The Poisson-sampled Gaussian mechanism: its privacy loss in either direction.

>>> loss = SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction="remove")
>>> print(f"{loss.mean:.6e} {loss.std:.6e}")
8.381221e-05 1.310078e-02
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.contour import moments_of
from dpcal._ext.question import Law
from dpcal.accountants.losses.base import PrivacyLoss, Reals
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.losses.lattice import restricted_moments
from dpcal.accountants.losses.quadrature import QuadratureTilt
from dpcal.accountants.losses.trapezoid import TrapezoidRule
from dpcal.accountants.rounding import UNIT

__all__ = ["SampledGaussian", "cumulants_of", "log_expm1_over", "log_mgf_bounds_of"]

# Angle of the line on which decay is bounded, times sigma. Weights are smaller on a line nearer to
# the real one, which helps at early times, but they fall more slowly.
_NEARER = 0.6


class _Kept:
    """The last quadrature of a loss, and the last tilt with its cumulants, at once for threads."""

    rule: TrapezoidRule | None = None
    last: tuple[float, Reals] = (math.nan, np.empty(0))


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
        # The last result is kept, since a contour uses its own tilt several times.
        tilt, cumulants = self._kept.last
        if len(c) == 1 and c[0] == tilt:
            return cumulants.copy()
        return np.asarray(cumulants_of([self], c)[0])

    def log_mgf_bound(self, c: float) -> float:
        """Return log(1 - q + q exp((c^2 + c) / (2 sigma^2))).

        It is a bound by convexity of x^(1 + c) and x^(-c).
        """
        return float(self.log_mgf_bounds(np.array([c]))[0])

    def log_mgf_bounds(self, c: Reals) -> Reals:
        """Return the bound at each of many tilts."""
        return np.asarray(log_mgf_bounds_of([self], c)[0])

    @property
    def compiled(self) -> Law:
        """The loss as one compiled call takes it."""
        q, sigma = self.sampling_probability, self.noise_multiplier
        return Law.sampled_gaussian(q, sigma, self.direction == "add")

    def tilt(self, c: float) -> _SampledTilt:
        """Return the tilted law along Re z = c."""
        return _SampledTilt(self, c)

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
    with np.errstate(over="ignore"):
        exponent = (c * c + c) / (2 * sigma**2)
    near = np.log1p(q * np.expm1(np.minimum(exponent, 700.0)))
    far = exponent + np.log(q + (1 - q) * np.exp(-exponent))
    return np.asarray(np.where(exponent < 700, near, far))


def cumulants_of(losses: Sequence[SampledGaussian], c: Reals) -> Reals:
    """Return log M(c) and three moments of several losses of one direction, at each tilt.

    The result has the shape (len(losses), len(c), 4).
    """
    powers = losses[0]._power(c)
    lowest, highest = float(powers.min()), float(powers.max())
    # The sum 1 + c loses digits of a small c, which matter for large epsilons.
    excesses = c if losses[0].direction == "remove" else powers - 1.0
    plain = np.zeros((len(losses), len(c)), dtype=np.uint8)
    tables = [loss._rule(lowest, highest).prepared for loss in losses]
    rows = moments_of(tables, powers, excesses, plain)
    rows[:, :, 1] *= losses[0]._sign
    if len(c) == 1:
        for loss, row in zip(losses, rows, strict=True):
            loss._kept.last = float(c[0]), row.copy()
    return rows


class _SampledTilt(QuadratureTilt):
    """The tilted law of a sampled Gaussian."""

    def __init__(self, loss: SampledGaussian, c: float) -> None:
        power = float(loss._power(c))
        rule = loss._rule(power, power)
        log_mgf, mean, variance, fourth = loss.cumulants([c])[0]
        moments = np.array([log_mgf, loss._sign * mean, variance])
        ell, weights, x = rule.tilted(power, moments, rule.angle)
        near, sizes, _ = rule.tilted(power, moments, min(rule.angle, _NEARER / rule.sigma))
        exponents = rule.exponents(ell, weights, x, power, float(log_mgf))
        if loss.direction == "add":
            weights, ell = weights.conj(), -ell.conj()
        restricted = restricted_moments(rule.ell, rule.log_base, power, moments)
        super().__init__(
            ell,
            weights,
            (float(mean), float(variance), float(fourth)),
            exponents=exponents,
            restricted=restricted,
            nearer=(near, sizes),
        )
