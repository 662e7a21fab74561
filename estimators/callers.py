"""Who calls a private estimator? Refusals of uses that a budget cannot pay, where they are seen.

A fit does not know the pipeline that it is a step of, and a prediction does not know the score that
is made of it. Both are found in the frames of the call, as long as it stays in one thread.

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
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from dpcal.optim import Result
from dpcal.report.saving import ELSEWHERE, NOT_PRIVATE, NOTHING, PRIVATE, Runs

__all__ = [
    "exact_parts",
    "fills_missing",
    "learns",
    "leaves_of",
    "model_report",
    "parts_of",
    "refuse_exact_score",
    "refuse_unpaid_fit",
    "refuse_unpaid_model",
]

# Where scikit-learn fits an estimator and scores it on held-out records.
_FITS = "sklearn.model_selection._validation"

# These fit each of their parts once, on all records.
_ONCE = (Pipeline, ColumnTransformer, FeatureUnion, TransformedTargetRegressor)

_ALONE = (
    "What was done to the records before the estimator was given them is outside the claim; a "
    "report of the whole pipeline lists its steps."
)

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
    return NOT_PRIVATE if learns(part) else NOTHING


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
    for frame in _frames():
        module, name, caller = _known(frame)
        if module == "dpcal.estimators.search" and name != "fit":
            return  # A trial; the search was checked itself.
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
    for frame in _frames():
        module, name, caller = _known(frame)
        if module.startswith("dpcal.estimators.") and name.startswith(
            ("score", "noisy_", "fit", "partial_fit")
        ):
            estimator._refuse_elsewhere()
            return
        scorer = module == "sklearn.metrics._scorer" or (module == _FITS and name == "_score")
        if not scorer and (caller is None or not ("fit" in name or name == "score")):
            continue
        what = "scoring=" if scorer else f"{type(caller).__name__}.{name}"
        raise ValueError(
            f"{what} reads predictions about records, which no budget pays for: while one is in "
            "use, give scoring=dpcal.estimators.noisy_accuracy (or noisy_r2), or call it with the "
            "model; ensembles that learn from predictions cannot be fitted."
        )


def _frames() -> Iterator[FrameType]:
    """Yield the frames of this thread's call, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _known(frame: FrameType) -> tuple[str, str, Any]:
    """Return module and name of a frame's function, and the estimator that it is a method of."""
    code, caller = frame.f_code, None
    # scikit-learn's workers of ensembles are functions, which name the ensemble so.
    for own in {"self", "ensemble"}.intersection(code.co_varnames[: code.co_argcount]):
        found = frame.f_locals.get(own)
        caller = found if isinstance(found, BaseEstimator) else caller
    return frame.f_globals.get("__name__", ""), code.co_name, caller
