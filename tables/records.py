r"""From a table and its schema to the records of a task, split into trained and held-out ones.

>>> from dpcal.tables.schema import Column
>>> schema = Schema(columns=(
...     Column(name="age", type="number", range=(20, 100)),
...     Column(name="sick", type="class", categories=("no", "yes")),
... ))
>>> source = Source({"age": [41, 60, 100], "sick": ["no", "yes", "yes"]})
>>> records = Records(source, schema, target="sick", key=b"secret", held_out=0.0)
>>> records.X_train.ravel().round(3).tolist(), records.y_train.tolist(), records.labels
([-1.9, 0.0, 4.0], [0.0, 1.0, 1.0], ('no', 'yes'))
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.tables.coding import Coding, cells_of, scaled, texts_of
from dpcal.tables.reading import Source, polars
from dpcal.tables.schema import Column, Schema
from dpcal.tables.splitting import coins_of, coins_of_people, dealt, digests, within_group_size

Vector = NDArray[np.float64]


class Records:
    """Coded records of a table with their targets, some of them held out.

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
    held_out
        Share in [0, 1) of the records, or persons, that are held out.
    told
        Whether the number of rows is published. Then coins are dealt to places in the table, and
        every split holds out the same number of places. Rows that the schema leaves out, and rows
        of persons, can change the number of records held out.
    classification
        Whether the target is one of two classes; a number otherwise.

    Attributes
    ----------
    schema, target
        Schema and target column of the records.
    labels
        The classes, in the order of their numbers; empty where the target is a number.
    labels_read
        Whether the classes were read off the records.
    coding
        From cells to features.
    counts
        Numbers of rows: read, left out by the schema, and, with persons, beyond the group size.
    X_train, y_train, X_test, y_test
        Records to train on and held-out ones, shapes (m, d) and (m,).
    owners
        Number of the person of each record to train on; None where the schema names no person.

    Raises
    ------
    ValueError
        If a column is missing from the schema or from the file, or a cell does not match the
        schema.
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        *,
        target: str,
        key: bytes,
        held_out: float,
        told: bool = True,
        classification: bool = True,
    ) -> None:
        column, features = _target(schema.column(target), classification), schema.features(target)
        _check_columns(source, schema)
        numbers = [each.name for each in features if each.type == "number"]
        numbers += [] if classification else [target]
        used = [
            *(each.name for each in features),
            target,
            *([schema.person] if schema.person else []),
        ]
        missing = ("", *schema.missing_values)
        frame = _rows_of(source.frame(numbers=numbers, columns=used))
        coding = Coding(features, missing_values=schema.missing_values)
        X, kept = coding.encode(frame)
        y, known, labels = _targets(frame[target], column, missing, classification)
        kept &= known
        X, y = (X, y) if kept.all() else (X[kept], y[kept])
        counts = {"rows": frame.height, "left_out": int(frame.height - kept.sum())}
        owners = None
        if schema.person is None and told:
            coins = dealt(frame.height, key)[kept]
        elif schema.person is None:
            # The coins must not depend on the features: two values in one bin are two records.
            plain = coding.linear()
            cells = X if plain is coding else plain.encode(frame)[0][kept]
            coins = coins_of(digests([*cells.T, y], key), key)
        else:
            owners, names = _numbered(frame[schema.person], missing)
            coins = dealt(len(names), key) if told else coins_of_people(names, key)
            owners, coins = owners[kept], coins[owners[kept]]
            few = within_group_size(owners, schema.group_size, key)
            counts["beyond_group_size"] = int((~few).sum())
            X, y, owners, coins = X[few], y[few], owners[few], coins[few]
        train = coins >= held_out
        self.schema, self.target, self.coding, self.counts = schema, column, coding, counts
        self.labels, self.labels_read = labels, labels != column.categories
        self.X_train, self.y_train = X[train], y[train]
        self.X_test, self.y_test = X[~train], y[~train]
        self.owners = None if owners is None else owners[train]

    @property
    def n(self) -> int:
        """Number of records to train on; of persons, where there are owners."""
        return len(self.y_train) if self.owners is None else len(np.unique(self.owners))


def _targets(
    series: Any, column: Column, missing: Collection[str], classification: bool
) -> tuple[Vector, NDArray[np.bool_], tuple[str, ...]]:
    """Return targets, which records are kept, and the classes: read if not given."""
    if not classification:
        values, known = cells_of(series, column, missing)
        return scaled(values, column), known, ()
    texts = texts_of(series, missing).drop_nulls()
    labels = column.categories or tuple(sorted(texts.unique().to_list()))
    if len(labels) != 2:
        raise ValueError(
            f"target must hold two classes for loss='logistic', got {len(labels)} in column "
            f"{column.name!r}; loss='squared' predicts numbers."
        )
    if not column.categories:
        rule = column.missing
        column = Column(name=column.name, type="class", categories=labels, missing=rule)
    codes, known = cells_of(series, column, missing)
    return codes.astype(np.float64), known, labels


def _rows_of(frame: Any) -> Any:
    """Return a data frame without empty lines, which are not records."""
    return frame.filter(~polars().all_horizontal(polars().all().is_null()))


def _numbered(series: Any, missing: Collection[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of each row's person, and the names, in order of their first rows."""
    pl, people = polars(), texts_of(series, missing)
    if people.null_count():
        raise ValueError(f"Every row must name its person, column {series.name!r} lacks one.")
    names = people.unique(maintain_order=True)
    places = pl.Series(range(len(names)), dtype=pl.Int64)
    number = people.replace_strict(names, places, return_dtype=pl.Int64).to_numpy()
    return number, names.to_list()


def _target(column: Column, classification: bool) -> Column:
    """Return the target's column as a class or a number; refuse any other column."""
    if column.type in ("person", "drop"):
        raise ValueError(
            f"target must be a class or a number, got column {column.name!r} of type "
            f"{column.type!r}."
        )
    if not classification and column.type != "number":
        raise ValueError(
            f"Every target must be a number for loss='squared', got column {column.name!r} of "
            f"type {column.type!r}."
        )
    if column.missing == "impute":
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
    if strange:
        raise ValueError(
            f"table must have no column that is not in the schema, got {strange[0]!r}: describe it "
            "there, or drop it with type = 'drop'."
        )
    source.check_columns(each.name for each in schema.columns if each.type != "drop")


class Rows:
    """The rows of a table: cells of some columns, and marks of the cells that are known.

    Empty lines are not rows.

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

    Raises
    ------
    ValueError
        If a column is missing, or a cell does not match the schema.
    """

    def __init__(self, source: Source, schema: Schema, columns: Collection[Column]) -> None:
        source.check_columns(sorted(each.name for each in columns))
        numbers = [each.name for each in columns if each.type == "number"]
        frame = _rows_of(source.frame(numbers=numbers))
        if not frame.height:
            raise ValueError("table must hold a row, got none.")
        missing, kept = ("", *schema.missing_values), np.ones(frame.height, dtype=bool)
        parts = {each.name: _cells(frame[each.name], each, missing) for each in columns}
        if schema.person is not None:
            people, _ = _numbered(frame[schema.person], missing)
            # The kept rows must not depend on their values.
            kept = within_group_size(people, schema.group_size, secrets.token_bytes(32))
        self.n, self.beyond = int(kept.sum()), int((~kept).sum())
        self.cells = {name: cells[kept] for name, (cells, _) in parts.items()}
        self.known = {name: known[kept] for name, (_, known) in parts.items()}


def _cells(
    series: Any, column: Column, missing: Collection[str]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a column's cells, and which of them count."""
    if column.type == "number" or column.categories:
        cells, kept = cells_of(series, column, missing)
        return cells, kept & (np.isfinite(cells) if column.type == "number" else cells >= 0)
    texts = texts_of(series, missing)
    return texts.fill_null("").to_numpy().astype(object), ~texts.is_null().to_numpy()
