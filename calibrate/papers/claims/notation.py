"""Claims as lines of text, as a paper would print them.

A line is ``NAME: FORMULA [where CONDITIONS] [at VALUES] [; OPTION]... [# STATEMENT]``. Lines that
are indented more deeply continue it. The formula says what kind of claim it is:

======================= ==========================================================
``a = b``               :class:`Identity`; with the option ``definition`` a
                        :class:`Definition`, with ``balance of T`` a :class:`Balance`; the
                        first also for releases
``a <= b``, ``a < b``   :class:`Bound`; with the option ``loose 2`` a :class:`Loose`
``a <= b, c < d``       :class:`Feasible`; ``a <= b <= c`` is two conditions
``a =O b``, ``a =O~ b`` :class:`Rate`, :class:`SoftRate`, with ``growth n = 1, d = 1/2``
``s <= b``              with ``recursion s over k from 0, first F, next N`` a
                        :class:`Recursion`, by induction over the whole number k; also ``s = b``
``[a] = loss/time**2``  :class:`Units`; ``1`` for a pure number
``release ...``         :class:`Private`: ``release S with noise N times K on a sample Q within
                        rho``, several releases between commas, or ``within epsilon, delta``,
                        or ``within order 8, epsilon``
``check NAME``          a program: the ``Enumeration`` or ``Priced`` of this name
``open REASON``         :class:`Prose`: a statement that no program decides, with the reason
======================= ==========================================================

Conditions are inequalities and ranges such as ``x in [1, 2]``. Other options are ``free T q``,
``printed T``, and ``relation replace-one`` and ``order 1 + 2*x``
of releases.

>>> young, size = read('''
...     young: x*y <= x**2/2 + y**2/2    # Young's inequality
...     size: T <= n where 1 <= T,
...         T <= sqrt(n)
... ''')
>>> young.kind, young.statement, size.formula()
('bound', "Young's inequality", 'T <= n  where 1 <= T, T <= sqrt(n)')
>>> read("c: x <= y; for all x")  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: claim 'c': option must begin with ... free, growth, ..., relation, got 'for all x'.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
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
from dpcal.calibrate.papers.claims.privacy import Private, Release
from dpcal.calibrate.papers.claims.ranges import assignments, top_level
from dpcal.calibrate.papers.claims.recursion import Recursion, options_of
from dpcal.calibrate.papers.kernel.terms import Term, number, plus, times

__all__ = ["claims_of", "indented", "line", "nearest", "read", "text_of", "theorems_of", "unit_of"]

Checks = Mapping[str, Claim]  # claims that are programs, by the names that lines give them

_HEAD = re.compile(r"([\w.\-]*):\s+")
_PART = re.compile(r"\s+(about|claim|open|printed|settings|use): ")
_RANGE = re.compile(r"(\w+) in \[\s*([^\]]+?)\s*\]$")
_RELEASE = re.compile(r"(.+?) with noise (.+?)(?: times (.+?))?(?: on a sample (.+))?$")


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


def theorems_of(text: str, checks: Checks | None = None) -> tuple[Claim, ...]:
    """Return the claims of a text, in which each theorem stands above its claims.

    Parameters
    ----------
    text
        Lines ``SOURCE:``, each above the indented lines of its claims.
    checks
        Programs that lines ``NAME: check PROGRAM`` refer to.

    >>> (claim,) = theorems_of('''
    ...     Lemma 3, proof:
    ...         young: x*y <= x**2/2 + y**2/2
    ... ''')
    >>> claim.source, claim.name
    ('Lemma 3, proof', 'young')
    """
    found: list[Claim] = []
    for entry in indented(text):
        source, _, rows = entry.partition("\n")
        if not source.endswith(":"):
            raise ValueError(f"theorem must end with a colon, got {source!r}.")
        found += claims_of(source[:-1], *read(rows, checks))
    return tuple(found)


def text_of(package: str, name: str) -> str:
    """Return the text ``name.txt`` beside a paper's modules."""
    return files(package).joinpath(f"{name}.txt").read_text(encoding="utf-8")


def indented(text: str, split: bool = False) -> list[str]:
    """Return the entries of a text; lines that are indented more deeply continue an entry.

    With ``split``, the continuation is returned as separate entries, after the first line.
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


def read(text: str, checks: Checks | None = None) -> tuple[Claim, ...]:
    """Return the claims of a text, one a line."""
    return tuple(_named(" ".join(entry.split()), checks) for entry in indented(text))


def _named(entry: str, checks: Checks | None) -> Claim:
    head = _HEAD.match(entry)
    if head is None:
        raise ValueError(f"claim must begin with its name and a colon, got {entry!r}.")
    return line(entry[head.end() :], head.group(1), checks)


def line(text: str, name: str = "", checks: Checks | None = None) -> Claim:
    """Return the claim of a line that is given without its name."""
    try:
        return _line(text, name, checks or {})
    except ValueError as error:
        if str(error).startswith("claim "):
            raise
        raise ValueError(f"claim {name!r}: {error}") from error


def _line(text: str, name: str, checks: Checks) -> Claim:
    body, _, statement = text.partition("#")
    values: dict[str, Any] = {"statement": statement.strip()} if statement else {}
    if body.startswith("open "):
        return Prose(name, body.removeprefix("open ").strip(), **values)
    formula, *options = (part.strip() for part in body.split(";"))
    formula, _, special = formula.partition(" at ")
    if special:
        values["at"] = assignments(special)
    formula, _, conditions = formula.partition(" where ")
    if conditions:
        values.update(_conditions(conditions))
    for option in filter(None, options):
        values.update(_option(option))
    formula = formula.strip()
    if formula.startswith("check "):
        program = formula.removeprefix("check ")
        if program not in checks:
            raise ValueError(f"check {nearest(program, checks)}")
        return dataclasses.replace(checks[program], name=name, **values)
    return _claim(name, formula, values)


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
    "order": lambda text: {"order": text},
    "printed": lambda text: {"printed": text},
    "recursion": lambda text: {"kind": Recursion, **options_of(text, top_level(text))},
    "relation": lambda text: {"neighboring_relation": text},
}


def _option(text: str) -> dict[str, Any]:
    for word, meaning in _OPTIONS.items():
        if text == word or text.startswith(word + " "):
            return meaning(text[len(word) :].strip())
    raise ValueError(f"option must begin with {', '.join(_OPTIONS)}, got {text!r}.")


def _claim(name: str, formula: str, values: dict[str, Any]) -> Claim:
    kind: Any = values.pop("kind", None)
    if formula.startswith("release "):
        values["definition"] = kind is Definition
        return _private(name, formula.removeprefix("release "), values)
    if formula.startswith("["):
        inside, _, unit = formula[1:].rpartition("] = ")
        return Units(name, inside, unit_of(parse(unit)), **values)
    if "=O" in formula:
        return (SoftRate if "=O~" in formula else Rate)(name, formula, **values)
    if kind is Recursion:
        return Recursion(name, formula, **values)
    several = len(top_level(formula)) > 1 or len(re.findall("[<>]", formula)) > 1
    if several:
        return Feasible(name, (formula,), **values)
    default = Bound if re.search("[<>]", formula) else Identity
    return (kind or default)(name, formula, **values)


def _private(name: str, formula: str, values: dict[str, Any]) -> Private:
    answers, _, budget = formula.partition(" within ")
    found = [_RELEASE.match(part) for part in top_level(answers)]
    limits = top_level(budget)
    if None in found or "" in limits or len(limits) > 2:
        raise ValueError(
            "releases must be 'release S with noise N [times K] [on a sample Q], ... within rho' "
            f"(or within epsilon, delta, or within order A, epsilon), got {formula!r}."
        )
    releases = tuple(Release(*match.groups("1")) for match in found if match)
    names = ("rho",) if len(limits) == 1 else ("epsilon", "delta")
    if limits[0].startswith("order "):
        limits[0], names = limits[0].removeprefix("order "), ("renyi", "epsilon")
    return Private(name, releases, **{**values, **dict(zip(names, limits, strict=True))})


def unit_of(term: Term) -> dict[str, Term]:
    """Return the exponents of a product of powers of base units."""
    head = term[0]
    if term == number(1):
        return {}
    if head == "sym":
        return {term[1]: number(1)}
    if head == "pow":
        return {base: times(power, term[2]) for base, power in unit_of(term[1]).items()}
    if head == "mul":
        found: dict[str, Term] = {}
        for part in term[1:]:
            for base, power in unit_of(part).items():
                found[base] = plus(found[base], power) if base in found else power
        return found
    raise ValueError(f"unit must be a product of powers of base units, got {show(term)!r}.")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error sentence, with the names nearest to ``name``.

    >>> nearest("kl_conditon", ["kl_condition", "spiderboost"])
    "must be one of 2 known names, got 'kl_conditon'; did you mean 'kl_condition'?"
    """
    known = list(known)
    lower = {entry.lower(): entry for entry in known}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3)]
    if not close:
        some = ", ".join(map(repr, known[:8])) + (", ..." if len(known) > 8 else "")
        return f"must be one of {some}, got {name!r}."
    offer = " or ".join(map(repr, close))
    return f"must be one of {len(known)} known names, got {name!r}; did you mean {offer}?"
