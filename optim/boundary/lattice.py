r"""Correlated noise in whole numbers: rows of C^-1 z on a grid, at the cost of real-valued rows.

With z of whole numbers, C^-1 z is on no grid, and the cost of rounding its rows has no bound.
Instead each row is computed from rows that were rounded before (as in lifting schemes for
transforms of whole numbers): with D the diagonal of C,

    n_t = z_t - Q(p_t),    p_t = sum_{j<t} C_tj / C_tt n_j,

where Q rounds to whole numbers and z_t is discrete Gaussian noise for the standard deviation
``noise_multiplier / |C_tt|``. Row t of the noise is n_t, which is C^-1 D z up to rounding errors of
half a step. You can compute z from n, and n from z. Answers are whole sums plus rows: y_t = x_t +
n_t.

**Its cost.** Let a record move x_j by g_j in the rounds j that it takes part in (s_j = 1, else 0),
at most B steps. Given the past answers, the rows n_j = y_j - x_j equal the rows for the data set
without the record, less s_j g_j. With q_t(n) = Q(p_t), and n' the rows without the record, which
are known to somebody who knows all others, y_t + q_t(n') - x'_t is z_t plus

    s_t g_t + q_t(n') - q_t(n),

a vector of whole numbers that differs from sum_{j<=t} C_tj / C_tt s_j g_j by rounding only: by at
most ``(1 + 2 e) sqrt(d)`` steps if p_t is computed up to e, and not at all before the record's
first round. So the answers reveal no more than a matrix mechanism with contributions of any
directions and ``C' = |C| + rho |D| L`` in place of ``|C|``. Here L is lower triangular, of ones,
and rho = (1 + 2 e) sqrt(d) / B.

Let C >= 0. The pair of distributions for C' and noise (1 + kappa) z is the image of the pair for C
and z, under A = (I + rho D L C^-1) / (1 + kappa) and Gaussian noise of covariance I - A A^T. The
plan accounts for the pair for C and z (one record, constant contributions). Noise of this
covariance exists if A is no longer than 1: if

    kappa >= rho max(D) ||L C^-1||_F,

where the last factor is the root of the summed squares of ``strategy.error_profile()``. The noise
is wider than the plan's by the factor 1 + kappa, at most 1.001 as a rule: for this, the grid of
rows is finer than the grid of sums. Where every record is in every round, the plan is one
Gaussian's and C may have any signs: ``kappa >= rho max(D) sqrt(T) / |C_00|`` suffices too: no
sensitivity is below ``|C_00|``.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.optim.boundary.seeds import keyed_generator
>>> grid = Grid.of(LambdaCGD(4, 0.5), 1, sigma=2.0 * 2**20, bound=2.0**20, signs=False)
>>> stream = LatticeStream(grid, lambda: keyed_generator(bytes(32)))
>>> first, second = stream.read(), stream.read()
>>> bool((stream.at(1).read() == second).all()), grid.widened < 1.001
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.streams import lift
from dpcal._ext.sums import grid_step
from dpcal.accountants.matrix import Strategy, recurrences as noises
from dpcal.accountants.matrix.recurrences import inverse_series
from dpcal.calibrate.query import Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.boundary.discrete import DiscreteNormals

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Places = NDArray[np.intp]

# Bits that make steps of rows finer than steps of sums; sums of 2^29 records have 61 bits.
_FINEST = 10
# Widening of noise below which steps are not made finer, and its largest allowed value.
_ENOUGH, _MOST = 2.0**-10, 2.0**-4
# Relative margin for computations in doubles and for the entries of C that the accountant has.
_ROOM = 1.25
# Doubles, in which rows are kept, hold whole numbers below 2^53 exactly.
_LARGEST = 2.0**52
# Standard deviations: a discrete Gaussian has a mass below 2^-140 beyond.
_TAIL = 14.0
_HALF_ULP = 2.0**-53


class _Rows:
    """The computation of p_t as a weighted sum of kept rows: the last ones, as C has bands.

    ``slots`` is the number of kept rows, ``diagonal`` has the size of C_tt, for one step or for
    each.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.slots = (strategy.bands or strategy.steps) - 1
        column, inverse = strategy.coefficients, strategy.inverse_coefficients
        if column is not None and inverse is not None:
            self.diagonal = np.abs(column[:1])
            lags = column[1 : self.slots + 1] / column[0]
            self._lags: Callable[[int], Vector] = lambda step: lags[:step]
            self._sum, self._inverse = np.abs(lags).sum(), np.abs(inverse).sum()
        else:
            C = strategy.matrix()
            self.diagonal = np.abs(np.diag(C))
            self._lags = lambda step: (
                C[step, max(0, step - self.slots) : step][::-1] / C[step, step]
            )
            self._sum = (np.abs(C).sum(axis=1) / self.diagonal).max()
            self._inverse = np.abs(strategy.inverse()).sum(axis=1).max()

    def terms(self, step: int) -> tuple[Vector, Places]:
        """Return weights of kept rows, and their numbers."""
        weights = self._lags(step)
        if weights.all():
            return weights, _latest(step, len(weights), self.slots)
        used = np.flatnonzero(weights)
        return weights[used], (step - 1 - used) % max(1, self.slots)

    def keep(self, step: int, kept: Vector, row: Integers, pulled: Vector) -> None:
        """Keep the parts of a row n_t and of p_t that later steps need."""
        if self.slots:
            kept[step % self.slots] = row

    def most(self, widest: float) -> tuple[float, float]:
        """Bound entries of rows, and the error of p_t, if ``|C_tt| (|z_t| + 2) <= widest``."""
        longest = float(self._inverse) * widest
        return longest, (self.slots + 2) * _HALF_ULP * float(self._sum) * longest


class _Fresh:
    """Sums over the last rows of v_t = n_t + p_t = z_t + rounding; C^-1 is banded Toeplitz."""

    def __init__(self, strategy: Strategy) -> None:
        inverse, bands = strategy.inverse_coefficients, strategy.inverse_bands
        assert inverse is not None
        assert bands is not None
        self.slots = bands - 1
        self.diagonal = np.abs(1 / inverse[:1])
        self._weights = -inverse[1:bands] / inverse[0]
        series = inverse_series(np.append(1.0, -np.abs(self._weights)), strategy.steps)
        self._grown = float(np.abs(series).sum())

    def terms(self, step: int) -> tuple[Vector, Places]:
        """See :class:`_Rows`."""
        count = min(step, self.slots)
        return self._weights[:count], _latest(step, count, self.slots)

    def keep(self, step: int, kept: Vector, row: Integers, pulled: Vector) -> None:
        """Keep the row before p_t was taken from it."""
        if self.slots:
            np.add(row, pulled, out=kept[step % self.slots])

    def most(self, widest: float) -> tuple[float, float]:
        """See :class:`_Rows`."""
        total, widest = float(np.abs(self._weights).sum()), widest / float(self.diagonal[0])
        # Errors of kept rows come back as rows of C do.
        error = self._grown * ((self.slots + 2) * total + 1) * _HALF_ULP * widest
        return (1 + total) * widest, error


class _Buffers:
    """Sums of buffers s_j, which become decays[j] s_j + n_t: C is buffered linear Toeplitz."""

    diagonal = np.ones(1)

    def __init__(self, strategy: Strategy) -> None:
        series, inverse = strategy.series, strategy.inverse_coefficients
        assert series is not None
        assert inverse is not None
        self._decays, self._scales = series
        self.slots, self._steps = len(self._decays), strategy.steps
        self._inverse = np.abs(inverse).sum()
        sums = [inverse_filter(decay, inverse) for decay in self._decays]
        self._sizes = np.array([np.abs(each).sum() for each in sums])

    def terms(self, step: int) -> tuple[Vector, Places]:
        """See :class:`_Rows`."""
        return self._scales, np.arange(self.slots)

    def keep(self, step: int, kept: Vector, row: Integers, pulled: Vector) -> None:
        """Update the buffers."""
        kept *= self._decays[:, np.newaxis]
        kept += row

    def most(self, widest: float) -> tuple[float, float]:
        """See :class:`_Rows`."""
        # Each update rounds twice, and an error falls by the decay a step.
        lives = 1 / np.maximum(1 - self._decays, 1 / self._steps)
        errors = np.abs(self._scales) * self._sizes * (2 * lives + self.slots + 2)
        return float(self._inverse) * widest, float(errors.sum()) * _HALF_ULP * widest


class _Nodes:
    """Sums over the closed nodes of a binary tree, one a level; node sums are exact."""

    def __init__(self, strategy: Strategy) -> None:
        recurrence = strategy.recurrence(1)
        assert isinstance(recurrence, noises.TreeNodes)
        spread, self._pull = recurrence._spread, recurrence._pull
        self.slots = len(spread)
        self._levels = [(t & -t).bit_length() - 1 for t in range(1, strategy.steps + 1)]
        self.diagonal = 1 / spread[self._levels]

    def terms(self, step: int) -> tuple[Vector, Places]:
        """See :class:`_Rows`."""
        level = self._levels[step]
        return 1 - self._pull[level, :level], np.arange(level)

    def keep(self, step: int, kept: Vector, row: Integers, pulled: Vector) -> None:
        """Close the node that ends here."""
        level = self._levels[step]
        kept[level] = row + kept[:level].sum(axis=0)

    def most(self, widest: float) -> tuple[float, float]:
        """See :class:`_Rows`."""
        # A closed node is z_t plus a mean of closed nodes below, at most.
        node = (self.slots + 1) * widest / float(self.diagonal.min())
        error = (self.slots + 2) * _HALF_ULP * self.slots * node
        return (self.slots + 1) * node, error


_Pull = _Rows | _Fresh | _Buffers | _Nodes


def _latest(step: int, count: int, slots: int) -> Places:
    """Return where the last rows before a step are kept, the latest first."""
    return _places(step % max(1, slots), count, slots)


@lru_cache(maxsize=64)
def _places(place: int, count: int, slots: int) -> Places:
    return (place - 1 - np.arange(count)) % max(1, slots)


def inverse_filter(decay: float, series: Vector) -> Vector:
    """Return the coefficients of ``series(x) / (1 - decay x)``."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], [1.0, -decay], series))


def _pull_of(strategy: Strategy) -> _Pull:
    """Return the way that keeps as many rows as the strategy's recurrence does."""
    recurrence = strategy.recurrence(1)
    if isinstance(recurrence, noises.TreeNodes):
        return _Nodes(strategy)
    if isinstance(recurrence, noises.Filter):
        return _Fresh(strategy)
    return _Buffers(strategy) if isinstance(recurrence, noises.Buffers) else _Rows(strategy)


@dataclass(frozen=True)
class Grid:
    """The grid of a query's rows.

    Parameters
    ----------
    strategy, dimension
        C, and the length of a row.
    digits
        A step of the grid of sums is 2^digits steps.
    sigma
        Standard deviation of C_tt z_t, in steps.
    widened
        Ratio of ``sigma`` to the plan's standard deviation.
    """

    strategy: Strategy
    dimension: int
    digits: int
    sigma: float
    widened: float

    @classmethod
    def of(
        cls,
        strategy: Strategy,
        dimension: int,
        *,
        sigma: float,
        bound: float,
        signs: bool,
    ) -> Grid | None:
        """Return the coarsest grid that is fine enough; None if there is none.

        Parameters
        ----------
        strategy, dimension
            C, and the length of a row.
        sigma, bound
            The plan's standard deviation of z and the bound on one record's contribution to a sum,
            in steps of the grid of sums.
        signs
            Whether C may have any signs, because every record is in every round.
        """
        pull = _pull_of(strategy)
        diagonal = float(pull.diagonal.max())
        factor = math.inf
        if strategy.nonnegative:
            factor = math.sqrt(float((strategy.error_profile() ** 2).sum()))
        if signs:
            factor = min(factor, math.sqrt(strategy.steps) / float(pull.diagonal[0]))
        found = None
        for digits in range(_FINEST + 1):
            scale = 2.0**digits
            widest = (1 + _MOST) * (1 + 1e-4) * _TAIL * sigma * scale + 32 * diagonal
            longest, error = pull.most(widest)
            if longest >= _LARGEST:
                break
            rho = math.sqrt(dimension) * (1 + 2 * error) / (bound * scale)
            wider = 0.0 if strategy.bands == 1 else _ROOM * rho * diagonal * factor
            if wider <= _MOST:
                widened = 1 + wider
                found = cls(strategy, dimension, digits, sigma * scale * widened, widened)
            if wider <= _ENOUGH:
                break
        return found


@lru_cache(maxsize=8)
def grid_of(query: Query, dimension: int) -> Grid:
    """Return the grid of a query with correlated noise; UnsupportedEvent where there is none."""
    assert query.correlation is not None
    strategy, signs = query.correlation.strategy, query.sampler == "full"
    if not (signs or strategy.nonnegative):
        raise UnsupportedEvent(
            "correlated noise on samples is proved for strategies without "
            f"negative entries, got query {query.name!r} with {strategy!r}."
        )
    bound = query.max_norm / grid_step(query.max_norm)
    sigma = query.noise_multiplier * bound
    found = Grid.of(strategy, dimension, sigma=sigma, bound=bound, signs=signs)
    if found is None:
        raise UnsupportedEvent(
            f"whole numbers would make the correlated noise of query {query.name!r} wider than "
            f"{1 + _MOST} times the plan's: {strategy.steps} steps of {dimension} numbers enlarge "
            f"rounding too much under {strategy!r}."
        )
    return found


class LatticeStream:
    """Rows of noise in whole steps of a :class:`Grid`, one a round, shape (dimension,).

    The rows reveal no more than rows of real numbers.

    Parameters
    ----------
    grid
        The strategy, the length of a row, and the steps.
    words
        Function that returns a generator of cryptographic words for these rows only, called at the
        first row.

    Attributes
    ----------
    step
        Number of the next row, from 0.
    digits
        Number of bits by which their steps are finer than the steps of sums.
    """

    def __init__(self, grid: Grid, words: Callable[[], np.random.Generator]) -> None:
        self.grid, self.digits = grid, grid.digits
        self._words, self._generator = words, words()
        self._pull = _pull_of(grid.strategy)
        self._kept = np.zeros((self._pull.slots, grid.dimension))
        self._pulled = np.zeros(grid.dimension)
        self._normal = lru_cache(maxsize=64)(self._noise)
        self.step = 0
        self._whole = True

    def read(self, out: Integers | None = None) -> Integers:
        """Return the next row, in ``out`` or in a new array when omitted.

        A ValueError is raised after the last row. A RuntimeError is raised if the read before was
        interrupted: the rows that are kept for later may be half written.
        """
        if not self._whole:
            raise RuntimeError(f"Reading row {self.step} was interrupted.")
        if self.step >= self.grid.strategy.steps:
            raise ValueError(f"The stream has {self.step} rows, and all have been read.")
        self._whole = False
        row = np.empty(self.grid.dimension, np.int64) if out is None else out
        row[:] = 0
        diagonal = self._pull.diagonal
        self._normal(float(diagonal[self.step if len(diagonal) > 1 else 0])).add(row)
        weights, rows = self._pull.terms(self.step)
        lift(row, self._pulled, self._kept, np.ascontiguousarray(weights), rows)
        self._pull.keep(self.step, self._kept, row, self._pulled)
        self.step += 1
        self._whole = True
        return row

    def at(self, step: int) -> Self:
        """Return a stream of the same rows from ``step`` on: earlier rows are redrawn."""
        made = type(self)(self.grid, self._words)
        row = np.empty(self.grid.dimension, np.int64)
        while made.step < step:
            made.read(row)
        return made

    def _noise(self, diagonal: float) -> DiscreteNormals:
        """Return the noise z_t for a size of C_tt."""
        return DiscreteNormals.covering(self.grid.sigma / diagonal, self._generator)
