"""The prover and its kernel against facts known by hand, and against other arithmetics."""

from fractions import Fraction

import mpmath
import pytest
import scipy.stats
import sympy
from hypothesis import given, settings, strategies as st
from sympy import Ge, Le, Max, Min, Rational, exp, log, oo, sqrt

from dpcal.calibrate.papers.claims.formulas import gaussian_delta, parse, show, to_sympy
from dpcal.calibrate.papers.claims.language import (
    Bound,
    Definition,
    Enumeration,
    Feasible,
    Identity,
    Private,
    Prose,
    Rate,
    Release,
    SoftRate,
    Units,
    positive,
    standalone,
)
from dpcal.calibrate.papers.claims.normal import Normal
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.terms import Undecided, difference, number
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import recheck

x, y, z, n, d, kappa = positive("x y z n d kappa")
REAL = {"w": (-oo, oo)}

TRUE = [
    Identity("root", sqrt(x * y) ** 2, x * y),
    Identity("symbolic power", (x**kappa * y) ** (2 / kappa), x**2 * y ** (2 / kappa)),
    Identity("logarithm", log(8 * x**2), 3 * log(2) + 2 * log(x)),
    Identity("fraction", 1 / (1 + x) + x / (1 + x), 1),
    Identity("maximum", Max(x * z, y * z), z * Max(x, y)),
    Bound("means", 2 * sqrt(x * y), x + y),
    Bound("chain", x, n, where=(Le(x, sqrt(n)), Ge(n, 1))),
    Bound("extremum", 1 / Max(x, y), 1 / x),
    Bound("cases", Min(x, n / x), sqrt(n)),
    Bound("power in range", x ** (2 / kappa), x, on={kappa: (2, oo), x: (1, oo)}),
    Bound("quartic", "4*w - 3 <= w**4", on=REAL),
    Bound("box", sympy.sin(x), x, on={x: (Rational(1, 10), 3)}),
    Bound("logarithmic", x / (1 + x), log(1 + x), on={x: (Rational(1, 10), 10)}),
    Rate("rate", n + sqrt(n) * log(n), n, growth={n: 1}),
    Rate("range", n ** (-kappa), n**-1, growth={n: 1}, on={kappa: (1, 2)}),
    SoftRate("soft", n * log(n), n, growth={n: 1}),
    Feasible("batch", (Le(1, Max(x, 1)), Le(Min(x, n), n))),
    Units("units", sqrt(x * y), {"g": 1}, scales={"x": {"g": number(3)}, "y": {"g": number(-1)}}),
    Private("composition", (Release(1, sqrt(x), x),), rho=Rational(1, 2)),
    Enumeration("squares", lambda k: (k * k) % 4 in (0, 1), list(range(20))),
]


@pytest.mark.parametrize("claim", TRUE, ids=lambda claim: claim.name)
def test_true_claims_are_never_refuted(claim):
    verdict = prove(claim)
    expected = "SAMPLED" if claim.kind == "enumeration" else "PROVED"
    assert verdict.status == expected, verdict.reason
    assert recheck(standalone(claim), verdict)


UNDECIDABLE = [
    Bound("nothing in the domain", x, y, where=(Le(x, y), Le(y * 2, x))),
    Rate("not a power", exp(n) * y, n, growth={n: 1}),
    Prose("prose", "because"),
]


@pytest.mark.parametrize("claim", UNDECIDABLE, ids=lambda claim: claim.name)
def test_what_cannot_be_decided_is_open(claim):
    verdict = prove(claim)
    assert verdict.status == "OPEN"
    assert verdict.reason


def test_a_definition_is_called_one():
    assert prove(Definition("locked", 2 * x + x, 3 * x + y - y)).status == "DEFINITION"
    assert prove(Definition("changed", 2 * x, 3 * x)).status == "REFUTED"


EXPONENTS = st.fractions(min_value=-3, max_value=3, max_denominator=6)
MONOMIALS = st.tuples(EXPONENTS, EXPONENTS, st.fractions(min_value=Fraction(1, 9), max_value=9))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(MONOMIALS, MONOMIALS, EXPONENTS)
def test_normal_form_keeps_the_value(first, second, power):
    def monomial(parts):
        a, b, value = parts
        return f"({value})*x**({a})*y**({b})"

    term = parse(f"({monomial(first)}*{monomial(second)})**({power}) + {monomial(second)}")
    forms = Normal({"x": "+", "y": "+"})
    box = {"x": (Fraction(7, 3),) * 2, "y": (Fraction(2, 5),) * 2}
    assert balls.value(forms.term(forms.sum(term)), box).overlaps(balls.value(term, box))
    assert parse(show(term)) == term or forms.is_zero(
        ("add", parse(show(term)), ("mul", number(-1), term))
    )


@settings(max_examples=40, deadline=None)
@given(st.fractions(min_value=Fraction(1, 50), max_value=50))
def test_enclosures_contain_the_value(value):
    term = parse("exp(-x) + log(1 + x) - sqrt(x)**3 + Max(x, 2)*pi + erfc(x) - abs(1 - x)")
    with mpmath.workdps(60):
        t = mpmath.mpf(value.numerator) / value.denominator
        exact = mpmath.exp(-t) + mpmath.log1p(t) - mpmath.sqrt(t) ** 3 + mpmath.erfc(t)
        exact += max(t, 2) * mpmath.pi - abs(1 - t)
        ball = balls.value(term, {"x": (value, value)})
        assert abs(mpmath.mpf(ball.mid().str(50, radius=False)) - exact) < mpmath.mpf(10) ** -45


def test_a_ball_over_a_box_contains_the_values_inside():
    term = parse("x**(1/2)*log(1 + y) - y/x")
    ball = balls.value(term, {"x": (Fraction(1), Fraction(2)), "y": (Fraction(0), Fraction(1))})
    for a in (Fraction(1), Fraction(3, 2), Fraction(2)):
        for b in (Fraction(0), Fraction(1, 3), Fraction(1)):
            assert ball.overlaps(balls.value(term, {"x": (a, a), "y": (b, b)}))
    with pytest.raises(Undecided):
        balls.value(parse("1/x"), {"x": (Fraction(-1), Fraction(1))})


@pytest.mark.parametrize(
    "text", ["x**3*log(x)", "exp(-x**2)/x", "erfc(sqrt(x))", "(1 + x)**x", "sin(x)*cos(2*x)"]
)
def test_derivatives_are_those_of_sympy(text):
    ours = to_sympy(difference(parse(text), "x"), {"x": "+"})
    theirs = sympy.diff(to_sympy(parse(text), {"x": "+"}), x)
    for point in (Rational(1, 3), Rational(7, 2)):
        assert abs(sympy.N((ours - theirs).subs(x, point), 30)) < 1e-25


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, 0.25)])
def test_gaussian_delta_matches_scipy(epsilon, mu):
    law = scipy.stats.norm
    expected = law.cdf(mu / 2 - epsilon / mu)
    expected -= float(mpmath.exp(epsilon)) * law.cdf(-mu / 2 - epsilon / mu)
    ball = balls.value(gaussian_delta(number(Fraction(epsilon)), number(Fraction(mu))), {})
    assert float(ball.mid()) == pytest.approx(expected, rel=1e-9)


def test_verdict_reads_only_its_own_json():
    with pytest.raises(ValueError, match="verdict in JSON"):
        Verdict.from_json("[1]")
