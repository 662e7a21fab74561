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
from dpcal.report.output import answer, with_error

__all__ = ["scores_line", "summary"]


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
    """Return the line on the scores of held-out records, each with its standard error."""
    if "reason" in found:
        return f"held-out scores: not measured, because {found['reason'].rstrip('.')}"

    def said(name: str, error: str, digits: str = ".3f") -> str:
        return with_error(found[name], found[error], digits, "{} (standard error {})")

    if "accuracy" in found:
        area, right = said("auc", "auc_standard_error"), said("accuracy", "standard_error")
        larger = f"larger class {found['majority_baseline']:.3f}"
        words = f"AUC {area}, accuracy {right}, {larger}"
    else:
        names = ("root_mean_squared_error", "baseline")
        missed, constant = (said(name, f"{name}_standard_error", ".4g") for name in names)
        words = f"root mean squared error {missed}, of a constant {constant}"
    return f"held-out ({HELD_OUT[found['held_out']]}): {words}"


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
