"""From Dask collections to the partitions of one data set, which stay on the workers.

Of the records, this reads their number alone. The example needs the extra ``dask``:

>>> import importlib.util
>>> importlib.util.find_spec("distributed") is None or callable(cut_of)
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpcal.errors import MissingExtra, extra
from dpcal.optim.silos.cluster import check_versions

__all__ = ["Cut", "by_partitions", "client_in_use", "cut_of", "sample_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """One data set, cut into partitions that are futures of a cluster.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    sources
        For each partition the futures of what tables are made of.
    sizes
        Number >= 1 of records of each partition.
    """

    client: Any
    sources: Sequence[tuple[Any, ...]]
    sizes: Sequence[int]

    def ask(self, function: Callable[..., Any]) -> list[Any]:
        """Return ``function(*sources)`` of each partition, computed on the workers."""
        asked = [self.client.submit(function, *each, pure=False) for each in self.sources]
        found: list[Any] = self.client.gather(asked)
        return found


def client_in_use() -> Any:
    """Return the client of the cluster that collections are computed on.

    ValueError is raised if there is none, and MissingExtra without the package.
    """
    try:
        from distributed import get_client
    except ImportError:
        raise MissingExtra(
            f"Dask collections need distributed, which is not installed: {extra('dask')}."
        ) from None
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "a Dask collection needs a cluster that holds its records: make a distributed.Client "
            "first, got none."
        ) from None


def cut_of(*collections: Any) -> tuple[Cut, list[Any]]:
    """Return the data set of Dask collections, and for each a table of no records.

    Parameters
    ----------
    *collections
        Data frames, series and arrays, with the same partitions.

    Raises
    ------
    ValueError
        If there is no client, a worker has another version of this package, one of them is not a
        Dask collection, their partitions differ, a partition has other columns than the whole, or
        there is no record.
    """
    client = client_in_use()
    check_versions(client)
    cuts = [_delayed(each) for each in collections]
    if len({len(cut) for cut in cuts}) > 1:
        raise ValueError(
            f"records and targets must have the same partitions, got {[len(cut) for cut in cuts]}."
        )
    futures = [client.compute(cut) for cut in cuts]
    whole = Cut(client=client, sources=list(zip(*futures, strict=True)), sizes=[])
    empties = [_empty(each) for each in collections]
    columns = [names for _, names in _described(*empties)]
    sizes = [_size(place, found, columns) for place, found in enumerate(whole.ask(_described))]
    kept = [place for place, size in enumerate(sizes) if size]
    if not kept:
        raise ValueError("a Dask collection must hold a record, got none.")
    whole = Cut(
        client=client,
        sources=[whole.sources[place] for place in kept],
        sizes=[sizes[place] for place in kept],
    )
    return whole, empties


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


def _size(place: int, found: Sequence[Any], columns: Sequence[tuple[str, ...]]) -> int:
    """Return the number of records of a partition; refuse other columns, and other numbers."""
    for (_, got), names in zip(found, columns, strict=True):
        if got != names:
            raise ValueError(
                f"partition {place} must have the columns of the whole, {list(names)}, got "
                f"{list(got)}."
            )
    sizes = {size for size, _ in found}
    if len(sizes) > 1:
        raise ValueError(
            f"partition {place} must have a target for each record, got {sorted(sizes)} rows."
        )
    return int(sizes.pop())


def _empty(collection: Any) -> Any:
    """Return a table of no records with the type and columns of a Dask collection."""
    meta = collection._meta
    if hasattr(meta, "columns") or not hasattr(collection, "chunks"):
        return meta
    return np.empty((0, *collection.shape[1:]), dtype=collection.dtype)


def by_partitions(function: Callable[[Any], Any], collection: Any) -> Any:
    """Return ``function(partition)`` of each partition of a Dask collection, as a Dask array.

    Nothing is computed before the array is; a row of it depends on the same row alone.
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
