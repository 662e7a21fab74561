"""Rows of the corpus, and their events.

>>> from dpcal.accountants import events
>>> event_of({"type": "GaussianDpEvent", "noise_multiplier": 2.0}) == events.GaussianDpEvent(2.0)
True
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
QUESTIONS, PROOFS = "questions.jsonl", "certificates.jsonl.gz"


def event_of(values: dict[str, Any], vocabulary: Any = None) -> Any:
    """Return an event of a module; of dpcal's by default, which has dp-accounting's and a few more.

    Raises
    ------
    AttributeError
        If the module has no such event.
    """
    if vocabulary is None:
        from dpcal.accountants import events as vocabulary
    given = {name: value for name, value in values.items() if name != "type"}
    if "event" in given:
        given["event"] = event_of(given["event"], vocabulary)
    if "events" in given:
        given["events"] = [event_of(each, vocabulary) for each in given["events"]]
    if "groups" in given:
        given["groups"] = tuple(map(tuple, given["groups"]))
    return getattr(vocabulary, values["type"])(**given)


def leaves(event: dict[str, Any], times: int = 1) -> list[tuple[dict[str, Any], int]]:
    """Return the elementary events of a composition, and how often each is used."""
    if event["type"] == "SelfComposedDpEvent":
        return leaves(event["event"], times * event["count"])
    if event["type"] == "ComposedDpEvent":
        return [item for each in event["events"] for item in leaves(each, times)]
    return [(event, times)]


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the values of a file of JSON lines, compressed or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
