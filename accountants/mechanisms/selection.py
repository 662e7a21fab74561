"""Selections that release one answer, with pure privacy: from scores, or from queries in turn.

>>> from dpcal.accountants import epsilon
>>> print(f"{epsilon(events.AboveThresholdDpEvent(8.0, 16.0), delta=0):.4f}")      # 1/8 + 2/16
0.2500
"""

from __future__ import annotations

from typing import Any

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss
from dpcal.accountants.losses.laplace import BoundedRange
from dpcal.accountants.mechanisms.claims import claim
from dpcal.accountants.mechanisms.row import Row, distance, normal, over, times


def _halved(event: Any, relation: str) -> float:
    """Return the epsilon of a selection: half of it where all scores move the same way.

    Let scores move by numbers in [0, Delta]. Exponents of the exponential mechanism then move by
    numbers in [0, epsilon / 2], so that losses of two answers differ by at most epsilon / 2.
    Permute and flip releases the largest score with exponential noise of scale 2 Delta / epsilon
    (Ding, Kifer, Steinke et al. 2021): the distance from a score to the largest of the others moves
    by at most Delta, so that the ratio of the chances to exceed it is at most exp(epsilon / 2). A
    record that is replaced moves scores both ways.
    """
    value = normal(epsilon=validate.non_negative(epsilon=event.epsilon))
    monotone = validate.flag(monotone=event.monotone)
    return value / 2 if monotone and relation != "replace-one" else value


@Row(
    events.ExponentialMechanismDpEvent(0.5),
    "bounded range, and its [recursion](../explanation/accountant.md#methods) (Dong, Durfee and "
    "Rogers 2020); half if `monotone` and not replaced",
    record="stated",
    group=times("epsilon"),
)
def _bounded_range(event: events.ExponentialMechanismDpEvent, relation: str) -> PrivacyLoss:
    epsilon = _halved(event, relation)
    return BoundedRange(epsilon) if epsilon > 0 else NO_LOSS


@Row(
    events.PermuteAndFlipDpEvent(0.5),
    "pure privacy (McKenna and Sheldon 2020); half if `monotone` and not replaced",
    record="stated",
)
def _permute_and_flip(event: events.PermuteAndFlipDpEvent, relation: str) -> PrivacyLoss:
    return claim(_halved(event, relation))


@Row(
    events.ReportNoisyMaxDpEvent(8.0),
    "pure privacy (Dwork and Roth 2014, Claim 3.9); half if `monotone`",
    record="scaled",
    group=over("noise"),
)
def _report_noisy_max(event: events.ReportNoisyMaxDpEvent, relation: str) -> PrivacyLoss:
    """Return the loss: the winning score moves by one sensitivity, and so do all others.

    The distance from a score to the largest of the others then moves by two, or by one if all
    scores move the same way (Dwork and Roth 2014, Claim 3.9, for counts). A record that is replaced
    is one that is removed, and one that is added.
    """
    noise = validate.noise(noise=event.noise)
    moved = 1 if validate.flag(monotone=event.monotone) else 2
    return claim(distance(relation) * moved / noise * (1 + 2.0**-50))


@Row(
    events.AboveThresholdDpEvent(8.0, 16.0),
    "pure privacy (Dwork and Roth 2014, Theorem 3.23; Lyu, Su and Li 2017)",
    record="scaled",
    group=over("threshold_noise", "query_noise"),
)
def _above_threshold(event: events.AboveThresholdDpEvent, relation: str) -> PrivacyLoss:
    """Return the loss: the threshold moves by one sensitivity, the passing answer by two."""
    threshold = validate.noise(threshold_noise=event.threshold_noise)
    query = validate.noise(query_noise=event.query_noise)
    return claim(distance(relation) * (1 / threshold + 2 / query) * (1 + 2.0**-50))
