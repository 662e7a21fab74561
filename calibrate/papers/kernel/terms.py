"""Formulas as nested tuples, never simplified, so that the written formula is checked.

A term is ``("num", Fraction)``, ``("sym", name)``, ``("add", ...)``, ``("mul", ...)``,
``("pow", base, exponent)``, ``("pi",)``, or a function's name followed by its arguments.

>>> difference(power(symbol("x"), number(2)), "x")
('mul', ('num', Fraction(2, 1)), ('sym', 'x'))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

Term = tuple[Any, ...]

_UNARY = ("exp", "log", "abs", "floor", "ceiling", "erf", "erfc", "sin", "cos", "gamma")
ARITY: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("add", "mul"), (1, 400)),
    **dict.fromkeys(("max", "min"), (1, 20)),
    **dict.fromkeys(("pow", "uppergamma"), (2, 2)),
    **dict.fromkeys(_UNARY, (1, 1)),
    "pi": (0, 0),
}
DEEPEST = 60  # levels of a term or a proof, within the limit of Python's stack
LONGEST = 400
MOST_PARTS = 60_000  # parts of a term; a copy counts again, since rules look at each copy
MOST_DERIVED = 2_000  # parts of a term with a derivative, which has at most their square


class Undecided(ArithmeticError):  # noqa: N818
    """A rule does not apply, a value is not enclosed well enough, or a limit is reached."""


def require(held: Any, what: str) -> None:
    """Raise Undecided, with the condition that does not hold."""
    if not held:
        raise Undecided(what)


def number(value: Any) -> Term:
    """Return a rational number as a term."""
    return ("num", Fraction(value))


ZERO, ONE = number(0), number(1)


def symbol(name: str) -> Term:
    """Return a symbol."""
    return ("sym", name)


def plus(*parts: Term) -> Term:
    """Return a sum; zeros are left out."""
    kept = [part for part in parts if part != ZERO]
    return kept[0] if len(kept) == 1 else ("add", *kept) if kept else ZERO


def times(*parts: Term) -> Term:
    """Return a product; ones are left out."""
    if ZERO in parts and all(part[0] == "num" for part in parts):
        return ZERO
    kept = [part for part in parts if part != ONE]
    return kept[0] if len(kept) == 1 else ("mul", *kept) if kept else ONE


def power(base: Term, exponent: Term) -> Term:
    """Return a power; the first power is the base."""
    return base if exponent == ONE else ("pow", base, exponent)


def negative(term: Term) -> Term:
    """Return minus a term."""
    return ("num", -term[1]) if term[0] == "num" else ("mul", number(-1), term)


def minus(left: Term, right: Term) -> Term:
    """Return a difference."""
    return plus(left, negative(right))


def over(top: Term, bottom: Term) -> Term:
    """Return a quotient."""
    return times(top, ("pow", bottom, number(-1)))


def require_small(term: Term, most: int = MOST_PARTS) -> Term:
    """Return a term, or raise Undecided if it has too many parts."""
    count, pending = 0, [term]
    while pending:
        part = pending.pop()
        count += 1
        require(count <= most, "a term with fewer parts")
        pending += part[1:] if part[0] not in ("num", "sym") else ()
    return term


def subterms(term: Term) -> Iterator[Term]:
    """Yield a term and all its parts."""
    yield term
    if term[0] not in ("num", "sym"):
        for part in term[1:]:
            yield from subterms(part)


def symbols(term: Term) -> set[str]:
    """Return the names of the symbols of a term."""
    if term[0] in ("num", "sym"):
        return {term[1]} if term[0] == "sym" else set()
    return set().union(*map(symbols, term[1:]))


def replace(term: Term, table: Mapping[Term, Term]) -> Term:
    """Return the term with whole subterms replaced, all at once."""
    return require_small(_replace(term, table))


def _replace(term: Term, table: Mapping[Term, Term]) -> Term:
    for old, new in table.items():  # compared and not hashed, which takes longer for large terms
        if term == old:
            return new
    if term[0] in ("num", "sym"):
        return term
    return (term[0], *(_replace(part, table) for part in term[1:]))


def substitute(term: Term, table: Mapping[str, Term]) -> Term:
    """Return the term with symbols replaced, all at once."""
    return replace(term, {symbol(name): value for name, value in table.items()})


def encode(term: Term) -> list[Any]:
    """Return a term as nested lists of strings."""
    if term[0] in ("num", "sym"):
        return [term[0], str(term[1])]
    return [term[0], *(encode(part) for part in term[1:])]


def decode(document: Any, depth: int = 0) -> Term:
    """Return the term of :func:`encode`; a document that is not a term raises Undecided."""
    if depth > DEEPEST or not isinstance(document, list) or not document:
        raise Undecided(
            f"a term must be a short list that starts with a name, got {document!r:.60}."
        )
    head, *rest = document
    if head == "num" and len(rest) == 1 and _is_fraction(rest[0]):
        return number(rest[0])
    if head == "sym" and len(rest) == 1 and isinstance(rest[0], str) and rest[0].isidentifier():
        return symbol(rest[0])
    low, high = ARITY.get(head, (1, 0)) if isinstance(head, str) else (1, 0)
    if not low <= len(rest) <= high:
        raise Undecided(f"a term must use known functions, got {document!r:.60}.")
    term = (head, *(decode(part, depth + 1) for part in rest))
    return term if depth else require_small(term)


def _is_fraction(text: Any) -> bool:
    short = isinstance(text, str) and len(text) <= LONGEST
    return short and re.fullmatch("-?[0-9]+(/0*[1-9][0-9]*)?", text) is not None


_SLOPES: dict[str, Callable[[Term], Term]] = {
    "exp": lambda a: ("exp", a),
    "log": lambda a: ("pow", a, number(-1)),
    "sin": lambda a: ("cos", a),
    "cos": lambda a: negative(("sin", a)),
    "erf": lambda a: _bell(a, 2),
    "erfc": lambda a: _bell(a, -2),
}


def _bell(argument: Term, factor: int) -> Term:
    bell = ("exp", negative(power(argument, number(2))))
    return times(number(factor), bell, ("pow", ("pi",), number(Fraction(-1, 2))))


def difference(term: Term, name: str) -> Term:
    """Return the derivative with respect to a symbol."""
    return require_small(_difference(require_small(term, MOST_DERIVED), name))


def _difference(term: Term, name: str) -> Term:
    if name not in symbols(term):
        return ZERO
    head, *parts = term
    if head == "sym":
        return ONE
    if head == "add":
        return plus(*(_difference(part, name) for part in parts))
    if head == "mul":
        rows = ((k, _difference(part, name)) for k, part in enumerate(parts))
        return plus(*(times(*parts[:k], d, *parts[k + 1 :]) for k, d in rows if d != ZERO))
    if head == "pow":
        base, exponent = parts
        if name not in symbols(exponent):
            lower = number(exponent[1] - 1) if exponent[0] == "num" else minus(exponent, ONE)
            return times(exponent, power(base, lower), _difference(base, name))
        return times(term, _difference(times(exponent, ("log", base)), name))
    if head in _SLOPES:
        return times(_SLOPES[head](parts[0]), _difference(parts[0], name))
    raise Undecided(f"no derivative of {head} is known.")
