"""Check of a report: its claims against the costs of its plans, its ledgers against its plans.

Two runs of two answers with noise multiplier 2 cost as much as one answer with noise multiplier 1,
and so do two reports of one run each.

>>> from dpcal.calibrate import Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=2)
>>> plan = Plan(optimizer="noisy_gd", n=100, queries=(query,), epsilon=3.0, delta=1e-5)
>>> ledger = Ledger(100, "add-or-remove-one", entries=[query])
>>> together = composed_epsilon([ledger, ledger], 1e-5)["epsilon"]["upper"]
>>> print(f"{together:.6f} {epsilon(events.GaussianDpEvent(1.0), delta=1e-5):.6f}")
4.377178 4.377178
>>> run = {"plan": json.loads(plan.to_json()), "ledger": json.loads(ledger.to_json()),
...        "delta": 1e-5}
>>> print(f"{composed_reports([{'runs': [run]}] * 2)['epsilon']['upper']:.6f}")
4.377178
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpcal._internal.files import read_as
from dpcal.accountants import epsilon, events
from dpcal.calibrate import Plan
from dpcal.calibrate.persons import unit_of
from dpcal.errors import LedgerMismatch
from dpcal.optim import Ledger, Result
from dpcal.optim.boundary.ledger import check_ledger
from dpcal.report.files import FORMAT

# Relative difference of a cost between two machines.
_ROUNDING = 1e-6
# Choices of silos taken one by one; beyond, all silos are taken together, which costs no less.
_MOST = 16

_MUST = "document must be a report in JSON with all its parts"

_Run = Mapping[str, Any]
_Cost = Plan | Ledger


def composed_epsilon(runs: Iterable[_Cost | Result], delta: float) -> dict[str, Any]:
    """Return the epsilon of releasing every run about the same records.

    Runs are accounted for at the largest group size of a run. A result that ended early costs its
    whole plan, although its ledger holds less.
    """
    costs = [*runs]
    each, relation, size = _parts(costs)
    named = {cost.accountant for cost in costs}
    accountant = named.pop() if len(named) == 1 else "auto"
    price = _largest([each], delta, neighboring_relation=relation, accountant=accountant)
    return {"runs": len(costs), "delta": delta, "epsilon": price, "unit": unit_of(size)}


def claims_of(document: Mapping[str, Any]) -> dict[str, list[_Run]]:
    """Return the runs of each claim of a report, by the claim's name.

    The claims are about all runs together, or the runs of the silo with the largest cost; and about
    held-out scores, if they were paid for: those scores are about other records.
    """
    silos, delta = _by_silo(document["runs"]), document["everything"]["delta"]

    def paid(runs: list[_Run]) -> float:
        return _upper(composed_epsilon([priced(run)[0] for run in runs], delta))

    name = "all runs together" if len(silos) == 1 else "the silo that paid most"
    scores = _scores_of(document)
    found = {name: max(silos.values(), key=paid)}
    return found | ({"held-out scores": scores} if scores else {})


def event_of(runs: Iterable[_Run]) -> tuple[events.DpEvent, str]:
    """Return the event of runs of a report about the same records, and their relation.

    Raises
    ------
    ValueError
        If a run is none, or their neighboring relations differ.
    """
    with read_as(_MUST):
        each, relation, _ = _parts([priced(run)[0] for run in runs])
    return each[0] if len(each) == 1 else events.ComposedDpEvent(each), relation


def _parts(costs: Sequence[_Cost | Result]) -> tuple[list[events.DpEvent], str, int]:
    """Return the events of costs for their largest person, their relation, and that person."""
    relation, size = _relation(costs), max(cost.group_size for cost in costs)
    return [cost.event_for(size) for cost in costs], relation, size


def _relation(costs: Iterable[_Cost | Result]) -> str:
    relations = {cost.under()[1] for cost in costs}
    if len(relations) != 1:
        raise ValueError(f"runs must share one neighboring relation, got {sorted(relations)}.")
    return relations.pop()


def _largest(choices: list[list[events.DpEvent]], delta: float, **how: Any) -> dict[str, Any]:
    """Return the largest epsilon of several compositions."""
    prices = [epsilon(events.ComposedDpEvent(each), delta=delta, **how) for each in choices]
    return max(prices, key=lambda price: float(price.upper)).to_dict()


def composed_reports(
    documents: Iterable[Mapping[str, Any]], delta: float | None = None
) -> dict[str, Any]:
    """Return the epsilon of all runs in all reports, as if all were about the same records.

    The unit is the largest person of a run: runs about single records are accounted for at this
    group size. Every run costs its whole plan, or its ledger where the ledger is not within the
    plan. The claim holds if no run was chosen by another run's results. A record is in at most one
    silo of a report: for runs over silos, the worst choice of one silo per report counts.

    Parameters
    ----------
    documents
        Parsed ``report.json`` files.
    delta
        Delta of everything, in (0, 1); the largest delta of a run when omitted.

    Raises
    ------
    ValueError
        If a document is no report, or their neighboring relations differ.
    """
    with read_as(_MUST):
        parts, count = [], 0
        for document in documents:
            count += len(document["runs"])
            parts.append([*_by_silo(document["runs"]).values()])
            parts += [[[scores]] for scores in _scores_of(document)]
        runs = [run for silos in parts for own in silos for run in own]
        found, relation, size = _parts([priced(run)[0] for run in runs])
        event = dict(zip(map(id, runs), found, strict=True))
        choices = []
        for silos in parts:
            paid = [[event[id(run)] for run in own] for own in silos]
            choices.append([own for place, own in enumerate(paid) if own not in paid[:place]])
        if delta is None:
            delta = max(float(run["delta"]) for run in runs)
    if math.prod(map(len, choices)) > _MOST:
        choices = [[[each for own in silos for each in own]] for silos in choices]
    chosen = [[*itertools.chain(*each)] for each in itertools.product(*choices)]
    price = _largest(chosen, delta, neighboring_relation=relation)
    return {"runs": count, "delta": delta, "epsilon": price, "unit": unit_of(size)}


def verify(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Recompute the claims of a ``report.json`` from the plans and ledgers in it.

    Where runs name a ``silo``, the runs of each silo are composed, and the total is the largest
    cost of a silo: the claim is about one record of one silo. The silos must share no
    record. A run costs its whole plan: it spent all of it, or it stopped because of its own
    output.

    Parameters
    ----------
    document
        The parsed file.

    Returns
    -------
    list of dict
        One row per claim: ``claim``, ``delta``, ``claimed`` and ``recomputed`` (upper bounds of
        epsilon), ``label`` (how sure the cost is, where noise was correlated) and ``holds``. A
        claim holds if it is not below the proved bound, except for rounding, and every ledger is
        within its plan.

    Raises
    ------
    ValueError
        If the document is not a report.
    """
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        raise ValueError(f"document must be a report in JSON, an object, got a {kind}.")
    with read_as(_MUST):
        if document["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {document['format']!r}.")
        return _verified(document)


def _verified(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the row of each run, of held-out scores, and of everything together."""
    everything, runs = document["everything"], document["runs"]
    costs = {id(run): priced(run) for run in runs}
    rows = []
    for run in runs:
        cost, kept = costs[id(run)]
        name = f"target epsilon {run['plan']['epsilon']:g}"
        silo = "" if run.get("silo") is None else f", silo {run['silo']}"
        rows.append(_checked(name + silo, run, _alone(cost, run["delta"]), kept))
    # Runs of different silos are about different records: costs are not summed over silos.
    silos = _by_silo(runs)
    if None in silos and len(silos) > 1:
        raise ValueError("document must name the silo of each run, or of none.")
    delta, within = everything["delta"], all(kept for _, kept in costs.values())
    relation = _relation(cost for cost, _ in costs.values())
    prices = [composed_epsilon([costs[id(run)][0] for run in own], delta) for own in silos.values()]
    for scores in _scores_of(document):
        # Scores are about records that no run has seen: each record pays for one of the two.
        cost, kept = priced(scores)
        kept = kept and {each.group_size for each, _ in costs.values()} == {cost.group_size}
        prices.append(_alone(cost, scores["delta"]))
        rows.append(_checked("held-out scores", scores, prices[-1], kept))
        same = (cost.neighboring_relation, scores["delta"]) == (relation, delta)
        within = within and kept and same
    whole = "all runs together" if None in silos else "all runs of each silo"
    return [*rows, _checked(whole, everything, max(prices, key=_upper), within)]


def priced(run: _Run) -> tuple[_Cost, bool]:
    """Return the plan of a run, or a ledger that exceeds it, and whether the plan covers it."""
    plan = Plan.from_json(json.dumps(run["plan"]))
    ledger = Ledger.from_json(json.dumps(run["ledger"]))
    _ = ledger.event
    try:
        check_ledger(ledger, plan, exact=False)
    except LedgerMismatch:
        return ledger, False
    return plan, True


def _alone(cost: _Cost, delta: float) -> dict[str, Any]:
    """Return the cost of one run, which has a label where its noise is correlated."""
    relation, who = cost.neighboring_relation, cost.accountant
    price = epsilon(cost.event, delta=delta, neighboring_relation=relation, accountant=who)
    return {"epsilon": price.to_dict()}


def _upper(found: Mapping[str, Any]) -> float:
    return float(found["epsilon"]["upper"])


def _by_silo(runs: Iterable[_Run]) -> dict[int | None, list[_Run]]:
    """Return the runs of each silo; of None where runs name none."""
    found: dict[int | None, list[_Run]] = {}
    for run in runs:
        silo = run.get("silo")
        if silo is not None and (isinstance(silo, bool) or not isinstance(silo, int) or silo < 0):
            raise ValueError(f"silo must be a whole number >= 0, got {silo!r}.")
        found.setdefault(silo, []).append(run)
    return found


def _scores_of(document: Mapping[str, Any]) -> list[_Run]:
    """Return the noisy scores of held-out records, which are a run of their own, if any."""
    section: _Run = document.get("evaluation", {})
    return [section] if section.get("held_out") == "noisy" else []


def _checked(
    name: str, claim: Mapping[str, Any], found: Mapping[str, Any], kept: bool
) -> dict[str, Any]:
    """Return a claim's row. Upper bounds are compared: intervals that meet prove no claim."""
    claimed, proved = claim["epsilon"], found["epsilon"]
    holds = claimed["upper"] >= proved["upper"] * (1 - _ROUNDING)
    same = all(claimed.get(each) == proved.get(each) for each in ("neighboring_relation", "label"))
    return {
        "claim": name,
        "delta": claim["delta"],
        "claimed": claimed["upper"],
        "recomputed": proved["upper"],
        "label": proved.get("label"),
        "holds": bool(holds and same and kept),
    }
