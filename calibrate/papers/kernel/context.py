"""Known facts about symbols at every point of a domain.

>>> from dpcal.calibrate.papers.kernel.terms import minus, number, symbol
>>> context = Context({"x": "?"}, ((minus(symbol("x"), number(1)), False),))
>>> context.holds(symbol("x"), True), context.box
(True, {'x': (Fraction(1, 1), None)})
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import flint

from dpcal.calibrate.papers.kernel import balls, terms as t
from dpcal.calibrate.papers.kernel.normal import Normal, sign_at

if TYPE_CHECKING:
    from dpcal.calibrate.papers.claims.claim import Claim

Fact = tuple[t.Term, bool]
_WANTED = {">=": (0, 1), ">": (1,), "!=": (-1, 1)}


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


@dataclass(frozen=True)
class Context:
    """Symbols, and terms in them that are defined and nonnegative, or positive.

    Parameters
    ----------
    signs
        ``"+"`` (positive), ``"0+"`` (nonnegative) or ``"?"`` (real) for each symbol.
    facts
        Pairs of a term and whether it is positive.
    witness
        Balls around a point at which all facts hold; None where no such point is known.
    deadline
        Value of ``time.thread_time()`` at which the check gives up.
    """

    signs: Mapping[str, str]
    facts: tuple[Fact, ...] = ()
    witness: Mapping[str, Any] | None = field(default=None, compare=False)
    deadline: float = field(default=math.inf, compare=False)

    @functools.cached_property
    def normal(self) -> Normal:
        """Normal forms that use the known facts."""
        forms = Normal(self.signs, self.deadline, self._logs())
        for term, strict in self.facts:
            try:
                forms.facts.append((forms.sum(term), strict))
            except t.Undecided:
                continue
        return forms

    def _logs(self) -> dict[str, tuple[int, str]]:
        """Return the symbols that facts bound by 1, and the signs of their logarithms."""
        logs = {}
        for name, (low, high) in self.box.items():
            x = t.symbol(name)
            for way, end, gap in ((1, low, t.minus(x, t.ONE)), (-1, high, t.minus(t.ONE, x))):
                if self.signs[name] == "+" and end is not None and way * end >= way:
                    logs[name] = way, "+" if end != 1 or (gap, True) in self.facts else "0+"
        return logs

    def look(self) -> None:
        """Raise Undecided if the time is over."""
        t.require(time.thread_time() < self.deadline, "a check within the time limit")

    def moved(
        self, facts: Iterable[Fact], signs: Mapping[str, str], witness: Mapping[str, Any] | None
    ) -> Context:
        """Return a context of other facts; a witness stays where the new ones hold."""
        rows = tuple(facts)
        new = (fact for fact in rows if fact not in self.facts)
        holds = witness is not None and all(_holds(*fact, witness) for fact in new)
        return Context(signs, rows, witness if holds else None, self.deadline)

    def with_facts(self, *facts: Fact) -> Context:
        """Return the context with more facts."""
        positive = {fact[1]: "+" for fact, strict in facts if fact[0] == "sym" and strict}
        return self.moved((*self.facts, *facts), {**self.signs, **positive}, self.witness)

    def substituted(self, name: str, value: t.Term) -> Context:
        """Return the context in which a symbol has become a term in the others."""
        signs = {other: sign for other, sign in self.signs.items() if other != name}
        facts = ((t.substitute(term, {name: value}), strict) for term, strict in self.facts)
        return self.moved(facts, signs, self.witness)

    def holds(self, term: t.Term, strict: bool) -> bool:
        """Return whether a term, which must be defined, is plainly nonnegative or positive."""
        sign = self.normal.known_sign(self.normal.sum(term))
        return sign in (("+",) if strict else ("+", "0+", "0"))

    def is_plainly(self, term: t.Term, relation: str) -> bool:
        """Return whether a term is plainly defined, and plainly ``relation`` zero."""
        if not t.symbols(term):
            return sign_at(term, {}) in _WANTED[relation]
        if (term, True) in self.facts or (relation == ">=" and (term, False) in self.facts):
            return True
        if self.missing(term):
            return False
        opposite = relation == "!=" and self.holds(t.negative(term), True)
        return opposite or self.holds(term, relation != ">=")

    def missing(self, term: t.Term) -> list[tuple[t.Term, str]]:
        """Return the conditions of a defined term that do not plainly hold."""
        return [row for row in obligations(term) if not self.is_plainly(*row)]

    def require_defined(self, *terms: t.Term) -> None:
        """Raise Undecided unless terms in known symbols are plainly defined at each point."""
        self.look()
        for term in terms:
            t.require(t.symbols(term) <= self.signs.keys(), "known symbols")
            t.require(not self.missing(term), f"a defined term, got {term!r:.80}")

    def require_equal(self, term: t.Term, form: t.Term) -> None:
        """Raise Undecided unless a term, which must be defined, equals a form of it."""
        self.require_defined(form)
        gap = t.minus(term, form)
        t.require(self.normal.is_zero(gap), f"an equal form of {term!r:.80}")
        if self.witness is not None:
            t.require(_ball(gap, self.witness).contains(0), "equal values at the witness")

    def require_possible(self, term: t.Term, strict: bool) -> None:
        """Raise Undecided where the value at the witness contradicts a sign."""
        if self.witness is not None:
            ball = _ball(term, self.witness)
            t.require(not (ball < 0 or (strict and ball <= 0)), "a sign that the witness has")

    @functools.cached_property
    def box(self) -> dict[str, tuple[Fraction | None, Fraction | None]]:
        """The bounds of single symbols that signs and facts give."""
        box: dict[str, tuple[Fraction | None, Fraction | None]] = {
            name: (Fraction(0) if sign != "?" else None, None) for name, sign in self.signs.items()
        }
        for term, _ in self.facts:
            name, end, upper = _bound_of_symbol(term)
            if name in box:
                low, high = box[name]
                if upper:
                    high = end if high is None else min(high, end)
                else:
                    low = end if low is None else max(low, end)
                box[name] = (low, high)
        return box


def _ball(term: t.Term, witness: Mapping[str, Any]) -> Any:
    """Return the value of a term at a witness; anything where a ball leaves the term's domain."""
    try:
        return balls.at(term, witness)
    except t.Undecided:
        return flint.arb(0, math.inf)


def _holds(term: t.Term, strict: bool, witness: Mapping[str, Any]) -> bool:
    """Return whether a term may have a sign at a witness; a positive one certainly has it."""
    ball = _ball(term, witness)
    return bool(ball > 0 if strict else not ball < 0)


@functools.lru_cache(maxsize=4096)
def _bound_of_symbol(term: t.Term) -> tuple[str, Fraction, bool]:
    """Read ``c1 x + c0 >= 0`` as a bound on x: name, value, whether it is an upper one."""
    names = t.symbols(term)
    try:
        (name,) = names
        rows = Normal({name: "?"}).sum(term)
    except (ValueError, t.Undecided):
        return "", Fraction(0), False
    slope = rows.pop(frozenset({(t.symbol(name), Fraction(1))}), Fraction(0))
    start = rows.pop(frozenset(), Fraction(0))
    return (name, -start / slope, slope < 0) if slope and not rows else ("", start, False)


def context_of(
    claim: Claim, deadline: float = math.inf, point: Mapping[str, Fraction] | None = None
) -> Context:
    """Return the signs and facts of a claim's domain, with a point of it as a witness."""
    signs, facts = {}, []
    for name, values in claim.ranges().items():
        zero = values.low == 0 and not values.open_low
        signs[name] = "?" if values.low is None or values.low < 0 else "0+" if zero else "+"
        facts += [row for row in values.facts(t.symbol(name)) if row[0][0] != "sym"]
    facts += [(pair.gap, pair.strict) for pair in claim.where]
    witness = None if point is None else balls.balls_of(point)
    return Context(signs, tuple(facts), witness, deadline)
