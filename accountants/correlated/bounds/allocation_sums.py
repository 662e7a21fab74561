r"""What do several random rounds an epoch cost at least? The law of a sum of the outputs.

A record takes part in a uniform subset of k of the t rounds of an epoch, with independent noise.
Whoever sees an epoch's outputs N_1, ..., N_t, in units of sigma, can form Z = g(N_1) + ... + g(N_t)
modulo M, where g has whole values.

*Lower end.* Without the record all N_i are standard normal, and Z has the t-fold convolution of the
law of g(N). With the record, whatever the subset is, k of the terms are those of g(N + mu): Z has
the convolution of t - k laws of g(N) and k laws of g(N + mu). That is the same for all subsets, and
so it is for the mixture over them. Forming Z is post-processing, which no divergence survives
increased; so is grouping the values of Z, and adding group numbers over epochs. What is found is
therefore a lower bound on delta, in both directions, for every g and M: nothing is approximated but
sums of floating-point numbers, whose rounding is bounded. Groups have edges of an even grid of
losses, so that epochs are plain convolutions; masses that are cut off are left out, as both
functions whose means are taken are >= 0.

Here g is log(1 - k/t + (k/t) X) on a grid, X = exp(mu N - mu^2 / 2): the loss of a round that a
record joins independently with probability k / t. For k = t it is the sum of the N_i, which is
sufficient, and for k << t it is nearly the mean of the X, of which L is made for k = 1.

>>> below = SubsetBelow(norm=1.0, rounds=4, taken=4, epochs=1)
>>> 0.3827 < below.directions(1.0)[0] < 0.5100  # a Gaussian mechanism with mu = 2
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import logsumexp, ndtr

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
# Steps of the grid of losses on each side: larger losses of an epoch count as the last step.
_GROUPS = 8000
# Groups for each standard deviation of the loss of an epoch.
_PER_DEVIATION = 40.0
# Relative rounding of the laws of Z. The error is below 1e-11 for each of up to 60 convolutions of
# 8192 values and for the masses of a cell, and t times as large for a t-th power.
_ROUNDING = 1e-8
# Masses below this are left out in the law with the record, and raised to it without.
_SMALLEST = 1e-290
# Relative margin for the rounding of sums over groups, outward.
_MARGIN = 1e-9
# Error of a Fourier convolution for each factor, in units of the largest sum, which is 1: a few
# roundings for each of up to 30 halvings of its length.
_FOURIER = 2e-14
# Groups whose tilted scale has a logarithm of a larger size than this have negligible weight.
_SCALE = 600.0
# Distances of the tilts that are tried from 0 and 1, between which no side is bounded. Every tilt
# gives a valid bound; a coarser choice rounds more.
_DISTANCES = np.geomspace(0.05, 200.0, 60)


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
    without = np.bincount(places, _chances(edges), _VALUES)
    within = np.bincount(places, _chances(edges - norm), _VALUES)
    return without.astype(np.float64), within.astype(np.float64)


def _chances(edges: Floats) -> Floats:
    """Return the probabilities of the intervals between edges, from the smaller tail."""
    return np.where(edges[:-1] > 0, -np.diff(ndtr(-edges)), np.diff(ndtr(edges)))


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
    total = None
    while True:
        if times & 1:
            total = one if total is None else _folded(total, one)
        times >>= 1
        if not times:
            break
        one = _folded(one, one)
    assert total is not None
    return total


@lru_cache(maxsize=4)
def _of_an_epoch(norm: float, rounds: int, taken: int) -> tuple[Floats, Floats, float]:
    """Logarithms of the masses of groups of Z, without and with the record, and their step."""
    one, joined = _of_a_round(norm, taken / rounds, rounds)
    without, within = _power(one, taken), _power(joined, taken)
    if taken < rounds:
        others = _power(one, rounds - taken)
        without, within = _folded(without, others), _folded(within, others)
    kept = within > _SMALLEST
    without, within = np.maximum(without[kept], _SMALLEST), within[kept]
    loss = np.log(within / without)
    deviation = math.sqrt(float(without @ loss**2) / float(without.sum()))
    step = max(deviation, 1e-12) / _PER_DEVIATION
    group = np.clip(np.floor(loss / step), -_GROUPS, _GROUPS).astype(int) + _GROUPS
    with np.errstate(divide="ignore"):
        masses = np.log(np.bincount(group, without, 2 * _GROUPS + 1))
        means = np.log(np.bincount(group, within, 2 * _GROUPS + 1))
    return masses, means, step


@dataclass(frozen=True, eq=False)
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

    @property
    def law(self) -> tuple[Floats, Floats, Floats, float]:
        """Edges of groups of losses, logarithms of masses without and with, and the step."""
        masses, means, step = _of_an_epoch(self.norm, self.rounds, self.taken)
        return np.asarray(np.arange(-_GROUPS, _GROUPS + 1) * step), masses, means, step

    @cached_property
    def _moments(self) -> list[tuple[Floats, Floats]]:
        """Tilts a above 1, and tilts below 0, with the logarithms of E_Q exp(a loss)."""
        edges, masses, _, _ = self.law
        return [
            (tilts, np.asarray(logsumexp(masses + tilts[:, None] * edges, axis=1)))
            for tilts in (1 + _DISTANCES, -_DISTANCES)
        ]

    def directions(self, epsilon: float) -> tuple[float, float]:
        """Return lower bounds on delta of removing and of adding a record at an epsilon >= 0."""
        level = epsilon / self.epochs
        # Each tilt has the smallest exponential bound on the law at its level.
        rising, falling = (
            float(tilts[np.argmin(logs - tilts * at)])
            for (tilts, logs), at in zip(self._moments, (level, -level), strict=True)
        )
        above, below = _composed(self, rising, 1)
        remove = _total(below - math.exp(epsilon) * above)
        below, above = _composed(self, falling, -1)
        return remove, _total(below - math.exp(epsilon) * above)


@lru_cache(maxsize=8)
def _composed(subset: SubsetBelow, tilt: float, outward: int) -> tuple[Floats, Floats]:
    """Return masses without and with the record over all epochs, where their scale is at hand.

    Both are tilted by the same power of the edges, so that neither loses its small values.
    ``outward`` is 1 for masses from above and means from below, and -1 for the reverse. Nearby
    epsilons share a tilt.
    """
    edges, masses, means, step = subset.law
    k = subset.epochs
    error = _FOURIER * k if k > 1 else 0.0
    weights, total = _of_epochs(masses, tilt * edges, k)
    values, mean_total = _of_epochs(means, (tilt - 1) * edges, k)
    places = k * edges[0] + np.arange(len(weights)) * step
    scale, mean_scale = total - tilt * places, mean_total - (tilt - 1) * places
    near = (np.abs(scale) < _SCALE) & (np.abs(mean_scale) < _SCALE)
    margin = _ROUNDING * k
    weights = weights * (1 + outward * margin) + outward * error
    values = values * (1 - outward * margin) - outward * error
    found = weights[near] * np.exp(scale[near])
    return np.asarray(found), np.asarray(values[near] * np.exp(mean_scale[near]))


def _of_epochs(log_masses: Floats, exponents: Floats, epochs: int) -> tuple[Floats, float]:
    """Return tilted masses of a sum of independent numbers, and the logarithm of their total.

    Masses of one number are exp(log_masses + exponents), divided by their total.
    """
    tilted = log_masses + exponents
    total = float(logsumexp(tilted))
    weights: Floats = np.exp(tilted - total)
    size = epochs * (len(tilted) - 1) + 1
    if epochs > 1:
        length = next_fast_len(size, real=True)
        weights = irfft(rfft(weights, length) ** epochs, length)[:size]
    return weights, epochs * total


def _total(values: Floats) -> float:
    """Return the sum of the values above 0, rounded down."""
    return float(values[values > 0].sum()) * (1 - _MARGIN)
