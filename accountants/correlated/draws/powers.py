r"""Which draws have a proved range at any order? Draws tilted by a power of a product bound.

For C >= 0 the cross terms of ||C y||^2 are >= 0, and leaving them out gives, pointwise,

    L(x) <= B(x) = prod_t (1 - r_t + r_t exp(a_t - b_t / 2)).

Q B^q is a mixture of N(C N, sigma^2 I) over counts N in {0, ..., q} a round with weights

    W(N) = prod_t Bin(N_t; q, r_t) exp(||C N||^2 / (2 sigma^2) - sum_t N_t b_t / 2),

and delta = E_Q (L - e^eps)_+ is the mean of Z (L - e^eps)_+ / B^q over its draws, Z = sum_N W(N).
These terms are at most Z c e^{-(q - 1) eps}, c = (q - 1)^(q - 1) / q^q: the Renyi bound of order q.

Counts are drawn forward in time with a table of the weights of later rounds. After a state w that
adds scale w to the mean of a round, and becomes decay w + k, that weight is convex and increasing
in w, and so is a polygon through its values, which lies above it. A draw that uses the polygon gets
a weight of at most 1 instead of 1, so that the terms stay unbiased and below the range that the
polygon proves.

>>> from dpcal.accountants.correlated.likelihood import GridEngine
>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(50, 0.5), noise_multiplier=3.0)
>>> law = Poisson(0.02).automaton(50)
>>> tilted = PowerTilted(Setting(mechanism, law, GridEngine(mechanism, law)), 6)
>>> kept = tilted.draw(500, np.random.default_rng(0))
>>> bool(0 < tilted.terms(kept, 0.2).max() <= tilted.largest(0.2) < 0.03)
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpcal._ext import tilted as kernels
from dpcal.accountants.correlated.bounds.base import least_until_rising
from dpcal.accountants.correlated.draws.estimators import Floats, OfSetting, Setting, rising
from dpcal.accountants.correlated.mechanism import Mechanism, Plain
from dpcal.accountants.participations import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = ["HIGHEST_ORDER", "PowerMoment", "PowerTilted", "best_moment", "best_order", "has_table"]

# Highest order that is tried. Each order takes a table, and the best ones are below 16 at deltas
# above 1e-12.
HIGHEST_ORDER = 24
# Cells of the polygon that draws use. The distance of the weights from 1 falls with their square,
# and the memory grows with them.
_CELLS = 1500
# Cells of the polygon by which orders are compared.
_FEW_CELLS = 300
# Entries of a table: 128 MB.
_LARGEST_TABLE = 2**24
# Rows of a table that rounds far from the end do not share, in units of the number of bands.
_OWN_ROWS = 64
# Above this logarithm a range is useless, and its exponential would overflow.
_HOPELESS = 600.0


def _log_binomials(order: int, rates: Floats) -> Floats:
    """Return the logarithms of Bin(k; order, rate), of shape (rates, order + 1)."""
    k, rates = np.arange(order + 1), rates[:, None]
    choices = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        joins = np.where(k > 0, k * np.log(rates), 0.0)
    return np.ascontiguousarray(choices + joins + (order - k) * np.log1p(-rates))


def _largest_order(mechanism: Mechanism, law: Automaton) -> int:
    """Return the largest order whose table of last counts is small enough."""
    rows = mechanism.steps + 1
    if mechanism.column is not None and (law.rates == law.rates[0]).all():
        # For Toeplitz C rounds of one rate share their rows, but for some near the end.
        rows = min(rows, _OWN_ROWS * mechanism.bands)
    most = (_LARGEST_TABLE // rows) ** (1 / max(1, mechanism.bands - 1))
    return min(int(most * (1 + 1e-12)) - 1, HIGHEST_ORDER)


def has_table(mechanism: Mechanism, law: Automaton, order: int) -> bool:
    """Return whether counts of an order can be drawn: by one number, or by the last few counts."""
    if not law.independent or law.rates.max() >= 1:
        return False
    if mechanism.walk is not None:
        # One row of the table serves all rounds far from the end; if the table is too large there
        # is no range.
        return True
    return mechanism.kind == "banded" and order <= _largest_order(mechanism, law)


@dataclass(frozen=True, eq=False)
class PowerMoment(Plain):
    """The law of the counts of Q B^q / E[B^q], and the ranges that its normalisation proves.

    Parameters
    ----------
    mechanism, law
        A pair that :func:`has_table` admits.
    order
        Whole number q >= 2.
    cells
        Cells of the polygon, for lambda-CGD and one buffer.
    """

    mechanism: Mechanism
    law: Automaton
    order: int
    cells: int = _CELLS

    @cached_property
    def _log_binomial(self) -> Floats:
        """Logarithms of Bin(k; q, r_t), of shape (rounds, q + 1)."""
        return _log_binomials(self.order, self.law.rates)

    @cached_property
    def _factors(self) -> tuple[Floats, NDArray[np.intp]]:
        """Return Bin(k; q, r_t) exp(k^2 / (2 sigma^2) - k b_t / 2), and each round's row of it.

        Consecutive rounds share a row if they have the same rate and energy.
        """
        mechanism, k = self.mechanism, np.arange(self.order + 1)
        energies, rates = mechanism.energies, self.law.rates
        changes = (np.diff(energies, prepend=-1) != 0) | (np.diff(rates, prepend=-1) != 0)
        first = np.flatnonzero(changes)
        log_gain = 0.5 * k * k / mechanism.variance - 0.5 * k * energies[first, None]
        factors = np.exp(_log_binomials(self.order, rates[first]) + log_gain)
        return np.ascontiguousarray(factors), np.cumsum(changes) - 1

    @property
    def _walk(self) -> tuple[float, float, float, float]:
        """Return decay, scale, variance, and the largest state, as the kernels take them."""
        scalar = self.mechanism.walk
        assert scalar is not None
        return *scalar, self.mechanism.variance, self.order / (1 - scalar[0]) * (1 + 1e-12)

    @cached_property
    def _states(self) -> tuple[Floats, NDArray[np.intp], Floats]:
        # The weights of very improbable states may overflow; there is no range then.
        with np.errstate(over="ignore", invalid="ignore"):
            most = _LARGEST_TABLE // self.cells
            return kernels.state_table(*self._factors, *self._walk, self.cells, most)

    @cached_property
    def _last_counts(self) -> tuple[Floats, Floats, NDArray[np.intp], Floats]:
        return kernels.band_table(self._log_binomial, self.mechanism.gram_bands)

    @cached_property
    def log_moment(self) -> float:
        """A bound on log E_Q[B^q], which the table proves; infinite if there is none."""
        if self.mechanism.walk is None:
            found = float(self._last_counts[-1].sum())
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                found = float(np.log(self._states[2]).sum())
        return found + 1e-12 * self.mechanism.steps if math.isfinite(found) else math.inf

    def means(self, draws: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Means C N of drawn counts, of shape (steps, draws), and logarithms of their weights."""
        mechanism = self.mechanism
        if mechanism.walk is not None:
            return kernels.state_draws(*self._states, *self._factors, *self._walk, draws, generator)
        counts = kernels.band_draws(
            *self._last_counts, self._log_binomial, mechanism.gram_bands, draws, generator
        )
        return mechanism.means(counts), np.zeros(draws)

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms."""
        q = self.order
        exponent = self.log_moment + (q - 1) * math.log(q - 1) - q * math.log(q) - (q - 1) * epsilon
        return math.exp(min(exponent, _HOPELESS)) * (1 + 1e-6)

    def reach(self, delta: float) -> float:
        """Return the epsilon at which the range itself equals ``delta``."""
        q = self.order
        chernoff = (q - 1) * math.log(q - 1) - q * math.log(q)
        return max(0.0, (self.log_moment + chernoff - math.log(delta)) / (q - 1))


@dataclass(frozen=True, eq=False)
class PowerTilted(OfSetting):
    """Draws of B^q Q / E[B^q] for independent participations and C >= 0.

    Parameters
    ----------
    setting
        A setting with exact likelihood ratios, and a matrix that :func:`has_table` admits.
    order
        Whole number q >= 2.
    cells
        Cells of the polygon, for lambda-CGD and one buffer.
    """

    order: int
    cells: int = _CELLS
    direction: str = "remove"

    def __post_init__(self) -> None:
        self.setting.require_exact("PowerTilted")
        if not has_table(self.setting.mechanism, self.setting.law, self.order):
            raise UnsupportedEvent(
                "PowerTilted draws need independent participations and lambda-CGD, one buffer, or "
                "few bands."
            )

    @cached_property
    def moment(self) -> PowerMoment:
        """The law of the counts."""
        return PowerMoment(self.setting.mechanism, self.setting.law, self.order, self.cells)

    @property
    def log_moment(self) -> float:
        """A bound on log E_Q[B^q]; infinite if there is none."""
        return self.moment.log_moment

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        setting, mechanism = self.setting, self.setting.mechanism
        x, log_weight = self.moment.means(draws, generator)
        setting.add_noise(x, generator)
        a = mechanism.fields(x)
        log_weight = log_weight + self.log_moment
        log_weight -= self.order * kernels.log_products(a, mechanism.energies, setting.law.rates)
        return np.stack([setting.engine.log_ratio(a), log_weight])

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        loss = kept[0] + self.setting.slack
        terms = rising(loss, epsilon) * np.exp(np.minimum(kept[1] + loss, _HOPELESS))
        return np.asarray(np.minimum(terms, self.largest(epsilon)))

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms."""
        return self.moment.largest(epsilon)


def best_moment(
    mechanism: Mechanism,
    law: Automaton,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> PowerMoment | None:
    """Return the order with the least range at an epsilon, or the least epsilon at a delta.

    It is computed from a coarse polygon; None if no order has a table and a finite range.
    """

    def tried() -> Iterator[tuple[float, PowerMoment]]:
        for order in range(2, HIGHEST_ORDER + 1):
            if not has_table(mechanism, law, order):
                return
            moment = PowerMoment(mechanism, law, order, _FEW_CELLS)
            if math.isinf(moment.log_moment):
                # Larger orders have even larger moments, so that none has a range.
                return
            yield moment.reach(delta or 0.5) if epsilon is None else moment.largest(epsilon), moment

    best = least_until_rising(tried())
    return None if best is None else best[1]


def best_order(
    setting: Setting, *, epsilon: float | None = None, delta: float | None = None
) -> PowerTilted | None:
    """Return the draws with the least range at an epsilon, or the least epsilon at a delta.

    The result is None if no order has a table and a finite range.
    """
    found = best_moment(setting.mechanism, setting.law, epsilon=epsilon, delta=delta)
    return None if found is None else PowerTilted(setting, found.order)
