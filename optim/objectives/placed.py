"""Tables of records in memory or in partitions of a cluster: one way to compute with both.

A table of one row a record is an array, or :class:`dpcal.optim.silos.parts.Parts`, which computes
where its records are. A row of a result must depend only on the same row of the tables.

>>> from functools import partial
>>> import numpy as np
>>> by_row(np.negative, np.array([1.0, 2.0])).tolist()
[-1.0, -2.0]
>>> sums = objective_of(partial(vectors_of, lambda w, rows: 2 * rows, 1), np.ones((3, 1)))
>>> float(sums.clipped_sum(np.zeros(1), np.array([0, 2]), 5.0)[0])
4.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcal._internal import annexes
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.custom import FromGradients


def is_placed(table: Any) -> bool:
    """Return whether a table lies in partitions of a cluster."""
    return hasattr(table, "applied")


def opened(*tables: Any) -> tuple[Any, ...]:
    """Return tables as they are; Dask collections as one data set in partitions."""
    if any(hasattr(table, "__dask_graph__") for table in tables):
        return tuple(annexes.Parts.of(*tables))
    return tables


def by_row(function: Callable[..., Any], *tables: Any) -> Any:
    """Return ``function(*tables)``, computed where the tables are."""
    first = tables[0]
    return first.applied(function, *tables[1:]) if is_placed(first) else function(*tables)


def objective_of(make: Callable[..., Objective], *tables: Any) -> Objective:
    """Return the objective ``make(*tables)``; its records stay where the tables are."""
    if not is_placed(tables[0]):
        return make(*tables)
    # Rows of one table are different records, also if they look alike.
    partitioned: Objective = annexes.Partitioned(make, *tables, overlap="ignore")
    return partitioned


def sample_of(table: Any) -> Any:
    """Return a table, or a table of no records in place of one in partitions."""
    return table.empty if is_placed(table) else table


def as_they_are(w: Any, rows: Any) -> Any:
    """Return rows that are the vectors of :func:`vectors_of` themselves."""
    return rows


def vectors_of(
    vectors: Callable[..., Any], dimension: int, *tables: Any, block: int | None = None
) -> FromGradients:
    """Return the objective of one vector a record.

    Parameters
    ----------
    vectors
        ``vectors(w, *rows)`` returns the vectors of some records, shape (m, dimension), at
        parameters of shape (dimension,).
    dimension
        Number of entries of a vector.
    *tables
        Tables of n rows each; ``vectors`` is given some of their rows.
    block
        See :class:`dpcal.optim.FromGradients`.
    """
    made = FromGradients(
        lambda w, rows: vectors(w, *(table[rows] for table in tables)),
        n=len(tables[0]),
        dimension=dimension,
        block=block,
    )
    made.checked = True  # tested with this package
    return made
