"""Bad neighbours are looked for in every estimator: nothing is found that a record decides."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpcal.calibrate import dpsgd as plan_for
from dpcal.estimators import (
    PCA,
    Clipper,
    KMeans,
    LinearRegression,
    LogisticRegression,
    OneHotEncoder,
    PrivateSearch,
    QuantileTransformer,
    Ridge,
    SimpleImputer,
    StandardScaler,
)
from dpcal.optim import Logistic, attacks, dpsgd

N, D = 120, 3
RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((N, D)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
WIDE = {"bounds": (-4, 4), "epsilon": 4.0}
LEARNED = {"bounds": "learn", "epsilon": 40.0}
TARGETS = {**WIDE, "target_bounds": (-9, 9)}
FEW = {"classes": [0, 1], "steps": 5}
WHOLE = FunctionTransformer(np.round)

ALONE = {
    "scaler": StandardScaler(**WIDE),
    "scaler, learned": StandardScaler(**LEARNED),
    "quantiles": QuantileTransformer(n_quantiles=3, **WIDE),
    "clipper": Clipper(quantiles=(0.1, 0.8), **WIDE),
    "clipper, learned": Clipper(**LEARNED),
    "clipper, declared": make_pipeline(
        Clipper(quantiles=None, bounds=(-1, 1)), StandardScaler(**WIDE)
    ),
    "imputer": SimpleImputer(**WIDE),
    "imputer, learned": SimpleImputer(**LEARNED),
    "imputer, median": SimpleImputer(strategy="median", **WIDE),
    "imputer, marked": SimpleImputer(missing_values=X[3, 0], **WIDE),
    "imputer, constant": make_pipeline(SimpleImputer(strategy="constant"), StandardScaler(**WIDE)),
    "categories": make_pipeline(WHOLE, OneHotEncoder(epsilon=9.0)),
    "pca": PCA(**WIDE),
    "kmeans": KMeans(3, **WIDE),
}
OF_NUMBERS = {
    "line": LinearRegression(solver="statistics", **TARGETS),
    "line, gradient": LinearRegression(solver="gradient", **TARGETS),
    "line, learned": LinearRegression(target_bounds="learn", **LEARNED),
    "ridge": Ridge(solver="statistics", **TARGETS),
}
OF_LABELS = {
    "categories, declared": make_pipeline(
        WHOLE, OneHotEncoder(categories=[[-1, 0, 1]] * D), LogisticRegression(**FEW)
    ),
    "logistic": LogisticRegression(**FEW),
    "logistic, learned": LogisticRegression(epsilon=20.0, steps=5),
    "logistic, bounds learned": LogisticRegression(**LEARNED, **FEW),
    "search": PrivateSearch(LogisticRegression(**FEW), {"steps": [5, 10]}),
}
OF_NAMES = {"logistic, names": LogisticRegression(classes=["no", "yes"], steps=5)}
CASES = {
    name: (model, targets)
    for models, targets in (
        (ALONE, None),
        (OF_NUMBERS, np.clip(2 * X[:, 0], -4, 4)),
        (OF_LABELS, Y),
        (OF_NAMES, np.where(Y == 1, "yes", "no")),
    )
    for name, model in models.items()
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", ["discrete", pytest.param("gaussian", marks=pytest.mark.study)])
@pytest.mark.parametrize("name", CASES)
def test_a_search_finds_nothing_in_an_estimator(name, noise):
    model, targets = CASES[name]

    def fit(table):
        made = clone(model)
        if "noise" in made.get_params():
            made.set_params(noise=noise)
        if name == "search":
            made._seed = 0
        return made.fit(*table)

    # Each kind of neighbour, and few mixtures of them by default.
    trials = 2 if noise == "discrete" else 8
    shown = attacks.replay_table(fit, X, targets, price=False, seed=1, trials=trials)
    assert len(shown) > 10
    for found in shown:
        assert found.holds, str(found)
    assert any(found.moved for found in shown)


def test_what_is_found_is_shrunk_to_the_cell_that_does_it():
    plan = plan_for(n=N, batch_size=40, steps=10, epsilon=2.0, delta=1e-4)

    def refusing(table):
        if np.isnan(table[0][:, 1]).any():
            raise ValueError("column 1 must be known.")
        return dpsgd(Logistic(np.clip(table[0], -9, 9), table[1], classes=[0, 1]), plan)

    shown = attacks.replay_table(refusing, X, Y, price=False, seed=1, trials=20)
    mixtures = [each for each in shown if each.label.startswith("mixture") and not each.holds]
    assert mixtures
    assert all(each.label.count("column") == 1 for each in mixtures)
    assert not any("column 1" not in each.label or "label" in each.label for each in mixtures)
