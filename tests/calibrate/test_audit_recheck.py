"""The re-checker accepts honest evidence and rejects what was altered."""

import dataclasses
import json

import pytest
import sympy
from sympy import Ge, Le, Rational, log, oo, sqrt

from dpcal.calibrate.auditing.checker import _stays_nonnegative, recheck
from dpcal.calibrate.auditing.documents import decode
from dpcal.calibrate.auditing.language import (
    Bound,
    Enumeration,
    Feasible,
    Identity,
    Rate,
    positive,
)
from dpcal.calibrate.auditing.prover import Verdict, prove

x, y, n, kappa = positive("x y n kappa")

CLAIMS = {
    "normal form": Identity("i", (4 * x**kappa) ** (1 / kappa), 2 ** (2 / kappa) * x),
    "positive terms": Bound("t", x, x + 3 * y),
    "shifted terms": Bound("h", 2 * x, x**2 + 1, on={x: (2, oo)}),
    "square": Bound("s", 2 * sqrt(x * y), x + y),
    "multipliers": Bound("m", x**2, n, where=(Le(x, sqrt(n)),)),
    "root count": Bound("r", x**3, 10 + x**4),
    "boxes": Bound("b", x / (1 + x), log(1 + x), on={x: (Rational(1, 8), 2)}),
    "counterexample": Bound("c", x, x**2),
    "exponents": Rate("e", n + n ** (2 - kappa), n, growth={n: 1}, on={kappa: (1, 2)}),
    "refuted exponents": Rate("f", n + n**2, n, growth={n: 1}),
    "cases": Enumeration("k", lambda case: case > 0, [1, 2, 3]),
    "conditions": Feasible("p", (Le(x, n), Le(1, n)), where=(Le(x, n), Ge(n, 1))),
}


def honest(name):
    return CLAIMS[name], Verdict.from_json(prove(CLAIMS[name]).to_json())


def numbers(document, path=()):
    """Every place in the evidence that holds a number as text."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from numbers(value, (*path, key))
    elif isinstance(document, list):
        for key, value in enumerate(document):
            yield from numbers(value, (*path, key))
    elif isinstance(document, str) and document.lstrip("-").replace("/", "").isdigit():
        yield path


def altered(evidence, path):
    copy = json.loads(json.dumps(dict(evidence)))
    spot = copy
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = str(sympy.Rational(spot[path[-1]]) + sympy.Rational(5, 3))
    return copy


@pytest.mark.parametrize("name", CLAIMS)
def test_honest_evidence_passes(name):
    claim, verdict = honest(name)
    assert verdict.status != "OPEN"
    assert recheck(claim, verdict)


@pytest.mark.parametrize(
    "name",
    ["normal form", "positive terms", "square", "multipliers", "root count", "boxes", "exponents"],
)
def test_any_altered_number_is_noticed(name):
    claim, verdict = honest(name)
    places = list(numbers(verdict.evidence))
    if name == "boxes":
        places = [path for path in places if path[0] == "box"]
    assert places
    for path in places:
        evidence = altered(verdict.evidence, path)
        assert not recheck(claim, dataclasses.replace(verdict, evidence=evidence)), path


@pytest.mark.parametrize("name", CLAIMS)
def test_missing_evidence_is_noticed(name):
    claim, verdict = honest(name)
    assert not recheck(claim, dataclasses.replace(verdict, evidence={}))


@pytest.mark.parametrize("name", CLAIMS)
def test_another_status_is_noticed(name):
    claim, verdict = honest(name)
    for status in {"PROVED", "REFUTED", "NONSENSE"} - {verdict.status}:
        assert not recheck(claim, dataclasses.replace(verdict, status=status))


def test_a_counterexample_that_satisfies_the_claim_is_noticed():
    claim, verdict = honest("counterexample")
    evidence = {**verdict.evidence, "point": {"x": "2"}}
    assert not recheck(claim, dataclasses.replace(verdict, evidence=evidence))


def test_a_counterexample_outside_the_domain_is_noticed():
    claim = Bound("c", x, x**2, on={x: (1, 5)})
    assert not recheck(
        claim, Verdict("REFUTED", "counterexample", evidence={"point": {"x": "1/2"}})
    )


def test_an_uncovered_part_of_a_box_is_noticed():
    claim, verdict = honest("boxes")
    for tree in (".", verdict.evidence["tree"][:-1], verdict.evidence["tree"] + "."):
        assert not recheck(
            claim, dataclasses.replace(verdict, evidence={**verdict.evidence, "tree": tree})
        )


def test_a_smaller_box_is_noticed():
    claim, verdict = honest("boxes")
    evidence = {**verdict.evidence, "box": {"x": ["1", "2"]}}
    assert not recheck(claim, dataclasses.replace(verdict, evidence=evidence))


def test_evidence_of_another_claim_is_noticed():
    for name, claim in CLAIMS.items():
        other = CLAIMS["counterexample"] if name != "counterexample" else CLAIMS["square"]
        assert not recheck(other, prove(claim))


def test_a_wrong_root_count_is_noticed():
    # (x - 1)(x - 2) is negative between its roots
    assert not _stays_nonnegative([1, -3, 2], 0, None)
    assert _stays_nonnegative([1, -3, 2], 2, None)
    assert _stays_nonnegative([1, -2, 1], None, None)  # (x - 1)^2
    assert not _stays_nonnegative([1, 0, 0, 0], -1, 1)  # x^3
    assert _stays_nonnegative([1, 0, 0, 0], 0, 1)


@pytest.mark.parametrize(
    "document",
    [
        "x",
        [],
        ["Symbol", "other"],
        ["Rational", "1/0x"],
        ["__import__", "os"],
        [["Add"]],
        ["Add"],
        None,
    ],
)
def test_evidence_is_never_evaluated_as_code(document):
    with pytest.raises(ValueError, match="expression must"):
        decode(document, {x})
