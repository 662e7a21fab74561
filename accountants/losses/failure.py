"""Losses without moments, of mechanisms that may fail outright, and losses without a law.

A mechanism fails if its loss is infinite, with some probability:

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> loss = LossWithFailure(Gaussian(2.0), failure_probability=0.25)
>>> print(f"{loss.upper} {math.exp(loss.log_finite):.2f}")
inf 0.75

For some mechanisms a theorem bounds only the Renyi divergences. The Renyi accountant adds them to
the exact divergences of the other mechanisms; others take a law that dominates, if there is one.

>>> from dpcal.accountants import epsilon, events
>>> answer = epsilon(events.ZCDpEvent(rho=0.5), delta=1e-5)
>>> print(f"{answer:.4f} {answer.accountant}")
4.7284 renyi
>>> print(f"{epsilon(events.GaussianDpEvent(1.0), delta=1e-5, accountant='renyi'):.4f}")
4.7284
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.accountants.losses.base import PrivacyLoss, Reals
from dpcal.accountants.rounding import UNIT
from dpcal.errors import UnsupportedEvent


@dataclass(frozen=True)
class LossWithFailure(PrivacyLoss):
    """A loss that is infinite with some probability, and otherwise follows a law of its own.

    No moment M(c), c > 0, is finite. Accountants that know the law separate the two cases: see
    :attr:`dpcal.accountants.directions.Direction.finite`.

    Parameters
    ----------
    given
        The loss given that it is finite; ``NO_LOSS`` if it is then 0.
    failure_probability
        Probability in (0, 1] that it is infinite.
    below
        A loss that the true loss dominates, if this loss is rounded up; None otherwise.
    """

    given: PrivacyLoss
    failure_probability: float
    below: PrivacyLoss | None = None

    @property
    def log_finite(self) -> float:
        """Log probability that it is finite."""
        return math.log1p(-self.failure_probability) if self.failure_probability < 1 else -math.inf

    @property
    def when_finite(self) -> PrivacyLoss:
        """The loss given that it is finite."""
        return self.given

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return infinities."""
        return np.full((np.size(c), 4), math.inf)

    def log_mgf_bound(self, c: float) -> float:
        """Return infinity."""
        return math.inf


class MomentBound(PrivacyLoss):
    """A mechanism with known Renyi divergences only: bounds on log M, but no law."""

    has_law = False

    def cumulants(self, c: ArrayLike) -> Reals:
        """Refuse: the law is not known."""
        raise UnsupportedEvent(
            f"Only Renyi divergences are known of {self!r}: ask the accountant 'renyi'."
        )

    def log_mgf_bound(self, c: float) -> float:
        """Return the bound on log M(c)."""
        return float(self.moments([c])[0, 0])


class WholeOrders(MomentBound):
    """A mechanism with known Renyi divergences at whole orders: between two, log M is convex."""

    @abstractmethod
    def divergence(self, order: int) -> float:
        """Return a bound on the divergence at a whole order >= 2."""

    def moments(self, c: ArrayLike) -> Reals:
        """Return chords of the bound on log M; their derivatives are steps."""
        rows = []
        for at in np.atleast_1d(c).tolist():
            low = math.floor(at)
            start, end = (k * self.divergence(k + 1) if k else 0.0 for k in (low, low + 1))
            rows.append([(start + (at - low) * (end - start)) * (1 + 8 * UNIT), end - start, 0.0])
        return np.array(rows)


@dataclass(frozen=True)
class Concentrated(MomentBound):
    """Concentrated privacy: Renyi divergence at most xi + rho a at every order a (zCDP).

    Parameters
    ----------
    rho, xi
        Finite numbers >= 0 (Bun and Steinke 2016, Definition 8.1).
    """

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        validate.non_negative(rho=self.rho)
        validate.non_negative(xi=self.xi)

    def moments(self, c: ArrayLike) -> Reals:
        """Return c (xi + rho (1 + c)) and its derivatives."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        curvature = np.full_like(c, 2 * self.rho)
        slope = self.xi + self.rho * (1 + 2 * c)
        return np.column_stack([c * (self.xi + self.rho * (1 + c)), slope, curvature])
