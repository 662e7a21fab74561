"""Rows of the corpus: events as JSON values and back, decimals that are rounded outward, files.

>>> from dpcal.accountants import events
>>> event_of({"type": "GaussianDpEvent", "noise_multiplier": 2.0}) == events.GaussianDpEvent(2.0)
True
>>> outward(Decimal("1.23456789012"), Decimal("1.23456789013"))
('1.234567890', '1.234567891')
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
QUESTIONS, PROOFS = "questions.jsonl", "certificates.jsonl.gz"
# Ids of the questions that are not asked: no narrow bracket was found in some seconds.
LEFT_OUT = "left_out.txt"
# Significant digits of a bound. Answers that differ by the rounding of doubles are inside.
DIGITS = 10


def outward(lower: Decimal, upper: Decimal) -> tuple[str, str]:
    """Return bounds as decimals of ten digits, rounded outward."""
    found = []
    for value, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING)):
        context = Context(prec=DIGITS, rounding=rounding, Emin=-(10**9), Emax=10**9)
        found.append(str(context.plus(value)) if value else "0")
    return found[0], found[1]


def event_of(values: dict[str, Any]) -> Any:
    """Return an event of dpcal's vocabulary, which is dp-accounting's with a few more."""
    from dpcal.accountants import correlated, events

    given = {name: value for name, value in values.items() if name != "type"}
    if "event" in given:
        given["event"] = event_of(given["event"])
    if "events" in given:
        given["events"] = [event_of(each) for each in given["events"]]
    if "groups" in given:
        given["groups"] = tuple(map(tuple, given["groups"]))
    if given.get("shape") == "inf":
        given["shape"] = math.inf
    if values["type"] == "CorrelatedGaussianDpEvent":
        import numpy as np

        given["strategy"] = correlated.Matrix(np.array(given["strategy"]))
        sampler = dict(given["sampler"])
        given["sampler"] = getattr(correlated, sampler.pop("type"))(**sampler)
        given["seed"] = 0
    return getattr(events, values["type"])(**given)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the values of a file of JSON lines, compressed or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def write(path: Path, values: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines, compressed where the name says so; the same bytes each time."""
    text = "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)
    data = text.encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)
