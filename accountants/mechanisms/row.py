"""The facts that declare a mechanism, in one record above the function of its losses.

A file of this folder, which is found by itself, declares the class of an event, where dp-accounting
has none, and a function from such an event and a neighboring relation to privacy losses. A
:class:`Row` above that function states the rest: samples, groups, the page of mechanisms and the
tests that every mechanism must pass read it, and name no class.

>>> from dpcal.accountants import events
>>> remove, add = dominating_pairs(events.GaussianDpEvent(2.0), "replace-one")
>>> remove
Gaussian(noise_multiplier=1.0)
>>> dominating_pairs(events.UnsupportedDpEvent(), "replace-one")
Traceback (most recent call last):
    ...
dpcal.errors.UnsupportedEvent: No theorem here prices UnsupportedDpEvent() under neighboring \
relation 'replace-one'. It stands for an operation that has no description.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from numbers import Integral
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, TypeVar

import attr

from dpcal.accountants.answers import Bounds
from dpcal.accountants.events import DpEvent
from dpcal.accountants.inversion.finite_laws import FiniteLaw
from dpcal.accountants.losses.base import Pairs, PrivacyLoss
from dpcal.errors import UnsupportedEvent

__all__ = [
    "Pairs",
    "Row",
    "distance",
    "dominating_pairs",
    "normal",
    "only_auto",
    "over",
    "priced_as",
    "refuse",
    "row_of",
    "rows",
    "times",
]

Rule = Callable[[Any, str], Pairs | PrivacyLoss]
Group = Callable[[Any, int], DpEvent | None]
_Rule = TypeVar("_Rule", bound=Rule)

# Smallest number > 0 by which losses are multiplied or divided: its half is a normal double.
_LEAST = 1e-300
_ROWS: dict[type[DpEvent], Row] = {}


@dataclass(frozen=True)
class Row:
    """The facts about a class of events; called with the function of its losses, it declares them.

    That function takes an event and one of :data:`~dpcal.accountants.directions.RELATIONS`. It
    returns the losses when a record is removed, and when one is added, or one loss for both, and
    raises :func:`refuse` where no theorem covers the relation.

    Attributes
    ----------
    example
        A small event of the class that has an epsilon.
    source
        The theorem, and where it is printed or proved, in Markdown.
    record
        How a record enters. ``"sum"``: noise on a sum, where zeroing out a record has the same law
        as removing it. ``"scaled"``: the losses for a replaced record follow from the parameters,
        or are stated. ``"stated"``: parameters are a claim for the relation of the question. It
        decides which random batches of the mechanism are covered; empty for Poisson samples only.
    group
        From an event and a number k to an event that bounds the loss of k records together, or None
        where no theorem does; such as :func:`over`.
    replaced
        The law of a record that is replaced on a Poisson sample, from an event and the sampling
        probability; None where only a known draw dominates it, or no law is known.
    same
        From an event and a relation to another event that it equals under this relation, such as
        the mechanism itself for a sample of everyone, or None. It checks the parameters it reads.
    largest
        Bounds on the largest losses, from an event and a relation, where the losses themselves give
        none.
    whole_run
        Annex that accounts for a run as a whole, by itself and with other events, where its steps
        have no epsilon; empty for others.
    equivalent
        The composition that a run is in the place of, or None; None for other events.
    """

    example: DpEvent
    source: str = ""
    record: str = ""
    group: Group = lambda event, k: None
    replaced: Callable[[Any, float], FiniteLaw | None] | None = None
    same: Callable[[Any, str], DpEvent | None] | None = None
    largest: Callable[[Any, str], tuple[Bounds, Bounds]] | None = None
    whole_run: str = ""
    equivalent: Callable[[Any], DpEvent | None] | None = None
    losses: Rule | None = field(default=None, repr=False)

    def __call__(self, losses: _Rule) -> _Rule:
        """Declare the function that returns the losses of such events."""
        _ROWS[type(self.example)] = replace(self, losses=losses)
        return losses


@cache
def rows() -> Mapping[type[DpEvent], Row]:
    """Return the rows of every mechanism, by class of event."""
    folder = import_module(__package__)
    for file in iter_modules(folder.__path__):
        import_module(f"{__package__}.{file.name}")
    return MappingProxyType(_ROWS)


def row_of(event: DpEvent) -> Row | None:
    """Return the row of an event's class, or of the nearest class above it that has one."""
    if (own := _ROWS.get(type(event))) is not None:
        return own
    known = rows()
    return next((known[cls] for cls in type(event).__mro__ if cls in known), None)


def priced_as(event: DpEvent, relation: str) -> DpEvent:
    """Return the event that replaces an event under a relation: another one, or itself."""
    while (row := row_of(event)) and row.same and (other := row.same(event, relation)) is not None:
        event = other
    return event


def dominating_pairs(event: DpEvent, relation: str) -> Pairs:
    """Return dominating pairs of one elementary event, for removing and for adding a record.

    Parameters
    ----------
    event
        An event that is not a composition.
    relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    UnsupportedEvent
        If no theorem in this package covers the event under this relation.
    """
    event = priced_as(event, relation)
    row = row_of(event)
    if row is None or row.losses is None:
        raise refuse(event, relation)
    found = row.losses(event, relation)
    return found if isinstance(found, tuple) else (found, found)


def refuse(event: DpEvent, relation: str, reason: str = "") -> UnsupportedEvent:
    """Return the refusal of an event under a relation, with the reason as a second sentence."""
    sentence = f"No theorem here prices {event!r} under neighboring relation {relation!r}."
    return UnsupportedEvent(f"{sentence} {reason}".rstrip())


class OnlyAuto(UnsupportedEvent):
    """The refusal of an event by every accountant but ``"auto"``."""


def only_auto(event: DpEvent, relation: str, how: str) -> OnlyAuto:
    """Return the refusal of an event by other accountants, which names accountant 'auto'."""
    return OnlyAuto(
        f"Only accountant 'auto' prices {event!r} under neighboring relation {relation!r}: {how}."
    )


def distance(relation: str) -> int:
    """Return how far a record moves a sum, in bounds on one contribution: replaced, up to twice."""
    return 2 if relation == "replace-one" else 1


def normal(**argument: float) -> float:
    """Return a number by which losses are multiplied or divided, if it is a normal double, or 0."""
    ((name, value),) = argument.items()
    if 0 < abs(value) < _LEAST:
        raise ValueError(f"{name} must be 0 or at least {_LEAST:g} in size, got {value!r}.")
    return value


def over(*scales: str) -> Group:
    """Return the rule for k records that divides scales of noise by k, rounded down."""

    def group(event: Any, k: int) -> DpEvent:
        return attr.evolve(event, **{n: math.nextafter(getattr(event, n) / k, 0.0) for n in scales})

    return group


def times(*sizes: str) -> Group:
    """Return the rule for k records that multiplies sizes of a contribution by k, rounded up."""

    def more(x: Any, k: int) -> float:
        return k * int(x) if isinstance(x, Integral) else math.nextafter(k * float(x), math.inf)

    def group(event: Any, k: int) -> DpEvent:
        found = ((name, getattr(event, name)) for name in sizes)
        return attr.evolve(event, **{n: more(x, k) for n, x in found if x is not None})

    return group
