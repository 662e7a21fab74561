"""Identities: a term vanishes wherever it is defined, because a polynomial in its parts does.

A term becomes a quotient of polynomials (python-flint's). Symbols, roots and functions are the
generators, each as it is written; a root g of a base b obeys ``g**N = b``. Logarithms of products,
powers and exponentials are opened where the parts are known to be positive.

>>> from dpcal.calibrate.papers.kernel.terms import minus, number, power, symbol, times
>>> x = symbol("x")
>>> root = power(x, number("1/2"))
>>> Ring(lambda term: True).is_zero(minus(power(root, number(2)), x))
True
>>> Ring(lambda term: True).is_zero(minus(("log", times(x, root)), times(number(2), ("log", x))))
False
>>> exact(times(number("2/3"), x), {"x": Fraction(6)})
Fraction(4, 1)
>>> is_zero_at(minus(root, ("exp", ("log", x))), {"x": Fraction(1)})
True
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import flint

from dpcal.calibrate.papers.kernel import terms as t

__all__ = ["Form", "Ring", "exact", "is_zero_at"]

GENERATORS = 32
ROOTS = 8  # of a term at an exact point, so that its polynomials stay small
MOST_TERMS = 40_000  # of a product, before like terms are added up
MOST_BITS = 200_000  # of one coefficient
MOST_DEGREE = 100_000  # of a polynomial; the memory that a common divisor takes grows with it
LARGEST_FACTORED = 10**24  # larger numbers are not split into primes; they stay whole
_RING = flint.fmpq_mpoly_ctx.get(("g", GENERATORS), "lex")
_ONE = _RING.constant(1)
_EXACT: dict[str, Callable[[list[Fraction]], Any]] = {
    "max": max,
    "min": min,
    "floor": lambda values: math.floor(values[0]),
    "ceiling": lambda values: math.ceil(values[0]),
    "abs": lambda values: abs(values[0]),
}

_KNOWN = {
    ("log", t.ONE): t.ZERO,
    **dict.fromkeys((("exp", t.ZERO), ("cos", t.ZERO), ("erfc", t.ZERO)), t.ONE),
    **dict.fromkeys((("sin", t.ZERO), ("erf", t.ZERO)), t.ZERO),
}

Form = tuple[Any, Any]  # numerator and denominator


def exact(term: t.Term, point: Mapping[str, Fraction]) -> Fraction | None:
    """Return the exact value at a point where only rational operations occur, or else None."""
    values = {name: t.number(value) for name, value in point.items()}
    ring = Ring(lambda part: False)
    ring.room = 0  # no generator, so that it ends at the first root
    try:
        return _number(ring.form(t.substitute(term, values)))
    except t.Undecided:
        return None


def is_zero_at(term: t.Term, point: Mapping[str, Fraction]) -> bool:
    """Return whether a term, which must be defined at an exact point, is certainly zero there."""
    values = {name: t.number(value) for name, value in point.items()}
    ring = Ring(lambda part: False)
    ring.room = ROOTS
    try:
        return ring.is_zero(_folded(t.substitute(term, values)))
    except t.Undecided:
        return False


def _folded(term: t.Term) -> t.Term:
    """Return a term without symbols, with each part that is a known rational number as one."""
    if term[0] == "num":
        return term
    term = (term[0], *map(_folded, term[1:]))
    if term[0] == "pow" and term[1][0] == term[2][0] == "num" and term[1][1] >= 0:
        parts, (count, order) = term[1][1].as_integer_ratio(), term[2][1].as_integer_ratio()
        t.require(order <= MOST_DEGREE, "a root of a sane order")
        roots = [int(flint.fmpz(part).root(order)) for part in parts]
        if all(root**order == part for root, part in zip(roots, parts, strict=True)):
            term = ("pow", t.number(Fraction(*roots)), t.number(count))
    value = exact(term, {})
    return _KNOWN.get(term, term) if value is None else t.number(value)


def _constant(value: Any) -> Form:
    return _RING.constant(flint.fmpq(*value.as_integer_ratio())), _ONE


def _numbers(polynomial: Any) -> list[Fraction]:
    return [Fraction(int(c.p), int(c.q)) for c in polynomial.coeffs()]


def _bits(polynomial: Any) -> int:
    """Return the digits of the largest number in a polynomial; 1 needs none."""
    return max((int(c.height_bits()) - 1 for c in polynomial.coeffs()), default=0)


def _number(form: Form) -> Fraction | None:
    if not (form[0].is_constant() and form[1].is_constant()):
        return None
    return sum(_numbers(form[0]), Fraction(0)) / _numbers(form[1])[0]


class Ring:
    """Quotients of polynomials for terms that are defined.

    Parameters
    ----------
    positive
        Function that returns whether a term is known to be positive.
    deadline
        Value of ``time.thread_time()`` after which every operation gives up.
    """

    def __init__(self, positive: Callable[[t.Term], bool], deadline: float = math.inf) -> None:
        self.positive, self.deadline, self.room = positive, deadline, GENERATORS
        self._index: dict[t.Term, int] = {}
        self._relations: dict[int, Any] = {}  # polynomials that are zero, by their root

    def is_zero(self, term: t.Term) -> bool:
        """Return whether a term, which must be defined, is certainly zero."""
        return bool(self._reduced(self.form(term)[0]) == 0)

    def form(self, term: t.Term) -> Form:
        """Return a term as a quotient of polynomials."""
        head, *parts = term
        if head == "num":
            return _constant(parts[0])
        if head == "pow":
            return self._power(*parts)
        if head == "log" and (opened := self.logarithm(parts[0])) != term:
            return self.form(opened)
        if head in ("add", "mul"):
            return functools.reduce(getattr(self, f"_{head}"), map(self.form, parts))
        values = [_number(self.form(part)) for part in parts] if head in _EXACT else [None]
        if None not in values:
            return _constant(_EXACT[head]([value for value in values if value is not None]))
        return self._generator(term), _ONE

    def logarithm(self, term: t.Term) -> t.Term:
        """Return the logarithm of a positive term, opened where the parts are positive."""
        self._limit(0)
        head, *parts = term
        if head == "num" and parts[0] > 0:
            rows = []
            for value, sign in zip(parts[0].as_integer_ratio(), (1, -1), strict=True):
                primes = [(value, 1)] if value > LARGEST_FACTORED else flint.fmpz(value).factor()
                rows += [
                    t.times(t.number(sign * int(count)), ("log", t.number(int(prime))))
                    for prime, count in primes
                ]
            return t.plus(*rows)
        if head == "mul" and all(map(self.positive, parts)):
            return t.plus(*map(self.logarithm, parts))
        if head == "pow" and self.positive(parts[0]):
            return t.times(parts[1], self.logarithm(parts[0]))
        return parts[0] if head == "exp" else ("log", term)

    def _power(self, base: t.Term, exponent: t.Term) -> Form:
        value = _number(self.form(exponent))
        if value is None:
            return self._generator(("pow", base, exponent)), _ONE
        form, order = self.form(base), value.denominator
        if order > 1:
            key = ("pow", base, t.number(Fraction(1, order)))
            root = self._generator(key)
            if form[1].is_constant():
                self._relations[self._index[key]] = root**order * form[1] - form[0]
            form = root, _ONE
        return self._whole_power(form, value.numerator)

    def _generator(self, key: t.Term) -> Any:
        """Return the generator of a term; later ones are larger, which reductions rely on."""
        index = self._index.setdefault(key, self.room - 1 - len(self._index))
        t.require(index >= 0, "an identity with fewer parts")
        return _RING.gen(index)

    def _product(self, left: Any, right: Any) -> Any:
        self._limit(len(left) * len(right))
        return left * right

    def _limit(self, terms: float) -> None:
        t.require(terms <= MOST_TERMS and time.thread_time() < self.deadline, "a shorter identity")

    def _quotient(self, top: Any, bottom: Any) -> Form:
        self._limit(max(len(top), len(bottom)))
        t.require(max(top.total_degree(), bottom.total_degree()) <= MOST_DEGREE, "lower powers")
        t.require(max(map(_bits, (top, bottom))) <= MOST_BITS, "a number with fewer digits")
        common = bottom if bottom.is_constant() else top.gcd(bottom)
        return top / common, bottom / common

    def _add(self, left: Form, right: Form) -> Form:
        if left[1] == right[1]:
            return self._quotient(left[0] + right[0], left[1])
        top = self._product(left[0], right[1]) + self._product(right[0], left[1])
        return self._quotient(top, self._product(left[1], right[1]))

    def _mul(self, left: Form, right: Form) -> Form:
        return self._quotient(*map(self._product, left, right))

    def _reduced(self, polynomial: Any) -> Any:
        """Use the relations of roots, from the largest root to the smallest."""
        for index, relation in sorted(self._relations.items()):
            steps = int(polynomial.degrees()[index] // relation.degrees()[index])
            self._limit(math.exp(min(steps * math.log(len(relation) - 1 or 1), 99)))
            polynomial = divmod(polynomial, relation)[1]
        return polynomial

    def _whole_power(self, form: Form, count: int) -> Form:
        top, bottom = form if count >= 0 else form[::-1]
        size, count = max(len(top), len(bottom)), abs(count)
        t.require(self._reduced(bottom) != 0, "no division by zero")
        self._limit(math.exp(min(count * math.log(size or 1), 99)))
        t.require(count * max(map(_bits, (top, bottom))) <= MOST_BITS, "a number with fewer digits")
        return self._quotient(top**count, bottom**count)
