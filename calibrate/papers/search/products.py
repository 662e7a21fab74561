"""Strategies by algebra: factors, squares, and means."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from dpcal.calibrate.papers.claims.formulas import parse, to_sympy
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.rules import bounds
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    decode,
    encode,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    subterms,
    symbols,
    times,
)
from dpcal.calibrate.papers.search.limits import LIMITS
from dpcal.calibrate.papers.search.multipliers import solve

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search

__all__ = [
    "by_factors",
    "by_logarithm",
    "by_means",
    "by_square",
    "by_step",
    "by_terms",
]

Proof = dict[str, Any]


def by_terms(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Conclude from the signs of terms that all agree."""
    return {"rule": "terms"} if context.holds(term, strict) else None


def by_logarithm(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Prove log(a) >= 0 from a >= 1, and -log(a) >= 0 from a <= 1."""
    low, high = ONE, ONE
    if term[0] == "log":
        high = term[1]
    elif term[:2] == ("mul", number(-1)) and len(term) == 3 and term[2][0] == "log":
        low = term[2][1]
    else:
        return None
    order = search.inequality(context, minus(high, low), strict, depth + 1)
    if order is None:
        return None
    ends = {"low": encode(low), "high": encode(high)}
    return {"rule": "logarithm", **ends, "proof": order}


def by_step(search: Search, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
    """Use the bounds of floor, ceiling and abs."""
    for part in subterms(term):
        if part[0] not in ("floor", "ceiling", "abs"):
            continue
        for image, positive in bounds(part):
            rest = minus(term, image)
            if context.holds(rest, False):
                step = {"rule": "bound", "of": encode(part)}
                rows = [[encode(image), step], [encode(rest), {"rule": "terms"}]]
                rows = rows if not strict or positive else rows[::-1]
                return {"rule": "sum", "parts": rows}
    return None


def by_factors(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Factor the term as a quotient of polynomials, and decide the sign of each factor."""
    if depth > LIMITS.depth_of_factors:
        return None
    if not _is_small(term):
        return None
    factored = sympy.factor(sympy.together(to_sympy(term, context.signs)))
    coefficient, parts = factored.as_coeff_mul()
    if len(parts) < 2 and not (parts and parts[0].is_Pow):
        return None
    sign = 1 if coefficient > 0 else -1
    rows: list[Any] = [[_term(abs(coefficient)), {"rule": "terms"}]]
    for part in parts:
        row = _factor(search, context, part, strict, depth)
        if row is None:
            return None
        sign *= row[2]
        rows.append(row[:2])
    if sign < 0:
        return None
    return {"rule": "product", "factors": [[encode(a), b] for a, b in rows]}


def _expanded(term: Term) -> tuple[int, Fraction, Fraction]:
    """Return bounds of the terms, and of the degrees above and below, of a quotient of sums."""
    head, *parts = term
    if head == "pow" and parts[1][0] == "num":
        count, *degrees = _expanded(parts[0])
        size = abs(parts[1][1])
        most = math.comb(count - 1 + min(math.ceil(size), LIMITS.degree), count - 1)
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


def _term(expression: Any) -> Term:
    one = sympy.Symbol("exp(1)")  # sympy prints it as a name
    return parse(str(expression.xreplace({sympy.E: one})))


def _numbers(term: Term) -> list[Fraction]:
    return [part[1] for part in subterms(term) if part[0] == "num"]


def _is_small(term: Term) -> bool:
    """Return whether a term may be factored, which does not look at the clock."""
    powers = [part for part in subterms(term) if part[0] in ("exp", "pow")]
    finest = math.lcm(*(value.denominator for part in powers for value in _numbers(part[-1])))
    count, *degrees = _expanded(term)
    return count <= LIMITS.factored and max(degrees) * finest <= LIMITS.degree


def _factor(search: Search, context: Context, part: Any, strict: bool, depth: int) -> Any:
    base, exponent = part.as_base_exp()
    term, root = _term(part), _term(base)
    defined = not exponent.is_negative or context.is_plainly(root, "!=")
    if defined and context.holds(term, strict):
        return term, {"rule": "terms"}, 1
    if exponent.is_Integer and exponent % 2 == 0 and exponent > 0 and not strict:
        half = power(root, _term(exponent / 2))
        return term, {"rule": "square", "root": encode(half)}, 1
    for sign in (1, -1):
        signed = root if sign == 1 else negative(root)
        proof = search.inequality(context, signed, strict or exponent.is_negative, depth + 2)
        if proof is None:
            continue
        if exponent == 1:
            return signed, proof, sign
        if exponent.is_Integer or sign == 1:
            step = {
                "rule": "power",
                "base": encode(signed),
                "exponent": encode(_term(exponent)),
                "positive": proof,
            }
            if strict or exponent.is_negative:
                odd = sign == -1 and exponent % 2 == 1
                return power(signed, _term(exponent)), step, -1 if odd else 1
    return None


def by_square(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Write a + b - 2 sqrt(a b) as (sqrt a - sqrt b)**2."""
    total = context.normal.clear(context.normal.sum(term))
    if strict or not 2 < len(total) + 0 < 5:
        return None
    rows = [context.normal.term({m: v}) for m, v in total.items() if v > 0]
    for i, a in enumerate(rows):
        for b in rows[:i]:
            if not (context.holds(a, False) and context.holds(b, False)):
                continue
            root = minus(power(a, number("1/2")), power(b, number("1/2")))
            square = power(root, number(2))
            rest = minus(term, square)
            if context.holds(rest, False):
                step = {"rule": "square", "root": encode(root)}
                parts = [[encode(square), step], [encode(rest), {"rule": "terms"}]]
                return {"rule": "sum", "parts": parts}
    return None


def by_means(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Write the term as a weighted arithmetic mean minus a geometric one."""
    parts = _addends(term)
    rows = [part for part in parts if _is_positive_product(context, part)]
    others = [part for part in parts if part not in rows]
    if strict or len(others) != 1 or not 2 <= len(rows) <= 5:
        return None
    found: list[Any] = []
    for row, weight in zip(rows, _weights(context, rows, others[0]) or (), strict=False):
        value = over(row, weight)
        proofs = [search.inequality(context, entry, True, depth + 2) for entry in (weight, value)]
        if None in proofs:
            return None
        found.append([encode(weight), encode(value), *proofs])
    powers = (power(decode(row[1]), decode(row[0])) for row in found)
    if not found or not context.is_zero(minus(term, minus(plus(*rows), times(*powers)))):
        return None
    return {"rule": "means", "parts": found}


def _weights(context: Context, rows: list[Term], target: Term) -> list[Term] | None:
    """Solve for weights with which the terms' exponents add up to those of the target."""
    fixed = {
        name
        for part in (*rows, target)
        for inner in subterms(part)
        if inner[0] == "pow"
        for name in symbols(inner[2])
    }
    columns = [_powers(context, row, fixed) for row in rows]
    goal = _powers(context, target, fixed)
    bases = sorted(set(goal).union(*columns))
    table = [[column.get(b, Fraction(0)) for b in bases] for column in columns]
    table = [[*column, Fraction(1)] for column in table]
    solved = solve(table, [*(goal.get(b, Fraction(0)) for b in bases), Fraction(1)])
    if solved is None:
        return None
    return [context.normal.exponent_term(weight) for weight in solved]


def _addends(term: Term) -> list[Term]:
    if term[0] == "add":
        return [inner for part in term[1:] for inner in _addends(part)]
    return [term]


def _is_positive_product(context: Context, term: Term) -> bool:
    normal = context.normal
    return all(normal.known_sign(normal.sum(part)) == "+" for part, _ in normal.factors(term))


def _powers(context: Context, term: Term, fixed: set[str]) -> dict[str, Any]:
    """Return the exponents of the symbols of a product, except fixed ones."""
    found: dict[str, Any] = {}
    factors = context.normal.factors(term)
    for part, exponent in factors:
        if part[0] == "sym" and part[1] not in fixed:
            found[part[1]] = found.get(part[1], Fraction(0)) + exponent
    return found
