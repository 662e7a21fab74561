"""Can I bring my own model? Yes, if it gives one gradient per record.

>>> import numpy as np
>>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([2.0, 4.0, 6.0])
>>> def gradients(w, rows):
...     return (X[rows] @ w - y[rows])[:, np.newaxis] * X[rows]
>>> objective = FromGradients(gradients, n=3, dimension=1)
>>> objective.clipped_sum(np.zeros(1), np.array([0, 2]), 5.0).round(9).tolist()  # -2, -18 cut to -5
[-7.0]
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.arrays import (
    Vector,
    clipped_rows,
    digest_of,
    parameters,
    prints_of_rows,
)
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.domains import blanked, cells, finite_rows

__all__ = ["FromGradients"]

# Bytes of a block of gradients from the user's function; differences hold two blocks.
_BLOCK_BYTES = 1 << 24
# Largest number of records in a block.
_MOST_RECORDS = 1024

PerRecord = Callable[[Vector, NDArray[np.intp]], ArrayLike]


class FromGradients(Objective):
    """An objective given by a function that returns one gradient per record.

    Before the first run the function is called for a few random rows, to test that gradients do not
    depend on the other rows of a call; ``objective.checked = True`` skips the test.

    Parameters
    ----------
    gradients
        ``gradients(w, rows)`` returns the gradients of ``rows`` (row numbers, shape (m,)) at ``w``
        (shape (dimension,)), shape (m, dimension). The privacy claim needs the gradient of a record
        to depend on that record and on ``w`` alone: no statistics of a batch, no memory. A record
        whose gradient, or loss, is NaN or infinite contributes zero.
    n, dimension, l2
        See :class:`Objective`.
    loss
        ``loss(w, rows)`` returns the losses of ``rows``, shape (m,), under the same condition.
    hessian_vectors
        ``hessian_vectors(w, v, rows)`` returns the Hessians of the losses of ``rows`` times ``v``
        (shape (dimension,)), one product per record, shape (m, dimension), under the same
        condition. :func:`dpcal.optim.check_objective` compares it with differences of gradients.
    constants
        Known constants of one record's loss; infinite when omitted. Nothing private rests on them:
        gradients are always clipped.
    block
        Number of records of a call, at least 1; by default as many as have 16 MiB of gradients,
        and at most 1024.
    """

    checked = False

    def __init__(
        self,
        gradients: PerRecord,
        *,
        n: int,
        dimension: int,
        loss: PerRecord | None = None,
        hessian_vectors: Callable[[Vector, Vector, NDArray[np.intp]], ArrayLike] | None = None,
        l2: float = 0.0,
        constants: Constants | None = None,
        block: int | None = None,
    ) -> None:
        given = {"gradients": gradients, "loss": loss, "hessian_vectors": hessian_vectors}
        for name, function in given.items():
            if not callable(function) and not (name != "gradients" and function is None):
                raise TypeError(f"{name} must be callable, got {function!r}.")
        self._gradients = gradients
        self._loss = loss
        self._hessian_vectors = hessian_vectors
        self.n = _validate.count(n=n)
        self.dimension = self.penalized = _validate.count(dimension=dimension)
        self.l2 = _validate.non_negative(l2=l2)
        unknown = Constants(lipschitz=math.inf, smoothness=math.inf)
        self.constants = _validate.instance(Constants, constants=constants or unknown)
        self._block = _block(self.dimension) if block is None else _validate.count(block=block)

    def clipped_sum(self, w: Vector, rows: NDArray[np.intp], max_norm: float) -> Vector:
        """See :meth:`Objective.clipped_sum`."""
        total = np.zeros(self.dimension)
        for table in self.tables(rows, w):
            total += clipped_rows(table, max_norm)
        return total

    def clipped_difference_sum(
        self, w: Vector, v: Vector, rows: NDArray[np.intp], max_norm: float
    ) -> Vector:
        """See :meth:`Objective.clipped_difference_sum`."""
        total = np.zeros(self.dimension)
        for table in self.tables(rows, w, v):
            total += clipped_rows(table, max_norm)
        return total

    def tables(
        self, rows: NDArray[np.intp], w: Vector, v: Vector | None = None
    ) -> Iterator[Vector]:
        """Yield gradients at ``w``, minus those at ``v`` if given, in blocks of rows; not clipped.

        Blocks have shape (m, dimension), in the order of ``rows``.
        """
        for block in self._blocks(rows):
            if v is None:
                yield self._rows_of_gradients(w, block)
            else:
                at_w, at_v = (self._rows_of_gradients(u, block) for u in (w, v))
                with np.errstate(over="ignore", invalid="ignore"):
                    yield at_w - at_v

    def clipped_loss_sum(self, w: Vector, rows: NDArray[np.intp], max_loss: float) -> float:
        """See :meth:`Objective.clipped_loss_sum`; a TypeError is raised without a ``loss``."""
        if self._loss is None:
            raise TypeError("loss must be given for losses to be asked for, got None.")
        total = 0.0
        for block in self._blocks(rows):
            losses = cells("loss", self._loss(w.copy(), block))
            if losses.shape != (len(block),):
                raise ValueError(
                    f"loss must return shape ({len(block)},) for {len(block)} rows, "
                    f"got {losses.shape}."
                )
            # A sum that is not finite would reveal a record.
            losses = np.where(np.isfinite(losses), losses, 0.0)
            total += float(np.clip(losses, -max_loss, max_loss).sum())
        return total

    def hessian_vector_sum(self, w: Vector, v: Vector, rows: NDArray[np.intp]) -> Vector:
        """See :meth:`Objective.hessian_vector_sum`; a TypeError is raised without Hessians."""
        total = np.zeros(self.dimension)
        for block in self._blocks(rows):
            total += clipped_rows(self.hessian_vector_rows(w, v, block), math.inf)
        return total

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: NDArray[np.intp]) -> Vector:
        """See :meth:`Objective.hessian_vector_rows`; a TypeError is raised without Hessians."""
        if self._hessian_vectors is None:
            raise TypeError("hessian_vectors must be given for Hessians to be asked for, got None.")
        products = self._hessian_vectors(w.copy(), v.copy(), rows)
        return self._table("hessian_vectors", products, rows)

    def digest(self) -> bytes:
        """Return a digest of every record's gradient at two fixed parameters."""
        state = hashlib.blake2b(digest_size=32)
        for w in (np.zeros(self.dimension), np.linspace(-1.0, 1.0, self.dimension)):
            for block in self._blocks(np.arange(self.n, dtype=np.intp)):
                state.update(digest_of(self._digested(w, block)))
        return state.digest()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """Return keyed digests of every record's gradients at two fixed parameters."""
        starts = (np.zeros(self.dimension), np.linspace(-1.0, 1.0, self.dimension))
        return [
            each
            for block in self._blocks(np.arange(self.n, dtype=np.intp))
            for each in prints_of_rows(key, *(self._digested(w, block) for w in starts))
        ]

    def loss(self, w: ArrayLike) -> float:
        """Return the regularised mean loss at ``w``, shape (dimension,). Not private."""
        w = parameters(w, self.dimension)
        everyone = np.arange(self.n, dtype=np.intp)
        return self.clipped_loss_sum(w, everyone, math.inf) / self.n + self.regularizer(w)

    def _blocks(self, rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        return [rows[i : i + self._block].copy() for i in range(0, len(rows), self._block)]

    def _rows_of_gradients(self, w: Vector, rows: NDArray[np.intp]) -> Vector:
        return self._table("gradients", self._gradients(w.copy(), rows), rows)

    def _digested(self, w: Vector, rows: NDArray[np.intp]) -> Vector:
        """Return gradients, of which those that count as zero are all alike."""
        table = self._rows_of_gradients(w, rows)
        return blanked(table, finite_rows(table), math.nan)

    def _table(self, name: str, values: ArrayLike, rows: NDArray[np.intp]) -> Vector:
        """Return the result of a user's function, if it is one row a record."""
        table = cells(name, values)
        if table.shape != (len(rows), self.dimension):
            raise ValueError(
                f"{name} must return shape ({len(rows)}, {self.dimension}) for {len(rows)} "
                f"rows, got {table.shape}."
            )
        return table


def _block(dimension: int) -> int:
    """Return the default number of records in a block."""
    return max(1, min(_MOST_RECORDS, _BLOCK_BYTES // (8 * dimension)))
