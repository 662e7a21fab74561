"""How are several classes distinguished? Multinomial logistic regression, clipped by norms alone.

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

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext.gradients import ClippedSum, sealed
from dpcal._ext.losses import SoftmaxLoss
from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    digest_of_blocks,
    in_blocks,
    parameters,
    prints_of_rows,
    records,
    row_norms,
)
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Contributions, Kernel, Losses, Products
from dpcal.optim.objectives.domains import (
    blanked,
    classes_and_weights,
    codes,
    labels_of,
    records_of,
)
from dpcal.optim.objectives.linear import declared_norm

__all__ = ["Softmax"]

BLOCK = 4096
# Largest number of classes, and of parameters, for which the kernel is faster than BLAS.
MOST_CLASSES, WIDEST_KERNEL = 64, 1024


class Softmax(Objective):
    """Multinomial logistic regression: ``log sum_k exp(<w_k, x>) - <w_y, x>``.

    The gradient of one record is the outer product of ``p - e_y`` (probabilities minus the class)
    and ``x``, so its norm is a product of two norms, and clipping forms no gradient.

    Up to 64 classes and ``K (d + 1) <= 1024`` numbers there is a compiled kernel. Beyond, sums are
    products of matrices on gathered records. Errors are those of
    :class:`dpcal.optim.objectives.linear.TwoClass`.

    Parameters
    ----------
    X, l2, fit_intercept, class_weights
        See :class:`dpcal.optim.objectives.linear.TwoClass`.
    y
        Labels, shape (n,).
    classes
        K >= 2 classes, known in public; those that have weights when omitted. A record of another
        label is blank.
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

    kernel: ClippedSum | None = None

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
        X, known = records_of(X)
        labels = labels_of(y)
        self.classes_, self.weights = classes_and_weights(
            labels, classes, class_weights, from_data=classes_from_data
        )
        self.read_from_data = ("classes",) if classes_from_data else ()
        if labels.shape != (X.shape[0],):
            raise ValueError(f"y must have shape ({X.shape[0]},) to match X, got {labels.shape}.")
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold two classes or more, got {len(self.classes_)}.")
        self.l2 = _validate.non_negative(l2=l2)
        self.fit_intercept = _validate.flag(fit_intercept=fit_intercept)
        self.n, self._columns = X.shape
        self.penalized = len(self.classes_) * self._columns
        self.dimension = self.penalized + len(self.classes_) * self.fit_intercept
        # Blank records have no class; the number -1 stands for that.
        self._class = np.where(known, codes("y", labels, self.classes_), -1).astype(np.int32)
        X = blanked(X, self._class >= 0)
        self.linear_loss = "softmax", self._largest_weight
        self._own: Vector | None = X
        self._class = sealed(self._class)
        K = len(self.classes_)
        if K <= MOST_CLASSES and K * (self._columns + 1) <= WIDEST_KERNEL:
            loss = SoftmaxLoss(K, intercepts=self.fit_intercept)
            self.kernel = ClippedSum(loss, X, self._class, intercept=False, weights=self.weights)
            self._own = None  # the kernel has a copy
        else:
            self._own = sealed(X.copy())

    def _features(self, rows: Rows) -> Vector:
        """Return records with their constant feature, shape (m, d) or (m, d + 1); a copy."""
        held: Any = self.kernel if self._own is None else self
        table: Vector = (held.features if self._own is None else self._own)[rows]
        table[self._class[rows] < 0] = 0.0
        return np.hstack([table, np.ones((len(rows), 1))]) if self.fit_intercept else table

    @property
    def _largest_weight(self) -> float:
        return 1.0 if self.weights is None else float(self.weights.max())

    @property
    def constants(self) -> Constants:
        """L0 = sqrt(2) max ||x|| and L1 = max ||x||^2 / 2, intercept included: measured.

        The Hessian of log-sum-exp has eigenvalues in [0, 1/2] (Boehning 1992).
        """
        blocks = in_blocks(np.arange(self.n, dtype=np.intp), BLOCK)
        norm = max(float(row_norms(self._features(block)).max()) for block in blocks)
        weight = self._largest_weight
        convexity = 0.0 if self.fit_intercept else self.l2
        return Constants(
            lipschitz=weight * math.sqrt(2) * norm * (1 + 2.0**-50),
            smoothness=weight * norm**2 / 2,
            strong_convexity=convexity,
            measured=True,
        )

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
        weight = _validate.positive(largest_weight=largest_weight)
        if _validate.count(classes=classes) < 2:
            raise ValueError(f"classes must be a whole number >= 2, got {classes!r}.")
        return Constants(
            lipschitz=weight * math.sqrt(2) * norm * (1 + 2.0**-50),
            smoothness=weight * norm**2 / 2,
            strong_convexity=0.0 if fit_intercept else _validate.non_negative(l2=l2),
            gap=weight * math.log(classes) * (1 + 2.0**-50),
        )

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        everyone, width = np.arange(self.n, dtype=np.intp), self._columns + self.fit_intercept
        tables = (self._features(block) for block in in_blocks(everyone, BLOCK))
        records = digest_of_blocks((self.n, width), tables, self._class.astype(np.intp))
        if self.weights is None:
            return records
        return hashlib.blake2b(records + self.weights.tobytes(), digest_size=32).digest()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """See :meth:`Objective.fingerprints`."""
        blocks = in_blocks(np.arange(self.n, dtype=np.intp), BLOCK)
        tables = [(self._features(block), self._class[block]) for block in blocks]
        return [each for table in tables for each in prints_of_rows(key, *table)]

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`; outer products of differences share their ``x``."""
        if self.kernel is not None:
            return Kernel(self.kernel, rows, *at)
        blocks = (self._factors(block, *at) for block in in_blocks(rows, BLOCK))
        return Products(self.dimension, blocks, lambda sums: self._flat(sums[0]))

    def _factors(self, block: Rows, *at: Vector) -> list[tuple[Vector, Vector]]:
        """Return residuals at w, minus those at v if given, and records."""
        residuals = [self._residuals(w, block) for w in at]
        left = residuals[0] if len(residuals) == 1 else residuals[0] - residuals[1]
        return [(self._weighted(left, block), self._features(block))]

    def loss_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """See :meth:`Objective.loss_contributions`."""
        if self.kernel is not None:
            return Losses(self.kernel, rows, w)
        return super().loss_contributions(rows, w)

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`; zero for blank records."""
        scores = self._scores(w, rows)
        own = scores[np.arange(len(rows)), self._class[rows]]
        losses = np.logaddexp.reduce(scores, axis=1) - own
        losses[self._class[rows] < 0] = 0.0
        return self._weighted(losses[:, np.newaxis], rows)[:, 0]

    def hessian_vector_sum(self, w: Vector, v: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.hessian_vector_sum`: with s = V x, ``p (s - <p, s>) x^T``."""
        total = np.zeros((len(self.classes_), self._columns + self.fit_intercept))
        for block in in_blocks(rows, BLOCK):
            p = self._residuals(w, block)
            p[np.arange(len(block)), self._class[block]] += 1.0
            with np.errstate(over="ignore", invalid="ignore"):
                scores = self._features(block) @ self._table(v).T
                left = p * (scores - (p * scores).sum(axis=1, keepdims=True))
            left = self._weighted(left, block)
            left[~np.isfinite(left).all(axis=1)] = 0.0
            total += left.T @ self._features(block)
        return self._flat(total)

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores of new records of shape (m, d), shape (m, K), intercepts included."""
        X = records(X)
        weights = self._table(parameters(w, self.dimension))
        if X.shape[1] != self._columns:
            raise ValueError(f"X must have {self._columns} columns, got {X.shape[1]}.")
        scores: Vector = X @ weights[:, : self._columns].T
        return scores + weights[:, -1] if self.fit_intercept else scores

    def predict(self, X: ArrayLike, w: ArrayLike) -> NDArray[Any]:
        """Return the likeliest class of each new record, shape (m,)."""
        labels: NDArray[Any] = self.classes_[self.decision(X, w).argmax(axis=1)]
        return labels

    def _table(self, w: Vector) -> Vector:
        """Return the weights with one row a class, shape (K, d) or (K, d + 1)."""
        weights = w[: self.penalized].reshape(len(self.classes_), self._columns)
        return np.column_stack([weights, w[self.penalized :]]) if self.fit_intercept else weights

    def _scores(self, w: Vector, rows: Rows) -> Vector:
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Vector = self._features(rows) @ self._table(w).T
            return scores

    def _residuals(self, w: Vector, rows: Rows) -> Vector:
        """Return probabilities minus the record's class; zero for blanks, and for scores of NaN."""
        scores = self._scores(w, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            residuals = weights / weights.sum(axis=1, keepdims=True)
        residuals[np.arange(len(rows)), self._class[rows]] -= 1.0
        counts = np.isfinite(residuals).all(axis=1) & (self._class[rows] >= 0)
        return np.where(counts[:, np.newaxis], residuals, 0.0)

    def _weighted(self, values: Vector, rows: Rows) -> Vector:
        """Return values of records, shape (m, ...), times the weights of their classes."""
        if self.weights is None:
            return values
        return np.asarray(values * self.weights[self._class[rows], np.newaxis])

    def _flat(self, total: Vector) -> Vector:
        """Return the parameters of a table with one row a class."""
        weights = total[:, : self._columns].ravel()
        return np.concatenate([weights, total[:, -1]]) if self.fit_intercept else weights
