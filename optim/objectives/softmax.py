"""Multinomial logistic regression over several classes, clipped by norms.

>>> import numpy as np
>>> X = np.array([[0.0, 0.0], [0.0, 4.0], [4.0, 0.0]])
>>> objective = Softmax(X, ["a", "b", "c"], classes=["a", "b", "c"], l2=0.01)
>>> objective.dimension  # three classes, two features and an intercept
9
>>> print(f"{objective.loss(np.zeros(9)):.6f}")  # log 3 at the origin, whatever the records are
1.098612
>>> objective.predict(X, objective.minimize()).tolist()
['a', 'b', 'c']
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.losses import SoftmaxLoss
from dpcal._internal import validate
from dpcal.optim.objectives.arrays import Rows, Vector, parameters, records, row_norms
from dpcal.optim.objectives.linear import Classified


class Softmax(Classified):
    """Multinomial logistic regression: ``log sum_k exp(<w_k, x>) - <w_y, x>``.

    The gradient of one record is the outer product of ``p - e_y`` (probabilities minus the class)
    and ``x``, so its norm is a product of two norms, and clipping forms no gradient.

    See :class:`dpcal.optim.objectives.linear.Classified` for the parameters.

    Attributes
    ----------
    classes_, weights
        The K >= 2 classes, in sort order, and their weights, shape (K,), or None.
    dimension
        K d, or K (d + 1) with intercepts: parameters hold the K weight vectors one after another,
        and then the K intercepts.
    """

    steepest, sharpest, convex = math.sqrt(2) * (1 + 2.0**-50), 0.5, True
    linear_loss = "softmax", 1.0

    def _compiled(self, X: Any, targets: NDArray[Any], *, intercept: bool) -> ClippedSum:
        loss = SoftmaxLoss(self.scores, intercepts=intercept)
        return ClippedSum(loss, X, targets, intercept=False, weights=self.weights)

    def _features(self, rows: Rows | slice = slice(None)) -> Vector:
        """Return records with their constant feature, shape (m, d) or (m, d + 1)."""
        table: Vector = self.kernel.features[rows]
        return np.hstack([table, np.ones((len(table), 1))]) if self.fit_intercept else table

    def _norms(self) -> Vector:
        return row_norms(self._features())

    @classmethod
    def _known(
        cls, norm: float, *, classes: float, largest_weight: float = 1.0
    ) -> dict[str, float]:
        weight = validate.positive(largest_weight=largest_weight)
        if validate.count(classes=classes) < 2:
            raise ValueError(f"classes must be a whole number >= 2, got {classes!r}.")
        return {"weight": weight, "gap": weight * math.log(classes) * (1 + 2.0**-50)}

    def _digested(self) -> tuple[NDArray[Any], ...]:
        return self._features(), self._class

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.hessian_vector_rows`: with s = V x, ``p (s - <p, s>) x^T``."""
        X, place = self._features(rows), self._class[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            p = softmax(X @ self._weights(w).T, axis=1)
            scores = X @ self._weights(v).T
            left = p * (scores - (p * scores).sum(axis=1, keepdims=True))
            left[place < 0] = 0.0
            if self.weights is not None:
                left *= self.weights[place, np.newaxis]
            table = left[:, :, np.newaxis] * X[:, np.newaxis, : self._columns]
        table = table.reshape(len(rows), -1)
        return np.hstack([table, left]) if self.fit_intercept else table

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores of new records of shape (m, d), shape (m, K), intercepts included."""
        X, weights = records(X, self._columns), self._weights(parameters(w, self.dimension))
        scores: Vector = X @ weights[:, : self._columns].T
        return scores + weights[:, -1] if self.fit_intercept else scores

    def _weights(self, w: Vector) -> Vector:
        """Return the weights with one row a class, shape (K, d) or (K, d + 1)."""
        weights = w[: self.penalized].reshape(len(self.classes_), self._columns)
        return np.column_stack([weights, w[self.penalized :]]) if self.fit_intercept else weights
