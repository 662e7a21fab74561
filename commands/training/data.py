"""From a file to a task: the table is read, scaled by public ranges, and split.

Nothing here looks at records to choose anything: ranges are given, and the split depends on the
number of rows alone.
"""

from __future__ import annotations

import math
import secrets
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.commands.training.tables import REACH, Ranges, Table, read_csv, read_ranges, split
from dpcal.commands.training.task import Task

__all__ = ["Data", "read"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """A table as a task, and how it was scaled.

    Parameters
    ----------
    features
        Names of the columns, without the target.
    task
        The scaled records, split.
    ranges, target_range
        What scaled them, or None where they are used as they are.
    key
        Secret of the fingerprint, 32 bytes.
    """

    features: list[str]
    task: Task
    ranges: Ranges | None
    target_range: Ranges | None
    key: bytes

    def scaling(self) -> dict[str, Any]:
        """Return what was done to the records, as JSON values."""
        scaling: dict[str, Any] = {"features": "used as they are; privacy rests on clipping"}
        if self.ranges is not None:
            scaling["features"] = self.ranges.to_dict(self.features)
        if self.target_range is not None:
            scaling["target"] = self.target_range.to_dict(["target"])
        return scaling


def read(options: Namespace) -> Data:
    """Read the table that ``dpcal train`` was given.

    Parameters
    ----------
    options
        ``csv``, ``target``, ``loss``, ``bounds``, ``target_bounds``, ``test_fraction``, ``l2`` and
        ``intercept`` of the command.

    Raises
    ------
    ValueError
        If the file, a range or the share of held-out records is not what it must be.
    """
    table = read_csv(options.csv)
    y, target_range = _target(options, table)
    features = [name for name in table.columns if name != options.target]
    if not features:
        raise ValueError(f"csv must hold a column beside the target, got only {options.target!r}.")
    X = table.numbers(features)
    ranges = None
    if options.bounds is not None:
        ranges = read_ranges(options.bounds, features)
        X = ranges.scale(X)
    if not 0 <= options.test_fraction < 1:
        raise ValueError(f"test_fraction must be a number in [0, 1), got {options.test_fraction}.")
    training, held_out = split(len(y), math.floor(options.test_fraction * len(y)))
    task = Task(
        loss=options.loss,
        X_train=X[training],
        y_train=y[training],
        X_test=X[held_out],
        y_test=y[held_out],
        l2=options.l2,
        intercept=options.intercept,
        unit=1.0 if target_range is None else _unit(target_range),
    )
    return Data(
        features=features,
        task=task,
        ranges=ranges,
        target_range=target_range,
        key=secrets.token_bytes(32),
    )


def _target(options: Namespace, table: Table) -> tuple[NDArray[Any], Ranges | None]:
    """Labels as text, or numbers scaled by their public range."""
    labels = table.column(options.target)
    if options.loss == "logistic":
        if options.target_bounds is not None:
            raise ValueError("--target-bounds is for --loss squared.")
        return _classes(options, table, labels), None
    y = table.numbers([options.target])
    if options.target_bounds is None:
        return y[:, 0], None
    ranges = read_ranges(options.target_bounds, [options.target], option="target_bounds")
    return np.asarray(ranges.scale(y)[:, 0]), ranges


def _classes(options: Namespace, table: Table, labels: list[str]) -> NDArray[np.str_]:
    """Return two-class labels, or say which they are instead."""
    array = np.array([label.strip() for label in labels])
    missing = [line for line, label in zip(table.lines, array, strict=True) if not label]
    if missing:
        raise ValueError(
            f"Every record must have a label, got none in row {missing[0]}, column "
            f"{options.target!r}."
        )
    classes = np.unique(array)
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:5].tolist())) + (", ..." if len(classes) > 5 else "")
        raise ValueError(
            f"target must hold two classes for --loss logistic, got {len(classes)} in column "
            f"{options.target!r}: {shown}."
        )
    return array


def _unit(ranges: Ranges) -> float:
    """How much of the original target one unit of the scaled one is."""
    return float(ranges.high[0] - ranges.low[0]) / (2 * REACH)
