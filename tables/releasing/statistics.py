"""Statistics of a table, read from words. Statistics, each made of a few totals over cells.

>>> from dpcal.tables import Schema
>>> schema = Schema.from_toml('''
... [columns.stay]
... type = "number"
... range = [0, 30]
... [columns.clinic]
... type = "category"
... categories = ["north", "south"]
... ''')
>>> asked = Statistic.parse("mean stay where stay > 1 by clinic", schema)
>>> asked.kind, asked.column.name, asked.where.text, [axis.name for axis in asked.axes]
('mean', 'stay', 'stay > 1', ['clinic'])
>>> asked.words
'mean of stay where stay > 1 by clinic'
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.tables import Column, Schema
from dpcal.tables.releasing.conditions import Condition, unquoted

__all__ = ["KINDS", "Axis", "Statistic"]

KINDS = ("count", "sum", "mean", "variance", "histogram", "quantile")

# Number of equal parts of a range, unless given; and the largest number of cells of a table.
_PARTS = 10
_MOST_CELLS = 10**6

_ASKED = re.compile(rf"({'|'.join(KINDS)})\b(.*)", re.DOTALL)
_PARTS_OF = re.compile(r"(?P<what>.*?)(?:\bwhere\b(?P<where>.*?))?(?:\bby\b(?P<by>.*))?", re.DOTALL)


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
    """

    column: Column
    parts: int = 0

    @classmethod
    def parse(cls, text: str, schema: Schema, *, find: bool = False) -> Self:
        """Read ``NAME`` or ``NAME:PARTS``; ``find`` lets the schema not describe the column."""
        name, colon, parts = text.strip().partition(":")
        name = unquoted(name)
        if find and not colon and name not in {each.name for each in schema.columns}:
            return cls(Column(name=name, type="drop"))
        column = schema.column(name, "column of a statistic")
        if column.type == "number":
            _ranged(column)
            count = parts.strip() or str(_PARTS)
            if not count.isdecimal() or int(count) < 2:
                raise ValueError(f"parts of {column.name!r} must be a number >= 2, got {parts!r}.")
            return cls(column, int(count))
        if parts:
            raise ValueError(f"parts are for numbers, got {text.strip()!r}.")
        return cls(column)

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def open(self) -> bool:
        """Whether its groups are not declared."""
        return self.column.type not in ("number", "category", "class")

    @property
    def size(self) -> int:
        """Number of declared cells along it."""
        return self.parts or len(self.column.categories)

    @property
    def labels(self) -> list[str]:
        """Labels of cells along the axis; the first and last also hold values beyond a range."""
        if not self.parts:
            return list(self.column.categories)
        edges = [f"{edge:g}" for edge in np.linspace(*_ranged(self.column), self.parts + 1)]
        return [f"{low} to {high}" for low, high in itertools.pairwise(edges)]

    def places(self, cells: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of each cell along the axis, shape (n,); arbitrary for unknown cells."""
        if not self.parts:
            return np.asarray(cells, dtype=np.int64)
        low, high = _ranged(self.column)
        share = (np.clip(np.nan_to_num(cells), low, high) - low) / (high - low)
        return np.asarray(np.minimum(share * self.parts, self.parts - 1), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """One statistic, for each cell of a table of groups.

    Parameters
    ----------
    kind
        ``"count"``, ``"sum"``, ``"mean"``, ``"variance"``, ``"histogram"`` or ``"quantile"``.
    column
        A number with a range; None for counts.
    shares
        Shares of quantiles, in (0, 1).
    axes
        Axes of the table of cells; empty for one number. The columns of a histogram are the last.
    where
        Which rows count; all of them when None.
    """

    kind: str
    column: Column | None = None
    shares: tuple[float, ...] = ()
    axes: tuple[Axis, ...] = ()
    where: Condition | None = None

    @classmethod
    def parse(
        cls,
        text: str,
        schema: Schema,
        *,
        by: Sequence[str] = (),
        where: str | None = None,
        find: bool = False,
    ) -> Self:
        """Read a statistic as ``release`` takes it.

        Parameters
        ----------
        text
            ``count [CONDITION]``, ``sum|mean|variance NAME``, ``histogram AXIS, ...`` or ``quantile
            NAME SHARE ...``, and then ``where CONDITION`` and ``by AXIS, ...``, if any.
        schema
            Schema of the columns.
        by, where
            Axes and a condition of all statistics.
        find
            Whether an axis after ``by`` may be a column that the schema does not describe.

        Raises
        ------
        ValueError
            If it is none of these.
        """
        found = _ASKED.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"statistic must begin with {', '.join(KINDS)}, got {text!r}.")
        kind, parts = found[1], _PARTS_OF.fullmatch(found[2])
        assert parts is not None
        what = parts["what"].strip()
        axes = [Axis.parse(each, schema, find=find) for each in [*by, *_listed(parts["by"])]]
        conditions = [each for each in (where, parts["where"]) if each and each.strip()]
        given: dict[str, Any] = {}
        if kind == "count":
            conditions += [what] if what else []
        elif kind == "histogram":
            if not what:
                raise ValueError(f"histogram needs a column, got {text!r}.")
            axes += [Axis.parse(each, schema) for each in _listed(what)]
        else:
            given = _numeric(kind, what, schema)
        joined = " and ".join(f"({each.strip()})" for each in conditions)
        if len(conditions) == 1:
            joined = conditions[0]
        names = [axis.name for axis in axes]
        if len(set(names)) != len(names):
            raise ValueError(f"columns of groups must be distinct, got {', '.join(names)}.")
        made = cls(
            kind=kind,
            axes=tuple(axes),
            where=Condition(joined, schema) if joined else None,
            **given,
        )
        if made.cells > _MOST_CELLS:
            raise ValueError(f"{text!r} must have at most 10^6 cells, got {made.cells}.")
        return made

    @property
    def cells(self) -> int:
        """Number of declared cells."""
        return math.prod(axis.size for axis in self.axes if not axis.open)

    @property
    def range(self) -> tuple[float, float]:
        """The range of the column."""
        assert self.column is not None
        return _ranged(self.column)

    @property
    def words(self) -> str:
        """The statistic in words."""
        names = [axis.name for axis in self.axes]
        return f"{self.title} by {', '.join(names)}" if names else self.title

    @property
    def title(self) -> str:
        """The statistic in words, without its groups."""
        found = self.kind if self.column is None else f"{self.kind} of {self.column.name}"
        return found if self.where is None else f"{found} where {self.where.text}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that decide whether a row counts, and of the number."""
        number = () if self.column is None else (self.column.name,)
        compared = () if self.where is None else self.where.columns
        return (*compared, *(axis.name for axis in self.axes), *number)


def _listed(text: str | None) -> list[str]:
    return [each for each in (text or "").split(",") if each.strip()]


def _ranged(column: Column) -> tuple[float, float]:
    """Return the range of a number; refuse a column that has none."""
    if column.type != "number" or column.range is None:
        what = "no range" if column.type == "number" else f"type {column.type!r}"
        raise ValueError(
            "statistic must be of a number with a public range, which bounds what one row changes, "
            f"got column {column.name!r} with {what}: give it in the schema."
        )
    return column.range


def _numeric(kind: str, what: str, schema: Schema) -> dict[str, Any]:
    """Return the column of a statistic of numbers, and the shares of quantiles."""
    found = re.fullmatch(r"(`[^`]+`|\S+)(.*)", what, re.DOTALL)
    if found is None:
        raise ValueError(f"{kind} needs a column, got none.")
    if kind != "quantile" and found[2].strip():
        found = re.fullmatch(r"(.*)()", what, re.DOTALL)
        assert found is not None
    column = schema.column(unquoted(found[1]), "column of a statistic")
    _ranged(column)
    if kind != "quantile":
        return {"column": column}
    try:
        shares = tuple(sorted({float(each) for each in found[2].replace(",", " ").split()}))
    except ValueError:
        shares = ()
    if not shares or not all(0.0 < share < 1.0 for share in shares):
        raise ValueError(
            f"quantile needs shares in (0, 1) after the column, got {found[2].strip()!r}."
        )
    return {"column": column, "shares": shares}
