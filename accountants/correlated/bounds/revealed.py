"""What is lost at most if all participations are published? A bound for any sampler.

If the pattern of participations is known, the run is a Gaussian mechanism, and only the law of ||C
y|| counts. The bound holds in both directions, and needs no secret batches.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(100, 0.5), noise_multiplier=4.0)
>>> bound = revealed(mechanism, Poisson(0.01))
>>> found = bound.epsilon(1e-5)
>>> bool(abs(bound.delta(found.value) / 1e-5 - 1) < 1e-6)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from dpcal.accountants.correlated.bounds.base import Bound, Worst
from dpcal.accountants.correlated.mechanism import Mechanism, Shape
from dpcal.accountants.matrix.participation import (
    FixedEpochs,
    LeastSeparation,
    Participation,
)
from dpcal.accountants.matrix.sensitivity import of_toeplitz
from dpcal.accountants.samplers import BallsInBins, CyclicPoisson, Sampler

__all__ = ["Revealed", "gaussian_delta", "largest_norm", "revealed"]

Floats = NDArray[np.float64]

# Relative margin, outward: far above the rounding of the sums below, which is near 1e-13.
_MARGIN = 1e-9
# Standard deviations above their mean from which numbers of participations are taken for the
# largest one: their probability is far below any delta.
_DEVIATIONS = 40.0


def gaussian_delta(epsilon: float, mu: Floats) -> Floats:
    """Return deltas of Gaussian mechanisms with sensitivity mu >= 0 over sigma, rounded up."""
    safe = np.where(mu > 0, mu, 1.0)
    high = ndtr(safe / 2 - epsilon / safe)
    low = np.exp(np.minimum(epsilon + log_ndtr(-safe / 2 - epsilon / safe), 0.0))
    up = np.maximum(high - low, 0.0) + _MARGIN * 1e-3 * high
    return np.where(mu > 0, np.minimum(up, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class Revealed(Bound):
    """The bound with participations known: the mean of Gaussian deltas over a record's patterns.

    Parameters
    ----------
    weights
        Probabilities of numbers of participations, of shape (numbers,).
    norms
        Bounds on ||C y|| / sigma for these numbers: that of the worst pattern of each.

    Notes
    -----
    Joint convexity of the hockey-stick divergence over patterns.
    """

    weights: Floats
    norms: Floats

    method: ClassVar[str] = "participations revealed"

    def delta(self, epsilon: float) -> float:
        """Return the bound at an epsilon >= 0."""
        found = float(self.weights @ gaussian_delta(epsilon, self.norms))
        return min(1.0, found * (1 + _MARGIN))

    def log_mgf(self, c: float, direction: str) -> float:
        """Return the log of the mean of Gaussian moments, the same in both directions."""
        with np.errstate(divide="ignore"):
            found = float(logsumexp(np.log(self.weights) + 0.5 * (c * c + c) * self.norms**2))
        return max(found, 0.0) * (1 + _MARGIN) + _MARGIN


def revealed(mechanism: Mechanism, sampler: Sampler) -> Bound:
    """Return the bound with participations known, no worse than with the worst of all patterns.

    Parameters
    ----------
    mechanism, sampler
        A strategy of any kind, and any sampler: only the law of a record's number of participations
        counts, and the least distance of two.
    """
    laws = _unit_laws(mechanism.shape, sampler)
    parts = tuple(Revealed(weights, norms / mechanism.sigma) for weights, norms in laws)
    return parts[0] if len(parts) == 1 else Worst(parts)


@lru_cache(maxsize=8)
def _unit_laws(shape: Shape, sampler: Sampler) -> list[tuple[Floats, Floats]]:
    """Return probabilities of numbers of participations, and norms, of each group of records."""
    from scipy.stats import binom

    T, most, groups = shape.steps, largest_norm(shape, sampler), sampler.groups(shape.steps)
    separation = _worst_case(sampler, T)[1]
    if sampler.epochs(T) is not None:
        # The number of participations is known.
        return [(np.ones(1), np.array([most * (1 + _MARGIN)]))]
    law = sampler.participation_law(T)
    rate, rounds = float(np.exp(law.join.max())), int(np.isfinite(law.join).any(axis=1).sum())
    possible = min(rounds, -(-T // separation))
    usual = rate * rounds + _DEVIATIONS * (math.sqrt(rate * rounds) + 1)
    largest = min(possible, math.ceil(usual))
    if law.independent:
        weights = binom.pmf(np.arange(largest + 1), rounds, rate)
    else:
        weights = np.exp(law.counts(largest))
    beyond = binom.sf(largest, rounds, rate) if largest < possible else 0.0
    # The first group has most rounds. If C is Toeplitz, it is the worst one: later ones see its
    # sequence, truncated.
    known = groups is not None and not groups.secret and shape.column is None
    each = groups.rounds if groups is not None and known else (slice(None),)
    norms = (_norms(shape, rows, separation, largest, most) for rows in each)
    return [(np.append(weights, beyond), of_group) for of_group in norms]


def _norms(shape: Shape, rows: slice, separation: int, largest: int, most: float) -> Floats:
    """Return bounds on ||C y|| for 0, 1, ..., ``largest`` participations in rows, and for more.

    For C Toeplitz with non-increasing columns the earliest participations attain the bound
    (Kalinin and Lampert 2024). Otherwise it is from the k largest sums of the k largest entries of
    the rows of C^T C. No norm exceeds ``most``, that of the worst pattern of all.
    """
    column, counts = shape.column, range(1, largest + 1)
    if column is not None and (np.diff(column) <= 0).all():
        schemas = (LeastSeparation(separation, k) for k in counts)
        norms = [of_toeplitz(column, shape.bands, each).value for each in schemas]
    else:
        gram = shape.gram[rows, rows]
        sums = np.cumsum(-np.sort(-gram, axis=1), axis=1)
        columns = (sums[:, min(k, len(gram)) - 1] for k in counts)
        norms = [math.sqrt(np.sort(each)[::-1][:k].sum()) for k, each in enumerate(columns, 1)]
    return np.concatenate([[0.0], np.minimum(norms, most), [most]]) * (1 + _MARGIN)


def _worst_case(sampler: Sampler, steps: int) -> tuple[Participation, int]:
    """Return the patterns that a sampler may draw, and the least distance of participations."""
    if isinstance(sampler, CyclicPoisson | BallsInBins):
        period = sampler.bands if isinstance(sampler, CyclicPoisson) else sampler.bins
        return FixedEpochs(-(-steps // period), period), period
    epochs = sampler.epochs(steps)
    times = None if epochs is None else epochs.times * epochs.drawn
    return LeastSeparation(sampler.least_separation, times), sampler.least_separation


@lru_cache(maxsize=8)
def largest_norm(shape: Shape, sampler: Sampler) -> float:
    """Return a bound on ||C y|| over all patterns that a sampler may draw."""
    found = shape.strategy.sensitivity(_worst_case(sampler, shape.steps)[0]).value
    epochs = sampler.epochs(shape.steps)
    if epochs is not None and epochs.times == 1 and epochs.drawn > 1 and shape.column is not None:
        # Rounds of epochs that are s apart are more than s - 1 epochs apart.
        E, products = epochs.drawn, Mechanism(shape, 1.0).overlaps
        square = E * float(products[0])
        square += 2 * sum(
            (E - s) * float(products[(s - 1) * epochs.rounds + 1]) for s in range(1, E)
        )
        found = min(found, math.sqrt(square))
    return found
