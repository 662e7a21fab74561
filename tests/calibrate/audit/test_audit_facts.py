"""The kernel's arithmetic and known facts, against mpmath, sympy and facts known by hand."""

import math
import random
import tomllib
from fractions import Fraction

import mpmath
import pytest
import scipy.stats
import sympy
from _tree import DATA
from hypothesis import given, settings, strategies as st

from dpcal.calibrate.papers.claims.formulas import parse, show, to_sympy
from dpcal.calibrate.papers.claims.privacy import gaussian_delta
from dpcal.calibrate.papers.kernel import balls, normal as forms, rules
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.normal import Normal, sign_at
from dpcal.calibrate.papers.kernel.rules import bounds, check
from dpcal.calibrate.papers.kernel.terms import Undecided, difference, minus, number

POINTS = [Fraction(n, 4) for n in (-9, -4, -1, 0, 1, 4, 9)]
POSITIVE = [x for x in POINTS if x > 0]
# Where a function is asked, its values, and numbers so far off that a bound must exclude them.
KNOWN = {
    "floor(x)": (POINTS, mpmath.floor, (-100, 100)),
    "ceiling(x)": (POINTS, mpmath.ceil, (-100, 100)),
    "abs(x)": (POINTS, abs, (-100,)),
    "log(x)": (POSITIVE, mpmath.log, (100,)),
    "erfc(x)": (POSITIVE, mpmath.erfc, (-100, 100)),
}


def precise(x):
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("text", KNOWN)
def test_a_known_bound_holds_and_a_number_beyond_breaks_one(text):
    points, function, beyond = KNOWN[text]
    term = parse(text)
    known = bounds(term)
    for x in points:
        truth = function(precise(x))
        for bound, strict in known:
            assert leaves(bound, term, x, truth, strict=strict), (bound, x)
        for far in beyond:
            assert not all(leaves(bound, term, x, far, strict=strict) for bound, strict in known)


def leaves(bound, term, x, truth, *, strict):
    """Whether a bound is at least zero (or positive) where the function has this value."""

    def value(part):
        if part == term:
            return truth
        head, *parts = part
        if head in ("num", "sym"):
            return precise(parts[0] if head == "num" else x)
        values = [value(each) for each in parts]
        if head == "add":
            return mpmath.fsum(values)
        if head == "mul":
            return mpmath.fprod(values)
        if head == "pow":
            return values[0] ** values[1]
        return mpmath.pi if head == "pi" else getattr(mpmath, head)(*values)

    found = value(bound)
    return found > 0 if strict else found >= 0


@pytest.mark.parametrize(("order", "x"), [("1", "2"), ("2", "1/3"), ("7/2", "9"), ("1/2", "1/100")])
def test_an_incomplete_gamma_function_is_enclosed(order, x):
    a, low = Fraction(order), Fraction(x)
    ball = balls.value(parse("uppergamma(a, x)"), {"a": (a, a), "x": (low, low)})
    truth = mpmath.gammainc(precise(a), precise(low))
    assert float(ball.rad()) < 1e-12 * float(ball.mid())
    assert float(ball.mid()) == pytest.approx(float(truth), rel=1e-14)


def test_a_fact_without_a_value_on_a_part_does_not_hide_one_that_fails_there():
    """The logarithm has no value at x <= 0; that x**2 > 5 fails on [-1, 1] is enough."""
    outside = {"rule": "balls", "tree": "x"}
    ends = [(parse("x + 1"), False), (parse("1 - x"), False)]
    undecided, failing = (parse("log(x)"), False), (parse("x**2 - 5"), False)
    check(Context({"x": "?"}, (*ends, undecided, failing)), parse("-1"), False, outside)
    with pytest.raises(Undecided):
        check(Context({"x": "?"}, (*ends, undecided)), parse("-1"), False, outside)


def test_no_identity_between_functions_of_more_and_of_fewer_arguments():
    forms = Normal(dict.fromkeys("xyz", "+"))
    for text in ("Max(x, y) - Max(x, y, z)", "Min(x, y, z) - Min(x, y)", "Max(x, y) - Min(x, y)"):
        assert not forms.is_zero(parse(text))
    assert forms.is_zero(parse("Max(x*x, y) - Max(x**2, y)"))


# Ranges that give each kind of sign, and points in them: signed, nonnegative, below and above one.
SIGNED = {"w": ("?", (-3, 2)), "z": ("0+", (0, 2)), "q": ("+", (Fraction(1, 9), Fraction(8, 9)))}
SIGNED["n"] = ("+", (2, 7))
SHAPES = (
    *("({a})*({b})", "({a}) + ({b})", "({a}) - ({b})", "({a})/({b})", "({a})**2", "({a})**(-3)"),
    *("sqrt(({a})**2)", "sqrt({a})", "(({a})*({b}))**(1/3)", "({a})**({b})", "log({a})"),
    *(
        "log(({a})/({b}))",
        "exp({a})",
        "exp(2*log({a}) - ({b}))",
        "Max({a}, {b})",
        "Min({a}, 2*({a}))",
    ),
    *("floor({a})", "Abs({a})", "erfc({a})"),
)


def grown(generator, depth):
    """Return the text of a random formula."""
    if depth == 0:
        return generator.choice((*SIGNED, *SIGNED, "1", "2", "1/2", "-3"))
    parts = {name: grown(generator, generator.randrange(depth)) for name in "ab"}
    return generator.choice(SHAPES).format(**parts)


def test_a_normal_form_has_the_value_and_the_sign_of_the_formula():
    generator, compared = random.Random(20261129), 0
    signs = {name: sign for name, (sign, _) in SIGNED.items()}
    for _ in range(4000):
        term, forms = (
            parse(grown(generator, 4)),
            Normal(signs, 1e9, {"q": (-1, "+"), "n": (1, "+")}),
        )
        point = {
            name: low + (high - low) * Fraction(generator.randint(0, 8), 8)
            for name, (_, (low, high)) in SIGNED.items()
        }
        box = {name: (value, value) for name, value in point.items()}
        try:
            ball, total = balls.value(term, box), forms.sum(term)
            form, sign = balls.value(forms.term(forms.clear(total)), box), forms.known_sign(total)
        except Undecided:  # no value at the point, or no normal form
            continue
        compared += 1
        assert ball.overlaps(form), (show(term), point)
        assert not (sign == "+" and ball <= 0), (show(term), point)
        assert not (sign == "0+" and ball < 0), (show(term), point)
        assert sign != "0" or ball.contains(0), (show(term), point)
    assert compared > 1500


EXPONENTS = st.fractions(min_value=-3, max_value=3, max_denominator=6)
MONOMIALS = st.tuples(EXPONENTS, EXPONENTS, st.fractions(min_value=Fraction(1, 9), max_value=9))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(MONOMIALS, MONOMIALS, EXPONENTS)
def test_normal_form_keeps_the_value(first, second, power):
    one, other = (f"({value})*x**({a})*y**({b})" for a, b, value in (first, second))
    term = parse(f"({one}*{other})**({power}) + {other}")
    forms = Normal({"x": "+", "y": "+"})
    box = {"x": (Fraction(7, 3),) * 2, "y": (Fraction(2, 5),) * 2}
    assert balls.value(forms.term(forms.sum(term)), box).overlaps(balls.value(term, box))
    again = parse(show(term))
    assert again == term or forms.is_zero(minus(again, term))


@settings(max_examples=40, deadline=None)
@given(st.fractions(min_value=Fraction(1, 50), max_value=50))
def test_enclosures_contain_the_value(value):
    term = parse("exp(-x) + log(1 + x) - sqrt(x)**3 + Max(x, 2)*pi + erfc(x) - abs(1 - x)")
    with mpmath.workdps(60):
        t = precise(value)
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
    wide = {"x": (Fraction(-1), Fraction(2))}
    with pytest.raises(Undecided):
        balls.value(parse("1/x"), wide)
    for text, low, high in (("x**2", 0, 4), ("x**3", -1, 8), ("x**4 + 1", 1, 17), ("x**0", 1, 1)):
        ball = balls.value(parse(text), wide)
        assert float(ball.lower()) <= low <= high <= float(ball.upper())
        assert float(ball.upper() - ball.lower()) < high - low + 1e-6


@pytest.mark.parametrize(
    "text", ["x**3*log(x)", "exp(-x**2)/x", "erfc(sqrt(x))", "(1 + x)**x", "sin(x)*cos(2*x)"]
)
def test_derivatives_are_those_of_sympy(text):
    ours = to_sympy(difference(parse(text), "x"), {"x": "+"})
    theirs = to_sympy(parse(text), {"x": "+"})
    (x,) = theirs.free_symbols
    for point in (sympy.Rational(1, 3), sympy.Rational(7, 2)):
        assert abs(sympy.N((ours - sympy.diff(theirs, x)).subs(x, point), 30)) < 1e-25


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, 0.25)])
def test_gaussian_delta_matches_scipy(epsilon, mu):
    law = scipy.stats.norm
    expected = law.cdf(mu / 2 - epsilon / mu)
    expected -= math.exp(epsilon) * law.cdf(-mu / 2 - epsilon / mu)
    ball = balls.value(gaussian_delta(number(Fraction(epsilon)), number(Fraction(mu))), {})
    assert float(ball.mid()) == pytest.approx(expected, rel=1e-9)


def test_signs_at_exact_points():
    rows = tomllib.loads((DATA / "forged_proofs.toml").read_text(encoding="utf-8"))["signs"]
    for kind, sign in {"zero": 0, "open": None, "negative": -1}.items():
        for text, x in rows[kind]:
            assert sign_at(parse(text), {"x": Fraction(x)}) == sign, text


def test_what_is_called_zero_encloses_zero_in_balls():
    generator = random.Random(20261129)
    shapes = ("sqrt(x*y)", "x**(2/3)", "log(x/y)", "exp(x - y)", "x", "y", "Max(x, y)", "2", "1/3")
    zeros = 0
    for _ in range(200):
        parts = [parse(generator.choice(shapes)) for _ in range(3)]
        term = minus(("mul", *parts[:2]), generator.choice((parts[2], ("mul", *parts[1::-1]))))
        values = [Fraction(generator.randint(1, 9), generator.choice((1, 1, 4))) for _ in range(2)]
        point = dict(zip("xy", values, strict=True))
        if sign_at(term, point) == 0:
            zeros += 1
            values = to_sympy(term, dict.fromkeys("xy", "+"))
            found = values.subs({s: sympy.Rational(point[s.name]) for s in values.free_symbols})
            assert abs(sympy.N(found, 300)) < sympy.Rational(10) ** -250
    assert zeros > 50


def test_what_a_normal_form_cannot_tell_is_undecided(monkeypatch):
    normal, one = Normal({}), ("exp", number(1))
    assert normal.atom_term(("e",)) == one
    root = ("log", ("sym", "x"))
    normal._asking.add(root)
    assert normal.atom_sign(root) == "?"
    assert not forms._is_positive(("log", number(-1)))
    monkeypatch.setattr(normal, "_cleared_once", lambda total: total)
    with pytest.raises(Undecided, match="too many denominators"):
        normal.clear({})
    context = Context({"x": "?"})
    monkeypatch.setattr(context.normal, "sum", lambda term: normal.clear({}))
    assert not rules._is_linear(context, ("sym", "x"), "x")
