"""Orders of growth: the power of t, and the power of log(t), of terms whose symbols grow with t.

An order is a pair: an exponent (a term, when it depends on symbols) and a power of the logarithm.
Upper orders bound the size of a term; exact ones bound it from below as well and need every part
to be positive. Mixed signs, and functions that are neither powers nor logarithms, are refused.

>>> from dpcal.calibrate.auditing.search.context import Context
>>> from dpcal.calibrate.auditing.kernel.terms import number, power, symbol, times
>>> n = symbol("n")
>>> product = times(power(n, number(2)), ("log", n))
>>> order(Context({"n": "+"}), product, {"n": number(1)}, exactly=True)
(('num', Fraction(2, 1)), Fraction(1, 1))
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcal.calibrate.auditing.kernel.rules import require
from dpcal.calibrate.auditing.kernel.terms import (
    ZERO,
    Term,
    Undecided,
    number,
    plus,
    symbols,
    times,
)
from dpcal.calibrate.auditing.search.context import Context
from dpcal.calibrate.auditing.search.exponents import Exponent
from dpcal.calibrate.auditing.search.normal import Normal, Sum

__all__ = ["Order", "order"]

Order = tuple[Term, Fraction]
_CONSTANT: Order = (ZERO, Fraction(0))


def order(context: Context, term: Term, growth: Mapping[str, Term], *, exactly: bool) -> Order:
    """Return the order of a term that is one monomial in symbols, sums and logarithms.

    Parameters
    ----------
    context
        Signs of the symbols.
    term
        A term with one monomial in its normal form.
    growth
        Exponents of t for the symbols that grow.
    exactly
        Whether the order must be a lower bound too, and the term positive.
    """
    total = context.normal.sum(term)
    require(len(total) == 1, "one monomial")
    monomial, value = next(iter(total.items()))
    require(not exactly or value > 0, "a positive term")
    return _Orders(context.normal, growth, exactly).of_monomial(monomial)


class _Orders:
    def __init__(self, normal: Normal, growth: Mapping[str, Term], exactly: bool) -> None:
        self.normal, self.growth, self.exactly = normal, growth, exactly

    def of_monomial(self, monomial: Any) -> Order:
        power, logarithms = ZERO, Fraction(0)
        for atom, exponent in monomial:
            if self._is_fixed_exponent(exponent):
                base = self._of_atom(atom, exponent)
                power = plus(power, times(self.normal.exponent_term(exponent), base[0]))
                if base[1]:
                    require(isinstance(exponent, Fraction), "a numeric power of a logarithm")
                    logarithms += exponent * base[1]
            else:
                raise Undecided("an exponent that grows")
        return _simple(power), logarithms

    def _is_fixed_exponent(self, exponent: Exponent) -> bool:
        if isinstance(exponent, Fraction):
            return True
        return not symbols(self.normal.exponent_term(exponent)) & self.growth.keys()

    def _grows(self, atom: Any) -> bool:
        whole: Sum = {frozenset({(atom, Fraction(1))}): Fraction(1)}
        return bool(symbols(self.normal.term(whole)) & self.growth.keys())

    def _of_atom(self, atom: Any, exponent: Exponent) -> Order:
        if not self._grows(atom):
            positive = self.normal.atom_sign(atom) == "+"
            require(positive or not self.exactly, "a positive constant")
            bounded = isinstance(exponent, Fraction) and exponent > 0
            require(positive or bounded, "a constant that is not zero")
            return _CONSTANT
        head = atom[0]
        if head == "sym":
            return self.growth[atom[1]], Fraction(0)
        if head == "sum":
            return self._of_sum(dict(atom[1]), max)
        if head in ("max", "min"):
            orders = [self._of_sum(dict(part), max) for part in atom[1]]
            return _pick(orders, max if head == "max" else min)
        if head == "logatom":
            return self._of_logarithm(atom[1], exponent)
        raise Undecided(f"no order of {head} is known")

    def _of_sum(self, total: Sum, choose: Any) -> Order:
        """Return the exact order of a sum of positive terms."""
        cleared = self.normal.clear(total)
        require(all(value > 0 for value in cleared.values()), "a sum of positive terms")
        inner = _Orders(self.normal, self.growth, True)
        return _pick([inner.of_monomial(monomial) for monomial in cleared], choose)

    def _of_logarithm(self, inside: Any, exponent: Exponent) -> Order:
        """Return the order of a logarithm: one logarithm when its argument is a power of t."""
        power, logarithms = _Orders(self.normal, self.growth, True)._of_atom(inside, Fraction(1))
        require(power[0] == "num", "a numeric power inside a logarithm")
        if power[1] != 0:
            require(not self.exactly or power[1] > 0, "a logarithm that is positive in the end")
            return ZERO, Fraction(1)
        bounded = not self.exactly and isinstance(exponent, Fraction) and exponent > 0
        require(bounded and logarithms == 0, "a logarithm whose argument is a power")
        return _CONSTANT


def _pick(orders: list[Order], choose: Any) -> Order:
    if len(set(orders)) == 1:
        return orders[0]
    require(all(power[0] == "num" for power, _ in orders), "numeric powers to compare")
    power, logarithms = choose((power[1], logarithms) for power, logarithms in orders)
    return number(power), logarithms


def _simple(power: Term) -> Term:
    """Return a numeric power as a number."""
    total = Normal(dict.fromkeys(symbols(power), "?")).sum(power)
    return number(total.get(frozenset(), 0)) if set(total) <= {frozenset()} else power
