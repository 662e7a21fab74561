"""What is minimised? The mean loss of a model over the records, plus a regulariser.

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
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext.gradients import ClippedSum
from dpcal.accountants.sampler_base import everyone
from dpcal.optim.objectives.arrays import (
    Vector,
    clipped_rows,
    parameters,
    prints_of_rows,
    shrink_factors,
)

__all__ = ["Objective"]


# Records whose products are formed at once: 4096 rows of 100 numbers stay in a cache.
_BLOCK = 4096


class Objective(ABC):
    """Mean loss of a model with ``dimension`` parameters over ``n`` records, plus a regulariser.

    A subclass sums the clipped gradients of given records; a private run needs no more, unless it
    needs gradient differences or losses. The regulariser ``l2 / 2 ||w||^2`` does not depend on the
    records: it is added after the noise and never clipped.

    The sums share these arguments: parameters ``w`` and ``v``, shape (dimension,); ``rows``, row
    numbers in [0, n), possibly none; and a bound > 0 on each record's contribution, ``max_norm`` on
    its L2 norm or ``max_loss`` on its size, infinite for no clipping. A record whose contribution
    is NaN or infinite contributes zero.

    Attributes
    ----------
    n, dimension
        Numbers of records and of parameters, each at least 1.
    l2
        Strength >= 0 of the regulariser.
    penalized
        Number of leading parameters that the regulariser covers. An intercept comes last and is
        left out.
    kernel
        Compiled form of :meth:`clipped_sum`, which fused loops need; None without one.
    group_size
        Where records are persons, the largest number of rows of one; None where they are rows.
    read_from_data
        Names of what was read off the records to make the objective, as ``("classes",)``: no claim
        covers it, and statements of runs name it.
    linear_loss
        For linear models, whose defaults :class:`dpcal.calibrate.defaults.Defaults` knows: the name
        of the loss, and the largest number that the loss of a record is multiplied by.
    checked
        Whether oracles take the objective without a test. Otherwise they test it once, on a few
        random rows (:func:`dpcal.optim.objectives.check.screen`), if its class or its function is a
        user's. Set it to True, on the object or in the class, for a function that is slow, counts
        its calls, or has a regulariser of its own that reads no record.
    """

    n: int
    dimension: int
    l2: float = 0.0
    penalized: int
    kernel: ClippedSum | None = None
    group_size: int | None = None
    linear_loss: tuple[str, float] | None = None
    checked: bool = False
    read_from_data: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "checked" not in vars(cls):
            # This package's own classes are tested with the package; classes that users derive
            # from them are not.
            cls.checked = cls.__module__.split(".")[0] == __name__.split(".")[0]

    @staticmethod
    def everyone(n: int) -> NDArray[np.intp]:
        """Return the numbers of all n rows, as oracles give them to sums."""
        return everyone(n)

    @abstractmethod
    def clipped_sum(self, w: Vector, rows: NDArray[np.intp], max_norm: float) -> Vector:
        """Return the sum of the gradients of ``rows``, each clipped before it is added.

        Adding or removing one row moves it by at most ``max_norm``, for any records; shape
        (dimension,).
        """

    def digest(self) -> bytes:
        """Return bytes that depend on all records; a secret, like the records.

        Given seeds are mixed with it, so that runs about other records have other noise. Here it is
        a digest of two sums over all records at fixed parameters; subclasses that hold the records
        digest all of them.
        """
        state = hashlib.blake2b(digest_size=32)
        everyone = np.arange(self.n, dtype=np.intp)
        for start in (np.zeros(self.dimension), np.linspace(-1.0, 1.0, self.dimension)):
            total = np.asarray(self.clipped_sum(start, everyone, 1.0), dtype=np.float64)
            state.update(total.tobytes())
        return state.digest()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """Return a keyed digest of each record, to find records that two data sets share.

        Equal records of one class of objectives have equal digests. The digests are a secret, like
        the records: the key, at most 64 bytes, lets its owner test guesses of a record. Here they
        are of each record's gradients at two fixed parameters; subclasses that hold the records
        digest the records.
        """
        starts = (np.zeros(self.dimension), np.linspace(-1.0, 1.0, self.dimension))
        rows = np.arange(self.n, dtype=np.intp)[:, np.newaxis]
        return prints_of_rows(
            key, *(np.array([self.clipped_sum(w, row, 1.0) for row in rows]) for w in starts)
        )

    def clipped_difference_sum(
        self, w: Vector, v: Vector, rows: NDArray[np.intp], max_norm: float
    ) -> Vector:
        """Return the sum over ``rows`` of each record's gradient at ``w`` minus at ``v``, clipped.

        Here record by record, from :meth:`clipped_sum`; subclasses do it faster.
        """
        total = np.zeros(self.dimension)
        for row in rows:
            alone = np.array([row], dtype=np.intp)
            with np.errstate(over="ignore", invalid="ignore"):
                change = self.clipped_sum(w, alone, math.inf) - self.clipped_sum(v, alone, math.inf)
            total += clipped_rows(change[np.newaxis], max_norm)
        return total

    def clipped_loss_sum(self, w: Vector, rows: NDArray[np.intp], max_loss: float) -> float:
        """Return the sum over ``rows`` of losses, each clipped to [-max_loss, max_loss]."""
        raise TypeError(f"{type(self).__name__} gives no losses of single records.")

    def hessian_vector_sum(self, w: Vector, v: Vector, rows: NDArray[np.intp]) -> Vector:
        """Return the sum over ``rows`` of the Hessians of their losses, times a vector ``v``.

        Shape (dimension,), without the regulariser. Not private.
        """
        raise TypeError(f"{type(self).__name__} gives no Hessians of single records.")

    def clipped_hessian_sum(
        self, w: Vector, rows: NDArray[np.intp], max_norm: float, *, spectral: bool = False
    ) -> Vector:
        """Return the sum over ``rows`` of the upper triangles of their losses' Hessians, clipped.

        Here from :meth:`hessian_vector_rows`; subclasses do it faster. The bound
        is on the Frobenius norm of the symmetric matrix that a triangle stands for, which is no
        less than the triangle's norm as a vector; or on the operator norm, if ``spectral``. Shape
        (d (d + 1) / 2,), row by row.
        """
        units, order = np.eye(self.dimension), 2 if spectral else None
        total = np.zeros((self.dimension, self.dimension))
        size = max(1, _BLOCK // self.dimension)
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            H = np.stack([self.hessian_vector_rows(w, unit, some) for unit in units], axis=1)
            H = H[np.isfinite(H).all(axis=(1, 2))]
            H = np.triu(H) + np.triu(H, 1).swapaxes(1, 2)
            # The rounding of norms is less than the margin of this factor.
            norms = np.linalg.norm(H, order, axis=(1, 2)) * (1 + 1e-12 * self.dimension)
            total += np.tensordot(shrink_factors(norms, max_norm), H, axes=1)
        return total[np.triu_indices(self.dimension)]

    def clipped_hessian_vector_sum(
        self, w: Vector, v: Vector, rows: NDArray[np.intp], max_norm: float
    ) -> Vector:
        """Return the sum over ``rows`` of Hessians times a vector ``v``, each product clipped.

        Here from :meth:`hessian_vector_rows`.
        """
        total = np.zeros(self.dimension)
        for first in range(0, len(rows), _BLOCK):
            block = self.hessian_vector_rows(w, v, rows[first : first + _BLOCK])
            total += clipped_rows(block, max_norm)
        return total

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: NDArray[np.intp]) -> Vector:
        """Return the Hessian of each of ``rows`` times a vector ``v``, shape (m, dimension).

        Here record by record, from :meth:`hessian_vector_sum`; subclasses do it faster.
        """
        table = np.empty((len(rows), self.dimension))
        for i, row in enumerate(rows):
            table[i] = self.hessian_vector_sum(w, v, np.array([row], dtype=np.intp))
        return table

    def hessian_vector(self, w: ArrayLike, v: ArrayLike) -> Vector:
        """Return the Hessian of :meth:`loss` at ``w`` times a vector ``v``. Not private."""
        w, v = parameters(w, self.dimension), parameters(v, self.dimension)
        total = self.hessian_vector_sum(w, v, np.arange(self.n, dtype=np.intp))
        return total / self.n + self.regularizer_gradient(v)

    def smoothness_when_convex(self, rows: NDArray[np.intp]) -> Vector | None:
        """Return bounds on the smoothness of records' losses, if theorems on convex losses apply.

        They apply if :meth:`clipped_sum` of one record is itself the gradient of a function
        that is convex and as smooth as the bound, for any ``max_norm`` and any records. Here None:
        clipping the gradients of a convex loss does not give gradients of a convex loss in general.
        """
        return None

    def as_smooth_as(self, smoothness: float) -> Objective | None:
        """Return the objective with each record changed by itself until its loss is as smooth.

        None where :meth:`smoothness_when_convex` is, which then holds for the result.
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

    @property
    def strengths(self) -> Vector:
        """Strength of the public regulariser in each parameter, shape (dimension,)."""
        strengths = np.full(self.dimension, float(self.l2))
        strengths[self.penalized :] = 0.0
        return strengths

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

        The search starts at ``initial``, shape (dimension,), or at the origin, and stops where no
        entry of the gradient exceeds ``tolerance`` > 0.
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
