"""Estimators of every kind by name, and small tables that all of them can be fitted to."""

import numpy as np
from sklearn.base import clone

from dpcal.estimators import (
    PCA,
    Bins,
    Clipper,
    KMeans,
    LinearRegression,
    LogisticRegression,
    OneHotEncoder,
    PrivateSearch,
    QuantileTransformer,
    RandomFeatures,
    Ridge,
    SimpleImputer,
    Splines,
    StandardScaler,
)

__all__ = [
    *("BASES", "BEFORE", "CLASSIFIERS", "MODELS", "REGRESSORS", "T", "UNSUPERVISED", "X", "Y"),
    *("made", "seeded", "target_of"),
]

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
    "scaler": StandardScaler(**WIDE),
    "scaler, narrow": StandardScaler(bounds=(-0.1, 0.1)),
    "scaler, learned": StandardScaler(**LEARNED),
    "quantiles": QuantileTransformer(n_quantiles=3, **WIDE),
    "pca": PCA(**WIDE),
    "kmeans": KMeans(3, **WIDE),
    "kmeans, learned": KMeans(2, **LEARNED),
}
REGRESSORS = {
    "line": LinearRegression(solver="statistics", **TARGETS),
    "line, gradient": LinearRegression(solver="gradient", **TARGETS),
    "line, learned": LinearRegression(target_bounds="learn", **LEARNED),
    "ridge": Ridge(solver="statistics", **TARGETS),
    "ridge, gradient": Ridge(solver="gradient", **TARGETS),
    "ridge search": PrivateSearch(Ridge(**TARGETS), {"alpha": [0.1, 10.0]}),
}
CLASSIFIERS = {
    "declared": LogisticRegression(**TWO),
    "three": LogisticRegression(classes=[0, 1, 77], steps=5),
    "learned": LogisticRegression(epsilon=8.0, steps=5),
    "bounded": LogisticRegression(**TWO, **WIDE),
    "bounds learned": LogisticRegression(**TWO, **LEARNED),
    "search": PrivateSearch(LogisticRegression(classes=[0, 1]), {"steps": [5, 10]}),
}
# What stands before a model, and fills or hides cells.
BEFORE = {
    "imputer": SimpleImputer(**WIDE),
    "medians": SimpleImputer(strategy="median", **WIDE),
    "clipper": Clipper(**WIDE),
    "encoder": OneHotEncoder(epsilon=4.0),
}
BASES = {
    "splines": Splines(**ENDS),
    "bins": Bins(**ENDS),
    "waves": RandomFeatures(**ENDS),
}
MODELS = {**UNSUPERVISED, **REGRESSORS, **CLASSIFIERS}
FREE = {"declared encoder": OneHotEncoder(categories=[[0, 1]] * 2), **BASES}
ALL = {**MODELS, **BEFORE, **FREE}


def made(name, **changes):
    """Return a new estimator, with other parameters."""
    return clone(ALL[name]).set_params(**changes)


def seeded(model, seed):
    """Return a model whose noise is that of a seed; in tests alone."""
    model._seed = seed
    return model


def target_of(name):
    """Return what an estimator is fitted to beside the records."""
    return T if name in REGRESSORS else Y
