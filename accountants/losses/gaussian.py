r"""The Gaussian mechanism: all properties of its privacy loss are known in closed form.

>>> Gaussian(noise_multiplier=2.0).log_mgf_bound(1.0)    # (c^2 + c) / (2 sigma^2)
0.25
>>> log_delta, _ = Gaussian(noise_multiplier=2.0).log_delta(0.0)
>>> print(f"{math.exp(log_delta):.6f}")                  # 2 Phi(1 / (2 sigma)) - 1
0.197413
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.question import Law
from dpcal._internal import validate
from dpcal._internal.lazy import special
from dpcal.accountants.losses.base import PrivacyLoss, Reals
from dpcal.accountants.rounding import UNIT


@dataclass(frozen=True)
class Gaussian(PrivacyLoss):
    """The Gaussian mechanism: P = N(1, sigma^2), Q = N(0, sigma^2), the same in both directions.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise over the L2 sensitivity, > 0.
    below
        A loss that the true loss dominates, if this loss only dominates it; None otherwise.
    """

    noise_multiplier: float
    below: PrivacyLoss | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        validate.positive(noise_multiplier=self.noise_multiplier)

    @property
    def opposite(self) -> Gaussian:
        """The same loss: it is symmetric."""
        return self

    @property
    def _variance(self) -> float:
        return 1.0 / self.noise_multiplier**2

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, in closed form."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        v, rows = self._variance, np.empty((len(c), 4))
        rows[:, 0], rows[:, 1] = v * (c * c + c) / 2, v * (c + 0.5)
        rows[:, 2:] = v, 3 * v * v
        return rows

    def log_mgf_bound(self, c: float) -> float:
        """Return log M(c) itself."""
        return self._variance * (c * c + c) / 2

    @cached_property
    def compiled(self) -> Law:
        """The loss as one compiled call takes it."""
        return Law.gaussian(self._variance)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form of Balle and Wang (2018), Theorem 8."""
        return log_gaussian_delta(epsilon, 1.0 / self.noise_multiplier)


def log_gaussian_delta(epsilon: float, mu: float) -> tuple[float, float]:
    """Return log delta(epsilon) of N(mu, 1) against N(0, 1) and its relative error.

    delta = Phi(-a) - exp(epsilon) Phi(-b), a = epsilon / mu - mu / 2, b = a + mu. As phi(a) =
    exp(epsilon) phi(b), this is phi(a) times a difference of Mills ratios, free of overflow.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < -5.0:
        # The first term is 1 up to 3e-7: no cancellation.
        first, second = math.exp(special.log_ndtr(-a)), math.exp(epsilon + special.log_ndtr(-b))
        return math.log(first - second), 64 * UNIT * (1 + abs(epsilon)) / (first - second)
    ratios = math.sqrt(math.pi / 2) * special.erfcx(np.array([a, b]) / math.sqrt(2))
    gap = float(ratios[0] - ratios[1])
    if gap <= 0.0:
        # Equal up to rounding: the gap is at most mu times the slope at a, R'(a) = a R(a) - 1.
        return -math.inf, math.inf
    log_density = -0.5 * a * a - 0.5 * math.log(2 * math.pi)
    error = UNIT * (16 * float(ratios[0]) / gap + 8 * a * a + 8)
    return log_density + math.log(gap), error
