"""From a table to a minimax problem: worst groups, shifts of covariates, the area under a curve.

``--problem fair`` needs ``--group``, a column among the features: its categories are the groups, or
the lower and the upper half of a number's public range.
"""

from __future__ import annotations

import dataclasses
import math
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal.calibrate import Constants
from dpcal.commands.training.data import Data
from dpcal.commands.training.task import Task
from dpcal.commands.training.tuning import PROBLEMS
from dpcal.optim import minimax
from dpcal.optim.registry import Optimizer
from dpcal.tables import REACH

__all__ = ["MinimaxTask", "minimax_constants", "posed"]

# Each problem is about this loss.
LOSSES = {"fair": "logistic", "robust": "squared", "auc": "logistic"}


@dataclass(frozen=True, kw_only=True, eq=False)
class MinimaxTask(Task):
    """Records of a minimax problem; the first parameters of its x are the weights.

    ``groups_train`` and ``groups_test`` are numbers of groups, for the problem ``"fair"``.
    """

    problem: str
    dual_l2: float = 1.0
    positive_share: float = 0.5
    groups_train: NDArray[np.intp] | None = None
    groups_test: NDArray[np.intp] | None = None
    groups: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", self._posed())

    def _posed(self) -> minimax.MinimaxObjective:
        shared: dict[str, Any] = {"primal_l2": self.l2}
        if self.problem == "auc":
            return minimax.AUCMaximization(
                self.X_train,
                self.y_train,
                positive_share=self.positive_share,
                class_labels=self.classes,
                **shared,
            )
        shared |= {"dual_l2": self.dual_l2, "fit_intercept": self.intercept}
        if self.problem == "robust":
            norm = REACH * math.sqrt(self.X_train.shape[1])
            return minimax.CovariateShift(self.X_train, self.y_train, tilt_norm=norm, **shared)
        return minimax.FairClassification(
            self.X_train,
            self.y_train,
            self.groups_train if self.groups_train is not None else (),
            shares=np.full(self.groups, 1 / self.groups),
            class_labels=self.classes,
            **shared,
        )

    @property
    def metric(self) -> str:
        """What :meth:`score` measures on the held-out records."""
        return {
            "fair": "accuracy in the worst group",
            "robust": "root mean squared error",
            "auc": "area under the ROC curve",
        }[self.problem]

    def score(self, w: NDArray[np.float64]) -> float:
        """Return the held-out score of parameters; NaN where a class or all groups are missing."""
        columns = self.X_test.shape[1]
        scores = self.X_test @ w[:columns]
        if self.problem == "auc":
            positive = self.y_test == (self.classes or (0.0, 1.0))[1]
            if positive.all() or not positive.any():
                return math.nan
            objective: Any = self.objective
            return float(objective.auc(self.X_test, positive, w))
        scores = scores + (w[columns] if self.intercept else 0.0)
        if self.problem == "robust":
            return self.unit * float(np.sqrt(((scores - self.y_test) ** 2).mean()))
        right = (scores > 0) == (self.y_test == (self.classes or (0.0, 1.0))[1])
        assert self.groups_test is not None
        return min(float(right[self.groups_test == g].mean()) for g in np.unique(self.groups_test))


def posed(options: Namespace, row: Optimizer, data: Data) -> Data:
    """Return the data with the task of the problem that was asked for, if any.

    Raises
    ------
    ValueError
        If the optimizer and the problem do not go together, or the group is no feature.
    """
    if not row.blocks:
        if options.problem is not None or options.group is not None:
            raise ValueError(f"--problem and --group are not for --optimizer {row.name}.")
        return data
    if options.problem is None:
        raise ValueError(f"--optimizer {row.name} needs --problem: one of {', '.join(PROBLEMS)}.")
    if options.loss != LOSSES[options.problem]:
        raise ValueError(f"--problem {options.problem} needs --loss {LOSSES[options.problem]}.")
    if data.target.weights:
        raise ValueError(
            f"Class weights are not for --problem {options.problem}, which weights records itself."
        )
    if (options.group is not None) != (options.problem == "fair"):
        raise ValueError("--group goes with --problem fair, and with it alone.")
    given = {
        each.name: getattr(data.task, each.name)
        for each in dataclasses.fields(data.task)
        if each.init
    }
    if options.problem == "auc":
        given["intercept"] = False  # it would cancel
    if options.problem == "fair":
        columns = _columns(data.features, options.group)
        given["groups_train"] = _groups(data.task.X_train[:, columns])
        given["groups_test"] = _groups(data.task.X_test[:, columns])
        given["groups"] = max(2, len(columns))
    task = MinimaxTask(
        problem=options.problem,
        dual_l2=_validate.positive(dual_l2=options.dual_l2),
        positive_share=_validate.probability(positive_share=options.positive_share),
        **given,
    )
    return dataclasses.replace(data, task=task)


def minimax_constants(options: Namespace, data: Data) -> Constants:
    """Return what public ranges imply for weights of norm at most 1; nothing is read off records.

    Parameters
    ----------
    options
        Of the command, of which ``smoothness`` and ``gap`` take the place of what is implied.
    data
        Whose task is a :class:`MinimaxTask`.
    """
    task = data.task
    assert isinstance(task, MinimaxTask)
    row_norm = math.sqrt(data.coding.square_bound + task.intercept)
    if math.isinf(row_norm):
        implied = Constants(lipschitz=math.inf, smoothness=math.inf)
    elif task.problem == "auc":
        implied = minimax.AUCMaximization.constants_for(
            row_norm=row_norm, positive_share=task.positive_share
        )
    elif task.problem == "fair":
        implied = minimax.FairClassification.constants_for(
            row_norm=row_norm, dual_l2=task.dual_l2, smallest_share=1 / task.groups
        )
    else:
        implied = minimax.CovariateShift.constants_for(
            row_norm=row_norm, target_bound=REACH, dual_l2=task.dual_l2
        )
    share = task.positive_share
    concavity = 2 * share * (1 - share) if task.problem == "auc" else task.dual_l2
    changes: dict[str, Any] = {"strong_concavity": concavity}
    for name in ("smoothness", "gap"):
        if getattr(options, name) is not None:
            changes[name] = _validate.positive(**{name: getattr(options, name)})
    return dataclasses.replace(implied, **changes)


def _columns(features: list[str], group: str) -> list[int]:
    """Return the places of a column's features."""
    found = [i for i, name in enumerate(features) if name == group or name.startswith(f"{group}=")]
    if not found:
        raise ValueError(f"--group must be a column among the features, got {group!r}.")
    return found


def _groups(coded: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return each record's group, from the features of one column."""
    if coded.shape[1] == 1:
        return (coded[:, 0] > 0).astype(np.intp)
    return np.asarray(coded.argmax(axis=1), dtype=np.intp)
