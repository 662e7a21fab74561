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
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.losses import SoftmaxLoss
from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    digest_of,
    parameters,
    prints_of_rows,
    records,
    row_norms,
)
from dpcal.optim.objectives.base import Labelled
from dpcal.optim.objectives.linear import declared_norm

__all__ = ["Softmax"]


class Softmax(Labelled):
    """Multinomial logistic regression: ``log sum_k exp(<w_k, x>) - <w_y, x>``.

    The gradient of one record is the outer product of ``p - e_y`` (probabilities minus the class)
    and ``x``, so its norm is a product of two norms, and clipping forms no gradient.

    It raises the errors of :class:`dpcal.optim.objectives.linear.TwoClass`.

    Parameters
    ----------
    X, l2, fit_intercept, class_weights
        See :class:`dpcal.optim.objectives.linear.TwoClass`.
    y
        Labels, shape (n,).
    classes
        K >= 2 classes, known in public; when omitted, the keys of ``class_weights``. A record of
        another label is ignored.
    classes_from_data
        Whether the classes are read off the records, which no claim covers: every statement names
        them then.

    Attributes
    ----------
    classes_, weights
        The classes, in sort order, and their weights, shape (K,), or None.
    dimension
        K d, or K (d + 1) with intercepts: parameters hold the K weight vectors one after another,
        and then the K intercepts.
    """

    kernel: ClippedSum
    linear_loss = "softmax", 1.0

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        l2: float = 0.0,
        fit_intercept: bool = True,
        classes: ArrayLike | None = None,
        classes_from_data: bool = False,
        class_weights: Mapping[Any, float] | None = None,
    ) -> None:
        X = self._table(X, y, classes, class_weights, from_data=classes_from_data)
        self.l2 = validate.non_negative(l2=l2)
        self.fit_intercept = validate.flag(fit_intercept=fit_intercept)
        K = len(self.classes_)
        self.penalized = K * self._columns
        self.dimension = self.penalized + K * self.fit_intercept
        loss = SoftmaxLoss(K, intercepts=self.fit_intercept)
        self.kernel = ClippedSum(loss, X, self._class, intercept=False, weights=self.weights)

    def _features(self, rows: Rows | slice = slice(None)) -> Vector:
        """Return records with their constant feature, shape (m, d) or (m, d + 1)."""
        table: Vector = self.kernel.features[rows]
        return np.hstack([table, np.ones((len(table), 1))]) if self.fit_intercept else table

    @property
    def constants(self) -> Constants:
        """L0 = sqrt(2) max ||x|| and L1 = max ||x||^2 / 2, intercept included: measured.

        The Hessian of log-sum-exp has eigenvalues in [0, 1/2] (Boehning 1992).
        """
        norm = float(row_norms(self._features()).max())
        l2 = 0.0 if self.fit_intercept else self.l2
        return _bounds(norm, self.largest_weight, l2, measured=True)

    @classmethod
    def constants_for(
        cls,
        *,
        row_norm: float,
        classes: int,
        l2: float = 0.0,
        fit_intercept: bool = True,
        largest_weight: float = 1.0,
    ) -> Constants:
        """Return public constants, with the gap log K at the origin, for any records.

        ``classes`` is their number K >= 2, and ``largest_weight`` > 0 the largest of the class
        weights, to which all constants of the loss are proportional. See
        :class:`dpcal.optim.objectives.linear.Linear` for the other arguments.
        """
        norm = declared_norm(row_norm, fit_intercept)
        weight = validate.positive(largest_weight=largest_weight)
        if validate.count(classes=classes) < 2:
            raise ValueError(f"classes must be a whole number >= 2, got {classes!r}.")
        l2 = 0.0 if fit_intercept else validate.non_negative(l2=l2)
        gap = weight * math.log(classes) * (1 + 2.0**-50)
        return _bounds(norm, weight, l2, gap=gap)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return self._weighted_digest(digest_of(self._features(), self._class))

    def fingerprints(self, key: bytes) -> list[bytes]:
        """See :meth:`Objective.fingerprints`."""
        return prints_of_rows(key, self._features(), self._class)

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


def _bounds(norm: float, weight: float, l2: float, **more: Any) -> Constants:
    """Return constants for records of this norm at most and losses of this weight."""
    return Constants(
        lipschitz=weight * math.sqrt(2) * norm * (1 + 2.0**-50),
        smoothness=weight * norm**2 / 2,
        strong_convexity=l2,
        **more,
    )
