"""What do Renyi moments prove about removing a record? Lambda-CGD and one buffer, Poisson batches.

Moments of an order above 1 + 2 z^2 (1 - lambda) / (1 + lambda) log(1 / r) grow exponentially in the
number of rounds, driven by records that always take part. They are therefore taken of the mixture
without the patterns whose state exceeds a cap. Their probability is part of delta.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> bound = CappedMoments(Mechanism.of(LambdaCGD(60, 0.5), noise_multiplier=4.0), 0.01)
>>> found = bound.epsilon(1e-5)
>>> found.value < 0.5, abs(bound.log_delta(found.value).value - math.log(1e-5)) < 1e-6
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import tilted as kernels
from dpcal._roots import Sides, Stop, bisect
from dpcal.accountants.correlated.bounds.band_moments import log_binomials
from dpcal.accountants.correlated.bounds.base import (
    Bound,
    Proof,
    largest_exponent,
    least_until_rising,
)
from dpcal.accountants.correlated.mechanism import Mechanism

__all__ = ["CappedMoments", "state_cap"]

Floats = NDArray[np.float64]

# Relative margin, outward: far above the rounding of sums over the rounds, which is near 1e-13.
_MARGIN = 1e-9
# Orders of the moments that are tried. Each of them is a proof; more orders gain less than a
# percent of epsilon, and each takes a recursion over all rounds.
_ORDERS = (2, 3, 4, 6, 8, 11, 16, 24)
# Weights of the second of the two lower bounds on sums of squares; each weight gives a proof.
_SHARED = (0.0, 0.3, 1.0)
# Cells of the grid of states on which an order is chosen. They affect the choice, not the proof.
_COARSE = 1500
# Cells of the grid of states that proves the moment of the order that was chosen.
_FINE = 8000
# Probabilities of the states beyond the cap are 10^(-k / _PER_DECADE) for whole k, so that the
# proofs at an epsilon and at a delta are the same ones. About a tenth of delta is best.
_PER_DECADE = 2
# Rounds between two checks whether probabilities of rounds still grow.
_EVERY = 64
# Largest exponent k of the probability of the states beyond the cap, which is 1e-300 there: about
# the smallest that a double holds.
_SMALLEST = 600
# Halvings of the interval of a cap; any cap proves a bound.
_HALVINGS = 12
# Most times that a delta is computed again with the best moment for it.
_ROUNDS = 6


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
        if n % _EVERY == 0 and (later <= first).all():
            # The map is linear and monotone: no later round is more probable than this one.
            total += float(later[0]) * (rounds - n)
            break
        first = later
    return total * (1 + _MARGIN)


@lru_cache(maxsize=256)
def state_cap(decay: float, rate: float, rounds: int, tail: float) -> float:
    """Return a state that one record's participations exceed with probability at most ``tail``."""
    return bisect(
        lambda cap: _exceedance(decay, rate, rounds, cap, 1000) <= tail,
        Sides(meet=1 / (1 - decay), miss=1.0),
        Stop(evaluations=_HALVINGS),
    ).meet


@dataclass(frozen=True)
class _Key:
    """One moment: the exponent k of the tail, the order, and the weight of shared states."""

    tail: int
    order: int
    shared: float


@dataclass(frozen=True, eq=False)
class CappedMoments(Bound):
    """Bounds on removing a record by Renyi moments with a cap on the state.

    Parameters
    ----------
    mechanism
        A mechanism whose past one number carries: lambda-CGD, or a ``BLT`` of one buffer.
    rate
        Poisson sampling probability in (0, 1).

    Notes
    -----
    The moment of order q of the restricted law is bounded through the sum S of the states of q
    replicas, S' = decay S + N with N from Bin(q, r). The means m_i of the replicas in a round add
    up to M = scale S + N, and over all rounds sum_i m_i^2 is at least M^2 / q, and at least the
    squared norms of the columns of all participations, hence at least any mean of both with weights
    w and 1 - w. States are rounded up on a grid, on which the moment increases.
    """

    mechanism: Mechanism
    rate: float
    _caps: dict[int, float] = field(default_factory=dict, repr=False)
    _moments: dict[tuple[_Key, int], float] = field(default_factory=dict, repr=False)

    method: ClassVar[str] = "Renyi moments with a cap on the state"

    @cached_property
    def _walk(self) -> tuple[float, float]:
        if self.mechanism.walk is None:
            raise ValueError(
                "mechanism must be lambda-CGD or have one buffer that decays, got one of kind "
                f"{self.mechanism.kind!r}."
            )
        return self.mechanism.walk

    def _cap(self, k: int) -> float:
        if k not in self._caps:
            tail = 10.0 ** (-k / _PER_DECADE)
            self._caps[k] = state_cap(self._walk[0], self.rate, self.mechanism.steps, tail)
        return self._caps[k]

    def _moment(self, key: _Key, cells: int) -> float:
        """Return an upper bound on a log-moment, from a grid of this number of cells."""
        if (key, cells) not in self._moments:
            q, mechanism = key.order, self.mechanism
            found = kernels.aggregated_moment(
                log_binomials(q, np.array([self.rate]))[0],
                mechanism.energies,
                *self._walk,
                q * self._cap(key.tail),
                (0.5 - 0.5 * key.shared / q) / mechanism.variance,
                1 - key.shared,
                cells,
            )
            self._moments[key, cells] = found + _MARGIN * (1 + abs(found))
        return self._moments[key, cells]

    def _log_beyond(self, key: _Key, cells: int, epsilon: float) -> float:
        """Return the log of the restricted law's delta by one moment: (L - e^eps)_+ <= c L^q."""
        q = key.order
        chernoff = (q - 1) * math.log(q - 1) - q * math.log(q)
        return self._moment(key, cells) + chernoff - (q - 1) * epsilon

    def _least(
        self, k: int, value: Callable[[_Key], float], start: _Key | None
    ) -> tuple[float, _Key]:
        """Return the least value of one tail's moments, searched from that of another tail."""
        i = len(_ORDERS) // 2 if start is None else _ORDERS.index(start.order)
        j = 0 if start is None else _SHARED.index(start.shared)
        while i > 0 and math.isinf(value(_Key(k, _ORDERS[i], _SHARED[j]))):
            i -= 1
        while True:
            places = [(i, j), (i - 1, j), (i + 1, j), *((i, n) for n in range(len(_SHARED)))]
            near = [
                _Key(k, _ORDERS[m], _SHARED[n])
                for m, n in places
                if 0 <= m < len(_ORDERS) and 0 <= n < len(_SHARED)
            ]
            found = min(near, key=value)
            if found is near[0]:
                return value(found), found
            i, j = _ORDERS.index(found.order), _SHARED.index(found.shared)

    def _log_delta(self, key: _Key, cells: int, epsilon: float) -> float:
        """Return the log of delta by one moment, with the probability of states beyond the cap."""
        beyond = self._log_beyond(key, cells, epsilon)
        return float(np.logaddexp(beyond, -key.tail / _PER_DECADE * math.log(10)))

    def _epsilon(self, key: _Key, cells: int, delta: float) -> float:
        """Return epsilon by one moment; infinity if states beyond the cap alone exceed delta."""
        left = delta - 10.0 ** (-key.tail / _PER_DECADE)
        if left <= 0:
            return math.inf
        return max(0.0, (self._log_beyond(key, cells, 0.0) - math.log(left)) / (key.order - 1))

    def _best(self, first: int, value: Callable[[_Key], float]) -> _Key:
        """Return the moment of least value, over tails from the first on until values grow."""

        def tried() -> Iterator[tuple[float, _Key]]:
            near: _Key | None = None
            for k in range(first, _SMALLEST):
                found, near = self._least(k, value, near)
                yield found, near

        best = least_until_rising(tried())
        return _Key(first, _ORDERS[0], _SHARED[0]) if best is None else best[1]

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        near: _Key | None = None

        def excess(k: int) -> float:
            nonlocal near
            least, near = self._least(k, lambda key: self._log_beyond(key, _COARSE, epsilon), near)
            return least + k / _PER_DECADE * math.log(10)

        # A smaller tail has a larger cap and larger moments. Before the two parts of delta are
        # equal, a smaller tail is better.
        low = largest_exponent(lambda k: excess(k) <= 0, _SMALLEST)
        key = self._best(low, lambda key: self._log_delta(key, _COARSE, epsilon))
        found = self._log_delta(key, _FINE, epsilon)
        for _ in range(_ROUNDS):
            # The moment with the least epsilon at this delta is a proof as well.
            if not -math.log(10) * _SMALLEST / _PER_DECADE < found < 0:
                break
            other = self._for_delta(math.exp(found))
            better = self._log_delta(other, _FINE, epsilon)
            if better >= found:
                break
            key, found = other, better
        return Proof(min(found, 0.0), self._named(key))

    def _for_delta(self, delta: float) -> _Key:
        """Return the moment with the least epsilon at a delta."""
        first = max(1, math.floor(-_PER_DECADE * math.log10(delta)) + 1)
        return self._best(first, lambda key: self._epsilon(key, _COARSE, delta))

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        key = self._for_delta(delta)
        return Proof(self._epsilon(key, _FINE, delta) * (1 + _MARGIN), self._named(key))

    def _named(self, key: _Key) -> str:
        return f"Renyi order {key.order}, states at most {self._cap(key.tail):.4g}"
