"""What does a replaced record cost where records draw batches? A bracket, from both sides.

The pair of A = (1 / M) sum_j exp(t X_j - t^2 / 2) against B, the same at -t, is the worst one
(docs/explanation/batches.md, "Random allocation"), and its price has no product form. It lies

* above that of a substitute that contributes nothing, and above that of the sum of an epoch's
  answers, alone: one Gaussian answer, whose variance is the sum of theirs;
* below that of two records that are blanked, one after the other, and below that of known batches.

What else is composed keeps its own price under the relation.

>>> run = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(1.0, 100), 10)
>>> answer = epsilon(run, delta=1e-5, neighboring_relation="replace-one")
>>> print(f"{answer.lower:.2f} {answer.upper:.2f} {answer.method}")
2.59 3.88 bracket: two blanked records
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dpcal._internal import validate
from dpcal._internal.roots import NoBracket, Stop, newton, secant
from dpcal.accountants import events
from dpcal.accountants.answers import Bounds, Delta, Epsilon, LogDelta
from dpcal.accountants.interface import (
    epsilon as event_epsilon,
    log_delta as event_log_delta,
)
from dpcal.accountants.mechanisms.allocation import DRAWN
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.accountants.rounding import UNIT, exp_down, exp_up

_Answer = TypeVar("_Answer", Epsilon, LogDelta)

_BLANKED, _REPLACED = "replace-special", "replace-one"
_KNOWN, _TWO_BLANKS = "bracket: batches known", "bracket: two blanked records"
_WIDTH = 1e-7


def _with(
    event: events.DpEvent, other: Callable[[events.DpEvent], events.DpEvent]
) -> events.DpEvent:
    """Return an event with another one for each epoch of drawn batches."""
    parts = [
        events.SelfComposedDpEvent(other(leaf) if isinstance(leaf, DRAWN) else leaf, count)
        for leaf, count in leaves(event).items()
    ]
    return events.ComposedDpEvent(parts)


def _groups(epoch: events.DpEvent) -> list[tuple[float, int]]:
    """Return noise multipliers and numbers of the batches of an epoch of Gaussian noise."""
    if isinstance(epoch, events.RandomAllocationDpEvent):
        return [(epoch.noise_multiplier, epoch.batches)]
    return [(sigma, batches) for sigma, batches, _ in epoch.groups]


def _known(epoch: events.DpEvent) -> events.DpEvent:
    """Return the event of an epoch of known batches."""
    if isinstance(epoch, events.AllocatedDpEvent):
        return epoch.event
    return events.GaussianDpEvent(min(sigma for sigma, _ in _groups(epoch)))


def _summed(epoch: events.DpEvent) -> events.DpEvent:
    """Return the event of the sum of an epoch's answers; of nothing where that has no price."""
    if isinstance(epoch, events.AllocatedDpEvent):
        return events.NoOpDpEvent()
    square = sum(sigma * sigma * batches for sigma, batches in _groups(epoch))
    return events.GaussianDpEvent(math.sqrt(square) * (1 + 8 * UNIT))


def _log_delta_of_blanks(event: events.DpEvent, epsilon: float) -> float:
    """Return a bound on log delta by two blanked records: that of one at half of epsilon, twice."""
    half = epsilon / 2
    one = event_log_delta(event, epsilon=half, neighboring_relation=_BLANKED)
    return float(one.upper + np.logaddexp(0.0, half) * (1 + 4 * UNIT))


def _epsilon_of_blanks(event: events.DpEvent, delta: float, one: Epsilon) -> float:
    """Return about the least epsilon of two blanked records, from that of one."""
    target = math.log(delta) * (1 + 4 * UNIT)

    def excess(x: float) -> float:
        return _log_delta_of_blanks(event, math.exp(x)) - target

    # A normal loss has about this slope, and about this epsilon.
    start, most = math.log(2.1 * one.upper), math.log(2 * one.upper) + 7.0
    slope, stop = 2 * target, Stop(absolute=_WIDTH)
    with contextlib.suppress(NoBracket):
        return math.exp(newton(secant(excess, slope), start, start - 1.0, most, stop).meet)
    return math.inf


def _sides(
    event: events.DpEvent, price: Callable[..., _Answer], **given: float
) -> tuple[_Answer, Bounds]:
    """Return the answer about one blanked record, and the bracket of known batches."""
    one = price(event, neighboring_relation=_BLANKED, **given)
    summed, known = (
        price(_with(event, each), neighboring_relation=_REPLACED, **given)
        for each in (_summed, _known)
    )
    lower = min(max(one.lower, summed.lower), known.upper)
    return one, Bounds(lower, known.upper, _KNOWN)


def epsilon(event: events.DpEvent, *, delta: float, neighboring_relation: str) -> Epsilon:
    """Return a bracket of epsilon for a replaced record of a run in which records draw batches.

    Parameters
    ----------
    event
        Any nesting of compositions of supported mechanisms.
    delta
        In (0, 1).
    neighboring_relation
        ``"replace-one"``.
    """
    target = validate.probability(delta=delta)
    validate.choice((_REPLACED,), neighboring_relation=neighboring_relation)
    one, ends = _sides(event, event_epsilon, delta=target)
    if one.upper > 0 and 2 * one.upper < ends.upper < math.inf:
        two = _epsilon_of_blanks(event, target, one)
        ends = ends.both(Bounds(0.0, two, _TWO_BLANKS))
    return Epsilon.of(ends, accountant="allocation", neighboring_relation=neighboring_relation)


def log_delta(event: events.DpEvent, *, epsilon: float, neighboring_relation: str) -> LogDelta:
    """Return a bracket of the log of delta at an epsilon >= 0; see :func:`epsilon`."""
    at = validate.non_negative(epsilon=epsilon)
    validate.choice((_REPLACED,), neighboring_relation=neighboring_relation)
    _, ends = _sides(event, event_log_delta, epsilon=at)
    two = min(0.0, _log_delta_of_blanks(event, at))
    ends = ends.both(Bounds(-math.inf, two, _TWO_BLANKS))
    return LogDelta.of(ends, accountant="allocation", neighboring_relation=neighboring_relation)


def delta(event: events.DpEvent, *, epsilon: float, neighboring_relation: str) -> Delta:
    """Return a bracket of the delta of such a run at an epsilon >= 0; see :func:`epsilon`."""
    found = log_delta(event, epsilon=epsilon, neighboring_relation=neighboring_relation)
    ends = Bounds(exp_down(found.lower), exp_up(found.upper), found.method)
    return Delta.of(ends, accountant=found.accountant, neighboring_relation=neighboring_relation)
