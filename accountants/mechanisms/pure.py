"""What does a mechanism cost at delta = 0? Its largest privacy loss, in closed form.

A mechanism is epsilon-private, with delta = 0, if no privacy loss exceeds epsilon. Largest losses
add up, of adaptive mechanisms too. On a sample they follow from the definition alone: a batch that
a record joins with probability q has the law (1 - q) Q + q P with the record and Q without it.

>>> from dpcal.accountants import events
>>> sample = events.PoissonSampledDpEvent(0.1, events.LaplaceDpEvent(1.0))
>>> remove, add = largest_losses(sample, "add-or-remove-one")
>>> f"{remove.upper:.12f} {math.log1p(0.1 * math.expm1(1.0)):.12f} {add.upper:.12f}"
'0.158565078740 0.158565078740 0.065298335999'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.answers import Bounds
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss
from dpcal.accountants.mechanisms.amplification import amplified
from dpcal.accountants.mechanisms.batches import checked_share, is_sum, thinned
from dpcal.accountants.mechanisms.leaves import leaves
from dpcal.accountants.mechanisms.table import dominating_pairs
from dpcal.accountants.rounding import UNIT, rounded_up
from dpcal.errors import UnsupportedEvent

__all__ = ["largest_losses", "pure_epsilon"]

# Bounds on the largest loss if a record is removed, and if one is added.
_Sides = tuple[Bounds, Bounds]

_METHOD = "largest loss"
_NOTHING = Bounds(0.0, 0.0, _METHOD)
_WITHOUT_END = Bounds(math.inf, math.inf, "non-private event")
# Relative error of a logarithm of 1 - q + q exp(l), and of a largest loss that is a rounded
# logarithm.
_ERROR = 32 * UNIT
# Mechanisms with noise whose tails fall faster than those of a geometric law: no loss is largest.
_UNBOUNDED = (
    events.CorrelatedGaussianDpEvent,
    events.DiscreteGaussianDpEvent,
    events.GaussianDpEvent,
    events.LastIterateDpEvent,
    events.RandomAllocationDpEvent,
    events.SampledWithReplacementDpEvent,
    events.ShuffledEpochsDpEvent,
    events.SingleEpochTreeAggregationDpEvent,
    events.TruncatedSubsampledGaussianDpEvent,
    events.UnequalAllocationDpEvent,
    events.ZCDpEvent,
)


def pure_epsilon(event: events.DpEvent, relation: str) -> Bounds:
    """Return bounds on the epsilon of an event at delta = 0: its largest loss either way.

    Raises
    ------
    UnsupportedEvent
        If a loss has no bound, or if no theorem here covers the event under this relation.
    """
    return Bounds.worst(list(largest_losses(event, relation)))


def largest_losses(event: events.DpEvent, relation: str) -> _Sides:
    """Return bounds on the largest losses of an event, for removing and for adding a record."""
    found = [(_of_leaf(leaf, relation), times) for leaf, times in leaves(event).items()]
    remove, add = (_sum((each[side], times) for each, times in found) for side in (0, 1))
    return remove, add


def _of_leaf(leaf: events.DpEvent, relation: str) -> _Sides:
    if isinstance(leaf, events.NonPrivateDpEvent):
        return _WITHOUT_END, _WITHOUT_END
    if isinstance(leaf, events.NoOpDpEvent):
        return _NOTHING, _NOTHING
    rule = _RULES.get(type(leaf), _of_pair)
    sides = (_WITHOUT_END, _WITHOUT_END) if isinstance(leaf, _UNBOUNDED) else rule(leaf, relation)
    if any(side.upper == math.inf for side in sides):
        raise UnsupportedEvent(
            f"delta must be a number in (0, 1) for {leaf!r}, got 0: its privacy losses have no "
            f"bound under neighboring relation {relation!r}."
        )
    return sides


def _of_pair(leaf: Any, relation: str) -> _Sides:
    """Return the largest losses of the dominating pairs of a mechanism."""
    remove, add = (_of_loss(loss) for loss in dominating_pairs(leaf, relation))
    return remove, add


def _of_loss(loss: PrivacyLoss) -> Bounds:
    if loss is NO_LOSS:
        return _NOTHING
    if loss.log_finite < 0:
        return _WITHOUT_END
    if not loss.has_law:
        # Theorems about such a mechanism bound it from above.
        law = loss.law
        known = math.inf if law is None or law.log_finite < 0 else law.upper
        return Bounds(0.0, min(loss.upper, known), _METHOD)
    lower = (loss.below or loss).upper
    return Bounds(max(0.0, lower * (1 - _ERROR)), loss.upper, _METHOD)


def _poisson(event: events.PoissonSampledDpEvent, relation: str) -> _Sides:
    """Return the largest losses on a Poisson sample.

    With the record the law is (1 - q) M + q M', of a mechanism without it and with it on everyone.
    A replaced record of a sum may leave M' = e^l M or M' = e^-l M at the same answer, and no more.
    Of other mechanisms, whether the record was drawn may be told.
    """
    q, inner = thinned(event)
    if q in (0, 1):
        return largest_losses(inner, relation) if q else (_NOTHING, _NOTHING)
    if relation == "replace-one" and is_sum(inner):
        single = largest_losses(inner, "add-or-remove-one")[0]
        above, below = _amplified(single, q), _negative(_amplified(_negative(single), q))
        both = _sum([(above, 1), (below, 1)])
        return both, both
    remove, add = largest_losses(inner, relation)
    if relation == "add-or-remove-one" or is_sum(inner):
        return _amplified(remove, q), _negative(_amplified(_negative(add), q))
    return _at_most(remove), _at_most(add)


def _fixed_size(event: events.SampledWithoutReplacementDpEvent, relation: str) -> _Sides:
    """Return the largest losses on a batch of distinct records: another record takes the place.

    Added or removed, the law is (1 - q) M + q M' against M; replaced, the same, where all other
    records are as the one that replaces it.
    """
    q, inner = checked_share(event, relation), event.event
    if q == 1:
        return largest_losses(inner, relation)
    single = Bounds.worst(list(largest_losses(inner, "replace-one")))
    more = _amplified(single, q)
    if relation != "add-or-remove-one":
        return more, more
    return more, _negative(_amplified(_negative(single), q))


def _allocated(event: events.AllocatedDpEvent, relation: str) -> _Sides:
    """Return the largest losses of an epoch: a mean of likelihood ratios, which may all be largest.

    Of a replaced record, ratios of means are at most the largest ratio of two terms.
    """
    batches = _validate.count(batches=event.batches)
    remove, add = largest_losses(event.event, relation)
    if batches == 1 or relation == "add-or-remove-one":
        return remove, add
    return _at_most(remove), _at_most(add)


_RULES: dict[type[events.DpEvent], Callable[[Any, str], _Sides]] = {
    events.PoissonSampledDpEvent: _poisson,
    events.SampledWithoutReplacementDpEvent: _fixed_size,
    events.AllocatedDpEvent: _allocated,
}


def _at_most(bounds: Bounds) -> Bounds:
    return Bounds(0.0, bounds.upper, bounds.method)


def _negative(bounds: Bounds) -> Bounds:
    return Bounds(-bounds.upper, -bounds.lower, bounds.method)


def _amplified(bounds: Bounds, q: float) -> Bounds:
    """Return bounds on log(1 - q + q exp(l)) of a loss l, which may be negative."""
    low, high = amplified(np.array([bounds.lower, bounds.upper]), q).tolist()
    return Bounds(low - _ERROR * abs(low), high + _ERROR * abs(high), bounds.method)


def _sum(parts: Iterable[tuple[Bounds, int]]) -> Bounds:
    """Return bounds on a sum of numbers, each of which is added so often, rounded outward."""
    parts = list(parts)
    upper = _rounded_sum([(each.upper, times) for each, times in parts])
    lower = 0.0 - _rounded_sum([(-each.lower, times) for each, times in parts])
    return Bounds(lower, upper, _METHOD)


def _rounded_sum(parts: list[tuple[float, int]]) -> float:
    """Return a sum of numbers, each of which is added so often, rounded up."""
    if any(math.isinf(value) for value, _ in parts):
        return math.fsum(value for value, _ in parts)
    exact = sum((Fraction(value) * times for value, times in parts), Fraction(0))
    try:
        return rounded_up(float(exact), exact)
    except OverflowError:
        return math.copysign(math.inf, exact)
