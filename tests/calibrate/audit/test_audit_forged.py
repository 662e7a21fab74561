"""Forged and damaged evidence: no document makes the checker accept what is false.

Each proof of a true claim is taken apart leaf by leaf, and each result is put before a false claim
and before the true one with another status.
"""

import contextlib
import copy
import dataclasses
import random
import tomllib

import pytest
from _claims import SECTIONS, resolved
from _tree import DATA

from dpcal.calibrate.papers import Claim, Enumeration
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import verdict_of

DOCUMENTS = 10_000
PARTS = [None, *tomllib.loads((DATA / "forged_proofs.toml").read_text(encoding="utf-8"))["parts"]]


def places(document, path=()):
    """Yield the paths of all parts of a document."""
    yield path
    if isinstance(document, dict | list):
        for key, part in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(part, (*path, key))


def changed(document, path, value):
    """A copy of the document with another value at a path; the rest is shared."""
    if not path:
        return value
    if not isinstance(document, dict | list):
        raise TypeError("no such path")
    result = copy.copy(document)
    result[path[0]] = changed(document[path[0]], path[1:], value)
    return result


@pytest.fixture(scope="module")
def proofs():
    rows = []
    for pair in SECTIONS["twins"]["pairs"]:
        good, bad = (resolved("twins", text) for text in pair)
        verdict = prove(good, seconds=20)
        assert verdict.status == "PROVED", (pair, verdict.reason)
        assert not verdict_of(good, verdict)
        rows.append((good, bad, verdict))
    return rows


@pytest.mark.slow
def test_no_changed_document_proves_what_is_false(proofs):
    generator = random.Random(13)
    rows = [(bad, verdict, list(places(verdict.evidence))) for _, bad, verdict in proofs]
    for _ in range(DOCUMENTS):
        bad, verdict, paths = generator.choice(rows)
        evidence = verdict.evidence
        for _ in range(generator.randint(1, 3)):
            with contextlib.suppress(LookupError, TypeError):  # an earlier change cut this path
                evidence = changed(evidence, generator.choice(paths), generator.choice(PARTS))
        forged = Verdict("PROVED", verdict.method, evidence=evidence)
        assert verdict_of(bad, forged, seconds=2.0), (bad.formula(), evidence)


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
    claim = resolved("twins", "x**2 <= x")
    verdict = prove(claim)
    assert verdict.status == "REFUTED"
    for name in ("left", "right", "point", "goal"):
        forged = {**verdict.evidence, name: "7"}
        assert verdict_of(claim, dataclasses.replace(verdict, evidence=forged)), name
    holds = {"goal": 0, "point": {"x": "1/2"}, "left": "0.25", "right": "0.5"}
    assert verdict_of(claim, dataclasses.replace(verdict, evidence=holds))


def test_cases_that_are_not_the_claims_are_refused():
    program = Enumeration(lambda k: k < 3, [1, 2, 3])
    claim = Claim("c", "enumeration", parts={"program": program})
    for evidence in ({"case": 0}, {"case": 3}, {"case": -1}, {"cases": 3}, {}):
        for status in ("REFUTED", "PROVED", "SAMPLED"):
            assert verdict_of(claim, Verdict(status, "cases", evidence=evidence))
    assert not verdict_of(claim, Verdict("REFUTED", "cases", evidence={"case": 2}))
