"""``--cluster ADDRESS``: a folder of parquet files, read and coded by the workers of a cluster.

Client and workers see the folder under one path. Rows stay on the workers; of a file, its numbers
of rows reach the client, and the ends of what was read, for warnings on the screen alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpcal import _annexes
from dpcal.commands.training.request import Learning
from dpcal.errors import MissingExtra, extra, reason_of
from dpcal.tables import Column, Records, Schema, Source, load

__all__ = ["connected", "read_on_cluster"]

# Seconds for a scheduler to answer.
_PATIENCE = 10.0


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield a client of the cluster at an address; None without one.

    ValueError is raised if no scheduler answers there.
    """
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra(
            f"--cluster needs distributed, which is not installed: {extra('dask')}."
        ) from None
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--cluster must be the address of a Dask scheduler that answers, got {address!r}: "
            f"{reason_of(error)}."
        ) from error
    with client:
        _annexes.check_versions(client)
        yield client


def read_on_cluster(
    client: Any, asked: Learning, key: bytes
) -> tuple[Records, tuple[Any, Any, Any, Any]]:
    """Return how a folder was read, and X and y to train on, and X and y that are held out.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    asked
        What is learned, of the files of a folder.
    key
        Secret of the coins that split the records. Equal rows of different files share their coins.

    Raises
    ------
    ValueError
        If a file cannot be read, has other columns than the schema, or a cell is not what the
        schema says.
    """
    code = partial(
        _coded,
        schema=asked.schema,
        target=asked.target,
        key=key,
        classification=asked.loss == "logistic",
        fraction=asked.test_fraction,
    )
    files = [client.submit(code, path, pure=False) for path in asked.files]
    told = client.gather([client.submit(_told, each, pure=False) for each in files])
    column: Column = told[0]["target"]
    records = Records(asked.schema, column, key, told[0]["labels"])
    records.read = sum(each["read"] for each in told)
    records.left_out = sum(each["left_out"] for each in told)
    for each in told:
        records.note_reached(each["reached"])
    width = len(records.coding.names)
    tables: list[Any] = []
    for side in (0, 1):
        sizes = [each["sizes"][side] for each in told]
        kept = [j for j, size in enumerate(sizes) if size]
        for place, empty in enumerate((np.empty((0, width)), np.empty(0))):
            rows = [client.submit(_part, 2 * side + place, files[j], pure=False) for j in kept]
            tables.append(_annexes.Parts(client, rows, [sizes[j] for j in kept], empty))
    X_train, y_train, X_test, y_test = tables
    return records, (X_train, y_train, X_test, y_test)


def _coded(
    path: Path, *, schema: Schema, target: str, key: bytes, classification: bool, fraction: float
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a file's coded and split records, and what is told of them."""
    try:
        source = Source(path, missing_values=schema.missing_values)
        records = load(source, schema, target=target, key=key, classification=classification)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    tables = records.split(fraction)
    told = {
        "target": records.target,
        "labels": records.labels,
        "read": records.read,
        "left_out": records.left_out,
        "reached": records.reached,
        "sizes": (len(tables[1]), len(tables[3])),
    }
    return tables, told


def _told(coded: tuple[Any, Mapping[str, Any]]) -> Mapping[str, Any]:
    return coded[1]


def _part(place: int, coded: tuple[tuple[Any, ...], Any]) -> Any:
    return coded[0][place]
