"""One private run on a split table, and what the commands that train have in common."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.optim import Logistic, Result, Squared, Users, run
from dpcal.optim.boundary.access import Store
from dpcal.optim.objectives.domains import finite_rows
from dpcal.optim.objectives.placed import objective_of

if TYPE_CHECKING:
    from dpcal.calibrate import Plan
    from dpcal.optim.driver import Progress

__all__ = ["AVERAGING", "LOSSES", "Run", "Task", "averaging", "train"]

LOSSES = {"logistic": Logistic, "squared": Squared}
# A mean of the iterates whose weights grow: as private as the last one, and less noisy.
AVERAGING = "linear"


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """Scaled records, split into training and held-out records.

    ``unit`` is by how much a scaled target differs from the original: a squared loss is scored in
    the target's own unit. ``classes`` are those of a logistic loss. ``class_weights`` are in their
    order; empty where all are 1. ``owners`` are the persons of training records, shape (m,), where
    sums of the rows of a person, of at most ``group_size``, are clipped.
    """

    loss: str
    X_train: NDArray[np.float64]
    y_train: NDArray[Any]
    X_test: NDArray[np.float64]
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
        object.__setattr__(self, "objective", self.of(self.X_train, self.y_train))

    def of(self, X: NDArray[np.float64], y: NDArray[Any]) -> Any:
        """Return the loss of a linear model of such records."""
        known: dict[str, Any] = {} if self.classes is None else {"classes": self.classes}
        if self.classes is not None and self.class_weights:
            known["class_weights"] = dict(zip(self.classes, self.class_weights, strict=True))
        make = partial(LOSSES[self.loss], l2=self.l2, fit_intercept=self.intercept, **known)
        return objective_of(make, X, y)

    @property
    def n(self) -> int:
        """Number of training records that a plan is made for: of rows, or of persons."""
        return int(self.objective.n if self.owners is None else len(np.unique(self.owners)))

    @property
    def sizes(self) -> dict[str, Any]:
        """Sizes of the records that a plan builder takes, beside their number."""
        return {"dimension": self.objective.dimension}

    @property
    def asked(self) -> Any:
        """The objective, of rows or of persons, or the silos, that an optimizer is given."""
        if self.owners is None:
            return self.objective
        return Users(self.objective, self.owners, group_size=self.group_size)

    @property
    def options(self) -> dict[str, Any]:
        """Further options of the optimizer."""
        return {}

    @property
    def read_from_data(self) -> list[str]:
        """Names of what was read off the records to pose the task."""
        return []

    def planned(self, plan: Plan) -> Task:
        """Return the task with what the plan says of its model."""
        return self

    @property
    def about_network(self) -> dict[str, Any] | None:
        """What a model's file says of a network; None for a linear model."""
        return None

    def decide(self, X: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of each row, shape (m,)."""
        return np.asarray(self.objective.decision(X, w))

    def told(self) -> dict[str, Any]:
        """Return further entries of a report on the training."""
        return {}

    @property
    def metric(self) -> str:
        """Name of the score on the held-out records."""
        return "accuracy" if self.loss == "logistic" else "root mean squared error"

    def score(self, w: NDArray[np.float64]) -> float:
        """Return the held-out accuracy, or root mean squared error, of parameters."""
        known = finite_rows(self.X_test)
        X, y = self.X_test[known], self.y_test[known]
        if isinstance(self.objective, Logistic):
            return float((self.objective.predict(X, w) == y).mean())
        residuals = self.objective.decision(X, w) - y
        return self.unit * float(np.sqrt(np.nanmean(residuals**2)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A finished run and the held-out scores of its iterates, as (step, score)."""

    result: Result
    scores: list[tuple[int, float]]
    interrupted: bool = False


def train(
    task: Task,
    plan: Plan,
    *,
    seed: int | None,
    noise: str | None = None,
    advance: Callable[[int], object] = lambda steps: None,
    store: Store = None,
    scored: bool = True,
) -> Run:
    """Spend a plan on a task.

    Parameters
    ----------
    task, plan
        What to fit, and at what cost.
    seed
        An integer >= 0, or None for fresh entropy.
    noise
        That of :func:`dpcal.optim.run`.
    advance
        Called with the number of steps since it was last called.
    scored
        Whether held-out scores are taken along the run, without noise.
    store
        What keeps the run: a budget book that it is charged to, for instance.
    """
    scores: list[tuple[int, float]] = []
    done = 0
    stopping = Interrupt()

    def follow(progress: Progress) -> bool:
        nonlocal done
        advance(progress.step - done)
        done = progress.step
        if scored and len(task.y_test):
            scores.append((progress.step, task.score(progress.w)))
        return stopping.asked

    how = averaging(plan.optimizer)
    options = ({} if how == "none" else {"output": how}) | task.options
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
    """Return how the iterates of an optimizer are averaged here."""
    return AVERAGING if optimizer in ("dpsgd", "noisy_gd") else "none"
