"""Monte Carlo draws: seeded chunks on any executor, then evaluated.

Chunk number i of stream j is drawn from the seed sequence (seed, j, i) by every worker, so the
result does not depend on the number of workers.

>>> import numpy as np
>>> from dpcal.accountants.correlated.draws.bins import Bins
>>> sample = simulate(Bins(np.eye(10), "remove", 2), draws=20_000, seed=0)
>>> answer = sample.at(0.5, failure_probability=1e-6)
>>> answer.lower < answer.mean < answer.upper
True
"""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal.accountants.correlated.draws.bins import Bins
from dpcal.accountants.correlated.draws.confidence import Bets, lower_mean
from dpcal.accountants.correlated.draws.estimators import Direct

__all__ = ["CHUNK", "Estimator", "Reading", "Sample", "simulate"]

Floats = NDArray[np.float64]
Estimator = Direct | Bins

# Draws of one chunk, which has one seed sequence.
CHUNK = 1024
# Most values of one array of draws, 1 MB, so that arrays stay in the cache of a core, which is
# twice as fast as 16 MB. Long runs draw a chunk in parts.
_LARGEST_ARRAY = 2**17
# Least draws of such a part, so that loops in Python stay short.
_LEAST_DRAWS = 32
# Logarithmic width of the cells of epsilons that share their bets. Bets for another epsilon raise
# delta by about the difference of delta between the two.
_CELL = 0.01
# Number of the first cell, to which all epsilons up to exp(-7) belong.
_FIRST_CELL = -700


class Reading(NamedTuple):
    """A mean and its bounds.

    Attributes
    ----------
    lower, mean, upper
        Estimate of delta, or of epsilon, between confidence bounds, each failing with at most the
        probability asked for.
    standard_error
        Standard error of the mean, if it is known.
    """

    lower: float
    mean: float
    upper: float
    standard_error: float = math.nan


def _cell(epsilon: float) -> int:
    """Return the cell that holds an epsilon >= 0."""
    if epsilon <= math.exp(_CELL * _FIRST_CELL):
        return _FIRST_CELL
    return math.floor(math.log(epsilon) / _CELL * (1 + 1e-14))


def _start(cell: int) -> float:
    """Return the least epsilon of a cell; the first cell begins at 0."""
    return 0.0 if cell <= _FIRST_CELL else math.exp(_CELL * cell)


@dataclass(frozen=True, eq=False)
class Sample:
    """Values kept of the draws of an estimator, from which delta at every epsilon follows.

    Bounds are bets against the mean. Epsilons within one percent share their bets in all answers:
    delta at an epsilon and epsilon at a delta rest on one bound.
    """

    estimator: Estimator
    kept: Floats
    _bets: dict[tuple[int, float], Bets] = field(default_factory=dict, repr=False)

    @property
    def draws(self) -> int:
        """Number of draws."""
        return int(self.kept.shape[1])

    def _bets_at(self, epsilon: float, failure: float) -> Bets:
        """Return the bets of an epsilon's cell, made for the start of the cell."""
        key = _cell(epsilon), failure
        if key not in self._bets:
            level = min(_start(key[0]), epsilon)

            def past(count: int) -> tuple[Floats, float]:
                terms = self.estimator.terms(self.kept[:, :count], level)
                return terms, self.estimator.largest(level)

            self._bets[key] = Bets.of(self.draws, past, failure_probability=failure)
        return self._bets[key]

    def cells_above(self, epsilon: float) -> Iterator[tuple[float, float]]:
        """Yield starts and ends of cells of bets above an epsilon, the last one without an end.

        From the start of that cell on no draw exceeds epsilon, so that bounds fall as ranges do.
        """
        cell = _cell(epsilon) + 1 if math.isfinite(epsilon) else None
        while cell is not None:
            start, end = _start(cell), _start(cell + 1)
            if not self.estimator.terms(self.kept, start).any():
                yield start, math.inf
                return
            yield start, end
            cell += 1

    def below(self, epsilon: float, mean: float, *, failure_probability: float) -> bool:
        """Return whether bets prove delta(epsilon) <= ``mean``; faster than the bound itself."""
        largest = self.estimator.largest(epsilon)
        if largest <= mean:
            return True
        return self._bets_at(epsilon, failure_probability).settles(
            self.estimator.terms(self.kept, epsilon),
            mean,
            failure_probability=failure_probability,
            largest=largest,
        )

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
        # Two standard errors of both samples are a margin; the range counts if few draws exceed
        # epsilon.
        reach = 2 * math.sqrt(1 / self.draws + 1 / draws) + math.sqrt(2 * goal / draws)
        rare = (1 / 3) * largest * goal / draws
        return float(terms.mean() + terms.std() * reach) + rare

    def at(self, epsilon: float, *, failure_probability: float) -> Reading:
        """Return the estimate of delta at epsilon, with bounds that hold at every sample size."""
        terms, largest = self.estimator.terms(self.kept, epsilon), self.estimator.largest(epsilon)
        options = {"failure_probability": failure_probability, "largest": largest}
        bets = self._bets_at(epsilon, failure_probability)
        below = float(self.estimator.terms(self.kept, epsilon, above=False).mean())
        return Reading(
            mean=float(terms.mean()),
            # The rounding of the sum of the terms is far below 1e-12 of it.
            lower=lower_mean(below * (1 - 1e-12), draws=self.draws, **options),
            upper=bets.upper_mean(terms, **options),
            standard_error=float(terms.std()) / math.sqrt(self.draws),
        )


@lru_cache(maxsize=4)
def _opened(packed: bytes) -> Estimator:
    """Return the estimator of a message, with the tables that it builds, once for each process."""
    estimator: Estimator = pickle.loads(zlib.decompress(packed))
    return estimator


def _sent_chunk(work: tuple[bytes, int, int, int]) -> Floats:
    packed, *place = work
    return _chunk((_opened(packed), *place))  # type: ignore[arg-type]


def _chunk(work: tuple[Estimator, int, int, int]) -> Floats:
    estimator, seed, stream, index = work
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, index))
    generator = np.random.Generator(np.random.PCG64(sequence))
    # Parts are powers of two, so that they fill the chunk.
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
    executor: Executor | Any | None = None,
) -> Sample:
    """Return draws from an estimator's law.

    Parameters
    ----------
    estimator
        The law, and the values that are kept.
    draws
        Least number of draws, rounded up to whole chunks of 1024.
    seed, stream
        Whole numbers >= 0 that fix the draws.
    executor
        Runs the chunks, if given: a ``concurrent.futures`` executor, or a Dask client as it is.

    Returns
    -------
    Sample
        The sample, which is the same for every executor.
    """
    left = range(-(-_validate.count(draws=draws) // CHUNK))
    chunks = list(_results(estimator, seed, stream, left, executor))
    return Sample(estimator, np.concatenate(chunks, axis=1))


def _results(
    estimator: Estimator, seed: int, stream: int, left: range, executor: Any
) -> Iterable[Floats]:
    """Yield chunks in order, drawn here or by an executor, to which small messages are sent."""
    if executor is None:
        return map(_chunk, [(estimator, seed, stream, index) for index in left])
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor()
    # Rates and first columns hold repeated values, so that messages are kilobytes for long runs
    # too.
    packed = zlib.compress(pickle.dumps(estimator), 6)
    found: Iterable[Floats] = executor.map(
        _sent_chunk, [(packed, seed, stream, index) for index in left]
    )
    return found
