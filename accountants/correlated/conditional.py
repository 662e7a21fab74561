r"""What does one round add, given all rounds before? Conditional composition, a certified bound.

Given the outputs x of rounds before t, the record's earlier participations y_j have some posterior
law, and round t releases N(sum_j C_tj y_j, sigma^2) against N(0, sigma^2). For C >= 0 the terms
that couple participations only lower their odds, so that, whatever the others are,

    logit P(y_j = 1 | x, others) <= logit r + u_j - e_j / 2,   u_j = <c, x> / sigma^2,

with c the part of column j in rounds before t and e_j = ||c||^2 / sigma^2. Where no field u_j
exceeds its quantile q_j, the posterior is so dominated by independent Bernoulli variables of
probability p_j = sigmoid(logit r + q_j - e_j / 2), and round t by the mixture of Gaussians with
means sum_j C_tj Bernoulli(p_j): tests of such a pair are half-lines, and a larger mean only makes
them better. The mechanism then costs the composition of these mixtures, and the probability that
any field exceeds its quantile is part of delta (Choquette-Choo, Ganesh, Steinke and Thakurta 2024,
Privacy amplification for matrix mechanisms: MMCC; quantiles, rounding and blocks are our own).

>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.matrix import SquareRoot
>>> mechanism = Mechanism.of(SquareRoot(50), noise_multiplier=15.0)
>>> conditional_epsilon(mechanism, 0.05, 1e-5) < 1.0
True
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dpcal.accountants import epsilon as event_epsilon
from dpcal.accountants import events
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.errors import TargetUnreachable, UnsupportedEvent

__all__ = ["conditional_epsilon", "covers"]

Floats = NDArray[np.float64]

# Part of delta for fields beyond their quantiles.
_PART = 0.1
# Rounds are priced as the last one of their block.
_BLOCKS = 3
# Terms of a mean are rounded up on a fine grid, and their sums once more on a coarse one.
_FINE = 64
_COARSE = 64


def covers(mechanism: Mechanism, rate: float) -> bool:
    """Whether the bound applies: C Toeplitz with entries >= 0, and Poisson batches of some rate."""
    C, T = mechanism.matrix, mechanism.steps
    return 0 < rate < 1 and all(np.array_equal(C[t:, t], C[: T - t, 0]) for t in range(T))


def conditional_epsilon(mechanism: Mechanism, rate: float, delta: float) -> float:
    """Return an epsilon of adding or removing a record; infinite if the bound proves none.

    Parameters
    ----------
    mechanism
        With a Toeplitz matrix C >= 0.
    rate
        Poisson sampling probability in (0, 1).
    delta
        Number in (0, 1).
    """
    tail = _PART * delta
    chances = posterior_chances(mechanism, rate, 0.9 * tail)
    T = mechanism.steps
    ends = np.unique(np.ceil(np.linspace(0, T, min(_BLOCKS, T) + 1)).astype(int))
    parts: list[events.DpEvent] = []
    for first, last in itertools.pairwise(ends):
        means, weights = _mixture(mechanism.matrix[:last, 0], chances[:last], 0.1 * tail / T)
        mixture = events.MixtureOfGaussiansDpEvent(mechanism.sigma, means, weights)
        parts.append(events.SelfComposedDpEvent(mixture, int(last - first)))
    try:
        return float(event_epsilon(events.ComposedDpEvent(parts), delta=delta - tail))
    except (TargetUnreachable, UnsupportedEvent):
        return math.inf


def posterior_chances(mechanism: Mechanism, rate: float, tail: float) -> Floats:
    """Bounds on posterior probabilities of participations by how many rounds ago, from 0.

    All hold in all rounds at once but with probability ``tail``, under both laws.
    """
    T, C = mechanism.steps, mechanism.matrix
    chances = np.full(T, rate)
    if T == 1:
        return chances
    # Overlaps of what columns k and l rounds old have contributed, k, l = 1, ..., T - 1.
    overlaps = C[: T - 1, : T - 1] @ C[: T - 1, : T - 1].T / mechanism.variance
    energies = np.diagonal(overlaps).copy()
    log_pairs = math.log(T * (T - 1) / 2 / tail)
    # Chernoff: the field is a sum of overlaps with random participations, and noise.
    tilt = math.sqrt(2 * log_pairs)
    best = np.full(T - 1, math.inf)
    for scale in np.geomspace(0.25, 1.2, 6):
        at = scale * tilt / np.sqrt(energies)
        exponents = at[:, None] * overlaps
        means = np.log1p(rate * np.expm1(np.minimum(exponents, 700.0))).sum(axis=1)
        quantile = (log_pairs + 0.5 * at * at * energies + means) / at
        best = np.minimum(best, np.where(exponents.max(axis=1) < 700.0, quantile, math.inf))
    chances[1:] = expit(logit(rate) + best - 0.5 * energies)
    return np.asarray(np.minimum(chances * (1 + 1e-9), 1.0))


def _mixture(
    column: Floats, chances: Floats, tail: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Means, rounded up, and weights of ``sum_k column[k] Bernoulli(chances[k])``.

    Means beyond the grid have probability at most ``tail``, and count as the largest of all.
    """
    top = _reach(column, chances, tail)
    cells = _FINE * _COARSE
    law = np.zeros(cells + 2)
    law[0] = 1.0
    for step, chance in zip(np.ceil(column / top * cells * (1 - 1e-12)), chances, strict=True):
        ahead = min(int(step), cells + 1)
        if ahead == 0:
            continue
        moved = np.zeros_like(law)
        moved[ahead:] = law[: law.size - ahead]
        moved[-1] += law[law.size - ahead :].sum()
        law = (1 - chance) * law + chance * moved
    groups = law[1 : cells + 1].reshape(_COARSE, _FINE).sum(axis=1)
    means = np.arange(_COARSE + 1) * (top / _COARSE) * (1 + 1e-12)
    beyond = max(float(column.sum()), float(means[-1]))
    kept = [(float(mean), weight) for mean, weight in zip(means, (law[0], *groups), strict=True)]
    kept = [(mean, float(weight)) for mean, weight in (*kept, (beyond, law[-1])) if weight > 0]
    total = math.fsum(weight for _, weight in kept)
    return tuple(mean for mean, _ in kept), tuple(weight / total for _, weight in kept)


def _reach(column: Floats, chances: Floats, tail: float) -> float:
    """A mean that is exceeded with probability at most ``tail``, by Chernoff's bound."""
    tilts = np.geomspace(0.1, 100.0, 40) / float(column.max())
    logs = np.log1p(chances * np.expm1(np.minimum(tilts[:, None] * column, 700.0))).sum(axis=1)
    return min(float(((logs - math.log(tail)) / tilts).min()), float(column.sum()))
