"""Runs with an epsilon only as a whole, and none for a step: noise or batches depend on each other.

>>> from dpcal.accountants import epsilon
>>> run = events.ShuffledEpochsDpEvent(noise_multiplier=10.0, batches=100, epochs=1)
>>> print(f"{epsilon(run, delta=1e-6, neighboring_relation='replace-special'):.2f}")
0.05
"""

from __future__ import annotations

from dpcal._internal import annexes
from dpcal.accountants import events
from dpcal.accountants.mechanisms.pure import without_bound
from dpcal.accountants.mechanisms.row import Pairs, Row, only_auto, refuse


@Row(
    events.CorrelatedGaussianDpEvent(None, None, 3.0),
    "[correlated noise](../how_to/correlated_noise.md#which-accountant-answers)",
    largest=without_bound,
    whole_run="pricing",
    equivalent=lambda event: annexes.pricing.equivalent(event),
)
def _correlated(event: events.CorrelatedGaussianDpEvent, relation: str) -> Pairs:
    pairs: Pairs = annexes.pricing.losses(event, relation)
    return pairs


@Row(
    events.ShuffledEpochsDpEvent(3.0, 2, 1),
    "[shuffled epochs](../explanation/batches.md#shuffled-epochs), once in a composition",
    largest=without_bound,
    whole_run="shuffling",
)
def _shuffled(event: events.ShuffledEpochsDpEvent, relation: str) -> Pairs:
    if relation == "add-or-remove-one":
        reason = (
            "A record that is added or removed moves others to other batches: use "
            "'replace-special' (its contribution becomes 0, and it keeps its place) or "
            "'replace-one'."
        )
        raise refuse(event, relation, reason)
    raise only_auto(event, relation, "as a whole run, once in a composition")
