"""Strategies that put another inequality in the place of one: its logarithm, a tangent, a rest.

Each takes logarithms of both sides, replaces logarithms by their tangents, or uses a multiple of a
fact.

>>> from dpcal.calibrate.papers.claims.notation import line
>>> from dpcal.calibrate.papers.prover import prove
>>> prove(line("exp(-x - x**2) <= 1 - x where x in [0, 1/2]")).status
'PROVED'
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.normal import Sum
from dpcal.calibrate.papers.search.goal import TERMS, Goal, Proof, gap, product, total
from dpcal.calibrate.papers.search.limits import LIMITS

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search

__all__ = [
    "by_fact",
    "by_logarithms",
    "by_squares",
    "by_tangents",
]


def _taken_out(context: Context, cleared: Sum) -> tuple[t.Term, Sum]:
    normal = context.normal
    shared, size, rest = normal._content(cleared, False) if cleared else (frozenset(), 1, cleared)
    return normal.term({shared: Fraction(size)}), rest


def _signed(sides: Sum) -> list[Sum]:
    """Return the positive and the negative part of a sum."""
    return [{m: sign * v for m, v in sides.items() if sign * v > 0} for sign in (1, -1)]


# -------------------------------------------------------------------------------------- logarithms


def by_logarithms(search: Search, goal: Goal) -> Proof | None:
    """Compare the logarithms of both sides, where one side is a power or an exponential."""
    written = goal.context.normal.sum(goal.term)
    for factor, sides in ((t.ONE, written), _taken_out(goal.context, goal.cleared())):
        proof = _by_logarithms(search, goal, factor, sides)
        if proof is not None:
            return proof
    return None


def _by_logarithms(search: Search, goal: Goal, factor: t.Term, sides: Sum) -> Proof | None:
    context, normal = goal.context, goal.context.normal
    parts = _signed(sides)
    if not all(parts) or not any(len(part) == 1 and _is_power(part) for part in parts):
        return None
    high, low = map(normal.term, parts)
    if not (context.holds(high, True) and context.holds(low, True)):
        return None
    # A sum stays as it is written, so that both sides have one logarithm of it.
    logs = [
        ("log", side) if len(part) > 1 else normal.term(normal.clear(normal.sum(("log", side))))
        for side, part in zip((high, low), parts, strict=True)
    ]
    order = t.minus(*logs)
    if goal.depth > LIMITS.depth_of_moves and not context.holds(order, goal.strict):
        return None
    proof = search.inequality(goal.inside(order, goal.strict, 2))
    if proof is None:
        return None
    ends = {"low": t.encode(low), "high": t.encode(high), "order": t.encode(order)}
    step = {"rule": "exponential", **ends, "proof": proof}
    positive = search.inequality(goal.inside(factor, goal.strict, 1))
    return None if positive is None else product((factor, positive), (t.minus(high, low), step))


def _is_power(total: Sum) -> bool:
    """Return whether a monomial has an exponent with symbols, or an exponential, in no sum."""
    (monomial,) = total
    if any(a[0] == "sum" and any(("e",) in dict(m) for m, _ in a[1]) for a, _ in monomial):
        return False
    return any(not isinstance(e, Fraction) for _, e in monomial)


# ----------------------------------------------------------------------------------------- squares


def by_squares(search: Search, goal: Goal) -> Proof | None:
    """Compare the squares of both sides, where one side is a root."""
    context, normal = goal.context, goal.context.normal
    factor, sides = _taken_out(context, goal.cleared())
    parts = _signed(sides)
    if not all(parts) or not any(len(part) == 1 and _is_root(part) for part in parts):
        return None
    high, low = map(normal.term, parts)
    if not (context.holds(high, True) and context.holds(low, False)):
        return None
    gap = t.minus(t.power(high, t.number(2)), t.power(low, t.number(2)))
    squares = normal.term(normal.clear(normal.sum(gap)))
    rows: list[Any] = []
    for part in (squares, t.times(factor, t.power(t.plus(high, low), t.number(-1)))):
        rows.append((part, search.inequality(goal.inside(part, goal.strict, 2))))
        if rows[-1][1] is None:
            return None
    return product(*rows)


def _is_root(part: Sum) -> bool:
    powers = ((a, e) for monomial in part for a, e in monomial if isinstance(e, Fraction))
    return any(e.denominator == 2 and a[0] != "num" for a, e in powers)


# ---------------------------------------------------------------------------------------- tangents


def by_tangents(search: Search, goal: Goal) -> Proof | None:
    """Use log(a) <= a - 1, log(a) >= 1 - 1/a, and the bounds of erfc, in the place of functions."""
    rows = _written_logs(goal.context, goal.term)
    tried = [list(c) for k in range(1, len(rows) + 1) for c in itertools.combinations(rows, k)]
    normal = goal.context.normal
    for chosen in (*tried, *([row] for row in _grouped_logs(goal))):
        gaps = [(factor, *gap(of, index)) for factor, of, index in chosen]
        below = t.plus(*(t.times(factor, image) for factor, image, _ in gaps))
        rest = normal.term(normal.clear(normal.sum(t.minus(goal.term, below))))
        proof = search.inequality(goal.inside(rest, goal.strict, 2))
        if proof is not None:
            rows = ((t.times(f, g), product((f, TERMS), (g, step))) for f, g, step in gaps)
            return total((rest, proof), *rows)
    return None


# A nonnegative factor, a function, and the place of a bound among those that the kernel knows.
Gap = tuple[t.Term, t.Term, int]


def _written_logs(context: Context, term: t.Term) -> list[Gap]:
    """Return bounds of the logarithms and tails in which a term is linear."""
    rows: list[Gap] = []
    for part in dict.fromkeys(part for part in t.subterms(term) if part[0] in ("log", "erfc")):
        slope = _coefficient(term, part)
        if slope is None or not t.symbols(part):
            continue
        rises, falls = context.holds(slope, False), context.holds(t.negative(slope), False)
        factor, is_log = slope if rises else t.negative(slope), part[0] == "log"
        if (rises or falls) and (is_log or context.holds(part[1], True)):
            of = ("log", t.over(t.ONE, part[1])) if is_log and rises else part
            rows.append((factor, of, int(rises and not is_log)))
    return rows[:3]


def _grouped_logs(goal: Goal) -> list[Gap]:
    """Return logarithms that have one factor as that of one quotient."""
    context, normal = goal.context, goal.context.normal
    groups: dict[Any, dict[t.Term, Fraction]] = {}
    for monomial, value in goal.cleared().items():
        logs = [(a, e) for a, e in monomial if a[0] == "logatom" and e == 1]
        if len(logs) == 1:
            base = normal.atom_term(logs[0][0])[1]
            groups.setdefault(monomial - {*logs}, {})[base] = value
    rows: list[Gap] = []
    for rest, bases in groups.items():
        factor = normal.term({rest: Fraction(1)})
        whole = all(value.denominator == 1 for value in bases.values())
        if 2 <= len(bases) <= 4 and whole and context.holds(factor, True):
            product = t.times(*(t.power(b, t.number(-v)) for b, v in bases.items()))
            rows.append((factor, ("log", product), 0))
    return rows


def _coefficient(term: t.Term, part: t.Term) -> t.Term | None:
    """Return the factor of a part in which a term is linear, or None."""
    name = "_part"
    replaced = t.replace(term, {part: t.symbol(name)})
    try:
        slope = t.difference(replaced, name)
    except ArithmeticError:
        return None
    return None if name in t.symbols(slope) else slope


# ------------------------------------------------------------------------------------------- facts


def by_fact(search: Search, goal: Goal) -> Proof | None:
    """Subtract a multiple of a fact that cancels a monomial, and prove the shorter rest."""
    normal, cleared = goal.context.normal, goal.cleared()
    for fact, scale in _multiples(goal.context, cleared):
        rest = normal.clear(normal.sum(t.minus(goal.term, t.times(scale, fact))))
        if len(rest) > len(cleared) - (goal.depth > 0):
            continue
        simpler, held = normal.term(rest), goal.context.holds(fact, True)
        proof = search.inequality(goal.inside(simpler, goal.strict and not held, 2))
        if proof is not None:
            multiple = t.times(scale, fact), product((scale, TERMS), (fact, TERMS))
            rows = [(simpler, proof), multiple]
            return total(*(rows[::-1] if held and goal.strict else rows))
    return None


def _multiples(context: Context, cleared: Sum) -> Iterator[tuple[t.Term, t.Term]]:
    normal = context.normal
    for fact, _ in context.facts:
        try:
            known = normal.clear(normal.sum(fact))
        except ArithmeticError:
            continue
        tried = set()
        for (m, v), (k, w) in itertools.product(cleared.items(), known.items()):
            if v * w <= 0 or len(known) < 2:
                continue
            scale = normal.sum(t.over(normal.term({m: v}), normal.term({k: w})))
            key = frozenset(scale.items())
            if key not in tried and normal.sign(scale) == "+":
                tried.add(key)
                yield fact, normal.term(scale)
