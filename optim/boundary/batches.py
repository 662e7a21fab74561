"""Which records and which noise belong to round t? Batches and rows of a query's correlated noise.

Who takes part when is drawn here for every record by itself, from the law that the accountant
prices: no record's participation depends on another record.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.calibrate import Correlation, Query
>>> query = Query(name="gradient", kind="gradient", sampler="balls-in-bins", separation=3,
...               max_norm=1.0, noise_multiplier=2.0, count=6,
...               correlation=Correlation(strategy=LambdaCGD(6, 0.5)))
>>> sampling, noise = np.random.default_rng(0).spawn(2)
>>> rounds = Rounds(query, n=9, dimension=2, sampling=sampling, noise=noise)
>>> batches = []
>>> for _ in range(6):
...     rounds.begin()
...     batches.append(rounds.batch.tolist())
>>> batches[:3] == batches[3:], sorted(sum(batches[:3], []))
(True, [0, 1, 2, 3, 4, 5, 6, 7, 8])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.noise import poisson_sample
from dpcal.calibrate.plan import Query

__all__ = ["Rounds"]

Rows = NDArray[np.intp]


class Rounds:
    """The rounds of one query, in turn.

    Parameters
    ----------
    query
        With ``correlation``.
    n
        Number of records.
    dimension
        Number of parameters.
    sampling, noise
        Generators of batches and of noise, for this query alone.

    Attributes
    ----------
    batch
        Row numbers of the round that was begun last.
    noise
        Its row of C^-1 z, shape (dimension,).
    """

    def __init__(
        self,
        query: Query,
        n: int,
        dimension: int,
        *,
        sampling: np.random.Generator,
        noise: np.random.Generator,
    ) -> None:
        if query.correlation is None:
            raise ValueError(f"query {query.name!r} has independent noise.")
        # Heavy, and not needed where noise is independent.
        from dpcal.optim.boundary.noise import NoiseStream

        self._query, self._n = query, n
        self._sampling = sampling
        self._stream = NoiseStream(query.correlation.strategy, dimension, noise)
        self.noise = np.zeros(dimension)
        self.batch: Rows = np.empty(0, np.intp)
        self._round = 0
        self._start()

    def _start(self) -> None:
        """Draw what a record keeps for the whole run: its group, or how long it sits out."""
        b = self._query.separation or 1
        if self._query.sampler in ("cyclic-poisson", "balls-in-bins"):
            group = self._sampling.integers(b, size=self._n)
            self._groups = [np.flatnonzero(group == g) for g in range(b)]
        elif self._query.sampler == "min-separation":
            # The stationary law, so that batches have one expected size from the first round on.
            p = self._query.sampling_probability or 1.0
            law = np.full(b, p / (1 + (b - 1) * p))
            law[0] = 1 / (1 + (b - 1) * p)
            self._idle = self._sampling.choice(b, size=self._n, p=law / law.sum())
        elif self._query.sampler == "random-allocation":
            self._due = np.full(self._n, self._query.participations or 1)

    def begin(self) -> None:
        """Draw the next round's batch, and its noise."""
        self._stream.read(self.noise)
        self.batch = self._drawn()
        self._round += 1

    def skip_to(self, count: int) -> None:
        """Go on as if ``count`` rounds had begun."""
        self._stream = self._stream.at(count)
        while self._round < count:
            self.batch = self._drawn()
            self._round += 1

    def _drawn(self) -> Rows:
        q = self._query.sampling_probability or 1.0
        if self._query.sampler == "min-separation":
            eligible = np.flatnonzero(self._idle == 0)
            joined = eligible[poisson_sample(len(eligible), q, self._sampling)]
            self._idle = np.maximum(self._idle - 1, 0)
            self._idle[joined] = (self._query.separation or 1) - 1
            return joined
        if self._query.sampler in ("cyclic-poisson", "balls-in-bins"):
            group = self._groups[self._round % len(self._groups)]
            return group[poisson_sample(len(group), q, self._sampling)]
        if self._query.sampler == "random-allocation":
            # Of the rounds left, each is as likely as any other to be among those that are due.
            left = self._stream.strategy.steps - self._round
            joined = np.flatnonzero(self._sampling.random(self._n) * left < self._due)
            self._due[joined] -= 1
            return joined
        return poisson_sample(self._n, q, self._sampling)
