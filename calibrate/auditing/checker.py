"""Check the evidence of a verdict again, without trusting the prover.

:func:`recheck` reads the claim and the evidence only. It shares no decision code with
:mod:`~dpcal.calibrate.auditing.prover`: counterexamples are evaluated in another arithmetic,
identities are tested at random points with 300-bit enclosures, roots are counted by a Sturm chain
in fractions, subdivisions are walked again.

>>> from sympy import symbols
>>> from dpcal.calibrate.auditing.prover import prove
>>> from dpcal.calibrate.auditing.language import Bound
>>> x, y = symbols("x y", positive=True)
>>> claim = Bound("sum", x, x + y)
>>> verdict = prove(claim)
>>> recheck(claim, verdict)
True
>>> recheck(Bound("sum", x + y, x), verdict)
False
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy

from dpcal.calibrate.auditing import language
from dpcal.calibrate.auditing.documents import decode
from dpcal.calibrate.auditing.enclosures import Balls, Intervals, Undecided, balls_available
from dpcal.calibrate.auditing.prover import STATUSES, Verdict

__all__ = ["recheck"]

BITS = 300
TESTS = 6
Point = Mapping[Any, Fraction]


class Rejected(Exception):  # noqa: N818
    """The evidence does not establish the verdict."""


def recheck(claim: language.Claim, verdict: Verdict) -> bool:
    """Return whether the evidence establishes the verdict.

    Parameters
    ----------
    claim
        The claim with its settings resolved.
    verdict
        From the prover, or from a file.

    Returns
    -------
    bool
        False for a verdict without evidence, with altered evidence, or about another claim. An
        OPEN verdict claims nothing and passes.
    """
    try:
        _check(claim, verdict.status, verdict.method, verdict.evidence)
    except (
        Rejected,
        Undecided,
        ArithmeticError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
    ):
        return False
    return True


def _check(claim: Any, status: str, method: str, evidence: Mapping[str, Any]) -> None:
    _require(status in STATUSES, f"unknown status {status}")
    if status == "OPEN":
        return None
    if isinstance(claim, language.Enumeration):
        return _check_cases(claim, status, evidence)
    if isinstance(claim, language.Priced):
        return _check_price(claim, status)
    if isinstance(claim, language.Rate):
        if method == "limit":
            return _check_limit(claim, status, evidence)
        return _check_rate(claim, status, evidence)
    if isinstance(claim, language.Feasible):
        return _check_feasible(claim, status, evidence)
    claim = _as_two_sided(claim)
    if status == "REFUTED":
        return _check_counterexample(claim, evidence)
    if status == "SAMPLED":
        return _check_samples(claim, evidence)
    _PROOFS[method](claim, evidence)
    return None


def _require(condition: Any, what: str) -> None:
    if not condition:
        raise Rejected(what)


def _as_two_sided(claim: Any) -> Any:
    """Units and privacy claims are an identity and an inequality in disguise."""
    if isinstance(claim, language.Units):
        bases = sorted({base for unit in (claim.unit, *claim.scales.values()) for base in unit})
        scale = {base: sympy.Symbol(f"scale_{base}", positive=True) for base in bases}
        table = {
            symbol: symbol * sympy.prod(scale[base] ** power for base, power in unit.items())
            for symbol, unit in claim.scales.items()
        }
        _require(claim.expression.free_symbols <= table.keys(), "units of every symbol")
        left = claim.expression.xreplace(table)
        right = claim.expression * sympy.prod(scale[b] ** power for b, power in claim.unit.items())
        return language.Identity(claim.name, left, right, on=claim.on)
    if isinstance(claim, language.Private):
        cost = sympy.Add(*(r.count * r.sensitivity**2 / r.std**2 for r in claim.releases))
        if claim.rho is not None:
            sides = cost / 2, claim.rho
        else:
            sides = _delta(sympy.sympify(claim.epsilon), sympy.sqrt(cost)), claim.delta
        return language.Bound(claim.name, *sides, where=claim.where, on=claim.on)
    return claim


def _delta(epsilon: Any, mu: Any) -> Any:
    upper = sympy.erfc((epsilon / mu - mu / 2) / sympy.sqrt(2))
    lower = sympy.erfc((epsilon / mu + mu / 2) / sympy.sqrt(2))
    return (upper - sympy.exp(epsilon) * lower) / 2


# ------------------------------------------------------------------------------------------ points


def _symbols(claim: Any) -> set[Any]:
    free: set[Any] = set(claim.on)
    for part in claim.expressions():
        free |= sympy.sympify(part).free_symbols
    return free


def _point(claim: Any, document: Mapping[str, str]) -> dict[Any, Fraction]:
    names = {str(symbol): symbol for symbol in _symbols(claim)}
    _require(names.keys() >= document.keys(), "only the claim's symbols")
    return {names[name]: Fraction(value) for name, value in document.items()}


def _sign(expression: Any, point: Point) -> int | None:
    """The sign at an exact point, by intervals first and balls where they fail."""
    arithmetics = [Intervals(BITS)] + ([Balls(BITS)] if balls_available() else [])
    for arithmetic in arithmetics:
        try:
            sign = arithmetic.sign(arithmetic.value(expression, point))
        except (Undecided, ZeroDivisionError):
            continue
        if sign is not None:
            return sign
    expression = sympy.sympify(expression)
    if any(not power.exp.is_Integer for power in expression.atoms(sympy.Pow)):
        return None
    table = {s: sympy.Rational(v.numerator, v.denominator) for s, v in point.items()}
    value = expression.subs(table)
    return int(sympy.sign(value)) if value.is_Rational else None


def _in_domain(claim: Any, point: Point) -> bool:
    for symbol, value in point.items():
        exact = sympy.Rational(value.numerator, value.denominator)
        if symbol.is_positive and value <= 0:
            return False
        low, high = claim.on.get(symbol, (-sympy.oo, sympy.oo))
        if not sympy.sympify(low) <= exact <= sympy.sympify(high):
            return False
    for condition in claim.where:
        if condition == sympy.true:
            continue
        gap = sympy.sympify(condition.gts - condition.lts)
        strict = isinstance(condition, (sympy.StrictLessThan, sympy.StrictGreaterThan))
        if _sign(gap, point) not in ((1,) if strict else (0, 1)):
            return False
    return True


def _check_counterexample(claim: Any, evidence: Mapping[str, Any]) -> None:
    point = _point(claim, evidence["point"])
    _require(_in_domain(claim, point), "point in the domain")
    sign = _sign(claim.right - claim.left, point)
    wrong = (-1, 1) if isinstance(claim, (language.Identity, language.Balance)) else (-1,)
    _require(sign in wrong, "claim fails at the point")


def _check_samples(claim: Any, evidence: Mapping[str, Any]) -> None:
    _require(isinstance(claim, language.Bound) and evidence["points"], "points of a bound")
    for document in evidence["points"]:
        point = _point(claim, document)
        _require(_in_domain(claim, point), "point in the domain")
        _require(_sign(claim.right - claim.left, point) in (0, 1), "claim holds at the point")


def _random_points(claim: Any, symbols: set[Any], count: int = TESTS) -> list[dict[Any, Fraction]]:
    generator = random.Random(7)
    points = []
    for _ in range(count if symbols else 1):
        point = {}
        for symbol in sorted(symbols, key=str):
            low, high = (sympy.sympify(end) for end in claim.on.get(symbol, (0, sympy.oo)))
            start = language.exact(low) if low.is_finite else Fraction(0)
            width = language.exact(high) - start if high.is_finite else Fraction(3)
            point[symbol] = start + width * Fraction(generator.randint(1, 9_999), 10_007)
        points.append(point)
    return points


def _agree(left: Any, right: Any, point: Point) -> bool | None:
    """Whether two values agree to 200 bits; None where they are undefined."""
    for arithmetic in ([Balls(BITS)] if balls_available() else []) + [Intervals(BITS)]:
        try:
            scale = arithmetic.value(sympy.Abs(left) + sympy.Abs(right) + 1, point)
            gap = arithmetic.value(left - right, point)
            with arithmetic._precision():
                limit = scale * arithmetic._rational(Fraction(1, 2**200))
            return arithmetic.sign(limit - gap) == 1 and arithmetic.sign(limit + gap) == 1
        except (Undecided, ZeroDivisionError):
            continue
    return None


def _equal(claim: Any, left: Any, right: Any) -> bool:
    left, right = sympy.sympify(left), sympy.sympify(right)
    symbols = left.free_symbols | right.free_symbols
    points = _random_points(claim, symbols, 5 * TESTS)
    defined = 0
    for point in points:
        match = _agree(left, right, point)
        if match is False:
            return False
        defined += match is True
        if defined == min(TESTS, len(points)):
            return True
    return False


# ------------------------------------------------------------------------------------------ proofs


def _check_form(claim: Any, evidence: Mapping[str, Any]) -> None:
    _require(isinstance(claim, (language.Identity, language.Balance)), "an identity")
    symbols = claim.left.free_symbols | claim.right.free_symbols
    form = decode(evidence["form"], symbols)
    _require(_equal(claim, claim.left, form), "left equals the form")
    _require(_equal(claim, claim.right, form), "right equals the form")
    if isinstance(claim, language.Balance):
        slopes = [_slope(claim, side) for side in claim.raw or ()]
        _require(len(slopes) == 2 and slopes[0] * slopes[1] < 0, "opposite monotonicity")


def _slope(claim: Any, side: Any) -> int:
    """The sign of the logarithmic derivative, the same at every test point."""
    derivative = sympy.diff(side, claim.of) / side
    signs = {_sign(derivative, point) for point in _random_points(claim, derivative.free_symbols)}
    _require(len(signs) == 1 and signs <= {-1, 1}, "one sign")
    return int(signs.pop() or 0)


def _check_terms(claim: Any, evidence: Mapping[str, Any]) -> None:
    symbols = _symbols(claim)
    table: dict[Any, Any] = {}
    fresh: set[Any] = set()
    for group in ("isolate", "shift"):
        for name, document in evidence[group]:
            new = {sympy.Symbol(n, positive=True) for n in _names(document)} - symbols
            symbol = next(s for s in symbols if str(s) == name)
            replacement = decode(document, symbols | fresh | new)
            _require(
                _reaches(claim, symbol, replacement, new - fresh, group),
                "the substitution covers the domain",
            )
            fresh |= new
            table[symbol] = replacement
    moved = sympy.sympify(claim.right - claim.left)
    for group in ("isolate", "shift"):
        names = {name for name, _ in evidence[group]}
        moved = moved.xreplace({s: e for s, e in table.items() if str(s) in names})
    top, bottom = (decode(evidence[part], symbols | fresh) for part in ("numerator", "denominator"))
    _require(all(s.is_positive for s in top.free_symbols | bottom.free_symbols), "positive symbols")
    _require(_only_positive_terms(top) and _only_positive_terms(bottom), "terms of one sign")
    free = language.Identity(claim.name, moved, top / bottom)
    _require(_equal(free, moved * bottom, top), "quotient equals the difference")


def _names(document: Any) -> set[str]:
    if isinstance(document, list) and document[:1] == ["Symbol"]:
        return {str(document[1])}
    return set().union(*map(_names, document)) if isinstance(document, list) else set()


def _reaches(claim: Any, symbol: Any, replacement: Any, fresh: set[Any], group: str) -> bool:
    """Whether fresh > 0 lets the replacement take every value that the domain allows the symbol."""
    if len(fresh) != 1:
        return False
    (u,) = fresh
    if group == "shift":
        low, high = (sympy.sympify(end) for end in claim.on[symbol])
        low = sympy.Max(low, 0) if symbol.is_positive else low
        allowed = [low + u] if high.is_infinite else [(low + high * u) / (1 + u), high - u]
        return replacement in (allowed if low.is_finite else allowed[-1:])
    bounds = [(c.lts, c.gts) for c in claim.where if c != sympy.true]
    from_below = any(large == symbol and replacement == small + u for small, large in bounds)
    from_above = any(
        small == symbol and replacement == large * u / (1 + u) for small, large in bounds
    )
    return from_below or (from_above and bool(symbol.is_positive))


def _only_positive_terms(expression: Any) -> bool:
    terms = sympy.Add.make_args(expression)
    return all(term == 0 or term.is_nonnegative or _built_positive(term) for term in terms)


def _built_positive(expression: Any) -> bool:
    """Whether an expression is positive because its parts are."""
    if expression.is_Pow:
        return _built_positive(expression.base)
    if expression.is_Mul or expression.is_Add or isinstance(expression, (sympy.Max, sympy.Min)):
        return all(_built_positive(part) for part in expression.args)
    return bool(expression.is_positive)


def _check_square(claim: Any, evidence: Mapping[str, Any]) -> None:
    root = decode(evidence["square_root"], _symbols(claim))
    roots = [power for power in root.atoms(sympy.Pow) if not power.exp.is_Integer]
    _require(all(power.base.is_positive for power in roots), "positive bases under roots")
    _require(all(s.is_real for s in root.free_symbols), "real symbols")
    _require(_equal(claim, claim.right - claim.left, root**2), "difference is the square")


def _check_multipliers(claim: Any, evidence: Mapping[str, Any]) -> None:
    cases = _cases(claim)
    _require(len(cases) == len(evidence["cases"]) > 0, "one certificate for each case")
    for (left, right, facts), rows in zip(cases, evidence["cases"], strict=True):
        symbols = _symbols(claim)
        terms, shares = sympy.S.Zero, sympy.S.Zero
        targets = [decode(row["target"], symbols) for row in rows]
        _require(len(set(targets)) == 1, "one target")
        for row in rows:
            term, share = decode(row["term"], symbols), decode(row["share"], symbols)
            bound = share * targets[0]
            for small, large, multiplier in (map(_decoder(symbols), fact) for fact in row["facts"]):
                _require(_is_fact(claim, small, large, facts), "a fact of the case")
                _require(_nonnegative(claim, multiplier), "nonnegative multiplier")
                bound *= (small / large) ** multiplier
            _require(_equal(claim, term, bound), "term equals its bound")
            terms, shares = terms + term, shares + share
        _require(_at_most_one(claim, shares), "shares add up to at most 1")
        _require(_dominated(claim, left, terms), "terms cover the left side")
        _require(_dominated(claim, targets[0], right), "target is part of the right side")


def _at_most_one(claim: Any, shares: Any) -> bool:
    """Compare directly, or by the exponent when the shares are one power of a number above 1."""
    primes = {atom for atom in shares.atoms(sympy.Integer) if atom.is_prime}
    if shares.free_symbols and len(primes) >= 1:
        for prime in primes:
            exponent = sympy.cancel(
                sympy.expand_log(sympy.log(shares), force=True) / sympy.log(prime)
            )
            if not exponent.atoms(sympy.log):
                return _nonnegative(claim, -exponent)
    return _nonnegative(claim, 1 - shares)


def _decoder(symbols: set[Any]) -> Callable[[Any], Any]:
    return lambda document: decode(document, symbols)


def _cases(claim: Any) -> list[tuple[Any, Any, list[Any]]]:
    """Split maxima and minima anew, innermost first in the order of their text."""
    facts = [(c.lts, c.gts) for c in claim.where if c != sympy.true]
    pending = [(sympy.sympify(claim.left), sympy.sympify(claim.right), facts)]
    done = []
    while pending:
        left, right, known = pending.pop(0)
        parts = [left, right, *(side for fact in known for side in fact)]
        found = set().union(*(sympy.sympify(part).atoms(sympy.Max, sympy.Min) for part in parts))
        inner = [e for e in found if not any(a.has(sympy.Max, sympy.Min) for a in e.args)]
        if not inner:
            done.append((left, right, known))
            continue
        extremum = min(inner, key=str)
        fresh = []
        for chosen in extremum.args:
            swap = {extremum: chosen}
            order = [
                (other, chosen) if isinstance(extremum, sympy.Max) else (chosen, other)
                for other in extremum.args
                if other != chosen
            ]
            kept = [(sympy.sympify(a).subs(swap), sympy.sympify(b).subs(swap)) for a, b in known]
            fresh.append((left.subs(swap), right.subs(swap), kept + order))
        pending = fresh + pending
    return done


def _is_fact(claim: Any, small: Any, large: Any, facts: Sequence[Any]) -> bool:
    """Whether small <= large is a range or a known fact with terms left out."""
    if small.is_number and large in claim.on:
        return bool(small <= sympy.sympify(claim.on[large][0]))
    if large.is_number and small in claim.on:
        return bool(sympy.sympify(claim.on[small][1]) <= large)
    return any(_dominated(claim, small, a) and _equal(claim, large, b) for a, b in facts)


def _dominated(claim: Any, part: Any, whole: Any) -> bool:
    """Whether whole - part consists of nonnegative terms, or vanishes."""
    rest = sympy.powsimp(sympy.expand(sympy.sympify(whole) - part))
    return _only_positive_terms(rest) or _equal(claim, part, whole)


def _nonnegative(claim: Any, expression: Any) -> bool:
    """Exact for numbers; for functions of ranged symbols, by a Sturm chain in one of them."""
    if not expression.free_symbols:
        return _sign(expression, {}) in (0, 1) or _equal(claim, expression, sympy.S.Zero)
    if len(expression.free_symbols) != 1:
        return False
    (symbol,) = expression.free_symbols
    numerator, denominator = sympy.fraction(sympy.together(expression))
    low, high = (sympy.sympify(end) for end in claim.on.get(symbol, (0, sympy.oo)))
    coefficients = sympy.Poly(sympy.expand(numerator * denominator), symbol).all_coeffs()
    return _stays_nonnegative([language.exact(c) for c in coefficients], _end(low), _end(high))


def _check_roots(claim: Any, evidence: Mapping[str, Any]) -> None:
    difference = sympy.sympify(claim.right - claim.left)
    (symbol,) = difference.free_symbols
    _require(str(symbol) == evidence["symbol"] and not claim.where, "one symbol")
    root = sympy.Symbol("root", positive=True)
    power = int(evidence["degree"])
    coefficients = [Fraction(c) for c in evidence["coefficients"]]
    low, high = (sympy.sympify(end) for end in claim.on.get(symbol, (-sympy.oo, sympy.oo)))
    low = sympy.Max(low, 0) if symbol.is_positive else low
    ends = [
        _end(sympy.Rational(e) if "oo" not in e else sympy.oo * (-1 if "-" in e else 1))
        for e in evidence["interval"]
    ]
    for given, true in zip(ends, (_end(low), _end(high)), strict=True):
        _require(
            given == true or (given is not None and given**power == true), "interval of the claim"
        )
    polynomial = sympy.Poly([sympy.Rational(str(c)) for c in coefficients], root).as_expr()
    moved = difference.subs(symbol, root**power)
    inside = language.Identity(claim.name, moved, polynomial)
    ratio_signs = {
        _sign(moved, point) == _sign(polynomial, point)
        for point in _inside_points(inside, root, ends)
    }
    _require(ratio_signs == {True}, "polynomial has the sign of the difference")
    numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(moved)))
    _require(
        sympy.expand(numerator * denominator - polynomial) == 0, "polynomial of the difference"
    )
    _require(_stays_nonnegative(coefficients, *ends), "no sign change")


def _inside_points(
    claim: Any, symbol: Any, ends: Sequence[Fraction | None]
) -> list[dict[Any, Fraction]]:
    low, high = ends
    start = low if low is not None else Fraction(-10)
    width = (high - start) if high is not None else Fraction(20)
    points = [{symbol: start + width * Fraction(k, 17)} for k in (3, 7, 11, 16)]
    return [point for point in points if point[symbol] > 0]


def _end(value: Any) -> Fraction | None:
    return language.exact(value) if value.is_finite else None


def _stays_nonnegative(
    coefficients: Sequence[Fraction], low: Fraction | None, high: Fraction | None
) -> bool:
    """Whether a polynomial has no sign change inside an interval and is not negative."""
    poly = _trim(list(coefficients))
    if not poly:
        return True
    bound = 1 + max((abs(c / poly[0]) for c in poly[1:]), default=Fraction(0))
    low = -bound if low is None else low
    high = bound if high is None else high
    cuts = sorted({low, high, *_between_roots(_square_free(poly), low, high)})
    return all(_value(poly, (a + b) / 2) >= 0 for a, b in itertools.pairwise(cuts))


def _between_roots(poly: list[Fraction], low: Fraction, high: Fraction) -> list[Fraction]:
    """Return cuts that isolate the roots inside, nudged so that no midpoint is a root."""
    chain = _sturm_chain(poly)
    cuts: list[Fraction] = []
    pending = [(low, high)]
    while pending:
        a, b = pending.pop()
        if _changes(chain, a) - _changes(chain, b) == 0:
            continue
        middle = (a + b) / 2
        if _value(poly, middle) == 0:
            return cuts + _split_at(poly, chain, low, middle, high)
        cuts.append(middle)
        if _changes(chain, a) - _changes(chain, b) > 1 or b - a > (high - low) / 64:
            pending += [(a, middle), (middle, b)]
        else:
            cuts += [a, b]
    return cuts


def _split_at(
    poly: Any, chain: Any, low: Fraction, root: Fraction, high: Fraction
) -> list[Fraction]:
    step = (high - low) / 1024
    return [root - step, root - step / 2, root, root + step / 2, root + step]


def _square_free(poly: list[Fraction]) -> list[Fraction]:
    divisor = _gcd(poly, _derivative(poly))
    return _divide(poly, divisor)[0] if len(divisor) > 1 else poly


def _sturm_chain(poly: list[Fraction]) -> list[list[Fraction]]:
    chain = [poly, _derivative(poly)]
    while chain[-1]:
        chain.append([-c for c in _divide(chain[-2], chain[-1])[1]])
    return chain[:-1]


def _changes(chain: Sequence[list[Fraction]], at: Fraction) -> int:
    signs = [v for v in (_value(poly, at) for poly in chain) if v != 0]
    return sum(1 for a, b in itertools.pairwise(signs) if a * b < 0)


def _trim(poly: list[Fraction]) -> list[Fraction]:
    while poly and poly[0] == 0:
        poly = poly[1:]
    return poly


def _value(poly: Sequence[Fraction], at: Fraction) -> Fraction:
    total = Fraction(0)
    for coefficient in poly:
        total = total * at + coefficient
    return total


def _derivative(poly: Sequence[Fraction]) -> list[Fraction]:
    degree = len(poly) - 1
    return _trim([c * (degree - k) for k, c in enumerate(poly[:-1])])


def _divide(top: list[Fraction], bottom: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    rest, quotient = list(top), []
    while len(rest) >= len(bottom):
        factor = rest[0] / bottom[0]
        quotient.append(factor)
        rest = [
            a - factor * b for a, b in zip(rest, bottom + [Fraction(0)] * len(rest), strict=False)
        ][1:]
    return quotient or [Fraction(0)], _trim(rest)


def _gcd(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    while b:
        a, b = b, _divide(a, b)[1]
    return a


def _check_boxes(claim: Any, evidence: Mapping[str, Any]) -> None:
    _require(not claim.where, "a box without conditions")
    difference = sympy.sympify(claim.right - claim.left)
    box: dict[Any, tuple[Fraction, Fraction]] = {}
    for symbol in sorted(difference.free_symbols, key=str):
        low, high = (Fraction(end) for end in evidence["box"][str(symbol)])
        limits = [sympy.sympify(end) for end in claim.on[symbol]]
        bottom = sympy.Max(limits[0], 0) if symbol.is_positive else limits[0]
        _require(
            (low, high) == (language.exact(bottom), language.exact(limits[1])), "the claim's box"
        )
        box[symbol] = (low, high)
    order = [next(s for s in box if str(s) == name) for name in evidence["box"]]
    marks = list(evidence["tree"])
    pending = [box]
    arithmetic = Balls(BITS) if evidence["arithmetic"] == "balls" else Intervals(BITS)
    while pending:
        part, mark = pending.pop(), marks.pop(0)
        if mark == ".":
            ranges = {s: arithmetic.box(*part[s]) for s in part}
            _require(
                arithmetic.sign(arithmetic.value(difference, ranges)) == 1, "positive on the part"
            )
            continue
        symbol = order[int(mark)]
        low, high = part[symbol]
        pending += [
            {**part, symbol: ((low + high) / 2, high)},
            {**part, symbol: (low, (low + high) / 2)},
        ]
    _require(not marks, "nothing left over")


_PROOFS: dict[str, Callable[[Any, Mapping[str, Any]], None]] = {
    "normal form": _check_form,
    "reduction to 0": _check_form,
    "positive terms": _check_terms,
    "square": _check_square,
    "multipliers": _check_multipliers,
    "root count": _check_roots,
    "boxes": _check_boxes,
}


# ------------------------------------------------------------------------------------- other kinds


def _check_cases(claim: Any, status: str, evidence: Mapping[str, Any]) -> None:
    by_text = {str(_plain(case)): case for case in claim.cases}
    if status == "REFUTED":
        _require(not claim.holds(by_text[str(evidence["case"])]), "the case fails")
        return
    cases = [by_text[str(case)] for case in evidence["cases"]]
    _require(cases and all(claim.holds(case) for case in cases), "the cases hold")
    _require(
        status == "SAMPLED" or (claim.complete and len(cases) == len(claim.cases)), "all cases"
    )


def _plain(case: Any) -> Any:
    if isinstance(case, (list, tuple)):
        return [_plain(part) for part in case]
    return case if isinstance(case, (int, str, bool, float)) or case is None else str(case)


def _check_price(claim: Any, status: str) -> None:
    """Price the event again, by the accountant that convolves privacy loss random variables."""
    from dpcal.accountants import epsilon

    price = epsilon(
        claim.event(),
        delta=claim.delta,
        neighboring_relation=claim.neighboring_relation,
        accountant="prv",
    )
    _require(status in ("REFUTED", "SAMPLED"), "a price is never a proof")
    held = price.lower > claim.epsilon if status == "REFUTED" else price.lower <= claim.epsilon
    _require(held, "the price")


def _check_feasible(claim: Any, status: str, evidence: Mapping[str, Any]) -> None:
    parts = [
        language.Bound(claim.name, c.lts, c.gts, where=claim.where, on=claim.on)
        for c in claim.conditions
        if c != sympy.true
    ]
    if status == "REFUTED":
        _check_counterexample(parts[int(evidence["condition"])], evidence)
        return
    _require(len(parts) == len(evidence["parts"]), "one verdict for each condition")
    for part, row in zip(parts, evidence["parts"], strict=True):
        allowed = ("PROVED",) if status == "PROVED" else ("PROVED", "SAMPLED")
        _require(row["status"] in allowed, "no weaker part")
        _check(part, row["status"], row["method"], row["evidence"])


def _check_rate(claim: Any, status: str, evidence: Mapping[str, Any]) -> None:
    symbols = _symbols(claim) | {
        s for v in claim.growth.values() for s in sympy.sympify(v).free_symbols
    }
    if status == "REFUTED":
        term, excess = decode(evidence["term"], symbols), decode(evidence["excess"], symbols)
        point = {s: Fraction(evidence["point"][str(s)]) for s in excess.free_symbols}
        _require(
            _in_domain(claim, point) and _sign(excess, point) == 1,
            "the term outgrows the right side",
        )
        _require(_dominated(claim, term, sympy.expand(claim.left)), "a term of the left side")
        _require(_growth_matches(claim, term, excess), "the exponent")
        return
    rows = [(decode(term, symbols), decode(excess, symbols)) for term, excess in evidence["terms"]]
    _require(status == "PROVED" and rows, "terms")
    _require(
        _equal(claim, claim.left, sympy.Add(*(term for term, _ in rows))),
        "all terms of the left side",
    )
    for term, excess in rows:
        _require(_growth_matches(claim, term, excess), "the exponent")
        held = _nonnegative(claim, -excess) or _sampled_nonpositive(claim, excess)
        _require(held, "within the claimed power")


def _sampled_nonpositive(claim: Any, excess: Any) -> bool:
    points = [p for p in _random_points(claim, set(excess.free_symbols)) if _in_domain(claim, p)]
    return bool(points) and all(_sign(excess, point) in (-1, 0) for point in points)


def _check_limit(claim: Any, status: str, evidence: Mapping[str, Any]) -> None:
    """Follow the ratio far out: it must approach the recorded limit, or leave every bound."""
    ((symbol, direction),) = claim.growth.items()
    ratio, limit = claim.left / claim.right, decode(evidence["limit"], ())
    sizes = [Fraction(2) ** (k if direction > 0 else -k) for k in (6, 12, 24)]
    _require(limit.is_finite == (status == "PROVED"), "finite for a proof")
    if status == "PROVED":
        bounds = zip(sizes, (Fraction(1, 4), Fraction(1, 50), Fraction(1, 1000)), strict=True)
        for size, gap in bounds:
            allowed = sympy.Rational(*gap.as_integer_ratio()) - sympy.Abs(ratio - limit)
            _require(_sign(allowed, {symbol: size}) == 1, "approach")
    else:
        for size, floor in zip(sizes, (1, 100, 10_000), strict=True):
            _require(_sign(sympy.Abs(ratio) - floor, {symbol: size}) == 1, "growth")


def _growth_matches(claim: Any, term: Any, excess: Any) -> bool:
    """Compare the exponent with the slope of the term on a logarithmic scale, far out."""
    ratio = sympy.log(term / claim.right)
    symbols = (ratio.free_symbols | excess.free_symbols) - claim.growth.keys()
    for point in _random_points(claim, symbols)[:2]:
        values = {s: sympy.Rational(v.numerator, v.denominator) for s, v in point.items()}
        heights = []
        for power in (10**4, 2 * 10**4):
            far = {
                s: sympy.Integer(2) ** (sympy.sympify(p).subs(values) * power)
                for s, p in claim.growth.items()
            }
            expanded = sympy.expand_log(ratio.subs(values).subs(far), force=True)
            heights.append(sympy.N(expanded, 40))
        slope = (heights[1] - heights[0]) / (10**4 * sympy.log(2))
        if abs(sympy.N(slope - excess.subs(values), 30)) > sympy.Rational(1, 100):
            return False
    return True
