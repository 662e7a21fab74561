"""What does a budget book charge besides plans? An event, such as the best of many runs.

>>> best = events.RepeatAndSelectDpEvent(events.GaussianDpEvent(4.0), 6.0, float("inf"))
>>> charge = Charge(
...     optimizer="PrivateSearch", event=best, epsilon=2.0, delta=1e-6,
...     neighboring_relation="replace-special",
... )
>>> read(charge.to_json()) == charge
True
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import attr

from dpcal._files import document_of
from dpcal.accountants import events
from dpcal.calibrate.persons import for_group
from dpcal.calibrate.plan import Plan
from dpcal.errors import UnsupportedEvent

__all__ = ["Charge", "read"]


@dataclass(frozen=True, kw_only=True)
class Charge:
    """An event that a budget book charges whole, with its own price.

    Parameters
    ----------
    optimizer, event
        Name of the method, and all that it may release.
    epsilon, delta
        Its own price, which the book shows; all charges together are priced by their events.
    neighboring_relation
        Relation of neighbouring data sets.
    group_size
        Largest number of records of a person whom it is about.
    """

    optimizer: str
    event: events.DpEvent
    epsilon: float
    delta: float
    neighboring_relation: str
    group_size: int = 1

    def event_for(self, group_size: int) -> events.DpEvent:
        """See :meth:`dpcal.calibrate.plan.Priced.event_for`."""
        return for_group(self.event, -(-group_size // self.group_size))

    def to_json(self) -> str:
        """Return the charge as JSON, which :func:`read` reads."""
        return json.dumps({**vars(self), "event": _told(self.event)}, allow_nan=False)


def read(text: str) -> Plan | Charge:
    """Return a plan or a charge from its JSON; ValueError if it is neither."""
    try:
        values = document_of(text)
        if "event" not in values:
            return Plan.from_json(text)
        return Charge(**{**values, "event": _event(values["event"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"The budget book is damaged, a run in it has no plan ({error}): go on with a copy of "
            "it that is whole."
        ) from error


def _told(value: Any) -> Any:
    """Return an event or its parts as JSON values; JSON has no number for infinity."""
    if isinstance(value, events.DpEvent):
        fields = [field.name for field in attr.fields(type(value))]
        return {
            "type": type(value).__name__,
            **{name: _told(getattr(value, name)) for name in fields},
        }
    if isinstance(value, Sequence):
        return [_told(each) for each in value]
    if isinstance(value, int | float):
        return value if math.isfinite(value) else repr(value)
    raise UnsupportedEvent(
        "A budget book holds plans, and events that are made of numbers. Run this one with the "
        "book as its store."
    )


def _event(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = {name: _event(each) for name, each in value.items() if name != "type"}
        return getattr(events, value["type"])(**fields)
    if isinstance(value, list):
        return [_event(each) for each in value]
    return float(value) if isinstance(value, str) else value
