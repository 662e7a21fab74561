"""Claims as lines of text, as a paper would print them.

A line is ``NAME: FORMULA [where CONDITIONS] [at VALUES] [; OPTION]... [# STATEMENT]``. Lines that
are indented more deeply continue it. The form of the formula decides the kind of the claim:

======================= ==========================================================
``a = b``               an identity; with the option ``definition`` a definition (the option is
                        also for releases), with ``balance of T`` a balance
``a <= b``, ``a < b``   a bound; with the option ``loose 2`` a loose one
``a <= b, c < d``       feasible; ``a <= b <= c`` is two conditions
``a =O b``, ``a =O~ b`` a rate, with ``growth n = 1, d = 1/2``: n is of the order of t, and d of
                        sqrt(t), as t goes to infinity; powers of logarithms count in the first
``s <= b``              with ``recursion s over k from 0, first F, next N`` a statement about each
                        value of a sequence, by induction over the whole number k; also ``s = b``
``[a] = loss/time**2``  a unit; ``1`` for a pure number
``release ...``         privacy: ``release S with noise N times K on a sample Q within rho``,
                        several releases between commas, or ``within epsilon, delta``, or
                        ``within order 8, epsilon`` for the Renyi divergence of an order
``check NAME``          the :class:`~dpcal.calibrate.papers.claims.kinds.Enumeration` of this name
``open REASON``         prose: a statement that no program decides, with the reason
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
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from dpcal.calibrate.papers.claims import privacy, sampled
from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.formulas import parse, show
from dpcal.calibrate.papers.claims.kinds import Enumeration
from dpcal.calibrate.papers.claims.ranges import (
    Range,
    Relation,
    assignments,
    relations,
    top_level,
)
from dpcal.calibrate.papers.kernel.terms import ONE, Term, number, plus, symbol, symbols, times

Checks = Mapping[str, Enumeration]

_HEAD = re.compile(r"([\w.\-]*):\s+")
_RANGE = re.compile(r"(\w+) in ([\[(].+[\])])$")
_RELEASE = re.compile(r"(.+?) with noise (.+?)(?: times (.+?))?(?: on a sample (.+))?$")


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
        found += (dataclasses.replace(c, source=source[:-1]) for c in read(rows, checks))
    return tuple(found)


def text_of(package: str, name: str) -> str:
    """Return the text ``name.txt`` in the folder of a paper's modules."""
    return files(package).joinpath(f"{name}.txt").read_text(encoding="utf-8")


def indented(text: str) -> list[str]:
    """Return the entries of a text; lines that are indented more deeply continue an entry."""
    entries: list[str] = []
    for row in filter(str.strip, textwrap.dedent(text).split("\n")):
        if row[:1].isspace() and entries:
            entries[-1] += "\n" + row
        else:
            entries.append(row)
    return entries


def read(text: str, checks: Checks | None = None) -> tuple[Claim, ...]:
    """Return the claims of a text, one a line."""
    found = []
    for entry in (" ".join(entry.split()) for entry in indented(text)):
        head = _HEAD.match(entry)
        if head is None:
            raise ValueError(f"claim must begin with its name and a colon, got {entry!r}.")
        found.append(line(entry[head.end() :], head.group(1), checks))
    return tuple(found)


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
    statement = statement.strip()
    if body.startswith("open "):
        reason = {"reason": body.removeprefix("open ").strip()}
        return Claim(name, "prose", parts=reason, statement=statement)
    formula, *rows = (part.strip() for part in body.split(";"))
    formula, _, special = formula.partition(" at ")
    formula, _, conditions = formula.partition(" where ")
    options = dict(_option(row) for row in rows if row)
    free, printed = (tuple(options.pop(word, "").split()) for word in ("free", "printed"))
    where, on = _conditions(conditions)
    kind, pairs, parts = _said(formula.strip(), options, checks)
    if options:
        raise ValueError(f"{kind} must have no option {', '.join(options)}.")
    if kind == "recursion" and pairs[0].sign != "=":  # the hypothesis of the step to the next index
        where += tuple(pair for pair in pairs if pair not in where)
    at = assignments(special) if special else {}
    return Claim(name, kind, pairs, parts, where, on, free, printed, at, statement)


def _conditions(text: str) -> tuple[tuple[Relation, ...], dict[str, Range]]:
    where: list[Relation] = []
    on = {}
    for part in top_level(text) if text else ():
        found = _RANGE.match(part)
        if found is None:
            where += relations(part)
        else:
            on[found.group(1)] = Range.parse(found.group(2))
    if any(pair.sign not in ("<=", "<") for pair in where):
        raise ValueError(f"condition must be built from <= and <, got {text!r}.")
    return tuple(where), on


_OPTIONS = (
    *("balance of", "definition", "free", "growth", "loose", "order", "printed", "recursion"),
    "relation",
)


def _option(text: str) -> tuple[str, str]:
    for word in _OPTIONS:
        if text == word or text.startswith(word + " "):
            return word, text[len(word) :].strip()
    raise ValueError(f"option must begin with {', '.join(_OPTIONS)}, got {text!r}.")


_Said = tuple[str, tuple[Relation, ...], dict[str, Any]]


def _said(formula: str, options: dict[str, str], checks: Checks) -> _Said:
    """Return the parts of a formula, and take its options away."""
    if formula.startswith("check "):
        program = formula.removeprefix("check ")
        if program not in checks:
            raise ValueError(f"check {nearest(program, checks)}")
        return "enumeration", (), {"program": checks[program]}
    if formula.startswith("release "):
        return "private", (), _released(formula.removeprefix("release "), options)
    if formula.startswith("["):
        inside, _, unit = formula[1:].rpartition("] = ")
        return "units", (), {"expression": parse(inside), "unit": unit_of(parse(unit))}
    pairs = relations(formula)
    if "recursion" in options:
        return "recursion", pairs, _sequence(options.pop("recursion"), pairs)
    kind, parts = _kind(pairs, options)
    signs = _SIGNS.get(kind, ("<=", "<"))
    if not all(pair.sign in signs for pair in pairs) or (len(pairs) > 1 and kind != "feasible"):
        raise ValueError(f"relation of a {kind} must be one {' or '.join(signs)}, got {formula!r}.")
    return kind, pairs, parts


_SIGNS = {**dict.fromkeys(("identity", "definition", "balance"), ("=",)), "rate": ("=O", "=O~")}


def _kind(pairs: tuple[Relation, ...], options: dict[str, str]) -> tuple[str, dict[str, Any]]:
    if "balance of" in options:
        return "balance", {"of": options.pop("balance of")}
    if "definition" in options:
        return "definition", {"definition": not options.pop("definition")}
    if "loose" in options:
        factor = parse(options.pop("loose"))
        if symbols(factor):
            raise ValueError(f"factor must be a number, got {show(factor)}.")
        return "loose", {"factor": factor}
    if pairs[0].sign.startswith("=O"):
        return "rate", {"growth": assignments(options.pop("growth", ""))}
    return "feasible" if len(pairs) > 1 else "identity" if pairs[0].sign == "=" else "bound", {}


def _sequence(text: str, pairs: tuple[Relation, ...]) -> dict[str, Any]:
    """Return the parts of ``s over k from 0, first F, next N``."""
    head, *rest = top_level(text)
    words, named = head.split(), [part.partition(" ")[::2] for part in rest]
    whole = len(words) == 5 and words[4].lstrip("-").isdecimal()
    if not whole or words[1::2] != ["over", "from"] or [n for n, _ in named] != ["first", "next"]:
        raise ValueError(
            f"recursion must be 's over k from 0, first FORMULA, next FORMULA', got {text!r}."
        )
    of, left, sign, right = words[0], *pairs[0]
    equation = sign == "=" and len(pairs) == 1 and left == symbol(of) and of not in symbols(right)
    if not equation and any(pair.sign not in ("<=", "<") for pair in pairs):
        raise ValueError(f"equation must be {of} = a formula, got {pairs[0].text()!r}.")
    formulas = {name: parse(value) for name, value in named}
    return {"of": of, "over": words[2], "start": int(words[4]), **formulas}


def _released(formula: str, options: dict[str, str]) -> dict[str, Any]:
    answers, _, budget = formula.partition(" within ")
    found = [_RELEASE.match(part) for part in top_level(answers)]
    limits = top_level(budget)
    if None in found or "" in limits or len(limits) > 2:
        raise ValueError(
            "releases must be 'release S with noise N [times K] [on a sample Q], ... within rho' "
            f"(or within epsilon, delta, or within order A, epsilon), got {formula!r}."
        )
    rows = (match.groups("1") for match in found if match)
    names = ("rho",) if len(limits) == 1 else ("epsilon", "delta")
    if limits[0].startswith("order "):
        limits[0], names = limits[0].removeprefix("order "), ("renyi", "epsilon")
    parts: dict[str, Any] = {
        "releases": tuple(privacy.Release(*map(parse, row)) for row in rows),
        **{name: parse(limit) for name, limit in zip(names, limits, strict=True)},
        "relation": options.pop("relation", "replace-one"),
        "definition": options.pop("definition", None) is not None,
    }
    if "order" in options:
        parts["order"] = parse(options.pop("order"))
    if "renyi" in parts and not privacy.is_whole(parts["renyi"]):
        raise ValueError(
            f"renyi must be a whole number from 2 to {sampled.HIGHEST}, got {limits[0]}."
        )
    on_samples = any(release.probability != ONE for release in parts["releases"])
    if on_samples and ("rho" in parts or parts["relation"] != privacy.SAMPLED):
        raise ValueError(
            "a release on a sample must have a budget of epsilon and the relation "
            f"{privacy.SAMPLED}, got {parts['relation']}."
        )
    return parts


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
