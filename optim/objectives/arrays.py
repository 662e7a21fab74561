"""Checks of arrays, and sums of rows that are clipped one by one.

>>> import numpy as np
>>> numbers("X", [[1, 2]]).dtype
dtype('float64')
>>> clipped_rows(np.array([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]]), 1.0).round(3).tolist()
[0.9, 1.2]
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext.answers import is_finite

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

# Rows of one call, so that copies stay small: 1 MB at 64 columns.
_BLOCK = 2048


class AllRows:
    """The numbers 0 to n - 1, as an array where one is needed."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def of(cls, n: int) -> Any:
        """Return the numbers 0 to n - 1, in place of an array."""
        return cls(n)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, some: Any) -> Any:
        return np.asarray(self)[some]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.arange(self.n, dtype=dtype or np.intp)


@np.errstate(all="ignore")
def row_norms(table: Vector) -> Vector:
    """Return each row's L2 norm, shape (n,), rounded up by enough to cover a clipped product too.

    Rows are scaled first, so that squares neither overflow nor vanish.
    """
    if len(table) > _BLOCK:
        parts = [row_norms(table[i : i + _BLOCK]) for i in range(0, len(table), _BLOCK)]
        return np.concatenate(parts)
    largest = np.abs(table).max(axis=1, initial=0.0)
    scaled = table / np.where(largest > 0, largest, 1.0)[:, np.newaxis]
    slack = 1 + (table.shape[1] + 8) * 2.0**-53
    norms = largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled)) * slack
    return np.where(largest > 0, np.nextafter(norms, math.inf), 0.0)


def clipped_rows(table: Vector, max_norm: float) -> Vector:
    """Return the sum of the rows of ``table``, each scaled down to norm at most ``max_norm``.

    A row with an entry that is NaN or infinite contributes zero: no bound on its norm could be
    enforced, and an error, or a count of such rows, would reveal its record.
    """
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        table = table[finite]
    return np.asarray(shrink_factors(row_norms(table), max_norm) @ table)


@np.errstate(all="ignore")
def shrink_factors(norms: Vector, max_norm: float | Vector) -> Vector:
    """Return factors that bring rows of these norms down to ``max_norm``, of all or of each, (m,).

    Below the normal range the rounding of a quotient exceeds the margin of :func:`row_norms`; there
    the factor is zero.
    """
    factors = np.divide(max_norm, norms, out=np.ones_like(norms), where=norms > max_norm)
    factors[factors < np.finfo(np.float64).tiny] = 0.0
    return factors


def digest_of(*arrays: NDArray[Any]) -> bytes:
    """Return 32 bytes that depend on every entry of the arrays, and on their shapes and types."""
    state = hashlib.blake2b(digest_size=32)
    for array in arrays:
        whole = np.ascontiguousarray(array)
        state.update(repr((whole.shape, whole.dtype.str)).encode())
        state.update(whole.data)
    return state.digest()


def prints_of_rows(key: bytes, *tables: NDArray[Any]) -> list[bytes]:
    """Return a keyed digest of each row, 16 bytes; rows of equal numbers have equal digests.

    The tables have as many rows each, shape (n,) or (n, k), which are digested together. The key,
    at most 64 bytes, is a secret: anyone who knows it can test guesses of a row.
    """
    columns = [np.asarray(table, dtype=np.float64).reshape(len(table), -1) for table in tables]
    # 0.0 and -0.0 are equal numbers with different bytes.
    whole = memoryview((np.concatenate(columns, axis=1) + 0.0).tobytes())
    width = 8 * sum(table.shape[1] for table in columns)
    return [
        hashlib.blake2b(whole[i : i + width], key=key, digest_size=16).digest()
        for i in range(0, len(whole), width)
    ]


def numbers_of(name: str, values: ArrayLike) -> Vector:
    """Return ``values`` as float64, finite or not, or raise a sentence that calls them ``name``."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        # The message of numpy shows the value that it could not read, which may be a record's.
        raise TypeError(
            f"{name} must be an array of real numbers, got values of other types."
        ) from None


def numbers(name: str, values: ArrayLike) -> Vector:
    """Return ``values`` as finite float64, or raise a sentence that calls them ``name``."""
    array = numbers_of(name, values)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinite entries.")
    return array


def records(X: ArrayLike, columns: int | None = None) -> Vector:
    """Return new records as a finite float64 table with rows and columns, this many if given."""
    table = two_dimensional(numbers("X", X))
    if columns is not None and table.shape[1] != columns:
        raise ValueError(f"X must have {columns} columns, got {table.shape[1]}.")
    return table


def two_dimensional(table: Vector) -> Vector:
    """Return a table if it has rows and columns."""
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"X must have shape (n, d) with n and d at least 1, got shape {table.shape}."
        )
    return table


def in_blocks(rows: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """Yield rows, at most ``size`` at a time."""
    return (rows[first : first + size] for first in range(0, len(rows), size))


def l2_norm(vector: Vector) -> float:
    """Return the L2 norm of a vector, to the bit as ``numpy.linalg.norm``, and without warnings.

    It is infinite or NaN where squares overflow, or an entry is not finite.
    """
    if is_finite(vector):
        return math.sqrt(vector.dot(vector))
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(vector))


def parameters(w: ArrayLike, dimension: int, name: str = "w") -> Vector:
    """Return a float64 copy of parameters of the right shape."""
    vector = np.array(w, dtype=np.float64)
    if vector.shape != (dimension,):
        raise ValueError(f"{name} must have shape ({dimension},), got {vector.shape}.")
    return vector


def norm_of(vector: Vector) -> float:
    """Return the L2 norm, also where squares overflow; NaN or infinite if an entry is."""
    norm = l2_norm(vector)
    if math.isfinite(norm) or not np.isfinite(vector).all():
        return norm
    largest = float(np.abs(vector).max())
    return largest * l2_norm(vector / largest)
