"""``dpcal train``: a private linear model of a table of one's own, and its report."""

from __future__ import annotations

import dataclasses
import re
import warnings
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpcal import plot
from dpcal.calibrate import Plan
from dpcal.commands._output import present
from dpcal.commands.training.booking import check_book, opened_book
from dpcal.commands.training.data import Data, prepare, read
from dpcal.commands.training.documents import opening, write, write_secret
from dpcal.commands.training.plans import calibrated, find_optimizer
from dpcal.commands.training.summary import summary
from dpcal.commands.training.task import Run, Task, averaging, progress_bar, train
from dpcal.errors import MissingExtra
from dpcal.optim import BudgetBook, Ledger, Logistic
from dpcal.report import check_replaceable, composed_epsilon, released, software
from dpcal.tables import Model

__all__ = ["fit_table"]

OUTSIDE = (
    "The schema, or the ranges given with --bounds and --target-bounds, batch size, epochs, "
    "clipping norm and the other options are taken as public, but for what is listed as read from "
    "the data: the claim does not cover a choice that looked at records.",
    "Each record is held out by a coin of its own, a keyed hash of it. Held-out records played no "
    "part in the parameters, and are not protected: the section 'evaluation' and accuracy.png are "
    "computed from them without noise.",
    "The fingerprint is keyed; its key, in a file beside the report's folder, must not be "
    "published: with it, guesses of a record can be tested.",
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
    check_extras()
    check_book(options.budget, options.table)
    data = read(options)
    plan = calibrated(options, optimizer, data)
    book = opened_book(options.budget, options.table, plan)
    run = _train(data.task, plan, options.seed, book)
    document = _document(options, data, run)
    write_secret(key, data.key.hex() + "\n")
    write(
        options.output,
        document,
        pictures=_pictures(data.task, run),
        files={"model.json": _model_file(data, run, document).to_json()},
        force=options.force,
    )
    lines = [summary(data.task, run), f"report written to {options.output}/"]
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


def _train(task: Task, plan: Plan, seed: int | None, book: BudgetBook | None) -> Run:
    steps = plan.parameters.get("steps") or sum(query.count for query in plan.queries)
    with progress_bar(int(steps), "training") as bar, warnings.catch_warnings():
        # A run that diverged says so in its message.
        warnings.simplefilter("ignore", RuntimeWarning)
        return train(task, plan, seed=seed, advance=bar.update, store=book)


def _document(options: Namespace, data: Data, run: Run) -> dict[str, Any]:
    """Everything that ``report.json`` says."""
    task, result = data.task, run.result
    return {
        **opening(
            result,
            task,
            outside=OUTSIDE,
            name=options.table.name,
            features=data.features,
            scaling=data.scaling(),
            key=data.key,
            read_from_data=data.read_from_data,
            counts=data.counts,
        ),
        "training": {
            "optimizer": result.plan.optimizer,
            "loss": task.loss,
            "l2": task.l2,
            "averaging": averaging(result.plan.optimizer),
        },
        "model": _model(data, run),
        "runs": [{**released(result), "seed_given": options.seed is not None}],
        "everything": composed_epsilon([result], result.plan.delta),
        "evaluation": {
            "covered_by_the_claim": False,
            "metric": task.metric,
            "held_out": task.score(result.w) if len(task.y_test) else None,
        },
        "software": software(),
    }


def _model_file(data: Data, run: Run, document: Mapping[str, Any]) -> Model:
    """The model with its claim, as ``model.json`` holds it."""
    weights = run.result.w.tolist()
    intercept = weights.pop() if data.task.intercept else 0.0
    (paid,) = document["runs"]
    return Model(
        schema=data.schema,
        target=data.target,
        labels=data.labels,
        weights=np.array(weights),
        intercept=intercept,
        about={
            "loss": data.task.loss,
            "claim": {
                "epsilon": paid["epsilon"]["upper"],
                "delta": paid["delta"],
                "neighboring_relation": run.result.plan.neighboring_relation,
                "unit": document["privacy"]["unit"],
            },
            "complete": paid["complete"],
            "message": paid["message"],
            "plan": paid["plan"],
            "written": document["written"],
            "software": document["software"],
        },
    )


def _model(data: Data, run: Run) -> dict[str, Any]:
    """The released parameters, for scaled features."""
    weights = run.result.w.tolist()
    intercept = weights.pop() if data.task.intercept else 0.0
    model = {
        "weights": dict(zip(data.features, weights, strict=True)),
        "intercept": intercept,
        "for": "scaled features, as under data.scaling",
    }
    if isinstance(data.task.objective, Logistic):
        model["classes"] = list(data.labels)
        model["predicts"] = "the second class where <weights, features> + intercept > 0"
    return model


def _pictures(task: Task, run: Run) -> dict[str, Any]:
    """The privacy profile, and the score along the run, where each can be told."""
    plan, pictures = run.result.plan, {}
    if not any(query.correlation for query in plan.queries):
        pictures["privacy-profile.png"] = plot.profile([_curve(plan)])
    if run.scores and _evenly(plan):
        pictures["accuracy.png"] = _along_run(task, run)
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
