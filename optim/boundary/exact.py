"""Exact sums: clipped contributions in whole numbers, with discrete Gaussian noise.

A query's bound C is 2^20 to 2^21 steps of a grid long; the step is a power of two. Each record's
clipped contribution is rounded onto the grid, and whole numbers add up without rounding: one record
moves the sum by at most C in L2 norm, exactly (:mod:`dpcal._ext.sums`). Floating-point sums do not
have this bound (Casacuberta, Shoemate, Vadhan and Wagaman 2022). The noise is
:meth:`dpcal.optim.boundary.discrete.DiscreteNormals.covering`, which reveals no more than the
Gaussian that the plan prices. A whole number of steps is released; multiplying it by the step, in
floating point, is post-processing.

>>> from dpcal.optim import FromGradients
>>> table = np.array([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]])
>>> objective = FromGradients(lambda w, rows: table[rows], n=3, dimension=2)
>>> total = DiscreteMechanism.gradient_sum(objective, np.zeros(2), np.array([0, 1]), 1.0)
>>> DiscreteMechanism.values(total, 1.0).round(4).tolist()
[0.9, 1.2]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _annexes
from dpcal._ext import grid
from dpcal._ext.discrete import LEAST
from dpcal._ext.sums import MOST_RECORDS, WholeSums, grid_step, whole_norm, whole_sum
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.query import CHOICES
from dpcal.errors import NonFiniteAnswer, UnsupportedEvent
from dpcal.optim.boundary.discrete import DiscreteNormals, wide_table
from dpcal.optim.boundary.noise import COMPILED, own_kernel, own_sums
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.objectives.base import Objective

if TYPE_CHECKING:
    from dpcal.optim.boundary.noise import Steps

__all__ = ["DiscreteMechanism", "check_distance", "of_rows", "one_by_one"]

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]
Integers = NDArray[np.int64]

# A plan's delta is at least so many times the distance of a run's noise from its law, which would
# have to be added to it: a millionth of it is left out of account.
_MARGIN = 2.0**20

# What gives losses of many records at once, so many, where it is this package's own.
_LOSSES = ("clipped_loss_sum", "record_losses")
_TOGETHER = 4096

# Widths of noise whose sums are kept; adaptive queries have a new one each time.
_KEPT = 8

# A public vector that a norm is taken with has entries of at most so many steps.
_FARTHEST = 2.0**60


def check_distance(plan: Plan, numbers: float) -> None:
    """Refuse a plan whose delta is not large beside the distance of its noise from the law.

    ``numbers`` is how many numbers with noise the plan releases, at most. UnsupportedEvent is
    raised if they are too many for the plan's delta.
    """
    distance = _distance() + math.log2(max(numbers, 1.0))
    if plan.delta < _MARGIN * 2.0**distance:
        raise UnsupportedEvent(
            f"noise='discrete' keeps this plan's {numbers:.3g} numbers within 2^{distance:.0f} of "
            f"their law, which a delta of at least 2^{distance + 20:.0f} leaves out of account, "
            f"got delta={plan.delta!r}. noise='gaussian' has no such limit."
        )


@lru_cache(maxsize=1)
def _distance() -> float:
    """Base-2 logarithm of the distance of one number's law, of the widest noise that there is."""
    return DiscreteNormals.covering(2.0**54, bytes(32)).log2_total_variation


class DiscreteMechanism:
    """Exact sums with discrete Gaussian noise from cryptographic bits; totals are in grid steps.

    UnsupportedEvent is raised for choices, which this oracle does not make; if correlated noise
    has no grid (see :mod:`dpcal.optim.boundary.lattice`); if a sum has more records than whole
    numbers have room for; or by :func:`check_distance`.
    """

    name = "discrete"

    def __init__(self, plan: Plan, dimension: int, streams: Streams) -> None:
        self._digits: dict[str, int] = {}
        for query in plan.queries:
            if query.kind in CHOICES:
                raise UnsupportedEvent(
                    "noise='discrete' is for sums and scores here, and for choices in "
                    f"PrivateChoices, got query {query.name!r} with kind {query.kind!r}."
                )
            if query.correlation is not None:
                self._digits[query.name] = _annexes.grid_of(query, dimension).digits
        if plan.n > MOST_RECORDS:
            raise UnsupportedEvent(
                f"noise='discrete' is for sums of at most 2^29 records, got n={plan.n}."
            )
        check_distance(
            plan, sum(query.count * _numbers(query, dimension) for query in plan.queries)
        )
        self._streams, self._dimension = streams, dimension
        # Where noise is narrower, its tables are chosen for each width.
        narrowest = min(query.noise_multiplier for query in plan.queries)
        self.fused = narrowest / grid_step(1.0) >= LEAST
        self._sums: dict[float, WholeSums] = {}

    def compiled_sums(self, noise_multiplier: float) -> WholeSums:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        found = self._sums.get(noise_multiplier)
        if found is None:
            found = WholeSums(self._streams.noise, noise_multiplier, wide_table(), self._dimension)
            if len(self._sums) == _KEPT:
                self._sums.clear()
            self._sums[noise_multiplier] = found
        return found

    @staticmethod
    def gradient_sum(objective: Objective, w: Vector, rows: Rows, bound: float) -> Integers:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        if _is_in_parts(objective):
            return _of_parts(objective, "gradient_sum", rows, bound, w)
        kernel = own_kernel(objective)
        if kernel is not None:
            return whole_sum(kernel, w, None, rows, max_norm=bound)
        if _has_tables(objective):
            return _of_tables(objective, rows, bound, w)
        # A whole sum, like a kernel's, is there where an objective's own sums are this package's.
        ask = getattr(objective, "whole_sum", None)
        if ask is not None and own_sums(objective, (*COMPILED, "whole_sum")):
            made: Integers = ask(w, rows, bound)
            return made
        return one_by_one(
            objective.dimension, rows, bound, lambda alone: objective.clipped_sum(w, alone, bound)
        )

    @staticmethod
    def difference_sum(
        objective: Objective, w: Vector, v: Vector, rows: Rows, bound: float
    ) -> Integers:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        if _is_in_parts(objective):
            return _of_parts(objective, "difference_sum", rows, bound, w, v)
        kernel = own_kernel(objective)
        if kernel is not None:
            return whole_sum(kernel, w, v, rows, max_norm=bound)
        if _has_tables(objective):
            return _of_tables(objective, rows, bound, w, v)
        return one_by_one(
            objective.dimension,
            rows,
            bound,
            lambda alone: objective.clipped_difference_sum(w, v, alone, bound),
        )

    @staticmethod
    def loss_sum(objective: Objective, w: Vector, rows: Rows, bound: float) -> Integers:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        if _is_in_parts(objective):
            return _of_parts(objective, "loss_sum", rows, bound, w)
        if objective.kernel is not None and own_sums(objective, ("clipped_loss_sum",)):
            longest, whole = _longest(bound)
            return grid.clipped_loss_sum(objective.kernel, w, rows, max_loss=longest, bound=whole)
        if hasattr(objective, "record_losses") and own_sums(objective, _LOSSES):
            return _of_losses(objective, w, rows, bound)
        return one_by_one(
            1, rows, bound, lambda alone: np.array([objective.clipped_loss_sum(w, alone, bound)])
        )

    @staticmethod
    def norm(total: Integers, offset: Vector, bound: float) -> Integers:
        """Return the norm of a sum plus a public vector, rounded to the grid and then down.

        By the triangle inequality a record moves the norm by no more than the sum, and rounding
        down adds less than a step, by which contributions are shorter than the bound. The root is
        taken in whole numbers. NonFiniteAnswer is raised for a public vector beyond 2^60 steps.
        """
        with np.errstate(over="ignore"):
            steps = np.rint(offset / grid_step(bound))
        if not (np.abs(steps) <= _FARTHEST / max(1.0, math.sqrt(len(steps)))).all():
            raise NonFiniteAnswer(
                "The regulariser's gradient is too long for a norm with discrete noise, and the "
                "norm was not released: the parameters that were asked about are too large."
            )
        return np.array([whole_norm(total, steps)], dtype=np.int64)

    @staticmethod
    def mean_iterate(one_pass: Steps, objective: Objective, w: Vector, rows: Rows) -> Integers:
        """Return a mean iterate in steps; the pass is a shortened one."""
        mean = one_pass.mean_iterate(objective, w, rows)
        return np.rint(mean / grid_step(one_pass.bound)).astype(np.int64)

    @staticmethod
    def values(total: Integers, bound: float) -> Vector:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        return np.multiply(total, grid_step(bound), dtype=np.float64)

    def noisy_mean(
        self, total: Integers, query: Query, bound: float, *, size: float, row: Any = None
    ) -> Vector:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`; rows are in steps of their grid."""
        if row is not None:
            digits = self._digits[query.name]
            return self.values((total << digits) + row, bound) / (2.0**digits * size)
        sigma = query.noise_multiplier * (bound / grid_step(bound))
        DiscreteNormals.covering(sigma, self._streams.noise).add(total)
        return self.values(total, bound) / size


def _numbers(query: Query, dimension: int) -> int:
    """Return how many numbers an answer has."""
    if query.kind == "hessian":
        return dimension * (dimension + 1) // 2
    if query.descent is not None:
        return query.descent.steps * dimension
    return 1 if query.kind in ("gradient norm", "scalar", "saddle score") else dimension


def _longest(bound: float) -> tuple[float, int]:
    """Return the longest contribution, a whole number of steps, in both units.

    It is shorter than the bound by the step that a norm may be rounded by.
    """
    step = grid_step(bound)
    whole = math.floor(bound / step) - 1
    return whole * step, whole


def _is_in_parts(objective: Objective) -> bool:
    """Return whether records are in partitions, each of which has whole sums."""
    return hasattr(objective, "whole_total") and own_sums(objective, ("whole_total",))


def _of_parts(objective: Any, kind: str, rows: Rows, bound: float, *at: Vector) -> Integers:
    """Return the sum of what partitions have, in whole steps, which add up without rounding."""
    total: Integers = objective.whole_total(kind, rows, bound, *at)
    return total


def _has_tables(objective: Objective) -> bool:
    """Return whether a function gives the objective's gradients, and nothing else sums them."""
    alike = getattr(objective, "block_shares", None) is None  # blocks that are clipped together
    return alike and hasattr(objective, "tables") and own_sums(objective, (*COMPILED, "tables"))


def _of_tables(objective: Any, rows: Rows, bound: float, *at: Vector) -> Integers:
    longest, whole = _longest(bound)
    total = np.zeros(objective.dimension, dtype=np.int64)
    for table in objective.tables(rows, *at):
        grid.add_rows(np.ascontiguousarray(table), longest, whole, total)
    return total


def of_rows(table: Vector, max_norm: float) -> Integers:
    """Return the sum of rows of a table, each clipped, in whole steps."""
    longest, whole = _longest(max_norm)
    total = np.zeros(table.shape[1], dtype=np.int64)
    grid.add_rows(np.ascontiguousarray(table), longest, whole, total)
    return total


def _of_losses(objective: Any, w: Vector, rows: Rows, bound: float) -> Integers:
    longest, whole = _longest(bound)
    total = np.zeros(1, dtype=np.int64)
    for first in range(0, len(rows), _TOGETHER):
        losses = objective.record_losses(w, rows[first : first + _TOGETHER])
        grid.add_rows(np.asarray(losses, dtype=np.float64)[:, np.newaxis], longest, whole, total)
    return total


def one_by_one(size: int, rows: Rows, max_norm: float, ask: Callable[[Rows], Vector]) -> Integers:
    """Return the sum of clipped contributions, each asked for by itself, in whole steps."""
    longest, whole = _longest(max_norm)
    total = np.zeros(size, dtype=np.int64)
    for row in rows:
        try:
            contribution = ask(np.array([row], dtype=np.intp))
        except NonFiniteAnswer:
            continue  # A record without a finite contribution counts as zero.
        row_of_one = np.ascontiguousarray(contribution, dtype=np.float64)[np.newaxis]
        grid.add_rows(row_of_one, longest, whole, total)
    return total
