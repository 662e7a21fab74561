"""Which kinds of noisy answers are there? A table of the fixed facts about each kind.

>>> KINDS["labels"].choice, KINDS["gradient"].choice
(True, False)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS
from dpcal.calibrate.persons import for_group, rows_of_one_person

if TYPE_CHECKING:
    from dpcal.calibrate.query import Query


def _above(threshold: float, noise_multiplier: float) -> float:
    """Probability that a noisy count of 1 exceeds the threshold, rounded up.

    A label of a single record is released with this probability, and no other output depends on it.
    For a label of several records, each record moves the count by 1 (an upper bound on Wilkins et
    al. 2024, Exact privacy analysis of the Gaussian sparse histogram mechanism).
    """
    share = 0.5 * math.erfc((threshold - 1) / (noise_multiplier * math.sqrt(2)))
    return min(1.0, share * (1 + 1e-12) + 1e-300)


def _labels(query: Query) -> events.DpEvent:
    """Return the event of labels for all records of a person, at most k of them.

    A person's own labels are k at most, each of k records at most: one of them is released with a
    probability of at most k times the probability that a noisy count of k is above the threshold.
    If none is, her records move the other counts by a vector of norm k at most.
    """
    k = query.group_size
    gaussian = rows_of_one_person(noise_multiplier=query.noise_multiplier, group_size=k)
    surprise = 1.0
    if query.threshold is not None:
        above = _above(query.threshold - (k - 1), query.noise_multiplier)
        surprise = min(1.0, k * above * (1 + 1e-15))
    return events.ComposedDpEvent([gaussian, events.EpsilonDeltaDpEvent(0.0, surprise)])


def _selection(query: Query) -> events.DpEvent:
    epsilon = math.nextafter(2 / query.noise_multiplier, 9e9)
    return events.ExponentialMechanismDpEvent(epsilon)


def _above_threshold(query: Query) -> events.DpEvent:
    return events.AboveThresholdDpEvent(query.noise_multiplier, 2 * query.noise_multiplier)


def _noisy_max(query: Query) -> events.DpEvent:
    return events.ReportNoisyMaxDpEvent(query.noise_multiplier)


def _laplace_total(query: Query) -> events.DpEvent:
    return for_group(events.LaplaceDpEvent(query.noise_multiplier), query.group_size)


@dataclass(frozen=True)
class Kind:
    """The fixed properties of one kind of query.

    Parameters
    ----------
    event
        Event of one answer; None for the event of Gaussian noise on a sum.
    choice
        Whether a choice is released and no sum: labels, or a place on a line.
    cells
        Whether sums are over cells, with a record in at most one.
    once
        Whether all answers together have one epsilon.
    relations
        Neighboring relations that the event holds under.
    needs
        Values that fields may have.
    """

    event: Callable[[Query], events.DpEvent] | None = None
    choice: bool = False
    cells: bool = False
    once: bool = False
    relations: tuple[str, ...] = RELATIONS
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


_SUM = Kind()
_ALL = {"sampler": ("full",), "composition": ("sequential",), "budget": (None,)}
_SCORED = {**_ALL, "max_norm": (1,)}
_PARTS = {"composition": ("disjoint",), "answers_per_part": (1,)}
# Labels and places have a cost for a record that is added, removed or blanked.
_NOT_REPLACED = ("add-or-remove-one", "replace-special")
# The rounding of other records' scores depends on the number of records.
_SAME_NUMBER = ("replace-one", "replace-special")

LAPLACE_TOTAL = "laplace total"
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "gradient": _SUM,
        "gradient difference": _SUM,
        "gradient norm": _SUM,
        "scalar": _SUM,
        "one pass": Kind(needs=_PARTS),
        "last iterate": Kind(needs=_ALL),
        "hessian": _SUM,
        "hessian vector": _SUM,
        "saddle score": Kind(relations=_SAME_NUMBER),
        "above threshold": Kind(_above_threshold, once=True, relations=_SAME_NUMBER, needs=_SCORED),
        "noisy max": Kind(_noisy_max, relations=_SAME_NUMBER, needs=_SCORED),
        "total": Kind(cells=True, needs=_ALL),
        LAPLACE_TOTAL: Kind(_laplace_total, cells=True, needs=_ALL),
        "labels": Kind(_labels, choice=True, relations=_NOT_REPLACED, needs=_SCORED),
        "selection": Kind(_selection, choice=True, relations=_NOT_REPLACED, needs=_ALL),
    }
)
LAPLACE = ("above threshold", "noisy max")
CHOICES = tuple(name for name, kind in KINDS.items() if kind.choice)
