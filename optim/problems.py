"""A problem with saddle points whose constants, minima and Hessians are known: for examples.

>>> import numpy as np
>>> problem = Trigonometric.drawn(1_000, 3, seed=0)
>>> saddle = np.array([np.pi, 0.0, 0.0])
>>> bool(problem.hessian_vector(saddle, np.eye(3)[0])[0] < 0)
True
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext.trigonometric import TrigonometricClippedSum
from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.arrays import (
    Vector,
    clipped_rows,
    digest_of,
    parameters,
    prints_of_rows,
    shrink_factors,
)
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Asked, Contributions, Kernel, Losses, Table
from dpcal.optim.objectives.domains import blanked, records_of

__all__ = ["Trigonometric"]


class Trigonometric(Objective):
    """``sum_i (1 - cos(w_i + z_i))`` with records z: valleys between saddle points, in every plane.

    With z uniform on [-a, a]^d about offsets o, population risk is ``sum_i (1 - phi cos(w_i +
    o_i))`` with phi = sin(a) / a. At o = 0 its minima are the multiples of 2 pi, and (pi, 0, ...,
    0) is a saddle point whose gradient is zero and whose smallest eigenvalue is -phi. The records Z
    have the shape (n, d); one with a cell that is not a finite number is blank.
    """

    kernel: TrigonometricClippedSum

    def __init__(self, Z: ArrayLike) -> None:
        # Every sine of a blank record is not a number, and counts as zero.
        self._Z = blanked(*records_of(Z), math.nan)
        self.n, self.dimension = self._Z.shape
        self.penalized = self.dimension
        with np.errstate(all="ignore"):
            self.kernel = TrigonometricClippedSum(self._Z)

    @classmethod
    def drawn(
        cls,
        n: int,
        dimension: int,
        *,
        width: float = 1.0,
        offset: ArrayLike | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> Trigonometric:
        """Return the problem on n random records, uniform on a cube.

        ``width`` is a > 0, half the width of the cube, and ``offset`` its center, shape
        (dimension,); the origin when omitted. The seed is that of the records.
        """
        a = _validate.positive(width=width)
        shape = (_validate.count(n=n), _validate.count(dimension=dimension))
        center = np.zeros(shape[1]) if offset is None else parameters(offset, shape[1])
        return cls(np.random.default_rng(_validate.seed(seed=seed)).uniform(-a, a, shape) + center)

    @property
    def constants(self) -> Constants:
        """G = sqrt(d), M = rho = 1, and the gap 2 d, for any records."""
        return Constants(
            lipschitz=math.sqrt(self.dimension) * (1 + 1e-9),
            smoothness=1.0,
            gap=2.0 * self.dimension,
            hessian_lipschitz=1.0,
        )

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._Z)

    def fingerprints(self, key: bytes) -> list[bytes]:
        """See :meth:`Objective.fingerprints`."""
        return prints_of_rows(key, self._Z)

    def contributions(self, rows: NDArray[np.intp], *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`."""
        return Kernel(self.kernel, rows, *at)

    def loss_contributions(self, rows: NDArray[np.intp], w: Vector) -> Contributions:
        """See :meth:`Objective.loss_contributions`."""
        return Losses(self.kernel, rows, w)

    def hessian_vector_sum(self, w: Vector, v: Vector, rows: NDArray[np.intp]) -> Vector:
        """See :meth:`Objective.hessian_vector_sum`: Hessians are diagonal."""
        return np.asarray(np.nan_to_num(np.cos(self._Z[rows] + w), nan=0.0).sum(axis=0) * v)

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: NDArray[np.intp]) -> Vector:
        """See :meth:`Objective.hessian_vector_rows`."""
        return np.asarray(np.nan_to_num(np.cos(self._Z[rows] + w), nan=0.0) * v)

    def hessian_contributions(
        self, rows: NDArray[np.intp], w: Vector, *, spectral: bool = False
    ) -> Contributions:
        """See :meth:`Objective.hessian_contributions`: a diagonal's norms are a vector's."""
        d, table = self.dimension, np.nan_to_num(np.cos(self._Z[rows] + w), nan=0.0)
        places = np.flatnonzero(np.diag(np.ones(d))[np.triu_indices(d)])

        def clipped(bound: float) -> Vector:
            total = np.zeros(d * (d + 1) // 2)
            if spectral:
                largest = np.abs(table).max(axis=1, initial=0.0) * (1 + 1e-12)
                total[places] = shrink_factors(largest, bound) @ table
            else:
                total[places] = clipped_rows(table, bound)
            return total

        def whole(bound: float) -> NDArray[np.int64]:
            total = np.zeros(d * (d + 1) // 2, dtype=np.int64)
            total[places] = Table(d, [table]).whole(bound)
            return total

        return Asked(d * (d + 1) // 2, clipped, whole)
