"""A second checker that shares no arithmetic with the first: Z3, from the text of a claim alone.

It reads formulas, settings and ranges as text, puts settings in by itself, and asks Z3 for a point
of the domain where a claim fails or has no value. Roots are fresh numbers with a power; a claim
with other functions is passed over. All are tried at points of the domain, in digits of sympy.
"""

import ast
import fractions
import functools
import itertools
import json
import subprocess
import sys

import pytest
import sympy

from dpcal.calibrate.papers import PAPERS, load
from dpcal.calibrate.papers.claims.formulas import show, to_sympy
from dpcal.calibrate.papers.claims.language import Bound, Identity, Quantity, Schedule, Setting
from dpcal.calibrate.papers.kernel.terms import minus
from dpcal.calibrate.papers.search.points import points

KINDS = ("balance", "bound", "definition", "feasible", "identity", "loose")
EFFORT = 200_000  # steps of Z3 for one question, a tenth of a second
PASSED = "passed over"  # a claim with functions that Z3 does not have
DIGITS = 60
POINTS = 6
LEAST = 0.9  # share of the claims in Z3's arithmetic that it decides within its effort


class Unknown(Exception):  # noqa: N818
    """A function that an arithmetic does not have."""


# ---------------------------------------------------------------------------- a claim from its text


def sides(claim):
    """Return the comparisons of a claim, as text."""
    if claim.kind == "feasible":
        pairs = [(a, "<" if strict else "<=", b) for a, b, strict in claim.conditions]
    else:
        pairs = [(claim.left, claim.relation, claim.right)]
    if claim.kind == "loose":
        pairs.append((("mul", claim.factor, claim.left), claim.relation, claim.right))
    return [(show(a), sign, show(b)) for a, sign, b in pairs]


class Text:
    """A claim of a schedule as text: its comparisons, conditions, and formulas to put in."""

    def __init__(self, schedule, claim):
        self.goals = sides(claim)
        self.conditions = [(show(a), "<" if s else "<=", show(b)) for a, b, s in claim.where]
        self.table = {
            setting.name: setting.printed or setting.corrected
            if setting.name in claim.printed
            else setting.corrected
            for setting in schedule.settings
            if setting.name not in claim.free
        }
        self.table.update({name: show(value) for name, value in claim.at.items()})
        self.ranges = {setting.name: "(0, oo)" for setting in schedule.settings}
        self.ranges.update({quantity.name: quantity.range for quantity in schedule.quantities})
        for name, (low, high) in claim.on.items():
            if low is not None:
                self.conditions.append((str(low), "<=", name))
            if high is not None:
                self.conditions.append((name, "<=", str(high)))


class Reader:
    """Values of formulas in an arithmetic, with the conditions under which they are defined."""

    def __init__(self, text, arithmetic):
        self.text, self.arithmetic = text, arithmetic
        self.values, self.defined, self.used = {}, [], set()

    def symbol(self, name):
        if name == "pi":
            return self.arithmetic.pi()
        if name not in self.values:
            if name in self.text.table:
                self.values[name] = self.of(self.text.table[name])
            else:
                self.used.add(name)
                self.values[name] = self.arithmetic.symbol(name)
        return self.values[name]

    def of(self, text):
        return self.node(ast.parse(str(text).strip(), mode="eval").body)

    def node(self, node):
        if isinstance(node, ast.Constant):
            return self.arithmetic.number(fractions.Fraction(str(node.value)))
        if isinstance(node, ast.Name):
            return self.symbol(node.id)
        if isinstance(node, ast.UnaryOp):
            return -self.node(node.operand)
        if isinstance(node, ast.Call):
            values = [self.node(part) for part in node.args]
            if node.func.id == "sqrt":
                return self.power(values[0], fractions.Fraction(1, 2))
            return self.arithmetic.call(node.func.id, values, self)
        return self.operation(node)

    def operation(self, node):
        left = self.node(node.left)
        if isinstance(node.op, ast.Pow):
            exponent = number_of(node.right)
            if exponent is None:
                return self.arithmetic.symbolic_power(left, self.node(node.right), self)
            return self.power(left, exponent)
        right = self.node(node.right)
        if isinstance(node.op, ast.Div):
            self.defined.append(right != 0)
            return self.arithmetic.quotient(left, right)
        return {ast.Add: left.__add__, ast.Sub: left.__sub__, ast.Mult: left.__mul__}[
            type(node.op)
        ](right)

    def power(self, base, exponent):
        if exponent < 0:
            self.defined.append(base != 0)
        if exponent.denominator > 1:
            self.defined.append(base >= 0)
        return self.arithmetic.power(base, exponent)


def number_of(node):
    """Return an exponent without symbols as an exact number, or None."""
    if any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node)):
        return None
    table = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__"}
    if isinstance(node, ast.Constant):
        return fractions.Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp):
        return -number_of(node.operand)
    return getattr(number_of(node.left), table[type(node.op)])(number_of(node.right))


def compare(left, sign, right):
    return {"<=": left.__le__, "<": left.__lt__, "=": left.__eq__}[sign](right)


def domain(reader):
    """Return the conditions of the domain, after all formulas have been read."""
    rows = [compare(reader.of(a), sign, reader.of(b)) for a, sign, b in reader.text.conditions]
    for name in sorted(reader.used):
        interval = reader.text.ranges[name].strip()
        value = reader.values[name]
        low, high = (end.strip() for end in interval[1:-1].split(","))
        if low != "-oo":
            low = reader.arithmetic.number(fractions.Fraction(low))
            rows.append(value >= low if interval[0] == "[" else value > low)
        if high != "oo":
            high = reader.arithmetic.number(fractions.Fraction(high))
            rows.append(value <= high if interval[-1] == "]" else value < high)
    return rows


# ----------------------------------------------------------------------------------- an arithmetic


class Algebra:
    """Formulas of Z3: polynomials, quotients, roots and extrema of real numbers."""

    def __init__(self, z3):
        self.z3, self.roots = z3, []

    def symbol(self, name):
        return self.z3.Real(name)

    def number(self, value):
        return self.z3.RealVal(str(value))

    def quotient(self, left, right):
        return left / right

    def power(self, base, exponent):
        root, order = base, exponent.denominator
        if order > 1:
            root = self.z3.FreshReal("root")
            self.roots += [self.z3.Implies(base >= 0, self.whole(root, order) == base), root >= 0]
        whole = self.whole(root, abs(exponent.numerator))
        return whole if exponent > 0 else self.number(1) / whole

    def whole(self, base, count):
        if count > 24:
            raise Unknown("high powers")
        return functools.reduce(lambda a, b: a * b, [base] * count, self.number(1))

    def call(self, name, values, reader):
        if name == "Abs":
            return self.z3.If(values[0] >= 0, values[0], -values[0])
        if name not in ("Max", "Min"):
            raise Unknown(name)
        pick = (lambda a, b: a >= b) if name == "Max" else (lambda a, b: a <= b)
        return functools.reduce(lambda a, b: self.z3.If(pick(a, b), a, b), values)

    def pi(self):
        raise Unknown("pi")

    def symbolic_power(self, base, exponent, reader):
        raise Unknown("powers")


# ------------------------------------------------------------------------------------------- checks


def decided(schedule, claim, z3):
    """Return ``"holds"``, ``"fails"``, ``""`` for no answer, or ``"passed over"``."""
    algebra = Algebra(z3)
    reader = Reader(Text(schedule, claim), algebra)
    try:
        goals = [compare(reader.of(a), sign, reader.of(b)) for a, sign, b in reader.text.goals]
        inside = domain(reader)
    except Unknown:
        return PASSED
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    wrong = z3.Not(z3.And(*reader.defined, *goals))
    solver.add(*inside, *algebra.roots, wrong)
    return {"unsat": "holds", "sat": "fails"}.get(str(solver.check()), "")


TOY = Schedule(
    name="toy",
    title="",
    citation="",
    quantities=(
        *(Quantity(name, "positive") for name in "xyz"),
        Quantity("n", "records", range="[1, oo)"),
        Quantity("t", "real", range="(-oo, oo)"),
    ),
    settings=(Setting("T", "n*x", printed="n", source="1"), Setting("q", "1/T", source="2")),
)
KNOWN = [
    (Bound("c", "2*sqrt(x*y) <= x + y"), "holds"),
    (Bound("c", "2*sqrt(x*y) < x + y"), "fails"),
    (Bound("c", "3*(x*y*z)**(1/3) <= x + y + z"), "holds"),
    (Bound("c", "4*t - 3 <= t**4"), "holds"),
    (Bound("c", "4*t - 3 < t**4"), "fails"),
    (Bound("c", "1/t <= 1/t + 1"), "fails"),
    (Bound("c", "sqrt(x - 1) <= x"), "fails"),
    (Bound("c", "sqrt(x - 1) <= x", where="1 <= x"), "holds"),
    (Bound("c", "Max(x, y) <= x + y"), "holds"),
    (Bound("c", "x*y <= n", where="x <= sqrt(n), y <= sqrt(n)"), "holds"),
    (Identity("c", "q*T = 1"), "holds"),
    (Identity("c", "q*n = 1"), "fails"),
    (Identity("c", "q*n = 1", printed="T"), "holds"),
    (Identity("c", "q*n = 1", at="T = n"), "holds"),
    (Bound("c", "n <= T"), "fails"),
    (Bound("c", "n <= T", on={"x": (1, 2)}), "holds"),
    (Bound("c", "log(x) <= x"), PASSED),
]


@pytest.mark.parametrize(("claim", "answer"), KNOWN, ids=lambda row: str(row)[:40])
def test_the_second_checker_knows_textbook_facts(claim, answer):
    z3 = pytest.importorskip("z3")
    TOY.resolve(claim)
    assert decided(TOY, claim, z3) == answer


def expected(schedule):
    """Return the claims that both checkers may decide, and whether each holds."""
    printed = {wrong.printed.name for wrong in schedule.errata}
    claims = [claim for claim in schedule.all_claims() if claim.kind in KINDS]
    return {claim: claim.kind == "loose" or claim.name not in printed for claim in claims}


def answers(paper):
    """Return Z3's answers about a paper, from a process of its own, as Z3 may end its process."""
    for _ in range(3):
        done = subprocess.run([sys.executable, __file__, paper], capture_output=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
    raise AssertionError(done.stderr)


@pytest.mark.study
@pytest.mark.parametrize("paper", PAPERS)
def test_both_checkers_agree(paper):
    pytest.importorskip("z3")
    found, schedule = answers(paper), load(paper)
    wanted = {c.name: "holds" if true else "fails" for c, true in expected(schedule).items()}
    read = {name: answer for name, answer in found.items() if answer != PASSED}
    assert {name: answer for name, answer in read.items() if answer not in ("", wanted[name])} == {}
    # Of what Z3 can read, it leaves few open.
    assert sum(answer != "" for answer in read.values()) > LEAST * len(read)


def holds(goal, point):
    """Return whether a goal holds at a point, by sympy's digits; None where they do not tell."""
    gap = to_sympy(minus(goal.right, goal.left), dict.fromkeys(point))
    at = {symbol: sympy.Rational(point[symbol.name]) for symbol in gap.free_symbols}
    value = sympy.re(sympy.N(gap.subs(at), DIGITS, maxn=4 * DIGITS))
    size = sympy.Rational(10) ** (20 - DIGITS)
    if abs(value) <= size:
        return True if goal.relation == "=" else None
    return value > 0 and goal.relation != "="


@pytest.mark.study
@pytest.mark.parametrize("paper", PAPERS)
def test_no_point_of_many_digits_contradicts_a_proof(paper):
    schedule = load(paper)
    for claim, true in expected(schedule).items():
        if true:
            resolved = schedule.resolve(claim)
            for point in itertools.islice(points(resolved, POINTS, 1), POINTS):
                for goal in resolved.necessary():
                    assert holds(goal, point) is not False, (claim.name, point)


if __name__ == "__main__":
    import z3

    one = load(sys.argv[1])
    print(json.dumps({claim.name: decided(one, claim, z3) for claim in expected(one)}))
