"""Exact sums: clipped contributions in whole numbers, with discrete Gaussian noise.

A query's bound C becomes ``BOUND`` steps of a grid. Each record's clipped contribution is rounded
towards zero onto the grid, so that it never gets longer, and 64-bit whole numbers add up without
rounding: one record moves the sum by at most ``BOUND`` steps in L2 norm, exactly and in any order.
Floating-point sums do not have this bound (Casacuberta, Shoemate, Vadhan and Wagaman 2022). The
noise is :meth:`dpcal.optim.boundary.discrete.DiscreteNormals.covering`, which reveals no more than
the Gaussian that the plan prices. A whole number of steps is released; multiplying it by the step's
length, in floating point, is post-processing.

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

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import grid
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.query import CHOICES
from dpcal.errors import NonFiniteAnswer, UnsupportedEvent
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.boundary.one_pass import Pass
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.objectives.base import Objective

__all__ = ["BOUND", "DiscreteMechanism"]

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]
Integers = NDArray[np.int64]

# Steps of the grid in the bound on one record's contribution. Rounding towards zero shortens it by
# at most sqrt(d) / BOUND of the bound, 3e-4 for 100,000 parameters; sums of 2^40 records stay below
# 2^60.
BOUND = 1 << 20

# Base-2 logarithm of the largest total-variation distance of a whole run's noise from its law. This
# distance must be added to the delta of a claim.
LARGEST_DISTANCE = -64.0

# The least delta of a plan, so that the distance is below a millionth of it.
LEAST_DELTA = 2.0**-44

# Kinds of answers that are not sums of gradients, differences or losses with Gaussian noise.
_NO_SUMS = (
    "one pass",
    "hessian",
    "hessian vector",
    "saddle score",
    "above threshold",
    "noisy max",
    *CHOICES,
)


class DiscreteMechanism:
    """Exact sums with discrete Gaussian noise from cryptographic bits; totals are in grid steps.

    The streams give cryptographic words for this run alone. UnsupportedEvent is raised if a query
    has correlated or Laplace noise, is one pass of descent, or is about Hessians; if the plan has
    so many answers that the distances of their noise from its law add up to more than 2^-64; or if
    its delta is below 2^-44.
    """

    name = "discrete"
    fused = False

    def __init__(self, plan: Plan, dimension: int, streams: Streams) -> None:
        if plan.delta < LEAST_DELTA:
            raise UnsupportedEvent(
                "noise='discrete' is within 2^-64 of its law, which only a delta of at least 2^-44 "
                f"leaves out of account, got a plan with delta={plan.delta!r}."
            )
        for query in plan.queries:
            if query.correlation is not None or query.kind in _NO_SUMS:
                why = f"kind {query.kind!r}" if query.correlation is None else "correlated noise"
                raise UnsupportedEvent(
                    "noise='discrete' is for sums of whole numbers with independent noise, got "
                    f"query {query.name!r} with {why}."
                )
        self._stream = streams.words("noise")
        self._normals: dict[float, DiscreteNormals] = {}
        widest = max(query.noise_multiplier for query in plan.queries)
        numbers = dimension * math.fsum(query.count for query in plan.queries)
        distance = self._of(widest).log2_total_variation + math.log2(numbers)
        if distance > LARGEST_DISTANCE:
            raise UnsupportedEvent(
                "noise='discrete' keeps a run within 2^-64 of its law, and this plan's "
                f"{numbers:.3g} numbers are within 2^{distance:.0f}."
            )

    @staticmethod
    def gradient_sum(objective: Objective, w: Vector, rows: Rows, bound: float) -> Integers:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        kernel = objective.kernel
        if kernel is not None:
            return grid.clipped_sum(kernel, w, rows, max_norm=bound, bound=BOUND)
        return _one_by_one(
            objective.dimension, rows, bound, lambda alone: objective.clipped_sum(w, alone, bound)
        )

    @staticmethod
    def difference_sum(
        objective: Objective, w: Vector, v: Vector, rows: Rows, bound: float
    ) -> Integers:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        kernel = objective.kernel
        if kernel is not None:
            return grid.clipped_difference_sum(kernel, w, v, rows, max_norm=bound, bound=BOUND)
        return _one_by_one(
            objective.dimension,
            rows,
            bound,
            lambda alone: objective.clipped_difference_sum(w, v, alone, bound),
        )

    @staticmethod
    def loss_sum(objective: Objective, w: Vector, rows: Rows, bound: float) -> Integers:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        kernel = objective.kernel
        if kernel is not None:
            return grid.clipped_loss_sum(kernel, w, rows, max_loss=bound, bound=BOUND)
        return _one_by_one(
            1, rows, bound, lambda alone: np.array([objective.clipped_loss_sum(w, alone, bound)])
        )

    @staticmethod
    def norm(total: Integers, offset: Vector, bound: float) -> Integers:
        """Return the norm of a sum plus a public vector, rounded to the grid and then down.

        By the triangle inequality a record moves the norm by at most ``BOUND`` steps, and so the
        norm rounded down, because ``BOUND`` is whole. The root is taken in whole numbers.
        """
        steps = np.rint(offset / (bound / BOUND))
        shifted = [int(entry) + int(public) for entry, public in zip(total, steps, strict=True)]
        return np.array([math.isqrt(sum(entry * entry for entry in shifted))], dtype=np.int64)

    def mean_iterate(self, one_pass: Pass, objective: Objective, w: Vector, rows: Rows) -> Integers:
        """Refuse: a mean iterate is not a sum of whole numbers."""
        raise UnsupportedEvent("noise='discrete' is for sums, and a mean iterate is none.")

    @staticmethod
    def values(total: Integers, bound: float) -> Vector:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        return np.multiply(total, bound / BOUND, dtype=np.float64)

    def noisy_mean(
        self, total: Integers, query: Query, bound: float, *, size: float, row: Vector | None = None
    ) -> Vector:
        """See :class:`dpcal.optim.boundary.noise.Mechanism`."""
        self._of(query.noise_multiplier).add(total)
        return np.multiply(total, bound / BOUND / size, dtype=np.float64)

    def _of(self, noise_multiplier: float) -> DiscreteNormals:
        if noise_multiplier not in self._normals:
            self._normals[noise_multiplier] = DiscreteNormals.covering(
                noise_multiplier * BOUND, self._stream
            )
        return self._normals[noise_multiplier]


def _one_by_one(size: int, rows: Rows, max_norm: float, ask: Callable[[Rows], Vector]) -> Integers:
    total = np.zeros(size, dtype=np.int64)
    for row in rows:
        try:
            contribution = ask(np.array([row], dtype=np.intp))
        except NonFiniteAnswer:
            continue  # A record without a finite contribution counts as zero.
        row_of_one = np.ascontiguousarray(contribution, dtype=np.float64)[np.newaxis]
        grid.add_rows(row_of_one, max_norm, BOUND, total)
    return total
