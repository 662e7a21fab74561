"""Dense strategies: any lower-triangular C, and the C of least mean error.

>>> import numpy as np
>>> Dense([[1.0, 0.0], [0.5, 1.0]]).steps
2
>>> best = Dense.optimised(32)
>>> from dpcal.accountants.matrix import Single, SquareRoot
>>> single = Single()
>>> best.mean_error(participation=single) < SquareRoot(32).mean_error(participation=single)
True
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from dpcal._internal import validate
from dpcal.accountants.matrix import optimise, sensitivity as sensitivities
from dpcal.accountants.matrix.base import Strategy, read_only, refuse_explosion
from dpcal.accountants.matrix.participation import Participation
from dpcal.accountants.matrix.recurrences import Recurrence, Rows
from dpcal.accountants.matrix.sensitivity import Sensitivity
from dpcal.accountants.matrix.workloads import PREFIX_SUMS, Workload

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Dense(Strategy):
    """Any lower-triangular matrix with no zero on its diagonal.

    Parameters
    ----------
    C
        Shape (T, T), finite, zero above the diagonal, not 0 on it. Noise needs the memory of all
        steps.

    Raises
    ------
    ValueError
        If C is not such a matrix, or if C^-1 z explodes.
    """

    kind: ClassVar[str] = "dense"
    steps: int

    def __init__(self, C: ArrayLike) -> None:
        try:
            matrix = read_only(C)
        except (TypeError, ValueError) as error:
            raise TypeError("C must be a square matrix of numbers.") from error
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise ValueError(f"C must be a square matrix, got shape {matrix.shape}.")
        if not np.isfinite(matrix).all():
            raise ValueError("C must be finite, got infinities or NaN.")
        if np.triu(matrix, 1).any():
            raise ValueError("C must be lower triangular, got an entry other than 0 above it.")
        if not matrix.diagonal().all():
            place = int(np.flatnonzero(matrix.diagonal() == 0)[0])
            raise ValueError(f"C must not be singular, got 0 on the diagonal at row {place}.")
        object.__setattr__(self, "steps", len(matrix))
        object.__setattr__(self, "_matrix", matrix)
        norms = [float(np.abs(each).sum(axis=1).max()) for each in (matrix, self._inverse)]
        refuse_explosion("C", norms[0] * norms[1], self.steps)

    @staticmethod
    def optimised(
        steps: int,
        *,
        participation: Participation | None = None,
        workload: Workload = PREFIX_SUMS,
        equal_norms: bool = False,
    ) -> Dense:
        """Return the strategy of least mean error under a participation schema.

        For records that take part once, X = C^T C with unit diagonal is the fixed point of Denisov
        et al. 2022 (Theorem 3.2), to a relative change of 1e-12. Otherwise columns that one record
        meets are orthogonal, and X is found by descent to a relative change of 1e-12
        (Choquette-Choo, McMahan, Rush and Thakurta 2023). Takes O(steps^3) an iteration: 256 steps
        take about 5 s.

        Parameters
        ----------
        steps
            Number of steps, >= 1.
        participation
            At most once when omitted.
        workload
            The workload.
        equal_norms
            Whether all columns of C must have one norm, so that every step has the same epsilon and
            amplification. Otherwise later epochs may have smaller norms, except under
            ``LeastSeparation``: its patterns overlap, so norms are always equal.

        >>> from dpcal.accountants.matrix import FixedEpochs, SquareRoot
        >>> schema = FixedEpochs(4, 8)
        >>> error = Dense.optimised(32, participation=schema).mean_error(participation=schema)
        >>> equal = Dense.optimised(32, participation=schema, equal_norms=True)
        >>> bool(error < equal.mean_error(participation=schema) < SquareRoot(32).mean_error(
        ...     participation=schema))
        True
        """
        if not isinstance(equal_norms, bool):
            raise TypeError(f"equal_norms must be True or False, got {equal_norms!r}.")
        count = validate.count(steps=steps)
        return Dense(optimise.dense(count, participation, workload, equal_norms))

    @cached_property
    def bands(self) -> int | None:
        """Number of diagonals of C that are not all zero; None for all."""
        matrix, steps = self.matrix(), self.steps
        used = [lag for lag in range(steps) if matrix.diagonal(-lag).any()]
        return None if used[-1] + 1 == steps > 1 else used[-1] + 1

    @cached_property
    def nonnegative(self) -> bool:
        """Whether every entry of C is >= 0."""
        return bool(self.matrix().min() >= 0)

    def matrix(self) -> Array:
        """Return C, shape (T, T), read-only."""
        matrix: Array = vars(self)["_matrix"]
        return matrix

    @cached_property
    def _inverse(self) -> Array:
        identity = np.eye(self.steps)
        with np.errstate(over="ignore", invalid="ignore"):
            found = solve_triangular(self.matrix(), identity, lower=True, check_finite=False)
        return read_only(np.tril(found))

    def inverse(self) -> Array:
        """Return C^-1, shape (T, T), read-only."""
        return self._inverse

    def recurrence(self, dimension: int) -> Recurrence:
        """Return the recurrence that keeps all rows."""
        inverse = self._inverse
        return Rows(dimension, self.steps, lambda step: inverse[step, : step + 1])

    def sensitivity(self, participation: Participation) -> Sensitivity:
        """Return the largest norm of one record's part of C G; see the base class."""
        return sensitivities.of_matrix(self.matrix(), participation)

    def to_dict(self) -> dict[str, Any]:
        """Return the strategy as JSON values."""
        return {"strategy": self.kind, "C": self.matrix().tolist()}

    def __repr__(self) -> str:
        return f"Dense(<{self.steps} x {self.steps} matrix>)"
