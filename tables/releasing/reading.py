"""From a table to the cells of the columns that statistics use, row by row.

>>> from dpcal.tables import Column, Schema, Source
>>> age = Column(name="age", type="number", range=(0, 9))
>>> rows = Rows.read(Source({"age": [3.0, 12.0]}), Schema(columns=(age,)), [age])
>>> rows.n, rows.cells["age"].tolist()
(2, [3.0, 12.0])
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.tables import Column, Schema, Source
from dpcal.tables.coding import cells_of, texts_of
from dpcal.tables.records import numbered, rows_of
from dpcal.tables.splitting import within_group_size

__all__ = ["Rows"]

Kept = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
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
    cells: Mapping[str, NDArray[Any]]
    known: Mapping[str, Kept]
    beyond: int = 0

    @classmethod
    def read(cls, source: Source, schema: Schema, columns: Collection[Column]) -> Rows:
        """Read columns; empty lines are not rows.

        Raises
        ------
        ValueError
            If a column is missing, or a cell does not match the schema.
        """
        source.check_columns(sorted(each.name for each in columns))
        numbers = [each.name for each in columns if each.type == "number"]
        frame = rows_of(source.frame(numbers=numbers))
        if not frame.height:
            raise ValueError("table must hold a row, got none.")
        missing, kept = ("", *schema.missing_values), np.ones(frame.height, dtype=bool)
        parts = {each.name: _cells(frame[each.name], each, missing) for each in columns}
        if schema.person is not None:
            people, _ = numbered(frame[schema.person], missing)
            # The kept rows must not depend on their values.
            kept = within_group_size(people, schema.group_size, secrets.token_bytes(32))
        return cls(
            n=int(kept.sum()),
            cells={name: cells[kept] for name, (cells, _) in parts.items()},
            known={name: known[kept] for name, (_, known) in parts.items()},
            beyond=int((~kept).sum()),
        )

    def having(self, columns: Iterable[str]) -> Kept:
        """Return which rows have a cell in each of these columns, shape (n,)."""
        kept = np.ones(self.n, dtype=bool)
        for name in columns:
            kept &= self.known[name]
        return kept


def _cells(series: Any, column: Column, missing: Collection[str]) -> tuple[NDArray[Any], Kept]:
    """Return a column's cells, and which of them count."""
    if column.type == "number" or column.categories:
        cells, kept = cells_of(series, column, missing)
        return cells, kept & (np.isfinite(cells) if column.type == "number" else cells >= 0)
    texts = texts_of(series, missing)
    return texts.fill_null("").to_numpy().astype(object), ~texts.is_null().to_numpy()
