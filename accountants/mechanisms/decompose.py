"""Which privacy losses does an event compose? From a ``DpEvent`` to dominating pairs.

>>> from dpcal.accountants import events
>>> composition = decompose(
...     events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=50), "add-or-remove-one"
... )
>>> [direction.name for direction in composition.directions]
['remove', 'add']
>>> composition.directions[0].parts
((SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction='remove'), 50),)
"""

from __future__ import annotations

from dataclasses import dataclass

import attr

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.losses.base import NOTHING, Defective, MomentBound, PrivacyLoss
from dpcal.accountants.mechanisms.table import dominating_pairs

__all__ = ["RELATIONS", "Composition", "Direction", "decompose", "leaves"]

RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")


@dataclass(frozen=True)
class Direction:
    """One direction of the neighboring relation: the losses that add up, and how often each."""

    name: str
    parts: tuple[tuple[PrivacyLoss, int], ...]

    @property
    def below(self) -> Direction | None:
        """The direction with losses rounded down, for lower bounds; None if none is rounded."""
        if all(loss.below is None for loss, _ in self.parts):
            return None
        parts = tuple((loss.below or loss, times) for loss, times in self.parts)
        return Direction(self.name, parts)

    @property
    def finite(self) -> tuple[float, Direction]:
        """Log probability that every loss is finite, and the direction given that all are."""
        if not any(isinstance(loss, Defective) for loss, _ in self.parts):
            return 0.0, self
        log_finite, parts = 0.0, []
        for loss, times in self.parts:
            if isinstance(loss, Defective):
                log_finite += times * loss.log_finite
                if loss.given is not NOTHING:
                    parts.append((loss.given, times))
            else:
                parts.append((loss, times))
        return log_finite, Direction(self.name, tuple(parts))


@dataclass(frozen=True)
class Composition:
    """The directions of a composed event, whose privacy is the worst of their composed values.

    ``private`` is False when the event contains a non-private release; then every epsilon is
    infinite.
    """

    neighboring_relation: str
    directions: tuple[Direction, ...]
    private: bool = True

    @property
    def has_law(self) -> bool:
        """Whether every loss has a law; of some mechanisms only Renyi divergences are known."""
        parts = [loss for direction in self.directions for loss, _ in direction.parts]
        return not any(isinstance(loss, MomentBound) for loss in parts)


def leaves(event: events.DpEvent) -> dict[events.DpEvent, int]:
    """Flatten any nesting of compositions into distinct elementary events and their counts.

    Raises
    ------
    TypeError
        If ``event`` is not a ``DpEvent``.
    ValueError
        If a count is not a whole number >= 0.
    """
    counts: dict[events.DpEvent, int] = {}
    stack = [(event, 1)]
    while stack:
        item, times = stack.pop()
        if isinstance(item, events.SelfComposedDpEvent):
            if item.count != 0:
                stack.append((item.event, times * _validate.count(count=item.count)))
        elif isinstance(item, events.ComposedDpEvent):
            stack.extend((part, times) for part in reversed(item.events))
        elif isinstance(item, events.DpEvent):
            leaf = _hashable(item)
            counts[leaf] = counts.get(leaf, 0) + times
        else:
            raise TypeError(f"event must be a DpEvent, got {item!r} of type {type(item).__name__}.")
    return counts


def _hashable(event: events.DpEvent) -> events.DpEvent:
    """The same event with tuples for lists, which have no hash."""
    values = {field.name: getattr(event, field.name) for field in attr.fields(type(event))}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return attr.evolve(event, **lists) if lists else event


def decompose(event: events.DpEvent, neighboring_relation: str) -> Composition:
    """Return the dominating pairs that ``event`` composes.

    Parameters
    ----------
    event
        Any nesting of ``ComposedDpEvent`` and ``SelfComposedDpEvent`` over supported mechanisms.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    UnsupportedEvent
        If no theorem in this package covers a mechanism under this relation.
    """
    _validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
    forward: dict[PrivacyLoss, int] = {}
    backward: dict[PrivacyLoss, int] = {}
    private = True
    for leaf, times in leaves(event).items():
        if isinstance(leaf, events.NonPrivateDpEvent):
            private = False
        elif not isinstance(leaf, events.NoOpDpEvent):
            remove, add = dominating_pairs(leaf, neighboring_relation)
            if remove is not NOTHING or add is not NOTHING:
                forward[remove] = forward.get(remove, 0) + times
                backward[add] = backward.get(add, 0) + times
    directions: tuple[Direction, ...]
    if forward == backward:
        directions = (Direction("both", tuple(forward.items())),)
    else:
        directions = (
            Direction("remove", tuple(forward.items())),
            Direction("add", tuple(backward.items())),
        )
    return Composition(neighboring_relation, directions, private)
