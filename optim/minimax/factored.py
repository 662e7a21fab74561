"""Minimax problems about linear models, whose gradients are a number times a record.

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

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.gradients import ClippedSum, sealed
from dpcal._ext.losses import Loss
from dpcal.optim.minimax.base import MinimaxObjective
from dpcal.optim.objectives.arrays import Rows, Vector, digest_of
from dpcal.optim.objectives.domains import Mask, blanked, finite_rows, records_of

__all__ = ["Factored", "with_intercept"]

Factors = tuple[Vector, Vector]


def with_intercept(X: ArrayLike, fit_intercept: bool) -> tuple[Vector, Mask]:
    """Return a copy of the records, and whether each is of finite numbers.

    The copy has a constant feature at its end for an intercept.
    """
    table, known = records_of(X)
    if _validate.flag(fit_intercept=fit_intercept):
        return np.column_stack([table, np.ones(len(table))]), known
    return np.array(table), known


class Factored(MinimaxObjective):
    """A problem whose gradient in a linear model's weights is a number times the record.

    It takes the records, the constant feature included, other arrays of length n for the digest,
    the number of primal parameters beside the weights, and d2. All cells of blank records are NaN.
    Its subclasses take:

    Parameters
    ----------
    X, labels
        Records, shape (n, d), and, in classification, one of two classes for each. A record of
        another class, or with a cell that is not a finite number, is blank.
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

    def __init__(
        self,
        X: Vector,
        targets: tuple[Vector, ...],
        *,
        extra: int,
        dual_dimension: int,
        **options: Any,
    ) -> None:
        n, p = X.shape
        super().__init__(n=n, dimensions=(p + extra, dual_dimension), **options)
        self._X = sealed(np.array(X, order="C"))
        self._targets = targets

    def _compile(self, loss: Loss, targets: Vector) -> None:
        shares = self.block_shares
        self.pairs = ClippedSum(
            loss, self._X, targets, intercept=False, shares=shares, dual=self.dimensions[1]
        )

    def _counting(self, values: Vector) -> Vector:
        """Return values of all records, shape (n,), with zeros for blank ones."""
        return blanked(values, finite_rows(self._X))

    @abstractmethod
    def factors(self, w: Vector, rows: Rows) -> Factors:
        """Return c, shape (m,), and e, shape (m, extra + d2), of ``rows`` at w."""

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._X, *self._targets)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`."""
        slopes, others = self.factors(w, rows)
        return np.concatenate([slopes[:, np.newaxis] * self._X[rows], others], axis=1)

    def scores(self, w: Vector, rows: Rows) -> Vector:
        """Return the linear model's scores of ``rows``, shape (m,)."""
        return np.asarray(self._X[rows] @ w[: self._X.shape[1]])

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the linear model's scores of new records of shape (m, d), shape (m,).

        The records have no constant feature; the first parameters are the weights, and the
        intercept if there is one.
        """
        table = np.asarray(X, dtype=np.float64)
        weights = np.asarray(w, dtype=np.float64)[: self._X.shape[1]]
        d = table.shape[1]
        return np.asarray(table @ weights[:d] + weights[d:].sum())
