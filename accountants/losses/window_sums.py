"""Sums over a window that slides along a table, and sums of turned terms, with few exponentials.

>>> sliding(np.arange(6.0), np.array([1.0, 10.0]), count=2, stride=1, spread=2)
array([20., 31.])
>>> turned_sums(np.ones(4, dtype=complex), np.array([0.0]), step=1.0)
array([4.+0.j])
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["SUMMED", "earlier", "sliding", "turned_sums"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Windows that end together where the table is 0 from there on, and terms of a window: libraries
# share more terms among threads, at more cost than gain.
_BLOCK, _COLUMNS = 512, 8192
# Terms whose phases are products with those of the first one, and most products at once.
SUMMED, _AT_ONCE = 16, 1 << 20


def sliding(table: Reals, weights: Reals, count: int, stride: int, spread: int) -> Reals:
    """Return sums over k of weights[k] table[stride i + spread k], for each i < count.

    Parameters
    ----------
    table, weights
        Numbers, of which the table has at least stride (count - 1) + spread (len(weights) - 1) + 1.
    count
        Number of sums.
    stride, spread
        Whole numbers, one of them 1: each remainder is a correlation by itself.
    """
    last_one, step = int(np.flatnonzero(table).max(initial=0)), stride * spread
    found = np.zeros(count)
    for start in range(0, count, _BLOCK * spread):
        each = min(_BLOCK * spread, count - start)
        # Beyond this column numbers are 0.
        columns = weights[: max(1, -((stride * start - last_one - 1) // spread))]
        pieces = product(
            range(min(spread, each)), range(stride), range(0, len(columns), _COLUMNS * stride)
        )
        for r, k, column in pieces:
            some = columns[column + k : column + _COLUMNS * stride : stride]
            if some.size:
                first = stride * start + r + k + column * spread
                end = first + step * (-((r - each) // spread) + some.size - 1)
                sums = np.correlate(table[first:end:step], some, "valid")
                found[start + r : start + each : spread] += sums
    return found


def turned_sums(terms: Complexes, u: Reals, step: float) -> Complexes:
    """Return the sums over k of terms[k] exp(-i u k step), at each u.

    Parameters
    ----------
    terms
        Complex numbers.
    u, step
        Real numbers.
    """
    count = math.ceil(len(terms) / SUMMED)
    padded = np.zeros(count * SUMMED, dtype=complex)
    padded[: len(terms)] = terms
    blocks = padded.reshape(count, SUMMED).T
    found = np.empty(len(u), dtype=complex)
    each = max(1, _AT_ONCE // count)
    for start in range(0, len(u), each):
        turns = -1j * step * u[start : start + each, None]
        within = np.exp(turns * np.arange(SUMMED)) @ blocks
        found[start : start + each] = (within * np.exp(turns * SUMMED * np.arange(count))).sum(1)
    return found


def earlier(values: Reals, k: int) -> Reals:
    """Return what stands k places before in each row, and 1 before the first one.

    Parameters
    ----------
    values
        Rows of numbers.
    k
        A whole number >= 0.
    """
    if k == 0:
        return values
    k = min(k, values.shape[1])
    return np.hstack([np.ones((len(values), k)), values[:, : values.shape[1] - k]])
