r"""Which pair dominates the sparse vector technique with Gaussian noise? One with few losses.

A threshold T gets noise x ~ N(0, a^2) once. Queries q_1, q_2, ..., chosen from the past, get noise
of N(0, b^2) each, until one is at least T + x or n of them stayed below. It is public which did. On
neighbors D and D' a query differs by at most 1. Write H_k(P, Q) = sup_S P(S) - k Q(S).

*Theorem.* With s = 2 / b, let d(k) be the delta of the Gaussian mechanism of mu = s at epsilon =
log k, and U_0(k) = min(1, k), U_j = U_(j-1) (1 - d(k / U_(j-1))). Then

    H_k(D, D') <= E w(k exp(-L)),   w = 1 - U_n,   L ~ N(1 / (2 a^2), 1 / a^2).

*Proof.* Tell x under D, and x - 1 under D'. If t is told, the level is T + t in one world and T + t
+ 1 in the other, and the densities of t have the ratio exp(L). Given t, let f_j, f'_j be the
chances that query j stays below, and p_j, p'_j those that it does not. From D to D' the level rises
by 1 and the query by at most 1, so that f'_j >= f_j; and p'_j >= R(u + s), where p_j = R(u), R the
upper tail of the normal law, since level and query move apart by at most 2. Outcome "query i is the
first" adds

    (f_1 ... f_(i-1) p_i - k f'_1 ... f'_(i-1) p'_i)_+ <= f_1 ... f_(i-1) (p_i - k p'_i)_+

to H_k, with k for k exp(-L), and "none is" at most f_1 ... f_n (1 - k)_+. So H_k is at most w_n,
w_0 = (1 - k)_+ and w_j = max_u (1 - R(u)) w_(j-1) + (R(u) - k R(u + s))_+. With U = 1 - w_(j-1) the
last is w_(j-1) + U max_u (R(u) - (k / U) R(u + s))_+ where the term is positive, and its maximum is
d(k / U) (Neyman and Pearson): w_j = 1 - U_j. All choices of queries are bounded at once, and D and
D' may change places if x is told under D' then. ∎

Given t they may not: in the other direction the chances that no query passes have a ratio that
grows with n. For k < 1 the recursion gives U_n(k) = k U_n(1), a law without losses below zero. A
single query, given t, is a post-processing of one Gaussian mechanism of mu = s, both ways.

One query costs a Gaussian mechanism of mu^2 = 1 / a^2 + 4 / b^2; many cost more and more, since the
largest of many normal numbers is where their density falls fast. With Laplace noise the price does
not depend on n. The form of the argument, for Renyi divergences, is that of Zhu and Wang 2020.

>>> law = above_threshold_law(4.0, 8.0, 100)
>>> law.failure_probability < 1e-30
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.losses.base import PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.mechanisms.best_run import law_of_profile
from dpcal.accountants.mechanisms.row import Row, distance, over
from dpcal.accountants.rounding import UNIT

__all__ = ["above_threshold_law"]

# Points of a profile. Between two points it is taken to be linear in e^epsilon.
_POINTS = 768
# Queries are counted in blocks of this share of those before, the first of them one by one.
_SHARE = 1 / 64
# Delta down to which profiles are computed. The rest counts as an infinite loss.
_FLOOR = 1e-33
# Largest epsilon of a profile: its exponential is a double.
_LARGEST = 300.0
# Relative slack on every bound, far above the rounding of the sums here.
_SLACK = 1e-11


@lru_cache(maxsize=64)
def above_threshold_law(threshold_noise: float, query_noise: float, queries: int) -> PrivacyLoss:
    """Return the loss that dominates a run, in either direction.

    Parameters
    ----------
    threshold_noise, query_noise
        Standard deviations > 0, in units of the distance by which one record moves a query.
    queries
        Largest number >= 1 of queries.
    """
    name = f"Gaussian noise above a threshold, {queries} queries"
    passing = _law(
        lambda epsilons: _passing(epsilons, 2 / query_noise, queries), name, both=queries == 1
    )
    failure = passing.failure_probability if isinstance(passing, LossWithFailure) else 0.0
    given = passing.given if isinstance(passing, LossWithFailure) else passing
    if not isinstance(given, ScatteredLoss):
        return passing
    masses = (1 - failure) * np.exp(given.values + given.log_reference)

    def together(epsilons: Reals) -> Reals:
        moved = np.subtract.outer(epsilons, given.values)
        return failure + _gaussian(moved, 1 / threshold_noise) @ masses

    return _law(together, name)


def _law(profile: Callable[[Reals], Reals], name: str, *, both: bool = True) -> PrivacyLoss:
    """Return a loss whose delta is at least that of a profile, in both directions or in one."""
    many = np.geomspace(1e-6, _LARGEST, 1024)
    enough = np.flatnonzero(profile(many) <= _FLOOR)
    losses = np.linspace(0.0, many[enough[0]] if len(enough) else _LARGEST, _POINTS)
    deltas = np.minimum(profile(losses) * (1 + _SLACK), 1.0)
    deltas = np.maximum.accumulate(deltas[::-1])[::-1]
    # The other direction of w has w(1) at every k >= 1.
    return law_of_profile(losses, deltas, deltas if both else np.full(_POINTS, deltas[0]), name)


def _passing(epsilons: Reals, s: float, queries: int) -> Reals:
    """Return w(exp(epsilon)) of some number of queries, epsilon >= 0, rounded up."""
    counted, log_u = 0, np.zeros_like(epsilons)
    while counted < queries:
        # As U falls, so does d: at its first value it bounds all the factors of a block.
        block = min(queries - counted, max(1, math.floor(counted * _SHARE)))
        d = np.minimum(_gaussian(epsilons - log_u, s), 1 - UNIT)
        log_u, counted = log_u + block * np.log1p(-d), counted + block
    return np.asarray(-np.expm1(log_u))


def _gaussian(epsilons: Reals, mu: float) -> Reals:
    """Return delta of the Gaussian mechanism at any real epsilons, rounded up."""
    from scipy.special import log_ndtr

    first, second = log_ndtr(mu / 2 - epsilons / mu), log_ndtr(-mu / 2 - epsilons / mu)
    rounding = 64 * UNIT * (1 + np.abs(first) + np.abs(epsilons))
    return np.asarray(
        np.exp(first) * (rounding - np.expm1(np.minimum(epsilons + second - first, 0)))
    )


@Row(
    events.GaussianAboveThresholdDpEvent(8.0, 16.0, 20),
    "a law, proved in `accountants/mechanisms/gaussian_threshold.py`; the form is that of "
    "Zhu and Wang 2020",
    record="scaled",
    group=over("threshold_noise", "query_noise"),
)
def _above_threshold(event: events.GaussianAboveThresholdDpEvent, relation: str) -> PrivacyLoss:
    threshold = _validate.noise(threshold_noise=event.threshold_noise)
    query = _validate.noise(query_noise=event.query_noise)
    queries, moved = _validate.count(queries=event.queries), distance(relation)
    law: PrivacyLoss = above_threshold_law(threshold / moved, query / moved, queries)
    return law
