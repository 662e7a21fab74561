"""What the reports of all trainings have in common: how they begin, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpcal import plot
from dpcal.commands._output import dump
from dpcal.commands.training.task import Task
from dpcal.optim import Result
from dpcal.report import FORMAT, fingerprint, privacy_statement, replacing

__all__ = ["opening", "write"]


def opening(
    result: Result,
    task: Task,
    *,
    outside: Iterable[str],
    name: str,
    features: list[str],
    scaling: Mapping[str, Any],
    key: bytes | None = None,
    read_from_data: Sequence[str] = (),
    counts: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the first entries of ``report.json``: its format, its claim, and its data.

    Parameters
    ----------
    result, task
        A run, and the records that it was trained on.
    outside
        Sentences on what the claim leaves out.
    name
        Of the table.
    features
        Names of its columns, without the target.
    scaling
        What was done to the records, as JSON values.
    key
        Secret of the fingerprint, needed unless the records are public.
    read_from_data
        What was read off the records, beside their number: the claim does not cover it.
    counts
        How many rows were read, and why some of them are no records.
    """
    if read_from_data:
        listed = ", ".join(read_from_data)
        outside = [*outside, f"Read from the data, and not covered by the claim: {listed}."]
    return {
        "format": FORMAT,
        "version": 1,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "privacy": privacy_statement(result, outside=outside),
        "data": {
            "name": name,
            **(counts or {}),
            "training_records": task.objective.n,
            "held_out_records": len(task.y_test),
            "features": len(features),
            "scaling": scaling,
            "read_from_data": list(read_from_data),
            "fingerprint": fingerprint(
                [task.X_train, task.y_train, task.X_test, task.y_test], key=key
            ),
        },
    }


def write(
    folder: Path,
    document: Mapping[str, Any],
    *,
    pictures: Mapping[str, Any],
    secrets: Mapping[str, str] | None = None,
) -> None:
    """Write a report whole or not at all.

    Parameters
    ----------
    folder
        Where it stands; an earlier report there is replaced.
    document
        What ``report.json`` says.
    pictures
        Figures of matplotlib, by file name.
    secrets
        Texts of files that only their owner may read, by file name.
    """
    with replacing(folder) as temporary:
        (temporary / "report.json").write_text(dump(document) + "\n")
        for name, text in (secrets or {}).items():
            secret = temporary / name
            secret.touch(mode=0o600)
            secret.write_text(text)
        for name, figure in pictures.items():
            plot.save(figure, temporary / name)
