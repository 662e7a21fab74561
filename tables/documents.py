"""Parts that the reports of all trainings share, and how these are written and drawn.

>>> from dpcal.calibrate import dpsgd
>>> from dpcal.optim import Logistic, run
>>> X, y = [[1.0], [2.0]] * 50, [0.0, 1.0] * 50
>>> plan = dpsgd(n=100, batch_size=50, steps=2, epsilon=1.0, delta=1e-5)
>>> found = risk([run(Logistic(X, y, classes=[0, 1]), plan)])
>>> found["false_positive_rate"], round(found["true_positive_rate"], 4)
(0.01, 0.0189)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpcal import plot
from dpcal.accountants import events, true_positive_rate
from dpcal.errors import DrawsCannotTell, UnsupportedEvent
from dpcal.optim import Result
from dpcal.report import (
    answers_page,
    composed_epsilon,
    fingerprint,
    replace_file,
    statement_page,
)

__all__ = ["about_data", "add_pages", "risk"]


def about_data(
    result: Result,
    tables: Sequence[Any],
    *,
    name: str,
    scaling: Mapping[str, Any],
    read_from_data: Sequence[str],
    key: bytes | None = None,
    counts: Mapping[str, int] | None = None,
    owners: Any = None,
) -> dict[str, Any]:
    """Return the section ``data`` of a report.

    Parameters
    ----------
    result
        A run.
    tables
        Records that it was trained on, their targets, held-out records, and their targets.
    name
        Of the table.
    scaling
        What was done to the records, as JSON values.
    read_from_data
        What was read off the records: the claim does not cover it.
    key
        Secret of the fingerprint, needed unless the records are public.
    counts
        How many rows were read, and why some of them are no records.
    owners
        Number of the person of each record, where persons are drawn.
    """
    records, _, held_out, _ = tables
    sizes = {**(counts or {}), "training_records": len(records)}
    sizes |= {} if owners is None else {"training_persons": len(np.unique(owners))}
    sizes |= {"held_out_records": len(held_out)}
    if result.plan.public_n:  # a public number stands for theirs
        whose = "records" if owners is None else "persons"
        sizes = {f"public_training_{whose}": result.plan.n}
    return {
        "name": name,
        **sizes,
        "features": records.shape[1],
        "scaling": scaling,
        "read_from_data": list(read_from_data),
        "fingerprint": fingerprint([*tables, *([] if owners is None else [owners])], key=key),
    }


def add_pages(
    folder: Path, document: Mapping[str, Any], pictures: Mapping[str, Callable[[], Any]]
) -> None:
    """Add pictures and the page of the statement to a report; a picture that fails is left out.

    Parameters
    ----------
    folder
        Where the report stands.
    document
        The content of ``report.json``.
    pictures
        Functions that draw, by file name.
    """
    drawn: dict[str, str] = {}
    for name, draw in pictures.items():
        title = name.removesuffix(".svg").replace("-", " ").capitalize()
        try:
            drawn[title] = text = plot.svg(draw(), title=title, description=_about(document))
            replace_file(folder / name, text.encode())
        except Exception as error:
            print(f"dpcal: warning: {name} could not be drawn: {error}.", file=sys.stderr)
    page = statement_page(document, pictures=drawn)
    replace_file(folder / "statement.html", page.encode())
    replace_file(folder / "sp800-226.html", answers_page(document).encode())


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
    """Return the power of an attacker who accuses one in a hundred of those who are not there.

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
