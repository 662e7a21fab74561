"""Rows of the corpus, and their events.

>>> from dpcal.accountants import events
>>> event_of({"type": "GaussianDpEvent", "noise_multiplier": 2.0}) == events.GaussianDpEvent(2.0)
True
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
QUESTIONS, PROOFS = "questions.jsonl", "certificates.jsonl.gz"


def event_of(values: dict[str, Any]) -> Any:
    """Return an event of dpcal's vocabulary, which is dp-accounting's with a few more."""
    from dpcal.accountants import correlated, events, matrix

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

        given["strategy"] = matrix.Dense(np.array(given["strategy"]))
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
