"""Decide claims about schedules: prove, refute, sample, or leave open.

``PROVED``
    With a certificate: equal normal forms, terms of one sign, exact multipliers, exact root
    counts, or rigorous enclosures of every box of a subdivision.
``REFUTED``
    With an exact rational counterexample, an exact exponent mismatch, or a failing case.
``SAMPLED``
    True at the recorded exact points; nothing more is claimed.
``OPEN``
    With the reason.

Nothing is ever proved from floating point. :func:`dpcal.calibrate.auditing.checker.recheck` checks
the evidence again without trusting this module.

>>> from sympy import symbols, sqrt
>>> from dpcal.calibrate.auditing.language import Bound, Identity
>>> x, y = symbols("x y", positive=True)
>>> prove(Bound("AM-GM", 2 * sqrt(x * y), x + y)).status
'PROVED'
>>> verdict = prove(Identity("freshman", (x + y) ** 2, x**2 + y**2))
>>> verdict.status, verdict.evidence["point"]
('REFUTED', {'x': '1', 'y': '1'})
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sympy

from dpcal.calibrate.auditing import language
from dpcal.calibrate.auditing.documents import encode
from dpcal.calibrate.auditing.enclosures import Undecided, balls_available, best
from dpcal.calibrate.auditing.monomials import (
    Monomial,
    TooLarge,
    as_expression,
    as_single,
    canonical_exponent,
    normal,
    prime_powers,
)

__all__ = ["STATUSES", "Verdict", "prove"]

STATUSES = ("PROVED", "REFUTED", "SAMPLED", "OPEN")
SAMPLES = 60
BITS = 192
MOST_BOXES = 4000
SECONDS = 4.0


@dataclass(frozen=True)
class Verdict:
    """What is known about a claim, and why.

    Parameters
    ----------
    status
        ``"PROVED"``, ``"REFUTED"``, ``"SAMPLED"`` or ``"OPEN"``.
    method
        How it was decided.
    reason
        One line for the reader.
    evidence
        JSON-able witness that the re-checker reads.
    seconds
        Time spent.
    """

    status: str
    method: str
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seconds: float = field(default=0.0, compare=False)

    def to_json(self) -> str:
        """Return the verdict as a JSON document."""
        document = {
            "status": self.status,
            "method": self.method,
            "reason": self.reason,
            "evidence": dict(self.evidence),
        }
        return json.dumps(document)

    @classmethod
    def from_json(cls, document: str) -> Verdict:
        """Read a verdict written by :meth:`to_json`."""
        try:
            return cls(**json.loads(document))
        except (json.JSONDecodeError, TypeError) as error:
            raise ValueError(f"document must be a verdict in JSON, got {error}.") from error


def prove(claim: language.Claim, *, seconds: float = SECONDS) -> Verdict:
    """Decide a claim whose settings have been resolved.

    Parameters
    ----------
    claim
        From :meth:`Schedule.resolve <dpcal.calibrate.schedules._language.Schedule.resolve>`, or
        written without settings.
    seconds
        Time after which searches stop.

    Returns
    -------
    Verdict
        Never an exception: a claim that cannot be decided is SAMPLED or OPEN.
    """
    started = time.monotonic()
    try:
        verdict = _DECIDE[type(claim)](claim, started + seconds)
    except Exception as error:  # a user's claim may break any step of sympy, and then it is open
        verdict = Verdict("OPEN", "none", f"could not be decided: {error}")
    object.__setattr__(verdict, "seconds", time.monotonic() - started)
    return verdict


# ------------------------------------------------------------------------------- domain and points


class Domain:
    """Where a claim must hold: positive symbols, ranges, and inequalities."""

    def __init__(self, claim: language.Claim, expressions: Sequence[Any]) -> None:
        self.ranges = {s: (sympy.sympify(a), sympy.sympify(b)) for s, (a, b) in claim.on.items()}
        self.conditions = [pair for part in claim.where for pair in inequalities(part)]
        parts = [part for small, large, _ in self.conditions for part in (small, large)]
        free = set().union(*(sympy.sympify(e).free_symbols for e in (*expressions, *parts)))
        self.symbols = sorted(free, key=str)
        self.hints = claim.points

    def range(self, symbol: Any) -> tuple[Any, Any]:
        """Return the interval that contains the symbol's values."""
        low, high = self.ranges.get(symbol, (-sympy.oo, sympy.oo))
        return (sympy.Max(low, 0), high) if symbol.is_positive else (low, high)

    def contains(self, point: Mapping[Any, Fraction], arithmetic: Any) -> bool:
        """Return whether the point certainly lies in the domain."""
        for symbol, value in point.items():
            low, high = self.range(symbol)
            exact = sympy.Rational(value.numerator, value.denominator)
            if not low <= exact <= high or (symbol.is_positive and value <= 0):
                return False
        return all(
            sign_at(large - small, point, arithmetic) in ((1,) if strict else (0, 1))
            for small, large, strict in self.conditions
        )

    def points(self, count: int, seed: int = 0) -> Iterator[dict[Any, Fraction]]:
        """Yield the claim's own points, simple points, then random rational ones."""
        generator = random.Random(seed)
        for hint in self.hints:
            named = {str(symbol): language.exact(value) for symbol, value in hint.items()}
            yield {s: named.get(str(s), self._within(s, Fraction(1))) for s in self.symbols}
        for base in (1, 2):
            yield {s: self._within(s, Fraction(base)) for s in self.symbols}
        for k in range(count):
            yield {s: self._draw(s, generator, k < count // 3) for s in self.symbols}

    def _within(self, symbol: Any, value: Fraction) -> Fraction:
        low, high = self.range(symbol)
        if low.is_finite and value < language.exact(low):
            value = language.exact(low) + (0 if low > 0 else 1)
        if high.is_finite and value > language.exact(high):
            value = language.exact(high)
        return value

    def _draw(self, symbol: Any, generator: random.Random, simple: bool) -> Fraction:
        low, high = self.range(symbol)
        if low.is_finite and high.is_finite:
            bottom, top = language.exact(low), language.exact(high)
            return bottom + (top - bottom) * Fraction(generator.randint(1, 63), 64)
        if simple:
            size = Fraction(generator.choice((1, 2, 3, 5, 10, 100)))
        else:
            size = Fraction(generator.randint(100, 999), 100) * Fraction(10) ** generator.randint(
                0, 3
            )
        size = 1 / size if generator.random() < 0.5 else size
        if low.is_finite:
            return language.exact(low) + size
        return size if generator.random() < 0.5 else -size


def inequalities(relation: Any) -> list[tuple[Any, Any, bool]]:
    """Return a relation as (small, large, strict) triples."""
    if relation is True or relation == sympy.true:
        return []
    if isinstance(relation, (sympy.Le, sympy.Lt)):
        return [(relation.lhs, relation.rhs, isinstance(relation, sympy.Lt))]
    if isinstance(relation, (sympy.Ge, sympy.Gt)):
        return [(relation.rhs, relation.lhs, isinstance(relation, sympy.Gt))]
    if isinstance(relation, sympy.And):
        return [pair for part in relation.args for pair in inequalities(part)]
    raise ValueError(f"condition must be built from <= and <, got {relation!r}.")


def sign_at(expression: Any, point: Mapping[Any, Fraction], arithmetic: Any) -> int | None:
    """Return the certain sign of an expression at an exact point; zero only when exactly zero."""
    rational = _exactly(expression, point)
    if rational is not None:
        return (rational > 0) - (rational < 0)
    try:
        sign: int | None = arithmetic.sign(arithmetic.value(expression, point))
    except (Undecided, ZeroDivisionError, ValueError):
        return None
    return sign


def _exactly(expression: Any, point: Mapping[Any, Fraction]) -> Fraction | None:
    """Evaluate in rational arithmetic where every power is whole."""
    expression = sympy.sympify(expression)
    if any(not power.exp.is_Integer for power in expression.atoms(sympy.Pow)):
        return None
    if expression.atoms(sympy.Function) - expression.atoms(sympy.Max, sympy.Min):
        return None
    values = {s: sympy.Rational(v.numerator, v.denominator) for s, v in point.items()}
    value = expression.subs(values)
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else None


def _point_json(point: Mapping[Any, Fraction]) -> dict[str, str]:
    return {str(symbol): str(value) for symbol, value in point.items()}


def _values_text(
    expressions: Sequence[Any], point: Mapping[Any, Fraction], arithmetic: Any
) -> list[str]:
    return [arithmetic.text(arithmetic.value(e, point)) for e in expressions]


def _at(point: Mapping[Any, Fraction]) -> str:
    parts = [f"{symbol} = {_short(value)}" for symbol, value in point.items()]
    return "at " + ", ".join(parts) if parts else "for these numbers"


def _short(value: Fraction) -> str:
    return f"{float(value):.6g}" if len(str(value)) > 9 else str(value)


# ---------------------------------------------------------------------------------------- identity


def _decide_identity(claim: Any, deadline: float) -> Verdict:
    left, right = claim.left, claim.right
    domain = Domain(claim, (left, right))
    proof = _equal(left, right, domain)
    if proof is not None:
        return proof
    arithmetic = best(BITS)
    for point in domain.points(SAMPLES):
        if time.monotonic() > deadline:
            break
        if not domain.contains(point, arithmetic):
            continue
        if sign_at(left - right, point, arithmetic) in (-1, 1):
            return _counterexample((left, right), point, arithmetic, "differ")
    return Verdict("OPEN", "none", "neither equal by rewriting nor different at any point tried")


def _equal(left: Any, right: Any, domain: Domain) -> Verdict | None:
    """Prove an identity by normal forms, or else by a sympy reduction to zero."""
    try:
        sums = normal(left), normal(right)
        if sums[0] == sums[1] and all(_has_real_powers(e, domain) for e in (left, right)):
            reason = "both sides have the same normal form"
            return Verdict(
                "PROVED", "normal form", reason, {"form": encode(as_expression(normal(left)))}
            )
    except TooLarge:
        pass
    if (
        sympy.cancel(sympy.together(sympy.expand(left - right))) == 0
        or sympy.simplify(left - right) == 0
    ):
        return Verdict(
            "PROVED", "reduction to 0", "the difference reduces to 0", {"form": encode(left)}
        )
    return None


def _has_real_powers(expression: Any, domain: Domain) -> bool:
    """Return whether every base under a root, a symbolic power or a logarithm is nonnegative."""
    inner = [power.base for power in expression.atoms(sympy.Pow) if not power.exp.is_Integer]
    inner += [logarithm.args[0] for logarithm in expression.atoms(sympy.log)]
    bases = {base for part in inner for monomial in normal(part) for base, _ in monomial}
    return all(base.is_positive or nonnegative_on(base, domain) for base in bases)


def _counterexample(
    sides: tuple[Any, Any], point: Mapping[Any, Fraction], arithmetic: Any, verb: str
) -> Verdict:
    left, right = _values_text(sides, point, arithmetic)
    reason = f"{_at(point)} the sides {verb}: {left} against {right}"
    evidence = {"point": _point_json(point), "left": left, "right": right}
    return Verdict("REFUTED", "counterexample", reason, evidence)


def _decide_balance(claim: Any, deadline: float) -> Verdict:
    verdict = _decide_identity(claim, deadline)
    if verdict.status != "PROVED":
        return verdict
    powers = [exponent_of(claim.of, side) for side in claim.raw or ()]
    if len(powers) != 2 or None in powers or not powers[0] * powers[1] < 0:
        return Verdict("OPEN", "none", "the sides agree, but do not move in opposite directions")
    evidence = {**verdict.evidence, "powers": [str(power) for power in powers]}
    reason = f"equal, and monotone in {claim.of} with powers {powers[0]} and {powers[1]}"
    return Verdict("PROVED", verdict.method, reason, evidence)


def exponent_of(symbol: Any, expression: Any) -> Any:
    """Return the exponent of a symbol in a monomial, or None."""
    single = as_single(normal(expression))
    return None if single is None else dict(single[0]).get(symbol, sympy.S.Zero)


# ------------------------------------------------------------------------------------------- bound


def _decide_bound(claim: Any, deadline: float) -> Verdict:
    domain = Domain(claim, (claim.left, claim.right))
    arithmetic = best(BITS)
    refuted, held = _search(claim, domain, arithmetic, 24, deadline)
    if refuted is not None:
        return refuted
    for strategy in (_by_terms, _by_multipliers, _by_roots, _by_boxes):
        proof = strategy(claim, domain, deadline)
        if proof is not None:
            return proof
    refuted, more = _search(claim, domain, arithmetic, 400, deadline, seed=1)
    if refuted is not None:
        return refuted
    held += more
    if len(held) >= SAMPLES // 2:
        reason = f"true at {len(held)} exact points; not proved"
        return Verdict("SAMPLED", "points", reason, {"points": held})
    return Verdict("OPEN", "none", f"no proof, no counterexample, {len(held)} points decided")


def _search(
    claim: Any, domain: Domain, arithmetic: Any, count: int, deadline: float, seed: int = 0
) -> tuple[Verdict | None, list[dict[str, str]]]:
    """Look for a counterexample; return it, or the points where the bound certainly holds."""
    held: list[dict[str, str]] = []
    for point in domain.points(count, seed):
        if time.monotonic() > deadline or len(held) >= SAMPLES:
            break
        if not domain.contains(point, arithmetic):
            continue
        sign = sign_at(claim.right - claim.left, point, arithmetic)
        if sign == -1:
            sides = (claim.left, claim.right)
            return _counterexample(sides, point, arithmetic, "are in the wrong order"), held
        if sign is not None:
            held.append(_point_json(point))
    return None, held


def shifts(domain: Domain, symbols: Sequence[Any]) -> dict[Any, Any]:
    """Return substitutions that map positive new symbols onto the ranges of ``symbols``."""
    table = {}
    for symbol in symbols:
        low, high = domain.range(symbol)
        fresh = sympy.Symbol(f"{symbol}_", positive=True)
        if low.is_finite and high.is_finite:
            table[symbol] = (low + high * fresh) / (1 + fresh)
        elif low.is_finite and low != 0:
            table[symbol] = low + fresh
        elif high.is_finite:
            table[symbol] = high - fresh
    return table


def isolated(domain: Domain) -> dict[Any, Any]:
    """Return substitutions for conditions that bound a lone symbol by others."""
    table: dict[Any, Any] = {}
    for small, large, _ in domain.conditions:
        taken = set(table) | set().union(*(value.free_symbols for value in table.values()))
        fresh = sympy.Symbol(f"u{len(table)}_", positive=True)
        if large.is_Symbol and large not in small.free_symbols | taken and small.is_nonnegative:
            table[large] = small + fresh
        elif small.is_Symbol and small.is_positive and small not in large.free_symbols | taken:
            table[small] = large * fresh / (1 + fresh)
    return table


def _by_terms(claim: Any, domain: Domain, deadline: float) -> Verdict | None:
    """After moving the domain's corner to the origin, all terms of right - left have one sign."""
    difference = claim.right - claim.left
    if difference.atoms(sympy.Max, sympy.Min, sympy.Abs) or len(domain.symbols) > 9:
        return None
    outer = isolated(domain)
    for table in ([outer] if outer else []) + [{}]:
        moved = difference.subs(table, simultaneous=True)
        inner = shifts(domain, sorted(moved.free_symbols & domain.ranges.keys(), key=str))
        moved = moved.subs(inner, simultaneous=True)
        quotient = _signed_quotient(moved)
        if quotient is not None:
            reason = "right - left is a quotient of sums of positive terms"
            evidence = {
                "isolate": [[str(s), encode(e)] for s, e in table.items()],
                "shift": [[str(s), encode(e)] for s, e in inner.items()],
                "numerator": encode(quotient[0]),
                "denominator": encode(quotient[1]),
            }
            return Verdict("PROVED", "positive terms", reason, evidence)
    square = _as_square(difference)
    if square is not None:
        evidence = {"square_root": encode(square)}
        return Verdict("PROVED", "square", "right - left is a square", evidence)
    return None


def _signed_quotient(expression: Any) -> tuple[Any, Any] | None:
    try:
        numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(expression)))
        sums = normal(numerator), normal(denominator)
    except (TooLarge, sympy.PolynomialError):
        return None
    if any(
        not _is_positive_base(base) for total in sums for monomial in total for base, _ in monomial
    ):
        return None
    signs = [{value > 0 for value in total.values()} for total in sums]
    if sums[0] and signs[0] == signs[1] and len(signs[0]) == 1:
        top, bottom = (as_expression(total) for total in sums)
        return (top, bottom) if signs[0] == {True} else (-top, -bottom)
    return (sympy.S.Zero, sympy.S.One) if not sums[0] else None


def _is_positive_base(base: Any) -> bool:
    return bool(base.is_positive)


def _as_square(expression: Any) -> Any | None:
    """Return a real root of an expression that is a perfect square."""
    factors = sympy.factor(sympy.expand(expression))
    coefficient, powers = factors.as_coeff_mul()
    root = sympy.S.One
    for factor in powers:
        base, exponent = factor.as_base_exp()
        if exponent.is_Integer and exponent % 2 == 0:
            root *= base ** (exponent / 2)
        elif base.is_positive:
            root *= sympy.sqrt(base) ** exponent
        else:
            return _square_of_difference(expression)
    return sympy.sqrt(coefficient) * root if coefficient.is_positive else None


def _square_of_difference(expression: Any) -> Any | None:
    terms = expression.as_ordered_terms()
    if len(terms) != 3:
        return None
    for a, b in itertools.combinations(terms, 2):
        if a.is_positive and b.is_positive:
            root = sympy.sqrt(a) - sympy.sqrt(b)
            if normal(sympy.expand(root**2)) == normal(expression):
                return root
    return None


# ----- multipliers: a monomial is at most a product of powers of ratios that are at most 1


def _by_multipliers(claim: Any, domain: Domain, deadline: float) -> Verdict | None:
    cases = []
    for choice in branches(claim, domain):
        if time.monotonic() > deadline:
            return None
        left, right, facts = choice
        rows = _terms_below(left, right, facts, domain)
        if rows is None:
            return None
        cases.append(rows)
    if not cases:
        return None
    reason = "each term is at most its share of the right side, by exact multipliers"
    return Verdict("PROVED", "multipliers", reason, {"cases": cases})


def branches(claim: Any, domain: Domain) -> list[tuple[Any, Any, list[tuple[Any, Any]]]]:
    """Split every maximum and minimum; each case brings the facts that define it."""
    facts = [(small, large) for small, large, _ in domain.conditions]
    for symbol in domain.symbols:
        low, high = domain.range(symbol)
        facts += [(low, symbol)] if low.is_finite and low > 0 else []
        facts += [(symbol, high)] if high.is_finite else []
    return _split(claim.left, claim.right, facts, 5)


def _split(left: Any, right: Any, facts: list[Any], depth: int) -> list[tuple[Any, Any, list[Any]]]:
    parts = (left, right, *(side for fact in facts for side in fact))
    extrema = set().union(*(sympy.sympify(p).atoms(sympy.Max, sympy.Min) for p in parts))
    innermost = [e for e in extrema if not any(a.atoms(sympy.Max, sympy.Min) for a in e.args)]
    if not innermost or depth == 0:
        return [] if innermost else [(left, right, facts)]
    extremum = min(innermost, key=str)
    cases = []
    for chosen in extremum.args:
        table = {extremum: chosen}
        others = [other for other in extremum.args if other != chosen]
        extra = [(o, chosen) if isinstance(extremum, sympy.Max) else (chosen, o) for o in others]
        replaced = [(a.subs(table), b.subs(table)) for a, b in _sympified(facts)]
        cases += _split(left.subs(table), right.subs(table), replaced + extra, depth - 1)
    return cases


def _sympified(facts: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [(sympy.sympify(a), sympy.sympify(b)) for a, b in facts]


def _terms_below(left: Any, right: Any, facts: Any, domain: Domain) -> list[Any] | None:
    """For each term of left, multipliers that bound its ratio to one term of right."""
    rights = [(m, v) for m, v in normal(right).items() if v > 0]
    if len(rights) != len(normal(right)):
        return None
    ratios = _usable(facts)
    for target in rights:
        rows, total = [], sympy.S.Zero
        for monomial, value in normal(left).items():
            if value < 0:
                continue
            found = _multipliers((monomial, value), target, ratios, domain)
            if found is None:
                break
            share, multipliers = found
            total += share
            rows.append(
                {
                    "term": encode(_single(monomial, value)),
                    "target": encode(_single(*target)),
                    "facts": [[encode(a), encode(b), encode(m)] for (a, b), m in multipliers],
                    "share": encode(share),
                }
            )
        else:
            if _at_most_one(total, domain):
                return rows
    return None


def _single(monomial: Monomial, value: Fraction) -> Any:
    return as_expression({monomial: value})


def _usable(facts: Any) -> list[tuple[Any, dict[Any, Any], Fraction]]:
    """Facts with a monomial on the right, one for each term on the left, with its exponents."""
    rows = []
    for small, large in facts:
        try:
            smalls, bound = normal(small), as_single(normal(large))
        except TooLarge:
            continue
        if bound is None or bound[1] <= 0 or any(value <= 0 for value in smalls.values()):
            continue
        for monomial, value in smalls.items():
            exponents = _ratio(dict(monomial), dict(bound[0]))
            fact = (_single(monomial, value), _single(*bound))
            rows.append((fact, exponents, value / bound[1]))
    return rows


def _ratio(top: dict[Any, Any], bottom: dict[Any, Any]) -> dict[Any, Any]:
    keys = top.keys() | bottom.keys()
    zero = sympy.S.Zero
    powers = {k: canonical_exponent(top.get(k, zero) - bottom.get(k, zero)) for k in keys}
    return {k: v for k, v in powers.items() if v != 0}


def _multipliers(
    term: tuple[Monomial, Fraction], target: tuple[Monomial, Fraction], ratios: Any, domain: Domain
) -> tuple[Any, list[Any]] | None:
    """Write term/target as share * product of (small/large)^multiplier with multipliers >= 0."""
    goal = _ratio(dict(term[0]), dict(target[0]))
    bases = [b for b in set(goal).union(*(set(r[1]) for r in ratios)) if not b.is_Integer]
    bases.sort(key=str)
    probe = {s: sympy.Rational(*p) for s, p in zip(domain.symbols, _probe(domain), strict=True)}
    numbers = [_numeric(row[1], bases, probe) for row in ratios]
    wanted = _numeric(goal, bases, probe)
    for size in range(min(len(ratios), 4) + 1):
        for subset in itertools.combinations(range(len(ratios)), size):
            guess = _solve([numbers[k] for k in subset], wanted)
            if guess is None or any(value < 0 for value in guess):
                continue
            columns = [[ratios[k][1].get(b, sympy.S.Zero) for b in bases] for k in subset]
            exact = _solve(columns, [goal.get(b, sympy.S.Zero) for b in bases])
            if exact is None or not all(nonnegative_on(m, domain) for m in exact):
                continue
            share = _share(term, target, [ratios[k] for k in subset], exact)
            return share, [(ratios[k][0], m) for k, m in zip(subset, exact, strict=True)]
    return None


def _probe(domain: Domain) -> list[tuple[int, int]]:
    values = []
    for k, symbol in enumerate(domain.symbols):
        low, high = domain.range(symbol)
        if low.is_finite and high.is_finite:
            inside = language.exact(low) + (language.exact(high) - language.exact(low)) * Fraction(
                37 + k, 97
            )
        else:
            inside = language.exact(low if low.is_finite else 0) + Fraction(129 + k, 100)
        values.append(inside.as_integer_ratio())
    return values


def _numeric(
    powers: Mapping[Any, Any], bases: Sequence[Any], probe: Mapping[Any, Any]
) -> list[Any]:
    return [powers.get(base, sympy.S.Zero).subs(probe) for base in bases]


def _solve(columns: Sequence[Sequence[Any]], goal: Sequence[Any]) -> list[Any] | None:
    """Solve sum_k x_k column_k = goal exactly; None when there is no or no unique solution."""
    if not columns:
        return [] if all(entry == 0 for entry in goal) else None
    rows = [[column[i] for column in columns] + [goal[i]] for i in range(len(goal))]
    rows = [[canonical_exponent(sympy.sympify(entry)) for entry in row] for row in rows]
    width = len(columns)
    pivots = 0
    for k in range(width):
        pivot = next((r for r in range(pivots, len(rows)) if rows[r][k] != 0), None)
        if pivot is None:
            return None
        rows[pivots], rows[pivot] = rows[pivot], rows[pivots]
        lead = rows[pivots][k]
        rows[pivots] = [canonical_exponent(entry / lead) for entry in rows[pivots]]
        for r in range(len(rows)):
            if r != pivots and rows[r][k] != 0:
                factor = rows[r][k]
                rows[r] = [
                    canonical_exponent(x - factor * y)
                    for x, y in zip(rows[r], rows[pivots], strict=True)
                ]
        pivots += 1
    if any(row[width] != 0 for row in rows[pivots:]):
        return None
    return [rows[k][width] for k in range(width)]


def _share(term: Any, target: Any, used: Any, multipliers: Sequence[Any]) -> Any:
    """Return the constant factor that is left: coefficients and powers of primes."""

    def number(monomial: Any, value: Fraction) -> Any:
        primes = [base**power for base, power in monomial if base.is_Integer]
        return sympy.Rational(value.numerator, value.denominator) * sympy.Mul(*primes)

    share = number(*term) / number(*target)
    for (_, powers, value), multiplier in zip(used, multipliers, strict=True):
        primes = [base**power for base, power in powers.items() if base.is_Integer]
        constant = sympy.Rational(value.numerator, value.denominator) * sympy.Mul(*primes)
        share *= constant ** (-multiplier)
    return share


def _at_most_one(total: Any, domain: Domain) -> bool:
    """Decide whether shares add up to at most 1, a power of one prime by its exponent."""
    single = as_single(normal(total))
    if single is not None and single[0]:
        powers = dict(single[0])
        for prime, count in prime_powers(single[1]).items():
            powers[prime] = powers.get(prime, sympy.S.Zero) + count
        if len(powers) == 1 and next(iter(powers)).is_Integer:
            return nonnegative_on(-next(iter(powers.values())), domain)
    return nonnegative_on(1 - total, domain)


def nonnegative_on(expression: Any, domain: Domain) -> bool:
    """Decide exactly whether a function of at most one ranged symbol is nonnegative."""
    expression = sympy.sympify(expression)
    if not expression.free_symbols:
        return bool(sympy.simplify(expression) == 0) or sign_at(expression, {}, best(BITS)) in (
            0,
            1,
        )
    if len(expression.free_symbols) != 1:
        return False
    (symbol,) = expression.free_symbols
    return root_certificate(expression, symbol, domain.range(symbol)) is not None


# ----- exact root isolation


def _by_roots(claim: Any, domain: Domain, deadline: float) -> Verdict | None:
    difference = sympy.sympify(claim.right - claim.left)
    if len(difference.free_symbols) != 1 or domain.conditions:
        return None
    (symbol,) = difference.free_symbols
    evidence = root_certificate(difference, symbol, domain.range(symbol))
    if evidence is None:
        return None
    reason = f"right - left has no sign change in {symbol}, by exact root counting"
    return Verdict("PROVED", "root count", reason, evidence)


def root_certificate(
    expression: Any, symbol: Any, interval: tuple[Any, Any]
) -> dict[str, Any] | None:
    """Return a witness that an algebraic function of one symbol is nonnegative on an interval."""
    denominators = [
        p.exp.q for p in expression.atoms(sympy.Pow) if p.base == symbol and p.exp.is_Rational
    ]
    degree = int(sympy.ilcm(1, *denominators)) if denominators else 1
    fresh = sympy.Dummy(positive=True)
    moved = expression.subs(symbol, fresh**degree) if degree > 1 else expression.subs(symbol, fresh)
    numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(moved)))
    polynomial = sympy.expand(numerator * denominator)
    if not polynomial.is_polynomial(fresh) or polynomial.free_symbols - {fresh}:
        return None
    poly = sympy.Poly(polynomial, fresh)
    if not all(c.is_Rational for c in poly.all_coeffs()):
        return None
    low, high = (_root_of_end(end, degree) for end in interval)
    if low is None or high is None or not _nonnegative_polynomial(poly, low, high):
        return None
    return {
        "symbol": str(symbol),
        "degree": degree,
        "coefficients": [str(c) for c in poly.all_coeffs()],
        "interval": [str(low), str(high)],
    }


def _root_of_end(end: Any, degree: int) -> Any | None:
    root = end if end.is_infinite or degree == 1 else sympy.root(end, degree)
    return root if root.is_Rational or root.is_infinite else None


def _nonnegative_polynomial(poly: Any, low: Any, high: Any) -> bool:
    if poly.is_zero:
        return True
    bottom, top = (None if end.is_infinite else end for end in (low, high))
    for factor, multiplicity in poly.sqf_list()[1]:
        if multiplicity % 2 == 0:
            continue
        inside = factor.count_roots(bottom, top)
        inside -= sum(1 for end in (bottom, top) if end is not None and factor.eval(end) == 0)
        if inside:
            return False
    sample = _inner(bottom, top)
    while poly.eval(sample) == 0:
        sample = _inner(bottom, sample)
    return bool(poly.eval(sample) > 0)


def _inner(low: Any, high: Any) -> Any:
    if low is None and high is None:
        return sympy.S.Zero
    if low is None:
        return high - 1
    return low + 1 if high is None else (low + high) / 2


# ----- enclosures over boxes


def _by_boxes(claim: Any, domain: Domain, deadline: float) -> Verdict | None:
    """Bisect the box until an enclosure of right - left is positive on every part."""
    sides = [domain.range(symbol) for symbol in domain.symbols]
    if domain.conditions or not all(end.is_finite for side in sides for end in side):
        return None
    box = {
        s: tuple(map(language.exact, side)) for s, side in zip(domain.symbols, sides, strict=True)
    }
    tree = bisect(claim.right - claim.left, box, best(96), deadline)
    if tree is None:
        return None
    evidence = {
        "box": {str(s): [str(a), str(b)] for s, (a, b) in box.items()},
        "tree": tree,
        "arithmetic": "balls" if balls_available() else "intervals",
    }
    return Verdict(
        "PROVED",
        "boxes",
        f"right - left encloses positive values on {tree.count('.')} boxes",
        evidence,
    )


def bisect(expression: Any, box: Mapping[Any, Any], arithmetic: Any, deadline: float) -> str | None:
    """Return the bisection in prefix order: a digit is the symbol halved, a dot a proved part."""
    symbols = list(box)
    pending = [dict(box)]
    marks: list[str] = []
    while pending:
        if len(marks) >= MOST_BOXES or time.monotonic() > deadline:
            return None
        part = pending.pop()
        if is_positive_on(expression, part, arithmetic):
            marks.append(".")
            continue
        widest = max(range(len(symbols)), key=lambda k: _width(part[symbols[k]], box[symbols[k]]))
        marks.append(str(widest))
        pending += reversed(halves(part, symbols[widest]))
    return "".join(marks)


def halves(box: Mapping[Any, Any], symbol: Any) -> list[dict[Any, Any]]:
    """Return the lower and the upper half of a box along one symbol."""
    low, high = box[symbol]
    middle = (low + high) / 2
    return [{**box, symbol: (low, middle)}, {**box, symbol: (middle, high)}]


def is_positive_on(expression: Any, box: Mapping[Any, Any], arithmetic: Any) -> bool:
    """Return whether the enclosure over the box is strictly positive."""
    try:
        ranges = {symbol: arithmetic.box(low, high) for symbol, (low, high) in box.items()}
        return bool(arithmetic.sign(arithmetic.value(expression, ranges)) == 1)
    except (Undecided, ZeroDivisionError, ValueError):
        return False


def _width(part: tuple[Fraction, Fraction], whole: tuple[Fraction, Fraction]) -> Fraction:
    span = whole[1] - whole[0]
    return (part[1] - part[0]) / span if span else Fraction(0)


# ------------------------------------------------------------------------- feasible, private, rate


def _decide_feasible(claim: Any, deadline: float) -> Verdict:
    verdicts: list[Verdict] = []
    evidence: list[dict[str, Any]] = []
    for small, large, _ in (p for condition in claim.conditions for p in inequalities(condition)):
        part = part_of(claim, small, large)
        verdict = _decide_bound(part, deadline)
        if verdict.status == "REFUTED":
            point = {**verdict.evidence, "condition": len(evidence)}
            return Verdict(
                "REFUTED", "counterexample", f"{small} <= {large} fails {verdict.reason}", point
            )
        verdicts.append(verdict)
        evidence.append(
            {"status": verdict.status, "method": verdict.method, "evidence": dict(verdict.evidence)}
        )
    if not verdicts:
        return Verdict("OPEN", "none", "no condition is left to decide")
    weakest = max(
        (v.status for v in verdicts), key=("PROVED", "SAMPLED", "OPEN").index, default="PROVED"
    )
    methods = ", ".join(dict.fromkeys(v.method for v in verdicts))
    return Verdict(
        weakest, "conditions", f"{len(verdicts)} conditions: {methods}", {"parts": evidence}
    )


def part_of(claim: language.Claim, small: Any, large: Any) -> language.Bound:
    """Return one condition of a composite claim as a bound on the same domain."""
    return language.Bound(
        claim.name,
        sympy.sympify(small),
        sympy.sympify(large),
        where=claim.where,
        on=claim.on,
        points=claim.points,
    )


def private_bound(claim: Any) -> language.Bound:
    """Return the inequality that a privacy claim amounts to."""
    if claim.rho is not None:
        return part_of(claim, claim.squared_mu / 2, claim.rho)
    return part_of(claim, gaussian_delta(claim.epsilon, sympy.sqrt(claim.squared_mu)), claim.delta)


def gaussian_delta(epsilon: Any, mu: Any) -> Any:
    """Return the exact delta of mu-Gaussian-DP at epsilon, in terms of erfc."""

    def normal_cdf(x: Any) -> Any:
        return sympy.erfc(-x / sympy.sqrt(2)) / 2

    epsilon = sympy.sympify(epsilon)
    return normal_cdf(mu / 2 - epsilon / mu) - sympy.exp(epsilon) * normal_cdf(
        -mu / 2 - epsilon / mu
    )


def _decide_private(claim: Any, deadline: float) -> Verdict:
    verdict = _decide_bound(private_bound(claim), deadline)
    cost = verdict.evidence.get("left")
    budget = verdict.evidence.get("right")
    if cost is not None:
        under = f"under {claim.neighboring_relation}, {_at_text(verdict)}"
        reason = f"costs {cost} of a budget of {budget} {under}"
        return Verdict(verdict.status, verdict.method, reason, verdict.evidence)
    return verdict


def _at_text(verdict: Verdict) -> str:
    point = {name: Fraction(value) for name, value in verdict.evidence["point"].items()}
    return _at(point)


def _decide_rate(claim: Any, deadline: float) -> Verdict:
    domain = Domain(claim, [*claim.on, *claim.growth.values()])
    target = degree(claim.right, claim.growth)
    if None in (target, *(monomial_degree(m, claim.growth) for m in normal(claim.left))):
        by_limit = _rate_by_limit(claim)
        if by_limit is not None:
            return by_limit
    if target is None:
        return Verdict("OPEN", "none", "the right side is not one power of the growing symbols")
    rows = []
    for monomial, value in normal(claim.left).items():
        power = monomial_degree(monomial, claim.growth)
        if power is None or value < 0:
            return Verdict("OPEN", "none", f"no degree for the term {_single(monomial, value)}")
        excess = canonical_exponent(power - target)
        rows.append((_single(monomial, value), excess))
        point = _positive_point(excess, domain)
        if point is not None:
            more = f"grows by the power {excess.subs(point)} more than claimed"
            reason = f"the term {_single(monomial, value)} {more}"
            evidence = {
                "term": encode(_single(monomial, value)),
                "excess": encode(excess),
                "point": {str(s): str(v) for s, v in point.items()},
            }
            return Verdict("REFUTED", "exponents", f"{reason}{_where_text(point)}", evidence)
    if all(_never_positive(excess, domain) for _, excess in rows):
        evidence = {"terms": [[encode(term), encode(excess)] for term, excess in rows]}
        return Verdict(
            "PROVED", "exponents", f"all {len(rows)} terms stay within the claimed power", evidence
        )
    return Verdict("OPEN", "none", "the sign of an exponent difference could not be decided")


def _rate_by_limit(claim: Any) -> Verdict | None:
    """Decide a rate in one symbol that is no power by the limit of left/right, from its series."""
    ratio = sympy.sympify(claim.left / claim.right)
    if len(claim.growth) != 1 or ratio.free_symbols != claim.growth.keys():
        return None
    ((symbol, direction),) = claim.growth.items()
    limit = sympy.limit(
        ratio, symbol, sympy.oo if direction > 0 else 0, "+" if direction < 0 else "-"
    )
    if not (limit.is_number and limit.is_extended_real):
        return None
    status = "PROVED" if limit.is_finite else "REFUTED"
    return Verdict(status, "limit", f"left/right tends to {limit}", {"limit": encode(limit)})


def _where_text(point: Mapping[Any, Any]) -> str:
    return " at " + ", ".join(f"{s} = {v}" for s, v in point.items()) if point else ""


def degree(expression: Any, growth: Mapping[Any, Any]) -> Any | None:
    """Return the largest power of t over the terms, when they compare."""
    degrees = {monomial_degree(monomial, growth) for monomial in normal(expression)}
    if None in degrees or not degrees:
        return None
    if len(degrees) == 1:
        return degrees.pop()
    return sympy.Max(*degrees) if all(d is not None and d.is_number for d in degrees) else None


def monomial_degree(monomial: Monomial, growth: Mapping[Any, Any]) -> Any | None:
    """Return the power of t of one monomial; logarithms count as constants."""
    total = sympy.S.Zero
    for base, exponent in monomial:
        if base in growth:
            total += sympy.sympify(growth[base]) * exponent
        elif base.free_symbols & growth.keys() and not isinstance(base, sympy.log):
            inner = _atom_degree(base, growth)
            if inner is None:
                return None
            total += inner * exponent
        if exponent.free_symbols & growth.keys():
            return None
    return canonical_exponent(total)


def _atom_degree(base: Any, growth: Mapping[Any, Any]) -> Any | None:
    if isinstance(base, (sympy.Max, sympy.Min)):
        degrees = [degree(argument, growth) for argument in base.args]
        if any(d is None or not d.is_number for d in degrees):
            return None
        return base.func(*degrees)
    if base.is_Add and all(value > 0 for value in normal(base).values()):
        return degree(base, growth)
    return None


def _positive_point(excess: Any, domain: Domain) -> dict[Any, Any] | None:
    """Return exact values of the ranged symbols at which the excess is positive."""
    if excess.is_number:
        return {} if excess > 0 else None
    for point in domain.points(40):
        values = {s: sympy.Rational(v.numerator, v.denominator) for s, v in point.items()}
        if domain.contains(point, best(BITS)) and excess.subs(values) > 0:
            return {s: values[s] for s in excess.free_symbols}
    return None


def _never_positive(excess: Any, domain: Domain) -> bool:
    if excess.is_number:
        return bool(excess <= 0)
    if nonnegative_on(-excess, domain):
        return True
    claim = language.Bound("excess", excess, sympy.S.Zero, on=domain.ranges)
    inner = Domain(claim, (excess,))
    inner.conditions = domain.conditions
    return _by_terms(claim, inner, time.monotonic() + 1) is not None


# ----------------------------------------------------------------------------- units, cases, prose


def rescaled(claim: Any) -> tuple[Any, Any]:
    """Return the expression with rescaled symbols, and what it should equal."""
    bases = sorted({base for unit in (claim.unit, *claim.scales.values()) for base in unit})
    factor = {base: sympy.Symbol(f"scale_{base}", positive=True) for base in bases}
    table = {
        symbol: symbol * sympy.Mul(*(factor[base] ** power for base, power in unit.items()))
        for symbol, unit in claim.scales.items()
        if unit
    }
    moved = claim.expression.subs(table, simultaneous=True)
    expected = claim.expression * sympy.Mul(
        *(factor[b] ** power for b, power in claim.unit.items())
    )
    return moved, expected


def _decide_units(claim: Any, deadline: float) -> Verdict:
    unknown = {str(s) for s in claim.expression.free_symbols} - {str(s) for s in claim.scales}
    if unknown:
        return Verdict("OPEN", "none", f"no units are given for {', '.join(sorted(unknown))}")
    moved, expected = rescaled(claim)
    identity = language.Identity(claim.name, moved, expected, on=claim.on, where=claim.where)
    verdict = _decide_identity(identity, deadline)
    if verdict.status == "PROVED":
        return Verdict("PROVED", verdict.method, "scales as its unit says", verdict.evidence)
    return verdict


def _decide_enumeration(claim: Any, deadline: float) -> Verdict:
    checked = []
    for case in claim.cases:
        if time.monotonic() > deadline:
            break
        if not claim.holds(case):
            evidence = {"case": _case_json(case)}
            return Verdict("REFUTED", "failing case", f"fails for the case {case}", evidence)
        checked.append(_case_json(case))
    evidence = {"cases": checked}
    if claim.complete and len(checked) == len(claim.cases):
        return Verdict("PROVED", "all cases", f"all {len(checked)} cases checked", evidence)
    return Verdict("SAMPLED", "cases", f"true in {len(checked)} exact cases", evidence)


def _case_json(case: Any) -> Any:
    return json.loads(json.dumps(case, default=str))


def _decide_priced(claim: Any, deadline: float) -> Verdict:
    from dpcal.accountants import epsilon

    relation = claim.neighboring_relation
    price = epsilon(claim.event(), delta=claim.delta, neighboring_relation=relation)
    evidence = {"lower": price.lower, "upper": price.upper, "accountant": price.accountant}
    reason = f"epsilon is {price.upper:.6g} under {relation}, claimed {claim.epsilon:.6g}"
    if price.lower > claim.epsilon:
        return Verdict("REFUTED", "price", reason, evidence)
    if price.upper <= claim.epsilon:
        return Verdict("SAMPLED", "price", f"{reason}; in floating point rounded outward", evidence)
    return Verdict("OPEN", "none", f"{reason}; the accountant's interval holds the claim", evidence)


def _decide_prose(claim: Any, deadline: float) -> Verdict:
    return Verdict("OPEN", "none", claim.reason)


_DECIDE: dict[type, Callable[[Any, float], Verdict]] = {
    language.Identity: _decide_identity,
    language.Balance: _decide_balance,
    language.Bound: _decide_bound,
    language.Rate: _decide_rate,
    language.Feasible: _decide_feasible,
    language.Units: _decide_units,
    language.Private: _decide_private,
    language.Enumeration: _decide_enumeration,
    language.Priced: _decide_priced,
    language.Prose: _decide_prose,
}
