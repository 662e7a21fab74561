"""What is lost at most if all participations are published? A bound for any sampler.

If the pattern of participations is known, the run is a Gaussian mechanism, and only the law of ||C
y|| counts. The bound holds in both directions, and needs no secret batches.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(100, 0.5), noise_multiplier=4.0)
>>> bound = Revealed(mechanism, Poisson(0.01).automaton(100))
>>> found = bound.epsilon(1e-5)
>>> bool(abs(bound.delta(found.value) / 1e-5 - 1) < 1e-6)
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from dpcal._ext import tilted as kernels
from dpcal.accountants.correlated.bounds.base import Curve, Moments, mixed_moments
from dpcal.accountants.correlated.mechanism import Mechanism, Shape
from dpcal.accountants.participations import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = ["Revealed", "RevealedGroup", "gaussian_delta", "norms_law", "worst_norms"]

Floats = NDArray[np.float64]

# Relative margin, outward: far above the rounding of the sums below, which is near 1e-13.
_MARGIN = 1e-9
# Probability of the patterns of largest norms that count as the worst pattern of all. A larger
# value raises the least delta of this bound; a smaller one makes grids of norms longer.
_UNLIKELY = 1e-14
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


# Cells of a first law of ||C y||^2. Every participation is rounded up to a cell.
_FEW_CELLS = 256
# Cells of the final law of ||C y||^2, for the bound that is returned.
_MANY_CELLS = 2048
# Largest product of nodes, rounds and cells: about two seconds. A long memory gets fewer cells, or
# only the worst pattern of each number of participations.
_MOST_WORK = 5e8
# Most entries of a table of nodes and cells, of which there are two: 64 MB each.
_LARGEST_TABLE = 2**23


class _Known(Curve):
    """A mean of Gaussian deltas over numbers of participations, each with its largest norm."""

    @property
    @abstractmethod
    def _laws(self) -> list[tuple[Floats, Floats]]:
        """Return probabilities and bounds on ||C y|| / sigma of laws that each prove a bound."""

    def delta(self, epsilon: float) -> float:
        """Return the bound at an epsilon >= 0."""
        return min(
            min(1.0, float(weights @ gaussian_delta(epsilon, norms)) * (1 + _MARGIN))
            for weights, norms in self._laws
        )

    def moments(self, c: float, direction: str) -> Moments:
        """Return the log of the mean of Gaussian moments, the same in both directions."""
        found = []
        for weights, norms in self._laws:
            v = norms * norms
            rows = np.stack([0.5 * v * (c * c + c), v * (c + 0.5), v], axis=1)
            found.append(mixed_moments(weights, rows))
        return min(found)


@dataclass(frozen=True, eq=False)
class RevealedGroup(_Known):
    """The bound with participations known, for a record that may join some rounds only.

    Parameters
    ----------
    gram
        C^T C / sigma^2 >= 0 of the rounds that the record may join, each independently.
    rate
        Probability in (0, 1] of joining one of them.
    most
        A bound on ||C y|| / sigma over all patterns.

    Notes
    -----
    Joint convexity of the hockey-stick divergence over patterns; for each number of participations
    the largest norm ||C y|| of its rounds is used.
    """

    gram: Floats
    rate: float
    most: float

    method: ClassVar[str] = "participations revealed, worst group"

    @cached_property
    def _laws(self) -> list[tuple[Floats, Floats]]:
        from scipy.stats import binom

        count = len(self.gram)
        weights = binom.pmf(np.arange(count + 1), count, self.rate)
        norms = np.minimum(_row_norms(self.gram), self.most) * (1 + _MARGIN)
        return [(weights, np.concatenate([[0.0], norms]))]


@dataclass(frozen=True, eq=False)
class Revealed(_Known):
    """The bound with participations known: the mean of Gaussian deltas over a record's patterns.

    For each number of participations the worst pattern is taken or, for lambda-CGD and independent
    participations, the law of ||C y|| with rounding up, whichever gives a smaller bound.

    Parameters
    ----------
    mechanism
        A strategy of any kind.
    law
        The law of a record's participations.
    separation
        Least distance of two participations.
    most
        A bound on ||C y|| over all patterns: the sensitivity of the worst case.
    """

    mechanism: Mechanism
    law: Automaton
    separation: int = 1
    most: float = math.inf

    method: ClassVar[str] = "participations revealed"

    @cached_property
    def _laws(self) -> list[tuple[Floats, Floats]]:
        sigma = self.mechanism.sigma
        found = _unit_laws(self.mechanism.shape, self.law, self.separation, self.most)
        return [(weights, norms / sigma * (1 + _MARGIN)) for weights, norms in found]


@lru_cache(maxsize=8)
def _unit_laws(
    shape: Shape, law: Automaton, separation: int, most: float
) -> list[tuple[Floats, Floats]]:
    """Return probabilities and bounds on ||C y||, the same for every noise multiplier."""
    unit = Mechanism(shape, 1.0)
    if shape.steps > _LONG:
        return [_rounded_counts(unit, law)]
    found = [(np.exp(law.counts()), worst_norms(unit, separation, most))]
    if law.independent and unit.walk is not None and unit.walk[0] > 0:
        nodes = len(_powers(unit.walk[0], shape.steps)[1]) + 1
        if _most_cells(nodes, shape.steps) >= _FEW_CELLS:
            found.append(norms_law(unit, law))
    return found


def _most_cells(nodes: int, rounds: int) -> int:
    """Return the number of cells that so many nodes and rounds leave, at most that of a bound."""
    return min(_MANY_CELLS, int(min(_LARGEST_TABLE, _MOST_WORK / rounds) / nodes))


def _powers(decay: float, rounds: int) -> tuple[float, range]:
    """Return the ratio of neighboring states, and its powers: states are these over 1 - decay."""
    ratio = decay ** (1 / max(1, round(math.log(decay) / math.log(0.95))))
    # No state exceeds the number of rounds.
    first = math.floor(math.log(min(1.0, rounds * (1 - decay))) / math.log(ratio))
    return ratio, range(first, math.ceil(math.log((1 - decay) / 100) / math.log(ratio)) + 1)


def _nodes(decay: float, rounds: int) -> Floats:
    """Return states closed under multiplication with decay, of ratios near 0.95, down to 0.01."""
    ratio, powers = _powers(decay, rounds)
    return np.concatenate([[0.0], ratio ** np.array(powers[::-1], float) / (1 - decay)])


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


def norms_law(mechanism: Mechanism, law: Automaton) -> tuple[Floats, Floats]:
    """Return probabilities and values of ||C y|| / sigma, rounded up, for a past of one number.

    Parameters
    ----------
    mechanism
        Lambda-CGD, or a ``BLT`` of one buffer.
    law
        Of independent participations.
    """
    if mechanism.walk is None:
        raise ValueError(f"mechanism must be of one buffer, got kind {mechanism.kind!r}.")
    (decay, _), rates = mechanism.walk, np.exp(law.join[:, 0])
    # A column's product with the earlier columns is at most its own square times this factor and
    # the state.
    overlap = decay
    if mechanism.decay is None:
        overlap = float((mechanism.couplings[:, 0] / mechanism.energies).max())
    s = _nodes(decay, mechanism.steps)

    def rounded(states: Floats) -> NDArray[np.intc]:
        index = np.searchsorted(s, states * (1 - 1e-12), side="left")
        return np.minimum(index, s.size - 1).astype(np.intc)

    worst = float(worst_norms(mechanism)[-1])
    reach, cells = worst * worst, _FEW_CELLS
    while True:
        weights = kernels.energy_law(
            mechanism.energies, rates, s, rounded(decay * s), rounded(decay * s + 1), overlap,
            reach / (cells - 1), cells,
        )  # fmt: skip
        beyond = np.cumsum(weights[::-1])[::-1]
        likely = int(np.searchsorted(-beyond, -_UNLIKELY)) + 1
        if cells > _FEW_CELLS or likely <= 2:
            break
        if likely >= cells // 2:
            cells = _most_cells(s.size, mechanism.steps)
            if cells == _FEW_CELLS:
                break
            continue
        reach *= likely / cells
    norms = np.sqrt(np.arange(cells + 1) * (reach / (cells - 1)))
    norms[-1] = worst
    return weights * (1 + _MARGIN), norms * (1 + _MARGIN)
