"""Sums of outer products in whole numbers, by matrix products that do not round.

A network's gradient for one record is an outer product of two short vectors for each layer, and so
is a linear model's Hessian. Sums of them are matrix products, far cheaper than one record after
another. Here each vector is rounded towards zero to whole numbers of 20 and 21 bits first. Then a
matrix product of up to 2^12 records has partial sums of at most 2^53, which doubles hold without
rounding, in any order; blocks add up in whole numbers.

One record's contribution to the sum is so the outer products of its whole numbers, exactly; their
norm is checked, and is at most a bound. At the end the sum is rounded down to the grid of
:mod:`dpcal._ext.sums`, once, which moves a coordinate by less than a step beyond that: the bound is
shorter by ``sqrt(d)`` steps.

>>> left, right = np.array([[3.0, 4.0], [np.nan, 1.0]]), np.array([[0.05], [1.0]])
>>> (whole_products([[(left, right)]], 2, 0.5) * grid_step(0.5)).round(4).tolist()
[0.15, 0.2]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.grid import whole_factors
from dpcal._ext.sums import grid_step
from dpcal.optim.objectives.arrays import Vector

__all__ = ["MOST", "longest", "whole_products"]

Integers = NDArray[np.int64]
Pair = tuple[Vector, Vector]

# Most records of a matrix product.
MOST = 4096
# Bits of a vector's entries; those of a left one have one more.
_BITS = 20
# Bits by which products are finer than the grid's step, which is 2^-21 of the next power of two.
_FINER = 2 * _BITS - 21
# Relative: what contributions are clipped to is below what is checked, by more than is rounded.
_ROOM = 2.0**-30


def longest(bound: float, size: int) -> float:
    """Return what records' contributions, of ``size`` numbers, are clipped to in doubles."""
    return (bound - (math.sqrt(size) + 1) * grid_step(bound)) * (1 - _ROOM)


def whole_products(
    blocks: Iterable[list[Pair]],
    size: int,
    bound: float,
    arranged: Callable[[list[Integers]], Integers] | None = None,
    *,
    intercepts: bool = False,
) -> Integers:
    """Return the sum of records' outer products in steps of the grid, shape (size,), dtype int64.

    Parameters
    ----------
    blocks
        For each block of at most 2^12 records its pairs of vectors, shapes (m, a) and (m, b), of
        which a record's contribution is the outer products, with a norm of at most
        ``longest(bound, size)`` together. A record with a number that is NaN or infinite, or whose
        contribution is longer, counts as zero.
    size
        How many numbers are summed and released.
    bound
        By which one record moves the sum, in L2 norm, at most; in [1e-250, 1e250].
    arranged
        Returns the numbers of the sums of the products, shapes (a, b), in the order of the
        released ones; when omitted, there is one product, row by row.
    intercepts
        Whether all right vectors have a further number, 1.
    """
    exponent = math.frexp(bound)[1]
    most = math.ldexp(bound - (math.sqrt(size) + 1) * grid_step(bound), 2 * _BITS - exponent)
    high = low = np.zeros(size, dtype=np.int64)
    for pairs in blocks:
        sums = [
            (left.T @ right).astype(np.int64)
            for left, right in _whole(pairs, exponent, most, intercepts)
        ]
        new = sums[0].ravel() if arranged is None else arranged(sums)
        # Both are whole, and the upper part takes what the lower one has no room for.
        low = low + new
        high, low = high + (low >> _FINER), low & ((1 << _FINER) - 1)
    return high


def _whole(pairs: list[Pair], exponent: int, most: float, one: bool) -> list[Pair]:
    """Return whole numbers in place of vectors, zeros for contributions longer than ``most``."""
    squares = np.zeros(len(pairs[0][0]))
    if len(squares) > MOST:
        raise ValueError(f"blocks must have at most {MOST} records, got {len(squares)}.")
    factors = [
        whole_factors(left, right, squares, exponent=exponent, bits=_BITS, one=one)
        for left, right in pairs
    ]
    # What is summed in doubles is right to a part in 2^40, with room for that.
    too_long = squares > most * most * (1 - _ROOM)
    if too_long.any():
        for left, _ in factors:
            left[too_long] = 0.0
    return factors
