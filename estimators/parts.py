"""Which parts of a model are private, which learn nothing, and which treat rows by themselves?

>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import MinMaxScaler
>>> from dpcal.estimators import LogisticRegression
>>> exact_parts(make_pipeline(MinMaxScaler(), LogisticRegression(classes=[0, 1])))
["'minmaxscaler' (MinMaxScaler)"]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from dpcal.optim import Result
from dpcal.optim.objectives.placed import is_placed
from dpcal.report.saving import ELSEWHERE, NOT_PRIVATE, NOTHING, PRIVATE, Runs

__all__ = [
    "ONCE",
    "Private",
    "exact_parts",
    "fills_missing",
    "learns",
    "leaves_of",
    "model_report",
    "parts_of",
    "private_parts",
    "refuse_mixing",
]

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

# Rows of a step's input on which it is tested whether it treats each row by itself: a mean of so
# many is told from each of them.
_TESTED = 16


class Private:
    """What a part of a model inherits from if it pays for all that it releases."""


def learns(step: Any) -> bool:
    """Return whether a step of a pipeline, which has no steps itself, learns from records."""
    if step is None or isinstance(step, (str, FrozenEstimator)):
        return False
    if not isinstance(step, BaseEstimator):
        return hasattr(step, "fit")
    return bool(get_tags(step).requires_fit)


def exact_parts(model: Any, name: str = "model") -> list[str]:
    """Return names and types of all parts of a model that learn from records and are not private.

    Parameters
    ----------
    model
        An estimator, or a pipeline, an ensemble, ... of estimators.
    name
        Of the model.
    """
    return [
        f"{own!r} ({type(part).__name__})"
        for own, part in _ends_of(model, name)
        if not isinstance(part, Private) and learns(part)
    ]


def private_parts(model: Any) -> list[Any]:
    """Return the private parts that a fit of a model fits; of a private estimator, itself."""
    return [part for _, part in _ends_of(model) if isinstance(part, Private)]


def _ends_of(model: Any, name: str = "model") -> list[tuple[str, Any]]:
    """Return the parts of a model that have no parts, or none that a fit of it fits, by name."""
    whole = isinstance(model, (Private, FrozenEstimator))
    parts = [] if whole else parts_of(model)
    found = [end for own, part in parts for end in _ends_of(part, own)]
    return found if parts else [(name, model)]


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
            found += [pair for pair in pairs if _is_step(pair[1])]
    return found


def leaves_of(model: Any, *, fitted: bool = False) -> list[tuple[str, Any]]:
    """Return the parts of a model that have no parts of their own, by name, in order of fitting.

    Parameters
    ----------
    model
        An estimator, or pipelines, column transformers, feature unions and transformed targets of
        estimators.
    fitted
        Whether the model is fitted: then the parts that learned are returned, and not those that a
        column transformer copies.

    Raises
    ------
    ValueError
        If a part fits private ones several times, as ensembles and searches do.
    """
    found: list[tuple[str, Any]] = []
    several: list[str] = []

    def walk(name: str, part: Any) -> None:
        if isinstance(part, ONCE):
            for own, inner in _fitted_parts(part) if fitted else parts_of(part):
                walk(f"{name}__{own}" if name else own, inner)
        elif not isinstance(part, Private) and private_parts(part):
            several.append(f"{name or 'estimator'!r} ({type(part).__name__})")
        else:
            found.append((name, part))

    walk("", model)
    if several:
        raise ValueError(
            f"pipeline must fit each private step once, got {', '.join(several)}, which may fit "
            "its own several times: fit it while a budget is in use, which counts all fits."
        )
    return found


def model_report(model: Any) -> Runs:
    """Return what a report of a fitted model is about: its private parts, and what each part is.

    Parameters
    ----------
    model
        That of :func:`leaves_of`.

    Raises
    ------
    ValueError
        If no part is private and learned, or a part fits private ones several times.
    """
    check_is_fitted(model)
    runs: list[tuple[Result, ...]] = []
    steps: list[dict[str, Any]] = []
    for name, part in leaves_of(model, fitted=True):
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
    """Return what a part of a fitted model is, as reports say it."""
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
    """Return whether a model is a pipeline whose steps before the last one take missing cells.

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


def _is_step(value: Any) -> bool:
    return value is None or isinstance(value, str) or hasattr(value, "fit")


def refuse_mixing(model: Any, X: Any, y: Any = None) -> None:
    """Refuse a model with a step that learns nothing, and yet mixes the rows that it is given.

    Parameters
    ----------
    model
        That is about to be fitted, or whose steps are fitted.
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
        return None  # no table, as the fit will say


def _passed(name: str, step: Any, rows: Any) -> Any:
    """Return what a step makes of some rows, None where that is not known yet; test what it is.

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
    """Return whether a step makes other values of some rows together than of each alone."""
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
    # Sums of the same numbers may be rounded in another order.
    rounding = 1e-5 if together.dtype.itemsize <= 4 else 1e-9
    size = float(np.max(np.abs(together[np.isfinite(together)]), initial=0.0))
    return not np.allclose(together, alone, rtol=rounding, atol=rounding * size, equal_nan=True)


def _dense(table: Any) -> NDArray[Any]:
    return np.asarray(table.toarray() if hasattr(table, "toarray") else table)
