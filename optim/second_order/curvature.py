"""The smallest eigenvalue of a Hessian, and its direction, to test for a minimum. Not private.

>>> import numpy as np
>>> from dpcal.optim import FromGradients
>>> Z = np.random.default_rng(0).uniform(-1, 1, (1_000, 3))
>>> objective = FromGradients(  # sum_j (1 - cos(w_j + z_j)), with saddle points
...     lambda w, rows: np.sin(w + Z[rows]), n=1_000, dimension=3,
...     hessian_vectors=lambda w, v, rows: np.cos(w + Z[rows]) * v)
>>> at_the_saddle = curvature(objective, [np.pi, 0.0, 0.0])
>>> print(f"{at_the_saddle:.2f}", abs(at_the_saddle.direction).round(3).tolist())
-0.83 [1.0, 0.0, 0.0]
>>> at_the_saddle.error < 1e-9
True
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.errors import BrokenObjective
from dpcal.optim.objectives.arrays import Vector, numbers, parameters
from dpcal.optim.objectives.base import Objective

# Largest number of parameters with a whole Hessian, 128 kB, where convergence is certain.
_DENSE = 128

# Largest asymmetry of a Hessian, relative to its size; rounding makes about 1e-15.
_ASYMMETRY = 1e-8


class Curvature(float):
    """A smallest eigenvalue, with its direction: behaves as a float. Not private.

    Its ``direction`` is a unit eigenvector, shape (dimension,). The Hessian has an eigenvalue
    within ``error`` of the value; up to 128 parameters it is the smallest one.
    """

    direction: Vector
    error: float

    def __new__(cls, value: float, direction: Vector, error: float) -> Curvature:
        """Return the value with its direction and its error."""
        made = super().__new__(cls, value)
        made.direction, made.error = direction, error
        return made

    def __repr__(self) -> str:
        return f"Curvature({float(self)!r}, error={self.error:.3g}; not private)"


def curvature(objective: Objective, w: ArrayLike, *, tolerance: float = 1e-6) -> Curvature:
    """Return the smallest eigenvalue of the Hessian of an objective's loss. Not private.

    An objective without Hessians raises a TypeError; a Hessian that is not symmetric raises
    BrokenObjective.

    Parameters
    ----------
    objective
        Gives products of its Hessian with vectors; its regulariser is included.
    w
        Parameters, shape (dimension,), finite.
    tolerance
        Relative error > 0 at which Lanczos's iteration stops, for more than 128 parameters.
    """
    d = validate.instance(Objective, objective=objective).dimension
    w, tolerance = parameters(numbers("w", w), d), validate.positive(tolerance=tolerance)
    start = np.random.default_rng(0).standard_normal((d, 2))
    V = np.eye(d) if d <= _DENSE else start
    H = np.column_stack([objective.hessian_vector(w, v) for v in V.T])
    size = float(np.linalg.norm(H)) if d <= _DENSE else math.prod(np.linalg.norm(H, axis=0))
    if not np.linalg.norm(V.T @ H - H.T @ V) <= _ASYMMETRY * max(size, 1e-300):
        raise BrokenObjective("a Hessian must be symmetric, got one that is not.")
    if d <= _DENSE:
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        return Curvature(values[0], vectors[:, 0], size * d * 2.0**-50)
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((d, d), matvec=lambda v: objective.hessian_vector(w, v), dtype=float)
    values, vectors = eigsh(operator, k=1, which="SA", v0=start[:, 0], tol=tolerance)
    direction = vectors[:, 0]
    residual = operator @ direction - values[0] * direction
    return Curvature(values[0], direction, math.nextafter(np.linalg.norm(residual), math.inf))
