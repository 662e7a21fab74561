"""The rules of proof: check that a tree of steps shows that a term is nonnegative or positive.

A context is a list of facts: terms that are defined and nonnegative, or positive. A step first adds
lemmas (``have``: term, whether it is positive, proof), then uses one rule. ``docs/audit.md`` states
each rule with its side conditions. The check is total: it returns, or raises :class:`Undecided`.

>>> from dpcal.calibrate.auditing.kernel.terms import encode, minus, number, power, symbol
>>> x = symbol("x")
>>> goal = minus(power(x, number(2)), minus(x, number(1)))
>>> square = power(minus(x, number("1/2")), number(2))
>>> step = {"rule": "plain", "as": encode(plus(number("3/4"), square))}
>>> check(Context({"x"}), goal, True, step)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dpcal.calibrate.auditing.kernel import balls
from dpcal.calibrate.auditing.kernel.identities import Forms
from dpcal.calibrate.auditing.kernel.terms import (
    DEEPEST,
    ONE,
    ZERO,
    Term,
    Undecided,
    decode,
    difference,
    encode,
    minus,
    negative,
    plus,
    replace,
    subterms,
    symbol,
    symbols,
)

__all__ = ["Context", "Fact", "bounds", "check", "is_zero_form", "obligations", "require"]

MOST_BOXES = 20_000
Fact = tuple[Term, bool]
Proof = Mapping[str, Any]


def require(held: Any, what: str) -> None:
    """Raise Undecided, naming what does not hold."""
    if not held:
        raise Undecided(what)


def obligations(term: Term) -> list[tuple[Term, str]]:
    """Return what must be ``">="``, ``">"`` or ``"!="`` zero for a term to be defined."""
    found = []
    for part in subterms(term):
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
        Value of ``time.monotonic()`` at which the check gives up.
    """

    def __init__(
        self, names: Iterable[str], facts: Iterable[Fact] = (), deadline: float = math.inf
    ) -> None:
        self.names, self.deadline = frozenset(names), deadline
        self.facts: dict[Term, bool] = {}
        self._signs: dict[Term, int] = {}
        self._add(facts)

    def _add(self, facts: Iterable[Fact]) -> None:
        for term, strict in facts:
            require(symbols(term) <= self.names, "facts about known symbols")
            self.facts[term] = strict or self.facts.get(term, False)

    def extended(self, *facts: Fact, name: str = "") -> Context:
        """Return the context with more facts, and with a fresh symbol where a name is given."""
        require(not name or (name.isidentifier() and name not in self.names), "a fresh symbol")
        names = self.names | {name} if name else self.names
        wider = Context(names, deadline=self.deadline)
        wider.facts.update(self.facts)
        wider._add(facts)
        return wider

    def sign(self, term: Term) -> int:
        """Return 2 for a term that is plainly positive where it is defined, 1 for nonnegative."""
        if term[0] == "num":
            return 2 if term[1] > 0 else int(term[1] == 0)
        if term not in self._signs:
            known = {True: 2, False: 1, None: 0}[self.facts.get(term)]
            self._signs[term] = max(known, self._sign(term)) if known < 2 else 2
        return self._signs[term]

    def _sign(self, term: Term) -> int:
        head = term[0]
        if head == "sym":
            return 0
        if head == "pow" and term[2][0] == "num" and term[2][1] % 2 == 0:
            return 2 if self.sign(term[1]) == 2 or term[2][1] < 0 else 1
        if head in ("exp", "erfc", "gamma", "uppergamma"):
            return 2
        if not symbols(term):
            found = balls.sign_at(term, {})
            return {1: 2, 0: 1}.get(-1 if found is None else found, 0)
        signs = [self.sign(part) for part in term[1:]]
        if head == "add":
            return 0 if 0 in signs else max(signs)
        if head in ("mul", "min"):
            return min(signs)
        if head == "pow":
            root = term[2][0] == "num" and term[2][1] > 0
            return 2 if signs[0] == 2 else int(signs[0] == 1 and root)
        return max(signs) if head == "max" else int(head == "abs")

    def is_at_least(self, term: Term, strict: bool = False) -> bool:
        """Return whether a term is plainly nonnegative, or positive."""
        return self.sign(term) >= 1 + strict

    def require_defined(self, term: Term) -> None:
        """Raise Undecided unless a term is plainly defined wherever the facts hold."""
        require(symbols(term) <= self.names, "known symbols")
        for part, relation in obligations(term):
            held = self.is_at_least(part, relation != ">=")
            held = held or (relation == "!=" and self.is_at_least(negative(part), True))
            require(held, f"{part!r:.80} {relation} 0")


# ------------------------------------------------------------------------------------------- rules


def check(context: Context, term: Term, strict: bool, proof: Any, depth: int = 0) -> None:
    """Check a proof that a term is defined and nonnegative, or positive, wherever the facts hold.

    Raises
    ------
    Undecided
        If a step does not follow its rule, or a limit of depth or time is reached.
    """
    require(depth < DEEPEST, "a proof that is less deep")
    require(time.monotonic() < context.deadline, "a check within the time limit")
    require(isinstance(proof, Mapping), "a step that is an object")
    name = str(proof.get("rule"))
    require(name in _RULES, f"a known rule, got {name!r:.40}")
    inner = _with_lemmas(context, proof.get("have", ()), depth + 1)
    _RULES[name](inner, term, strict, proof, depth + 1)


def _with_lemmas(context: Context, rows: Any, depth: int) -> Context:
    for row in rows:
        fact = decode(row[0]), row[1] is True
        check(context, *fact, row[2], depth)
        context = context.extended(fact)
    return context


def _plain(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude from the signs of the parts of a term, or of another form of it."""
    form = decode(proof["as"]) if "as" in proof else term
    context.require_defined(term)
    context.require_defined(form)
    require(context.is_at_least(form, strict), f"parts of one sign in {form!r:.100}")
    if form != term:
        bases = [decode(row) for row in proof.get("bases", ())]
        for base in bases:
            context.require_defined(base)
            require(context.is_at_least(base, True), "bases that are positive")
        forms = Forms(context.sign, bases, context.deadline)
        require(forms.is_zero(minus(term, form)), f"a form that equals {term!r:.100}")


def is_zero_form(proof: Proof) -> bool:
    """Return whether a step, once checked, shows that its term is zero."""
    return proof["rule"] == "plain" and proof.get("as") == encode(ZERO)


def _cases(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    on = decode(proof["on"])
    context.require_defined(on)
    check(context.extended((on, False)), term, strict, proof["nonnegative"], depth)
    check(context.extended((negative(on), False)), term, strict, proof["nonpositive"], depth)


def _absurd(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude anything where a fact and its opposite hold, one of them strictly."""
    fact = decode(proof["fact"])
    against = context.facts.get(negative(fact))
    require(fact in context.facts and against is not None, "a fact and its opposite")
    require(context.facts[fact] or against, "one of them strict")


def _let(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Call a term by a fresh name."""
    name, value = str(proof["name"]), decode(proof["value"])
    context.require_defined(value)
    gap = minus(symbol(name), value)
    equal = (gap, False), (negative(gap), False)
    check(context.extended(*equal, name=name), term, strict, proof["then"], depth)


def _replace(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Put one term for another that equals it, in the goal and in the facts."""
    old, new = decode(proof["of"]), decode(proof["by"])
    for part in (old, new):
        context.require_defined(part)
    require(context.is_at_least(minus(old, new)), "a term that is not too large")
    require(context.is_at_least(minus(new, old)), "a term that is not too small")
    facts = [(replace(fact, {old: new}), known) for fact, known in context.facts.items()]
    check(context.extended(*facts), replace(term, {old: new}), strict, proof["then"], depth)


def _monotone(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude f(high) - f(low) >= 0 from high - low >= 0 for an increasing f."""
    low, high, name = decode(proof["low"]), decode(proof["high"]), proof["function"]
    require(name in ("exp", "log", "pow"), "an increasing function")
    rest: tuple[Term, ...] = ()
    if name == "pow":
        rest = (decode(proof["exponent"]),)
        require(context.is_at_least(low), "a base that is not negative")
        require(context.is_at_least(rest[0], strict), "an exponent that is not negative")
    require(context.is_at_least(minus(high, low), strict), "arguments in order")
    require(term == minus((name, high, *rest), (name, low, *rest)), "a difference of values")
    context.require_defined(term)


def _slope(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude f(end) - f(start) >= 0 from the slope of f at a fresh symbol between them."""
    name, body = str(proof["name"]), decode(proof["of"])
    start, end, z = decode(proof["start"]), decode(proof["end"]), symbol(name)
    values = [replace(body, {z: at}) for at in (end, start)]
    require(term == minus(*values), "a difference of values")
    context.require_defined(minus(end, start))
    rises = context.is_at_least(minus(end, start), strict)
    require(rises or context.is_at_least(minus(start, end), strict), "ends in order")
    low, high = (start, end) if rises else (end, start)
    closed = context.extended((minus(z, low), False), (minus(high, z), False), name=name)
    closed = _with_lemmas(closed, proof.get("closed", ()), depth)
    closed.require_defined(body)
    derivative = difference(body, name)
    inside = closed.extended((minus(z, low), True), (minus(high, z), True))
    slope = derivative if rises else negative(derivative)
    check(inside, slope, strict, proof["slope"], depth)


def bounds(context: Context, term: Term) -> list[Fact]:
    """Return what holds of a step function, an absolute value, an extremum or a logarithm."""
    head, *arguments = term
    a = arguments[0]
    if head == "floor":
        return [(minus(a, term), False), (minus(plus(term, ONE), a), True)]
    if head == "ceiling":
        return [(minus(term, a), False), (minus(plus(a, ONE), term), True)]
    if head == "abs":
        return [(minus(term, a), False), (plus(term, a), False)]
    if head == "log":
        return [(minus(minus(a, ONE), term), False)]
    require(head in ("max", "min"), "a term with known bounds")
    known = [(_beyond(head, term, part), False) for part in arguments]
    for part in arguments:
        gaps = (_beyond(head, part, other) for other in arguments if other != part)
        if all(map(context.is_at_least, gaps)):
            known.append((_beyond(head, part, term), False))
    return known


def _beyond(head: str, first: Term, second: Term) -> Term:
    """Return by how much the first is above the second for ``max``, below it for ``min``."""
    return minus(first, second) if head == "max" else minus(second, first)


def _bound(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    of = decode(proof["of"])
    context.require_defined(term)
    context.require_defined(of)
    known = dict(bounds(context, of))
    require(term in known and (known[term] or not strict), "a known bound")


def _balls(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Enclose the term on every part of a box; a part outside the facts needs nothing."""
    box = {}
    for name, ends in proof["box"].items():
        low, high = (decode(["num", end]) for end in ends)
        require(context.is_at_least(minus(symbol(name), low)), "a lower bound")
        require(context.is_at_least(minus(high, symbol(name))), "an upper bound")
        box[name] = (low[1], high[1])
    pending: list[tuple[Any, Any]] = [(box, proof["tree"])]
    count = 0
    while pending:
        count += 1
        require(count <= MOST_BOXES and time.monotonic() < context.deadline, "fewer boxes")
        part, node = pending.pop()
        if node == ".":
            ball = balls.value(term, part)
            require(ball > 0 or (ball >= 0 and not strict), "a positive enclosure")
        elif node == "x":
            require(_is_outside(context, part), "a part outside the domain")
        else:
            name, cut = node[0], decode(["num", node[1]])[1]
            low, high = part[name]
            require(low < cut < high, "a cut inside the part")
            pending += [
                ({**part, name: (low, cut)}, node[2]),
                ({**part, name: (cut, high)}, node[3]),
            ]


def _is_outside(context: Context, part: balls.Box) -> bool:
    """Return whether a fact certainly fails on a part of a box."""
    for fact, strict in context.facts.items():
        try:
            ball = balls.value(fact, part)
        except Undecided:
            continue
        if ball < 0 or (strict and ball <= 0):
            return True
    return False


_RULES: dict[str, Callable[[Context, Term, bool, Proof, int], None]] = {
    "plain": _plain,
    "cases": _cases,
    "absurd": _absurd,
    "let": _let,
    "replace": _replace,
    "monotone": _monotone,
    "slope": _slope,
    "bound": _bound,
    "balls": _balls,
}
