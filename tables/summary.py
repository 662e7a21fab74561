"""What was released, in the words of a terminal: a line for each kind of answer.

>>> found = {"held_out": "none", "reason": "nothing is held out"}
>>> scores_line(found)
['held-out scores: not measured, for nothing is held out']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcal.calibrate import Query
from dpcal.optim import Result
from dpcal.optim.linear_fit import SCALE
from dpcal.report.output import answer

__all__ = ["scores_line", "summary"]


def summary(result: Result, data: Mapping[str, Any], evaluation: Mapping[str, Any]) -> str:
    """Return the text on what a run released, its epsilon, and its held-out scores.

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
        lines.append(f"the price is {result.plan.parameters['label']}")
    return "\n".join([*lines, *scores_line(evaluation)])


HELD_OUT = {"noisy": "noisy, paid by the held-out records", "unprotected": "not private"}


def scores_line(found: Mapping[str, Any]) -> list[str]:
    """Return the line on the scores of held-out records, each with its standard error."""
    how = HELD_OUT.get(found["held_out"], "")
    if "accuracy" in found:
        said = {"accuracy": "standard_error", "auc": "auc_standard_error"}
        accuracy, area = (_with_error(found[name], found[error]) for name, error in said.items())
        larger = found["majority_baseline"]
        return [f"held-out ({how}): AUC {area}, accuracy {accuracy}, larger class {larger:.3f}"]
    if "baseline" in found:
        names = ("root_mean_squared_error", "baseline")
        error, constant = (
            _with_error(found[name], found[f"{name}_standard_error"], ".4g") for name in names
        )
        return [f"held-out ({how}): root mean squared error {error}, of a constant {constant}"]
    if "reason" in found:
        return [f"held-out scores: not measured, for {found['reason'].rstrip('.')}"]
    return []


def _with_error(value: float | None, error: float | None, digits: str = ".3f") -> str:
    """Return a number with its standard error; a bar where the error is the larger one."""
    if value is None or error is None or error > abs(value):
        return "-"
    return f"{value:{digits}} (standard error {error:.2g})"


def _answers(result: Result) -> list[str]:
    """Return the released answers and their noise, a line for each kind of answer."""
    lines = []
    totals = result.ledger.totals
    for noun in dict.fromkeys(map(_noun, totals)):
        lines.append(_line([query for query in totals if _noun(query) == noun]))
    if totals and totals[0].budget is not None:
        lines.append(
            "noise was chosen as the run went; all answers are charged as a single one with noise "
            f"multiplier {totals[0].budget:.5f}, which is the whole plan"
        )
    return lines or ["no record was asked about"]


def _line(queries: list[Query]) -> str:
    """Return the number, records and noise of the answers of one kind."""
    count = sum(query.count for query in queries)
    noises = [query.noise_multiplier for query in queries]
    least, most = f"{min(noises):.5f}", f"{max(noises):.5f}"
    noise = least if least == most else f"{least} to {most}"
    sizes = {query.batch_size for query in queries if query.batch_size is not None}
    records = "on " + " and ".join(dict.fromkeys(query.sampling.sentence for query in queries))
    if queries[0].composition == "disjoint":
        records = f"on parts of {_range(sizes)} records that share none"
    if queries[0].correlation is not None:
        noise += f" correlated by {queries[0].correlation.strategy.kind}"
    answers = f"{count} answer{'s' * (count != 1)}"
    return f"{_noun(queries[0])}: {answers}, noise multiplier {noise}, {records}"


def _noun(query: Query) -> str:
    """Return what an answer is, for those who read the screen."""
    nouns = {SCALE: "norm of rows", "one pass": "mean iterate of one pass"}
    return nouns.get(query.name) or nouns.get(query.kind) or query.kind


def _range(sizes: set[int]) -> str:
    return str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
