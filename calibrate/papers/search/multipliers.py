"""Posynomial domination: a term is at most a share of another, by powers of ratios below one.

A fact ``small <= large`` with one monomial on its right gives ratios at most 1. A negative term of
the goal is written as ``share * target * product of ratio ** multiplier`` with multipliers that are
nonnegative; shares must add up to at most one.

>>> from dpcal.calibrate.papers.kernel.exponents import generator
>>> solve([[Fraction(2), Fraction(0)], [Fraction(1), Fraction(1)]], [Fraction(1), Fraction(1)])
[Fraction(0, 1), Fraction(1, 1)]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.exponents import Exponent, Ratio
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    Undecided,
    encode,
    minus,
    number,
    over,
    plus,
    power,
    times,
)
from dpcal.calibrate.papers.search.limits import LIMITS

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search

__all__ = ["by_multipliers", "exponents_of", "solve"]

Proof = dict[str, Any]


def by_multipliers(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Bound every negative term by its share of one positive term."""
    normal = context.normal
    total = normal.clear(normal.sum(term))
    positives = [(m, v) for m, v in total.items() if v > 0]
    negatives = [(m, -v) for m, v in total.items() if v < 0]
    if not negatives or not positives or len(negatives) > LIMITS.negatives:
        return None
    if not all(context.holds(normal.term({m: v}), False) for m, v in positives):
        return None
    ratios = _ratios(context)
    for target in positives:
        if not context.holds(normal.term({target[0]: target[1]}), True):
            continue
        shares = []
        for row in negatives:
            found = _share(search, context, row, target, ratios, depth)
            if found is None:
                break
            shares.append(found)
        else:
            others = [row for row in positives if row != target]
            proof = _assembled(search, context, target, others, shares, strict, depth)
            if proof is not None:
                return proof
    return None


def _assembled(
    search: Search,
    context: Context,
    target: Any,
    others: Any,
    shares: Any,
    strict: bool,
    depth: int,
) -> Proof | None:
    """Write the goal as products of the target and of terms known to be nonnegative."""
    normal = context.normal
    whole = normal.term({target[0]: target[1]})
    left_over = minus(ONE, plus(*(share for share, _, _ in shares)))
    rest = normal.term(dict(others))
    strictly_rest = strict and bool(others) and context.holds(rest, True)
    left = search.inequality(context, left_over, strict and not strictly_rest, depth + 2)
    if left is None:
        return None
    factors = [[encode(whole), {"rule": "terms"}], [encode(left_over), left]]
    first = [encode(times(whole, left_over)), {"rule": "product", "factors": factors}]
    second = [encode(rest), {"rule": "terms"}]
    parts = [second, first] if strictly_rest else [first, second] if others else [first]
    for share, powers, proofs in shares:
        if not powers:
            continue
        gap = minus(ONE, times(*(power(ratio, m) for ratio, m in powers)))
        step = {
            "rule": "unit_powers",
            "factors": [
                [encode(ratio), encode(m), {"rule": "terms"}, below, sign]
                for (ratio, m), (below, sign) in zip(powers, proofs, strict=True)
            ],
        }
        size = times(whole, share)
        product = [[encode(size), {"rule": "terms"}], [encode(gap), step]]
        parts.append([encode(times(size, gap)), {"rule": "product", "factors": product}])
    return {"rule": "sum", "parts": parts}


def exponents_of(context: Context, term: Term) -> dict[Any, Exponent]:
    """Return the exponents of the one monomial of a term, numbers left out."""
    total = context.normal.sum(term)
    if len(total) != 1:
        raise Undecided("one monomial")
    return {a: e for a, e in next(iter(total)) if not _is_number(a)}


def _is_number(atom: Any) -> bool:
    return atom[0] in ("num", "e", "pi")


def _ratios(context: Context) -> list[tuple[Term, dict[Any, Exponent]]]:
    """Return ratios that a fact bounds by one, with their exponents."""
    rows = []
    for fact, _ in context.facts:
        try:
            total = context.normal.clear(context.normal.sum(fact))
        except Undecided:
            continue
        larges = [(m, v) for m, v in total.items() if v > 0]
        smalls = [(m, -v) for m, v in total.items() if v < 0]
        if len(larges) != 1 or not smalls:
            continue
        large = context.normal.term(dict(larges))
        for monomial, value in smalls:
            ratio = over(context.normal.term({monomial: value}), large)
            try:
                if context.holds(ratio, True):
                    rows.append((ratio, exponents_of(context, ratio)))
            except Undecided:
                continue
    return rows[:12]


def _share(
    search: Search, context: Context, row: Any, target: Any, ratios: Any, depth: int
) -> tuple[Term, list[Any], list[Any]] | None:
    """Write row = share * target * product of ratio ** multiplier."""
    normal = context.normal
    quotient = over(normal.term(dict([row])), normal.term(dict([target])))
    goal = exponents_of(context, quotient)
    bases = list(set(goal).union(*(powers for _, powers in ratios)))
    wanted = [goal.get(base, Fraction(0)) for base in bases]
    for size in range(min(len(ratios), LIMITS.ratios) + 1):
        for subset in itertools.combinations(ratios, size):
            columns = [[powers.get(base, Fraction(0)) for base in bases] for _, powers in subset]
            solved = solve(columns, wanted)
            if solved is None or any(isinstance(m, Fraction) and m <= 0 for m in solved):
                continue
            found = _proved(search, context, quotient, subset, solved, depth)
            if found is not None:
                return found
    return None


def _proved(
    search: Search, context: Context, quotient: Term, subset: Any, solved: Any, depth: int
) -> tuple[Term, list[Any], list[Any]] | None:
    powers, proofs = [], []
    for (ratio, _), multiplier in zip(subset, solved, strict=True):
        term = context.normal.exponent_term(multiplier)
        sign = search.inequality(context, term, False, depth + 3)
        if sign is None:
            return None
        below = _below_one(context, ratio)
        if below is None:
            return None
        powers.append((ratio, term))
        proofs.append((below, sign))
    remaining = over(quotient, times(*(power(r, m) for r, m in powers)))
    share = context.normal.term(context.normal.sum(remaining))
    return (share, powers, proofs) if context.holds(share, True) else None


def _below_one(context: Context, ratio: Term) -> Proof | None:
    """Prove 1 - small/large >= 0 as (large - small)/large."""
    if context.holds(minus(ONE, ratio), False):
        return {"rule": "terms"}
    total = context.normal.sum(ratio)
    monomial, value = next(iter(total.items()))
    top = frozenset((a, e) for a, e in monomial if isinstance(e, Ratio) or e > 0)
    bottom = frozenset((a, -e) for a, e in monomial - top)
    small = context.normal.term({top: Fraction(value.numerator)})
    large = context.normal.term({bottom: Fraction(value.denominator)})
    for scale in _scalings(context, small, large):
        gap = times(minus(large, small), scale)
        if context.holds(gap, False):
            inverse = power(times(large, scale), number(-1))
            factors = [[encode(inverse), {"rule": "terms"}], [encode(gap), {"rule": "terms"}]]
            return {"rule": "product", "factors": factors}
    return None


def _scalings(context: Context, small: Term, large: Term) -> list[Term]:
    """Return factors that may turn the gap into one of the facts."""
    scales = [ONE]
    for fact, _ in context.facts:
        total = context.normal.clear(context.normal.sum(fact))
        larges = [context.normal.term({m: v}) for m, v in total.items() if v > 0]
        if len(larges) == 1:
            scale = over(larges[0], large)
            if context.holds(scale, True):
                scales.append(context.normal.term(context.normal.sum(scale)))
    return scales


def solve(columns: Sequence[Sequence[Exponent]], goal: Sequence[Exponent]) -> list[Any] | None:
    """Solve ``sum_k x_k column_k = goal`` exactly; None without a unique solution."""
    width = len(columns)
    rows = [[column[i] for column in columns] + [goal[i]] for i in range(len(goal))]
    pivots = 0
    for k in range(width):
        pivot = next((r for r in range(pivots, len(rows)) if rows[r][k] != 0), None)
        if pivot is None:
            return None
        rows[pivots], rows[pivot] = rows[pivot], rows[pivots]
        lead = rows[pivots][k]
        rows[pivots] = [entry / lead for entry in rows[pivots]]
        for r, row in enumerate(rows):
            if r != pivots and row[k] != 0:
                rows[r] = [x - row[k] * y for x, y in zip(row, rows[pivots], strict=True)]
        pivots += 1
    if any(row[width] != 0 for row in rows[pivots:]):
        return None
    return [rows[k][width] for k in range(width)]
