"""A claim is decided as it is written: settings and values are put in once, all else is refused."""

import pytest
import sympy

from dpcal.calibrate.papers import PAPERS, load
from dpcal.calibrate.papers.claims.language import (
    Balance,
    Bound,
    Identity,
    Loose,
    Quantity,
    Rate,
    Schedule,
    Setting,
    Units,
    standalone,
)
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel.checker import refusal
from dpcal.calibrate.papers.kernel.terms import Undecided
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import recheck
from dpcal.calibrate.papers.search import points

TOY = Schedule(
    name="toy",
    title="",
    citation="",
    quantities=(
        Quantity("n", "records", range="[1, oo)", whole=True),
        Quantity("x", "any number"),
        Quantity("w", "a number that may be zero", range="[0, oo)"),
        Quantity("p", "a probability", range="(0, 1)"),
    ),
    settings=(
        Setting("T", "n", source="Theorem 1"),
        Setting("S", "n/x", source="Theorem 1", rounding="up"),
        Setting("gap", "n - 5", source="Theorem 1"),
    ),
)


def status(claim):
    return prove(TOY.resolve(claim), seconds=4).status


STAY, CIRCLE = "growth must name symbols that stay, got", "must not define each other in a circle"
REFUSED = [
    (Rate("c", "T**2 =O T", growth={"T": 1}), f"{STAY} T"),
    (Rate("c", "x =O n", growth={"x": 1}, at="x = n"), f"{STAY} x"),
    (Rate("c", "n**2 =O n", growth={"x": 1}), "growth must name symbols that occur on a side"),
    (Bound("c", "4 <= n", at="n = 2*n"), f"{CIRCLE}, got n"),
    (Bound("c", "x <= n", at="n = 2*x, x = n"), f"{CIRCLE}, got "),
    (Bound("c", "x <= n*x", at="n = 1/2"), "value of n must lie in its range, got 1/2"),
    (Bound("c", "x <= p*x", at="p = 1"), "value of p must lie in its range, got 1"),
    (Bound("c", "n <= 3*x", at="n = 5/2"), "value of n must lie in its range, got 5/2"),
    (Bound("c", "n <= 3*x", at="n = 5", on={"n": (7, 9)}), "value of n must lie in its range"),
    (Bound("c", "n <= n**2", at="x = 2"), "at must give values to symbols that occur, got x"),
    (Bound("c", "n <= n**2", free="Tt"), "free must be one of"),
    (Bound("c", "T <= T**2", free="T", printed="T"), "setting T must be free or printed, got both"),
    (Bound("c", "0 <= gap", free="gap"), "setting gap must be declared as a quantity to stay free"),
    (Balance("c", "gap = 1/gap", of="gap"), "setting gap must be declared as a quantity"),
]


@pytest.mark.parametrize(("claim", "sentence"), REFUSED)
def test_what_a_claim_cannot_say_is_refused_in_a_sentence(claim, sentence):
    with pytest.raises(ValueError, match=r"^claim 'c': ") as error:
        TOY.resolve(claim)
    assert sentence in str(error.value)


def test_a_value_takes_the_place_of_a_setting():
    assert status(Bound("c", "1/T <= 2", at="T = 1/100")) == "REFUTED"
    assert status(Bound("c", "1/T <= 100", at="T = 1/100 + x")) == "PROVED"
    assert status(Identity("c", "S*x = T", at="n = x")) == "PROVED"
    # A value may use another one, as a setting may use another setting.
    assert TOY.resolve(Bound("c", "T <= x", at="T = p, p = x/2")).formula() == "x/2 <= x"


def test_a_range_of_a_setting_is_a_condition():
    assert TOY.resolve(Bound("c", "T <= 9", on={"T": (1, 9)})).conditions_text()
    assert status(Bound("c", "n <= 9", on={"T": (1, 9)})) == "REFUTED"
    assert status(Bound("c", "T <= 9 + x", on={"T": (1, 9)})) == "PROVED"


def test_options_without_a_schedule_are_refused():
    for options in ({"at": "x = 2"}, {"free": "x"}, {"printed": "x"}):
        with pytest.raises(ValueError, match="must be resolved by a schedule"):
            standalone(Bound("c", "x <= 2*x", on={"x": (0, 1)}, **options))


def test_a_counterexample_has_counts_of_at_least_one():
    claim = TOY.resolve(Bound("c", "n <= S**2*x**3"))
    small = {"goal": 0, "left": "1", "right": "0.1"}
    # n/x = 1/10 is no number of steps, and n = 1/2 is no number of records.
    for point in ({"n": "1", "x": "10"}, {"n": "1/2", "x": "1/4"}):
        refuted = Verdict("REFUTED", "counterexample", evidence={**small, "point": point})
        assert not recheck(claim, refuted)
    found = prove(claim)
    point = {name: sympy.Rational(value) for name, value in found.evidence["point"].items()}
    assert found.status == "REFUTED"
    assert point["n"] >= point["x"]
    assert point["n"].is_integer
    # What a claim says about a count is not presupposed.
    assert status(Bound("c", "1 <= S")) == "REFUTED"
    assert status(Bound("c", "1 <= S", where="x <= 1")) == "PROVED"


def test_a_loose_bound_keeps_its_strictness():
    assert status(Loose("c", "w < 2*w", factor="3/2")) == "REFUTED"
    assert status(Loose("c", "w <= 2*w", factor="3/2")) == "LOOSE"
    assert status(Loose("c", "x < 2*x", factor="3/2")) == "LOOSE"
    with pytest.raises(ValueError, match="claim 'c': factor must be a number, got x"):
        Loose("c", "w <= 2*w", factor="x")


def test_names_that_a_goal_makes_are_its_own():
    names = (Quantity("scale_m", "a scale", {"m": 1}), Quantity("x", "a length", {"m": 1}))
    schedule = Schedule(name="s", title="", citation="", quantities=names)
    with pytest.raises(Undecided, match="no symbol called scale_m"):
        schedule.resolve(Units("c", "x*scale_m", {"m": 2})).ranges()


POSITIVE = sympy.Symbol("x", positive=True)
WHOLE = sympy.Symbol("x", positive=True, integer=True)
SIGNED, PLAIN = sympy.Symbol("x", real=True), sympy.Symbol("x")
CHANGED = [
    (lambda: Bound("c", POSITIVE, WHOLE), "symbols called x must have the same assumptions"),
    (lambda: Bound("c", PLAIN, 2 * POSITIVE), "symbol x of sympy must be declared positive"),
    (lambda: Bound("c", sympy.Symbol("x", zero=True), 1), "declared positive"),
    (lambda: Bound("c", 0.1 * POSITIVE, POSITIVE), "number must be exact"),
    (lambda: Bound("c", sympy.Piecewise((POSITIVE, POSITIVE > 1), (0, True)), 1), "got Piecewise"),
    (lambda: Identity("c", SIGNED / SIGNED + SIGNED, 1 + SIGNED), "must be written as text"),
    (lambda: Identity("c", sympy.sqrt(SIGNED) ** 2, SIGNED + 0), "must be written as text"),
]


@pytest.mark.parametrize(("make", "sentence"), CHANGED)
def test_expressions_that_sympy_has_changed_are_refused(make, sentence):
    with pytest.raises(ValueError, match="claim 'c': ") as error:
        make()
    assert sentence in str(error.value)


# ----------------------------------------------------------------------------------- forged proofs


def test_no_name_of_a_proof_is_a_constant_of_a_rate():
    rates = [
        schedule.resolve(wrong.printed)
        for schedule in map(load, PAPERS)
        for wrong in schedule.errata
        if isinstance(wrong.printed, Rate)
    ]
    assert len(rates) >= 12
    for claim in [TOY.resolve(Rate("c", "n**2 =O n", growth={"n": 1})), *rates]:
        step = {"rule": "let", "name": "zz", "value": ["sym", claim._size()], "then": {}}
        for given in (["sym", "zz"], ["num", "1"]), (["num", "1"], ["sym", "zz"]):
            witness = {name: str(v) for name, v in points.witness(claim).items()}
            evidence = {"witness": witness, "given": [*given, ["num", "0"]], "proofs": [step] * 3}
            assert refusal(claim, "PROVED", evidence) == "constants in declared symbols."


def test_no_name_of_a_proof_is_a_symbol_of_the_goal():
    claim = TOY.resolve(Bound("c", "x <= 2*x"))
    other = claim.changed(right=("mul", ("sym", "zz"), ("sym", "x")))
    proof = {
        "rule": "let",
        "name": "zz",
        "value": ["num", "3"],
        "then": {
            "rule": "replace",
            "of": ["sym", "zz"],
            "by": ["num", "3"],
            "then": {"rule": "plain", "as": ["mul", ["num", "2"], ["sym", "x"]]},
        },
    }
    evidence = {"witness": {"x": "1", "zz": "1"}, "proofs": [proof]}
    assert "zz" in refusal(other, "PROVED", evidence)
