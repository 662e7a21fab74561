"""How good is a model, told without giving records away? Scores that are paid from a budget.

Outside of a budget, ``score`` is scikit-learn's: an exact function of the records that it is given,
for the eyes of those who may see them. While a budget is in use, as in cross-validation inside
``with dpcal.budget(...)``, it is a noisy answer, charged like a fit. :func:`noisy_accuracy` and
:func:`noisy_r2` are such answers about any model, for ``scoring=``.

>>> import numpy as np
>>> import dpcal
>>> from sklearn.ensemble import BaggingClassifier
>>> from sklearn.model_selection import KFold, cross_val_score
>>> from dpcal.estimators import LogisticRegression
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((4_000, 2))
>>> y = X[:, 0] > 0
>>> one = LogisticRegression(epsilon=1.0, classes=[False, True])
>>> with dpcal.budget(epsilon=3.0, delta=1e-6) as shared:
...     model = one.fit(X, y)
...     before = shared.spent
...     good = model.score(X, y) > 0.9
>>> bool(good), before < shared.spent < 3.0
(True, True)
>>> with dpcal.budget(epsilon=6.0, delta=1e-6) as shared:
...     both = BaggingClassifier(one, 2, bootstrap=False)
...     scores = cross_val_score(both, X, y, cv=KFold(3), scoring=noisy_accuracy)
>>> bool(scores.min() > 0.9)
True
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal.estimators.base import PrivateEstimator, Table, bounded, single_release, sum_query
from dpcal.estimators.callers import fills_missing, refuse_unpaid_model
from dpcal.optim.budget import Budget, in_use
from dpcal.optim.objectives.domains import blanked, cells, codes, finite_rows, labels_of

__all__ = ["PrivateAccuracy", "PrivateR2", "noisy_accuracy", "noisy_r2"]


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
        return noisy_accuracy(self, X, y, **_price(self, sample_weight))


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
        return noisy_r2(self, X, y, target_bounds=self._extent(), **_price(self, sample_weight))


def noisy_accuracy(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float = 0.1,
    delta: float = 1e-6,
    noise: str = PrivateEstimator.noise,
) -> float:
    """Return the accuracy of any classifier on records, noisy, charged to the budgets in use.

    It is a value of ``scoring=``, and ``functools.partial(noisy_accuracy, epsilon=0.5)`` is one at
    another price. The price is that of the score, and not of the fit.

    Parameters
    ----------
    estimator
        A fitted classifier whose prediction for a record depends on no other record of ``X``.
    X, y
        Records, shape (m, n_features), and their labels, shape (m,). The number m is told. Records
        of numbers that are not finite are blank.
    epsilon, delta
        Of the score; a record is there, or it is blanked: epsilon > 0, and delta in (0, 1).
    noise
        ``"gaussian"`` or ``"discrete"``, see :class:`dpcal.optim.PrivateOracle`.

    Raises
    ------
    BudgetExceeded
        If a budget does not cover the score; nothing was released.
    ValueError
        If a budget is in use, and scikit-learn cross-validates an estimator of which a part learns
        from records and is not private.
    """
    predicted, known = _predicted(estimator, X)
    classes = np.unique(predicted)
    right = codes("y", labels_of(y), classes) == np.searchsorted(classes, predicted)
    vectors = np.asarray(right, dtype=np.float64).reshape(-1, 1) - 0.5
    vectors = vectors * known[:, np.newaxis]
    payer = PrivateEstimator(epsilon=epsilon, delta=delta, noise=noise)
    mean = _noisy_mean(payer, estimator, "noisy_accuracy", vectors, 0.5)[0]
    return float(np.clip(mean + 0.5, 0.0, 1.0))


def noisy_r2(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    target_bounds: tuple[float, float],
    epsilon: float = 0.1,
    delta: float = 1e-6,
    noise: str = PrivateEstimator.noise,
) -> float:
    """Return R^2 of any regressor on records, noisy, charged to the budgets in use.

    ``functools.partial(noisy_r2, target_bounds=(0, 100))`` is a value of ``scoring=``.

    Parameters
    ----------
    estimator
        A fitted regressor whose prediction for a record depends on no other record of ``X``.
    X, y
        Records, shape (m, n_features), and their targets, shape (m,). The number m is told. Records
        of numbers that are not finite are blank.
    target_bounds
        A pair (low, high) of public numbers. Targets and predictions outside are moved to the
        nearer one.
    epsilon, delta
        Of the score; a record is there, or it is blanked: epsilon > 0, and delta in (0, 1).
    noise
        ``"gaussian"`` or ``"discrete"``, see :class:`dpcal.optim.PrivateOracle`.

    Raises
    ------
    BudgetExceeded
        If a budget does not cover the score; nothing was released.
    ValueError
        If a budget is in use, and scikit-learn cross-validates an estimator of which a part learns
        from records and is not private.
    """
    low, high = bounded("target_bounds", target_bounds)
    predicted, known = _predicted(estimator, X)
    targets = cells("y", y)
    with np.errstate(all="ignore"):
        half = (high - low) / 2
        scaled = np.clip((targets - low) / half - 1, -1.0, 1.0)
        predicted = np.clip((predicted - low) / half - 1, -1.0, 1.0)
        # Squared residuals are in [0, 4], targets in [-1, 1], and their squares in [0, 1].
        vectors = np.column_stack([(scaled - predicted) ** 2 / 2 - 1, scaled, scaled**2 - 0.5])
    vectors = blanked(vectors, known & np.isfinite(targets))
    payer = PrivateEstimator(epsilon=epsilon, delta=delta, noise=noise)
    told = _noisy_mean(payer, estimator, "noisy_r2", vectors, 1.5)
    residual, variance = 2 * (told[0] + 1), told[2] + 0.5 - told[1] ** 2
    return float(1 - max(residual, 0.0) / max(variance, 1e-6))


def _price(estimator: PrivateEstimator, sample_weight: Any) -> dict[str, Any]:
    """Return epsilon, delta and noise of an estimator's own score."""
    estimator._refuse_elsewhere()
    if sample_weight is not None:
        raise ValueError("sample_weight must be None while a budget is in use, got weights.")
    epsilon, delta = estimator._target()
    budgets = [*in_use(), *([estimator.budget] if estimator.budget is not None else [])]
    share = budgets[-1].score_share
    return {"epsilon": share * epsilon, "delta": delta, "noise": estimator.noise}


def _predicted(estimator: Any, X: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return predictions, and which records are finite; the others are blank."""
    refuse_unpaid_model(estimator, PrivateEstimator, pays=bool(in_use()))
    if fills_missing(estimator):
        try:
            with np.errstate(all="ignore"):
                filled = estimator[:-1].transform(X)
        except (TypeError, ValueError) as error:
            table = X if hasattr(X, "columns") else labels_of(X)
            return _predicted_alone(estimator, table, np.ones(len(table), dtype=bool), error)
        return _predicted(estimator[-1], filled)
    table = np.asarray(X) if hasattr(X, "columns") else cells("X", X)
    known: NDArray[np.bool_] = np.ones(len(table), dtype=bool)
    if table.dtype.kind == "f":
        known = finite_rows(table.reshape(len(table), -1))
        table = blanked(table, known)
    if hasattr(X, "columns"):  # a table with names keeps them
        names = {"schema" if hasattr(X, "schema") else "columns": list(X.columns)}
        table = X if known.all() else type(X)(table, **names)
    # Whether there is an error or a warning must not depend on one record.
    with np.errstate(all="ignore"):
        try:
            return np.asarray(estimator.predict(table)), known
        except (TypeError, ValueError) as error:
            return _predicted_alone(estimator, table, known, error)


def _predicted_alone(
    estimator: Any, table: Any, known: NDArray[np.bool_], error: Exception
) -> tuple[Any, NDArray[np.bool_]]:
    """Return predictions of records one by one; those that have none are blank.

    The error of all together is raised if no record has a prediction.
    """
    found: list[Any] = [None] * len(known)
    known = known.copy()
    for place in np.flatnonzero(known):
        try:
            found[place] = estimator.predict(table[place : place + 1])[0]
        except (TypeError, ValueError):
            known[place] = False
    if not known.any():
        raise error
    some = found[int(np.flatnonzero(known)[0])]
    return np.asarray([some if each is None else each for each in found]), known


def _noisy_mean(
    payer: PrivateEstimator, estimator: Any, label: str, vectors: Table, bound: float
) -> Table:
    """Return the mean of vectors within a bound, noisy, charged to the budgets in use."""
    found = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    payer.budget = next((each for each in found if isinstance(each, Budget)), None)
    payer._seed = getattr(estimator, "_seed", None)
    (multiplier,) = single_release(*payer._target(), [1.0])
    query = sum_query("score", bound, multiplier)
    plan = replace(payer._plan(len(vectors), query), optimizer=label)
    with payer._paid(plan):
        mean, _ = payer._noisy_mean(plan, "score", lambda rows: vectors[rows], vectors.shape[1])
    return mean
