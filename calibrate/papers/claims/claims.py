"""Claims: statements about formulas, as data that a checker reads.

A claim is written as text, or with sympy expressions, and kept as it is written. A symbol's range
comes from its :class:`~dpcal.calibrate.papers.claims.language.Quantity`, or from its assumptions in
sympy (``positive("x y")``).

>>> claim = Bound("AM-GM", "2*sqrt(x*y) <= x + y")
>>> claim.formula()
'2*sqrt(x*y) <= x + y'
>>> Bound("empty", "x <= x")
Traceback (most recent call last):
    ...
ValueError: claim 'empty' says nothing: both sides are x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.claims.base import Claim
from dpcal.calibrate.papers.claims.formulas import (
    relation,
    show,
    term_of,
    to_latex,
)
from dpcal.calibrate.papers.claims.ranges import (
    POSITIVE,
    Goal,
    Range,
    Relation,
)
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    ZERO,
    Term,
    Undecided,
    number,
    power,
    require,
    substitute,
    symbol,
    symbols,
    times,
)

if TYPE_CHECKING:
    pass

__all__ = [
    "Balance",
    "Bound",
    "Claim",
    "Definition",
    "Enumeration",
    "Feasible",
    "Identity",
    "Loose",
    "Prose",
    "Range",
    "Rate",
    "Relation",
    "SoftRate",
    "Units",
]


@dataclass(frozen=True)
class _TwoSided(Claim):
    left: Any
    right: Any = None

    relation = "="
    formulas = ("left", "right")

    def _settle(self) -> None:
        written = isinstance(self.left, str) or isinstance(self.right, str)
        if self.right is None:
            left, mark, right = relation(self.left)
            self._mark(mark)
            self._set("left", left)
            self._set("right", right)
        super()._settle()
        # sympy has evaluated its expressions, so that printed sides that differ may look equal.
        reason = self.says_nothing() if written else ""
        if reason:
            raise ValueError(f"claim {self.name!r} says nothing: {reason}.")

    def _mark(self, mark: str) -> None:
        if mark != self.relation:
            raise ValueError(f"relation of a {self.kind} must be {self.relation}, got {mark}.")

    def says_nothing(self) -> str:
        return f"both sides are {show(self.left)}" if self.left == self.right else ""

    def goals(self, *given: Term) -> list[Goal]:
        return [Goal(self.left, self.relation, self.right)]

    def formula(self) -> str:
        return f"{show(self.left)} {self.relation} {show(self.right)}{self.conditions_text()}"

    def latex(self) -> str:
        signs = {"=": "=", "<=": r"\le", "<": "<", "=O": r"= O", "=O~": r"= \tilde O"}
        return f"{to_latex(self.left)} {signs[self.relation]} {to_latex(self.right)}"


@dataclass(frozen=True)
class Identity(_TwoSided):
    """``left`` equals ``right`` for all values of the symbols."""


@dataclass(frozen=True)
class Definition(Identity):
    """An identity that repeats a definition on purpose: it locks a formula against changes."""

    proved = "DEFINITION"


@dataclass(frozen=True)
class Balance(_TwoSided):
    """A setting that equates two errors: one falls and the other rises as it grows.

    Parameters
    ----------
    of
        The parameter. With all other settings put in, ``left`` and ``right`` must be this
        parameter to fixed powers of opposite sign, times what does not depend on it, so that the
        balance is the optimum up to a factor 2.
    raw
        Both sides before the parameter's own setting is put in, filled in by the schedule.
    """

    of: Any = field(kw_only=True)
    raw: tuple[Any, Any] | None = field(default=None, kw_only=True)

    def _given(self) -> Iterable[Any]:
        yield from super()._given()
        yield self.of

    def _settle(self) -> None:
        super()._settle()
        self._set("of", str(self.of))

    def ranges(self) -> dict[str, Range]:
        known = super().ranges()
        raw = {s for side in self.raw or () for s in symbols(side)}
        require(raw <= {self.of, *known}, "sides in declared symbols.")
        scale = _fresh((f"scale_{self.of}",), {*known, self.of})
        return {**dict.fromkeys((self.of, *scale), POSITIVE), **known}

    def goals(self, *given: Term) -> list[Goal]:
        """Return the goals that both sides are equal and scale by powers of opposite sign."""
        require(self.raw and len(given) == 2 and not any(map(symbols, given)), "two powers.")
        scale = symbol(f"scale_{self.of}")
        table = {self.of: times(symbol(self.of), scale)}
        scaled = [
            Goal(substitute(side, table), "=", times(side, power(scale, exponent)))
            for side, exponent in zip(self.raw or (), given, strict=True)
        ]
        return [*self.necessary(), Goal(times(*given), "<", ZERO), *scaled]

    def necessary(self) -> list[Goal]:
        return [Goal(self.left, "=", self.right)]


@dataclass(frozen=True)
class Bound(_TwoSided):
    """``left`` is at most ``right`` (or less, when written with ``<``) on the domain."""

    strict: bool = field(default=False, kw_only=True)

    def _mark(self, mark: str) -> None:
        if mark not in ("<=", "<"):
            raise ValueError(f"relation of a {self.kind} must be <= or <, got {mark}.")
        self._set("strict", mark == "<")

    @property
    def relation(self) -> str:  # type: ignore[override]
        """The sign between the sides."""
        return "<" if self.strict else "<="

    def says_nothing(self) -> str:
        for pair in self.where:
            if pair[:2] == (self.left, self.right) and (pair.strict or not self.strict):
                return f"{pair.text()} is one of its hypotheses"
        return super().says_nothing()


@dataclass(frozen=True)
class Loose(Bound):
    """A bound that holds, and holds with ``factor`` times the left side as well.

    Parameters
    ----------
    factor
        Factor by which the printed constant can be improved; a number above 1.
    """

    factor: Any = field(kw_only=True)

    proved = "LOOSE"

    def _settle(self) -> None:
        super()._settle()
        self._set("factor", term_of(self.factor))
        if symbols(self.factor):
            raise ValueError(f"factor must be a number, got {show(self.factor)}.")

    def goals(self, *given: Term) -> list[Goal]:
        smaller = Goal(times(self.factor, self.left), self.relation, self.right)
        return [Goal(ONE, "<", self.factor), Goal(ZERO, "<=", self.left), smaller]


@dataclass(frozen=True)
class Rate(_TwoSided):
    """``left`` is of the order of ``right``, at most, as the growing symbols go to infinity.

    Every term of ``left`` is kept: one term that outgrows ``right`` refutes the claim. Powers of
    logarithms count.

    Parameters
    ----------
    growth
        ``{symbol: exponent}``: the symbol is ``(s t) ** exponent`` for a scale s, and t goes to
        infinity; other symbols stay fixed. Exponents may contain symbols that have a range.
    """

    growth: Mapping[Any, Any] = field(kw_only=True, hash=False)

    relation = "=O"

    def _given(self) -> Iterable[Any]:
        yield from super()._given()
        for key, value in self.growth.items():
            yield from (key, value)

    def _settle(self) -> None:
        super()._settle()
        self._set("growth", {str(s): term_of(value) for s, value in self.growth.items()})

    def all_terms(self) -> tuple[Term, ...]:
        return (*super().all_terms(), *map(symbol, self.growth), *self.growth.values())

    def _occurring(self) -> set[str]:
        return symbols(self.left) | symbols(self.right)

    def before(self) -> Claim:
        """Return the facts about the symbols before they grow: their domain."""
        return Claim(self.name).changed(domain=self.domain, where=self.where, sizes=self.sizes)

    def _size(self) -> str:
        """Return a name for t that no symbol of the claim has."""
        return "t".ljust(1 + max(map(len, self.domain), default=0), "_")

    def ranges(self) -> dict[str, Range]:
        """Return the ranges of t (at least 3) and of the symbols that do not grow."""
        found = super().ranges()
        require(self.growth.keys() <= self._occurring(), "growing symbols that occur on a side.")
        for name, exponent in self.growth.items():
            require(not symbols(exponent) & self.growth.keys(), "exponents that do not grow.")
            values = found.pop(name)
            size = exponent[1] if exponent[0] == "num" else None
            rises, falls = size is None or size > 0, size is None or size < 0
            require(rises or falls, "growing symbols that grow.")
            require(values.low is not None and values.low >= 0, "positive growing symbols.")
            require(values.high is None or not rises, "growing symbols without an upper bound.")
            require(values.low == 0 or not falls, "falling symbols that come near zero.")
        held = {name for pair in self.where for side in pair[:2] for name in symbols(side)}
        require(not held & self.growth.keys(), "conditions that do not stop the growth.")
        return {**found, self._size(): Range(Fraction(3))}

    def necessary(self) -> list[Goal]:
        raise Undecided("a rate is not refuted at a point.")


@dataclass(frozen=True)
class SoftRate(Rate):
    """``left`` is of the order of ``right`` up to powers of logarithms: the papers' O-tilde."""

    relation = "=O~"


@dataclass(frozen=True)
class Feasible(Claim):
    """All conditions hold on the domain: batches in [1, n], periods >= 1, budgets kept."""

    conditions: tuple[Any, ...]

    inequalities = ("conditions",)

    def _settle(self) -> None:
        super()._settle()
        if not self.conditions:
            raise ValueError(f"claim {self.name!r} says nothing: it has no condition.")

    def goals(self, *given: Term) -> list[Goal]:
        return [Goal(a, "<" if strict else "<=", b) for a, b, strict in self.conditions]

    def formula(self) -> str:
        return ", ".join(pair.text() for pair in self.conditions) + self.conditions_text()

    def latex(self) -> str:
        signs = {True: "<", False: r"\le"}
        rows = (f"{to_latex(a)} {signs[s]} {to_latex(b)}" for a, b, s in self.conditions)
        return r",\quad ".join(rows)


@dataclass(frozen=True)
class Units(Claim):
    """An expression has the given unit: it scales accordingly when base units change.

    Parameters
    ----------
    expression
        The expression that is rescaled.
    unit
        Expected exponents of the base units; empty for a pure number.
    scales
        Units of the symbols, filled in by the schedule.
    """

    expression: Any
    unit: Mapping[str, Any] = field(default_factory=dict, hash=False)
    scales: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False, kw_only=True)

    formulas = ("expression",)

    def _settle(self) -> None:
        super()._settle()
        self._set("unit", {base: term_of(p) for base, p in self.unit.items()})

    def all_terms(self) -> tuple[Term, ...]:
        units = [self.unit, *(self.scales.get(name, {}) for name in symbols(self.expression))]
        return (*super().all_terms(), *(power for unit in units for power in unit.values()))

    def ranges(self) -> dict[str, Range]:
        known = super().ranges()
        bases = {base for unit in (self.unit, *self.scales.values()) for base in unit}
        scales = _fresh((f"scale_{base}" for base in bases), known)
        return {**known, **dict.fromkeys(scales, POSITIVE)}

    def goals(self, *given: Term) -> list[Goal]:
        """Return the goal that rescaled symbols rescale the expression by its unit."""
        names = symbols(self.expression)
        missing = names - self.scales.keys()
        require(not missing, f"units of {', '.join(sorted(missing))}.")
        table = {name: times(symbol(name), _scale(self.scales[name])) for name in names}
        moved = substitute(self.expression, table)
        return [Goal(moved, "=", times(self.expression, _scale(self.unit)))]

    def formula(self) -> str:
        return f"[{show(self.expression)}] = {_unit_name(self.unit)}"

    def latex(self) -> str:
        return rf"\left[{to_latex(self.expression)}\right] = \text{{{_unit_name(self.unit)}}}"


def _fresh(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return names, which no symbol of the claim may have."""
    found = sorted(names)
    require(not {*found} & {*known}, f"no symbol called {' or '.join(found)}.")
    return found


def _scale(unit: Mapping[str, Term]) -> Term:
    return times(*(power(symbol(f"scale_{base}"), exponent) for base, exponent in unit.items()))


def _unit_name(unit: Mapping[str, Term]) -> str:
    return " ".join(f"{base}^({show(p)})" for base, p in unit.items() if p != number(0)) or "1"


@dataclass(frozen=True)
class Enumeration(Claim):
    """A property of whole numbers, checked case by case in exact arithmetic.

    Parameters
    ----------
    holds
        Function of one case, returning whether the property holds. It must not use floating point.
    cases
        The cases to check; at least one.
    complete
        Whether ``cases`` holds every case, so that checking them is a proof.
    """

    holds: Callable[..., bool]
    cases: Sequence[Any]
    complete: bool = field(default=False, kw_only=True)

    def _settle(self) -> None:
        super()._settle()
        if not self.cases:
            raise ValueError(f"claim {self.name!r} says nothing: it has no case.")

    def goals(self, *given: Term) -> list[Goal]:
        """Return the goal that no case fails, if the list of cases is complete."""
        require(self.complete, "cases that are all there is.")
        failed = sum(self.holds(case) is not True for case in self.cases)
        return [Goal(number(failed), "<=", ZERO)]

    def formula(self) -> str:
        return f"{self.holds.__name__.lstrip('_')}, {len(self.cases)} cases"


@dataclass(frozen=True)
class Prose(Claim):
    """A statement that no executable check decides; always OPEN.

    Parameters
    ----------
    reason
        Reason why it cannot be executed.
    """

    reason: str

    def formula(self) -> str:
        return self.reason
