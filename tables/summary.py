"""Text of a release for a terminal: a line for each kind of answer.

>>> found = {"held_out": "none", "reason": "nothing is held out"}
>>> scores_line(found)
'held-out scores: not measured, because nothing is held out'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcal.calibrate import Query
from dpcal.optim import Result
from dpcal.optim.linear_fit import SCALE
from dpcal.report.output import answer, with_interval


def summary(result: Result, data: Mapping[str, Any], evaluation: Mapping[str, Any]) -> str:
    """Return the text on the answers of a run, its epsilon, and its held-out scores.

    ``data`` and ``evaluation`` are sections of its report.
    """
    n = f", {data['training_records']} training records" if "training_records" in data else ""
    n += f" of {data['training_persons']} persons" if "training_persons" in data else ""
    lines = [
        f"{result.message}{n}",
        *_answers(result),
        answer("epsilon", result.epsilon(result.plan.delta), f"delta = {result.plan.delta:g}"),
    ]
    if "label" in result.plan.parameters:
        lines.append(f"the cost is {result.plan.parameters['label']}")
    return "\n".join([*lines, scores_line(evaluation)])


HELD_OUT = {"noisy": "noisy, paid by the held-out records", "unprotected": "not private"}


def scores_line(found: Mapping[str, Any]) -> str:
    """Return the text on the scores of held-out records, each with its interval.

    >>> sure = {"auc": 0.9, "auc_standard_error": 0.02, "accuracy": 0.8, "standard_error": 0.02}
    >>> larger = {"majority_baseline": 0.6, "majority_standard_error": 0.02}
    >>> print(scores_line({"held_out": "noisy", **sure, **larger}))
    held-out scores (noisy, paid by the held-out records), with intervals of 95%:
    AUC 0.900 [0.860, 0.940], accuracy 0.800 [0.760, 0.840],
    larger class 0.600 [0.560, 0.640]
    >>> print(scores_line({"held_out": "noisy", **sure, **larger, "auc": 1.0,
    ...                    "auc_standard_error": 0.45}).splitlines()[1])
    AUC hidden by noise, accuracy 0.800 [0.760, 0.840],
    """
    if "reason" in found:
        return f"held-out scores: not measured, because {found['reason'].rstrip('.')}"

    def said(name: str, error: str, **how: Any) -> str:
        return with_interval(found[name], found[error], hidden="hidden by noise", **how)

    if "accuracy" in found:
        share = {"digits": ".3f", "most": 1.0}
        area = said("auc", "auc_standard_error", **share)
        right = said("accuracy", "standard_error", **share)
        larger = said("majority_baseline", "majority_standard_error", **share)
        words = f"AUC {area}, accuracy {right},\nlarger class {larger}"
    else:
        names = ("root_mean_squared_error", "baseline")
        missed, constant = (said(n, f"{n}_standard_error", digits=".4g") for n in names)
        words = f"root mean squared error {missed},\nof a constant {constant}"
    return f"held-out scores ({HELD_OUT[found['held_out']]}), with intervals of 95%:\n{words}"


def _answers(result: Result) -> list[str]:
    """Return the released answers and their noise, a line for each kind of answer."""
    lines, totals = [], result.ledger.totals
    for noun in dict.fromkeys(map(_noun, totals)):
        asked = [query for query in totals if _noun(query) == noun]
        count, noises = sum(each.count for each in asked), [each.noise_multiplier for each in asked]
        noise = " to ".join(dict.fromkeys(f"{end:.5f}" for end in (min(noises), max(noises))))
        strategy = "" if (found := asked[0].correlation) is None else found.strategy.kind
        noise += f" correlated by {strategy}" if strategy else ""
        records = "on " + " and ".join(dict.fromkeys(each.sampling.sentence for each in asked))
        if asked[0].composition == "disjoint":
            records = "on parts of the records that share none"
        answers = f"{count} answer{'s' * (count != 1)}"
        lines.append(f"{noun}: {answers}, noise multiplier {noise}, {records}")
    if totals and totals[0].budget is not None:
        lines.append(
            "noise was chosen as the run went; all answers are charged as a single one with noise "
            f"multiplier {totals[0].budget:.5f}, which is the whole plan"
        )
    return lines or ["no query was answered"]


def _noun(query: Query) -> str:
    """Return the name of an answer for the screen."""
    return "norm of rows" if query.name == SCALE else query.kind
