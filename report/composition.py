"""What do several reports about the same records claim together?

>>> from dpcal.calibrate import Query
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

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dpcal.accountants import Epsilon
from dpcal.accountants.events import DpEvent
from dpcal.calibrate import Plan
from dpcal.calibrate.together import price_together
from dpcal.errors import LedgerMismatch
from dpcal.optim import Ledger
from dpcal.optim.boundary.ledger import check_ledger

__all__ = ["composed_reports"]


def composed_reports(documents: Iterable[Mapping[str, Any]], delta: float | None = None) -> Epsilon:
    """Return the epsilon of all runs in all reports, as if all were about the same records.

    Every run costs its whole plan, or what its ledger holds where that is not within the plan. The
    claim holds where no run was chosen with a look at another one's results.

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
        runs += [each for each in map(_evaluation, documents) if each is not None]
        priced = [(_event(run), float(run["delta"])) for run in runs]
        relations = {run["plan"]["neighboring_relation"] for run in runs}
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"document must be a report in JSON, lacks or misuses {error}.") from error
    if len(relations) != 1:
        raise ValueError(
            "reports that are composed must share one neighboring relation, got "
            f"{sorted(relations)}."
        )
    return price_together(
        priced,
        delta=max(share for _, share in priced) if delta is None else delta,
        neighboring_relation=relations.pop(),
    )


def _evaluation(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the noisy scores of held-out records, which are a run of their own, if any."""
    section: Mapping[str, Any] = document.get("evaluation", {})
    return section if section.get("held_out") == "noisy" else None


def _event(run: Mapping[str, Any]) -> DpEvent:
    """Return what a run costs: its plan, or its ledger where that is not within the plan."""
    plan = Plan.from_json(json.dumps(run["plan"]))
    ledger = Ledger.from_json(json.dumps(run["ledger"]))
    try:
        check_ledger(ledger, plan, exact=False)
    except LedgerMismatch:
        return ledger.event
    return plan.event
