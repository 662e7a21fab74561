"""Private choices and totals: labels that occur, quantiles of a column, totals of cells.

An answer here is not a sum with noise: it is one of many candidates. Like ``PrivateOracle``, a
:class:`PrivateChoices` sees records and noise, and writes the ledger before it reads a record.

>>> from dpcal.calibrate import Plan, Query
>>> query = Query(name="labels", kind="labels", sampler="full", max_norm=1.0, noise_multiplier=2.0,
...               threshold=12.0, count=1)
>>> plan = Plan(optimizer="labels", n=62, queries=(query,), epsilon=3.0, delta=1e-6)
>>> choices = PrivateChoices(np.repeat(["no", "yes", "rare"], [30, 31, 1]), plan, seed=0)
>>> choices.labels("labels").tolist()
['no', 'yes']

A :class:`PrivateTotals` returns the number of records in each cell and the sum of their numbers:

>>> query = Query(name="stay", kind="total", sampler="full", max_norm=30.0, noise_multiplier=2.0,
...               count=1)
>>> plan = Plan(optimizer="release", n=4, queries=(query,), epsilon=3.0, delta=1e-6)
>>> stay = Cells(np.array([0, 1, 1, -1]), 2, np.array([3.0, 10.0, 70.0, 5.0]))
>>> PrivateTotals(plan, {"stay": stay}, seed=0).totals("stay").shape  # of [3, 10 + 30]
(2,)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._internal import validate
from dpcal._internal.precision import workprec
from dpcal.calibrate.plan import Plan, Query
from dpcal.optim import budget
from dpcal.optim.boundary.discrete import DiscreteNormals, whole_laplace
from dpcal.optim.boundary.ledger import Admits
from dpcal.optim.boundary.noise import check_distance, present, seen
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.arrays import Vector, digest_of, numbers
from dpcal.optim.objectives.domains import blanked, counted, typed
from dpcal.optim.objectives.placed import is_placed

Integers = NDArray[np.int64]

# Twice the most that a value moves, over its column's bounds: a median needs points between ties.
_SPREAD = 1e-6

# Whole numbers for a count of one, and points of an interval between cuts: powers of two.
_ONE = 1 << 20
_POINTS = 1 << 52

# Rounding moves a Gaussian further with probability below 2^-700: a threshold is higher by this.
_ROUNDING = 64

# Bound on the relative error of a weight in double precision.
_OFF = 1e-6

_COIN = 192

_SHARES = 1 << 20

# Above any number of records, which may be secret.
_MOST_RECORDS = 1 << 40


class PrivateChoices(Admits):
    """Answers a plan's queries of kinds ``"labels"`` and ``"selection"`` about records.

    Parameters
    ----------
    records
        Labels, shape (n,), or numbers, shape (n, d), in memory or in partitions of a cluster
        (:mod:`dpcal.optim.objectives.placed`). A ValueError is raised if n is not the plan's,
        unless the plan's n is public. For partitions, quantiles take a whole column into memory
        here. Labels and numbers that are not finite, or of another type, are not counted.
    known
        Mask of the records that count, shape (n,); the others are ignored. All records count when
        omitted.
    plan
        Queries, with their counts and their noise. An answer beyond them raises BudgetExceeded, and
        no record is read for it.
    seed
        Seed as in :func:`dpcal.optim.run`.

    Notes
    -----
    Counts have discrete Gaussian noise, and choices are drawn from their law in whole numbers, both
    from cryptographic words. UnsupportedEvent is raised if delta is too small next to the distance
    of the noise from its law.
    """

    def __init__(
        self,
        records: NDArray[Any],
        plan: Plan,
        *,
        known: NDArray[np.bool_] | None = None,
        seed: Seed = None,
    ) -> None:
        most = _MOST_RECORDS if plan.public_n else plan.n
        check_distance(plan, most * math.fsum(query.count for query in plan.queries))
        self._records: Any = records
        self._placed = is_placed(records)
        self._known: Any = known
        if known is None and not self._placed:
            self._known = np.ones(len(records), dtype=bool)
        self._streams = present().streams(seed, plan, self._digest)
        self._begin_ledger(plan, len(records))
        self._answer = seen().choosing(plan, self.ledger)
        self._spread: dict[int, Vector] = {}
        self._owed = budget.owed(plan)

    def _digest(self) -> bytes:
        kept = self._records
        if self._placed:
            return bytes(kept.digest())
        if kept.dtype.kind not in "biuf":
            kept = np.array([str(each) for each in kept.flat]).reshape(kept.shape)
        return digest_of(kept) if self._known.all() else digest_of(kept, self._known)

    def labels(self, query: str, column: int | None = None) -> NDArray[Any]:
        """Return the labels with noisy counts above the query's threshold, in sort order.

        ``query`` is the name of a query of kind ``"labels"``, and ``column`` the number of a column
        of records that have several.

        References
        ----------
        Korolova, Kenthapadi, Mishra and Ntoulas 2009, Releasing search queries and clicks
        privately, with Gaussian noise; Wilkins, Kifer, Zhang and Karrer 2024.
        """
        asked = self._asked(query, "labels")
        with self._lock:
            self._admit((asked, 1))
            if self._placed:
                found, counts = self._records.counted(column, self._known)
            else:
                asked_of = self._records if column is None else self._records[:, column]
                found, counts = counted(asked_of[self._known])
            scores = dict(zip(found.tolist(), counts.tolist(), strict=True))
            return self._answer(
                asked, np.empty(0), scores, lambda: typed(found[self._passed(asked, counts)])
            )

    def _passed(self, asked: Query, counts: Integers) -> NDArray[np.bool_]:
        """Return which counts, with their noise, exceed the threshold."""
        assert asked.threshold is not None
        whole = counts.astype(np.int64) * _ONE
        sigma = asked.noise_multiplier * _ONE
        DiscreteNormals.covering(sigma, self._streams.noise).add(whole)
        return whole > math.ceil(asked.threshold * _ONE) + _ROUNDING

    def quantiles(
        self, column: int, cuts: ArrayLike, query: str, shares: ArrayLike = 0.5
    ) -> Vector:
        """Return a private quantile of a column in each interval between neighboring cuts, (k,).

        A record lies in one interval at most, so all intervals together cost one answer. In an
        interval that holds m values, a point t has the score ``-|#(values < t) - share m|``, which
        one record moves by at most max(share, 1 - share). The point is drawn with a density
        proportional to ``exp(score / (noise_multiplier * max_norm))``.

        Parameters
        ----------
        column
            Number of a column of the records.
        cuts
            Shape (k + 1,), nondecreasing; a function of public or released values.
        query
            Name of a query of kind ``"selection"`` in the plan. Its ``max_norm`` is at least the
            amount by which a record moves a score.
        shares
            Public shares in (0, 1), one for all intervals or one for each; NaN where you want no
            point.

        References
        ----------
        Smith 2011 (the exponential mechanism for a quantile); Kaplan, Schnapp and Stemmer 2022,
        Differentially private approximate quantiles (several quantiles, over a tree).
        """
        edges = numbers("cuts", cuts)
        if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) < 0).any():
            raise ValueError("cuts must be two or more nondecreasing numbers.")
        asked = self._asked(query, "selection")
        whole = _whole_shares(shares, len(edges) - 1)
        reach = max(max(share, _SHARES - share) for share in whole if share is not None)
        validate.within(reach / _SHARES, math.inf, max_norm=asked.max_norm)
        with self._lock:
            self._admit((asked, 1))
            return self._chosen(asked, column, edges, whole)

    def _chosen(
        self, asked: Query, column: int, edges: Vector, whole: Sequence[int | None]
    ) -> Vector:
        """Draw a quantile in each interval between edges, at its share; none where it is None."""
        kept = [share is not None for share in whole]
        values = self._column(column, float(np.diff(edges)[kept].max()))
        scale = asked.noise_multiplier * asked.max_norm
        parts = np.split(values, np.searchsorted(values, edges))[1:-1]
        asked_in = [
            (part, share, low, high)
            for part, share, low, high in zip(parts, whole, edges, edges[1:], strict=False)
            if share is not None
        ]

        def chosen() -> Vector:
            found = np.full(len(whole), np.nan)
            places = [i for i, share in enumerate(whole) if share is not None]
            found[places] = [self._point(*each, scale) for each in asked_in]
            return found

        scores = [(part, share / _SHARES) for part, share, *_ in asked_in]
        return self._answer(asked, edges, scores, chosen)

    def _column(self, column: int, width: float) -> Vector:
        """Return a column's sorted values, each moved once by an independent small number."""
        if column not in self._spread:
            spread = self._streams.parting.uniform(-0.5, 0.5, len(self._records))
            kept = self._records.column(column) if self._placed else self._records[:, column]
            values = kept + _SPREAD * width * spread
            if self._known is not None:
                values = blanked(values, self._known, math.nan)
            self._spread[column] = np.sort(values)
        return self._spread[column]

    def _point(self, values: Vector, share: int, low: float, high: float, scale: float) -> float:
        """Draw one of the interval's points from exactly the law that :meth:`quantiles` states."""
        width = high - low
        if not width:
            return low
        shares = np.clip((np.clip(values, low, high) - low) / width, 0.0, 1.0)
        ends = np.concatenate([[0], (shares * _POINTS).astype(np.int64), [_POINTS]])
        lengths = np.diff(ends)
        common = math.gcd(share, _SHARES)
        share, unit = share // common, _SHARES // common
        steps = np.abs(unit * np.arange(len(lengths)) - share * len(values))
        chosen = _drawn(lengths, steps, unit * scale, self._streams.noise)
        point = ends[chosen] + self._streams.noise.integers(lengths[chosen])
        return min(low + width * (float(point) / _POINTS), high)


def _whole_shares(shares: ArrayLike, count: int) -> list[int | None]:
    """Return shares in (0, 1) as multiples of 1 / _SHARES, and None for NaN."""
    given = np.broadcast_to(np.asarray(shares, dtype=np.float64), (count,))
    kept = np.isfinite(given)
    if not (kept.any() and ((given > 0) & (given < 1))[kept].all()):
        raise ValueError(f"shares must be in (0, 1), or NaN but for one, got {shares!r}.")
    whole = np.clip(np.rint(np.where(kept, given, 0.5) * _SHARES), 1, _SHARES - 1)
    return [int(share) if keep else None for share, keep in zip(whole, kept, strict=True)]


def _drawn(lengths: Integers, steps: Integers, scale: float, generator: np.random.Generator) -> int:
    """Draw i with probability proportional to ``lengths[i] exp(-steps[i] / scale)``.

    Weights in double precision, rounded up to whole numbers, propose an index. A coin of 192 bits,
    computed in ball arithmetic for that index, accepts it with a probability proportional to its
    exact weight over its proposed weight. At least one length is positive.
    """
    from flint import arb, fmpq

    places = np.flatnonzero(lengths)
    with np.errstate(under="ignore"):
        heights = np.log(lengths[places]) - steps[places] / scale
        top = int(np.argmax(heights))
        tall = np.exp(heights - heights[top])
    unit = (1 << 61) // len(places)
    proposed = (tall * unit).astype(np.int64) + 1
    sums = np.cumsum(proposed)
    rate = 1 / fmpq(*scale.as_integer_ratio())
    while True:
        i = int(np.searchsorted(sums, generator.integers(sums[-1]), side="right"))
        here, best = places[i], places[top]
        coin = int.from_bytes(generator.bytes(_COIN // 8), "little")
        due = fmpq(int(lengths[here]) * unit, int(lengths[best]) * int(proposed[i]))
        with workprec(2 * _COIN):
            share = arb(rate * (int(steps[best]) - int(steps[here]))).exp() * due
            if share * (arb(1) - arb(_OFF)) * arb(2) ** _COIN > coin:
                return int(here)


# Steps of a grid in a bound: whole numbers stay exact, and sums of 2^32 records below 2^53.
_STEPS = 1 << 20

_KINDS = ("total", "laplace total")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of each record, at most one, and the number that the record adds there.

    Parameters
    ----------
    places
        Whole numbers below ``count``, shape (n,); negative where a record is in no cell.
    count
        Number of cells, public.
    values
        Numbers, shape (n,), clipped to the query's bound; a number that is not finite counts as 0.
        None where every record adds 1.
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
        Queries, with their counts and their noise.
    cells
        The :class:`Cells` of the records, by the name of the query. A ValueError is raised if the
        number of records is not the plan's, unless the plan's is public.
    seed
        Seed as in :func:`dpcal.optim.run`.
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
        analysis, section 4 (a histogram costs as much as one of its cells).
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
