"""Training of a private linear model on a table, with the content of its report.

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

import hashlib
import math
import re
import secrets
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from dpcal import plot
from dpcal.accountants import trade_off
from dpcal.calibrate import Plan
from dpcal.calibrate.recommending.recommendation import recommend
from dpcal.optim import Result
from dpcal.optim.driver import Progress
from dpcal.optim.linear_fit import AVERAGED, LinearSettings, fit_linear
from dpcal.report import (
    about_data,
    check_replaceable,
    document_of,
    replace_file,
    risk,
    sentences,
    write,
)
from dpcal.tables.booking import booked, opened_book
from dpcal.tables.drafting import drafts_one
from dpcal.tables.model import Model
from dpcal.tables.reading import check_extras
from dpcal.tables.records import Records
from dpcal.tables.request import Request, calibrated, compared
from dpcal.tables.scores import evaluate, print_warnings, warn_before
from dpcal.tables.summary import summary

__all__ = ["Fitted", "Planned", "Request", "check_extras", "fitted", "key_file"]

CLASSES = (0.0, 1.0)
_ADDED = {"logistic": "added to log-odds", "squared": "added to the scaled target"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A private model of a table, and all published facts about its run.

    Attributes
    ----------
    model
        The released model; ``model.predict(table)`` scores new rows.
    document
        The content of ``report.json``.
    result
        The run: parameters, ledger and plan.
    interrupted
        Whether Ctrl-C ended the run.
    """

    model: Model
    document: dict[str, Any]
    result: Result
    interrupted: bool
    _key: bytes

    def __str__(self) -> str:
        return summary(self.result, self.document["data"], self.document["evaluation"])

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the report with its model and statement, and the key of its fingerprint next to it.

        Parameters
        ----------
        folder
            Folder of the report; ``dpcal verify FOLDER`` checks it. Its parent must exist.
        force
            Whether an earlier report there is replaced.

        Returns
        -------
        Path
            File of the key, which must not be published.
        """
        folder = Path(folder)
        check_replaceable(folder, force=force)
        key = key_file(folder, force=force)
        replace_file(key, f"{self._key.hex()}\n".encode(), mode=0o600)
        pictures = _pictures(self.result.plan, self.model)
        files = {"model.json": self.model.to_json()}
        write(folder, self.document, files=files, pictures=pictures, force=force)
        return key


class Planned:
    """The plan of a requested training; nothing is spent or written.

    Attributes
    ----------
    plan
        Its answers, noise and cost.
    dimension
        Number of parameters.
    table
        Predicted errors of the optimizers, where these chose; None where one was named.
    drawn
        Whether another split, which a run without a seed draws, may leave another number n.
    """

    def __init__(self, request: Request) -> None:
        records = read(request)
        self.plan, self.dimension = calibrated(request, records.n), request.dimension
        print_warnings(warn_before(self.plan))
        asked = compared(request, records.n)
        self.table = None if asked is None else recommend(**asked)
        rows = records.schema.person is not None and not request.by_person
        self.drawn = request.n is None and (rows or records.counts["left_out"] > 0)


def fitted(
    request: Request, progress: Callable[[int, int], object] = lambda done, total: None
) -> Fitted:
    """Train on the table of a request, and return the model with the content of its report.

    Four steps: its records, a plan, the run, the scores. ``progress`` is called with the numbers of
    steps that are done and planned. The message of a diverged run names its warnings.
    """
    records = read(request)
    plan = calibrated(request, records.n)
    print_warnings(warn_before(plan))
    book = opened_book(request.budget, request.source.records, plan)
    total = int(plan.parameters.get("steps") or sum(each.count for each in plan.queries))
    weights = records.target.weights if records.labels else ()
    settings = LinearSettings(
        classes=CLASSES if records.labels else None,
        class_weight=dict(zip(CLASSES, weights, strict=True)) if weights else None,
        l2=request.l2,
        fit_intercept=request.intercept,
    )
    with _interrupts() as noted, warnings.catch_warnings(action="ignore", category=RuntimeWarning):

        def follow(at: Progress) -> bool:
            progress(at.step, total)
            return bool(noted)

        square = request.coding.typical_square
        result = fit_linear(
            request.loss,
            records.X_train,
            records.y_train,
            settings=settings,
            plan=plan,
            guess=square and math.sqrt(square),
            owners=records.owners,
            group_size=request.schema.group_size,
            callback=follow,
            store=book,
            seed=request.seed,
        )
    features = len(records.coding.names)
    model = Model(
        schema=records.schema,
        target=records.target,
        labels=records.labels,
        weights=result.w[:features],
        intercept=float(result.w[features]) if request.intercept else 0.0,
        about={"loss": request.loss},
    )
    evaluation = evaluate(
        records, model, result, how=request.held_out, seed=request.seed, book=book
    )
    print_warnings(evaluation["warnings"])
    key = secrets.token_bytes(32)
    document = _document(request, records, result, model, evaluation, key) | booked(request.budget)
    said: dict[str, Any] = {"document": document, "interrupted": bool(noted)}
    return Fitted(model=_claimed(model, document), result=result, _key=key, **said)


def _claimed(model: Model, document: Mapping[str, Any]) -> Model:
    """Return a model whose file states the claim of its report."""
    (paid,), privacy = document["runs"], document["privacy"]
    claim = {"epsilon": paid["epsilon"]["upper"], "delta": paid["delta"]}
    claim |= {name: privacy[name] for name in ("neighboring_relation", "unit")}
    about = {**model.about, "claim": claim}
    about |= {name: document[name] for name in ("written", "software")}
    about |= {name: paid[name] for name in ("complete", "message", "plan")}
    return replace(model, about=about)


def read(request: Request) -> Records:
    """Read, code and split the table of a request.

    Raises
    ------
    ValueError
        If a cell does not match the schema, or no record is left to train on.
    """
    key = secrets.token_bytes(32)
    if request.seed is not None:
        key = hashlib.blake2b(f"split {request.seed}".encode(), digest_size=32).digest()
    try:
        records = Records(
            request.source,
            request.schema,
            target=request.target,
            key=key,
            held_out=request.test_fraction,
            told=request.n is None,
            classification=request.loss == "logistic",
        )
    except ValueError as error:
        if request.described:
            raise
        raise ValueError(f"{error} {drafts_one(request.source)}") from error
    records.owners = records.owners if request.by_person else None
    if not len(records.y_train):
        raise ValueError(f"table must hold a record to train on, got {records.counts}.")
    return records


def key_file(folder: Path, *, force: bool) -> Path:
    """Return the file of the fingerprint's key, outside the folder: you can share the folder."""
    path = folder.absolute().with_name(f"{folder.absolute().name}.key")
    if path.exists() and not (force and re.fullmatch(r"[0-9a-f]{64}\n", path.read_text()[:99])):
        raise ValueError(
            f"The key of the report's fingerprint goes to {str(path)!r}, which is there: choose "
            "another output, or force if the file is the key of an earlier report."
        )
    return path


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Note Ctrl-C, which ends a run at its next step and keeps paid steps; raise a second one."""
    noted: list[int] = []

    def note(number: int, frame: object) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    if current_thread() is not main_thread():
        yield noted
        return
    former = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, former)


def _document(
    request: Request,
    records: Records,
    result: Result,
    model: Model,
    evaluation: dict[str, Any],
    key: bytes,
) -> dict[str, Any]:
    """Return the content of ``report.json``.

    Each record pays for training or for scores: the larger epsilon covers both.
    """
    weights = records.target.weights
    weighted = {"class_weights": dict(zip(records.labels, weights, strict=True))} if weights else {}
    training = {
        "optimizer": result.plan.optimizer,
        "loss": request.loss,
        "l2": request.l2,
        "averaging": "linear" if result.plan.optimizer in AVERAGED else "none",
        **weighted,
    }
    told = _read_from_data(request, records)
    arrays = [records.X_train, records.y_train, records.X_test, records.y_test]
    about = about_data(
        result,
        arrays,
        name=request.source.path.name,
        scaling=_scaling(records),
        read_from_data=told,
        key=key,
        counts=records.counts,
        owners=records.owners,
    )
    seeded = result.seed_given and len(records.y_test) > 0
    words = {"n_is_told": request.n is None, "read": told, "seeded_split": seeded}
    unit = None
    if records.schema.person is not None and records.schema.group_size == 1:
        unit = "one person, who has at most one training record (row of the table)"
    sections = {
        "data": about,
        "training": training,
        "model": _parameters(model),
        "risk": risk([result]),
        "evaluation": evaluation,
    }
    document = document_of(
        result, unit=unit, outside=sentences("training.txt", words), sections=sections
    )
    if "epsilon" in evaluation:
        prices = (document["everything"]["epsilon"], evaluation["epsilon"])
        document["everything"]["epsilon"] = max(prices, key=lambda price: float(price["upper"]))
    return document


def _read_from_data(request: Request, records: Records) -> list[str]:
    """Return the facts that were read off the records: the claim does not cover them.

    A schema that leaves out rows by their values reveals the number of these rows.
    """
    rules = {rule for each in records.schema.columns for rule in (each.missing, each.unknown)}
    found = {
        "number of records": request.n is None,
        "number of persons": request.n is None and request.by_person,
        "numbers of rows read and left out (data.rows, data.left_out)": request.n is None
        and "drop-row" in rules,
        "names of the columns": not request.described,
        f"classes of {records.target.name!r}": records.labels_read,
    }
    return [*records.schema.copied(), *(words for words, was_read in found.items() if was_read)]


def _scaling(records: Records) -> dict[str, Any]:
    """Return the coding of the records, as JSON values."""
    features = "used as they are; privacy rests on clipping"
    if any(column.range or column.categories for column in records.coding.columns):
        features = (
            "numbers are clamped to their range, and [low, high] -> [-4, 4]; categories are "
            "0 or 1 each, or their place in the list -> [-4, 4]; bins, splines and random are "
            "fixed functions of scaled numbers"
        )
    ends = records.target.range
    target = {} if ends is None else {"target": f"clamped to {list(ends)}, then to [-4, 4]"}
    return {"features": features, **target, "schema": records.schema.to_dict()}


def _parameters(model: Model) -> dict[str, Any]:
    """Return the released parameters, for scaled features, as JSON values."""
    weights = dict(zip(model.coding.names, model.weights.tolist(), strict=True))
    found: dict[str, Any] = {"weights": weights, "intercept": float(model.intercept)}
    found["for"] = "scaled features, as under data.scaling"
    if model.labels:
        found["classes"] = list(model.labels)
        found["predicts"] = "the second class where <weights, features> + intercept > 0"
    return found


def _pictures(plan: Plan, model: Model) -> dict[str, Callable[[str, str], str]]:
    """Return functions that draw an attacker's limits, and curves, if there are some."""
    pictures: dict[str, Callable[[str, str], str]] = {}

    def attacker(title: str, about: str) -> str:
        curve = trade_off(plan.event, neighboring_relation=plan.neighboring_relation)
        figure = plot.attacker(curve, f"epsilon {plan.epsilon:g}")
        return plot.svg(figure, title=title, description=about)

    def columns(title: str, about: str) -> str:
        figure = plot.added(curves, ylabel=_ADDED[str(model.about["loss"])])
        return plot.svg(figure, title=title, description=about)

    if not any(each.correlation or each.sampler == "shuffled-epochs" for each in plan.queries):
        pictures["what-an-attacker-can-find.svg"] = attacker
    if curves := model.curves():
        pictures["what-each-column-adds.svg"] = columns
    return pictures
