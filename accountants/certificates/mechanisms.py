"""Elementary events that a certificate can cover, and their form in documents.

>>> from dpcal.accountants import events
>>> item = Mechanism(events.GaussianDpEvent(2.0), 3)
>>> schema.document_of(item)
{'event': {'type': 'GaussianDpEvent', 'noise_multiplier': 2.0}, 'count': 3}
>>> schema.shape_of("mechanism", Mechanism)(schema.document_of(item), "mechanism") == item
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import attr

from dpcal.accountants import events
from dpcal.accountants.certificates import schema
from dpcal.accountants.events import DpEvent
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.errors import UnsupportedEvent

_MOST_VALUES = 1 << 16
_MOST_PARAMETERS = 1 << 8
# Sums of counts stay below 2^76, and powers take 76 squarings.
_MOST_USES = 1 << 62
_ANSWERS = (
    events.GaussianDpEvent,
    events.LaplaceDpEvent,
    events.DiscreteLaplaceDpEvent,
    events.DiscreteGaussianDpEvent,
)
_ON_BATCHES = (
    events.PoissonSampledDpEvent,
    events.SampledWithoutReplacementDpEvent,
    events.AllocatedDpEvent,
)
_OTHERS = (
    events.RandomAllocationDpEvent,
    events.UnequalAllocationDpEvent,
    events.SampledWithReplacementDpEvent,
    events.MixtureOfGaussiansDpEvent,
    events.ExchangedRowsDpEvent,
    events.RandomizedResponseDpEvent,
    events.EpsilonDeltaDpEvent,
    events.PermuteAndFlipDpEvent,
)
_COMPOSED = (events.ComposedDpEvent, events.SelfComposedDpEvent)
_CLASSES = {each.__name__: each for each in (*_ANSWERS, *_ON_BATCHES, *_OTHERS, *_COMPOSED)}


@dataclass(frozen=True)
class Mechanism:
    """An elementary event that proofs cover, used ``count`` times."""

    event: Annotated[DpEvent, _event_of]
    count: Annotated[int, schema.whole(1, _MOST_USES)]

    def __post_init__(self) -> None:
        """Refuse an event that no proof covers."""
        if not _is_covered(self.event):
            raise UnsupportedEvent(
                f"No certificate covers {self.event!r}: only {', '.join(_CLASSES)}, and unequal "
                "batches only in distinct groups with probabilities that add up to 1 in doubles."
            )


def mechanisms_of(event: DpEvent) -> tuple[Mechanism, ...]:
    """Return the different mechanisms of an event; refuse mechanisms that no proof covers."""
    found = leaves(event).items()
    others = [(leaf, count) for leaf, count in found if not isinstance(leaf, events.NoOpDpEvent)]
    return tuple(Mechanism(_written(leaf), count) for leaf, count in others)


def _written(event: Any) -> DpEvent:
    """Return an event with all answers about a random batch as one list."""
    if type(event) not in _ON_BATCHES:
        return event
    parts = list(leaves(event.event).items())
    if [times for _, times in parts] == [1]:
        return attr.evolve(event, event=parts[0][0])
    repeated = tuple(events.SelfComposedDpEvent(*each) for each in parts)
    return attr.evolve(event, event=events.ComposedDpEvent(repeated))


def is_rounded(event: DpEvent) -> bool:
    """Return whether a sampling probability is a quotient, or weights are scaled to sum to 1."""
    if isinstance(event, events.MixtureOfGaussiansDpEvent):
        distinct = len(set(event.sensitivities)) == len(event.sensitivities)
        return not distinct or sum(Fraction(weight) for weight in event.sampling_probs) != 1
    return isinstance(event, events.SampledWithoutReplacementDpEvent)


def values_of(event: Any) -> float:
    """Return the number of values or components that the cost of a covered event takes."""
    if type(event) in _ON_BATCHES:
        return sum(map(values_of, leaves(event.event)))
    if isinstance(event, events.UnequalAllocationDpEvent):
        return len(event.groups)
    if isinstance(event, events.MixtureOfGaussiansDpEvent):
        return len(event.sensitivities)
    shift = getattr(event, "sensitivity", 1)
    discrete = isinstance(event, events.DiscreteLaplaceDpEvent) and isinstance(shift, int | float)
    return shift if discrete else 1


def _is_covered(event: Any) -> bool:
    """Return whether the dominating pair of an event follows from its parameters in balls.

    The computation of the cost checks the ranges of parameters.
    """
    if type(event) in _ON_BATCHES:
        found = leaves(event.event)
        known = all(type(each) in _ANSWERS and _is_covered(each) for each in found)
        return known and len(found) <= _MOST_PARAMETERS
    if isinstance(event, events.SampledWithReplacementDpEvent):
        return isinstance(event.event, events.GaussianDpEvent)
    if isinstance(event, events.UnequalAllocationDpEvent):
        # Covered only if the cost is computed without gathering groups or scaling probabilities.
        rows = [(sigma, m, chance) for sigma, m, chance in event.groups if chance > 0]
        alike = {(sigma, chance / m) for sigma, m, chance in rows if m}
        if len(alike) != len(rows) or math.fsum(row[2] for row in rows) != 1:
            return False
    most = _MOST_VALUES if type(event) in _ANSWERS else _MOST_PARAMETERS
    return type(event) in (*_ANSWERS, *_OTHERS) and values_of(event) <= most


def _value(value: Any, name: str) -> Any:
    """Return a parameter of an event: another event, a list, a truth value or a number."""
    if isinstance(value, Mapping):
        return _event_of(value, name)
    if isinstance(value, list):
        return schema.list_of(_value, 1, _MOST_PARAMETERS)(value, name)
    return value if isinstance(value, bool) else schema.exact_number(value, name)


def _event_of(value: Any, name: str) -> Any:
    """Return the event of a document; the entry ``monotone`` is absent where it is false."""
    given = dict(value) if isinstance(value, Mapping) else {}
    cls = _CLASSES[schema.choice(*_CLASSES)(given.pop("type", None), "type")]
    entries = {each.name: _value for each in attr.fields(cls)}
    if schema.MONOTONE in entries:
        given.setdefault(schema.MONOTONE, False)
    return schema.shape(cls.__name__, cls, entries)(given, name)
