r"""What do several random rounds an epoch cost at least? The law of a sum of the outputs.

A record takes part in a uniform subset of k of the t rounds of an epoch, with independent noise.
Whoever sees an epoch's outputs N_1, ..., N_t, in units of sigma, can form Z = g(N_1) + ... + g(N_t)
modulo M, where g has whole values.

*Lower end.* Without the record all N_i are standard normal, and Z has the t-fold convolution of the
law of g(N). With the record, whatever the subset is, k of the terms are those of g(N + mu): Z has
the convolution of t - k laws of g(N) and k laws of g(N + mu). That is the same for all subsets, and
so it is for the mixture over them. Forming Z is post-processing, which no divergence survives
increased, and values of Z are gathered in groups as those of all attacks are
(:func:`~dpcal.accountants.loaders.attacks.composed`). What is found is therefore a lower
bound on delta, in both directions, for every g and M.

Here g is log(1 - k/t + (k/t) X) on a grid, X = exp(mu N - mu^2 / 2): the loss of a round that a
record joins independently with probability k / t. For k = t it is the sum of the N_i, which is
sufficient, and for k << t it is nearly the mean of the X, of which L is made for k = 1.

>>> below = SubsetBelow(norm=1.0, rounds=4, taken=4, epochs=1)
>>> 0.3827 < below.delta(1.0) < 0.5100  # a Gaussian mechanism with mu = 2
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.loaders.attacks import Attack, chances, composed
from dpcal.accountants.rounding import UNIT

__all__ = ["SubsetBelow"]

Floats = NDArray[np.float64]

# The number M of values of Z. The time of the sums grows with it.
_VALUES = 2**13
# Standard deviations of Z that the values cover: the rest is folded back, and its information lost.
_SPAN = 60.0
# Smallest step of the grid of g, in standard deviations of g: a finer grid gains nothing.
_FINENESS = 0.05
# Most values of g: rare losses may be large beside the usual ones.
_MOST_STEPS = 2**17
# Standard deviations of N beyond which g does not grow.
_REACH = 13.0
# Relative rounding of the laws of Z. The error is below 1e-11 for each of up to 60 convolutions of
# 8192 values and for the masses of a cell, and t times as large for a t-th power.
_ROUNDING = 1e-8
# Rounding of a running sum of so many masses of total 1.
_ERROR = _VALUES * UNIT


def _of_a_round(norm: float, rate: float, rounds: int) -> tuple[Floats, Floats]:
    """Return the laws of g modulo M without and with the record."""
    stays = math.log1p(-rate) if rate < 1 else -math.inf

    def loss(x: Floats) -> Floats:
        return np.logaddexp(stays, math.log(rate) + norm * x - 0.5 * norm * norm)

    x = np.linspace(-_REACH, _REACH + norm, 4001)
    weights = np.exp(-0.5 * x * x)
    weights /= weights.sum()
    spread = math.sqrt(float(weights @ (loss(x) - weights @ loss(x)) ** 2))
    low, high = float(loss(x)[0]), float(loss(x)[-1])
    step = spread * max(_FINENESS, _SPAN * math.sqrt(rounds) / _VALUES)
    step = max(step, (high - low) / _MOST_STEPS)
    first, last = math.floor(low / step) + 1, math.ceil(high / step)
    # The edge between the values j and j + 1 is where the loss is j + 1/2 steps.
    between = (np.arange(first, last) + 0.5) * step
    edges = between + np.log1p(-np.exp(stays - between)) - math.log(rate)
    edges = (edges + 0.5 * norm * norm) / norm
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    places = np.arange(first, last + 1) % _VALUES
    without = np.bincount(places, chances(edges), _VALUES)
    within = np.bincount(places, chances(edges - norm), _VALUES)
    return without.astype(np.float64), within.astype(np.float64)


def _folded(first: Floats, second: Floats) -> Floats:
    """Return the law of the sum of two independent whole numbers modulo M."""
    total = np.convolve(first, second)
    total[: _VALUES - 1] += total[_VALUES:]
    return total[:_VALUES]


def _power(one: Floats, times: int) -> Floats:
    """Return the law of the sum of ``times`` >= 1 independent whole numbers modulo M, by doubling.

    >>> law = np.zeros(_VALUES)
    >>> law[3] = 1.0
    >>> int(np.argmax(_power(law, 5)))
    15
    """
    if times == 1:
        return one
    power = _power(_folded(one, one), times // 2)
    return _folded(power, one) if times % 2 else power


@dataclass(frozen=True)
class SubsetBelow:
    """Lower bounds on both directions for a uniform subset of the rounds of each epoch.

    Parameters
    ----------
    norm
        Norm > 0 of a record's contribution to a round, over sigma.
    rounds, taken
        Number of rounds of an epoch, and how many of them a record takes part in.
    epochs
        Number >= 1 of epochs, whose subsets are drawn independently.
    """

    norm: float
    rounds: int
    taken: int
    epochs: int

    @cached_property
    def attacks(self) -> list[Attack]:
        """Those by Z, when a record is removed and when it is added."""
        one, joined = _of_a_round(self.norm, self.taken / self.rounds, self.rounds)
        without, within = _power(one, self.taken), _power(joined, self.taken)
        if self.taken < self.rounds:
            others = _power(one, self.rounds - self.taken)
            without, within = _folded(without, others), _folded(within, others)
        pairs = (within, without), (without, within)
        return [
            composed(p * (1 - _ROUNDING), q * (1 + _ROUNDING), self.epochs, _ERROR)
            for p, q in pairs
        ]

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on delta at an epsilon >= 0."""
        return max(attack.delta(epsilon) for attack in self.attacks)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on epsilon at a delta in (0, 1)."""
        return max(attack.epsilon(delta) for attack in self.attacks)
