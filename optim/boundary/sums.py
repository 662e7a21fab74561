"""How are contributions summed if one is not a number? It counts as zero, without a warning.

A run that stops at a NaN, or counts NaNs, reveals the record that has it. In the objectives of this
package such a record contributes zero. A user's own objective may return a sum that is not finite:
the sum is then computed again record by record, without contributions that are not finite or are
longer than the bound.

>>> from dpcal.optim import FromGradients
>>> class Careless(FromGradients):
...     def clipped_sum(self, w, rows, max_norm):
...         return np.array([[1.0], [np.nan], [2.0]])[rows].sum(axis=0)
>>> objective = Careless(lambda w, rows: None, n=3, dimension=1)
>>> gradient_sum(objective, np.zeros(1), np.arange(3), 2.0).tolist()
[3.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcal.optim.objectives.arrays import Rows, Vector, l2_norm
from dpcal.optim.objectives.base import Objective

__all__ = ["difference_sum", "gradient_sum", "loss_sum", "norm_of"]

# Largest relative excess of a contribution over its bound that rounding may cause; a contribution
# with a larger excess is dropped.
_ROUNDING = 1e-9


def gradient_sum(objective: Objective, w: Vector, rows: Rows, bound: float) -> Vector:
    """Return a new array, finite: see :class:`dpcal.optim.boundary.noise.Mechanism`."""
    like = np.zeros(objective.dimension)
    return _finite(lambda some: objective.clipped_sum(w, some, bound), like, rows, bound)


def difference_sum(objective: Objective, w: Vector, v: Vector, rows: Rows, bound: float) -> Vector:
    """Return a new array, finite: see :class:`dpcal.optim.boundary.noise.Mechanism`."""
    return _finite(lambda some: objective.clipped_difference_sum(w, v, some, bound), w, rows, bound)


def loss_sum(objective: Objective, w: Vector, rows: Rows, bound: float) -> Vector:
    """Return a new array, finite: see :class:`dpcal.optim.boundary.noise.Mechanism`."""
    return _finite(
        lambda some: np.array([objective.clipped_loss_sum(w, some, bound)]),
        np.zeros(1),
        rows,
        bound,
    )


def _finite(ask: Callable[[Rows], Vector], like: Vector, rows: Rows, bound: float) -> Vector:
    # A copy, because noise must not be added to an array of the objective's.
    total = np.array(ask(rows), dtype=np.float64)
    if total.shape != like.shape:
        raise ValueError(f"an objective's sum must have shape {like.shape}, got {total.shape}.")
    if np.isfinite(total).all():
        return total
    total = np.zeros_like(total)
    for row in rows:
        alone = np.array(ask(np.array([row], dtype=np.intp)), dtype=np.float64)
        if norm_of(alone) <= bound * (1 + _ROUNDING):
            total += alone
    return total


def norm_of(vector: Vector) -> float:
    """Return the L2 norm, also where squares of entries overflow; NaN or infinite if one is."""
    norm = l2_norm(vector)
    if math.isfinite(norm) or not np.isfinite(vector).all():
        return norm
    largest = float(np.abs(vector).max())
    return largest * l2_norm(vector / largest)
