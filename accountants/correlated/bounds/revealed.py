"""What is lost at most if all participations are published? A bound for any sampler.

If the pattern of participations is known, the run is a Gaussian mechanism, and only the law of ||C
y|| counts. The bound holds in both directions, and needs no secret batches.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(100, 0.5), noise_multiplier=4.0)
>>> bound = Revealed.of(mechanism, Poisson(0.01).automaton(100))
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

from dpcal.accountants.correlated.bounds.base import Bound
from dpcal.accountants.correlated.mechanism import Mechanism, Shape
from dpcal.accountants.participations import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = ["Revealed", "gaussian_delta", "worst_norms"]

Floats = NDArray[np.float64]

# Relative margin, outward: far above the rounding of the sums below, which is near 1e-13.
_MARGIN = 1e-9
# Above this number of steps, numbers of participations are rounded: all of them take steps^2 time.
_LONG = 16_384


def gaussian_delta(epsilon: float, mu: Floats) -> Floats:
    """Return deltas of Gaussian mechanisms with sensitivity mu >= 0 over sigma, rounded up."""
    safe = np.where(mu > 0, mu, 1.0)
    high = ndtr(safe / 2 - epsilon / safe)
    low = np.exp(np.minimum(epsilon + log_ndtr(-safe / 2 - epsilon / safe), 0.0))
    up = np.maximum(high - low, 0.0) + _MARGIN * 1e-3 * high
    return np.where(mu > 0, np.minimum(up, 1.0), 0.0)


def worst_norms(mechanism: Mechanism, separation: int = 1, most: float = math.inf) -> Floats:
    """Return bounds on ||C y|| / sigma over patterns of 0, 1, ..., steps participations.

    For C Toeplitz with non-increasing columns the earliest participations attain the bound
    (Kalinin and Lampert 2024). Otherwise it is from the k largest sums of the k largest entries of
    the rows of C^T C. No norm exceeds ``most``, that of the worst pattern of all.
    """
    column = mechanism.column
    if column is not None and (np.diff(column) <= 0).all():
        norms = _of_earliest(column, np.arange(1, mechanism.steps + 1), separation)
    else:
        norms = _row_norms(mechanism.gram) * mechanism.sigma
    norms = np.minimum(norms, most) / mechanism.sigma
    return np.asarray(np.concatenate([[0.0], norms]) * (1 + _MARGIN))


def _of_earliest(column: Floats, counts: NDArray[np.intp], separation: int = 1) -> Floats:
    """Return norms ||C y|| of k participations from the first round on, for each k; Toeplitz C."""
    # Row t of C applied to k participations is a sum over their distances of the column from
    # t - (k - 1) separation to t.
    T = len(column)
    padded = np.concatenate([column, np.zeros(-T % separation)])
    sums = np.cumsum(padded.reshape(-1, separation), axis=0).ravel()[:T]
    norms = np.empty(len(counts))
    for place, k in enumerate(counts):
        ahead = min(int(k) * separation, T)
        rows = sums - np.concatenate([np.zeros(ahead), sums[: T - ahead]])
        norms[place] = math.sqrt(float(rows @ rows))
    return norms


def _row_norms(gram: Floats) -> Floats:
    """Return bounds on the norms of sums of 1, 2, ... columns, from their Gram matrix >= 0."""
    rows = np.cumsum(-np.sort(-gram, axis=1), axis=1)
    return np.sqrt([np.sort(rows[:, k])[::-1][: k + 1].sum() for k in range(len(gram))])


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

    @classmethod
    def of(
        cls, mechanism: Mechanism, law: Automaton, separation: int = 1, most: float = math.inf
    ) -> Revealed:
        """Return the bound for a law of participations.

        Parameters
        ----------
        mechanism, law
            A strategy of any kind, and the law.
        separation
            Least distance of two participations.
        most
            A bound on ||C y|| over all patterns: the sensitivity of the worst case.
        """
        weights, norms = _unit_law(mechanism.shape, law, separation, most)
        return cls(weights, norms / mechanism.sigma * (1 + _MARGIN))

    @classmethod
    def of_group(cls, gram: Floats, rate: float, most: float) -> Revealed:
        """Return the bound for a record that may join some rounds only, each independently.

        Parameters
        ----------
        gram
            C^T C / sigma^2 >= 0 of these rounds.
        rate
            Probability in (0, 1] of joining one of them.
        most
            A bound on ||C y|| / sigma over all patterns.
        """
        from scipy.stats import binom

        weights = binom.pmf(np.arange(len(gram) + 1), len(gram), rate)
        norms = np.minimum(_row_norms(gram), most) * (1 + _MARGIN)
        return cls(weights, np.concatenate([[0.0], norms]))

    def delta(self, epsilon: float) -> float:
        """Return the bound at an epsilon >= 0."""
        found = float(self.weights @ gaussian_delta(epsilon, self.norms))
        return min(1.0, found * (1 + _MARGIN))

    def log_mgf(self, c: float, direction: str) -> float:
        """Return the log of the mean of Gaussian moments, the same in both directions."""
        with np.errstate(divide="ignore"):
            found = float(logsumexp(np.log(self.weights) + 0.5 * (c * c + c) * self.norms**2))
        return max(found, 0.0) * (1 + _MARGIN) + _MARGIN


@lru_cache(maxsize=8)
def _unit_law(shape: Shape, law: Automaton, separation: int, most: float) -> tuple[Floats, Floats]:
    """Return probabilities and bounds on ||C y||, the same for every noise multiplier."""
    unit = Mechanism(shape, 1.0)
    if shape.steps > _LONG:
        return _rounded_counts(unit, law)
    return np.exp(law.counts()), worst_norms(unit, separation, most)


def _rounded_counts(unit: Mechanism, law: Automaton) -> tuple[Floats, Floats]:
    """Return probabilities of few numbers of participations, and bounds on ||C y||."""
    from scipy.stats import binom

    rate, T = float(law.rates.max()), law.rounds
    if not law.independent or unit.column is None or (np.diff(unit.column) > 0).any():
        raise UnsupportedEvent(
            f"Runs of more than {_LONG} steps are priced for independent participations and "
            f"Toeplitz strategies whose columns do not increase, got {T} steps."
        )
    mean, spread = rate * T, math.sqrt(rate * T) + 1.0
    counts = np.unique(np.clip(np.ceil(mean + spread * np.linspace(-9, 40, 400)), 0, T))
    counts = np.append(counts[counts < T], T)
    # A record with more participations loses more privacy, so that the number is rounded up.
    below = np.concatenate([[0.0], binom.cdf(counts, T, rate)])
    above = np.concatenate([[1.0], binom.sf(counts, T, rate)])
    weights = np.where(below[:-1] < 0.5, np.diff(below), -np.diff(above)) * (1 + _MARGIN)
    return weights, _of_earliest(unit.column, counts.astype(int)) * (1 + _MARGIN)
