"""Which of scikit-learn's checks cannot hold for a private estimator, and why? A table.

``check_estimator`` is the contract of an estimator. Its records are few and of any kind, so that
the instances here have wide bounds and an epsilon at which noise does not hide what is checked.

>>> sorted({type(make()).__name__ for make, _ in ESTIMATORS})[:4]
['Clipper', 'KMeans', 'LinearRegression', 'LogisticRegression']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcal.estimators.base import PrivateEstimator
from dpcal.estimators.encoder import OneHotEncoder
from dpcal.estimators.imputer import SimpleImputer
from dpcal.estimators.kmeans import KMeans
from dpcal.estimators.linear import LinearRegression, Ridge
from dpcal.estimators.logistic import LogisticRegression
from dpcal.estimators.pca import PCA
from dpcal.estimators.quantiles import Clipper, QuantileTransformer
from dpcal.estimators.scaler import StandardScaler

__all__ = ["ESTIMATORS"]

# Little noise beside what is checked on a few dozen records, and quickly solved for.
_EPSILON = 1e3
_WIDE: dict[str, Any] = {
    "bounds": (-10.0, 10.0),
    "target_bounds": (-10.0, 10.0),
    "epsilon": _EPSILON,
}

# Two fits of one table differ by their noise, and so does what they predict. Whether a fit fails
# must not depend on one record.
_BLANK = "a record with a cell or a target that is no finite number is blank, and nobody is told"
_NOISE = {
    "check_fit_idempotent": "two fits have different noise",
    "check_dtype_object": _BLANK,
}
_NOISE_OF_MODELS = _NOISE | {
    "check_supervised_y_2d": "it compares two fits, of different noise",
    "check_estimators_nan_inf": _BLANK,
    "check_supervised_y_no_nan": _BLANK,
}
_NOISE_OF_CLASSES = _NOISE_OF_MODELS | {
    "check_classifiers_regression_target": "whether targets are classes is told by noisy counts",
    "check_class_weight_classifiers": "120 passes do not reach weights of 10^7 to 1, for records "
    "that are many times longer than the declared norm",
}
_NOISE_OF_NUMBERS = _NOISE_OF_MODELS | {
    "check_regressor_data_not_an_array": "it compares two fits, of different noise",
    "check_regressors_int": "it compares two fits, of different noise",
    "check_fit_score_takes_y": "partial_fit adds to moments, and a fit by gradients keeps none",
}

ESTIMATORS: tuple[tuple[Callable[[], PrivateEstimator], dict[str, str]], ...] = (
    (
        lambda: KMeans(n_clusters=3, bounds=(-20.0, 20.0), epsilon=_EPSILON),
        _NOISE | {"check_clustering": "labels_ are exact functions of records, and are not kept"},
    ),
    (lambda: LinearRegression(**_WIDE), _NOISE_OF_NUMBERS),
    (lambda: PCA(bounds=(-100.0, 100.0), epsilon=_EPSILON), _NOISE),
    (lambda: QuantileTransformer(bounds=(-100.0, 100.0), epsilon=50.0), _NOISE),
    (lambda: Ridge(**_WIDE), _NOISE_OF_NUMBERS),
    (lambda: LogisticRegression(epsilon=_EPSILON), _NOISE_OF_CLASSES),
    (lambda: Clipper(bounds=(-100.0, 100.0), epsilon=50.0), _NOISE),
    (lambda: OneHotEncoder(epsilon=_EPSILON), _NOISE),
    (lambda: SimpleImputer(bounds=(-100.0, 100.0), epsilon=_EPSILON), _NOISE),
    (
        lambda: SimpleImputer(strategy="median", bounds=(-100.0, 100.0), epsilon=50.0),
        _NOISE,
    ),
    (lambda: StandardScaler(bounds=(-100.0, 100.0), epsilon=_EPSILON), _NOISE),
)
