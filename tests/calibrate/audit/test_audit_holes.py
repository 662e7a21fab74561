"""False and ill-defined claims that a prover may be tempted by: none is proved, at any price.

Textbook inequalities that a reader expects are proved, so that the first part is no empty boast.
"""

from fractions import Fraction

import pytest

from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.claims.language import (
    Balance,
    Bound,
    Enumeration,
    Feasible,
    Identity,
    Loose,
    Private,
    Quantity,
    Rate,
    Release,
    Schedule,
    Setting,
    SoftRate,
    standalone,
)
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.rings import Ring
from dpcal.calibrate.papers.kernel.rules import Context, check
from dpcal.calibrate.papers.kernel.terms import ZERO, Undecided
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import recheck
from dpcal.calibrate.papers.search.identities import equals

POSITIVE = tuple(Quantity(name, "positive") for name in ["x", "y", "z", "a", "b", "n"])
REAL = (Quantity("t", "real", range="(-oo, oo)"), Quantity("v", "real", range="(-oo, oo)"))
WHOLE = (Quantity("k", "whole", range="[1, oo)", whole=True),)
PLAIN = Schedule(
    name="plain",
    title="",
    citation="",
    quantities=(*POSITIVE, *REAL, *WHOLE, Quantity("p", "exponent", range="(1, oo)")),
)
GROW = {"growth": {"n": 1}}


def verdict(claim, schedule=PLAIN, seconds=1.0):
    return prove(schedule.resolve(claim), seconds=seconds)


NOISE = (Release(1, "sqrt(2*log(125/(100*b)))/a", 1),)  # of textbooks, where epsilon is at most 1
NOT_PROVED = {
    "square of a signed range": Bound("c", "t**2 <= 9", on={"t": ("-301/100", 3)}),
    "pole": Bound("c", "1/(2*(x - 1)) - 10**9 <= 1/(x - 1)"),
    "sign of a logarithm": Bound("c", "log(x)/2 - 100 <= log(x)"),
    "squares of signed numbers": Bound("c", "t**2 - 10**30 <= v**2", where=("t <= v",)),
    "undefined root": Bound("c", "sqrt(x - 2) <= sqrt(x - 2) + 1"),
    "undefined logarithm": Bound("c", "log(x - 1) <= log(x - 1) + 1"),
    "undefined quotient": Bound("c", "1/t <= 1/t + 1"),
    "removable pole": Identity("c", "(x**2 - 1)/(x - 1) = x + 1"),
    "cancelled zero": Identity("c", "(x - y)/(x - y) = 1"),
    "root of a square": Identity("c", "sqrt(t**2) = t"),
    "logarithm of a square": Identity("c", "log(t**2) = 2*log(t)"),
    "strictness": Feasible("c", ("2*sqrt(x) < x + 1",)),
    "strictness of a square": Bound("c", "2*x*y < x**2 + y**2"),
    "strictness at an end": Bound("c", "x < 1", on={"x": (0, 1)}),
    "empty ranges": Bound("c", "x <= y", on={"x": (2, 3)}, where=("x <= 1",)),
    "empty domain": Bound("c", "2 <= x", where=("x < y", "y < x")),
    "an argument short": Identity("c", "Max(x, y) = Max(x, y, z)"),
    "an argument less": Identity("c", "exp(Min(x, y, z)) = exp(Min(x, y))"),
    "a case short": Bound("c", "Max(x, y) <= x"),
    "a minimum": Bound("c", "x <= Min(x, y)"),
    "even power": Bound("c", "t <= t**2"),
    "falling power": Bound("c", "x**(-1) <= y**(-1)", where=("x <= y",)),
    "half a square": Bound("c", "(t - 1)**2 <= (v - 1)**2", where=("t <= v",)),
    "tangent product": Bound(
        "c", "x + (x - 1/10)**2*(x - 3/10)**2*(x - 5/10)**2 <= x", on={"x": (0, 1)}
    ),
    "points of a fixed seed": Identity("c", "x = x + (x - 1)*(x - 2)*(x - 1/2)*(x - 3)"),
    "narrow dip": Bound(
        "c", "(1/10)**6*(1 - 1/1000) <= (x - 1/3)**2 + (1/10)**6 - 1/10**8*x", on={"x": (0, 10**9)}
    ),
    "rate by cancellation": Rate("c", "n =O sqrt(n**2 + n) - n", **GROW),
    "rate of a softplus": Rate("c", "log(1 + exp(n)) =O 1 + n/n", **GROW),
    "rate of a factorial": Rate("c", "log(gamma(n)) =O 1 + n/n", **GROW),
    "rate of logarithms": Rate("c", "log(n)**100 =O 1 + n/n", **GROW),
    "nearly the exponent": Rate("c", "n**(2 + 1/200) =O n**2", **GROW),
    "soft exponent": SoftRate("c", "n**(2 + 1/200) =O~ n**2", **GROW),
    "one logarithm more": Rate("c", "n*log(n)**2 =O n*log(n)", **GROW),
    "rate of an oscillation": Rate("c", "n =O n*sin(n)", **GROW),
    "rate under a stop": Rate("c", "n**2 =O n", where=("n <= 10",), **GROW),
    "negative count": Private("c", (Release(1, "x", "-t**2"),), rho=1),
    "sign of a deviation": Private("c", (Release(1, "t", 1),), rho=1),
    "zero deviation": Private("c", (Release("0*x", "0*x", 1),), rho=1),
    "hidden count": Private("c", (Release(1, 1, 1), Release(1, 1, "-1 - 0*x")), rho=1),
    "textbook noise": Private(
        "c", NOISE, epsilon="a", delta="b", on={"a": (1, 20), "b": ("1/1000000", "1/100")}
    ),
    "integer at one": Bound("c", "k <= k - 1/10**9"),
    "floor": Bound("c", "x <= floor(x)"),
    "ceiling": Bound("c", "ceiling(x) < x + 1 - 1/10**6"),
    "by a millionth": Bound("c", "2*sqrt(x*y) <= (1 - 1/10**6)*(x + y)"),
    "a fake symbol": Bound("c", "t1_ <= 2*t1_", on={"t1_": (-1, 1)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_PROVED)
def test_a_false_or_ill_defined_claim_is_not_proved(name):
    claim = NOT_PROVED[name]
    if name == "a fake symbol":
        assert prove(claim, seconds=4).status == "REFUTED"
        return
    assert verdict(claim).status in ("OPEN", "REFUTED"), name


def test_no_identity_between_functions_of_more_and_of_fewer_arguments():
    facts = Context("xyz", [(parse(name), True) for name in "xyz"])
    for text in ("Max(x, y) - Max(x, y, z)", "Min(x, y, z) - Min(x, y)", "Max(x, y) - Min(x, y)"):
        assert not Ring(lambda term: True).is_zero(parse(text))
        with pytest.raises(Undecided):
            equals(facts, parse(text), ZERO)
    step = equals(facts, parse("Max(x*x, y) - Max(x**2, y)"), ZERO)
    check(facts, parse("Max(x*x, y) - Max(x**2, y)"), False, step)


TRUE = {
    "three means": Bound("c", "3*(x*y*z)**(1/3) <= x + y + z"),
    "Bernoulli": Bound("c", "1 + p*x <= (1 + x)**p"),
    "logarithm": Bound("c", "log(1 + x) <= x"),
    "strict logarithm": Bound("c", "log(1 + x) < x"),
    "exponential": Bound("c", "1 + x <= exp(x)"),
    "exponential everywhere": Bound("c", "1 + t <= exp(t)"),
    "Young": Bound("c", "x*y <= x**p/p + y**(p/(p - 1))*(p - 1)/p"),
    "ceiling": Bound("c", "x <= ceiling(x)"),
    "strict ceiling": Bound("c", "ceiling(x) < x + 1"),
    "floor": Bound("c", "floor(x) <= x"),
    "signed square": Bound("c", "2*t*v <= t**2 + v**2"),
    "whole numbers": Bound("c", "k <= k**2"),
    "textbook noise": Private(
        "c", NOISE, epsilon="a", delta="b", on={"a": ("1/100", 1), "b": ("1/10000000000", "1/100")}
    ),
    "rate by its conjugate": Rate("c", "n/(sqrt(n**2 + n) + n) =O 1 + n/n", **GROW),
    "soft rate": SoftRate("c", "n*log(n)**3 =O~ n", **GROW),
    "one case": Identity("c", "Max(1, 1 + x) = 1 + x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUE)
def test_a_textbook_fact_is_proved(name):
    found = verdict(TRUE[name], seconds=20.0)
    assert found.status == "PROVED", (name, found.reason)


def test_whole_numbers_are_tried_at_whole_numbers_only():
    point = Verdict(
        "REFUTED",
        "counterexample",
        evidence={"goal": 0, "point": {"k": "1/5"}, "left": "0.2", "right": "0.04"},
    )
    assert not recheck(PLAIN.resolve(TRUE["whole numbers"]), point)


def test_ranges_of_quantities_hold_for_every_claim():
    kappa = Quantity("kappa", "exponent", range="[1, 2]")
    schedule = Schedule(name="s", title="", citation="", quantities=(kappa,))
    assert verdict(Bound("c", "1 <= kappa"), schedule).status == "PROVED"
    assert verdict(Bound("c", "kappa <= 1"), schedule).status == "REFUTED"
    point = {"goal": 0, "point": {"kappa": "3"}, "left": "3", "right": "2"}
    claim = schedule.resolve(Bound("c", "kappa <= 2 + 0*kappa"))
    assert not recheck(claim, Verdict("REFUTED", "counterexample", evidence=point))


def test_balance_sees_other_settings():
    # B depends on T, so that both errors fall in T
    settings = Setting("B", "n/T**3", source="1"), Setting("T", "sqrt(n)", source="2")
    sizes = (Quantity("n", "records"),)
    schedule = Schedule(name="s", title="", citation="", quantities=sizes, settings=settings)
    assert verdict(Balance("c", "1/T = B*T**2/n", of="T"), schedule).status == "OPEN"
    assert verdict(Balance("d", "1/T = T/n", of="T"), schedule).status == "PROVED"


def test_a_loose_bound_says_by_how_much():
    assert verdict(Loose("c", "x <= 4*x", factor=2)).status == "LOOSE"
    assert verdict(Loose("c", "x <= 4*x", factor=5)).status == "REFUTED"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Enumeration("e", bool, ()), "claim 'e' says nothing: it has no case"),
        (lambda: Feasible("f", ()), "claim 'f' says nothing: it has no condition"),
        (lambda: Private("p", (), rho=1), "claim 'p' must have a release"),
        (lambda: Private("p", (Release(1, 1),)), "claim 'p' must have a budget"),
        (lambda: Private("p", (Release(1, 1),), rho=1, epsilon=1, delta=1), "must have a budget"),
        (lambda: Bound("b", "x ~ y"), "claim 'b': relation must"),
        (lambda: Bound("b", "f(x) <= y"), "claim 'b': formula must use known functions, got f"),
        (lambda: standalone(Bound("b", "x <= 2*x")), "claim 'b': symbol x must have a range"),
        (lambda: PLAIN.resolve(Bound("b", "q <= 2")), "claim 'b': symbol q is not declared"),
        (lambda: Quantity("r", "", range="1 to 2").values(), "quantity r: range must be"),
    ],
)
def test_errors_name_the_claim_and_the_symbol(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_decimals_are_exact():
    claim = PLAIN.resolve(Bound("c", "0.1*x <= x/10"))
    assert claim.left[1] == ("num", Fraction(1, 10))
    assert verdict(Bound("c", "0.1*x <= x/10")).status == "PROVED"


def test_powers_of_what_may_be_zero_have_a_value():
    wide = {"x": (Fraction(-1), Fraction(2))}
    for text, low, high in (("x**2", 0, 4), ("x**3", -1, 8), ("x**4 + 1", 1, 17), ("x**0", 1, 1)):
        ball = balls.value(parse(text), wide)
        assert float(ball.lower()) <= low <= high <= float(ball.upper())
        assert float(ball.upper() - ball.lower()) < high - low + 1e-6
    # Where both numbers are equal, both sides are zero.
    pinsker = "2*(p - q)**2 <= p*log(p/q) + (1 - p)*log((1 - p)/(1 - q))"
    names = {"p": ("1/10", "9/10"), "q": ("1/10", "9/10")}
    found = prove(standalone(Bound("c", pinsker, on=names)), seconds=0.5)
    assert found.status in ("PROVED", "OPEN"), found.reason
    assert "undefined" not in found.reason
