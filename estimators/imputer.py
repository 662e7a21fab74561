"""How are missing cells filled? By a private mean or median of their column, or a declared value.

>>> import numpy as np
>>> X = np.random.default_rng(0).normal(50.0, 5.0, size=(20_000, 2))
>>> X[::3, 1] = np.nan
>>> filled = SimpleImputer(bounds=(0.0, 100.0), epsilon=1.0).fit(X)
>>> filled.transform([[40.0, np.nan]]).round().tolist()
[[40.0, 50.0]]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpcal import _validate
from dpcal.accountants import events
from dpcal.estimators.base import PrivateEstimator, Table
from dpcal.estimators.bounds import ByCell, GaussianEstimator, scaled
from dpcal.estimators.queries import choices_query
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.optim.objectives.placed import as_they_are, by_row

__all__ = ["SimpleImputer"]

STRATEGIES = ("mean", "median", "constant")


@dataclass(kw_only=True, eq=False, repr=False)
class SimpleImputer(OneToOneFeatureMixin, TransformerMixin, ByCell, GaussianEstimator):  # type: ignore[misc]
    """Fill missing cells by a private mean or median of their column, or by a declared value.

    A record that is blank, so that nothing of it is known, stays so: filled, it would count as a
    record for the next step, and the claim would not hold. With ``missing_values=np.nan`` a record
    is blank that has no finite number at all. So a column that is imputed alone needs another mark
    for what is missing, such as -1.

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
        The number that marks a missing cell; then a record is blank that has a cell that is not a
        finite number. Or NaN: each such cell is missing.

    Attributes
    ----------
    statistics_
        Shape (n_features,), what missing cells are filled by; private.

    References
    ----------
    Smith 2011 (the exponential mechanism for a quantile).
    """

    strategy: str = "mean"
    fill_value: Any = 0.0
    missing_values: float = math.nan

    def _declare(self, columns: int) -> None:
        self.statistics_ = _declared(self.fill_value, columns)

    def _is_free(self) -> bool:
        return _validate.choice(STRATEGIES, strategy=self.strategy) == "constant"

    def _cost(self, epsilon: float, delta: float) -> events.DpEvent:
        if self.strategy == "mean":
            return super()._cost(epsilon, delta)
        return PrivateEstimator._cost(self, epsilon, delta)

    def _read(self, X: ArrayLike, *, reset: bool = True) -> Table:
        if not isinstance(self.missing_values, Real) or math.isinf(self.missing_values):
            raise ValueError(
                f"missing_values must be NaN or a finite number, got {self.missing_values!r}."
            )
        return super()._read(X, reset=reset)

    def _cells(self, X: Table) -> Table:
        cells: Table = by_row(partial(_counting, missing_values=self.missing_values), X)
        return cells

    def _learn(self, X: Table, *, first: bool) -> Self:
        n, d = X.shape
        low, high = self._ends(d)
        inside = by_row(partial(np.clip, a_min=low, a_max=high), self._cells(X))
        if self.strategy == "median":
            query = choices_query("medians", *self._target(), d)
            plan = self._plan(n, query)
            with self._asking(plan) as told:
                choices = told.choices(inside)
                found = [
                    choices.medians(column, ends, query.name)
                    for column, ends in enumerate(zip(low, high, strict=True))
                ]
                self.statistics_ = np.concatenate(found)
        else:
            middle, half = self._box(d)
            vectors = by_row(partial(_known_values, middle=middle, half=half), inside)
            means, noise = self._mean("means", math.sqrt(2 * d), as_they_are, 2 * d, vectors)
            # A share of known cells below its noise is replaced by that noise.
            shares = np.maximum(means[d:], noise / n)
            self.statistics_ = middle + half * np.clip(means[:d] / shares, -1.0, 1.0)
        return self

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike) -> Table:
        """Return records of shape (m, n_features) with missing cells filled; blank ones are NaN."""
        check_is_fitted(self)
        table = self._read(X, reset=False)
        cells = self._cells(table)
        filled = np.where(np.isnan(cells), self.statistics_, cells)
        return blanked(filled, ~_blank(table, self.missing_values), math.nan)


def _blank(X: Table, missing_values: float) -> NDArray[np.bool_]:
    """Return which records are blank, shape (n,)."""
    if math.isnan(missing_values):
        return np.asarray(np.isnan(X).all(axis=1))
    return ~finite_rows(X)


def _counting(X: Table, *, missing_values: float) -> Table:
    """Return records with NaN for cells that are missing, or of a blank record."""
    cells = np.where(missing_values == X, math.nan, X)
    return blanked(cells, ~_blank(X, missing_values), math.nan)


def _known_values(inside: Table, *, middle: Table, half: Table) -> Table:
    """Return known values scaled to [-1, 1], and 1 for each; 0 and 0 for missing cells."""
    known = np.isfinite(inside)
    return np.hstack([np.where(known, scaled(inside, middle, half), 0.0), known])


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
