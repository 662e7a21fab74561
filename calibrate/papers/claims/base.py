"""The base class of all claims: name, source, domain, and the substitution of settings.

>>> claim = Claim("c", where=("x <= y",), on={"x": (0, "1/2")})
>>> claim.conditions_text()
'  where x in [0, 1/2], x <= y'
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpcal.calibrate.papers.claims.formulas import term_of
from dpcal.calibrate.papers.claims.ranges import (
    Goal,
    Range,
    Replace,
    assignments,
    end_of_range,
    positive_symbols,
    relations,
)
from dpcal.calibrate.papers.kernel.terms import Term, Undecided, minus, require, symbol, symbols

__all__ = ["Claim"]


@dataclass(frozen=True)
class Claim:
    """A statement that a machine can prove, refute, or leave open.

    Parameters
    ----------
    name
        Short identifier, unique in its schedule.
    statement
        One line for the reader.
    source
        Place in the paper: theorem, equation, or derivation.
    where
        Inequalities that restrict the domain: text such as ``"1 <= x, x <= y"``, or sympy's.
    on
        Ranges ``{symbol: (low, high)}`` of exact numbers; ``oo`` is allowed. They narrow the
        ranges of the symbols.
    free
        Settings that stay symbols instead of being replaced by their expressions.
    printed
        Settings taken as printed instead of as corrected.
    at
        Values that take the place of symbols and of their settings, a special case: text such as
        ``"x = 2*n"``, or a mapping. They may name each other and settings, but not in a circle.
    domain
        Ranges of all symbols, filled in when the claim is resolved.
    sizes
        Terms that were put in for symbols, with the ranges of these symbols, filled in when the
        claim is resolved. A counterexample must respect them; a proof need not use them.
    """

    name: str
    statement: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    where: Any = field(default=(), kw_only=True)
    on: Mapping[Any, Any] = field(default_factory=dict, kw_only=True, hash=False)
    free: Any = field(default=(), kw_only=True)
    printed: Any = field(default=(), kw_only=True)
    at: Any = field(default_factory=dict, kw_only=True, hash=False)
    domain: Mapping[str, Range] = field(default_factory=dict, kw_only=True, hash=False)
    sizes: tuple[tuple[Term, Range], ...] = field(default=(), kw_only=True, hash=False)

    proved = "PROVED"  # the status of a claim of this kind that is proved
    formulas: ClassVar[tuple[str, ...]] = ()  # fields that hold a formula, or None
    inequalities: ClassVar[tuple[str, ...]] = ()  # fields that hold inequalities

    def __post_init__(self) -> None:
        try:
            self._settle()
        except ValueError as error:
            if str(error).startswith("claim "):
                raise
            raise ValueError(f"claim {self.name!r}: {error}") from error

    def _settle(self) -> None:
        assumed: dict[str, Range] = dict(self.domain)
        for name, known in positive_symbols(*self._given()).items():
            assumed[name] = assumed.get(name, known).meet(known)
        self._set("domain", assumed)
        for name in ("where", *self.inequalities):
            value = getattr(self, name)
            given = (value,) if isinstance(value, str) else value
            self._set(name, tuple(pair for part in given for pair in relations(part)))
        for name in self.formulas:
            value = getattr(self, name)
            self._set(name, None if value is None else term_of(value))
        self._set(
            "on",
            {str(s): (end_of_range(low), end_of_range(high)) for s, (low, high) in self.on.items()},
        )
        self._set("free", _names(self.free))
        self._set("printed", _names(self.printed))
        self._set("at", {str(s): term_of(value) for s, value in assignments(self.at).items()})

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _given(self) -> Iterable[Any]:
        """Yield the values that may be sympy expressions."""
        for name in ("where", *self.inequalities):
            value = getattr(self, name)
            yield from () if isinstance(value, str) else value
        yield from (getattr(self, name) for name in self.formulas)
        yield from self.on
        for key, value in assignments(self.at).items():
            yield from (key, value)

    @property
    def kind(self) -> str:
        """The kind of claim, in lower case."""
        return type(self).__name__.lower()

    def as_printed(self, *settings: Any, name: str = "") -> Claim:
        """Return the same claim with these settings as printed."""
        printed = (*self.printed, *map(str, settings))
        return dataclasses.replace(self, name=name or self.name, printed=printed)

    def expressions(self) -> tuple[Term, ...]:
        """Return the terms of the claim, without those of its conditions."""
        pairs = (pair for name in self.inequalities for pair in getattr(self, name))
        values = (getattr(self, name) for name in self.formulas)
        sides = (side for pair in pairs for side in pair[:2])
        return (*sides, *(value for value in values if value is not None))

    def all_terms(self) -> tuple[Term, ...]:
        """Return the terms of the claim and of its conditions."""
        return (*self.expressions(), *(side for pair in self.where for side in pair[:2]))

    def used_symbols(self) -> set[str]:
        """Return the names of all symbols that occur in the claim."""
        return {name for term in self.all_terms() for name in symbols(term)}

    def ranges(self) -> dict[str, Range]:
        """Return the ranges of all symbols of the claim's goals."""
        missing = self.used_symbols() - self.domain.keys()
        require(not missing, f"ranges of {', '.join(sorted(missing))}.")
        return dict(self.domain)

    def facts(self) -> list[tuple[Term, bool]]:
        """Return the facts of the domain: terms that are nonnegative, or positive (flag set)."""
        found = [f for name, values in self.ranges().items() for f in values.facts(symbol(name))]
        return found + [(minus(large, small), strict) for small, large, strict in self.where]

    def limits(self) -> list[tuple[Term, bool]]:
        """Return the facts about points of the paper's domain: also sizes are in their ranges."""
        return self.facts() + [f for term, values in self._sizes() for f in values.facts(term)]

    def counts(self) -> list[Term]:
        """Return the terms that are whole at points of the paper's domain."""
        found = [(symbol(name), values) for name, values in self.ranges().items()]
        return [term for term, values in (*found, *self._sizes()) if values.whole]

    def _sizes(self) -> list[tuple[Term, Range]]:
        """Return the sizes whose symbols do not grow."""
        names = self.ranges().keys()
        return [(term, values) for term, values in self.sizes if symbols(term) <= names]

    def goals(self, *given: Term) -> list[Goal]:
        """Return the inequalities and equations that are equivalent to the claim.

        Parameters
        ----------
        given
            Terms that a proof may choose, if the claim states that such terms exist.
        """
        raise Undecided(f"a {self.kind} is not decided by goals.")

    def necessary(self) -> list[Goal]:
        """Return the goals that must hold for any choice of a proof; a point refutes them."""
        return self.goals()

    def substitute(self, change: Replace) -> Claim:
        """Return the claim with ``change`` applied to each of its terms."""
        values: dict[str, Any] = {
            name: tuple(pair.map(change) for pair in getattr(self, name))
            for name in ("where", *self.inequalities)
        }
        for name in self.formulas:
            value = getattr(self, name)
            values[name] = None if value is None else change(value)
        return self.changed(**values)

    def changed(self, **values: Any) -> Claim:
        """Return a copy with other values, which are neither read nor checked."""
        moved = copy.copy(self)
        for name, value in values.items():
            object.__setattr__(moved, name, value)
        return moved

    def says_nothing(self) -> str:
        """Return the reason why the claim has no content; empty if it has content."""
        return ""

    def formula(self) -> str:
        """Return the claim as one line of text."""
        return ""

    def latex(self) -> str:
        """Return the claim as LaTeX."""
        return rf"\text{{{self.formula()}}}".replace("_", r"\_")

    def conditions_text(self) -> str:
        """Return ranges and conditions as the end of a line."""
        ranges = [
            f"{name} in [{'-oo' if low is None else low}, {'oo' if high is None else high}]"
            for name, (low, high) in self.on.items()
        ]
        conditions = ranges + [pair.text() for pair in self.where]
        return f"  where {', '.join(conditions)}" if conditions else ""


def _names(value: Any) -> tuple[str, ...]:
    names = value.split() if isinstance(value, str) else value
    return tuple(str(name) for name in names)
