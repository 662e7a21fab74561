"""Claims as lines of text, as a paper would print them.

A line is ``NAME: FORMULA [where CONDITIONS] [at VALUES] [; OPTION]... [# STATEMENT]``. Lines that
are indented more deeply continue it. The formula says what kind of claim it is:

====================== ==========================================================
``a = b``              :class:`Identity`; with the option ``definition`` a
                       :class:`Definition`, with ``balance of T`` a :class:`Balance`
``a <= b``, ``a < b``  :class:`Bound`; with the option ``loose 2`` a :class:`Loose`
``a <= b, c < d``      :class:`Feasible`; ``a <= b <= c`` is two conditions
``a =O b``, ``a =O~ b`` :class:`Rate`, :class:`SoftRate`, with ``growth n = 1, d = 1/2``
``[a] = loss/time**2`` :class:`Units`; ``1`` for a pure number
``open REASON``        :class:`Prose`: what no program decides, with the reason
====================== ==========================================================

Conditions are inequalities and ranges such as ``x in [1, 2]``. Other options are ``free T q``,
``printed T``, and ``points x = 1, y = 2 | x = 3``.

>>> young, size = read('''
...     young: x*y <= x**2/2 + y**2/2    # Young's inequality
...     size: T <= n where 1 <= T, T <= sqrt(n);
...         points T = 2, n = 9
... ''')
>>> young.kind, young.statement, size.formula()
('bound', "Young's inequality", 'T <= n  where 1 <= T, T <= sqrt(n)')
>>> read("c: x <= y; for all x")  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: claim 'c': option must begin with ... free, growth, ..., printed, got 'for all x'.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from dpcal.calibrate.papers.claims.claims import (
    Balance,
    Bound,
    Claim,
    Definition,
    Feasible,
    Identity,
    Loose,
    Prose,
    Rate,
    SoftRate,
    Units,
)
from dpcal.calibrate.papers.claims.formulas import parse, show
from dpcal.calibrate.papers.claims.ranges import assignments, top_level
from dpcal.calibrate.papers.kernel.terms import Term, number, plus, times

__all__ = ["claims_of", "indented", "line", "read"]

_HEAD = re.compile(r"([\w.\-]*):\s+")
_PART = re.compile(r"\s+(about|claim|open|printed|settings|use): ")
_RANGE = re.compile(r"(\w+) in \[\s*([^\]]+?)\s*\]$")


def claims_of(source: str, *parts: str | Claim) -> tuple[Claim, ...]:
    """Return the claims of one theorem, each with its source.

    Parameters
    ----------
    source
        Theorem, equation, and part of the page; a claim that has its own source keeps it.
    *parts
        Text of claims, or claims.
    """
    claims = [c for part in parts for c in (read(part) if isinstance(part, str) else (part,))]
    return tuple(c if c.source else dataclasses.replace(c, source=source) for c in claims)


def indented(text: str, split: bool = False) -> list[str]:
    """Return the entries of a text; lines that are indented more deeply continue an entry.

    With ``split``, the continuation is returned as entries of its own, after the first line.
    """
    rows = [row for row in textwrap.dedent(text).split("\n") if row.strip()]
    if split:
        deeper = [k for k, row in enumerate(rows) if row[:1].isspace()]
        start = next((k for k in deeper if _PART.match(rows[k])), len(rows))
        return [" ".join(map(str.strip, rows[:start])), *indented("\n".join(rows[start:]))]
    entries: list[str] = []
    for row in rows:
        if row[:1].isspace() and entries:
            entries[-1] += "\n" + row
        else:
            entries.append(row)
    return entries


def read(text: str) -> tuple[Claim, ...]:
    """Return the claims of a text, one a line."""
    return tuple(_named(" ".join(entry.split())) for entry in indented(text))


def _named(entry: str) -> Claim:
    head = _HEAD.match(entry)
    if head is None:
        raise ValueError(f"claim must begin with its name and a colon, got {entry!r}.")
    return line(entry[head.end() :], head.group(1))


def line(text: str, name: str = "") -> Claim:
    """Return the claim that a line says, without its name."""
    try:
        return _line(text, name)
    except ValueError as error:
        if str(error).startswith("claim "):
            raise
        raise ValueError(f"claim {name!r}: {error}") from error


def _line(text: str, name: str) -> Claim:
    body, _, statement = text.partition("#")
    formula, *options = (part.strip() for part in body.split(";"))
    values: dict[str, Any] = {"statement": statement.strip()} if statement else {}
    formula, _, special = formula.partition(" at ")
    if special:
        values["at"] = assignments(special)
    formula, _, conditions = formula.partition(" where ")
    if conditions:
        values.update(_conditions(conditions))
    for option in filter(None, options):
        values.update(_option(option))
    return _claim(name, formula.strip(), values)


def _conditions(text: str) -> dict[str, Any]:
    where, on = [], {}
    for part in top_level(text):
        found = _RANGE.match(part)
        if found is None:
            where.append(part)
        else:
            low, high = found.group(2).split(",")
            on[found.group(1)] = (low.strip(), high.strip())
    return {"where": tuple(where), "on": on}


_OPTIONS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "balance of": lambda text: {"kind": Balance, "of": text},
    "definition": lambda text: {"kind": Definition},
    "free": lambda text: {"free": text},
    "growth": lambda text: {"growth": assignments(text)},
    "loose": lambda text: {"kind": Loose, "factor": text},
    "points": lambda text: {"points": tuple(map(assignments, text.split("|")))},
    "printed": lambda text: {"printed": text},
}


def _option(text: str) -> dict[str, Any]:
    for word, meaning in _OPTIONS.items():
        if text == word or text.startswith(word + " "):
            return meaning(text[len(word) :].strip())
    raise ValueError(f"option must begin with {', '.join(_OPTIONS)}, got {text!r}.")


def _claim(name: str, formula: str, values: dict[str, Any]) -> Claim:
    kind: Any = values.pop("kind", None)
    if formula.startswith("open "):
        return Prose(name, formula.removeprefix("open "), **values)
    if formula.startswith("["):
        inside, _, unit = formula[1:].rpartition("] = ")
        return Units(name, inside, _unit(parse(unit)), **values)
    if "=O" in formula:
        return (SoftRate if "=O~" in formula else Rate)(name, formula, **values)
    several = len(top_level(formula)) > 1 or len(re.findall("[<>]", formula)) > 1
    if several:
        return Feasible(name, (formula,), **values)
    default = Bound if re.search("[<>]", formula) else Identity
    return (kind or default)(name, formula, **values)


def _unit(term: Term) -> dict[str, Term]:
    """Return the exponents of a product of powers of base units."""
    head = term[0]
    if term == number(1):
        return {}
    if head == "sym":
        return {term[1]: number(1)}
    if head == "pow":
        return {base: times(power, term[2]) for base, power in _unit(term[1]).items()}
    if head == "mul":
        found: dict[str, Term] = {}
        for part in term[1:]:
            for base, power in _unit(part).items():
                found[base] = plus(found[base], power) if base in found else power
        return found
    raise ValueError(f"unit must be a product of powers of base units, got {show(term)!r}.")
