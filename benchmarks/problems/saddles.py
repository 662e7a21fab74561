"""Problems with known saddle points, minima and constants, for studies and for tests.

>>> waves = Trigonometric.drawn(1_000, 3, seed=0)
>>> bool(waves.hessian_vector(np.array([np.pi, 0.0, 0.0]), np.eye(3)[0])[0] < 0)
True
>>> toy = ToySaddle(n=500, seed=0)
>>> np.linalg.eigvalsh(toy.phi_hessian(np.zeros(2))).round(6).tolist()
[-1.0, 1.0]
>>> np.linalg.eigvalsh(toy.phi_hessian(np.array([0.0, 1.0]))).round(6).tolist()
[1.0, 2.0]
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpcal.calibrate.constants import Constants
from dpcal.optim import FromGradients
from dpcal.optim.minimax import Minimax
from dpcal.optim.objectives.arrays import Rows, Vector, digest_of, parameters


class Trigonometric(FromGradients):
    """``sum_i (1 - cos(w_i + z_i))`` with records z: valleys between saddle points, in every plane.

    With z uniform on [-a, a]^d about offsets o, population risk is ``sum_i (1 - phi cos(w_i +
    o_i))`` with phi = sin(a) / a. At o = 0 its minima are the multiples of 2 pi, and (pi, 0, ...,
    0) is a saddle point: its gradient is zero and its smallest eigenvalue is -phi. The records Z
    have shape (n, d).
    """

    checked = True

    def __init__(self, Z: ArrayLike) -> None:
        self.Z = Z = np.asarray(Z, dtype=np.float64)
        n, d = Z.shape
        super().__init__(
            lambda w, rows: np.sin(Z[rows] + w),
            n=n,
            dimension=d,
            loss=lambda w, rows: (1 - np.cos(Z[rows] + w)).sum(axis=1),
            hessian_vectors=lambda w, v, rows: np.cos(Z[rows] + w) * v,
            constants=Constants(
                lipschitz=math.sqrt(d) * (1 + 1e-9),
                smoothness=1.0,
                gap=2.0 * d,
                hessian_lipschitz=1.0,
            ),
        )

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self.Z)

    @classmethod
    def drawn(cls, n: int, d: int, *, offset: ArrayLike = 0.0, seed: int) -> Trigonometric:
        """Return the problem on n records, uniform on a cube of half width 1 about an offset."""
        return cls(np.random.default_rng(seed).uniform(-1, 1, (n, d)) + offset)


class ToySaddle(Minimax):
    """A strict saddle between two minima, in two primal and two dual parameters.

    One record's F is ``Phi(x) - ||x - y||^2 / 2 + <xi, x> + <zeta, y> + s/2 ||x||^2 + t <x, y>``
    with ``Phi(x) = x1^2 / 2 - x2^2 / 2 + x2^4 / 4``, xi and zeta uniform in [-1/2, 1/2]^2, s and t
    in [-1/5, 1/5], each centred over the n >= 2 records. So Phi is the value function, with a
    saddle at the origin and minima at (0, +-1).
    """

    checked = True
    constants = Constants(
        lipschitz=2.5, smoothness=4.0, gap=0.5, strong_concavity=1.0, hessian_lipschitz=6.0
    )
    """Of F within the unit ball, roughly."""

    def __init__(
        self, *, n: int, seed: int, block_shares: tuple[float, float] | None = None
    ) -> None:
        rng = np.random.default_rng(seed)
        table = np.hstack([rng.uniform(-0.5, 0.5, (n, 4)), rng.uniform(-0.2, 0.2, (n, 2))])
        table -= table.mean(axis=0)
        self._records = table
        tilts, s, t = table[:, :4], table[:, 4:5], table[:, 5:]

        def gradients(x: Vector, y: Vector, rows: Rows) -> tuple[Vector, Vector]:
            slope = np.array([x[0], x[1] ** 3 - x[1]]) - x + y + s[rows] * x + t[rows] * y
            return slope + tilts[rows, :2], x - y + t[rows] * x + tilts[rows, 2:]

        def losses(x: Vector, y: Vector, rows: Rows) -> Vector:
            value = (x[0] ** 2 - x[1] ** 2 + x[1] ** 4 / 2 - (x - y) @ (x - y)) / 2
            bends = table[rows, 4] * (x @ x) / 2 + table[rows, 5] * (x @ y)
            return np.asarray(value + bends + tilts[rows] @ np.concatenate([x, y]))

        super().__init__(
            gradients,
            n=n,
            dimensions=(2, 2),
            loss=losses,
            block_shares=block_shares,
            constants=self.constants,
        )

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._records)

    def best_response(self, x: ArrayLike, *, start: ArrayLike | None = None) -> Vector:
        """Return x itself, shape (2,). Not private."""
        return parameters(x, 2)

    def hessian(self, w: ArrayLike) -> Vector:
        """Return the Hessian of f, shape (4, 4). Not private."""
        x, eye = self.split(parameters(w, 4))[0], np.eye(2)
        return np.block([[np.diag([0.0, 3 * x[1] ** 2 - 2]), eye], [eye, -eye]])
