"""How are columns brought to mean 0 and variance 1? By private moments, within declared bounds.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(50.0, 5.0, size=(20_000, 2))
>>> scaler = StandardScaler(bounds=(0.0, 100.0), epsilon=1.0).fit(X)
>>> scaler.mean_.round().tolist(), scaler.scale_.round().tolist()
([50.0, 50.0], [5.0, 5.0])
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpcal.estimators.base import Table
from dpcal.estimators.bounds import GaussianEstimator, Unsupervised, scaled
from dpcal.optim.objectives.placed import as_they_are, by_row

__all__ = ["StandardScaler"]


@dataclass(kw_only=True, eq=False, repr=False)
class StandardScaler(OneToOneFeatureMixin, TransformerMixin, Unsupervised, GaussianEstimator):  # type: ignore[misc]
    """Standardise columns by means and variances that are released with noise.

    With u the value scaled to [-1, 1] by its column's bounds, each record gives the vector of all u
    and ``u^2 - 1/2``, of norm ``sqrt(5 d / 4)`` at most. One noisy sum of it is all that is
    released. A variance below its own noise is replaced by that noise.

    Parameters
    ----------
    with_mean, with_std
        Whether columns are centred, and whether they are scaled.

    Attributes
    ----------
    mean_, var_, scale_
        Shape (n_features,), private.
    n_samples_seen_
        Number of records.

    Notes
    -----
    ``partial_fit`` averages the moments of its batches; each call costs (epsilon, delta), and all
    calls are composed as if they were about the same records.
    """

    n_samples_seen_: int = field(init=False)
    _moments: Table = field(init=False)

    with_mean: bool = True
    with_std: bool = True

    @np.errstate(all="ignore")
    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Add the moments of further records, shape (n, n_features); costs a fit."""
        first = not hasattr(self, "mean_")
        return self._learn(self._read(X, reset=first), first=first)

    def _learn(self, X: Table, *, first: bool) -> Self:
        n, d = X.shape
        middle, half = self._box(d)
        vectors = by_row(partial(_moments, middle=middle, half=half), X)
        moments, noise = self._mean(
            "moments", math.sqrt(1.25 * d), as_they_are, 2 * d, vectors, first=first
        )
        seen = 0 if first else self.n_samples_seen_
        if seen:
            moments = (seen * self._moments + n * moments) / (seen + n)
        self._moments, self.n_samples_seen_ = moments, seen + n
        center = np.clip(moments[:d], -1.0, 1.0)
        least = min(noise / (seen + n), 1.0)
        spread = np.clip(moments[d:] + 0.5 - center**2, max(least, 1e-12), 1.0)
        self.mean_ = middle + half * center
        self.var_ = half**2 * spread
        self.scale_ = np.sqrt(self.var_)
        return self

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike) -> Table:
        """Return records of shape (m, n_features), centred and scaled."""
        check_is_fitted(self)
        X = np.array(self._read(X, reset=False))
        X -= self.mean_ if self.with_mean else 0.0
        X /= self.scale_ if self.with_std else 1.0
        return X

    def inverse_transform(self, X: ArrayLike) -> Table:
        """Return records of shape (m, n_features) as they were before they were scaled."""
        check_is_fitted(self)
        X = np.array(self._read(X, reset=False))
        X *= self.scale_ if self.with_std else 1.0
        X += self.mean_ if self.with_mean else 0.0
        return X


def _moments(X: Table, *, middle: Table, half: Table) -> Table:
    """Return values scaled to [-1, 1], and their squares minus 1/2."""
    inside = scaled(X, middle, half)
    return np.hstack([inside, inside**2 - 0.5])
