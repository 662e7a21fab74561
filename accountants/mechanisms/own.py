r"""Mechanisms of your own: events from probabilities, profiles and PLDs.

Each function returns an event, which you can account for, compose and sample as any other one. Its
premise is the caller's: that the laws P (with the record) and Q (without it) dominate the mechanism
under the neighboring relation that is named, as a pair of worst neighbors does. All else is bounded
here.

A mechanism that answers 0, 1 or 2 with these probabilities:

>>> from dpcal.accountants import delta, epsilon
>>> event = from_pmf([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], name="three answers")
>>> print(f"{delta(event, epsilon=0.0):.4f}")       # 0.5 - 0.2
0.3000

Sources: a profile's chords are a dominating pair (Zhu, Dong and Wang 2022, Proposition 10 and
Algorithm 1); masses that move to both ends of an interval keep P and Q (Doroshenko et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.accountants.directions import relation_of
from dpcal.accountants.events import DominatingPairDpEvent
from dpcal.accountants.inversion.amplification import loss_of
from dpcal.accountants.inversion.finite_laws import FiniteLaw, gathered, law_of, law_of_profile
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss, Reals
from dpcal.accountants.mechanisms.row import Pairs, Row, refuse
from dpcal.accountants.rounding import log_of
from dpcal.errors import TooLarge

# Largest distance from 1 of a sum of probabilities, so that a wrong table is found.
_OFF = 1e-9
# Largest distance from 1 of a sum of probabilities that rounding explains.
_ROUNDING = 1e-12
# Most outcomes, or points of a profile: exact fractions of so many take some seconds.
_MOST = 100_000
_FAR = 500.0
_NOTHING = law_of(NO_LOSS)


def from_pmf(
    with_record: ArrayLike,
    without_record: ArrayLike,
    *,
    name: str = "from_pmf",
    neighboring_relation: str = "add-or-remove-one",
) -> DominatingPairDpEvent:
    """Return the event of a mechanism with finitely many outcomes.

    Parameters
    ----------
    with_record, without_record
        Probabilities >= 0 of each outcome, of shape (k,), under P and under Q. Each is divided by
        its sum, which must be within 1e-9 of 1.
    name
        Name of the mechanism, in messages.
    neighboring_relation
        The relation under which the pair, in both orders, dominates the mechanism.

    Raises
    ------
    ValueError
        If the numbers are not probabilities of the same outcomes.
    """
    p = _probabilities(with_record=with_record)
    q = _probabilities(without_record=without_record)
    if len(p) != len(q):
        raise ValueError(
            f"with_record and without_record must be about the same outcomes, got {len(p)} and "
            f"{len(q)} probabilities."
        )
    laws = [_of_masses(*order) for order in ((p, q), (q, p))]
    return _event(laws, name, neighboring_relation, below=None)


def from_pld(
    distribution: Any, *, name: str = "from_pld", neighboring_relation: str = "add-or-remove-one"
) -> DominatingPairDpEvent:
    """Return the event of a mechanism with a privacy loss distribution of dp-accounting.

    Answers have an upper end only, because the distribution is rounded up.

    Parameters
    ----------
    distribution
        A pessimistic ``PrivacyLossDistribution`` of ``dp_accounting.pld``.
    name
        Name of the mechanism, in messages.
    neighboring_relation
        The relation of the distribution, which does not state it.

    Raises
    ------
    ValueError
        If the distribution is an optimistic one, which bounds nothing from above.
    """
    if not hasattr(distribution, "_pmf_remove"):
        raise TypeError(
            "distribution must be a PrivacyLossDistribution of dp_accounting.pld, got "
            f"{distribution!r:.60}."
        )
    sides = distribution._pmf_remove, distribution._pmf_add
    if not all(pmf._pessimistic_estimate for pmf in sides):
        raise ValueError(f"distribution must be a pessimistic estimate, got {distribution!r}.")
    return _event(map(_of_pmf, sides), name, neighboring_relation)


def _of_pmf(pmf: Any) -> FiniteLaw:
    """Return the law of one direction of a privacy loss distribution."""
    known = getattr(pmf, "_loss_probs", None)
    places = np.array(sorted(known)) if known else pmf._lower_loss + np.arange(pmf.size)
    p = np.array([known[place] for place in places] if known else pmf._probs, dtype=float)
    infinite = float(pmf._infinity_mass)
    missing = 1 - math.fsum(p) - infinite
    infinite += missing if missing > _ROUNDING else 0.0
    # Masses that are rounded up may exceed 1. A profile is convex and 1 at alpha = 0, so that it is
    # below the profile of the masses without the excess, taken from the least losses.
    p = np.clip(np.cumsum(p) + min(missing, 0.0), 0.0, p)
    values = places[p > 0] * pmf._discretization
    logs = np.log(p[p > 0]) - values
    return _sorted(values, logs, infinite, math.log(math.fsum(np.exp(logs))))


def from_profile(
    epsilons: ArrayLike,
    deltas: ArrayLike,
    *,
    name: str = "from_profile",
    neighboring_relation: str = "add-or-remove-one",
) -> DominatingPairDpEvent:
    """Return the event of a mechanism that is (epsilon, delta)-private for several pairs at once.

    A hockey-stick divergence is convex in exp(epsilon), so that chords between the points bound it,
    and so do their mirror images, the same statement with both neighbors exchanged. Answers have an
    upper end only.

    Parameters
    ----------
    epsilons
        Finite numbers >= 0, increasing, of shape (k,).
    deltas
        For each, a number in [0, 1] that bounds delta whichever neighbor comes first.
    name
        Name of the mechanism, in messages.
    neighboring_relation
        The relation that the claims are about.

    Raises
    ------
    ValueError
        If there is no such profile.
    """
    at, bounds = validate.reals(epsilons=epsilons), validate.reals(deltas=deltas)
    if at.ndim != 1 or at.shape != bounds.shape or not len(at):
        raise ValueError(
            "epsilons and deltas must be arrays of the same shape (k,), got shapes "
            f"{at.shape} and {bounds.shape}."
        )
    if not (at[0] >= 0 and (np.diff(at) > 0).all() and at[-1] <= _FAR):
        raise ValueError(f"epsilons must increase from 0 or more to at most {_FAR:g}, got {at}.")
    if not ((bounds >= 0) & (bounds <= 1)).all():
        raise ValueError(f"deltas must be numbers in [0, 1], got {bounds}.")
    alphas = _few("epsilons", np.where(at > 0, np.exp(at) * (1 + 2.0**-50), 1.0))
    exact = _few("deltas", bounds)
    law = law_of_profile(alphas, exact, exact)
    return _event([law, law], name, neighboring_relation)


def _event(
    laws: Iterable[FiniteLaw], name: str, relation: str, below: FiniteLaw | None = _NOTHING
) -> DominatingPairDpEvent:
    """Return the event of two laws: with the record first, and without it first.

    Laws that are not exact only dominate the mechanism, which may cost nothing.
    """
    known = (replace(law, below=below or law.below) for law in laws)
    remove, add = (loss_of(gathered(law), name) for law in known)
    return DominatingPairDpEvent(name, relation_of(relation), remove, add)


def _few(name: str, given: Reals) -> list[Fraction]:
    """Return numbers without rounding; more than are computed in reasonable time are refused."""
    if len(given) > _MOST:
        raise TooLarge(f"{name} must have at most {_MOST} numbers, got {len(given)}.")
    return [Fraction(each) for each in given.tolist()]


def _probabilities(**argument: Any) -> list[Fraction]:
    """Return probabilities of outcomes, divided by their sum, without rounding."""
    ((name, value),) = argument.items()
    given = validate.reals(**argument)
    total = math.fsum(given) if given.ndim == 1 and np.isfinite(given).all() else math.nan
    if not (abs(total - 1) <= _OFF and (given >= 0).all()):
        raise ValueError(
            f"{name} must be an array of shape (k,) of probabilities >= 0 that add up to 1, got "
            f"{value!r}."
        )
    found = _few(name, given)
    whole = sum(found)
    return [each / whole for each in found]


def _of_masses(p: list[Fraction], q: list[Fraction]) -> FiniteLaw:
    """Return the law of log p / q under p."""
    pairs = list(zip(p, q, strict=True))
    both = [pair for pair in pairs if all(pair)]
    values = np.array([log_of(mine / other) for mine, other in both])
    logs = np.array([log_of(other) for _, other in both])
    gained = sum((mine for mine, other in pairs if not other), Fraction())
    kept = sum((other for _, other in both), Fraction())
    return _sorted(values, logs, float(gained), None if gained + kept == 1 else log_of(kept))


def _sorted(values: Reals, logs: Reals, outside: float, log_finite: float | None) -> FiniteLaw:
    """Return the law with these losses: equal losses are one, and outcomes of one law are added."""
    if not len(values) or outside >= 1:
        return FiniteLaw(np.zeros(0), np.zeros(0), 1.0)
    order = np.argsort(values)
    starts = np.flatnonzero(np.diff(values[order], prepend=-math.inf) > 0)
    masses = np.logaddexp.reduceat(logs[order], starts)
    return FiniteLaw(values[order][starts], masses, outside, log_finite=log_finite)


@Row(
    from_pmf([0.6, 0.4], [0.4, 0.6]),
    "[your own mechanism](../how_to/own_mechanism.md), under the relation that it names",
    record="scaled",
)
def _pair(event: DominatingPairDpEvent, relation: str) -> Pairs:
    if relation != event.neighboring_relation:
        reason = f"Its pair dominates it under {event.neighboring_relation!r}."
        raise refuse(event, relation, reason)
    for name, loss in (("removed", event.removed), ("added", event.added)):
        if not isinstance(loss, PrivacyLoss):
            raise TypeError(f"{name} must be a PrivacyLoss, got {loss!r}.")
    return event.removed, event.added
