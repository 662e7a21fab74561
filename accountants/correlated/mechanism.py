r"""What is released? Noise correlated by a matrix C, reduced to a scalar pair.

The rows of C G + Z are released one after another, with G the clipped contributions in units of the
clipping norm and Z Gaussian with standard deviation sigma. For lower-triangular C >= 0, leaving a
record's contributions out (zero-out) is dominated, also for adaptively chosen vectors, by

    P = sum_y s(y) N(C y, sigma^2 I)      against      Q = N(0, sigma^2 I),

with s the law of the record's participations (Choquette-Choo et al. 2024; Dong and Ganesh 2026).

>>> import numpy as np
>>> from types import SimpleNamespace
>>> C = np.array([[1.0, 0.0], [0.5, 1.0]])
>>> strategy = SimpleNamespace(steps=2, matrix=lambda: C, coefficients=None, bands=None, decay=0.5)
>>> mechanism = Mechanism.of(strategy, noise_multiplier=2.0)
>>> mechanism.kind, mechanism.sigma, round(mechanism.largest_column, 6)
('lambda-CGD', 2.0, 1.118034)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal._ext import correlated as kernels
from dpcal.errors import UnsupportedEvent

__all__ = ["KINDS", "WIDEST_BAND", "Mechanism"]

Floats = NDArray[np.float64]

KINDS = ("diagonal", "banded", "lambda-CGD", "BLT", "dense")

# The transfer matrix has 2^(bands - 1) states.
WIDEST_BAND = 12

# A grid of as many axes.
MOST_BUFFERS = 3


@dataclass(frozen=True, eq=False)
class Mechanism:
    """One run of correlated noise: its shape, and the standard deviation of Z.

    Attributes
    ----------
    kind
        ``"diagonal"``, ``"banded"``, ``"lambda-CGD"``, ``"BLT"`` or ``"dense"``.
    matrix
        C >= 0, lower triangular, of shape (steps, steps).
    sigma
        Standard deviation of the entries of Z, in units of the clipping norm: the noise multiplier.
    decay
        The ratio of each column, if ``C[t, u] = decay^(t - u)``, else None.
    bands
        Number of diagonals of C that are not zero.
    series
        For ``"BLT"``, decays and scales of at most three geometric series whose sum is the column
        of C below its diagonal: ``C[t + k, t] = sum_j scales[j] decays[j]^(k - 1)``.
    """

    kind: str
    matrix: Floats
    sigma: float
    decay: float | None
    bands: int
    series: tuple[Floats, Floats] | None = None

    @classmethod
    def of(cls, strategy: Any, *, noise_multiplier: float) -> Mechanism:
        """Read a strategy.

        Parameters
        ----------
        strategy
            Has ``steps``, ``matrix()`` (dense C), and possibly ``decay``, or ``decays`` and
            ``scales``, or ``inverse_bands`` and ``inverse_coefficients``.
        noise_multiplier
            sigma > 0, not divided by a norm of C.

        Raises
        ------
        UnsupportedEvent
            If C has signs that no diagonal change of signs removes.
        """
        sigma = _validate.noise(noise_multiplier=noise_multiplier)
        C = _nonnegative(np.asarray(strategy.matrix(), dtype=float), strategy.steps)
        bands = _bands(C)
        decay = getattr(strategy, "decay", None)
        decay = None if decay is None else abs(float(decay))
        if decay is not None and not _geometric(C, decay):
            raise ValueError(
                f"strategy.decay must be the ratio of every column of C, got {decay!r}."
            )
        series = None if decay is not None else _series(strategy, C)
        if series is not None and len(series[0]) == 1 and series[0][0] == series[1][0] > 0:
            decay, series = float(series[0][0]), None
        if bands == 1:
            kind, decay, series = "diagonal", None, None
        elif decay is not None:
            kind = "lambda-CGD"
        elif series is not None:
            kind = "BLT"
        else:
            kind = "banded" if bands <= WIDEST_BAND else "dense"
        return cls(kind, C, sigma, decay, bands, series)

    @property
    def steps(self) -> int:
        """Number of rounds."""
        return int(self.matrix.shape[0])

    @property
    def largest_column(self) -> float:
        """Largest norm of a column of C: sigma over it is what the literature often calls z."""
        return math.sqrt(float((self.matrix * self.matrix).sum(axis=0).max()))

    @property
    def variance(self) -> float:
        """sigma^2."""
        return self.sigma * self.sigma

    @cached_property
    def gram(self) -> Floats:
        """C^T C / sigma^2."""
        return np.ascontiguousarray(self.matrix.T @ self.matrix / self.variance)

    @cached_property
    def energies(self) -> Floats:
        """Squared norms of the columns of C, over sigma^2."""
        return np.ascontiguousarray((self.matrix * self.matrix).sum(axis=0) / self.variance)

    @cached_property
    def gram_bands(self) -> Floats:
        """Entries (t, t + k) of the Gram matrix for k < bands, of shape (steps, bands)."""
        T = self.steps
        out = np.zeros((T, self.bands))
        for k in range(self.bands):
            out[: T - k, k] = np.einsum("ij,ij->j", self.matrix[:, : T - k], self.matrix[:, k:])
        return out / self.variance

    @cached_property
    def couplings(self) -> Floats:
        """Products of later columns with each series, of shape (steps, buffers).

        With states ``w_j = sum_{t < u} y_t decays[j]^(u - t - 1)`` before round u, the overlap of
        column u with the columns of earlier participations is ``couplings[u] @ w`` times sigma^2.
        """
        if self.series is None:
            raise ValueError(f"mechanism must be of kind 'BLT', got {self.kind!r}.")
        decays, scales = self.series
        powers = decays ** np.arange(self.steps)[:, None]
        sums = np.cumsum(powers * self.matrix[:, :1], axis=0)[::-1]
        return np.ascontiguousarray(scales * sums / self.variance)

    def means(self, y: Floats) -> Floats:
        """C y, of the shape (steps, draws) of the participations."""
        if self.decay is None:
            return np.asarray(self.matrix @ y)
        out = y.copy()
        kernels.ar1_states(out, self.decay)
        return out

    def fields(self, x: Floats) -> Floats:
        """C^T x / sigma^2, of the shape (steps, draws) of the observations, which are consumed."""
        if self.decay is None:
            return np.ascontiguousarray(self.matrix.T @ x / self.variance)
        x = np.ascontiguousarray(x)
        kernels.ar1_fields(x, self.decay, self.variance)
        return x


def _nonnegative(C: Floats, steps: int) -> Floats:
    """C with the signs removed that flipping the sign of every second round removes."""
    if C.shape != (steps, steps):
        raise ValueError(f"strategy.matrix() must have shape ({steps}, {steps}), got {C.shape}.")
    if not np.isfinite(C).all() or np.triu(C, 1).any():
        raise ValueError("strategy.matrix() must be lower triangular with finite entries.")
    if not (np.diagonal(C) > 0).all():
        raise ValueError("strategy.matrix() must have a positive diagonal.")
    if (C >= 0).all():
        return np.ascontiguousarray(C)
    sign = (-1.0) ** np.arange(steps)
    flipped = C * sign[:, None] * sign
    if (flipped >= 0).all():
        # Contributions may change sign, and so may the noise.
        return np.ascontiguousarray(flipped)
    raise UnsupportedEvent(
        "C has entries of both signs, which no change of signs of its rounds removes: the scalar "
        "pair is proved to dominate for C >= 0 only. Use the sensitivity of C without sampling."
    )


def _series(strategy: Any, C: Floats) -> tuple[Floats, Floats] | None:
    """Decays and scales of the few geometric series that the columns of C are made of, or None."""
    decays, scales = getattr(strategy, "decays", None), getattr(strategy, "scales", None)
    few = getattr(strategy, "inverse_bands", None)
    if decays is not None and scales is not None:
        decays = np.asarray(decays, dtype=float)
        distinct, place = np.unique(decays, return_inverse=True)
        sums = np.bincount(place, weights=np.asarray(scales, dtype=float))
        found = distinct[sums != 0], sums[sums != 0]
    elif few is not None and 2 <= few <= MOST_BUFFERS + 1:
        # 1 / C(x) = prod_j (1 - decays[j] x), in partial fractions.
        roots = np.roots(np.asarray(strategy.inverse_coefficients, dtype=float)[:few])
        if np.iscomplex(roots).any() or len(np.unique(roots)) < len(roots):
            return None
        gaps = np.subtract.outer(roots, roots) + np.eye(len(roots))
        found = roots.real, (roots ** len(roots) / gaps.prod(axis=1)).real
    else:
        return None
    if not 1 <= len(found[0]) <= MOST_BUFFERS or not _is_sum_of(C, *found):
        return None
    return found


def _is_sum_of(C: Floats, decays: Floats, scales: Floats) -> bool:
    """Whether C is Toeplitz, with a unit diagonal and these geometric series below."""
    T = C.shape[0]
    column = np.concatenate([[1.0], (decays ** np.arange(T - 1)[:, None]) @ scales])
    lag = np.subtract.outer(np.arange(T), np.arange(T))
    ideal = np.where(lag >= 0, column[np.maximum(lag, 0)], 0.0)
    return bool(np.allclose(C, ideal, rtol=1e-12, atol=1e-14))


def _bands(C: Floats) -> int:
    rows, columns = np.nonzero(C)
    return int((rows - columns).max()) + 1


def _geometric(C: Floats, decay: float) -> bool:
    T = C.shape[0]
    lag = np.subtract.outer(np.arange(T), np.arange(T))
    ideal = np.where(lag >= 0, decay ** np.maximum(lag, 0).astype(float), 0.0)
    return bool(decay < 1 and np.allclose(C, ideal, rtol=1e-12, atol=1e-300))
