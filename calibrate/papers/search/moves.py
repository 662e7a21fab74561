"""Strategies that move a symbol along its range by the sign of the slope."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.normal import Normal, Sum
from dpcal.calibrate.papers.kernel.rules import closed_at
from dpcal.calibrate.papers.search.goal import Goal, Proof

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search


def by_zero(search: Search, goal: Goal) -> Proof | None:
    """Start where the term is zero, and follow the sign of its slope."""
    return _from_any(search, goal, lambda name: _zeros(goal.context, goal.term, name))


def by_derivative(search: Search, goal: Goal) -> Proof | None:
    """Start where the term is known to be nonnegative, and follow the sign of its slope."""
    return _from_any(search, goal, lambda name: _starts(goal.context, name))


def _from_any(search: Search, goal: Goal, starts: Callable[[str], list[t.Term]]) -> Proof | None:
    pairs = [(name, start) for name in sorted(t.symbols(goal.term)) for start in starts(name)]
    for name, start in pairs:
        proof = _from(search, goal, name, start)
        if proof is not None:
            return proof
    return None


def _from(search: Search, goal: Goal, name: str, start: t.Term) -> Proof | None:
    context, term, strict, _ = goal
    x, slope = t.symbol(name), t.difference(term, name)
    try:
        closed = closed_at(context, name, start)
    except t.Undecided:
        return None
    gaps = {"above": (t.minus(x, start), slope), "below": (t.minus(start, x), t.negative(slope))}
    apart = strict and any(context.holds(gap, True) for gap, _ in gaps.values())
    defined = search.definedness(closed, term, goal.depth)
    if defined is None:
        return None
    at_start, value = closed.substituted(name, start), t.substitute(term, {name: start})
    begin = search.inequality(goal.inside(value, strict and not apart, 2, at_start))
    if begin is None:
        return None
    step: Proof = {"rule": "derivative", "symbol": name, "start": t.encode(start), "at": begin}
    step.update({"open": apart, "closed_defined": defined})
    for side, (gap, direction) in gaps.items():
        if closed.holds(t.negative(gap), False):
            continue
        beyond = closed.with_facts((gap, True))
        step[side] = search.inequality(goal.inside(direction, apart, 2, beyond))
        if step[side] is None:
            return None
    return step


def _starts(context: Context, name: str) -> list[t.Term]:
    low, high = context.box.get(name, (None, None))
    ends = [t.number(end) for end in (low, high) if end is not None]
    return ends if low is not None and high is not None else [*ends, t.ZERO, t.ONE][:3]


def _zeros(context: Context, term: t.Term, name: str) -> list[t.Term]:
    """Return terms in other symbols at which the term is zero: from arguments that are equal."""
    normal = context.normal
    found: list[t.Term] = []
    others = (t.symbol(other) for other in t.symbols(term) - {name})
    pairs = [(t.symbol(name), other) for other in sorted(others)]
    for head in ("log", "exp"):
        inner = dict.fromkeys(p[1] for p in t.subterms(term) if p[0] == head and t.symbols(p))
        pairs += itertools.combinations(inner, 2)
    for pair in pairs:
        with suppress(ArithmeticError):
            start = _solved(normal.clear(normal.sum(t.minus(*pair))), name, normal)
            if start is not None and normal.is_zero(t.substitute(term, {name: start})):
                found.append(start)
    return list(dict.fromkeys(found))[:2]


def _solved(total: Sum, name: str, normal: Normal) -> t.Term | None:
    """Return the value of a symbol at which a sum that is linear in it is zero."""
    whole = (t.symbol(name), Fraction(1))
    slope = {m - {whole}: v for m, v in total.items() if whole in m}
    rest = normal.term({m: -v for m, v in total.items() if whole not in m})
    bottom = normal.term(slope)
    if not slope or name in t.symbols(rest) | t.symbols(bottom):
        return None
    return normal.term(normal.sum(t.over(rest, bottom)))
