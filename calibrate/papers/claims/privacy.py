"""Claims about privacy: Gaussian releases within a budget, and an event within its price.

Releases about Poisson samples are priced by their Renyi divergence at an order that the proof
chooses, or, if all are numbers, by a certificate of :mod:`dpcal.accountants.certificates`.

>>> claim = Private("one answer", (Release("2*L/n", "L/n"),), rho="2")
>>> claim.formula()
'2-zCDP fits 2-zCDP, replace-one'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.claims import sampled
from dpcal.calibrate.papers.claims.base import Claim
from dpcal.calibrate.papers.claims.formulas import gaussian_delta, show, term_of, to_sympy
from dpcal.calibrate.papers.claims.ranges import Goal, Replace
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.normal import sign_at
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    ZERO,
    Term,
    minus,
    number,
    over,
    plus,
    power,
    require,
    symbols,
    times,
)

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
    probability
        Probability in (0, 1] with which a sample holds a record, each record independently; every
        answer has its own sample.
    """

    sensitivity: Any
    std: Any
    count: Any = 1
    probability: Any = 1

    def parts(self) -> tuple[Any, ...]:
        """Return sensitivity, standard deviation, count and probability."""
        return self.sensitivity, self.std, self.count, self.probability

    def map(self, change: Replace) -> Release:
        """Return the release with its formulas changed."""
        return Release(*map(change, map(term_of, self.parts())))

    @property
    def squared_ratio(self) -> Term:
        """The squared sensitivity in units of the noise."""
        return power(over(self.sensitivity, self.std), number(2))


@dataclass(frozen=True)
class Private(Claim):
    """Gaussian releases cost at most the claimed budget.

    Parameters
    ----------
    releases
        The releases, composed.
    rho
        Claimed zero-concentrated budget; the exact cost is the sum of ``count (sensitivity /
        std)^2 / 2``.
    epsilon, delta
        Claimed (epsilon, delta).
    renyi
        Whole number from 2 to 256: with ``epsilon``, the claimed divergence of this order. Exactly
        one of ``rho``, the pair and this one must be given.
    order
        Order of the divergence that a proof about samples may take: a hint, and no part of the
        claim.
    definition
        Whether the claim repeats the cost of Gaussian noise on purpose.
    neighboring_relation
        Relation under which the sensitivities hold; ``"add-or-remove-one"`` for samples.
    """

    releases: tuple[Release, ...]
    rho: Any = field(default=None, kw_only=True)
    epsilon: Any = field(default=None, kw_only=True)
    delta: Any = field(default=None, kw_only=True)
    renyi: Any = field(default=None, kw_only=True)
    order: Any = field(default=None, kw_only=True)
    definition: bool = field(default=False, kw_only=True)
    neighboring_relation: str = field(default="replace-one", kw_only=True)

    formulas = ("rho", "epsilon", "delta", "renyi", "order")

    def _given(self) -> Iterable[Any]:
        yield from super()._given()
        yield from (part for release in self.releases for part in release.parts())

    def _settle(self) -> None:
        super()._settle()
        if not self.releases:
            raise ValueError(f"claim {self.name!r} must have a release, got none.")
        given = tuple(name for name in self.formulas[:-1] if getattr(self, name) is not None)
        if given not in (("rho",), ("epsilon", "delta"), ("epsilon", "renyi")):
            raise ValueError(
                f"claim {self.name!r} must have a budget, either rho, epsilon and delta, or "
                f"epsilon and renyi, got {', '.join(given) or 'none'}."
            )
        self._set("releases", tuple(r.map(lambda term: term) for r in self.releases))
        if self.renyi is not None and not _is_whole(self.renyi):
            raise ValueError(
                f"renyi must be a whole number from 2 to {sampled.HIGHEST}, got {show(self.renyi)}."
            )
        if self.is_sampled and (self.rho is not None or self.neighboring_relation != _SAMPLED):
            raise ValueError(
                f"a release on a sample must have a budget of epsilon and the relation {_SAMPLED}, "
                f"got {self.formula()}."
            )

    @property
    def proved(self) -> str:  # type: ignore[override]
        """The status of a claim that is proved."""
        return "DEFINITION" if self.definition else "PROVED"

    @property
    def is_sampled(self) -> bool:
        """Whether a release is about a sample."""
        return any(release.probability != ONE for release in self.releases)

    def budget(self) -> tuple[Term, ...]:
        """Return rho, or epsilon and delta, or the order and epsilon."""
        row = (self.rho, self.renyi, self.epsilon, self.delta)
        return tuple(value for value in row if value is not None)

    def expressions(self) -> tuple[Term, ...]:
        parts = [part for release in self.releases for part in release.parts()]
        return (*parts, *self.budget())

    def substitute(self, change: Replace) -> Claim:
        releases = tuple(release.map(change) for release in self.releases)
        return super().substitute(change).changed(releases=releases)

    def goals(self, *given: Term) -> list[Goal]:
        """Return the goals: positive deviations, nonnegative counts, a cost within the budget.

        ``given`` has the order of the divergence for a pair of epsilon and delta about samples.
        """
        found = self._sane()
        if self.rho is not None:
            return [*found, Goal(over(self.squared_mu, number(2)), "<=", self.rho)]
        if self.renyi is not None:
            return [*found, Goal(self._divergence(self.renyi), "<=", self.epsilon)]
        if self.is_sampled:
            require(len(given) == 1, "an order.")
            return [*found, *self._goals_at(*given)]
        spent = gaussian_delta(self.epsilon, power(self.squared_mu, number("1/2")))
        return [*found, Goal(spent, "<=", self.delta)]

    def _sane(self) -> list[Goal]:
        """Return the goals that numbers of releases and of a budget have their ranges."""
        found = [Goal(ZERO, "<", release.std) for release in self.releases]
        found += [Goal(ZERO, "<=", release.count) for release in self.releases]
        for release in self.releases if self.is_sampled else ():
            found += [Goal(ZERO, "<", release.probability), Goal(release.probability, "<=", ONE)]
        return found if self.delta is None else [*found, Goal(ZERO, "<=", self.epsilon)]

    def _goals_at(self, order: Term) -> list[Goal]:
        """Return the goals that the divergence of an order is within epsilon and delta."""
        require(symbols(order) <= self.ranges().keys(), "an order in declared symbols.")
        found = [Goal(ZERO, "<", self.delta)]
        if order[0] == "num":
            require(_is_whole(order), f"a whole order from 2 to {sampled.HIGHEST}.")
        else:
            for release in self.releases:
                found += sampled.conditions(order, release.probability, release.squared_ratio)
        cost = sampled.converted(self._divergence(order), order, self.delta)
        return [*found, Goal(cost, "<=", self.epsilon)]

    def _divergence(self, order: Term) -> Term:
        """Return the divergence of all releases at an order, or a bound on it."""
        rows = []
        for release in self.releases:
            q, u = release.probability, release.squared_ratio
            whole = order[0] == "num"
            one = sampled.at_whole_order(int(order[1]), q, u) if whole else ZERO
            rows.append(times(release.count, one if whole else sampled.upper_bound(order, q, u)))
        return plus(*rows)

    def necessary(self) -> list[Goal]:
        return self._sane() if self.is_sampled and self.renyi is None else self.goals()

    def priced(self, point: Mapping[str, Fraction], outward: bool) -> Priced:
        """Return the claim at a point as an event and a budget of floating-point numbers.

        Parameters
        ----------
        point
            Values of all symbols.
        outward
            Whether the event costs at least as much as the releases, and the budget is at most the
            claimed one, so that a proof for them proves the claim at the point. Otherwise the
            event costs at most as much, so that its price refutes the claim.
        """
        box = {name: (x, x) for name, x in point.items()}
        for left, relation, right in self._sane():
            sign = sign_at(minus(right, left), point)
            require(sign == 1 or (sign == 0 and relation == "<="), "releases with a price.")
        rows = []
        for release in self.releases:
            ratio = over(release.std, release.sensitivity)
            parts = (ratio, release.count, release.probability)
            rows.append([balls.value(part, box) for part in parts])
        event = sampled.event_of(rows, outward)
        epsilon, delta = (
            sampled.rounded(balls.value(part, box), up=not outward)
            for part in (self.epsilon, self.delta)
        )
        return Priced(
            self.name,
            lambda: event,
            epsilon=epsilon,
            delta=delta,
            neighboring_relation=self.neighboring_relation,
        )

    @property
    def squared_mu(self) -> Term:
        """The squared Gaussian-DP parameter of all releases."""
        return plus(*(times(release.count, release.squared_ratio) for release in self.releases))

    def formula(self) -> str:
        budget = ", ".join(map(show, self.budget()))
        kind = f"({budget})-DP" if self.renyi is None else f"({budget})-Renyi DP"
        kind = f"{budget}-zCDP" if self.rho is not None else kind
        cost = to_sympy(over(self.squared_mu, number(2)), dict.fromkeys(self.used_symbols(), "+"))
        spent = f"{cost}-zCDP"
        if self.is_sampled:
            spent = ", ".join(
                f"{show(r.count)} answers of noise {show(over(r.std, r.sensitivity))} on samples "
                f"of {show(r.probability)}"
                for r in self.releases
            )
        return f"{spent} fits {kind}, {self.neighboring_relation}{self.conditions_text()}"


_SAMPLED = "add-or-remove-one"


def _is_whole(order: Term) -> bool:
    value = order[1] if order[0] == "num" else Fraction(1, 2)
    return bool(value.denominator == 1 and 2 <= value <= sampled.HIGHEST)


@dataclass(frozen=True)
class Priced(Claim):
    """The accountant's price of an event is within the claimed epsilon.

    A certificate in ball arithmetic proves or refutes it. Where no certificate is known for the
    event, a price in floating point that is rounded outward makes it SAMPLED, or refutes it.

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
