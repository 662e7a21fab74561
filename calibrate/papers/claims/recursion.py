"""Claims about the values of a recursion, for any number of its steps: proved by induction.

A sequence begins with ``first`` at a whole number, and each value follows from the last one by
``next``. This covers sums, products and maxima of any number of terms, and trees of any depth.

>>> from dpcal.calibrate.papers.claims.notation import read
>>> from dpcal.calibrate.papers.claims.language import Quantity, Schedule
>>> from dpcal.calibrate.papers.prover import prove
>>> toy = Schedule(name="toy", title="", citation="",
...                quantities=(Quantity("s", "a sum"), Quantity("k", "its terms", whole=True)))
>>> (sum_,) = read("c: s = k*(k + 1)/2; recursion s over k from 0, first 0, next s + k + 1")
>>> prove(toy.resolve(sum_)).status
'PROVED'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims.base import Claim
from dpcal.calibrate.papers.claims.formulas import relation, show, to_latex
from dpcal.calibrate.papers.claims.ranges import Goal, Range, Relation
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    number,
    plus,
    require,
    substitute,
    symbol,
    symbols,
)

__all__ = ["Recursion"]

UNROLLED = 6  # first values at which a point may refute a claim; terms grow with each value


@dataclass(frozen=True)
class Recursion(Claim):
    """Conditions hold for every value of a sequence.

    Parameters
    ----------
    conditions
        Inequalities about ``of`` and ``over``, or one equation ``s = formula``. Other symbols of
        the conditions are the same for all values. Those that only ``next`` names may have other
        values at each step.
    of, over
        Names of the value and of its index. No other condition may name them.
    start
        Whole number: the first index.
    first
        First value.
    next
        The value at the next index, from ``of`` and ``over``.
    """

    conditions: Any
    of: str = field(kw_only=True)
    over: str = field(kw_only=True)
    start: int = field(kw_only=True)
    first: Any = field(kw_only=True)
    next: Any = field(kw_only=True)

    formulas = ("first", "next")
    inequalities = ("conditions",)

    def _settle(self) -> None:
        if isinstance(self.conditions, str) and not {*"<>"} & {*self.conditions}:
            left, _, right = relation(self.conditions)
            if left != symbol(self.of) or self.of in symbols(right):
                raise ValueError(
                    f"equation must be {self.of} = a formula, got {self.conditions!r}."
                )
            self._set("conditions", (Relation(left, right), Relation(right, left)))
        super()._settle()
        if self._equation() is None:  # the hypothesis of the step to the next index
            self._set("where", (*self.where, *(p for p in self.conditions if p not in self.where)))

    def all_terms(self) -> tuple[Term, ...]:
        return (*super().all_terms(), symbol(self.of), symbol(self.over))

    def _equation(self) -> Term | None:
        """Return the formula of the value, if the conditions are an equation."""
        pairs = self.conditions
        equal = len(pairs) == 2 and pairs[0][:2] == pairs[1][1::-1]
        return pairs[0].large if equal else None

    def ranges(self) -> dict[str, Range]:
        """Return the ranges: the value may be any number, and the index begins at its start."""
        found, own = super().ranges(), {self.of, self.over}
        require(own <= found.keys() and len(own) == 2, "a value and an index that stay.")
        others = [pair for pair in self.where if pair not in self.conditions]
        named = {s for pair in others for side in pair[:2] for s in symbols(side)}
        named |= symbols(self.first) | self.on.keys()
        require(not own & named, "conditions on no value.")
        return {**found, self.of: Range(), self.over: Range(Fraction(self.start), whole=True)}

    def _at(self, index: Term, value: Term) -> list[Goal]:
        """Return the conditions at an index, about a value."""
        table = {self.of: value, self.over: index}
        rows = self.conditions if self._equation() is None else self.conditions[:1]
        signs = {True: "<", False: "<=" if self._equation() is None else "="}
        return [Goal(substitute(a, table), signs[s], substitute(b, table)) for a, b, s in rows]

    def goals(self, *given: Term) -> list[Goal]:
        """Return the conditions about the first value, and about the next from those about one."""
        index, formula = symbol(self.over), self._equation()
        value = self.next if formula is None else substitute(self.next, {self.of: formula})
        first = self._at(number(self.start), self.first)
        return [*first, *self._at(plus(index, ONE), value)]

    def necessary(self) -> list[Goal]:
        """Return the conditions about the first values."""
        found, value = [], self.first
        for index in range(self.start, self.start + UNROLLED):
            found += self._at(number(index), value)
            value = substitute(self.next, {self.of: value, self.over: number(index)})
        return found

    def formula(self) -> str:
        formula = self._equation()
        rows = [pair.text() for pair in self.conditions]
        said = ", ".join(rows) if formula is None else f"{self.of} = {show(formula)}"
        others = tuple(pair for pair in self.where if pair not in self.conditions)
        return (
            f"{said} for {self.over} = {self.start}, {self.start + 1}, ...: first "
            f"{show(self.first)}, next {show(self.next)}"
            f"{self.changed(where=others).conditions_text()}"
        )

    def latex(self) -> str:
        formula = self._equation()
        if formula is not None:
            return f"{to_latex(symbol(self.of))} = {to_latex(formula)}"
        signs = {True: "<", False: r"\le"}
        rows = (f"{to_latex(a)} {signs[s]} {to_latex(b)}" for a, b, s in self.conditions)
        return r",\quad ".join(rows)


def options_of(text: str, parts: list[str]) -> Mapping[str, Any]:
    """Return the arguments of ``s over k from 0, first F, next N``, given its parts at commas."""
    words = parts[0].split()
    named = [part.partition(" ")[::2] for part in parts[1:]]
    whole = len(words) == 5 and words[4].lstrip("-").isdecimal()
    if not whole or words[1::2] != ["over", "from"] or [n for n, _ in named] != ["first", "next"]:
        raise ValueError(
            f"recursion must be 's over k from 0, first FORMULA, next FORMULA', got {text!r}."
        )
    return {"of": words[0], "over": words[2], "start": int(words[4]), **dict(named)}
