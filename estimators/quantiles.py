"""How are columns brought to a uniform law, or clipped? By private quantiles.

>>> import numpy as np
>>> X = np.random.default_rng(0).exponential(size=(5_000, 1))
>>> flat = QuantileTransformer(bounds=(0.0, 50.0), n_quantiles=15, epsilon=1.0).fit(X)
>>> flat.transform([[0.0], [np.log(2)], [50.0]]).round(1).ravel().tolist()
[0.0, 0.5, 1.0]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpcal import _validate
from dpcal.estimators.base import Table
from dpcal.estimators.bounds import ByCell, Unsupervised, bounded
from dpcal.estimators.queries import choices_query
from dpcal.optim.objectives.placed import by_row

__all__ = ["Clipper", "QuantileTransformer"]

LAWS = ("uniform", "normal")

# Ranks of the normal law end here, as scikit-learn's do: beyond, scores would be infinite.
_END = 1e-7


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileTransformer(OneToOneFeatureMixin, TransformerMixin, Unsupervised):  # type: ignore[misc]
    """Map each column to its rank among private quantiles.

    Quantiles are found over a tree: the exponential mechanism draws the median of a column, then
    the medians of both halves, and so on. The halves of a level share no record, so that a level
    costs one answer; all answers together are calibrated to (epsilon, delta). Bounds may be wide:
    the price is in the logarithm of their width.

    Parameters
    ----------
    n_quantiles
        Number of quantiles between the bounds, 2^k - 1 with k >= 1.
    output_distribution
        ``"uniform"`` on [0, 1], or ``"normal"``.

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
    """

    n_quantiles: int = 15
    output_distribution: str = "uniform"

    def _learn(self, X: Table, *, first: bool) -> Self:
        n, d = X.shape
        low, high = self._ends(d)
        _validate.choice(LAWS, output_distribution=self.output_distribution)
        levels = (_validate.count(n_quantiles=self.n_quantiles) + 1).bit_length() - 1
        if 2**levels - 1 != self.n_quantiles:
            raise ValueError(f"n_quantiles must be 2^k - 1 with k >= 1, got {self.n_quantiles!r}.")
        query = choices_query("medians", *self._target(), levels * d)
        plan = self._plan(n, query)
        inside = by_row(partial(np.clip, a_min=low, a_max=high), X)
        with self._asking(plan) as told:
            choices, columns = told.choices(inside), []
            for column in range(d):
                cuts = np.array([low[column], high[column]])
                for _ in range(levels):
                    middles = choices.medians(column, cuts, query.name)
                    cuts = np.sort(np.concatenate([cuts, middles]))
                columns.append(cuts)
            self.quantiles_ = np.column_stack(columns)
        self.references_ = np.linspace(0.0, 1.0, self.n_quantiles + 2)
        return self

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike) -> Table:
        """Return the ranks of records of shape (m, n_features), or their normal scores."""
        check_is_fitted(self)
        table: Table = self._read(X, reset=False)
        ranks = np.column_stack(
            [
                np.interp(table[:, j], self.quantiles_[:, j], self.references_)
                for j in range(table.shape[1])
            ]
        )
        if self.output_distribution == "normal":
            ranks = ndtri(np.clip(ranks, _END, 1 - _END))
        return ranks


@dataclass(kw_only=True, eq=False, repr=False)
class Clipper(OneToOneFeatureMixin, TransformerMixin, ByCell):  # type: ignore[misc]
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

    def _declare(self, columns: int) -> None:
        if isinstance(self.bounds, str):
            raise ValueError(
                f"bounds must be a pair (low, high) where quantiles=None, got {self.bounds!r}."
            )
        self.quantiles_ = np.array(bounded("bounds", self.bounds, columns))

    def _is_free(self) -> bool:
        return self.quantiles is None

    def _learn(self, X: Table, *, first: bool) -> Self:
        n, d = X.shape
        low, high = self._ends(d)
        shares = _pair(self.quantiles)
        query = choices_query("quantiles", *self._target(), 2 * d, max_norm=1.0)
        plan = self._plan(n, query)
        inside = by_row(partial(np.clip, a_min=low, a_max=high), X)
        with self._asking(plan) as told:
            choices = told.choices(inside)
            found = [
                [choices.quantiles(j, (low[j], high[j]), query.name, share)[0] for share in shares]
                for j in range(d)
            ]
            self.quantiles_ = np.sort(np.transpose(found), axis=0)
        return self

    def transform(self, X: ArrayLike) -> Table:
        """Return records of shape (m, n_features), clipped."""
        check_is_fitted(self)
        return np.clip(self._read(X, reset=False), *self.quantiles_)


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
