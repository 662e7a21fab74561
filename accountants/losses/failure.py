"""A mechanism that may fail outright: its privacy loss is infinite with some probability.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> loss = LossWithFailure(Gaussian(2.0), failure_probability=0.25)
>>> print(f"{loss.upper} {math.exp(loss.log_finite):.2f}")
inf 0.75
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss, Reals, Tilt

__all__ = ["LossWithFailure"]


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
    rounded_down
        A loss that the true loss dominates, if this loss is rounded up; None otherwise.
    rarer
        Another loss that dominates the true loss, whose infinities are rarer and whose finite
        values cost more; None if there is none.
    """

    given: PrivacyLoss
    failure_probability: float
    rounded_down: PrivacyLoss | None = None
    rarer: PrivacyLoss | None = None

    @property
    def below(self) -> PrivacyLoss | None:
        """The loss rounded down."""
        return self.rounded_down

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

    def tilt(self, c: float) -> Tilt:
        """Refuse: an infinite loss has no tilted law."""
        raise OutOfReach
