"""Certificates by slopes: the value at a start, and the change of a term from there.

>>> from dpcal.calibrate.papers.claims.claims import Bound
>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.prover import prove
>>> claim = standalone(Bound("c", "sin(x) <= x", on={"x": (0, 1)}))
>>> rows = prove(claim).evidence["proofs"][0]["have"]
>>> [row[2]["rule"] for row in rows if row[2]["rule"] == "slope"]
['slope']
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel.rules import obligations
from dpcal.calibrate.papers.kernel.terms import (
    Term,
    decode,
    difference,
    encode,
    minus,
    negative,
    number,
    plus,
    substitute,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.papers.search.context import Context, closed_at
from dpcal.calibrate.papers.search.identities import equals

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.certificate import Step

__all__ = ["by_slope"]

Proof = dict[str, Any]


def by_slope(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Prove a term by its value at a start and the sign of its slope from there."""
    name, start = found["symbol"], decode(found["start"])
    x = symbol(name)
    if "above" not in found or "below" not in found:
        side = "above" if "above" in found else "below"
        return _one_sided(step, goal, strict, found, start, side)
    on = minus(x, start)
    proof: Proof = {"rule": "cases", "on": encode(on)}
    rows = (("nonnegative", "above", on), ("nonpositive", "below", negative(on)))
    for case, side, fact in rows:
        inner = step.child(step.context, step.facts.extended((fact, False)))
        if side == "below":
            inner.have(minus(start, x), False, equals(inner.facts, minus(start, x), fact))
        proof[case] = inner.closed(_one_sided(inner, goal, strict, found, start, side))
    return proof


def _one_sided(step: Step, goal: Term, strict: bool, found: Any, start: Term, side: str) -> Proof:
    name = found["symbol"]
    x, apart = symbol(name), strict and bool(found.get("open"))
    closed = closed_at(step.context, name, start)
    limits = [(fact, positive) for fact, positive in closed.facts if name in symbols(fact)]
    if closed.signs[name] != "?":
        limits.append((x, closed.signs[name] == "+"))
    for fact, positive in limits:
        step.plainly(substitute(fact, {name: start}), positive, closed)
    at_start = substitute(goal, {name: start})
    value = closed.substituted(name, start, {})
    step.lemma(at_start, strict and not apart, found["at"], value)
    step.plainly(minus(x, start) if side == "above" else minus(start, x), apart)
    rule = _between(step, goal, apart, found, start, side, closed, limits)
    change = minus(goal, at_start)
    step.defined(goal)
    step.have(change, apart, rule)
    return step.as_form(goal, plus(change, at_start))


def _between(
    step: Step,
    goal: Term,
    strict: bool,
    found: Any,
    start: Term,
    side: str,
    closed: Context,
    limits: list[tuple[Term, bool]],
) -> Proof:
    """Return the step about the slope at a fresh symbol between the start and the symbol."""
    name = found["symbol"]
    fresh = f"{name}_between"
    while fresh in step.facts.names:
        fresh += "_"
    x, z = symbol(name), symbol(fresh)
    low, high = (start, x) if side == "above" else (x, start)
    below, above = minus(z, low), minus(high, z)
    context = Context(
        {**closed.signs, fresh: closed.signs[name]},
        (*((substitute(f, {name: z}), s) for f, s in closed.facts), *closed.facts),
    )
    known = step.facts.extended((below, False), (above, False), name=fresh)
    inside = step.child(context, known)
    for fact, positive in limits:
        moved = substitute(fact, {name: z})
        rate = closed.normal.sum(difference(fact, name)).get(frozenset(), Fraction(0))
        end, piece = (low, below) if rate > 0 else (high, above)
        form = plus(substitute(fact, {name: end}), times(number(abs(rate)), piece))
        if not inside.facts.is_at_least(moved, positive):
            inside.have(moved, positive, equals(inside.facts, moved, form))
    body = substitute(goal, {name: z})
    for row in _renamed(found.get("closed_defined", []), name, fresh):
        part = decode(row[0])
        positive = dict(obligations(body)).get(part, ">") != ">="
        inside.lemma(part, positive, row[1])
        inside.context = inside.context.with_facts((part, positive))
    inside.defined(body)
    slope = difference(body, fresh)
    toward = below if side == "above" else above
    proof = inside.whole(
        inside.context.with_facts((toward, True)),
        inside.facts.extended((below, True), (above, True)),
        slope if side == "above" else negative(slope),
        strict,
        _renamed(found[side], name, fresh),
    )
    return {
        "rule": "slope",
        "name": fresh,
        "of": encode(body),
        "start": encode(start),
        "end": encode(x),
        "closed": inside.rows,
        "slope": proof,
    }


def _renamed(document: Any, old: str, new: str) -> Any:
    if isinstance(document, Mapping):
        return {key: _renamed(part, old, new) for key, part in document.items()}
    if isinstance(document, list):
        return [_renamed(part, old, new) for part in document]
    return new if document == old else document
