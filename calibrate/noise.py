"""How much noise does a target need? One free parameter of an event, solved for (epsilon, delta).

Every solver computes the *upper* bound of epsilon, so that its answer meets the target; steps are
those of the secant method or of differences, safeguarded by bisection. Every solver takes the
target as keywords ``epsilon`` >= 0, ``delta`` in (0, 1) and ``neighboring_relation``, which is
``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

>>> from dpcal.accountants import events
>>> def event(noise_multiplier):
...     return events.dpsgd(
...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=10_000
...     )
>>> print(f"{noise_multiplier(event, epsilon=2.0, delta=1e-6):.4f}")
2.3556
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attr
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _annexes, _validate
from dpcal._roots import NoBracket, Stop, largest_whole, newton, secant
from dpcal._validate import NoiseOutOfRange
from dpcal.accountants import characteristic, delta as delta_of, epsilon as epsilon_of, events
from dpcal.accountants.directions import RELATIONS, Composition
from dpcal.accountants.events import (
    DpEvent,
    RandomAllocationDpEvent,
    RepeatAndSelectDpEvent,
    ShuffledEpochsDpEvent,
)
from dpcal.accountants.interface import has_bracket
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.leaves import leaves
from dpcal.accountants.rounding import UNIT
from dpcal.errors import TargetUnreachable

__all__ = ["batch_size", "noise_multiplier", "noise_multipliers", "sampling_probability", "steps"]

EventOf = Callable[[float], DpEvent]
EventOfCount = Callable[[int], DpEvent]
Excess = Callable[[float], tuple[float, float | None]]

# Relative: an answer is within this distance of a value that misses the target, so that with its
# own rounding it is within the documented 1e-6.
_RELATIVE_WIDTH = 5e-7

# Unit: logarithm of the noise multiplier. A guess further than twice this from the last answer is
# not taken: the polynomial runs away.
_NEAR = 0.5

# Unit: logarithm of the noise multiplier. No question is further than this from all before it: an
# event may be a table whose size grows with its noise.
_FAR = math.log(8)

# Slope of log epsilon in log sigma where no other is known.
_FALL = -1.0

# Number of answers from which the next one of a grid is extrapolated, by a cubic polynomial: more
# would follow the rounding of the answers.
_NEIGHBORS = 4

# Relative to the first noise multiplier: the smallest and the largest that are tried, and how far
# the search goes where epsilon still changes. In units of incomes or of money, the first one may be
# anywhere.
_LEAST = 1e-5
_MOST = 1e9
_ENDS = 1e-18, 1e18

# Unit: logarithm of epsilon. A change below it, beyond these ends, is none.
_UNCHANGED = 1e-6

# Events, each with 8 times the noise of the last, that must hold what is said to be beside it.
_HELD = 3

# Relative to a value or in its logarithm: the distance over which slopes are taken. They steer the
# search only.
_CHANGE = 1e-3

# Smallest sampling probability that is tried: below it a run uses almost no record.
_LEAST_PROBABILITY = 1e-12

_NO_NOISE = (
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
_BESIDES = "what the event holds beside this noise already costs more"


class _Target:
    """How far an event is from its target: the logarithm of its epsilon over the target's."""

    def __init__(self, epsilon: float, delta: float, relation: str) -> None:
        self.epsilon = _validate.non_negative(epsilon=epsilon)
        self.delta = _validate.probability(delta=delta)
        self.log_delta = math.log(self.delta)
        self.relation = _validate.choice(RELATIONS, neighboring_relation=relation)

    def excess(self, event: DpEvent) -> float:
        """Return the excess of log epsilon, or, for the target 0, that of log delta at 0."""
        if self.epsilon == 0:
            return self.worst_log_delta(event) - self.log_delta
        found = epsilon_of(event, delta=self.delta, neighboring_relation=self.relation).upper
        if math.isinf(found):
            self.decomposed(event)
        if found <= 0:
            return -math.inf
        # The quotient of two numbers next to each other may be 1.
        value = math.log(found / self.epsilon)
        return max(value, UNIT) if found > self.epsilon else value

    def worst_log_delta(self, event: DpEvent) -> float:
        """Return the upper bound on log delta at the target's epsilon."""
        directions = self.decomposed(event).directions
        return max(characteristic.log_delta_bounds(each, self.epsilon).upper for each in directions)

    def with_slope(
        self, here: DpEvent, there: DpEvent, change: float
    ) -> tuple[float, float | None]:
        """Return the excess of one event, and its slope on the way to another."""
        value = self.excess(here)
        slope = (self.excess(there) - value) / change if math.isfinite(value) else None
        return value, slope if slope is not None and math.isfinite(slope) else None

    def met_by_sampling(self, event: DpEvent, with_less_noise: Callable[[], DpEvent]) -> bool:
        """Whether records are sampled so rarely that any noise meets the target."""
        bound = self._largest_log_delta(event)
        # A table has a largest delta, too, which grows as its noise falls.
        return bound <= self.log_delta and bound == self._largest_log_delta(with_less_noise())

    def _largest_log_delta(self, event: DpEvent) -> float:
        """Return a bound on log delta that holds at every epsilon."""
        directions = self.decomposed(event).directions
        return max(Total(item.parts).log_delta_bound for item in directions)

    def missed_by(self, event: DpEvent) -> bool:
        """Whether the epsilon of an event, which a user would compute, exceeds the target."""
        answer = epsilon_of(event, delta=self.delta, neighboring_relation=self.relation)
        return bool(answer > self.epsilon)

    def decomposed(self, event: DpEvent) -> Composition:
        """Return the losses of an event, all of which must be private."""
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


class _Noises:
    """The questions of one search, by the logarithm of the noise multiplier.

    Parameters
    ----------
    target
        What the search is for.
    event_of_sigma
        From a noise multiplier to an event.
    excess_of
        From an event to how far it is from the target.
    first
        The noise multiplier from which the search starts.
    """

    def __init__(
        self,
        target: _Target,
        event_of_sigma: EventOf,
        excess_of: Callable[[DpEvent], float],
        first: float,
    ) -> None:
        self.target, self.origin = target, math.log(first)
        self._event_of_sigma, self._excess_of = event_of_sigma, excess_of
        self._parts: dict[DpEvent, int] = {}
        self._held: dict[DpEvent, int] = {}
        self._x = self._value = self._since = math.nan
        self._refused: dict[float, NoiseOutOfRange] = {}

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
        self._held = _common(parts, self._parts)
        far = abs(x - self._x) > _CHANGE
        self._flat = far and value == self._value
        ended = far and not same and abs(value - self._value) < _UNCHANGED
        self._since = self._since if same else x
        self._x, self._parts, self._value = x, parts, value
        if ended and not math.log(_LEAST) < x - self.origin < math.log(_MOST):
            raise NoBracket(x, meets=value <= 0)
        return value

    def least(self, start: float, slope: float, known: Sequence[tuple[float, float]] = ()) -> float:
        """Return the least noise multiplier whose excess is at most 0."""
        through = secant(self.excess, slope, known)

        def with_slope(x: float) -> tuple[float, float | None]:
            value, here = through(x)
            return value, None if self._flat else here

        self._flat = False
        lowest, highest = (self.origin + math.log(end) for end in _ENDS)
        try:
            sides = newton(with_slope, start, lowest, highest, Stop(absolute=_RELATIVE_WIDTH))
        except NoBracket as found:
            raise self._without_bracket(found) from None
        if sides.meet in self._refused:
            raise self._without_bracket(NoBracket(sides.miss, meets=False))
        if sides.miss in self._refused:
            raise self._without_bracket(NoBracket(sides.meet, meets=True))
        return math.exp(sides.meet)

    def check_rest(self, event: DpEvent, beyond: DpEvent) -> None:
        """Refuse a target that is missed by what two events hold whatever their noise is."""
        held = _common(leaves(event), leaves(beyond))
        if not held or held == leaves(event):
            return
        at = math.exp(self.origin)
        for _ in range(_HELD):
            at *= 8
            held = _common(held, leaves(self._event_of_sigma(at)))
        rest = [events.SelfComposedDpEvent(leaf, count) for leaf, count in held.items()]
        if rest and self.target.excess(events.ComposedDpEvent(rest)) > 0:
            raise self._unreachable(_TOO_MUCH, at, _BESIDES)

    def _without_bracket(self, found: NoBracket) -> TargetUnreachable:
        """Return the error that says why a search ended on one side."""
        if self._refused:
            refusal = list(self._refused.values())[-1]
            why = f"beyond it, the event's {str(refusal).rstrip('.')}"
        elif self._since != found.at:
            why = f"the event is the same from {math.exp(self._since):.3g} to there"
        elif self._held and not found.meets:
            why = _BESIDES
        else:
            why = "epsilon hardly changes there"
        sentence = _TOO_LITTLE if found.meets else _TOO_MUCH
        return self._unreachable(sentence, math.exp(found.at), why)

    def _unreachable(self, sentence: str, at: float, why: str) -> TargetUnreachable:
        more = ", or make the rest of it cheaper" if why == _BESIDES else ""
        return self.target.unreachable(sentence, at=at, why=why, or_else=more)


def _common(one: dict[DpEvent, int], other: dict[DpEvent, int]) -> dict[DpEvent, int]:
    """Return the elementary events that are in both, as often as in either."""
    return {leaf: min(count, other[leaf]) for leaf, count in one.items() if leaf in other}


def noise_multiplier(
    event_of_sigma: EventOf,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> float:
    """Return the smallest noise multiplier that meets (epsilon, delta), to a relative 1e-6.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event whose epsilon falls as it grows. The best of many
        runs (``RepeatAndSelectDpEvent``) may be in it, and takes seconds.

    Returns
    -------
    float
        sigma with epsilon(sigma) <= target and epsilon(sigma (1 - 1e-6)) > target, epsilon being
        the accountant's upper bound. It is looser beyond some 10^4, where sigma is up to 1e-4 too
        large.

    It raises TargetUnreachable if no value separates meeting the target from missing it. The search
    starts at 1, or, if no accountant takes such noise, where an event in proportion to the noise
    multiplier has noise 1. No value is tried beyond 8 times the largest or below an eighth of the
    smallest that was tried before.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    target = _Target(epsilon, delta, neighboring_relation)
    return _noise_multiplier(event_of_sigma, target, None)


def noise_multipliers(
    event_of_sigma: EventOf | Sequence[EventOf],
    *,
    epsilon: ArrayLike,
    delta: ArrayLike,
    neighboring_relation: str = "add-or-remove-one",
) -> NDArray[np.float64]:
    """Return the smallest noise multipliers that meet a grid of targets, each to a relative 1e-6.

    Every answer is extrapolated from its neighbors', corrected by secants and checked against its
    own target, so a smooth grid takes a few milliseconds a point.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event whose epsilon falls as it grows; or one such
        function for each target, where the event changes along the grid.
    epsilon, delta
        Numbers, or arrays of shape (k,).

    Returns
    -------
    ndarray, shape (k,)
        The noise multipliers, in the order of the targets.

    >>> from dpcal.accountants import events
    >>> def event(noise_multiplier):
    ...     return events.dpsgd(
    ...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=1000
    ...     )
    >>> print(noise_multipliers(event, epsilon=[1.0, 2.0, 4.0], delta=1e-6).round(5))
    [1.56267 1.02902 0.77854]
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    several = isinstance(event_of_sigma, Sequence)
    functions: Sequence[EventOf] = event_of_sigma if isinstance(event_of_sigma, Sequence) else ()
    epsilons, deltas = np.asarray(epsilon, dtype=float), np.asarray(delta, dtype=float)
    lengths = {array.shape for array in (epsilons, deltas) if array.ndim}
    lengths |= {(len(functions),)} if several else set()
    if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
        raise ValueError(
            f"event_of_sigma, epsilon and delta must be single or of one length, got shapes "
            f"{sorted(lengths)}."
        )
    (count,) = lengths.pop() if lengths else (1,)
    epsilons, deltas = np.broadcast_to(epsilons, count), np.broadcast_to(deltas, count)
    places, answers = _places(epsilons, deltas), np.empty(count)
    for i in range(count):
        target = _Target(float(epsilons[i]), float(deltas[i]), neighboring_relation)
        known = slice(max(0, i - _NEIGHBORS), i)
        start = _extrapolated(places[known], np.log(answers[known]), places[i])
        function = functions[i] if isinstance(event_of_sigma, Sequence) else event_of_sigma
        answers[i] = _noise_multiplier(function, target, start)
    return answers


def _places(epsilons: NDArray[np.float64], deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a coordinate along a grid of targets in which their answers are smooth."""
    with np.errstate(divide="ignore", invalid="ignore"):
        for values in (np.log(epsilons), np.log(-np.log(deltas))):
            if len(values) > 1 and np.isfinite(values).all() and np.abs(np.diff(values)).min() > 0:
                return np.asarray(values)
    return np.arange(float(len(epsilons)))


def _extrapolated(
    places: NDArray[np.float64], values: NDArray[np.float64], at: float
) -> float | None:
    """Return the polynomial through the values (Neville's scheme), unless it runs away."""
    if not len(values):
        return None
    table = values.copy()
    for order in range(1, len(values)):
        for i in range(len(values) - order):
            left, right = places[i] - at, places[i + order] - at
            if left == right:
                return float(values[-1])
            table[i] = (table[i + 1] * left - table[i] * right) / (left - right)
    return float(table[0]) if abs(table[0] - values[-1]) < 2 * _NEAR else float(values[-1])


def _noise_multiplier(event_of_sigma: EventOf, target: _Target, start: float | None) -> float:
    """Solve for one target, from a guess of the logarithm if there is one."""
    try:
        return _from_first(1.0, event_of_sigma, target, start)
    except NoiseOutOfRange as refusal:
        # In units of incomes, or of money, a noise of 1 is next to nothing or beyond all bounds.
        first = 1 / refusal.number
    return _from_first(first, event_of_sigma, target, start)


def _from_first(
    first: float, event_of_sigma: EventOf, target: _Target, start: float | None
) -> float:
    """Solve for one target from a first noise multiplier, and from a guess if there is one."""
    event = event_of_sigma(first)
    if isinstance(event, ShuffledEpochsDpEvent) and _is_scaled(event_of_sigma, event, first):
        found = _annexes.shuffling.noise_multiplier(
            event,
            epsilon=target.epsilon,
            delta=target.delta,
            neighboring_relation=target.relation,
        )
        return first * float(found) / event.noise_multiplier
    if has_bracket(event, target.relation):
        return _by_delta(event_of_sigma, target, first)
    if _is_allocated(event):
        return _near_poisson(event_of_sigma, target)
    if not _is_a_selection(event) and target.met_by_sampling(
        event, lambda: event_of_sigma(first / 8)
    ):
        raise target.unreachable(_NO_NOISE)

    noises = _Noises(target, event_of_sigma, target.excess, first)
    known: list[tuple[float, float]] = []
    if start is None:
        change = math.log1p(_CHANGE)
        beyond = event_of_sigma(first * (1 + _CHANGE))
        value, slope = target.with_slope(event, beyond, change)
        if slope is not None:
            known = [(noises.origin + x, value + slope * x) for x in (0.0, change)]
        # If more noise hardly helps, no amount may; then this is found out first.
        if value > 0 and (slope is None or value + slope * math.log(_MOST) > 0):
            noises.check_rest(event, beyond)
        falls = slope is not None and slope < 0
        start = noises.origin + (min(max(-value / slope, -_FAR), _FAR) if falls and slope else 0.0)
    # Where no slope is known, epsilon is taken to be in proportion to 1 / sigma.
    sigma = noises.least(start, _FALL, known)
    # For the target 0, bounds on delta and on epsilon may come from different contours.
    while target.epsilon == 0 and target.missed_by(event_of_sigma(sigma)):
        sigma *= 1 + _RELATIVE_WIDTH
    return sigma


def _is_a_selection(event: DpEvent) -> bool:
    """Whether the best of many runs is in an event: it has a price, and no derivatives of it."""
    return any(isinstance(leaf, RepeatAndSelectDpEvent) for leaf in leaves(event))


def _is_scaled(event_of_sigma: EventOf, event: ShuffledEpochsDpEvent, first: float) -> bool:
    """Whether the noise of a shuffled run is in proportion to the multiplier, and nothing else."""
    return bool(
        event_of_sigma(2 * first) == attr.evolve(event, noise_multiplier=2 * event.noise_multiplier)
    )


def _by_delta(event_of_sigma: EventOf, target: _Target, first: float) -> float:
    """Solve for one target by the upper end of delta alone, with slopes from earlier answers."""

    def excess(event: DpEvent) -> float:
        relation = target.relation
        found = delta_of(event, epsilon=target.epsilon, neighboring_relation=relation).upper
        return (math.log(found) if found > 0 else -math.inf) - target.log_delta

    noises = _Noises(target, event_of_sigma, excess, first)
    # The tail of delta falls about as a Gaussian's.
    sigma = noises.least(noises.origin, 2 * target.log_delta)
    while target.missed_by(event_of_sigma(sigma)):
        sigma *= 1 + _RELATIVE_WIDTH
    return sigma


def _is_allocated(event: DpEvent) -> bool:
    """Whether records draw batches in an event: its price has no derivatives."""
    drawn = RandomAllocationDpEvent | events.UnequalAllocationDpEvent
    return any(isinstance(leaf, drawn) for leaf in leaves(event))


def _samples(
    groups: tuple[tuple[float, int, float], ...], epochs: int
) -> tuple[tuple[DpEvent, int], ...]:
    """Return Poisson samples as large as the batches of each group, and their numbers."""
    return tuple(
        (events.PoissonSampledDpEvent(chance / m, events.GaussianDpEvent(sigma)), m * epochs)
        for sigma, m, chance in groups
    )


def _on_poisson_samples(event: DpEvent) -> DpEvent:
    """Return an event with Poisson samples of the same size where records draw batches."""
    parts: list[DpEvent] = []
    for leaf, count in leaves(event).items():
        groups: tuple[tuple[DpEvent, int], ...] = ((leaf, count),)
        if isinstance(leaf, RandomAllocationDpEvent):
            groups = _samples(((leaf.noise_multiplier, leaf.batches, 1.0),), count)
        elif isinstance(leaf, events.UnequalAllocationDpEvent):
            groups = _samples(leaf.groups, count)
        parts += [events.SelfComposedDpEvent(each, times) for each, times in groups]
    return events.ComposedDpEvent(parts)


def _near_poisson(event_of_sigma: EventOf, target: _Target) -> float:
    """Solve for one target from the noise and the slope of Poisson samples, which cost about it."""
    if target.epsilon == 0:
        raise ValueError("epsilon must be > 0 where each record draws a batch of an epoch, got 0.")

    def of_samples(sigma: float) -> DpEvent:
        return _on_poisson_samples(event_of_sigma(sigma))

    near = _noise_multiplier(of_samples, target, None)
    at_near, beyond = (target.worst_log_delta(of_samples(near * at)) for at in (1.0, 1 + _CHANGE))
    slope = (beyond - at_near) / _CHANGE

    def excess(event: DpEvent) -> float:
        return target.worst_log_delta(event) - target.log_delta

    # Where the slope is unknown, the tail of delta falls about as a Gaussian's.
    slope = slope if -math.inf < slope < 0 else 2 * target.log_delta
    noises = _Noises(target, event_of_sigma, excess, near)
    sigma = noises.least(noises.origin, slope)
    while target.missed_by(event_of_sigma(sigma)):
        sigma *= 1 + _RELATIVE_WIDTH
    return sigma


def sampling_probability(
    event_of_probability: EventOf,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> float:
    """Return the largest sampling probability that meets (epsilon, delta), to a relative 1e-6.

    It raises TargetUnreachable if even a probability of 1e-12 misses the target.

    Parameters
    ----------
    event_of_probability
        Maps a sampling probability in (0, 1] to an event whose epsilon grows with it.

    >>> from dpcal.accountants import events
    >>> def event(q):
    ...     return events.dpsgd(sampling_probability=q, noise_multiplier=1.0, steps=1000)
    >>> print(f"{sampling_probability(event, epsilon=2.0, delta=1e-6):.6f}")
    0.009442
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    target = _Target(epsilon, delta, neighboring_relation)

    def excess(x: float) -> tuple[float, float | None]:
        q = math.exp(-x)
        here, there = (event_of_probability(at) for at in (q, q * math.exp(-_CHANGE)))
        return target.with_slope(here, there, _CHANGE)

    highest = -math.log(_LEAST_PROBABILITY)
    try:
        start, stop = -math.log(1e-2), Stop(absolute=_RELATIVE_WIDTH)
        return math.exp(-newton(excess, start, 0.0, highest, stop).meet)
    except NoBracket as found:
        if found.meets:
            return 1.0
        raise TargetUnreachable(
            f"No sampling probability down to 1e-12 gives epsilon={epsilon!r} at delta={delta!r}."
        ) from None


def _meets(event: ShuffledEpochsDpEvent, target: _Target) -> bool:
    """Whether a shuffled run meets a target by the upper end of its price."""
    return bool(
        _annexes.shuffling.meets(
            event,
            epsilon=target.epsilon,
            delta=target.delta,
            neighboring_relation=target.relation,
        )
    )


def _largest_count(name: str, event_of_count: EventOfCount, target: _Target, highest: int) -> int:
    """Return the largest whole number in [1, highest] that meets the target."""

    def excess(count: int) -> tuple[float, float | None]:
        neighbor = count + 1 if count < highest else count - 1
        here, there = (event_of_count(at) for at in (count, neighbor))
        if isinstance(here, ShuffledEpochsDpEvent):
            return (-1.0 if _meets(here, target) else 1.0), None
        if has_bracket(here, target.relation):
            return (1.0 if target.missed_by(here) else -1.0), None
        return target.with_slope(here, there, float(neighbor - count))

    try:
        return largest_whole(excess, most=highest)
    except NoBracket:
        raise TargetUnreachable(
            f"Even {name}=1 misses epsilon={target.epsilon!r} at delta={target.delta!r}."
        ) from None


def steps(
    event_of_steps: EventOfCount,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    at_most: int = 10**12,
) -> int:
    """Return the largest number of steps that meets (epsilon, delta).

    It raises TargetUnreachable if one step already misses the target.

    Parameters
    ----------
    event_of_steps
        Maps a whole number >= 1 to an event whose epsilon grows with it.
    at_most
        Returned if even that many meet the target.

    >>> from dpcal.accountants import events
    >>> def event(count):
    ...     return events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=count)
    >>> steps(event, epsilon=2.0, delta=1e-6)
    874
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    target = _Target(epsilon, delta, neighboring_relation)
    return _largest_count("steps", event_of_steps, target, _validate.count(at_most=at_most))


def batch_size(
    event_of_batch_size: EventOfCount,
    *,
    n: int,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> int:
    """Return the largest (expected) batch size in [1, n] that meets (epsilon, delta).

    It raises TargetUnreachable if a batch of one record already misses the target.

    Parameters
    ----------
    event_of_batch_size
        Maps a whole number in [1, n] to an event whose epsilon grows with it.
    n
        Number of records, >= 1.

    >>> from dpcal.accountants import events
    >>> def event(batch_size):
    ...     return events.dpsgd(
    ...         sampling_probability=batch_size / 60_000, noise_multiplier=1.0, steps=1000
    ...     )
    >>> batch_size(event, n=60_000, epsilon=2.0, delta=1e-6)
    566
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    target = _Target(epsilon, delta, neighboring_relation)
    return _largest_count("batch_size", event_of_batch_size, target, _validate.count(n=n))
