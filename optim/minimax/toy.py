"""A minimax problem with a saddle point whose value function is known: for examples and tests.

With b = mu = 1 the best response to x is x itself, and

    Phi(x) = x1^2 / 2 - x2^2 / 2 + x2^4 / 4

has a strict saddle at the origin (smallest eigenvalue -1) and minima at (0, +-1) (eigenvalue 1).
Records tilt and bend the function; over all of them the tilts cancel, so that this holds exactly.

>>> import numpy as np
>>> problem = ToySaddle(n=500, seed=0)
>>> problem.best_response(np.array([0.5, -0.2])).round(9).tolist()
[0.5, -0.2]
>>> np.linalg.eigvalsh(problem.phi_hessian(np.zeros(2))).round(6).tolist()
[-1.0, 1.0]
>>> np.linalg.eigvalsh(problem.phi_hessian(np.array([0.0, 1.0]))).round(6).tolist()
[1.0, 2.0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.pairs import SaddlePairs
from dpcal.calibrate.constants import Constants
from dpcal.optim.minimax.base import MinimaxObjective
from dpcal.optim.objectives.arrays import Rows, Vector, digest_of, numbers, parameters

__all__ = ["ToySaddle"]


class ToySaddle(MinimaxObjective):
    """A strict saddle between two minima, in two primal and two dual parameters.

    One record's F is ``x1^2/2 - x2^2/2 + x2^4/4 - ||x||^2/2 + <x, y> - ||y||^2/2 + <xi, x> +
    <zeta, y> + s/2 ||x||^2 + t <x, y>``, with xi and zeta uniform in [-1/2, 1/2]^2, s and t in
    [-1/5, 1/5], each centred over the records.

    There are n >= 2 records; their seed is an integer >= 0, or None for fresh entropy. For
    ``block_shares`` see :class:`dpcal.optim.minimax.MinimaxObjective`.
    """

    constants = Constants(
        lipschitz=2.5,
        smoothness=4.0,
        gap=0.5,
        strong_concavity=1.0,
        hessian_lipschitz=6.0,
    )
    """Of F within the unit ball, roughly; public: they do not depend on the records."""

    def __init__(
        self,
        *,
        n: int,
        seed: int | None = None,
        block_shares: tuple[float, float] | None = None,
    ) -> None:
        if _validate.count(n=n) < 2:
            raise ValueError(f"n must be at least 2, for records are centred, got {n}.")
        super().__init__(n=n, dimensions=(2, 2), block_shares=block_shares)
        rng = np.random.default_rng(_validate.seed(seed=seed))
        tilts, bends = rng.uniform(-0.5, 0.5, (n, 4)), rng.uniform(-0.2, 0.2, (n, 2))
        records = np.concatenate([tilts, bends], axis=1)
        self._records = records - records.mean(axis=0)
        self.pairs = SaddlePairs(self._records, self.block_shares)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._records)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`."""
        x, y = self.split(w)
        table = self._records[rows]
        s, t = table[:, 4:5], table[:, 5:6]
        shared = np.concatenate([_slope(x) - x + y, x - y])
        own = np.concatenate([s * x + t * y, t * x], axis=1)
        return np.asarray(shared + table[:, :4] + own)

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`."""
        x, y = self.split(w)
        table = self._records[rows]
        shared = _potential(x) - 0.5 * float(x @ x) + float(x @ y) - 0.5 * float(y @ y)
        bends = 0.5 * table[:, 4] * float(x @ x) + table[:, 5] * float(x @ y)
        return np.asarray(shared + table[:, :4] @ w + bends)

    def best_response(self, x: ArrayLike, *, start: ArrayLike | None = None) -> Vector:
        """Return x itself, shape (2,). Not private."""
        return parameters(numbers("x", x), 2)

    def hessian(self, w: ArrayLike) -> Vector:
        """Return the Hessian of f, shape (4, 4)."""
        x = self.split(parameters(w, 4))[0]
        eye = np.eye(2)
        return np.block([[np.diag([0.0, 3 * x[1] ** 2 - 2]), eye], [eye, -eye]])


def _potential(x: Vector) -> float:
    """Return Phi(x)."""
    return float(x[0] ** 2 / 2 - x[1] ** 2 / 2 + x[1] ** 4 / 4)


def _slope(x: Vector) -> Vector:
    """Return the gradient of Phi."""
    return np.array([x[0], x[1] ** 3 - x[1]])
