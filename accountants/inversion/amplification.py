r"""Dominating pairs of a mechanism on random batches. One from the pair on everyone.

Let (P, Q) dominate a mechanism when a record is removed. On a Poisson sample ((1 - q) Q + q P, Q)
dominates it, each loss l becoming log(1 - q + q e^l), and the reversed pair when a record is added
(Zhu, Dong and Wang 2022, Theorem 11). This holds for every mechanism, also for several mechanisms
that answer about one sample: their pair is the product of their pairs (their Theorem 10).

A function takes the law of the mechanism's loss on everyone, the probability q in (0, 1) that a
record is in the batch, and the mechanism's name.

Epochs: let M be the number of batches. A record draws its batch uniformly, independently of all
else. The epoch is dominated by the uniform
mixture over j of M independent outcomes, the j-th from P and all others from Q, against M outcomes
from Q. Epochs compose.

*Proof.* If (P, Q) dominates (P', Q'), a random map takes P to P' and Q to Q' (Blackwell 1953; Dong,
Roth and Su 2022, Theorem 2.10). Given the past, answer j is such a map of an outcome of P, if the
record drew batch j, and of Q if not; which map it is follows from earlier answers, and so from
earlier outcomes. All answers of the epoch are then one map of the M outcomes. ∎

With Y = dP/dQ the likelihood ratio is the mean of M independent Y. Let P and Q have outcomes of
their own, of probability o. The record's batch then fails with probability o, and Y is 0 with
probability o under Q: a value that is far below all others stands for its logarithm. If all batches
have outcomes that only Q has, the loss of an added record is infinite.

A mean is formed by doubling. Where a law has too many values they are gathered above and below it:
mass moves to the ends around a value so that P and Q keep their mass, which is above in convex
order, or values are merged, which is below (:mod:`~dpcal.accountants.inversion.finite_laws`).

>>> from dpcal.accountants.losses.discrete import pure
>>> from dpcal.accountants.inversion.finite_laws import law_of
>>> remove, add = sampled(law_of(pure(1.0)), 0.1, "a claim")
>>> print(f"{remove.upper:.12f} {math.log1p(0.1 * math.expm1(1.0)):.12f} {add.upper:.12f}")
0.158565078740 0.158565078740 0.065298335999
>>> remove, add = allocated(law_of(pure(1.0)), 2, "a claim")
>>> remove.values.round(6).tolist()
[-1.0, 0.433781, 1.0]
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.finite_laws import FiniteLaw, combined, law_of, mirrored
from dpcal.accountants.inversion.masses import require_kept
from dpcal.accountants.losses.allocation import Allocation, Group
from dpcal.accountants.losses.base import NO_LOSS, Pairs, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.quadrature import log_mixture
from dpcal.accountants.rounding import UNIT

# Probability of outcomes that only Q has, which may be left out of a law.
_NOTHING = 1e-18
_NO_FAILURE = 1e-20
_LEAST = 1e-300
# Nats from a likelihood ratio of 0 to all others: more than means of 1e18 batches take.
_FAR = 500.0
# Most values of a mean over some batches: the next mean has their square.
_MOST_OF_MEAN = 512
# Most batches of an epoch: the share of one is then a rounding of a double.
_MOST_BATCHES = 1e18


def between(log_noise: Reals, above: Reals, below: Reals, q: float) -> tuple[Reals, Reals]:
    """Return the law of a record that is replaced in a sum with symmetric log-concave noise.

    It is drawn with probability q, and moves the sum up in one world and down in the other.

    Parameters
    ----------
    log_noise
        Log probabilities of the noise.
    above, below
        Losses at each of its values of noise moved up, and of noise moved down, against it.

    Returns
    -------
    tuple
        Losses, and their log probabilities under Q.
    """
    up, down = log_mixture(q, above), log_mixture(q, below)
    return up - down, log_noise + down


def loss_of(law: FiniteLaw, name: str, probability: float = 1.0, *, up: bool = True) -> PrivacyLoss:
    """Return the loss with a law, with the loss below it if the law is rounded up.

    It is the loss of the values given that no outcome fails, and a failure. ``probability`` is that
    with which the output depends on the record at all; ``up`` is False for a law that is rounded
    down.
    """
    below = None
    if law.below is not None:
        below = loss_of(law.below, f"{name}, rounded down", probability, up=False)
    if law.outside == 1:
        return LossWithFailure(NO_LOSS, 1.0, below)
    failure, kept = law.outside, math.log1p(-law.outside)
    surplus = law.log_q - kept
    some = law.log_reference > -math.inf
    values, logs = law.values[some], law.log_reference[some] - kept
    # Given that no outcome fails, P has mass 1, and Q its own mass.
    require_kept("a sample", np.array([surplus, 0.0]), values, logs, up=up)
    given: PrivacyLoss = NO_LOSS
    if values.any():
        inner, places = None if failure else below, tuple(values.tolist())
        given = ScatteredLoss(
            places, tuple(logs.tolist()), name, probability, inner, surplus=surplus
        )
    return LossWithFailure(given, failure, below) if failure > 0 else given


def _both_ways(law: FiniteLaw, name: str, probability: float = 1.0) -> Pairs:
    """Return the losses of a law and of the reversed pair."""

    def reversed_law(item: FiniteLaw) -> FiniteLaw:
        logs = (item.log_reference + item.values)[::-1]
        log_finite = None if item.log_finite is None else math.log1p(-item.outside)
        return FiniteLaw(-item.values[::-1], logs, item.lost, log_finite=log_finite)

    added = loss_of(law.changed(reversed_law), f"{name}, added", probability)
    return loss_of(law, name, probability), added


def sampled(law: FiniteLaw, q: float, name: str) -> Pairs:
    """Return the losses of a Poisson-sampled mechanism, for removing and for adding a record.

    The law is for a removed record; the reversed pair must be the pair for adding one.
    """

    def removed(item: FiniteLaw) -> FiniteLaw:
        values, logs = log_mixture(q, item.values), item.log_reference
        if item.lost > _NOTHING:
            # Outcomes that only Q has keep the share 1 - q under P.
            values, logs = np.append(math.log1p(-q), values), np.append(math.log(item.lost), logs)
        return FiniteLaw(values, logs, q * item.outside, log_finite=0.0)

    return _both_ways(law.whole.changed(removed), f"{q!r}-sampled {name}", q)


def revealed(law: FiniteLaw, q: float, name: str) -> PrivacyLoss:
    """Return the loss of a mechanism on a Poisson sample if it is known who was drawn.

    If it is published whether the record, or the one in its place, was drawn, the pair is the
    mechanism's or a pair of equal laws. By joint convexity this dominates the sample, for every
    mechanism. The law is for a replaced record.
    """
    name = f"{name}, drawn with probability {q!r}"
    kept = math.log1p(-q)

    def choice(item: FiniteLaw) -> FiniteLaw:
        values, logs = item.values, item.log_reference + math.log(q)
        at = int(np.searchsorted(values, 0.0))
        if at < len(values) and values[at] == 0:
            logs = logs.copy()
            logs[at] = np.logaddexp(logs[at], kept)
        else:
            values, logs = np.insert(values, at, 0.0), np.insert(logs, at, kept)
        log_finite = None if item.log_finite is None else math.log1p(q * math.expm1(item.log_q))
        return FiniteLaw(values, logs, q * item.outside, log_finite=log_finite)

    return loss_of(law.whole.changed(choice), name, q)


def fixed_batch(law: FiniteLaw, q: float, name: str) -> PrivacyLoss:
    """Return the loss of a mechanism on a batch of fixed size when a record is replaced.

    With H_a(P || Q) the mechanism's own profile for a replaced record, that on the batch is at most
    q H_a(P || Q), a = 1 + (alpha - 1) / q, at every alpha >= 1, in either direction (Balle, Barthe
    and Gaboardi 2018, Theorem 9). The law with this profile for both directions has the losses l >
    0 of the sampled pair, their mirror image, and the rest of its mass at 0. The law is for a
    replaced record, the same in both directions.
    """

    def both_ways(item: FiniteLaw) -> FiniteLaw:
        gains = item.values > 0
        values, logs = log_mixture(q, item.values[gains]), item.log_reference[gains]
        failure = q * item.outside
        rest = 1 - failure - math.fsum(np.exp(logs + values)) - math.fsum(np.exp(logs))
        values, logs = mirrored(values, logs, math.log(rest) if rest > 0 else -math.inf)
        return FiniteLaw(values, logs, failure)

    return loss_of(law.whole.changed(both_ways), f"a batch with share {q!r} for {name}", q)


def allocated(law: FiniteLaw, batches: int, name: str) -> Pairs:
    """Return the losses of an epoch, for removing and for adding a record.

    Parameters
    ----------
    law
        Law of the mechanism's loss when a record is removed; the reversed pair must be the pair for
        adding one.
    batches
        Number >= 1 of batches.
    name
        Name of the mechanism.
    """
    if batches > _MOST_BATCHES:
        raise ValueError(f"batches must be at most {_MOST_BATCHES:g}, got {batches!r}.")
    if law.outside == 1:
        return loss_of(law, name), loss_of(law, name)
    name = f"{name}, in one of {batches} batches"
    if max(law.outside, law.lost) * batches <= _NO_FAILURE:
        found = _mean_of(law, batches)
    else:
        zero = min(law.values[0], law.down.values[0], 0.0) - _FAR
        mean = _mean_of(law.changed(partial(_with_zero, zero=zero)), batches)
        upper = _without_zero(mean, zero, law.outside)
        lower = _without_zero(mean.down, zero, law.down.outside)
        found = replace(upper, outside=max(upper.outside, _LEAST), below=lower)
    return _both_ways(found, name)


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
    return _both_ways(found, name)


def _with_zero(law: FiniteLaw, zero: float) -> FiniteLaw:
    """Return a law where outcomes that only Q has get a finite loss, far below all others."""
    if law.lost == 0:
        return FiniteLaw(law.values, law.log_reference)
    logs = np.append(math.log(law.lost), law.log_reference)
    return FiniteLaw(np.append(zero, law.values), logs)


def _without_zero(law: FiniteLaw, zero: float, p_fails: float) -> FiniteLaw:
    """Return the law with losses near ``zero`` as outcomes of Q only, and P's own failures."""
    some = law.values > zero + 1
    q_fails = math.fsum(np.exp(law.log_reference[~some]))
    log_finite = math.log1p(-min(q_fails, 1 - UNIT))
    return FiniteLaw(law.values[some], law.log_reference[some], p_fails, log_finite=log_finite)


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

    return combined("a mean of ratios", one, other, _MOST_OF_MEAN, ratios, masses)
