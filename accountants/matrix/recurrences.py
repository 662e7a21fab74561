"""How is the next row of C^-1 z computed? Recurrences that keep a few rows, never the matrix.

A recurrence reads the rows of z in turn and writes the rows of C^-1 z. The ``slots`` rows that it
keeps are the memory of the noise.

>>> import numpy as np
>>> recurrence = Filter(3, weights=np.array([1.0, -0.5]))    # lambda-CGD: z_t - z_{t-1} / 2
>>> recurrence.solve(np.eye(3)).tolist()
[[1.0, 0.0, 0.0], [-0.5, 1.0, 0.0], [0.0, -0.5, 1.0]]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.streams import FRESH, OWN, RESULT, convolve, leak, mix

Array = NDArray[np.float64]

_NOTHING = np.zeros(0)

# Kept rows from which on one reading for four steps is faster than one for each step.
_MANY = 6
_SHORT = 5000
WIDE = 4096


def inverse_series(coefficients: Array, count: int, *, fast: bool = False) -> Array:
    """Return the first coefficients of 1 / p(x), shape (count,), of a series p with p(0) != 0.

    With ``fast``, many coefficients are divided by transforms; their errors are relative to the
    largest one.

    >>> inverse_series(np.array([1.0, -0.5]), 3).tolist()
    [1.0, 0.5, 0.25]
    """
    series, left = np.zeros(count), np.zeros(len(coefficients) + 1)
    if count > _SHORT:
        from scipy.signal import fftconvolve, lfilter

        if fast and len(coefficients) > WIDE:
            found = np.array([1.0 / coefficients[0]])
            while len(found) < count:  # Newton's steps double the number of correct ones.
                n = min(count, 2 * len(found))
                left = -fftconvolve(coefficients[:n], found)[:n]
                left[0] += 2.0
                found = fftconvolve(found, left)[:n]
            return found
        series[0] = 1.0
        return np.asarray(lfilter([1.0], coefficients, series))
    # As in scipy.signal.lfiltic; that module takes half a second to load.
    left[0], feedback = 1.0 / coefficients[0], np.append(coefficients[1:], 0.0) / coefficients[0]
    for k in range(count):
        series[k] = left[0]
        left[:-1] = left[1:] - feedback * series[k]
    return series


class Recurrence(ABC):
    """State of a stream of rows of length ``dimension``.

    Parameters
    ----------
    dimension
        Length of a row.
    slots
        Number of kept rows.

    Attributes
    ----------
    buffers
        The kept rows, shape (slots, dimension).
    """

    reach: int | None = None
    """Number of earlier rows of z that the next row depends on; None for all of them."""

    def __init__(self, dimension: int, slots: int) -> None:
        self.buffers = np.zeros((slots, dimension))

    @abstractmethod
    def apply(self, step: int, z: Array, out: Array, start: int) -> None:
        """Write columns ``start`` and following of row ``step`` into ``out``.

        Parameters
        ----------
        step
            From 0; steps are in order, and all columns of a step are written once.
        z
            Columns of row ``step`` of z.
        out
            Array of the same shape for the result; it may be z itself.
        start
            First column.
        """

    def solve(self, z: Array) -> Array:
        """Return C^-1 z for all rows of z at once, shape (steps, dimension)."""
        out = np.empty_like(z)
        for step, row in enumerate(z):
            self.apply(step, row, out[step], 0)
        return out


class _Convolution(Recurrence):
    """y_t = scale z_t + sum_{k>0} weights[k - 1] x_{t-k}, where x is z or y; rows of x are kept."""

    _keeps: int

    def __init__(self, dimension: int, scale: float, weights: Array) -> None:
        super().__init__(dimension, len(weights))
        self._scale, self._weights = scale, weights
        self._block = 4 if len(weights) >= _MANY else 1

    def apply(self, step: int, z: Array, out: Array, start: int) -> None:
        kept, block = self.buffers, self._block
        convolve(z, out, kept, start, self._scale, self._weights, step, block, self._keeps)


class Filter(_Convolution):
    """y_t = sum_k weights[k] z_{t-k}: C^-1 is Toeplitz with few bands, and rows of z are kept."""

    _keeps = FRESH

    def __init__(self, dimension: int, weights: Array) -> None:
        self.reach = len(weights) - 1
        super().__init__(dimension, float(weights[0]), np.ascontiguousarray(weights[1:]))


class Feedback(_Convolution):
    """y_t = (z_t - sum_{k>0} coefficients[k] y_{t-k}) / coefficients[0]: C has few bands."""

    _keeps = RESULT

    def __init__(self, dimension: int, coefficients: Array) -> None:
        super().__init__(dimension, 1.0 / coefficients[0], -coefficients[1:] / coefficients[0])


class Buffers(Recurrence):
    """The inverse of a buffered linear Toeplitz matrix, from its own buffers.

    With C y = z and c_k = sum_j scales[j] decays[j]^(k-1), row t of z is y_t + sum_j scales[j] s_j
    where s_j = sum_{k>0} decays[j]^(k-1) y_{t-k} (McMahan and Pillutla 2025).
    """

    def __init__(self, dimension: int, scales: Array, decays: Array) -> None:
        super().__init__(dimension, len(scales))
        self._scales, self._decays = scales, decays

    def apply(self, step: int, z: Array, out: Array, start: int) -> None:
        """Subtract the buffers from z, then update them with their decays and the result."""
        leak(z, out, self.buffers, start, self._scales, self._decays)


class TreeNodes(Recurrence):
    """Differences of prefix sums from a binary tree: one open node for each level is kept.

    At step t (from 1), which ends a node of level k (2^k divides t, 2^(k+1) does not), the new
    node's error is e = spread[k] z + sum_{j<k} pull[k, j] e_j over the closed nodes to its left,
    and the row is e - sum_{j<k} e_j.
    """

    def __init__(self, dimension: int, spread: Array, pull: Array) -> None:
        super().__init__(dimension, len(spread))
        self._spread, self._pull = spread, pull

    def apply(self, step: int, z: Array, out: Array, start: int) -> None:
        """Write the row of a step, and close the nodes that end there."""
        count = step + 1
        level = (count & -count).bit_length() - 1
        pull = np.ascontiguousarray(self._pull[level, :level])
        spread = self._spread[level]
        rows = np.arange(level)
        mix(z, out, self.buffers, start, spread, pull - 1.0, rows, level, OWN, spread, pull)


class Rows(Recurrence):
    """y_t = sum_{u<=t} weights(t)[u] z_u for any lower-triangular matrix: all rows are kept.

    Parameters
    ----------
    dimension
        Length of a row.
    steps
        Number of rows.
    weights
        Maps t to row t of C^-1, shape (t + 1,).
    """

    def __init__(self, dimension: int, steps: int, weights: Callable[[int], Array]) -> None:
        super().__init__(dimension, steps - 1)
        self._steps, self._weights_of = steps, weights

    def apply(self, step: int, z: Array, out: Array, start: int) -> None:
        """Write the weighted sum of z and all earlier rows."""
        weights = self._weights_of(step)
        rows = np.flatnonzero(weights[:step])
        slot = step if step < len(self.buffers) else -1
        scale, terms = float(weights[step]), np.ascontiguousarray(weights[rows])
        mix(z, out, self.buffers, start, scale, terms, rows, slot, FRESH, 0.0, _NOTHING)
