"""Is this input what it should be? Checks of arrays, and sums of rows that are clipped one by one.

>>> import numpy as np
>>> numbers("X", [[1, 2]]).dtype
dtype('float64')
>>> clipped_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(3).tolist()
[0.9, 1.2]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal.errors import NonFiniteAnswer

__all__ = [
    "Rows",
    "Vector",
    "classes",
    "clipped_rows",
    "numbers",
    "parameters",
    "records",
    "row_norms",
]

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]


def classes(y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return labels as an array, and the distinct ones in sort order."""
    labels = np.asarray(y)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y must be finite, got NaN or infinite labels.")
    try:
        return labels, np.unique(labels)
    except TypeError as error:
        raise TypeError(f"y must hold labels that can be sorted: {error}.") from error


def row_norms(table: Vector) -> Vector:
    """Return each row's L2 norm, shape (n,), rounded up by enough to cover a clipped product too.

    Rows are scaled first, so that squares neither overflow nor vanish.
    """
    largest = np.abs(table).max(axis=1, initial=0.0)
    scaled = table / np.where(largest > 0, largest, 1.0)[:, np.newaxis]
    slack = 1 + (table.shape[1] + 8) * 2.0**-53
    with np.errstate(over="ignore"):
        norms = largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled)) * slack
    return np.where(largest > 0, np.nextafter(norms, math.inf), 0.0)


def clipped_rows(table: Vector, max_norm: float) -> Vector:
    """Return the sum of the rows of ``table``, each scaled down to norm at most ``max_norm``.

    Raises
    ------
    NonFiniteAnswer
        If an entry is NaN or infinite.
    """
    if not np.isfinite(table).all():
        raise NonFiniteAnswer(
            "A record's gradient holds NaN or infinite numbers, so no bound on its norm can be "
            "enforced. Make gradients finite for every record; that one is not is itself a fact "
            "about the records, outside the privacy claim."
        )
    norms = row_norms(table)
    factors = np.divide(max_norm, norms, out=np.ones_like(norms), where=norms > max_norm)
    return np.asarray(factors @ table)


def numbers(name: str, values: ArrayLike) -> Vector:
    """Return ``values`` as finite float64, or raise a sentence that calls them ``name``."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of real numbers: {error}.") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinite entries.")
    return array


def records(X: ArrayLike) -> Vector:
    """Return records as a finite float64 table with at least one row and one column."""
    table = numbers("X", X)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"X must have shape (n, d) with n and d at least 1, got shape {table.shape}."
        )
    return table


def parameters(w: ArrayLike, dimension: int) -> Vector:
    """Return a float64 copy of parameters of the right shape."""
    vector = np.array(w, dtype=np.float64)
    if vector.shape != (dimension,):
        raise ValueError(f"w must have shape ({dimension},), got {vector.shape}.")
    return vector
