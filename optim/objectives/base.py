"""Objectives: the mean loss of a model over the records, plus a regulariser.

Nothing here is private by itself: losses, gradients, constants and optima are functions of the
records. Only the answers of :class:`dpcal.optim.PrivateOracle` may leave a private run.

>>> import numpy as np
>>> from dpcal.optim import Logistic
>>> objective = Logistic([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], l2=0.1, classes=[0, 1])
>>> everyone = np.arange(objective.n)
>>> total = objective.clipped_sum(np.zeros(2), everyone, 0.5)  # of gradients, each cut to norm 0.5
>>> bool(np.linalg.norm(total) <= 0.5 * objective.n)
True
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext.gradients import ClippedSum, sealed
from dpcal._internal import validate
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    digest_of,
    in_blocks,
    parameters,
    prints_of_rows,
)
from dpcal.optim.objectives.contributions import (
    MOST,
    Contributions,
    Kernel,
    Losses,
    Matrices,
    Table,
    gradients,
    hessian_products,
    losses,
    shaped,
)
from dpcal.optim.objectives.domains import (
    blanked,
    classes_and_weights,
    codes,
    finite_rows,
    labels_of,
    records_of,
)

BLOCK_BYTES = 1 << 24
_MOST_RECORDS = 1024

_SUMS = "records are clipped and added at the boundary; override record_gradients or contributions"
_PENALTY = "a regulariser is data, l2 and penalized"
_FINAL_WHY = {
    **dict.fromkeys(("clipped_sum", "clipped_difference_sum"), _SUMS),
    "clipped_loss_sum": "losses are clipped and added at the boundary; override record_losses",
    **dict.fromkeys(("regularizer", "regularizer_gradient", "strengths"), _PENALTY),
}
_FINAL = _FINAL_WHY.keys()
_DATA = {"l2", "penalized", "dual_l2", "ascending", "n", "dimension"}


class Objective:
    """Mean loss of a model with ``dimension`` parameters over ``n`` records, plus a regulariser.

    A subclass computes the gradients of given records, one by one: :meth:`record_gradients`. A
    private run needs no more, unless it needs losses. Gradients are clipped and added at the
    boundary (:mod:`dpcal.optim.objectives.contributions`). The regulariser ``l2 / 2 ||w||^2`` is
    data: it is added after the noise and never clipped.

    Methods share these arguments: parameters ``w`` and ``v``, shape (dimension,); ``rows``, row
    numbers in [0, n), possibly none; and a bound > 0 on each record's contribution, ``max_norm`` on
    its L2 norm or ``max_loss`` on its size, infinite for no clipping. A contribution that is NaN or
    infinite counts as zero.

    Attributes
    ----------
    n, dimension
        Numbers of records and of parameters, each at least 1.
    l2
        Strength >= 0 of the regulariser.
    penalized
        Number of leading parameters that the regulariser covers. An intercept comes last and is
        left out.
    dual_l2, ascending
        Strength >= 0, and number of last parameters, of ``-dual_l2 / 2 ||y||^2``, which is
        maximised over these.
    block
        Number of records of a call of :meth:`record_gradients`, at least 1; by default as many as
        have 16 MiB of gradients, and at most 1024.
    group_size
        Largest number of rows of a person, where records are persons; None where records are rows.
    read_from_data
        Names of the facts that were read off the records to make the objective, such as
        ``("classes",)``: no claim covers them, and statements of runs name them.
    linear_loss
        For linear models that :class:`dpcal.calibrate.defaults.Defaults` has settings for: the name
        of the loss, and the largest number that the loss of a record is multiplied by.
    checked
        Whether oracles take the objective without a test. Otherwise oracles test it once, on a few
        random rows (:func:`dpcal.optim.objectives.check.screen`), if its class or its function is
        your own. Set it to True, on the object or in the class, for a function that is slow or
        counts its calls.
    kernel
        Compiled form of the gradients and losses of single records, if there is one.
    rows_are_arrays
        Whether oracles pass the row numbers of all records as an array, or as
        :class:`dpcal.optim.objectives.arrays.AllRows`, which does not grow with them.
    """

    n: int
    dimension: int
    l2: float = 0.0
    penalized: int
    dual_l2: float = 0.0
    ascending: int = 0
    block: int | None = None
    group_size: int | None = None
    linear_loss: tuple[str, float] | None = None
    checked: bool = False
    kernel: ClippedSum | None = None
    # Share of the bound, and length, of each part of a gradient that is clipped separately.
    _shares: tuple[tuple[float, int], ...] = ()
    rows_are_arrays: bool = True
    read_from_data: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name in _FINAL & vars(cls).keys():
            raise TypeError(f"{cls.__name__}.{name} must not be overridden: {_FINAL_WHY[name]}.")
        for name in _DATA & vars(cls).keys():
            if hasattr(vars(cls)[name], "__get__"):
                raise TypeError(
                    f"{cls.__name__}.{name} must be a number: it is used without noise, and "
                    "nothing shows that a computed one reads no record."
                )
        if "checked" not in vars(cls):
            cls.checked = cls.__module__.split(".")[0] == __name__.split(".")[0]

    def record_gradients(self, w: Vector, rows: Rows) -> ArrayLike:
        """Return the gradient of each of ``rows``, not clipped, shape (m, dimension).

        Each gradient must depend only on its record and on ``w``: no statistics of a batch, no
        memory.
        """
        if not isinstance(self.kernel, ClippedSum):
            raise TypeError(f"{type(self).__name__} gives no gradients of single records.")
        return np.array([self.kernel(w, row) for row in rows[:, np.newaxis]])

    def record_losses(self, w: Vector, rows: Rows) -> ArrayLike:
        """Return the loss of each of ``rows``, shape (m,), under the same condition."""
        if not isinstance(self.kernel, ClippedSum):
            raise TypeError(f"{type(self).__name__} gives no losses of single records.")
        return np.array([self.kernel.losses(w, row) for row in rows[:, np.newaxis]])

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """Return the gradients of ``rows`` at w, minus gradients at v if given, for oracles to sum.

        The base class returns the compiled form, or :meth:`record_gradients` in blocks; subclasses
        may return factors of the gradients. You may also return an array of shape (m, dimension).
        """
        if isinstance(self.kernel, ClippedSum):
            return Kernel(self.kernel, rows, *at)
        return Table(self.dimension, self.tables(rows, *at), self._shares)

    def loss_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """Return the losses of ``rows``, one number a record, for oracles to sum."""
        if isinstance(self.kernel, ClippedSum):
            return Losses(self.kernel, rows, w)
        tables = (
            shaped("record_losses", self.record_losses(w.copy(), some), (len(some),))
            for some in self.blocks(rows)
        )
        return Table(1, (table[:, np.newaxis] for table in tables))

    def hessian_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """Return the upper triangles of the Hessians of ``rows``, row by row, for oracles to sum.

        The base class computes them from :meth:`hessian_vector_rows`.
        """
        blocks = in_blocks(rows, max(1, MOST // self.dimension))
        return Matrices(self.dimension, map(partial(self._hessians, w), blocks))

    def _hessians(self, w: Vector, rows: Rows) -> Vector:
        """Return the Hessians of rows, shape (m, dimension, dimension)."""
        units = np.eye(self.dimension)
        return np.stack([self.hessian_vector_rows(w, unit, rows) for unit in units], axis=1)

    def blocks(self, rows: Rows) -> Iterator[Rows]:
        """Yield the row numbers of one call of a function after another, copies."""
        size = self.block or max(1, min(_MOST_RECORDS, BLOCK_BYTES // (8 * self.dimension)))
        return (some.copy() for some in in_blocks(rows, size))

    def tables(self, rows: Rows, *at: Vector) -> Iterator[Vector]:
        """Yield the gradients of ``rows`` at w, minus gradients at v if given, in blocks."""
        for some in self.blocks(rows):
            shape = len(some), self.dimension
            found = [
                shaped("record_gradients", self.record_gradients(w.copy(), some), shape) for w in at
            ]
            with np.errstate(over="ignore", invalid="ignore"):
                yield found[0] if len(found) == 1 else found[0] - found[1]

    def clipped_sum(self, w: Vector, rows: Rows, max_norm: float) -> Vector:
        """Return the sum of the gradients of ``rows``, each clipped. Not private."""
        return gradients(self, rows, w).clipped(max_norm)

    def clipped_difference_sum(self, w: Vector, v: Vector, rows: Rows, max_norm: float) -> Vector:
        """Return the sum of gradients at ``w`` minus at ``v``, each clipped. Not private."""
        return gradients(self, rows, w, v).clipped(max_norm)

    def clipped_loss_sum(self, w: Vector, rows: Rows, max_loss: float) -> float:
        """Return the sum of losses, each clipped to [-max_loss, max_loss]. Not private."""
        return float(losses(self, rows, w).clipped(max_loss)[0])

    def digest(self) -> bytes:
        """Return bytes that depend on all records; a secret, like the records.

        Oracles mix given seeds with it, so that runs about other records have other noise.
        """
        if arrays := self._digested():
            return digest_of(*arrays)
        state = hashlib.blake2b(digest_size=32)
        for w in self._places():
            for table in self.tables(np.arange(self.n, dtype=np.intp), w):
                state.update(digest_of(blanked(table, finite_rows(table), math.nan)))
        return state.digest()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """Return a keyed digest of each record, to find records that two data sets share.

        Equal records of one class of objectives have equal digests. The digests are a secret, like
        the records: the key, at most 64 bytes, lets its owner test guesses of a record.
        """
        if arrays := self._digested():
            return prints_of_rows(key, *arrays)
        everyone = np.arange(self.n, dtype=np.intp)
        prints = []
        for tables in zip(*(self.tables(everyone, w) for w in self._places()), strict=True):
            alike = [blanked(table, finite_rows(table), math.nan) for table in tables]
            prints += prints_of_rows(key, *alike)
        return prints

    def _digested(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays, of one row a record, that digests are of.

        The base class has none: its digests are of each record's gradients at two fixed parameters.
        """
        return ()

    def _places(self) -> tuple[Vector, Vector]:
        return np.zeros(self.dimension), np.linspace(-1.0, 1.0, self.dimension)

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: Rows) -> ArrayLike:
        """Return the Hessian of the loss of each of ``rows`` times a vector ``v``.

        Shape (m, dimension), without the regulariser. Not private.
        """
        raise TypeError(f"{type(self).__name__} gives no Hessians of single records.")

    def hessian_vector(self, w: ArrayLike, v: ArrayLike) -> Vector:
        """Return the Hessian of :meth:`loss` at ``w`` times a vector ``v``. Not private."""
        w, v = parameters(w, self.dimension), parameters(v, self.dimension)
        everyone = np.arange(self.n, dtype=np.intp)
        total = hessian_products(self, everyone, w, v).clipped(math.inf)
        return total / self.n + self.regularizer_gradient(v)

    def loss(self, w: ArrayLike) -> float:
        """Return the regularised mean loss at ``w``, shape (dimension,). Not private."""
        w = parameters(w, self.dimension)
        everyone = np.arange(self.n, dtype=np.intp)
        return self.clipped_loss_sum(w, everyone, math.inf) / self.n + self.regularizer(w)

    def gradient(self, w: ArrayLike) -> Vector:
        """Return the gradient of :meth:`loss` at ``w``, shape (dimension,). Not private."""
        w = parameters(w, self.dimension)
        total = self.clipped_sum(w, np.arange(self.n, dtype=np.intp), math.inf)
        return total / self.n + self.regularizer_gradient(w)

    @property
    def strengths(self) -> Vector:
        """Strength of the public regulariser in each parameter, shape (dimension,)."""
        strengths = np.zeros(self.dimension)
        strengths[: self.penalized] = self.l2
        strengths[self.dimension - self.ascending :] = -self.dual_l2
        return strengths

    def regularizer(self, w: Vector) -> float:
        """Return ``l2 / 2 ||x||^2 - dual_l2 / 2 ||y||^2`` over these parameters x and y."""
        x, y = w[: self.penalized], w[self.dimension - self.ascending :]
        return 0.5 * (self.l2 * float(x @ x) - self.dual_l2 * float(y @ y))

    def regularizer_gradient(self, w: Vector) -> Vector:
        """Return the gradient of the regulariser, shape (dimension,)."""
        with np.errstate(over="ignore"):
            return self.strengths * w

    def minimize(self, initial: ArrayLike | None = None, *, tolerance: float = 1e-10) -> Vector:
        """Return a minimiser of :meth:`loss`, by L-BFGS. Not private.

        The search starts at ``initial``, shape (dimension,), or at the origin, and stops where no
        entry of the gradient exceeds ``tolerance`` > 0.
        """
        start = np.zeros(self.dimension) if initial is None else parameters(initial, self.dimension)
        return least_of(self.loss, self.gradient, start, tolerance)


def least_of(
    loss: Callable[[Vector], float],
    gradient: Callable[[Vector], Vector],
    start: Vector,
    tolerance: float,
) -> Vector:
    """Return a local minimiser by L-BFGS, where no entry of the gradient is above a number > 0."""
    from scipy.optimize import minimize

    gtol = validate.positive(tolerance=tolerance)
    options: Any = {"gtol": gtol, "ftol": 0.0, "maxiter": 10_000}
    found = minimize(loss, start, jac=gradient, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64)


class Labelled(Objective):
    """An objective of records with labels of declared classes; others are ignored.

    Attributes
    ----------
    classes_, weights
        The classes, in sort order, and the numbers that losses of their records are multiplied by,
        shape (K,), or None for 1.
    """

    def _table(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None,
        class_weights: Mapping[Any, float] | None = None,
        *,
        from_data: bool,
        two: bool = False,
    ) -> Vector:
        """Return records, ignored ones as zeros; keep their number, columns and classes.

        The class of a record that is ignored is -1.
        """
        table, known = records_of(X)
        labels = labels_of(y)
        self.classes_, self.weights = classes_and_weights(
            labels, classes, class_weights, from_data=from_data
        )
        self.read_from_data = ("classes",) if from_data else ()
        self.largest_weight = 1.0 if self.weights is None else float(self.weights.max())
        if self.linear_loss is not None:
            self.linear_loss = self.linear_loss[0], self.largest_weight
        if len(self.classes_) < 2 or (two and len(self.classes_) > 2):
            name = "y must hold" if classes is None else "classes must be"
            many = "two classes" if two else "two classes or more"
            raise ValueError(f"{name} {many}, got {len(self.classes_)}.")
        place = codes("y", labels, self.classes_)
        if place.shape != known.shape:
            raise ValueError(f"y must have shape {known.shape} to match X, got {place.shape}.")
        self.n, self._columns = table.shape
        self._class = sealed(np.where(known, place, -1))
        return blanked(table, self._class >= 0)

    @abstractmethod
    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores of new records of shape (m, d), shape (m,), or (m, K)."""

    def predict(self, X: ArrayLike, w: ArrayLike) -> NDArray[Any]:
        """Return the likeliest class of each new record of shape (m, d), shape (m,)."""
        scores = self.decision(X, w)
        places = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[places.astype(np.intp)]
        return labels
