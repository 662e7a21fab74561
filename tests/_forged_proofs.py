"""Forged proofs, each of which only one check of the kernel refuses."""

from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.kernel.terms import encode, minus, negative


def plain(form=None, *by, **more):
    step = {"rule": "plain", **more}
    rows = {"by": [[E(a), E(b)] for a, b in by]} if by else {}
    return {**step, **({"as": E(form)} if form else {}), **rows}


def E(text):
    return encode(parse(text))


def slope(of, start, end, then=None):
    ends = {"start": E(start), "end": E(end)}
    return {"rule": "slope", "name": "z", "of": E(of), **ends, "slope": then or plain()}


def monotone(function, low, high, exponent=None):
    rest = {"exponent": E(exponent)} if exponent else {}
    return {"rule": "monotone", "function": function, "low": E(low), "high": E(high), **rest}


def let(name, value, then):
    return {"rule": "let", "name": name, "value": E(value), "then": then}


def put(old, new, then, *have):
    return {"rule": "replace", "of": E(old), "by": E(new), "then": then, "have": list(have)}


def in_box(tree):
    return {"rule": "balls", "box": {"x": ["0", "1"]}, "tree": tree}


def images(function, low, high):
    head, low, high = function, parse(low), parse(high)
    return minus((head, high), (head, low))


NAMED = put("zz", "1", plain(), [E("1 - zz"), False, plain("-1*(zz - 1)")])
NEVER = {
    "rule": "cases",
    "on": ["sym", "zz"],
    "nonnegative": let("zz", "-1", plain("zz + -1*(zz + 1)")),
    "nonpositive": let("zz", "1", plain("-1*zz + (zz - 1)")),
}

AT_ZERO = {"rule": "balls", "box": {"x": ["0", "0"]}, "tree": "x"}
SPLIT = {"rule": "cases", "on": E("x"), "nonnegative": plain(), "nonpositive": plain()}

# Statements that are removed; facts (those with a star are positive); a goal, whether it is strict;
# its proof; and a point where the facts hold and the goal fails or has no value.
FORGED = [
    ("Context.extended: a fresh symbol", "x*", "-x", 0, let("x", "-1", plain("1 - (x + 1)")), "1"),
    ("check: a goal about known symbols", "x*", "zz*x", 0, let("zz", "1", NAMED), "1 -1"),
    (
        "Context.require_defined: known symbols & Context._add: facts about known symbols",
        "",
        "-1",
        0,
        NEVER,
        "",
    ),
    ("Context.require_defined: f'{part!r:.80} {relation} 0'", "", "x**(-2)", 0, plain(), "0"),
    ("_plain: require_defined(term)", "", "x/x", 0, plain("1"), "0"),
    ("_plain: require_defined(form)", "", "x**2", 1, plain("(1/x)**(-2)"), "0"),
    ("_plain: parts of one sign in ", "", "-1", 0, plain(), ""),
    ("_plain: a form that equals ", "", "-1", 0, plain("1"), ""),
    (
        "same: require_defined(new)",
        "",
        "x - sqrt(x**2)",
        0,
        plain("0", ("sqrt(x**2)", "sqrt(x)**2")),
        "-1",
    ),
    (
        "same: a root that is not negative",
        "",
        "x - sqrt(x**2)",
        0,
        plain("0", ("sqrt(x**2)", "x")),
        "-1",
    ),
    ("same: terms that are equal: ", "x*", "-x", 0, plain("0", ("x", "0")), "1"),
    ("_absurd: a fact and its opposite", "x*", "-1", 0, {"rule": "absurd", "fact": E("x")}, "1"),
    ("_absurd: one of them strict", "x, -x", "-1", 0, {"rule": "absurd", "fact": E("x")}, "0"),
    (
        "_let: require_defined(value)",
        "",
        "-1",
        0,
        let("y", "y + 1", plain("y - (y + 1)")),
        "",
    ),
    ("_replace: a term that is not too large", "1 - x", "x - 1", 0, put("x", "1", plain()), "0"),
    ("_replace: a term that is not too small", "x - 1", "1 - x", 0, put("x", "1", plain()), "2"),
    (
        "_monotone: an increasing function",
        "y - x",
        images("abs", "x", "y"),
        0,
        monotone("abs", "x", "y"),
        "-2 1",
    ),
    (
        "_monotone: a base that is not negative",
        "y - x",
        "y**2 - x**2",
        0,
        monotone("pow", "x", "y", "2"),
        "-2 1",
    ),
    (
        "_monotone: an exponent that is not negative",
        "x*, y*, y - x",
        "y**(-1) - x**(-1)",
        0,
        monotone("pow", "x", "y", "-1"),
        "1 2",
    ),
    (
        "_monotone: arguments in order",
        "",
        images("exp", "x", "y"),
        0,
        monotone("exp", "x", "y"),
        "1 0",
    ),
    ("_monotone: a difference of values", "", "-1", 0, monotone("exp", "1", "2"), ""),
    (
        "_monotone: require_defined(term)",
        "y - x",
        images("log", "x", "y"),
        0,
        monotone("log", "x", "y"),
        "-1 0",
    ),
    ("_slope: a difference of values", "", "-1", 0, slope("z", "0", "1"), ""),
    (
        "_slope: require_defined(t.minus(end, start))",
        "",
        "x**(-2)",
        0,
        slope("z", "0", "x**(-2)"),
        "0",
    ),
    (
        "_slope: ends in order",
        "",
        minus(negative(parse("y")), negative(parse("x"))),
        0,
        slope("-z", "x", "y"),
        "0 1",
    ),
    (
        "_slope: require_defined(body)",
        "",
        minus(parse("1 + log(x)"), ("add", parse("0"), parse("log(x)"))),
        0,
        slope("z + log(x)", "0", "1"),
        "-1",
    ),
    (
        "bounds: a term with known bounds",
        "",
        "x - sin(x)",
        0,
        {"rule": "bound", "of": E("sin(x)")},
        "-1",
    ),
    (
        "bounds: a positive argument of erfc",
        "-x*",
        "exp(-x**2)/sqrt(pi)/x - erfc(x)",
        0,
        {"rule": "bound", "of": E("erfc(x)")},
        "-1",
    ),
    (
        "_bound: require_defined(term)",
        "",
        minus(parse("log(x)"), parse("floor(log(x))")),
        0,
        {"rule": "bound", "of": E("floor(log(x))")},
        "-1",
    ),
    ("_bound: a known bound", "", "-1", 0, {"rule": "bound", "of": E("floor(x)")}, ""),
    ("_balls: a lower bound", "1 - x", "x + 1", 0, in_box("."), "-2"),
    ("_balls: an upper bound", "x", "2 - x", 0, in_box("."), "3"),
    ("_balls: a positive enclosure", "x, 1 - x", "x - 1/2", 0, in_box("."), "0"),
    ("_balls: a part outside the domain", "x, 1 - x", "x - 1/2", 0, in_box("x"), "0"),
    (
        "balls._value: positive arguments of ",
        "x + 7/4, -5/4 - x",
        "gamma(x)",
        0,
        {"rule": "balls", "box": {"x": ["-7/4", "-5/4"]}, "tree": "."},
        "-3/2",
    ),
    (
        "balls._power: no division by what may be zero",
        "x + 1, 1 - x",
        "2 - x**(-2)",
        0,
        {"rule": "balls", "box": {"x": ["-1", "1"]}, "tree": "."},
        "1/2",
    ),
    (
        "_with_lemmas: check(context, *fact, row[2], depth)",
        "",
        "-x",
        0,
        plain(have=[[E("-x"), False, {}]]),
        "1",
    ),
    (
        "_cases: check(t, proof['nonnegative'], depth)",
        "",
        "-x",
        0,
        SPLIT,
        "1",
    ),
    (
        "_cases: check(t, proof['nonpositive'], depth)",
        "",
        "x",
        0,
        SPLIT,
        "-1",
    ),
    (
        "_let: check(, strict, proof['then'], depth)",
        "",
        "-1",
        0,
        let("y", "0", plain()),
        "",
    ),
    (
        "_replace: check(, strict, proof['then'], depth)",
        "",
        "-1",
        0,
        put("1", "1", plain()),
        "",
    ),
    (
        "_slope: check( strict, proof['slope'], depth)",
        "",
        minus(("mul", parse("-1"), parse("1")), ("mul", parse("-1"), parse("0"))),
        0,
        slope("-z", "0", "1"),
        "",
    ),
    ("_plain: same(context, old, new)", "x*", "-x", 0, plain("0", ("x", "0")), "1"),
]
