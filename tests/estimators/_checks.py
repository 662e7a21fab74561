"""Which of scikit-learn's checks cannot hold for a private estimator, and why? A table.

``check_estimator`` is the contract of an estimator. Its records are few and of any kind, so that
the instances here have wide bounds and an epsilon at which noise does not hide what is checked.
"""

from functools import partial

from dpcal import estimators

__all__ = ["ESTIMATORS"]

TWO = "two fits of one table differ by their noise"
# Whether a fit fails must not depend on one record.
BLANK = "a record with a cell or a target that is no finite number is blank, and nobody is told"
OF_ALL = {"check_fit_idempotent": TWO, "check_dtype_object": BLANK}
OF_MODELS = {
    **OF_ALL,
    "check_supervised_y_2d": TWO,
    "check_estimators_nan_inf": BLANK,
    "check_supervised_y_no_nan": BLANK,
}
OF_CLASSES = {
    **OF_MODELS,
    "check_classifiers_regression_target": "whether targets are classes is told by noisy counts",
    "check_class_weight_classifiers": "120 passes do not reach weights of 10^7 to 1, for records "
    "that are many times longer than the declared norm",
}
OF_NUMBERS = {
    **OF_MODELS,
    "check_regressor_data_not_an_array": TWO,
    "check_regressors_int": TWO,
    "check_fit_score_takes_y": "partial_fit adds to moments, and a fit by gradients keeps none",
}
OF_CLUSTERS = {
    **OF_ALL,
    "check_clustering": "labels_ are exact functions of records, and are not kept",
}
SURE, WIDE = {"epsilon": 1e3}, {"bounds": (-100.0, 100.0)}
LINES = {**SURE, "bounds": (-10.0, 10.0), "target_bounds": (-10.0, 10.0)}
ESTIMATORS = tuple(
    (partial(getattr(estimators, name), **options), skipped)
    for name, options, skipped in (
        ("KMeans", {**SURE, "n_clusters": 3, "bounds": (-20.0, 20.0)}, OF_CLUSTERS),
        ("LinearRegression", LINES, OF_NUMBERS),
        ("Ridge", LINES, OF_NUMBERS),
        ("LogisticRegression", SURE, OF_CLASSES),
        ("PCA", {**SURE, **WIDE}, OF_ALL),
        ("StandardScaler", {**SURE, **WIDE}, OF_ALL),
        ("QuantileTransformer", {**WIDE, "epsilon": 50.0}, OF_ALL),
        ("Clipper", {**WIDE, "epsilon": 50.0}, OF_ALL),
        ("OneHotEncoder", SURE, OF_ALL),
        ("SimpleImputer", {**SURE, **WIDE}, OF_ALL),
        ("SimpleImputer", {**WIDE, "strategy": "median", "epsilon": 50.0}, OF_ALL),
    )
)
