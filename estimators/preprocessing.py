"""How are columns filled, clipped, scaled and turned? By private moments and quantiles in bounds.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(50.0, 5.0, size=(20_000, 2))
>>> scaler = StandardScaler(bounds=(0.0, 100.0), epsilon=1.0).fit(X)
>>> scaler.mean_.round().tolist(), scaler.scale_.round().tolist()
([50.0, 50.0], [5.0, 5.0])
>>> X[::3, 1] = np.nan
>>> filled = SimpleImputer(bounds=(0.0, 100.0), epsilon=1.0).fit(X)
>>> filled.transform([[40.0, np.nan]]).round().tolist()
[[40.0, 50.0]]
>>> flat = np.random.default_rng(0).uniform(-1, 1, (5_000, 1)) * [0.6, 0.8, 0.0]
>>> np.abs(PCA(n_components=1, bounds=(-1, 1)).fit(flat).components_).round(1).tolist()
[[0.6, 0.8, 0.0]]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from dpcal._internal import validate
from dpcal.estimators.base import Table
from dpcal.estimators.bounds import BoundedEstimator, Transformer, bounded, scaled
from dpcal.estimators.queries import Pairs, choices_query
from dpcal.estimators.reading import numbers_in, real_cells
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.objectives.arrays import row_norms, shrink_factors
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.optim.objectives.placed import as_they_are, by_row

STRATEGIES = ("mean", "median", "constant")


class ByColumn(OneToOneFeatureMixin, Transformer, BoundedEstimator):  # type: ignore[misc]
    """An estimator that transforms each column by itself, within its bounds."""

    @contextmanager
    def _choosing(
        self, X: Any, name: str, *, answers: int, max_norm: float = 0.5
    ) -> Iterator[tuple[PrivateChoices, Table]]:
        """Choose among numbers of each column, in so many answers about records in their bounds.

        Also yields the bounds of each column, shape (n_features, 2).
        """
        low, high = self._ends(X.shape[1])
        query = choices_query(name, *self._target(), answers, max_norm)
        inside = by_row(lambda rows: np.clip(rows, low, high), X)
        with self._asking(self._plan(len(X), query)) as told:
            yield told.choices(inside), np.column_stack([low, high])


@dataclass(kw_only=True, eq=False, repr=False)
class StandardScaler(ByColumn):
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
        inside = by_row(lambda rows: scaled(rows, middle, half), X)
        vectors = by_row(lambda u: np.hstack([u, u**2 - 0.5]), inside)
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

    def _transformed(self, X: Table) -> Table:
        centred = X - (self.mean_ if self.with_mean else 0.0)
        return centred / (self.scale_ if self.with_std else 1.0)

    @np.errstate(all="ignore")
    def inverse_transform(self, X: ArrayLike) -> Table:
        """Return records of shape (m, n_features) as they were before they were scaled."""
        check_is_fitted(self)
        spread = self._read(X, reset=False) * (self.scale_ if self.with_std else 1.0)
        return spread + (self.mean_ if self.with_mean else 0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class SimpleImputer(ByColumn):
    """Fill missing cells by a private mean or median of their column, or by a declared value.

    A record that is ignored, with no known cell, stays so: filled, it would count as a record for
    the next step, and the claim would not hold. With ``missing_values=np.nan`` a record with no
    finite number at all is ignored. So a column that is imputed on its own needs another mark for a
    missing cell, such as -1.

    For the mean, with u the value scaled to [-1, 1] by its column's bounds, each record gives the
    vector of all u, and of 1 for each known cell; missing cells give 0 and 0. Its norm is
    ``sqrt(2 d)`` at most. One noisy sum of it is all that is released, and the mean is the ratio of
    both. A median is drawn by the exponential mechanism, one answer for each column.

    Parameters
    ----------
    strategy
        ``"mean"``, ``"median"`` or ``"constant"``. The last one learns nothing: it needs no bounds,
        costs nothing, and has no share in a budget.
    fill_value
        For ``"constant"``: a finite number, or an array of shape (n_features,).
    missing_values
        The number that marks a missing cell; then a record with a cell that is not a finite number
        is ignored. Or NaN: each such cell is missing.

    Attributes
    ----------
    statistics_
        Shape (n_features,), the values that fill missing cells; private.

    References
    ----------
    Smith 2011 (the exponential mechanism for a quantile).
    """

    strategy: str = "mean"
    fill_value: Any = 0.0
    missing_values: float = math.nan

    _numbers_of = staticmethod(numbers_in)

    def _declare(self, X: Table) -> None:
        self.statistics_ = _declared(self.fill_value, X.shape[1])

    def _is_free(self) -> bool:
        return validate.choice(STRATEGIES, strategy=self.strategy) == "constant"

    def _is_gaussian(self) -> bool:
        return self.strategy == "mean" and super()._is_gaussian()

    def _read(self, X: ArrayLike, *, reset: bool = True) -> Table:
        if not isinstance(self.missing_values, Real) or math.isinf(self.missing_values):
            raise ValueError(
                f"missing_values must be NaN or a finite number, got {self.missing_values!r}."
            )
        return super()._read(X, reset=reset)

    def _cells(self, X: Table) -> Table:
        mark = self.missing_values

        def counting(rows: Table) -> Table:
            cells = np.where(mark == rows, math.nan, rows)
            return blanked(cells, _known(rows, mark), math.nan)

        cells: Table = by_row(counting, X)
        return cells

    def _learn(self, X: Table, *, first: bool) -> Self:
        n, d = X.shape
        cells = self._cells(X)
        if self.strategy == "median":
            with self._choosing(cells, "medians", answers=d) as (choices, ends):
                found = [choices.quantiles(j, ends[j], "medians") for j in range(d)]
            self.statistics_ = np.concatenate(found)
            return self
        middle, half = self._box(d)

        def known_values(rows: Table) -> Table:
            known = np.isfinite(rows)
            return np.hstack([np.where(known, scaled(rows, middle, half), 0.0), known])

        vectors = by_row(known_values, cells)
        means, noise = self._mean("means", math.sqrt(2 * d), as_they_are, 2 * d, vectors)
        shares = np.maximum(means[d:], noise / n)
        self.statistics_ = middle + half * np.clip(means[:d] / shares, -1.0, 1.0)
        return self

    def _transformed(self, X: Table) -> Table:
        cells = self._cells(X)
        filled = np.where(np.isnan(cells), self.statistics_, cells)
        return blanked(filled, _known(X, self.missing_values), math.nan)


def _known(X: Table, missing_values: float) -> NDArray[np.bool_]:
    """Return which records are not ignored, shape (n,)."""
    if math.isnan(missing_values):
        return np.asarray(~np.isnan(X).all(axis=1))
    return finite_rows(X)


def _declared(fill_value: Any, columns: int) -> Table:
    """Return a finite number for each column."""
    try:
        found = np.broadcast_to(np.asarray(fill_value, dtype=np.float64), (columns,)).copy()
    except (TypeError, ValueError):
        found = np.array([math.nan])
    if not np.isfinite(found).all():
        raise ValueError(
            f"fill_value must be a finite number or an array of them, of shape ({columns},), got "
            f"{fill_value!r}."
        )
    return found


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileTransformer(ByColumn):
    """Map each column to its rank among private quantiles.

    Quantiles are found over a tree: the exponential mechanism draws the median of a column, then
    the medians of both halves, and so on. The halves of a level share no record, so that a level
    costs one answer; all answers together are calibrated to (epsilon, delta). Bounds may be wide:
    epsilon depends on the logarithm of their width.

    Parameters
    ----------
    n_quantiles
        Number of quantiles between the bounds, 2^k - 1 with k >= 1.

    Attributes
    ----------
    quantiles_
        Shape (n_quantiles + 2, n_features), bounds included, nondecreasing in each column.
    references_
        Shape (n_quantiles + 2,), the ranks of the quantiles.

    References
    ----------
    Smith 2011 (the exponential mechanism for a quantile); Kaplan, Schnapp and Stemmer 2022,
    Differentially private approximate quantiles, Algorithm 1.

    >>> X = np.random.default_rng(0).exponential(size=(5_000, 1))
    >>> flat = QuantileTransformer(bounds=(0.0, 50.0), n_quantiles=15, epsilon=1.0).fit(X)
    >>> flat.transform([[0.0], [np.log(2)], [50.0]]).round(1).ravel().tolist()
    [0.0, 0.5, 1.0]
    """

    n_quantiles: int = 15

    def _is_gaussian(self) -> bool:
        return False

    def _learn(self, X: Table, *, first: bool) -> Self:
        d = X.shape[1]
        levels = (validate.count(n_quantiles=self.n_quantiles) + 1).bit_length() - 1
        if 2**levels - 1 != self.n_quantiles:
            raise ValueError(f"n_quantiles must be 2^k - 1 with k >= 1, got {self.n_quantiles!r}.")
        columns = []
        with self._choosing(X, "medians", answers=levels * d) as (choices, ends):
            for column, cuts in enumerate(ends):
                for _ in range(levels):
                    middles = choices.quantiles(column, cuts, "medians")
                    cuts = np.sort(np.concatenate([cuts, middles]))
                columns.append(cuts)
        self.quantiles_ = np.column_stack(columns)
        self.references_ = np.linspace(0.0, 1.0, self.n_quantiles + 2)
        return self

    def _transformed(self, X: Table) -> Table:
        pairs = zip(X.T, self.quantiles_.T, strict=True)
        return np.column_stack([np.interp(x, cuts, self.references_) for x, cuts in pairs])


@dataclass(kw_only=True, eq=False, repr=False)
class Clipper(ByColumn):
    """Move values outside of a column's private quantiles, or its declared bounds, to their ends.

    Each quantile is drawn by the exponential mechanism within the bounds, two answers for each
    column; all answers together are calibrated to (epsilon, delta). A cell that is not a finite
    number stays NaN.

    Parameters
    ----------
    quantiles
        A pair of shares 0 < low < high < 1. Or None: values are clipped to the declared bounds.
        Nothing is learned then, a fit costs nothing, and it has no share in a budget.

    Attributes
    ----------
    quantiles_
        Shape (2, n_features), where values are clipped.

    References
    ----------
    Smith 2011 (the exponential mechanism for a quantile).

    >>> X = np.random.default_rng(0).exponential(size=(5_000, 1))
    >>> clipper = Clipper(bounds=(0.0, 50.0), quantiles=(0.1, 0.9), epsilon=1.0).fit(X)
    >>> clipper.transform([[0.0], [1.0], [9.0]]).round(1).ravel().tolist()
    [0.1, 1.0, 2.3]
    """

    quantiles: tuple[float, float] | None = (0.05, 0.95)

    _numbers_of = staticmethod(numbers_in)

    def _declare(self, X: Table) -> None:
        if isinstance(self.bounds, str):
            raise ValueError(
                f"bounds must be a pair (low, high) where quantiles=None, got {self.bounds!r}."
            )
        self.quantiles_ = np.array(bounded("bounds", self.bounds, X.shape[1]))

    def _is_free(self) -> bool:
        return self.quantiles is None

    def _is_gaussian(self) -> bool:
        return False

    def _learn(self, X: Table, *, first: bool) -> Self:
        d, shares = X.shape[1], _pair(self.quantiles)
        asked = self._choosing(X, "quantiles", answers=2 * d, max_norm=1.0)
        with asked as (choices, ends):
            found = [
                [choices.quantiles(j, ends[j], "quantiles", share)[0] for share in shares]
                for j in range(d)
            ]
        self.quantiles_ = np.sort(np.transpose(found), axis=0)
        return self

    def _transformed(self, X: Table) -> Table:
        return np.clip(X, *self.quantiles_)


def _pair(quantiles: Any) -> tuple[float, float]:
    """Return two shares 0 < low < high < 1."""
    try:
        low, high = (float(each) for each in quantiles)
    except (TypeError, ValueError):
        low = high = 0.0
    if not 0 < low < high < 1:
        raise ValueError(
            f"quantiles must be a pair of shares 0 < low < high < 1, or None, got {quantiles!r}."
        )
    return low, high


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
        if validate.count(n_components=count) > d:
            raise ValueError(f"n_components must be at most n_features={d}, got {count}.")
        middle, half = self._box(d)
        norm = float(np.linalg.norm(half)) if self.row_norm is None else self.row_norm
        norm = validate.positive(row_norm=norm)

        def within(rows: Table) -> Table:
            away = np.clip(rows, low, high) - middle
            cut: Table = away * shrink_factors(row_norms(away), norm)[:, np.newaxis] / norm
            return cut

        def vectors(w: Table, some: Table) -> Table:
            return np.hstack([pairs.products(some), some])

        pairs, rows = Pairs(d), by_row(within, X)
        mean, _ = self._mean("moments", math.sqrt(2), vectors, pairs.count + d, rows)
        second, center = pairs.matrix(mean), mean[pairs.count :]
        values, directions = np.linalg.eigh(second - np.outer(center, center))
        order = np.argsort(values)[::-1]
        variances = np.maximum(values[order], 0.0) * norm**2
        self.mean_ = middle + norm * center
        _, self.components_ = svd_flip(None, directions[:, order[:count]].T, u_based_decision=False)
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
