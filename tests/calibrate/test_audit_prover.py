"""The prover against facts known by hand, and against other arithmetics."""

from fractions import Fraction

import mpmath
import pytest
import scipy.stats
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Ge, Le, Max, Min, Rational, exp, log, oo, sqrt

from dpcal.calibrate.auditing.checker import recheck
from dpcal.calibrate.auditing.documents import decode, encode
from dpcal.calibrate.auditing.enclosures import Balls, Intervals, Undecided, balls_available
from dpcal.calibrate.auditing.language import (
    Balance,
    Bound,
    Enumeration,
    Feasible,
    Identity,
    Private,
    Prose,
    Rate,
    Release,
    Schedule,
    Setting,
    Units,
    positive,
    real,
)
from dpcal.calibrate.auditing.monomials import as_expression, normal
from dpcal.calibrate.auditing.prover import Verdict, gaussian_delta, prove

x, y, z, n, d, kappa = positive("x y z n d kappa")
(w,) = real("w")

TRUE = [
    Identity("root", sqrt(x * y) ** 2, x * y),
    Identity("symbolic power", (x**kappa * y) ** (2 / kappa), x**2 * y ** (2 / kappa)),
    Identity("logarithm", log(8 * x**2), 3 * log(2) + 2 * log(x)),
    Identity("fraction", 1 / (1 + x) + x / (1 + x), 1),
    Identity("maximum", Max(x * z, y * z), z * Max(x, y)),
    Balance("balance", y, y, of=x, raw=(1 / x, x * y**2)),
    Bound("means", 2 * sqrt(x * y), x + y),
    Bound("chain", x, n, where=(Le(x, sqrt(n)), Ge(n, 1))),
    Bound("extremum", 1 / Max(x, y), 1 / x),
    Bound("cases", Min(x, n / x), sqrt(n)),
    Bound("power in range", x ** (2 / kappa), x, on={kappa: (2, oo), x: (1, oo)}),
    Bound("quartic", 4 * w - 3, w**4),
    Bound("box", sympy.sin(x), x, on={x: (Rational(1, 10), 3)}),
    Bound("logarithmic", x / (1 + x), log(1 + x), on={x: (Rational(1, 10), 10)}),
    Rate("rate", n + sqrt(n) * log(n), n, growth={n: 1}),
    Rate("range", n ** (-kappa), n**-1, growth={n: 1}, on={kappa: (1, 2)}),
    Rate("limit", n**3 * exp(-n) + (1 - 1 / n) ** n, 1, growth={n: 1}),
    Feasible("batch", (Le(1, Max(x, 1)), Le(Min(x, n), n))),
    Units("units", sqrt(x * y), {"g": 1}, scales={x: {"g": 3}, y: {"g": -1}}),
    Private("composition", (Release(1, sqrt(x), x),), rho=Rational(1, 2)),
    Enumeration("squares", lambda k: (k * k) % 4 in (0, 1), list(range(20))),
]

FALSE = [
    Identity("freshman", (x + y) ** 2, x**2 + y**2),
    Identity("wrong exponent", sqrt(x * y), x * y),
    Bound("reversed means", x + y, 2 * sqrt(x * y)),
    Bound("not at 1", x**2, x, on={x: (0, 2)}),
    Bound("cubic", w, w**3),
    Rate("dropped term", n + sqrt(d) * n**2, n, growth={n: 1}),
    Rate("exponential", exp(n), n**5, growth={n: 1}),
    Rate("in part of the range", n ** (-1 / kappa), n**-1, growth={n: 1}, on={kappa: (1, 2)}),
    Feasible("empty batch", (Le(x, n), Le(1, x))),
    Units("wrong unit", x * y, {"g": 1}, scales={x: {"g": 3}, y: {"g": -1}}),
    Private("no composition", (Release(1, 1, x),), rho=Rational(1, 2)),
    Enumeration("primes", lambda k: k % 2 == 1, [3, 5, 7, 8]),
]


@pytest.mark.parametrize("claim", TRUE, ids=lambda claim: claim.name)
def test_true_claims_are_never_refuted(claim):
    verdict = prove(claim)
    expected = "SAMPLED" if claim.kind == "enumeration" else "PROVED"
    assert verdict.status == expected, verdict.reason
    assert recheck(claim, verdict)


@pytest.mark.parametrize("claim", FALSE, ids=lambda claim: claim.name)
def test_false_claims_are_refuted_with_a_witness(claim):
    verdict = prove(claim)
    assert verdict.status == "REFUTED", verdict.reason
    assert recheck(claim, verdict)


UNDECIDABLE = [
    Identity("unknown function", sympy.Function("f")(x), sympy.Function("g")(x)),
    Bound("unknown function", sympy.Function("f")(x), 1),
    Bound("nothing in the domain", x, y, where=(Le(x, y), Le(y * 2, x))),
    Rate("not a power", exp(n) * y, n, growth={n: 1}),
    Prose("prose", "because"),
]


@pytest.mark.parametrize("claim", UNDECIDABLE, ids=lambda claim: claim.name)
def test_what_cannot_be_decided_is_open_or_vacuous(claim):
    verdict = prove(claim)
    assert (
        verdict.status in ("OPEN", "PROVED") if claim.kind == "bound" else verdict.status == "OPEN"
    )
    assert verdict.reason


def test_equality_at_one_point_is_not_a_proof():
    claim = Bound("touching", sympy.cos(x), 1, on={x: (0, 1)})
    assert prove(claim).status in ("SAMPLED", "OPEN")


EXPONENTS = st.fractions(min_value=-3, max_value=3, max_denominator=6)
MONOMIALS = st.tuples(EXPONENTS, EXPONENTS, st.fractions(min_value=Fraction(1, 9), max_value=9))


@settings(max_examples=60, deadline=None)
@given(MONOMIALS, MONOMIALS, EXPONENTS)
def test_normal_form_keeps_the_value(first, second, power):
    def monomial(parts):
        a, b, value = (Rational(p.numerator, p.denominator) for p in parts)
        return value * x**a * y**b

    power = Rational(power.numerator, power.denominator)
    expression = (monomial(first) * monomial(second)) ** power + monomial(second)
    again = as_expression(normal(expression))
    point = {x: Rational(7, 3), y: Rational(2, 5)}
    assert abs(sympy.N((again - expression).subs(point), 30)) < 1e-20
    assert decode(encode(again), {x, y}) == again


@settings(max_examples=40, deadline=None)
@given(st.fractions(min_value=Fraction(1, 50), max_value=50))
def test_enclosures_contain_the_value(value):
    expression = exp(-x) + log(1 + x) - sqrt(x) ** 3 + Max(x, 2) * sympy.pi
    mpmath.mp.dps = 40
    number = mpmath.mpf(value.numerator) / value.denominator
    exact = mpmath.exp(-number) + mpmath.log1p(number) - mpmath.sqrt(number) ** 3
    exact += max(number, 2) * mpmath.pi
    for arithmetic in [Intervals(120)] + ([Balls(120)] if balls_available() else []):
        enclosure = arithmetic.value(expression, {x: value})
        low, high = arithmetic._ends(enclosure)
        assert low - mpmath.mpf(10) ** -30 <= exact <= high + mpmath.mpf(10) ** -30


def test_intervals_refuse_what_they_do_not_know():
    with pytest.raises(Undecided):
        Intervals(64).value(sympy.erfc(x), {x: Fraction(1)})


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, 0.3)])
def test_gaussian_delta_matches_scipy(epsilon, mu):
    normal_law = scipy.stats.norm
    expected = normal_law.cdf(mu / 2 - epsilon / mu) - sympy.E.evalf() ** epsilon * normal_law.cdf(
        -mu / 2 - epsilon / mu
    )
    assert float(gaussian_delta(epsilon, mu)) == pytest.approx(float(expected), rel=1e-9)


def test_settings_unfold_and_claims_see_the_printed_version():
    rate = Setting(y, x**2, printed=x, source="Theorem 1")
    area = Setting(z, y * n)
    claim = Identity("area", z, n * x**2)
    schedule = Schedule(name="s", title="", citation="", settings=(rate, area), claims=(claim,))
    assert prove(schedule.resolve(claim)).status == "PROVED"
    assert prove(schedule.resolve(claim.as_printed(y))).status == "REFUTED"


def test_circular_settings_are_refused():
    schedule = Schedule(
        name="s", title="", citation="", settings=(Setting(x, y), Setting(y, x + 1))
    )
    with pytest.raises(ValueError, match="in a circle"):
        schedule.resolve(Identity("c", x, 1))


def test_repeated_names_are_refused():
    claim = Identity("c", x, x)
    with pytest.raises(ValueError, match="distinct"):
        Schedule(name="s", title="", citation="", claims=(claim, claim))


def test_verdict_reads_only_its_own_json():
    with pytest.raises(ValueError, match="verdict in JSON"):
        Verdict.from_json("[1]")
