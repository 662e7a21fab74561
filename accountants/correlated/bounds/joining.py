"""When may a record join, and how far do its participations add up? Laws of several samplers.

>>> from dpcal.accountants.samplers import RandomAllocation
>>> joining = Joining.of(RandomAllocation(1, epoch=4), 8)
>>> [round(float(chance), 2) for chance in joining.chances[:4]]
[0.25, 0.33, 0.5, 1.0]
>>> 1.5333 < joining.largest_state(0.5) < 1.5334
True
>>> state_cap(0.5, 0.01, 1000, 1e-6) < 1.9
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcal._roots import Sides, Stop, bisect
from dpcal.accountants.correlated.mechanism import Plain
from dpcal.accountants.samplers import MinSeparation, Sampler

__all__ = ["Joining", "state_cap"]

Floats = NDArray[np.float64]

# Relative margin, outward: far above the rounding of sums over the rounds, which is near 1e-13.
_MARGIN = 1e-9
# Halvings of the interval of a cap; any cap proves a bound.
_HALVINGS = 12
# Rounds between two checks whether probabilities of rounds still grow by more than this part in all
# rounds.
_EVERY, _GROWTH = 64, 1e-3
# Cells of states, which are rounded up: one that decays slower than this hardly leaves its cell.
_CELLS, _SLOWEST = 1000, 0.997


@dataclass(frozen=True, eq=False)
class Joining(Plain):
    """How a record takes part: the chance of each round, and when it may join again.

    Attributes
    ----------
    chances
        Probability of each round for a record that is free, of shape (rounds,).
    separation
        Rounds from a participation to the first that it is free for; 1 for the next one.
    epoch
        Rounds of an epoch, in which a record is free until it joins; 0 for none. The chance of its
        last round is 1 then.
    period
        Number of rounds after which chances repeat themselves.
    """

    chances: Floats
    separation: int = 1
    epoch: int = 0
    period: int = 1

    @classmethod
    def of(cls, sampler: Sampler, rounds: int) -> Joining | None:
        """Return how a sampler's record takes part, the first of its groups; None if not so.

        It is free at the first round: for a Toeplitz C a record that waits at random sees a part of
        such a run, which costs no more (joint convexity).
        """
        groups, epochs = sampler.groups(rounds), sampler.epochs(rounds)
        if isinstance(sampler, MinSeparation):
            chances = np.full(rounds, float(sampler.sampling_probability))
            return cls(chances, sampler.separation)
        if groups is not None:
            chances, period = np.zeros(rounds), sampler.least_separation
            chances[::period] = float(groups.rate)
            return cls(chances, period=period)
        if epochs is None or not epochs.times == epochs.repeated == 1:
            return None
        left = epochs.rounds - np.arange(rounds) % epochs.rounds
        return cls(1 / left, epoch=epochs.rounds, period=epochs.rounds)

    @property
    def independent(self) -> bool:
        """Whether rounds are independent."""
        return self.separation == 1 and not self.epoch

    def largest_state(self, decay: float) -> float:
        """Return the largest number w' = decay w + y of a record's participations."""
        if self.epoch:
            # The last one, the one just before it, and one epoch each before that.
            return 1 + decay / (1 - decay**self.epoch)
        return 1 / (1 - decay ** max(self.separation, self.period))


def _exceedance(decay: float, rate: float, rounds: int, cap: float, cells: int) -> float:
    """Return an upper bound on the probability that a state exceeds the cap, states rounded up."""
    s = np.linspace(0.0, cap, cells + 1)
    beyond = cells + 1

    def rounded(state: Floats) -> NDArray[np.intp]:
        index = np.ceil(state / cap * cells * (1 + 1e-14)).astype(np.intp)
        return np.where(state > cap, beyond, np.minimum(index, cells))

    idle, join = rounded(decay * s), rounded(decay * s + 1)
    # first[j] is the probability, from node j, of exceeding the cap in round n for the first time.
    first = np.zeros(cells + 2)
    first[:-1] = (1 - rate) * (idle == beyond) + rate * (join == beyond)
    total = float(first[0])
    for n in range(2, rounds + 1):
        later = np.zeros(cells + 2)
        later[:-1] = (1 - rate) * first[idle] + rate * first[join]
        total += float(later[0])
        if n % _EVERY == 0 and (later <= first * (1 + _GROWTH / rounds)).all():
            # The map is linear and monotone: no later round grows by more than this one.
            total += float(later[0]) * (rounds - n) * math.exp(_GROWTH)
            break
        first = later
    return total * (1 + _MARGIN)


@lru_cache(maxsize=256)
def state_cap(decay: float, rate: float, rounds: int, tail: float) -> float:
    """Return a state that one record's participations exceed with probability at most ``tail``."""
    if decay > _SLOWEST:
        return 1 / (1 - decay)
    return bisect(
        lambda cap: _exceedance(decay, rate, rounds, cap, _CELLS) <= tail,
        Sides(meet=1 / (1 - decay), miss=1.0),
        Stop(evaluations=_HALVINGS),
    ).meet
