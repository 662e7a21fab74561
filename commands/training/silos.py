"""``--silos COLUMN``: one table, whose records belong to silos that are each private by themselves.

The categories of a column, which its schema lists in public, are the silos. The column stays a
feature: an indicator that is constant in a silo is an intercept of the silo's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.commands.training.task import Task
from dpcal.optim.registry import Optimizer
from dpcal.tables import Schema

__all__ = ["SiloTask", "check_silos"]

# The optimizers that average the answers of silos.
_OVER_SILOS = ("distributed_psgd",)


@dataclass(frozen=True, kw_only=True, eq=False)
class SiloTask(Task):
    """Records of several silos: what is scored is the model on all of them.

    ``column`` names the silos, whose names are ``names``; ``rows`` are the training records of
    each.
    """

    column: str
    names: tuple[str, ...]
    rows: tuple[NDArray[np.intp], ...]

    @classmethod
    def of_column(
        cls, column: str, names: tuple[str, ...], features: list[str], given: Mapping[str, Any]
    ) -> Self:
        """Return the task of coded and split records, by the categories of a column.

        Raises
        ------
        ValueError
            If a silo has no training record.
        """
        places = [features.index(f"{column}={name}") for name in names]
        numbers = given["X_train"][:, places].argmax(axis=1)
        rows = tuple(np.flatnonzero(numbers == place) for place in range(len(names)))
        for name, own in zip(names, rows, strict=True):
            if not len(own):
                raise ValueError(
                    f"--silos: every silo must hold a training record, {name!r} has none."
                )
        return cls(column=column, names=names, rows=rows, **given)

    @property
    def n(self) -> int:
        """Number of training records of the smallest silo, which a plan is made for."""
        return min(map(len, self.rows))

    @property
    def sizes(self) -> dict[str, Any]:
        """Sizes of the records that a plan builder takes, beside their number."""
        return {**super().sizes, "silos": len(self.names)}

    @property
    def asked(self) -> Any:
        """The objective of each category, which is a silo."""
        return [self.of(self.X_train[rows], self.y_train[rows]) for rows in self.rows]

    @property
    def options(self) -> dict[str, Any]:
        """Each row of a table is a record, and belongs to one silo: two may well look alike."""
        return {"overlap": "ignore"}

    @property
    def read_from_data(self) -> list[str]:
        """Names of what was read off the records for the silos."""
        return [f"number of records of each {self.column!r}"]

    def told(self) -> dict[str, Any]:
        """Return the section of a report on the silos, whose sizes are public."""
        sizes = dict(zip(self.names, map(len, self.rows), strict=True))
        return {"silos": {"column": self.column, "training_records": sizes}}


def check_silos(name: str, row: Optimizer, schema: Schema | None, *, book: Path | None) -> None:
    """Refuse ``--silos`` where it cannot be answered, before a record is read.

    Raises
    ------
    ValueError
        If the optimizer knows no silos, the column is no category of a schema, or a book is kept.
    """
    if row.name not in _OVER_SILOS:
        raise ValueError(f"--silos is for --optimizer {_OVER_SILOS[0]}, got {row.name}.")
    if book is not None:
        raise ValueError("--budget is for one data set, and with --silos each silo has its own.")
    if schema is None:
        raise ValueError("--silos needs a --schema, which lists the silos in public.")
    column = schema.column(name)
    if column.type != "category" or column.coding != "one-hot":
        raise ValueError(
            f"--silos must be a column of type 'category' with coding 'one-hot', got "
            f"{column.name!r} of type {column.type!r}."
        )
    if column.unknown == "ignore":
        raise ValueError(
            f"--silos needs a silo for each record, and the schema ignores what is no category of "
            f"{column.name!r}: give unknown = 'refuse' or 'drop-row'."
        )
