"""Whose row is it? Where a person has several rows, so many of each person's are kept.

Which of them stay is drawn without a look at what any row holds, and no other person has a say.

>>> kept = rows_kept(["ann", "bo", "ann", "ann", "bo"], 5, 2, seed=0)
>>> [int(kept[rows].sum()) for rows in ([0, 2, 3], [1, 4])]
[2, 2]
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal.accountants import events
from dpcal.calibrate import Query
from dpcal.calibrate.persons import for_group
from dpcal.calibrate.query import CHOICES
from dpcal.errors import UnsupportedEvent
from dpcal.optim.objectives.domains import persons
from dpcal.optim.objectives.placed import is_placed
from dpcal.tables.splitting import within_group_size

__all__ = ["of_persons", "rows_kept", "together", "within_persons"]


def of_persons(query: Query, rows_per_person: int) -> Query:
    """Return a query whose answers are about persons with so many rows.

    Its noise stays. ValueError is raised for a number of rows that is not a whole number >= 1, and
    UnsupportedEvent for choices, which no theorem here prices for a person with several rows.
    """
    most = _validate.count(rows_per_person=rows_per_person)
    if most > 1 and query.kind in CHOICES:
        raise UnsupportedEvent(
            f"rows_per_person must be 1 where {query.name} are learned, got {most}: no theorem "
            "here prices that for a person with several rows. Declare them, or hand in one row a "
            "person."
        )
    return query if most == 1 else replace(query, group_size=most)


def within_persons(
    groups: Any, rows_per_person: int, tables: Sequence[Any], *, seed: int | None = None
) -> tuple[Any, ...]:
    """Return tables of one row a record without the rows of a person that are too many.

    Parameters
    ----------
    groups
        Those of :func:`rows_kept`; when None, all rows are kept.
    rows_per_person
        Number of rows of a person that are kept, >= 1.
    tables
        Arrays of n rows each.
    seed
        For tests and studies alone.
    """
    most = _validate.count(rows_per_person=rows_per_person)
    if groups is None:
        return tuple(tables)
    if is_placed(tables[0]):
        raise ValueError(
            "groups must be None for records in partitions of a cluster, of which none sees all "
            "rows of a person: leave out further rows first, and declare rows_per_person."
        )
    kept = rows_kept(groups, len(tables[0]), most, seed=seed)
    return tuple(table[kept] for table in tables)


def together(released: Sequence[Any]) -> events.DpEvent:
    """Return all runs of an estimator as one event, for the largest person of one of them."""
    sizes = [getattr(each, "group_size", 1) for each in released]
    factors = [-(-max(sizes) // size) for size in sizes]
    return events.ComposedDpEvent(
        [for_group(each.event, k) for each, k in zip(released, factors, strict=True)]
    )


def rows_kept(groups: Any, n: int, most: int, *, seed: int | None = None) -> NDArray[np.bool_]:
    """Return which rows stay so that no person has more than so many, shape (n,).

    Parameters
    ----------
    groups
        Who each row is about, shape (n,): numbers or texts. Two are one person if their texts are
        the same.
    n
        Number of rows.
    most
        Number of rows of a person that stay, >= 1.
    seed
        For tests and studies alone.

    Raises
    ------
    ValueError
        If the shape is another one, or a row does not say whose it is.
    """
    people = persons("groups", groups, n)
    key = secrets.token_bytes(32) if seed is None else str(seed).encode()
    return within_group_size(people, most, key)
