"""Events that state their own cost, as (epsilon, delta) or zCDP, and events that compose others.

>>> from dpcal.accountants.mechanisms.row import dominating_pairs
>>> dominating_pairs(events.EpsilonDeltaDpEvent(0.0, 0.25), "replace-one")[0].failure_probability
0.25
"""

from __future__ import annotations

import math

import attr

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss
from dpcal.accountants.losses.discrete import pure
from dpcal.accountants.losses.failure import Concentrated, LossWithFailure
from dpcal.accountants.mechanisms.row import Pairs, Row, refuse


def _for_group(event: events.EpsilonDeltaDpEvent, k: int) -> events.EpsilonDeltaDpEvent | None:
    """Return (k epsilon, delta (1 + ... + e^((k - 1) epsilon))) (Dwork and Roth 2014, Theorem 2.2).

    A delta without an epsilon is the failure probability of noise that stands in the same event,
    such as a threshold's: for several records one after another the noise multiplies it.
    """
    if event.delta and not event.epsilon:
        return None
    epsilon = math.nextafter(k * event.epsilon, math.inf)
    if event.delta == 0:
        return attr.evolve(event, epsilon=epsilon)
    factor = math.fsum(math.exp(min(700.0, j * event.epsilon)) for j in range(k))
    return attr.evolve(event, epsilon=epsilon, delta=min(1.0, event.delta * factor * (1 + 1e-14)))


@Row(
    events.EpsilonDeltaDpEvent(0.5, 1e-6),
    "Kairouz, Oh and Viswanath 2015",
    record="stated",
    group=_for_group,
)
def _epsilon_delta(event: events.EpsilonDeltaDpEvent, relation: str) -> PrivacyLoss:
    return claim(event.epsilon, event.delta)


def claim(epsilon: float, delta: float = 0.0) -> PrivacyLoss:
    """Return the loss that dominates every (epsilon, delta)-private mechanism.

    Parameters
    ----------
    epsilon
        A finite number >= 0.
    delta
        A number in [0, 1].
    """
    epsilon = validate.non_negative(epsilon=epsilon)
    failure = validate.within(0.0, 1.0, delta=delta)
    given = pure(epsilon) if epsilon > 0 else NO_LOSS
    return LossWithFailure(given, failure) if failure > 0 else given


@Row(events.ZCDpEvent(0.5), "Bun and Steinke 2016", record="stated")
def _concentrated(event: events.ZCDpEvent, relation: str) -> PrivacyLoss:
    return Concentrated(event.rho, event.xi)


@Row(
    events.ComposedDpEvent([events.GaussianDpEvent(1.0), events.LaplaceDpEvent(1.0)]),
    "as its parts",
)
@Row(events.SelfComposedDpEvent(events.GaussianDpEvent(1.0), 2), "as its parts")
@Row(events.NonPrivateDpEvent())
def _without_losses(event: events.DpEvent, relation: str) -> Pairs:
    raise refuse(event, relation)


@Row(events.NoOpDpEvent(), record="sum", group=lambda event, k: event)
def _nothing(event: events.NoOpDpEvent, relation: str) -> PrivacyLoss:
    return NO_LOSS


@Row(events.UnsupportedDpEvent())
def _undescribed(event: events.UnsupportedDpEvent, relation: str) -> Pairs:
    raise refuse(event, relation, "It stands for an operation that has no description.")
