"""Statistics of a table: the totals that each one is made of, and how it is read off their answers.

:meth:`Statistic.totals` lists the totals of a statistic, with the part of the budget for each one,
and :meth:`Statistic.estimates` reads the statistic off noisy totals. A total is a sum over the rows
of a cell, with a bound on one row; statistics can share totals: the mean of a column and its
variance need one sum, and all means by clinic one count.

An interval holds the statistic of the table itself (of its values, clamped to their ranges) with
probability 95 percent or more over the noise. It does not cover the error of the table as a sample.

>>> age = Column(name="age", type="number", range=(0, 100), missing="drop-row")
>>> [(total.name, total.bound) for total in Statistic("variance", age).totals(published=False)]
[('sum of age', 50.0), ('squares of age', 1.0), ('count of age', 1.0)]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate import Query
from dpcal.calibrate.query import LAPLACE_TOTAL
from dpcal.optim.boundary.choices import Cells
from dpcal.tables import Column
from dpcal.tables.records import Rows
from dpcal.tables.releasing.conditions import Condition

Vector = NDArray[np.float64]

CONFIDENCE = 0.95

SHOWN = {"statistic", "share", "value", "standard_error", "low", "high"}

# By kind of a statistic: its totals, and the part of its share of the budget for each one.
PARTS: Mapping[str, Mapping[str, float]] = {
    "count": {"count": 1.0},
    "sum": {"plain": 1.0},
    "mean": {"sum": 2 / 3, "count": 1 / 3},
    "variance": {"sum": 0.3, "squares": 0.5, "count": 0.2},
    "histogram": {"count": 1.0},
    "quantile": {"ranks": 0.3},
}

# Discrete noise is wider than the Gaussian that it covers, by less than this factor.
_WIDER = 1.001


@dataclass(frozen=True)
class Axis:
    """A column that cells are made of: its categories, or equal parts of its range.

    Parameters
    ----------
    column
        A category or a class, or a number with a range. A column of another type stands for groups
        that are to be found among the records.
    labels
        Labels of cells along the axis; the first and last part of a range also hold values beyond
        it. None for groups that are still to be found.
    """

    column: Column
    labels: tuple[Any, ...] | None

    @classmethod
    def of(cls, column: Column, parts: int = 0) -> Self:
        """Return the axis of a column; ``parts`` is the number of parts of a number's range."""
        if not parts:
            return cls(column, column.categories or None)
        edges = [f"{edge:g}" for edge in np.linspace(*ends_of(column), parts + 1)]
        return cls(column, tuple(f"{low} to {high}" for low, high in itertools.pairwise(edges)))

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def size(self) -> int:
        """Number of cells along it; 1 before groups are found."""
        return 1 if self.labels is None else len(self.labels)

    def places(self, cells: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of each cell along the axis, shape (n,); -1 for a group not found."""
        if cells.dtype == object:
            known = {label: place for place, label in enumerate(self.labels or ())}
            return np.array([known.get(each, -1) for each in cells], dtype=np.int64)
        if self.column.type != "number":
            return np.asarray(cells, dtype=np.int64)
        low, high = ends_of(self.column)
        share = (np.clip(np.nan_to_num(cells), low, high) - low) / (high - low)
        return np.asarray(np.minimum(share * self.size, self.size - 1), dtype=np.int64)


@dataclass(frozen=True)
class Groups:
    """The rows that count, and the cells of a table of groups that they are in.

    Parameters
    ----------
    axes
        Axes of the cells; one cell without an axis.
    where
        Which rows count; all of them when None.
    """

    axes: tuple[Axis, ...] = ()
    where: Condition | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that a row must have to count."""
        compared = () if self.where is None else self.where.columns
        return (*compared, *(axis.name for axis in self.axes))

    @property
    def cells(self) -> int:
        """Number of cells, by the axes with known groups."""
        return math.prod(axis.size for axis in self.axes)

    def with_found(self, found: Mapping[str, Sequence[Any]]) -> Groups:
        """Return the same with groups that were found, by the name of the column."""
        axes = (replace(a, labels=(*found[a.name],)) if a.labels is None else a for a in self.axes)
        return replace(self, axes=tuple(axes))

    def places(self, rows: Rows, column: Column | None) -> NDArray[np.int64]:
        """Return the cell of each row; negative where it does not count, or lacks the column."""
        kept, found = np.ones(rows.n, dtype=bool), np.zeros(rows.n, dtype=np.int64)
        for name in (*self.columns, *([] if column is None else [column.name])):
            kept &= rows.known[name]
        if self.where is not None:
            with np.errstate(invalid="ignore"):
                kept &= self.where.holds(rows.cells)
        for axis in self.axes:
            places = axis.places(rows.cells[axis.name])
            kept &= places >= 0
            found = found * axis.size + places
        return np.where(kept, found, -1)


@dataclass(frozen=True)
class Total:
    """A sum over the rows of each cell.

    Parameters
    ----------
    kind
        ``"count"`` of rows, ``"sum"`` of numbers less the middle of their range, ``"plain"`` sum,
        sum of ``"squares"`` (of 2 s^2 - 1, where s is the number scaled to [-1, 1]), or
        ``"ranks"``: counts between cuts around quantiles.
    column
        Column that a row must have, and that is summed; None for a count of all rows.
    groups
        Rows that count, and their cells.
    shares
        Shares of the quantiles, for ranks.
    cuts
        Cuts of each cell, shape (cells, k), nondecreasing, for ranks; None before they are drawn.
    """

    kind: str
    column: Column | None
    groups: Groups
    shares: tuple[float, ...] = ()
    cuts: Vector | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Name of its query, by column, rows and groups; totals of one name are one total."""
        of = [] if self.column is None else ["of", self.column.name]
        where, axes = self.groups.where, self.groups.axes
        rows = [] if where is None else [f"where {where.text}"]
        numbers = {axis.name for axis in axes if axis.column.type == "number"}
        by = [f"{axis.name}:{axis.size}" if axis.name in numbers else axis.name for axis in axes]
        groups = ["by " + ", ".join(by)] if by else []
        return " ".join([self.kind, *of, *map(str, self.shares), *rows, *groups])

    @property
    def bound(self) -> float:
        """The most that a row adds to a cell."""
        if self.column is None or self.kind not in ("sum", "plain"):
            return 1.0
        low, high = ends_of(self.column)
        return (high / 2 - low / 2) if self.kind == "sum" else max(abs(low), abs(high))

    def cells(self, rows: Rows) -> Cells:
        """Return the cell of each row, and its contribution to the cell."""
        places, count = self.groups.places(rows, self.column), self.groups.cells
        if self.kind == "count" or self.column is None:
            return Cells(places, count)
        low, high = ends_of(self.column)
        values = np.clip(rows.cells[self.column.name], low, high)
        if self.cuts is not None:
            parts, split = self.cuts.shape[1] + 1, np.full(rows.n, -1, dtype=np.int64)
            for cell, own in enumerate(self.cuts):
                here = places == cell
                split[here] = cell * parts + np.searchsorted(own, values[here], side="left")
            return Cells(split, count * parts)
        if self.kind != "plain":
            values = values - (low / 2 + high / 2)
        if self.kind == "squares":
            values = 2 * (values / (high / 2 - low / 2)) ** 2 - 1
        return Cells(places, count, values)


class Estimate(NamedTuple):
    """A released statistic.

    Parameters
    ----------
    value
        Released value; None where the noise hides it.
    standard_error
        Standard deviation of the value's noise; None where it is not known.
    low, high
        Ends of the interval of confidence.
    """

    value: float | None
    standard_error: float | None
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Noisy:
    """Released totals of one query.

    Parameters
    ----------
    values
        Shape (cells,).
    query
        Which noise they have.
    """

    values: Vector
    query: Query

    @property
    def scale(self) -> float:
        """Standard deviation of Gaussian noise, or scale of Laplace noise."""
        return self.query.noise_multiplier * self.query.max_norm * _WIDER

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of one total."""
        return self.scale * math.sqrt(2) if self.query.kind == LAPLACE_TOTAL else self.scale

    def reach(self, failure: float) -> float:
        """Return the bound that one total's noise exceeds, up or down, with probability failure."""
        if self.query.kind == LAPLACE_TOTAL:
            return self.scale * math.log(1 / failure)
        return self.scale * NormalDist().inv_cdf(1 - failure / 2)

    def estimate(self, cell: int, known: float = 0.0, least: float = -math.inf) -> Estimate:
        """Return a total plus a known number; the interval ends at ``least``."""
        value, reach = known + float(self.values[cell]), self.reach(1 - CONFIDENCE)
        return Estimate(value, self.deviation, max(least, value - reach), max(least, value + reach))

    def part(self, cell: int, unit: float, failure: float) -> _Part:
        """Return a total in a unit, with its error."""
        value, deviation = float(self.values[cell]) / unit, self.deviation / unit
        return _Part(value, deviation, self.reach(failure) / unit)


class _Part(NamedTuple):
    """A noisy total of one cell: its value, the deviation of its noise, and its reach."""

    value: float
    deviation: float = 0.0
    reach: float = 0.0

    def over(self, count: _Part) -> tuple[float, float]:
        """Return the ends of this total over a count, both within reach; within [-1, 1]."""
        sides = itertools.product((-self.reach, self.reach), (-count.reach, count.reach))
        corners = [(self.value + up) / (count.value + off) for up, off in sides]
        return max(-1.0, min(corners)), min(1.0, max(corners))


@dataclass(frozen=True)
class Statistic:
    """One statistic, for each cell of a table of groups.

    Parameters
    ----------
    kind
        One of ``PARTS``.
    column
        A number with a range; None for counts.
    groups
        Rows that count, and the cells. The columns of a histogram are the last axes.
    """

    kind: str
    column: Column | None = None
    groups: Groups = Groups()

    @property
    def title(self) -> str:
        """The statistic in words, without its groups."""
        found = self.kind if self.column is None else f"{self.kind} of {self.column.name}"
        where = self.groups.where
        return found if where is None else f"{found} where {where.text}"

    @property
    def words(self) -> str:
        """The statistic in words."""
        names = [axis.name for axis in self.groups.axes]
        return f"{self.title} by {', '.join(names)}" if names else self.title

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns that it reads."""
        return (*self.groups.columns, *([] if self.column is None else [self.column.name]))

    @property
    def ends(self) -> tuple[float, float]:
        """The range of the column."""
        assert self.column is not None
        return ends_of(self.column)

    @property
    def _always(self) -> bool:
        """Whether every row has the column."""
        return self.column is None or self.column.missing in ("refuse", "impute")

    def with_found(self, found: Mapping[str, Sequence[Any]]) -> Self:
        """Return the same with groups that were found, by the name of the column."""
        return replace(self, groups=self.groups.with_found(found))

    def totals(self, published: bool) -> dict[Total, float]:
        """Return its totals, each with its part of the statistic's share of the budget.

        ``published`` is whether the number of rows is published, so that statistics of all rows
        need no count, and their sum can be one of distances from the middle of the range. A count
        that every row is in does not name the column.
        """
        parts = dict(PARTS[self.kind])
        if published and self._always and self.groups == Groups():
            parts = {"sum": 1.0} if "plain" in parts else parts
            if parts.pop("count", None):
                whole = math.fsum(parts.values())
                parts = {kind: part / whole for kind, part in parts.items()}
        column = None if self._always else self.column
        return {
            Total(kind, column if kind == "count" else self.column, self.groups): part
            for kind, part in parts.items()
        }

    def rows(self, noisy: Mapping[str, Noisy], n: int, published: bool) -> Iterator[dict[str, Any]]:
        """Yield a row for each cell and each of its marks.

        ``noisy`` are released totals by name, and ``n`` is the number of rows, if it is published.
        """
        parts = {total.kind: noisy[total.name] for total in self.totals(published)}
        axes = self.groups.axes
        names = [f"group {axis.name}" if axis.name in SHOWN else axis.name for axis in axes]
        for cell, labels in enumerate(itertools.product(*(axis.labels or () for axis in axes))):
            groups = dict(zip(names, labels, strict=True))
            found = self.estimates(parts, cell, n)
            for mark, estimate in zip(self.marks, found, strict=True):
                yield {"statistic": self.title, **groups, **mark, **estimate._asdict()}

    @property
    def marks(self) -> list[dict[str, float]]:
        """Keys that set the estimates of one cell apart."""
        return [{}]

    def estimates(self, parts: Mapping[str, Noisy], cell: int, n: int) -> list[Estimate]:
        """Return the estimates of one cell, read off totals by their kinds.

        A count or a sum is a released total, to which the middle of each row is added again; a
        published count needs none. With probability 95 percent, the noise of every total of a mean
        or a variance is within its reach: the totals share the 5 percent. The interval is the range
        of the statistic over this box.
        """
        if not parts:
            return [Estimate(float(n), 0.0, float(n), float(n))]
        if self.column is None:
            return [parts["count"].estimate(cell, least=0.0)]
        if "plain" in parts:
            return [parts["plain"].estimate(cell)]
        low, high = self.ends
        middle, unit, failure = (
            low / 2 + high / 2,
            high / 2 - low / 2,
            (1 - CONFIDENCE) / len(parts),
        )
        if self.kind == "sum":
            return [parts["sum"].estimate(cell, known=n * middle)]
        read = {
            kind: each.part(cell, unit if kind == "sum" else 1.0, failure)
            for kind, each in parts.items()
        }
        count = read.pop("count", _Part(float(n)))
        of_scaled: Callable[..., tuple[float, ...]] = _mean
        ends = middle - unit, middle + unit
        if self.kind == "variance":
            of_scaled, middle, unit = _variance, 0.0, unit**2
            ends = 0.0, unit
        if count.value < 1 or count.value <= count.reach:
            return [Estimate(None, None, *ends)]
        value, error, *found = of_scaled(count, *read.values())
        kept = [min(max(middle + unit * each, ends[0]), ends[1]) for each in (value, *found)]
        return [Estimate(kept[0], unit * error, kept[1], kept[2])]


def _mean(count: _Part, total: _Part) -> tuple[float, float, float, float]:
    """Return a mean of numbers in [-1, 1], its error, and the ends of the interval."""
    mean = total.value / count.value
    error = math.hypot(total.deviation, mean * count.deviation) / count.value
    return (mean, error, *total.over(count))


def _variance(count: _Part, total: _Part, squares: _Part) -> tuple[float, float, float, float]:
    """Return a variance of numbers in [-1, 1], its error, and the ends of the interval."""
    mean, twice = total.value / count.value, squares.value / count.value
    slope = 2 * mean * mean - twice / 2
    errors = squares.deviation / 2, 2 * mean * total.deviation, slope * count.deviation
    ends, twos = total.over(count), squares.over(count)
    least, most = sorted(end * end for end in ends)
    least = 0.0 if ends[0] <= 0 <= ends[1] else least
    value, low, high = ((each + 1) / 2 for each in (twice, *twos))
    error = math.hypot(*errors) / count.value
    return value - mean * mean, error, low - most, high - least


def ends_of(column: Column) -> tuple[float, float]:
    """Return the range of a number; refuse a column that has none."""
    if column.type != "number" or column.range is None:
        what = "no range" if column.type == "number" else f"type {column.type!r}"
        raise ValueError(
            "statistic must be of a number with a public range, which bounds what one row changes, "
            f"got column {column.name!r} with {what}: give it in the schema."
        )
    return column.range
