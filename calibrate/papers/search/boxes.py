"""Strategies that enclose a term over a box, cut into parts."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.rules import is_outside, is_possible
from dpcal.calibrate.papers.kernel.terms import (
    Term,
    Undecided,
    encode,
    minus,
    negative,
    number,
    symbol,
    symbols,
)
from dpcal.calibrate.papers.search.limits import LIMITS

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search

__all__ = ["by_balls", "by_cut", "by_few_boxes"]

Proof = dict[str, Any]


def by_few_boxes(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Enclose the term over a few boxes, before slower strategies are tried."""
    return by_balls(search, context, term, strict, depth, LIMITS.few_boxes)


def by_balls(
    search: Search, context: Context, term: Term, strict: bool, depth: int, most: int = LIMITS.boxes
) -> Proof | None:
    """Enclose the term over the parts of a box that are cut as needed."""
    box = {name: context.box[name] for name in context.signs}
    used = symbols(term)
    if any(None in box[name] for name in used):
        return None
    bounded = {n: ends for n, ends in box.items() if None not in ends and n in used}
    for fact, _ in context.facts:
        extra = symbols(fact)
        if extra & used and all(None not in box[n] for n in extra):
            bounded.update({n: box[n] for n in extra})
    tree = _tree(search, context, term, strict, bounded, most)
    return None if tree is None else {"rule": "balls", "tree": tree}


def _tree(search: Search, context: Context, term: Term, strict: bool, box: Any, most: int) -> Any:
    """Bisect the box until the term is enclosed above zero on every part."""
    root: list[Any] = [None]
    pending: list[Any] = [(root, 0, box)]
    count = 0
    while pending:
        count += 1
        if count > most or time.thread_time() > search.deadline:
            return None
        holder, slot, part = pending.pop()
        leaf = _leaf(context, term, strict, part)
        if leaf is not None:
            holder[slot] = leaf
            continue
        cut = _widest(part, box)
        if cut is None:
            return None
        name, at = cut
        node: list[Any] = [name, str(at), None, None]
        holder[slot] = node
        low, high = part[name]
        pending += [(node, 2, {**part, name: (low, at)}), (node, 3, {**part, name: (at, high)})]
    return root[0]


def by_cut(search: Search, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
    """Cut the range of one symbol in two: an unbounded one into a box and the rest."""
    names = [name for name in symbols(term) if context.box[name][0] is not None]
    for name in names if len(names) == 1 else ():
        for cut in _cuts(context, name, depth):
            on = minus(symbol(name), number(cut))
            proof = _cut(search, context, term, strict, depth, on)
            if proof is not None:
                return proof
    return None


def _cuts(context: Context, name: str, depth: int) -> list[Fraction]:
    low, high = context.box[name]
    if low is None or depth > (LIMITS.depth_of_cuts if high is None else LIMITS.depth_of_moves):
        return []
    if high is None:
        return [low + cut for cut in (2, 10, 100, 10_000)]
    return [low + (high - low) * share for share in (Fraction(1, 2), Fraction(1, 4))]


def _cut(
    search: Search, context: Context, term: Term, strict: bool, depth: int, on: Term
) -> Proof | None:
    beyond = search.inequality(context.with_facts((on, False)), term, strict, depth + 2)
    if beyond is None:
        return None
    inside = search.inequality(context.with_facts((negative(on), False)), term, strict, depth + 2)
    if inside is None:
        return None
    return {"rule": "cases", "on": encode(on), "nonnegative": beyond, "nonpositive": inside}


def _leaf(context: Context, term: Term, strict: bool, part: Any) -> str | None:
    try:
        if is_possible(term, strict, part):
            return "."
    except Undecided:
        pass
    return "x" if is_outside(context, part) else None


def _widest(part: Any, box: Any) -> tuple[str, Fraction] | None:
    """Return the symbol with the largest share of its first range, and its cut."""
    best, chosen = Fraction(0), None
    for name, (low, high) in part.items():
        span = box[name][1] - box[name][0]
        ratio = (high - low) / span if span else Fraction(0)
        if low > 0:
            ratio = max(ratio, (high - low) / high)
        if ratio > best:
            best, chosen = ratio, name
    if chosen is None or best < Fraction(1, 2**24):
        return None
    low, high = part[chosen]
    if low > 0 and high > 4 * low:
        middle = Fraction(f"{float(low * high) ** 0.5:.4g}")
        return chosen, middle if low < middle < high else (low + high) / 2
    return chosen, (low + high) / 2
