r"""What do Renyi moments prove about removing a record? A few bands, independent batches.

For C >= 0 leaving out the cross terms of ``||C y||^2`` gives L <= B and a bound on its moments:

    B = prod_t (1 - r_t + r_t e^(h_t)),
    E_Q[L^q] <= E_Q[B^q] = sum_N e^(|C N|^2 / (2 sigma^2)) prod_t Bin(N_t; q, r_t) e^(-N_t b_t / 2),

a sum over counts N in {0, ..., q} a round. With p bands the last p - 1 counts carry the past, so
that a transfer matrix of (q + 1)^(p - 1) states adds it up. Then delta <= c E_Q[B^q] e^(-(q - 1)
epsilon), c = (q - 1)^(q - 1) / q^q.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import Banded
>>> mechanism = Mechanism.of(Banded(200, 3, (1, 0.5, 0.2)), noise_multiplier=2.0)
>>> bound = BandMoments(mechanism, Poisson(0.01).automaton(200))
>>> found = bound.epsilon(1e-6)
>>> found.value < 2, abs(bound.delta(found.value) / 1e-6 - 1) < 1e-6
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpcal._ext import tilted as kernels
from dpcal.accountants.correlated.bounds.base import Bound, Proof, least_until_rising
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Automaton

__all__ = ["BandMoments", "largest_order", "log_binomials"]

# Relative margin, outward: far above the rounding of sums over the rounds.
_MARGIN = 1e-9
# Entries of a table: 128 MB. More bands leave fewer orders.
_LARGEST_TABLE = 2**24
# Rows of a table that rounds far from the end do not share, in units of the number of bands.
_OWN_ROWS = 64
# Highest order of a moment that is tried: each order takes a table, and tables grow with it.
_HIGHEST_ORDER = 24


def log_binomials(order: int, rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithms of Bin(k; order, rate), of shape (rates, order + 1)."""
    k, rates = np.arange(order + 1), rates[:, None]
    choices = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        joins = np.where(k > 0, k * np.log(rates), 0.0)
    return np.ascontiguousarray(choices + joins + (order - k) * np.log1p(-rates))


def largest_order(mechanism: Mechanism, law: Automaton) -> int:
    """Return the largest order whose table of last counts is small enough."""
    rows = mechanism.steps + 1
    if mechanism.column is not None and (law.rates == law.rates[0]).all():
        # For Toeplitz C rounds of one rate share their rows, but for some near the end.
        rows = min(rows, _OWN_ROWS * mechanism.bands)
    most = (_LARGEST_TABLE // rows) ** (1 / max(1, mechanism.bands - 1))
    return min(int(most * (1 + 1e-12)) - 1, _HIGHEST_ORDER)


@dataclass(frozen=True, eq=False)
class BandMoments(Bound):
    """Bounds on removing a record by Renyi moments of a product that bounds the likelihood.

    Parameters
    ----------
    mechanism
        A mechanism with few bands.
    law
        Law of independent participations with probabilities below 1.
    """

    mechanism: Mechanism
    law: Automaton
    _moments: dict[int, float] = field(default_factory=dict, repr=False)

    method: ClassVar[str] = "Renyi moments of a product over rounds"

    @property
    def orders(self) -> range:
        """Orders whose table is small enough."""
        return range(2, largest_order(self.mechanism, self.law) + 1)

    def _moment(self, order: int) -> float:
        if order not in self._moments:
            self.law.require_independent(f"bound by {self.method}")
            binomials = log_binomials(order, self.law.rates)
            *_, norms = kernels.band_table(binomials, self.mechanism.gram_bands)
            found = float(norms.sum())
            self._moments[order] = found + _MARGIN * (1 + abs(found))
        return self._moments[order]

    def _log_range(self, order: int) -> float:
        """Logarithm of the bound on delta at epsilon 0 by a moment of this order."""
        chernoff = (order - 1) * math.log(order - 1) - order * math.log(order)
        return self._moment(order) + chernoff

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        found, order = self._least(lambda q: self._log_range(q) - (q - 1) * epsilon)
        return Proof(min(found, 0.0), f"{self.method}, order {order}")

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        log_delta = math.log(delta)
        found, order = self._least(lambda q: (self._log_range(q) - log_delta) / (q - 1))
        return Proof(max(0.0, found) * (1 + _MARGIN), f"{self.method}, order {order}")

    def _least(self, value: Callable[[int], float]) -> tuple[float, int]:
        """Return the least value over the orders, in which values fall and then rise."""
        found = least_until_rising((value(order), order) for order in self.orders)
        return found or (math.inf, 2)
