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
import operator
import subprocess
import sys

import pytest
import sympy

from dpcal.calibrate.papers import PAPERS, load
from dpcal.calibrate.papers.claims.formulas import show, to_sympy
from dpcal.calibrate.papers.kernel.terms import minus
from dpcal.calibrate.papers.search.points import points

KINDS = ("balance", "bound", "definition", "feasible", "identity", "loose")
EFFORT = 200_000  # steps of Z3 for one question, a tenth of a second
PASSED = "passed over"  # a claim with functions that Z3 does not have
DIGITS = 60
POINTS = 6
LEAST = 0.9  # share of the claims in Z3's arithmetic that it decides within its effort
OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
RELATIONS = {"<=": operator.le, "<": operator.lt, "=": operator.eq, ">=": operator.ge}


class Unknown(Exception):  # noqa: N818
    """A function that Z3 does not have."""


def sides(claim):
    """Return the comparisons of a claim, as text."""
    pairs = [*claim.pairs]
    if claim.kind == "loose":
        left, sign, right = claim.pairs[0]
        pairs.append((("mul", claim.parts["factor"], left), sign, right))
    return [(show(a), sign, show(b)) for a, sign, b in pairs]


class Reader:
    """Formulas of a claim in Z3, from their text, with the conditions under which they have values.

    ``table`` has the formulas that are put in, ``used`` the symbols that are left, and ``facts``
    what is true of roots.
    """

    def __init__(self, schedule, claim, z3):
        self.z3, self.values, self.defined, self.facts, self.used = z3, {}, [], [], set()
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
        self.goals = [self.compared(*goal) for goal in sides(claim)]
        self.inside = [self.compared(show(a), sign, show(b)) for a, sign, b in claim.where]
        for name, values in claim.on.items():
            pairs = zip(values[:2], (">=", "<="), strict=True)
            self.inside += [
                self.compared(name, sign, end) for end, sign in pairs if end is not None
            ]
        for name in sorted(self.used):
            self.inside += self.within(self.values[name], self.ranges[name].strip())

    def compared(self, left, sign, right):
        return RELATIONS[sign](self.of(left), self.of(right))

    def within(self, value, interval):
        """Yield the conditions that a value lies in an interval."""
        low, high = (end.strip() for end in interval[1:-1].split(","))
        if low != "-oo":
            yield value >= self.number(low) if interval[0] == "[" else value > self.number(low)
        if high != "oo":
            yield value <= self.number(high) if interval[-1] == "]" else value < self.number(high)

    def of(self, text):
        return self.node(ast.parse(str(text).strip(), mode="eval").body)

    def number(self, value):
        return self.z3.RealVal(str(value))

    def symbol(self, name):
        if name == "pi":
            raise Unknown(name)
        if name not in self.values:
            put_in = name in self.table
            self.values[name] = self.of(self.table[name]) if put_in else self.z3.Real(name)
            self.used |= set() if put_in else {name}
        return self.values[name]

    def node(self, node):
        if isinstance(node, ast.Constant):
            return self.number(node.value)
        if isinstance(node, ast.Name):
            return self.symbol(node.id)
        if isinstance(node, ast.UnaryOp):
            return -self.node(node.operand)
        if isinstance(node, ast.Call):
            return self.call(node.func.id, [self.node(part) for part in node.args])
        if isinstance(node.op, ast.Pow):
            return self.power(self.node(node.left), number_of(node.right))
        left, right = self.node(node.left), self.node(node.right)
        if isinstance(node.op, ast.Div):
            self.defined.append(right != 0)
        return OPERATIONS[type(node.op)](left, right)

    def call(self, name, values):
        if name == "sqrt":
            return self.power(values[0], fractions.Fraction(1, 2))
        if name == "Abs":
            return self.z3.If(values[0] >= 0, values[0], -values[0])
        if name not in ("Max", "Min"):
            raise Unknown(name)
        first = operator.ge if name == "Max" else operator.le
        return functools.reduce(lambda a, b: self.z3.If(first(a, b), a, b), values)

    def power(self, base, exponent):
        root, order = base, exponent.denominator
        if exponent < 0:
            self.defined.append(base != 0)
        if order > 1:
            self.defined.append(base >= 0)
            root = self.z3.FreshReal("root")
            self.facts += [self.z3.Implies(base >= 0, self.whole(root, order) == base), root >= 0]
        whole = self.whole(root, abs(exponent.numerator))
        return whole if exponent > 0 else self.number(1) / whole

    def whole(self, base, count):
        if count > 24:
            raise Unknown("high powers")
        return functools.reduce(operator.mul, [base] * count, self.number(1))


def number_of(node):
    """Return an exponent without symbols as an exact number."""
    if any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node)):
        raise Unknown("powers")
    if isinstance(node, ast.Constant):
        return fractions.Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp):
        return -number_of(node.operand)
    return OPERATIONS[type(node.op)](number_of(node.left), number_of(node.right))


def decided(schedule, claim, z3):
    """Return ``"holds"``, ``"fails"``, ``""`` for no answer, or ``"passed over"``."""
    try:
        reader = Reader(schedule, claim, z3)
    except Unknown:
        return PASSED
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    wrong = z3.Not(z3.And(*reader.defined, *reader.goals))
    solver.add(*reader.inside, *reader.facts, wrong)
    return {"unsat": "holds", "sat": "fails"}.get(str(solver.check()), "")


def test_the_second_checker_knows_textbook_facts():
    z3 = pytest.importorskip("z3")
    # As a program, this file has the folder of tests not on its path.
    from _claims import STATUSES, claims, resolved, schedule

    algebra = schedule("algebra")
    for status in STATUSES:
        for claim in claims("algebra", status):
            answer = "holds" if status == "PROVED" else "fails"
            assert decided(algebra, claim, z3) == answer, claim.name
    assert decided(algebra, resolved("algebra", "log(x) <= x"), z3) == PASSED


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
        return True if goal.sign == "=" else None
    return value > 0 and goal.sign != "="


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
