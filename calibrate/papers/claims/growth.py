"""Orders of growth: the powers of t and of log(t) in terms with symbols that grow with t.

An upper order bounds the size of a term. An exact order bounds it from below as well; then all
parts must be positive. Only powers and logarithms are accepted. A rate is proved where the upper
order of each term on the left is within the exact order of a term on the right, and refuted where
the exact order of a term on the left exceeds the upper orders of all terms on the right.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> Orders(Context({"n": "+"}), {"n": t.ONE}).of(parse("n**2*log(n)"), True)
(('num', Fraction(2, 1)), Fraction(1, 1))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.claims.formulas import as_number
from dpcal.calibrate.papers.claims.ranges import Relation
from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context, context_of
from dpcal.calibrate.papers.kernel.normal import sign_at

if TYPE_CHECKING:
    from dpcal.calibrate.papers.claims.claim import Claim

Order = tuple[t.Term, Fraction]
_CONSTANT: Order = (t.ZERO, Fraction(0))


class Orders:
    """Orders of terms as they are written.

    Parameters
    ----------
    context
        Facts about the symbols.
    growth
        Exponents of t for the symbols that grow; these are positive.
    """

    def __init__(self, context: Context, growth: Mapping[str, t.Term]) -> None:
        self.context, self.growth = context, growth

    def of(self, term: t.Term, exactly: bool) -> Order:
        """Return the upper order of a term, or the exact order of one that is positive."""
        head, *parts = term
        if not t.symbols(term) & self.growth.keys():
            self.context.require_defined(term)
            t.require(not exactly or self.context.is_plainly(term, ">"), "a positive constant")
            return _CONSTANT
        if head == "sym":
            return self.growth[term[1]], Fraction(0)
        if head == "mul":
            return _sum([self.of(part, exactly) for part in parts])
        if head in ("add", "max", "min"):
            lowest = head == "min"
            return _pick([self.of(part, exactly or lowest) for part in parts], lowest)
        if head == "pow":
            return self._power(parts[0], parts[1], exactly)
        t.require(head == "log", f"no order of {head} is known")
        inside = self.of(parts[0], True)
        power = _value(inside[0])
        if power != 0:
            t.require(not exactly or power > 0, "a logarithm that is positive in the end")
            return t.ZERO, Fraction(1)
        t.require(not exactly and inside[1] == 0, "a logarithm whose argument is a power")
        return _CONSTANT

    def _power(self, base: t.Term, exponent: t.Term, exactly: bool) -> Order:
        t.require(not t.symbols(exponent) & self.growth.keys(), "an exponent that does not grow")
        self.context.require_defined(exponent)
        whole = exponent[0] == "num" and exponent[1].denominator == 1
        upper = exponent[0] == "num" and exponent[1] > 0
        upper = upper and (whole or self.context.is_plainly(base, ">="))
        inside = self.of(base, exactly or not upper)
        t.require(not inside[1] or exponent[0] == "num", "a numeric power of a logarithm")
        logarithms = inside[1] * exponent[1] if inside[1] else Fraction(0)
        return _sum([(t.times(exponent, inside[0]), logarithms)])


def _sum(orders: list[Order]) -> Order:
    power = as_number(t.plus(*(power for power, _ in orders)))
    logarithms = sum((logs for _, logs in orders), Fraction(0))
    return power, logarithms


def _value(power: t.Term) -> Fraction:
    t.require(power[0] == "num", "numeric powers to compare")
    return Fraction(power[1])


def _pick(orders: list[Order], lowest: bool) -> Order:
    if len(set(orders)) == 1:
        return orders[0]
    choose: Callable[..., Any] = min if lowest else max
    power, logarithms = choose((_value(power), logarithms) for power, logarithms in orders)
    return t.number(power), logarithms


def covers(claim: Claim, above: Order, below: Order) -> bool:
    """Return whether an order has as many logarithms as another one, where they count."""
    return claim.pairs[0].sign == "=O~" or below[1] <= above[1]


def sums(claim: Claim, given: Sequence[t.Term], context: Context) -> list[Relation]:
    """Return the goals that two sums are the sides, if the symbols of the claim can grow."""
    growth, ((left, _, right),) = claim.parts["growth"], claim.pairs
    for name, exponent in growth.items():
        t.require(not t.symbols(exponent) & growth.keys(), "exponents that do not grow.")
        values = claim.domain[name]
        size = exponent[1] if exponent[0] == "num" else None
        rises, falls = size is None or size > 0, size is None or size < 0
        t.require(rises or falls, "growing symbols that grow.")
        t.require(values.low is not None and values.low >= 0, "positive growing symbols.")
        t.require(values.high is None or not rises, "growing symbols without an upper bound.")
        t.require(values.low == 0 or not falls, "falling symbols that come near zero.")
        t.require(context.is_plainly(t.symbol(name), ">"), "positive growing symbols.")
    held = {name for pair in claim.where for side in pair[::2] for name in t.symbols(side)}
    t.require(not held & growth.keys(), "conditions that do not stop the growth.")
    t.require(all(side[0] == "add" for side in given[:2]), "sums of terms.")
    return [Relation(left, "=", given[0]), Relation(right, "=", given[1])]


def goals(claim: Claim, given: Sequence[t.Term], context: Context | None = None) -> list[Relation]:
    """Return the goals that each term on the left is within one on the right.

    ``given`` has both sides as sums, and for each term on the left the place of one on the right.
    """
    context = context or context_of(claim)
    found, orders = sums(claim, given, context), Orders(context, claim.parts["growth"])
    above = [orders.of(row, True) for row in given[1][1:]]
    for row, place in zip(given[0][1:], given[2:], strict=True):
        below, limit = orders.of(row, False), above[int(place[1])]
        sign = "<=" if covers(claim, limit, below) else "<"
        found.append(Relation(below[0], sign, limit[0]))
    return found


def outgrows(
    claim: Claim, given: Sequence[t.Term], context: Context, point: Mapping[str, Fraction]
) -> bool:
    """Return whether the term at a place on the left outgrows all terms on the right."""
    orders = Orders(context, claim.parts["growth"])
    most = [orders.of(row, True) for row in given[0][1:]][int(given[2][1])]
    above = [orders.of(row, False) for row in given[1][1:]]
    signs = [sign_at(t.minus(most[0], other[0]), point) for other in above]
    rows = zip(signs, above, strict=True)
    return all(sign == 1 or (sign == 0 and not covers(claim, other, most)) for sign, other in rows)
