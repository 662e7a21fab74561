"""Coding of a record as numbers, from the record's own cells and the schema only.

>>> from dpcal.tables.schema import Column
>>> coding = Coding([
...     Column(name="age", type="number", range=(0, 120), missing="impute", impute=60),
...     Column(name="blood", type="category", categories=("A", "B", "0"), unknown="ignore"),
... ])
>>> coding.numbers({"age": [150.0, None], "blood": ["B", "?"]}).tolist()
[[4.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
>>> coding.square_bound  # of any record's squared norm: 4^2 for the age, 1 for one category
17.0
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.tables.bases import bins, hats, waves
from dpcal.tables.reading import polars, table_of
from dpcal.tables.schema import CURVES, Column

BLANK = -2

Vector = NDArray[np.float64]
Kept = NDArray[np.bool_]

# A range spans about eight standard deviations; default learning rates suppose unit features.
REACH = 4.0

# Functions of a column on [0, 1], and their number. Each row of values has norm 1 at most.
PIECES: Mapping[str, tuple[Callable[[Vector, int], Vector], int]] = {
    "bins": (bins, 16),
    "splines": (hats, 8),
}
WAVES = 128
PIECES_NORM, WAVES_NORM = REACH / 2, REACH


class Coding:
    """The map from cells to features.

    Parameters
    ----------
    columns
        Numbers and categories. Columns of other types are left out.
    missing_values
        Texts that stand for a missing cell, in addition to the empty text.

    Attributes
    ----------
    columns
        Columns that are coded.
    names
        Names of the features: the column's name, "column=category" for a one-hot coded category,
        "column bins 3" for a curve, or "cosine 3" and "sine 3" for random features, which are last.
    """

    def __init__(self, columns: Iterable[Column], *, missing_values: Collection[str] = ()) -> None:
        self.columns = tuple(each for each in columns if each.type in ("number", "category"))
        self._missing = ("", *missing_values)
        self.names: list[str] = []
        self._places: list[slice] = []
        for column in self.columns:
            start = len(self.names)
            if _one_hot(column):
                self.names += [f"{column.name}={category}" for category in column.categories]
            elif column.coding in PIECES:
                count = PIECES[column.coding][1]
                self.names += [f"{column.name} {column.coding} {place}" for place in range(count)]
            elif column.coding != "random":
                self.names.append(column.name)
            self._places.append(slice(start, len(self.names)))
        self._waving = sum(column.coding == "random" for column in self.columns)
        if self._waving:
            self.names += [f"{part} {i}" for part in ("cosine", "sine") for i in range(WAVES)]
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"schema must have columns whose features have distinct names, got {twice[0]!r} of "
                "two columns: rename one."
            )

    @property
    def square_bound(self) -> float:
        """Bound on the squared norm of any record; infinite where a number has no range."""
        return math.fsum(map(_square_bound, self.columns)) + bool(self._waving) * WAVES_NORM**2

    @property
    def typical_square(self) -> float | None:
        """A public guess at the squared norm of most records; None where a number has no range.

        A range spans eight standard deviations, so that a scaled number has unit size.
        """
        if math.isinf(self.square_bound):
            return None
        sizes = {"number": 1.0, "category": REACH**2 / 3}
        found = [
            _square_bound(each) if _one_hot(each) or each.coding in CURVES else sizes[each.type]
            for each in self.columns
        ]
        return math.fsum(found) + bool(self._waving) * WAVES_NORM**2

    def linear(self) -> Coding:
        """Return the coding with each number as one feature, which separates more records."""
        plain = [
            replace(column, coding="one-hot") if column.coding in CURVES else column
            for column in self.columns
        ]
        return self if plain == [*self.columns] else Coding(plain, missing_values=self._missing)

    def pieces(self) -> list[tuple[Column, slice]]:
        """Return the columns with bins or splines, and the places of their features."""
        pairs = zip(self.columns, self._places, strict=True)
        return [(column, place) for column, place in pairs if column.coding in PIECES]

    def numbers(self, table: Any) -> Vector:
        """Return the features of a table's records, shape (m, d).

        Parameters
        ----------
        table
            A data frame (polars, pandas), a mapping from names to columns, a list of rows as
            mappings, or the path of a file. Columns that the coding does not use are ignored.

        Raises
        ------
        ValueError
            If a column is missing, or a cell does not match the schema.
        """
        X, kept = self.encode(table_of(table))
        if not kept.all():
            raise ValueError("Every record must have features, the schema leaves out some.")
        return X

    def encode(self, frame: Any) -> tuple[Vector, Kept]:
        """Return the features of the records in a polars data frame, and which are kept.

        The features have shape (m, d). They are finite, also for records that the schema leaves
        out. A record that the schema ignores has NaN in the column that is the reason.

        Parameters
        ----------
        frame
            Data frame with all of the columns.

        Raises
        ------
        ValueError
            If a column is missing, or a cell does not match the schema.
        """
        X = np.zeros((frame.height, len(self.names)))
        kept = np.ones(frame.height, dtype=bool)
        waving = []
        for column, place in zip(self.columns, self._places, strict=True):
            if column.name not in frame.columns:
                raise ValueError(f"table must have a column {column.name!r}, as in the schema.")
            part = X[:, place]
            cells, ok = cells_of(frame[column.name], column, self._missing)
            if column.type == "number":
                values = scaled(cells, column)
                if column.coding == "random":
                    waving.append(values / REACH)
                else:
                    part[:] = pieces(values, column)
            else:
                if _one_hot(column):
                    known = np.flatnonzero(cells >= 0)
                    part[known, cells[known]] = 1.0
                else:
                    step = 2 * REACH / (len(column.categories) - 1)
                    part[:, 0] = np.maximum(cells, 0) * step - REACH
                part[cells == BLANK] = np.nan
            kept &= ok
        if waving:
            made = waves(np.column_stack(waving), WAVES, gamma=4 / len(waving))
            X[:, -2 * WAVES :] = WAVES_NORM * made
        return X, kept


def _one_hot(column: Column) -> bool:
    return column.type == "category" and column.coding == "one-hot"


def _square_bound(column: Column) -> float:
    """Return a bound on the squared norm of a column's own features."""
    if column.coding in CURVES:
        return PIECES_NORM**2 if column.coding in PIECES else 0.0
    return 1.0 if _one_hot(column) else REACH**2 if column.range or column.categories else math.inf


def pieces(values: Vector, column: Column) -> Vector:
    """Return the features of a number that :func:`scaled` made, shape (m, features)."""
    if column.coding not in PIECES:
        return values[:, np.newaxis]
    functions, count = PIECES[column.coding]
    return PIECES_NORM * functions((values / REACH + 1) / 2, count)


def scaled(values: Vector, column: Column) -> Vector:
    """Return numbers clamped to the column's range and scaled to [-4, 4]; as they are without."""
    if column.range is None:
        return values
    low, high = column.range
    # The difference of two large ends could overflow.
    place = (np.clip(values, low, high) / 2 - low / 2) / (high / 2 - low / 2)
    return np.asarray(np.clip(REACH * (2 * place - 1), -REACH, REACH))


def unscaled(values: Vector, column: Column) -> Vector:
    """Return the numbers that :func:`scaled` maps to ``values``."""
    if column.range is None:
        return values
    low, high = column.range
    return np.asarray(low + (values / REACH + 1) / 2 * (high - low))


def texts_of(series: Any, missing: Collection[str]) -> Any:
    """Return a column as stripped texts, with null for a missing cell."""
    pl = polars()
    text = pl.col(series.name).cast(pl.String).str.strip_chars()
    kept = pl.when(text.is_in(list(missing))).then(None).otherwise(text).alias(series.name)
    return series.to_frame().select(kept).to_series()


def cells_of(series: Any, column: Column, missing: Collection[str]) -> tuple[NDArray[Any], Kept]:
    """Return a column's numbers or places among categories, and which records are kept.

    A missing number is replaced. The place is -1 for a cell without a category. In an ignored
    record, the number is NaN and the place is ``BLANK``.

    Raises
    ------
    ValueError
        Where a cell is neither a finite number nor missing, or has no category, or is missing, and
        the schema refuses it.
    """
    pl, number = polars(), column.type == "number"
    texts = series if number and series.dtype != pl.String else texts_of(series, missing)
    empty = texts.is_null().to_numpy()
    if number:
        cells = texts.cast(pl.Float64, strict=False).to_numpy().astype(np.float64, copy=False)
        if np.isfinite(cells).all():
            return cells, np.ones(len(cells), dtype=bool)
        gone = empty if texts.dtype == pl.String else np.isnan(cells)
        strange, unknown = ~(np.isfinite(cells) | gone), column.missing
        unknown = "blank" if unknown == "blank" else "refuse"
        values: dict[str, Any] = {"impute": column.impute, "blank": np.nan, "drop-row": 0.0}
    else:
        places = pl.Series(range(len(column.categories)), dtype=pl.Int64)
        names = pl.Series(column.categories, dtype=pl.String)
        found = texts.replace_strict(names, places, default=-1, return_dtype=pl.Int64)
        cells = found.fill_null(-1).to_numpy().astype(np.int64)
        gone, strange, unknown = empty, (cells < 0) & ~empty, column.unknown
        values = {"blank": BLANK}
        if column.missing == "impute":
            values["impute"] = column.categories.index(str(column.impute))
    kept = np.ones(len(cells), dtype=bool)
    for rule, wrong in ((column.missing, gone), (unknown, strange)):
        if rule == "refuse" and wrong.any():
            raise _refused(column, empty=bool(empty[wrong][0]))
        cells = np.where(wrong, values.get(rule, -1), cells)
        kept &= ~(wrong & (rule == "drop-row"))
    return cells, kept


def _refused(column: Column, *, empty: bool) -> ValueError:
    """Return the error about a cell, without the cell: it is a record's."""
    if column.type == "class" and empty:
        return ValueError(f"Every record must have a label, column {column.name!r} lacks one.")
    must, got, rule = "a finite number", "another value", "missing" if empty else ""
    if column.type != "number":
        noun = "classes" if column.type == "class" else "categories"
        must, got = f"one of its {len(column.categories)} declared {noun}", "another"
        rule = rule or "unknown"
    allows = f"; {rule} = in the schema allows it" if rule else ""
    got = "an empty one" if empty else got
    return ValueError(f"Every cell of column {column.name!r} must be {must}, got {got}{allows}.")
