"""Strategies that enclose a term over a box, cut into parts."""

from __future__ import annotations

import time
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.rules import is_outside, is_possible
from dpcal.calibrate.papers.search import limits
from dpcal.calibrate.papers.search.goal import Goal, Proof

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.engine import Search


def by_balls(search: Search, goal: Goal) -> Proof | None:
    """Enclose the term over the parts of a box that are cut as needed."""
    box, used = goal.context.box, t.symbols(goal.term)
    if any(None in box[name] for name in used):
        return None
    names = set(used)
    for fact, _ in goal.context.facts:
        extra = t.symbols(fact)
        if extra & used and all(None not in box[name] for name in extra):
            names |= extra
    tree = _tree(search, goal, {name: box[name] for name in goal.context.signs if name in names})
    return None if tree is None else {"rule": "balls", "tree": tree}


def _tree(search: Search, goal: Goal, box: Any) -> Any:
    """Bisect the box until the term is enclosed above zero on every part."""
    root: list[Any] = [None]
    pending: list[Any] = [(root, 0, box)]
    count = 0
    while pending:
        count += 1
        if count > limits.BOXES or time.thread_time() > search.deadline:
            return None
        holder, slot, part = pending.pop()
        leaf = _leaf(goal, part)
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


def by_cut(search: Search, goal: Goal) -> Proof | None:
    """Cut the range of one symbol in two: an unbounded one into a box and the rest."""
    context, term, strict, depth = goal
    names = [name for name in t.symbols(term) if context.box[name][0] is not None]
    for cut in _cuts(context, names[0], depth) if len(names) == 1 else ():
        on = t.minus(t.symbol(names[0]), t.number(cut))
        step: Proof = {"rule": "cases", "on": t.encode(on)}
        for side, fact in (("nonnegative", on), ("nonpositive", t.negative(on))):
            inner = goal.inside(term, strict, 2, context.with_facts((fact, False)))
            step[side] = search.inequality(inner)
            if step[side] is None:
                break
        else:
            return step
    return None


def _cuts(context: Context, name: str, depth: int) -> list[Fraction]:
    low, high = context.box[name]
    if low is None or depth > (limits.DEPTH_OF_CUTS if high is None else limits.DEPTH_OF_MOVES):
        return []
    if high is None:
        return [low + cut for cut in (2, 10, 100, 10_000)]
    return [low + (high - low) * share for share in (Fraction(1, 2), Fraction(1, 4))]


def _leaf(goal: Goal, part: Any) -> str | None:
    with suppress(t.Undecided):
        if is_possible(goal.term, goal.strict, part):
            return "."
    return "x" if is_outside(goal.context, part) else None


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
