"""Minimax problems about linear models; a gradient in the weights is a number times a record.

One record's pair of gradients is ``c_i x_i`` in the weights of a linear model, and a few numbers
e_i in further primal parameters and in y. Sums of clipped pairs are compiled.

>>> import numpy as np
>>> from dpcal.optim.minimax import FairClassification
>>> problem = FairClassification([[3.0, 4.0], [0.0, 1.0]], [0, 1], [0, 1], dual_l2=1.0,
...                              fit_intercept=False, classes=[0, 1], shares=[0.5, 0.5])
>>> w = np.array([0.1, 0.2, 0.5, 0.5])
>>> table = problem.record_gradients(w, np.arange(2))
>>> by_rows = sum(row * min(1.0, 0.5 / np.linalg.norm(row)) for row in table)
>>> bool(np.allclose(problem.clipped_sum(w, np.arange(2), 0.5), by_rows))
True
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.losses import Loss
from dpcal._internal import validate
from dpcal.optim.minimax.base import MinimaxObjective
from dpcal.optim.objectives.arrays import Vector, numbers, parameters
from dpcal.optim.objectives.domains import Mask, blanked, codes, declared, labels_of


class Factored(MinimaxObjective):
    """A problem with gradients, in a linear model's weights, of a number times the record.

    It takes the records, and whether each counts; the compiled loss, with further primal parameters
    and y in its tail; the targets; d2; and other arrays of length n that the digest depends on. Its
    subclasses take:

    Parameters
    ----------
    X, labels
        Records, shape (n, d), and, in classification, one of two classes for each. A record is
        ignored if it has another class, or a cell that is not a finite number.
    primal_l2
        Strength >= 0 of ``primal_l2 / 2 ||x||^2``.
    fit_intercept
        Whether there is an intercept, the last weight.
    classes
        The two classes, in order, known in public.
    classes_from_data
        Whether the classes are read off the records, which no claim covers: every statement names
        them then.
    block_shares
        See :class:`dpcal.optim.minimax.MinimaxObjective`.
    """

    kernel: ClippedSum

    def __init__(
        self,
        X: Vector,
        known: Mask,
        loss: Loss,
        targets: Vector,
        *others: Vector,
        dual_dimension: int,
        fit_intercept: bool,
        **options: Any,
    ) -> None:
        self.fit_intercept = validate.flag(fit_intercept=fit_intercept)
        n, extra = len(X), loss.tail - dual_dimension
        self._columns = X.shape[1] + self.fit_intercept
        super().__init__(n=n, dimensions=(self._columns + extra, dual_dimension), **options)
        self._targets = targets, *others
        self.kernel = ClippedSum(
            loss,
            blanked(X, known, math.nan),
            targets,
            intercept=self.fit_intercept,
            shares=self.block_shares,
            dual=dual_dimension,
        )

    def _digested(self) -> tuple[Vector, ...]:
        known = ~np.isnan(self.kernel.targets)
        return blanked(self.kernel.features, known, math.nan), *self._targets

    def _dual_slopes(self, x: ArrayLike) -> Vector:
        """Return the gradient of f in y at y = 0."""
        x = parameters(numbers("x", x), self.dimensions[0])
        return self.split(self.gradient(np.concatenate([x, np.zeros(self.dimensions[1])])))[1]

    def best_response(self, x: ArrayLike, *, start: ArrayLike | None = None) -> Vector:
        """Return y in closed form: f is a parabola in it. Not private."""
        return self.dual_set.project(self._dual_slopes(x) / self.dual_l2)

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the linear model's scores of new records of shape (m, d), shape (m,).

        The records have no constant feature; the first parameters are the weights, and the
        intercept if there is one.
        """
        table = np.asarray(X, dtype=np.float64)
        weights = np.asarray(w, dtype=np.float64)[: self._columns]
        d = table.shape[1]
        return np.asarray(table @ weights[:d] + weights[d:].sum())


def signs_of(
    labels: ArrayLike, classes: tuple[Any, Any] | None, n: int, *, from_data: bool
) -> Vector:
    """Return -1 for the first class, +1 for the second, and NaN for other labels."""
    given = labels_of(labels)
    pair = declared("classes", classes, given, from_data=from_data)
    if given.shape != (n,) or len(pair) != 2:
        raise ValueError(
            f"labels must be of two classes, shape ({n},), got {len(pair)} classes in shape "
            f"{given.shape}."
        )
    signs = [-1.0, 1.0] if classes is None or classes[1] == pair[1] else [1.0, -1.0]
    return np.array([*signs, math.nan])[codes("labels", given, pair)]
