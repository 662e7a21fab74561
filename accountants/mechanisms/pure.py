"""The largest privacy loss of a mechanism in closed form: epsilon at delta = 0.

A mechanism is epsilon-private, with delta = 0, if no privacy loss exceeds epsilon. Largest losses
add up, of adaptive mechanisms too. On a sample they follow from the definition: a batch that a
record joins with probability q has the law (1 - q) Q + q P with the record and Q without it.

>>> from dpcal.accountants import events
>>> sample = events.PoissonSampledDpEvent(0.1, events.LaplaceDpEvent(1.0))
>>> remove, add = largest_losses(sample, "add-or-remove-one")
>>> f"{remove.upper:.12f} {math.log1p(0.1 * math.expm1(1.0)):.12f} {add.upper:.12f}"
'0.158565078740 0.158565078740 0.065298335999'
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpcal.accountants import events
from dpcal.accountants.answers import Bounds
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.quadrature import log_mixture
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.accountants.mechanisms.row import dominating_pairs, row_of
from dpcal.accountants.rounding import UNIT, sum_up
from dpcal.errors import UnsupportedEvent

Sides = tuple[Bounds, Bounds]

_METHOD = "largest loss"
_WITHOUT_END = Bounds(math.inf, math.inf, "non-private event")
# Relative error of log(1 - q + q exp(l)), and of a largest loss that is a rounded logarithm.
_ERROR = 32 * UNIT


def pure_epsilon(event: events.DpEvent, relation: str) -> Bounds:
    """Return bounds on the epsilon of an event at delta = 0: its largest loss either way.

    Raises
    ------
    UnsupportedEvent
        If a loss has no bound, or if no theorem here covers the event under this relation.
    """
    return Bounds.worst(list(largest_losses(event, relation)))


def largest_losses(event: events.DpEvent, relation: str) -> Sides:
    """Return bounds on the largest losses of an event, for removing and for adding a record."""
    found = [(_of_leaf(leaf, relation), times) for leaf, times in leaves(event, relation).items()]
    remove, add = (total((each[side], times) for each, times in found) for side in (0, 1))
    return remove, add


def _of_leaf(leaf: events.DpEvent, relation: str) -> Sides:
    if isinstance(leaf, events.NonPrivateDpEvent):
        return without_bound(leaf, relation)
    row = row_of(leaf)
    if row and row.largest:
        remove, add = row.largest(leaf, relation)
    else:
        remove, add = map(_of_loss, dominating_pairs(leaf, relation))
    if math.inf in (remove.upper, add.upper):
        raise UnsupportedEvent(
            f"delta must be a number in (0, 1) for {leaf!r}, got 0: its privacy losses have no "
            f"bound under neighboring relation {relation!r}."
        )
    return remove, add


def without_bound(event: events.DpEvent, relation: str) -> Sides:
    """Return that losses have no bound, of an event without losses of its own."""
    return _WITHOUT_END, _WITHOUT_END


def _of_loss(loss: PrivacyLoss) -> Bounds:
    if loss.log_finite < 0:
        return _WITHOUT_END
    if not loss.has_law:
        # Theorems about such a mechanism bound it from above.
        law = loss.law
        known = math.inf if law is None or law.log_finite < 0 else law.upper
        return Bounds(0.0, min(loss.upper, known), _METHOD)
    lower = (loss.below or loss).upper
    return Bounds(max(0.0, lower * (1 - _ERROR)), loss.upper, _METHOD)


def at_most(bounds: Bounds) -> Bounds:
    """Return bounds whose upper end is proved, and whose lower end is 0."""
    return Bounds(0.0, bounds.upper, bounds.method)


def added(bounds: Bounds, q: float) -> Bounds:
    """Return bounds on -log(1 - q + q exp(-l)), the loss of the reversed pair."""
    found = on_sample(Bounds(-bounds.upper, -bounds.lower, bounds.method), q)
    return Bounds(-found.upper, -found.lower, bounds.method)


def on_sample(bounds: Bounds, q: float) -> Bounds:
    """Return bounds on log(1 - q + q exp(l)) of a loss l, which may be negative."""
    low, high = log_mixture(q, np.array([bounds.lower, bounds.upper])).tolist()
    return Bounds(low - _ERROR * abs(low), high + _ERROR * abs(high), bounds.method)


def total(parts: Iterable[tuple[Bounds, int]]) -> Bounds:
    """Return bounds on a sum of numbers times counts, rounded outward."""
    found = list(parts)
    times = [count for _, count in found]
    lower = sum_up((-each.lower for each, _ in found), times)
    return Bounds(0.0 - lower, sum_up((each.upper for each, _ in found), times), _METHOD)
