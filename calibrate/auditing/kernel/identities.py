"""Identities: a term vanishes wherever it is defined, because a polynomial in its parts does.

A term becomes a quotient of polynomials (python-flint's) in generators: symbols, logarithms,
exponentials, functions that nothing opens, and roots. A power whose exponent is not whole is the
exponential of the exponent times the logarithm of its base, and logarithms are opened into those
of factors that are known to be positive. A root g of a base b obeys ``g**N = b``.

>>> from dpcal.calibrate.auditing.kernel.terms import minus, number, power, symbol, times
>>> x, y = symbol("x"), symbol("y")
>>> root = power(times(number(4), power(x, number(2)), y), number("1/2"))
>>> gap = minus(root, times(number(2), x, power(y, number("1/2"))))
>>> Forms(lambda term: 2).is_zero(gap), Forms(lambda term: 0).is_zero(gap)
(True, False)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import flint

from dpcal.calibrate.auditing.kernel import balls
from dpcal.calibrate.auditing.kernel.terms import Term, Undecided, subterms, symbol, symbols

__all__ = ["Forms"]

MOST_GENERATORS = 32
MOST_TERMS = 40_000  # of a product, before like terms are added up
MOST_RESTARTS = 40
LARGEST_POWER = 4096
MOST_BITS = 200_000  # of one coefficient
LARGEST_FACTORED = 10**24  # larger numbers are not split into primes; they stay whole
_RING = flint.fmpq_mpoly_ctx.get(("g", MOST_GENERATORS), "lex")
_GENERATORS = _RING.gens()
_ZERO, _ONE = _RING.constant(0), _RING.constant(1)

Form = tuple[Any, Any]  # numerator and denominator
Key = tuple[Any, ...]  # what a generator stands for


class _FinerError(Exception):
    """A root with a larger denominator is needed; everything starts again with it."""


def _constant(value: Fraction | int) -> Form:
    value = Fraction(value)
    return _RING.constant(flint.fmpq(value.numerator, value.denominator)), _ONE


def _numbers(polynomial: Any) -> list[Fraction]:
    return [Fraction(int(c.p), int(c.q)) for c in polynomial.coeffs()]


class Forms:
    """Quotients of polynomials for terms that are defined.

    Parameters
    ----------
    sign
        Function that returns 2 for a term that is known to be positive, 1 for a nonnegative one.
    bases
        Terms that are known to be positive; they are taken out of the bases of powers.
    deadline
        Value of ``time.monotonic()`` after which every operation gives up.
    """

    def __init__(
        self, sign: Callable[[Term], int], bases: Sequence[Term] = (), deadline: float = math.inf
    ) -> None:
        self.sign, self.bases, self.deadline = sign, bases, deadline
        self._finest: dict[Key, int] = {}  # the N of roots
        self._start()

    def _start(self) -> None:
        self._forms: dict[Term, Form] = {}
        self._index: dict[Key, int] = {}
        self._signs: dict[int, int] = {}
        self._relations: dict[int, Any] = {}  # polynomials that are zero, by their root
        self._factors: dict[Key, Any] = {}  # polynomials under logarithms
        self._functions: list[tuple[str, list[Form], Key]] = []
        self._exponents: list[tuple[Key, Form]] = []

    def is_zero(self, term: Term) -> bool:
        """Return whether a term, which must be defined, is certainly zero."""
        for base, exponent in (part[1:] for part in subterms(term) if part[0] == "pow"):
            if exponent[0] == "num":  # a guess that saves restarts
                for key in map(symbol, symbols(base)):
                    self._finest[key] = math.lcm(self._finest.get(key, 1), exponent[1].denominator)
        for _ in range(MOST_RESTARTS):
            try:
                self._start()
                for base in self.bases:
                    self._log(self.form(base))
                return bool(self._reduced(self.form(term)[0]) == 0)
            except _FinerError:
                continue
        raise Undecided("powers with too many different denominators")

    # ------------------------------------------------------------------------------ terms to forms

    def form(self, term: Term) -> Form:
        """Return the quotient of polynomials that a term is."""
        if term[0] in ("num", "sym", "add", "mul"):
            return self._form(term)
        if term not in self._forms:
            self._forms[term] = self._form(term)
        return self._forms[term]

    def _form(self, term: Term) -> Form:
        head = term[0]
        if head == "num":
            return _constant(term[1])
        if head in ("sym", "pi"):
            return self._atom(term, self.sign(term))
        if head == "pow":
            return self._power(term[1], self.form(term[2]))
        parts = [self.form(part) for part in term[1:]]
        if head in ("add", "mul"):
            return reduce(self._plus if head == "add" else self._times, parts)
        if head in ("exp", "log"):
            return self._exp(parts[0]) if head == "exp" else self._log(parts[0])
        value = balls.exact(term, {})
        if value is not None:
            return _constant(value)
        for known, others, key in self._functions:
            alike = known == head and len(parts) == len(others)
            if alike and all(map(self._equal, parts, others)):
                return self._atom(key)
        key = ("function", len(self._functions))
        self._functions.append((head, parts, key))
        return self._atom(key, self.sign(term))

    def _generator(self, key: Key, sign: int = 0) -> Any:
        """Return the generator of a key; later ones are larger, which reductions rely on."""
        index = self._index.setdefault(key, MOST_GENERATORS - 1 - len(self._index))
        if index < 0:
            raise Undecided("an identity with too many parts")
        self._signs[index] = max(sign, self._signs.get(index, 0))
        return _GENERATORS[index]

    def _atom(self, key: Key, sign: int = 0) -> Form:
        return self._generator(key, sign) ** self._finest.get(key, 1), _ONE

    def _limited(self, terms: float) -> None:
        if terms > MOST_TERMS or time.monotonic() > self.deadline:
            raise Undecided("an identity with too many terms, or out of time")

    def _product(self, left: Any, right: Any) -> Any:
        self._limited(len(left) * len(right))
        return left * right

    def _quotient(self, top: Any, bottom: Any) -> Form:
        common = bottom if bottom.is_constant() else top.gcd(bottom)
        return top / common, bottom / common

    def _plus(self, left: Form, right: Form) -> Form:
        if left[1] == right[1]:
            return self._quotient(left[0] + right[0], left[1])
        top = self._product(left[0], right[1]) + self._product(right[0], left[1])
        return self._quotient(top, self._product(left[1], right[1]))

    def _times(self, left: Form, right: Form) -> Form:
        return self._quotient(*map(self._product, left, right))

    def _equal(self, left: Form, right: Form) -> bool:
        top = self._product(left[0], right[1]) - self._product(right[0], left[1])
        return bool(self._reduced(top) == 0)

    def _reduced(self, polynomial: Any) -> Any:
        """Use the relations of roots, from the largest root to the smallest."""
        for _, relation in sorted(self._relations.items()):
            polynomial = divmod(polynomial, relation)[1]
        return polynomial

    def _whole_power(self, form: Form, count: int) -> Form:
        top, bottom = form if count >= 0 else (form[1], form[0])
        size, count = max(len(top), len(bottom)), abs(count)
        if self._reduced(bottom) == 0 or (size > 1 and count > LARGEST_POWER):
            raise Undecided("a division by zero, or a power that is too high")
        self._limited(math.exp(min(count * math.log(size or 1), 99)))
        values = [part for v in _numbers(top) + _numbers(bottom) for part in v.as_integer_ratio()]
        if count * max(value.bit_length() - 1 for value in values) > MOST_BITS:
            raise Undecided("a number with too many digits")
        return self._quotient(top**count, bottom**count)

    def _power(self, base: Term, exponent: Form) -> Form:
        if all(side.is_constant() for side in exponent):
            value = sum(_numbers(exponent[0])) / _numbers(exponent[1])[0]
            if value.denominator == 1:
                return self._whole_power(self.form(base), int(value))
            log = self._log(self.form(base), positive=value < 0 or self.sign(base) == 2)
            return self._exp(self._times(exponent, log))
        return self._exp(self._times(exponent, self._log(self.form(base))))

    # ----------------------------------------------------------------- logarithms and exponentials

    def _log(self, form: Form, positive: bool = True) -> Form:
        """Return the logarithm of what is positive, or nonnegative and the base of a power."""
        total = _constant(0)
        rests = []
        for side, sign in zip(form, (1, -1), strict=True):
            rest, keys = self._opened(self._reduced(side), positive)
            rests.append(rest)
            for key, count in keys.items():
                total = self._plus(total, self._times(self._log_of(key), _constant(sign * count)))
        top, bottom = rests
        if not bottom.is_constant() and not (top.is_constant() and positive):
            raise Undecided("a base whose denominator has no known sign")
        rest = top * bottom  # one of them is 1 or -1
        if rest.is_constant():
            if rest != 1:
                raise Undecided("a base that is not positive")
            return total
        same = (key for key, known in self._factors.items() if self._reduced(known - rest) == 0)
        key = next(same, ("base", len(self._factors), positive))
        self._factors[key] = rest
        sign = 1 if bottom.is_constant() else -1
        return self._plus(total, self._times(self._log_of(key), _constant(sign)))

    def _opened(self, side: Any, positive: bool) -> tuple[Any, dict[Key, Fraction]]:
        """Take out primes, generators that are positive, and bases that are known."""
        if side == 0:
            raise Undecided("a base that is zero")
        values, keys = _numbers(side), {}
        size = Fraction(
            math.gcd(*(value.numerator for value in values)),
            math.lcm(*(value.denominator for value in values)),
        )
        for value, sign in ((size.numerator, 1), (size.denominator, -1)):
            whole = value > LARGEST_FACTORED
            for prime, count in [(value, 1)] if whole else flint.fmpz(value).factor():
                keys[("num", int(prime))] = Fraction(sign * int(count))
        rest = side / _constant(size)[0]
        lowest = [int(min(powers)) for powers in zip(*rest.monoms(), strict=True)]
        found = {key: lowest[index] for key, index in self._index.items() if lowest[index]}
        alone = len(rest) == 1 and all(self._signs[self._index[key]] for key in found)
        for key, count in found.items():
            if alone or self._signs[self._index[key]] == 2:
                rest = rest / self._generator(key) ** count
                inner = key[1] if key[0] == "root" else key
                keys[inner] = Fraction(count, self._finest.get(inner, 1))
        for key, base in self._factors.items():
            quotient, left = divmod(rest, base)
            while left == 0 and key[-1] is True:
                keys[key] = keys.get(key, Fraction(0)) + 1
                rest = quotient
                quotient, left = divmod(rest, base)
        return rest, keys

    def _log_of(self, key: Key) -> Form:
        """Return the logarithm of a prime, of a generator, or of a base."""
        if key[0] == "exp":
            return dict(self._exponents)[key]
        return self._atom(("log", key), 2 if key[0] == "num" else 0)

    def _exp(self, form: Form) -> Form:
        """Return the exponential as a product of roots; exponents are rational combinations."""
        found = self._combination(form)
        if found is None:
            for monomial in form[0].monoms():
                piece = self._quotient(_RING.from_dict({monomial: 1}), form[1])
                if self._combination(piece) is None:
                    self._exponents.append((("exp", len(self._exponents)), piece))
            found = self._combination(form) or {}
        result = _constant(1)
        for key, count in found.items():
            result = self._times(result, self._root(key, count))
        return result

    def _combination(self, form: Form) -> dict[Key, Fraction] | None:
        """Write a form as a rational combination of known logarithms and exponents."""
        logs = [(key[1], self._atom(key)) for key in self._index if key[0] == "log"]
        known = [*logs, *self._exponents]
        forms = [other for _, other in known] + [form]
        common = reduce(lambda a, b: self._product(a, b / a.gcd(b)), (f[1] for f in forms))
        tops = [self._reduced(self._product(f[0], common / f[1])).to_dict() for f in forms]
        monomials = sorted({monomial for top in tops for monomial in top})
        if not tops[-1]:
            return {}
        entries = [top.get(monomial, 0) for monomial in monomials for top in tops]
        matrix, rank = flint.fmpq_mat(len(monomials), len(tops), entries).rref()
        found = {}
        for row in range(rank):
            pivot = next(k for k in range(len(tops)) if matrix[row, k] != 0)
            value = matrix[row, len(known)]
            if pivot == len(known):
                return None
            if value != 0:
                found[known[pivot][0]] = Fraction(int(value.p), int(value.q))
        return found

    def _root(self, key: Key, count: Fraction) -> Form:
        """Return a power of a prime, of a generator, of an exponential, or of a base."""
        finest = self._finest.get(key, 1)
        if (count * finest).denominator != 1:
            self._finest[key] = math.lcm(finest, count.denominator)
            raise _FinerError
        whole = int(count * finest)
        if key[0] not in ("num", "base"):
            return self._whole_power((self._generator(key, 2 * (key[0] == "exp")), _ONE), whole)
        base = _constant(key[1])[0] if key[0] == "num" else self._factors[key]
        if finest == 1:
            return self._whole_power((base, _ONE), whole)
        generator = self._generator(("root", key), 2 if key[-1] is True or key[0] == "num" else 1)
        self._relations[self._index["root", key]] = generator**finest - base
        return self._whole_power((generator, _ONE), whole)
