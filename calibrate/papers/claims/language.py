"""The language of a schedule: the settings of a paper, and its claims about them.

A :class:`Schedule` lists the paper's symbols, its parameter settings *as printed* and *as
corrected*, and claims about them. All of it is data:
:func:`dpcal.calibrate.papers.prover.prove` decides the claims.

>>> from dpcal.calibrate.papers.prover import prove
>>> noise = Setting("T", "n*epsilon/sqrt(d)", printed="n*epsilon/d", source="Theorem 1")
>>> balance = Balance("T", "1/T = T*d/(n*epsilon)**2", of="T", source="Theorem 1, proof")
>>> sizes = (Quantity("n", "records"), Quantity("d", "dimension"), Quantity("epsilon", "target"))
>>> toy = Schedule(name="toy", title="Toy", citation="", quantities=sizes, settings=(noise,),
...                claims=(balance,))
>>> prove(toy.resolve(balance)).status
'PROVED'
>>> prove(toy.resolve(balance.as_printed("T"))).status
'REFUTED'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import sympy

from dpcal.calibrate.papers.claims.claims import (
    Balance,
    Bound,
    Claim,
    Definition,
    Enumeration,
    Feasible,
    Identity,
    Loose,
    Prose,
    Rate,
    SoftRate,
    Units,
)
from dpcal.calibrate.papers.claims.content import known_positive, restated
from dpcal.calibrate.papers.claims.errata import Erratum, errata_of, erratum
from dpcal.calibrate.papers.claims.formulas import parse, term_of, to_sympy
from dpcal.calibrate.papers.claims.notation import (
    claims_of,
    indented,
    nearest,
    text_of,
    theorems_of,
    unit_of,
)
from dpcal.calibrate.papers.claims.privacy import Priced, Private, Release
from dpcal.calibrate.papers.claims.ranges import Range, positive_symbols
from dpcal.calibrate.papers.claims.recursion import Recursion
from dpcal.calibrate.papers.claims.resolve import resolved, unfold
from dpcal.calibrate.papers.kernel.terms import Term, symbols

__all__ = [
    "Balance",
    "Bound",
    "Claim",
    "Definition",
    "Enumeration",
    "Erratum",
    "Feasible",
    "Identity",
    "Loose",
    "Priced",
    "Private",
    "Prose",
    "Quantity",
    "Rate",
    "Recursion",
    "Release",
    "Schedule",
    "Setting",
    "SoftRate",
    "Units",
    "auxiliary",
    "claims_of",
    "errata_of",
    "erratum",
    "nearest",
    "positive",
    "quantities_of",
    "schedule_of",
    "settings_of",
    "theorems_of",
    "unfold",
]


def auxiliary(names: str, range: str = "(0, oo)") -> tuple[Quantity, ...]:  # noqa: A002
    """Return quantities for any number of a range, from space-separated names."""
    return tuple(Quantity(name, "any number", range=range) for name in names.split())


def positive(names: str) -> tuple[Any, ...]:
    """Return positive sympy symbols with these space-separated names."""
    return tuple(sympy.Symbol(name, positive=True) for name in names.split())


@dataclass(frozen=True)
class Quantity:
    """A symbol of a schedule.

    Parameters
    ----------
    symbol
        The symbol, or its name.
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

    symbol: Any
    meaning: str
    units: Mapping[str, Any] = field(default_factory=dict, hash=False)
    range: str = "(0, oo)"
    whole: bool = False

    @property
    def name(self) -> str:
        """The symbol's name."""
        return str(self.symbol)

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
    symbol
        The parameter that is set, or its name.
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

    symbol: Any
    corrected: Any
    printed: Any = None
    source: str = ""
    rounding: str = ""

    def __post_init__(self) -> None:
        if self.rounding not in ("", "up", "down"):
            raise ValueError(f"rounding must be 'up', 'down' or '', got {self.rounding!r}.")

    @property
    def name(self) -> str:
        """The parameter's name."""
        return str(self.symbol)

    def term(self, printed: bool = False) -> Term:
        """Return the printed or the corrected formula as a term."""
        return term_of(self.printed if printed and self.printed is not None else self.corrected)

    def expression(self, printed: bool = False) -> Any:
        """Return the printed or the corrected formula as a sympy expression."""
        term = self.term(printed)
        return to_sympy(term, dict.fromkeys(symbols(term), "+"))

    def assumed(self) -> dict[str, Range]:
        """Return the ranges of the symbols, as sympy's assumptions declare them."""
        return positive_symbols(self.symbol, self.corrected, self.printed)


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
    for entry in indented(text):
        names, _, rest = " ".join(entry.split()).partition(": ")
        meaning, *options = (part.strip() for part in rest.split(";"))
        values: dict[str, Any] = {}
        for option in options:
            word, _, value = option.partition(" ")
            if word == "unit":
                values["units"] = unit_of(parse(value))
            else:
                values["whole"], values["range"] = word == "whole", option.removeprefix("whole ")
        found += [Quantity(name, meaning, **values) for name in names.split()]
    return tuple(found)


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
    for entry in indented(text):
        body, _, source = " ".join(entry.split()).partition("#")
        name, mark, formulas = body.partition(":")
        if not mark:
            raise ValueError(f"setting must begin with its name and a colon, got {entry!r}.")
        corrected, *options = (part.strip() for part in formulas.split(";"))
        values = {"source": source.strip()}
        for option in options:
            word, _, rest = option.partition(" ")
            if word == "printed":
                values["printed"] = rest
            else:
                values["rounding"] = option
        found.append(Setting(name, corrected, **values))
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
    title: str
    citation: str
    quantities: tuple[Quantity, ...] = ()
    settings: tuple[Setting, ...] = ()
    claims: tuple[Claim, ...] = ()
    errata: tuple[Erratum, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
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
            if claim.name in printed or isinstance(claim, Prose):
                continue
            text = (
                f"{claim.formula()} {claim.expressions()} {claim.at} {claim.free} {claim.printed}"
            )
            earlier = said.setdefault(text, claim.name)
            reason = restated(claim, formulas, positive)
            if earlier != claim.name:
                reason = f"it repeats claim {earlier!r}"
            if reason:
                raise ValueError(f"claim {claim.name!r} says nothing: {reason}.")

    def all_claims(self) -> tuple[Claim, ...]:
        """Return the claims, then both sides of each erratum."""
        pairs = [
            side
            for wrong in self.errata
            for side in (wrong.printed, wrong.corrected)
            if side is not None
        ]
        return (*self.claims, *pairs)

    def claim(self, name: str) -> Claim:
        """Return the claim called ``name``; the error lists the nearest names."""
        by_name = {claim.name: claim for claim in self.all_claims()}
        if name in by_name:
            return by_name[name]
        raise ValueError(f"claim {nearest(name, by_name)}")

    def setting(self, symbol: Any) -> Setting:
        """Return the setting of ``symbol`` (a symbol or its name)."""
        by_name = {setting.name: setting for setting in self.settings}
        if str(symbol) in by_name:
            return by_name[str(symbol)]
        raise ValueError(f"setting {nearest(str(symbol), by_name)}")

    def ranges(self) -> dict[str, Range]:
        """Return the range of every declared symbol."""
        found: dict[str, Range] = {}
        for setting in self.settings:
            found.update(setting.assumed())
        return {**found, **{quantity.name: quantity.values() for quantity in self.quantities}}

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
        if isinstance(claim, Units) and not claim.scales:
            scales = {
                quantity.name: {base: term_of(p) for base, p in quantity.units.items()}
                for quantity in self.quantities
            }
            claim = claim.changed(scales=scales)
        rounded = [setting.name for setting in self.settings if setting.rounding]
        try:
            return resolved(claim, settings, self.ranges(), rounded)
        except ValueError as error:
            raise ValueError(f"claim {claim.name!r}: {error}") from error


def standalone(claim: Claim) -> Claim:
    """Return a claim without settings with the ranges of its symbols filled in."""
    if claim.at or claim.free or claim.printed:
        raise ValueError(
            f"claim {claim.name!r}: at, free and printed must be resolved by a schedule, got none."
        )
    domain = dict(claim.domain)
    for name in sorted(claim.used_symbols() - domain.keys()):
        if name not in claim.on:
            raise ValueError(
                f"claim {claim.name!r}: symbol {name} must have a range, got none; declare it as a "
                "quantity, or give it one with on=."
            )
        domain[name] = Range()
    ranges = {name: Range(*ends) for name, ends in claim.on.items()}
    return claim.changed(
        domain={
            name: values.meet(ranges.get(name, Range()))
            for name, values in sorted(domain.items())
            if name in claim.used_symbols()
        }
    )


def schedule_of(package: str) -> Schedule:
    """Return the schedule of a paper from the texts of its folder.

    Parameters
    ----------
    package
        Dotted name of the folder, whose last part is the name of the schedule. Its module
        ``checks`` has the programs to which claims refer.

    >>> schedule_of("dpcal.calibrate.papers.moments").setting("sigma").source
    'Theorem 1'
    """
    checks = import_module(f"{package}.checks").CHECKS
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
        quantities=quantities_of(parts["Quantities"]),
        settings=settings_of(parts["Settings"]),
        claims=theorems_of(text_of(package, "claims"), checks),
        errata=errata_of(text_of(package, "errata"), checks=checks),
        notes=tuple(notes),
    )
