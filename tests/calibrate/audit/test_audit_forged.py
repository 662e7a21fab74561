"""Forged and damaged evidence: no document makes the checker accept what is false.

Each proof of a true claim is taken apart leaf by leaf, and each result is put before a false claim
and before the true one with another status.
"""

import contextlib
import copy
import dataclasses
import random

import pytest

from dpcal.calibrate.papers.claims.language import (
    Bound,
    Enumeration,
    Feasible,
    Identity,
    Private,
    Quantity,
    Rate,
    Release,
    Schedule,
    auxiliary,
)
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import recheck, verdict_of

DOCUMENTS = 2_500
PLAIN = Schedule(
    name="plain",
    title="",
    citation="",
    quantities=(
        *auxiliary("x y z n"),
        Quantity("t", "real", range="(-oo, oo)"),
        Quantity("p", "exponent", range="(1, oo)"),
    ),
)
PART = "1/10**6"

# Each true claim with a false one that is near to it.
TWINS = [  # of a kind: a true formula, and a false one
    (Bound, "2*sqrt(x*y) <= x + y", f"2*sqrt(x*y) <= (1 - {PART})*(x + y)"),
    (Bound, "log(1 + x) <= x", f"log(1 + x) <= x**(1 + {PART})"),
    (Bound, "1 + x <= exp(x)", f"1 + (1 + {PART})*x <= exp(x)"),
    (Bound, "1 + p*x <= (1 + x)**p", "(1 + x)**p <= 1 + p*x"),
    (Bound, "Max(x, y) <= x + y", "x + y <= Max(x, y)"),
    (Bound, "4*t - 3 <= t**4", "4*t - 3 < t**4"),
    (Bound, "erfc(x) <= exp(-x**2)/(x*sqrt(pi))", "exp(-x**2)/(x*sqrt(pi)) <= erfc(x)"),
    (Identity, "sqrt(x*y)**2 = x*y", f"sqrt(x*y)**2 = x*y*(1 + {PART})"),
    (
        Identity,
        "(x**p*y)**(2/p) = x**2*y**(2/p)",
        f"(x**p*y)**(2/p) = x**2*y**(2/p)*(1 + {PART})",
    ),
    (
        Identity,
        "log(x**2*sqrt(y)/8) = 2*log(x) + log(y)/2 - 3*log(2)",
        f"log(x**2*sqrt(y)/8) = 2*log(x) + log(y)/2 - 3*log(2) + {PART}",
    ),
]
PAIRS = [
    *((kind("c", true), kind("c", false)) for kind, true, false in TWINS),
    tuple(Bound("c", "x <= 3*log(1 + x)", on={"x": (1, end)}) for end in (5, 6)),
    tuple(Bound("c", "x*y <= n", where=("x <= sqrt(n)", f"y <= {k}*sqrt(n)")) for k in (1, 2)),
    tuple(Feasible("c", ("x <= x + 1", f"{k} < x")) for k in (0, 1)),
    tuple(Rate("c", f"n + {part}*log(n) =O n", growth={"n": 1}) for part in ("sqrt(n)", "n")),
    tuple(Private("c", (Release(1, "sqrt(x)", "x"),), rho=r) for r in ("1/2", f"1/2 - {PART}")),
]


def leaves(document, path=()):
    if isinstance(document, dict):
        rows = document.items()
    elif isinstance(document, list):
        rows = enumerate(document)
    else:
        yield path
        return
    yield path
    for key, part in rows:
        yield from leaves(part, (*path, key))


def changed(document, path, value):
    """A copy of the document with another value at a path; the rest is shared."""
    if not path:
        return value
    if not isinstance(document, dict | list):
        raise TypeError("no such path")
    result = copy.copy(document)
    result[path[0]] = changed(document[path[0]], path[1:], value)
    return result


PLUS = {"rule": "plain"}
X, T, ZERO, ONE = ["sym", "x"], ["sym", "t"], ["num", "0"], ["num", "1"]
VALUES = [
    *("", "0", "1", "-1", "1/2", "2", "1/0", "x", "t1_", "plain", "balls", "slope", "bound"),
    *("absurd", "log", "pow", ".", None, True, False, 0, 1, -1, 10**30, 1.5, [], {}, ZERO, ONE, X),
    *(PLUS, {**PLUS, "as": ZERO}, {**PLUS, "as": ONE}),
    {**PLUS, "as": X, "by": [[X, ["sym", "y"]]]},
    {**PLUS, "as": ONE, "by": [[["pow", T, ["num", "2"]], T], [X, ONE]]},
    [X, ONE],
    [["pow", X, ["num", "1/2"]], X],
    {"rule": "absurd", "fact": X},
    {"rule": "balls", "box": {}, "tree": "."},
    {"rule": "balls", "box": {"x": ["0", "1"]}, "tree": "x"},
    [ZERO, False, PLUS],
    [[["num", "-1"], True, PLUS]],
    [[X, True, PLUS]],
    {"rule": "let", "name": "x", "value": ["num", "-1"], "then": PLUS},
    {"rule": "let", "name": "t1_", "value": ["num", "-1"], "then": PLUS},
    {"rule": "cases", "on": X, "nonnegative": {}, "nonpositive": {}},
    {"rule": "replace", "of": X, "by": ONE, "then": PLUS},
]


@pytest.fixture(scope="module")
def proofs():
    rows = []
    for true, false in PAIRS:
        good, bad = PLAIN.resolve(true), PLAIN.resolve(false)
        verdict = prove(good, seconds=20)
        assert verdict.status == "PROVED", (true.formula(), verdict.reason)
        assert recheck(good, verdict)
        rows.append((good, bad, verdict))
    return rows


@pytest.mark.slow
def test_no_changed_document_proves_what_is_false(proofs):
    generator = random.Random(13)
    rows = [(bad, verdict, list(leaves(verdict.evidence))) for _, bad, verdict in proofs]
    count = 0
    while count < DOCUMENTS:
        bad, verdict, paths = generator.choice(rows)
        evidence = verdict.evidence
        for _ in range(generator.randint(1, 3)):
            with contextlib.suppress(LookupError, TypeError):  # an earlier change cut this path
                evidence = changed(evidence, generator.choice(paths), generator.choice(VALUES))
        forged = Verdict("PROVED", verdict.method, evidence=evidence)
        assert verdict_of(bad, forged, seconds=2.0), (bad.name, evidence)
        count += 1


@pytest.mark.slow
def test_the_proof_of_another_claim_is_refused(proofs):
    for _, _, verdict in proofs:
        for _, bad, _ in proofs:
            assert verdict_of(bad, verdict)


@pytest.mark.slow
def test_a_true_claim_is_never_refuted_by_a_document(proofs):
    generator = random.Random(5)
    for good, _, verdict in proofs:
        for _ in range(15):
            numbers = [str(generator.randint(-3, 9)), "1/3", "0", "1/0", "x", None]
            point = {name: generator.choice(numbers) for name in good.domain}
            evidence = {"goal": 0, "point": point, "left": "2", "right": "1"}
            assert verdict_of(good, Verdict("REFUTED", "counterexample", evidence=evidence))
        for status in ("REFUTED", "SAMPLED", "LOOSE", "DEFINITION", "OPEN", "NONSENSE", ""):
            assert verdict_of(good, dataclasses.replace(verdict, status=status)), status


def test_values_shown_are_checked():
    claim = PLAIN.resolve(Bound("c", "x**2 <= x"))
    verdict = prove(claim)
    assert verdict.status == "REFUTED"
    for name in ("left", "right", "point", "goal"):
        forged = {**verdict.evidence, name: "7"}
        assert verdict_of(claim, dataclasses.replace(verdict, evidence=forged)), name


def test_cases_that_are_not_the_claims_are_refused():
    claim = Enumeration("c", lambda k: k < 3, [1, 2, 3])
    for evidence in ({"case": 0}, {"case": 3}, {"case": -1}, {"cases": 3}, {}):
        for status in ("REFUTED", "PROVED", "SAMPLED"):
            assert verdict_of(claim, Verdict(status, "cases", evidence=evidence))
    assert not verdict_of(claim, Verdict("REFUTED", "cases", evidence={"case": 2}))
