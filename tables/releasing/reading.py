"""From a table to the columns that statistics use, and from these to cells: row by row.

>>> from dpcal.tables import Schema, Source
>>> schema = Schema.from_dict({"columns": {"age": {"type": "number", "range": [0, 9]}}})
>>> asked = [Statistic.parse("mean age", schema)]
>>> rows = Rows.read(Source({"age": [3.0, 12.0]}), schema, asked)
>>> rows.n, rows.cells["age"].tolist()
(2, [3.0, 12.0])
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.optim.boundary.choices import Cells
from dpcal.tables import Column, Schema, Source
from dpcal.tables.coding import codes_of, persons_of, texts_of, values_of
from dpcal.tables.records import rows_of
from dpcal.tables.releasing.planning import Total
from dpcal.tables.releasing.statistics import Axis, Statistic
from dpcal.tables.splitting import within_group_size

__all__ = ["Rows"]

Vector = NDArray[np.float64]
Kept = NDArray[np.bool_]


@dataclass
class Rows:
    """The rows of a table: cells of each used column, and marks of the cells that are known.

    Attributes
    ----------
    n
        Number of rows.
    cells
        Numbers, places among categories, or texts of groups that are to be found, shape (n,).
    known
        Where there is a cell that counts, shape (n,).
    beyond
        How many rows were left out because their person has more than the schema's group size.
    """

    n: int
    cells: dict[str, NDArray[Any]]
    known: dict[str, Kept]
    beyond: int = 0
    _places: dict[Any, NDArray[np.int64]] = field(default_factory=dict)
    _values: dict[tuple[str, str], Vector] = field(default_factory=dict)

    @classmethod
    def read(cls, source: Source, schema: Schema, statistics: Sequence[Statistic]) -> Rows:
        """Read the columns that statistics use; empty lines are not rows.

        Raises
        ------
        ValueError
            If a column is missing, or a cell does not match the schema.
        """
        used = {name for each in statistics for name in each.columns}
        found = {axis.name: axis.column for each in statistics for axis in each.axes if axis.open}
        source.check_columns(sorted(used))
        described = {each.name: each for each in schema.columns if each.name in used}
        columns = (described | found).values()
        numbers = [each.name for each in columns if each.type == "number"]
        frame = rows_of(source.frame(numbers=numbers))
        if not frame.height:
            raise ValueError("table must hold a row, got none.")
        missing, kept = ("", *schema.missing_values), np.ones(frame.height, dtype=bool)
        parts = {each.name: _cells(frame[each.name], each, missing) for each in columns}
        if schema.person is not None:
            people = persons_of(frame[schema.person], missing).rank("dense")
            # The kept rows must not depend on their values.
            number, key = people.to_numpy().astype(np.int64), secrets.token_bytes(32)
            kept = within_group_size(number, schema.group_size, key)
        return cls(
            n=int(kept.sum()),
            cells={name: cells[kept] for name, (cells, _) in parts.items()},
            known={name: known[kept] for name, (_, known) in parts.items()},
            beyond=int((~kept).sum()),
        )

    def with_groups(self, name: str, groups: Sequence[Any]) -> None:
        """Make places among groups that were found of a column's texts."""
        places = {label: place for place, label in enumerate(groups)}
        cells = np.array([places.get(each, -1) for each in self.cells[name]], dtype=np.int64)
        self.known[name] = self.known[name] & (cells >= 0)
        self.cells[name] = np.maximum(cells, 0)

    def counts(self, statistic: Statistic, columns: Sequence[str]) -> Kept:
        """Return which rows count: rows that have the columns, and meet the condition."""
        kept = np.ones(self.n, dtype=bool)
        for name in columns:
            kept &= self.known[name]
        if statistic.where is not None:
            with np.errstate(invalid="ignore"):
                kept &= statistic.where.holds(self.cells)
        return kept

    def places(self, total: Total, sizes: Mapping[str, int]) -> tuple[NDArray[np.int64], int]:
        """Return the cell of each row, negative for none, and how many cells there are.

        ``sizes`` are numbers of groups that were found, by column.
        """
        axes = total.statistic.axes
        where = total.statistic.where
        key = (total.columns, None if where is None else where.text, axes)
        found = self._places.get(key)
        if found is None:
            found = np.zeros(self.n, dtype=np.int64)
            for axis in axes:
                found = found * size_of(axis, sizes) + axis.places(self.cells[axis.name])
            found[~self.counts(total.statistic, total.columns)] = -1
            self._places[key] = found
        return found, math.prod(size_of(axis, sizes) for axis in axes)

    def ranks(self, total: Total, sizes: Mapping[str, int], cuts: Vector) -> Cells:
        """Return between which neighboring cuts of its cell, shape (m, k), each row lies."""
        assert total.statistic.column is not None
        places, count = self.places(total, sizes)
        values = np.clip(self.cells[total.statistic.column.name], *total.statistic.range)
        parts = cuts.shape[1] + 1
        split = np.full(self.n, -1, dtype=np.int64)
        for cell, own in enumerate(cuts):
            here = places == cell
            split[here] = cell * parts + np.searchsorted(own, values[here], side="left")
        return Cells(split, count * parts)

    def cells_of(self, total: Total, sizes: Mapping[str, int]) -> Cells:
        """Return the cell of each row, and its contribution to the cell."""
        places, count = self.places(total, sizes)
        if total.what == "count":
            return Cells(places, count)
        column = total.statistic.column
        assert column is not None
        key = (total.what, column.name)
        if key not in self._values:
            low, high = total.statistic.range
            values = np.clip(self.cells[column.name], low, high)
            if total.what != "plain":
                values = values - (low / 2 + high / 2)
            if total.what == "squares":
                values = 2 * (values / (high / 2 - low / 2)) ** 2 - 1
            self._values[key] = values
        return Cells(places, count, self._values[key])

    def lines(self, statistic: Statistic, sizes: Mapping[str, int]) -> Vector:
        """Return where each row stands for quantiles: cell after cell on one line; NaN for none.

        Cell number c lies within [2 c, 2 c + 1], as the range does.
        """
        assert statistic.column is not None
        low, high = statistic.range
        share = (np.clip(self.cells[statistic.column.name], low, high) - low) / (high - low)
        places, _ = self.places(Total("ranks", statistic), sizes)
        # Points stay inside their cell, also when equal values are spread.
        return np.where(places >= 0, 2.0 * places + (share * (1 - 4e-6) + 2e-6), np.nan)


def _cells(series: Any, column: Column, missing: Sequence[str]) -> tuple[NDArray[Any], Kept]:
    """Return a column's cells, and which of them count."""
    if column.type == "number":
        values, kept = values_of(series, column, missing)
        return values, kept & np.isfinite(values)
    if column.categories:
        codes, kept = codes_of(series, column, missing)
        return codes, kept & (codes >= 0)
    texts = texts_of(series, missing)
    return texts.fill_null("").to_numpy().astype(object), ~texts.is_null().to_numpy()


def size_of(axis: Axis, sizes: Mapping[str, int]) -> int:
    """Return the number of groups along an axis, declared or found."""
    return sizes[axis.name] if axis.open else axis.size
