r"""What is the dominating pair of a mechanism on a random batch? One from the pair on everyone.

Let (P, Q) dominate a mechanism when a record is removed. On a Poisson sample ((1 - q) Q + q P, Q)
dominates it, each loss l becoming log(1 - q + q e^l), and the reversed pair when a record is added
(Zhu, Dong and Wang 2022, Theorem 11). That holds for every mechanism, also for several ones that
answer about one sample, whose pair is the product of their pairs (their Theorem 10).

A function takes the law of the mechanism's loss on everyone, the probability q in (0, 1) that a
record is in the batch, and the mechanism's name.

>>> from dpcal.accountants.losses.discrete import pure
>>> from dpcal.accountants.inversion.finite_laws import law_of
>>> remove, add = sampled(law_of(pure(1.0)), 0.1, "a claim")
>>> print(f"{remove.upper:.12f} {math.log1p(0.1 * math.expm1(1.0)):.12f} {add.upper:.12f}")
0.158565078740 0.158565078740 0.065298335999
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcal.accountants.inversion.finite_laws import FiniteLaw, mirrored
from dpcal.accountants.inversion.masses import require_kept
from dpcal.accountants.losses.base import NO_LOSS, Pairs, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.quadrature import log_mixture

__all__ = ["between", "fixed_batch", "loss_of", "revealed", "sampled"]

# A loss, in nats, that is less than any that counts.
_LARGE = 500.0
# Probability of outcomes of Q alone that are left out of a law, in which they would change nothing.
_NOTHING = 1e-18
# Values, log probabilities under Q, probability of an infinite loss, and the log of the mass of Q.
_Law = tuple[Reals, Reals, float, float]


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


def sampled(law: FiniteLaw, q: float, name: str) -> Pairs:
    """Return the losses of a Poisson-sampled mechanism, for removing and for adding a record.

    The law is that of a removed record; the reversed pair must be that of adding one.
    """
    name = f"{q!r}-sampled {name}"
    return _loss(law, lambda item: _removed(item, q), name, q), _loss(
        law, lambda item: _added(item, q), f"{name}, added", q
    )


def _removed(law: FiniteLaw, q: float) -> _Law:
    """Return the law of removing a record; outcomes of Q alone keep the share 1 - q under P."""
    values, logs = log_mixture(q, law.values), law.log_reference
    if law.outside > _NOTHING:
        values = np.append(math.log1p(-q), values)
        logs = np.append(math.log(law.outside), logs)
    failure = q * law.outside
    surplus = -math.log1p(-failure)
    return values, logs + surplus, failure, surplus if law.outside > _NOTHING else 0.0


def _added(law: FiniteLaw, q: float) -> _Law:
    """Return the law of adding a record: that of removing one, reversed."""
    places = log_mixture(q, law.values)
    values, logs = -places[::-1], (law.log_reference + places)[::-1]
    if law.outside > _NOTHING:
        # Outcomes that only the record causes have a loss of minus infinity, or less than any.
        values = np.concatenate([[min(values[0], 0) - _LARGE], values, [-math.log1p(-q)]])
        ends = math.log(q * law.outside), math.log1p(-q) + math.log(law.outside)
        logs = np.concatenate([ends[:1], logs, ends[1:]])
    return values, logs, 0.0, 0.0


def revealed(law: FiniteLaw, q: float, name: str) -> PrivacyLoss:
    """Return the loss of a mechanism on a Poisson sample if it is known who was drawn.

    Whoever is told whether the record, or what stands in its place, was drawn sees the mechanism's
    pair or nothing. By joint convexity this dominates the sample, for every mechanism. The law is
    that of a replaced record.
    """
    name = f"{name}, drawn with probability {q!r}"
    kept = math.log1p(-q)

    def choice(item: FiniteLaw) -> _Law:
        values, logs = item.values, item.log_reference + math.log(q)
        at = int(np.searchsorted(values, 0.0))
        if at < len(values) and values[at] == 0:
            logs = logs.copy()
            logs[at] = np.logaddexp(logs[at], kept)
        else:
            values, logs = np.insert(values, at, 0.0), np.insert(logs, at, kept)
        failure = q * item.outside
        # Given that nothing fails, both laws have mass 1.
        return values, logs - math.log1p(-failure), failure, 0.0

    return _loss(law, choice, name, q)


def fixed_batch(law: FiniteLaw, q: float, name: str) -> PrivacyLoss:
    """Return the loss of a mechanism on a batch of fixed size when a record is replaced.

    With H_a(P || Q) the mechanism's own profile for a replaced record, that on the batch is at most
    q H_a(P || Q), a = 1 + (alpha - 1) / q, at every alpha >= 1, in either direction (Balle, Barthe
    and Gaboardi 2018, Theorem 9). The law with this profile for both directions has the losses l >
    0 of the sampled pair, their mirror image, and the rest of its mass at 0. The law is that of a
    replaced record, the same in both directions.
    """

    def both_ways(item: FiniteLaw) -> _Law:
        gains = item.values > 0
        values, logs = log_mixture(q, item.values[gains]), item.log_reference[gains]
        failure = q * item.outside
        rest = 1 - failure - math.fsum(np.exp(logs + values)) - math.fsum(np.exp(logs))
        values, logs = mirrored(values, logs, math.log(rest) if rest > 0 else -math.inf)
        return values, logs - math.log1p(-failure), failure, 0.0

    return _loss(law, both_ways, f"a batch with share {q!r} for {name}", q)


def loss_of(law: FiniteLaw, name: str, probability: float = 1.0) -> PrivacyLoss:
    """Return the loss with a law.

    ``probability`` is that with which the output depends on the record at all.
    """

    def unchanged(item: FiniteLaw) -> _Law:
        # Given that nothing fails, both laws have mass 1.
        return item.values, item.log_reference - math.log1p(-item.outside), item.outside, 0.0

    return _loss(law, unchanged, name, probability)


def _loss(law: FiniteLaw, change: Callable[[FiniteLaw], _Law], name: str, q: float) -> PrivacyLoss:
    """Return the loss of a changed law, with the loss below it if the law is rounded up."""
    below = None
    if law.below is not None:
        below = _finite(change(law.below), f"{name}, rounded down", q, up=False)
    return _finite(change(law), name, q, below)


def _finite(
    law: _Law, name: str, q: float, below: PrivacyLoss | None = None, *, up: bool = True
) -> PrivacyLoss:
    """Return a loss from its values."""
    values, logs, failure, surplus = law
    some = logs > -math.inf
    values, logs = values[some], logs[some]
    # Given that nothing fails P has mass 1, and Q its own.
    require_kept("a sample", np.array([surplus, 0.0]), values, logs, up=up)
    if not values.any():
        return LossWithFailure(NO_LOSS, failure, below) if failure > 0 else NO_LOSS
    inner = None if failure else below
    given = ScatteredLoss(
        tuple(values.tolist()), tuple(logs.tolist()), name, q, inner, surplus=surplus
    )
    return LossWithFailure(given, failure, below) if failure > 0 else given
