r"""From a file and its schema to the records of a task, a part of the file at a time.

>>> import tempfile
>>> from pathlib import Path
>>> from dpcal.tables.schema import Column
>>> path = Path(tempfile.mkdtemp()) / "people.csv"
>>> _ = path.write_text("age,sick\n41,no\n60,yes\n100,yes\n")
>>> schema = Schema(columns=(
...     Column(name="age", type="number", range=(20, 100)),
...     Column(name="sick", type="class", categories=("no", "yes")),
... ))
>>> records = load(Source(path), schema, target="sick", key=b"secret")
>>> records.n, records.labels
(3, ('no', 'yes'))
>>> X_train, y_train, X_test, y_test = records.split(0.0)
>>> X_train.ravel().round(3).tolist(), y_train.tolist(), len(y_test)
([-1.9, 0.0, 4.0], [0.0, 1.0, 1.0], 0)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.tables.coding import (
    BLANK,
    Coding,
    codes_of,
    persons_of,
    scaled,
    texts_of,
    values_of,
)
from dpcal.tables.reading import Source, polars
from dpcal.tables.schema import Column, Schema
from dpcal.tables.splitting import coins_of, coins_of_people, digests, within_group_size

__all__ = ["Records", "load"]

Vector = NDArray[np.float64]


class Records:
    """Coded records with their targets, in parts, and a coin for each.

    Parameters
    ----------
    schema, target
        What they were read by.
    labels
        The classes, in the order of their numbers; empty where the target is a number.
    labels_read
        Whether the classes were read off the records.
    key
        Secret of the coins.

    Attributes
    ----------
    coding
        From cells to features.
    read, left_out, beyond
        How many rows were read, left out as the schema says, and left out because their person has
        more than the schema's ``group_size``.
    reached
        For each number with a range: the lowest and the highest value, shape (2,). Not private.
    """

    def __init__(self, schema: Schema, target: Column, key: bytes, labels: tuple[str, ...]) -> None:
        self.schema, self.target, self.labels = schema, target, labels
        self.labels_read = False
        self.coding = Coding(schema.features(target.name), missing_values=schema.missing_values)
        self.read = self.left_out = self.beyond = 0
        self.reached: dict[str, Vector] = {}
        self._key = key
        self._X: list[Vector] = []
        self._y: list[Vector] = []
        self._digests: list[NDArray[np.uint64]] = []
        self._people: list[Any] = []
        self._missing = ("", *schema.missing_values)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.read - self.left_out - self.beyond

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of rows read, left out, and, of persons, beyond the group size."""
        found = {"rows": self.read, "left_out": self.left_out}
        return found if self.schema.person is None else {**found, "beyond_group_size": self.beyond}

    def add(self, frame: Any, *, classification: bool) -> None:
        """Take in a part of the table; blank lines are no records."""
        pl = polars()
        ends = np.array([frame.height])
        if all(frame[name].null_count() for name in frame.columns):
            blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
            ends = np.r_[np.flatnonzero(blank), ends]
        start = 0
        for end in ends.tolist():
            if end > start:
                self._take_in(frame[start:end], classification)
            start = end + 1

    def _take_in(self, frame: Any, classification: bool) -> None:
        X, features_kept = self.coding.encode(frame)
        series = frame[self.target.name]
        y, kept = (
            self._classes(series)
            if classification
            else values_of(series, self.target, self._missing)
        )
        kept &= features_kept
        if not classification:
            y = scaled(y, self.target)
        self._note_reached(frame)
        if self.schema.person is not None:
            self._people.append(persons_of(frame[self.schema.person], self._missing).filter(kept))
        self.read += frame.height
        self.left_out += int(frame.height - kept.sum())
        X = X if kept.all() else X[kept]
        self._X.append(X)
        self._y.append(y[kept].astype(np.float64))
        if self.schema.person is None:
            # Two values in one bin are two records: which features there are does not move a coin.
            plain = self.coding.linear()
            told = X if plain is self.coding else plain.encode(frame)[0][kept]
            self._digests.append(digests(np.column_stack([told, self._y[-1]]), self._key))

    def _classes(self, series: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the number of each record's class; new classes are taken in if none were given."""
        if self.target.categories:
            return codes_of(series, self.target, self._missing)
        texts = texts_of(series, self._missing)
        gone = texts.is_null().to_numpy()
        if gone.any() and self.target.missing == "refuse":
            raise ValueError(
                f"Every record must have a label, column {self.target.name!r} lacks one."
            )
        self.labels_read = True
        fresh = sorted(set(texts.drop_nulls().unique().to_list()) - set(self.labels))
        self.labels += tuple(fresh)
        if len(self.labels) > 2:
            raise ValueError(_too_many(len(self.labels), self.target.name))
        codes = np.full(len(gone), BLANK)
        for code, label in enumerate(self.labels):
            codes[(texts == label).fill_null(False).to_numpy()] = code
        return codes, ~gone | (self.target.missing == "blank")

    def _note_reached(self, frame: Any) -> None:
        for column in (*self.coding.columns, self.target):
            if column.range is None or frame.height == 0:
                continue
            values = frame[column.name]
            if values.dtype == polars().String:
                values = values.cast(polars().Float64, strict=False)
            ends = np.array([values.min(), values.max()], dtype=float)
            self.note_reached({column.name: ends})

    def note_reached(self, found: Mapping[str, Vector]) -> None:
        """Take in the lowest and the highest values of columns in some of the records."""
        for name, ends in found.items():
            old = self.reached.get(name, ends)
            self.reached[name] = np.array([np.fmin(old[0], ends[0]), np.fmax(old[1], ends[1])])

    def finish(self) -> None:
        """Put classes that were read into sort order, and leave out rows beyond the group size."""
        if self.labels_read:
            if len(self.labels) != 2:
                raise ValueError(_too_many(len(self.labels), self.target.name))
            if self.labels[0] > self.labels[1]:
                self.labels = (self.labels[1], self.labels[0])
                self._y = [1.0 - y for y in self._y]
        if self.schema.person is None:
            self._coins = coins_of(np.concatenate(self._digests), self._key)
            self._kept = np.ones(len(self._coins), dtype=bool)
            self._digests.clear()
            return
        pl = polars()
        people = pl.concat(self._people).rename("person")
        names = people.unique(maintain_order=True)
        places = pl.Series(range(len(names)), dtype=pl.Int64)
        number = people.replace_strict(names, places, return_dtype=pl.Int64).to_numpy()
        self._owners: NDArray[np.int64] = number
        self._kept = within_group_size(number, self.schema.group_size, self._key)
        self.beyond = int((~self._kept).sum())
        self._coins = coins_of_people(names.to_list(), self._key)[number]
        self._people.clear()

    def owners(self, fraction: float) -> NDArray[np.int64]:
        """Return the number of the person of each record that :meth:`split` gives to train on."""
        return self._owners[self._kept & (self._coins >= fraction)]

    def split(self, fraction: float) -> tuple[Vector, Vector, Vector, Vector]:
        """Return X and y to train on, and X and y that are held out; once, for memory's sake.

        Parameters
        ----------
        fraction
            Probability in [0, 1) that a record, or a person, is held out.
        """
        held_out = self._coins < fraction
        sizes = [int((self._kept & side).sum()) for side in (~held_out, held_out)]
        d = len(self.coding.names)
        (X_train, X_test), (y_train, y_test) = (
            [np.empty((size, d)) for size in sizes],
            [np.empty(size) for size in sizes],
        )
        filled, start = [0, 0], 0
        self._X.reverse()
        self._y.reverse()
        while self._X:
            X, y = self._X.pop(), self._y.pop()
            part = slice(start, start + len(y))
            for side, (into, targets) in enumerate(((X_train, y_train), (X_test, y_test))):
                rows = self._kept[part] & (held_out[part] == bool(side))
                end = filled[side] + int(rows.sum())
                into[filled[side] : end], targets[filled[side] : end] = X[rows], y[rows]
                filled[side] = end
            start += len(y)
        return X_train, y_train, X_test, y_test


def _too_many(count: int, name: str) -> str:
    return (
        f"target must hold two classes for --loss logistic, got {count} in column {name!r}; "
        "--loss squared predicts numbers."
    )


def load(
    source: Source,
    schema: Schema,
    *,
    target: str,
    key: bytes,
    classification: bool = True,
) -> Records:
    """Read a table.

    Parameters
    ----------
    source
        The file.
    schema
        Every column of it.
    target
        Name of the column that is predicted.
    key
        Secret of the coins that split the records, 16 to 64 bytes.
    classification
        Whether the target is one of two classes; a number otherwise.

    Raises
    ------
    ValueError
        If a column is not in the schema or not in the file, or a cell is not what it must be.
    """
    column = _target(schema.column(target), classification)
    _check_columns(source, schema)
    numbers = [each.name for each in schema.features(target) if each.type == "number"]
    if not classification:
        numbers.append(target)
    used = [*(each.name for each in schema.features(target)), target]
    if schema.person is not None:
        used.append(schema.person)

    def taken_in(batches: Iterator[Any]) -> Records:
        records = Records(schema, column, key, column.categories if classification else ())
        for batch in batches:
            records.add(batch, classification=classification)
        records.finish()
        return records

    return source.read(taken_in, numbers=numbers, columns=used)


def _target(column: Column, classification: bool) -> Column:
    """Return the target's column as a class or a number; refuse any other column."""
    if column.type in ("person", "drop"):
        raise ValueError(
            f"target must be a class or a number, got column {column.name!r} of type "
            f"{column.type!r}."
        )
    if not classification and column.type != "number":
        raise ValueError(
            f"Every target must be a number for --loss squared, got column {column.name!r} of "
            f"type {column.type!r}."
        )
    if classification and column.categories and len(column.categories) != 2:
        raise ValueError(_too_many(len(column.categories), column.name))
    if column.missing == "impute":
        # A target that is made up would be learned; whoever wants that can write it into the table.
        raise ValueError(
            f"A missing target is refused or left out, got missing = 'impute' for column "
            f"{column.name!r} in the schema."
        )
    if column.type == "category":
        unknown = "refuse" if column.unknown == "ignore" else column.unknown
        return replace(column, type="class", coding="one-hot", unknown=unknown)
    return column


def _check_columns(source: Source, schema: Schema) -> None:
    """Refuse a file with other columns than the schema."""
    known = {column.name for column in schema.columns}
    strange = [name for name in source.columns if name not in known]
    lacking = [
        column.name
        for column in schema.columns
        if column.name not in source.columns and column.type != "drop"
    ]
    if strange:
        raise ValueError(
            f"table must have no column that is not in the schema, got {strange[0]!r}: describe it "
            "there, or drop it with type = 'drop'."
        )
    if lacking:
        raise ValueError(f"table must have a column {lacking[0]!r}, as the schema says.")
