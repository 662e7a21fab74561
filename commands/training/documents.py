"""What the reports of all trainings have in common: how they begin, and how they are written."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from dpcal import plot
from dpcal.accountants import events, true_positive_rate
from dpcal.commands._output import dump
from dpcal.commands.training.task import Task
from dpcal.errors import DrawsCannotTell, UnsupportedEvent
from dpcal.optim import Result
from dpcal.report import (
    FORMAT,
    composed_epsilon,
    fingerprint,
    privacy_statement,
    replace_file,
    replacing,
    statement_page,
)

__all__ = ["add_pages", "claim_of", "opening", "risk", "write", "write_secret"]


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
    unit: str | None = None,
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
    unit
        What the claim is about, where the plan does not say it.
    """
    if read_from_data:
        listed = ", ".join(read_from_data)
        outside = [*outside, f"Read from the data, and not covered by the claim: {listed}."]
    return {
        "format": FORMAT,
        "version": 1,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "privacy": privacy_statement(result, outside=outside, unit=unit),
        "data": {
            "name": name,
            **_sizes(result, task, counts or {}),
            "features": len(features),
            "scaling": scaling,
            "read_from_data": list(read_from_data),
            "fingerprint": fingerprint(
                [task.X_train, task.y_train, task.X_test, task.y_test], key=key
            ),
        },
    }


def _sizes(result: Result, task: Task, counts: Mapping[str, int]) -> dict[str, int]:
    """Return how many records there are, unless a public number stands for theirs."""
    if result.plan.public_n:
        return {"public_training_records": result.plan.n}
    return {
        **counts,
        "training_records": task.objective.n,
        "held_out_records": len(task.y_test),
    }


def write(
    folder: Path,
    document: Mapping[str, Any],
    *,
    files: Mapping[str, str] | None = None,
    force: bool = False,
) -> None:
    """Write a report whole or not at all.

    Parameters
    ----------
    folder
        Where it stands.
    document
        What ``report.json`` says.
    files
        Texts of other files, by file name.
    force
        Whether an earlier report there is replaced.
    """
    with replacing(folder, force=force) as temporary:
        (temporary / "report.json").write_text(dump(document) + "\n")
        for name, text in (files or {}).items():
            (temporary / name).write_text(text, encoding="utf-8")


def add_pages(
    folder: Path, document: Mapping[str, Any], pictures: Mapping[str, Callable[[], Any]]
) -> None:
    """Add pictures and the page of the statement to a report; a picture that fails is left out.

    Parameters
    ----------
    folder
        Where the report stands.
    document
        What ``report.json`` says.
    pictures
        What draws each of them, by file name.
    """
    drawn: dict[str, str] = {}
    about = _about(document)
    for name, draw in pictures.items():
        title = name.removesuffix(".svg").replace("-", " ").capitalize()
        try:
            drawn[title] = text = plot.svg(draw(), title=title, description=about)
            replace_file(folder / name, text.encode())
        except Exception as error:
            print(f"dpcal: warning: {name} could not be drawn: {error}.", file=sys.stderr)
    page = statement_page(document, pictures=drawn)
    replace_file(folder / "statement.html", page.encode())


def claim_of(document: Mapping[str, Any], paid: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claim that a model's file holds.

    Parameters
    ----------
    document
        What ``report.json`` says.
    paid
        The run, or all of them together, whose price is the model's.
    """
    privacy = document["privacy"]
    return {
        "epsilon": paid["epsilon"]["upper"],
        "delta": paid["delta"],
        "neighboring_relation": privacy["neighboring_relation"],
        "unit": privacy["unit"],
    }


def _about(document: Mapping[str, Any]) -> str:
    """Return the mechanism, the relation and the version that a picture is of."""
    plans = [run["plan"] for run in document["runs"]]
    first = plans[0]
    lines = []
    for place, query in enumerate(first["queries"][:2]):
        noises = [plan["queries"][place]["noise_multiplier"] for plan in plans]
        lines.append(
            f"{query['count']} x {query['kind']}, {query['sampler']}, noise multiplier "
            f"{_span(noises)}"
        )
    lines += ["..."] if len(first["queries"]) > 2 else []
    return (
        f"{first['optimizer']}: {'; '.join(lines)} | {first['neighboring_relation']}, epsilon = "
        f"{_span([plan['epsilon'] for plan in plans])} at delta = {first['delta']:g} | "
        f"dpcal {document['software']['dpcal']}"
    )


def _span(values: Sequence[float]) -> str:
    """Return one number, or the least and the largest of several."""
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def risk(results: Sequence[Result]) -> dict[str, float]:
    """Return what an attacker finds who is wrong about one in a hundred of those who are not there.

    Parameters
    ----------
    results
        Of all runs that the attacker sees.
    """
    plan, rate = results[0].plan, 0.01
    try:
        power = float(
            true_positive_rate(
                events.ComposedDpEvent([result.event for result in results]),
                false_positive_rate=rate,
                neighboring_relation=plan.neighboring_relation,
            )
        )
    except (UnsupportedEvent, DrawsCannotTell):
        # One pair (epsilon, delta) implies this (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
        price = composed_epsilon(results, plan.delta)["epsilon"]["upper"]
        least = min(math.exp(price) * rate + plan.delta, 1.0)
        power = min(least, 1 - math.exp(-price) * (1 - plan.delta - rate))
    return {"false_positive_rate": rate, "true_positive_rate": power}


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    temporary = path.with_name(f"{path.name}.{token_hex(4)}")
    try:
        temporary.touch(mode=0o600, exist_ok=False)
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
