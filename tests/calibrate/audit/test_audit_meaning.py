"""A claim is decided as it is written, and what has no meaning or no source is refused."""

import copy
import dataclasses
from fractions import Fraction

import pytest
import sympy
from _claims import CHECKS, alone, resolved, schedule, theorems

from dpcal.calibrate.papers import (
    PAPERS,
    Enumeration,
    Quantity,
    Setting,
    errata_of,
    load,
    settings_of,
)
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.notation import read
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel.terms import number, times
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import recheck


def test_values_and_decimals_are_exact():
    # A value may use another one, as a setting may use another setting.
    assert resolved("values", "T <= x at T = p, p = x/2").formula() == "x/2 <= x"
    assert resolved("values", "T <= 9 where T in [1, 9]").where
    assert resolved("values", "0.1*x <= x").pairs[0].left[1] == ("num", Fraction(1, 10))


def test_a_counterexample_has_counts_of_at_least_one_and_lies_in_all_ranges():
    claim = resolved("values", "n <= S**2*x**3")
    # n/x = 1/10 is no number of steps, n = 1/2 is no number of records, and kappa is at most 2.
    for other, point in (
        (claim, {"n": "1", "x": "10"}),
        (claim, {"n": "1/2", "x": "1/4"}),
        (resolved("tempting", "k <= k**2"), {"k": "1/5"}),
        (resolved("values", "kappa <= 2 + 0*kappa"), {"kappa": "3"}),
    ):
        evidence = {"goal": 0, "point": point, "left": "1", "right": "0.1"}
        assert not recheck(other, Verdict("REFUTED", "counterexample", evidence=evidence))
    found = prove(claim)
    point = {name: sympy.Rational(value) for name, value in found.evidence["point"].items()}
    assert found.status == "REFUTED"
    assert point["n"] >= point["x"]
    assert point["n"].is_integer


MORE = (" at x = 2", "; free x", "; printed x")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("w <= 2*w; loose x", "factor must be a number, got x"),
        ("w <= 2*w; growth w = 1", "bound must have no option growth"),
        ("w = x, x <= 2*w", "relation of a feasible must be one <= or <"),
        ("w <= x where x = 2", "condition must be built from <= and <"),
        ("x <= 2*x", "symbol x must have a range"),
        *((f"x <= 2*x where x in [0, 1]{more}", "be resolved by a sch") for more in MORE),
    ],
)
def test_claims_without_a_meaning_are_refused(text, sentence):
    with pytest.raises(ValueError, match=r"^claim 'c'") as error:
        alone(text)
    assert sentence in str(error.value)


def test_a_program_without_a_case_is_refused():
    with pytest.raises(ValueError, match="cases must have at least one case"):
        Enumeration(bool, ())


# Texts of a paper's files: the reader of each, a wrong text, and what is said of it.
WRONG = [
    (read, "x <= y", "must begin with its name and a colon"),
    (theorems, "Theorem 1\n    a: x <= y", "theorem must end with a colon"),
    (settings_of, "T: n; upward  # Theorem 1", "rounding must be 'up', 'down' or ''"),
    (settings_of, "T = n", "setting must begin with its name and a colon"),
    (errata_of, "E3 (rate; a): T.\n    claim: x <= y\n    becuse: no", "part of erratum E3 must"),
    (errata_of, "E3: Title.", "erratum must begin with"),
    (lambda text: Quantity("r", "", range=text).values(), "1 to 2", "quantity r: range must be"),
]


@pytest.mark.parametrize(("reader", "text", "sentence"), WRONG)
def test_wrong_texts_are_one_sentence(reader, text, sentence):
    with pytest.raises(ValueError, match="must") as refusal:
        reader(text)
    assert sentence in str(refusal.value)


def test_releases_and_programs_are_lines():
    zcdp, pair, program = theorems("""
        Theorem 1:
            a: release 2*x/n with noise u times n, x with noise v within y; relation replace-special
            b: release 1 with noise x within u, 1/10**5 where u in [1/2, 1]
        Theorem 2, proof:
            c: check halves  # even sizes
    """)
    sources = [claim.source for claim in (zcdp, pair, program)]
    assert sources == ["Theorem 1", "Theorem 1", "Theorem 2, proof"]
    assert (zcdp.kind, zcdp.parts["relation"]) == ("private", "replace-special")
    assert [(show(r.std), show(r.answers)) for r in zcdp.parts["releases"]] == [
        ("u", "n"),
        ("v", "1"),
    ]
    budget = (zcdp.parts["rho"], pair.parts["epsilon"], pair.parts["delta"])
    assert [*map(show, budget)] == ["y", "u", "1/100000"]
    assert (program.name, program.statement) == ("c", "even sizes")
    assert prove(program).status == "PROVED"
    (wrong,) = errata_of("E1 (minor; here): No.\n    printed: check halves", checks=CHECKS)
    assert wrong.printed.parts["program"].cases == [2, 4]


@pytest.mark.slow
def test_everything_has_a_source_and_theorem_statements_are_listed_as_open():
    with pytest.raises(ValueError, match="claim 'c' must have a source, got none"):
        schedule("values", claims=read("c: x <= x + w"))
    with pytest.raises(ValueError, match="setting T must have a source, got none"):
        schedule("values", settings=(Setting("T", "n"),))
    for paper in map(load, PAPERS):
        assert all(claim.source for claim in paper.all_claims())
        assert all(wrong.source for wrong in paper.errata)
        stated = [claim for claim in paper.claims if claim.kind == "prose"]
        assert len(stated) >= (1 if paper.name == "moments" else 7), paper.name
        assert all(claim.parts["reason"] and claim.statement for claim in stated)


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_a_printed_side_uses_a_setting_or_says_what_it_is_about(paper):
    one, doubled = load(paper), copy.copy(load(paper))

    def twice(term):
        return times(number(2), term)

    settings = tuple(
        dataclasses.replace(s, corrected=twice(s.term()), printed=twice(s.term(printed=True)))
        for s in one.settings
    )
    object.__setattr__(doubled, "settings", settings)
    for wrong in one.errata:
        sides = [each.resolve(wrong.printed).all_terms() for each in (one, doubled)]
        alone = wrong.printed.kind != "prose" and sides[0] == sides[1]
        assert alone == bool(wrong.about), wrong.name
