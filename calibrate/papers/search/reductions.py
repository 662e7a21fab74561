"""Strategies that put another inequality in the place of one: its logarithm, its square, a tangent.

Each takes a positive factor out, takes logarithms, exponentials or squares of both sides, replaces
logarithms by their tangents, or uses a multiple of a fact.

>>> from dpcal.calibrate.papers.claims.claims import Bound
>>> from dpcal.calibrate.papers.prover import prove
>>> prove(Bound("c", "exp(-x - x**2) <= 1 - x", on={"x": (0, "1/2")})).status
'PROVED'
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.claims.normal import Sum
from dpcal.calibrate.papers.kernel.rules import Context as Facts, bounds
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    ZERO,
    Term,
    decode,
    difference,
    encode,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    replace,
    subterms,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.papers.search.context import Context
from dpcal.calibrate.papers.search.limits import LIMITS

if TYPE_CHECKING:
    from dpcal.calibrate.papers.search.certificate import Step
    from dpcal.calibrate.papers.search.engine import Search

__all__ = [
    "by_content",
    "by_exponentials",
    "by_fact",
    "by_logarithms",
    "by_squares",
    "by_tangents",
    "write_exponentials",
    "write_logarithms",
    "write_tangents",
]

Proof = dict[str, Any]
TERMS: Proof = {"rule": "terms"}


def _product(*rows: tuple[Term, Proof]) -> Proof:
    return {"rule": "product", "factors": [[encode(part), proof] for part, proof in rows]}


def _sum(*rows: tuple[Term, Proof]) -> Proof:
    return {"rule": "sum", "parts": [[encode(part), proof] for part, proof in rows]}


def divided(context: Context, term: Term) -> tuple[Term, Sum]:
    """Return a positive factor that all monomials share, and the rest."""
    return _taken_out(context, context.normal.clear(context.normal.sum(term)))


def _taken_out(context: Context, total: Sum) -> tuple[Term, Sum]:
    normal = context.normal
    shared, size, rest = normal._content(total, False) if total else (frozenset(), 1, total)
    return normal.term({shared: Fraction(size)}), rest


def by_content(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Take out the positive factor that all monomials share."""
    factor, total = divided(context, term)
    if not symbols(factor) or len(total) < 2:
        return None
    rest = context.normal.term(total)
    return _scaled(search, context, strict, depth, factor, rest, None)


def _scaled(
    search: Search,
    context: Context,
    strict: bool,
    depth: int,
    factor: Term,
    rest: Term,
    proof: Proof | None,
) -> Proof | None:
    """Prove a positive factor times a rest, which is proved here unless its proof is given."""
    positive = search.inequality(context, factor, strict, depth + 1)
    if positive is not None and proof is None:
        proof = search.inequality(context, rest, strict, depth + 1)
    if positive is None or proof is None:
        return None
    return _product((factor, positive), (rest, proof))


def _sides(context: Context, total: Sum) -> tuple[Sum, Sum]:
    """Return the positive and the negative part of a sum."""
    rises = {m: v for m, v in total.items() if v > 0}
    return rises, {m: -v for m, v in total.items() if v < 0}


# -------------------------------------------------------------------------------------- logarithms


def by_logarithms(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Compare the logarithms of both sides, where one side is a power or an exponential."""
    normal = context.normal
    written = normal.sum(term)
    for factor, total in ((ONE, written), _taken_out(context, normal.clear(written))):
        proof = _by_logarithms(search, context, factor, total, strict, depth)
        if proof is not None:
            return proof
    return None


def _by_logarithms(
    search: Search, context: Context, factor: Term, total: Sum, strict: bool, depth: int
) -> Proof | None:
    normal = context.normal
    parts = _sides(context, total)
    if not all(parts) or not any(len(part) == 1 and _is_power(part) for part in parts):
        return None
    high, low = map(normal.term, parts)
    if not (context.holds(high, True) and context.holds(low, True)):
        return None
    # A sum stays as it is written, so that both sides have one logarithm of it.
    logs = [
        ("log", side) if len(part) > 1 else normal.term(normal.clear(normal.sum(("log", side))))
        for side, part in zip((high, low), parts, strict=True)
    ]
    order = minus(*logs)
    plain = depth > LIMITS.depth_of_moves or context.holds(order, strict)
    if plain and not context.holds(order, strict):
        return None
    proof = TERMS if plain else search.inequality(context, order, strict, depth + 2)
    if proof is None:
        return None
    ends = {"low": encode(low), "high": encode(high), "order": encode(order)}
    proof = {"rule": "logarithms", **ends, "proof": proof}
    return _scaled(search, context, strict, depth, factor, minus(high, low), proof)


def _is_power(total: Sum) -> bool:
    """Return whether a monomial has an exponent with symbols, or an exponential, in no sum."""
    (monomial,) = total
    if any(a[0] == "sum" and any(("e",) in dict(m) for m, _ in a[1]) for a, _ in monomial):
        return False
    return any(not isinstance(e, Fraction) for _, e in monomial)


def write_logarithms(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Prove high - low from their logarithms, by the exponential function."""
    low, high, order = (decode(found[name]) for name in ("low", "high", "order"))
    for side in (low, high):
        step.plainly(side, True)
    step.lemma(order, strict, found["proof"])
    logs = ("log", low), ("log", high)
    gap = minus(logs[1], logs[0])
    step.defined(gap)
    step.have(gap, strict, step.as_form(gap, order))
    image = minus(("exp", logs[1]), ("exp", logs[0]))
    ends = {"low": encode(logs[0]), "high": encode(logs[1])}
    step.have(image, strict, {"rule": "monotone", "function": "exp", **ends})
    return step.as_form(goal, image)


# ------------------------------------------------------------------------------------ exponentials


def by_exponentials(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Compare the exponentials of both sides of a sum of logarithms with numeric factors."""
    normal = context.normal
    factor, total = divided(context, term)
    if not any(_logarithm(m) for m in total) or not all(_is_simple(m) for m in total):
        return None
    size = max(abs(v) for m, v in total.items() if _logarithm(m))
    scaled = {m: v / size for m, v in total.items()}
    high, low = (normal.term(normal._exponential(part)) for part in _sides(context, scaled))
    if not (context.holds(high, True) and context.holds(low, True)):
        return None
    proof = search.inequality(context, minus(high, low), strict, depth + 2)
    if proof is None:
        return None
    ends = {"low": encode(low), "high": encode(high)}
    gap = minus(("log", high), ("log", low))
    scale = times(factor, number(size))
    proof = {"rule": "exponentials", **ends, "proof": proof}
    return _scaled(search, context, strict, depth, scale, gap, proof)


def _logarithm(monomial: Any) -> bool:
    return len(monomial) == 1 and all(a[0] == "logatom" and e == 1 for a, e in monomial)


def _is_simple(monomial: Any) -> bool:
    return _logarithm(monomial) or all(a[0] == "sym" and e == 1 for a, e in monomial)


def write_exponentials(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Prove log(high) - log(low), by the logarithm."""
    low, high = (decode(found[name]) for name in ("low", "high"))
    for side in (low, high):
        step.plainly(side, True)
    step.lemma(minus(high, low), strict, found["proof"])
    image = minus(("log", high), ("log", low))
    step.defined(image)
    ends = {"low": encode(low), "high": encode(high)}
    step.have(image, strict, {"rule": "monotone", "function": "log", **ends})
    return step.as_form(goal, image)


# ----------------------------------------------------------------------------------------- squares


def by_squares(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Compare the squares of both sides, where one side is a root."""
    normal = context.normal
    factor, total = divided(context, term)
    parts = _sides(context, total)
    if not all(parts) or not any(len(part) == 1 and _is_root(part) for part in parts):
        return None
    high, low = map(normal.term, parts)
    if not (context.holds(high, True) and context.holds(low, False)):
        return None
    squares = minus(power(high, number(2)), power(low, number(2)))
    squares = normal.term(normal.clear(normal.sum(squares)))
    proof = search.inequality(context, squares, strict, depth + 2)
    if proof is None:
        return None
    scale = times(factor, power(plus(high, low), number(-1)))
    return _scaled(search, context, strict, depth, scale, squares, proof)


def _is_root(total: Sum) -> bool:
    return any(
        isinstance(e, Fraction) and e.denominator == 2 and a[0] != "num"
        for monomial in total
        for a, e in monomial
    )


# ---------------------------------------------------------------------------------------- tangents


def by_tangents(
    search: Search, context: Context, term: Term, strict: bool, depth: int
) -> Proof | None:
    """Use log(a) <= a - 1, log(a) >= 1 - 1/a, and the bounds of erfc, in the place of functions."""
    rows = _written_logs(context, term)
    tried = [list(c) for k in range(1, len(rows) + 1) for c in itertools.combinations(rows, k)]
    for chosen in (*tried, *([row] for row in _grouped_logs(context, term))):
        proof = _by_tangents(search, context, term, strict, depth, chosen)
        if proof is not None:
            return proof
    return None


# A positive factor f, a term a, and a kind: f log(a) rises, -f log(a) falls, -f erfc(a) has a bound
# above and f erfc(a) one below, in the order of the kernel.
Logarithm = tuple[Term, Term, str]
_TAILS = ("above", "below")


def _written_logs(context: Context, term: Term) -> list[Logarithm]:
    """Return the logarithms in which a term is linear."""
    rows: list[Logarithm] = []
    for part in dict.fromkeys(part for part in subterms(term) if part[0] in ("log", "erfc")):
        slope = _coefficient(term, part)
        if slope is None or not symbols(part):
            continue
        rises, falls = context.holds(slope, False), context.holds(negative(slope), False)
        up, down = ("rises", "falls") if part[0] == "log" else ("below", "above")
        if (rises or falls) and (part[0] == "log" or context.holds(part[1], True)):
            rows.append((slope, part[1], up) if rises else (negative(slope), part[1], down))
    return rows[:3]


def _grouped_logs(context: Context, term: Term) -> list[Logarithm]:
    """Return logarithms that have one factor as that of one quotient."""
    normal = context.normal
    groups: dict[Any, dict[Term, Fraction]] = {}
    for monomial, value in normal.clear(normal.sum(term)).items():
        logs = [(a, e) for a, e in monomial if a[0] == "logatom" and e == 1]
        if len(logs) == 1:
            base = normal._atom_term(logs[0][0][1])
            groups.setdefault(monomial - {*logs}, {})[base] = value
    rows: list[Logarithm] = []
    for rest, bases in groups.items():
        factor = normal.term({rest: Fraction(1)})
        whole = all(value.denominator == 1 for value in bases.values())
        if 2 <= len(bases) <= 4 and whole and context.holds(factor, True):
            product = times(*(power(b, number(v)) for b, v in bases.items()))
            rows.append((factor, product, "rises"))
    return rows


def _by_tangents(
    search: Search, context: Context, term: Term, strict: bool, depth: int, chosen: Any
) -> Proof | None:
    gaps = [times(f, _tangent(a, kind)) for f, a, kind in chosen]
    total = context.normal.clear(context.normal.sum(minus(term, plus(*gaps))))
    rest = context.normal.term(total)
    proof = search.inequality(context, rest, strict, depth + 2)
    if proof is None:
        return None
    rows = [[encode(factor), encode(a), kind] for factor, a, kind in chosen]
    return {"rule": "tangents", "logs": rows, "rest": encode(rest), "proof": proof}


def _function(a: Term, kind: str) -> Term:
    """Return the function of a term whose bound the kernel knows."""
    return ("erfc", a) if kind in _TAILS else ("log", over(ONE, a) if kind == "rises" else a)


def _tangent(a: Term, kind: str) -> Term:
    """Return the distance of a function from its bound, which is not negative."""
    facts = Facts(symbols(a), [(a, True)])
    return bounds(facts, _function(a, kind))[_TAILS.index(kind) if kind in _TAILS else 0][0]


def _coefficient(term: Term, part: Term) -> Term | None:
    """Return the factor of a part in which a term is linear, or None."""
    name = "_part"
    replaced = replace(term, {part: symbol(name)})
    try:
        slope = difference(replaced, name)
    except ArithmeticError:
        return None
    return None if name in symbols(slope) else slope


def write_tangents(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Add the gaps between logarithms and their tangents."""
    rest = decode(found["rest"])
    step.lemma(rest, strict, found["proof"])
    rows = []
    for first, second, kind in found["logs"]:
        factor, a = decode(first), decode(second)
        step.plainly(a, True)
        step.plainly(factor, False)
        gap = _tangent(a, kind)
        step.defined(gap)
        rule = {"rule": "bound", "of": encode(_function(a, kind))}
        step.have(gap, kind in _TAILS, rule)
        rows.append(times(factor, gap))
    return step.as_form(goal, plus(rest, *rows))


# ------------------------------------------------------------------------------------------- facts


def by_fact(search: Search, context: Context, term: Term, strict: bool, depth: int) -> Proof | None:
    """Subtract a multiple of a fact that cancels a monomial, and prove the shorter rest."""
    normal = context.normal
    total = normal.clear(normal.sum(term))
    for fact, scale in _multiples(context, total):
        rest = normal.clear(normal.sum(minus(term, times(scale, fact))))
        if len(rest) >= len(total):
            continue
        simpler = normal.term(rest) if rest else ZERO
        multiple = times(scale, fact)
        held = context.holds(multiple, True)
        proof = search.inequality(context, simpler, strict and not held, depth + 2)
        if proof is not None:
            rows = [(simpler, proof), (multiple, TERMS)]
            return _sum(*(rows[::-1] if held and strict else rows))
    return None


def _multiples(context: Context, total: Sum) -> Iterator[tuple[Term, Term]]:
    normal = context.normal
    for fact, _ in context.facts:
        try:
            known = normal.clear(normal.sum(fact))
        except ArithmeticError:
            continue
        tried = set()
        for (m, v), (k, w) in itertools.product(total.items(), known.items()):
            if v * w <= 0 or len(known) < 2:
                continue
            scale = normal.sum(over(normal.term({m: v}), normal.term({k: w})))
            key = frozenset(scale.items())
            if key not in tried and normal.sign(scale) == "+":
                tried.add(key)
                yield fact, normal.term(scale)
