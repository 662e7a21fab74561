"""Normal forms: sums of monomials in atoms, so that equal formulas look equal.

A sum is a dictionary from monomials to rational coefficients; a monomial is a set of pairs (atom,
exponent). Atoms are symbols, primes, and sums or functions that no rewriting opens. Each rewriting
keeps the value wherever the formula is defined; a power is taken apart only when its exponent is
whole or its factors are known to be nonnegative.

>>> from dpcal.calibrate.papers.kernel.terms import minus, number, power, symbol, times
>>> x, y = symbol("x"), symbol("y")
>>> root = power(times(number(4), power(x, number(2)), y), number("1/2"))
>>> forms = Normal({"x": "+", "y": "+"})
>>> forms.is_zero(minus(root, times(number(2), x, power(y, number("1/2")))))
True
>>> Normal({"x": "?", "y": "+"}).is_zero(minus(root, times(number(2), x, power(y, number("1/2")))))
False
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, TypeGuard, cast

import flint

from dpcal.calibrate.papers.kernel import balls, terms as t
from dpcal.calibrate.papers.kernel.exponents import Exponent, Ratio, generator

Atom = tuple[Any, ...]
Monomial = frozenset[tuple[Atom, Exponent]]
Sum = dict[Monomial, Fraction]

MOST_TERMS = 600
MOST_DIGITS = 300
HIGHEST = 12  # largest power of a sum that is multiplied out
LARGEST_PRIME = 10**4  # a product of larger primes stays whole: to find them may take too long
_UNIT: Monomial = frozenset()
_ZERO, _ONE = Fraction(0), Fraction(1)
_E: Atom = ("e",)
_STEPS: dict[str, Any] = {"floor": math.floor, "ceiling": math.ceil, "abs": abs}
_AT_ZERO = {"sin": 0, "erf": 0, "cos": 1, "erfc": 1}


class Normal:
    """Normal forms that use the known signs of symbols and sums.

    Parameters
    ----------
    signs
        ``"+"`` (positive), ``"0+"`` (nonnegative) or ``"?"`` for each symbol.
    deadline
        Value of ``time.thread_time()`` after which every operation raises Undecided.
    logs
        Symbols on one side of 1: whether above (1) or below (-1), and the sign of the logarithm of
        the symbol, or of its inverse.
    """

    def __init__(
        self,
        signs: Mapping[str, str],
        deadline: float = math.inf,
        logs: Mapping[str, tuple[int, str]] | None = None,
    ) -> None:
        self.signs, self.deadline, self.logs = dict(signs), deadline, dict(logs or {})
        self.facts: list[tuple[Sum, bool]] = []  # sums >= 0 (False) or > 0 (True)
        self._cache: dict[t.Term, Sum] = {}
        self._bases: set[frozenset[Any]] = set()
        self._generators: dict[Any, int] = {}
        self._asking: set[Any] = set()
        self._numbers: dict[Any, bool] = {}
        self._arguments: dict[Any, Any] = {}

    def sum(self, term: t.Term) -> Sum:
        """Return the normal form of a term."""
        if (found := self._cache.get(term)) is None:
            t.require(time.thread_time() <= self.deadline, "a normal form in time")
            found = self._cache[term] = self._sum(term)
        return found

    def is_zero(self, term: t.Term) -> bool:
        """Return whether a term is zero wherever it is defined."""
        return not self.clear(self.sum(term))

    def _sum(self, term: t.Term) -> Sum:
        head = term[0]
        if head == "num":
            return _constant(term[1])
        if head in ("sym", "pi"):
            return _atom(term)
        if head == "add":
            return _collect(self.sum(part) for part in term[1:])
        if head == "mul":
            return reduce(self._times, (self.sum(part) for part in term[1:]))
        if head == "pow":
            return self._power_of(term[1], self._exponent(self.sum(term[2])))
        return self._function(head, [self.sum(part) for part in term[1:]])

    def _function(self, head: str, inner: list[Sum]) -> Sum:
        if head == "exp":
            return self._exponential(inner[0])
        if head == "log":
            return self._logarithm(inner[0])
        values = [_number(part) for part in inner]
        if head in ("max", "min"):
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                return _constant(max(known) if head == "max" else min(known))
            return self._extremum(head, inner)
        if head in _STEPS and values[0] is not None:
            return _constant(_STEPS[head](values[0]))
        if head in _AT_ZERO and values[0] == 0:
            return _constant(_AT_ZERO[head])
        return _atom((head, *(_frozen(part) for part in inner)))

    def _times(self, left: Sum, right: Sum) -> Sum:
        t.require(len(left) * len(right) <= MOST_TERMS, "a product with fewer terms")
        t.require(time.thread_time() <= self.deadline, "a product in time")
        return _collect(
            self._product(dict(a), b, x * y) for a, x in left.items() for b, y in right.items()
        )

    def _product(self, powers: dict[Atom, Exponent], right: Monomial, value: Fraction) -> Sum:
        for atom, exponent in right:
            powers[atom] = powers.get(atom, _ZERO) + exponent
        monomial, value = self._settled(powers, value)
        return {monomial: value}

    def _settled(
        self, powers: Mapping[Atom, Exponent], value: Fraction
    ) -> tuple[Monomial, Fraction]:
        """Move whole powers of primes into the coefficient, so that equal monomials look equal."""
        kept = {}
        for atom, exponent in powers.items():
            if atom[0] == "num":
                whole = _whole_part(exponent)
                short = abs(whole) * math.log10(atom[1]) <= MOST_DIGITS
                t.require(short, "a number with fewer digits")
                value *= Fraction(atom[1]) ** whole
                exponent = exponent - Fraction(whole)
            if exponent != 0:
                kept[atom] = exponent
        return frozenset(kept.items()), value

    def _power_of(self, base: t.Term, exponent: Exponent) -> Sum:
        """Return a power; factors of the base that are nonnegative get their own power."""
        if _is_whole(exponent) or base[0] not in ("mul", "pow"):
            return self._power(self.sum(base), exponent)
        rows = [(self.sum(part), e) for part, e in self.factors(base)]
        signs = [self.known_sign(part) for part, _ in rows]
        alone = all(sign in ("+", "0+") for sign in signs)
        outside: Sum = {_UNIT: _ONE}
        inside: Sum = {_UNIT: _ONE}
        for (part, e), sign in zip(rows, signs, strict=True):
            if sign == "+" or alone:
                outside = self._times(outside, self._power(part, e * exponent))
            else:
                inside = self._times(inside, self._power(part, e))
        return outside if alone else self._times(outside, self._power(inside, exponent))

    def factors(self, term: t.Term) -> list[tuple[t.Term, Exponent]]:
        """Return the factors of a term with their exponents; powers open on nonnegative bases."""
        if term[0] == "mul":
            return [pair for part in term[1:] for pair in self.factors(part)]
        if term[0] == "pow" and self.known_sign(self.sum(term[1])) in ("+", "0+"):
            e = self._exponent(self.sum(term[2]))
            return [(part, inner * e) for part, inner in self.factors(term[1])]
        return [(term, _ONE)]

    def _power(self, inner: Sum, exponent: Exponent) -> Sum:
        whole = _is_whole(exponent)
        if _is_whole(exponent) and 0 <= exponent <= HIGHEST:
            return reduce(self._times, [inner] * int(exponent), {_UNIT: _ONE})
        odd = _is_whole(exponent) and exponent % 2 == 1
        if not inner:
            t.require(
                isinstance(exponent, Fraction) and exponent > 0, "a power of what is not zero"
            )
            return {}
        if len(inner) > 1 and any(_is_whole(e) and e < 0 for m in inner for _, e in m):
            inner = self.clear(inner) or inner
        shared, size, rest = self._content(inner, whole)
        powers: dict[Atom, Exponent] = {atom: e * exponent for atom, e in shared}
        for prime, count in _primes(abs(size)).items():
            powers[prime] = powers.get(prime, _ZERO) + Fraction(count) * exponent
        sign = -1 if size < 0 and odd else 1
        if set(rest) != {_UNIT}:
            base, flipped = self._base(rest, whole)
            sign *= -1 if flipped and odd else 1
            powers[("sum", base)] = powers.get(("sum", base), _ZERO) + exponent
        monomial, value = self._settled(powers, Fraction(sign))
        return {monomial: value}

    def _base(self, rest: Sum, whole: bool) -> tuple[frozenset[Any], bool]:
        """Return a sum as the base of a power; with whole exponents its sign may be turned."""
        base, turned = _frozen(rest), _frozen({m: -v for m, v in rest.items()})
        if whole and base not in self._bases and turned in self._bases:
            return turned, True
        self._bases.add(base)
        return base, False

    def _content(self, total: Sum, whole: bool) -> tuple[Monomial, Fraction, Sum]:
        """Split off the monomial and the rational factor that all terms share.

        Only positive atoms leave a base with an exponent that is not whole. Nonnegative atoms leave
        it when nothing else is in the base, because a rest of unknown sign by itself would be
        undefined.
        """
        atoms = {atom for monomial in total for atom, _ in monomial}
        signs = {atom: self.atom_sign(atom) for atom in atoms} if not whole else {}
        alone = len(total) == 1 and all(sign != "?" for sign in signs.values())
        shared, size, (rest,) = self._common(
            [total], [atom for atom in atoms if whole or signs[atom] == "+" or alone]
        )
        if whole and len(total) == 1 and min(total.values()) < 0:
            return shared, -size, {monomial: -value for monomial, value in rest.items()}
        return shared, size, rest

    def _common(
        self, sums: Sequence[Sum], atoms: Iterable[Atom]
    ) -> tuple[Monomial, Fraction, list[Sum]]:
        """Divide sums by the powers of atoms and the positive number that all terms share."""
        terms = [dict(monomial) for total in sums for monomial in total]
        lowest = ((atom, _lowest([term.get(atom, _ZERO) for term in terms])) for atom in atoms)
        shared = frozenset((atom, exponent) for atom, exponent in lowest if exponent != 0)
        values = [abs(value) for total in sums for value in total.values()]
        top = math.gcd(*(value.numerator for value in values)) or 1
        size = Fraction(top, math.lcm(*(value.denominator for value in values)))
        inverse: Sum = {frozenset((atom, -e) for atom, e in shared): 1 / size}
        return shared, size, [self._times(total, inverse) for total in sums]

    def _exponential(self, inner: Sum) -> Sum:
        """Split exp(c log(a) + rest) into a**c exp(rest)."""
        powers: dict[Atom, Exponent] = {}
        rest: Sum = {}
        for monomial, value in self.clear(inner).items():
            logs = [a for a, e in monomial if a[0] == "logatom" and e == 1]
            if len(logs) == 1:
                others = frozenset(pair for pair in monomial if pair[0] != logs[0])
                _, atom, way = logs[0]
                share = self._exponent({others: value * way})
                powers[atom] = powers.get(atom, _ZERO) + share
            else:
                rest[monomial] = value
        if rest:
            powers[_E] = self._exponent(rest)
        monomial, value = self._settled(powers, _ONE)
        return {monomial: value}

    def _logarithm(self, inner: Sum) -> Sum:
        inner = self.clear(inner)
        t.require(inner, "a logarithm of what is not zero")
        shared, size, rest = self._content(inner, False)
        parts = [self._times(self._opened(e), self._log(atom)) for atom, e in shared]
        parts += [{m: Fraction(c) for m in self._log(p)} for p, c in _primes(size).items()]
        if set(rest) != {_UNIT}:
            parts.append(self._log(("sum", self._base(rest, False)[0])))
        return _collect(parts)

    def _log(self, atom: Atom) -> Sum:
        """Return the logarithm of an atom; for a symbol below 1, minus its inverse's logarithm."""
        way, _ = self.logs.get(atom[1], (1, "")) if atom[0] == "sym" else (1, "")
        if atom == _E:
            return {_UNIT: _ONE}
        return {frozenset({(("logatom", atom, way), _ONE)}): Fraction(way)}

    def _extremum(self, head: str, inner: Sequence[Sum]) -> Sum:
        """Take out the common factor of all arguments: max(a x, a y) = a max(x, y) for a > 0."""
        atoms = {atom for total in inner for monomial in total for atom, _ in monomial}
        positive = [atom for atom in atoms if self.atom_sign(atom) == "+"]
        shared, size, rest = self._common(inner, positive)
        reduced = list(dict.fromkeys(map(_frozen, rest)))
        if len(reduced) == 1:
            return self._times({shared: size}, dict(reduced[0]))
        self._arguments.setdefault(frozenset(reduced), reduced)
        return self._times({shared: size}, _atom((head, frozenset(reduced))))

    def _exponent(self, total: Sum) -> Exponent:
        rows = ((value, *(self._exponent_factor(*p) for p in m)) for m, value in total.items())
        return sum((reduce(operator.mul, row) for row in rows), _ZERO)

    def _exponent_factor(self, atom: Atom, e: Exponent) -> Exponent:
        if not _is_whole(e) or abs(e) > HIGHEST:
            return self._generator((atom, e))
        base = self._exponent(dict(atom[1])) if atom[0] == "sum" else self._generator((atom, _ONE))
        t.require(base != 0, "an exponent that does not divide by zero")
        result: Exponent = reduce(operator.mul, [base] * abs(int(e)), _ONE)
        return _ONE / result if e < 0 else result

    def _generator(self, key: Any) -> Exponent:
        return generator(self._generators.setdefault(key, len(self._generators)))

    def _opened(self, exponent: Exponent) -> Sum:
        """Return an exponent as a sum."""
        if isinstance(exponent, Fraction):
            return {_UNIT: exponent}
        parts = [self._polynomial(side) for side in (exponent.top, exponent.bottom)]
        return self._times(parts[0], self._power(parts[1], Fraction(-1)))

    def _polynomial(self, polynomial: Any) -> Sum:
        keys = list(self._generators)
        rows = []
        for counts, value in polynomial.to_dict().items():
            powers: dict[Atom, Exponent] = {}
            for (atom, e), count in zip(keys, counts, strict=False):
                powers[atom] = powers.get(atom, _ZERO) + e * Fraction(int(count))
            monomial, coefficient = self._settled(powers, Fraction(int(value.p), int(value.q)))
            rows.append({monomial: coefficient})
        return _collect(rows)

    def clear(self, total: Sum) -> Sum:
        """Bring sums over common denominators, and multiply out the remaining whole powers."""
        for _ in range(40):
            step = self._cleared_once(total)
            if step is None:
                return total
            total = step
        raise t.Undecided("a sum has too many denominators")

    def _cleared_once(self, total: Sum) -> Sum | None:
        atoms = {atom for monomial in total for atom, _ in monomial if atom[0] == "sum"}
        for atom in atoms:
            rows = [(dict(m).get(atom, _ZERO), m, v) for m, v in total.items()]
            parts = []
            moved = False
            for exponent, monomial, value in rows:
                lowest = _lowest([e for e, _, _ in rows if _is_whole(e - exponent)])
                if _is_whole(lowest) and lowest > 0 and _fraction(exponent) <= HIGHEST:
                    lowest = _ZERO
                steps = int(_fraction(exponent - lowest))
                rest = dict(monomial)
                rest[atom] = lowest
                settled, value = self._settled(rest, value)
                part: Sum = {settled: value}
                t.require(steps <= HIGHEST, "a power that can be multiplied out")
                parts.append(reduce(self._times, [dict(atom[1])] * steps, part))
                moved = moved or steps > 0
            if moved:
                return _collect(parts)
        return None

    def sign(self, total: Sum) -> str:
        """Return ``"+"``, ``"0+"`` or ``"0"`` when that is certain, else ``"?"``."""
        cleared = self.clear(total)
        if not cleared:
            return "0"
        groups: dict[Monomial, Sum] = {}
        for monomial, value in cleared.items():
            outer = frozenset(pair for pair in monomial if not self._is_number(*pair))
            groups.setdefault(outer, {})[monomial - outer] = value
        signs = []
        for outer, inner in groups.items():
            plain = set(inner) == {_UNIT}
            held = inner[_UNIT] > 0 if plain else _is_positive(self.term(inner))
            signs.append(self._monomial_sign(outer) if held else "?")
        if "?" in signs:
            return "?"
        return "+" if "+" in signs else "0+"

    def _monomial_sign(self, monomial: Monomial) -> str:
        signs = []
        for atom, exponent in monomial:
            sign = self.atom_sign(atom)
            if sign == "?" and _is_whole(exponent):
                sign = "0+" if _fraction(exponent) % 2 == 0 else "?"
            elif sign == "?":
                sign = "0+"  # a base with a fractional exponent is nonnegative where it is defined
            signs.append(sign)
        return "?" if "?" in signs else "0+" if "0+" in signs else "+"

    def atom_sign(self, atom: Atom) -> str:
        """Return ``"+"``, ``"0+"`` or ``"?"`` for an atom."""
        head = atom[0]
        if head == "sym":
            return self.signs.get(atom[1], "?")
        if head in ("num", "e", "pi", "exp", "erfc", "gamma", "uppergamma"):
            return "+"
        if head == "abs":
            return "0+"
        if head == "logatom":
            known = self.logs.get(atom[1][1], (1, "?"))[1] if atom[1][0] == "sym" else "?"
            return "+" if atom[1][0] == "num" else known
        if atom in self._asking:
            return "?"
        self._asking.add(atom)
        try:
            return self._compound_sign(atom)
        finally:
            self._asking.discard(atom)

    def _compound_sign(self, atom: Atom) -> str:
        head = atom[0]
        if head in ("max", "min"):
            signs = {self.known_sign(dict(part)) for part in atom[1]}
            if head == "max" and "+" in signs:
                return "+"
            if head == "max":
                return "0+" if signs - {"?"} else "?"
            return "?" if "?" in signs else "+" if signs == {"+"} else "0+"
        if head == "sum":
            sign = self.known_sign(dict(atom[1]))
            return "?" if sign == "0" else sign
        if head in ("floor", "ceiling"):
            sign = self.known_sign(dict(atom[1]))
            return sign if head == "ceiling" and sign == "+" else "?" if sign == "?" else "0+"
        return "?"

    def known_sign(self, total: Sum) -> str:
        """Return a sign from the terms, or from one fact and the remaining terms."""
        found = self.sign(total)
        if found != "?":
            return found
        best = "?"
        for fact, strict in self.facts:
            for scale in self._scales(total, fact):
                rest = self.sign(_collect([total, {m: -v * scale for m, v in fact.items()}]))
                if rest != "?":
                    if strict or rest == "+":
                        return "+"
                    best = "0+"
        return best

    def _scales(self, total: Sum, fact: Sum) -> Iterable[Fraction]:
        """Return the multiples of a fact that cancel a negative term."""
        ratios = {total[m] / v for m, v in fact.items() if v < 0 and total.get(m, _ZERO) < 0}
        ratios |= {_ONE} if not ratios and fact else set()
        return sorted(ratios)[-3:]

    def _is_number(self, atom: Atom, exponent: Exponent) -> bool:
        """Return whether a power of an atom has no symbols."""
        key = (atom, exponent)
        if key not in self._numbers:
            self._numbers[key] = not t.symbols(self.factor_term(atom, exponent))
        return self._numbers[key]

    def term(self, total: Sum) -> t.Term:
        """Return a term with this normal form."""
        rows = []
        for monomial, value in total.items():
            factors = (self.factor_term(a, e) for a, e in monomial)
            rows.append(t.times(t.number(value), *factors))
        return t.plus(*rows)

    def factor_term(self, atom: Atom, exponent: Exponent) -> t.Term:
        """Return a power of an atom as a term."""
        inner = self.exponent_term(exponent)
        return ("exp", inner) if atom == _E else t.power(self.atom_term(atom), inner)

    def exponent_term(self, exponent: Exponent) -> t.Term:
        """Return an exponent as a term."""
        return self.term(self._opened(exponent))

    def atom_term(self, atom: Atom) -> t.Term:
        """Return an atom as a term."""
        head = atom[0]
        if head in ("sym", "pi"):
            return atom
        if head == "num":
            return t.number(atom[1])
        if head == "e":
            return ("exp", t.number(1))
        if head == "logatom":
            base = self.atom_term(atom[1])
            return ("log", base if atom[2] == 1 else t.power(base, t.number(-1)))
        if head == "sum":
            return self.term(dict(atom[1]))
        parts: Any = atom[1:]
        if head in ("max", "min"):
            parts = self._arguments.get(atom[1], atom[1])
        return (head, *(self.term(dict(part)) for part in parts))


def exact(term: t.Term, point: Mapping[str, Fraction]) -> Fraction | None:
    """Return the value of a term at an exact point, if it is known to be a rational number."""
    values = {name: t.number(value) for name, value in point.items()}
    try:
        balls.at(term, balls.balls_of(point))  # a term without a value has a normal form
        forms = Normal({})
        return _number(forms.clear(forms.sum(t.substitute(term, values))))
    except t.Undecided:
        return None


def sign_at(term: t.Term, point: Mapping[str, Fraction]) -> int | None:
    """Return the certain sign of a term at an exact point; zero only when exactly zero."""
    try:
        ball = balls.at(term, balls.balls_of(point))
    except t.Undecided:
        return None
    if ball > 0 or ball < 0:
        return 1 if ball > 0 else -1
    found = exact(term, point)
    return None if found is None else int(found > 0) - int(found < 0)


def _is_positive(term: t.Term) -> bool:
    """Return whether a ball shows that a term without symbols is positive."""
    try:
        return bool(balls.value(term, {}) > 0)
    except t.Undecided:
        return False


def _number(total: Sum) -> Fraction | None:
    """Return a sum as a number, if it is one."""
    return total.get(_UNIT, _ZERO) if total.keys() <= {_UNIT} else None


def _constant(value: Any) -> Sum:
    return {_UNIT: Fraction(value)} if value else {}


def _atom(atom: Atom) -> Sum:
    return {frozenset({(atom, _ONE)}): _ONE}


def _frozen(total: Sum) -> frozenset[Any]:
    return frozenset(total.items())


def _collect(parts: Iterable[Sum]) -> Sum:
    total: Sum = {}
    for part in parts:
        for monomial, value in part.items():
            total[monomial] = total.get(monomial, _ZERO) + value
    t.require(len(total) <= MOST_TERMS, "a sum with fewer terms")
    return {monomial: value for monomial, value in total.items() if value}


def _fraction(exponent: Exponent) -> Fraction:
    t.require(isinstance(exponent, Fraction), "an exponent that is a number")
    return cast(Fraction, exponent)


def _is_whole(exponent: Exponent) -> TypeGuard[Fraction]:
    return isinstance(exponent, Fraction) and exponent.denominator == 1


def _whole_part(exponent: Exponent) -> int:
    """Return the whole number that a numeric exponent, or the constant term of one, contains."""
    if isinstance(exponent, Fraction):
        return math.floor(exponent)
    if not exponent.bottom.is_constant():
        return 0
    constant = exponent.top.to_dict().get((0,) * exponent.top.context().nvars(), flint.fmpq(0))
    return int(constant.p) // int(constant.q)


def _lowest(powers: Sequence[Exponent]) -> Exponent:
    """Return the smallest exponent when all differ by numbers, else zero."""
    steps = [e - powers[0] for e in powers]
    if any(isinstance(step, Ratio) for step in steps):
        return Fraction(0)
    return powers[0] + min(_fraction(step) for step in steps)


def _primes(value: Fraction) -> dict[Atom, int]:
    factors: dict[Atom, int] = {}
    for part, sign in ((value.numerator, 1), (value.denominator, -1)):
        for prime, count in flint.fmpz(part).factor(trial_limit=LARGEST_PRIME):
            factors[("num", int(prime))] = factors.get(("num", int(prime)), 0) + sign * count
    return factors
