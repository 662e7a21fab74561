"""Who calls a private estimator? Refusals of uses that a budget cannot pay, where they are seen.

A fit does not know the pipeline that it is a step of, and a prediction does not know the score that
is made of it. Both are found in the frames of the call, and a score also in those of other threads
of the process, which may wait for the prediction.

>>> import dpcal
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import MinMaxScaler
>>> from dpcal.estimators import LogisticRegression
>>> model = make_pipeline(MinMaxScaler(), LogisticRegression(classes=[0, 1]))
>>> with dpcal.budget(epsilon=2.0, delta=1e-6):
...     model.fit([[1.0], [2.0]] * 300, [0, 1] * 300)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: While a budget is in use, what is fitted together with a private estimator, or \
scored, must be private or learn nothing, got 'minmaxscaler' (MinMaxScaler). ...
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from threading import get_ident
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from dpcal.optim import Result
from dpcal.optim.objectives.placed import is_placed
from dpcal.report.saving import ELSEWHERE, NOT_PRIVATE, NOTHING, PRIVATE, Runs

__all__ = [
    "exact_parts",
    "fills_missing",
    "learns",
    "leaves_of",
    "mixes",
    "model_report",
    "parts_of",
    "refuse_exact_score",
    "refuse_mixing",
    "refuse_unpaid_fit",
    "refuse_unpaid_model",
]

# Where scikit-learn fits an estimator and scores it on held-out records.
_FITS = "sklearn.model_selection._validation"

# These fit each of their parts once, on all records.
_ONCE = (Pipeline, ColumnTransformer, FeatureUnion, TransformedTargetRegressor)

# Fits of these classes wait for fits of their parts in other threads, never for predictions.
_READ_NOTHING = {"BaseBagging", "OneVsRestClassifier", "_BaseVoting", "_MultiOutputEstimator"}

_ALONE = (
    "What was done to the records before the estimator was given them is outside the claim; a "
    "report of the whole pipeline lists its steps."
)

# What asks for predictions at its own price.
_PAID = ""

_MIXED = (
    "A step before a private estimator that is paid from a budget must treat each row by itself, "
    "got {name!r} ({kind}), which makes other values of rows together than of each alone: one "
    "record would move those of others, which nothing pays for. Use numbers that are known without "
    "the records, or a private step such as dpcal.estimators.StandardScaler."
)

# Rows of a step's input on which it is tested whether it treats each row by itself: a mean of so
# many is told from each of them.
_TESTED = 16

_TOGETHER = (
    "While a budget is in use, what is fitted together with a private estimator, or scored, must "
    "be private or learn nothing, got {exact}. Put what learned elsewhere into a FrozenEstimator, "
    "and a plain function into a FunctionTransformer."
)


def learns(step: Any) -> bool:
    """Return whether a step of a pipeline, which has no steps itself, learns from records."""
    if step is None or isinstance(step, (str, FrozenEstimator)):
        return False
    return not isinstance(step, BaseEstimator) or bool(get_tags(step).requires_fit)


def exact_parts(model: Any, private: type, name: str = "model") -> list[str]:
    """Return names and types of all parts of a model that learn from records and are not private.

    Parameters
    ----------
    model
        An estimator, or a pipeline, an ensemble, ... of estimators.
    private
        The class of private estimators.
    name
        Of the model.
    """
    if isinstance(model, (private, FrozenEstimator)):
        return []
    parts = parts_of(model)
    if parts:
        return [each for own, part in parts for each in exact_parts(part, private, own)]
    return [f"{name!r} ({type(model).__name__})"] if learns(model) else []


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


def leaves_of(model: Any, private: type[Any], *, fitted: bool = False) -> list[tuple[str, Any]]:
    """Return the parts of a model that have no parts of their own, by name, in order of fitting.

    Parameters
    ----------
    model
        An estimator, or pipelines, column transformers, feature unions and transformed targets of
        estimators.
    private
        The class of private estimators, of which none has parts.
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
        if isinstance(part, _ONCE):
            for own, inner in _fitted_parts(part) if fitted else parts_of(part):
                walk(f"{name}__{own}" if name else own, inner)
        elif not isinstance(part, FrozenEstimator) and _holds(part, private):
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


def model_report(model: Any, private: type[Any]) -> Runs:
    """Return what a report of a fitted model is about: its private parts, and what each part is.

    Parameters
    ----------
    model, private
        Those of :func:`leaves_of`.

    Raises
    ------
    ValueError
        If no part is private and learned, or a part fits private ones several times.
    """
    check_is_fitted(model)
    runs: list[tuple[Result, ...]] = []
    steps: list[dict[str, Any]] = []
    for name, part in leaves_of(model, private, fitted=True):
        type_name = part if isinstance(part, str) else type(part).__name__
        steps.append({"name": name, "type": type_name, "is": _kind(part, private)})
        if steps[-1]["is"] == PRIVATE:
            runs += part.by_silo
            delta = runs[-1][-1].plan.delta
            steps[-1] |= {"epsilon": part.epsilon_spent_.upper, "delta": delta}
    if not runs:
        raise ValueError(
            f"result must have a part that is private and learned, got {type(model).__name__} "
            "without one."
        )
    if isinstance(model, private):
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


def _kind(part: Any, private: type[Any]) -> str:
    """Return what a part of a fitted model is, as reports say it."""
    if isinstance(part, private):
        check_is_fitted(part, "ledger_")
        return PRIVATE if part._released else NOTHING
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
    if isinstance(part, _ONCE):
        return all(_takes_missing(inner) for _, inner in parts_of(part))
    return part is None or isinstance(part, str) or get_tags(part).input_tags.allow_nan


def _fitted_parts(model: Any) -> list[tuple[str, Any]]:
    """Return the fitted parts of a model that fits each of its parts once."""
    if isinstance(model, ColumnTransformer):
        return [(name, part) for name, part, _ in model.transformers_]
    if isinstance(model, TransformedTargetRegressor):
        return [("transformer", model.transformer_), ("regressor", model.regressor_)]
    return parts_of(model)


def _holds(model: Any, private: type) -> bool:
    """Return whether a model has a private part, however deep."""
    return any(isinstance(part, private) or _holds(part, private) for _, part in parts_of(model))


def _is_step(value: Any) -> bool:
    return value is None or isinstance(value, str) or hasattr(value, "fit")


def refuse_unpaid_fit(private: type, *, pays: bool) -> None:
    """Refuse a fit on records that were repeated, chosen or changed by what is not private.

    Parameters
    ----------
    private
        The class of private estimators.
    pays
        Whether a budget pays for the fit. Without it, repeated records alone are refused.
    """
    tested: Any = None
    for frame in _frames():
        module, name, caller = _known(frame)
        if module == "dpcal.estimators.search" and name != "fit":
            return  # A trial; the search was checked itself.
        if pays and name.startswith("fit") and caller is not tested:
            tested = caller
            refuse_mixing(caller, frame.f_locals, private)
        if caller is not None and not isinstance(caller, private):
            _refuse_repeated(caller)
            exact = [
                each for own, part in parts_of(caller) for each in exact_parts(part, private, own)
            ]
            if pays and exact and "fit" in name:
                raise ValueError(_TOGETHER.format(exact=", ".join(exact)))
        if pays and module.startswith("sklearn."):
            for value in list(frame.f_locals.values()):
                kind = type(value).__name__
                if "Stratified" in kind:
                    raise ValueError(
                        f"cv must not depend on labels while a budget is in use, got {kind}, "
                        "which scikit-learn also takes for the number of folds of a classifier: "
                        "give cv=KFold(5, shuffle=True)."
                    )


def refuse_mixing(model: Any, given: Mapping[str, Any], private: type) -> None:
    """Refuse a model with a step that learns nothing, and yet mixes the rows that it is given.

    Parameters
    ----------
    model
        Whose ``fit`` is running, as far as its steps are fitted.
    given
        Its arguments by name, ``X`` and ``y`` among them.
    private
        The class of private estimators.

    Raises
    ------
    ValueError
        If a step transforms some rows together to other values than one by one.
    """
    if isinstance(model, TransformedTargetRegressor):
        y, step = _some(given.get("y")), getattr(model, "transformer_", None)
        if step is not None and y is not None:
            _passed("transformer", step, np.reshape(y, (len(y), -1)), private)
    elif isinstance(model, _ONCE) and given.get("X") is not None:
        _passed("", model, _some(given["X"]), private)


def _some(rows: Any) -> Any:
    """Return a few rows of a table, from its beginning to its end; None of a cluster's."""
    if hasattr(rows, "__dask_graph__") or is_placed(rows):
        return None
    try:
        n = _num_samples(rows)
        return _safe_indexing(rows, np.unique(np.linspace(0, n - 1, min(n, _TESTED)).astype(int)))
    except (TypeError, ValueError):
        return None  # no table, as the fit will say


def _passed(name: str, step: Any, rows: Any, private: type) -> Any:
    """Return what a step makes of some rows, None where that is not known yet; test what it is.

    A step that is not fitted yet, or fails on so few rows, is not tested.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return rows
    if rows is None or isinstance(step, str):
        return None
    if isinstance(step, Pipeline):
        for own, inner in step.steps:
            rows = _passed(own, inner, rows, private)
        return rows
    if isinstance(step, ColumnTransformer):
        for own, inner, columns in step.transformers:
            part = _safe_indexing(rows, columns, axis=1) if not callable(columns) else None
            _passed(own, inner, part, private)
    elif isinstance(step, FeatureUnion):
        for own, inner in step.transformer_list:
            _passed(own, inner, rows, private)
    elif not (isinstance(step, private) or learns(step)) and mixes(step, rows):
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


def refuse_unpaid_model(model: Any, private: type, *, pays: bool) -> None:
    """Refuse to score a model that scikit-learn has just fitted to records, not privately.

    Parameters
    ----------
    model, private
        See :func:`exact_parts`.
    pays
        Whether a budget is in use.
    """
    fitted = pays and any(_known(frame)[0] == _FITS for frame in _frames())
    exact = exact_parts(model, private) if fitted else []
    if exact:
        raise ValueError(_TOGETHER.format(exact=", ".join(exact)))


def _refuse_repeated(caller: Any) -> None:
    """Refuse an ensemble that hands in a record several times, or chooses records by labels."""
    kind = type(caller).__name__
    if caller.get_params(deep=False).get("bootstrap"):
        raise ValueError(
            f"bootstrap must be False, got a {kind} with bootstrap=True: it hands in some records "
            "several times, and the price of a fit is for a record that is there once."
        )
    if kind == "OneVsOneClassifier":
        raise ValueError(
            "OneVsOneClassifier chooses the records of a fit by their labels, and the number of "
            "records of a fit is told: use OneVsRestClassifier, or LogisticRegression alone."
        )


def refuse_exact_score(estimator: Any) -> None:
    """Refuse a prediction that a score, or a fit of something else, is computed from.

    Parameters
    ----------
    estimator
        A private estimator that is paid from a budget.
    """
    what = _reader(_frames())
    if what is None:
        # A score may have handed the prediction to another thread, and wait for it.
        here = get_ident()
        stacks = [top for thread, top in sys._current_frames().items() if thread != here]
        found = (_reader(_frames(top), type(estimator)) for top in stacks)
        what = next((each for each in found if each), None)
    if what == _PAID:
        estimator._refuse_elsewhere()
    elif what is not None:
        raise ValueError(
            f"{what} reads predictions about records, which no budget pays for: while one is in "
            "use, give scoring=dpcal.estimators.noisy_accuracy (or noisy_r2), or call it with the "
            "model; ensembles that learn from predictions cannot be fitted."
        )


def _reader(frames: Iterator[FrameType], private: type | None = None) -> str | None:
    """Return what reads a prediction that these frames ask for; None if nobody is seen to.

    Parameters
    ----------
    frames
        Of a thread's call, the innermost first.
    private
        Where it is another thread's: a class of which an estimator that reads holds one.
    """
    for frame in frames:
        module, name, caller = _known(frame)
        if module.startswith("dpcal.estimators.") and name.startswith(
            ("score", "noisy_", "fit", "partial_fit")
        ):
            return _PAID
        if module == "sklearn.metrics._scorer" or (module == _FITS and name == "_score"):
            return "scoring="
        if caller is None or not ("fit" in name or name == "score"):
            continue
        kinds = {each.__name__ for each in type(caller).__mro__}
        may_read = name == "score" or not kinds & _READ_NOTHING
        if private is None or (may_read and _holds(caller, private)):
            return f"{type(caller).__name__}.{name}"
    return None


def _frames(top: FrameType | None = None) -> Iterator[FrameType]:
    """Yield the frames of this thread's call, or from another one's on, the innermost first."""
    frame = sys._getframe(1) if top is None else top
    while True:
        yield frame
        if frame.f_back is None:
            return
        frame = frame.f_back


def _known(frame: FrameType) -> tuple[str, str, Any]:
    """Return module and name of a frame's function, and the estimator that it is a method of."""
    code, caller = frame.f_code, None
    # scikit-learn's workers of ensembles are functions, which name the ensemble so.
    for own in {"self", "ensemble"}.intersection(code.co_varnames[: code.co_argcount]):
        found = frame.f_locals.get(own)
        caller = found if isinstance(found, BaseEstimator) else caller
    return frame.f_globals.get("__name__", ""), code.co_name, caller
