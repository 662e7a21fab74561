"""Ranges of symbols, and inequalities between formulas.

>>> Range.parse("[1, 2)")
Range(low=Fraction(1, 1), high=Fraction(2, 1), open_low=False, open_high=True, whole=False)
>>> relations("x + 1 > y")[0].text()
'y < x + 1'
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import sympy

from dpcal.calibrate.papers.claims.formulas import relation, show, term_of
from dpcal.calibrate.papers.kernel.terms import Term, minus, number

__all__ = [
    "POSITIVE",
    "Goal",
    "Range",
    "Relation",
    "Replace",
    "assignments",
    "end_of_range",
    "positive_symbols",
    "relations",
    "top_level",
]

Replace = Callable[[Term], Term]


class Goal(NamedTuple):
    """``left relation right``, where the relation is ``<=``, ``<`` or ``=``."""

    left: Term
    relation: str
    right: Term


class Range(NamedTuple):
    """The values that a symbol may take; an end that is None is infinite."""

    low: Fraction | None = None
    high: Fraction | None = None
    open_low: bool = False
    open_high: bool = False
    whole: bool = False

    def meet(self, other: Range) -> Range:
        """Return the values that both ranges allow."""
        low, open_low = _tighter(
            (self.low, self.open_low), (other.low, other.open_low), lambda a, b: a > b
        )
        high, open_high = _tighter(
            (self.high, self.open_high), (other.high, other.open_high), lambda a, b: a < b
        )
        return Range(low, high, open_low, open_high, self.whole or other.whole)

    def facts(self, x: Term) -> list[tuple[Term, bool]]:
        """Return the terms that are nonnegative, or positive where the flag is set, for a term."""
        found = []
        if self.low is not None:
            found.append((minus(x, number(self.low)), self.open_low))
            if self.low > 0:
                found.append((x, True))
        if self.high is not None:
            found.append((minus(number(self.high), x), self.open_high))
        return found

    @classmethod
    @functools.cache
    def parse(cls, text: str, whole: bool = False) -> Range:
        """Read an interval such as ``"[1, 2]"``, ``"(0, 1)"`` or ``"(0, oo)"``."""
        found = re.fullmatch(r"\s*([\[(])\s*([^,]+?)\s*,\s*([^,]+?)\s*([\])])\s*", text)
        if found is None:
            raise ValueError(f"range must be an interval such as '[1, 2]', got {text!r}.")
        left, low, high, right = found.groups()
        return cls(end_of_range(low), end_of_range(high), left == "(", right == ")", whole)


POSITIVE = Range(Fraction(0), None, True)


def _tighter(
    one: tuple[Fraction | None, bool], other: tuple[Fraction | None, bool], above: Any
) -> tuple[Fraction | None, bool]:
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    if one[0] == other[0]:
        return one[0], one[1] or other[1]
    return one if above(one[0], other[0]) else other


def end_of_range(value: Any) -> Fraction | None:
    """Return the end of a range: a rational number, or None for an infinite one."""
    if value is None or str(value) in ("oo", "-oo"):
        return None
    if isinstance(value, str):
        try:
            return Fraction(value.replace(" ", ""))
        except ValueError as error:
            raise ValueError(
                f"end of a range must be a number such as 1/100 or oo, got {value!r}."
            ) from error
    expression = sympy.sympify(value)
    if not expression.is_Rational:
        raise ValueError(f"end of a range must be a rational number or oo, got {value!r}.")
    return Fraction(int(expression.p), int(expression.q))


class Relation(NamedTuple):
    """``small <= large``, or ``small < large`` when strict."""

    small: Term
    large: Term
    strict: bool = False

    def map(self, change: Replace) -> Relation:
        """Return the relation with both sides changed."""
        return Relation(change(self.small), change(self.large), self.strict)

    def text(self) -> str:
        """Return the relation as text."""
        return f"{show(self.small)} {'<' if self.strict else '<='} {show(self.large)}"


def top_level(text: str) -> list[str]:
    """Return the parts of a text between commas that stand in no bracket."""
    parts, depth = [""], 0
    for mark in text:
        depth += (mark in "([") - (mark in ")]")
        if mark == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    return [part.strip() for part in parts]


def assignments(values: Any) -> Mapping[Any, Any]:
    """Return values as a mapping; text such as ``"x = 1, y = 2*n"`` is taken apart."""
    if not isinstance(values, str):
        return dict(values)
    pairs = [part.partition("=") for part in top_level(values)]
    for name, mark, value in pairs:
        if not (mark and name.strip().isidentifier() and value.strip()):
            raise ValueError(f"values must be text such as 'x = 1, y = 2', got {values!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _chain(text: str) -> list[Relation]:
    """Return ``a <= b < c`` as two relations."""
    sides = re.split(r"(<=|<|>=|>)", text)
    if len(sides) < 3:
        raise ValueError(f"condition must be built from <= and <, got {text!r}.")
    found = []
    for k in range(0, len(sides) - 2, 2):
        left, mark, right = relation("".join(sides[k : k + 3]))
        found.append(Relation(left, right, mark == "<"))
    return found


def relations(condition: Any) -> list[Relation]:
    """Return a text or a sympy relational as relations.

    A text may hold several, as in ``"1 <= x <= n, x < y"``.
    """
    if isinstance(condition, Relation):
        return [condition]
    if isinstance(condition, str):
        return [pair for part in top_level(condition) for pair in _chain(part)]
    if condition is True or condition == sympy.true:
        return []
    if isinstance(condition, (sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt)):
        strict = isinstance(condition, (sympy.Lt, sympy.Gt))
        return [Relation(term_of(condition.lts), term_of(condition.gts), strict)]
    if isinstance(condition, sympy.And):
        return [pair for part in condition.args for pair in relations(part)]
    raise ValueError(f"condition must be built from <= and <, got {condition!r}.")


def positive_symbols(*expressions: Any) -> dict[str, Range]:
    """Return the ranges of the symbols of sympy expressions, from their assumptions.

    Raises
    ------
    ValueError
        For a symbol that may be zero or negative, since sympy simplifies ``x/x`` and
        ``sqrt(x)**2`` before they are read; for assumptions beyond a positive, perhaps whole
        number; and for two symbols of one name.
    """
    found: dict[str, Range] = {}
    entries = {s for e in expressions for s in getattr(e, "free_symbols", ())}
    for entry in sorted(entries, key=str):
        name, whole = str(entry), bool(entry.is_integer)
        known = {"positive": True, "integer": True} if whole else {"positive": True}
        if entry != sympy.Symbol(name, **known):
            raise ValueError(
                f"symbol {name} of sympy must be declared positive and no more; a formula in other "
                "symbols must be written as text."
            )
        if name in found:
            raise ValueError(f"symbols called {name} must have the same assumptions.")
        found[name] = POSITIVE.meet(Range(whole=whole))
    return found
