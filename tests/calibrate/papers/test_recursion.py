"""Claims about all values of a recursion: the first one and the step must both be proved."""

from _claims import resolved

from dpcal.calibrate.papers.claims.ranges import Range
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel.checker import refusal
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import verdict_of

SUM = "s = k*(k + 1)*(2*k + 1)/6; recursion s over k from 0, first 0, next s + (k + 1)**2"


def test_the_proof_of_a_part_is_no_proof():
    claim = resolved("recursion", SUM)
    found = prove(claim)
    first, step = found.evidence["proofs"]
    for proofs in ([first], [step], [first, first], [step, first, step], []):
        evidence = {**found.evidence, "proofs": proofs}
        assert (verdict_of(claim, Verdict("PROVED", "", evidence=evidence)) == "") == (
            proofs == [first, first]  # an identity that the ring shows has no steps
        )
    other = resolved("recursion", "s = k + 1; recursion s over k from 0, first 0, next s + 1")
    assert refusal(other, "PROVED", {**found.evidence, "proofs": [step, step]})


def test_the_value_and_its_index_have_the_ranges_of_the_sequence():
    claim = resolved("recursion", "s <= 2*u; recursion s over k from 0, first u, next s")
    assert claim.ranges()["s"] == Range()
    assert (claim.ranges()["k"].low, claim.ranges()["k"].whole) == (0, True)


def test_no_other_condition_is_about_a_value():
    for condition in ("where 3 <= k", "where s <= 1", "where k in [3, 9]", "where s in [0, 1]"):
        text = f"s <= u {condition}; recursion s over k from 0, first u, next s + 1/10**9"
        found = prove(resolved("recursion", text))
        assert (found.status, found.reason[-23:]) == ("OPEN", "conditions on no value."), condition
