"""What does one uniformly random round an epoch cost, without draws? Independent noise.

The transform of the loss is inverted on contours (:mod:`dpcal.accountants.losses.allocation`).

>>> bound = Allocated(norm=1.0, rounds=100, epochs=1)
>>> 2.1544e-3 < bound.lower_delta(0.25) < bound.delta(0.25) < 2.1635e-3
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpcal.accountants import events
from dpcal.accountants.correlated.bounds.base import Bound, Proof
from dpcal.accountants.interface import epsilon as event_epsilon, log_delta as event_log_delta

__all__ = ["LARGEST_NORM", "Allocated"]

# Norm from which noise reveals participations: the bound for known participations is as good.
LARGEST_NORM = 20.0


@dataclass(frozen=True, eq=False)
class Allocated(Bound):
    """Bounds on both directions for one uniformly random round an epoch.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds
        Number t >= 1 of rounds of an epoch.
    epochs
        Number >= 1 of epochs, whose rounds are drawn independently.
    """

    norm: float
    rounds: int
    epochs: int

    method: ClassVar[str] = "contour"

    @cached_property
    def _event(self) -> events.DpEvent:
        epoch = events.RandomAllocationDpEvent(1 / self.norm, self.rounds)
        return events.SelfComposedDpEvent(epoch, self.epochs)

    @cached_property
    def _found(self) -> dict[tuple[str, float], tuple[Proof, float]]:
        return {}

    def _both(self, asked: str, at: float) -> tuple[Proof, float]:
        """Return upper and lower end of log delta at an epsilon, or of epsilon at a delta."""
        if (asked, at) not in self._found:
            exact = (
                event_epsilon(self._event, delta=at)
                if asked == "epsilon"
                else event_log_delta(self._event, epsilon=at)
            )
            self._found[asked, at] = Proof(exact.upper, exact.method), exact.lower
        return self._found[asked, at]

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        return self._both("log delta", epsilon)[0]

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        return self._both("epsilon", delta)[0]

    def lower_delta(self, epsilon: float) -> float:
        """Return a number below delta at an epsilon >= 0."""
        return math.exp(self._both("log delta", epsilon)[1]) * (1 - 1e-15)

    def lower_epsilon(self, delta: float) -> float:
        """Return a number below epsilon at a delta in (0, 1)."""
        return self._both("epsilon", delta)[1]
