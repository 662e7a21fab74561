r"""Which events does a run cost no more than? A mean over public knowledge, plus a tail.

Whoever is told something that does not depend on a record, such as its group or the residues of
its rounds, faces one of several events. Divergences are jointly convex, so that not being told
costs no more than the mean of their prices. A tail is the probability of the cases that no event
covers.

>>> from dpcal.accountants import events
>>> never, always = events.NoOpDpEvent(), events.GaussianDpEvent(2.0)
>>> half = Reduction(((0.5, never), (0.5, always)), "a coin is known, {}")
>>> found = half.log_delta(1.0)
>>> print(f"{math.exp(found.value):.6f} {found.method}")   # half of the Gaussian's
0.003415 a coin is known, closed form
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from dpcal.accountants import events
from dpcal.accountants.answers import Epsilon, LogDelta
from dpcal.accountants.correlated.bounds.base import Bound, Moments, Proof, mixed_moments
from dpcal.accountants.interface import epsilon as event_epsilon, log_delta as event_log_delta
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import exp_down

__all__ = ["Reduction", "composed", "moments_of"]

# Relative rounding of a sum of chances, outward.
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Reduction(Bound):
    """Bounds on both directions by the mean of prices of events.

    Parameters
    ----------
    parts
        Chances, rounded up, and events.
    name
        Name of the bound; ``{}`` stands for the method of the worst event.
    relation
        The neighboring relation that events are priced under.
    tail
        Probability of the cases that no event covers, a part of delta.
    exact
        Whether the run has the price of its one event, and is not only bounded by it.
    """

    parts: tuple[tuple[float, events.DpEvent], ...]
    name: str
    relation: str = "add-or-remove-one"
    tail: float = 0.0
    exact: bool = False

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        found = [_log_delta(event, epsilon, self.relation) for _, event in self.parts]
        logs = [
            math.log(chance) + each.upper
            for (chance, _), each in zip(self.parts, found, strict=True)
        ]
        if len(logs) > 1 or self.tail:
            logs = [float(logsumexp([*logs, math.log(self.tail or 1e-300)])) + _ROUNDING]
        worst = max(found, key=lambda each: each.upper)
        return Proof(min(0.0, logs[0]), self.name.format(worst.method))

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1), of which events have equal parts."""
        part = (delta - self.tail) * (1 - _ROUNDING) / len(self.parts)
        if part <= 0:
            return Proof(math.inf, self.name)
        if self.parts[0][0] == len(self.parts) == 1 and not self.tail:
            part = delta
        found = [
            _epsilon(event, part / chance, self.relation)
            for chance, event in self.parts
            if chance > part
        ]
        worst = max(found, key=lambda each: each.upper, default=None)
        if worst is None:
            return Proof(0.0, self.name.format("trivial"))
        return Proof(worst.upper, self.name.format(worst.method))

    def moments(self, c: float, direction: str) -> Moments:
        """Return the log of the mean of the events' moments; unknown where there is a tail."""
        if self.tail:
            return super().moments(c, direction)
        found = [moments_of(event, self.relation, c, direction) for _, event in self.parts]
        return mixed_moments(np.array([chance for chance, _ in self.parts]), np.array(found))

    def lower_delta(self, epsilon: float) -> float:
        """Return a number below delta at an epsilon >= 0; 0 where events only bound it."""
        if not self.exact:
            return 0.0
        return exp_down(_log_delta(self.parts[0][1], epsilon, self.relation).lower)

    def lower_epsilon(self, delta: float) -> float:
        """Return a number below epsilon at a delta in (0, 1); 0 where events only bound it."""
        return _epsilon(self.parts[0][1], delta, self.relation).lower if self.exact else 0.0


# An answer asks for the upper end of a price, and then for its lower end.
@lru_cache(maxsize=16)
def _epsilon(event: events.DpEvent, delta: float, relation: str) -> Epsilon:
    return event_epsilon(event, delta=delta, neighboring_relation=relation)


@lru_cache(maxsize=16)
def _log_delta(event: events.DpEvent, epsilon: float, relation: str) -> LogDelta:
    return event_log_delta(event, epsilon=epsilon, neighboring_relation=relation)


@lru_cache(maxsize=64)
def _totals(event: events.DpEvent, relation: str) -> dict[str, Total]:
    directions = decompose(event, relation).directions
    return {direction.name: Total(direction.parts) for direction in directions}


def moments_of(event: events.DpEvent, relation: str, c: float, direction: str) -> Moments:
    """Return a bound on log M(c), c > 0, of one direction of an event."""
    totals = _totals(event, relation)
    total = totals.get(direction) or totals["both"]
    try:
        return Moments(*map(float, total.moments([c])[0]))
    except OutOfReach:
        # The slope of a chord from 0 is below that of a convex function.
        bound = float(total.log_mgf_bounds(np.array([c]))[0])
        return Moments(bound, bound / c, 0.0)


def composed(parts: Iterable[tuple[events.DpEvent, int]]) -> events.DpEvent:
    """Return a composition that can be a key, without events that happen no time."""
    found = tuple(events.SelfComposedDpEvent(event, count) for event, count in parts if count)
    return found[0] if len(found) == 1 else events.ComposedDpEvent(found)
