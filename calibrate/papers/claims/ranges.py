"""Ranges of symbols, and relations between formulas.

>>> Range.parse("[1, 2)").text()
'[1, 2)'
>>> [pair.text() for pair in relations("x + 1 > y, 1 <= x <= 2")]
['y < x + 1', '1 <= x', 'x <= 2']
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from dpcal.calibrate.papers.claims.formulas import parse, show, to_latex
from dpcal.calibrate.papers.kernel.terms import Term, minus, number

Replace = Callable[[Term], Term]

_SIGN = re.compile(r"(=O~|=O|<=|>=|==|<|>|=)")
_LATEX = {"=": "=", "<=": r"\le", "<": "<", "=O": "= O", "=O~": r"= \tilde O"}


class Relation(NamedTuple):
    """``left sign right``, with a sign of ``<=``, ``<``, ``=``, ``=O`` and ``=O~``."""

    left: Term
    sign: str
    right: Term

    @property
    def gap(self) -> Term:
        """The right side minus the left one."""
        return minus(self.right, self.left)

    @property
    def strict(self) -> bool:
        """Whether equal sides are excluded."""
        return self.sign == "<"

    def text(self) -> str:
        """Return the relation as text."""
        return f"{show(self.left)} {self.sign} {show(self.right)}"

    def latex(self) -> str:
        """Return the relation as LaTeX."""
        return f"{to_latex(self.left)} {_LATEX[self.sign]} {to_latex(self.right)}"


class Range(NamedTuple):
    """The values that a symbol may take; an end that is None is infinite."""

    low: Fraction | None = None
    high: Fraction | None = None
    open_low: bool = False
    open_high: bool = False
    whole: bool = False

    def meet(self, other: Range) -> Range:
        """Return the values that both ranges allow."""
        lows = [(end, is_open) for end, _, is_open, *_ in (self, other) if end is not None]
        highs = [(-end, is_open) for _, end, _, is_open, _ in (self, other) if end is not None]
        low, open_low = max(lows, default=(None, False))
        high, open_high = max(highs, default=(None, False))
        end = None if high is None else -high
        return Range(low, end, open_low, open_high, self.whole or other.whole)

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

    @property
    def excludes_zero(self) -> bool:
        """Whether all values are positive."""
        return self.low is not None and (self.low, self.open_low) >= (Fraction(0), True)

    def text(self) -> str:
        """Return the range as an interval."""
        low = "(-oo" if self.low is None else f"{'(' if self.open_low else '['}{self.low}"
        high = "oo)" if self.high is None else f"{self.high}{')' if self.open_high else ']'}"
        return f"{low}, {high}" + (" whole" if self.whole else "")

    @classmethod
    @functools.cache
    def parse(cls, text: str, whole: bool = False) -> Range:
        """Read an interval such as ``"[1, 2]"``, ``"(0, 1)"`` or ``"(0, oo)"``."""
        found = re.fullmatch(r"\s*([\[(])\s*([^,]+?)\s*,\s*([^,]+?)\s*([\])])\s*", text)
        if found is None:
            raise ValueError(f"range must be an interval such as '[1, 2]', got {text!r}.")
        left, low, high, right = found.groups()
        return cls(_end(low), _end(high), left == "(", right == ")", whole)


POSITIVE = Range(Fraction(0), None, True)


def _end(text: str) -> Fraction | None:
    """Return the end of a range: a rational number, or None for an infinite one."""
    try:
        return None if text in ("oo", "-oo") else Fraction(text.replace(" ", ""))
    except ValueError as error:
        raise ValueError(
            f"end of a range must be a number such as 1/100 or oo, got {text!r}."
        ) from error


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


def assignments(text: str) -> Mapping[str, Term]:
    """Return the values of a text such as ``"x = 1, y = 2*n"``."""
    pairs = [part.partition("=") for part in top_level(text)]
    for name, mark, value in pairs:
        if not (mark and name.strip().isidentifier() and value.strip()):
            raise ValueError(f"values must be text such as 'x = 1, y = 2', got {text!r}.")
    return {name.strip(): parse(value) for name, _, value in pairs}


def relations(text: str) -> tuple[Relation, ...]:
    """Return the relations of a text, in which ``a <= b < c`` is two."""
    found = []
    for part in top_level(text):
        sides = _SIGN.split(part)
        if len(sides) < 3:
            raise ValueError(f"relation must have one of <=, <, >=, >, =, =O, got {part!r}.")
        for k in range(0, len(sides) - 2, 2):
            left, sign, right = sides[k : k + 3]
            if sign in (">=", ">"):
                left, sign, right = right, "<" + sign[1:], left
            found.append(Relation(parse(left), sign.replace("==", "="), parse(right)))
    return tuple(found)
