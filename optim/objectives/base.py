"""What is minimised? The mean loss of a model over the records, plus a regulariser.

>>> import numpy as np
>>> objective = Logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"], l2=0.1)
>>> objective.n, objective.dimension
(4, 2)
>>> print(f"{objective.loss(np.zeros(2)):.6f}")  # log 2 at the origin, whatever the records are
0.693147
>>> w = objective.minimize()
>>> objective.predict(np.array([[0.5], [2.5]]), w).tolist()
['no', 'yes']

Nothing here is private by itself: losses, gradients, constants and optima are functions of the
records. What may leave a private run is what :class:`dpcal.optim.PrivateOracle` answers.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext.gradients import (
    ClippedSum,
    LinearClippedSum,
    LogisticLoss,
    PointLoss,
    SquaredLoss,
)
from dpcal.calibrate.constants import Constants
from dpcal.errors import NonFiniteAnswer

__all__ = ["Constants", "Logistic", "Objective", "Squared"]

Vector = NDArray[np.float64]


class Objective(ABC):
    """Mean loss of a model with ``dimension`` parameters over ``n`` records, plus a regulariser.

    A subclass says how the clipped gradients of given records are summed; a private run asks for
    nothing else, unless it needs gradient differences or losses. The regulariser ``l2 / 2
    ||w||^2`` does not depend on the records: it is added after the noise and never clipped.

    Attributes
    ----------
    n
        Number of records, at least 1.
    dimension
        Number of parameters, at least 1.
    l2
        Strength >= 0 of the regulariser.
    penalized
        How many leading parameters the regulariser covers (an intercept comes last and is left
        out).
    kernel
        Compiled form of :meth:`clipped_sum`, on which fused loops run without the interpreter; None
        when there is none.
    """

    n: int
    dimension: int
    l2: float = 0.0
    penalized: int
    kernel: ClippedSum | None = None

    @abstractmethod
    def clipped_sum(self, w: Vector, rows: NDArray[np.intp], max_norm: float) -> Vector:
        """Return the sum of the gradients of ``rows``, each clipped before it is added.

        Parameters
        ----------
        w
            Parameters, shape (dimension,).
        rows
            Row numbers in [0, n), possibly none.
        max_norm
            Bound > 0 on the L2 norm of each record's contribution; infinite for no clipping.

        Returns
        -------
        numpy.ndarray
            Shape (dimension,). Adding or removing one row moves it by at most ``max_norm``,
            whatever the records hold.
        """

    def clipped_difference_sum(
        self, w: Vector, v: Vector, rows: NDArray[np.intp], max_norm: float
    ) -> Vector:
        """Return the sum over ``rows`` of each record's gradient at ``w`` minus at ``v``, clipped.

        Here record by record, from :meth:`clipped_sum`; subclasses do it faster.

        Parameters
        ----------
        w, v
            Parameters, shape (dimension,).
        rows, max_norm
            As for :meth:`clipped_sum`: the bound is on each record's difference.

        Raises
        ------
        NonFiniteAnswer
            If a record's gradient is NaN or infinite.
        """
        total = np.zeros(self.dimension)
        for row in rows:
            alone = np.array([row], dtype=np.intp)
            change = self.clipped_sum(w, alone, math.inf) - self.clipped_sum(v, alone, math.inf)
            total += clipped_rows(change[np.newaxis], max_norm)
        return total

    def clipped_loss_sum(self, w: Vector, rows: NDArray[np.intp], max_loss: float) -> float:
        """Return the sum over ``rows`` of losses, each clipped to [-max_loss, max_loss].

        Parameters
        ----------
        w
            Parameters, shape (dimension,).
        rows
            Row numbers in [0, n), possibly none.
        max_loss
            Bound > 0 on the size of each record's contribution; infinite for no clipping.
        """
        raise TypeError(f"{type(self).__name__} gives no losses of single records.")

    def smoothness_when_convex(self, rows: NDArray[np.intp]) -> Vector | None:
        """Return bounds on the smoothness of records' losses, if theorems on convex losses apply.

        They apply where :meth:`clipped_sum` of one record is itself the gradient of a function
        that is convex and as smooth as the bound says, whatever ``max_norm`` is and whatever the
        records hold. Here None: clipping the gradients of a convex loss does not give gradients of
        a convex loss in general.

        Parameters
        ----------
        rows
            Row numbers in [0, n).
        """
        return None

    @abstractmethod
    def loss(self, w: ArrayLike) -> float:
        """Return the regularised mean loss at ``w``, shape (dimension,). Not private."""

    def gradient(self, w: ArrayLike) -> Vector:
        """Return the gradient of :meth:`loss` at ``w``, shape (dimension,). Not private."""
        w = parameters(w, self.dimension)
        total = self.clipped_sum(w, np.arange(self.n, dtype=np.intp), math.inf)
        return total / self.n + self.regularizer_gradient(w)

    def regularizer(self, w: Vector) -> float:
        """Return ``l2 / 2 ||w||^2`` over the penalized parameters."""
        return 0.5 * self.l2 * float(w[: self.penalized] @ w[: self.penalized])

    def regularizer_gradient(self, w: Vector) -> Vector:
        """Return the gradient of the regulariser, shape (dimension,)."""
        gradient = self.l2 * w
        gradient[self.penalized :] = 0.0
        return gradient

    def minimize(self, initial: ArrayLike | None = None, *, tolerance: float = 1e-10) -> Vector:
        """Return a minimiser of :meth:`loss`, by L-BFGS. Not private.

        Parameters
        ----------
        initial
            Where to start, shape (dimension,); the origin when omitted.
        tolerance
            Largest absolute entry > 0 of the gradient at which the search stops.
        """
        from scipy.optimize import minimize

        start = np.zeros(self.dimension) if initial is None else parameters(initial, self.dimension)
        found = minimize(
            self.loss,
            start,
            jac=self.gradient,
            method="L-BFGS-B",
            options={
                "gtol": _validate.positive(tolerance=tolerance),
                "ftol": 0.0,
                "maxiter": 10_000,
            },
        )
        return np.asarray(found.x, dtype=np.float64)


class Linear(Objective):
    """A linear model: one record's loss is a function of its score ``<w, x>`` and its target."""

    point_loss: ClassVar[type[PointLoss]]
    # The largest second derivative of the loss of a score, for convex losses.
    curvature: ClassVar[float | None] = None
    kernel: LinearClippedSum

    def __init__(
        self, X: ArrayLike, targets: Vector, *, l2: float = 0.0, fit_intercept: bool = True
    ) -> None:
        X = records(X)
        if targets.shape != (X.shape[0],):
            raise ValueError(f"y must have shape ({X.shape[0]},) to match X, got {targets.shape}.")
        self.l2 = _validate.non_negative(l2=l2)
        self.fit_intercept = bool(fit_intercept)
        self.n, self.penalized = X.shape
        self.dimension = self.penalized + self.fit_intercept
        self.kernel = LinearClippedSum(self._point_loss(), X, targets, intercept=self.fit_intercept)

    def _point_loss(self) -> PointLoss:
        return self.point_loss()

    def clipped_sum(self, w: Vector, rows: NDArray[np.intp], max_norm: float) -> Vector:
        """See :meth:`Objective.clipped_sum`."""
        return self.kernel(w, rows, max_norm=max_norm)

    def clipped_difference_sum(
        self, w: Vector, v: Vector, rows: NDArray[np.intp], max_norm: float
    ) -> Vector:
        """See :meth:`Objective.clipped_difference_sum`."""
        return self.kernel.difference(w, v, rows, max_norm=max_norm)

    def clipped_loss_sum(self, w: Vector, rows: NDArray[np.intp], max_loss: float) -> float:
        """See :meth:`Objective.clipped_loss_sum`."""
        return self.kernel.losses(w, rows, max_loss=max_loss)

    def smoothness_when_convex(self, rows: NDArray[np.intp]) -> Vector | None:
        """See :meth:`Objective.smoothness_when_convex`.

        One record's gradient is a slope times x, and clipping it clips the slope, to [-a, a] for
        some a. A nondecreasing slope stays so, and grows no faster: the clipped gradient is that of
        a convex loss, no less smooth.
        """
        if self.curvature is None:
            return None
        norms = self.kernel.norms[rows]
        return np.asarray(np.nextafter(self.curvature * norms**2, math.inf))

    def embedded(self, matrix: Vector) -> Linear:
        """Return the same loss on embedded records ``A x``, no longer than sqrt(2) times x.

        Longer ones are scaled down, each by itself: what becomes of a record depends on that record
        and on the matrix alone.

        Parameters
        ----------
        matrix
            A, shape (k, dimension), independent of the records.
        """
        if self.l2:
            raise ValueError(f"l2 must be 0 for records to be embedded, got {self.l2!r}.")
        features, targets = self.kernel.features, self.kernel.targets
        table = features @ matrix.T
        allowed, norms = math.sqrt(2) * row_norms(features), row_norms(table)
        shrink = np.divide(allowed, norms, out=np.ones_like(norms), where=norms > allowed)
        small = copy.copy(self)
        small.fit_intercept = False
        small.dimension = small.penalized = len(matrix)
        small.kernel = LinearClippedSum(
            self._point_loss(), table * shrink[:, np.newaxis], targets, intercept=False
        )
        return small

    def loss(self, w: ArrayLike) -> float:
        """Return the regularised mean loss at ``w``, shape (dimension,). Not private."""
        w = parameters(w, self.dimension)
        return self.kernel.mean_loss(w) + self.regularizer(w)

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores ``<w, x>`` of new records, intercept included.

        Parameters
        ----------
        X
            Records, shape (m, d).
        w
            Parameters, shape (dimension,).
        """
        X = records(X)
        w = parameters(w, self.dimension)
        if X.shape[1] != self.penalized:
            raise ValueError(f"X must have {self.penalized} columns, got {X.shape[1]}.")
        scores = X @ w[: self.penalized]
        return scores + w[-1] if self.fit_intercept else scores

    def _strong_convexity(self) -> float:
        return 0.0 if self.fit_intercept else self.l2


class TwoClass(Linear):
    """A linear model of two classes: the target is +1 for the larger in sort order, -1 else."""

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *, l2: float = 0.0, fit_intercept: bool = True
    ) -> None:
        labels, self.classes_ = classes(y)
        if len(self.classes_) != 2:
            raise ValueError(f"y must hold two classes, got {len(self.classes_)}.")
        signs = np.where(labels == self.classes_[1], 1.0, -1.0)
        super().__init__(X, signs, l2=l2, fit_intercept=fit_intercept)

    def predict(self, X: ArrayLike, w: ArrayLike) -> NDArray[Any]:
        """Return the likelier class of each new record; parameters as in :meth:`decision`."""
        labels: NDArray[Any] = self.classes_[(self.decision(X, w) > 0).astype(np.intp)]
        return labels


class Logistic(TwoClass):
    """Logistic regression: ``log(1 + exp(-y <w, x>))`` with y in {-1, +1}.

    Parameters
    ----------
    X
        Records, shape (n, d), n and d at least 1, finite. Copied.
    y
        Labels, shape (n,), of two classes; the larger in sort order counts as +1. Which two classes
        there are is treated as public.
    l2
        Strength >= 0 of the regulariser ``l2 / 2 ||w||^2``, which leaves the intercept out.
    fit_intercept
        Whether each record gets the constant feature 1, as its last. It counts in the record's
        gradient norm.

    Attributes
    ----------
    classes_
        The two classes, in sort order.

    Raises
    ------
    ValueError
        For empty or non-finite records, shapes that do not match, labels that are not two classes,
        or l2 < 0.
    """

    point_loss = LogisticLoss
    curvature = 0.25

    @property
    def constants(self) -> Constants:
        """L0 = max ||x|| and L1 = max ||x||^2 / 4, intercept included. Not private."""
        norm = float(self.kernel.norms.max())
        return Constants(
            lipschitz=norm, smoothness=norm**2 / 4, strong_convexity=self._strong_convexity()
        )


class Squared(Linear):
    """Least squares: ``(<w, x> - y)^2 / 2``.

    Parameters
    ----------
    X
        Records, shape (n, d), n and d at least 1, finite. Copied.
    y
        Targets, shape (n,), finite. Copied.
    l2
        Strength >= 0 of the regulariser ``l2 / 2 ||w||^2``, which leaves the intercept out.
    fit_intercept
        Whether each record gets the constant feature 1, as its last. It counts in the record's
        gradient norm.

    Raises
    ------
    ValueError
        For empty or non-finite data, shapes that do not match, or l2 < 0.

    Examples
    --------
    >>> line = Squared(np.array([[0.0], [1.0], [2.0]]), [1.0, 3.0, 5.0])
    >>> line.minimize().round(6).tolist()
    [2.0, 1.0]
    """

    point_loss = SquaredLoss
    curvature = 1.0

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *, l2: float = 0.0, fit_intercept: bool = True
    ) -> None:
        super().__init__(X, numbers("y", y), l2=l2, fit_intercept=fit_intercept)

    @property
    def constants(self) -> Constants:
        """L0 is infinite, for residuals have no bound; L1 = max ||x||^2. Not private."""
        norm = float(self.kernel.norms.max())
        return Constants(
            lipschitz=math.inf, smoothness=norm**2, strong_convexity=self._strong_convexity()
        )


def classes(y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return labels as an array, and the distinct ones in sort order."""
    labels = np.asarray(y)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y must be finite, got NaN or infinite labels.")
    try:
        return labels, np.unique(labels)
    except TypeError as error:
        raise TypeError(f"y must hold labels that can be sorted: {error}.") from error


def row_norms(table: Vector) -> Vector:
    """Return each row's L2 norm, shape (n,), rounded up by enough to cover a clipped product too.

    Rows are scaled first, so that squares neither overflow nor vanish.
    """
    largest = np.abs(table).max(axis=1, initial=0.0)
    scaled = table / np.where(largest > 0, largest, 1.0)[:, np.newaxis]
    slack = 1 + (table.shape[1] + 8) * 2.0**-53
    with np.errstate(over="ignore"):
        norms = largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled)) * slack
    return np.where(largest > 0, np.nextafter(norms, math.inf), 0.0)


def clipped_rows(table: Vector, max_norm: float) -> Vector:
    """Return the sum of the rows of ``table``, each scaled down to norm at most ``max_norm``.

    Raises
    ------
    NonFiniteAnswer
        If an entry is NaN or infinite.
    """
    if not np.isfinite(table).all():
        raise NonFiniteAnswer(
            "A record's gradient holds NaN or infinite numbers, so no bound on its norm can be "
            "enforced. Make gradients finite for every record; that one is not is itself a fact "
            "about the records, outside the privacy claim."
        )
    norms = row_norms(table)
    factors = np.divide(max_norm, norms, out=np.ones_like(norms), where=norms > max_norm)
    return np.asarray(factors @ table)


def numbers(name: str, values: ArrayLike) -> Vector:
    """Return ``values`` as finite float64, or raise a sentence that calls them ``name``."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of real numbers: {error}.") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinite entries.")
    return array


def records(X: ArrayLike) -> Vector:
    """Return records as a finite float64 table with at least one row and one column."""
    table = numbers("X", X)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"X must have shape (n, d) with n and d at least 1, got shape {table.shape}."
        )
    return table


def parameters(w: ArrayLike, dimension: int) -> Vector:
    """Return a float64 copy of parameters of the right shape."""
    vector = np.array(w, dtype=np.float64)
    if vector.shape != (dimension,):
        raise ValueError(f"w must have shape ({dimension},), got {vector.shape}.")
    return vector
