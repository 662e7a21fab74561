"""Orders of growth: the power of t, and the power of log(t), of terms whose symbols grow with t.

An upper order bounds the size of a term. An exact order bounds it from below as well; then all
parts must be positive. Only powers and logarithms are accepted. A rate is proved where the upper
order of each term on the left is within the exact order of a term on the right, and refuted where
the exact order of a term on the left exceeds the upper orders of all terms on the right.

>>> from dpcal.calibrate.papers.kernel.terms import power, symbol
>>> n = symbol("n")
>>> Orders(Context({"n": "+"}), {"n": number(1)}).of(times(power(n, number(2)), ("log", n)), True)
(('num', Fraction(2, 1)), Fraction(1, 1))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims import claims
from dpcal.calibrate.papers.kernel.checker import contains, point_of
from dpcal.calibrate.papers.kernel.context import Context, context_of
from dpcal.calibrate.papers.kernel.normal import exact, sign_at
from dpcal.calibrate.papers.kernel.rules import check
from dpcal.calibrate.papers.kernel.terms import (
    ZERO,
    Term,
    decode,
    minus,
    number,
    plus,
    require,
    symbols,
    times,
)

__all__ = ["Order", "Orders", "check_outgrown", "check_within"]

Order = tuple[Term, Fraction]
_CONSTANT: Order = (ZERO, Fraction(0))


class Orders:
    """Orders of terms as they are written.

    Parameters
    ----------
    context
        Facts about the symbols.
    growth
        Exponents of t for the symbols that grow; these are positive.
    """

    def __init__(self, context: Context, growth: Mapping[str, Term]) -> None:
        self.context, self.growth = context, growth

    def of(self, term: Term, exactly: bool) -> Order:
        """Return the upper order of a term, or the exact order of one that is positive."""
        head, *parts = term
        if not symbols(term) & self.growth.keys():
            self.context.require_defined(term)
            require(not exactly or self.context.is_plainly(term, ">"), "a positive constant")
            return _CONSTANT
        if head == "sym":
            return self.growth[term[1]], Fraction(0)
        if head == "mul":
            orders = [self.of(part, exactly) for part in parts]
            return _sum(orders)
        if head in ("add", "max", "min"):
            lowest = head == "min"
            return _pick([self.of(part, exactly or lowest) for part in parts], lowest)
        if head == "pow":
            return self._power(parts[0], parts[1], exactly)
        require(head == "log", f"no order of {head} is known")
        inside = self.of(parts[0], True)
        power = _value(inside[0])
        if power != 0:
            require(not exactly or power > 0, "a logarithm that is positive in the end")
            return ZERO, Fraction(1)
        require(not exactly and inside[1] == 0, "a logarithm whose argument is a power")
        return _CONSTANT

    def _power(self, base: Term, exponent: Term, exactly: bool) -> Order:
        require(not symbols(exponent) & self.growth.keys(), "an exponent that does not grow")
        self.context.require_defined(exponent)
        whole = exponent[0] == "num" and exponent[1].denominator == 1
        upper = exponent[0] == "num" and exponent[1] > 0
        upper = upper and (whole or self.context.is_plainly(base, ">="))
        inside = self.of(base, exactly or not upper)
        require(not inside[1] or exponent[0] == "num", "a numeric power of a logarithm")
        logarithms = inside[1] * exponent[1] if inside[1] else Fraction(0)
        return _sum([(times(exponent, inside[0]), logarithms)])


def _sum(orders: list[Order]) -> Order:
    power = plus(*(power for power, _ in orders))
    value = exact(power, {})
    logarithms = sum((logs for _, logs in orders), Fraction(0))
    return power if value is None else number(value), logarithms


def _value(power: Term) -> Fraction:
    require(power[0] == "num", "numeric powers to compare")
    return Fraction(power[1])


def _pick(orders: list[Order], lowest: bool) -> Order:
    if len(set(orders)) == 1:
        return orders[0]
    choose: Callable[..., Any] = min if lowest else max
    power, logarithms = choose((_value(power), logarithms) for power, logarithms in orders)
    return number(power), logarithms


def check_within(
    claim: claims.Rate, evidence: Mapping[str, Any], deadline: float = math.inf
) -> None:
    """Check that each term on the left is within a term on the right, which are all positive."""
    context, lefts, rights, _ = _sides(claim, evidence, deadline)
    orders, soft = Orders(context, claim.growth), isinstance(claim, claims.SoftRate)
    above = [orders.of(row, True) for row in rights]
    for row, (k, strict, step) in zip(lefts, evidence["within"], strict=True):
        power, logs = orders.of(row, False)
        check(context, minus(above[k][0], power), strict is True, step)
        require(strict is True or soft or logs <= above[k][1], "no more logarithms than claimed.")


def check_outgrown(
    claim: claims.Rate, evidence: Mapping[str, Any], deadline: float = math.inf
) -> None:
    """Check that a positive term on the left outgrows all terms on the right."""
    context, lefts, rights, point = _sides(claim, evidence, deadline)
    orders, more = Orders(context, claim.growth), not isinstance(claim, claims.SoftRate)
    power, logs = [orders.of(row, True) for row in lefts][evidence["term"]]
    for other, other_logs in (orders.of(row, False) for row in rights):
        sign = sign_at(minus(power, other), point)
        require(sign == 1 or (sign == 0 and more and logs > other_logs), "a term that outgrows.")


def _sides(claim: claims.Rate, evidence: Mapping[str, Any], deadline: float) -> Any:
    """Return facts, terms that add up to each side, and a point at which the exponents differ."""
    point = point_of(evidence["witness"])
    require(contains(claim.before(), point), "a witness in the domain.")
    context = context_of(claim.before(), deadline, point)
    for name in claim.growth:
        require(context.is_plainly(("sym", name), ">"), "positive growing symbols.")
    claim.ranges()  # raises where a symbol cannot grow
    lefts, rights = ([decode(row) for row in evidence[side]] for side in ("left", "right"))
    sides = zip((claim.left, claim.right), (lefts, rights), evidence["same"], strict=True)
    for side, rows, same in sides:
        require(rows and same["rule"] == "equal", "terms that add up to each side.")
        check(context, minus(side, plus(*rows)), False, same)
    return context, lefts, rights, point
