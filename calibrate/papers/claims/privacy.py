"""Claims about privacy: Gaussian releases within a budget, and an event within its price.

>>> claim = Private("one answer", (Release("2*L/n", "L/n"),), rho="2")
>>> claim.formula()
'2-zCDP fits 2-zCDP, replace-one'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy

from dpcal.calibrate.papers.claims.base import Claim
from dpcal.calibrate.papers.claims.formulas import gaussian_delta, show, term_of, to_sympy
from dpcal.calibrate.papers.claims.ranges import Goal, Replace
from dpcal.calibrate.papers.kernel.terms import ZERO, Term, number, over, plus, power, times

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

__all__ = ["Priced", "Private", "Release"]


@dataclass(frozen=True)
class Release:
    """Gaussian answers of one kind.

    Parameters
    ----------
    sensitivity, std
        L2 sensitivity under the named relation, and noise standard deviation per coordinate.
    count
        Number of answers.
    """

    sensitivity: Any
    std: Any
    count: Any = 1

    def map(self, change: Replace) -> Release:
        """Return the release with its formulas changed."""
        parts = (term_of(part) for part in (self.sensitivity, self.std, self.count))
        return Release(*map(change, parts))


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
        Claimed (epsilon, delta); exactly one of ``rho`` and this pair must be given.
    neighboring_relation
        Relation under which the sensitivities hold.
    """

    releases: tuple[Release, ...]
    rho: Any = field(default=None, kw_only=True)
    epsilon: Any = field(default=None, kw_only=True)
    delta: Any = field(default=None, kw_only=True)
    neighboring_relation: str = field(default="replace-one", kw_only=True)

    def _given(self) -> Iterable[Any]:
        yield from super()._given()
        yield from (part for r in self.releases for part in (r.sensitivity, r.std, r.count))
        yield from (self.rho, self.epsilon, self.delta)

    def _settle(self) -> None:
        super()._settle()
        if not self.releases:
            raise ValueError(f"claim {self.name!r} must have a release, got none.")
        pair = self.epsilon is not None and self.delta is not None
        if (self.rho is not None) == pair or (self.epsilon is None) != (self.delta is None):
            raise ValueError(
                f"claim {self.name!r} must have a budget, either rho or epsilon and delta, got "
                f"rho={self.rho}, epsilon={self.epsilon}, delta={self.delta}."
            )
        self._set("releases", tuple(r.map(lambda term: term) for r in self.releases))
        for name in ("rho", "epsilon", "delta"):
            value = getattr(self, name)
            self._set(name, None if value is None else term_of(value))

    def budget(self) -> tuple[Term, ...]:
        """Return rho, or epsilon and delta."""
        return (self.rho,) if self.rho is not None else (self.epsilon, self.delta)

    def expressions(self) -> tuple[Term, ...]:
        parts = [part for r in self.releases for part in (r.sensitivity, r.std, r.count)]
        return (*parts, *self.budget())

    def substitute(self, change: Replace) -> Claim:
        names = ("rho", "epsilon", "delta")
        values = {name: getattr(self, name) for name in names}
        return (
            super()
            .substitute(change)
            .changed(
                releases=tuple(release.map(change) for release in self.releases),
                **{
                    name: None if value is None else change(value) for name, value in values.items()
                },
            )
        )

    def goals(self, *given: Term) -> list[Goal]:
        """Return the goals: positive deviations, nonnegative counts, a cost within the budget."""
        found = [Goal(ZERO, "<", release.std) for release in self.releases]
        found += [Goal(ZERO, "<=", release.count) for release in self.releases]
        if self.rho is not None:
            return [*found, Goal(over(self.squared_mu, number(2)), "<=", self.rho)]
        spent = gaussian_delta(self.epsilon, power(self.squared_mu, number("1/2")))
        return [*found, Goal(ZERO, "<=", self.epsilon), Goal(spent, "<=", self.delta)]

    @property
    def squared_mu(self) -> Term:
        """The squared Gaussian-DP parameter of all releases."""
        return plus(
            *(times(r.count, power(over(r.sensitivity, r.std), number(2))) for r in self.releases)
        )

    def formula(self) -> str:
        cost = to_sympy(over(self.squared_mu, number(2)), dict.fromkeys(self.used_symbols(), "+"))
        budget = ", ".join(map(show, self.budget()))
        kind = f"{budget}-zCDP" if self.rho is not None else f"({budget})-DP"
        fits = f"{sympy.simplify(cost)}-zCDP fits {kind}"
        return f"{fits}, {self.neighboring_relation}{self.conditions_text()}"


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
