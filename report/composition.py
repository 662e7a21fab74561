"""What do several reports about the same records claim together?

>>> import json
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Ledger
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=2)
>>> plan = Plan(optimizer="noisy_gd", n=100, queries=(query,), epsilon=3.0, delta=1e-5)
>>> ledger = Ledger(100, "add-or-remove-one", entries=[query])
>>> run = {"plan": json.loads(plan.to_json()), "ledger": json.loads(ledger.to_json()),
...        "delta": 1e-5}
>>> print(f"{composed_reports([{'runs': [run]}, {'runs': [run]}]):.6f}")
4.377178
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dpcal.accountants import Epsilon
from dpcal.accountants.events import DpEvent
from dpcal.accountants.together import price_together
from dpcal.report.verification import priced

__all__ = ["composed_reports"]

_Priced = tuple[DpEvent, float]

# So many ways to choose one silo of each report are priced one by one; where there are more, all
# silos are taken together, which is no less. Silos that paid alike count once.
_MOST = 16


def composed_reports(documents: Iterable[Mapping[str, Any]], delta: float | None = None) -> Epsilon:
    """Return the epsilon of all runs in all reports, as if all were about the same records.

    The unit is the largest person whom a run is about: runs about single records are priced for
    persons with so many. Every run costs its whole plan, or what its ledger holds where that is not
    within the plan. The claim holds where no run was chosen with a look at another one's results. A
    record is in one silo of a report at most: of runs over silos the worst choice of one silo a
    report counts.

    Parameters
    ----------
    documents
        Parsed ``report.json`` files.
    delta
        Of everything, in (0, 1); the largest delta of a run when omitted.

    Raises
    ------
    ValueError
        If a document is no report, or their neighboring relations differ.
    UnsupportedEvent
        If runs with correlated noise leave no delta for the others.
    """
    documents = list(documents)
    try:
        runs = [run for document in documents for run in document["runs"]]
        # Held-out records of one report may be training records of another one.
        scores = [each for each in map(_evaluation, documents) if each is not None]
        costs = {id(run): priced(run)[0] for run in [*runs, *scores]}
        size = max(cost.group_size for cost in costs.values())
        paid = {
            id(run): (costs[id(run)].event_for(size), float(run["delta"]))
            for run in [*runs, *scores]
        }
        choices = [_by_silo(document["runs"], paid) for document in documents]
        choices += [[[paid[id(each)]]] for each in scores]
        relations = {run["plan"]["neighboring_relation"] for run in [*runs, *scores]}
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"document must be a report in JSON, lacks or misuses {error}.") from error
    if len(relations) != 1:
        raise ValueError(
            "reports that are composed must share one neighboring relation, got "
            f"{sorted(relations)}."
        )
    if math.prod(map(len, choices)) > _MOST:
        choices = [[[each for silo in silos for each in silo]] for silos in choices]
    largest = max(share for silos in choices for silo in silos for _, share in silo)
    relation = relations.pop()
    prices = [
        price_together(
            [each for silo in chosen for each in silo],
            delta=largest if delta is None else delta,
            neighboring_relation=relation,
        )
        for chosen in itertools.product(*choices)
    ]
    return max(prices, key=lambda price: float(price.upper))


def _by_silo(runs: Iterable[Mapping[str, Any]], paid: Mapping[int, _Priced]) -> list[list[_Priced]]:
    """Return what the runs of each silo cost; of silos that paid alike, one."""
    found: dict[Any, list[_Priced]] = {}
    for run in runs:
        found.setdefault(run.get("silo"), []).append(paid[id(run)])
    different: list[list[_Priced]] = []
    for silo in found.values():
        if silo not in different:
            different.append(silo)
    return different


def _evaluation(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the noisy scores of held-out records, which are a run of their own, if any."""
    section: Mapping[str, Any] = document.get("evaluation", {})
    return section if section.get("held_out") == "noisy" else None
