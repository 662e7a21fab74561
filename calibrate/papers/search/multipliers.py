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
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.exponents import Exponent
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
from dpcal.calibrate.papers.search.products import by_terms
from dpcal.calibrate.papers.search.reductions import by_fact

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search

# A negative term as a share of the target, times powers of ratios below one, with proofs.
_Share = tuple[t.Term, list[tuple[t.Term, t.Term, Proof, Proof]]]


def by_multipliers(search: Search, goal: Goal) -> Proof | None:
    """Bound every negative term by its share of one positive term."""
    normal, cleared = goal.context.normal, goal.cleared()
    positives, negatives = (list(part.items()) for part in signed(cleared))
    if not negatives or not positives or len(negatives) > limits.NEGATIVES:
        return None
    if not all(goal.context.holds(normal.term({m: v}), False) for m, v in positives):
        return None
    ratios = _ratios(goal.context)
    for target in positives:
        whole = normal.term(dict([target]))
        if not goal.context.holds(whole, True):
            continue
        shares = []
        for row in negatives:
            found = _share(search, goal, t.over(normal.term(dict([row])), whole), ratios)
            if found is None:
                break
            shares.append(found)
        else:
            rest = normal.term(dict(row for row in positives if row != target))
            proof = _assembled(search, goal, whole, rest, shares)
            if proof is not None:
                return proof
    return None


def _assembled(
    search: Search, goal: Goal, whole: t.Term, rest: t.Term, shares: list[_Share]
) -> Proof | None:
    """Write the goal as products of the target and of terms known to be nonnegative."""
    left_over = t.minus(t.ONE, t.plus(*(share for share, _ in shares)))
    strictly_rest = goal.strict and rest != t.ZERO and goal.context.holds(rest, True)
    left = search.inequality(goal.inside(left_over, goal.strict and not strictly_rest, 2))
    if left is None:
        return None
    first = t.times(whole, left_over), product((whole, TERMS), (left_over, left))
    parts = [first] if rest == t.ZERO else [first, (rest, TERMS)]
    parts = parts[::-1] if strictly_rest else parts
    for share, factors in shares:
        if factors:
            low = t.times(*(t.power(ratio, m) for ratio, m, *_ in factors))
            rest, size = t.minus(t.ONE, low), t.times(whole, share)
            rows = [_multiple(*row) for row in factors]
            order = t.plus(*(part for part, _ in rows))
            step = exponential(low, t.ONE, order, total(*rows))
            parts.append((t.times(size, rest), product((size, TERMS), (rest, step))))
    return total(*parts)


def _multiple(ratio: t.Term, m: t.Term, below: Proof, sign: Proof) -> tuple[t.Term, Proof]:
    """Return -m log(ratio) with its proof, by log(ratio) <= ratio - 1."""
    rise = t.negative(("log", ratio))
    step = total(gap(("log", ratio)), (t.minus(t.ONE, ratio), below))
    return t.times(m, rise), product((m, sign), (rise, step))


def _exponents(context: Context, term: t.Term) -> dict[Any, Exponent]:
    """Return the exponents of the one monomial of a term, numbers left out."""
    cleared = context.normal.sum(term)
    if len(cleared) != 1:
        raise t.Undecided("one monomial")
    return {a: e for a, e in next(iter(cleared)) if a[0] not in ("num", "e", "pi")}


def _ratios(context: Context) -> list[tuple[t.Term, dict[Any, Exponent]]]:
    """Return ratios that a fact bounds by one, with their exponents."""
    rows = []
    for fact, _ in context.facts:
        try:
            larges, smalls = signed(context.normal.clear(context.normal.sum(fact)))
        except t.Undecided:
            continue
        if len(larges) != 1:
            continue
        large = context.normal.term(larges)
        for monomial, value in smalls.items():
            ratio = t.over(context.normal.term({monomial: value}), large)
            with suppress(t.Undecided):
                if context.holds(ratio, True):
                    rows.append((ratio, _exponents(context, ratio)))
    return rows[:12]


def _share(search: Search, goal: Goal, quotient: t.Term, ratios: Any) -> _Share | None:
    """Write a quotient as a share times a product of ratio ** multiplier."""
    wanted = _exponents(goal.context, quotient)
    bases = list(set(wanted).union(*(powers for _, powers in ratios)))
    aim = [wanted.get(base, Fraction(0)) for base in bases]
    for size in range(min(len(ratios), limits.RATIOS) + 1):
        for subset in itertools.combinations(ratios, size):
            columns = [[powers.get(base, Fraction(0)) for base in bases] for _, powers in subset]
            solved = solve(columns, aim)
            if solved is None or any(isinstance(m, Fraction) and m <= 0 for m in solved):
                continue
            found = _proved(search, goal, quotient, subset, solved)
            if found is not None:
                return found
    return None


def _proved(
    search: Search, goal: Goal, quotient: t.Term, subset: Any, solved: Any
) -> _Share | None:
    factors, normal = [], goal.context.normal
    for (ratio, _), multiplier in zip(subset, solved, strict=True):
        term = normal.exponent_term(multiplier)
        sign = search.inequality(goal.inside(term, False, 3))
        above = goal.inside(t.minus(t.ONE, ratio), False, 3)
        below = sign and (by_terms(search, above) or by_fact(search, above))
        if not (sign and below):
            return None
        factors.append((ratio, term, below, sign))
    remaining = t.over(quotient, t.times(*(t.power(r, m) for r, m, *_ in factors)))
    share = normal.term(normal.sum(remaining))
    return (share, factors) if goal.context.holds(share, True) else None


def solve(columns: Sequence[Sequence[Exponent]], goal: Sequence[Exponent]) -> list[Any] | None:
    """Solve ``sum_k x_k column_k = goal`` exactly; None without a unique solution."""
    width = len(columns)
    rows = [[column[i] for column in columns] + [goal[i]] for i in range(len(goal))]
    for k in range(width):
        pivot = next((r for r in range(k, len(rows)) if rows[r][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        lead = rows[k][k]
        rows[k] = [entry / lead for entry in rows[k]]
        for r, row in enumerate(rows):
            if r != k and row[k] != 0:
                rows[r] = [x - row[k] * y for x, y in zip(row, rows[k], strict=True)]
    if any(row[width] != 0 for row in rows[width:]):
        return None
    return [rows[k][width] for k in range(width)]
