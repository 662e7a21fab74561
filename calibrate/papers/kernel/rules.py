"""The rules of proof: check that a tree of steps shows that a term is nonnegative or positive.

A step is the result of a search: a rule, its terms, and the steps inside of it.
``docs/explanation/audit.md`` states each rule with its theorem. The check is total: it returns, or
raises ``Undecided``.

>>> from dpcal.calibrate.papers.kernel.terms import encode, minus, number, plus, power, symbol
>>> x = symbol("x")
>>> goal = minus(power(x, number(2)), minus(x, number(1)))
>>> square = power(minus(x, number("1/2")), number(2))
>>> parts = [(number("3/4"), {"rule": "terms"}),
...          (square, {"rule": "square", "root": encode(minus(x, number("1/2")))})]
>>> step = {"rule": "sum", "parts": [[encode(part), proof] for part, proof in parts]}
>>> check(Context({"x": "?"}), goal, True, step)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcal.calibrate.papers.kernel import balls, terms as t
from dpcal.calibrate.papers.kernel.context import Context, Fact, obligations
from dpcal.calibrate.papers.kernel.terms import decode

Step = Mapping[str, Any]


def check(context: Context, term: t.Term, strict: bool, step: Any, depth: int = 0) -> None:
    """Check a step by which a term is defined and nonnegative, or positive, where the facts hold.

    Raises
    ------
    Undecided
        If a step does not follow its rule, or a limit of depth or time is reached.
    """
    t.require(depth < t.DEEPEST, "a proof that is less deep")
    t.require(isinstance(step, Mapping), "a step that is an object")
    t.require(t.symbols(term) <= context.signs.keys(), "a goal about known symbols")
    context.require_possible(term, strict)
    name = str(step.get("rule"))
    t.require(name in _RULES, f"a known rule, got {name!r:.40}")
    inner = _informed(context, term, step.get("defined", ()), depth + 1)
    if name not in ("extremum", "absurd"):
        inner.require_defined(term)
    _RULES[name](inner, term, strict, step, depth + 1)


def _informed(context: Context, term: t.Term, rows: Any, depth: int) -> Context:
    """Return the context with proved conditions under which a term is defined."""
    needed, facts = dict(obligations(term)), []
    for document, step in rows:
        part = decode(document)
        strict = needed.get(part, ">") != ">="
        check(context, part, strict, step, depth)
        facts.append((part, strict))
    return context.with_facts(*facts) if facts else context


def _rows(document: Any) -> list[tuple[t.Term, Any]]:
    return [(decode(part), step) for part, step in document]


def _terms(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    """Conclude from the signs of the monomials of the normal form, or of it less one fact."""
    t.require(context.holds(term, strict), "a term of plain sign")


def _sum(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    rows = _rows(step["parts"])
    for k, (part, inner) in enumerate(rows):
        check(context, part, strict and k == 0, inner, depth)
    context.require_equal(term, t.plus(*(part for part, _ in rows)))


def _product(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    rows = _rows(step["factors"])
    for part, inner in rows:
        check(context, part, strict, inner, depth)
    context.require_equal(term, t.times(*(part for part, _ in rows)))


def _square(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    t.require(not strict, "a square that may be zero")
    context.require_equal(term, t.power(decode(step["root"]), t.number(2)))


def bounds(term: t.Term) -> list[Fact]:
    """Return bounds of a step function, absolute value, logarithm, or erfc of a positive term."""
    head, a = term[0], term[1]
    if head == "floor":
        return [(t.minus(a, term), False), (t.minus(t.plus(term, t.ONE), a), True)]
    if head == "ceiling":
        return [(t.minus(term, a), False), (t.minus(t.plus(a, t.ONE), term), True)]
    if head == "abs":
        return [(t.minus(term, a), False), (t.plus(term, a), False)]
    if head == "log":
        return [(t.minus(t.minus(a, t.ONE), term), False)]
    t.require(head == "erfc", "a term with known bounds")
    square = t.power(a, t.number(2))
    bell = t.over(("exp", t.negative(square)), t.power(("pi",), t.number("1/2")))
    low = t.over(t.times(t.number(2), a, bell), t.plus(t.ONE, t.times(t.number(2), square)))
    return [(t.minus(t.over(bell, a), term), True), (t.minus(term, low), True)]


def _bound(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    of = decode(step["of"])
    t.require(of[0] != "erfc" or context.holds(of[1], True), "erfc of what is positive")
    gap, positive = bounds(of)[step["index"]]
    t.require(positive or not strict, "a bound that is never reached")
    context.require_equal(term, gap)


def _exponential(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    """Conclude high - low >= 0 from log(high) - log(low) >= 0."""
    low, high, order = (decode(step[name]) for name in ("low", "high", "order"))
    check(context, order, strict, step["proof"], depth)
    context.require_equal(order, t.minus(("log", high), ("log", low)))
    context.require_equal(term, t.minus(high, low))


def closed_at(context: Context, name: str, start: t.Term) -> Context:
    """Return the context of all values between a symbol and a start, both included.

    Facts that are not linear in the symbol, with a number as their slope, are left out; the others
    must hold at the start.
    """
    x, sign, facts = t.symbol(name), context.signs[name], list[Fact]()
    if sign == "+" and not context.holds(start, True):
        sign = "0+"
    for fact, strict in context.facts:
        if name in t.symbols(fact):
            if not _is_linear(context, fact, name):
                continue
            strict = strict and context.holds(t.substitute(fact, {name: start}), True)
        facts.append((fact, strict))
    closed = context.moved(facts, {**context.signs, name: sign}, context.witness)
    signs = {"+": [(x, True)], "0+": [(x, False)], "?": []}[sign]
    for fact, strict in (*signs, *closed.facts):
        if name in t.symbols(fact):
            held = closed.holds(t.substitute(fact, {name: start}), strict)
            t.require(held, "a start in the domain")
    return closed


def _is_linear(context: Context, fact: t.Term, name: str) -> bool:
    if any(name in t.symbols(part) for part, _ in obligations(fact)):
        return False
    try:
        return not set(context.normal.sum(t.difference(fact, name))) - {frozenset()}
    except t.Undecided:
        return False


def _derivative(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    """Conclude from the value at a start, and the sign of the slope from there on, on each side."""
    name, start = step["symbol"], decode(step["start"])
    t.require(name in context.signs and name not in t.symbols(start), "a start without the symbol")
    context.require_defined(start)
    x, apart = t.symbol(name), strict and step["open"] is True
    closed = _informed(closed_at(context, name, start), term, step["closed_defined"], depth)
    closed.require_defined(term)
    value = t.substitute(term, {name: start})
    check(closed.substituted(name, start), value, strict and not apart, step["at"], depth)
    slope, gap = t.difference(term, name), t.minus(x, start)
    sides = {"above": (gap, slope), "below": (t.negative(gap), t.negative(slope))}
    for side, (way, rise) in sides.items():
        if side in step:
            check(closed.with_facts((way, True)), rise, apart, step[side], depth)
        else:
            t.require(context.holds(t.negative(way), False), "one side of the start")
    ways = any(context.holds(way, True) for way, _ in sides.values())
    t.require(not apart or ways, "a start apart")


def _absurd(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    """Conclude anything from a fact and its opposite."""
    k = step["index"]
    fact, positive = context.facts[k]
    rest = (*context.facts[:k], *context.facts[k + 1 :])
    others = Context(context.signs, rest, None, context.deadline)
    check(others, t.negative(fact), not positive, step["against"], depth)


def _cases(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    on = decode(step["on"])
    context.require_defined(on)
    for fact, side in ((on, "nonnegative"), (t.negative(on), "nonpositive")):
        check(context.with_facts((fact, False)), term, strict, step[side], depth)


def chosen(context: Context, extremum: t.Term, part: t.Term) -> Context:
    """Return the context in which an extremum is one of its arguments."""
    facts = [(t.replace(fact, {extremum: part}), strict) for fact, strict in context.facts]
    for other in dict.fromkeys(extremum[1:]):
        if other != part:
            gap = (part, other) if extremum[0] == "max" else (other, part)
            facts.append((t.minus(*gap), False))
    return context.moved(facts, context.signs, context.witness)


def _extremum(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    extremum = decode(step["of"])
    t.require(extremum[0] in ("max", "min"), "a maximum or a minimum")
    context.require_defined(extremum)
    for part, case in zip(extremum[1:], step["cases"], strict=True):
        inner = chosen(context, extremum, part)
        check(inner, t.replace(term, {extremum: part}), strict, case, depth)


def _balls(context: Context, term: t.Term, strict: bool, step: Step, depth: int) -> None:
    """Enclose the term on every part of a box; a part outside the facts needs nothing."""
    used = t.symbols(term).union(*(t.symbols(fact) for fact, _ in context.facts))
    whole = {name: ends for name, ends in context.box.items() if name in used and None not in ends}
    pending: list[tuple[Any, Any]] = [(whole, step["tree"])]
    while pending:
        context.look()
        part, node = pending.pop()
        if node == ".":
            t.require(is_possible(term, strict, part), "a positive enclosure")
        elif node == "x":
            t.require(is_outside(context, part), "a part outside the domain")
        else:
            name, cut = node[0], decode(["num", node[1]])[1]
            low, high = part[name]
            pending.append(({**part, name: (low, cut)}, node[2]))
            pending.append(({**part, name: (cut, high)}, node[3]))


def is_possible(term: t.Term, strict: bool, part: balls.Box) -> bool:
    """Return whether a term has a value on a part of a box, everywhere with a sign."""
    ball = balls.value(term, part)
    return bool(ball > 0 or (ball >= 0 and not strict))


def is_outside(context: Context, part: balls.Box) -> bool:
    """Return whether a fact certainly fails on a part of a box."""
    for fact, strict in context.facts:
        try:
            ball = balls.value(fact, part)
        except t.Undecided:
            continue
        if ball < 0 or (strict and ball <= 0):
            return True
    return False


_SIGNS = (_terms, _sum, _product, _square, _bound, _exponential, _balls)
_SPLITS = (_derivative, _absurd, _cases, _extremum)
_RULES = {rule.__name__[1:]: rule for rule in (*_SIGNS, *_SPLITS)}
