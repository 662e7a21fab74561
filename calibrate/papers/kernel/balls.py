"""Values of terms in ball arithmetic: enclosures at exact points and over boxes.

>>> from dpcal.calibrate.papers.kernel.terms import number, power, symbol
>>> root = power(symbol("x"), number("1/2"))
>>> value(root, {"x": (Fraction(9, 4), Fraction(9, 4))}).str(10, radius=False)
'1.500000000'
>>> value(root, {"x": (Fraction(1), Fraction(4))}) > 0
True
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import flint

from dpcal._internal.precision import workprec
from dpcal.calibrate.papers.kernel import terms as t

BITS = 256
Box = Mapping[str, tuple[Fraction, Fraction]]

_PAIRS = {"add": operator.add, "mul": operator.mul, "max": flint.arb.max, "min": flint.arb.min}


def balls_of(point: Mapping[str, Fraction]) -> dict[str, Any]:
    """Return the values of a point as balls."""
    with workprec(BITS):
        return {name: _ball(x) for name, x in point.items()}


def _ball(number: Fraction) -> Any:
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def value(term: t.Term, box: Box) -> Any:
    """Return an enclosure of a term over a box.

    Raises
    ------
    Undecided
        Where the term may be undefined somewhere in the box.
    """
    with workprec(BITS):
        return at(term, {name: _ball(a).union(_ball(b)) for name, (a, b) in box.items()})


def at(term: t.Term, balls: Mapping[str, Any]) -> Any:
    """Return an enclosure of a term for symbols within balls; raise Undecided as `value`."""
    with workprec(BITS):
        result = _value(term, balls)
    t.require(result.is_finite(), "a finite enclosure")
    return result


def _value(term: t.Term, box: Mapping[str, Any]) -> Any:
    head, *parts = term
    if head == "num":
        return _ball(parts[0])
    if head == "sym":
        t.require(parts[0] in box, f"a range of {parts[0]}")
        return box[parts[0]]
    if head == "pow":
        return _power(parts[0], parts[1], box)
    values = [_value(part, box) for part in parts]
    if head in _PAIRS:
        return functools.reduce(_PAIRS[head], values)
    if head in ("log", "gamma", "uppergamma"):
        t.require(all(entry > 0 for entry in values), f"positive arguments of {head}")
    if head in ("floor", "ceiling"):
        steps = values[0].floor() if head == "floor" else values[0].ceil()
        return steps if steps.is_exact() else steps.lower().floor().union(steps.upper().ceil())
    if head == "uppergamma":
        return flint.arb.gamma_upper(values[1], values[0])
    name = "__abs__" if head == "abs" else str(head)
    return flint.arb.pi() if head == "pi" else getattr(values[0], name)()


def _power(low: t.Term, exponent: t.Term, box: Mapping[str, Any]) -> Any:
    base, count = _value(low, box), exponent[1] if exponent[0] == "num" else None
    if count is not None and count.denominator == 1:
        t.require(count >= 0 or not base.contains(0), "no division by what may be zero")
        if not base.contains(0):
            return base ** int(count)
        # The library has no value here: the powers of the ends, and zero, enclose all others.
        ends: list[Any] = [end ** int(count) for end in (base.lower(), base.upper())]
        return ends[0].union(ends[1]).union(flint.arb(0)) if count else flint.arb(1)
    if count is not None and count > 0 and base >= 0 and not base > 0:
        return flint.arb(0).union(base.abs_upper() ** _value(exponent, box))
    t.require(base > 0, "no power of what may be negative or zero")
    return (_value(exponent, box) * base.log()).exp()
