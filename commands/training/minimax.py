"""From a table to a minimax problem: worst groups, shifts of covariates, the area under a curve.

``--problem fair`` needs ``--group``, a column among the features: its categories are the groups, or
the lower and the upper half of a number's public range.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpcal
from dpcal import _validate
from dpcal.calibrate import Constants
from dpcal.commands.training.task import Task
from dpcal.commands.training.tuning import PROBLEMS
from dpcal.optim.objectives.domains import finite_rows
from dpcal.optim.registry import Optimizer
from dpcal.tables import REACH, Column

__all__ = ["MinimaxTask", "Problem"]

Vector = NDArray[np.float64]

# Of each problem: the loss that it is about, and what is measured on held-out records.
LOSSES = {"fair": "logistic", "robust": "squared", "auc": "logistic"}
METRICS = {
    "fair": "accuracy in the worst group",
    "robust": "root mean squared error",
    "auc": "area under the ROC curve",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A minimax problem of a table, as options describe it.

    Parameters
    ----------
    name
        ``"fair"``, ``"robust"`` or ``"auc"``.
    group
        The column whose categories are groups, for ``"fair"``.
    dual_l2
        Regulariser > 0 of the dual variable, for ``"fair"`` and ``"robust"``.
    positive_share
        Public guess in (0, 1) of the share of the second class, for ``"auc"``.
    """

    name: str
    group: str | None
    dual_l2: float
    positive_share: float

    @classmethod
    def asked(cls, options: Namespace, row: Optimizer) -> Problem | None:
        """Return the problem of the command's options; None for other optimizers.

        Raises
        ------
        ValueError
            If the optimizer and the problem do not go together, or a number is out of range.
        """
        name, group = options.problem, options.group
        if not row.blocks:
            if name is not None or group is not None:
                raise ValueError(f"--problem and --group are not for --optimizer {row.name}.")
            return None
        if name is None:
            raise ValueError(
                f"--optimizer {row.name} needs --problem: one of {', '.join(PROBLEMS)}."
            )
        if (group is not None) != (name == "fair"):
            raise ValueError("--group goes with --problem fair, and with it alone.")
        return cls(
            name=name,
            group=group,
            dual_l2=_validate.positive(dual_l2=options.dual_l2),
            positive_share=_validate.probability(positive_share=options.positive_share),
        )

    @property
    def has_intercept(self) -> bool:
        """Whether a model may have an intercept: in the area under the curve it would cancel."""
        return self.name != "auc"

    def check(self, loss: str, target: Column, features: list[str]) -> None:
        """Raise ``ValueError`` if the table's loss, target or features are not the problem's."""
        if loss != LOSSES[self.name]:
            raise ValueError(f"--problem {self.name} needs --loss {LOSSES[self.name]}.")
        if target.weights:
            raise ValueError(
                f"Class weights are not for --problem {self.name}, which weights records itself."
            )
        self.places(features)

    def places(self, features: list[str]) -> list[int]:
        """Return the places of the group's features."""
        group = self.group
        found = [
            place
            for place, name in enumerate(features)
            if group is not None and (name == group or name.startswith(f"{group}="))
        ]
        if group is not None and not found:
            raise ValueError(f"--group must be a column among the features, got {group!r}.")
        return found

    def groups(self, features: list[str]) -> int:
        """Return how many groups there are."""
        return max(2, len(self.places(features)))

    def task(self, features: list[str], given: Mapping[str, Any]) -> MinimaxTask:
        """Return the task of coded and split records."""
        places = self.places(features)
        return MinimaxTask(
            problem=self,
            groups=self.groups(features),
            group_of=(_groups(given["X_train"][:, places]), _groups(given["X_test"][:, places]))
            if places
            else None,
            **given,
        )

    def constants(self, row_norm: float, features: list[str]) -> Constants:
        """Return what public ranges imply for weights of norm at most 1; no record is read.

        Parameters
        ----------
        row_norm
            Bound on the norm of a record, with the 1 of its intercept.
        features
            Names of the features.
        """
        share = self.positive_share
        concavity = 2 * share * (1 - share) if self.name == "auc" else self.dual_l2
        if math.isinf(row_norm):
            infinite = math.inf
            return Constants(lipschitz=infinite, smoothness=infinite, strong_concavity=concavity)
        if self.name == "auc":
            return dpcal.optim.minimax.AUCMaximization.constants_for(
                row_norm=row_norm, positive_share=share
            )
        if self.name == "fair":
            return dpcal.optim.minimax.FairClassification.constants_for(
                row_norm=row_norm, dual_l2=self.dual_l2, smallest_share=1 / self.groups(features)
            )
        return dpcal.optim.minimax.CovariateShift.constants_for(
            row_norm=row_norm, target_bound=REACH, dual_l2=self.dual_l2
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MinimaxTask(Task):
    """Records of a minimax problem; the first parameters of its x are the weights.

    ``group_of`` are the numbers of the groups of the records that are trained on, and of those that
    are held out, for the problem ``"fair"``.
    """

    problem: Problem
    groups: int
    group_of: tuple[NDArray[np.intp], NDArray[np.intp]] | None

    def of(self, X: Vector, y: NDArray[Any]) -> dpcal.optim.minimax.MinimaxObjective:
        """Return the problem of the records that are trained on."""
        problem = self.problem
        shared: dict[str, Any] = {"primal_l2": self.l2}
        if problem.name == "auc":
            return dpcal.optim.minimax.AUCMaximization(
                X,
                y,
                positive_share=problem.positive_share,
                classes=self.classes,
                **shared,
            )
        shared |= {"dual_l2": problem.dual_l2, "fit_intercept": self.intercept}
        if problem.name == "robust":
            norm = REACH * math.sqrt(X.shape[1])
            return dpcal.optim.minimax.CovariateShift(X, y, tilt_norm=norm, **shared)
        return dpcal.optim.minimax.FairClassification(
            X,
            y,
            () if self.group_of is None else self.group_of[0],
            shares=np.full(self.groups, 1 / self.groups),
            classes=self.classes,
            **shared,
        )

    @property
    def sizes(self) -> dict[str, Any]:
        """Sizes of the records that a plan builder takes, beside their number."""
        return {"dimensions": self.objective.dimensions}

    @property
    def metric(self) -> str:
        """Name of the score on the held-out records."""
        return METRICS[self.problem.name]

    def score(self, w: Vector) -> float:
        """Return the held-out score of parameters; NaN where a class or all groups are missing."""
        known = finite_rows(self.X_test)
        X, y, columns = self.X_test[known], self.y_test[known], self.X_test.shape[1]
        scores = X @ w[:columns] + (w[columns] if self.intercept else 0.0)
        if self.problem.name == "robust":
            return self.unit * float(np.sqrt(np.nanmean((scores - y) ** 2)))
        positive = y == (self.classes or (0.0, 1.0))[1]
        if self.problem.name == "auc":
            if positive.all() or not positive.any():
                return math.nan
            return float(self.objective.auc(X, positive, w))
        assert self.group_of is not None
        right, groups = (scores > 0) == positive, self.group_of[1][known]
        return min(float(right[groups == group].mean()) for group in np.unique(groups))


def _groups(coded: Vector) -> NDArray[np.intp]:
    """Return each record's group, from the features of one column."""
    if coded.shape[1] == 1:
        return (coded[:, 0] > 0).astype(np.intp)
    return np.asarray(coded.argmax(axis=1), dtype=np.intp)
