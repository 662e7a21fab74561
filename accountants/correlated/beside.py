"""What does a whole run cost beside other mechanisms? The least of several compositions.

A run that meets (epsilon, delta) is a claim, which composes with other mechanisms (Kairouz, Oh and
Viswanath 2015). Events that cost no less than the run compose with them, too. Whoever sees
everything sees each part of it, so that the larger lower end of run and others is one of both.

>>> from dpcal.accountants import epsilon, events
>>> run = events.ShuffledEpochsDpEvent(noise_multiplier=10.0, batches=1000, epochs=20)
>>> both = events.ComposedDpEvent([run, events.GaussianDpEvent(10.0)])
>>> answer = epsilon(both, delta=1e-5, neighboring_relation="replace-special")
>>> print(f"[{answer.lower:.3f}, {answer.upper:.3f}] {answer.method}")
[0.341, 0.402] bracket: a shuffle as a claim
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from dpcal.accountants import events
from dpcal.accountants.answers import Bounds, Delta, Epsilon
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.errors import TargetUnreachable

__all__ = ["delta_beside", "epsilon_beside"]

_Answer = TypeVar("_Answer", Epsilon, Delta)

# Share of delta that a claim takes beside other mechanisms, and shares of epsilon that are tried.
_OF_DELTA, _OF_EPSILON = 0.5, (0.5, 0.8)


def epsilon_beside(
    alone: Callable[[float], Epsilon],
    others: events.DpEvent,
    known: Mapping[str, Epsilon],
    relation: str,
    *,
    delta: float,
    claimed: str,
) -> Bounds:
    """Return bounds on the epsilon of a run and of others.

    Parameters
    ----------
    alone
        Maps a delta to the epsilon of the run alone.
    others
        What is beside the run.
    known
        Answers of compositions that cost no less than both, by the name of their method.
    relation
        The neighboring relation.
    delta
        In (0, 1).
    claimed
        Name of the method of claims.
    """
    claims = []
    with suppress(TargetUnreachable):
        part = alone(_OF_DELTA * delta)
        claims.append(events.EpsilonDeltaDpEvent(part.upper, _OF_DELTA * delta))
    price = partial(event_epsilon, delta=delta, neighboring_relation=relation)
    return _least(price, alone(delta), others, known, claims, claimed)


def delta_beside(
    alone: Callable[[float], Delta],
    others: events.DpEvent,
    known: Mapping[str, Delta],
    relation: str,
    *,
    epsilon: float,
    claimed: str,
) -> Bounds:
    """Return bounds on the delta of a run and of others at an epsilon; see :func:`epsilon_beside`.

    ``alone`` maps an epsilon to the delta of the run.
    """
    parts = [(share * epsilon, alone(share * epsilon)) for share in _OF_EPSILON]
    claims = [events.EpsilonDeltaDpEvent(at, part.upper) for at, part in parts]
    price = partial(event_delta, epsilon=epsilon, neighboring_relation=relation)
    return _least(price, alone(epsilon), others, known, claims, claimed)


def _least(
    price: Callable[[events.DpEvent], _Answer],
    alone: _Answer,
    others: events.DpEvent,
    known: Mapping[str, _Answer],
    claims: Sequence[events.DpEvent],
    claimed: str,
) -> Bounds:
    """Return the least upper end with its method, and the larger lower end of both parts."""
    # Draws say nothing for sure, and neither does what rests on them.
    named = ", ".join(filter(None, (claimed, alone.label)))
    found = [(price(events.ComposedDpEvent([each, others])).upper, named) for each in claims]
    found += [(answer.upper, method) for method, answer in known.items()]
    upper, method = min(found)
    return Bounds(min(max(alone.lower, price(others).lower), upper), upper, method)
