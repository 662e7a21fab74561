r"""What is the pair of an epoch, in whose batches a mechanism answers and each record draws one?

Let (P, Q) dominate the mechanism when a record is removed, and let M be the number of batches. A
record draws its batch uniformly, independently of all else. The epoch is dominated by the uniform
mixture over j of M independent outcomes, the j-th from P and all others from Q, against M outcomes
from Q. Epochs compose.

*Proof.* That (P, Q) dominates (P', Q') says that a random map takes P to P' and Q to Q' (Blackwell
1953; Dong, Roth and Su 2022, Theorem 2.10). Given the past, answer j is such a map of an outcome of
P, if the record drew batch j, and of Q if not; which map it is follows from earlier answers, and so
from earlier outcomes. All answers of the epoch are then one map of the M outcomes. ∎

With Y = dP/dQ the likelihood ratio is the mean of M independent Y. Let P and Q have outcomes of
their own, of probability o. The record's batch then fails with probability o, and Y is 0 with
probability o under Q: a value that is far below all others stands for its logarithm. If all batches
have outcomes of Q alone, the loss of an added record is infinite.

A mean is formed by doubling. Where a law has too many values they are gathered above and below it:
mass moves to the ends around a value so that P and Q keep their mass, which is above in convex
order, or values are merged, which is below (:mod:`~dpcal.accountants.inversion.finite_laws`).

>>> from dpcal.accountants.losses.discrete import pure
>>> from dpcal.accountants.inversion.finite_laws import law_of
>>> remove, add = allocated(law_of(pure(1.0)), 2, "a claim")
>>> remove.values.round(6).tolist()
[-1.0, 0.433781, 1.0]
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.amplification import loss_of
from dpcal.accountants.inversion.finite_laws import FiniteLaw, combined, law_of
from dpcal.accountants.inversion.masses import require_kept
from dpcal.accountants.losses.allocation import Allocation, Group
from dpcal.accountants.losses.base import Pairs, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.gaussian import Gaussian

__all__ = ["allocated", "on_finite_laws"]

# A law, and the probabilities of outcomes that P alone has, and Q alone.
_Side = tuple[FiniteLaw, float, float]

# Probability of an infinite loss that only stands for tails which are left out.
_NO_FAILURE = 1e-20
# The smallest probability of a failure, which stands for those below the range of a double.
_LEAST = 1e-300
# Nats by which the logarithm of a likelihood ratio of 0 is below all others: more than means of
# 1e18 batches take.
_FAR = 500.0
# Most values of a mean over some batches: their square is the number of values of the next.
_MOST = 512
# Most batches of an epoch: with many more, the share of one is lost in the rounding of a double.
_MOST_BATCHES = 1e18


def allocated(law: FiniteLaw, batches: int, name: str) -> Pairs:
    """Return the losses of an epoch, for removing and for adding a record.

    Parameters
    ----------
    law
        Law of the mechanism's loss when a record is removed; the reversed pair must be that of
        adding one.
    batches
        Number >= 1 of batches.
    name
        Name of the mechanism.
    """
    if batches > _MOST_BATCHES:
        raise ValueError(f"batches must be at most {_MOST_BATCHES:g}, got {batches!r}.")
    name = f"{name}, in one of {batches} batches"
    if law.outside * batches <= _NO_FAILURE:
        found = _mean_of(law, batches)
        return loss_of(found, name), loss_of(_reversed(found), f"{name}, added")
    zero = min(law.values[0], law.down.values[0], 0.0) - _FAR
    found = _mean_of(_with_zero(law, zero), batches)
    upper = _side(found, zero, law.outside)
    lower = _side(found.down, zero, law.down.outside)
    return _failing(upper, lower, name), _failing(
        (_reversed(upper[0]), *upper[:0:-1]), (_reversed(lower[0]), *lower[:0:-1]), f"{name}, added"
    )


def on_finite_laws(direction: Direction) -> Direction:
    """Return a direction with finite laws in place of random allocations of Gaussians."""
    parts = tuple(
        (_of_gaussians(loss.groups)[loss.direction == "add"], times)
        if isinstance(loss, Allocation)
        else (loss, times)
        for loss, times in direction.parts
    )
    return Direction(direction.name, parts)


@lru_cache(maxsize=16)
def _of_gaussians(groups: tuple[Group, ...]) -> Pairs:
    """Return the losses of an epoch of groups of batches, for removing and for adding a record."""
    (_, first), *others = ((p, _mean_of(law_of(Gaussian(sigma)), m)) for sigma, m, p in groups)
    found, total = first, groups[0].probability
    for chance, law in others:
        found, total = _mean(found, total, law, chance), total + chance
    name = f"an epoch of {groups!r}"
    return loss_of(found, name), loss_of(_reversed(found), f"{name}, added")


def _with_zero(law: FiniteLaw, zero: float) -> FiniteLaw:
    """Return a law in which outcomes of Q alone have a finite loss, far below all others."""
    below = None if law.below is None else _with_zero(law.below, zero)
    if law.outside == 0:
        return FiniteLaw(law.values, law.log_reference, below=below)
    logs = np.append(math.log(law.outside), law.log_reference)
    return FiniteLaw(np.append(zero, law.values), logs, below=below)


def _side(law: FiniteLaw, zero: float, p_fails: float) -> _Side:
    """Return the law without losses near ``zero``, and what P alone, and Q alone has."""
    some = law.values > zero + 1
    q_fails = math.fsum(np.exp(law.log_reference[~some]))
    return FiniteLaw(law.values[some], law.log_reference[some]), p_fails, q_fails


def _failing(upper: _Side, lower: _Side, name: str) -> PrivacyLoss:
    """Return the loss with these finite losses, where P alone fails, and Q alone."""

    def given(law: FiniteLaw, p_fails: float, q_fails: float, up: bool) -> ScatteredLoss:
        kept = math.log1p(-p_fails)
        logs, surplus = law.log_reference - kept, math.log1p(-q_fails) - kept
        require_kept("an epoch", np.array([surplus, 0.0]), law.values, logs, up=up)
        return ScatteredLoss(
            tuple(law.values.tolist()), tuple(logs.tolist()), name, surplus=surplus
        )

    below: PrivacyLoss = given(*lower, up=False)
    if lower[1] > 0:
        below = LossWithFailure(below, lower[1])
    return LossWithFailure(given(*upper, up=True), max(upper[1], _LEAST), below)


def _mean_of(law: FiniteLaw, batches: int) -> FiniteLaw:
    """Return the law of the mean over a number of batches."""
    found, count = law, 1
    for bit in bin(batches)[3:]:
        found, count = _mean(found, count, found, count), 2 * count
        if bit == "1":
            found, count = _mean(found, count, law, 1), count + 1
    return found


def _mean(one: FiniteLaw, m: float, other: FiniteLaw, n: float) -> FiniteLaw:
    """Return the law of a mean of two means, with weights proportional to m and n."""
    shares = math.log(m / (m + n)), math.log(n / (m + n))

    def ratios(first: Reals, second: Reals) -> Reals:
        return np.asarray(np.logaddexp.outer(first + shares[0], second + shares[1]))

    def masses(first: Reals, second: Reals) -> Reals:
        p = np.logaddexp(first[1] + second[0] + shares[0], first[0] + second[1] + shares[1])
        return np.array([first[0] + second[0], p])

    return combined("a mean of ratios", one, other, _MOST, ratios, masses)


def _reversed(law: FiniteLaw) -> FiniteLaw:
    """Return the law of the reversed pair."""
    below = None if law.below is None else _reversed(law.below)
    logs = (law.log_reference + law.values)[::-1]
    return FiniteLaw(-law.values[::-1], logs, law.outside, below)
