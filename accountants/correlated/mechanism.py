r"""What is released? Noise correlated by a matrix C, reduced to a scalar pair.

The rows of C G + Z are released one after another, with G the clipped contributions in units of the
clipping norm and Z Gaussian with standard deviation sigma. For lower-triangular C >= 0, leaving a
record's contributions out (zero-out) is dominated, also for adaptively chosen vectors, by

    P = sum_y s(y) N(C y, sigma^2 I)      against      Q = N(0, sigma^2 I),

with s the law of the record's participations (Choquette-Choo et al. 2024; Dong and Ganesh 2026).
For C with entries of both signs, the pair of abs(C) dominates
(``docs/internals/correlated_proofs.md``, "Mixed signs"), so that every mechanism here is one with
C >= 0.

>>> C = np.array([[1.0, 0.0], [0.5, 1.0]])
>>> mechanism = Mechanism.of(Matrix(C), noise_multiplier=2.0)
>>> mechanism.kind, mechanism.sigma, round(mechanism.largest_column, 6)
('lambda-CGD', 2.0, 1.118034)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import toeplitz

from dpcal import _validate
from dpcal.accountants.matrix.base import Strategy
from dpcal.accountants.matrix.participation import Participation
from dpcal.accountants.matrix.sensitivity import Sensitivity, of_matrix

__all__ = ["WIDEST_BAND", "Matrix", "Mechanism", "Plain", "Shape", "Shaped"]

Floats = NDArray[np.float64]

# Most bands. The transfer matrix has 2^(bands - 1) states, and every round of every draw visits
# each of them; one band more doubles the time of a draw.
WIDEST_BAND = 12

# Relative rounding of sums of products, far above that of a Fourier transform of a million.
_FOURIER = 1e-12

# Most rows of a dense matrix, which then takes 2 GB.
_DENSE_STEPS = 2**14


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix C supplied by the user, for pricing. A run needs a ``matrix.Strategy``.

    Parameters
    ----------
    C
        Shape (T, T), finite, zero above the diagonal and nonzero on it. If entries have both signs,
        their absolute values count.
    """

    C: ArrayLike = field(repr=False)

    # Toeplitz matrices and series are recognised by their entries.
    coefficients: ClassVar[None] = None
    series: ClassVar[None] = None

    def __post_init__(self) -> None:
        C = _validate.reals(C=self.C)
        if C.ndim != 2 or C.shape[0] != C.shape[1] or not C.size:
            raise ValueError(f"C must be a square matrix, got shape {C.shape}.")
        if not np.isfinite(C).all() or np.triu(C, 1).any():
            raise ValueError("C must be lower triangular with finite entries.")
        if not np.diagonal(C).all():
            raise ValueError("C must have a diagonal without zeros.")
        object.__setattr__(self, "C", C)

    @property
    def steps(self) -> int:
        """Number T of rows of C."""
        return len(self.matrix())

    def matrix(self) -> Floats:
        """Return C."""
        return np.asarray(self.C)

    def sensitivity(self, participation: Participation) -> Sensitivity:
        """Return the largest norm of one record's part of C G; see the strategies."""
        return of_matrix(self.matrix(), participation)


Shaped = Strategy | Matrix


class Plain:
    """Data whose copies hold only its fields, not the tables that follow from them."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields."""
        return {each.name: vars(self)[each.name] for each in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Shape(Plain):
    """The matrix of correlated noise, whatever its standard deviation is.

    Attributes
    ----------
    kind
        ``"diagonal"``, ``"banded"``, ``"lambda-CGD"``, ``"BLT"`` or ``"dense"``.
    steps
        Number of rounds.
    column
        First column of abs(C), of shape (steps,), if C is Toeplitz, else None.
    dense
        abs(C), lower triangular, of shape (steps, steps), if it is not Toeplitz, else None.
    bands
        Number of diagonals of C that are not zero.
    walk
        Decay and scale of the number w that carries the past, or None if one is not enough: a round
        of k participations after a state w has the mean ``scale w + k``, and the state becomes
        ``decay w + k``. It is that of lambda-CGD, and of one buffer that decays.
    strategy
        The strategy itself, whose C may have entries of both signs.
    """

    kind: str
    steps: int
    column: Floats | None
    dense: Floats | None
    bands: int
    walk: tuple[float, float] | None
    strategy: Shaped

    @classmethod
    def of(cls, strategy: Shaped) -> Shape:
        """Return the shape of a strategy."""
        if not isinstance(strategy, Shaped):
            raise TypeError(
                "strategy must be a dpcal.accountants.matrix.Strategy, or your own C as a "
                f"dpcal.accountants.correlated.Matrix, got {strategy!r}."
            )
        if strategy.coefficients is not None:
            column: Floats | None = np.abs(strategy.coefficients)
            dense = None
        else:
            dense = np.ascontiguousarray(np.abs(strategy.matrix()))
            column = _column(dense)
            dense = dense if column is None else None
        bands = _bands(column, dense)
        walk = None if bands == 1 or column is None else _walk(column, strategy.series)
        if bands == 1:
            kind = "diagonal"
        elif walk is not None:
            kind = "lambda-CGD" if walk[0] == walk[1] else "BLT"
        else:
            kind = "banded" if bands <= WIDEST_BAND else "dense"
        return cls(kind, strategy.steps, column, dense, bands, walk, strategy)

    @cached_property
    def matrix(self) -> Floats:
        """abs(C), of shape (steps, steps).

        Raises
        ------
        ValueError
            If it would not fit into memory.
        """
        if self.dense is not None:
            return self.dense
        if self.steps > _DENSE_STEPS:
            raise ValueError(
                f"steps must be at most {_DENSE_STEPS} for a method that needs the dense matrix, "
                f"got {self.steps}."
            )
        assert self.column is not None
        return toeplitz(self.column, np.zeros(self.steps))

    @cached_property
    def energies(self) -> Floats:
        """Squared norms of the columns of C."""
        if self.column is not None:
            return np.ascontiguousarray(np.cumsum(self.column * self.column)[::-1])
        return np.ascontiguousarray((self.matrix * self.matrix).sum(axis=0))

    @cached_property
    def gram(self) -> Floats:
        """C^T C."""
        return self.matrix.T @ self.matrix

    @cached_property
    def gram_bands(self) -> Floats:
        """Entries (t, t + k) of C^T C for k < bands, of shape (steps, bands)."""
        T, bands = self.steps, self.bands
        out = np.zeros((T, bands))
        for k in range(bands):
            if self.column is not None:
                products = self.column[: T - k] * self.column[k:]
                # Columns t and t + k overlap in the rounds from t + k on.
                out[: T - k, k] = np.cumsum(products)[::-1]
            else:
                out[: T - k, k] = np.diagonal(self.gram, k)
        return out


@dataclass(frozen=True, eq=False)
class Mechanism(Plain):
    """One run of correlated noise: its shape, and the standard deviation of Z.

    Attributes
    ----------
    shape
        The matrix.
    sigma
        Standard deviation of the entries of Z, in units of the clipping norm: the noise multiplier.
    """

    shape: Shape
    sigma: float

    @classmethod
    def of(cls, strategy: Shaped, *, noise_multiplier: float) -> Mechanism:
        """Return the run of a strategy.

        Parameters
        ----------
        strategy
            A :class:`dpcal.accountants.matrix.Strategy`, or a :class:`Matrix`.
        noise_multiplier
            sigma > 0, not divided by a norm of C.
        """
        sigma = _validate.noise(noise_multiplier=noise_multiplier)
        return cls(Shape.of(strategy), sigma)

    @property
    def kind(self) -> str:
        """Kind of the matrix."""
        return self.shape.kind

    @property
    def bands(self) -> int:
        """Number of diagonals of C that are not zero."""
        return self.shape.bands

    @property
    def column(self) -> Floats | None:
        """First column of C, of shape (steps,), if C is Toeplitz, else None."""
        return self.shape.column

    @property
    def walk(self) -> tuple[float, float] | None:
        """Decay and scale of the number that carries the past; see :class:`Shape`."""
        return self.shape.walk

    @property
    def matrix(self) -> Floats:
        """C >= 0, lower triangular, of shape (steps, steps)."""
        return self.shape.matrix

    @property
    def steps(self) -> int:
        """Number of rounds."""
        return self.shape.steps

    @property
    def largest_column(self) -> float:
        """Largest norm of a column of C: sigma over it is often called z in the literature."""
        return math.sqrt(float(self.shape.energies.max()))

    @property
    def variance(self) -> float:
        """sigma^2."""
        return self.sigma * self.sigma

    @cached_property
    def gram(self) -> Floats:
        """C^T C / sigma^2."""
        return np.ascontiguousarray(self.shape.gram / self.variance)

    @cached_property
    def energies(self) -> Floats:
        """Squared norms of the columns of C, over sigma^2."""
        return self.shape.energies / self.variance

    @cached_property
    def gram_bands(self) -> Floats:
        """Entries (t, t + k) of the Gram matrix for k < bands, of shape (steps, bands)."""
        return self.shape.gram_bands / self.variance

    @cached_property
    def overlaps(self) -> Floats:
        """The largest product of two columns k or more apart, over sigma^2, for each k."""
        products = np.zeros(self.steps + 1)
        if self.column is None:
            gram = self.shape.gram
            products[: self.bands] = [np.diagonal(gram, k).max() for k in range(self.bands)]
            products *= 1 + self.steps * _FOURIER
        else:
            from scipy.signal import correlate

            # Later columns overlap in fewer rounds.
            column, direct = self.column[: self.bands], self.bands <= _DENSE_STEPS
            found = correlate(column, column, method="direct" if direct else "fft")
            # The error of a transform is a part of the largest product, and that of sums of each.
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
        """Return C y, of the shape (steps, draws) of the participations."""
        return self._convolved(y) if self.column is not None else np.asarray(self.matrix @ y)

    def products(self, patterns: Floats) -> Floats:
        """Products of the means of patterns, over sigma^2, of shape (patterns, patterns)."""
        M = self.means(patterns) / self.sigma
        return np.asarray(M.T @ M)

    def fields(self, x: Floats) -> Floats:
        """Return C^T x / sigma^2, of the shape (steps, draws) of the observations."""
        found = self.matrix.T @ x if self.column is None else self._convolved(x[::-1])[::-1]
        return np.ascontiguousarray(found / self.variance)

    def _convolved(self, y: Floats) -> Floats:
        """Return the Toeplitz matrix C times y, by a recurrence where it is short."""
        from scipy.signal import lfilter, oaconvolve

        assert self.column is not None
        column = self.column[: self.bands]
        if self.walk is not None:
            decay, scale = self.walk
            return np.asarray(lfilter([1.0, scale - decay], [1.0, -decay], y, axis=0))
        if self.bands <= WIDEST_BAND:
            return np.asarray(lfilter(column, [1.0], y, axis=0))
        return np.asarray(oaconvolve(y, column[:, None], axes=0)[: len(y)])


def _column(C: Floats) -> Floats | None:
    """Return the first column if C is Toeplitz, otherwise None."""
    T = C.shape[0]
    first = C[:, 0]
    if all(np.array_equal(C[t:, t], first[: T - t]) for t in range(T)):
        return first.copy()
    return None


def _walk(column: Floats, series: tuple[Floats, Floats] | None) -> tuple[float, float] | None:
    """Return decay and scale of one geometric series below a unit diagonal, which decays."""
    if series is not None:
        if len(series[0]) != 1:
            return None
        decay, scale = float(series[0][0]), float(series[1][0])
    else:
        scale = float(column[1])
        decay = float(column[2] / scale) if len(column) > 2 and scale else scale
        if decay == 0:
            return None  # Two bands have a window.
        decay = scale if math.isclose(decay, scale, rel_tol=1e-12) else decay
    if not (0 <= decay < 1 and scale >= 0):
        return None
    ideal = np.concatenate([[1.0], scale * decay ** np.arange(len(column) - 1)])
    return (decay, scale) if np.allclose(column, ideal, rtol=1e-12, atol=1e-14) else None


def _bands(column: Floats | None, dense: Floats | None) -> int:
    if column is not None:
        return int(np.flatnonzero(column)[-1]) + 1
    assert dense is not None
    rows, columns = np.nonzero(dense)
    return int((rows - columns).max()) + 1
