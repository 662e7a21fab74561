"""What is fitted beside a private estimator? scikit-learn's estimators ask here before they fit.

A private estimator does not know the model that it is a part of, and a budget does not know what
else reads the records. So scikit-learn's own classes ask, before a fit and before folds are cut,
whether what stands there may be fitted. This holds for every way to a fit: a step that a grid
names, the scaler that an imputer makes inside, a clone in a thread of joblib. A call of the budget
that is given the model, ``budget.fit(model, X, y)``, sees only parts that are parameters, and not
``cross_val_score``; whoever calls ``fit`` in a ``with`` statement instead would lose records
without a word. Stack frames do not reach other threads, and neither do context variables. Outside
of budgets the answer is yes, unless a record is handed in several times.

>>> import dpcal
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import MinMaxScaler
>>> from dpcal.estimators import LogisticRegression
>>> model = make_pipeline(MinMaxScaler(), LogisticRegression(classes=[0, 1]))
>>> with dpcal.budget(epsilon=2.0, delta=1e-6):
...     model.fit([[1.0], [2.0]] * 300, [0, 1] * 300)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: While a budget is in use, what is fitted must be private or learn nothing, got \
'minmaxscaler' (MinMaxScaler). ...
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer, LabelEncoder

from dpcal.estimators.parts import exact_parts, private_parts, refuse_mixing
from dpcal.optim.budget import in_use

__all__ = ["refuse_exact", "refuse_unasked"]


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
    """Refuse to go on where scikit-learn's estimators do not ask."""
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
    # Encoders of labels learn the classes alone, which ensembles have from the labels anyway.
    if in_use() and not isinstance(model, LabelEncoder | LabelBinarizer):
        refuse_exact(model)


def _may_pass(model: Any, X: Any, y: Any = None, *_: Any, **__: Any) -> None:
    """Refuse a model of which a step mixes rows before a private one."""
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
    """Let a method of scikit-learn ask first, and again once it is done if ``after``."""
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
# Once a step is fitted, more of it can be tested.
_ask(Pipeline, "_fit", _may_pass, after=True)
_ask(TransformedTargetRegressor, "fit", _may_pass, after=True)
for _kind in (StratifiedKFold, StratifiedShuffleSplit, StratifiedGroupKFold):
    _ask(_kind, "split", _may_cut)
