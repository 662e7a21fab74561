"""Random allocation: an epoch of Gaussian noise on batches; each record draws one batch.

>>> from dpcal.accountants import epsilon
>>> print(f"{epsilon(events.RandomAllocationDpEvent(2.0, 100), delta=1e-6):.4f}")
0.2049
"""

from __future__ import annotations

import math

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.losses.allocation import Allocation, Group, UnequalAllocation
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.mechanisms import sampling as samplers
from dpcal.accountants.mechanisms.pure import without_bound
from dpcal.accountants.mechanisms.row import Pairs, Row, only_auto, refuse
from dpcal.errors import TooLarge

DRAWN = (
    events.RandomAllocationDpEvent,
    events.UnequalAllocationDpEvent,
    events.AllocatedDpEvent,
)
"""Epochs in which each record draws a batch: a replaced record has a bracket."""

_BRACKET = "by a bracket, as the pair of a replaced record is known, but not the law of its losses"
# Least noise for an epoch's own transform: with less, a contour takes half a minute.
_LEAST_NOISE = 1 / 20
# Most batches of an epoch: a contour takes some seconds.
_MOST_BATCHES = 1 << 27


@Row(
    events.RandomAllocationDpEvent(2.0, 5),
    "[random allocation](../explanation/batches.md#random-allocation)",
    largest=without_bound,
)
def _random_allocation(event: events.RandomAllocationDpEvent, relation: str) -> Pairs:
    """Return the pair of docs/explanation/batches.md, "Random allocation"."""
    sigma = validate.noise(noise_multiplier=event.noise_multiplier)
    return _pairs(event, relation, (Group(sigma, count_of_batches(event.batches), 1.0),))


@Row(
    events.UnequalAllocationDpEvent(((2.0, 5, 0.8), (2.0, 1, 0.2))),
    "[batches that differ](../explanation/batches.md#random-allocation)",
    largest=without_bound,
)
def _unequal_allocation(event: events.UnequalAllocationDpEvent, relation: str) -> Pairs:
    """Return the pair of docs/explanation/batches.md, "Random allocation", for unequal batches."""
    return _pairs(event, relation, _groups_of(event))


def _pairs(event: events.DpEvent, relation: str, groups: tuple[Group, ...]) -> Pairs:
    """Return the pairs of an epoch of groups of alike batches."""
    if relation == "replace-one":
        raise only_auto(event, relation, _BRACKET)
    (sigma, batches, _), *others = groups
    if not others and batches == 1:
        return Gaussian(sigma), Gaussian(sigma)
    least = min(group.noise_multiplier for group in groups)
    if others and least < _LEAST_NOISE:
        reason = (
            f"Batches that differ are priced with noise of at least {_LEAST_NOISE:g}, "
            f"got {least!r}: with less, one Gaussian answer an epoch costs hardly more."
        )
        raise refuse(event, relation, reason)
    if others:
        return UnequalAllocation.of(groups, "remove"), UnequalAllocation.of(groups, "add")
    if sigma >= _LEAST_NOISE:
        return Allocation(sigma, batches, "remove"), Allocation(sigma, batches, "add")
    # If the record's batch is published, its answer is one Gaussian: that dominates the epoch. A
    # single batch is a Poisson sample at rate 1 / M: the epoch dominates that.
    samples = samplers.poisson(math.nextafter(1 / batches, 0.0), sigma, relation)
    return Gaussian(sigma, samples[0]), Gaussian(sigma, samples[1])


def _groups_of(event: events.UnequalAllocationDpEvent) -> tuple[Group, ...]:
    """Return the groups that a record may draw, alike batches in one group."""
    alike: dict[tuple[float, float], Group] = {}
    try:
        groups = [(sigma, batches, probability) for sigma, batches, probability in event.groups]
    except (TypeError, ValueError):
        raise TypeError(
            "groups must be triples of a noise multiplier, a number of batches and a probability, "
            f"got {event.groups!r}."
        ) from None
    for sigma, batches, probability in groups:
        sigma, m = validate.noise(noise_multiplier=sigma), count_of_batches(batches)
        chance = validate.within(0.0, 1.0, probability=probability)
        if chance > 0:
            known = alike.get((sigma, chance / m), Group(sigma, 0, 0.0))
            alike[sigma, chance / m] = Group(sigma, known.batches + m, known.probability + chance)
    total = math.fsum(group.probability for group in alike.values())
    if abs(total - 1) > 1e-9:
        raise ValueError(f"groups must have probabilities that add up to 1, got {event.groups!r}.")
    return tuple(group._replace(probability=group.probability / total) for group in alike.values())


def count_of_batches(batches: int) -> int:
    """Return a number of batches of an epoch for which there is an epsilon."""
    count = validate.count(batches=batches)
    if count > _MOST_BATCHES:
        raise TooLarge(
            f"batches must be at most {_MOST_BATCHES} for a price in reasonable time, got "
            f"{batches!r}: more batches cost less."
        )
    return count
