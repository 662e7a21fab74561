"""Which directions hold most of the variance? Principal components of a noisy covariance.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1, 1, (5_000, 1)) * [0.6, 0.8, 0.0] + rng.uniform(-0.1, 0.1, (5_000, 3))
>>> model = PCA(n_components=1, bounds=(-1, 1), epsilon=1.0).fit(X)
>>> np.abs(model.components_).round(1).tolist()
[[0.6, 0.8, 0.0]]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from dpcal import _validate
from dpcal.estimators.base import Table
from dpcal.estimators.bounds import BoundedEstimator, Transformer
from dpcal.estimators.queries import Pairs
from dpcal.estimators.reading import real_cells
from dpcal.optim.objectives.arrays import row_norms, shrink_factors
from dpcal.optim.objectives.placed import by_row

__all__ = ["PCA"]


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, Transformer, BoundedEstimator):  # type: ignore[misc]
    """Principal components by the Gaussian mechanism on the covariance.

    One noisy sum of records and of their products is all that is released ("Analyze Gauss"); means,
    covariance and components are functions of it.

    Parameters
    ----------
    n_components
        Number of components, at least 1; as many as there are columns when omitted.
    row_norm
        Bound > 0 on the L2 norm of a record's distance from the middle of its bounds; longer ones
        are shortened. When omitted, half of the diagonal of the bounds, which shortens none.

    Attributes
    ----------
    components_
        Shape (n_components, n_features), orthonormal.
    mean_
        Shape (n_features,).
    explained_variance_, explained_variance_ratio_
        Shape (n_components,): eigenvalues of the noisy covariance, at least 0, and their shares.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang 2014, Analyze Gauss, Algorithm 1; with means, in one release.
    """

    n_components: int | None = field(default=None, kw_only=False)
    row_norm: float | None = None

    def _learn(self, X: Table, *, first: bool) -> Self:
        d = X.shape[1]
        low, high = self._ends(d)
        count = d if self.n_components is None else self.n_components
        if _validate.count(n_components=count) > d:
            raise ValueError(f"n_components must be at most n_features={d}, got {count}.")
        middle, half = (low + high) / 2, (high - low) / 2
        norm = float(np.linalg.norm(half)) if self.row_norm is None else self.row_norm
        norm = _validate.positive(row_norm=norm)
        rows = by_row(partial(_within, low=low, high=high, norm=norm), X)
        pairs = Pairs(d)
        vectors = partial(_products, pairs=pairs)
        mean, _ = self._mean("moments", math.sqrt(2), vectors, pairs.count + d, rows)
        second, center = pairs.matrix(mean), mean[pairs.count :]
        values, directions = np.linalg.eigh(second - np.outer(center, center))
        order = np.argsort(values)[::-1]
        variances = np.maximum(values[order], 0.0) * norm**2
        self.mean_ = middle + norm * center
        self.components_ = _signed(directions[:, order[:count]].T)
        self.n_components_ = self._n_features_out = count
        self.explained_variance_ = variances[:count]
        self.explained_variance_ratio_ = variances[:count] / max(variances.sum(), 1e-300)
        return self

    def _transformed(self, X: Table) -> Table:
        coordinates: Table = (X - self.mean_) @ self.components_.T
        return coordinates

    def inverse_transform(self, X: ArrayLike) -> Table:
        """Return the records that have such coordinates, shape (m, n_features)."""
        check_is_fitted(self)
        found: Table = real_cells(X) @ self.components_ + self.mean_
        return found


def _within(X: Table, *, low: Table, high: Table, norm: float) -> Table:
    """Return distances from the middle of bounds, cut at a norm, in units of it."""
    rows = np.clip(X, low, high) - (low + high) / 2
    found: Table = rows * shrink_factors(row_norms(rows), norm)[:, np.newaxis] / norm
    return found


def _products(w: Table, some: Table, *, pairs: Pairs) -> Table:
    """Return products of the entries of rows, one of each pair, and the rows."""
    return np.hstack([pairs.products(some), some])


def _signed(components: Table) -> Table:
    """Return components whose entry of the largest size is positive."""
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    signed: Table = components * signs[:, np.newaxis]
    return signed
