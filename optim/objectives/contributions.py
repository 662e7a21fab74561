"""Clipping and adding of records' contributions, in one place for every objective.

An objective hands over its records' contributions, not clipped: a :class:`Table` of one vector a
record, :class:`Products` of two short vectors a layer, or a compiled :class:`Kernel`. These classes
clip each record and add, in doubles (``clipped``) or in whole numbers (``whole``). They take
arrays, and no functions of sums, so that no method of an objective moves a sum by more than the
bound on one record.

A query's bound C is 2^20 to 2^21 steps of a grid long; the step is a power of two
(:mod:`dpcal._ext.sums`). In whole numbers each record's clipped contribution is rounded onto the
grid, and whole numbers add up without rounding: one record moves the sum by at most C in L2 norm,
exactly. Floating-point sums do not have this bound (Casacuberta, Shoemate, Vadhan and Wagaman
2022).

A network's gradient for one record is an outer product of two short vectors for each layer, and so
is a linear model's Hessian. Their norm is a product of two norms, and sums of them are matrix
products (Goodfellow 2015). In whole numbers each vector is rounded towards zero to 20 and 21 bits
first. Then a matrix product of up to 2^12 records has partial sums of at most 2^53, which doubles
hold without rounding, in any order; blocks add up in whole numbers. So one record's contribution to
the sum is exactly the outer products of its whole numbers; their norm is checked to be at most a
bound. At the end the sum is rounded down to the grid, once. The rounding moves a coordinate by less
than a step more, so the bound is shorter by ``sqrt(d)`` steps.

>>> table = np.array([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]])
>>> Table(2, [table[:2], table[2:]]).clipped(1.0).round(9).tolist()
[0.9, 1.2]
>>> left, right = np.array([[3.0, 4.0], [np.nan, 1.0]]), np.array([[0.05], [1.0]])
>>> Products(2, [[(left.copy(), right.copy())]]).clipped(0.5).round(9).tolist()
[0.15, 0.2]
>>> (Products(2, [[(left, right)]]).whole(0.5) * grid_step(0.5)).round(4).tolist()
[0.15, 0.2]
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext import grid
from dpcal._ext.gradients import ClippedSum
from dpcal._ext.sums import grid_step, whole_sum
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    clipped_rows,
    row_norms,
    shrink_factors,
)
from dpcal.optim.objectives.domains import cells

T = TypeVar("T")
Integers = NDArray[np.int64]
Pair = tuple[Vector, Vector]

# Largest number of records of a matrix product, so that its partial sums are at most 2^53.
MOST = 4096
# Bits of a vector's entries, one more for left vectors: their products are exact in doubles.
_BITS = 20
# Bits by which products are finer than the grid's step, which is 2^-21 of the next power of two.
_FINER = 2 * _BITS - 21
# Relative gap between the clipping bound and the checked bound, larger than any rounding.
_ROOM = 2.0**-30
_UNIT = 2.0**-53
_OTHERS = "contributions must be of rows that are asked for, each once."


class Contributions(ABC):
    """Contributions of some records to a sum of ``size`` numbers; used once.

    Bounds are numbers > 0 on the L2 norm of a record's contribution, in [1e-250, 1e250] for whole
    sums, or infinite for no clipping. A contribution that is NaN or infinite counts as zero.
    """

    size: int
    # Largest number of records that may contribute: the rows that were requested.
    most: float = math.inf

    @abstractmethod
    def clipped(self, bound: float) -> Vector:
        """Return the sum of contributions, each clipped, shape (size,), finite."""

    @abstractmethod
    def whole(self, bound: float) -> Integers:
        """Return the sum in steps of the bound's grid, shape (size,), dtype int64."""

    def _counted(self, blocks: Iterable[Any], length: Callable[[Any], int]) -> Iterator[Any]:
        """Yield blocks; refuse more records than were requested."""
        left = self.most
        for block in blocks:
            left -= length(block)
            if left < 0:
                raise ValueError(_OTHERS)
            yield block


class Table(Contributions):
    """One vector a record.

    Parameters
    ----------
    size
        Number of entries of a vector.
    blocks
        Vectors, shapes (m, size).
    shares
        None to clip vectors as they are. Pairs of a number in (0, 1] and a number of entries clip
        these parts of a vector to their shares of the bound. The squares of the shares sum to at
        most 1. A vector that is not finite in one part contributes to none.
    """

    def __init__(
        self, size: int, blocks: Iterable[Vector], shares: tuple[tuple[float, int], ...] = ()
    ) -> None:
        self.size, self._blocks = size, blocks
        lengths = [length for _, length in shares]
        if not math.fsum(share**2 for share, _ in shares) <= 1 or min(lengths, default=1) < 1:
            raise ValueError(
                "shares must have squares that sum to at most 1, of one entry or more each, got "
                f"{shares}."
            )
        ends = np.cumsum([0, *lengths])
        self._parts = [(share, slice(*ends[i : i + 2])) for i, (share, _) in enumerate(shares)] or [
            (1.0, slice(None))
        ]

    def clipped(self, bound: float) -> Vector:
        """See :meth:`Contributions.clipped`."""
        total = np.zeros(self.size)
        for block in self._finite():
            for share, part in self._parts:
                total[part] += clipped_rows(block[:, part], bound * share)
        return total

    def whole(self, bound: float) -> Integers:
        """See :meth:`Contributions.whole`."""
        total, step = np.zeros(self.size, dtype=np.int64), grid_step(bound)
        for block in self._finite():
            for share, part in self._parts:
                # One step below the bound covers the rounding of a norm.
                most = math.floor(bound * share / step) - 1
                grid.add_rows(np.ascontiguousarray(block[:, part]), most * step, most, total[part])
        return total

    def _finite(self) -> Iterator[Vector]:
        """Yield blocks of doubles, without rows that are not finite where parts are clipped."""
        for block in self._counted(self._blocks, len):
            table = np.asarray(block, dtype=np.float64)
            if table.shape[1:] != (self.size,):
                raise ValueError(
                    f"contributions must have {self.size} numbers, got shape {table.shape}."
                )
            whole = len(self._parts) == 1
            yield table if whole else table[np.isfinite(table).all(axis=1)]


class Products(Contributions):
    """Outer products of two vectors, or of several pairs of vectors, for each record.

    Parameters
    ----------
    size
        Number of entries of the sum.
    blocks
        For each block of at most 2^12 records its pairs of vectors, shapes (m, a) and (m, b), which
        may be written to.
    order
        Place of each number of the result in the products, row by row, one after another; no place
        twice. None for all places in their order.
    """

    def __init__(
        self,
        size: int,
        blocks: Iterable[list[Pair]],
        order: NDArray[np.intp] | None = None,
    ) -> None:
        if order is not None and np.bincount(order).max() > 1:
            raise ValueError("order must not have a place twice: its number would count twice.")
        self.size, self._blocks, self._order = size, blocks, order

    def clipped(self, bound: float) -> Vector:
        """See :meth:`Contributions.clipped`."""
        total = np.zeros(self.size)
        for pairs in self._shrunk(bound):
            total += self._ordered([left.T @ right for left, right in pairs])
        return total

    def whole(self, bound: float) -> Integers:
        """See :meth:`Contributions.whole`."""
        exponent = math.frexp(bound)[1]
        shorter = bound - (math.sqrt(self.size) + 1) * grid_step(bound)
        most = math.ldexp(shorter, 2 * _BITS - exponent)
        high = low = np.zeros(self.size, dtype=np.int64)
        for pairs in self._shrunk(shorter * (1 - _ROOM)):
            sums = [
                (left.T @ right).astype(np.int64) for left, right in _whole(pairs, exponent, most)
            ]
            low = low + self._ordered(sums)
            high, low = high + (low >> _FINER), low & ((1 << _FINER) - 1)
        return high

    def _ordered(self, sums: list[NDArray[Any]]) -> NDArray[Any]:
        """Return the numbers of the sums of the products in the order of the result."""
        numbers = np.concatenate([each.ravel() for each in sums])
        if self._order is not None:
            numbers = numbers[self._order]
        if numbers.shape != (self.size,):
            raise ValueError(f"contributions must have {self.size} numbers, got {len(numbers)}.")
        return numbers

    def _shrunk(self, bound: float) -> Iterable[list[Pair]]:
        """Yield pairs with products clipped to the bound, up to rounding."""
        for given in self._counted(self._blocks, lambda pairs: len(pairs[0][0])):
            pairs = [
                (np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64))
                for left, right in given
            ]
            norms = self._norms(pairs)
            kept = np.isfinite(norms)
            for vectors in itertools.chain(*pairs):
                kept &= np.isfinite(vectors).all(axis=1)
            shrink = shrink_factors(norms, bound)[:, np.newaxis]
            for left, right in pairs:
                left *= shrink
                if not kept.all():
                    left[~kept], right[~kept] = 0.0, 0.0
            yield pairs

    def _norms(self, pairs: list[Pair]) -> Vector:
        """Return norms of records' products, rounded up by more than their rounding."""
        with np.errstate(all="ignore"):
            norms = [row_norms(left) * row_norms(right) for left, right in pairs]
            total = norms[0]
            for each in norms[1:]:
                total = np.hypot(total, each)
            return np.nextafter(total * (1 + 4.0 ** len(norms) * _UNIT), math.inf)


class Squares(Products):
    """Symmetric matrices ``c x x^T``, a number c and a vector x a record; upper triangles.

    ``blocks`` are of at most 2^12 records, shapes (m,) and (m, d). The Frobenius norm of such a
    matrix is its operator norm.
    """

    def __init__(self, dimension: int, blocks: Iterable[Pair]) -> None:
        rows, columns = np.triu_indices(dimension)
        pairs = (self._pair(*block) for block in blocks)
        super().__init__(len(rows), pairs, order=rows * dimension + columns)

    @staticmethod
    @np.errstate(over="ignore", invalid="ignore")
    def _pair(c: Vector, x: Vector) -> list[Pair]:
        return [(c[:, np.newaxis] * x, x)]


class Kernel(Contributions):
    """Gradients of ``rows`` at w, minus the gradients at v if given, in compiled code."""

    def __init__(self, kernel: ClippedSum, rows: Rows, w: Vector, v: Vector | None = None) -> None:
        self.kernel, self.rows, self.w, self.v = kernel, rows, w, v
        self.size = kernel.dimension

    def clipped(self, bound: float) -> Vector:
        """See :meth:`Contributions.clipped`."""
        return self.kernel(self.w, self.rows, v=self.v, max_norm=bound)

    def whole(self, bound: float) -> Integers:
        """See :meth:`Contributions.whole`."""
        return whole_sum(self.kernel, self.w, self.v, self.rows, max_norm=bound)


class Losses(Kernel):
    """Losses of ``rows`` at w, in compiled code: one number a record."""

    def __init__(self, kernel: ClippedSum, rows: Rows, w: Vector) -> None:
        super().__init__(kernel, rows, w)
        self.size = 1

    def clipped(self, bound: float) -> Vector:
        """See :meth:`Contributions.clipped`."""
        return np.array([self.kernel.losses(self.w, self.rows, max_loss=bound)])

    def whole(self, bound: float) -> Integers:
        """See :meth:`Contributions.whole`."""
        step = grid_step(bound)
        most = math.floor(bound / step) - 1
        return grid.clipped_loss_sum(
            self.kernel, self.w, self.rows, max_loss=most * step, bound=most
        )


class Matrices(Contributions):
    """One symmetric matrix a record, in blocks (m, d, d); the upper triangles are read and summed.

    The bound is on the Frobenius norm, which is no less than the norm of the triangle as a vector;
    or, if ``spectral``, on the operator norm, for sums in doubles.
    """

    spectral = False

    def __init__(self, dimension: int, blocks: Iterable[Vector]) -> None:
        self._upper, self._blocks = np.triu_indices(dimension), blocks
        self._room = 1 + 1e-12 * dimension
        self.size = dimension * (dimension + 1) // 2

    def clipped(self, bound: float) -> Vector:
        """See :meth:`Contributions.clipped`."""
        total = np.zeros(self.size)
        for block in self._shrunk(bound):
            total += block.sum(axis=0)
        return total

    def whole(self, bound: float) -> Integers:
        """See :meth:`Contributions.whole`."""
        return Table(self.size, self._shrunk(bound)).whole(bound)

    def _shrunk(self, bound: float) -> Iterable[Vector]:
        """Yield triangles of clipped matrices, shape (m, size)."""
        for block in self._counted(self._blocks, len):
            upper = np.triu(np.asarray(block, dtype=np.float64))
            H = upper + np.triu(upper, 1).swapaxes(1, 2)
            H = H[np.isfinite(H).all(axis=(1, 2))]
            # The margin of this factor is larger than the rounding of norms.
            norms = np.linalg.norm(H, 2 if self.spectral else None, axis=(1, 2)) * self._room
            rows, columns = self._upper
            yield H[:, rows, columns] * shrink_factors(norms, bound)[:, np.newaxis]


_TRUSTED: set[type] = set()


def trusted(made: type[T]) -> type[T]:
    """Let objectives of a class of this package, not of a subclass, hand over :class:`Asked`."""
    _TRUSTED.add(made)
    return made


class Asked(Contributions):
    """Sums that are computed elsewhere, with the same promise.

    They count if an objective of a :func:`trusted` class hands them over, and are refused
    otherwise.
    """

    _from_trusted = False

    def __init__(
        self,
        size: int,
        clipped: Callable[[float], Vector],
        whole: Callable[[float], Integers],
    ) -> None:
        self.size, self._clipped, self._whole = size, clipped, whole

    def clipped(self, bound: float) -> Vector:
        """See :meth:`Contributions.clipped`."""
        return self._clipped(bound)

    def whole(self, bound: float) -> Integers:
        """See :meth:`Contributions.whole`."""
        return self._whole(bound)


_OURS = frozenset({Table, Products, Squares, Kernel, Losses, Matrices, Asked})


def _checked(
    objective: Any, found: Contributions | ArrayLike, size: int, rows: Rows
) -> Contributions:
    """Return contributions, of ``size`` numbers each, that an objective hands over for ``rows``.

    An array of one vector a record becomes a :class:`Table`. A ValueError is raised if
    contributions have another size, name a record that was not requested, or name a record twice.
    """
    if isinstance(found, Asked) and type(objective) in _TRUSTED:
        found._from_trusted = True
    if isinstance(found, Asked) and not found._from_trusted:
        raise TypeError(
            "contributions must be vectors of single records, got sums that an objective of class "
            f"{type(objective).__name__} takes by itself."
        )
    if not isinstance(found, Contributions) or type(found) not in _OURS:
        return Table(size, [shaped("contributions", found, (len(rows), size))])
    if found.size != size:
        raise ValueError(f"contributions must have {size} numbers, got {found.size}.")
    found.most = len(rows)
    if isinstance(found, Kernel) and not np.array_equal(found.rows, rows):
        once = np.unique(found.rows)
        if len(once) != len(found.rows) or not np.isin(once, rows).all():
            raise ValueError(_OTHERS)
    return found


def gradients(objective: Any, rows: Rows, *at: Vector) -> Contributions:
    """Return the gradients of an objective's rows at w, minus the gradients at v if given."""
    return _checked(objective, objective.contributions(rows, *at), objective.dimension, rows)


def losses(objective: Any, rows: Rows, w: Vector) -> Contributions:
    """Return the losses of an objective's rows."""
    return _checked(objective, objective.loss_contributions(rows, w), 1, rows)


def hessians(objective: Any, rows: Rows, w: Vector, *, spectral: bool = False) -> Contributions:
    """Return the upper triangles of the Hessians of an objective's rows.

    A bound on operator norms, ``spectral``, is kept by matrices, and not by their triangles alone.
    """
    found = objective.hessian_contributions(rows, w)
    if isinstance(found, Matrices):
        found.spectral = spectral
    elif spectral and not isinstance(found, Squares):
        raise TypeError(
            f"hessian_contributions must return Matrices or Squares, got {type(found).__name__}."
        )
    return _checked(objective, found, objective.dimension * (objective.dimension + 1) // 2, rows)


def hessian_products(objective: Any, rows: Rows, w: Vector, v: Vector) -> Contributions:
    """Return the Hessians of an objective's rows, each times a vector v."""
    d = objective.dimension

    def table(block: Rows) -> Vector:
        products = objective.hessian_vector_rows(w, v, block)
        return shaped("hessian_vector_rows", products, (len(block), d))

    return _checked(objective, Table(d, map(table, objective.blocks(rows))), d, rows)


def shaped(name: str, values: Any, shape: tuple[int, ...]) -> Vector:
    """Return the result of the function ``name`` as an array, if it has this shape."""
    table = cells(name, values)
    if table.shape != shape:
        raise ValueError(
            f"{name} must return shape {shape} for {shape[0]} rows, got {table.shape}."
        )
    return table


def kernel_of(objective: Any) -> ClippedSum | None:
    """Return the objective's compiled kernel, if its contributions are nothing else.

    The contributions must be for exactly the parameters and rows that are passed.
    """
    rows, w = np.empty(0, dtype=np.intp), np.zeros(objective.dimension)
    found = objective.contributions(rows, w)
    whole = type(found) is Kernel and found.rows is rows and found.w is w and found.v is None
    return found.kernel if whole else None


def _whole(pairs: list[Pair], exponent: int, most: float) -> list[Pair]:
    """Return whole numbers in place of vectors, zeros for contributions longer than ``most``."""
    squares = np.zeros(len(pairs[0][0]))
    if len(squares) > MOST:
        raise ValueError(f"blocks must have at most {MOST} records, got {len(squares)}.")
    factors = [
        grid.whole_factors(left, right, squares, exponent=exponent, bits=_BITS)
        for left, right in pairs
    ]
    # Sums in doubles have a relative error of at most 2^-40, below this margin.
    too_long = squares > most * most * (1 - _ROOM)
    if too_long.any():
        for left, _ in factors:
            left[too_long] = 0.0
    return factors
