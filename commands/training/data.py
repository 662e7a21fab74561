"""From a file to a task: the table is read by its schema, or by flags, coded and split.

Nothing here looks at records to choose anything but what is listed as read from the data.
"""

from __future__ import annotations

import hashlib
import secrets
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.commands.training.tables import read_ranges
from dpcal.commands.training.task import Task, progress_bar
from dpcal.tables import REACH, Coding, Column, Records, Schema, Source, load

__all__ = ["Data", "prepare", "read", "source_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """A table as a task, and what was done to it.

    Parameters
    ----------
    schema
        What the table was read by.
    target
        Its column that is predicted.
    coding
        From its cells to features.
    labels
        The two classes; empty where the target is a number.
    task
        The coded records, split.
    key
        Secret of the fingerprint, 32 bytes.
    read_from_data
        What was read off the records, and so is not covered by a claim.
    counts
        How many rows were read, left out, and beyond the group size.
    reached
        Lowest and highest value of each number with a range: not private.
    """

    schema: Schema
    target: Column
    coding: Coding
    labels: tuple[str, ...]
    task: Task
    key: bytes
    read_from_data: list[str]
    counts: dict[str, int]
    reached: dict[str, NDArray[np.float64]]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return self.coding.names

    def scaling(self) -> dict[str, Any]:
        """Return what was done to the records, as JSON values."""
        if any(column.range or column.categories for column in self.coding.columns):
            features = (
                "numbers are clamped to their range, and [low, high] -> [-4, 4]; categories are "
                "0 or 1 each, or their place in the list -> [-4, 4]"
            )
        else:
            features = "used as they are; privacy rests on clipping"
        scaling: dict[str, Any] = {"features": features}
        if self.target.range is not None:
            scaling["target"] = f"clamped to {list(self.target.range)}, then to [-4, 4]"
        return {**scaling, "schema": self.schema.to_dict()}


def source_of(options: Namespace, missing_values: tuple[str, ...] = ()) -> Source:
    """Open the table that a command was given.

    Parameters
    ----------
    options
        ``table``, ``separator``, ``encoding`` and ``decimal_comma`` of the command.
    missing_values
        Texts that stand for a missing cell.
    """
    return Source(
        options.table,
        separator=options.separator,
        encoding=options.encoding,
        decimal_comma=options.decimal_comma,
        missing_values=missing_values,
    )


def prepare(options: Namespace) -> None:
    """Check and complete what concerns the table, before a record is read.

    Parameters
    ----------
    options
        Of the command; gets ``given_schema``, and ``n`` from it where the command gave none.

    Raises
    ------
    ValueError
        If the schema or an option is not what it must be.
    """
    options.table = _one_table(options.table, options.csv)
    if not 0 <= options.test_fraction < 1:
        raise ValueError(f"test_fraction must be a number in [0, 1), got {options.test_fraction}.")
    schema = None if options.schema is None else Schema.read(options.schema)
    if schema is not None and options.group_size is not None:
        schema = replace(schema, group_size=options.group_size)
    elif schema is not None and schema.group_size > 1:
        options.group_size = schema.group_size
    elif options.group_size is not None and options.group_size != 1:
        raise ValueError("--group-size needs a --schema with a column of type 'person'.")
    options.given_schema = schema
    if schema is not None and options.n is None:
        options.n = schema.n


def read(options: Namespace) -> Data:
    """Read the table that ``dpcal train`` was given.

    Parameters
    ----------
    options
        Of the command.

    Raises
    ------
    MissingExtra
        If a package that reads tables is not installed; no record is read then.
    ValueError
        If the file, the schema, a range or the share of held-out records is not what it must be.
    """
    classification = options.loss == "logistic"
    given = options.given_schema
    source = source_of(options, () if given is None else given.missing_values)
    if given is None:
        schema = _from_flags(options, source, classification)
    else:
        schema = _from_file(options, given)
    with progress_bar(None, "reading", unit="row") as bar:
        records = load(
            source,
            schema,
            target=options.target,
            key=_split_key(options.seed),
            classification=classification,
            progress=bar.update,
        )
    return _data(options, records, from_file=given is not None)


def _data(options: Namespace, records: Records, *, from_file: bool) -> Data:
    X_train, y_train, X_test, y_test = records.split(options.test_fraction)
    if not len(y_train):
        raise ValueError(f"table must hold a record to train on, got {records.n} in all.")
    target = records.target
    task = Task(
        loss=options.loss,
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        l2=options.l2,
        intercept=options.intercept,
        classes=(0.0, 1.0) if records.labels else None,
        class_weights=target.weights if records.labels else (),
        unit=1.0 if target.range is None else (target.range[1] - target.range[0]) / (2 * REACH),
    )
    told = records.schema.copied()
    if options.n is None:
        told.append("number of records")
    if not from_file:
        told.append("names of the columns")
    if records.labels_read:
        told.append(f"classes of {target.name!r}")
    counts = {"rows": records.read, "left_out": records.left_out}
    if records.schema.person is not None:
        counts["beyond_group_size"] = records.beyond
    return Data(
        schema=records.schema,
        target=target,
        coding=records.coding,
        labels=records.labels,
        task=task,
        key=secrets.token_bytes(32),
        read_from_data=told,
        counts=counts,
        reached=records.reached,
    )


def _split_key(seed: int | None) -> bytes:
    """Return the secret of the coins that split the records: the seed's, if one was given."""
    if seed is None:
        return secrets.token_bytes(32)
    return hashlib.blake2b(f"split {seed}".encode(), digest_size=32).digest()


def _from_file(options: Namespace, schema: Schema) -> Schema:
    """Return the schema that was given, with the target that was chosen."""
    for name in ("bounds", "target_bounds"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} is for tables without --schema.")
    if options.target is None:
        if schema.target is None:
            raise ValueError("--target is needed: the schema names no target.")
        options.target = schema.target
    return _with_classes(options, schema)


def _from_flags(options: Namespace, source: Source, classification: bool) -> Schema:
    """Return a schema of numbers with the ranges that were given, for tables without a schema."""
    if options.target is None:
        raise ValueError("--target is needed: no --schema names it.")
    if classification and options.target_bounds is not None:
        raise ValueError("--target-bounds is for --loss squared.")
    features = [name for name in source.columns if name != options.target]
    ranges: dict[str, tuple[float, float]] = {}
    if options.bounds is not None and features:
        ranges = read_ranges(options.bounds, features)
    if options.target_bounds is not None:
        ranges |= read_ranges(options.target_bounds, [options.target], option="target_bounds")
    columns = tuple(
        Column(name=name, type="number", range=ranges.get(name)) for name in source.columns
    )
    return _with_classes(options, Schema(columns=columns))


def _with_classes(options: Namespace, schema: Schema) -> Schema:
    """Return the schema with the classes of ``--classes`` and their weights, if any were given."""
    for name in ("classes", "class_weights"):
        if getattr(options, name) is not None and options.loss != "logistic":
            raise ValueError(f"--{name.replace('_', '-')} is for --loss logistic.")
    column = schema.column(options.target)
    if options.classes is not None:
        listed = tuple(text.strip() for text in options.classes.split(","))
        column = _class(column, listed)
    if options.class_weights is not None:
        if not column.categories:
            raise ValueError(
                "--class-weights needs the order of the classes: --classes A,B, or a schema with "
                "the target's classes."
            )
        weights = tuple(_weight(text) for text in options.class_weights.split(","))
        known = _class(column, column.categories)
        column = replace(known, weights=weights, copied=tuple({*column.copied} & {"categories"}))
    return schema.with_column(column)


def _class(column: Column, listed: tuple[str, ...]) -> Column:
    """Return the target's column as a class, of these classes."""
    missing = "refuse" if column.missing == "impute" else column.missing
    same = column.type == "class" and column.categories == listed
    return Column(
        name=column.name,
        type="class",
        categories=listed,
        missing=missing,
        weights=column.weights if same else (),
    )


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"--class-weights must be numbers with commas between them, got {text!r}."
        ) from None


def _one_table(path: Path | None, csv: Path | None) -> Path:
    """Return the one table that was named, as an argument or by ``--csv``."""
    if (path is None) == (csv is None):
        got = "none" if path is None else f"{str(path)!r} and --csv {str(csv)!r}"
        raise ValueError(f"One table must be given, as FILE or as --csv FILE, got {got}.")
    table = path if csv is None else csv
    assert table is not None
    return table
