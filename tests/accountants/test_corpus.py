"""The corpus of questions with proved answers: our answers hold.

Each row of ``benchmarks/corpus/questions.jsonl`` has a bracket of the truth, proved without this
package. The hardest 200 rows are those that the fewest packages answer soundly.
"""

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from _tree import ROOT

from dpcal import accountants
from dpcal.accountants import characteristic, correlated, events
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import DpcalError

FOLDER = ROOT / "benchmarks" / "corpus"
LINES = (FOLDER / "questions.jsonl").read_text().splitlines()
ROWS = {row["id"]: row for row in map(json.loads, LINES)}
HARDEST = (FOLDER / "hardest.txt").read_text().split()


def event_of(values):
    """Return the event that a row describes."""
    given = {name: value for name, value in values.items() if name != "type"}
    if "event" in given:
        given["event"] = event_of(given["event"])
    if "events" in given:
        given["events"] = [event_of(each) for each in given["events"]]
    if "groups" in given:
        given["groups"] = tuple(map(tuple, given["groups"]))
    if given.get("shape") == "inf":
        given["shape"] = math.inf
    if "strategy" in given:
        given["strategy"] = correlated.Matrix(np.array(given["strategy"]))
        sampler = dict(given["sampler"])
        given["sampler"] = getattr(correlated, sampler.pop("type"))(**sampler)
        given["seed"] = 0
    return getattr(events, values["type"])(**given)


def ends(row):
    """Return both ends of our answer to a row, of the worst direction or of the one it names."""
    event, asked = event_of(row["event"]), row["asked"]
    how = {"neighboring_relation": row["neighboring_relation"]}
    if row["direction"] == "worst":
        ask = accountants.epsilon if "delta" in asked else accountants.delta
        found = ask(event, **asked, **how)
        return found.lower, found.upper
    directions = decompose(event, row["neighboring_relation"]).directions
    direction = directions[0 if row["direction"] == "remove" else -1]
    if "delta" in asked:
        found = characteristic.epsilon_bounds(direction, math.log(asked["delta"]))
        return found.lower, found.upper
    found = characteristic.log_delta_bounds(direction, asked["epsilon"])
    return math.exp(found.lower), math.exp(found.upper)


def wrong(names):
    """Return the answers that are below the truth, or say nothing, or whose interval misses it."""
    found = {}
    for name in names:
        row = ROWS[name]
        try:
            lower, upper = ends(row)
        except DpcalError as error:
            found[name] = str(error)
            continue
        holds = math.isfinite(upper) and Decimal(float(upper)) >= Decimal(row["lower"])
        if not holds or Decimal(float(lower)) > Decimal(row["upper"]):
            found[name] = (lower, upper, row["lower"], row["upper"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_our_answers_to_the_hardest_rows_hold(chunk):
    assert len(HARDEST) == len(set(HARDEST)) == 200
    assert len({name.rpartition("-")[0] for name in HARDEST}) >= 25
    assert wrong(HARDEST[chunk::4]) == {}


# One in four rows of losses beyond 745 nats, which take some seconds each.
ENDS = {"large-losses": 4, "unequal-batches": 1, "floors": 1, "last-iterate": 1}


@pytest.mark.slow
@pytest.mark.parametrize("family", ENDS)
def test_our_answers_at_the_ends_of_doubles_hold(family):
    """Large losses, totals of 1 but for rounding, deltas at which computations stop."""
    rows = [name for name, row in ROWS.items() if row["family"] == family]
    assert wrong(rows[:: ENDS[family]]) == {}


@pytest.mark.slow
@pytest.mark.study
def test_our_answers_to_all_rows_hold():
    assert wrong(ROWS) == {}
