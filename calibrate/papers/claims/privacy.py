"""Goals of claims that Gaussian releases cost at most a budget.

Releases about Poisson samples have a Renyi divergence at an order that the proof chooses, or, if
all are numbers, a certificate of :mod:`dpcal.accountants.certificates`.

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
from dpcal.calibrate.papers.kernel import balls, terms as t
from dpcal.calibrate.papers.kernel.normal import sign_at

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent
    from dpcal.calibrate.papers.claims.claim import Claim

SAMPLED = "add-or-remove-one"


class Release(NamedTuple):
    """Gaussian answers of one kind.

    Parameters
    ----------
    sensitivity, std
        L2 sensitivity under the named relation, and noise standard deviation per coordinate.
    answers
        Number of answers.
    probability
        Probability in (0, 1] with which a sample holds a record, each record independently; every
        answer has its own sample.
    """

    sensitivity: t.Term
    std: t.Term
    answers: t.Term = t.ONE
    probability: t.Term = t.ONE

    @property
    def squared_ratio(self) -> t.Term:
        """The squared sensitivity in units of the noise."""
        return t.power(t.over(self.sensitivity, self.std), t.number(2))


def is_sampled(claim: Claim) -> bool:
    """Return whether a release is about a sample."""
    return any(release.probability != t.ONE for release in claim.parts["releases"])


def is_whole(order: t.Term) -> bool:
    """Return whether an order is a whole number with a divergence that is written as a sum."""
    value = order[1] if order[0] == "num" else Fraction(1, 2)
    return bool(value.denominator == 1 and 2 <= value <= sampled.HIGHEST)


def squared_mu(claim: Claim) -> t.Term:
    """Return the squared Gaussian-DP parameter of all releases."""
    return t.plus(*(t.times(row.answers, row.squared_ratio) for row in claim.parts["releases"]))


def goals(claim: Claim, given: Sequence[t.Term], context: Any = None) -> list[Relation]:
    """Return the goals: positive deviations, nonnegative counts, a cost within the budget.

    ``given`` has the order of the divergence for a pair of epsilon and delta about samples.
    """
    parts, found = claim.parts, _sane(claim)
    if "rho" in parts:
        return [*found, Relation(t.over(squared_mu(claim), t.number(2)), "<=", parts["rho"])]
    if "renyi" in parts:
        return [*found, Relation(_divergence(claim, parts["renyi"]), "<=", parts["epsilon"])]
    if is_sampled(claim):
        t.require(len(given) == 1, "an order.")
        return [*found, *_goals_at(claim, *given)]
    spent = gaussian_delta(parts["epsilon"], t.power(squared_mu(claim), t.number("1/2")))
    return [*found, Relation(spent, "<=", parts["delta"])]


def necessary(claim: Claim) -> list[Relation]:
    """Return the goals that hold for any order."""
    by_order = is_sampled(claim) and "renyi" not in claim.parts
    return _sane(claim) if by_order else claim.goals()


def _sane(claim: Claim) -> list[Relation]:
    """Return the goals that numbers of releases and of a budget have their ranges."""
    releases = claim.parts["releases"]
    found = [Relation(t.ZERO, "<", release.std) for release in releases]
    found += [Relation(t.ZERO, "<=", release.answers) for release in releases]
    for release in releases if is_sampled(claim) else ():
        q = release.probability
        found += [Relation(t.ZERO, "<", q), Relation(q, "<=", t.ONE)]
    with_delta = "delta" in claim.parts
    return [*found, Relation(t.ZERO, "<=", claim.parts["epsilon"])] if with_delta else found


def _goals_at(claim: Claim, order: t.Term) -> list[Relation]:
    """Return the goals that the divergence of an order is within epsilon and delta."""
    t.require(t.symbols(order) <= claim.ranges().keys(), "an order in declared symbols.")
    found = [Relation(t.ZERO, "<", claim.parts["delta"])]
    if order[0] == "num":
        t.require(is_whole(order), f"a whole order from 2 to {sampled.HIGHEST}.")
    else:
        for release in claim.parts["releases"]:
            found += sampled.conditions(order, release.probability, release.squared_ratio)
    cost = sampled.converted(_divergence(claim, order), order, claim.parts["delta"])
    return [*found, Relation(cost, "<=", claim.parts["epsilon"])]


def _divergence(claim: Claim, order: t.Term) -> t.Term:
    """Return the divergence of all releases at an order, or a bound on it."""
    rows = []
    for release in claim.parts["releases"]:
        q, u = release.probability, release.squared_ratio
        whole = order[0] == "num"
        one = sampled.at_whole_order(int(order[1]), q, u) if whole else t.ZERO
        rows.append(t.times(release.answers, one if whole else sampled.upper_bound(order, q, u)))
    return t.plus(*rows)


def gaussian_delta(epsilon: t.Term, mu: t.Term) -> t.Term:
    """Return the delta of mu-Gaussian-DP at epsilon (Dong, Roth and Su 2022, Corollary 2.13)."""
    half, ratio = t.over(mu, t.number(2)), t.over(epsilon, mu)
    first = _normal_tail(t.minus(ratio, half))
    return t.minus(first, t.times(("exp", epsilon), _normal_tail(t.plus(ratio, half))))


def _normal_tail(x: t.Term) -> t.Term:
    return t.times(t.number("1/2"), ("erfc", t.times(x, t.power(t.number(2), t.number("-1/2")))))


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
        costs at most as much, so its epsilon refutes the claim.
    """
    box = {name: (x, x) for name, x in point.items()}
    for goal in _sane(claim):
        sign = sign_at(goal.gap, point)
        t.require(sign == 1 or (sign == 0 and not goal.strict), "releases with a price.")
    rows: list[Any] = []
    for release in claim.parts["releases"]:
        ratio = t.over(release.std, release.sensitivity)
        rows.append([balls.value(x, box) for x in (ratio, release.answers, release.probability)])
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
