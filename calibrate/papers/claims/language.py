"""The language of a schedule: the settings of a paper, and its claims about them.

A :class:`Schedule` lists the paper's symbols, its parameter settings *as printed* and *as
corrected*, and claims about them. All of it is data:
:func:`dpcal.calibrate.papers.prover.prove` decides the claims.

>>> from dpcal.calibrate.papers.prover import prove
>>> toy = Schedule(
...     name="toy",
...     quantities="n d epsilon: records, dimension, and target",
...     settings="T: n*epsilon/sqrt(d); printed n*epsilon/d  # Theorem 1",
...     claims='''
...         Theorem 1, proof:
...             T: 1/T = T*d/(n*epsilon)**2; balance of T
...     ''',
... )
>>> prove(toy.resolve(toy.claim("T"))).status
'PROVED'
>>> prove(toy.resolve(toy.claim("T").as_printed("T"))).status
'REFUTED'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.content import known_positive, restated
from dpcal.calibrate.papers.claims.errata import errata_of
from dpcal.calibrate.papers.claims.formulas import parse, term_of, to_sympy
from dpcal.calibrate.papers.claims.notation import (
    Checks,
    indented,
    nearest,
    text_of,
    theorems_of,
    unit_of,
)
from dpcal.calibrate.papers.claims.ranges import Range
from dpcal.calibrate.papers.claims.resolve import resolved
from dpcal.calibrate.papers.kernel.terms import Term, symbols


@dataclass(frozen=True)
class Quantity:
    """A symbol of a schedule.

    Parameters
    ----------
    name
        The symbol.
    meaning
        Its meaning, in a few words.
    units
        Exponents of the base units, such as ``{"loss": 1, "parameter": -1}`` for a Lipschitz
        constant. Empty for a pure number.
    range
        The values that it may take in every claim: an interval such as ``"[1, 2]"``.
    whole
        Whether it is a whole number in every claim.
    """

    name: str
    meaning: str
    units: Mapping[str, Any] = field(default_factory=dict, hash=False)
    range: str = "(0, oo)"
    whole: bool = False

    def values(self) -> Range:
        """Return the range as exact numbers."""
        try:
            return Range.parse(self.range, self.whole)
        except ValueError as error:
            raise ValueError(f"quantity {self.name}: {error}") from error


@dataclass(frozen=True)
class Setting:
    """One parameter setting of a paper.

    Parameters
    ----------
    name
        The parameter that is set.
    corrected
        The formula to use.
    printed
        The formula in the paper, when it differs.
    source
        Theorem, equation or algorithm line.
    rounding
        ``"up"`` or ``"down"``: the side on which the nearest integer keeps the theorem's
        conditions; empty for a real-valued parameter.
    """

    name: str
    corrected: Any
    printed: Any = None
    source: str = ""
    rounding: str = ""

    def __post_init__(self) -> None:
        if self.rounding not in ("", "up", "down"):
            raise ValueError(f"rounding must be 'up', 'down' or '', got {self.rounding!r}.")

    def term(self, printed: bool = False) -> Term:
        """Return the printed or the corrected formula as a term."""
        return term_of(self.printed if printed and self.printed is not None else self.corrected)

    def expression(self, printed: bool = False) -> Any:
        """Return the printed or the corrected formula as a sympy expression."""
        term = self.term(printed)
        return to_sympy(term, dict.fromkeys(symbols(term), "+"))


def quantities_of(text: str) -> tuple[Quantity, ...]:
    """Return the quantities of a text, one or several of one meaning a line.

    Parameters
    ----------
    text
        Lines ``NAME...: MEANING [; unit UNIT] [; [whole] RANGE]``.

    >>> first, *_ = quantities_of("L1: smoothness constant; unit loss/parameter**2")
    >>> first.meaning, first.range, sorted(first.units)
    ('smoothness constant', '(0, oo)', ['loss', 'parameter'])
    """
    found = []
    for names, meaning, options, _ in _lines(text, "quantity"):
        units, interval, whole = {}, "(0, oo)", False
        for option in options:
            word, _, value = option.partition(" ")
            if word == "unit":
                units = unit_of(parse(value))
            else:
                whole, interval = word == "whole", option.removeprefix("whole ")
        found += [Quantity(name, meaning, units, interval, whole) for name in names.split()]
    return tuple(found)


def _lines(text: str, kind: str) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield head, first part, options and comment of lines ``HEAD: PART; OPTION... # COMMENT``."""
    for entry in indented(text):
        body, _, comment = " ".join(entry.split()).partition("#")
        head, mark, rest = body.partition(":")
        if not mark:
            raise ValueError(f"{kind} must begin with its name and a colon, got {entry!r}.")
        first, *options = (part.strip() for part in rest.split(";"))
        yield head, first, options, comment.strip()


def settings_of(text: str) -> tuple[Setting, ...]:
    """Return the settings of a text, one a line.

    Parameters
    ----------
    text
        Lines ``NAME: FORMULA [; printed FORMULA] [; up | down] # SOURCE``; lines that are indented
        more deeply continue them.

    >>> (period,) = settings_of("q: 1/T; printed 1/T**2; down  # Theorem 9")
    >>> period.name, period.printed, period.rounding, period.source
    ('q', '1/T**2', 'down', 'Theorem 9')
    """
    found = []
    for name, corrected, options, source in _lines(text, "setting"):
        printed = [row.removeprefix("printed ") for row in options if row.startswith("printed ")]
        rounding = [row for row in options if not row.startswith("printed ")]
        last = printed[-1] if printed else None
        found.append(Setting(name, corrected, last, source, " ".join(rounding)))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A paper's parameter settings, and the claims that hold or fail for them.

    Parameters
    ----------
    name, title, citation
        Short name, the algorithms that it schedules, and the paper.
    quantities
        Symbols with meaning, units and ranges.
    settings
        Parameter settings; a setting may use symbols that other settings define.
    claims
        Claims about the corrected settings.
    errata
        Printed statements that do not hold.
    notes
        Remarks for the reader of the errata, in sentences.
    """

    name: str
    title: str = ""
    citation: str = ""
    quantities: Any = ()
    settings: Any = ()
    claims: Any = ()
    errata: Any = ()
    notes: tuple[str, ...] = ()
    checks: Checks = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        readers: dict[str, Callable[[str], Any]] = {
            "quantities": quantities_of,
            "settings": settings_of,
            "claims": lambda text: theorems_of(text, self.checks),
            "errata": lambda text: errata_of(text, self.checks),
        }
        for name, read in readers.items():
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, read(text))
        names = [claim.name for claim in self.all_claims()]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"claim names must be distinct, got {', '.join(repeated)} twice.")
        self._check_content()

    def _check_content(self) -> None:
        """Refuse parts without a source, claims without content, and repeated claims."""
        for setting in self.settings:
            if not setting.source:
                raise ValueError(f"setting {setting.name} must have a source, got none.")
        formulas = {s.name: tuple(s.term(p) for p in (False, True)) for s in self.settings}
        printed = {wrong.printed.name for wrong in self.errata}
        positive = known_positive(self.ranges(), formulas)
        said: dict[str, str] = {}
        for claim in self.all_claims():
            if not claim.source:
                raise ValueError(f"claim {claim.name!r} must have a source, got none.")
            if claim.name in printed or claim.kind == "prose":
                continue
            fields = ("kind", "pairs", "parts", "where", "on", "at", "free", "printed")
            earlier = said.setdefault(repr([getattr(claim, f) for f in fields]), claim.name)
            reason = restated(claim, formulas, positive)
            if earlier != claim.name:
                reason = f"it repeats claim {earlier!r}"
            if reason:
                raise ValueError(f"claim {claim.name!r} says nothing: {reason}.")

    def all_claims(self) -> tuple[Claim, ...]:
        """Return the claims, then both sides of each erratum."""
        sides = (side for wrong in self.errata for side in wrong.sides if side)
        return (*self.claims, *sides)

    def claim(self, name: str) -> Claim:
        """Return the claim called ``name``; the error lists the nearest names."""
        found: Claim = _called(name, "claim", self.all_claims())
        return found

    def setting(self, symbol: Any) -> Setting:
        """Return the setting of ``symbol`` (a symbol or its name)."""
        found: Setting = _called(str(symbol), "setting", self.settings)
        return found

    def ranges(self) -> dict[str, Range]:
        """Return the range of every declared symbol."""
        return {quantity.name: quantity.values() for quantity in self.quantities}

    def resolve(self, claim: Claim) -> Claim:
        """Return ``claim`` with settings replaced by formulas in the paper's inputs.

        Raises
        ------
        ValueError
            If an option of the claim is about a symbol that it does not have, a value lies outside
            of its symbol's range, or a symbol is not declared.
        """
        for name in claim.printed:
            self.setting(name)
        settings = {s.name: s.term(s.name in claim.printed) for s in self.settings}
        units = {
            quantity.name: {base: term_of(p) for base, p in quantity.units.items()}
            for quantity in self.quantities
        }
        rounded = [setting.name for setting in self.settings if setting.rounding]
        try:
            return resolved(claim, settings, self.ranges(), rounded, units)
        except ValueError as error:
            raise ValueError(f"claim {claim.name!r}: {error}") from error


def _called(name: str, kind: str, rows: Iterable[Any]) -> Any:
    by_name = {row.name: row for row in rows}
    if name not in by_name:
        raise ValueError(f"{kind} {nearest(name, by_name)}")
    return by_name[name]


def standalone(claim: Claim) -> Claim:
    """Return a claim without settings with the ranges of its symbols filled in."""
    if claim.at or claim.free or claim.printed:
        raise ValueError(
            f"claim {claim.name!r}: at, free and printed must be resolved by a schedule, got none."
        )
    known, domain = {**dict.fromkeys(claim.on, Range()), **claim.domain}, {}
    for name in sorted(claim.used_symbols()):
        if name not in known:
            raise ValueError(
                f"claim {claim.name!r}: symbol {name} must have a range, got none; declare it as a "
                "quantity, or give it one in the line, as in x in [0, 1]."
            )
        domain[name] = known[name].meet(claim.on.get(name, Range()))
    return replace(claim, domain=domain)


def schedule_of(package: str) -> Schedule:
    """Return the schedule of a paper from the texts of its folder.

    Parameters
    ----------
    package
        Dotted name of the folder; its last part is the name of the schedule. Its module ``checks``
        has the programs to which claims refer.

    >>> schedule_of("dpcal.calibrate.papers.moments").setting("sigma").source
    'Theorem 1'
    """
    entries = (entry.partition(":\n") for entry in indented(text_of(package, "settings")))
    parts = {head: rows for head, _, rows in entries}
    title, citation, *notes = (
        " ".join(entry.split())
        for head in ("Title", "Citation", "Notes")
        for entry in indented(parts.get(head, ""))
    )
    return Schedule(
        name=package.rpartition(".")[2],
        title=title,
        citation=citation,
        quantities=parts["Quantities"],
        settings=parts["Settings"],
        claims=text_of(package, "claims"),
        errata=text_of(package, "errata"),
        notes=tuple(notes),
        checks=import_module(f"{package}.checks").CHECKS,
    )
