"""The language of a schedule: what a paper prescribes, and what it claims about it.

A :class:`Schedule` lists the paper's symbols, its parameter settings *as printed* and *as
corrected*, and :class:`Claim` objects about them. Claims are data:
:func:`dpcal.calibrate.auditing.prover.prove` decides them.

>>> from sympy import sqrt
>>> from dpcal.calibrate.auditing.prover import prove
>>> n, d, epsilon, T = positive("n d epsilon T")
>>> noise = Setting(T, n * epsilon / sqrt(d), printed=n * epsilon / d, source="Theorem 1")
>>> balance = Balance("T", 1 / T, T * d / (n * epsilon) ** 2, of=T, statement="balanced errors")
>>> toy = Schedule(name="toy", title="Toy", citation="", settings=(noise,), claims=(balance,))
>>> prove(toy.resolve(balance)).status
'PROVED'
>>> prove(toy.resolve(balance.as_printed(T))).status
'REFUTED'
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy
from sympy import Expr, Symbol

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent
    from dpcal.calibrate.plan import Plan

__all__ = [
    "Balance",
    "Bound",
    "Claim",
    "Enumeration",
    "Erratum",
    "Feasible",
    "Identity",
    "Priced",
    "Private",
    "Prose",
    "Quantity",
    "Rate",
    "Release",
    "Schedule",
    "Setting",
    "Units",
    "erratum",
    "positive",
    "real",
]

Point = Mapping[Any, Any]


def positive(names: str) -> tuple[Any, ...]:
    """Return positive symbols with these space-separated names."""
    return tuple(Symbol(name, positive=True) for name in names.split())


def real(names: str) -> tuple[Any, ...]:
    """Return real symbols with these space-separated names."""
    return tuple(Symbol(name, real=True) for name in names.split())


@dataclass(frozen=True)
class Quantity:
    """A symbol of a schedule.

    Parameters
    ----------
    symbol
        The symbol.
    meaning
        What it stands for, in a few words.
    units
        Exponents of the base units, such as ``{"loss": 1, "parameter": -1}`` for a Lipschitz
        constant. Empty for a pure number.
    """

    symbol: Any
    meaning: str
    units: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Setting:
    """One parameter setting of a paper.

    Parameters
    ----------
    symbol
        The parameter that is set.
    corrected
        The expression to use.
    printed
        The expression in the paper, when it differs.
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

    def expression(self, printed: bool) -> Any:
        """Return the printed or the corrected expression."""
        return self.printed if printed and self.printed is not None else self.corrected


@dataclass(frozen=True)
class Claim:
    """A statement that a machine can decide, refute, sample, or leave open.

    Parameters
    ----------
    name
        Short identifier, unique in its schedule.
    statement
        One line for the reader.
    source
        Where the paper says so.
    where
        Sympy inequalities that restrict the domain. Symbols declared positive are positive anyway.
    on
        Ranges ``{symbol: (low, high)}`` of exact numbers; ``oo`` is allowed.
    free
        Settings that stay symbols instead of being replaced by their expressions.
    printed
        Settings taken as printed instead of as corrected.
    at
        Values ``{symbol: expression}`` put in after the settings: a special case.
    points
        Exact points worth trying first when looking for a counterexample.
    """

    name: str
    statement: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    where: tuple[Any, ...] = field(default=(), kw_only=True)
    on: Point = field(default_factory=dict, kw_only=True, hash=False)
    free: tuple[Any, ...] = field(default=(), kw_only=True)
    printed: tuple[Any, ...] = field(default=(), kw_only=True)
    at: Point = field(default_factory=dict, kw_only=True, hash=False)
    points: tuple[Point, ...] = field(default=(), kw_only=True, hash=False)

    @property
    def kind(self) -> str:
        """The kind of claim, in lower case."""
        return type(self).__name__.lower()

    def as_printed(self, *settings: Any, name: str = "") -> Claim:
        """Return the same claim with these settings as printed."""
        return dataclasses.replace(self, name=name or self.name, printed=(*self.printed, *settings))

    def expressions(self) -> tuple[Any, ...]:
        """Return the expressions that settings are substituted into."""
        return ()

    def substitute(self, replace: Callable[[Any], Any]) -> Claim:
        """Return the claim with ``replace`` applied to each of its expressions."""
        return dataclasses.replace(self, where=_each(replace, self.where))

    def formula(self) -> str:
        """Return the claim as one line of text."""
        return ""

    def latex(self) -> str:
        """Return the claim as LaTeX."""
        return ""


def _each(replace: Callable[[Any], Any], expressions: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(replace(expression) for expression in expressions)


@dataclass(frozen=True)
class _TwoSided(Claim):
    left: Any
    right: Any

    relation = "="

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", sympy.sympify(self.left))
        object.__setattr__(self, "right", sympy.sympify(self.right))

    def expressions(self) -> tuple[Any, ...]:
        return (self.left, self.right, *self.where)

    def substitute(self, replace: Callable[[Any], Any]) -> Claim:
        return dataclasses.replace(
            self,
            left=replace(self.left),
            right=replace(self.right),
            where=_each(replace, self.where),
        )

    def formula(self) -> str:
        return f"{self.left} {self.relation} {self.right}{_conditions(self)}"

    def latex(self) -> str:
        sign = {"=": "=", "<=": r"\le", "=O": r"= O"}[self.relation]
        return f"{sympy.latex(self.left)} {sign} {sympy.latex(self.right)}"


def _conditions(claim: Claim) -> str:
    ranges = [f"{symbol} in [{low}, {high}]" for symbol, (low, high) in claim.on.items()]
    conditions = ranges + [str(condition) for condition in claim.where]
    return f"  where {', '.join(conditions)}" if conditions else ""


@dataclass(frozen=True)
class Identity(_TwoSided):
    """``left`` equals ``right`` for all values of the symbols."""


@dataclass(frozen=True)
class Balance(_TwoSided):
    """A setting equates two errors of which one falls and the other rises in it.

    Parameters
    ----------
    of
        The parameter: its setting is substituted, and before that ``left`` and ``right`` must be
        monomials in it with exponents of opposite sign, so that the balance is the optimum up to
        a factor 2.
    """

    of: Any = field(kw_only=True)
    raw: tuple[Any, Any] | None = field(default=None, kw_only=True)

    def substitute(self, replace: Callable[[Any], Any]) -> Claim:
        return dataclasses.replace(
            self,
            left=replace(self.left),
            right=replace(self.right),
            where=_each(replace, self.where),
            raw=self.raw or (self.left, self.right),
        )


@dataclass(frozen=True)
class Bound(_TwoSided):
    """``left`` is at most ``right`` on the domain given by ``where`` and ``on``."""

    relation = "<="


@dataclass(frozen=True)
class Rate(_TwoSided):
    """``left`` is of the order of ``right``, at most, as the growing symbols go to infinity.

    Every term of ``left`` is kept: one term that outgrows ``right`` refutes the claim. Logarithms
    count as constants.

    Parameters
    ----------
    growth
        ``{symbol: exponent}``: the symbol grows like ``t ** exponent``; other symbols stay fixed.
        Exponents may contain symbols that have a range in ``on``.
    """

    growth: Point = field(kw_only=True, hash=False)

    relation = "=O"


@dataclass(frozen=True)
class Feasible(Claim):
    """Every condition holds on the domain: batches in [1, n], periods >= 1, budgets kept."""

    conditions: tuple[Any, ...]

    def expressions(self) -> tuple[Any, ...]:
        return (*self.conditions, *self.where)

    def substitute(self, replace: Callable[[Any], Any]) -> Claim:
        return dataclasses.replace(
            self, conditions=_each(replace, self.conditions), where=_each(replace, self.where)
        )

    def formula(self) -> str:
        return ", ".join(map(str, self.conditions)) + _conditions(self)

    def latex(self) -> str:
        return r",\quad ".join(map(sympy.latex, self.conditions))


@dataclass(frozen=True)
class Units(Claim):
    """Expressions scale as their units say when the units of loss and parameter change.

    Parameters
    ----------
    expression
        What is rescaled.
    unit
        Expected exponents of the base units; empty for a pure number.
    scales
        Units of the symbols, filled in from the schedule.
    """

    expression: Any
    unit: Mapping[str, Any] = field(default_factory=dict, hash=False)
    scales: Mapping[Any, Mapping[str, Any]] = field(default_factory=dict, hash=False, kw_only=True)

    def expressions(self) -> tuple[Any, ...]:
        return (self.expression,)

    def substitute(self, replace: Callable[[Any], Any]) -> Claim:
        return dataclasses.replace(self, expression=replace(self.expression))

    def formula(self) -> str:
        return f"[{self.expression}] = {_unit_name(self.unit)}"

    def latex(self) -> str:
        return rf"\left[{sympy.latex(self.expression)}\right] = \text{{{_unit_name(self.unit)}}}"


def _unit_name(unit: Mapping[str, Any]) -> str:
    return " ".join(f"{base}^({power})" for base, power in unit.items() if power != 0) or "1"


@dataclass(frozen=True)
class Release:
    """Gaussian answers of one kind.

    Parameters
    ----------
    sensitivity, std
        L2 sensitivity under the named relation, and noise standard deviation per coordinate.
    count
        How many answers.
    """

    sensitivity: Any
    std: Any
    count: Any = 1

    def __post_init__(self) -> None:
        for name in ("sensitivity", "std", "count"):
            object.__setattr__(self, name, sympy.sympify(getattr(self, name)))


@dataclass(frozen=True)
class Private(Claim):
    """Gaussian releases cost at most the claimed budget.

    Parameters
    ----------
    releases
        The releases, unsampled, composed.
    rho
        Claimed zero-concentrated budget; the exact cost is the sum of ``count (sensitivity /
        std)^2 / 2``.
    epsilon, delta
        Claimed (epsilon, delta) when ``rho`` is not given.
    neighboring_relation
        What the sensitivities are for.
    """

    releases: tuple[Release, ...]
    rho: Any = field(default=None, kw_only=True)
    epsilon: Any = field(default=None, kw_only=True)
    delta: Any = field(default=None, kw_only=True)
    neighboring_relation: str = field(default="replace-one", kw_only=True)

    def expressions(self) -> tuple[Any, ...]:
        parts = [part for r in self.releases for part in (r.sensitivity, r.std, r.count)]
        budget = [part for part in (self.rho, self.epsilon, self.delta) if part is not None]
        return (*parts, *budget, *self.where)

    def substitute(self, replace: Callable[[Any], Any]) -> Claim:
        def one(part: Any) -> Any:
            return None if part is None else replace(part)

        releases = tuple(
            Release(replace(r.sensitivity), replace(r.std), replace(r.count)) for r in self.releases
        )
        return dataclasses.replace(
            self,
            releases=releases,
            rho=one(self.rho),
            epsilon=one(self.epsilon),
            delta=one(self.delta),
            where=_each(replace, self.where),
        )

    @property
    def squared_mu(self) -> Any:
        """The squared Gaussian-DP parameter of all releases."""
        return sympy.Add(*(r.count * (r.sensitivity / r.std) ** 2 for r in self.releases))

    def formula(self) -> str:
        cost = sympy.simplify(self.squared_mu / 2)
        budget = (
            f"{self.rho}-zCDP" if self.rho is not None else f"({self.epsilon}, {self.delta})-DP"
        )
        return f"{cost}-zCDP fits {budget}, {self.neighboring_relation}{_conditions(self)}"

    def latex(self) -> str:
        budget = self.rho if self.rho is not None else sympy.Tuple(self.epsilon, self.delta)
        cost = sympy.latex(sympy.simplify(self.squared_mu / 2))
        return rf"{cost}\text{{-zCDP}} \le {sympy.latex(budget)}"


@dataclass(frozen=True)
class Priced(Claim):
    """The accountant's price of an event is within the claimed epsilon.

    Prices are rounded outward floats, so a claim that holds is SAMPLED at one event, never PROVED.

    Parameters
    ----------
    event
        Function without arguments that returns the ``DpEvent``.
    epsilon, delta
        Claimed budget.
    neighboring_relation
        Relation under which the event is priced.
    """

    event: Callable[[], DpEvent]
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True)
    neighboring_relation: str = field(default="add-or-remove-one", kw_only=True)

    def formula(self) -> str:
        return f"{self.event()} fits ({self.epsilon}, {self.delta}), {self.neighboring_relation}"

    def latex(self) -> str:
        return rf"\text{{{self.formula()}}}".replace("_", r"\_")


@dataclass(frozen=True)
class Enumeration(Claim):
    """A property of whole numbers, checked case by case in exact arithmetic.

    Parameters
    ----------
    holds
        Function of one case, returning whether the property holds. It must not use floating point.
    cases
        The cases to check.
    complete
        Whether ``cases`` is all there is, so that checking them is a proof.
    """

    holds: Callable[..., bool]
    cases: Sequence[Any]
    complete: bool = field(default=False, kw_only=True)

    def formula(self) -> str:
        return f"{self.holds.__name__.lstrip('_')}, {len(self.cases)} cases"

    def latex(self) -> str:
        return rf"\text{{{self.formula()}}}".replace("_", r"\_")


@dataclass(frozen=True)
class Prose(Claim):
    """A statement that no executable check decides; always OPEN.

    Parameters
    ----------
    reason
        Why not.
    """

    reason: str

    def formula(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Erratum:
    """Something printed that does not hold, and what to use instead.

    Parameters
    ----------
    name
        Identifier.
    title
        What is wrong, in one sentence.
    printed
        A claim that the printed text makes; it must be refuted. A :class:`Prose` claim when
        nothing can be executed.
    corrected
        The claim that holds instead.
    use
        What to use, in one sentence.
    severity
        ``"privacy"``, ``"rate"``, ``"algorithm"`` or ``"minor"``.
    """

    name: str
    title: str
    printed: Claim
    corrected: Claim | None = None
    use: str = ""
    severity: str = "minor"
    source: str = ""


def erratum(
    name: str,
    title: str,
    claim: Claim | None,
    *,
    settings: Sequence[Any] = (),
    printed: Claim | None = None,
    use: str = "",
    severity: str = "minor",
    source: str = "",
) -> Erratum:
    """Return the pair (printed, corrected) of one claim.

    Parameters
    ----------
    claim
        The claim that holds with the corrected settings; None where the remedy is not a formula.
    settings
        Settings that the refuted version takes as printed.
    printed
        The refuted version, when it is not ``claim`` with other settings.
    """
    wrong = printed or (claim and claim.as_printed(*settings))
    if wrong is None:
        raise ValueError(f"erratum {name} must have a claim or a printed claim, got neither.")
    return Erratum(
        name=name,
        title=title,
        printed=dataclasses.replace(wrong, name=f"{name}.printed"),
        corrected=claim and dataclasses.replace(claim, name=f"{name}.corrected"),
        use=use,
        severity=severity,
        source=source,
    )


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A paper's parameter settings, and the claims that hold or fail for them.

    Parameters
    ----------
    name, title, citation
        Short name, what it schedules, and the paper.
    quantities
        Symbols with meaning and units.
    settings
        Parameter settings; a setting may use symbols that other settings define.
    claims
        Claims about the corrected settings.
    errata
        What is printed and does not hold.
    planner
        Function that turns sizes and constants into a calibrated :class:`~dpcal.calibrate.Plan`.
    """

    name: str
    title: str
    citation: str
    quantities: tuple[Quantity, ...] = ()
    settings: tuple[Setting, ...] = ()
    claims: tuple[Claim, ...] = ()
    errata: tuple[Erratum, ...] = ()
    planner: Callable[..., Plan] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        names = [claim.name for claim in self.all_claims()]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"claim names must be distinct, got {', '.join(repeated)} twice.")

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
        """Return the claim called ``name``, or say which names are near."""
        by_name = {claim.name: claim for claim in self.all_claims()}
        if name in by_name:
            return by_name[name]
        raise ValueError(f"claim {nearest(name, by_name)}")

    def setting(self, symbol: Any) -> Setting:
        """Return the setting of ``symbol`` (a symbol or its name)."""
        by_name = {str(setting.symbol): setting for setting in self.settings}
        if str(symbol) in by_name:
            return by_name[str(symbol)]
        raise ValueError(f"setting {nearest(str(symbol), by_name)}")

    def resolve(self, claim: Claim) -> Claim:
        """Return ``claim`` with settings replaced by expressions in the paper's inputs."""
        printed = {str(symbol) for symbol in claim.printed}
        for name in printed:
            self.setting(name)
        free = {str(symbol) for symbol in claim.free}
        table = {
            setting.symbol: sympy.sympify(setting.expression(str(setting.symbol) in printed))
            for setting in self.settings
            if str(setting.symbol) not in free
        }
        special = {symbol: sympy.sympify(value) for symbol, value in claim.at.items()}

        def replace(expression: Any) -> Any:
            for _ in range(
                2
            ):  # a special value may name a setting, and that setting other special values
                expression = unfold(expression, table).subs(special, simultaneous=True)
            return unfold(expression, table)

        resolved = claim.substitute(replace)
        if isinstance(resolved, Units) and not resolved.scales:
            scales = {q.symbol: dict(q.units) for q in self.quantities}
            resolved = dataclasses.replace(resolved, scales=scales)
        return resolved

    def plan(self, *, n: int, epsilon: float, delta: float, **constants: Any) -> Plan:
        """Solve the corrected setting to a calibrated plan.

        Parameters
        ----------
        n
            Number of records, at least 1.
        epsilon, delta
            The target.
        **constants
            What the schedule needs besides: the dimension ``d``, Lipschitz and smoothness
            constants, and so on.

        Raises
        ------
        ValueError
            If the schedule has no planner, a constant is missing or out of range, or no setting
            is feasible.
        """
        if self.planner is None:
            raise ValueError(f"schedule must have a planner, got {self.name!r}, which has none.")
        return self.planner(n=n, epsilon=epsilon, delta=delta, **constants)


def unfold(expression: Any, table: Mapping[Any, Any]) -> Any:
    """Substitute settings until none is left."""
    expression = sympy.sympify(expression)
    for _ in range(len(table) + 1):
        used = expression.free_symbols & table.keys()
        if not used:
            return expression
        expression = expression.subs({symbol: table[symbol] for symbol in used}, simultaneous=True)
    names = ", ".join(sorted(map(str, used)))
    raise ValueError(f"settings must not define each other in a circle, got {names}.")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that offers the names nearest to ``name``.

    >>> nearest("kl_conditon", ["kl_condition", "spiderboost"])
    "must be one of 2 known names, got 'kl_conditon'; did you mean 'kl_condition'?"
    """
    known = list(known)
    lower = {entry.lower(): entry for entry in known}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3)]
    offer = " or ".join(map(repr, close)) if close else ", ".join(map(repr, known[:8]))
    return f"must be one of {len(known)} known names, got {name!r}; did you mean {offer}?"


def exact(value: Any) -> Fraction:
    """Return a number as a fraction; floats keep their binary value."""
    if isinstance(value, Expr):
        rational = sympy.Rational(value)
        return Fraction(int(rational.p), int(rational.q))
    return Fraction(value)
