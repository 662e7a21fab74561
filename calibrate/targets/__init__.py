"""A target (epsilon, delta), and the search for its noise.

>>> from dpcal.accountants import events
>>> target = Target(1.0, 1e-6, "add-or-remove-one")
>>> noises = Noises(target, events.GaussianDpEvent, target.excess, first=1.0)
>>> print(f"{noises.least(noises.origin, slope=-1.0):.4f}")
4.2247
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dpcal._internal import validate
from dpcal._internal.roots import NoBracket, Stop, newton, secant
from dpcal._internal.validate import NoiseOutOfRange
from dpcal.accountants import characteristic, epsilon as epsilon_of, log_delta
from dpcal.accountants.directions import RELATIONS, Composition
from dpcal.accountants.events import DpEvent
from dpcal.accountants.interface import ACCOUNTANTS
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.mechanisms.decompose import decompose, leaves
from dpcal.accountants.rounding import UNIT
from dpcal.errors import BackendRefused, TargetUnreachable

__all__ = ["CHANGE", "FAR", "MOST", "NO_NOISE", "RELATIVE_WIDTH", "EventOf", "Noises", "Target"]

EventOf = Callable[[float], DpEvent]

# Relative distance from a value that misses; with its own rounding within the documented 1e-6.
RELATIVE_WIDTH = 5e-7
# The same for accountants of other packages, which take seconds a question and err by as much.
_OF_OTHERS = 1e-4

# Unit: logarithm of the noise. Largest step of the search: a table may grow with its noise.
FAR = math.log(8)

# Over the first noise, which may be anywhere in units of money; _ENDS where epsilon still changes.
_LEAST = 1e-5
MOST = 1e9
_ENDS = 1e-18, 1e18

# Unit: logarithm of epsilon. A smaller change, beyond these ends, counts as none.
_UNCHANGED = 1e-6

# Relative to a value or in its logarithm: the distance for slopes, which only steer the search.
CHANGE = 1e-3

NO_NOISE = (
    "Every noise multiplier gives epsilon={epsilon!r} at delta={delta!r}: sampling alone meets the "
    "target. Choose a smaller delta."
)
_TOO_MUCH = (
    "No noise multiplier up to {{at:.3g}} gives epsilon={epsilon!r} at delta={delta!r}: {{why}}. "
    "Choose a larger epsilon or delta{{or_else}}."
)
_TOO_LITTLE = (
    "Noise multiplier {{at:.3g}}, the smallest that is tried, already gives epsilon={epsilon!r} at "
    "delta={delta!r}: {{why}}. Choose a smaller epsilon or delta."
)


class Target:
    """How far an event is from its target: the logarithm of its epsilon over the target's."""

    def __init__(
        self, epsilon: float, delta: float, relation: str, accountant: str = "auto"
    ) -> None:
        self.epsilon = validate.non_negative(epsilon=epsilon)
        self.delta = validate.below_one(delta=delta)
        if self.delta == self.epsilon == 0:
            raise ValueError("epsilon must be a finite number > 0 at delta=0, got 0.")
        self.log_delta = math.log(self.delta) if self.delta else -math.inf
        relation = validate.relation(relation)
        self.relation = validate.choice(RELATIONS, neighboring_relation=relation)
        self.accountant = validate.choice(ACCOUNTANTS, accountant=accountant)
        # Contours prove that any noise meets a target, and have slopes.
        self.by_contour = accountant in ("auto", "characteristic")
        self.by_others = accountant in ("pld", "prv")
        self.width = _OF_OTHERS if self.by_others else RELATIVE_WIDTH
        self._how: dict[str, Any] = {
            "neighboring_relation": self.relation,
            "accountant": accountant,
        }

    def excess(self, event: DpEvent) -> float:
        """Return the excess of log epsilon, or, for the target 0, of log delta at 0."""
        if self.epsilon == 0:
            return self.worst_log_delta(event) - self.log_delta
        found = epsilon_of(event, delta=self.delta, **self._how).upper
        if math.isinf(found):
            self.decomposed(event)
        if found <= 0:
            return -math.inf
        value = math.log(found / self.epsilon)
        return max(value, UNIT) if found > self.epsilon else value

    def worst_log_delta(self, event: DpEvent) -> float:
        """Return the upper bound on log delta at the target's epsilon."""
        if not self.by_contour:
            return log_delta(event, epsilon=self.epsilon, **self._how).upper
        directions = self.decomposed(event).directions
        return characteristic.worst_log_delta_bounds(directions, self.epsilon).upper

    def with_slope(
        self, here: DpEvent, there: DpEvent, change: float
    ) -> tuple[float, float | None]:
        """Return the excess of one event, and its slope on the way to another."""
        value = self.excess(here)
        slope = (self.excess(there) - value) / change if math.isfinite(value) else None
        return value, slope if slope is not None and math.isfinite(slope) else None

    def met_by_sampling(self, event: DpEvent, with_less_noise: Callable[[], DpEvent]) -> bool:
        """Whether records are sampled so rarely that any noise meets the target."""
        if self.delta == 0:
            return False
        bound = self._largest_log_delta(event)
        # A table has a largest delta, too, which grows as its noise falls.
        return bound <= self.log_delta and bound == self._largest_log_delta(with_less_noise())

    def _largest_log_delta(self, event: DpEvent) -> float:
        """Return a bound on log delta that holds at every epsilon."""
        directions = self.decomposed(event).directions
        return max(Total(item.parts).log_delta_bound for item in directions)

    def missed_by(self, event: DpEvent) -> bool:
        """Whether the epsilon of an event, which a user would compute, exceeds the target."""
        return bool(epsilon_of(event, delta=self.delta, **self._how) > self.epsilon)

    def decomposed(self, event: DpEvent) -> Composition:
        """Return the losses of an event, which must all be private."""
        composition = decompose(event, self.relation)
        if not composition.private:
            raise TargetUnreachable(
                "The event contains a non-private release: no target can be met."
            )
        return composition

    def unreachable(self, reason: str, **more: object) -> TargetUnreachable:
        """Return the error with which the search for this target ends."""
        sentence = reason.format(epsilon=self.epsilon, delta=self.delta)
        return TargetUnreachable(sentence.format(**more) if more else sentence)


class Noises:
    """The questions of one search, by the logarithm of the noise multiplier.

    Parameters
    ----------
    target
        The target of the search.
    event_of_sigma
        From a noise multiplier to an event.
    excess_of
        From an event to how far it is from the target.
    first
        The noise multiplier from which the search starts.
    """

    def __init__(
        self,
        target: Target,
        event_of_sigma: EventOf,
        excess_of: Callable[[DpEvent], float],
        first: float,
    ) -> None:
        self.target, self.origin = target, math.log(first)
        self._event_of_sigma, self._excess_of = event_of_sigma, excess_of
        self._parts: dict[DpEvent, int] = {}
        self._held = False
        self._x = self._value = self._since = math.nan
        self._refused: dict[float, NoiseOutOfRange] = {}
        self._no_answer: BackendRefused | None = None

    def excess(self, x: float) -> float:
        """Return the excess at x; an infinite one where no accountant takes such a noise."""
        event = self._event_of_sigma(math.exp(x))
        parts = leaves(event)
        same = parts == self._parts
        try:
            value = self._value if same else self._excess_of(event)
        except NoiseOutOfRange as refusal:
            self._refused[x] = refusal
            return math.inf if x < self.origin else -math.inf
        except BackendRefused as refusal:
            self._no_answer = refusal
            return math.inf
        self._held = not self._parts.keys().isdisjoint(parts)
        far = abs(x - self._x) > CHANGE
        self._flat = far and value == self._value
        ended = far and not same and abs(value - self._value) < _UNCHANGED
        self._since = self._since if same else x
        self._x, self._parts, self._value = x, parts, value
        if ended and not math.log(_LEAST) < x - self.origin < math.log(MOST):
            raise NoBracket(x, meets=value <= 0)
        return value

    def least(self, start: float, slope: float, known: Sequence[tuple[float, float]] = ()) -> float:
        """Return the least noise multiplier with an excess of at most 0."""
        through = secant(self.excess, slope, known)

        def with_slope(x: float) -> tuple[float, float | None]:
            value, here = through(x)
            return value, None if self._flat else here

        self._flat = False
        lowest, highest = (self.origin + math.log(end) for end in _ENDS)
        try:
            sides = newton(with_slope, start, lowest, highest, Stop(absolute=self.target.width))
        except NoBracket as found:
            raise self._no_answer or self._without_bracket(found) from None
        if sides.meet in self._refused:
            raise self._without_bracket(NoBracket(sides.miss, meets=False))
        if sides.miss in self._refused:
            raise self._without_bracket(NoBracket(sides.meet, meets=True))
        return math.exp(sides.meet)

    def _without_bracket(self, found: NoBracket) -> TargetUnreachable:
        """Return the error that explains why a search ended on one side."""
        more = ""
        if self._refused:
            refusal = list(self._refused.values())[-1]
            why = f"beyond it, the event's {str(refusal).rstrip('.')}"
        elif self._since != found.at:
            why = f"the event is the same from {math.exp(self._since):.3g} to there"
        elif self._held and not found.meets:
            why = "what the event holds beside this noise already costs more"
            more = ", or make the rest of it cheaper"
        else:
            why = "epsilon hardly changes there"
        sentence = _TOO_LITTLE if found.meets else _TOO_MUCH
        return self.target.unreachable(sentence, at=math.exp(found.at), why=why, or_else=more)
