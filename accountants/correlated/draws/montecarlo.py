"""Monte Carlo draws: seeded chunks on any executor, and bounds that hold at every sample size.

Chunk number i of stream j is drawn from the seed sequence (seed, j, i) by every worker, so the
result does not depend on the number of workers.

>>> import numpy as np
>>> from dpcal.accountants.correlated.draws.estimators import Bins
>>> sample = simulate(Bins(np.eye(10), "remove", 2), draws=20_000, seed=0)
>>> answer = sample.at(0.5, failure_probability=1e-6)
>>> answer.lower < answer.mean < answer.upper
True
>>> print(f"{upper_mean(0.0, draws=100_000, failure_probability=1e-3):.5e}")
6.90752e-05
>>> print(f"{upper_mean(1e-3, draws=100_000, failure_probability=1e-3):.5e}")
1.41880e-03
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpcal._internal.executors import mapping
from dpcal._internal.roots import Sides, Stop, bisect
from dpcal.accountants.correlated.draws.estimators import Estimator
from dpcal.accountants.participations import Floats

# Draws of one chunk, which has one seed sequence.
CHUNK = 1024
# Most draws: 2.4 GB, and hours for a short run.
MOST_DRAWS = 10**8
# Most values of one array: 1 MB stays in the cache of a core, twice as fast as 16 MB.
_LARGEST_ARRAY = 2**17
_LEAST_DRAWS = 32
_WIDTH = 1e-6
# First epsilons that are tested, over the estimate by the first draws, and the ratio of later ones.
_STARTS, _STEP = (2.0, 1.6, 1.4, 1.3, 1.2), 0.9985
_LEAST = 1e-9
# Factor on the least number of draws at which they prove delta although a few exceed epsilon.
_ENOUGH = 1.25


# One in this many draws only chooses the first bets: fewer describe skewed laws badly.
FIRST = 16


def _divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q)."""
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
        Probability in (0, 1).
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
        Probability in (0, 1).
    largest
        A proved bound on every draw.
    """
    p = min(max(mean / largest, 0.0), 1.0)
    return largest * max(
        0.0, 1 - upper_mean(1 - p, draws=draws, failure_probability=failure_probability)
    )


def bets_prove(draws: Floats, mean: float, *, failure_probability: float, largest: float) -> bool:
    """Return whether bets prove that the true mean of draws is at most a number.

    With stakes s_i that depend on earlier draws only, the capital ``prod_i (1 + s_i (m - x_i))`` is
    a martingale if the mean of the x_i is m. As long as the capital is >= 0, it exceeds 1 / p with
    probability at most p (Ville 1939). The capital increases in m (Waudby-Smith and Ramdas 2024,
    Estimating means of bounded random variables by betting). For draws far below their largest
    value this proves much smaller means than Hoeffding's bound.

    Parameters
    ----------
    draws
        All draws, each in [0, largest], in their original order.
    mean
        Bound on the true mean, to be proved.
    failure_probability
        Largest probability, in (0, 1), of proving a number below the true mean.
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
        # The stake is optimal for a normal law; at most 1 / largest, it keeps the capital >= 0.
        spread = len(draws) * float(draws[:edge].var())
        stake = math.sqrt(2 * goal / max(spread, 2 * goal * largest * largest)) * (1 - 2e-9)
        capital += float(np.log1p(stake * (mean * (1 - 1e-12) - draws[edge : 2 * edge])).sum())
        edge *= 2
    return capital >= goal * (1 + 1e-9)


def draws_needed(delta: float, *, failure_probability: float) -> int:
    """Return the least number of draws in [0, 1] that can prove ``delta``, if all were zero.

    Parameters
    ----------
    delta
        Upper bound on the mean, in (0, 1), to be proved.
    failure_probability
        Probability in (0, 1).

    >>> draws_needed(1e-5, failure_probability=1e-7)
    1611802
    """
    return math.ceil(1.0000001 * -math.log(failure_probability) / -math.log1p(-delta))


def draws_enough(delta: float, *, failure_probability: float) -> int:
    """Return a number of draws that prove about ``delta`` where a few of them exceed epsilon."""
    needed = draws_needed(delta, failure_probability=failure_probability)
    return math.ceil(_ENOUGH * needed)


class Reading(NamedTuple):
    """A mean and its bounds.

    Attributes
    ----------
    lower, mean, upper
        Estimate of delta, or of epsilon, between two confidence bounds. Each bound fails with at
        most the given probability.
    """

    lower: float
    mean: float
    upper: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Values kept of the draws of an estimator, from which delta at every epsilon follows."""

    estimator: Estimator
    kept: Floats

    @property
    def draws(self) -> int:
        """Number of draws."""
        return int(self.kept.shape[1])

    @property
    def first(self) -> Sample:
        """The first draws, on which nothing is bet."""
        return Sample(self.estimator, self.kept[:, : max(1, self.draws // FIRST)])

    def mean(self, epsilon: float) -> float:
        """Return the estimate of delta."""
        return float(self.estimator.terms(self.kept, epsilon).mean())

    def lower(self, epsilon: float, failure_probability: float) -> float:
        """Return a number below delta (Hoeffding)."""
        below = float(self.estimator.terms(self.kept, epsilon, above=False).mean())
        largest = self.estimator.largest(epsilon)
        options = {"failure_probability": failure_probability, "largest": largest}
        # The rounding of the sum of the terms is far below 1e-12 of it.
        return lower_mean(below * (1 - 1e-12), draws=self.draws, **options)

    def proves(self, epsilon: float, delta: float, failure_probability: float) -> bool:
        """Return whether the draws prove a delta at an epsilon."""
        largest = self.estimator.largest(epsilon)
        terms = self.estimator.terms(self.kept, epsilon)
        return bets_prove(terms, delta, failure_probability=failure_probability, largest=largest)

    def expected(self, epsilon: float, draws: int, failure_probability: float) -> float:
        """Return an estimate of the upper bound from another number of independent draws.

        Parameters
        ----------
        epsilon
            The epsilon of the bound.
        draws, failure_probability
            Number of draws, and failure probability of the bound.
        """
        terms = self.estimator.terms(self.kept, epsilon)
        largest, goal = self.estimator.largest(epsilon), -math.log(failure_probability)
        # The reach: two standard errors of both samples, and the range if few draws exceed epsilon.
        reach = 2 * math.sqrt(1 / self.draws + 1 / draws) + math.sqrt(2 * goal / draws)
        rare = (1 / 3) * largest * goal / draws
        return float(terms.mean() + terms.std() * reach) + rare

    def at(self, epsilon: float, *, failure_probability: float) -> Reading:
        """Return the estimate of delta at epsilon, with bounds that hold at every sample size."""
        terms, largest = self.estimator.terms(self.kept, epsilon), self.estimator.largest(epsilon)
        known = {"failure_probability": failure_probability, "largest": largest}
        sides = Sides(meet=largest, miss=min(float(terms.mean()), largest))
        upper = bisect(lambda m: bets_prove(terms, m, **known), sides, Stop(relative=_WIDTH)).meet
        return Reading(self.lower(epsilon, failure_probability), float(terms.mean()), upper)


def last_proved(proves: Callable[[float], bool], near: float) -> float:
    """Return the last epsilon of a falling sequence that is proved, one after the other.

    ``near`` fixes the sequence. A wrong epsilon is proved only if the test of the first wrong
    epsilon errs. The failure probability is therefore the failure probability of a single test. The
    result is infinite if the first test fails.
    """
    found = math.inf
    if math.isinf(near):
        return found
    for epsilon in (each * near for each in _STARTS):
        if not proves(epsilon):
            return found
        found = epsilon
    while found > 0:
        epsilon = found * _STEP if found * _STEP > _LEAST else 0.0
        if not proves(epsilon):
            break
        found = epsilon
    return found


def _chunk(estimator: Estimator, seed: int, stream: int, index: int) -> Floats:
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, index))
    generator = np.random.Generator(np.random.PCG64(sequence))
    part = CHUNK
    while part > _LEAST_DRAWS and part * estimator.steps > _LARGEST_ARRAY:
        part //= 2
    return np.concatenate([estimator.draw(part, generator) for _ in range(CHUNK // part)], axis=1)


def simulate(
    estimator: Estimator,
    *,
    draws: int,
    seed: int,
    stream: int = 0,
    executor: Any = None,
) -> Sample:
    """Return draws from an estimator's law.

    Parameters
    ----------
    estimator
        The law, and the values that are kept.
    draws
        Least number of draws, rounded up to whole chunks of 1024; at most 10^8.
    seed, stream
        Whole numbers >= 0 that fix the draws.
    executor
        Executor of the chunks, if given: a ``concurrent.futures`` executor, or a Dask client as it
        is.

    Returns
    -------
    Sample
        The sample, which is the same for every executor.
    """
    chunk_of = partial(_chunk, estimator, seed, stream)
    chunks = mapping(executor)(chunk_of, range(-(-draws // CHUNK)))
    return Sample(estimator, np.concatenate(list(chunks), axis=1))
