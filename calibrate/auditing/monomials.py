"""Exponent calculus: sums of monomials in positive symbols, with exact symbolic exponents.

Every expression becomes a dictionary from monomials to rational coefficients; a monomial maps
bases (symbols, primes, and sums or functions that no rule opens) to exponents, which are rational
functions of symbols such as kappa. Two expressions with the same dictionary are equal wherever
all bases are positive.

>>> from sympy import symbols, sqrt
>>> x, y, kappa = symbols("x y kappa", positive=True)
>>> normal(sqrt(8 * x**kappa * y) / y) == normal(2 * sqrt(2) * x ** (kappa / 2) / sqrt(y))
True
>>> normal(sqrt(x + y)) == normal(sqrt(x))
False
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import sympy

__all__ = ["Monomial", "Sum", "as_expression", "as_single", "normal", "prime_powers"]

Monomial = frozenset[tuple[Any, Any]]
Sum = dict[Monomial, Fraction]

_ONE: Monomial = frozenset()
_MOST_TERMS = 400
_PROBES = (Fraction(129, 100), Fraction(271, 190), Fraction(313, 170), Fraction(409, 330))


class TooLarge(ArithmeticError):  # noqa: N818
    """The expanded sum has more terms than are worth comparing."""


@lru_cache(maxsize=20_000)
def canonical_exponent(exponent: Any) -> Any:
    """Return one representative of equal rational functions."""
    return exponent if exponent.is_number else sympy.cancel(sympy.together(exponent))


@lru_cache(maxsize=20_000)
def normal(expression: Any) -> Sum:
    """Return the sum of monomials that ``expression`` equals.

    Parameters
    ----------
    expression
        A sympy expression whose non-negative symbols are declared positive.

    Raises
    ------
    TooLarge
        If expanding gives more than 400 terms.
    """
    expression = sympy.sympify(expression)
    if expression.is_Rational:
        return _constant(expression)
    if expression.is_Add:
        return _collect(normal(term) for term in expression.args)
    if expression.is_Mul:
        return reduce(_times, (normal(factor) for factor in expression.args))
    if expression.is_Pow or isinstance(expression, sympy.exp):
        return _power(*expression.as_base_exp())
    if isinstance(expression, sympy.log):
        return _logarithm(expression.args[0])
    if isinstance(expression, (sympy.Max, sympy.Min)):
        return _extremum(expression)
    if expression.args:
        arguments = [as_expression(normal(argument)) for argument in expression.args]
        return _atom(expression.func(*arguments))
    return _atom(expression)


def as_expression(total: Sum) -> Any:
    """Return the sympy expression of a sum of monomials."""
    return sympy.Add(*(_scaled(monomial, value) for monomial, value in total.items()))


def as_single(total: Sum) -> tuple[Monomial, Fraction] | None:
    """Return the only monomial and its coefficient, or None."""
    return next(iter(total.items())) if len(total) == 1 else None


def _scaled(monomial: Monomial, value: Fraction) -> Any:
    powers = (base**exponent for base, exponent in monomial)
    return sympy.Rational(value.numerator, value.denominator) * sympy.Mul(*powers)


def _constant(number: Any) -> Sum:
    return {_ONE: Fraction(int(number.p), int(number.q))} if number != 0 else {}


def _atom(base: Any) -> Sum:
    return {frozenset({(base, sympy.S.One)}): Fraction(1)}


def _collect(parts: Any) -> Sum:
    total: Sum = {}
    for part in parts:
        for monomial, value in part.items():
            total[monomial] = total.get(monomial, Fraction(0)) + value
    return {monomial: value for monomial, value in total.items() if value != 0}


def _times(left: Sum, right: Sum) -> Sum:
    if len(left) * len(right) > _MOST_TERMS:
        raise TooLarge(f"product of {len(left)} by {len(right)} terms")
    return _collect(
        _product(dict(a), dict(b), x * y) for a, x in left.items() for b, y in right.items()
    )


def _product(left: dict[Any, Any], right: dict[Any, Any], value: Fraction) -> Sum:
    powers = dict(left)
    for base, exponent in right.items():
        powers[base] = canonical_exponent(powers.get(base, sympy.S.Zero) + exponent)
    return _opened(*_settle(powers, value))


def _opened(monomial: Monomial, value: Fraction) -> Sum:
    """Multiply out sums that are raised to whole positive powers."""
    for base, exponent in monomial:
        if base.is_Add and exponent.is_Integer and 0 < exponent <= 8:
            rest: Sum = {monomial - {(base, exponent)}: value}
            return reduce(_times, [normal(base)] * int(exponent), rest)
    return {monomial: value}


def _settle(powers: dict[Any, Any], value: Fraction) -> tuple[Monomial, Fraction]:
    """Move whole powers of primes into the coefficient, so that equal monomials look equal."""
    settled = {}
    for base, exponent in powers.items():
        if base.is_Integer and base.is_positive:
            whole = _whole_part(exponent)
            value *= Fraction(int(base)) ** whole
            exponent = canonical_exponent(exponent - whole)
        if exponent != 0:
            settled[base] = exponent
    return frozenset(settled.items()), value


def _whole_part(exponent: Any) -> int:
    """Floor of the exponent at generic values of its symbols: adds n when n is added."""
    symbols = sorted(exponent.free_symbols, key=str)
    values = {
        symbol: sympy.Rational(*_PROBES[k % 4].as_integer_ratio()) + k // 4
        for k, symbol in enumerate(symbols)
    }
    return int(sympy.floor(exponent.subs(values)))


def _power(base: Any, exponent: Any) -> Sum:
    exponent = canonical_exponent(exponent)
    if base is sympy.S.Exp1:
        return _exponential(exponent)
    inner = normal(base)
    if not inner:
        return _atom(base**exponent) if exponent.is_positive is not True else {}
    if exponent.is_Integer and 0 <= exponent <= 8:
        return reduce(_times, [inner] * int(exponent), {_ONE: Fraction(1)})
    content, value, primitive = _content(inner)
    if value < 0 and not exponent.is_Integer:
        return _atom(base**exponent)
    sign = -1 if value < 0 and exponent % 2 == 1 else 1
    powers = {b: canonical_exponent(e * exponent) for b, e in content}
    for prime, count in prime_powers(abs(value)).items():
        powers[prime] = canonical_exponent(powers.get(prime, sympy.S.Zero) + count * exponent)
    monomial, coefficient = _settle(powers, Fraction(sign))
    if len(primitive) == 1:
        return _opened(monomial, coefficient)
    rest = sympy.together(as_expression(primitive))
    if rest.is_Mul:
        factors = (factor.as_base_exp() for factor in rest.args)
        powers_of_rest = [_power(inner, power * exponent) for inner, power in factors]
        return reduce(_times, powers_of_rest, {monomial: coefficient})
    return _times({monomial: coefficient}, {frozenset({(rest, exponent)}): Fraction(1)})


def _exponential(exponent: Any) -> Sum:
    parts = normal(exponent)
    whole = canonical_exponent(as_expression(parts))
    return {frozenset({(sympy.E, whole)}): Fraction(1)} if whole != 0 else {_ONE: Fraction(1)}


def prime_powers(value: Fraction) -> dict[Any, int]:
    """Return the exponents of the primes of a positive fraction."""
    factors = {sympy.Integer(p): k for p, k in sympy.factorint(value.numerator).items()}
    for prime, count in sympy.factorint(value.denominator).items():
        factors[sympy.Integer(prime)] = -count
    return factors


def _content(total: Sum) -> tuple[Monomial, Fraction, Sum]:
    """Split off the monomial and the rational factor that all terms share."""
    terms = [dict(monomial) for monomial in total]
    lowest = {base: _lowest(base, terms) for base in set().union(*terms)}
    shared = {base: power for base, power in lowest.items() if power != 0}
    values = list(total.values())
    size = Fraction(
        math.gcd(*(value.numerator for value in values)),
        math.lcm(*(value.denominator for value in values)),
    )
    size *= -1 if all(value < 0 for value in values) else 1
    inverse: Sum = {frozenset((base, -power) for base, power in shared.items()): 1 / size}
    return frozenset(shared.items()), size, _times(total, inverse)


def _lowest(base: Any, terms: Sequence[dict[Any, Any]]) -> Any:
    """Return the smallest exponent of a base over all terms; zero when they do not compare."""
    powers = [term.get(base, sympy.S.Zero) for term in terms]
    steps = [canonical_exponent(power - powers[0]) for power in powers]
    comparable = all(step.is_number for step in steps)
    return canonical_exponent(powers[0] + min(steps)) if comparable else sympy.S.Zero


def _logarithm(argument: Any) -> Sum:
    inner = normal(argument)
    shared, size, rest = _content(inner) if inner else (_ONE, Fraction(0), {})
    if size <= 0:
        return _atom(sympy.log(argument))
    parts = [_log_power(base, exponent) for base, exponent in shared]
    parts += [
        {frozenset({(sympy.log(prime), sympy.S.One)}): Fraction(count)}
        for prime, count in prime_powers(size).items()
    ]
    if len(rest) > 1:
        parts.append(_atom(sympy.log(as_expression(rest))))
    return _collect(parts)


def _log_power(base: Any, exponent: Any) -> Sum:
    logarithm = {_ONE: Fraction(1)} if base is sympy.E else _atom(sympy.log(base))
    return _times(normal(sympy.expand(exponent)), logarithm)


def _extremum(expression: Any) -> Sum:
    sums = [normal(argument) for argument in expression.args]
    terms = [dict(monomial) for total in sums for monomial in total]
    lowest = {base: _lowest(base, terms) for base in set().union(*terms)} if all(sums) else {}
    shared = frozenset((base, power) for base, power in lowest.items() if power != 0)
    inverse: Sum = {frozenset((base, -power) for base, power in shared): Fraction(1)}
    reduced = [as_expression(_times(total, inverse)) for total in sums]
    atom = expression.func(*reduced)
    if not isinstance(atom, expression.func):
        return _times({shared: Fraction(1)}, normal(atom))
    return {_joined(shared, atom): Fraction(1)}


def _joined(shared: Monomial, atom: Any) -> Monomial:
    powers = dict(shared)
    powers[atom] = canonical_exponent(powers.get(atom, sympy.S.Zero) + 1)
    return frozenset(powers.items())
