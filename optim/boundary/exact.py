"""Exact sums: clipped contributions in whole numbers, with discrete Gaussian noise.

One record moves a sum of whole numbers by at most the query's bound, exactly
(:mod:`dpcal.optim.objectives.contributions`). The noise is
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
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _annexes
from dpcal._ext.discrete import LEAST
from dpcal._ext.sums import MOST_RECORDS, WholeSums, grid_step, whole_norm
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.query import CHOICES
from dpcal.errors import NonFiniteAnswer, UnsupportedEvent
from dpcal.optim.boundary.discrete import DiscreteNormals, wide_table
from dpcal.optim.boundary.noise import Summing
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.objectives.base import Objective

if TYPE_CHECKING:
    from dpcal.optim.boundary.noise import Steps

__all__ = ["DiscreteMechanism", "check_distance"]

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]
Integers = NDArray[np.int64]

# A plan's delta is at least so many times the distance of a run's noise from its law, which would
# have to be added to it: a millionth of it is left out of account.
_MARGIN = 2.0**20

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


class DiscreteMechanism(Summing):
    """Exact sums with discrete Gaussian noise from cryptographic bits; totals are in grid steps.

    UnsupportedEvent is raised for choices, which this oracle does not make; if correlated noise
    has no grid (see :mod:`dpcal.optim.boundary.lattice`); if a sum has more records than whole
    numbers have room for; or by :func:`check_distance`.
    """

    name = "discrete"
    how = "whole"

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
