"""In which rounds does a record take part? Laws of participations, as tables of a small automaton.

Samplers (:mod:`dpcal.accountants.samplers`) build these laws, and accountants of correlated noise
use them.

>>> import numpy as np
>>> y, _ = poisson(0.5, 6).sample(10_000, np.random.default_rng(0))
>>> y.shape, round(float(y.sum(axis=0).mean()))
((6, 10000), 3)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal.accountants.limits import hold

Floats = NDArray[np.float64]

# Random numbers that are drawn at once: 1 MB.
_AT_ONCE = 2**17


@dataclass(frozen=True, eq=False)
class Automaton:
    """A law of participations: the probability of joining each round, given a record's state.

    Attributes
    ----------
    idle, join
        Log-probabilities, of shape (rounds, states), of an idle round and of taking part.
    idle_to, join_to
        The states that follow, of the same shape.
    start
        Log-probabilities of the state before the first round, of shape (states,).
    """

    idle: Floats
    join: Floats
    idle_to: NDArray[np.intc]
    join_to: NDArray[np.intc]
    start: Floats

    @classmethod
    def of(
        cls, rounds: int, chance: ArrayLike, to: tuple[ArrayLike, ArrayLike], start: ArrayLike
    ) -> Automaton:
        """Return a law from probabilities and tables of each round, or of one that all are like.

        Parameters
        ----------
        rounds
            Number of rounds.
        chance
            Probabilities of taking part in each state.
        to
            The states that follow a round without the record, and one with it. These and ``chance``
            are broadcast to the shape (rounds, states).
        start
            Probabilities of the states before the first round, shape (states,).
        """
        shape = rounds, np.size(start)
        hold(5.0 * rounds * shape[1], f"{rounds} rounds with {shape[1]} states")
        chances = np.ascontiguousarray(np.broadcast_to(chance, shape), np.float64)
        idle_to, join_to = (
            np.ascontiguousarray(np.broadcast_to(each, shape), np.intc) for each in to
        )
        with np.errstate(divide="ignore"):
            first = np.log(np.asarray(start, np.float64))
            return cls(np.log1p(-chances), np.log(chances), idle_to, join_to, first)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.idle.shape[0])

    @property
    def independent(self) -> bool:
        """Whether rounds are independent: there is a single state."""
        return self.start.size == 1

    @property
    def tables(self) -> tuple[Floats, Floats, NDArray[np.intc], NDArray[np.intc], Floats]:
        """The five arrays, in the order in which the kernels take them."""
        return self.idle, self.join, self.idle_to, self.join_to, self.start

    @property
    def rates(self) -> Floats:
        """Probability of taking part in each round."""
        law, rates = np.exp(self.start), np.empty(self.rounds)
        for t in range(self.rounds):
            joins = law * np.exp(self.join[t])
            rates[t] = joins.sum()
            law = self.moved(t, law, joins)
        return rates

    @property
    def never(self) -> float:
        """Logarithm of the probability of taking part in no round."""
        return float(self.idle.sum() if self.independent else self.counts(0)[0])

    def counts(self, most: int | None = None) -> Floats:
        """Return log-probabilities of 0, ..., ``most`` participations (default: all numbers)."""
        most = self.rounds if most is None else most
        law = np.zeros((most + 1, self.start.size))
        law[0] = np.exp(self.start)
        for t in range(self.rounds):
            joins = np.zeros_like(law)
            joins[1:] = law[:-1] * np.exp(self.join[t])
            law = self.moved(t, law, joins)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(law.sum(axis=1)))

    def moved(self, t: int, law: Floats, joins: Floats) -> Floats:
        """Return a law over the states (the last axis) after round t.

        ``law`` is that before the round, and ``joins`` the part of it that takes part.
        """
        after, idles = np.zeros_like(law), law * np.exp(self.idle[t])
        for q in range(self.start.size):
            after[..., self.idle_to[t, q]] += idles[..., q]
            after[..., self.join_to[t, q]] += joins[..., q]
        return after

    def sample(self, draws: int, generator: np.random.Generator) -> tuple[Floats, NDArray[np.intc]]:
        """Return participations, shape (rounds, draws), and the states they started from."""
        y, chance, law = np.empty((self.rounds, draws)), np.exp(self.join), np.exp(self.start)
        if self.independent:
            rows = max(1, _AT_ONCE // draws)
            for t in range(0, self.rounds, rows):
                part = y[t : t + rows]
                part[:] = generator.random(part.shape) < chance[t : t + rows]
            return y, np.zeros(draws, dtype=np.intc)
        first = generator.choice(law.size, size=draws, p=law / law.sum()).astype(np.intc)
        state = first
        for t in range(self.rounds):
            y[t] = generator.random(draws) < chance[t, state]
            state = np.where(y[t] > 0, self.join_to[t, state], self.idle_to[t, state])
        return y, first


@lru_cache(maxsize=8)
def poisson(rate: float, rounds: int) -> Automaton:
    """Return the law of rounds that are joined independently at one rate in (0, 1].

    Equal arguments give the same object, so that results for it can be cached.
    """
    return independent(np.full(rounds, rate))


def independent(rates: Floats) -> Automaton:
    """Return the law of rounds that are joined independently, at rates of shape (rounds,)."""
    return Automaton.of(rates.size, rates[:, None], (0, 0), [1.0])


@dataclass(frozen=True)
class Groups:
    """Groups of records, each with rounds that its records join independently.

    Attributes
    ----------
    rate
        Probability in (0, 1] of joining such a round.
    rounds
        The rounds of each group, as slices of all rounds.
    secret
        Whether a record's group is drawn uniformly and kept secret.
    """

    rate: float
    rounds: tuple[slice, ...]
    secret: bool = False


@dataclass(frozen=True)
class Epochs:
    """Epochs; a record joins a uniform subset of the rounds of each.

    Attributes
    ----------
    rounds, times
        Rounds of an epoch, and how many of them a record joins, with 1 <= times <= rounds.
    drawn, repeated
        Epochs with independent subsets, and epochs >= 1 that use each subset.
    """

    rounds: int
    times: int
    drawn: int
    repeated: int
