"""Claims about all values of a recursion: the first one and the step must both be proved."""

import pytest

from dpcal.calibrate.papers.claims.language import Quantity, Schedule, Setting, auxiliary
from dpcal.calibrate.papers.claims.notation import line
from dpcal.calibrate.papers.claims.ranges import Range
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel.checker import refusal
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import verdict_of

TOY = Schedule(
    name="toy",
    title="",
    citation="",
    quantities=(
        Quantity("k", "index", range="[3, oo)", whole=True),
        *auxiliary("s u x"),
        Quantity("p", "a probability", range="(0, 1)"),
    ),
    settings=(Setting("T", "2*x", source="1"),),
)
SQUARES = "first 0, next s + (k + 1)**2"
SUM = f"s = k*(k + 1)*(2*k + 1)/6; recursion s over k from 0, {SQUARES}"
CLAIMS = {
    SUM: "PROVED",
    SUM.replace("/6", "/6 + k*(k - 1)*(k - 2)"): "REFUTED",
    "s = (1 - p**(k + 1))/(1 - p); recursion s over k from 0, first 1, next 1 + p*s": "PROVED",
    # Any numbers up to T, as many as one likes.
    "0 <= s <= k*T where x <= T; recursion s over k from 0, first 0, next s + x": "PROVED",
    "1 + k*x <= s; recursion s over k from 0, first 1, next (1 + x)*s": "PROVED",
    "1 + k*x < s; recursion s over k from 0, first 1, next (1 + x)*s": "REFUTED",
    "s <= 2; recursion s over k from 0, first 1, next 1 + s/2": "PROVED",
    "s <= 2; recursion s over k from 0, first 3, next 1 + s/2": "REFUTED",
    # The step alone holds, and so does the first value alone.
    "s = k + 1; recursion s over k from 0, first 0, next s + 1": "REFUTED",
    "s <= u; recursion s over k from 0, first u, next s + 1/10**9": "REFUTED",
    # It holds from 4 on, so that a step from there proves nothing about 2 and 3.
    "s <= k**2; recursion s over k from 1, first 1, next 2*s + 1": "REFUTED",
    # The declared range of s would prove the step.
    "s <= u; recursion s over k from 0, first -2*u, next -s": "REFUTED",
    # A value that has none.
    "s <= s + 1; recursion s over k from 0, first 1, next 1/(k - 5)": "OPEN",
}


@pytest.mark.parametrize("text", CLAIMS)
def test_claims_about_all_values_are_decided(text):
    claim = TOY.resolve(line(text, "c"))
    found = prove(claim, seconds=3)
    assert found.status == CLAIMS[text], found.reason
    assert verdict_of(claim, found) == ""


def test_the_proof_of_a_part_is_no_proof():
    claim = TOY.resolve(line(SUM, "c"))
    found = prove(claim)
    first, step = found.evidence["proofs"]
    for proofs in ([first], [step], [first, first], [step, first, step], []):
        evidence = {**found.evidence, "proofs": proofs}
        assert (verdict_of(claim, Verdict("PROVED", "", evidence=evidence)) == "") == (
            proofs == [first, first]  # an identity that the ring shows has no steps
        )
    other = TOY.resolve(line("s = k + 1; recursion s over k from 0, first 0, next s + 1", "c"))
    assert refusal(other, "PROVED", {**found.evidence, "proofs": [step, step]})


def test_the_value_and_its_index_have_the_ranges_of_the_sequence():
    claim = TOY.resolve(line("s <= 2*u; recursion s over k from 0, first u, next s", "c"))
    assert claim.ranges()["s"] == Range()
    assert (claim.ranges()["k"].low, claim.ranges()["k"].whole) == (0, True)


@pytest.mark.parametrize(
    "condition", ["where 3 <= k", "where s <= 1", "where k in [3, 9]", "where s in [0, 1]"]
)
def test_no_other_condition_is_about_a_value(condition):
    text = f"s <= u {condition}; recursion s over k from 0, first u, next s + 1/10**9"
    found = prove(TOY.resolve(line(text, "c")))
    assert (found.status, found.reason[-23:]) == ("OPEN", "conditions on no value.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("s = k; recursion s over k", "recursion must be 's over k from 0, first"),
        ("s = k; recursion s over k from x, first 1, next 2", "recursion must be"),
        ("k = s; recursion s over k from 0, first 1, next 2", "equation must be s = a formula"),
    ],
)
def test_wrong_recursions_are_one_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        line(text, "c")
