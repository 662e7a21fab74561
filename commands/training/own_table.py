"""``dpcal train``: a private linear model of a table of one's own, and its report."""

from __future__ import annotations

import dataclasses
import re
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpcal import plot
from dpcal.calibrate import Plan
from dpcal.commands._output import present
from dpcal.commands.training.booking import check_book, opened_book
from dpcal.commands.training.data import Data, prepare, read
from dpcal.commands.training.documents import (
    add_pages,
    claim_of,
    opening,
    risk,
    write,
    write_secret,
)
from dpcal.commands.training.evaluation import (
    evaluate,
    print_warnings,
    warn_after,
    warn_before,
)
from dpcal.commands.training.minimax import posed
from dpcal.commands.training.plans import calibrated, find_optimizer
from dpcal.commands.training.silos import check_silos, in_silos
from dpcal.commands.training.summary import summary
from dpcal.commands.training.task import Run, Task, averaging, progress_bar, train
from dpcal.errors import MissingExtra
from dpcal.optim import BudgetBook, Ledger, Result
from dpcal.optim.silos import ONE_OF_A_SILO
from dpcal.report import check_replaceable, composed_by_silo, runs_of, software
from dpcal.tables import Model

__all__ = ["fit_table"]

OUTSIDE = (
    "The schema, or the ranges given with --bounds and --target-bounds, batch size, epochs, "
    "clipping norm and the other options are taken as public, but for what is listed as read from "
    "the data: the claim does not cover a choice that looked at records.",
    "Each record is held out by a coin of its own, a keyed hash of it. Held-out records played no "
    "part in the parameters; the section 'evaluation' says how they are protected, if at all.",
    "The fingerprint is keyed; its key, in a file beside the report's folder, must not be "
    "published: with it, guesses of a record can be tested.",
)
# Where a record has another value it may have another coin.
SPLIT = (
    "The split into training and held-out records is taken as fixed: a record's coin is a hash of "
    "what it holds, and under replace-one the record in its place is taken to be on the same side.",
)
SILOS = (
    "Which silo a record belongs to is taken as fixed and public, and so are the sizes of the "
    "silos. Nothing is summed over silos: a person with records in several pays in each.",
)
# Exit statuses: a run that diverged did not do what was asked; 130 is what shells call Ctrl-C.
DIVERGED, INTERRUPTED = 1, 130
EXTRAS = ("polars", "matplotlib", "tqdm")


def fit_table(options: Namespace) -> int:
    """Read, calibrate, train, and write the report; return the exit status."""
    check_replaceable(options.output, force=options.force)
    key = _key_file(options.output, force=options.force)
    prepare(options)
    optimizer = find_optimizer(options)
    check_silos(options, optimizer)
    check_extras()
    check_book(options.budget, options.table)
    data = in_silos(options, posed(options, optimizer, read(options)))
    plan = calibrated(options, optimizer, data)
    print_warnings(warn_before(options, plan.n))
    book = opened_book(options.budget, options.table, plan)
    run = _train(options, data.task, plan, book)
    evaluation = evaluate(options, data, run, book)
    print_warnings(warn_after(evaluation, data))
    document = _document(options, data, run, evaluation)
    write_secret(key, data.key.hex() + "\n")
    write(
        options.output,
        document,
        files={"model.json": _model_file(data, run, document).to_json()},
        force=options.force,
    )
    add_pages(options.output, document, _pictures(data.task, run))
    lines = [summary(data.task, run, evaluation), f"report written to {options.output}/"]
    lines.append(
        f"{key.name}, beside it, is the key of its fingerprint: keep it, do not publish it"
    )
    present(options, document, "\n".join(lines))
    if run.interrupted:
        return INTERRUPTED
    return 0 if run.result.complete else DIVERGED


def _key_file(folder: Path, *, force: bool) -> Path:
    """Return the file of the fingerprint's key: beside the folder, which one may mail."""
    path = folder.absolute().with_name(f"{folder.absolute().name}.key")
    if path.exists() and not (force and re.fullmatch(r"[0-9a-f]{64}\n", path.read_text()[:99])):
        raise ValueError(
            f"The key of the report's fingerprint goes to {str(path)!r}, which is there: choose "
            "another --output, or --force if the file is the key of an earlier report."
        )
    return path


def check_extras() -> None:
    """Raise ``MissingExtra``, before a record is read, if a package is not installed."""
    missing = [name for name in EXTRAS if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"train needs {' and '.join(missing)}: pip install 'dpcal[train]'. No record was read."
        )


def _train(options: Namespace, task: Task, plan: Plan, book: BudgetBook | None) -> Run:
    steps = plan.parameters.get("steps") or sum(query.count for query in plan.queries)
    with progress_bar(int(steps), "training") as bar, warnings.catch_warnings():
        # A run that diverged says so in its message.
        warnings.simplefilter("ignore", RuntimeWarning)
        return train(
            task,
            plan,
            seed=options.seed,
            advance=bar.update,
            store=book,
            scored=options.held_out == "unprotected",
        )


def _document(
    options: Namespace, data: Data, run: Run, evaluation: dict[str, Any]
) -> dict[str, Any]:
    """Everything that ``report.json`` says."""
    task, result = data.task, run.result
    everything = composed_by_silo(result, result.plan.delta)
    if "epsilon" in evaluation:
        # Each record pays for training or for scores: the larger price covers both.
        prices = (everything["epsilon"], evaluation["epsilon"])
        everything["epsilon"] = max(prices, key=lambda price: float(price["upper"]))
    return {
        **opening(
            result,
            task,
            outside=_outside(result),
            name=options.table.name,
            features=data.features,
            scaling=data.scaling(),
            key=data.key,
            read_from_data=data.read_from_data,
            counts=data.counts,
            unit=_unit(data, result),
        ),
        "training": {
            "optimizer": result.plan.optimizer,
            "loss": task.loss,
            "l2": task.l2,
            "averaging": averaging(result.plan.optimizer),
            **_weighting(data),
            **task.told(),
        },
        "model": _model(data, run),
        "runs": runs_of(result),
        "everything": everything,
        "risk": risk([result]),
        "evaluation": evaluation,
        "software": software(),
    }


def _outside(result: Result) -> list[str]:
    """What the claim leaves out."""
    replaced = result.plan.neighboring_relation == "replace-one"
    silos = len(result.by_silo) > 1
    return [*OUTSIDE, *(SPLIT if replaced else ()), *(SILOS if silos else ())]


def _weighting(data: Data) -> dict[str, Any]:
    """What the losses of the classes are multiplied by, where they are."""
    if not data.target.weights:
        return {}
    return {"class_weights": dict(zip(data.labels, data.target.weights, strict=True))}


def _weights(data: Data, run: Run) -> tuple[list[float], float]:
    """Return the weights of the features, and the intercept.

    Of a minimax problem they come first, and more parameters behind them.
    """
    weights = run.result.w[: len(data.features) + data.task.intercept].tolist()
    intercept = weights.pop() if data.task.intercept else 0.0
    return weights, intercept


def _unit(data: Data, result: Result) -> str | None:
    """What the claim is about, where there are silos or a person has one row."""
    if len(result.by_silo) > 1:
        return ONE_OF_A_SILO
    if data.schema.person is None or data.schema.group_size > 1:
        return None
    return "one person, who has at most one training record (row of the table)"


def _model_file(data: Data, run: Run, document: Mapping[str, Any]) -> Model:
    """The model with its claim, as ``model.json`` holds it."""
    weights, intercept = _weights(data, run)
    paid = max(document["runs"], key=lambda run: float(run["epsilon"]["upper"]))
    return Model(
        schema=data.schema,
        target=data.target,
        labels=data.labels,
        weights=np.array(weights),
        intercept=intercept,
        about={
            "loss": data.task.loss,
            "claim": claim_of(document, paid),
            "complete": paid["complete"],
            "message": paid["message"],
            "plan": paid["plan"],
            "written": document["written"],
            "software": document["software"],
        },
    )


def _model(data: Data, run: Run) -> dict[str, Any]:
    """The released parameters, for scaled features."""
    weights, intercept = _weights(data, run)
    model = {
        "weights": dict(zip(data.features, weights, strict=True)),
        "intercept": intercept,
        "for": "scaled features, as under data.scaling",
    }
    if data.labels:
        model["classes"] = list(data.labels)
        model["predicts"] = "the second class where <weights, features> + intercept > 0"
    return model


def _pictures(task: Task, run: Run) -> dict[str, Callable[[], Any]]:
    """How to draw the privacy profile, and the score along the run, where each can be told."""
    plan = run.result.plan
    pictures: dict[str, Callable[[], Any]] = {}
    if not any(query.correlation for query in plan.queries):
        pictures["privacy-profile.svg"] = lambda: plot.profile([_curve(plan)])
    if run.scores and _evenly(plan):
        pictures["accuracy.svg"] = lambda: _along_run(task, run)
    return pictures


def _curve(plan: Plan) -> plot.Curve:
    """The privacy profile of a plan."""
    return plot.Curve.of(
        plan.event,
        f"epsilon = {plan.epsilon:g}",
        target=(plan.epsilon, plan.delta) if plan.epsilon > 0 else None,
        accountants=("characteristic", "renyi"),
        neighboring_relation=plan.neighboring_relation,
    )


def _evenly(plan: Plan) -> bool:
    """Whether every step costs the same answer, so that a cost can be told along the run."""
    query, *others = plan.queries
    # Under correlated noise the first step costs as much as all of them.
    plain = query.budget is None and query.correlation is None
    return plain and not others and query.composition == "sequential"


def _along_run(task: Task, run: Run) -> Any:
    """Held-out score along the run, against the epsilon spent until then."""
    plan = run.result.plan
    (query,) = plan.queries

    def spent(steps: int) -> float:
        entry = dataclasses.replace(query, count=steps)
        return Ledger(plan.n, plan.neighboring_relation, entries=[entry]).epsilon(plan.delta)

    return plot.along_run(
        [spent(steps) for steps, _ in run.scores],
        [score for _, score in run.scores],
        final=task.score(run.result.w),
        ylabel=f"held-out {task.metric}",
        share=task.loss == "logistic",
    )
