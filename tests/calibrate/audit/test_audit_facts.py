"""What the kernel takes as known of functions is true, at numbers that mpmath computes."""

from fractions import Fraction

import mpmath
import pytest

from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.rules import Context, bounds, check
from dpcal.calibrate.papers.kernel.terms import Undecided

POINTS = [Fraction(n, 4) for n in (-9, -4, -1, 0, 1, 4, 9)]
POSITIVE = [x for x in POINTS if x > 0]
# Where a function is asked, its values, and numbers so far off that a bound must exclude them.
KNOWN = {
    "floor(x)": (POINTS, mpmath.floor, (-100, 100)),
    "ceiling(x)": (POINTS, mpmath.ceil, (-100, 100)),
    "abs(x)": (POINTS, abs, (-100,)),
    "log(x)": (POSITIVE, mpmath.log, (100,)),
    "erfc(x)": (POSITIVE, mpmath.erfc, (-100, 100)),
    "max(x, 1)": (POINTS, lambda x: max(x, 1), (-100,)),
    "min(x, 1)": (POINTS, lambda x: min(x, 1), (100,)),
}


@pytest.mark.parametrize("text", KNOWN)
def test_a_known_bound_holds_and_a_number_beyond_breaks_one(text):
    points, function, beyond = KNOWN[text]
    term = parse(text)
    facts = [(parse("x"), True)] if points is POSITIVE else []
    known = bounds(Context({"x"}, facts), term)
    for x in points:
        truth = function(mpmath.mpf(x.numerator) / x.denominator)
        for bound, strict in known:
            assert leaves(bound, term, x, truth, strict=strict), (bound, x)
        for far in beyond:
            assert not all(leaves(bound, term, x, far, strict=strict) for bound, strict in known)


def leaves(bound, term, x, truth, *, strict):
    """Whether a bound is at least zero (or positive) where the function has this value."""

    def number(part):
        if part == term:
            return truth
        head, *parts = part
        if head == "num":
            return mpmath.mpf(parts[0].numerator) / parts[0].denominator
        if head == "sym":
            return mpmath.mpf(x.numerator) / x.denominator
        values = [number(each) for each in parts]
        if head == "add":
            return mpmath.fsum(values)
        if head == "mul":
            return mpmath.fprod(values)
        if head == "pow":
            return values[0] ** values[1]
        return mpmath.pi if head == "pi" else getattr(mpmath, head)(*values)

    found = number(bound)
    return found > 0 if strict else found >= 0


@pytest.mark.parametrize(("order", "x"), [("1", "2"), ("2", "1/3"), ("7/2", "9"), ("1/2", "1/100")])
def test_an_incomplete_gamma_function_is_enclosed(order, x):
    a, low = Fraction(order), Fraction(x)
    ball = balls.value(parse("uppergamma(a, x)"), {"a": (a, a), "x": (low, low)})
    truth = mpmath.gammainc(*(mpmath.mpf(n.numerator) / n.denominator for n in (a, low)))
    assert float(ball.rad()) < 1e-12 * float(ball.mid())
    assert float(ball.mid()) == pytest.approx(float(truth), rel=1e-14)


def test_a_fact_without_a_value_on_a_part_does_not_hide_one_that_fails_there():
    """The logarithm has no value at x <= 0; that x > 5 fails on [-1, 1] is enough."""
    x = {"x": ["-1", "1"]}
    outside = {"rule": "balls", "box": x, "tree": "x"}
    ends = [(parse("x + 1"), False), (parse("1 - x"), False)]
    undecided, failing = (parse("log(x)"), False), (parse("x - 5"), False)
    check(Context({"x"}, [*ends, undecided, failing]), parse("-1"), False, outside)
    with pytest.raises(Undecided):
        check(Context({"x"}, [*ends, undecided]), parse("-1"), False, outside)
