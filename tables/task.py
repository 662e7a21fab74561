"""From a request to its records, and from these and a plan to a run.

Nothing here looks at records to choose anything but what is listed as read from the data.

>>> import numpy as np
>>> from dpcal import calibrate
>>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
>>> y = np.where(X[:, 0] > 0, 1.0, 0.0)
>>> empty = {"X_test": X[:0], "y_test": y[:0]}
>>> task = Task(loss="logistic", X_train=X, y_train=y, classes=(0.0, 1.0), **empty)
>>> plan = calibrate.dpsgd(n=300, batch_size=30, steps=5, epsilon=1.0, delta=1e-5)
>>> spend(task, plan, seed=0).result.message
'took all 5 planned steps'
"""

from __future__ import annotations

import hashlib
import secrets
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.optim import Logistic, Result, Squared, Users, run
from dpcal.optim.algorithms import Store
from dpcal.optim.objectives.domains import finite_rows
from dpcal.tables.coding import REACH
from dpcal.tables.model import Model
from dpcal.tables.records import Records, load
from dpcal.tables.request import Request, drafts_one

if TYPE_CHECKING:
    from dpcal.calibrate import Plan
    from dpcal.optim.driver import Progress

__all__ = ["Data", "Run", "Task", "averaging", "read", "spend"]

LOSSES = {"logistic": Logistic, "squared": Squared}

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """Scaled records, split into training and held-out records.

    ``unit`` is by how much a scaled target differs from the original: a squared loss is scored in
    the target's own unit. ``classes`` are those of a logistic loss. ``class_weights`` are in their
    order; empty where all are 1. ``owners`` are the persons of training records, shape (m,), where
    sums of the rows of a person, of at most ``group_size``, are clipped.
    """

    loss: str
    X_train: Vector
    y_train: NDArray[Any]
    X_test: Vector
    y_test: NDArray[Any]
    l2: float = 0.0
    intercept: bool = True
    unit: float = 1.0
    classes: tuple[Any, Any] | None = None
    class_weights: tuple[float, ...] = ()
    owners: NDArray[np.int64] | None = None
    group_size: int = 1
    objective: Any = field(init=False)

    def __post_init__(self) -> None:
        known: dict[str, Any] = {} if self.classes is None else {"classes": self.classes}
        if self.classes is not None and self.class_weights:
            known["class_weights"] = dict(zip(self.classes, self.class_weights, strict=True))
        loss = LOSSES[self.loss]
        made = loss(self.X_train, self.y_train, l2=self.l2, fit_intercept=self.intercept, **known)
        object.__setattr__(self, "objective", made)

    @property
    def n(self) -> int:
        """Number of training records that a plan is made for: of rows, or of persons."""
        return int(self.objective.n if self.owners is None else len(np.unique(self.owners)))

    @property
    def asked(self) -> Any:
        """The objective, of rows or of persons, that an optimizer is given."""
        if self.owners is None:
            return self.objective
        return Users(self.objective, self.owners, group_size=self.group_size)

    @property
    def metric(self) -> str:
        """Name of the score on the held-out records."""
        return "accuracy" if self.loss == "logistic" else "root mean squared error"

    def score(self, w: Vector) -> float:
        """Return the held-out accuracy, or root mean squared error, of parameters."""
        known = finite_rows(self.X_test)
        X, y = self.X_test[known], self.y_test[known]
        if self.loss == "logistic":
            return float((self.objective.predict(X, w) == y).mean())
        residuals = self.objective.decision(X, w) - y
        return self.unit * float(np.sqrt(np.nanmean(residuals**2)))


# -- the records


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """A table as a task, and what was done to it.

    Parameters
    ----------
    records
        How the table was read; its parts are in the task.
    task
        The coded records, split.
    read_from_data
        What was read off the records, and so is not covered by a claim.
    key
        Secret of the fingerprint, 32 bytes.
    """

    records: Records
    task: Task
    read_from_data: list[str]
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def scaling(self) -> dict[str, Any]:
        """Return what was done to the records, as JSON values."""
        if any(column.range or column.categories for column in self.records.coding.columns):
            features = (
                "numbers are clamped to their range, and [low, high] -> [-4, 4]; categories are "
                "0 or 1 each, or their place in the list -> [-4, 4]; bins, splines and random are "
                "fixed functions of scaled numbers"
            )
        else:
            features = "used as they are; privacy rests on clipping"
        scaling: dict[str, Any] = {"features": features}
        ends = self.records.target.range
        if ends is not None:
            scaling["target"] = f"clamped to {list(ends)}, then to [-4, 4]"
        return {**scaling, "schema": self.records.schema.to_dict()}

    def model(self, w: Vector, about: Mapping[str, Any]) -> Model:
        """Return the model of parameters."""
        count = len(self.records.coding.names)
        return Model(
            schema=self.records.schema,
            target=self.records.target,
            labels=self.records.labels,
            weights=w[:count],
            intercept=float(w[count]) if self.task.intercept else 0.0,
            about={"loss": self.task.loss, **about},
        )


def read(asked: Request) -> Data:
    """Read, code and split the table of a request.

    Raises
    ------
    ValueError
        If a cell is not what the schema says, or no record is left to train on.
    """
    classification = asked.loss == "logistic"
    how: dict[str, Any] = {"key": _split_key(asked.seed), "classification": classification}
    try:
        records = load(asked.source, asked.schema, target=asked.target, **how)
    except ValueError as error:
        if asked.described:
            raise
        raise ValueError(f"{error} {drafts_one(asked.source)}") from error
    owners = records.owners(asked.test_fraction) if asked.by_person else None
    X_train, y_train, X_test, y_test = records.split(asked.test_fraction)
    if not len(y_train):
        raise ValueError(f"table must hold a record to train on, got {records.n} in all.")
    target = records.target
    task = Task(
        loss=asked.loss,
        l2=asked.l2,
        intercept=asked.intercept,
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        classes=(0.0, 1.0) if records.labels else None,
        class_weights=target.weights if records.labels else (),
        unit=1.0 if target.range is None else (target.range[1] - target.range[0]) / (2 * REACH),
        owners=owners,
        group_size=asked.schema.group_size,
    )
    rules = {rule for each in records.schema.columns for rule in (each.missing, each.unknown)}
    found = {
        "number of records": asked.n is None,
        "number of persons": asked.n is None and asked.by_person,
        # The schema leaves out rows by what they hold, so that their number tells.
        "numbers of rows read and left out (data.rows, data.left_out)": asked.n is None
        and "drop-row" in rules,
        "names of the columns": not asked.described,
        f"classes of {target.name!r}": records.labels_read,
    }
    told = [words for words, was_read in found.items() if was_read]
    return Data(records=records, task=task, read_from_data=[*records.schema.copied(), *told])


def _split_key(seed: int | None) -> bytes:
    """Return the secret of the coins that split the records: the seed's, if one was given."""
    if seed is None:
        return secrets.token_bytes(32)
    return hashlib.blake2b(f"split {seed}".encode(), digest_size=32).digest()


# -- the run


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A finished run and the held-out scores of its iterates, as (step, score)."""

    result: Result
    scores: list[tuple[int, float]]
    interrupted: bool = False


def spend(
    task: Task,
    plan: Plan,
    *,
    seed: int | None,
    noise: str | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
    store: Store = None,
    scored: bool = True,
) -> Run:
    """Spend a plan on a task.

    Parameters
    ----------
    task, plan
        What to fit, and at what cost.
    seed, noise, store
        Those of :func:`dpcal.optim.run`.
    progress
        Called with the numbers of steps that are done and planned.
    scored
        Whether held-out scores are taken along the run, without noise.
    """
    scores: list[tuple[int, float]] = []
    total = int(plan.parameters.get("steps") or sum(each.count for each in plan.queries))
    stopping = Interrupt()

    def follow(at: Progress) -> bool:
        progress(at.step, total)
        if scored and len(task.y_test):
            scores.append((at.step, task.score(at.w)))
        return stopping.asked

    how = averaging(plan.optimizer)
    options: dict[str, Any] = {} if how == "none" else {"output": how}
    with stopping:
        result = run(
            task.asked, plan, seed=seed, store=store, callback=follow, noise=noise, **options
        )
    return Run(result=result, scores=scores, interrupted=stopping.asked)


class Interrupt:
    """Ctrl-C ends the run at its next noted step, and what it spent is kept.

    A second Ctrl-C interrupts at once.
    """

    def __init__(self) -> None:
        self.asked = False
        self._former: Any = None

    def __enter__(self) -> Self:
        if current_thread() is main_thread():
            self._former = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)

    def _note(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def averaging(optimizer: str) -> str:
    """Return how iterates are averaged: by growing weights, as private as the last, less noisy."""
    return "linear" if optimizer in ("dpsgd", "noisy_gd") else "none"
