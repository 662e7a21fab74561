"""A short document or claim is answered in a sentence, within its limit and without all memory.

The limit is a number of readings of the clock (conftest): a check that does much work without one
waits for the limit of all tests.
"""

import subprocess
import sys
import tomllib

import pytest
from _claims import alone
from _tree import DATA

from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.kernel import terms
from dpcal.calibrate.papers.kernel.checker import refusal
from dpcal.calibrate.papers.kernel.terms import Undecided, encode, number, power, symbol, times

SECONDS, READINGS = 0.25, 5_000
HARD = tomllib.loads((DATA / "forged_proofs.toml").read_text(encoding="utf-8"))["hard"]
X = ["sym", "x"]


def nested(head, count, *parts, inner=X):
    for _ in range(count):
        inner = [head, inner, *parts]
    return inner


def _sum_of(part, step):
    return {"rule": "sum", "parts": [[part, step]]}


LONG = ["num", "7" * 399]
PRIMES = ["num", str((10**11 + 3) * (10**11 + 19))]
HUGE = ["pow", ["num", "7"], ["num", "9" * 300]]
SUMS = [["add", X, ["num", str(k)]] for k in range(1, 400)]
SLOPE = {"rule": "derivative", "symbol": "x", "start": ["num", "0"], "open": False}
SLOPE |= {"closed_defined": [], "at": {"rule": "terms"}, "above": {"rule": "terms"}}
EVIDENCE = {
    "products of long numbers": {"rest": nested("mul", 40, ["mul", *[LONG] * 400])},
    "sums of long fractions": {
        "rest": ["add", *(["pow", ["num", f"{k}" + "9" * 300], ["num", "-1"]] for k in range(400))]
    },
    "powers of powers": {"rest": nested("pow", 40, ["num", "3"], inner=["add", X, ["num", "2"]])},
    "sums of quotients": {"rest": ["add", *(["pow", s, ["num", "-1"]] for s in SUMS)]},
    "products of sums": {"rest": ["mul", *SUMS[:120]]},
    "products of sums of many": {
        "rest": ["mul", *[["add", *(["exp", s] for s in SUMS[:25])]] * 30]
    },
    "logarithms of large numbers": {"rest": ["add", *[["log", PRIMES]] * 400]},
    "constants in constants": {
        "rest": nested("add", 50, ["gamma", ["num", "1/3"]], inner=["exp", ["pi"]])
    },
    "a wide term in a wide term": {"rest": ["add", *[["mul", *SUMS]] * 300]},
    "many lemmas": {
        "rule": "terms",
        "defined": [[["add", X, ["num", "1"]], {"rule": "terms"}]] * 20_000,
    },
    "a slope of products": _sum_of(
        ["mul", *(["add", X, ["num", str(k)]] for k in range(400))], SLOPE
    ),
    **{f"a term {k} deep": {"rest": nested("exp", k)} for k in (100, 5_000)},
    **{
        f"a large power {place}": {"rest": ["pow", root, ["num", "2"]]}
        for place, root in enumerate([HUGE, ["mul", X, HUGE], ["gamma", HUGE]])
    },
    # A polynomial library ends the process where its memory ends, so a limit must come before.
    **{text: {"rest": encode(parse(text))} for text in HARD["powers"]},
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_a_document_is_refused_within_its_limit(name, counted):
    claim = alone("2*x <= 1 where x in [0, 1]")  # true at the witness
    step = EVIDENCE[name]
    if "rest" in step:  # a part that is compared with the goal, and one that is shown as it is
        step = _sum_of(step["rest"], {"rule": "terms"})
    evidence = {"witness": {"x": "1/2"}, "proofs": [step]}
    before = counted()
    said = refusal(claim, "PROVED", evidence, seconds=SECONDS)
    assert said == "a check within the time limit" if name == "many lemmas" else said
    assert counted() - before < READINGS + 10  # it stops at the first reading beyond


def test_derivatives_and_replacements_are_counted_before_they_are_made():
    x = symbol("x")
    with pytest.raises(Undecided, match="fewer parts"):
        terms.difference(times(*(power(x, number(k)) for k in range(2, 900))), "x")
    with pytest.raises(Undecided, match="fewer parts"):
        terms.replace(times(*[x] * 300), {x: times(*[x] * 300)})


CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from dpcal.calibrate.papers import prove
from dpcal.calibrate.papers.claims.notation import line
for text in sys.argv[1:]:
    print(prove(line(f"{text} where x in [0, 10]"), seconds=0.5).status)
"""


@pytest.mark.slow
def test_a_claim_is_answered_without_all_memory():
    run = [sys.executable, "-c", CHILD, *HARD["claims"]]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    assert len(said) == len(HARD["claims"])
    assert set(said) <= {"PROVED", "OPEN"}
