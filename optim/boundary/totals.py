"""How many records are in each cell, and what do their numbers add up to? Totals, with noise.

Like :class:`~dpcal.optim.boundary.choices.PrivateChoices`, a :class:`PrivateTotals` sees records
and noise, and writes the ledger before it reads a record.

>>> from dpcal.calibrate import Plan, Query
>>> query = Query(name="stay", kind="total", sampler="full", max_norm=30.0, noise_multiplier=2.0,
...               count=1)
>>> plan = Plan(optimizer="release", n=4, queries=(query,), epsilon=3.0, delta=1e-6)
>>> stay = Cells(np.array([0, 1, 1, -1]), 2, np.array([3.0, 10.0, 70.0, 5.0]))
>>> PrivateTotals(plan, {"stay": stay}, seed=0).totals("stay").shape  # of [3, 10 + 30]
(2,)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate.plan import Plan, Query
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.boundary.discrete import DiscreteNormals, whole_laplace
from dpcal.optim.boundary.noise import check_distance
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.arrays import Vector, digest_of

__all__ = ["Cells", "PrivateTotals"]

# A query's bound is so many steps of the grid that numbers are rounded onto: a power of two, so
# that whole numbers are exact, and sums of 2^32 records are below 2^53.
_STEPS = 1 << 20

_KINDS = ("total", "laplace total")


@dataclass(frozen=True, eq=False)
class Cells:
    """Of each record the one cell that it is in, and the number that it adds there.

    Parameters
    ----------
    places
        Whole numbers below ``count``, shape (n,); negative where a record is in no cell.
    count
        Number of cells, public.
    values
        Shape (n,), clipped to the query's bound, where what is no finite number counts as 0; None
        where every record adds 1.
    """

    places: NDArray[np.integer[Any]]
    count: int
    values: Vector | None = None

    def totals(self, bound: float) -> NDArray[np.int64]:
        """Return the sum of each cell, in steps of ``bound / 2^20``, exactly; shape (count,)."""
        inside = self.places >= 0
        if self.values is None:
            found = np.bincount(self.places[inside], minlength=self.count)
            return found * round(min(1.0, 1.0 / bound) * _STEPS)
        with np.errstate(all="ignore"):
            shares = np.clip(self.values[inside] / bound, -1.0, 1.0)
        steps = np.rint(np.nan_to_num(shares, nan=0.0) * _STEPS)
        # Sums of whole numbers below 2^53 are exact in doubles.
        sums = np.bincount(self.places[inside], weights=steps, minlength=self.count)
        return sums.astype(np.int64)


class PrivateTotals(PrivateChoices):
    """Answers a plan's queries of kinds ``"total"`` and ``"laplace total"``.

    A record is in one cell at most, and moves its total by at most the query's ``max_norm``. So all
    cells together are one answer: with Gaussian noise of standard deviation ``noise_multiplier *
    max_norm`` on each, or with Laplace noise of that scale, in whole numbers and from cryptographic
    words (:mod:`dpcal.optim.boundary.discrete`).

    Parameters
    ----------
    plan
        The queries, with their counts and their noise.
    cells
        Of each query, by its name: what each record adds to which cell. The number of records is
        the plan's, or a ValueError is raised, unless the plan's is public.
    seed
        That of :func:`dpcal.optim.run`.
    """

    def __init__(self, plan: Plan, cells: Mapping[str, Cells], *, seed: Seed = None) -> None:
        self._cells = dict(cells)
        sizes = {len(each.places) for each in self._cells.values()}
        if len(sizes) != 1 or self._cells.keys() != {query.name for query in plan.queries}:
            raise ValueError("cells must be of the plan's queries, all about the same records.")
        for name, each in self._cells.items():
            if each.places.max(initial=-1) >= each.count:
                raise ValueError(f"places of {name!r} must be below count={each.count}.")
        super().__init__(np.empty((sizes.pop(), 0)), plan, seed=seed)
        numbers = math.fsum(each.count for each in self._cells.values())
        check_distance(plan, numbers)

    def _digest(self) -> bytes:
        distinct: dict[int, NDArray[Any]] = {}
        for each in self._cells.values():
            for array in (each.places, each.values):
                if array is not None:
                    distinct[id(array)] = array
        return digest_of(*distinct.values())

    def totals(self, query: str) -> Vector:
        """Return the total of each cell with noise, shape (count,).

        ``query`` is the name of a query of kind ``"total"`` or ``"laplace total"``.

        References
        ----------
        Dwork, McSherry, Nissim and Smith 2006, Calibrating noise to sensitivity in private data
        analysis, section 4 (a histogram costs what one of its cells costs).
        """
        kind = self.plan.query(query).kind
        asked = self._asked(query, kind if kind in _KINDS else _KINDS[0])
        bound = asked.max_norm
        step = bound / _STEPS
        with self._lock:
            self._admit((asked, 1))
            whole = self._cells[query].totals(bound)
            exact = dict(enumerate((whole * step).tolist()))
            return self._answer(
                asked,
                np.empty(0),
                exact,
                lambda: self._noisy(asked, whole).astype(np.float64) * step,
            )

    def _noisy(self, asked: Query, whole: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add noise to whole numbers, which a record moves by at most ``_STEPS``."""
        scale, words = asked.noise_multiplier * _STEPS, self._streams.noise
        if asked.kind == "total":
            DiscreteNormals.covering(scale, words).add(whole)
            return whole
        width = math.ceil(scale) + 1
        return whole + np.array([whole_laplace(width, words) for _ in whole], dtype=np.int64)
