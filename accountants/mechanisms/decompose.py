"""Which privacy losses does an event compose? From a ``DpEvent`` to dominating pairs.

>>> from dpcal.accountants import events
>>> composition = decompose(
...     events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=50), "add-or-remove-one"
... )
>>> [direction.name for direction in composition.directions]
['remove', 'add']
>>> composition.directions[0].parts
((SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction='remove'), 50),)

>>> step = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=50)
>>> leaves(events.ComposedDpEvent([step, step]))  # doctest: +NORMALIZE_WHITESPACE
{PoissonSampledDpEvent(sampling_probability=0.01, event=GaussianDpEvent(noise_multiplier=1.0)): 100}
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import attr
import numpy as np

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS, Composition, Direction
from dpcal.accountants.losses.base import NO_LOSS, Pairs, PrivacyLoss
from dpcal.accountants.mechanisms.row import dominating_pairs, priced_as, row_of
from dpcal.errors import TooLarge

# Most nested events: each takes some ten of the thousand nested calls that Python allows.
MOST_LEVELS = 50
# Most nested selections: each level doubles the work, and this many take four seconds.
MOST_SELECTIONS = 8
# Most events of a composition, in all of its lists: some seconds of counting.
MOST_PARTS = 2_000_000
# Most distinct mechanisms of a composition: some seconds and 300 MB for Gaussian ones.
MOST_DISTINCT = 200_000
# Most distinct mechanisms with other noise: ten seconds.
MOST_OF_OTHER_NOISE = 2_000
# Most uses of a mechanism: squares of variances stay doubles.
_MOST_USES = 10**100


def leaves(event: events.DpEvent, relation: str | None = None) -> dict[events.DpEvent, int]:
    """Flatten any nesting of compositions into distinct elementary events and their counts.

    With a neighboring relation, these are the events that are accounted for under it.

    Raises
    ------
    TypeError
        If ``event`` is not a ``DpEvent``.
    ValueError
        If a count is not a whole number >= 0.
    TooLarge
        If events are too many, or too deep inside each other.
    """
    counts: dict[events.DpEvent, int] = {}
    stack, visits = [(event, 1)], 0
    while stack:
        item, times = stack.pop()
        visits += 1
        _check_number(visits, MOST_PARTS, "events")
        if isinstance(item, events.SelfComposedDpEvent):
            if item.count != 0:
                stack.append((item.event, times * validate.count(count=item.count)))
        elif isinstance(item, events.ComposedDpEvent):
            stack.extend((part, times) for part in reversed(_parts(item)))
        elif isinstance(item, events.DpEvent):
            if (run := _composition_of(item)) is None:
                _check_levels(item)
                run = item if relation is None else priced_as(item, relation)
            if run is not item:
                stack.append((run, times))
                continue
            leaf = _hashable(item)
            counts[leaf] = counts.get(leaf, 0) + times
            _check_number(len(counts), MOST_DISTINCT, "distinct mechanisms")
        else:
            raise TypeError(f"event must be a DpEvent, got {item!r} of type {type(item).__name__}.")
    most = max(counts.values(), default=0)
    if most > _MOST_USES:
        digits = math.log10(most)
        raise ValueError(
            f"count must add up to at most 1e100 uses of a mechanism, got about 1e{digits:.0f}."
        )
    return counts


def _parts(item: Any) -> list[Any]:
    """Return the events of a composition."""
    parts: Any = item.events
    if not isinstance(parts, list | tuple):
        raise TypeError(f"events must be a list of DpEvents, got {parts!r}.")
    _check_number(len(parts), MOST_PARTS, "events")
    return list(parts)


def _check_number(found: int, most: int, of: str) -> None:
    """Refuse a composition of more events than can be accounted for in reasonable time."""
    if found > most:
        raise TooLarge(
            f"event must compose at most {most} {of}, got more: write equal ones as one "
            "SelfComposedDpEvent."
        )


def _check_levels(leaf: Any) -> None:
    """Refuse an event with too many others inside, or too deep inside each other."""
    stack, visits = [(leaf, 1, 0)], 0
    while stack:
        item, level, best = stack.pop()
        best += isinstance(item, events.RepeatAndSelectDpEvent)
        visits += 1
        if level > MOST_LEVELS or best > MOST_SELECTIONS:
            raise TooLarge(
                f"event must have at most {MOST_LEVELS} events inside each other, and at most "
                f"{MOST_SELECTIONS} selections, got {type(leaf).__name__} with more."
            )
        _check_number(visits, MOST_PARTS, "events")
        composed = isinstance(item, events.ComposedDpEvent)
        inside = _parts(item) if composed else [item.event] if hasattr(item, "event") else []
        stack += [(each, level + 1, best) for each in inside]


def _composition_of(item: Any) -> Any:
    """Return the only run of a selection, or the composition that a whole run is, or None."""
    if isinstance(item, events.RepeatAndSelectDpEvent):
        known = all(isinstance(each, numbers.Real) for each in (item.mean, item.shape))
        return item.event if known and item.mean == 1 and -1 < item.shape < math.inf else None
    row = row_of(item)
    return None if row is None or row.equivalent is None else row.equivalent(item)


def _hashable(value: Any) -> Any:
    """Return an event with tuples for its lists and arrays, which have no hash, at every depth."""
    try:
        hash(value)
    except TypeError:
        if isinstance(value, np.ndarray):
            return _hashable(value.tolist())
        if isinstance(value, list | tuple):
            return tuple(_hashable(item) for item in value)
        if isinstance(value, events.DpEvent):
            names = [field.name for field in attr.fields(type(value))]
            return attr.evolve(value, **{name: _hashable(getattr(value, name)) for name in names})
        raise TypeError(
            f"event must hold numbers, lists, arrays and events, got {value!r} of type "
            f"{type(value).__name__}."
        ) from None
    return value


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
    validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
    found, private = [], True
    for leaf, times in leaves(event, neighboring_relation).items():
        if isinstance(leaf, events.NonPrivateDpEvent):
            private = False
        elif not isinstance(leaf, events.NoOpDpEvent):
            found.append((dominating_pairs(leaf, neighboring_relation), times))
    composition = composed(found, neighboring_relation, private)
    by_points, losses = PrivacyLoss.compiled, composition.directions[0].parts
    slow = sum(type(loss).compiled is by_points and loss.has_law for loss, _ in losses)
    _check_number(slow, MOST_OF_OTHER_NOISE, "distinct mechanisms of other than Gaussian noise")
    return composition


def composed(
    uses: Iterable[tuple[Pairs, int]], neighboring_relation: str, private: bool = True
) -> Composition:
    """Return the composition of mechanisms, from the losses of each and the number of its uses."""
    remove: dict[PrivacyLoss, int] = {}
    add: dict[PrivacyLoss, int] = {}
    for losses, times in uses:
        for parts, loss in zip((remove, add), losses, strict=True):
            if loss is not NO_LOSS:
                parts[loss] = parts.get(loss, 0) + times
    named = {"remove": remove, "add": add} if remove != add else {"both": remove}
    directions = (Direction(name, tuple(parts.items())) for name, parts in named.items())
    return Composition(neighboring_relation, tuple(directions), private)
