"""The facts of a search: signs of symbols, and terms that are nonnegative or positive.

>>> from dpcal.calibrate.papers.kernel.terms import minus, number, symbol
>>> context = Context({"x": "?"}, ((minus(symbol("x"), number(1)), False),))
>>> context.holds(symbol("x"), True), context.box
(True, {'x': (Fraction(1, 1), None)})
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpcal.calibrate.papers.claims import claims
from dpcal.calibrate.papers.claims.normal import Normal
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.rules import obligations
from dpcal.calibrate.papers.kernel.terms import (
    Term,
    Undecided,
    difference,
    minus,
    negative,
    number,
    replace,
    substitute,
    symbol,
    symbols,
)

__all__ = [
    "Context",
    "chosen_case",
    "closed_at",
    "context_of",
    "enclosed_sign",
    "is_outside",
    "is_plainly",
]

Fact = tuple[Term, bool]


@dataclass(frozen=True)
class Context:
    """What is known about the symbols.

    Parameters
    ----------
    signs
        ``"+"`` (positive), ``"0+"`` (nonnegative) or ``"?"`` (real) for each symbol.
    facts
        Terms that are defined and nonnegative, or positive where the flag is set.
    deadline
        Value of ``time.thread_time()`` at which the check gives up.
    """

    signs: Mapping[str, str]
    facts: tuple[Fact, ...] = ()
    deadline: float = field(default=math.inf, compare=False)

    @functools.cached_property
    def normal(self) -> Normal:
        """Normal forms that use the known facts."""
        forms = Normal(self.signs, self.deadline)
        for term, strict in self.facts:
            try:
                forms.add_fact(term, strict)
            except Undecided:  # a fact without a normal form is of no use to it
                continue
        return forms

    def with_facts(self, *facts: Fact) -> Context:
        """Return the context with more facts."""
        positive = {fact[1]: "+" for fact, strict in facts if fact[0] == "sym" and strict}
        return Context({**self.signs, **positive}, (*self.facts, *facts), self.deadline)

    def substituted(self, name: str, value: Term, fresh: Mapping[str, str]) -> Context:
        """Return the context in which a symbol has become a term in fresh symbols."""
        signs = {other: sign for other, sign in self.signs.items() if other != name}
        facts = tuple((substitute(term, {name: value}), strict) for term, strict in self.facts)
        return Context({**signs, **fresh}, facts, self.deadline)

    def is_zero(self, term: Term) -> bool:
        """Return whether a term vanishes identically."""
        return self.normal.is_zero(term)

    def sign(self, term: Term) -> str:
        """Return ``"+"``, ``"0+"``, ``"0"`` or ``"?"``, from terms and single facts."""
        return self.normal.known_sign(self.normal.sum(term))

    def holds(self, term: Term, strict: bool) -> bool:
        """Return whether a term is nonnegative or positive without a further proof."""
        return self.sign(term) in (("+",) if strict else ("+", "0+", "0"))

    @functools.cached_property
    def box(self) -> dict[str, tuple[Fraction | None, Fraction | None]]:
        """The bounds of single symbols that signs and facts give."""
        box: dict[str, tuple[Fraction | None, Fraction | None]] = {
            name: (Fraction(0) if sign != "?" else None, None) for name, sign in self.signs.items()
        }
        for term, _ in self.facts:
            bound = _bound_of_symbol(term)
            if bound is None or bound[0] not in box:
                continue
            name, value, upper = bound
            low, high = box[name]
            if upper:
                high = value if high is None else min(high, value)
            else:
                low = value if low is None else max(low, value)
            box[name] = (low, high)
        return box


@functools.lru_cache(maxsize=4096)
def _bound_of_symbol(term: Term) -> tuple[str, Fraction, bool] | None:
    """Read ``c1 x + c0 >= 0`` as a bound on x: name, value, whether it is an upper one."""
    names = symbols(term)
    if len(names) != 1:
        return None
    name = next(iter(names))
    try:
        terms = Normal({name: "?"}).sum(term)
    except Undecided:
        return None
    slope = terms.pop(frozenset({(symbol(name), Fraction(1))}), None)
    start = terms.pop(frozenset(), Fraction(0))
    if slope is None or terms:
        return None
    return name, -start / slope, slope < 0


def context_of(claim: claims.Claim, deadline: float = math.inf) -> Context:
    """Return signs and facts of a claim's domain, for work that ends at a deadline."""
    signs, facts = {}, []
    for name, values in claim.ranges().items():
        x = symbol(name)
        low, high = values.low, values.high
        sign = "?"
        if low is not None and low >= 0:
            sign = "+" if low > 0 or values.open_low else "0+"
        signs[name] = sign
        if low is not None and low != 0:
            facts.append((minus(x, number(low)), values.open_low))
        if high is not None:
            facts.append((minus(number(high), x), values.open_high))
    facts += [(minus(large, small), strict) for small, large, strict in claim.where]
    return Context(signs, tuple(facts), deadline)


def chosen_case(context: Context, extremum: Term, chosen: Term, replaced: bool = True) -> Context:
    """Return the context in which one argument is the largest, or the smallest."""
    table = {extremum: chosen} if replaced else {}
    facts = [(replace(fact, table), strict) for fact, strict in context.facts]
    for other in extremum[1:]:
        if other != chosen or not replaced:
            gap = (chosen, other) if extremum[0] == "max" else (other, chosen)
            facts.append((minus(*gap), False))
    return Context(context.signs, tuple(facts), context.deadline)


def closed_at(context: Context, name: str, start: Term) -> Context:
    """Return the context of all values between a symbol and a start, both included.

    Facts that are not linear in the symbol, with a number as their slope, are left out.
    """
    sign, facts = context.signs[name], []
    if sign == "+" and not context.holds(start, True):
        sign = "0+"
    for fact, strict in context.facts:
        if name in symbols(fact):
            try:
                if set(context.normal.sum(difference(fact, name))) - {frozenset()}:
                    continue
            except Undecided:
                continue
            strict = strict and context.holds(substitute(fact, {name: start}), True)
        facts.append((fact, strict))
    return Context({**context.signs, name: sign}, tuple(facts), context.deadline)


def is_plainly(context: Context, term: Term, relation: str) -> bool:
    """Return whether a term is ``relation`` zero without a separate proof."""
    if not symbols(term):
        sign = balls.sign_at(term, {})
        return sign in {">=": (0, 1), ">": (1,), "!=": (-1, 1)}[relation]
    if (term, True) in context.facts or (relation == ">=" and (term, False) in context.facts):
        return True
    if any(_needs(context, term)):
        return False
    if context.holds(term, relation != ">="):
        return True
    return relation == "!=" and context.holds(negative(term), True)


def _needs(context: Context, term: Term) -> list[Term]:
    """Return the obligations of a term that are not plain; its normal form means nothing then."""
    return [t for t, relation in obligations(term) if not is_plainly(context, t, relation)]


def enclosed_sign(term: Term, box: balls.Box) -> int | None:
    """Return the sign on a box: 1, or 0 for a ball whose lower end is not negative."""
    ball = balls.value(term, box)
    return 1 if ball > 0 else 0 if ball >= 0 else None


def is_outside(context: Context, part: balls.Box) -> bool:
    """Return whether a fact certainly fails on a part of a box."""
    for fact, strict in context.facts:
        if symbols(fact) <= set(part):
            try:
                ball = balls.value(fact, part)
            except Undecided:
                continue
            if ball < 0 or (strict and ball <= 0):
                return True
    return False
