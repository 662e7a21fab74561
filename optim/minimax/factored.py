"""How are gradients of linear models clipped in two blocks, without forming any? By their factors.

One record's pair of gradients is ``c_i x_i`` in the weights of a linear model, and a few numbers
e_i besides: in further primal parameters, and in y. Its norm needs two numbers and the norm of e_i,
so a clipped sum is one product with the records.

>>> import numpy as np
>>> from dpcal.optim.minimax import FairClassification
>>> problem = FairClassification([[3.0, 4.0], [0.0, 1.0]], [0, 1], [0, 1], dual_l2=1.0,
...                              fit_intercept=False)
>>> w = np.array([0.1, 0.2, 0.5, 0.5])
>>> table = problem.record_gradients(w, np.arange(2))
>>> by_rows = sum(row * min(1.0, 0.5 / np.linalg.norm(row)) for row in table)
>>> bool(np.allclose(problem.clipped_sum(w, np.arange(2), 0.5), by_rows))
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal.optim.minimax.base import MinimaxObjective
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    digest_of,
    records,
    row_norms,
    shrink_factors,
)

__all__ = ["Factored", "with_intercept"]

# Relative: by so much more than its two parts say is a norm taken, to cover its rounding.
_ROUNDING = 1 + 2.0**-50

Factors = tuple[Vector, Vector]


def with_intercept(X: ArrayLike, fit_intercept: bool) -> Vector:
    """Return a copy of the records, with a constant feature at the end if asked for."""
    table = records(X)
    if fit_intercept:
        return np.column_stack([table, np.ones(len(table))])
    return np.array(table)


class Factored(MinimaxObjective):
    """A problem whose gradient in a linear model's weights is a number times the record.

    Parameters
    ----------
    X
        Records as rows, the constant feature included, shape (n, p). Copied.
    targets
        What else is known of the records: arrays of length n, for the digest.
    extra
        How many primal parameters there are beside the p weights.
    dual_dimension
        d2.
    options
        Keywords of :class:`MinimaxObjective`.
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
        # Nobody else holds the copy: the norms that clipping relies on cannot come apart from it.
        self._X = np.array(X)
        self._X.flags.writeable = False
        self._norms = row_norms(self._X)
        self._targets = targets

    @abstractmethod
    def factors(self, w: Vector, rows: Rows) -> Factors:
        """Return c, shape (m,), and e, shape (m, extra + d2), of ``rows`` at w."""

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._X, *self._targets)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`MinimaxObjective.record_gradients`."""
        slopes, others = self.factors(w, rows)
        return np.concatenate([slopes[:, np.newaxis] * self._X[rows], others], axis=1)

    def clipped_sum(self, w: Vector, rows: Rows, max_norm: float) -> Vector:
        """See :meth:`MinimaxObjective.clipped_sum`."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._summed(*self.factors(w, rows), rows, max_norm)

    def clipped_difference_sum(self, w: Vector, v: Vector, rows: Rows, max_norm: float) -> Vector:
        """See :meth:`MinimaxObjective.clipped_difference_sum`."""
        with np.errstate(over="ignore", invalid="ignore"):
            slopes, others = self.factors(w, rows)
            before, earlier = self.factors(v, rows)
            return self._summed(slopes - before, others - earlier, rows, max_norm)

    def scores(self, w: Vector, rows: Rows) -> Vector:
        """Return the linear model's scores of ``rows``, shape (m,)."""
        return np.asarray(self._X[rows] @ w[: self._X.shape[1]])

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores of records, shape (m,), for parameters whose first ones are weights.

        Parameters
        ----------
        X
            Records without the constant feature, shape (m, d).
        w
            Parameters, of which the first are weights and the intercept, if there is one.
        """
        table = np.asarray(X, dtype=np.float64)
        weights = np.asarray(w, dtype=np.float64)[: self._X.shape[1]]
        d = table.shape[1]
        return np.asarray(table @ weights[:d] + weights[d:].sum())

    def _summed(self, slopes: Vector, others: Vector, rows: Rows, max_norm: float) -> Vector:
        """Clip each record by its factors, and add."""
        finite = np.isfinite(slopes) & np.isfinite(others).all(axis=1)
        if not finite.all():
            slopes, others, rows = slopes[finite], others[finite], rows[finite]
        extra = self.dimensions[0] - self._X.shape[1]
        weighted = np.abs(slopes) * self._norms[rows]
        if self.block_shares is None:
            primal = dual = self._shrunk(weighted, others, max_norm)
        else:
            primal = self._shrunk(weighted, others[:, :extra], max_norm * self.block_shares[0])
            dual = self._shrunk(
                np.zeros(len(rows)), others[:, extra:], max_norm * self.block_shares[1]
            )
        return np.concatenate(
            [
                (primal * slopes) @ self._X[rows],
                primal @ others[:, :extra],
                dual @ others[:, extra:],
            ]
        )

    @staticmethod
    def _shrunk(weighted: Vector, others: Vector, max_norm: float) -> Vector:
        norms = np.hypot(weighted, row_norms(others) if others.shape[1] else 0.0) * _ROUNDING
        factors = shrink_factors(norms, max_norm)
        # A product that overflowed bounds nothing.
        factors[~np.isfinite(norms) & (max_norm < math.inf)] = 0.0
        return factors
