"""What was released, in the words of a terminal: a line for each kind of answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcal.calibrate import Query
from dpcal.commands._output import answer
from dpcal.commands.training.task import Run, Task
from dpcal.optim import Result

__all__ = ["summary"]


def summary(task: Task, run: Run, evaluation: Mapping[str, Any]) -> str:
    """Return the text on what a run released, its epsilon, and its held-out scores."""
    result = run.result
    n = task.objective.n
    lines = [
        f"{result.message}" + (f", {n} training records" if not result.plan.public_n else ""),
        *_silos(result),
        *_answers(result),
        answer("epsilon", result.epsilon(result.plan.delta), f"delta = {result.plan.delta:g}"),
    ]
    if "label" in result.plan.parameters:
        lines.append(f"the price is {result.plan.parameters['label']}")
    how = {"noisy": "noisy, paid by the held-out records", "unprotected": "not private"}
    if "accuracy" in evaluation:
        auc = evaluation["auc"]
        lines.append(
            f"held-out ({how[evaluation['held_out']]}): accuracy {evaluation['accuracy']:.3f} with "
            f"standard error {evaluation['standard_error']:.3f}, larger class "
            f"{evaluation['majority_baseline']:.3f}, AUC "
            f"{'unknown' if auc is None else f'{auc:.3f}'}"
        )
    elif "baseline" in evaluation:
        lines.append(
            f"held-out ({how[evaluation['held_out']]}): root mean squared error "
            f"{evaluation['root_mean_squared_error']:.4g}, of a constant "
            f"{evaluation['baseline']:.4g}"
        )
    return "\n".join(lines)


def _silos(result: Result) -> list[str]:
    """Return the line on silos, if there are several."""
    count = len(result.by_silo)
    if count == 1:
        return []
    return [f"{count} silos, each with noise and a ledger of its own; of the first:"]


def _answers(result: Result) -> list[str]:
    """Return the released answers and their noise, a line for each kind of answer."""
    lines = []
    totals = result.ledger.totals
    for kind in dict.fromkeys(query.kind for query in totals):
        lines.append(_line([query for query in totals if query.kind == kind]))
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
    records = " and ".join(dict.fromkeys(query.sampling.summary for query in queries))
    if queries[0].composition == "disjoint":
        records = f"on parts of {_range(sizes)} records that share none"
    if queries[0].correlation is not None:
        noise += f" correlated by {queries[0].correlation.strategy.kind}"
    noun = "mean iterate of one pass" if queries[0].kind == "one pass" else queries[0].kind
    return f"{noun}: {count} answer{'s' * (count != 1)}, noise multiplier {noise}, {records}"


def _range(sizes: set[int]) -> str:
    return str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
