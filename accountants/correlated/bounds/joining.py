"""Laws of a record's participations for several samplers, and bounds on their decaying sums.

>>> from dpcal.accountants.samplers import RandomAllocation
>>> joining = Joining.of(RandomAllocation(1, epoch=4), 8)
>>> [round(float(chance), 2) for chance in joining.chances[:4]]
[0.25, 0.33, 0.5, 1.0]
>>> 1.5333 < joining.largest_state(0.5) < 1.5334
True
>>> spaced = Joining(np.full(5, 0.1), separation=3)     # at most the rounds 1 and 4, or 2 and 5
>>> print(f"{spaced.largest_state(0.9):.6f}")
1.729000
>>> state_cap(0.5, 0.01, 1000, 1e-6) < 1.9
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import comb

from dpcal.accountants.correlated.bounds.base import MARGIN
from dpcal.accountants.participations import Floats
from dpcal.accountants.rounding import UNIT
from dpcal.accountants.samplers import MinSeparation, Sampler

# Cells of the grid of states, rounded up; with a slower decay, a state hardly leaves its cell.
_CELLS, _SLOWEST = 2**14, 0.997
_BINOMIALS = 2**14
# Least probability of a possible count: rounding never makes it zero.
TINY = 1e-300


@lru_cache(maxsize=_BINOMIALS)
def binomials(order: int, chance: float) -> Floats:
    """Return Bin(n; f, chance) for f, n = 0, ..., order, of shape (f, n), rounded up."""
    f, n = np.ogrid[: order + 1, : order + 1]
    possible = (n <= f) & ((n == 0) | (chance > 0)) & ((n == f) | (chance < 1))
    # Each power and each coefficient is rounded as often as it has factors.
    found = comb(f, n) * chance**n * (1 - chance) ** np.maximum(f - n, 0)
    return np.where(possible, np.maximum(found * (1 + (6 * order + 8) * UNIT), TINY), 0.0)


@dataclass(frozen=True, eq=False)
class Joining:
    """How a record takes part: the chance of each round, and when it may join again.

    Attributes
    ----------
    chances
        Probability of each round for a record that is free, of shape (rounds,).
    separation
        Rounds from a participation to the first round in which the record is free again; 1 for the
        next round.
    epoch
        Rounds of an epoch, in which a record is free until it joins; 0 for none. The chance of the
        last round of an epoch is then 1.
    period
        Number of rounds after which chances repeat themselves.
    """

    chances: Floats
    separation: int = 1
    epoch: int = 0
    period: int = 1

    @classmethod
    def of(cls, sampler: Sampler, rounds: int) -> Joining | None:
        """Return the law of a record of the sampler's first group; None if no field expresses it.

        The record is free in the first round. For a Toeplitz C, a record that waits at random sees
        a part of such a run, which costs no more (joint convexity).
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

    @property
    def odds(self) -> Floats:
        """The largest odds of a participation given all others, of shape (rounds,)."""
        return self.chances / (1 - self.chances) ** self.separation * (1 + MARGIN)

    def largest_state(self, decay: float) -> float:
        """Return the largest number w' = decay w + y of a record's participations."""
        if self.epoch:
            # The last participation, one just before it, and then one an epoch earlier each.
            return 1 + decay / (1 - decay**self.epoch)
        apart = max(self.separation, self.period)
        times = -(-len(self.chances) // apart)
        return (1 - decay ** (apart * times)) / (1 - decay**apart) * (1 + MARGIN)


@lru_cache(maxsize=64)
def _visits(decay: float, rate: float, rounds: int) -> tuple[Floats, Floats]:
    """Return nodes, and bounds on the mean number of rounds that begin in a state as large."""
    nodes = np.linspace(0.0, 1 / (1 - decay), _CELLS + 1)
    idle, join = (
        np.minimum(np.ceil((decay * nodes + y) / nodes[1] * (1 + 1e-14)), _CELLS).astype(np.intp)
        for y in (0, 1)
    )
    law, total = np.eye(1, _CELLS + 1)[0], np.zeros(_CELLS + 1)
    # Later, the rest of all earlier states is less than a cell.
    last = min(rounds, math.ceil(math.log(nodes[1] * (1 - decay)) / math.log(decay)) + 1)
    for _ in range(last):
        total += law
        stays, joins = np.bincount(idle, law, _CELLS + 1), np.bincount(join, law, _CELLS + 1)
        law = (1 - rate) * stays + rate * joins
    return nodes, (total + (rounds - last) * law)[::-1].cumsum()[::-1] * (1 + MARGIN)


def state_cap(decay: float, rate: float, rounds: int, tail: float) -> float:
    """Return a state that one record's participations exceed with probability at most ``tail``.

    Only a participation can raise the state above the result.
    """
    if not 0 < decay <= _SLOWEST:
        return 1 / (1 - decay)
    nodes, visits = _visits(decay, rate, rounds)
    place = int(np.argmax(np.append(rate * visits[1:], 0.0) <= tail))
    # States of late rounds may lack up to a cell.
    return float(min(nodes[-1], 1 + decay * nodes[min(place + 1, _CELLS)]))
