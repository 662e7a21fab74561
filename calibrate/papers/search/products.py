"""Strategies by algebra: signs of terms, factors, and squares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from dpcal.calibrate.papers.claims.formulas import parse, to_sympy
from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.search import limits
from dpcal.calibrate.papers.search.goal import TERMS, Goal, Proof, product, total

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search


def by_terms(search: Search, goal: Goal) -> Proof | None:
    """Conclude from the signs of terms that all agree."""
    return TERMS if goal.context.holds(goal.term, goal.strict) else None


def by_factors(search: Search, goal: Goal) -> Proof | None:
    """Factor the term as a quotient of polynomials, and decide the sign of each factor."""
    if goal.depth > limits.DEPTH_OF_FACTORS or not _is_small(goal.term):
        return None
    factored = sympy.factor(sympy.together(to_sympy(goal.term, goal.context.signs)))
    coefficient, parts = factored.as_coeff_mul()
    if len(parts) < 2 and not (parts and parts[0].is_Pow):
        return None
    sign = 1 if coefficient > 0 else -1
    rows, known = [(_term(abs(coefficient)), TERMS)], list[Any]()
    for part in parts:
        found = _factor(search, goal, part)
        if found is None:
            return None
        sign *= found.sign
        rows += found.rows
        known += found.known
    return {**product(*rows), "defined": known} if sign > 0 else None


class _Factor(NamedTuple):
    """Factors that a factor or its opposite is the product of, and the sign of the factor."""

    rows: list[tuple[t.Term, Proof]]
    sign: int = 1
    known: Sequence[Any] = ()


def _expanded(term: t.Term) -> tuple[int, Fraction, Fraction]:
    """Return bounds of the terms, and of the degrees above and below, of a quotient of sums."""
    head, *parts = term
    if head == "pow" and parts[1][0] == "num":
        count, *degrees = _expanded(parts[0])
        size = abs(parts[1][1])
        most = math.comb(count - 1 + min(math.ceil(size), limits.DEGREE), count - 1)
        top, bottom = degrees if parts[1][1] > 0 else degrees[::-1]
        return most if size.denominator == 1 else 1, max(top, 1) * size, max(bottom, 0) * size
    if head in ("exp", "pow"):
        return 1, max(abs(value) for value in (Fraction(1), *_numbers(parts[-1]))), Fraction(0)
    if head not in ("add", "mul"):
        return 1, Fraction(head != "num"), Fraction(0)
    counts, tops, bottoms = zip(*map(_expanded, parts), strict=True)
    below = sum(bottoms, Fraction(0))
    if head == "mul":
        return math.prod(counts), sum(tops, Fraction(0)), below
    rest = (top + below - bottom for top, bottom in zip(tops, bottoms, strict=True))
    return sum(counts), max(rest), below


def _term(expression: Any) -> t.Term:
    one = sympy.Symbol("exp(1)")  # sympy prints it as a name
    return parse(str(expression.xreplace({sympy.E: one})))


def _numbers(term: t.Term) -> list[Fraction]:
    return [part[1] for part in t.subterms(term) if part[0] == "num"]


def _is_small(term: t.Term) -> bool:
    """Return whether a term may be factored, which does not look at the clock."""
    powers = [part for part in t.subterms(term) if part[0] in ("exp", "pow")]
    finest = math.lcm(*(value.denominator for part in powers for value in _numbers(part[-1])))
    count, *degrees = _expanded(term)
    return count <= limits.FACTORED and max(degrees) * finest <= limits.DEGREE


def _factor(search: Search, goal: Goal, part: Any) -> _Factor | None:
    """Return a power that is a factor, with proofs of its sign."""
    base, exponent = part.as_base_exp()
    term, root = _term(part), _term(base)
    defined = not exponent.is_negative or goal.context.is_plainly(root, "!=")
    if defined and goal.context.holds(term, goal.strict):
        return _Factor([(term, TERMS)])
    if exponent.is_Integer and exponent % 2 == 0 and exponent > 0 and not goal.strict:
        half = t.power(root, _term(exponent / 2))
        return _Factor([(term, {"rule": "square", "root": t.encode(half)})])
    strict = bool(goal.strict or exponent.is_negative)
    for sign in (1, -1):
        signed = root if sign == 1 else t.negative(root)
        proof = search.inequality(goal.inside(signed, strict, 2))
        if proof is None:
            continue
        if exponent == 1:
            return _Factor([(signed, proof)], sign)
        if strict and (exponent.is_Integer or sign == 1):
            whole = exponent.is_Integer and exponent > 0
            rows = [(signed if whole else t.power(signed, _term(exponent)), TERMS)]
            odd = sign == -1 and exponent % 2 == 1
            known = [[t.encode(signed), proof]]
            return _Factor(rows * (int(exponent) if whole else 1), -1 if odd else 1, known)
    return None


def by_square(search: Search, goal: Goal) -> Proof | None:
    """Write a + b - 2 sqrt(a b) as (sqrt a - sqrt b)**2."""
    context, cleared = goal.context, goal.cleared()
    if goal.strict or not 2 < len(cleared) < 5:
        return None
    rows = [context.normal.term({m: v}) for m, v in cleared.items() if v > 0]
    for a, b in itertools.combinations([row for row in rows if context.holds(row, False)], 2):
        root = t.minus(t.power(a, t.number("1/2")), t.power(b, t.number("1/2")))
        square = t.power(root, t.number(2))
        rest = t.minus(goal.term, square)
        if context.holds(rest, False):
            return total((square, {"rule": "square", "root": t.encode(root)}), (rest, TERMS))
    return None
