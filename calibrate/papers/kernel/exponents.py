"""Exponents: rational functions of a few generators, in lowest terms, so that equal ones are equal.

>>> g = generator(0)
>>> 1 + 2 / (3 * g - 2) == 3 * g / (3 * g - 2)
True
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint

from dpcal.calibrate.papers.kernel.terms import require

MOST_TERMS = 200
MOST_GENERATORS = 10  # exponents of the papers use at most four symbols
_CONTEXT = flint.fmpq_mpoly_ctx.get(("g", MOST_GENERATORS), "lex")
_ONE = _CONTEXT.constant(1)


class Ratio:
    """A quotient of polynomials with rational coefficients that is not a constant."""

    __slots__ = ("bottom", "key", "top")

    def __init__(self, top: Any, bottom: Any) -> None:
        self.top, self.bottom = top, bottom
        self.key = (frozenset(top.to_dict().items()), frozenset(bottom.to_dict().items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ratio) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Exponent) -> Exponent:
        top, bottom = _parts(other)
        return _reduced(self.top * bottom + top * self.bottom, self.bottom * bottom)

    def __mul__(self, other: Exponent) -> Exponent:
        top, bottom = _parts(other)
        return _reduced(self.top * top, self.bottom * bottom)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Exponent:
        return self * Fraction(-1)

    def __sub__(self, other: Exponent) -> Exponent:
        return self + -other

    def __rsub__(self, other: Exponent) -> Exponent:
        return -self + other

    def inverse(self) -> Exponent:
        """Return one divided by the quotient."""
        return _reduced(self.bottom, self.top)

    def __truediv__(self, other: Exponent) -> Exponent:
        return self * (other.inverse() if isinstance(other, Ratio) else 1 / other)

    def __rtruediv__(self, other: Exponent) -> Exponent:
        return self.inverse() * other


Exponent = Fraction | Ratio


def _parts(value: Any) -> tuple[Any, Any]:
    if isinstance(value, Ratio):
        return value.top, value.bottom
    value = Fraction(value)
    return _CONTEXT.constant(flint.fmpq(value.numerator, value.denominator)), _ONE


def _reduced(top: Any, bottom: Any) -> Exponent:
    require(max(len(top.to_dict()), len(bottom.to_dict())) <= MOST_TERMS, "a shorter exponent")
    if not bottom.is_constant():
        common = top.gcd(bottom)
        top, bottom = top / common, bottom / common
    lead = bottom.leading_coefficient()
    top, bottom = top / lead, bottom / lead
    if top.is_constant() and bottom.is_constant():
        constant = top.leading_coefficient() if top != 0 else flint.fmpq(0)
        return Fraction(int(constant.p), int(constant.q))
    return Ratio(top, bottom)


def generator(index: int) -> Ratio:
    """Return one of the generators."""
    require(index < MOST_GENERATORS, "exponents in fewer symbols")
    return Ratio(_CONTEXT.gens()[index], _ONE)
