"""What do whole runs cost beside other mechanisms? The least of several compositions.

A run that meets (epsilon, delta) is a claim, which composes with other claims and mechanisms
(Kairouz, Oh and Viswanath 2015). Events that cost no less than the run compose with them, too.
Whoever sees everything sees each part of it, so that the largest lower end of runs and others is
one of all.

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
from typing import Any

from dpcal.accountants import events
from dpcal.accountants.answers import Bounds, Delta, Epsilon
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.errors import TargetUnreachable

# Shares of a delta, or of an epsilon, that all claims take; several runs leave little.
_OF_DELTA, _OF_EPSILON, _OF_MANY = (0.5,), (0.5, 0.8), (0.95,)


def beside(
    runs: Sequence[Callable[[float], Epsilon | Delta]],
    others: events.DpEvent,
    known: Mapping[str, Epsilon | Delta],
    relation: str,
    *,
    claimed: str,
    **given: float,
) -> Bounds:
    """Return bounds on the epsilon at a delta, or on the delta at an epsilon, of runs and others.

    Parameters
    ----------
    runs
        Each maps a delta to the epsilon of one run alone, or an epsilon to its delta.
    others
        What is beside the runs.
    known
        Answers of compositions that cost no less than all, by the name of their method.
    relation
        The neighboring relation.
    claimed
        Name of the method of claims.
    **given
        ``delta`` or ``epsilon``.
    """
    ((name, at),) = given.items()
    price: Any = event_epsilon if name == "delta" else event_delta
    price = partial(price, neighboring_relation=relation, **given)
    alone = [run(at) for run in runs]
    # Draws are no proof, and neither are answers that rest on them.
    named = ", ".join(filter(None, (claimed, *sorted({each.label for each in alone}))))
    found = [(answer.upper, method) for method, answer in known.items()]
    shares = _OF_MANY if len(runs) > 1 else _OF_DELTA if name == "delta" else _OF_EPSILON
    for part in (share * at / len(runs) for share in shares):
        with suppress(TargetUnreachable):
            ends = [(run(part).upper, part) for run in runs]
            pairs = ends if name == "delta" else [end[::-1] for end in ends]
            claims = [events.EpsilonDeltaDpEvent(*pair) for pair in pairs]
            found.append((price(events.ComposedDpEvent([*claims, others])).upper, named))
    upper, method = min(found)
    lower = max(price(others).lower, *(each.lower for each in alone))
    return Bounds(min(lower, upper), upper, method)
