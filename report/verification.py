"""Is a report's claim covered by what its plans cost, and are its ledgers within its plans?

Two runs of two answers with noise multiplier 2 cost as much as one answer with noise multiplier 1.

>>> from dpcal.calibrate import Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=2)
>>> ledger = Ledger(100, "add-or-remove-one", entries=[query])
>>> together = composed_epsilon([ledger, ledger], 1e-5)["epsilon"]["upper"]
>>> print(f"{together:.6f} {epsilon(events.GaussianDpEvent(1.0), delta=1e-5):.6f}")
4.377178 4.377178
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpcal.accountants import epsilon, events
from dpcal.calibrate import Plan
from dpcal.calibrate.persons import unit_of
from dpcal.errors import LedgerMismatch
from dpcal.optim import Ledger, Result
from dpcal.optim.boundary.ledger import check_ledger
from dpcal.report.files import FORMAT

__all__ = ["claims_of", "composed_epsilon", "event_of", "priced", "verify"]

# A price may differ by this between two machines, relatively.
_ROUNDING = 1e-6


def composed_epsilon(runs: Iterable[Ledger | Result], delta: float) -> dict[str, Any]:
    """Return the epsilon of releasing every run about the same records.

    Runs are priced for the largest person whom one of them is about. A result that ended early
    costs its whole plan; its ledger alone would not say so.
    """
    runs = list(runs)
    ledgers = [run if isinstance(run, Ledger) else run.ledger for run in runs]
    relations = {ledger.neighboring_relation for ledger in ledgers}
    if len(relations) != 1:
        raise ValueError(f"runs must share one neighboring relation, got {sorted(relations)}.")
    return _composed(runs, delta)


def claims_of(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the runs that each claim of a report is about, by the claim's name.

    All runs together, of silos those of the silo that paid most; and held-out scores, if they were
    paid for, which are about other records.
    """
    parts: dict[int | None, list[Mapping[str, Any]]] = {}
    for run in document["runs"]:
        parts.setdefault(_silo_of(run), []).append(run)
    delta = document["everything"]["delta"]

    def paid(runs: list[Mapping[str, Any]]) -> float:
        price = _composed([priced(run)[0] for run in runs], delta)["epsilon"]["upper"]
        return float(price)

    whole = next(iter(parts.values())) if len(parts) == 1 else max(parts.values(), key=paid)
    found = {"all runs together" if len(parts) == 1 else "the silo that paid most": whole}
    if document.get("evaluation", {}).get("held_out") == "noisy":
        found["held-out scores"] = [document["evaluation"]]
    return found


def event_of(runs: Iterable[Mapping[str, Any]]) -> tuple[events.DpEvent, str]:
    """Return the event of runs of a report about the same records, and their relation.

    Raises
    ------
    ValueError
        If a run is none, or their neighboring relations differ.
    """
    try:
        costs = [priced(run)[0] for run in runs]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"runs must be those of a report, lack or misuse {error}.") from error
    relations = {cost.neighboring_relation for cost in costs}
    if len(relations) != 1:
        raise ValueError(f"runs must share one neighboring relation, got {sorted(relations)}.")
    size = max(cost.group_size for cost in costs)
    each = [cost.event_for(size) for cost in costs]
    return each[0] if len(each) == 1 else events.ComposedDpEvent(each), relations.pop()


def _price(cost: Plan | Ledger, delta: float) -> dict[str, Any]:
    relation, who = cost.neighboring_relation, cost.accountant
    return epsilon(cost.event, delta=delta, neighboring_relation=relation, accountant=who).to_dict()


def _composed(runs: Sequence[Plan | Ledger | Result], delta: float) -> dict[str, Any]:
    size = max(run.group_size for run in runs)
    event = events.ComposedDpEvent([run.event_for(size) for run in runs])
    relation = runs[0].under()[1]
    # Runs that were priced by several accountants are priced by the one that bounds most closely.
    named = {run.accountant for run in runs}
    accountant = named.pop() if len(named) == 1 else "auto"
    price = epsilon(event, delta=delta, neighboring_relation=relation, accountant=accountant)
    return {"runs": len(runs), "delta": delta, "epsilon": price.to_dict(), "unit": unit_of(size)}


def verify(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Recompute the claims of a ``report.json`` from the plans and ledgers in it.

    Where runs name a ``silo``, those of each silo are composed, and the largest price is that of
    all: the claim is about one record of one silo. That silos share no record is theirs to see to.
    A run costs its whole plan: it asked all of it, or it stopped on account of what it had put out.

    Parameters
    ----------
    document
        The parsed file.

    Returns
    -------
    list of dict
        One row a claim: ``claim``, ``delta``, ``claimed`` and ``recomputed`` (upper bounds of
        epsilon), ``label`` (how sure the price is, where noise was correlated) and ``holds``, which
        says that the claim is not below what is proved, but for rounding, and no ledger is outside
        its plan.

    Raises
    ------
    ValueError
        If the document is not a report.
    """
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        raise ValueError(f"document must be a report in JSON, an object, got a {kind}.")
    try:
        if document["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {document['format']!r}.")
        rows, relations, kept = [], set(), True
        # Runs of different silos are about different records: nothing is summed over silos.
        parts: dict[int | None, list[Plan | Ledger]] = {}
        for run in document["runs"]:
            cost, agrees = priced(run)
            proved = _price(cost, run["delta"])
            name = f"target epsilon {run['plan']['epsilon']:g}"
            silo = _silo_of(run)
            row = _checked(name if silo is None else f"{name}, silo {silo}", run, proved)
            rows.append({**row, "holds": row["holds"] and agrees})
            parts.setdefault(silo, []).append(cost)
            relations.add(cost.neighboring_relation)
            kept = kept and agrees
        everything = document["everything"]
        if len(relations) != 1:
            raise ValueError(f"runs must share one neighboring relation, got {sorted(relations)}.")
        relation = relations.pop()
        if None in parts and len(parts) > 1:
            raise ValueError("document must name the silo of each run, or of none.")
        together = [_composed(own, everything["delta"]) for own in parts.values()]
        proved = max((price["epsilon"] for price in together), key=lambda price: price["upper"])
        evaluation = document.get("evaluation", {})
        if evaluation.get("held_out") == "noisy":
            # About records that no run has seen: each record pays for one of the two.
            cost, agrees = priced(evaluation)
            delta, about = evaluation["delta"], cost.neighboring_relation
            scores = _price(cost, delta)
            units = {each.group_size for own in [*parts.values(), [cost]] for each in own}
            agrees = agrees and len(units) == 1
            row = _checked("held-out scores", evaluation, scores)
            rows.append({**row, "holds": row["holds"] and agrees})
            kept = kept and agrees and about == relation and delta == everything["delta"]
            proved = max(proved, scores, key=lambda price: price["upper"])
        whole = "all runs together" if None in parts else "all runs of each silo"
        row = _checked(whole, everything, proved)
        return [*rows, {**row, "holds": row["holds"] and kept}]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"document must be a report in JSON, lacks or misuses {error}.") from error


def _silo_of(run: Mapping[str, Any]) -> int | None:
    """Return the silo number of a run, or None if the run has a single silo."""
    silo = run.get("silo")
    if silo is not None and (isinstance(silo, bool) or not isinstance(silo, int) or silo < 0):
        raise ValueError(f"silo must be a whole number >= 0, got {silo!r}.")
    return silo


def priced(run: Mapping[str, Any]) -> tuple[Plan | Ledger, bool]:
    """Return what a run costs, by its plan or ledger, and whether its ledger is within its plan."""
    plan = Plan.from_json(json.dumps(run["plan"]))
    ledger = Ledger.from_json(json.dumps(run["ledger"]))
    _ = ledger.event  # refuses a ledger that is none
    try:
        check_ledger(ledger, plan, exact=False)
    except LedgerMismatch:
        return ledger, False
    return plan, True


def _checked(name: str, claim: Mapping[str, Any], proved: Mapping[str, Any]) -> dict[str, Any]:
    """Return a claim's row. Upper bounds are compared: intervals that meet prove no claim."""
    claimed = claim["epsilon"]
    holds = claimed["upper"] >= proved["upper"] * (1 - _ROUNDING)
    same = all(claimed.get(each) == proved.get(each) for each in ("neighboring_relation", "label"))
    return {
        "claim": name,
        "delta": claim["delta"],
        "claimed": claimed["upper"],
        "recomputed": proved["upper"],
        "label": proved.get("label"),
        "holds": bool(holds and same),
    }
