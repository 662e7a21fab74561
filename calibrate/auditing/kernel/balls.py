"""Values of terms in ball arithmetic: enclosures at exact points and over boxes.

>>> from dpcal.calibrate.auditing.kernel.terms import number, power, symbol
>>> root = power(symbol("x"), number("1/2"))
>>> value(root, {"x": (Fraction(9, 4), Fraction(9, 4))}).str(10, radius=False)
'1.500000000'
>>> sign(value(root, {"x": (Fraction(1), Fraction(4))}))
1
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import flint

from dpcal.calibrate.auditing.kernel.terms import Term, Undecided

__all__ = ["exact", "sign", "sign_at", "value"]

BITS = 256
LARGEST_POWER = 4096  # whole powers of an exact point beyond it are left to balls
MOST_BITS = 200_000  # of one exact number

Box = Mapping[str, tuple[Fraction, Fraction]]


def _interval(low: Fraction, high: Fraction) -> Any:
    return _rational(low) if low == high else _rational(low).union(_rational(high))


def _rational(number: Fraction) -> Any:
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def value(term: Term, box: Box, bits: int = BITS) -> Any:
    """Return an enclosure of a term over a box.

    Raises
    ------
    Undecided
        Where the term may be undefined somewhere in the box.
    """
    with flint.ctx.workprec(bits):
        result = _value(term, {name: _interval(*ends) for name, ends in box.items()})
    if not result.is_finite():
        raise Undecided("no finite enclosure")
    return result


def sign(ball: Any) -> int | None:
    """Return the sign of all numbers in a ball, or None when signs differ."""
    if ball > 0:
        return 1
    if ball < 0:
        return -1
    return 0 if ball.is_exact() and ball == 0 else None


def _value(term: Term, box: Mapping[str, Any]) -> Any:
    head = term[0]
    if head == "num":
        return _rational(term[1])
    if head == "sym":
        if term[1] not in box:
            raise Undecided(f"no range is given for {term[1]}")
        return box[term[1]]
    if head == "pi":
        return flint.arb.pi()
    if head == "pow":
        return _power(term, box)
    values = [_value(part, box) for part in term[1:]]
    if head == "add":
        return functools.reduce(lambda a, b: a + b, values)
    if head == "mul":
        return functools.reduce(lambda a, b: a * b, values)
    if head in ("max", "min"):
        return functools.reduce(lambda a, b: _extremum(head, a, b), values)
    return _function(head, values)


def _power(term: Term, box: Mapping[str, Any]) -> Any:
    base, exponent = _value(term[1], box), term[2]
    if exponent[0] == "num" and exponent[1].denominator == 1:
        count = int(exponent[1])
        if count < 0 and base.contains(0):
            raise Undecided("division by what may be zero")
        return base**count
    if exponent[0] == "num" and exponent[1] > 0 and not base > 0:
        if not base >= 0:
            raise Undecided("root of what may be negative")
        top = base.abs_upper()
        return flint.arb(0).union(top ** _value(exponent, box))
    if not base > 0:
        raise Undecided("power of what may be negative or zero")
    return (_value(exponent, box) * base.log()).exp()


def _function(head: str, values: list[Any]) -> Any:
    first = values[0]
    if head in ("log", "gamma", "uppergamma") and not all(entry > 0 for entry in values):
        raise Undecided(f"{head} of what may be negative or zero")
    if head == "uppergamma":
        return flint.arb.gamma_upper(values[1], values[0])
    if head == "abs":
        return _extremum("max", first, -first)
    if head in ("floor", "ceiling"):
        steps = first.floor() if head == "floor" else first.ceil()
        if steps.is_exact():
            return steps
        low, high = steps.lower().floor(), steps.upper().ceil()
        return low.union(high)
    return getattr(first, head)()


def _extremum(head: str, left: Any, right: Any) -> Any:
    pick = max if head == "max" else min
    if left < right or left > right:
        return right if (left < right) == (head == "max") else left
    low, high = pick(left.lower(), right.lower()), pick(left.upper(), right.upper())
    return low.union(high)


def exact(term: Term, point: Mapping[str, Fraction]) -> Fraction | None:
    """Return the exact value at a point where only rational operations occur, or else None."""
    head = term[0]
    if head == "num":
        return Fraction(term[1])
    if head == "sym":
        return point.get(term[1])
    values = [exact(part, point) for part in term[1:]]
    if not values or any(entry is None for entry in values):
        return None
    numbers = [entry for entry in values if entry is not None]
    if head == "pow":
        return _exact_power(*numbers)
    return Fraction(_EXACT[head](numbers)) if head in _EXACT else None


_EXACT: dict[str, Any] = {
    "add": lambda numbers: sum(numbers, Fraction(0)),
    "mul": math.prod,
    "max": max,
    "min": min,
    "floor": lambda numbers: math.floor(numbers[0]),
    "ceiling": lambda numbers: math.ceil(numbers[0]),
    "abs": lambda numbers: abs(numbers[0]),
}


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1 or abs(exponent) > LARGEST_POWER:
        return None
    if base == 0 and exponent < 0:
        raise Undecided("division by zero")
    if abs(exponent) * max(part.bit_length() - 1 for part in base.as_integer_ratio()) > MOST_BITS:
        raise Undecided("a number with too many digits")
    return Fraction(base ** int(exponent))


def sign_at(term: Term, point: Mapping[str, Fraction]) -> int | None:
    """Return the certain sign of a term at an exact point; zero only when exactly zero."""
    try:
        number = exact(term, point)
        if number is not None:
            return (number > 0) - (number < 0)
        return sign(value(term, {name: (x, x) for name, x in point.items()}))
    except Undecided:
        return None
