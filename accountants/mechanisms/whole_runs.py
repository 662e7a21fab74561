"""Runs that have a price as a whole and none for a step: other noise, or other places, bind steps.

>>> from dpcal.accountants import epsilon
>>> run = events.ShuffledEpochsDpEvent(noise_multiplier=10.0, batches=100, epochs=1)
>>> print(f"{epsilon(run, delta=1e-6, neighboring_relation='replace-special'):.2f}")
0.05
"""

from __future__ import annotations

from dpcal.accountants import events
from dpcal.accountants.mechanisms.row import Pairs, Row, only_auto, refuse
from dpcal.errors import UnsupportedEvent

__all__ = ["refuse_reordering"]


@Row(
    events.CorrelatedGaussianDpEvent,
    answers=("yes, not in a composition",) * 3,
    source="[correlated noise](correlated.md)",
    example="CorrelatedGaussianDpEvent(matrix.Banded(6, 2), correlated.CyclicPoisson(3, 0.5), 3.0, "
    "draws=1024, seed=1)",
    bounded=False,
    whole_run="pricing",
)
def _correlated(event: events.CorrelatedGaussianDpEvent, relation: str) -> Pairs:
    raise only_auto(event, relation, "as a whole run, alone and not in a composition")


@Row(
    events.ShuffledEpochsDpEvent,
    answers=("refused", *("yes, a bracket, once in a composition",) * 2),
    source="[shuffled epochs](#shuffled-epochs)",
    example="ShuffledEpochsDpEvent(3.0, 2, 1)",
    bounded=False,
    whole_run="shuffling",
)
def _shuffled(event: events.ShuffledEpochsDpEvent, relation: str) -> Pairs:
    if relation == "add-or-remove-one":
        raise refuse_reordering(event, relation)
    raise only_auto(event, relation, "as a whole run, once in a composition")


def refuse_reordering(event: events.ShuffledEpochsDpEvent, relation: str) -> UnsupportedEvent:
    """Return the refusal of shuffled epochs where the number of records differs."""
    reason = (
        "A record that is added or removed moves others to other batches: use 'replace-special' "
        "(its contribution becomes 0, and it keeps its place) or 'replace-one'."
    )
    return refuse(event, relation, reason)
