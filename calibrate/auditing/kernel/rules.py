"""The rules of proof: check that a tree of steps shows that a term is nonnegative or positive.

A goal is a term, whether its inequality is strict, and a context: which symbols are positive or
nonnegative, and which terms are known to be nonnegative or positive (the facts). A step names its
rule and holds the proofs of what the rule asks for. ``docs/audit.md`` states each rule with its
side conditions. The check is total: it returns, or raises :class:`Undecided`.

>>> from dpcal.calibrate.auditing.kernel.terms import encode, minus, number, power, symbol
>>> x = symbol("x")
>>> goal = minus(power(x, number(2)), minus(x, number(1)))
>>> context = Context({"x": "?"})
>>> root = minus(x, number("1/2"))
>>> step = {"rule": "sum", "parts": [
...     [encode(number("3/4")), {"rule": "terms"}],
...     [encode(power(root, number(2))), {"rule": "square", "root": encode(root)}]]}
>>> check(context, goal, True, step)
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpcal.calibrate.auditing.kernel import balls
from dpcal.calibrate.auditing.kernel.normal import Normal
from dpcal.calibrate.auditing.kernel.terms import (
    DEEPEST,
    ONE,
    Term,
    Undecided,
    decode,
    difference,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    replace,
    substitute,
    subterms,
    symbol,
    symbols,
    times,
)

__all__ = [
    "Context",
    "check",
    "enclosed_sign",
    "is_defined",
    "is_outside",
    "is_plainly",
    "obligations",
    "require",
]

MOST_BOXES = 20_000
Fact = tuple[Term, bool]
Proof = Mapping[str, Any]


def require(held: Any, what: str) -> None:
    """Raise Undecided, naming what does not hold."""
    if not held:
        raise Undecided(what)


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
        Value of ``time.monotonic()`` at which the check gives up.
    """

    signs: Mapping[str, str]
    facts: tuple[Fact, ...] = ()
    deadline: float = field(default=math.inf, compare=False)

    @functools.cached_property
    def normal(self) -> Normal:
        """Normal forms that use what is known."""
        forms = Normal(self.signs, self.deadline)
        for term, strict in self.facts:
            try:
                forms.add_fact(term, strict)
            except Undecided:  # a fact without a normal form is of no use to it
                continue
        return forms

    def with_facts(self, *facts: Fact) -> Context:
        """Return the context with more facts."""
        return Context(self.signs, (*self.facts, *facts), self.deadline)

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
        """Return whether a term is nonnegative or positive without more of a proof."""
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


# ------------------------------------------------------------------------------------- definedness


def obligations(term: Term) -> list[tuple[Term, str]]:
    """Return what must be ``">="``, ``">"`` or ``"!="`` zero for a term to be defined."""
    found = []
    for part in subterms(term):
        head = part[0]
        if head in ("log", "gamma", "uppergamma"):
            found += [(argument, ">") for argument in part[1:]]
        elif head == "pow":
            base, exponent = part[1:]
            if exponent[0] != "num":
                found.append((base, ">"))
            elif exponent[1].denominator != 1:
                found.append((base, ">=" if exponent[1] > 0 else ">"))
            elif exponent[1] < 0:
                found.append((base, "!="))
    return list(dict.fromkeys(found))


def is_defined(context: Context, term: Term, proofs: Any) -> None:
    """Check that a term is defined wherever the facts hold; listed proofs help."""
    for part, relation in obligations(term):
        if is_plainly(context, part, relation):
            continue
        require(isinstance(proofs, list), f"a proof that {part!r:.80} {relation} 0")
        for row in proofs:
            listed = decode(row[0])
            if relation == "!=" and listed == negative(part):
                check(context, listed, True, row[1])
                break
            if listed == part:
                check(context, part, relation != ">=", row[1])
                break
        else:
            raise Undecided(f"no proof is given that {part!r:.80} {relation} 0")


def is_plainly(context: Context, term: Term, relation: str) -> bool:
    """Return whether a term is ``relation`` zero without a proof of its own."""
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


# ------------------------------------------------------------------------------------------- rules


def check(context: Context, term: Term, strict: bool, proof: Any, depth: int = 0) -> None:
    """Check a proof that a term is nonnegative, or positive, wherever the facts hold.

    Raises
    ------
    Undecided
        If a step does not follow its rule, or a limit of depth or time is reached.
    """
    require(depth < DEEPEST, "a proof must not be that deep")
    require(time.monotonic() < context.deadline, "a check within the time limit")
    require(isinstance(proof, Mapping), "a step must be an object")
    name = str(proof.get("rule"))
    require(name in _RULES, f"a known rule, got {name!r:.40}")
    if name not in _DEFINES:
        is_defined(context, term, proof.get("defined"))
    _RULES[name](context, term, strict, proof, depth + 1)


def _terms(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    require(context.holds(term, strict), f"terms of one sign in {term!r:.100}")


def _sum(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    parts = [(decode(row[0]), row[1]) for row in proof["parts"]]
    require(parts or not strict, "a positive part")
    for k, (part, inner) in enumerate(parts):
        check(context, part, strict and k == 0, inner, depth)
    require(
        context.is_zero(minus(term, plus(*(part for part, _ in parts)))), "the sum of the parts"
    )


def _product(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    factors = [(decode(row[0]), row[1]) for row in proof["factors"]]
    for factor, inner in factors:
        check(context, factor, strict, inner, depth)
    require(context.is_zero(minus(term, times(*(f for f, _ in factors)))), "the product")


def _square(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    root = decode(proof["root"])
    is_defined(context, root, proof.get("root_defined"))
    require(not strict, "a square is nonnegative, not positive")
    require(context.is_zero(minus(term, power(root, number(2)))), "the square of the root")


def _index(value: Any, size: int) -> int:
    require(isinstance(value, int) and 0 <= value < size, "an index in range")
    return int(value)


def _monotone(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude f(b) - f(a) >= 0 from b - a >= 0 for an increasing f (a - b for a falling power)."""
    low, high, name = decode(proof["low"]), decode(proof["high"]), proof["function"]
    require(name in ("exp", "log", "pow", "floor", "ceiling"), "a monotone function")
    require(not strict or name not in ("floor", "ceiling"), "no strictness from a step function")
    if name != "pow":
        images: list[Term] = [(name, low), (name, high)]
        check(context, minus(high, low), strict, proof["order"], depth)
    else:
        exponent = decode(proof["exponent"])
        falling = bool(proof.get("falling"))
        images = [("pow", low, exponent), ("pow", high, exponent)]
        check(context, high if falling else low, falling, proof["base"], depth)
        slope = negative(exponent) if falling else exponent
        check(context, slope, strict, proof["sign"], depth)
        gap = minus(low, high) if falling else minus(high, low)
        check(context, gap, strict, proof["order"], depth)
    for image in images:
        is_defined(context, image, proof.get("images_defined"))
    require(context.is_zero(minus(term, minus(images[1], images[0]))), "a difference of values")


def _power(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    base, exponent = decode(proof["base"]), decode(proof["exponent"])
    check(context, base, True, proof["positive"], depth)
    is_defined(context, exponent, None)
    if term == power(base, exponent):
        return
    is_defined(context, term, proof.get("defined"))
    require(context.is_zero(minus(term, power(base, exponent))), "a power of the base")


def _absurd(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude anything where a fact contradicts what else is known."""
    index = _index(proof["index"], len(context.facts))
    fact, is_strict = context.facts[index]
    others = tuple(known for k, known in enumerate(context.facts) if k != index)
    rest = Context(context.signs, others, context.deadline)
    check(rest, negative(fact), not is_strict, proof["against"], depth)


def _cases(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    on = decode(proof["on"])
    is_defined(context, on, proof.get("on_defined"))
    check(context.with_facts((on, False)), term, strict, proof["nonnegative"], depth)
    check(context.with_facts((negative(on), False)), term, strict, proof["nonpositive"], depth)


def _extremum(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Replace a maximum or minimum by each of its arguments, where that argument is the largest."""
    extremum = decode(proof["of"])
    require(extremum[0] in ("max", "min"), "a maximum or a minimum")
    known = {part for fact, _ in context.facts for part in subterms(fact)}
    if extremum not in known:
        require(extremum in set(subterms(term)), "an extremum that occurs")
        is_defined(context, extremum, proof.get("defined"))
    arguments = extremum[1:]
    require(len(arguments) == len(proof["cases"]), "a case for each argument")
    for chosen, inner in zip(arguments, proof["cases"], strict=True):
        table = {extremum: chosen}
        facts = [(replace(fact, table), s) for fact, s in context.facts]
        for other in arguments:
            if other != chosen:
                gap = (chosen, other) if extremum[0] == "max" else (other, chosen)
                facts.append((minus(*gap), False))
        check(
            Context(context.signs, tuple(facts), context.deadline),
            replace(term, table),
            strict,
            inner,
            depth,
        )


def _substitute(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Replace a symbol by a term that takes all its values as fresh symbols range.

    ``shift``: x >= a gives x = a + t. ``reflect``: x <= b gives x = b - t. ``interval``:
    a <= x <= b gives x = a + (b - a)/(1 + t), and x = a apart unless a < x. In all of them t >= 0.
    """
    name, fresh, kind = str(proof["symbol"]), str(proof["fresh"]), proof["kind"]
    require(name in context.signs and fresh not in context.signs, "a known and a fresh symbol")
    require(fresh.isidentifier(), "a name for the fresh symbol")
    t = symbol(fresh)
    low = decode(proof["low"]) if "low" in proof else None
    high = decode(proof["high"]) if "high" in proof else None
    for end in (low, high):
        if end is not None:
            require(name not in symbols(end) and fresh not in symbols(end), "ends without x")
            is_defined(context, end, None)
    x = symbol(name)
    require(low is not None or kind == "reflect", "a lower end")
    require(high is not None or kind == "shift", "an upper end")
    low, high = low or ONE, high or ONE
    if kind in ("shift", "interval"):
        require(context.holds(minus(x, low), False), "the lower bound")
    if kind in ("reflect", "interval"):
        require(context.holds(minus(high, x), False), "the upper bound")
    if kind == "interval" and not context.holds(minus(x, low), True):
        at_end = context.substituted(name, low, {})
        check(at_end, substitute(term, {name: low}), strict, proof["end"], depth)
    values: dict[str, Callable[[], Term]] = {
        "shift": lambda: plus(low, t),
        "reflect": lambda: minus(high, t),
        "interval": lambda: plus(low, over(minus(high, low), plus(ONE, t))),
    }
    require(kind in values, "a known substitution")
    value = values[kind]()
    sign = context.signs[name]
    inner = context.substituted(name, value, {fresh: "0+"})
    if sign != "?":
        inner = inner.with_facts((value, sign == "+"))
    check(inner, substitute(term, {name: value}), strict, proof["proof"], depth)


def _derivative(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude from the value at one end of an interval, and the sign of the slope beyond it.

    The facts may bound the symbol by terms without it, and must not name it otherwise; so its
    values form an interval. A bound that is strict is taken with its end.
    """
    name, start = str(proof["symbol"]), decode(proof["start"])
    require(name in context.signs and name not in symbols(start), "a symbol and a start without it")
    x = symbol(name)
    facts: list[Fact] = []
    for fact, is_strict in context.facts:
        if name in symbols(fact):
            slope = context.normal.sum(difference(fact, name))
            plain = all(name not in symbols(part) for part, _ in obligations(fact))
            require(plain and set(slope) == {frozenset()}, "facts that bound the symbol")
            facts.append((fact, False))
        else:
            facts.append((fact, is_strict))
    signs = {**context.signs, name: "0+" if context.signs[name] == "+" else context.signs[name]}
    closed = Context(signs, tuple(facts), context.deadline)
    is_defined(closed, start, None)
    is_defined(closed, term, proof.get("closed_defined"))
    for fact, _ in facts:
        if name in symbols(fact):
            require(closed.holds(substitute(fact, {name: start}), False), "a start in range")
    if signs[name] == "0+":
        require(closed.holds(start, False), "a start in range")
    at_start = closed.substituted(name, start, {})
    apart = strict and bool(proof.get("open"))
    check(at_start, substitute(term, {name: start}), strict and not apart, proof["at"], depth)
    derivative = difference(term, name)
    sides = {
        "above": (minus(x, start), derivative),
        "below": (minus(start, x), negative(derivative)),
    }
    for side, (gap, slope_term) in sides.items():
        if side in proof:
            beyond = closed.with_facts((gap, True))
            check(beyond, slope_term, apart, proof[side], depth)
        else:
            require(closed.holds(negative(gap), False), f"nothing {side} the start")
    if apart:
        require(
            any(context.holds(gap, True) for gap, _ in sides.values()), "a start outside the domain"
        )


def _unit_powers(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude 1 - product of r_k ** m_k >= 0 from 0 <= r_k <= 1 and m_k >= 0."""
    require(not strict, "a bound that is not strict")
    factors = []
    for base, exponent, positive, below, sign in proof["factors"]:
        ratio, multiplier = decode(base), decode(exponent)
        check(context, ratio, True, positive, depth)
        check(context, minus(ONE, ratio), False, below, depth)
        check(context, multiplier, False, sign, depth)
        factors.append(power(ratio, multiplier))
    require(context.is_zero(minus(term, minus(ONE, times(*factors)))), "one minus the powers")


def _means(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude that a weighted arithmetic mean is at least the geometric one."""
    require(not strict, "a bound that is not strict")
    weights = [decode(row[0]) for row in proof["parts"]]
    values = [decode(row[1]) for row in proof["parts"]]
    for row, weight, value in zip(proof["parts"], weights, values, strict=True):
        check(context, weight, True, row[2], depth)
        check(context, value, True, row[3], depth)
    require(context.is_zero(minus(plus(*weights), ONE)), "weights that add up to one")
    arithmetic = plus(*map(times, weights, values))
    geometric = times(*map(power, values, weights))
    require(context.is_zero(minus(term, minus(arithmetic, geometric))), "the two means")


def _step_function(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Conclude from floor(x) <= x < floor(x) + 1, ceiling alike, and -|x| <= x <= |x|."""
    argument = decode(proof["argument"])
    is_defined(context, argument, proof.get("argument_defined"))
    floor, ceiling = ("floor", argument), ("ceiling", argument)
    known = [
        (minus(argument, floor), False),
        (minus(plus(floor, ONE), argument), True),
        (minus(ceiling, argument), False),
        (minus(plus(argument, ONE), ceiling), True),
        (minus(("abs", argument), argument), False),
        (plus(("abs", argument), argument), False),
    ]
    fact, is_strict = known[_index(proof["bound"], len(known))]
    require(is_strict or not strict, "a strict bound")
    require(context.is_zero(minus(term, fact)), "a bound of a step function")


def _balls(context: Context, term: Term, strict: bool, proof: Proof, depth: int) -> None:
    """Enclose the term on every part of a box; a part outside the facts needs nothing."""
    used = symbols(term) | {name for fact, _ in context.facts for name in symbols(fact)}
    used &= {name for name, (low, high) in context.box.items() if None not in (low, high)}
    require(symbols(term) <= used, "bounds on every symbol")
    box = {name: context.box[name] for name in sorted(used)}
    pending: list[tuple[Any, Any]] = [(box, proof["tree"])]
    count = 0
    while pending:
        count += 1
        require(count <= MOST_BOXES and time.monotonic() < context.deadline, "fewer boxes")
        part, node = pending.pop()
        if node == ".":
            sign = enclosed_sign(term, part)
            require(sign == 1 or (sign == 0 and not strict), "a positive enclosure")
        elif node == "x":
            require(is_outside(context, part), "a part outside the domain")
        else:
            name, cut = node[0], decode(["num", node[1]])[1]
            low, high = part[name]
            require(low < cut < high, "a cut inside the part")
            pending += [
                ({**part, name: (low, cut)}, node[2]),
                ({**part, name: (cut, high)}, node[3]),
            ]


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


_RULES: dict[str, Callable[[Context, Term, bool, Proof, int], None]] = {
    "terms": _terms,
    "sum": _sum,
    "product": _product,
    "square": _square,
    "monotone": _monotone,
    "power": _power,
    "absurd": _absurd,
    "cases": _cases,
    "extremum": _extremum,
    "substitute": _substitute,
    "derivative": _derivative,
    "unit powers": _unit_powers,
    "means": _means,
    "step function": _step_function,
    "balls": _balls,
}
# The parts of these rules show that the term is defined, or that no point is left.
_DEFINES = {"absurd", "balls", "cases", "extremum", "power", "substitute"}
