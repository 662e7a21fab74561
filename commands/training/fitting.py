"""``dpcal train``: a private linear model of a table of one's own, and its report."""

from __future__ import annotations

import json
import re
import warnings
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpcal import plot
from dpcal.calibrate import Plan
from dpcal.commands.checking.output import dump, present
from dpcal.commands.checking.progress import Progress, stage
from dpcal.commands.training import scale
from dpcal.commands.training.booking import booked, opened_book
from dpcal.commands.training.cluster import connected
from dpcal.commands.training.data import Data, read
from dpcal.commands.training.documents import (
    about_data,
    about_model,
    add_pages,
    risk,
)
from dpcal.commands.training.evaluation import evaluate, print_warnings, warn_after, warn_before
from dpcal.commands.training.plans import calibrated
from dpcal.commands.training.request import Request
from dpcal.commands.training.summary import summary
from dpcal.commands.training.task import Run, Task, averaging, train
from dpcal.optim import BudgetBook, Ledger, Result
from dpcal.optim.boundary.ledger import ONE_OF_A_SILO
from dpcal.optim.linear_fit import SCALE
from dpcal.report import (
    bind,
    check_replaceable,
    composed_by_silo,
    document_of,
    privacy_statement,
    read as read_report,
    replace_file,
    sentence_on_reading,
    write_report,
)
from dpcal.tables import Model

__all__ = ["Fitted", "fit_table", "fitted"]

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
# What a column's value adds to, by loss.
_ADDED = {"logistic": "added to log-odds", "squared": "added to the scaled target"}
# Exit statuses: a run that diverged did not do what was asked; 130 is what shells call Ctrl-C.
DIVERGED, INTERRUPTED = 1, 130


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
        key = _key_file(folder, force=force)
        replace_file(key, f"{self._data.key.hex()}\n".encode(), mode=0o600)  # for its owner alone
        files = {"report.json": dump(self.document) + "\n", "model.json": self.model.to_json()}
        write_report(folder, files, force=force)
        add_pages(folder, self.document, _pictures(self._data.task, self._run, self.model))
        bind(folder)
        return key


def fitted(request: Request, progress: Progress) -> Fitted:
    """Train as a request asks, and say of it what a report says.

    Four steps: its records, a plan, the run, the scores.
    """
    with connected(request.cluster) as client:
        data = read(request, progress, client)
        plan = calibrated(request, data.task)
        data = replace(data, task=data.task.planned(plan))
        print_warnings(warn_before(plan))
        book = None
        if request.budget is not None:  # all bytes of a folder are read to know it by
            book = opened_book(request.budget, request.records, plan)
        run = _trained(data.task, plan, book, request, progress)
        evaluation = evaluate(data, run, how=request.held_out, seed=request.seed, book=book)
        print_warnings(warn_after(evaluation, data))
        model, document = _reported(data, run, evaluation, name=request.name)
    document |= booked(request.budget)
    return Fitted(model=model, document=document, result=run.result, _run=run, _data=data)


def fit_table(options: Namespace) -> int:
    """Train on a table and write the report; return the exit status."""
    progress = stage(options, "")
    check_replaceable(options.output, force=options.force)
    _key_file(options.output, force=options.force)
    request = Request.of(options)
    found = fitted(request, progress)
    key = found.save(request.output, force=request.force)
    lines = [
        str(found),
        f"report written to {request.output}/",
        f"{key.name}, beside it, is the key of its fingerprint: keep it, do not publish it",
    ]
    present(options, read_report(request.output), "\n".join(lines))
    if found._run.interrupted:
        return INTERRUPTED
    return 0 if found.result.complete else DIVERGED


SEEDED_SPLIT = (
    "The seed that was given also decides which records are held out: with it the split is "
    "reproducible, and known to whoever has the seed."
)


def _key_file(folder: Path, *, force: bool) -> Path:
    """Return the file of the fingerprint's key: beside the folder, which one may mail."""
    path = folder.absolute().with_name(f"{folder.absolute().name}.key")
    if path.exists() and not (force and re.fullmatch(r"[0-9a-f]{64}\n", path.read_text()[:99])):
        raise ValueError(
            f"The key of the report's fingerprint goes to {str(path)!r}, which is there: choose "
            "another --output, or --force if the file is the key of an earlier report."
        )
    return path


def _trained(
    task: Task, plan: Plan, book: BudgetBook | None, request: Request, progress: Progress
) -> Run:
    how: dict[str, Any] = {"seed": request.seed, "noise": request.mechanism, "store": book}
    *before, query = plan.queries
    factor, ledger = 1.0, None
    if [each.name for each in before] == [SCALE]:
        factor, ledger = scale.released(task, plan, request.coding, **how)
    steps = plan.parameters.get("steps") or sum(each.count for each in plan.queries)
    progress.stage("training", total=int(steps), unit="step")
    with warnings.catch_warnings():
        # The message of a run that diverged names it.
        warnings.simplefilter("ignore", RuntimeWarning)
        run = train(
            task if ledger is None else scale.rescaled(task, factor),
            plan if ledger is None else replace(plan, queries=(query,)),
            advance=progress.update,
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
        "averaging": "none" if task.about_network else averaging(result.plan.optimizer),
        **weighted,
        **task.told(),
    }
    model = data.model(result.w, {})
    about = about_data(
        result,
        task,
        name=name,
        features=len(data.features),
        scaling=data.scaling(),
        read_from_data=data.read_from_data,
        key=data.key,
        counts=records.counts,
    )
    outside = [*_outside(result), *sentence_on_reading(data.read_from_data)]
    if result.seed_given and len(task.y_test):
        outside.append(SEEDED_SPLIT)
    sections = {
        # Of the plan for all silos, whose number of records is the smallest of theirs.
        "privacy": privacy_statement(result, unit=_unit(data, result), outside=outside),
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


def _outside(result: Result) -> list[str]:
    """Return the sentences on what the claim leaves out."""
    replaced = result.plan.neighboring_relation == "replace-one"
    silos = len(result.by_silo) > 1
    return [*OUTSIDE, *(SPLIT if replaced else ()), *(SILOS if silos else ())]


def _unit(data: Data, result: Result) -> str | None:
    """Return the unit of the claim if the plan does not name it: for silos, or one row a person."""
    schema = data.records.schema
    if len(result.by_silo) > 1:
        return ONE_OF_A_SILO
    if schema.person is None or schema.group_size > 1:
        return None
    return "one person, who has at most one training record (row of the table)"


def _parameters(model: Model) -> dict[str, Any]:
    """Return the released parameters, for scaled features, as JSON values."""
    told = json.loads(model.to_json())
    found = {name: told[name] for name in ("weights", "intercept")}
    found["for"] = "scaled features, as under data.scaling"
    if model.network:
        return {**found, "network": told["network"], "classes": list(model.labels)}
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
