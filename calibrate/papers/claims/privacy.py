"""Goals of claims that Gaussian releases cost at most a budget.

Releases about Poisson samples are priced by their Renyi divergence at an order that the proof
chooses, or, if all are numbers, by a certificate of :mod:`dpcal.accountants.certificates`.

>>> from dpcal.calibrate.papers.claims.notation import line
>>> line("release 2*L/n with noise L/n within 2").goals()[-1].text()
'(2*L/n/(L/n))**2/2 <= 2'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcal.calibrate.papers.claims import sampled
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.ranges import Relation
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.context import Context
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
    from dpcal.calibrate.papers.claims.claim import Claim

__all__ = [
    "SAMPLED",
    "Release",
    "gaussian_delta",
    "goals",
    "is_sampled",
    "is_whole",
    "necessary",
    "priced",
    "squared_mu",
    "text",
]

SAMPLED = "add-or-remove-one"  # the relation under which samples are priced


class Release(NamedTuple):
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

    sensitivity: Term
    std: Term
    count: Term = ONE
    probability: Term = ONE

    @property
    def squared_ratio(self) -> Term:
        """The squared sensitivity in units of the noise."""
        return power(over(self.sensitivity, self.std), number(2))


def is_sampled(claim: Claim) -> bool:
    """Return whether a release is about a sample."""
    return any(release.probability != ONE for release in claim.parts["releases"])


def is_whole(order: Term) -> bool:
    """Return whether an order is a whole number whose divergence is written as a sum."""
    value = order[1] if order[0] == "num" else Fraction(1, 2)
    return bool(value.denominator == 1 and 2 <= value <= sampled.HIGHEST)


def squared_mu(claim: Claim) -> Term:
    """Return the squared Gaussian-DP parameter of all releases."""
    return plus(*(times(row.count, row.squared_ratio) for row in claim.parts["releases"]))


def goals(claim: Claim, given: Sequence[Term], context: Context) -> list[Relation]:
    """Return the goals: positive deviations, nonnegative counts, a cost within the budget.

    ``given`` has the order of the divergence for a pair of epsilon and delta about samples.
    """
    parts, found = claim.parts, _sane(claim)
    if "rho" in parts:
        return [*found, Relation(over(squared_mu(claim), number(2)), "<=", parts["rho"])]
    if "renyi" in parts:
        return [*found, Relation(_divergence(claim, parts["renyi"]), "<=", parts["epsilon"])]
    if is_sampled(claim):
        require(len(given) == 1, "an order.")
        return [*found, *_goals_at(claim, *given)]
    spent = gaussian_delta(parts["epsilon"], power(squared_mu(claim), number("1/2")))
    return [*found, Relation(spent, "<=", parts["delta"])]


def necessary(claim: Claim) -> list[Relation]:
    """Return the goals that hold for any order."""
    by_order = is_sampled(claim) and "renyi" not in claim.parts
    return _sane(claim) if by_order else claim.goals()


def _sane(claim: Claim) -> list[Relation]:
    """Return the goals that numbers of releases and of a budget have their ranges."""
    releases = claim.parts["releases"]
    found = [Relation(ZERO, "<", release.std) for release in releases]
    found += [Relation(ZERO, "<=", release.count) for release in releases]
    for release in releases if is_sampled(claim) else ():
        q = release.probability
        found += [Relation(ZERO, "<", q), Relation(q, "<=", ONE)]
    with_delta = "delta" in claim.parts
    return [*found, Relation(ZERO, "<=", claim.parts["epsilon"])] if with_delta else found


def _goals_at(claim: Claim, order: Term) -> list[Relation]:
    """Return the goals that the divergence of an order is within epsilon and delta."""
    require(symbols(order) <= claim.ranges().keys(), "an order in declared symbols.")
    found = [Relation(ZERO, "<", claim.parts["delta"])]
    if order[0] == "num":
        require(is_whole(order), f"a whole order from 2 to {sampled.HIGHEST}.")
    else:
        for release in claim.parts["releases"]:
            found += sampled.conditions(order, release.probability, release.squared_ratio)
    cost = sampled.converted(_divergence(claim, order), order, claim.parts["delta"])
    return [*found, Relation(cost, "<=", claim.parts["epsilon"])]


def _divergence(claim: Claim, order: Term) -> Term:
    """Return the divergence of all releases at an order, or a bound on it."""
    rows = []
    for release in claim.parts["releases"]:
        q, u = release.probability, release.squared_ratio
        whole = order[0] == "num"
        one = sampled.at_whole_order(int(order[1]), q, u) if whole else ZERO
        rows.append(times(release.count, one if whole else sampled.upper_bound(order, q, u)))
    return plus(*rows)


def gaussian_delta(epsilon: Term, mu: Term) -> Term:
    """Return the delta of mu-Gaussian-DP at epsilon (Dong, Roth and Su 2022, Corollary 2.13)."""
    half, ratio = over(mu, number(2)), over(epsilon, mu)
    first = _normal_tail(minus(ratio, half))
    return minus(first, times(("exp", epsilon), _normal_tail(plus(ratio, half))))


def _normal_tail(x: Term) -> Term:
    return times(number("1/2"), ("erfc", times(x, power(number(2), number("-1/2")))))


def priced(
    claim: Claim, point: Mapping[str, Fraction], outward: bool
) -> tuple[DpEvent, float, float, str]:
    """Return the claim at a point: an event, epsilon and delta in floating point, and a relation.

    Parameters
    ----------
    claim
        A claim of releases within epsilon and delta.
    point
        Values of all symbols.
    outward
        Whether the event costs at least as much as the releases, and the budget is at most the
        claimed one, so that a proof for them proves the claim at the point. Otherwise the event
        costs at most as much, so that its price refutes the claim.
    """
    box = {name: (x, x) for name, x in point.items()}
    for goal in _sane(claim):
        sign = sign_at(goal.gap, point)
        require(sign == 1 or (sign == 0 and not goal.strict), "releases with a price.")
    rows: list[Any] = []
    for release in claim.parts["releases"]:
        ratio = over(release.std, release.sensitivity)
        rows.append([balls.value(x, box) for x in (ratio, release.count, release.probability)])
    budget = (balls.value(claim.parts[name], box) for name in ("epsilon", "delta"))
    epsilon, delta = (sampled.rounded(part, up=not outward) for part in budget)
    return sampled.event_of(rows, outward), epsilon, delta, claim.parts["relation"]


def text(claim: Claim) -> str:
    """Return the claim as a line of text has it."""
    rows, parts = [], claim.parts
    for release in parts["releases"]:
        sensitivity, std, count, chance = map(show, release)
        times_ = "" if count == "1" else f" times {count}"
        sample = "" if chance == "1" else f" on a sample {chance}"
        rows.append(f"{sensitivity} with noise {std}{times_}{sample}")
    names = ("rho", "renyi", "epsilon", "delta")
    budget = ", ".join(show(parts[name]) for name in names if name in parts)
    order = "order " if "renyi" in parts else ""
    return f"release {', '.join(rows)} within {order}{budget}, {parts['relation']}"
