"""Bad neighbours are looked for: nothing is found in what is shipped, and each planted hole is."""

import warnings
from unittest import mock

import numpy as np
import pytest
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
from dpcal.optim import Logistic, PrivateOracle, attacks, dpsgd
from dpcal.optim.boundary import noise as noise_module
from dpcal.optim.boundary.admission import Admission

N, D = 120, 3
RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((N, D)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
T = np.clip(2 * X[:, 0], -4, 4)
NAMES = np.where(Y == 1, "yes", "no")
WIDE = {"bounds": (-4, 4), "epsilon": 4.0}
TARGETS = {**WIDE, "target_bounds": (-9, 9)}
FEW = {"classes": [0, 1], "steps": 5}
PLAN = plan_for(n=N, batch_size=40, steps=10, epsilon=2.0, delta=1e-4)


def seeded_search():
    search = PrivateSearch(LogisticRegression(**FEW), {"steps": [5, 10]})
    search._seed = 0
    return search


def whole():
    return FunctionTransformer(np.round)


ESTIMATORS = {
    "scaler": (lambda: StandardScaler(**WIDE), None),
    "scaler, learned": (lambda: StandardScaler(bounds="learn", epsilon=40.0), None),
    "quantiles": (lambda: QuantileTransformer(n_quantiles=3, **WIDE), None),
    "clipper": (lambda: Clipper(quantiles=(0.1, 0.8), **WIDE), None),
    "clipper, learned": (lambda: Clipper(bounds="learn", epsilon=40.0), None),
    "clipper, declared": (
        lambda: make_pipeline(Clipper(quantiles=None, bounds=(-1, 1)), StandardScaler(**WIDE)),
        None,
    ),
    "imputer": (lambda: SimpleImputer(**WIDE), None),
    "imputer, learned": (lambda: SimpleImputer(bounds="learn", epsilon=40.0), None),
    "imputer, median": (lambda: SimpleImputer(strategy="median", **WIDE), None),
    "imputer, marked": (lambda: SimpleImputer(missing_values=X[3, 0], **WIDE), None),
    "imputer, constant": (
        lambda: make_pipeline(SimpleImputer(strategy="constant"), StandardScaler(**WIDE)),
        None,
    ),
    "categories": (lambda: make_pipeline(whole(), OneHotEncoder(epsilon=9.0)), None),
    "categories, declared": (
        lambda: make_pipeline(
            whole(), OneHotEncoder(categories=[[-1, 0, 1]] * D), LogisticRegression(**FEW)
        ),
        Y,
    ),
    "pca": (lambda: PCA(**WIDE), None),
    "kmeans": (lambda: KMeans(3, **WIDE), None),
    "line": (lambda: LinearRegression(solver="statistics", **TARGETS), T),
    "line, gradient": (lambda: LinearRegression(solver="gradient", **TARGETS), T),
    "line, learned": (
        lambda: LinearRegression(bounds="learn", target_bounds="learn", epsilon=40.0),
        T,
    ),
    "ridge": (lambda: Ridge(solver="statistics", **TARGETS), T),
    "logistic": (lambda: LogisticRegression(**FEW), Y),
    "logistic, names": (lambda: LogisticRegression(classes=["no", "yes"], steps=5), NAMES),
    "logistic, learned": (lambda: LogisticRegression(epsilon=20.0, steps=5), Y),
    "logistic, bounds learned": (
        lambda: LogisticRegression(bounds="learn", epsilon=40.0, **FEW),
        Y,
    ),
    "search": (seeded_search, Y),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_search_finds_nothing_in_an_estimator(name, noise):
    made, targets = ESTIMATORS[name]

    def fit(table):
        model = made()
        if "noise" in model.get_params():
            model.set_params(noise=noise)
        return model.fit(*table)

    shown = attacks.replay_table(fit, X, targets, price=False, seed=1)
    assert len(shown) > 15
    for found in shown:
        assert found.holds, str(found)
    assert any(found.moved for found in shown)


# -- holes, planted


def honest(table, classes=(0, 1)):
    return dpsgd(Logistic(*table, classes=list(classes)), PLAN)


def fails_on_what_is_no_number(table):
    if np.isnan(table[0]).any():
        raise ValueError("X must be finite.")
    return honest(table)


def warns_of_large_squares(table):
    if np.abs(table[0][np.isfinite(table[0])]).max() > 1e300:
        warnings.warn("overflow encountered in square", RuntimeWarning, stacklevel=1)
    return honest(table)


def reads_classes_off_labels(table):
    return LogisticRegression(classes=np.unique(table[1]), steps=5).fit(*table)


def keeps_an_exact_attribute(table):
    model = LogisticRegression(**FEW).fit(*table)
    model.largest_ = np.nanmax(table[0], axis=0)
    return model


def draws_equal_noise_twice(table):
    add = noise_module.add_gaussian

    def same(out, standard_deviation, generator):
        add(out, standard_deviation, np.random.default_rng(3))

    objective = Logistic(*table, classes=[0, 1])
    with mock.patch.object(noise_module, "add_gaussian", same):
        return dpsgd(PrivateOracle(objective, PLAN, noise="gaussian"), PLAN)


def rolls_its_ledger_back(table):
    """Asks on from an older ledger, as a guard that takes any state."""
    spend, older = Admission.spend, []

    def forgetful(self, query, count):
        older.append((list(self.ledger._rows), dict(self.ledger._counts)))
        spend(self, query, count)
        if len(older) == 5:
            self.ledger._rows, self.ledger._counts = older[1]

    with mock.patch.object(Admission, "spend", forgetful):
        return honest(table)


def refuses_a_blank_group(table):
    if len(np.unique(table[1][np.isin(table[1], [0, 1])])) < 2:
        raise ValueError("y must hold both classes.")
    return honest(table)


def minds_the_order(table):
    return honest(table), table[1][0]


HOLES = {
    "failure, not a number": (fails_on_what_is_no_number, "failure"),
    "failure, huge": (warns_of_large_squares, "failure"),
    "parameters, classes": (reads_classes_off_labels, "failure"),
    "release, attribute": (keeps_an_exact_attribute, "release"),
    "reuse": (draws_equal_noise_twice, "reuse"),
    "ledger": (rolls_its_ledger_back, "ledger"),
    "failure, empty group": (refuses_a_blank_group, "failure"),
    "release, reordered": (minds_the_order, "release"),
}


@pytest.mark.parametrize("name", HOLES)
def test_a_planted_hole_is_found(name):
    run, violation = HOLES[name]
    shown = attacks.replay_table(run, X, Y, price=False, seed=1)
    assert any(violation in found.violations for found in shown), [str(each) for each in shown]


def test_what_is_found_is_shrunk_to_the_cell_that_does_it():
    shown = attacks.replay_table(
        lambda table: (
            dpsgd(Logistic(np.clip(table[0], -9, 9), table[1], classes=[0, 1]), PLAN)
            and refusing(table)
        ),
        X,
        Y,
        price=False,
        seed=1,
        trials=20,
    )
    mixtures = [each for each in shown if each.label.startswith("mixture") and not each.holds]
    assert mixtures
    assert all(each.label.count("column") == 1 for each in mixtures)
    assert not any("column 1" not in each.label or "label" in each.label for each in mixtures)


def refusing(table):
    if np.isnan(table[0][:, 1]).any():
        raise ValueError("column 1 must be known.")
