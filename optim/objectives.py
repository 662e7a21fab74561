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

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
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

__all__ = ["Constants", "Logistic", "Objective", "Squared"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Constants of one record's loss, as the papers name them, without the regulariser.

    They are read off the records, hence not private: a plan may use them when they are known
    without looking, for instance because every row was scaled to norm at most 1.

    Parameters
    ----------
    lipschitz
        L0: bound on the norm of one record's gradient, over all parameters; infinite when there is
        none.
    smoothness
        L1: bound on the Lipschitz constant of one record's gradient.
    strong_convexity
        Of the regularised objective, as far as the regulariser guarantees it; at least 0.
    """

    lipschitz: float
    smoothness: float
    strong_convexity: float


class Objective(ABC):
    """Mean loss of a model with ``dimension`` parameters over ``n`` records, plus a regulariser.

    A subclass says how the clipped gradients of given records are summed; that is all that a
    private run asks of it. The regulariser ``l2 / 2 ||w||^2`` does not depend on the records: it is
    added after the noise and never clipped.

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


class _Linear(Objective):
    """A linear model: one record's loss is a function of its score ``<w, x>`` and its target."""

    point_loss: ClassVar[type[PointLoss]]
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
        self.kernel = LinearClippedSum(self.point_loss(), X, targets, intercept=self.fit_intercept)

    def clipped_sum(self, w: Vector, rows: NDArray[np.intp], max_norm: float) -> Vector:
        """See :meth:`Objective.clipped_sum`."""
        return self.kernel(w, rows, max_norm=max_norm)

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


class Logistic(_Linear):
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

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *, l2: float = 0.0, fit_intercept: bool = True
    ) -> None:
        labels = np.asarray(y)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y must be finite, got NaN or infinite labels.")
        try:
            self.classes_: NDArray[Any] = np.unique(labels)
        except TypeError as error:
            raise TypeError(f"y must hold labels that can be sorted: {error}.") from error
        if len(self.classes_) != 2:
            raise ValueError(f"y must hold two classes, got {len(self.classes_)}.")
        signs = np.where(labels == self.classes_[1], 1.0, -1.0)
        super().__init__(X, signs, l2=l2, fit_intercept=fit_intercept)

    @property
    def constants(self) -> Constants:
        """L0 = max ||x|| and L1 = max ||x||^2 / 4, intercept included. Not private."""
        norm = float(self.kernel.norms.max())
        return Constants(
            lipschitz=norm, smoothness=norm**2 / 4, strong_convexity=self._strong_convexity()
        )

    def predict(self, X: ArrayLike, w: ArrayLike) -> NDArray[Any]:
        """Return the likelier class of each new record; parameters as in :meth:`decision`."""
        labels: NDArray[Any] = self.classes_[(self.decision(X, w) > 0).astype(np.intp)]
        return labels


class Squared(_Linear):
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
