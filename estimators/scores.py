"""How good is a model, told without giving records away? Scores that are paid from a budget.

Outside of a budget, ``score`` is scikit-learn's: an exact function of the records that it is given,
for the eyes of those who may see them. While a budget is in use, as in cross-validation inside
``with dpcal.budget(...)``, it is a noisy answer, charged like a fit.

>>> import numpy as np
>>> import dpcal
>>> from dpcal.estimators import LogisticRegression
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((4_000, 2))
>>> y = X[:, 0] > 0
>>> with dpcal.budget(epsilon=3.0, delta=1e-6) as shared:
...     model = LogisticRegression(epsilon=1.0, classes=[False, True]).fit(X, y)
...     before = shared.spent
...     good = model.score(X, y) > 0.9
>>> bool(good), before < shared.spent < 3.0
(True, True)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal.estimators.base import PrivateEstimator, Table, single_release, sum_query
from dpcal.optim.budget import in_use

__all__ = ["PrivateAccuracy", "PrivateR2", "noisy_score"]


class PrivateAccuracy(PrivateEstimator):
    """Accuracy, noisy while a budget is in use, about folds that no label has a say in."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._pays():
            # By default scikit-learn cuts the folds of a classifier by the labels of all records,
            # and one label more or less would move other records to other folds. What it does not
            # know to be a classifier has folds by position.
            tags.estimator_type = None
        return tags

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the share of records of shape (m, n_features) whose label is predicted.

        While a budget is in use, the answer has Gaussian noise and is charged to it, and
        ``sample_weight`` must be None. Labels that are no classes count as wrong.
        """
        if not self._pays():
            return float(super().score(X, y, sample_weight))
        _unweighted(sample_weight)
        right = (self.predict(X) == np.asarray(y)).astype(np.float64)
        mean = noisy_score(self, right[:, np.newaxis] - 0.5, 0.5)[0]
        return float(np.clip(mean + 0.5, 0.0, 1.0))


class PrivateR2(PrivateEstimator):
    """Coefficient of determination, noisy while a budget is in use."""

    def _extent(self) -> tuple[float, float]:
        """Return the declared bounds of the target."""
        raise NotImplementedError

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2 on records of shape (m, n_features).

        While a budget is in use, it is computed from one noisy answer about squared residuals and
        the first two moments of the target, within its declared bounds, is charged to the budget,
        and ``sample_weight`` must be None.
        """
        if not self._pays():
            return float(super().score(X, y, sample_weight))
        _unweighted(sample_weight)
        low, high = self._extent()
        half = (high - low) / 2
        scaled = np.clip((np.asarray(y, dtype=float) - low) / half - 1, -1.0, 1.0)
        predicted = np.clip((self.predict(X) - low) / half - 1, -1.0, 1.0)
        # Squared residuals are in [0, 4], targets in [-1, 1], and their squares in [0, 1].
        vectors = np.column_stack([(scaled - predicted) ** 2 / 2 - 1, scaled, scaled**2 - 0.5])
        told = noisy_score(self, vectors, 1.5)
        residual, variance = 2 * (told[0] + 1), told[2] + 0.5 - told[1] ** 2
        return float(1 - max(residual, 0.0) / max(variance, 1e-6))


def noisy_score(estimator: PrivateEstimator, vectors: Table, bound: float) -> Table:
    """Return the mean of vectors within a bound, noisy, charged to the budgets in use."""
    epsilon, delta = estimator._target()
    budgets = [*in_use(), *([estimator.budget] if estimator.budget is not None else [])]
    share = budgets[-1].score_share
    (multiplier,) = single_release(share * epsilon, delta, [1.0])
    plan = estimator._plan(len(vectors), sum_query("score", bound, multiplier))
    with estimator._paid(plan):
        mean, _ = estimator._noisy_mean(plan, "score", lambda rows: vectors[rows], vectors.shape[1])
    return mean


def _unweighted(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight must be None while a budget is in use, got weights.")
