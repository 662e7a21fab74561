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
from typing import TYPE_CHECKING

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.normal import Sum
from dpcal.calibrate.papers.kernel.rules import bounds
from dpcal.calibrate.papers.search import limits
from dpcal.calibrate.papers.search.goal import (
    TERMS,
    Goal,
    Proof,
    exponential,
    gap,
    product,
    signed,
    total,
)

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search


def by_logarithms(search: Search, goal: Goal) -> Proof | None:
    """Compare the logarithms of both sides, where one side is a power or an exponential."""
    written = goal.context.normal.sum(goal.term)
    return _compared(search, goal, written) or _compared(search, goal, goal.cleared())


def _compared(search: Search, goal: Goal, sides: Sum) -> Proof | None:
    context, normal = goal.context, goal.context.normal
    parts = signed(sides)
    if not all(parts) or not any(len(part) == 1 and _is_power(part) for part in parts):
        return None
    high, low = map(normal.term, parts)
    if not (context.holds(high, True) and context.holds(low, True)):
        return None
    # A sum stays as it is written: then both sides have the same logarithm of it.
    logs = [
        ("log", side) if len(part) > 1 else normal.term(normal.clear(normal.sum(("log", side))))
        for side, part in zip((high, low), parts, strict=True)
    ]
    order = t.minus(*logs)
    if goal.depth > limits.DEPTH_OF_MOVES and not context.holds(order, goal.strict):
        return None
    proof = search.inequality(goal.inside(order, goal.strict, 2))
    return proof and exponential(low, high, order, proof)


def _is_power(total: Sum) -> bool:
    """Return whether a monomial has an exponent with symbols, or an exponential, in no sum."""
    (monomial,) = total
    if any(a[0] == "sum" and any(("e",) in dict(m) for m, _ in a[1]) for a, _ in monomial):
        return False
    return any(not isinstance(e, Fraction) for _, e in monomial)


def by_tangents(search: Search, goal: Goal) -> Proof | None:
    """Use the known bounds of functions, and log(a) >= 1 - 1/a, in the place of the functions."""
    rows = _written(goal.context, goal.term)
    sizes, normal = range(1, len(rows) + 1), goal.context.normal
    for chosen in itertools.chain.from_iterable(itertools.combinations(rows, k) for k in sizes):
        apart = [row for row in chosen if goal.strict and _is_apart(goal.context, *row)]
        ordered = (*apart, *(row for row in chosen if row not in apart))
        gaps = [(factor, *gap(of, index)) for factor, of, index in ordered]
        below = t.plus(*(t.times(factor, image) for factor, image, _ in gaps))
        rest = normal.term(normal.clear(normal.sum(t.minus(goal.term, below))))
        proof = search.inequality(goal.inside(rest, goal.strict and not apart, 2))
        if proof is not None:
            parts = [(t.times(f, g), product((f, TERMS), (g, step))) for f, g, step in gaps]
            return total(*parts, (rest, proof)) if apart else total((rest, proof), *parts)
    return None


# A factor >= 0, a function, and the place of a bound among the function's.
Gap = tuple[t.Term, t.Term, int]
_PLACES = {"log": (0, 0), "erfc": (1, 0), "floor": (1, 0), "ceiling": (0, 1), "abs": (0, 1)}


def _is_apart(context: Context, factor: t.Term, of: t.Term, index: int) -> bool:
    """Return whether a multiple of a bound is positive."""
    return bounds(of)[index][1] and context.holds(factor, True)


def _written(context: Context, term: t.Term) -> list[Gap]:
    """Return bounds of the functions in which a term is linear."""
    rows: list[Gap] = []
    for part in dict.fromkeys(part for part in t.subterms(term) if part[0] in _PLACES):
        slope = _coefficient(term, part)
        if slope is None or not t.symbols(part):
            continue
        rises, falls = context.holds(slope, False), context.holds(t.negative(slope), False)
        if (rises or falls) and (part[0] != "erfc" or context.holds(part[1], True)):
            of = ("log", t.over(t.ONE, part[1])) if part[0] == "log" and rises else part
            rows.append((slope if rises else t.negative(slope), of, _PLACES[part[0]][not rises]))
    return rows[:3]


def _coefficient(term: t.Term, part: t.Term) -> t.Term | None:
    """Return the factor of a part in which a term is linear, or None."""
    name = "_part"
    replaced = t.replace(term, {part: t.symbol(name)})
    try:
        slope = t.difference(replaced, name)
    except ArithmeticError:
        return None
    return None if name in t.symbols(slope) else slope


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
