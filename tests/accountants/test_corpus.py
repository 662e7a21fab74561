"""The corpus of questions with proved answers: our answers hold, and are hardly wider.

Each row of ``benchmarks/corpus/questions.jsonl`` has a bracket of the truth, proved without this
package. The hardest 185 rows are those that the fewest packages answer soundly.
"""

import json
import math
import runpy
from collections import defaultdict
from decimal import Decimal

import pytest
from _tree import ROOT

from dpcal import accountants
from dpcal.accountants import characteristic
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import DpcalError

FOLDER = ROOT / "benchmarks" / "corpus"
LINES = (FOLDER / "questions.jsonl").read_text().splitlines()
ROWS = {row["id"]: row for row in map(json.loads, LINES)}
HARDEST = (FOLDER / "hardest.txt").read_text().split()
# The corpus brings its own reader of events.
event_of = runpy.run_path(str(FOLDER / "rows.py"))["event_of"]
FAMILIES = defaultdict(list)
for name, row in ROWS.items():
    FAMILIES[row["family"]].append(name)
# Of most families, one row in four is asked by default: all of some with few.
EVERY = {"unequal-batches": 1, "floors": 1, "last-iterate": 1}
# How far, relatively, an end may lie beyond the bracket: there are no sharper ones of some laws.
BEYOND = {
    "discrete-gaussian": 1e-5,
    "discrete-laplace-sampled": 1e-4,
    "discrete-laplace-replaced": 1e-3,
    "poisson-once": 0.01,
    "response": 5e-5,
    "laplace-fixed": 1e-3,
    "laplace-sampled": 0.1,
    "fixed-batches-replaced": 0.5,
    **dict.fromkeys(("floors", "large-losses"), math.inf),
}

# There is no double between 0 and this one.
LEAST = Decimal("5e-324")


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


def wrong(names, beyond=math.inf):
    """Return the answers whose interval misses the truth, says nothing, or goes far beyond it."""
    found = {}
    for name in names:
        low, high = (Decimal(ROWS[name][end]) for end in ("lower", "upper"))
        try:
            lower, upper = (Decimal(float(end)) for end in ends(ROWS[name]))
        except DpcalError as error:
            found[name] = str(error)
            continue
        holds = lower <= high and low <= upper < math.inf
        if holds and beyond < math.inf:
            most = high * (1 + Decimal(beyond)) + LEAST
            holds = low * (1 - Decimal(beyond)) - LEAST <= lower and upper <= most
        if not holds:
            found[name] = (lower, upper, low, high)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_our_answers_to_the_hardest_rows_hold(chunk):
    assert len(HARDEST) == len(set(HARDEST)) == 185
    assert len({name.rpartition("-")[0] for name in HARDEST}) >= 25
    assert wrong(HARDEST[chunk::4]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_our_answers_to_a_family_hold_and_are_hardly_wider(family):
    names = FAMILIES[family][:: EVERY.get(family, 4)]
    assert wrong(names, BEYOND.get(family, 1e-6)) == {}


@pytest.mark.slow
@pytest.mark.study
def test_our_answers_to_all_rows_hold():
    assert wrong(ROWS) == {}
