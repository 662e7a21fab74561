"""Can a low-rank matrix be recovered from private measurements? Sensing, as a saddle problem.

``f(U, V, y) = mean of y_i (<A_i, U V^T> - b_i) - y_i^2 / 2``, with a dual number for each record:
the best response is the residual, and Phi is half the mean squared residual. Zero is a strict
saddle point of Phi.

>>> import numpy as np
>>> problem = MatrixSensing.generated(n=60, shape=(4, 3), rank=1, seed=0)
>>> x = np.random.default_rng(1).standard_normal(7) * 0.3
>>> bool(np.allclose(problem.best_response(x), problem.residuals(x)))
True
>>> tilted = problem.operator_mean()  # (1 / n) sum_i b_i A_i
>>> lowest = np.linalg.eigvalsh(problem.phi_hessian(np.zeros(7)))[0]
>>> bool(np.isclose(lowest, -np.linalg.norm(tilted, 2)))
True

A dual number that belongs to one record is hopeless in private: a release covers all n of them with
noise for the sake of a few. :attr:`MatrixSensing.value` is Phi itself, with each record's y_i put
in place locally, and nothing of it released.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.optim.minimax import Minimax
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    digest_of,
    numbers,
    parameters,
)
from dpcal.optim.objectives.base import Objective

__all__ = ["MatrixSensing", "SensingValue"]

RESCALES = ("none", "frobenius", "operator")


class _Sensing:
    """Measurements ``<A_i, X> + noise = b_i`` and what is computed from them."""

    def __init__(self, A: ArrayLike, b: ArrayLike, rank: int) -> None:
        table, values = numbers("A", A), numbers("b", b)
        if table.ndim != 3 or values.shape != (len(table),) or not len(table):
            raise ValueError(
                f"A must have shape (n, p, q) and b shape (n,), got {table.shape} and "
                f"{values.shape}."
            )
        self.A, self.b = np.array(table), np.array(values)
        self.p, self.q = table.shape[1:]
        self.rank = _validate.count(rank=rank)
        self.size = (self.p + self.q) * self.rank

    def factors(self, x: Vector) -> tuple[Vector, Vector]:
        """Return U, shape (p, rank), and V, shape (q, rank)."""
        cut = self.p * self.rank
        return x[:cut].reshape(self.p, self.rank), x[cut:].reshape(self.q, self.rank)

    def measured(self, x: Vector, rows: Rows) -> tuple[Vector, Vector]:
        """Return residuals, shape (m,), and their gradients in x, shape (m, size)."""
        U, V = self.factors(x)
        A = self.A[rows]
        AV = A @ V
        AU = np.swapaxes(A, 1, 2) @ U
        residuals = np.einsum("ipr,pr->i", AV, U) - self.b[rows]
        gradients = np.concatenate([AV.reshape(len(rows), -1), AU.reshape(len(rows), -1)], axis=1)
        return residuals, gradients

    def value_hessian(self, x: Vector) -> Vector:
        """Return the Hessian of half the mean squared residual, shape (size, size)."""
        everyone = np.arange(len(self.b), dtype=np.intp)
        residuals, J = self.measured(x, everyone)
        H = J.T @ J / len(self.b)
        G = np.tensordot(residuals, self.A, axes=1) / len(self.b)
        # The derivative of residual i in U[j, l] and V[k, l] is A_i[j, k], for each l.
        cross = np.kron(G, np.eye(self.rank))
        cut = self.p * self.rank
        H[:cut, cut:] += cross
        H[cut:, :cut] += cross.T
        return np.asarray(H)


class SensingValue(Objective):
    """Phi of matrix sensing: half the mean squared residual, a plain minimisation over (U, V).

    Parameters
    ----------
    sensing
        The measurements.
    """

    def __init__(self, sensing: _Sensing) -> None:
        self._sensing = sensing
        self.n, self.dimension = len(sensing.b), sensing.size
        self.penalized = self.dimension

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._sensing.A, self._sensing.b)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`."""
        residuals, gradients = self._sensing.measured(w, rows)
        return np.asarray(residuals[:, np.newaxis] * gradients)

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`."""
        return np.asarray(self._sensing.measured(w, rows)[0] ** 2 / 2)

    def hessian(self, w: ArrayLike) -> Vector:
        """Return the Hessian of Phi, exactly. Not private."""
        return self._sensing.value_hessian(parameters(w, self.dimension))


class MatrixSensing(Minimax):
    """Recovery of U V^T from measurements, with a dual number for each record.

    Parameters
    ----------
    A
        Measurement matrices, shape (n, p, q), finite.
    b
        Measurements, shape (n,), finite.
    rank
        Columns of U and V, at least 1.
    block_shares
        See :class:`dpcal.optim.minimax.MinimaxObjective`.

    Notes
    -----
    A record is (A_i, b_i), and its dual number is coordinate i of y: to add a record would add a
    coordinate, so that only relations under which records are replaced make sense. Noise covers
    every coordinate of y, for it would tell who was sampled if it did not.
    """

    def __init__(
        self,
        A: ArrayLike,
        b: ArrayLike,
        *,
        rank: int,
        block_shares: tuple[float, float] | None = None,
    ) -> None:
        self._sensing = _Sensing(A, b, rank)
        n = len(self._sensing.b)
        dimensions = (self._sensing.size, n)
        super().__init__(
            self._pairs, n=n, dimensions=dimensions, loss=self._losses, block_shares=block_shares
        )

    @classmethod
    def generated(
        cls,
        *,
        n: int,
        shape: tuple[int, int],
        rank: int,
        noise: float = 0.01,
        rescale: str = "none",
        norm: float = 1.0,
        seed: int | None = None,
    ) -> MatrixSensing:
        """Return a random instance: ``b_i = <A_i, X> + noise``, X a product of Gaussian factors.

        Parameters
        ----------
        n, shape, rank
            Number of measurements; shape (p, q) and rank of X.
        noise
            Standard deviation >= 0 of a measurement's noise.
        rescale, norm
            ``"none"``, or the norm of X (``"frobenius"`` or ``"operator"``) that is scaled to
            ``norm``.
        seed
            An integer >= 0, or None for fresh entropy.
        """
        rng = np.random.default_rng(seed)
        p, q = shape
        factors = rng.standard_normal((p, rank)), rng.standard_normal((q, rank))
        X = factors[0] @ factors[1].T
        if _validate.choice(RESCALES, rescale=rescale) != "none":
            kind = "fro" if rescale == "frobenius" else 2
            X *= _validate.positive(norm=norm) / float(np.linalg.norm(X, kind))  # type: ignore[arg-type]
        A = rng.standard_normal((_validate.count(n=n), p, q)) / np.sqrt(p * q)
        b = np.tensordot(A, X, axes=2) + _validate.non_negative(noise=noise) * rng.standard_normal(
            n
        )
        return cls(A, b, rank=rank)

    @property
    def value(self) -> SensingValue:
        """Phi as an objective of its own, with no dual variable."""
        return SensingValue(self._sensing)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._sensing.A, self._sensing.b)

    def _pairs(self, x: Vector, y: Vector, rows: Rows) -> tuple[Vector, Vector]:
        residuals, gradients = self._sensing.measured(x, rows)
        dual = np.zeros((len(rows), self.n))
        dual[np.arange(len(rows)), rows] = residuals - y[rows]
        return y[rows, np.newaxis] * gradients, dual

    def _losses(self, x: Vector, y: Vector, rows: Rows) -> Vector:
        residuals, _ = self._sensing.measured(x, rows)
        return np.asarray(y[rows] * residuals - y[rows] ** 2 / 2)

    def residuals(self, x: ArrayLike) -> Vector:
        """Return ``<A_i, U V^T> - b_i`` of every record, shape (n,). Not private."""
        everyone = np.arange(self.n, dtype=np.intp)
        return self._sensing.measured(parameters(x, self.dimensions[0]), everyone)[0]

    def operator_mean(self) -> Vector:
        """Return ``(1 / n) sum_i b_i A_i``, shape (p, q). Not private."""
        return np.asarray(np.tensordot(self._sensing.b, self._sensing.A, axes=1) / self.n)

    def best_response(self, x: ArrayLike, *, start: ArrayLike | None = None) -> Vector:
        """Return the residuals, shape (n,). Not private."""
        return self.residuals(x)

    def phi_hessian(self, x: ArrayLike) -> Vector:
        """Return the Hessian of Phi, exactly. Not private."""
        return self._sensing.value_hessian(parameters(x, self.dimensions[0]))
