"""The parts of a model: private ones, those that learn nothing, and those fitted at their side.

A private estimator does not know the model that contains it, and a budget does not know the other
readers of the records. So scikit-learn's own classes check here, before a fit and before folds are
cut, whether their parts may be fitted. This holds for every way to a fit: a step that a grid names,
the scaler that an imputer makes inside, a clone in a thread of joblib. A call of the budget that is
given the model, ``budget.fit(model, X, y)``, sees only parts that are parameters, and not
``cross_val_score``; whoever calls ``fit`` in a ``with`` statement instead would lose records
without a word. Stack frames do not reach other threads, and neither do context variables. Outside
of budgets the answer is yes, unless a record is handed in several times.

>>> import dpcal
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import MinMaxScaler
>>> from dpcal.estimators import LogisticRegression
>>> model = make_pipeline(MinMaxScaler(), LogisticRegression(classes=[0, 1]))
>>> exact_parts(model)
["'minmaxscaler' (MinMaxScaler)"]
>>> with dpcal.budget(epsilon=2.0, delta=1e-6):
...     model.fit([[1.0], [2.0]] * 300, [0, 1] * 300)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: While a budget is in use, what is fitted must be private or learn nothing, got \
'minmaxscaler' (MinMaxScaler). ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer, LabelEncoder
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from dpcal.optim import Result
from dpcal.optim.budget import in_use
from dpcal.optim.objectives.placed import is_placed
from dpcal.report.saving import ELSEWHERE, NOT_PRIVATE, NOTHING, PRIVATE, Runs

# These fit each of their parts once, on all records.
ONCE = (Pipeline, ColumnTransformer, FeatureUnion, TransformedTargetRegressor)

_ALONE = (
    "What was done to the records before the estimator was given them is outside the claim; a "
    "report of the whole pipeline lists its steps."
)

_MIXED = (
    "A step before a private estimator that is paid from a budget must treat each row by itself, "
    "got {name!r} ({kind}), which makes other values of rows together than of each alone: one "
    "record would move those of others, which nothing pays for. Use numbers that are known without "
    "the records, or a private step such as dpcal.estimators.StandardScaler."
)

_TESTED = 16


class Private:
    """Base of a part of a model that pays for all that it releases."""

    def _is_free(self) -> bool:
        """Whether a fit with these parameters learns nothing, and costs nothing."""
        return False


def learns(step: Any) -> bool:
    """Return whether a step of a pipeline, which has no steps itself, learns from records."""
    if step is None or isinstance(step, (str, FrozenEstimator)):
        return False
    if not isinstance(step, BaseEstimator):
        return hasattr(step, "fit")
    return bool(get_tags(step).requires_fit)


def exact_parts(model: Any) -> list[str]:
    """Return names and types of all parts of a model that learn from records and are not private.

    The model is an estimator, or a pipeline, an ensemble, ... of estimators.
    """
    return [
        f"{name or 'model'!r} ({type(part).__name__})"
        for name, part in _ends_of(model)
        if not isinstance(part, Private) and learns(part)
    ]


def private_parts(model: Any) -> list[Any]:
    """Return the private parts that a fit of a model fits; of a private estimator, itself."""
    return [part for _, part in _ends_of(model) if isinstance(part, Private)]


def _ends_of(model: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return the parts of a model that have no parts, or none that a fit of it fits, by name."""
    whole = isinstance(model, (Private, FrozenEstimator))
    parts = [] if whole else _named(name, parts_of(model))
    found = [end for own, part in parts for end in _ends_of(part, own)]
    return found if parts else [(name, model)]


def _named(name: str, parts: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(f"{name}__{own}" if name else own, part) for own, part in parts]


def parts_of(model: Any) -> list[tuple[str, Any]]:
    """Return the estimators that are parameters of a model, or stand in its lists of steps."""
    if not isinstance(model, BaseEstimator):
        return []
    found: list[tuple[str, Any]] = []
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, BaseEstimator):
            found.append((name, value))
        elif isinstance(value, list | tuple):
            pairs = [each[:2] for each in value if isinstance(each, tuple) and len(each) >= 2]
            found += [
                each for each in pairs if isinstance(each[1], str | None) or hasattr(each[1], "fit")
            ]
    return found


def _leaves_of(model: Any, name: str = "", *, fitted: bool = False) -> list[tuple[str, Any]]:
    """Return the parts of a model that have no parts of their own, by name, in order of fitting.

    Parameters
    ----------
    model
        An estimator, or pipelines, column transformers, feature unions and transformed targets of
        estimators.
    name
        Parts of the model.
    fitted
        Whether the model is fitted: then the parts that learned are returned, and not the originals
        that a column transformer copies.

    Raises
    ------
    ValueError
        If a part fits private ones several times, as ensembles and searches do.
    """
    if isinstance(model, ONCE):
        parts = _named(name, _fitted_parts(model) if fitted else parts_of(model))
        return [leaf for own, part in parts for leaf in _leaves_of(part, own, fitted=fitted)]
    if not isinstance(model, Private) and private_parts(model):
        raise ValueError(
            f"pipeline must fit each private step once, got {name or 'estimator'!r} "
            f"({type(model).__name__}), which may fit its own several times: fit it while a budget "
            "is in use, which counts all fits."
        )
    return [(name, model)]


def private_steps(model: Any, *, fitted: bool = False) -> dict[str, Any]:
    """Return the private parts of a model by the names of their parameters, in order of fitting.

    They are the parts of pipelines, column transformers, feature unions and transformed targets,
    which fit each of them once; another estimator is its own part. Parts that learn nothing with
    their parameters are left out. For a model that is ``fitted`` they are the fitted parts.

    Raises
    ------
    ValueError
        If a part that is not private learns from the records: its fit costs privacy that no budget
        pays. If a part fits private ones several times, as ensembles and searches do.
    """
    if isinstance(model, ONCE) and (exact := exact_parts(model)):
        raise ValueError(
            f"pipeline must have steps that are private or learn nothing, got {', '.join(exact)}, "
            "fitted to the records and not private."
        )
    leaves = _leaves_of(model, fitted=fitted)
    return {
        name: part for name, part in leaves if isinstance(part, Private) and not part._is_free()
    }


def model_report(model: Any) -> Runs:
    """Return the subject of a fitted model's report: its private parts, and the kind of each part.

    Parameters
    ----------
    model
        The parts of :func:`_leaves_of`.

    Raises
    ------
    ValueError
        If no part is private and learned, or a part fits private ones several times.
    """
    check_is_fitted(model)
    runs: list[tuple[Result, ...]] = []
    steps: list[dict[str, Any]] = []
    for name, part in _leaves_of(model, fitted=True):
        type_name = part if isinstance(part, str) else type(part).__name__
        steps.append({"name": name, "type": type_name, "is": _kind(part)})
        if steps[-1]["is"] == PRIVATE:
            runs += part.by_silo
            delta = runs[-1][-1].plan.delta
            steps[-1] |= {"epsilon": part.epsilon_spent_.upper, "delta": delta}
    if not runs:
        raise ValueError(
            f"result must have a part that is private and learned, got {type(model).__name__} "
            "without one."
        )
    if isinstance(model, Private):
        return Runs(by_silo=tuple(runs), outside=(_ALONE,))
    return Runs(
        by_silo=(tuple(run for own in runs for run in own),),
        delta=math.fsum(own[-1].plan.delta for own in runs),
        steps=tuple(steps),
        outside=tuple(
            f"The step {step['name']!r} ({step['type']}) {step['is']}: what it learned is outside "
            "the claim."
            for step in steps
            if step["is"] in (NOT_PRIVATE, ELSEWHERE)
        ),
    )


def _kind(part: Any) -> str:
    """Return the kind of a part of a fitted model, as reports state it."""
    if isinstance(part, Private):
        check_is_fitted(part, "ledger_")
        return PRIVATE if vars(part)["_released"] else NOTHING
    if isinstance(part, FrozenEstimator):
        return ELSEWHERE
    return NOT_PRIVATE if learns(part) or _mixes_made_up(part) else NOTHING


def _mixes_made_up(part: Any) -> bool:
    """Return whether a part mixes rows of random numbers, in as many columns as it knows."""
    columns = getattr(part, "n_features_in_", None)
    rows = np.random.default_rng(0).standard_normal((_TESTED, columns or 1))
    return isinstance(part, BaseEstimator) and columns is not None and mixes(part, rows)


def fills_missing(model: Any) -> bool:
    """Return whether a model is a pipeline with steps before the last one that take missing cells.

    Then it is they that decide which records have a prediction.
    """
    first = model.steps[:-1] if isinstance(model, Pipeline) else []
    return bool(first) and all(_takes_missing(part) for _, part in first)


def _takes_missing(part: Any) -> bool:
    if isinstance(part, ONCE):
        return all(_takes_missing(inner) for _, inner in parts_of(part))
    return part is None or isinstance(part, str) or get_tags(part).input_tags.allow_nan


def _fitted_parts(model: Any) -> list[tuple[str, Any]]:
    """Return the fitted parts of a model that fits each of its parts once."""
    if isinstance(model, ColumnTransformer):
        return [(name, part) for name, part, _ in model.transformers_]
    if isinstance(model, TransformedTargetRegressor):
        return [("transformer", model.transformer_), ("regressor", model.regressor_)]
    return parts_of(model)


def refuse_mixing(model: Any, X: Any, y: Any = None) -> None:
    """Refuse a model with a step that learns nothing, and yet mixes the rows that it is given.

    Parameters
    ----------
    model
        A pipeline that is about to be fitted, or has fitted steps.
    X, y
        The records, and their targets.

    Raises
    ------
    ValueError
        If a step transforms some rows together to other values than one by one.
    """
    if isinstance(model, TransformedTargetRegressor):
        step, targets = model.transformer or FunctionTransformer(model.func), _some(y)
        if targets is not None:
            _passed("transformer", step, np.reshape(targets, (len(targets), -1)))
    elif isinstance(model, ONCE):
        _passed("", model, _some(X))


def _some(rows: Any) -> Any:
    """Return a few rows of a table, from its beginning to its end; None of a cluster's."""
    if rows is None or hasattr(rows, "__dask_graph__") or is_placed(rows):
        return None
    try:
        n = _num_samples(rows)
        return _safe_indexing(rows, np.unique(np.linspace(0, n - 1, min(n, _TESTED)).astype(int)))
    except (TypeError, ValueError):
        return None  # no table; the fit refuses it


def _passed(name: str, step: Any, rows: Any) -> Any:
    """Return a step's output for some rows, None where that is not known yet; test its kind.

    A step that is not fitted yet, or fails on so few rows, is not tested.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return rows
    if rows is None or isinstance(step, str):
        return None
    if isinstance(step, Pipeline):
        for own, inner in step.steps:
            rows = _passed(own, inner, rows)
        return rows
    if isinstance(step, ColumnTransformer):
        for own, inner, columns in step.transformers:
            part = _safe_indexing(rows, columns, axis=1) if not callable(columns) else None
            _passed(own, inner, part)
    elif isinstance(step, FeatureUnion):
        for own, inner in step.transformer_list:
            _passed(own, inner, rows)
    elif not (isinstance(step, Private) or learns(step)) and mixes(step, rows):
        raise ValueError(_MIXED.format(name=name, kind=type(step).__name__))
    try:
        return step.transform(rows)
    except Exception:
        return None


def mixes(step: Any, rows: Any) -> bool:
    """Return whether a step makes other values of some rows together than of each row by itself."""
    try:
        together = _dense(step.transform(rows))
    except Exception:
        return False
    try:
        alone = np.concatenate(
            [_dense(step.transform(_safe_indexing(rows, [i]))) for i in range(len(together))]
        )
    except Exception:
        return True
    if together.shape != alone.shape or _num_samples(rows) != len(together):
        return True
    if together.dtype.kind not in "biufc":
        return not np.array_equal(together.astype(str), alone.astype(str))
    rounding = 1e-5 if together.dtype.itemsize <= 4 else 1e-9
    size = float(np.max(np.abs(together[np.isfinite(together)]), initial=0.0))
    return not np.allclose(together, alone, rtol=rounding, atol=rounding * size, equal_nan=True)


def _dense(table: Any) -> NDArray[Any]:
    return np.asarray(table.toarray() if hasattr(table, "toarray") else table)


def refuse_exact(model: Any) -> None:
    """Refuse a model with a part that learned, or would learn, from records and is not private."""
    exact = exact_parts(model)
    if exact:
        raise ValueError(
            "While a budget is in use, what is fitted must be private or learn nothing, got "
            f"{', '.join(exact)}. The same holds for what is scored. Put what learned elsewhere "
            "into a FrozenEstimator, and a plain function into a FunctionTransformer."
        )


def refuse_unasked() -> None:
    """Refuse to go on where scikit-learn's estimators do not check."""
    if in_use() and get_config()["skip_parameter_validation"]:
        raise ValueError(
            "skip_parameter_validation of scikit-learn must be False while a budget is in use, or "
            "nobody sees what is fitted beside a private estimator."
        )


def _may_fit(model: Any) -> None:
    """Refuse a model that is fitted to the records and not private, repeats or chooses them."""
    kind, private = type(model).__name__, private_parts(model)
    if private and model.get_params(deep=False).get("bootstrap"):
        raise ValueError(
            f"bootstrap must be False, got a {kind} with bootstrap=True: it hands in some records "
            "several times, and the price of a fit is for a record that is there once."
        )
    if private and kind == "OneVsOneClassifier":
        raise ValueError(
            "OneVsOneClassifier chooses the records of a fit by their labels, and the number of "
            "records of a fit is told: use OneVsRestClassifier, or LogisticRegression alone."
        )
    # Encoders of labels learn only the classes, which ensembles have from the labels anyway.
    if in_use() and not isinstance(model, LabelEncoder | LabelBinarizer):
        refuse_exact(model)


def _may_pass(model: Any, X: Any, y: Any = None, *_: Any, **__: Any) -> None:
    """Refuse a model with a step that mixes rows before a private one."""
    if in_use() and private_parts(model):
        refuse_mixing(model, X, y)


def _may_cut(folds: Any, *_: Any, **__: Any) -> None:
    """Refuse folds that depend on labels: one label more would move other records."""
    if in_use():
        raise ValueError(
            "cv must not depend on labels while a budget is in use, got "
            f"{type(folds).__name__}, which scikit-learn also takes for the number of folds of a "
            "classifier: give cv=KFold(5, shuffle=True)."
        )


def _ask(kind: type, name: str, may: Callable[..., None], *, after: bool = False) -> None:
    """Let a method of scikit-learn check first, and again once it is done if ``after``."""
    own = getattr(kind, name)

    @wraps(own)
    def asking(self: Any, *given: Any, **options: Any) -> Any:
        may(self, *given, **options)
        found = own(self, *given, **options)
        if after:
            may(self, *given, **options)
        return found

    setattr(kind, name, asking)


_ask(BaseEstimator, "_validate_params", _may_fit)
_ask(Pipeline, "_fit", _may_pass, after=True)
_ask(TransformedTargetRegressor, "fit", _may_pass, after=True)
for _folds in (StratifiedKFold, StratifiedShuffleSplit, StratifiedGroupKFold):
    _ask(_folds, "split", _may_cut)
