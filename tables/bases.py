"""Basis functions of a curve. The functions are fixed, so that they cost no privacy.

Every basis has a norm that is known without a look at the records.

>>> hats(np.array([0.0, 0.25, 1.0]), 3).tolist()
[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
>>> bins(np.array([0.0, 0.5, 1.0]), 2).tolist()
[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
>>> (waves(np.array([[0.3, -1.0], [0.0, 0.0]]), 4) ** 2).sum(axis=1).round(12).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


def bins_of(places: Table, count: int) -> NDArray[np.intp]:
    """Return the number of the bin of each place in [0, 1], and 0 for NaN."""
    held = np.nan_to_num(np.clip(places, 0.0, 1.0))
    return np.minimum((held * count).astype(np.intp), count - 1)


def bins(places: Table, count: int) -> Table:
    """Return which of equal bins of [0, 1] holds a place, shape (m, count); each row has norm 1.

    A place that is NaN has a row of NaN, here and in :func:`hats`.
    """
    found = np.eye(count)[bins_of(places, count)]
    found[np.isnan(places)] = np.nan
    return found


def hats(places: Table, count: int) -> Table:
    """Return linear splines at equally spaced knots of [0, 1], shape (m, count).

    Each is 1 at its knot and falls to 0 at both neighbours. A row adds up to 1, so that its norm is
    in [1/sqrt(2), 1].
    """
    position = np.clip(places, 0.0, 1.0) * (count - 1)
    return np.asarray(np.maximum(1.0 - np.abs(position[:, np.newaxis] - np.arange(count)), 0.0))


def waves(X: Table, count: int, *, gamma: float = 1.0, seed: int = 0) -> Table:
    """Return random Fourier features of the kernel ``exp(-gamma ||x - y||^2)``.

    Parameters
    ----------
    X
        Shape (m, d).
    count
        Number >= 1 of waves; each has a cosine and a sine.
    gamma
        Inverse squared width > 0 of the kernel.
    seed
        Public: it decides which features there are. Its numbers are the same in every version of
        NumPy.

    Returns
    -------
    numpy.ndarray
        Shape (m, 2 count), the cosines first; each row has norm 1.

    References
    ----------
    Rahimi and Recht 2007, Random features for large-scale kernel machines, Section 3.
    """
    drawn = np.random.RandomState(seed).standard_normal((X.shape[1], count))
    drawn *= math.sqrt(2 * gamma)
    # Column by column: rounding of a matrix product depends on its number of rows.
    angles = np.zeros((len(X), count))
    for column, row in zip(X.T, drawn, strict=True):
        angles += column[:, np.newaxis] * row
    return np.asarray(np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(count))
