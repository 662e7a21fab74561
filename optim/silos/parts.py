"""Tables of one row a record, in partitions on the workers of a Dask cluster.

Estimators and ``dpcal train`` compute with them as with arrays, by
:mod:`dpcal.optim.objectives.placed`. The rows stay on the workers: functions of them are futures.
This reads only the number of records of a Dask collection. The example needs the extra ``dask``:

>>> import importlib.util
>>> importlib.util.find_spec("distributed") is None or callable(Parts.of)
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.errors import needing, reason_of
from dpcal.optim.objectives.arrays import digest_of
from dpcal.optim.objectives.domains import counted, counted_together

Make = Callable[..., Any]


class Parts:
    """A table of one row a record, with rows in partitions.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    futures, sizes
        The rows of each partition, and their number >= 1.
    empty
        A table of no records, of the same columns.
    """

    def __init__(
        self, client: Any, futures: Sequence[Any], sizes: Sequence[int], empty: Any
    ) -> None:
        self.client, self._futures, self._sizes = client, futures, sizes
        self.empty = empty

    @classmethod
    def of(cls, *collections: Any) -> list[Parts]:
        """Return Dask collections, data frames, series or arrays, as tables.

        Raises
        ------
        ValueError
            If there is no client, no worker, or a worker with another version of this package; if
            one of them is not a Dask collection, their partitions differ, a partition has other
            columns than the whole, or there is no record.
        """
        client = _client_in_use()
        cuts = [_delayed(each) for each in collections]
        if len({len(cut) for cut in cuts}) > 1:
            raise ValueError(
                "records and targets must have the same partitions, got "
                f"{[len(cut) for cut in cuts]}."
            )
        futures = [client.compute(cut) for cut in cuts]
        told = client.gather(
            [client.submit(_described, *each, pure=False) for each in zip(*futures, strict=True)]
        )
        empties = [_empty(each) for each in collections]
        columns = [names for _, names in _described(*empties)]
        for place, found in enumerate(told):
            for (_, got), names in zip(found, columns, strict=True):
                if got != names:
                    raise ValueError(
                        f"partition {place} must have the columns of the whole, {list(names)}, got "
                        f"{list(got)}."
                    )
            if len(rows := {size for size, _ in found}) > 1:
                raise ValueError(
                    f"partition {place} must have a target for each record, got {sorted(rows)} "
                    "rows."
                )
        sizes = [found[0][0] for found in told]
        kept = [place for place, size in enumerate(sizes) if size]
        if not kept:
            raise ValueError("a Dask collection must hold a record, got none.")
        return [
            cls(client, [each[place] for place in kept], [sizes[place] for place in kept], empty)
            for each, empty in zip(futures, empties, strict=True)
        ]

    def __len__(self) -> int:
        return sum(self._sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole table."""
        return (len(self), *self.empty.shape[1:])

    def mapped(self, function: Make, *others: Parts) -> list[Any]:
        """Return futures of ``function(self, *others)`` of each partition, on the workers."""
        tables = [table._futures for table in (self, *others)]
        futures: list[Any] = self.client.map(partial(_quietly, function), *tables, pure=False)
        return futures

    def applied(self, function: Make, *others: Parts) -> Parts:
        """Return the table ``function(self, *others)``; its rows depend only on the same rows."""
        empty = _quietly(function, self.empty, *(other.empty for other in others))
        return Parts(self.client, self.mapped(function, *others), self._sizes, empty)

    def counted(
        self, column: int | None = None, known: Parts | None = None
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Return different labels in sort order, and how many known records have each."""
        count = partial(_counted, column)
        return counted_together(self.client.gather(self.mapped(count, *[known] if known else [])))

    def column(self, number: int) -> NDArray[Any]:
        """Return a column of all records, 8 bytes each, in memory here."""
        return np.concatenate(self.client.gather(self.mapped(partial(_column, number))))

    def digest(self) -> bytes:
        """Return bytes that depend on all records; a secret, like the records."""
        found = self.client.gather(self.mapped(_digest))
        return hashlib.blake2b(b"".join(found), digest_size=32).digest()


@np.errstate(all="ignore")
def _quietly(function: Make, *tables: Any) -> Any:
    return function(*tables)


def _column(number: int, rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows[:, number])


def _counted(
    column: int | None, rows: NDArray[Any], known: Any = slice(None)
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    return counted((rows if column is None else rows[:, column])[known])


def _digest(rows: NDArray[Any]) -> bytes:
    return digest_of(rows if rows.dtype.kind in "biuf" else rows.astype(str))


def _client_in_use() -> Any:
    """Return the client of the cluster that collections are computed on.

    ValueError is raised if there is none, or its cluster has no workers, does not answer, or has a
    worker with another version of this package; and MissingExtra without the package.
    """
    with needing("dask"):
        from distributed import get_client
    try:
        client = get_client()
    except ValueError:
        raise ValueError(
            "a Dask collection needs a cluster that holds its records: make a distributed.Client "
            "first, got none."
        ) from None
    here = version("dpcal")
    try:
        found = client.run(version, "dpcal")
    except Exception as error:
        raise ValueError(
            f"the cluster must have workers that answer and have dpcal {here}, got "
            f"{type(error).__name__}: {reason_of(error)}."
        ) from error
    if not found:
        raise ValueError("the cluster must have workers, got one with none.")
    for worker, there in sorted(found.items()):
        if there != here:
            raise ValueError(f"workers must have dpcal {here}, as here, got {there} on {worker}.")
    return client


def _delayed(collection: Any) -> list[Any]:
    """Return the partitions of a Dask collection, rows that belong together in one."""
    if not hasattr(collection, "to_delayed"):
        raise ValueError(
            "records and targets must be Dask data frames, series or arrays together, got a "
            f"{type(collection).__name__}."
        )
    if len(getattr(collection, "chunks", ())) > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))


def _described(*tables: Any) -> list[tuple[int, tuple[str, ...]]]:
    return [(len(table), tuple(map(str, getattr(table, "columns", ())))) for table in tables]


def _empty(collection: Any) -> Any:
    """Return a table of no records with the type and columns of a Dask collection."""
    meta = collection._meta
    if hasattr(meta, "columns") or not hasattr(collection, "chunks"):
        return meta
    return np.empty((0, *collection.shape[1:]), dtype=collection.dtype)


def by_partitions(function: Callable[[Any], Any], collection: Any) -> Any:
    """Return ``function(partition)`` of each partition of a Dask collection, as a Dask array.

    Nothing is computed until you compute the array; a row of it depends only on the same row.
    """
    from dask import array, delayed

    like = np.asarray(function(sample_of(collection)))
    applied = delayed(partial(_filled, function, like[:0]), pure=False)
    shape = (np.nan, *like.shape[1:])
    parts = [
        array.from_delayed(applied(part), shape=shape, dtype=like.dtype)
        for part in _delayed(collection)
    ]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def _filled(function: Callable[[Any], Any], empty: Any, part: Any) -> Any:
    return np.asarray(function(part)) if len(part) else empty


def sample_of(collection: Any) -> Any:
    """Return some made-up rows with the columns of a Dask collection."""
    made = getattr(collection, "_meta_nonempty", None)
    return np.zeros((2, *collection.shape[1:]), dtype=collection.dtype) if made is None else made
