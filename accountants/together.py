"""What do several runs about the same records cost together?

Runs whose answers have privacy losses are composed exactly: the price is that of all their answers
as one mechanism. A run with correlated noise on random batches has a price, but no losses that
compose with others, so its (epsilon, delta) is added (Dwork, Kenthapadi, McSherry, Mironov and
Naor 2006, Theorem 1).

>>> from dpcal.accountants import events
>>> half = events.GaussianDpEvent(2.0**0.5)
>>> print(f"{price_together([(half, 1e-5)] * 2, delta=1e-5):.6f}")
4.377178
>>> print(f"{epsilon(events.GaussianDpEvent(1.0), delta=1e-5):.6f}")
4.377178
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.answers import Epsilon
from dpcal.accountants.interface import epsilon
from dpcal.accountants.rounding import rounded_up, sum_up
from dpcal.errors import UnsupportedEvent

__all__ = ["price_together"]


def price_together(
    runs: Iterable[tuple[events.DpEvent, float]],
    *,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> Epsilon:
    """Return the certified epsilon of several runs about the same records.

    It holds if no run was chosen by the outputs of other runs. See
    :class:`dpcal.accountants.PrivacyFilter` for runs that were.

    Parameters
    ----------
    runs
        Pairs of an event and a delta in (0, 1). The delta is the share that a run with correlated
        noise takes of the whole; for other runs it does not matter.
    delta
        Of everything, in [0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    UnsupportedEvent
        If runs with correlated noise leave no delta for the others, or if the price of such a run
        is an estimate without a bound.
    """
    neighboring_relation = validate.relation(neighboring_relation)
    validate.below_one(delta=delta)
    alike: list[events.DpEvent] = []
    apart: list[tuple[events.DpEvent, float]] = []
    for event, share in runs:
        if isinstance(event, events.CorrelatedGaussianDpEvent):
            apart.append((event, validate.probability(delta=share)))
        else:
            alike.append(event)
    ask: dict[str, Any] = {"neighboring_relation": neighboring_relation}
    # Most runs of a data set repeat an earlier one: equal events of a composition are priced once.
    together = events.ComposedDpEvent(alike)
    if not apart:
        return epsilon(together, delta=delta, **ask)
    left = Fraction(delta) - sum((Fraction(share) for _, share in apart), Fraction(0))
    if left < 0 or (alike and left == 0):
        raise UnsupportedEvent(
            f"Runs with correlated noise are added with their deltas, {[d for _, d in apart]}, "
            f"which leave nothing of delta={delta!r} for the others: plan them with smaller deltas."
        )
    prices = [epsilon(event, delta=share, **ask) for event, share in apart]
    if alike:
        # A delta that was rounded up would not be left.
        rest = -rounded_up(-float(left), -left)
        prices.append(epsilon(together, delta=rest, **ask))
    if len(prices) == 1:
        return prices[0]
    total = sum_up(price.upper for price in prices)
    method = f"sum of {len(prices)} parts and of their deltas"
    return Epsilon(total, lower=0.0, accountant="characteristic", method=method, **ask)
