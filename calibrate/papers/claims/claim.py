"""The class of all claims: the statement, its domain, and settings that are put in.

A claim is data that :func:`~dpcal.calibrate.papers.claims.notation.line` reads from a text.

>>> from dpcal.calibrate.papers.claims.notation import line
>>> claim = line("2*sqrt(x*y) <= x + y where x in [0, 1/2], x <= y", "AM-GM")
>>> claim.kind, claim.formula()
('bound', '2*sqrt(x*y) <= x + y  where x in [0, 1/2], x <= y')
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpcal.calibrate.papers.claims.kinds import KINDS
from dpcal.calibrate.papers.claims.ranges import Range, Relation, Replace
from dpcal.calibrate.papers.kernel.context import Context
from dpcal.calibrate.papers.kernel.terms import Term, require, symbol, symbols


@dataclass(frozen=True)
class Claim:
    """A statement that a machine can prove, refute, or leave open.

    Parameters
    ----------
    name
        Short identifier, unique in its schedule.
    kind
        One of the kinds of :mod:`dpcal.calibrate.papers.claims.kinds`.
    pairs
        Relations that the claim states.
    parts
        Other parts of a claim of its kind, by name: terms, records of terms, and plain values.
    where
        Inequalities that restrict the domain.
    on
        Ranges of symbols, which narrow their declared ranges.
    free
        Settings that stay symbols instead of being replaced by their expressions.
    printed
        Settings taken as printed instead of as corrected.
    at
        Values that take the place of symbols and of their settings, a special case. They may name
        each other and settings, but not in a circle.
    statement
        One line for the reader.
    source
        Place in the paper: theorem, equation, or derivation.
    domain
        Ranges of all symbols, filled in when the claim is resolved.
    sizes
        Terms that were put in for symbols, with the ranges of these symbols, filled in when the
        claim is resolved. A counterexample must respect them; a proof need not use them.
    """

    name: str
    kind: str
    pairs: tuple[Relation, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    where: tuple[Relation, ...] = ()
    on: Mapping[str, Range] = field(default_factory=dict, hash=False)
    free: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    at: Mapping[str, Term] = field(default_factory=dict, hash=False)
    statement: str = ""
    source: str = ""
    domain: Mapping[str, Range] = field(default_factory=dict, hash=False)
    sizes: tuple[tuple[Term, Range], ...] = field(default=(), hash=False)

    @property
    def proved(self) -> str:
        """The status of a claim of this kind that is proved."""
        if self.kind == "definition" or self.parts.get("definition"):
            return "DEFINITION"
        return "LOOSE" if self.kind == "loose" else "PROVED"

    def as_printed(self, *settings: str) -> Claim:
        """Return the same claim with these settings as printed."""
        return dataclasses.replace(self, printed=(*self.printed, *settings))

    def all_terms(self) -> tuple[Term, ...]:
        """Return the terms of the claim and of its conditions."""
        return tuple(_terms((self.pairs, self.parts, self.where)))

    def used_symbols(self) -> set[str]:
        """Return the names of all symbols that occur in the claim."""
        own = {self.parts[name] for name in ("of", "over") if name in self.parts}
        return own.union(*map(symbols, self.all_terms()))

    def ranges(self) -> dict[str, Range]:
        """Return the ranges of all symbols of the claim's goals."""
        missing = self.used_symbols() - self.domain.keys()
        require(not missing, f"ranges of {', '.join(sorted(missing))}.")
        change = KINDS[self.kind].ranges
        return change(self, dict(self.domain)) if change else dict(self.domain)

    def facts(self) -> list[tuple[Term, bool]]:
        """Return the facts of the domain: terms that are nonnegative, or positive (flag set)."""
        found = [f for name, values in self.ranges().items() for f in values.facts(symbol(name))]
        return found + [(pair.gap, pair.strict) for pair in self.where]

    def limits(self) -> list[tuple[Term, bool]]:
        """Return the facts about points of the paper's domain: also sizes are in their ranges."""
        return self.facts() + [f for term, values in self.sizes for f in values.facts(term)]

    def counts(self) -> list[Term]:
        """Return the terms that are whole at points of the paper's domain."""
        found = [(symbol(name), values) for name, values in self.ranges().items()]
        return [term for term, values in (*found, *self.sizes) if values.whole]

    def goals(self, *given: Term, context: Context | None = None) -> list[Relation]:
        """Return the relations that are equivalent to the claim.

        Parameters
        ----------
        given
            Terms that a proof may choose, if the claim states that such terms exist.
        context
            Facts of the domain, with the limit of time of a check.
        """
        return KINDS[self.kind].goals(self, given, context)

    def necessary(self) -> list[Relation]:
        """Return the goals that must hold for any choice of a proof; a point refutes them."""
        necessary = KINDS[self.kind].necessary
        return necessary(self) if necessary else self.goals()

    def substitute(self, change: Replace) -> Claim:
        """Return the claim with ``change`` applied to each of its terms."""
        pairs, parts, where = (_mapped(x, change) for x in (self.pairs, self.parts, self.where))
        return dataclasses.replace(self, pairs=pairs, parts=parts, where=where)

    def formula(self) -> str:
        """Return the claim as one line of text."""
        text, pairs = KINDS[self.kind].text, ", ".join(pair.text() for pair in self.pairs)
        conditions = [f"{name} in {values.text()}" for name, values in self.on.items()]
        conditions += [pair.text() for pair in self.where if pair not in self.pairs]
        end = f"  where {', '.join(conditions)}" if conditions else ""
        return (text(self) if text else pairs) + end

    def latex(self) -> str:
        """Return the claim as LaTeX."""
        text = rf"\text{{{self.formula()}}}".replace("_", r"\_")
        return r",\quad ".join(pair.latex() for pair in self.pairs) or text


def _terms(value: Any) -> Iterator[Term]:
    """Yield the terms in records and mappings of terms."""
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        yield value
    elif isinstance(value, (tuple, Mapping)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _terms(part)


def _mapped(value: Any, change: Replace) -> Any:
    """Return records and mappings of terms with each term changed."""
    if isinstance(value, Mapping):
        return {name: _mapped(part, change) for name, part in value.items()}
    if not isinstance(value, tuple):
        return value
    if value and isinstance(value[0], str):
        return change(value)
    parts = (_mapped(part, change) for part in value)
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
