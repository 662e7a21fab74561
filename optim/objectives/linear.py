"""Linear models, such as logistic regression: the loss depends on a record through one number.

>>> import numpy as np
>>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
>>> objective = Logistic(X, y, classes=["no", "yes"], l2=0.1)
>>> objective.n, objective.dimension
(4, 2)
>>> print(f"{objective.loss(np.zeros(2)):.6f}")  # log 2 at the origin, whatever the records are
0.693147
>>> w = objective.minimize()
>>> objective.predict(np.array([[0.5], [2.5]]), w).tolist()
['no', 'yes']
"""

from __future__ import annotations

import copy
import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.losses import LogisticLoss, PointLoss, SquaredLoss
from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    digest_of,
    in_blocks,
    parameters,
    records,
    row_norms,
    shrink_factors,
)
from dpcal.optim.objectives.base import Labelled, Objective
from dpcal.optim.objectives.contributions import MOST, Contributions, Squares
from dpcal.optim.objectives.domains import blanked, cells, finite_rows, records_of


class _Embedded:
    """Embedded records ``A x``, computed in blocks when they are copied."""

    def __init__(self, features: Vector, matrix: Vector) -> None:
        self._features, self._matrix = features, matrix
        self.shape = len(features), len(matrix)

    @np.errstate(over="ignore", invalid="ignore")
    def __getitem__(self, some: slice) -> Vector:
        features = self._features[some]
        table: Vector = features @ self._matrix.T
        table *= shrink_factors(row_norms(table), math.sqrt(2) * row_norms(features))[:, np.newaxis]
        # A record that overflows is ignored, without a message: a message would reveal it.
        return blanked(table, finite_rows(table))


class Scored(Objective):
    """A linear model: one record's loss is a function of its scores ``<w_k, x>`` and its target.

    Attributes
    ----------
    scores
        Number of scores of a record.
    weights, largest_weight
        Numbers that losses are multiplied by, one for each class, or None for 1; and the largest.
    """

    # Bounds on the first and second derivative of the loss by the scores; the first is per width.
    steepest: ClassVar[float]
    sharpest: ClassVar[float] = 1.0
    convex: ClassVar[bool] = False
    width: float = 1.0
    scores: int = 1
    _known: ClassVar[Callable[..., dict[str, float]]]
    largest_weight: float = 1.0
    weights: Vector | None = None
    kernel: ClippedSum

    def _hold(self, X: Vector, targets: NDArray[Any], *, l2: float, fit_intercept: bool) -> None:
        """Take finite records, of zeros where they are ignored, and targets, NaN or -1 there."""
        self.l2 = validate.non_negative(l2=l2)
        self.fit_intercept = validate.flag(fit_intercept=fit_intercept)
        self.n, columns = X.shape
        self.penalized = self.scores * columns
        self.dimension = self.penalized + self.scores * self.fit_intercept
        self.kernel = self._compiled(X, targets, intercept=self.fit_intercept)

    @abstractmethod
    def _compiled(self, X: Any, targets: NDArray[Any], *, intercept: bool) -> ClippedSum:
        """Return the compiled form of the gradients and losses."""

    def _norms(self) -> Vector:
        """Return the norms of records, the constant feature included, shape (n,)."""
        return self.kernel.norms

    @property
    def constants(self) -> Constants:
        """L0 and L1: a largest slope times max ||x||, a curvature times max ||x||^2: measured.

        The norms of records have the constant feature in them. Not private.
        """
        norm, l2 = float(self._norms().max()), 0.0 if self.fit_intercept else self.l2
        return self._within(norm, l2, self.largest_weight, self.width, measured=True)

    @classmethod
    def _within(
        cls, norm: float, l2: float, weight: float = 1.0, width: float = 1.0, **more: Any
    ) -> Constants:
        """Return constants of losses of records of this norm at most."""
        slope = weight * cls.steepest * width
        return Constants(
            lipschitz=slope if math.isinf(slope) else slope * norm,
            smoothness=weight * cls.sharpest * norm**2,
            strong_convexity=l2 if cls.convex else 0.0,
            **more,
        )

    @classmethod
    def constants_for(
        cls, *, row_norm: float, l2: float = 0.0, fit_intercept: bool = True, **known: float
    ) -> Constants:
        """Return public constants, with the gap of the loss at the origin, for any records.

        Parameters
        ----------
        row_norm
            Bound > 0 on the L2 norm of every record that does not depend on the records; or inf.
        l2, fit_intercept
            As of the objective.
        **known
            Further public numbers. Of losses of classes: ``largest_weight`` > 0, of the class
            weights, 1 by default, to which all constants of the loss are proportional; and
            ``classes`` >= 2, the number of them, of :class:`dpcal.optim.Softmax`. Of other losses:
            ``target_bound`` > 0 on the size of every target; and ``width`` > 0, 1 by default.

        Examples
        --------
        >>> Logistic.constants_for(row_norm=1.0, l2=0.1, fit_intercept=False)
        Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.1, gap=0.6931471805599454, \
strong_concavity=0.0, hessian_lipschitz=0.09622504486493771, measured=False)
        """
        l2 = 0.0 if fit_intercept else validate.non_negative(l2=l2)
        norm = validate.radius(row_norm=row_norm)
        if fit_intercept:
            norm = math.hypot(norm, 1.0) * (1 + 2.0**-50)
        return cls._within(norm, l2, **cls._known(norm, **known))


class Linear(Scored):
    """A linear model of one score: a record's loss is a function of ``<w, x>`` and its target.

    Data that are empty, shapes that do not match, and l2 < 0 raise a ValueError. A record is
    ignored if one of its cells or its target is not a finite number: it contributes zero to every
    answer.

    Parameters
    ----------
    X
        Records, shape (n, d), n and d at least 1. Copied.
    y
        Targets, shape (n,). Copied.
    l2
        Strength >= 0 of the regulariser ``l2 / 2 ||w||^2``, which leaves the intercept out.
    fit_intercept
        Whether each record gets the constant feature 1, as its last. It counts in the record's
        gradient norm.
    """

    point_loss: ClassVar[type[PointLoss]]
    _embedded: tuple[Linear, Vector] | None = None

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *, l2: float = 0.0, fit_intercept: bool = True
    ) -> None:
        X, known = records_of(X)
        targets = cells("y", y)
        if targets.shape != (X.shape[0],):
            raise ValueError(f"y must have shape ({X.shape[0]},) to match X, got {targets.shape}.")
        known &= np.isfinite(targets)
        # A target of NaN makes every slope and every loss zero.
        X, targets = blanked(X, known), blanked(targets, known, math.nan)
        self._hold(X, targets, l2=l2, fit_intercept=fit_intercept)

    def _compiled(self, X: Any, targets: Vector, *, intercept: bool) -> ClippedSum:
        loss = self.point_loss(self.width)
        return ClippedSum(loss, X, targets, intercept=intercept, weights=self.weights)

    def curvatures(self, scores: Vector, targets: Vector) -> Vector:
        """Return the second derivatives of losses by their scores, without weights, shape (m,)."""
        raise TypeError(f"{type(self).__name__} gives no Hessians of single records.")

    @np.errstate(over="ignore", invalid="ignore")
    def _hessian_factors(self, w: Vector, rows: Rows) -> tuple[Vector, Vector]:
        """Return a number c and the record x of each row, whose Hessian is ``c x x^T``."""
        X, targets = self.kernel.features[rows], self.kernel.targets[rows]
        found = np.where(np.isnan(targets), 0.0, self.curvatures(X @ w, targets))
        if self.weights is not None:
            found *= self.weights[(targets > 0).astype(int)]
        return found, X

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.hessian_vector_rows`."""
        c, X = self._hessian_factors(w, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((c * (X @ v))[:, np.newaxis] * X)

    def hessian_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """See :meth:`Objective.hessian_contributions`."""
        factors = partial(self._hessian_factors, w)
        return Squares(self.dimension, map(factors, in_blocks(rows, MOST)))

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`; embedded records digest the originals and the matrix.

        Another processor rounds the products of both in another way.
        """
        if self._embedded is None:
            return self.kernel.digest()
        originals, matrix = self._embedded
        return digest_of(np.frombuffer(originals.digest(), np.uint8), matrix)

    def _digested(self) -> tuple[NDArray[Any], ...]:
        return self.kernel.features, self.kernel.targets

    def embedded(self, matrix: Vector) -> Linear:
        """Return the same loss on embedded records ``A x``, no longer than sqrt(2) times x.

        Longer records are scaled down one by one, so that an embedded record depends only on its
        record and on the matrix. A has the shape (k, dimension) and is independent of the records.
        """
        if self.l2:
            raise ValueError(f"l2 must be 0 for records to be embedded, got {self.l2!r}.")
        table = _Embedded(self.kernel.features, matrix)
        small = copy.copy(self)
        small._embedded = self, matrix
        small.fit_intercept = False
        small.dimension = small.penalized = len(matrix)
        small.kernel = self._compiled(table, self.kernel.targets, intercept=False)
        return small

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores ``<w, x>`` of new records, shape (m, d), intercept included."""
        X, w = records(X, self.penalized), parameters(w, self.dimension)
        scores = X @ w[: self.penalized]
        return scores + w[-1] if self.fit_intercept else scores


class Classified(Scored, Labelled):
    """A linear model of classes.

    Too few classes, and weights that are not for these classes, raise a ValueError. A record is
    ignored if it has another label, or a cell that is not a finite number.

    Parameters
    ----------
    X, l2, fit_intercept
        See :class:`Linear`.
    y
        Labels, shape (n,).
    classes
        The classes, known in public; when omitted, the keys of ``class_weights``. A record of
        another label, such as -1 where the classes are 0 and 1, is ignored without a message.
    classes_from_data
        Whether the classes are read off the records, which no claim covers: every statement names
        them then.
    class_weights
        For each class a finite number > 0 that the loss of its records is multiplied by. A weight
        that was computed from the records is not covered by a claim. Gradients are weighted and
        then clipped: the clipping norm bounds each record's contribution, as without weights.

    Attributes
    ----------
    classes_, weights
        The K classes, in sort order, and their weights, shape (K,), or None.
    two
        Whether the model is of two classes, with one score, or of any number, with a score each.
    """

    two: ClassVar[bool] = False

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
        table = self._table(X, y, classes, class_weights, from_data=classes_from_data, two=self.two)
        self.scores = 1 if self.two else len(self.classes_)
        targets = np.array([-1.0, 1.0, math.nan])[self._class] if self.two else self._class
        self._hold(table, targets, l2=l2, fit_intercept=fit_intercept)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`; it also depends on the weights of classes."""
        records = super().digest()
        if self.weights is None:
            return records
        return hashlib.blake2b(records + self.weights.tobytes(), digest_size=32).digest()


class TwoClass(Classified, Linear):
    """A linear model of two classes: the target is +1 for the larger in sort order, -1 else.

    See :class:`Classified` for parameters and attributes.
    """

    two = True
    # Loss at a score of zero, and one over a bound on the third derivative by the score.
    at_origin: ClassVar[float]
    straightness: ClassVar[float]

    @classmethod
    def _known(cls, norm: float, *, largest_weight: float = 1.0) -> dict[str, float]:
        weight = validate.positive(largest_weight=largest_weight)
        curved = weight * norm**3 / cls.straightness * (1 + 2.0**-50)
        return {"weight": weight, "gap": weight * cls.at_origin, "hessian_lipschitz": curved}


class Logistic(TwoClass):
    """Logistic regression: ``log(1 + exp(-y <w, x>))`` with y in {-1, +1}.

    See :class:`Classified` for parameters and attributes.

    Examples
    --------
    >>> rare = Logistic(np.array([[0.0], [1.0], [2.0]]), ["no", "no", "yes"],
    ...                 class_weights={"no": 1.0, "yes": 2.0}, fit_intercept=False)
    >>> rare.gradient(np.zeros(1)).round(6).tolist()  # (0 + 1 - 2 * 2) / 2 / 3
    [-0.5]
    """

    point_loss = LogisticLoss
    steepest, sharpest, convex = 1.0, 0.25, True
    at_origin, straightness = math.nextafter(math.log(2), 1.0), 6 * math.sqrt(3)
    linear_loss = "logistic", 1.0

    def curvatures(self, scores: Vector, targets: Vector) -> Vector:
        """See :meth:`Linear.curvatures`: p (1 - p), p the class's probability."""
        p = expit(scores)
        return np.asarray(p * (1 - p))


class Squared(Linear):
    """Least squares: ``(<w, x> - y)^2 / 2``.

    See :class:`Linear` for the parameters.

    Examples
    --------
    >>> line = Squared(np.array([[0.0], [1.0], [2.0]]), [1.0, 3.0, 5.0])
    >>> line.minimize().round(6).tolist()
    [2.0, 1.0]
    """

    point_loss = SquaredLoss
    steepest, convex = math.inf, True
    linear_loss = "squared", 1.0

    def curvatures(self, scores: Vector, targets: Vector) -> Vector:
        """See :meth:`Linear.curvatures`: 1."""
        return np.ones_like(scores)

    @classmethod
    def _known(cls, norm: float, *, target_bound: float) -> dict[str, float]:
        return {"gap": validate.positive(target_bound=target_bound) ** 2 / 2}


def smoothness_of(kernel: ClippedSum | None, rows: Rows) -> Vector | None:
    """Return bounds on the smoothness of records' losses, if theorems on convex losses apply.

    They apply if the clipped gradient of one record is itself the gradient of a function that is
    convex and as smooth as the bound. If you clip the gradients of a convex loss, the results are
    not in general the gradients of a convex loss. A linear model's gradient is a slope times x, and
    clipping it clips the slope, to [-a, a] for some a. A nondecreasing slope stays so, and grows no
    faster.
    """
    if kernel is None or not math.isfinite(kernel.curvature):
        return None
    return np.asarray(np.nextafter(kernel.curvature * kernel.norms[rows] ** 2, math.inf))


def as_smooth_as(kernel: ClippedSum, smoothness: float) -> ClippedSum:
    """Return a convex loss's kernel, with rows shortened until each loss is as smooth.

    A row is shortened by itself, constant feature included.
    """
    most = math.sqrt(smoothness / kernel.curvature) * (1 - 2.0**-40)
    factors = shrink_factors(kernel.norms, most)
    if factors.min() == 1:
        return kernel
    features = kernel.features * factors[:, np.newaxis]
    given = kernel.loss, features, kernel.targets
    return ClippedSum(*given, intercept=False, weights=kernel.weights)
