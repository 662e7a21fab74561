"""The rules of proof: check that a tree of steps shows that a term is nonnegative or positive.

A context is a list of facts: terms that are defined and nonnegative, or positive. A step first adds
lemmas (``have``: term, whether it is positive, proof), then uses one rule. ``docs/audit.md`` states
each rule with its side conditions. The check is total: it returns, or raises ``Undecided``.

>>> from dpcal.calibrate.papers.kernel.terms import encode, minus, number, plus, power, symbol
>>> x = symbol("x")
>>> goal = minus(power(x, number(2)), minus(x, number(1)))
>>> square = power(minus(x, number("1/2")), number(2))
>>> step = {"rule": "plain", "as": encode(plus(number("3/4"), square))}
>>> check(Context({"x"}), goal, True, step)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from dpcal.calibrate.papers.kernel import balls, terms as t
from dpcal.calibrate.papers.kernel.rings import Ring

__all__ = ["Context", "Fact", "bounds", "check", "is_zero_form", "obligations", "same"]

Fact = tuple[t.Term, bool]
Proof = Mapping[str, Any]


def obligations(term: t.Term) -> list[tuple[t.Term, str]]:
    """Return the terms that must be ``">="``, ``">"`` or ``"!="`` zero for a term to be defined."""
    found = []
    for part in t.subterms(term):
        if part[0] in ("log", "gamma", "uppergamma"):
            found += [(argument, ">") for argument in part[1:]]
        elif part[0] == "pow":
            base, exponent = part[1:]
            whole = exponent[0] == "num" and exponent[1].denominator == 1
            if not whole or exponent[1] < 0:
                root = exponent[0] == "num" and exponent[1] > 0
                found.append((base, "!=" if whole else ">=" if root else ">"))
    return list(dict.fromkeys(found))


class Context:
    """Symbols, and terms in them that are defined and nonnegative, or positive.

    Parameters
    ----------
    names
        The symbols; each stands for any real number that the facts allow.
    facts
        Pairs of a term and whether it is positive.
    deadline
        Value of ``time.thread_time()`` at which the check gives up.
    """

    def __init__(
        self, names: Iterable[str], facts: Iterable[Fact] = (), deadline: float = math.inf
    ) -> None:
        self.names, self.deadline = frozenset(names), deadline
        self.facts: dict[t.Term, bool] = {}
        self._signs: dict[t.Term, int] = {}
        self._add(facts)

    def _add(self, facts: Iterable[Fact]) -> None:
        for term, strict in facts:
            t.require(t.symbols(term) <= self.names, "facts about known symbols")
            self.facts[term] = strict or self.facts.get(term, False)

    def extended(self, *facts: Fact, name: str = "") -> Context:
        """Return the context with more facts, and with a fresh symbol where a name is given."""
        t.require(not name or (name.isidentifier() and name not in self.names), "a fresh symbol")
        names = self.names | {name} if name else self.names
        wider = Context(names, deadline=self.deadline)
        wider.facts.update(self.facts)
        wider._add(facts)
        return wider

    def look(self) -> None:
        """Raise Undecided if the time is over."""
        t.require(time.thread_time() < self.deadline, "a check within the time limit")

    def sign(self, term: t.Term) -> int:
        """Return 2 for a term that is plainly positive where it is defined, 1 for nonnegative."""
        if term[0] == "num":
            return 2 if term[1] > 0 else int(term[1] == 0)
        self.look()
        if (found := self._signs.get(term)) is None:
            known = {True: 2, False: 1, None: 0}[self.facts.get(term)]
            found = self._signs[term] = max(known, self._sign(term)) if known < 2 else 2
        return found

    def _sign(self, term: t.Term) -> int:
        head = term[0]
        if head == "sym":
            return 0
        if head == "pow" and term[2][0] == "num" and term[2][1] % 2 == 0:
            return 2 if self.sign(term[1]) == 2 or term[2][1] < 0 else 1
        if head in ("exp", "erfc", "gamma", "uppergamma"):
            return 2
        if all(part[0] != "sym" for part in t.subterms(term)):
            return {1: 2, 0: 1, -1: 0, None: 0}[balls.sign_at(term, {})]
        signs = [self.sign(part) for part in term[1:]]
        if head == "add":
            return 0 if 0 in signs else max(signs)
        if head in ("mul", "min"):
            return min(signs)
        if head == "pow":
            root = term[2][0] == "num" and term[2][1] > 0
            return 2 if signs[0] == 2 else int(signs[0] == 1 and root)
        return max(signs) if head == "max" else int(head == "abs")

    def is_at_least(self, term: t.Term, strict: bool = False) -> bool:
        """Return whether a term is plainly nonnegative, or positive."""
        return self.sign(term) >= 1 + strict

    def ring(self) -> Ring:
        """Return the polynomials in which identities are checked."""
        return Ring(lambda term: self.sign(term) == 2, self.deadline)

    def require_defined(self, term: t.Term) -> None:
        """Raise Undecided unless a term is plainly defined wherever the facts hold."""
        self.look()
        t.require(t.symbols(term) <= self.names, "known symbols")
        for part, relation in obligations(term):
            held = self.is_at_least(part, relation != ">=")
            held = held or (relation == "!=" and self.is_at_least(t.negative(part), True))
            t.require(held, f"{part!r:.80} {relation} 0")


# ------------------------------------------------------------------------------------------- rules


def check(context: Context, term: t.Term, strict: bool, proof: Any, depth: int = 0) -> None:
    """Check a proof that a term is defined and nonnegative, or positive, wherever the facts hold.

    Raises
    ------
    Undecided
        If a step does not follow its rule, or a limit of depth or time is reached.
    """
    t.require(depth < t.DEEPEST, "a proof that is less deep")
    context.look()
    t.require(isinstance(proof, Mapping), "a step that is an object")
    t.require(t.symbols(term) <= context.names, "a goal about known symbols")
    name = str(proof.get("rule"))
    t.require(name in _RULES, f"a known rule, got {name!r:.40}")
    inner = _with_lemmas(context, proof.get("have", ()), depth + 1)
    _RULES[name](inner, term, strict, proof, depth + 1)


def _with_lemmas(context: Context, rows: Any, depth: int) -> Context:
    for row in rows:
        fact = t.decode(row[0]), row[1] is True
        check(context, *fact, row[2], depth)
        context = context.extended(fact)
    return context


def _plain(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude from the signs of the parts of a term, or of another form of it."""
    form = t.decode(proof["as"]) if "as" in proof else term
    context.require_defined(term)
    context.require_defined(form)
    t.require(context.is_at_least(form, strict), f"parts of one sign in {form!r:.100}")
    gap = t.minus(term, form)
    for row in proof.get("by", ()):
        old, new = map(t.decode, row)
        same(context, old, new)
        gap = t.replace(gap, {old: new})
    if form != term:
        t.require(context.ring().is_zero(gap), f"a form that equals {term!r:.100}")


def same(context: Context, old: t.Term, new: t.Term) -> None:
    """Require that two terms are equal where the first is defined; the second always is."""
    context.require_defined(new)
    ring, gap = context.ring(), t.minus(old, new)
    if old[0] == "pow" and old[2][0] == "num":
        top, order = map(t.number, old[2][1].as_integer_ratio())
        t.require(context.is_at_least(old[1], top[1] < 0), "a base that is not negative")
        t.require(context.is_at_least(new), "a root that is not negative")
        gap = t.minus(t.power(old[1], top), t.power(new, order))
    elif old[0] in ("pow", "exp"):
        t.require(context.is_at_least(old, True), "a power that is positive")
        t.require(context.is_at_least(new, True), "another form of it that is positive")
        gap = t.minus(ring.logarithm(old), ring.logarithm(new))
    t.require(ring.is_zero(gap), f"terms that are equal: {old!r:.100}")


def is_zero_form(proof: Proof) -> bool:
    """Return whether a step, once checked, shows that its term is zero."""
    return proof["rule"] == "plain" and proof.get("as") == t.encode(t.ZERO)


def _cases(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    on = t.decode(proof["on"])
    context.require_defined(on)
    check(context.extended((on, False)), term, strict, proof["nonnegative"], depth)
    check(context.extended((t.negative(on), False)), term, strict, proof["nonpositive"], depth)


def _absurd(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude anything where a fact and its opposite hold, one of them strictly."""
    fact = t.decode(proof["fact"])
    against = context.facts.get(t.negative(fact))
    t.require(fact in context.facts and against is not None, "a fact and its opposite")
    t.require(context.facts[fact] or against, "one of them strict")


def _let(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    """Call a term by a fresh name."""
    name, value = str(proof["name"]), t.decode(proof["value"])
    context.require_defined(value)
    gap = t.minus(t.symbol(name), value)
    inner = context.extended((gap, False), (t.negative(gap), False), name=name)
    check(inner, term, strict, proof["then"], depth)


def _replace(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    """Put one term for another that equals it, in the goal and in the facts."""
    old, new = t.decode(proof["of"]), t.decode(proof["by"])
    for part in (old, new):
        context.require_defined(part)
    t.require(context.is_at_least(t.minus(old, new)), "a term that is not too large")
    t.require(context.is_at_least(t.minus(new, old)), "a term that is not too small")
    facts = []
    for fact, known in context.facts.items():
        context.look()
        facts.append((t.replace(fact, {old: new}), known))
    check(context.extended(*facts), t.replace(term, {old: new}), strict, proof["then"], depth)


def _monotone(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude f(high) - f(low) >= 0 from high - low >= 0 for an increasing f."""
    low, high, name = t.decode(proof["low"]), t.decode(proof["high"]), proof["function"]
    t.require(name in ("exp", "log", "pow"), "an increasing function")
    rest: tuple[t.Term, ...] = ()
    if name == "pow":
        rest = (t.decode(proof["exponent"]),)
        t.require(context.is_at_least(low), "a base that is not negative")
        t.require(context.is_at_least(rest[0], strict), "an exponent that is not negative")
    t.require(context.is_at_least(t.minus(high, low), strict), "arguments in order")
    t.require(term == t.minus((name, high, *rest), (name, low, *rest)), "a difference of values")
    context.require_defined(term)


def _slope(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude f(end) - f(start) >= 0 from the slope of f at a fresh symbol between them."""
    name, body = str(proof["name"]), t.decode(proof["of"])
    start, end, z = t.decode(proof["start"]), t.decode(proof["end"]), t.symbol(name)
    values = [t.replace(body, {z: at}) for at in (end, start)]
    t.require(term == t.minus(*values), "a difference of values")
    context.require_defined(t.minus(end, start))
    rises = context.is_at_least(t.minus(end, start), strict)
    t.require(rises or context.is_at_least(t.minus(start, end), strict), "ends in order")
    low, high = (start, end) if rises else (end, start)
    closed = context.extended((t.minus(z, low), False), (t.minus(high, z), False), name=name)
    closed = _with_lemmas(closed, proof.get("closed", ()), depth)
    closed.require_defined(body)
    rise = t.difference(body, name)
    inside = closed.extended((t.minus(z, low), True), (t.minus(high, z), True))
    check(inside, rise if rises else t.negative(rise), strict, proof["slope"], depth)


def bounds(context: Context, term: t.Term) -> list[Fact]:
    """Return the bounds of a step function, absolute value, logarithm, erfc or extremum."""
    head, *arguments = term
    a = arguments[0]
    if head == "floor":
        return [(t.minus(a, term), False), (t.minus(t.plus(term, t.ONE), a), True)]
    if head == "ceiling":
        return [(t.minus(term, a), False), (t.minus(t.plus(a, t.ONE), term), True)]
    if head == "abs":
        return [(t.minus(term, a), False), (t.plus(term, a), False)]
    if head == "log":
        return [(t.minus(t.minus(a, t.ONE), term), False)]
    if head == "erfc":
        t.require(context.is_at_least(a, True), "a positive argument of erfc")
        square = t.power(a, t.number(2))
        bell = t.over(("exp", t.negative(square)), t.power(("pi",), t.number("1/2")))
        low = t.over(t.times(t.number(2), a, bell), t.plus(t.ONE, t.times(t.number(2), square)))
        return [(t.minus(t.over(bell, a), term), True), (t.minus(term, low), True)]
    t.require(head in ("max", "min"), "a term with known bounds")
    known = [(_beyond(head, term, part), False) for part in arguments]
    for part in arguments:
        gaps = (_beyond(head, part, other) for other in arguments if other != part)
        if all(map(context.is_at_least, gaps)):
            known.append((_beyond(head, part, term), False))
    return known


def _beyond(head: str, first: t.Term, second: t.Term) -> t.Term:
    """Return the distance of the first above the second for ``max``, below it for ``min``."""
    return t.minus(first, second) if head == "max" else t.minus(second, first)


def _bound(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    of = t.decode(proof["of"])
    context.require_defined(term)
    t.require(dict(bounds(context, of)).get(term, -1) >= strict, "a known bound")


def _balls(context: Context, term: t.Term, strict: bool, proof: Proof, depth: int) -> None:
    """Enclose the term on every part of a box; a part outside the facts needs nothing."""
    box = {}
    for name, ends in proof["box"].items():
        low, high = (t.decode(["num", end]) for end in ends)
        t.require(context.is_at_least(t.minus(t.symbol(name), low)), "a lower bound")
        t.require(context.is_at_least(t.minus(high, t.symbol(name))), "an upper bound")
        box[name] = (low[1], high[1])
    pending: list[tuple[Any, Any]] = [(box, proof["tree"])]
    while pending:
        context.look()
        part, node = pending.pop()
        if node == ".":
            ball = balls.value(term, part)
            t.require(ball > 0 or (ball >= 0 and not strict), "a positive enclosure")
        elif node == "x":
            t.require(_is_outside(context, part), "a part outside the domain")
        else:
            name, cut = node[0], t.decode(["num", node[1]])[1]
            low, high = part[name]
            pending += [
                ({**part, name: (low, cut)}, node[2]),
                ({**part, name: (cut, high)}, node[3]),
            ]


def _is_outside(context: Context, part: balls.Box) -> bool:
    """Return whether a fact certainly fails on a part of a box."""
    for fact, strict in context.facts.items():
        try:
            ball = balls.value(fact, part)
        except t.Undecided:
            continue
        if ball < 0 or (strict and ball <= 0):
            return True
    return False


_RULES = {
    rule.__name__[1:]: rule
    for rule in (_plain, _cases, _absurd, _let, _replace, _monotone, _slope, _bound, _balls)
}
