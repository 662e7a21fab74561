"""Identities: find out whether a term vanishes, and how its parts are rewritten to show it.

Generators are symbols, logarithms, exponentials, functions that stay closed, and roots. A power
whose exponent is not whole is the exponential of the exponent times the logarithm of its base, and
logarithms are opened into those of factors that are known to be positive. What is found is written
down as replacements, each of which the kernel checks.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> known = Context({"x", "y"}, [(parse("x"), True), (parse("y"), True)])
>>> root, other = parse("sqrt(4*x**2*y)"), parse("2*x*sqrt(y)")
>>> equals(known, root, other)["by"][0][0] == encode(root)
True
>>> equals(Context({"x", "y"}), root, other)
Traceback (most recent call last):
    ...
dpcal.calibrate.papers.kernel.terms.Undecided: no identity between sqrt(4*x**2*y) and 2*x*sqrt(y)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import flint

from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.kernel.rings import Form, Ring, exact
from dpcal.calibrate.papers.kernel.rules import Context, check, same
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    Undecided,
    encode,
    minus,
    number,
    plus,
    power,
    replace,
    require,
    subterms,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.papers.search.limits import LIMITS

__all__ = ["equals"]

LARGEST_FACTORED = 10**24  # larger numbers are not split into primes; they stay whole

Key = tuple[Any, ...]  # what a generator stands for
Counts = dict[Key, Fraction]  # exponents of keys in a product


class _FinerError(Exception):
    """A root with a larger denominator is needed; everything starts again with it."""


class Forms(Ring):
    """Quotients of polynomials, in generators that do not depend on how a term is written.

    Parameters
    ----------
    facts
        What is known about signs.
    bases
        Terms that are known to be positive; they are taken out of the bases of powers.
    """

    def __init__(self, facts: Context, bases: Sequence[Term] = ()) -> None:
        super().__init__(lambda term: facts.sign(term) == 2, facts.deadline)
        self.sign, self.bases = facts.sign, bases
        self._finest: dict[Key, int] = {}  # the N of roots
        self._start()

    def _start(self) -> None:
        self._forms: dict[Term, Form] = {}
        self._index: dict[Key, int] = {}
        self._signs: dict[int, int] = {}
        self._relations: dict[int, Any] = {}
        self._factors: dict[Key, Any] = {}  # polynomials under logarithms
        self._functions: list[tuple[Term, list[Form], Key]] = []
        self._exponents: list[tuple[Key, Form]] = []
        self._sums: dict[Any, Term] = {}  # sums as they are written, by their polynomials
        self.products: dict[Term, Counts] = {}  # of powers and exponentials
        self.opened: dict[Term, Counts] = {}  # what is under a logarithm
        self.alike: dict[Term, Term] = {}  # functions of equal arguments
        self.origins: dict[Key, tuple[Term, Counts, int]] = {}  # a base, and what was taken out

    def is_zero(self, term: Term) -> bool:
        """Return whether a term, which must be defined, is certainly zero."""
        for base, exponent in (part[1:] for part in subterms(term) if part[0] == "pow"):
            if exponent[0] == "num":  # a guess that saves restarts
                for key in map(symbol, symbols(base)):
                    self._finest[key] = math.lcm(self._finest.get(key, 1), exponent[1].denominator)
        for _ in range(LIMITS.restarts):
            try:
                self._start()
                for base in self.bases:
                    self._log_of_base(base)
                return bool(self._reduced(self.form(term)[0]) == 0)
            except _FinerError:
                continue
        raise Undecided("powers with too many different denominators")

    # ------------------------------------------------------------------------------ terms to forms

    def form(self, term: Term) -> Form:
        """Return a term as a quotient of polynomials."""
        if term[0] in ("sym", "pi"):
            return self._atom(term, self.sign(term))
        if term[0] == "add":
            form = super().form(term)
            if form[1].is_constant() and len(form[0]) > 1:
                self._sums.setdefault(*_monic(form[0], term))
            return form
        if term[0] in ("num", "mul"):
            return super().form(term)
        if term not in self._forms:
            self._forms[term] = self._form(term)
        return self._forms[term]

    def _form(self, term: Term) -> Form:
        head = term[0]
        if head == "pow":
            return self._power_of(term, term[1], self.form(term[2]))
        parts = [self.form(part) for part in term[1:]]
        if head == "exp":
            return self._exp(parts[0], term)
        if head == "log":
            return self._log_of_base(term[1])
        value = exact(term, {})
        if value is not None:
            return self._constant(value)
        for known, others, key in self._functions:
            same_kind = known[0] == head and len(parts) == len(others)
            if same_kind and all(map(self._equal, parts, others)):
                self.alike[term] = known
                return self._atom(key)
        key = ("function", term)
        self._functions.append((term, parts, key))
        return self._atom(key, self.sign(term))

    def _constant(self, value: Any) -> Form:
        return super().form(number(value))

    def _named(self, key: Key, sign: int = 0) -> Any:
        """Return the generator of a key, which has a sign."""
        generator = self._generator(key)
        index = self._index[key]
        self._signs[index] = max(sign, self._signs.get(index, 0))
        return generator

    def _atom(self, key: Key, sign: int = 0) -> Form:
        return self._named(key, sign) ** self._finest.get(key, 1), self._constant(1)[0]

    def _equal(self, left: Form, right: Form) -> bool:
        top = self._product(left[0], right[1]) - self._product(right[0], left[1])
        return bool(self._reduced(top) == 0)

    def _power_of(self, term: Term, base: Term, exponent: Form) -> Form:
        positive = True
        if all(side.is_constant() for side in exponent):
            value = value_of(exponent)
            if value.denominator == 1:
                return self._whole_power(self.form(base), int(value))
            positive = value < 0 or self.sign(base) == 2
        return self._exp(self._mul(exponent, self._log_of_base(base, positive)), term)

    # ----------------------------------------------------------------- logarithms and exponentials

    def _log_of_base(self, base: Term, positive: bool = True) -> Form:
        """Return the logarithm of a positive form, or of a nonnegative base of a power."""
        form, rests = self.form(base), []
        counts: Counts = {}
        for side, sign in zip(form, (1, -1), strict=True):
            rest, keys = self._opened(self._reduced(side), positive)
            rests.append(rest)
            for key, count in keys.items():
                counts[key] = counts.get(key, Fraction(0)) + sign * count
        top, bottom = rests
        if not bottom.is_constant() and not (top.is_constant() and positive):
            raise Undecided("a base whose denominator has no known sign")
        rest = top * bottom  # one of them is 1 or -1
        if rest.is_constant():
            require(rest == 1, "a base that is positive")
        else:
            same_ = (k for k, known in self._factors.items() if self._reduced(known - rest) == 0)
            key = next(same_, ("base", len(self._factors), positive))
            sign = 1 if bottom.is_constant() else -1
            if key not in self._factors:
                self.origins[key] = base, {k: -sign * c for k, c in counts.items()}, sign
            self._factors[key] = rest
            counts[key] = counts.get(key, Fraction(0)) + sign
        self.opened[base] = counts
        total = self._constant(0)
        for key, count in counts.items():
            total = self._add(total, self._mul(self._log_of(key), self._constant(count)))
        return total

    def _opened(self, side: Any, positive: bool) -> tuple[Any, Counts]:
        """Take out primes, generators that are positive, and bases that are known."""
        require(side != 0, "a base that is not zero")
        values, keys = numbers_of(side), {}
        size = Fraction(
            math.gcd(*(value.numerator for value in values)),
            math.lcm(*(value.denominator for value in values)),
        )
        for value, sign in ((size.numerator, 1), (size.denominator, -1)):
            whole = value > LARGEST_FACTORED
            for prime, count in [(value, 1)] if whole else flint.fmpz(value).factor():
                keys[("num", Fraction(int(prime)))] = Fraction(sign * int(count))
        rest = side / self._constant(size)[0]
        lowest = [int(min(powers)) for powers in zip(*rest.monoms(), strict=True)]
        found = {key: lowest[index] for key, index in self._index.items() if lowest[index]}
        alone = len(rest) == 1 and all(self._signs[self._index[key]] for key in found)
        for key, count in found.items():
            if alone or self._signs[self._index[key]] == 2:
                rest = rest / self._generator(key) ** count
                inner = key[1] if key[0] == "root" else key
                keys[inner] = keys.get(inner, 0) + Fraction(count, self._finest.get(inner, 1))
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

    def _exp(self, form: Form, term: Term) -> Form:
        """Return the exponential as a product of roots; exponents are rational combinations."""
        found = self._combination(form)
        if found is None:
            for monomial in form[0].monoms():
                piece = self._quotient(self._monomial(monomial), form[1])
                if self._combination(piece) is None:
                    self._exponents.append((("exp", len(self._exponents)), piece))
            found = self._combination(form) or {}
        self.products[term] = found
        result = self._constant(1)
        for key, count in found.items():
            result = self._mul(result, self._root(key, count))
        return result

    def _monomial(self, powers: Any) -> Any:
        return self._constant(1)[0].context().from_dict({powers: 1})

    def _combination(self, form: Form) -> Counts | None:
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
        finest, one = self._finest.get(key, 1), self._constant(1)[0]
        if (count * finest).denominator != 1:
            self._finest[key] = math.lcm(finest, count.denominator)
            raise _FinerError
        whole = int(count * finest)
        if key[0] not in ("num", "base"):
            return self._whole_power((self._named(key, 2 * (key[0] == "exp")), one), whole)
        base = self._constant(key[1])[0] if key[0] == "num" else self._factors[key]
        if finest == 1:
            return self._whole_power((base, one), whole)
        generator = self._named(("root", key), 2 if key[-1] is True or key[0] == "num" else 1)
        self._relations[self._index["root", key]] = generator**finest - base
        return self._whole_power((generator, one), whole)

    # ------------------------------------------------------------------------------ forms to terms

    def term_of(self, form: Form) -> Term:
        """Return the term of a quotient of polynomials."""
        tops = [self._sum_of(side) for side in form]
        return tops[0] if tops[1] == ONE else times(tops[0], power(tops[1], number(-1)))

    def _sum_of(self, polynomial: Any) -> Term:
        known = self._sums.get(_monic(polynomial, ONE)[0])
        if known is not None:
            ratio = self.form(known)[0].leading_coefficient() / polynomial.leading_coefficient()
            return times(number(Fraction(int(ratio.q), int(ratio.p))), known)
        keys = {index: key for key, index in self._index.items()}
        rows = []
        for powers, value in polynomial.to_dict().items():
            factors = [number(Fraction(int(value.p), int(value.q)))]
            for index, count in enumerate(map(int, powers)):
                if count:
                    key = keys[index]
                    inner = key[1] if key[0] == "root" else key
                    factors.append(self._factor(inner, Fraction(count, self._finest.get(inner, 1))))
            rows.append(times(*factors))
        return plus(*rows)

    def _factor(self, key: Key, count: Fraction) -> Term:
        """Return a power of the value of a key, by its finest root."""
        finest = self._finest.get(key, 1)
        if key[0] == "exp":
            piece = times(number(Fraction(1, finest)), self.term_of(dict(self._exponents)[key]))
            return power(("exp", piece), number(count * finest))
        base = self.base_of(key)
        if count.denominator == 1:
            return power(base, number(count))
        return power(power(base, number(Fraction(1, finest))), number(count * finest))

    def base_of(self, key: Key) -> Term:
        """Return the value of a key."""
        if key[0] in ("sym", "pi", "num"):
            return key
        if key[0] == "function":
            return Term(key[1])
        if key[0] == "log":
            return ("log", self.base_of(key[1]))
        return self._sum_of(self._factors[key])

    def product_of(self, counts: Counts) -> Term:
        """Return the product of powers of keys."""
        return times(*(self._factor(key, count) for key, count in counts.items()))


def _monic(polynomial: Any, term: Term) -> tuple[Any, Term]:
    """Return a key of a polynomial up to a factor, and the term of which it is the form."""
    monic = polynomial / polynomial.leading_coefficient()
    return tuple(sorted((tuple(map(int, m)), str(v)) for m, v in monic.to_dict().items())), term


def value_of(form: Form) -> Fraction:
    """Return a form that is constant as a number."""
    return sum(numbers_of(form[0]), Fraction(0)) / numbers_of(form[1])[0]


def numbers_of(polynomial: Any) -> list[Fraction]:
    """Return the coefficients of a polynomial."""
    return [Fraction(int(c.p), int(c.q)) for c in polynomial.coeffs()]


# ------------------------------------------------------------------------------------ certificates


class _Writer:
    """Replacements that bring a term to the generators of its forms, and their lemmas."""

    def __init__(self, facts: Context, forms: Forms) -> None:
        self.facts, self.forms = facts, forms
        self.rows: list[tuple[Term, Term]] = []
        self.lemmas: list[Any] = []

    def now(self, term: Term) -> Term:
        """Return a term after the replacements so far."""
        for old, new in self.rows:
            term = replace(term, {old: new})
        return term

    def replaced(self, old: Term, new: Term) -> bool:
        """Add a replacement that the kernel accepts; return whether it does."""
        if old == new:
            return True
        try:
            same(self.facts, old, new)
        except Undecided:
            return False
        self.rows.append((old, new))
        return True

    def write(self, term: Term) -> None:
        """Rewrite all parts of a term, inner ones first."""
        for part in term[1:] if term[0] not in ("num", "sym") else ():
            self.write(part)
        forms = self.forms
        if term in forms.products:
            self._signed(forms.products[term])
            new = self.now(forms.product_of(forms.products[term]))
            base = term[1]
            if term[0] == "pow":
                self._plainly(self.now(base), base)
                if term[2][0] != "num":
                    self._strictly(base)
            if not self.replaced(self.now(term), new) and term[0] == "pow":
                self._opened(base)
                require(self.replaced(self.now(term), new), "a power that is rewritten")
        elif term[0] == "log":
            self._opened(term[1])
        elif term in forms.alike:
            for pair in zip(term[1:], forms.alike[term][1:], strict=True):
                old, new = pair[::-1] if pair[0][0] == "num" else pair  # a number stays
                require(self.replaced(self.now(old), self.now(new)), "an equal argument")

    def _opened(self, base: Term) -> None:
        """Write a base as a product, where a logarithm needs it."""
        counts = self.forms.opened[base]
        self._signed(counts)
        self.replaced(self.now(base), self.now(self.forms.product_of(counts)))

    def _signed(self, counts: Counts) -> None:
        """Add the lemmas that make bases plainly positive, or nonnegative."""
        for key in counts:
            if key[0] != "base" or self.facts.is_at_least(self.forms.base_of(key), key[-1]):
                continue
            base, taken, sign = self.forms.origins[key]
            for other in taken:
                require(other != key, "a base of its own")
            self._signed(taken)
            form = times(self.forms.product_of(taken), power(base, number(sign)))
            self._have(self.forms.base_of(key), key[-1], form)

    def _strictly(self, base: Term) -> None:
        """Show that a key is positive if its product with positive keys is positive."""
        counts = self.forms.opened[base]
        for key, count in counts.items():
            inner = self.forms.base_of(key) if key[0] == "base" else ONE
            if not self.facts.is_at_least(inner, True):
                image = self.now(self.forms.product_of({key: count}))
                others = {other: -c for other, c in counts.items() if other != key}
                self._have(image, True, times(self.forms.product_of(others), base))
                self._have(inner, True, power(image, number(1 / count)))

    def _plainly(self, term: Term, original: Term) -> None:
        """Keep the sign of a base that has been rewritten."""
        if term != original and not self.facts.is_at_least(term, self.facts.sign(original) == 2):
            self._have(term, self.facts.sign(original) == 2, original)

    def _have(self, term: Term, strict: bool, form: Term) -> None:
        inner = _Writer(self.facts, self.forms)
        inner.rows = list(self.rows)
        step = {"rule": "plain", "as": encode(form), **inner.rows_written()}
        check(self.facts, term, strict, step)
        self.lemmas.append([encode(term), strict, step])
        self.facts = self.facts.extended((term, strict))

    def rows_written(self) -> dict[str, Any]:
        """Return the replacements as a part of a step."""
        return {"by": [[encode(a), encode(b)] for a, b in self.rows]} if self.rows else {}


def equals(facts: Context, goal: Term, form: Term) -> dict[str, Any]:
    """Return a plain step that puts a form in place of the goal.

    Raises
    ------
    Undecided
        If no identity between them is found.
    """
    if goal == form:
        return {"rule": "plain"}
    gap = minus(goal, form)
    try:
        if facts.ring().is_zero(gap):
            return {"rule": "plain", "as": encode(form)}
    except Undecided:
        pass
    named = {base: None for base, strict in facts.facts.items() if strict and len(base) > 2}
    sums = {part: None for part in subterms(gap) if part[0] == "add"}
    found = [base for base in {**named, **sums} if facts.is_at_least(base, True)]
    bases: Sequence[Term]
    for bases in ((), [base for base in found if symbols(base) <= symbols(gap)]):
        try:
            forms = Forms(facts, bases)
            if forms.is_zero(gap):
                writer = _Writer(facts, forms)
                writer.write(gap)
                have = {"have": writer.lemmas} if writer.lemmas else {}
                return {**have, "rule": "plain", "as": encode(form), **writer.rows_written()}
        except Undecided:
            continue
    raise Undecided(f"no identity between {show(goal):.200} and {show(form):.200}")
