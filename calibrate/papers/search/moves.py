"""Strategies that move a symbol: to the corner of its range, or along its range by the slope."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from dpcal.calibrate.papers.claims.normal import Normal, Sum
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    ZERO,
    Term,
    Undecided,
    difference,
    encode,
    minus,
    negative,
    number,
    over,
    plus,
    substitute,
    subterms,
    symbol,
    symbols,
)
from dpcal.calibrate.papers.search.context import (
    Context,
    closed_at,
)
from dpcal.calibrate.papers.search.limits import LIMITS
from dpcal.calibrate.papers.search.products import by_factors, by_square, by_terms

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search

__all__ = ["by_derivative", "by_moving", "by_zero"]

Proof = dict[str, Any]
FAILURES = (Undecided, ArithmeticError, ValueError, TypeError, sympy.PolynomialError)


def by_moving(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Move the corner of the domain to the origin, one symbol at a time."""
    if depth > LIMITS.depth_of_moves:
        return None
    for move in moves(context, _plain_symbols(term)):
        if time.thread_time() > search.deadline:
            return None
        search.fresh += 1
        name, step = move[0], {**move[1], "fresh": f"t{search.fresh}_"}
        while step["fresh"] in context.signs:
            step["fresh"] += "_"
        proof = _moved(search, context, term, strict, name, step, depth)
        if proof is not None:
            return proof
    return None


def _moved(
    search: Search, context: Context, term: Term, strict: bool, name: str, step: Proof, depth: int
) -> Proof | None:
    low, high = step.get("low", ONE), step.get("high", ONE)
    t = symbol(step["fresh"])
    value = {
        "shift": lambda: plus(low, t),
        "reflect": lambda: minus(high, t),
        "interval": lambda: plus(low, over(minus(high, low), plus(ONE, t))),
    }[step["kind"]]()
    inner = context.substituted(name, value, {step["fresh"]: "0+"})
    if context.signs[name] != "?":
        inner = inner.with_facts((value, context.signs[name] == "+"))
    proof = _after_move(search, inner, substitute(term, {name: value}), strict, depth + 1)
    if proof is None:
        return None
    result: Proof = {"rule": "substitute", "symbol": name, **step, "proof": proof}
    for end in ("low", "high"):
        if end in step:
            result[end] = encode(step[end])
    if step["kind"] == "interval" and not context.holds(minus(symbol(name), low), True):
        at_end = context.substituted(name, low, {})
        ending = search.inequality(at_end, substitute(term, {name: low}), strict, depth + 2)
        if ending is None:
            return None
        result["end"] = ending
    return result


def _after_move(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    defined = search.definedness(context, term, depth)
    if defined is None:
        return None
    for strategy in (by_terms, by_square, by_factors, by_moving):
        try:
            proof = strategy(search, context, term, strict, depth)
        except FAILURES:
            continue
        if proof is not None:
            return {**proof, "defined": defined} if defined else proof
    return None


def by_zero(search: Search, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
    """Start where the term is zero, and follow the sign of its slope."""
    pairs = [
        (name, start) for name in sorted(symbols(term)) for start in _zeros(context, term, name)
    ]
    return _from_any(search, context, term, strict, depth, pairs)


def by_derivative(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Start where the term is known to be nonnegative, and follow the sign of its slope."""
    pairs = [(name, start) for name in sorted(symbols(term)) for start in _starts(context, name)]
    return _from_any(search, context, term, strict, depth, pairs)


def _from_any(
    search: Search,
    context: Context,
    term: Term,
    strict: bool,
    depth: int,
    pairs: list[tuple[str, Term]],
) -> Proof | None:
    for name, start in pairs:
        proof = _from(search, context, term, strict, name, start, difference(term, name), depth)
        if proof is not None:
            return proof
    return None


def _from(
    search: Search,
    context: Context,
    term: Term,
    strict: bool,
    name: str,
    start: Term,
    slope: Term,
    depth: int,
) -> Proof | None:
    x = symbol(name)
    try:
        closed = closed_at(context, name, start)
        if closed.signs[name] != "?" and not closed.holds(start, False):
            return None
        for fact, positive in closed.facts:
            moved = substitute(fact, {name: start})
            if name in symbols(fact) and not closed.holds(moved, positive):
                return None
    except Undecided:
        return None
    step: Proof = {"rule": "derivative", "symbol": name, "start": encode(start)}
    gaps = {"above": (minus(x, start), slope), "below": (minus(start, x), negative(slope))}
    apart = strict and any(context.holds(gap, True) for gap, _ in gaps.values())
    defined = search.definedness(closed, term, depth)
    if defined is None:
        return None
    at_start = closed.substituted(name, start, {})
    value = substitute(term, {name: start})
    begin = search.inequality(at_start, value, strict and not apart, depth + 2)
    if begin is None:
        return None
    step.update({"at": begin, "open": apart, "closed_defined": defined})
    for side, (gap, direction) in gaps.items():
        if closed.holds(negative(gap), False):
            continue
        proof = search.inequality(closed.with_facts((gap, True)), direction, apart, depth + 2)
        if proof is None:
            return None
        step[side] = proof
    return step


def _plain_symbols(term: Term) -> set[str]:
    """Return the symbols that occur outside of functions and exponents."""
    inside: set[str] = set()
    for part in subterms(term):
        if part[0] == "pow":
            inside |= symbols(part[2])
        elif part[0] not in ("num", "sym", "add", "mul"):
            inside |= symbols(part)
    return symbols(term) - inside


def moves(context: Context, names: set[str]) -> Iterator[tuple[str, Proof]]:
    """Yield substitutions for symbols that conditions or ranges bound, conditions first."""
    for fact, _ in context.facts:
        for name in sorted(symbols(fact) & names):
            bound = _isolated(context, fact, name)
            if bound is not None:
                yield name, bound
    for name in sorted(names):
        low, high = context.box.get(name, (None, None))
        if low is not None and high is not None and low < high:
            yield name, {"kind": "interval", "low": number(low), "high": number(high)}
        elif low is not None and low != 0 and high is None:
            yield name, {"kind": "shift", "low": number(low)}
        elif high is not None and low is None:
            yield name, {"kind": "reflect", "high": number(high)}


def _isolated(context: Context, fact: Term, name: str) -> Proof | None:
    """Read a fact as a bound on a symbol by other symbols."""
    if len(symbols(fact)) < 2:
        return None
    try:
        total = dict(context.normal.sum(fact))
    except Undecided:
        return None
    slope = total.pop(frozenset({(symbol(name), Fraction(1))}), None)
    if slope is None:
        return None
    bound = context.normal.term({m: -v / slope for m, v in total.items()})
    if name in symbols(bound):
        return None
    if slope > 0:
        return {"kind": "shift", "low": bound} if context.holds(bound, False) else None
    if context.signs[name] == "+" and context.holds(bound, True):
        return {"kind": "interval", "low": ZERO, "high": bound}
    return None


def _starts(context: Context, name: str) -> list[Term]:
    low, high = context.box.get(name, (None, None))
    ends = [number(end) for end in (low, high) if end is not None]
    return ends if low is not None and high is not None else [*ends, ZERO, ONE][:3]


def _zeros(context: Context, term: Term, name: str) -> list[Term]:
    """Return terms in other symbols at which the term is zero: from arguments that are equal."""
    normal = context.normal
    found: list[Term] = []
    others = (symbol(other) for other in symbols(term) - {name})
    pairs = [(symbol(name), other) for other in sorted(others)]
    for head in ("log", "exp"):
        inner = dict.fromkeys(p[1] for p in subterms(term) if p[0] == head and symbols(p))
        pairs += itertools.combinations(inner, 2)
    for pair in pairs:
        try:
            start = _solved(normal.clear(normal.sum(minus(*pair))), name, normal)
            if start is not None and context.is_zero(substitute(term, {name: start})):
                found.append(start)
        except FAILURES:
            continue
    return list(dict.fromkeys(found))[:2]


def _solved(total: Sum, name: str, normal: Normal) -> Term | None:
    """Return the value of a symbol at which a sum that is linear in it is zero."""
    whole = (symbol(name), Fraction(1))
    slope = {m - {whole}: v for m, v in total.items() if whole in m}
    rest = normal.term({m: -v for m, v in total.items() if whole not in m})
    bottom = normal.term(slope)
    if not slope or name in symbols(rest) | symbols(bottom):
        return None
    value = normal.sum(over(rest, bottom))
    return normal.term(value)
