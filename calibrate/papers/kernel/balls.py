"""Values of terms: exact at rational points, and enclosures in ball arithmetic.

>>> from dpcal.calibrate.papers.kernel.terms import number, power, symbol
>>> root = power(symbol("x"), number("1/2"))
>>> value(root, {"x": (Fraction(9, 4), Fraction(9, 4))}).str(10, radius=False)
'1.500000000'
>>> value(root, {"x": (Fraction(1), Fraction(4))}) > 0
True
>>> exact(root, {"x": Fraction(9, 4)})
Fraction(3, 2)
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import flint

from dpcal._precision import workprec
from dpcal.calibrate.papers.kernel import terms as t

__all__ = ["Box", "at", "balls_of", "exact", "folded", "value"]

BITS = 256
MOST_BITS = 200_000  # of a number
HIGHEST_ROOT = 100_000
Box = Mapping[str, tuple[Fraction, Fraction]]

_PAIRS = {"add": operator.add, "mul": operator.mul, "max": flint.arb.max, "min": flint.arb.min}
_EXACT: dict[str, Callable[[list[Fraction]], Any]] = {
    "add": sum,
    "mul": math.prod,
    "max": max,
    "min": min,
    "floor": lambda values: math.floor(values[0]),
    "ceiling": lambda values: math.ceil(values[0]),
    "abs": lambda values: abs(values[0]),
    "pow": lambda values: _exact_power(*values),
}
_KNOWN = {
    ("log", t.ONE): t.ZERO,
    **dict.fromkeys((("exp", t.ZERO), ("cos", t.ZERO), ("erfc", t.ZERO)), t.ONE),
    **dict.fromkeys((("sin", t.ZERO), ("erf", t.ZERO)), t.ZERO),
}


def exact(term: t.Term, point: Mapping[str, Fraction]) -> Fraction | None:
    """Return the value at a point where all parts are known rational numbers, or else None."""
    try:
        found = folded(term, point)
    except t.Undecided:
        return None
    return found[1] if found[0] == "num" else None


def folded(term: t.Term, point: Mapping[str, Fraction]) -> t.Term:
    """Return a term at a point, with each part that is a known rational number as one."""
    if term[0] in ("num", "sym"):
        known = term[0] == "sym" and term[1] in point
        return t.number(point[term[1]]) if known else term
    head, *parts = term[0], *(folded(part, point) for part in term[1:])
    term = (head, *parts)
    if head not in _EXACT or any(part[0] != "num" for part in parts):
        return _KNOWN.get(term, term)
    found = _EXACT[head]([part[1] for part in parts])
    if found is None:
        return term
    bits = max(abs(found.numerator), found.denominator).bit_length()
    t.require(bits <= MOST_BITS, "a number with fewer digits")
    return t.number(found)


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Return a power that is a rational number, or None."""
    count, order = exponent.as_integer_ratio()
    t.require(base != 0 or count >= 0, "no division by zero")
    bits = max(abs(base.numerator), base.denominator).bit_length()
    t.require(order <= HIGHEST_ROOT and abs(count) * bits <= MOST_BITS, "a power of a sane size")
    if order == 1:
        return base**count
    if base < 0:
        return None
    roots = [int(flint.fmpz(part).root(order)) for part in base.as_integer_ratio()]
    is_root = all(r**order == p for r, p in zip(roots, base.as_integer_ratio(), strict=True))
    return Fraction(*roots) ** count if is_root else None


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
        # The library has no value here. The powers of the ends, and zero, enclose all others.
        ends: list[Any] = [end ** int(count) for end in (base.lower(), base.upper())]
        return ends[0].union(ends[1]).union(flint.arb(0)) if count else flint.arb(1)
    if count is not None and count > 0 and base >= 0 and not base > 0:
        return flint.arb(0).union(base.abs_upper() ** _value(exponent, box))
    t.require(base > 0, "no power of what may be negative or zero")
    return (_value(exponent, box) * base.log()).exp()
