"""Which mechanisms can a certificate cover? Elementary events, and their form in documents.

>>> from dpcal.accountants import events
>>> item = Mechanism(events.GaussianDpEvent(2.0), 3)
>>> item.to_dict()
{'event': {'type': 'GaussianDpEvent', 'noise_multiplier': 2.0}, 'count': 3}
>>> MECHANISM(item.to_dict(), "mechanism") == item
True
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import attr

from dpcal.accountants import events
from dpcal.accountants.certificates import schema
from dpcal.accountants.certificates.schema import Shape
from dpcal.accountants.events import DpEvent
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.errors import UnsupportedEvent

__all__ = ["MECHANISM", "Mechanism", "is_rounded", "mechanisms_of", "values_of"]

_COVERED = (
    "Gaussian mechanisms, on everyone, Poisson samples, batches with or without replacement or "
    "epochs of random allocation (where batches differ, with probabilities of distinct groups that "
    "add up to 1 in doubles), mixtures of Gaussians, Laplace, discrete Laplace and discrete "
    "Gaussian noise, such noise on Poisson samples, batches and epochs, randomized response, and "
    "claims of (epsilon, delta) or permute-and-flip"
)
_MONOTONE = "monotone"
# Most values of a discrete Laplace loss, whose law is computed in full: as many as its sensitivity.
_MOST_VALUES = 1 << 16
# Most components of a mixture of Gaussians. A law of 1,000 intervals then takes 256,000 error
# functions.
_MOST_COMPONENTS = 1 << 8
# Most groups of alike batches of an epoch, each of which takes a table of its own.
_MOST_GROUPS = 1 << 4
# Most mechanisms that answer about one batch.
_MOST_ANSWERS = 1 << 4
# Most uses of one mechanism. Sums of counts stay below 2^76, whose powers take 76 squarings.
_MOST_USES = 1 << 62


@dataclass(frozen=True)
class Mechanism:
    """An elementary event, used ``count`` times."""

    event: DpEvent
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Return the mechanism as JSON values."""
        return {"event": _event_document(self.event), "count": self.count}


def mechanisms_of(event: DpEvent) -> tuple[Mechanism, ...]:
    """Return the different mechanisms that an event composes; refuse those that no proof covers."""
    found = []
    for leaf, count in leaves(event).items():
        if isinstance(leaf, events.NoOpDpEvent):
            continue
        if not _CONDITIONS.get(type(leaf), lambda event: False)(leaf):
            raise UnsupportedEvent(f"No certificate covers {leaf!r}: only {_COVERED}.")
        found.append(Mechanism(_written(leaf), count))
    return tuple(found)


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


def values_of(event: DpEvent) -> int:
    """Return the number of values or components from which a covered event is priced."""
    if isinstance(event, events.DiscreteLaplaceDpEvent):
        return int(event.sensitivity)
    if isinstance(event, events.UnequalAllocationDpEvent):
        return len(event.groups)
    if type(event) in _ON_BATCHES:
        return sum(map(values_of, leaves(event.event)))
    return len(event.sensitivities) if isinstance(event, events.MixtureOfGaussiansDpEvent) else 1


# -- the events that are covered, and their parameters


def _always(event: Any) -> bool:
    return True


def _has_answers(event: Any) -> bool:
    """Return whether a batch is drawn at random, and a few known mechanisms answer about it."""
    if not isinstance(event.event, DpEvent):
        return False
    found = leaves(event.event)
    return len(found) <= _MOST_ANSWERS and all(
        type(leaf) in _ANSWERS and _CONDITIONS[type(leaf)](leaf) and times <= _MOST_USES
        for leaf, times in found.items()
    )


def _has_gaussian(event: Any) -> bool:
    return isinstance(event.event, events.GaussianDpEvent)


def _has_few_values(event: Any) -> bool:
    return not isinstance(event.sensitivity, int | float) or event.sensitivity <= _MOST_VALUES


def _has_few_components(event: Any) -> bool:
    return len(event.sensitivities) <= _MOST_COMPONENTS


def _has_exact_groups(event: Any) -> bool:
    """Return whether the price gathers no groups, and scales no probabilities."""
    rows = [(sigma, m, chance) for sigma, m, chance in event.groups if chance > 0]
    alike = {(sigma, chance / m) for sigma, m, chance in rows if m}
    return len(alike) == len(rows) <= _MOST_GROUPS and math.fsum(row[2] for row in rows) == 1


# For each class of events the condition under which its dominating pair follows from its parameters
# in balls. The price checks the parameters' ranges.
_CONDITIONS: dict[type[DpEvent], Callable[[Any], bool]] = {
    events.GaussianDpEvent: _always,
    events.PoissonSampledDpEvent: _has_answers,
    events.RandomAllocationDpEvent: _always,
    events.SampledWithoutReplacementDpEvent: _has_answers,
    events.SampledWithReplacementDpEvent: _has_gaussian,
    events.MixtureOfGaussiansDpEvent: _has_few_components,
    events.ExchangedRowsDpEvent: _has_few_components,
    events.LaplaceDpEvent: _always,
    events.DiscreteLaplaceDpEvent: _has_few_values,
    events.DiscreteGaussianDpEvent: _always,
    events.RandomizedResponseDpEvent: _always,
    events.EpsilonDeltaDpEvent: _always,
    events.PermuteAndFlipDpEvent: _always,
    events.UnequalAllocationDpEvent: _has_exact_groups,
    events.AllocatedDpEvent: _has_answers,
}
_ON_BATCHES = tuple(cls for cls, holds in _CONDITIONS.items() if holds is _has_answers)
_ANSWERS = (
    events.GaussianDpEvent,
    events.LaplaceDpEvent,
    events.DiscreteLaplaceDpEvent,
    events.DiscreteGaussianDpEvent,
)
_INSIDE = (*_ANSWERS, events.ComposedDpEvent, events.SelfComposedDpEvent)


def _value(value: Any, name: str) -> Any:
    """Return a parameter of an event: another event, a list, a truth value or a number."""
    if isinstance(value, Mapping):
        return _event_of(value, name, _INSIDE)
    if isinstance(value, list):
        return schema.list_of(_value, 1, _MOST_COMPONENTS)(value, name)
    return value if isinstance(value, bool) else schema.exact_number(value, name)


def _event_of(value: Any, name: str, classes: Iterable[type[DpEvent]]) -> DpEvent:
    """Return the event of a document. A mechanism that is not monotone does not say so."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    cls = next((each for each in classes if each.__name__ == kind), None)
    if cls is None:
        schema.reject(name, f"an event of a type among {[x.__name__ for x in classes]}", value)

    def build(**values: Any) -> DpEvent:
        del values["type"]
        return cls(**values)

    entries = {each.name: _value for each in attr.fields(cls)}
    covered = ("type", f"that of one of {_COVERED}", _CONDITIONS.get(cls, _always))
    shape = Shape(cls.__name__, build, {"type": schema.text, **entries}, (covered,))
    given = {_MONOTONE: False, **value} if _MONOTONE in entries else value
    event: DpEvent = shape(given, name)
    return event


# The reader of one mechanism of a document.
MECHANISM = Shape(
    "mechanism",
    Mechanism,
    {
        "event": lambda value, name: _event_of(value, name, _CONDITIONS),
        "count": schema.whole(1, _MOST_USES),
    },
)


def _event_document(event: DpEvent) -> dict[str, Any]:
    """Return the class of an event and its parameters, as JSON values."""
    values = {item.name: getattr(event, item.name) for item in attr.fields(type(event))}
    if not values.get(_MONOTONE, True):
        del values[_MONOTONE]

    def plain(value: Any) -> Any:
        # NumPy's scalars become Python's.
        return _event_document(value) if isinstance(value, DpEvent) else value.item()

    found: dict[str, Any] = json.loads(json.dumps(values, default=plain))
    return {"type": type(event).__name__, **found}
