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
their own, of probability o. The record's batch fails with probability o. Else b of all batches have
outcomes of Q alone, where Y is 0: with the record b is Bin(M - 1, o), without it Bin(M, o), and the
other M - b batches are an epoch of their own. Its ratio counts (M - b) / M times.

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
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpcal._lazy import special
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.amplification import loss_of
from dpcal.accountants.inversion.finite_laws import FiniteLaw, gathered, joined, law_of
from dpcal.accountants.inversion.masses import require_kept
from dpcal.accountants.losses.allocation import Allocation, Group
from dpcal.accountants.losses.base import Pairs, PrivacyLoss
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["allocated", "on_finite_laws"]

# A law, and the probabilities of outcomes that P alone has, and Q alone.
_Side = tuple[FiniteLaw, float, float]

# Probability of an infinite loss that only stands for tails which are left out.
_NO_FAILURE = 1e-20
# Most batches of an epoch that may fail, but one, and the probability of more, which then counts as
# a failure; the smallest one.
_MOST_FAILING, _REST, _LEAST = 40, 1e-25, 1e-300
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
        found = _means(law, batches, batches)[0]
        return loss_of(found, name), loss_of(_reversed(found), f"{name}, added")
    fails = law.outside
    enough = (b for b in range(min(_MOST_FAILING, batches)) if _more(b, batches, fails) <= _REST)
    most = next(enough, batches - 1)
    if most >= _MOST_FAILING:
        raise UnsupportedEvent(
            f"An epoch has a price where up to {_MOST_FAILING} of its batches fail, and so many or "
            f"more of {batches} do here."
        )
    given = _given(law, None if law.below is None else _given(law.below))
    laws = _means(given, batches - most, batches)[::-1]
    up = _mixed(laws, batches, fails)
    down = _mixed([each.down for each in laws], batches, law.down.outside)
    above = gathered(replace(up, below=down))
    # Of what is left out, all counts as a failure above. Below, only what all batches fail does.
    p_fails = fails + (1 - fails) * _more(most, batches - 1, fails)
    upper = above, p_fails, _more(most, batches, fails)
    lower = above.down, law.down.outside, law.down.outside**batches
    return _failing(upper, lower, name), _failing(
        (_reversed(above), *upper[:0:-1]), (_reversed(above.down), *lower[:0:-1]), f"{name}, added"
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
    (_, first), *others = ((p, _means(law_of(Gaussian(sigma)), m, m)[0]) for sigma, m, p in groups)
    found, total = first, groups[0].probability
    for chance, law in others:
        found, total = _mean(found, total, law, chance), total + chance
    name = f"an epoch of {groups!r}"
    return loss_of(found, name), loss_of(_reversed(found), f"{name}, added")


def _given(law: FiniteLaw, below: FiniteLaw | None = None) -> FiniteLaw:
    """Return a law given that neither P nor Q has an outcome of its own."""
    return FiniteLaw(law.values, law.log_reference - math.log1p(-law.outside), below=below)


def _more(most: int, batches: int, fails: float) -> float:
    """Return the probability that more than so many batches fail, rounded up."""
    return float(special.bdtrc(most, batches, fails)) * (1 + 1e-9) if most < batches else 0.0


def _mixed(laws: list[FiniteLaw], batches: int, fails: float) -> FiniteLaw:
    """Return the law of an epoch from those in which 0, 1, ... batches have outcomes of Q alone."""
    b = np.arange(len(laws))
    ways = np.concatenate([[0.0], np.cumsum(np.log((batches - b[:-1]) / (b[:-1] + 1)))])
    chances = ways + special.xlogy(b, fails) + special.xlog1py(batches - b, -fails)
    # Without failures, no batch has outcomes of Q alone.
    parts = list(zip(laws, np.log1p(-b / batches), chances, strict=True))[: len(b) if fails else 1]
    values = np.concatenate([law.values + less for law, less, _ in parts])
    logs = np.concatenate([law.log_reference + chance for law, _, chance in parts])
    order = np.argsort(values)
    return FiniteLaw(values[order], logs[order])


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


def _means(law: FiniteLaw, first: int, last: int) -> list[FiniteLaw]:
    """Return the laws of means over the first number of batches, and over each up to the last."""
    found, count = law, 1
    for bit in bin(first)[3:]:
        found, count = _mean(found, count, found, count), 2 * count
        if bit == "1":
            found, count = _mean(found, count, law, 1), count + 1
    laws = [found]
    for count in range(first, last):
        laws.append(_mean(laws[-1], count, law, 1))
    return laws


def _mean(one: FiniteLaw, m: float, other: FiniteLaw, n: float) -> FiniteLaw:
    """Return the law of a mean of two means, with weights proportional to m and n."""
    one, other = gathered(one, _MOST), gathered(other, _MOST)
    shares = math.log(m / (m + n)), math.log(n / (m + n))

    def ratios(first: FiniteLaw, second: FiniteLaw) -> FiniteLaw:
        values = np.logaddexp.outer(first.values + shares[0], second.values + shares[1])
        return joined(first, second, values)

    law = ratios(one, other)
    if one.below is not None or other.below is not None:
        law = replace(law, below=ratios(one.down, other.down))
    # Masses of independent outcomes are products.
    up, down = one.moments + other.moments, one.down.moments + other.down.moments
    law.require("a mean of ratios", up[:2], down[:2])
    return gathered(law)


def _reversed(law: FiniteLaw) -> FiniteLaw:
    """Return the law of the reversed pair."""
    below = None if law.below is None else _reversed(law.below)
    logs = (law.log_reference + law.values)[::-1]
    return FiniteLaw(-law.values[::-1], logs, law.outside, below)
