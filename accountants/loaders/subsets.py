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

from dpcal.accountants.loaders.attacks import Attack, Floats, composed, scored
from dpcal.accountants.rounding import UNIT

# The number M of values of Z. The time of the sums grows with it.
_VALUES = 2**13
# Relative rounding of the laws of Z: 60 convolutions and a cell's masses, 1e-11 each.
_ROUNDING = 1e-8
# Rounding of a running sum of so many masses of total 1.
_ERROR = _VALUES * UNIT


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
        norm, rate = self.norm, self.taken / self.rounds
        stays = math.log1p(-rate) if rate < 1 else -math.inf

        def loss(n: Floats) -> Floats:
            return np.logaddexp(stays, math.log(rate) + norm * n - 0.5 * norm * norm)

        one, joined = scored(loss, (0.0, norm), self.rounds, _VALUES)
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
