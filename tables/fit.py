"""Fit a private linear model to a table, with everything that its report says.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> age = rng.uniform(20, 80, 3000)
>>> table = {"age": age, "sick": np.where(age + rng.normal(0, 20, 3000) > 60, "yes", "no")}
>>> schema = {"columns": {"age": {"type": "number", "range": [0, 100]},
...                       "sick": {"type": "class", "categories": ["no", "yes"]}}}
>>> from dpcal import train
>>> found = train(table, schema, target="sick", epsilon=1.0, delta=1e-6)
>>> found.document["privacy"]["unit"], found.model.labels
('one training record (one row of the table)', ('no', 'yes'))
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpcal import plot
from dpcal.calibrate import Plan
from dpcal.calibrate.recommending.recommendation import Recommendation, recommend
from dpcal.optim import BudgetBook, Ledger, Result
from dpcal.optim.linear_fit import SCALE
from dpcal.report import (
    bind,
    check_replaceable,
    composed_by_silo,
    document_of,
    privacy_statement,
    replace_file,
    sentence_on_reading,
    write_report,
)
from dpcal.report.output import dump
from dpcal.tables import scale
from dpcal.tables.booking import booked, opened_book
from dpcal.tables.documents import about_data, about_model, add_pages, risk
from dpcal.tables.model import Model
from dpcal.tables.plans import calibrated, compared
from dpcal.tables.request import Request, check_extras, schema_of
from dpcal.tables.scores import evaluate, print_warnings, warn_after, warn_before
from dpcal.tables.summary import summary
from dpcal.tables.task import Data, Run, Task, averaging, read, spend

__all__ = [
    "Fitted",
    "Planned",
    "Request",
    "check_extras",
    "fitted",
    "key_file",
    "planned",
    "schema_of",
]

OUTSIDE = (
    "The schema, or the range given as bounds, batch size, epochs, "
    "clipping norm and the other options are taken as public, but for what is listed as read from "
    "the data: the claim does not cover a choice that looked at records.",
    "Each record is held out by a coin of its own, a keyed hash of it. Held-out records played no "
    "part in the parameters; how they are protected, if at all, is said beside their scores.",
    "The fingerprint is keyed; its key, in a file beside the report's folder, must not be "
    "published: with it, guesses of a record can be tested.",
)
# Where a record has another value it may have another coin.
SPLIT = (
    "The split into training and held-out records is taken as fixed: a record's coin is a hash of "
    "what it holds, and under replace-one the record in its place is taken to be on the same side.",
)
# What a column's value adds to, by loss.
_ADDED = {"logistic": "added to log-odds", "squared": "added to the scaled target"}
SEEDED_SPLIT = (
    "The seed that was given also decides which records are held out: with it the split is "
    "reproducible, and known to whoever has the seed."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A private model of a table, and everything that was said of its run.

    Attributes
    ----------
    model
        The released model; ``model.predict(table)`` scores new rows.
    document
        The content of ``report.json``.
    result
        The run: parameters, ledger and plan.
    """

    model: Model
    document: dict[str, Any]
    result: Result
    _run: Run
    _data: Data

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self._run.interrupted

    def __str__(self) -> str:
        return summary(self._data.task, self._run, self.document["evaluation"])

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the report with its model and statement, and the key of its fingerprint beside it.

        Parameters
        ----------
        folder
            Of the report; ``dpcal verify FOLDER`` checks it. Its parent must exist.
        force
            Whether an earlier report there is replaced.

        Returns
        -------
        Path
            Of the key, which must not be published.
        """
        folder = Path(folder)
        check_replaceable(folder, force=force)
        key = key_file(folder, force=force)
        replace_file(key, f"{self._data.key.hex()}\n".encode(), mode=0o600)  # for its owner alone
        files = {"report.json": dump(self.document) + "\n", "model.json": self.model.to_json()}
        write_report(folder, files, force=force)
        add_pages(folder, self.document, _pictures(self._data.task, self._run, self.model))
        bind(folder)
        return key


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The plan of a training, before anything is spent.

    Attributes
    ----------
    plan
        Its answers, noise and cost.
    dimension
        Number of parameters.
    table
        Predicted errors of the optimizers, where these chose; None where one was named.
    """

    plan: Plan
    dimension: int
    table: Recommendation | None


def planned(request: Request) -> Planned:
    """Return the plan of a training; nothing is spent or written."""
    task = read(request).task
    asked = compared(request, task)
    table = None if asked is None else recommend(**asked)
    plan = calibrated(request, task, table)
    print_warnings(warn_before(plan))
    return Planned(plan=plan, dimension=task.objective.dimension, table=table)


def fitted(
    request: Request, progress: Callable[[int, int], object] = lambda done, total: None
) -> Fitted:
    """Train as a request asks, and say of it what a report says.

    Four steps: its records, a plan, the run, the scores. ``progress`` is called with the numbers of
    steps that are done and planned.
    """
    data = read(request)
    plan = calibrated(request, data.task)
    print_warnings(warn_before(plan))
    book = opened_book(request.budget, request.source.records, plan)
    run = _trained(data.task, plan, book, request, progress)
    evaluation = evaluate(data, run, how=request.held_out, seed=request.seed, book=book)
    print_warnings(warn_after(evaluation, data))
    model, document = _reported(data, run, evaluation, name=request.source.path.name)
    document |= booked(request.budget)
    return Fitted(model=model, document=document, result=run.result, _run=run, _data=data)


def key_file(folder: Path, *, force: bool) -> Path:
    """Return the file of the fingerprint's key: beside the folder, which one may mail."""
    path = folder.absolute().with_name(f"{folder.absolute().name}.key")
    if path.exists() and not (force and re.fullmatch(r"[0-9a-f]{64}\n", path.read_text()[:99])):
        raise ValueError(
            f"The key of the report's fingerprint goes to {str(path)!r}, which is there: choose "
            "another output, or force if the file is the key of an earlier report."
        )
    return path


def _trained(
    task: Task,
    plan: Plan,
    book: BudgetBook | None,
    request: Request,
    progress: Callable[[int, int], object],
) -> Run:
    how: dict[str, Any] = {"seed": request.seed, "noise": request.mechanism, "store": book}
    *before, query = plan.queries
    factor, ledger = 1.0, None
    if [each.name for each in before] == [SCALE]:
        factor, ledger = scale.released(task, plan, request.coding, **how)
    with warnings.catch_warnings():
        # The message of a run that diverged names it.
        warnings.simplefilter("ignore", RuntimeWarning)
        run = spend(
            task if ledger is None else scale.rescaled(task, factor),
            plan if ledger is None else replace(plan, queries=(query,)),
            progress=progress,
            scored=request.held_out == "unprotected",
            **how,
        )
    features = task.X_train.shape[1]
    return run if ledger is None else scale.restored(plan, ledger, run, features, factor)


def _reported(
    data: Data, run: Run, evaluation: dict[str, Any], *, name: str
) -> tuple[Model, dict[str, Any]]:
    """Return the model with its claim, and the content of ``report.json``."""
    task, result, records = data.task, run.result, data.records
    everything = composed_by_silo(result, result.plan.delta)
    if "epsilon" in evaluation:
        # Each record pays for training or for scores: the larger price covers both.
        prices = (everything["epsilon"], evaluation["epsilon"])
        everything["epsilon"] = max(prices, key=lambda price: float(price["upper"]))
    weights = records.target.weights
    weighted = {"class_weights": dict(zip(records.labels, weights, strict=True))} if weights else {}
    training = {
        "optimizer": result.plan.optimizer,
        "loss": task.loss,
        "l2": task.l2,
        "averaging": averaging(result.plan.optimizer),
        **weighted,
    }
    model = data.model(result.w, {})
    about = about_data(
        result,
        task,
        name=name,
        features=len(records.coding.names),
        scaling=data.scaling(),
        read_from_data=data.read_from_data,
        key=data.key,
        counts=records.counts,
    )
    split = SPLIT if result.plan.neighboring_relation == "replace-one" else ()
    outside = [*OUTSIDE, *split, *sentence_on_reading(data.read_from_data)]
    if result.seed_given and len(task.y_test):
        outside.append(SEEDED_SPLIT)
    sections = {
        "privacy": privacy_statement(result, unit=_unit(data), outside=outside),
        "data": about,
        "training": training,
        "model": _parameters(model),
        "risk": risk([result]),
        "evaluation": evaluation,
        "everything": everything,
    }
    document = document_of(result, sections=sections)
    paid = max(document["runs"], key=lambda run: float(run["epsilon"]["upper"]))
    released = {name: paid[name] for name in ("complete", "message", "plan")}
    return replace(
        model, about={**model.about, **about_model(document, paid), **released}
    ), document


def _unit(data: Data) -> str | None:
    """Return the unit of the claim where the plan does not name it: a person has one row."""
    schema = data.records.schema
    if schema.person is None or schema.group_size > 1:
        return None
    return "one person, who has at most one training record (row of the table)"


def _parameters(model: Model) -> dict[str, Any]:
    """Return the released parameters, for scaled features, as JSON values."""
    told = json.loads(model.to_json())
    found = {name: told[name] for name in ("weights", "intercept")}
    found["for"] = "scaled features, as under data.scaling"
    if model.labels:
        found["classes"] = list(model.labels)
        found["predicts"] = "the second class where <weights, features> + intercept > 0"
    return found


def _pictures(task: Task, run: Run, model: Model) -> dict[str, Callable[[], Any]]:
    """Return functions that draw the privacy profile, and curves and scores, if known."""
    plan = run.result.plan
    pictures: dict[str, Callable[[], Any]] = {}
    # These are priced point by point, in seconds each.
    slow = any(each.correlation or each.sampler == "shuffled-epochs" for each in plan.queries)
    if not slow:
        pictures["privacy-profile.svg"] = lambda: plot.profile([_curve(plan)])
    if curves := model.curves():
        pictures["what-each-column-adds.svg"] = lambda: plot.added(curves, ylabel=_ADDED[task.loss])
    if run.scores and _evenly(plan):
        pictures["accuracy.svg"] = lambda: _along_run(task, run)
    return pictures


def _curve(plan: Plan) -> plot.Curve:
    """Return the privacy profile of a plan."""
    return plot.Curve.of(
        plan.event,
        f"epsilon = {plan.epsilon:g}",
        target=(plan.epsilon, plan.delta) if plan.epsilon > 0 else None,
        accountants=("characteristic", "renyi"),
        neighboring_relation=plan.neighboring_relation,
    )


def _evenly(plan: Plan) -> bool:
    """Whether every step costs the same answer, so that a cost along the run is known."""
    *before, query = plan.queries
    # Under correlated noise the first step costs as much as all of them, or as its whole epoch.
    plain = query.budget is None and query.correlation is None and query.epoch is None
    alone = all(each.name == SCALE for each in before)
    return plain and alone and query.composition == "sequential"


def _along_run(task: Task, run: Run) -> Any:
    """Draw the held-out score along the run, against the epsilon spent until then."""
    plan = run.result.plan
    *before, query = plan.queries

    def spent(steps: int) -> float:
        entries = [*before, query.with_count(steps)]
        return Ledger(plan.n, plan.neighboring_relation, entries=entries).epsilon(plan.delta)

    return plot.along_run(
        [spent(steps) for steps, _ in run.scores],
        [score for _, score in run.scores],
        final=task.score(run.result.w),
        ylabel=f"held-out {task.metric}",
        share=task.loss == "logistic",
    )
