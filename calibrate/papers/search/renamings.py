"""Strategies that call a symbol by another name: its logarithm, or its inverse.

A symbol x that is at most 1 becomes exp(-t), and one that is at least 1 becomes exp(t), so that the
logarithm of x has a plain sign. A symbol that is at least 1 becomes 1/t, so that its range has two
ends.

>>> from dpcal.calibrate.papers.claims.claims import Bound
>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.prover import prove
>>> claim = Bound("c", "log(2)*sqrt(log(1/x)) <= log(1/x)", on={"x": ("1/1000", "1/2")})
>>> prove(standalone(claim)).status
'PROVED'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    Undecided,
    encode,
    minus,
    negative,
    number,
    over,
    plus,
    replace,
    substitute,
    subterms,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.papers.search.context import Context
from dpcal.calibrate.papers.search.identities import equals

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.certificate import Step
    from dpcal.calibrate.papers.search.engine import Search

__all__ = [
    "by_inverse",
    "by_renaming",
    "image_of",
    "logarithms",
    "renamed",
    "under_name",
    "value_of",
    "write_renaming",
]

Proof = dict[str, Any]


def by_renaming(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Call symbols under logarithms by their logarithms."""
    return (
        _by(search, context, term, strict, depth, logarithms(context, term)) if not depth else None
    )


def by_inverse(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Call symbols that are divisors inside of a function by their inverses."""
    return _by(search, context, term, strict, depth, _inverses(context, term))


def _by(
    search: Search, context: Context, term: Term, strict: bool, depth: int, steps: Iterable[Proof]
) -> Proof | None:
    for step in steps:
        inner = renamed(context, step)
        table = {step["symbol"]: image_of(step)}
        proof = search.inequality(inner, substitute(term, table), strict, depth + 1)
        if proof is not None:
            return {**step, "proof": proof}
    return None


def logarithms(context: Context, *terms: Term) -> Iterator[Proof]:
    """Yield logarithms, of one sign, as names for the symbols under logarithms."""
    parts = [part for term in terms for part in subterms(term)]
    under = {name for part in parts if part[0] == "log" for name in symbols(part)}
    for name in sorted(under & context.signs.keys()):  # a symbol that grows has no sign
        low, high = context.box.get(name, (None, None))
        if context.signs[name] == "+" and high is not None and high <= 1:
            yield _step(context, "logarithm", name, -1, high)
        elif low is not None and low >= 1:
            yield _step(context, "logarithm", name, 1, low)


def _inverses(context: Context, term: Term) -> Iterator[Proof]:
    inside = (part for part in subterms(term) if part[0] in ("exp", "log", "erf", "erfc"))
    divisors = {
        name
        for part in inside
        for inner in subterms(part)
        if inner[0] == "pow" and inner[2][0] == "num" and inner[2][1] < 0
        for name in symbols(inner[1])
        if inner[1][0] == "sym" or inner[1][1] == symbol(name)
    }
    for name in sorted(divisors):
        low, high = context.box.get(name, (None, None))
        if low is not None and low >= 1 and high is None:
            yield _step(context, "inverse", name, 1, low)


def _step(context: Context, kind: str, name: str, sign: int, end: Fraction) -> Proof:
    fresh = f"{name}_log" if kind == "logarithm" else f"{name}_inv"
    while fresh in context.signs:
        fresh += "_"
    ends = {"symbol": name, "fresh": fresh, "sign": sign, "end": str(end)}
    return {"rule": "renaming", "kind": kind, **ends}


def image_of(step: Proof) -> Term:
    """Return the term that takes the place of the symbol."""
    t = symbol(step["fresh"])
    if step["kind"] == "inverse":
        return over(ONE, t)
    return ("exp", t if step["sign"] == 1 else negative(t))


def value_of(step: Proof) -> Term:
    """Return the term that gets the new name."""
    x = symbol(step["symbol"])
    if step["kind"] == "inverse":
        return over(ONE, x)
    return ("log", x) if step["sign"] == 1 else negative(("log", x))


def _end(step: Proof) -> tuple[Term, Term, Term]:
    """Return what is known about the new name, and the ends of the old one in order."""
    t, x, end = symbol(step["fresh"]), symbol(step["symbol"]), number(step["end"])
    if step["kind"] == "inverse":
        return minus(over(ONE, end), t), end, x
    log = ("log", end)
    fact = minus(t, log) if step["sign"] == 1 else plus(t, log)
    return fact, *((end, x) if step["sign"] == 1 else (x, end))


def renamed(context: Context, step: Proof) -> Context:
    """Return the context in which the symbol has its new name."""
    name, fresh = step["symbol"], step["fresh"]
    fact, low, high = _end(step)
    strict = context.holds(minus(high, low), True)
    known = [] if step["end"] == "1" and step["kind"] == "logarithm" else [(fact, strict)]
    above = step["end"] != "1" or strict or step["kind"] == "inverse"
    inner = context.substituted(name, image_of(step), {fresh: "+" if above else "0+"})
    return inner.with_facts(*known)


def write_renaming(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Prove a goal by the proof that was found for its new name."""
    return under_name(
        step,
        goal,
        found,
        lambda inner, moved: inner.by_rule(moved, strict, found["proof"]),
    )


def under_name(step: Step, goal: Term, found: Any, then: Callable[[Step, Term], Proof]) -> Proof:
    """Call a value by the fresh name, put the image in the place of the symbol, and go on."""
    x, t = symbol(found["symbol"]), symbol(found["fresh"])
    value, image = value_of(found), image_of(found)
    fact, low, high = _end(found)
    context = renamed(step.context, found)
    apart = step.context.holds(minus(high, low), True)
    step.plainly(x, True)
    step.plainly(minus(high, low), apart)
    step.defined(value)
    gap = minus(t, value)
    rows = ((gap, False), (negative(gap), False))
    inner = step.child(step.context, step.facts.extended(*rows, name=found["fresh"]))
    if found["kind"] == "inverse":
        inner.have(t, True, equals(inner.facts, t, plus(gap, value)))
        form = plus(negative(gap), times(minus(high, low), value, over(ONE, low)))
        inner.have(fact, apart, inner.as_form(fact, form))
        sides = [(times(g, x, over(ONE, t)), side) for g, side in _sides(gap, x, image)]
    else:
        logs = ("log", low), ("log", high)
        order = minus(logs[1], logs[0])
        inner.defined(order)
        ends = {"low": encode(low), "high": encode(high)}
        inner.have(order, apart, {"rule": "monotone", "function": "log", **ends})
        inner.have(fact, apart, inner.as_form(fact, plus(gap, order)))
        if found["end"] != "1":
            end = times(number(found["sign"]), ("log", number(found["end"])))
            inner.have(end, True, {"rule": "plain"})
        base = plus(fact, end) if found["end"] != "1" else fact
        inner.have(t, context.signs[t[1]] == "+", inner.as_form(t, base))
        sides = _by_exponential(inner, x, image, gap, found["sign"])
    for form, side in sides:
        inner.have(side, False, inner.as_form(side, form))
    table = {x: image}
    replaced = [(replace(known, table), s) for known, s in inner.facts.facts.items()]
    facts = inner.facts.extended(*replaced)
    below = inner.child(context, facts)
    proof = below.closed(then(below, replace(goal, table)))
    use: Proof = {"rule": "replace", "of": encode(x), "by": encode(image), "then": proof}
    return {"rule": "let", "name": t[1], "value": encode(value), "then": inner.closed(use)}


def _sides(gap: Term, x: Term, image: Term) -> list[tuple[Term, Term]]:
    return [(gap, minus(x, image)), (negative(gap), minus(image, x))]


def _by_exponential(
    inner: Step, x: Term, image: Term, gap: Term, sign: int
) -> list[tuple[Term, Term]]:
    """Show that the exponentials of the logarithm and of the exponent are equal."""
    log, exponent, rows = ("log", x), image[1], []
    for low, high in ((log, exponent), (exponent, log)):
        order = minus(high, low)
        for form in (gap, negative(gap)):
            try:
                inner.have(order, False, inner.as_form(order, form))
                break
            except Undecided:
                continue
        between = minus(("exp", high), ("exp", low))
        ends = {"low": encode(low), "high": encode(high)}
        inner.have(between, False, {"rule": "monotone", "function": "exp", **ends})
        sides = minus(image, x) if high == exponent else minus(x, image)
        rows.append((between, sides))
    return rows
