"""Estimators of every kind by name, and small tables that all of them can be fitted to."""

import numpy as np
from sklearn.base import clone

from dpcal import estimators

RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((400, 3)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
T = np.clip(2 * X[:, 0], -4, 4)

ENDS = {"bounds": (-4, 4)}
WIDE = {**ENDS, "epsilon": 4.0}
TARGETS = {**WIDE, "target_bounds": (-9, 9)}
LEARNED = {"bounds": "learn", "epsilon": 40.0}
TWO = {"classes": [0, 1], "steps": 5}

UNSUPERVISED = {
    "scaler": estimators.StandardScaler(**WIDE),
    "scaler, narrow": estimators.StandardScaler(bounds=(-0.1, 0.1)),
    "scaler, learned": estimators.StandardScaler(**LEARNED),
    "quantiles": estimators.QuantileTransformer(n_quantiles=3, **WIDE),
    "pca": estimators.PCA(**WIDE),
    "kmeans": estimators.KMeans(3, **WIDE),
    "kmeans, learned": estimators.KMeans(2, **LEARNED),
}
REGRESSORS = {
    "line": estimators.LinearRegression(solver="statistics", **TARGETS),
    "line, gradient": estimators.LinearRegression(solver="gradient", **TARGETS),
    "line, learned": estimators.LinearRegression(target_bounds="learn", **LEARNED),
    "ridge": estimators.Ridge(solver="statistics", **TARGETS),
    "ridge, gradient": estimators.Ridge(solver="gradient", **TARGETS),
    "ridge, last": estimators.Ridge(release="last", alpha=20.0, **TARGETS),
    "ridge search": estimators.PrivateSearch(estimators.Ridge(**TARGETS), {"alpha": [0.1, 10.0]}),
}
CLASSIFIERS = {
    "declared": estimators.LogisticRegression(**TWO),
    "three": estimators.LogisticRegression(classes=[0, 1, 77], steps=5),
    "learned": estimators.LogisticRegression(epsilon=8.0, steps=5),
    "bounded": estimators.LogisticRegression(**TWO, **WIDE),
    "bounds learned": estimators.LogisticRegression(**TWO, **LEARNED),
    "bounded, last": estimators.LogisticRegression(**TWO, **WIDE, release="last", l2=0.1),
    "search": estimators.PrivateSearch(
        estimators.LogisticRegression(classes=[0, 1]), {"steps": [5, 10]}
    ),
}
# What stands before a model, and fills or hides cells.
BEFORE = {
    "imputer": estimators.SimpleImputer(**WIDE),
    "medians": estimators.SimpleImputer(strategy="median", **WIDE),
    "clipper": estimators.Clipper(**WIDE),
    "encoder": estimators.OneHotEncoder(epsilon=4.0),
}
BASES = {
    "splines": estimators.Splines(**ENDS),
    "bins": estimators.Bins(**ENDS),
    "waves": estimators.RandomFeatures(**ENDS),
}
MODELS = {**UNSUPERVISED, **REGRESSORS, **CLASSIFIERS}
FREE = {"declared encoder": estimators.OneHotEncoder(categories=[[0, 1]] * 2), **BASES}
ALL = {**MODELS, **BEFORE, **FREE}


def made(name, **changes):
    """Return a new estimator, with other parameters."""
    return clone(ALL[name]).set_params(**changes)


def takes_more(name):
    """Return whether an estimator takes further records: not bounds that are learned, say."""
    kept = not any(word in name for word in ("learned", "gradient", "ridge, last"))
    return kept and hasattr(ALL[name], "partial_fit")


def seeded(model, seed):
    """Return a model whose noise is that of a seed; in tests alone."""
    model._seed = seed
    return model


def target_of(name):
    """Return what an estimator is fitted to beside the records."""
    return T if name in REGRESSORS else Y
