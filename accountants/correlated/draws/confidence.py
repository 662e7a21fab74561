"""How sure is a sample mean? Confidence bounds that hold at every sample size.

>>> print(f"{upper_mean(0.0, draws=100_000, failure_probability=1e-3):.5e}")
6.90752e-05
>>> print(f"{upper_mean(1e-3, draws=100_000, failure_probability=1e-3):.5e}")
1.41880e-03
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcal._roots import Sides, Stop, bisect

__all__ = ["FIRST", "bets_prove", "draws_needed", "lower_mean", "upper_mean"]


def _divergence(p: float, q: float) -> float:
    """Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q)."""
    if q <= 0 or q >= 1:
        return 0.0 if p == q else math.inf
    first = p * math.log(p / q) if p > 0 else 0.0
    second = (1 - p) * (math.log1p(-p) - math.log1p(-q)) if p < 1 else 0.0
    return max(0.0, first + second)


def upper_mean(
    mean: float, *, draws: int, failure_probability: float, largest: float = 1.0
) -> float:
    """Return a bound that the true mean exceeds with at most the given probability.

    Parameters
    ----------
    mean
        Mean of independent draws in [0, largest].
    draws
        Number of draws.
    failure_probability
        In (0, 1).
    largest
        A proved bound on every draw.

    Notes
    -----
    Hoeffding 1963, Theorem 1, inverted. The bound is increasing in ``mean`` and in ``largest``.
    """
    p = min(max(mean / largest, 0.0), 1.0)
    goal = -math.log(failure_probability) / draws
    sides = bisect(lambda q: _divergence(p, q) > goal, Sides(meet=1.0, miss=p), Stop())
    return largest * sides.meet * (1 + 1e-12)


def lower_mean(
    mean: float, *, draws: int, failure_probability: float, largest: float = 1.0
) -> float:
    """Return a bound that the true mean falls below with at most the given probability.

    Parameters
    ----------
    mean, draws
        Mean of independent draws in [0, largest], and their number.
    failure_probability
        In (0, 1).
    largest
        A proved bound on every draw.
    """
    p = min(max(mean / largest, 0.0), 1.0)
    return largest * max(
        0.0, 1 - upper_mean(1 - p, draws=draws, failure_probability=failure_probability)
    )


# The first 16th of the draws only chooses the bets on the next draws; each later block of bets is
# as long as all draws before it. Fewer first draws describe skewed laws badly; with more, fewer
# draws are left for the bets.
FIRST = 16


def bets_prove(
    draws: NDArray[np.float64], mean: float, *, failure_probability: float, largest: float
) -> bool:
    """Return whether bets prove that the true mean of draws is at most a number.

    With stakes s_i that depend on earlier draws only, the capital ``prod_i (1 + s_i (m - x_i))`` is
    a martingale if the mean of the x_i is m, and as long as it is >= 0 it exceeds 1 / p with
    probability at most p (Ville 1939). It increases in m (Waudby-Smith and Ramdas 2024, Estimating
    means of bounded random variables by betting). For draws far below their largest value this
    proves much smaller means than Hoeffding's bound.

    Parameters
    ----------
    draws
        All draws, each in [0, largest], in their original order.
    mean
        The number.
    failure_probability
        Probability in (0, 1) with which a number below the true mean is proved.
    largest
        A proved bound on every draw.

    >>> x = 0.1 * np.random.default_rng(0).random(20_000) ** 8
    >>> sure = {"failure_probability": 1e-9, "largest": 1.0}
    >>> bets_prove(x, x.mean() + 0.0014, **sure), bets_prove(x, x.mean() + 0.0010, **sure)
    (True, False)
    >>> plain = upper_mean(float(x.mean()), draws=20_000, failure_probability=1e-9)
    >>> print(f"{plain - x.mean():.4f}")
    0.0055
    """
    if largest <= mean:
        return True
    goal, capital, edge = -math.log(failure_probability), 0.0, max(1, len(draws) // FIRST)
    while edge < len(draws):
        # The stake is optimal for a normal law of this spread, taken as largest^2 at least.
        spread = len(draws) * float(draws[:edge].var())
        stake = math.sqrt(2 * goal / max(spread, 2 * goal * largest * largest)) * (1 - 2e-9)
        capital += float(np.log1p(stake * (mean * (1 - 1e-12) - draws[edge : 2 * edge])).sum())
        edge *= 2
    return capital >= goal * (1 + 1e-9)


def draws_needed(delta: float, *, failure_probability: float, largest: float = 1.0) -> int:
    """Return the least number of draws that can prove ``delta``, if every draw were zero.

    Parameters
    ----------
    delta
        Upper bound wanted on the mean, positive.
    failure_probability
        In (0, 1).
    largest
        A proved bound on every draw.

    >>> draws_needed(1e-5, failure_probability=1e-7)
    1611802
    """
    if delta >= largest:
        return 1
    return math.ceil(1.0000001 * -math.log(failure_probability) / -math.log1p(-delta / largest))
