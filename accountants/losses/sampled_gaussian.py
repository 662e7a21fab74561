"""The Poisson-sampled Gaussian mechanism: its privacy loss in either direction.

>>> loss = SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction="remove")
>>> print("{1:.6e} {2:.6e}".format(*loss.cumulants([0.0])[0]))
8.381221e-05 1.716305e-04
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcal._ext.question import Law
from dpcal._internal import validate
from dpcal.accountants.losses.base import Reals
from dpcal.accountants.losses.below_cut import NormalTail
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.quadrature import log_mixture
from dpcal.accountants.rounding import UNIT


@dataclass(frozen=True)
class SampledGaussian(NormalTail):
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
        validate.probability(sampling_probability=self.sampling_probability)
        validate.positive(noise_multiplier=self.noise_multiplier)
        validate.choice(("remove", "add"), direction=self.direction)

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

    def _power(self, c: float) -> float:
        return 1.0 + c if self.direction == "remove" else -c

    @cached_property
    def mixture(self) -> GaussianMixtures:
        """The same loss from two mixtures; neighbors without the record have one component."""
        q, sigma = self.sampling_probability, self.noise_multiplier
        nothing, rest = ((0.0, 1.0),), (0.0, 1 - q)
        if self.direction == "remove":
            return GaussianMixtures((rest, (1.0, q)), nothing, sigma)
        return GaussianMixtures(nothing, ((-1.0, q), rest), sigma)

    def place_of(self, level: float) -> float:
        """Return where the loss of a removed record is a number > 0, on the axis of the noise."""
        sigma = self.noise_multiplier
        return sigma * log_expm1_over(level, self.sampling_probability) + 0.5 / sigma

    def log_mgf_bound(self, c: float) -> float:
        """Return log(1 - q + q exp((c^2 + c) / (2 sigma^2))).

        It is a bound by convexity of x^(1 + c) and x^(-c).
        """
        return float(log_mgf_bounds_of([self], np.array([c]))[0, 0])

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
        # exp(u) Phi(b) - Phi(a) is exp(u) times the Gaussian's delta at -u.
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
