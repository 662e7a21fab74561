"""Statistics of a table: the totals that each one is made of, and how it is read off their answers.

A statistic is one class: :meth:`Statistic.totals` lists its totals, with the part of the budget for
each one, and :meth:`Statistic.estimates` reads the statistic off noisy totals. A total is a sum
over the rows of a cell, with a bound on one row; statistics can share totals: the mean of a column
and its variance need one sum, and all means by clinic one count.

An interval holds the statistic of the table itself (of its values, clamped to their ranges) with
probability 95 percent or more over the noise. It does not cover the error of the table as a sample.

>>> age = Column(name="age", type="number", range=(0, 100), missing="drop-row")
>>> [(total.name, total.bound) for total in Variance(age).totals(published=False)]
[('sum of age', 50.0), ('squares of age', 1.0), ('count of age', 1.0)]
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate import Query
from dpcal.calibrate.query import LAPLACE_TOTAL
from dpcal.optim.boundary.choices import Cells
from dpcal.tables import Column
from dpcal.tables.releasing.conditions import Condition
from dpcal.tables.releasing.reading import Rows

__all__ = [
    "CONFIDENCE",
    "SHOWN",
    "Axis",
    "Count",
    "Estimate",
    "Groups",
    "Histogram",
    "Mean",
    "Noisy",
    "Statistic",
    "Sum",
    "Total",
    "Variance",
    "ends_of",
    "open_axes",
]

Vector = NDArray[np.float64]

CONFIDENCE = 0.95

SHOWN = {"statistic", "share", "value", "standard_error", "low", "high"}

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
    parts
        Number of equal parts of a number's range; 0 for categories.
    found
        Groups that were found; None before.
    """

    column: Column
    parts: int = 0
    found: tuple[Any, ...] | None = None

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def open(self) -> bool:
        """Whether its groups are still to be found."""
        return self.found is None and self.column.type not in ("number", "category", "class")

    @property
    def size(self) -> int:
        """Number of cells along it."""
        return self.parts or len(self.labels)

    @property
    def labels(self) -> list[Any]:
        """Labels of cells along the axis; the first and last also hold values beyond a range."""
        if not self.parts:
            return [*(self.column.categories if self.found is None else self.found)]
        edges = [f"{edge:g}" for edge in np.linspace(*ends_of(self.column), self.parts + 1)]
        return [f"{low} to {high}" for low, high in itertools.pairwise(edges)]

    def places(self, cells: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of each cell along the axis, shape (n,); -1 for a group not found."""
        if self.found is not None:
            known = {label: place for place, label in enumerate(self.found)}
            return np.array([known.get(each, -1) for each in cells], dtype=np.int64)
        if not self.parts:
            return np.asarray(cells, dtype=np.int64)
        low, high = ends_of(self.column)
        share = (np.clip(np.nan_to_num(cells), low, high) - low) / (high - low)
        return np.asarray(np.minimum(share * self.parts, self.parts - 1), dtype=np.int64)


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
        """Number of cells, by the axes whose groups are known."""
        return math.prod(axis.size for axis in self.axes if not axis.open)

    @property
    def labels(self) -> list[tuple[Any, ...]]:
        """The groups of each cell, one for each axis, in the order of cells."""
        return list(itertools.product(*(axis.labels for axis in self.axes)))

    def with_found(self, found: Mapping[str, Iterable[Any]]) -> Groups:
        """Return the same with groups that were found, by the name of the column."""
        axes = [replace(a, found=(*found[a.name],)) if a.open else a for a in self.axes]
        return replace(self, axes=tuple(axes))

    def places(self, rows: Rows, column: Column | None) -> NDArray[np.int64]:
        """Return the cell of each row; negative where it does not count, or lacks the column."""
        names = (*self.columns, *([] if column is None else [column.name]))
        kept, found = rows.having(names), np.zeros(rows.n, dtype=np.int64)
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
    """

    kind: str
    column: Column | None
    groups: Groups

    @property
    def name(self) -> str:
        """Name of its query; totals of one name are one total."""
        return self.named(self.kind)

    def named(self, *words: str) -> str:
        """Return words about the column, the rows and the groups."""
        first, *others = words
        of = [] if self.column is None else ["of", self.column.name]
        where, axes = self.groups.where, self.groups.axes
        rows = [] if where is None else [f"where {where.text}"]
        by = [f"{axis.name}:{axis.parts}" if axis.parts else axis.name for axis in axes]
        return " ".join([first, *of, *others, *rows, *(["by " + ", ".join(by)] if by else [])])

    @property
    def bound(self) -> float:
        """The most that a row adds to a cell."""
        if self.kind not in ("sum", "plain"):
            return 1.0
        assert self.column is not None
        low, high = ends_of(self.column)
        return (high / 2 - low / 2) if self.kind == "sum" else max(abs(low), abs(high))

    def cells(self, rows: Rows) -> Cells:
        """Return the cell of each row, and its contribution to the cell."""
        places = self.groups.places(rows, self.column)
        if self.kind == "count" or self.column is None:
            return Cells(places, self.groups.cells)
        low, high = ends_of(self.column)
        values = np.clip(rows.cells[self.column.name], low, high)
        if self.kind != "plain":
            values = values - (low / 2 + high / 2)
        if self.kind == "squares":
            values = 2 * (values / (high / 2 - low / 2)) ** 2 - 1
        return Cells(places, self.groups.cells, values)


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
class Statistic(ABC):
    """One statistic, for each cell of a table of groups.

    Parameters
    ----------
    column
        A number with a range; None for counts.
    groups
        Rows that count, and the cells. The columns of a histogram are the last axes.
    """

    column: Column | None = None
    groups: Groups = Groups()

    kind: ClassVar[str]

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

    def is_of_all(self, published: bool) -> bool:
        """Return whether all rows count, in one cell, and their number is published."""
        return published and self._always and self.groups == Groups()

    @property
    def _always(self) -> bool:
        """Whether every row has the column."""
        return self.column is None or self.column.missing in ("refuse", "impute")

    def total(self, kind: str) -> Total:
        """Return a total of its rows; a count that every row is in does not name the column."""
        shared = kind == "count" and self._always
        return Total(kind, None if shared else self.column, self.groups)

    def with_found(self, found: Mapping[str, Iterable[Any]]) -> Self:
        """Return the same with groups that were found, by the name of the column."""
        return replace(self, groups=self.groups.with_found(found))

    @abstractmethod
    def totals(self, published: bool) -> dict[Total, float]:
        """Return its totals, each with its part of the statistic's share of the budget.

        ``published`` is whether the number of rows is published, so that means of all rows need no
        count.
        """

    def rows(self, noisy: Mapping[str, Noisy], n: int, published: bool) -> Iterator[dict[str, Any]]:
        """Yield a row for each cell and each of its marks.

        ``noisy`` are released totals by name, and ``n`` is the number of rows, if it is published.
        """
        parts = {total.kind: noisy[total.name] for total in self.totals(published)}
        axes = [each.name for each in self.groups.axes]
        names = [f"group {name}" if name in SHOWN else name for name in axes]
        for cell, labels in enumerate(self.groups.labels):
            groups = dict(zip(names, labels, strict=True))
            found = self.estimates(parts, cell, n)
            for mark, estimate in zip(self.marks, found, strict=True):
                yield {"statistic": self.title, **groups, **mark, **estimate._asdict()}

    @property
    def marks(self) -> list[dict[str, float]]:
        """Keys that set the estimates of one cell apart."""
        return [{}]

    @abstractmethod
    def estimates(self, parts: Mapping[str, Noisy], cell: int, n: int) -> list[Estimate]:
        """Return the estimates of one cell, read off totals by their kinds."""


class Count(Statistic):
    """A number of rows."""

    kind = "count"

    def totals(self, published: bool) -> dict[Total, float]:
        """Return the count, unless it is published."""
        return {} if self.is_of_all(published) else {self.total("count"): 1.0}

    def estimates(self, parts: Mapping[str, Noisy], cell: int, n: int) -> list[Estimate]:
        """Return the count as it was released; its interval begins at 0."""
        if not parts:
            return [Estimate(float(n), 0.0, float(n), float(n))]
        return [parts["count"].estimate(cell, least=0.0)]


class Histogram(Count):
    """Numbers of rows by categories, or by parts of a range."""

    kind = "histogram"


class Sum(Statistic):
    """A sum of numbers; for all rows it is read off distances from the middle of the range."""

    kind = "sum"

    def totals(self, published: bool) -> dict[Total, float]:
        """Return the sum."""
        return {self.total("sum" if self.is_of_all(published) else "plain"): 1.0}

    def estimates(self, parts: Mapping[str, Noisy], cell: int, n: int) -> list[Estimate]:
        """Return the sum as it was released, with the middle of each row added again."""
        if "plain" in parts:
            return [parts["plain"].estimate(cell)]
        low, high = self.ends
        return [parts["sum"].estimate(cell, known=n * (low / 2 + high / 2))]


class Mean(Statistic):
    """A mean: a sum over a count.

    With probability 95 percent, the noise of every total is within its reach: the totals share the
    5 percent. The interval is the range of the mean over this box.
    """

    kind = "mean"
    parts: ClassVar[Mapping[str, float]] = {"sum": 2 / 3, "count": 1 / 3}

    def totals(self, published: bool) -> dict[Total, float]:
        """Return the totals, without a count that is published."""
        parts = dict(self.parts)
        if self.is_of_all(published):
            del parts["count"]
        whole = math.fsum(parts.values())
        return {self.total(kind): part / whole for kind, part in parts.items()}

    def estimates(self, parts: Mapping[str, Noisy], cell: int, n: int) -> list[Estimate]:
        """Return the statistic of numbers that are scaled to [-1, 1], in the column's unit."""
        low, high = self.ends
        half, failure = high / 2 - low / 2, (1 - CONFIDENCE) / len(parts)
        units = {"sum": half, "squares": 1.0, "count": 1.0}
        read = {kind: each.part(cell, units[kind], failure) for kind, each in parts.items()}
        count = read.pop("count", _Part(float(n)))
        least, most = self.scaled(-1.0, 1.0)
        if count.value < 1 or count.value <= count.reach:
            return [Estimate(None, None, least, most)]
        value, error, *ends = self.of_parts(count, **read)
        kept = [min(max(each, least), most) for each in self.scaled(value, *ends)]
        return [Estimate(kept[0], self.unit * error, kept[1], kept[2])]

    @property
    def unit(self) -> float:
        """Size of a statistic of 1 of scaled numbers."""
        low, high = self.ends
        return high / 2 - low / 2

    def scaled(self, *values: float) -> list[float]:
        """Return statistics of scaled numbers in the column's unit."""
        low, high = self.ends
        return [low / 2 + high / 2 + self.unit * each for each in values]

    def of_parts(self, count: _Part, **parts: _Part) -> tuple[float, float, float, float]:
        """Return value, error and the ends of the interval, of scaled numbers."""
        total = parts["sum"]
        mean = total.value / count.value
        error = math.hypot(total.deviation, mean * count.deviation) / count.value
        return (mean, error, *total.over(count))


class Variance(Mean):
    """A variance: the mean square less the square of the mean."""

    kind = "variance"
    parts: ClassVar[Mapping[str, float]] = {"sum": 0.3, "squares": 0.5, "count": 0.2}

    @property
    def unit(self) -> float:
        """Variance of scaled numbers -1 and 1."""
        return super().unit ** 2

    def scaled(self, *values: float) -> list[float]:
        """Return variances of scaled numbers in the column's unit; none is below 0."""
        return [self.unit * max(0.0, each) for each in values]

    def of_parts(self, count: _Part, **parts: _Part) -> tuple[float, float, float, float]:
        """Return value, error and the ends of the interval, of scaled numbers."""
        total, squares = parts["sum"], parts["squares"]
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


def open_axes(statistics: Sequence[Statistic]) -> set[str]:
    """Return the names of columns with groups to find."""
    return {axis.name for each in statistics for axis in each.groups.axes if axis.open}
