r"""Mechanism of noise correlated by a matrix C, reduced to a scalar pair.

The rows of C G + Z are released one after another, with G the clipped contributions in units of the
clipping norm and Z Gaussian with standard deviation sigma. For lower-triangular C >= 0, leaving a
record's contributions out (zero-out) is dominated, also for adaptively chosen vectors, by

    P = sum_y s(y) N(C y, sigma^2 I)      against      Q = N(0, sigma^2 I),

with s the law of the record's participations (Choquette-Choo et al. 2024; Dong and Ganesh 2026).
For C with entries of both signs, the pair of abs(C) dominates
(``docs/explanation/correlated_noise.md``), so that every mechanism here has C >= 0.

>>> from dpcal.accountants.matrix import Dense
>>> C = np.array([[1.0, 0.0], [0.5, 1.0]])
>>> mechanism = Mechanism.of(Dense(C), noise_multiplier=2.0)
>>> mechanism.walk, mechanism.sigma, round(mechanism.largest_column, 6)
((0.5, 0.5), 2.0, 1.118034)
>>> mechanism.at(1.0).gram.tolist()
[[1.25, 0.5], [0.5, 1.0]]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.accountants.matrix.base import Strategy

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# The transfer matrix has 2^(bands - 1) states, and each round of each draw visits all of them.
WIDEST_BAND = 12
# Most bands at which a window has no more states than a decaying sum has nodes.
_FEW_BANDS = 7

# Relative rounding of sums of products, far above the error of a Fourier transform of length 1e6.
_FOURIER = 1e-12

# Rows of a dense matrix of 2 GB.
_DENSE_STEPS = 2**14


@dataclass(frozen=True, eq=False)
class Mechanism:
    """One run of correlated noise: abs(C), and the standard deviation of Z.

    Attributes
    ----------
    strategy
        The strategy itself; its C may have entries of both signs.
    steps
        Number of rounds.
    column
        First column of abs(C), of shape (steps,), if C is Toeplitz, else None.
    dense
        abs(C), lower triangular, of shape (steps, steps), if it is not Toeplitz, else None.
    bands
        Number of diagonals of C that are not zero.
    walk
        Decay and scale of the number w that carries the past, or None if a single number is not
        enough. A round of k participations after a state w has the mean ``scale w + k``, and the
        state becomes ``decay w + k``. Lambda-CGD and one buffer that decays have such a number.
    sigma
        Standard deviation of the entries of Z, in units of the clipping norm: the noise multiplier.
    """

    strategy: Strategy
    steps: int
    column: Floats | None
    dense: Floats | None
    bands: int
    walk: tuple[float, float] | None
    sigma: float = 1.0
    _unit: Mechanism | None = field(default=None, repr=False)

    @classmethod
    def of(cls, strategy: Strategy, *, noise_multiplier: float = 1.0) -> Mechanism:
        """Return the run of a strategy.

        Parameters
        ----------
        strategy
            A :class:`dpcal.accountants.matrix.Strategy`; your own C is its ``Dense``.
        noise_multiplier
            sigma > 0, not divided by a norm of C; 1 when omitted.
        """
        column, dense = validate.instance(Strategy, strategy=strategy).coefficients, None
        if column is None:
            dense = np.ascontiguousarray(np.abs(strategy.matrix()))
            column = _column(dense)
        if column is not None:
            column, dense = np.abs(column), None
        bands = _bands(column, dense)
        walk = None if bands == 1 or column is None else _walk(column)
        return cls(strategy, strategy.steps, column, dense, bands, walk).at(noise_multiplier)

    def at(self, noise_multiplier: float) -> Mechanism:
        """Return the run with another noise multiplier, which shares the products of columns."""
        sigma = validate.noise(noise_multiplier=noise_multiplier)
        return replace(self, sigma=sigma, _unit=self.unit)

    @property
    def unit(self) -> Mechanism:
        """The run with the noise multiplier 1."""
        return self._unit or self

    @property
    def memory(self) -> str | None:
        """Memory that carries the past: ``"none"``, ``"window"`` or ``"sum"``; None without one.

        Where no column reaches from one participation to the next, ``"none"`` is enough.
        """
        if self.bands == 1:
            return "none"
        if self.bands <= (WIDEST_BAND if self.walk is None else _FEW_BANDS):
            return "window"
        return None if self.walk is None else "sum"

    @cached_property
    def matrix(self) -> Floats:
        """C >= 0, lower triangular, of shape (steps, steps).

        Raises
        ------
        ValueError
            If it would not fit into memory.
        """
        if self._unit is not None:
            return self._unit.matrix
        return np.abs(self.strategy.matrix()) if self.dense is None else self.dense

    @property
    def largest_column(self) -> float:
        """Largest norm of a column of C: sigma over it is often called z in the literature."""
        return math.sqrt(float(self.unit.energies.max()))

    @property
    def variance(self) -> float:
        """sigma^2."""
        return self.sigma * self.sigma

    @cached_property
    def gram(self) -> Floats:
        """C^T C / sigma^2."""
        if self._unit is not None:
            return np.ascontiguousarray(self._unit.gram / self.variance)
        return self.matrix.T @ self.matrix

    @cached_property
    def energies(self) -> Floats:
        """Squared norms of the columns of C, over sigma^2."""
        if self._unit is not None:
            return self._unit.energies / self.variance
        if self.column is not None:
            return np.ascontiguousarray(np.cumsum(self.column * self.column)[::-1])
        return np.ascontiguousarray((self.matrix * self.matrix).sum(axis=0))

    @cached_property
    def gram_bands(self) -> tuple[Floats, Places]:
        """Entries (t, t - k) of the Gram matrix for k < bands: distinct rows, and each round's."""
        if self._unit is not None:
            rows, kinds = self._unit.gram_bands
            return rows / self.variance, kinds
        T, column = self.steps, self.column
        out = np.zeros((T, self.bands))
        for k in range(self.bands):
            if column is None:
                out[k:, k] = np.diagonal(self.gram, k)
            else:
                # Columns t - k and t overlap in the rounds from t on.
                out[k:, k] = np.cumsum(column[: T - k] * column[k:])[::-1]
        first, kinds = distinct(out)
        return out[first], kinds

    @cached_property
    def overlaps(self) -> Floats:
        """The largest product of two columns k or more apart, over sigma^2, for each k."""
        products = np.zeros(self.steps + 1)
        if self.column is None:
            gram = self.unit.gram
            products[: self.bands] = [np.diagonal(gram, k).max() for k in range(self.bands)]
            products *= 1 + self.steps * _FOURIER
        else:
            from scipy.signal import correlate

            column, direct = self.column[: self.bands], self.bands <= _DENSE_STEPS
            found = correlate(column, column, method="direct" if direct else "fft")
            # The error of a transform is relative to the largest product, and of a sum to each.
            error = _FOURIER * (10 * found if direct else float(column @ column))
            products[: self.bands] = (found + error)[self.bands - 1 :]
        return np.maximum.accumulate(products[::-1])[::-1] / self.variance

    @cached_property
    def couplings(self) -> Floats:
        """Products of each column with its past, of shape (steps,), for a past of one number.

        With the state ``w = sum_{t < u} y_t decay^(u - t - 1)`` before round u, the overlap of
        column u with the columns of earlier participations is ``couplings[u] w`` times sigma^2.
        """
        assert self.column is not None
        decay, scale = self.walk or (0.0, 0.0)
        powers = decay ** np.arange(self.steps)
        return np.ascontiguousarray(scale * np.cumsum(powers * self.column)[::-1] / self.variance)

    def means(self, y: Floats) -> Floats:
        """Return C y, of the shape (steps, draws) of the participations, by short recurrences."""
        from scipy.signal import lfilter, oaconvolve

        if self.column is None:
            return np.asarray(self.matrix @ y)
        if self.walk is not None:
            decay, scale = self.walk
            return np.asarray(lfilter([1.0, scale - decay], [1.0, -decay], y, axis=0))
        column = self.column[: self.bands]
        if self.bands > WIDEST_BAND:
            return np.asarray(oaconvolve(y, column[:, None], axes=0)[: len(y)])
        found = column[0] * y
        for k in range(1, self.bands):
            found[k:] += column[k] * y[:-k]
        return np.asarray(found)

    def products(self, patterns: Floats) -> Floats:
        """Products of the means of patterns, over sigma^2, of shape (patterns, patterns)."""
        M = self.means(patterns) / self.sigma
        return np.asarray(M.T @ M)

    def fields(self, x: Floats) -> Floats:
        """Return C^T x / sigma^2, of the shape (steps, draws) of the observations."""
        found = self.matrix.T @ x if self.column is None else self.means(x[::-1])[::-1]
        return np.ascontiguousarray(found / self.variance)


def distinct(rows: Floats) -> tuple[Places, Places]:
    """Return the first row of each kind, and the kind of each row."""
    _, first, kinds = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, kinds.ravel()


def _column(C: Floats) -> Floats | None:
    """Return the first column if C is Toeplitz, otherwise None."""
    first = C[:, 0]
    alike = (np.array_equal(C[t:, t], first[: len(C) - t]) for t in range(len(C)))
    return first.copy() if all(alike) else None


def _walk(column: Floats) -> tuple[float, float] | None:
    """Return decay and scale of a decaying geometric series below a unit diagonal, or None."""
    scale = float(column[1])
    decay = float(column[2] / scale) if len(column) > 2 and scale else scale
    if math.isclose(decay, scale, rel_tol=1e-12):
        decay = scale
    if not (0 < decay < 1 and scale >= 0):
        return None
    ideal = np.concatenate([[1.0], scale * decay ** np.arange(len(column) - 1)])
    return (decay, scale) if np.allclose(column, ideal, rtol=1e-12, atol=1e-14) else None


def _bands(column: Floats | None, dense: Floats | None) -> int:
    if column is not None:
        return int(np.flatnonzero(column)[-1]) + 1
    assert dense is not None
    rows, columns = np.nonzero(dense)
    return int((rows - columns).max()) + 1
