"""What a schedule may say: text claims with a source that say something; orders of differences."""

import copy
import dataclasses

import pytest

from dpcal.calibrate.papers import PAPERS, load
from dpcal.calibrate.papers.claims.errata import errata_of
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.language import (
    Enumeration,
    Quantity,
    Schedule,
    Setting,
    auxiliary,
    claims_of,
    settings_of,
    theorems_of,
)
from dpcal.calibrate.papers.claims.notation import line, read
from dpcal.calibrate.papers.kernel.terms import number, times
from dpcal.calibrate.papers.prover import prove

SETTINGS = (
    Setting("T", "n**2*x", printed="n*x", source="Theorem 1"),
    Setting("s", "sqrt(T)/n", source="Theorem 1"),
)
SIZES = (Quantity("n", "records", range="[1, oo)"), *auxiliary("x y u v"))


def schedule(text, source="Theorem 1, proof", settings=SETTINGS):
    claims = claims_of(source, text)
    titles = {"name": "s", "title": "", "citation": ""}
    return Schedule(quantities=SIZES, settings=settings, claims=claims, **titles)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("c: 3*(x + y)/3 = y + x", "the same as they are written"),
        ("c: x*y/y = x", "the same as they are written"),
        ("c: x*u/v <= y*u/v where x <= y", "restates the hypothesis x <= y"),
        ("c: T = x*n**2", "restates the setting of T"),
        ("c: T/n**2 = x", "restates the setting of T"),
        ("c: T = n*x", "restates the setting of T"),
        ("c: u = x + y at u = x + y", "the same as they are written"),
        ("c: x*u = y at u = y/x", "restates the value of u"),
        ("c: T*s = n**2*x*s", "restates the setting of T"),
        ("c: release x with noise x*u within 1/(2*u**2)", "restates the cost of Gaussian noise"),
        ("c: (s + T)**2 = s**2 + 2*s*T + T**2", "holds whatever its settings are"),
        ("c: x <= x + y\nd: x <= x + y", "repeats claim 'c'"),
    ],
)
def test_a_claim_that_says_nothing_is_refused(text, sentence):
    with pytest.raises(ValueError, match="says nothing") as refusal:
        schedule(text)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "c: 2*16*(1 + 1/4) = 40",
        "c: T = n**2*x; definition",
        "c: s**2 = x",
        "c: release x with noise x*u within 1/(2*u**2); definition",
        "c: release x with noise x*u within 1/u**2",
        "c: x*u <= y*v where x <= y, u <= v",
        "c: (x + y)**2 = x**2 + 2*x*y + y**2",
    ],
)
def test_a_claim_that_says_something_is_allowed_and_proved(text):
    one = schedule(text)
    assert prove(one.resolve(one.claim("c"))).status in ("PROVED", "DEFINITION")


@pytest.mark.slow
def test_everything_has_a_source():
    with pytest.raises(ValueError, match="claim 'c' must have a source, got none"):
        schedule("c: x <= x + y", source="")
    with pytest.raises(ValueError, match="setting T must have a source, got none"):
        schedule("c: x <= x + y", settings=(Setting("T", "n"),))
    for paper in map(load, PAPERS):
        assert all(claim.source for claim in paper.all_claims())
        assert all(wrong.source for wrong in paper.errata)


def test_theorem_statements_are_listed_as_open():
    for name in PAPERS:
        stated = [c for c in load(name).claims if c.kind == "prose"]
        assert len(stated) >= (1 if name == "moments" else 7), name
        assert all(claim.reason and claim.statement for claim in stated)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("sqrt(n**2 + n) - n =O 1; growth n = 1", "PROVED"),
        ("sqrt(n**2 + n) - n =O 1/n; growth n = 1", "REFUTED"),
        ("sqrt(n + 1) - sqrt(n) =O n**(-1/2); growth n = 1", "PROVED"),
        ("sqrt(n + 1) - sqrt(n) =O n**(-3/4); growth n = 1", "REFUTED"),
        ("n*log(n)**3 - n*log(n)**5 + x*n*log(n) =O~ n; growth n = 1", "PROVED"),
        ("log(n)**100 =O n**(1/100); growth n = 1", "PROVED"),
        ("n**(1/100) =O log(n)**100; growth n = 1", "REFUTED"),
        ("sqrt(x*n**2 + n*log(n)) - x/n =O n*sqrt(log(n)); growth n = 1", "PROVED"),
        ("sqrt(x*n**2*log(n) + n) =O n; growth n = 1", "REFUTED"),
        ("1/x =O 1/x**2; growth x = -1", "PROVED"),
        ("1/x =O 1; growth x = -1", "REFUTED"),
        # n is at least 1, so that it cannot fall
        ("n =O 1; growth n = -1", "OPEN"),
    ],
)
def test_orders_of_differences_and_of_what_falls(text, status):
    claim = schedule("c: x <= x + y").resolve(line(text))
    assert prove(claim).status == status


CHECKS = {"halves": Enumeration("", lambda size: size % 2 == 0, [2, 4], complete=True)}


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
    assert (zcdp.kind, zcdp.neighboring_relation) == ("private", "replace-special")
    assert [(show(r.std), show(r.count)) for r in zcdp.releases] == [("u", "n"), ("v", "1")]
    assert [show(term) for term in (zcdp.rho, pair.epsilon, pair.delta)] == ["y", "u", "1/100000"]
    assert (program.name, program.statement) == ("c", "even sizes")
    assert prove(program).status == "PROVED"
    (wrong,) = errata_of("E1 (minor; here): No.\n    printed: check halves", checks=CHECKS)
    assert wrong.printed.cases == [2, 4]


def theorems(text):
    return theorems_of(text, CHECKS)


# Texts of a paper's files: the reader of each, a wrong text, and what is said of it.
WRONG = [
    (read, "x <= y", "must begin with its name and a colon"),
    (read, "a: x <= y; whenever x", "option must begin with"),
    (read, "a: x <=", "claim 'a'"),
    (read, "a: x <= y at 3 = x", "values must be text such as"),
    (read, "a: [x] = 1 + loss", "unit must be a product of powers"),
    (theorems, "Theorem 1\n    a: x <= y", "theorem must end with a colon"),
    (theorems, "T:\n    a: check halfs", "got 'halfs'; did you mean"),
    (theorems, "T:\n    a: release x noise y within u", "be 'release S with noise N"),
    (theorems, "T:\n    a: release x with noise y", "be 'release S with noise N"),
    (settings_of, "T: n; upward  # Theorem 1", "rounding must be 'up', 'down' or ''"),
    (settings_of, "T = n", "setting must begin with its name and a colon"),
    (
        errata_of,
        "E3 (rate; a): Title.\n    claim: x <= y\n    becuse: no",
        "part of erratum E3 must be",
    ),
    (errata_of, "E3: Title.", "erratum must begin with"),
]


@pytest.mark.parametrize(("reader", "text", "sentence"), WRONG)
def test_wrong_texts_are_one_sentence(reader, text, sentence):
    with pytest.raises(ValueError, match=r"must be|must begin|must end|claim") as refusal:
        reader(text)
    assert sentence in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_a_printed_side_uses_a_setting_or_says_what_it_is_about(paper):
    schedule, doubled = load(paper), copy.copy(load(paper))

    def twice(term):
        return times(number(2), term)

    settings = [
        dataclasses.replace(s, corrected=twice(s.term()), printed=twice(s.term(printed=True)))
        for s in schedule.settings
    ]
    object.__setattr__(doubled, "settings", tuple(settings))
    for wrong in schedule.errata:
        sides = [one.resolve(wrong.printed).all_terms() for one in (schedule, doubled)]
        alone = wrong.printed.kind != "prose" and sides[0] == sides[1]
        assert alone == bool(wrong.about), wrong.name
