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
>>> Conditional(mechanism, 0.05).epsilon(1e-5).value < 1.0
True
"""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dpcal.accountants import events
from dpcal.accountants.correlated.bounds.base import Bound, Proof, largest_exponent
from dpcal.accountants.correlated.bounds.reductions import Reduction, composed
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.errors import TargetUnreachable, UnsupportedEvent

__all__ = ["Conditional", "posterior_chances"]

Floats = NDArray[np.float64]

# Each round is priced as the last one of its block; more blocks are tighter, and each takes a
# mixture.
_BLOCKS = 3
# Cells of the fine grid on which the terms of a mean are rounded up.
_FINE = 64
# Cells of the coarse grid on which sums of terms are rounded up again. They are the components of
# the mixture that is composed, so that more cells take more time.
_COARSE = 64
# Exponent of the smallest tail; no delta below 1e-150 is sought.
_SMALLEST = 300


@dataclass(frozen=True, eq=False)
class Conditional(Bound):
    """Bounds on adding or removing a record by conditional composition.

    Parameters
    ----------
    mechanism
        With a Toeplitz matrix C >= 0.
    rate
        Poisson sampling probability in (0, 1).
    """

    mechanism: Mechanism
    rate: float
    method: ClassVar[str] = "conditional composition"

    @cached_property
    def _reductions(self) -> dict[int, Reduction]:
        return {}

    def _reduction(self, k: int) -> Reduction:
        """Return the composition that dominates except with probability 10^(-k / 2)."""
        if k not in self._reductions:
            tail, T, column = _tail(k), self.mechanism.steps, self.mechanism.column
            if column is None:
                raise ValueError("mechanism must have a Toeplitz matrix.")
            chances = posterior_chances(self.mechanism, self.rate, 0.9 * tail)
            ends = np.unique(np.ceil(np.linspace(0, T, min(_BLOCKS, T) + 1)).astype(int))
            parts: list[tuple[events.DpEvent, int]] = []
            for first, last in itertools.pairwise(ends):
                means, weights = _mixture(column[:last], chances[:last], 0.1 * tail / T)
                mixture = events.MixtureOfGaussiansDpEvent(self.mechanism.sigma, means, weights)
                parts.append((mixture, int(last - first)))
            self._reductions[k] = Reduction(((1.0, composed(parts)),), self.method, tail=tail)
        return self._reductions[k]

    def _log_delta(self, k: int, epsilon: float) -> float:
        """Return the bound for one tail, 0 if none is proved."""
        try:
            return self._reduction(k).log_delta(epsilon).value
        except (TargetUnreachable, UnsupportedEvent):
            return 0.0

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        # A smaller tail gives a composition with a larger delta: where both are about equal, their
        # sum is within a factor of two of the least.
        low = largest_exponent(
            lambda k: self._log_delta(k, epsilon) <= math.log(2 * _tail(k)), _SMALLEST
        )
        return Proof(min(self._log_delta(k, epsilon) for k in range(low, low + 3)), self.method)

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1); infinite if none is proved."""
        first = math.floor(-2 * math.log10(delta)) + 1
        best = math.inf
        for k in range(max(1, first), first + 3):
            if _tail(k) >= 0.95 * delta:
                continue
            with suppress(TargetUnreachable, UnsupportedEvent):
                best = min(best, self._reduction(k).epsilon(delta).value)
        return Proof(best, self.method)


def _tail(k: int) -> float:
    """Return the probability of fields beyond their quantiles: a power of 10^(1/2)."""
    return float(10.0 ** (-k / 2))


def posterior_chances(mechanism: Mechanism, rate: float, tail: float) -> Floats:
    """Return bounds on posterior probabilities of participations, by rounds passed since, from 0.

    All of them hold in all rounds at once, except with probability ``tail``, under both laws.
    """
    T, C = mechanism.steps, mechanism.matrix
    chances = np.full(T, rate)
    if T == 1:
        return chances
    # Entry (k, l) is the overlap of the contributions of columns that are k and l rounds old.
    overlaps = C[: T - 1, : T - 1] @ C[: T - 1, : T - 1].T / mechanism.variance
    energies = np.diagonal(overlaps).copy()
    log_pairs = math.log(T * (T - 1) / 2 / tail)
    # The quantile is Chernoff's bound on the field: a sum of overlaps, with random participations,
    # and noise.
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
    """Return means, rounded up, and weights of ``sum_k column[k] Bernoulli(chances[k])``.

    Means beyond the grid have probability at most ``tail``, and count as the largest mean of all.
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
    """Return a mean that is exceeded with probability at most ``tail``, by Chernoff's bound."""
    tilts = np.geomspace(0.1, 100.0, 40) / float(column.max())
    logs = np.log1p(chances * np.expm1(np.minimum(tilts[:, None] * column, 700.0))).sum(axis=1)
    return min(float(((logs - math.log(tail)) / tilts).min()), float(column.sum()))
