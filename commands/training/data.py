"""From a request to its records: the table is read, coded and split.

Nothing here looks at records to choose anything but what is listed as read from the data.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.commands.checking.progress import Progress
from dpcal.commands.training.cluster import read_on_cluster
from dpcal.commands.training.request import Learning, drafts_one
from dpcal.commands.training.task import Task
from dpcal.tables import REACH, Model, Records, load

__all__ = ["Data", "read"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """A table as a task, and what was done to it.

    Parameters
    ----------
    records
        How the table was read; its parts are in the task.
    task
        The coded records, split.
    read_from_data
        What was read off the records, and so is not covered by a claim.
    key
        Secret of the fingerprint, 32 bytes.
    """

    records: Records
    task: Task
    read_from_data: list[str]
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return self.records.coding.names

    def scaling(self) -> dict[str, Any]:
        """Return what was done to the records, as JSON values."""
        if any(column.range or column.categories for column in self.records.coding.columns):
            features = (
                "numbers are clamped to their range, and [low, high] -> [-4, 4]; categories are "
                "0 or 1 each, or their place in the list -> [-4, 4]; bins, splines and random are "
                "fixed functions of scaled numbers"
            )
        else:
            features = "used as they are; privacy rests on clipping"
        scaling: dict[str, Any] = {"features": features}
        ends = self.records.target.range
        if ends is not None:
            scaling["target"] = f"clamped to {list(ends)}, then to [-4, 4]"
        return {**scaling, "schema": self.records.schema.to_dict()}

    def model(self, w: NDArray[np.float64], about: Mapping[str, Any]) -> Model:
        """Return the model of parameters; a minimax problem appends parameters of its own."""
        network = self.task.about_network
        count, intercept = len(self.features), self.task.intercept and not network
        count = len(w) if network else count
        return Model(
            schema=self.records.schema,
            target=self.records.target,
            labels=self.records.labels,
            weights=w[:count],
            intercept=float(w[count]) if intercept else 0.0,
            about={"loss": self.task.loss, **about},
            network=network,
        )


def read(asked: Learning, progress: Progress, client: Any = None) -> Data:
    """Read the table of a request, here or on the cluster of a client.

    Raises
    ------
    ValueError
        If a cell is not what the schema says, or no record is left to train on.
    """
    progress.stage("reading", unit="row")
    try:
        records, tables, owners = _loaded(asked, progress, client)
    except ValueError as error:
        if asked.described:
            raise
        raise ValueError(f"{error} {drafts_one(asked.source)}") from error
    X_train, y_train, X_test, y_test = tables
    if not len(y_train):
        raise ValueError(f"table must hold a record to train on, got {records.n} in all.")
    target = records.target
    task = asked.task(
        X_train=X_train,
        y_train=y_train,
        X_test=X_test,
        y_test=y_test,
        classes=(0.0, 1.0) if records.labels else None,
        class_weights=target.weights if records.labels else (),
        unit=1.0 if target.range is None else (target.range[1] - target.range[0]) / (2 * REACH),
        owners=owners,
        group_size=asked.schema.group_size,
    )
    found = {
        "number of records": asked.n is None,
        "number of persons": asked.n is None and asked.by_person,
        "numbers of rows read and left out (data.rows, data.left_out)": asked.n is None
        and _leaves_out(records),
        "names of the columns": not asked.described,
        f"classes of {target.name!r}": records.labels_read,
    }
    told = [words for words, was_read in found.items() if was_read]
    return Data(
        records=records,
        task=task,
        read_from_data=[*records.schema.copied(), *told, *task.read_from_data],
    )


def _loaded(asked: Learning, progress: Progress, client: Any) -> tuple[Records, Any, Any]:
    """Return the records of a table, their split parts, and the persons of those to train on."""
    key = _split_key(asked.seed)
    if client is not None:
        records, tables = read_on_cluster(client, asked, key)
        progress.update(records.read)
        return records, tables, None
    records = load(
        asked.source,
        asked.schema,
        target=asked.target,
        key=key,
        classification=asked.loss == "logistic",
        progress=progress.update,
    )
    owners = records.owners(asked.test_fraction) if asked.by_person else None
    return records, records.split(asked.test_fraction), owners


def _leaves_out(records: Records) -> bool:
    """Return whether the schema leaves out rows by what they hold, so that their number tells."""
    rules = {rule for each in records.schema.columns for rule in (each.missing, each.unknown)}
    return "drop-row" in rules


def _split_key(seed: int | None) -> bytes:
    """Return the secret of the coins that split the records: the seed's, if one was given."""
    if seed is None:
        return secrets.token_bytes(32)
    return hashlib.blake2b(f"split {seed}".encode(), digest_size=32).digest()
