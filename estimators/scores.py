"""Scores of models, private while a budget is in use. Scores that are paid from a budget.

Outside of a budget, ``score`` is scikit-learn's: an exact function of the records, for people who
may see them. While a budget is in use, as in cross-validation inside ``with dpcal.budget(...)``, it
is a noisy answer, charged like a fit. :func:`noisy_accuracy`, :func:`noisy_roc_auc` and
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

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

from dpcal.calibrate.plans.common import repeated
from dpcal.estimators.base import Answers, PrivateEstimator, Table, read_by_score
from dpcal.estimators.bounds import bounded
from dpcal.estimators.parts import fills_missing, refuse_exact
from dpcal.estimators.reading import one_for_each
from dpcal.optim.budget import in_use
from dpcal.optim.linear_fit import sum_query
from dpcal.optim.objectives.domains import blanked, cells, codes, finite_rows, labels_of
from dpcal.optim.objectives.placed import as_they_are
from dpcal.report.metrics import Held, metrics


def noisy_accuracy(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float = 0.1,
    delta: float = 1e-6,
) -> float:
    """Return the accuracy of any classifier on records, noisy, charged to the budgets in use.

    It is a value of ``scoring=``; with another budget, use ``functools.partial(noisy_accuracy,
    epsilon=0.5)``. Its epsilon is the score's, and not the fit's.

    Parameters
    ----------
    estimator
        A fitted classifier; its prediction for a record depends on no other record of ``X``.
    X, y
        Records, shape (m, n_features), and their labels, shape (m,). The number m is published.
        Records of numbers that are not finite are ignored.
    epsilon, delta
        Budget of the score; a record is there, or it is zeroed out: epsilon > 0, and delta in (0,
        1).

    Raises
    ------
    BudgetExceeded
        If a budget does not cover the score; nothing was released.
    ValueError
        If a budget is in use, and scikit-learn cross-validates an estimator with a part that learns
        from records and is not private.
    """
    predicted, known = _predicted(estimator, X)
    classes = np.unique(predicted)
    labels = one_for_each(predicted, y, estimator="noisy_accuracy")
    right = codes("y", labels, classes) == np.searchsorted(classes, predicted)
    vectors = np.asarray(right, dtype=np.float64).reshape(-1, 1) - 0.5
    vectors = vectors * known[:, np.newaxis]
    means, _ = _noisy_means(estimator, "noisy_accuracy", (epsilon, delta), 0.5, lambda _: vectors)
    return float(np.clip(means[0][0] + 0.5, 0.0, 1.0))


def noisy_roc_auc(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float = 0.1,
    delta: float = 1e-6,
) -> float:
    """Return the area under the ROC curve on records, noisy, charged to the budgets in use.

    It is the mean rank of the second class among the first one, from two noisy sums: counts of the
    first class on a grid of scores, and ranks on that grid. A number in [0, 1]; 0.5 where noise
    hides how many records a class has. It is a value of ``scoring=``, as :func:`noisy_accuracy`.

    Parameters
    ----------
    estimator
        A fitted classifier of two classes, with ``classes_`` and ``decision_function`` or
        ``predict_proba``; its score for a record depends on no other record of ``X``.
    X, y
        Records, shape (m, n_features), and their labels, shape (m,). The number m is published.
        Records of numbers that are not finite, and of other labels, are ignored.
    epsilon, delta
        Budget of the score; a record is there, or it is zeroed out: epsilon > 0, and delta in (0,
        1).

    Raises
    ------
    BudgetExceeded
        If a budget does not cover the score; nothing was released.
    ValueError
        If there are not two classes. If a budget is in use, and scikit-learn cross-validates an
        estimator with a part that learns from records and is not private.
    """
    classes = np.asarray(estimator.classes_)
    if len(classes) != 2:
        raise ValueError(f"noisy_roc_auc is for two classes, got {classes.tolist()}.")
    scores, known = _predicted(estimator, X, _log_odds)
    given = one_for_each(scores, y, estimator="noisy_roc_auc")
    labels = np.where(known, codes("y", given, classes), -1)
    model = getattr(estimator, "best_estimator_", estimator)
    w = np.ravel(getattr(model[-1] if isinstance(model, Pipeline) else model, "_weights", []))
    center, scale = (float(w[-1]), float(np.linalg.norm(w[:-1]))) if len(w) > 1 else (0.0, 1.0)
    held = Held(scores, labels, center=center, scale=scale)
    m = len(labels)
    stages = (lambda _: held.counts(), lambda found: held.ranks(m * found[0]))
    told, off = _noisy_means(estimator, "noisy_roc_auc", (epsilon, delta), 1.0, *stages)
    area = metrics(m * told[0], m * told[1], ("0", "1"), noise=m * off)["auc"]
    return 0.5 if area is None else float(area)


def _log_odds(estimator: Any, X: Any) -> Any:
    """Return scores of the second class, shape (m,)."""
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    likely = np.asarray(estimator.predict_proba(X))
    return np.log(likely[:, 1]) - np.log(likely[:, 0])


def noisy_r2(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    target_bounds: tuple[float, float],
    epsilon: float = 0.1,
    delta: float = 1e-6,
) -> float:
    """Return R^2 of any regressor on records, noisy, charged to the budgets in use.

    ``functools.partial(noisy_r2, target_bounds=(0, 100))`` is a value of ``scoring=``.

    Parameters
    ----------
    estimator
        A fitted regressor; its prediction for a record depends on no other record of ``X``.
    X, y
        Records, shape (m, n_features), and their targets, shape (m,). The number m is published.
        Records of numbers that are not finite are ignored.
    target_bounds
        A pair (low, high) of public numbers. Targets and predictions outside are moved to the
        nearer one.
    epsilon, delta
        Budget of the score; a record is there, or it is zeroed out: epsilon > 0, and delta in (0,
        1).

    Raises
    ------
    BudgetExceeded
        If a budget does not cover the score; nothing was released.
    ValueError
        If a budget is in use, and scikit-learn cross-validates an estimator with a part that learns
        from records and is not private.
    """
    low, high = bounded("target_bounds", target_bounds)
    predicted, known = _predicted(estimator, X)
    targets = cells("y", one_for_each(predicted, y, estimator="noisy_r2"))
    with np.errstate(all="ignore"):
        half = (high - low) / 2
        scaled = np.clip((targets - low) / half - 1, -1.0, 1.0)
        predicted = np.clip((predicted - low) / half - 1, -1.0, 1.0)
        # Squared residuals are in [0, 4], targets in [-1, 1]: these vectors have norms up to 1.5.
        vectors = np.column_stack([(scaled - predicted) ** 2 / 2 - 1, scaled, scaled**2 - 0.5])
    vectors = blanked(vectors, known & np.isfinite(targets))
    (told,), _ = _noisy_means(estimator, "noisy_r2", (epsilon, delta), 1.5, lambda _: vectors)
    residual, variance = 2 * (told[0] + 1), told[2] + 0.5 - told[1] ** 2
    return float(1 - max(residual, 0.0) / max(variance, 1e-6))


def share_of(estimator: PrivateEstimator, sample_weight: Any) -> dict[str, Any]:
    """Return epsilon and delta of an estimator's own score."""
    estimator._refuse_elsewhere()
    if sample_weight is not None:
        raise ValueError("sample_weight must be None while a budget is in use, got weights.")
    epsilon, delta = estimator._target()
    share = in_use()[-1].score_share
    return {"epsilon": share * epsilon, "delta": delta}


def _predict(estimator: Any, X: Any) -> Any:
    return estimator.predict(X)


def _predicted(
    estimator: Any, X: Any, predict: Callable[[Any, Any], Any] = _predict
) -> tuple[Any, NDArray[np.bool_]]:
    """Return predictions, and which records are finite; the others are ignored."""
    if in_use():
        refuse_exact(estimator)
        estimator = read_by_score(estimator)
    if fills_missing(estimator):
        try:
            with np.errstate(all="ignore"):
                filled = estimator[:-1].transform(X)
        except (TypeError, ValueError) as error:
            table = X if hasattr(X, "columns") else labels_of(X)
            everyone = np.ones(len(table), dtype=bool)
            return _predicted_alone(partial(predict, estimator), table, everyone, error)
        return _predicted(estimator[-1], filled, predict)
    table = np.asarray(X) if hasattr(X, "columns") else cells("X", X)
    known: NDArray[np.bool_] = np.ones(len(table), dtype=bool)
    if table.dtype.kind == "f":
        known = finite_rows(table.reshape(len(table), -1))
        table = blanked(table, known)
    if hasattr(X, "columns"):
        names = {"schema" if hasattr(X, "schema") else "columns": list(X.columns)}
        table = X if known.all() else type(X)(table, **names)
    # Whether there is an error or a warning must not depend on one record.
    with np.errstate(all="ignore"):
        try:
            return np.asarray(predict(estimator, table)), known
        except (TypeError, ValueError) as error:
            return _predicted_alone(partial(predict, estimator), table, known, error)


def _predicted_alone(
    predict: Callable[[Any], Any], table: Any, known: NDArray[np.bool_], error: Exception
) -> tuple[Any, NDArray[np.bool_]]:
    """Return predictions of records one by one; records without one are ignored.

    The error of all together is raised if no record has a prediction.
    """
    found: list[Any] = [None] * len(known)
    known = known.copy()
    for place in np.flatnonzero(known):
        try:
            found[place] = predict(table[place : place + 1])[0]
        except (TypeError, ValueError):
            known[place] = False
    if not known.any():
        raise error
    some = found[int(np.flatnonzero(known)[0])]
    return np.asarray([some if each is None else each for each in found]), known


def _noisy_means(
    estimator: Any,
    label: str,
    target: tuple[float, float],
    bound: float,
    *stages: Callable[[list[Table]], Table],
) -> tuple[list[Table], float]:
    """Return means of vectors within a bound, each by the ones before, and their noise's deviation.

    The budgets in use pay for all of them before the first is answered.
    """
    found = estimator.get_params() if hasattr(estimator, "get_params") else {}
    payer = PrivateEstimator(epsilon=target[0], delta=target[1])
    payer._seed = getattr(estimator, "_seed", None)
    # The score is about the persons that the model is about.
    rows = (value for name, value in found.items() if name.split("__")[-1] == "rows_per_person")
    payer.rows_per_person = max(rows, default=1)
    (multiplier,) = payer._multipliers([1.0])
    count = len(stages)
    multiplier = multiplier if count == 1 else repeated(multiplier, count)
    vectors = stages[0]([])
    query = sum_query("score", bound, multiplier, count)
    plan = replace(payer._plan(len(vectors), query), optimizer=label)
    means: list[Table] = []
    told = Answers(payer, plan)
    with payer._paid(plan):
        for stage in stages:
            vectors = stage(means)
            means.append(told.mean("score", as_they_are, vectors.shape[1], vectors))
    return means, multiplier * query.max_norm / len(vectors)
