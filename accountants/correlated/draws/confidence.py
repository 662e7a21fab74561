"""How sure is a sample mean? Confidence bounds that hold at every sample size.

>>> print(f"{upper_mean(0.0, draws=100_000, failure_probability=1e-3):.5e}")
6.90752e-05
>>> print(f"{upper_mean(1e-3, draws=100_000, failure_probability=1e-3):.5e}")
1.41880e-03
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal._roots import Sides, Stop, bisect

__all__ = ["Bets", "draws_needed", "lower_mean", "upper_mean"]


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
_FIRST = 16
# A capital approaches its goal from below within this relative error, and then exceeds it.
_SOLVED = 1e-10


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets against a mean, each fixed by earlier draws: a large capital proves an upper bound.

    With stakes s_i that depend on earlier draws only, the capital ``prod_i (1 + s_i (m - x_i))`` is
    a martingale if the mean of the x_i is m, and as long as it is >= 0 it exceeds 1 / p with
    probability at most p (Ville 1939). It increases in m and decreases in every x_i, so that the
    least m at which it exceeds 1 / p is a bound on the mean, which falls if draws fall
    (Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting). For
    draws far below their largest value it is much nearer to the mean than Hoeffding's bound.

    Attributes
    ----------
    edges
        The draw with which each block of bets begins, and the number of draws.
    stakes
        The stake of each block, at most one over the largest draw that it was made for.

    >>> x = 0.1 * np.random.default_rng(0).random(20_000) ** 8
    >>> bets = Bets.of(20_000, lambda past: (x[:past], 1.0), failure_probability=1e-9)
    >>> print(f"{bets.upper_mean(x, failure_probability=1e-9, largest=1.0) - x.mean():.4f}")
    0.0013
    >>> plain = upper_mean(float(x.mean()), draws=20_000, failure_probability=1e-9)
    >>> print(f"{plain - x.mean():.4f}")
    0.0055
    """

    edges: tuple[int, ...]
    stakes: tuple[float, ...]

    @classmethod
    def of(
        cls,
        draws: int,
        past: Callable[[int], tuple[NDArray[np.float64], float]],
        *,
        failure_probability: float,
    ) -> Bets:
        """Return bets whose stakes are chosen from the draws before each block.

        Parameters
        ----------
        draws
            Number of draws in all.
        past
            Maps a number k to k values that the first k draws determine, and to the largest
            possible value.
        failure_probability
            Failure probability of the bound for which stakes are chosen.
        """
        edges = [max(1, draws // _FIRST)]
        while edges[-1] < draws:
            edges.append(min(draws, 2 * edges[-1]))
        stakes = []
        for edge in edges[:-1]:
            values, largest = past(edge)
            # The stake is optimal for a normal law of this spread, taken as largest^2 at least.
            spread = draws * float(values.var())
            goal = -2 * math.log(failure_probability)
            stakes.append(math.sqrt(goal / max(spread, goal * largest * largest)))
        return cls(tuple(edges), tuple(stakes))

    def _admit(self, largest: float) -> bool:
        """Return whether no draw of this range can make the capital negative."""
        return bool(self.stakes) and max(self.stakes) * largest <= 1 + 1e-9

    @cached_property
    def _each(self) -> NDArray[np.float64]:
        """Return the stake of each draw after the first ones, just below the largest admitted."""
        return np.repeat(self.stakes, np.diff(self.edges)) * (1 - 2e-9)

    def settles(
        self,
        draws: NDArray[np.float64],
        mean: float,
        *,
        failure_probability: float,
        largest: float,
    ) -> bool:
        """Return whether the bound of :meth:`upper_mean` is at most a number; much faster."""
        if largest <= mean or not self._admit(largest):
            return largest <= mean
        factors = 1 + self._each * (mean * (1 - 1e-12) - draws[self.edges[0] :])
        if factors.min() <= 0:
            return False
        capital = float(np.log(factors).sum())
        return capital >= -math.log(failure_probability) * (1 + 2 * _SOLVED)

    def upper_mean(
        self, draws: NDArray[np.float64], *, failure_probability: float, largest: float
    ) -> float:
        """Return a bound that the true mean exceeds with at most the given probability.

        Parameters
        ----------
        draws
            All draws, each in [0, largest], in their original order.
        failure_probability
            In (0, 1).
        largest
            A proved bound on every draw.
        """
        if not self._admit(largest):
            return largest
        x, stakes = draws[self.edges[0] :], self._each
        goal = -math.log(failure_probability)

        def capital(m: float) -> tuple[float, float]:
            factors = 1 + stakes * (m - x)
            return float(np.log(factors).sum()), float((stakes / factors).sum())

        m = min(float(x.mean()), largest) + 1e-12 * largest
        for _ in range(200):
            found, slope = capital(m)
            if found >= goal * (1 - _SOLVED):
                break
            # The logarithm of the capital is concave, so that a Newton step never passes the bound.
            m += (goal - found) / slope
        while capital(m)[0] < goal * (1 + _SOLVED) and m < largest:
            m += max(2 * _SOLVED * goal / capital(m)[1], 1e-12 * m)
        return min(m * (1 + 1e-12), largest)


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
