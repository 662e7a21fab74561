"""Splines, bins and random features: what a linear model needs for curves, at no price."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import dpcal
from dpcal.estimators import Bins, LinearRegression, LogisticRegression, Splines, split_budget
from tests.estimators._models import BASES, made

RANGE = (-3.0, 3.0)
each_basis = pytest.mark.parametrize(
    "basis", [made(name, bounds=RANGE) for name in BASES], ids=BASES
)


def curved(n=6_000, seed=0):
    """Return records of which a line tells nothing, and their classes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(*RANGE, (n, 2))
    return X, (np.abs(X[:, 0]) + 0.3 * rng.standard_normal(n) > 1.5).astype(int)


@each_basis
def test_a_line_on_a_basis_finds_a_curve(basis):
    X, y = curved()
    line = LogisticRegression(bounds=RANGE, epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(X, y)
    assert roc_auc_score(y, line.decision_function(X)) < 0.6
    model = make_pipeline(basis, LogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]))
    fresh, truth = curved(seed=1)
    assert roc_auc_score(truth, model.fit(X, y).decision_function(fresh)) > 0.9


@pytest.mark.parametrize(
    ("solver", "least"), [("gradient", 0.5), ("statistics", 0.46)], ids=lambda each: str(each)
)
def test_a_constant_does_not_double_the_noise_of_short_rows(solver, least):
    """The best line has R^2 0.7; with a constant of length 1 it is 0.45 and 0.40 here."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 8))
    y = X @ [2.0, -1.0, 0.5, 1.0, 0.0, 0.3, -0.7, 0.2] + 3 + rng.standard_normal(len(X))
    rows = Splines(bounds=(-1, 1)).fit_transform(X)
    k = rows.shape[1] ** 0.5
    ends = {"bounds": (-k, k), "row_norm": 1.0, "target_bounds": (-6, 12)}
    one = LinearRegression(epsilon=0.5, solver=solver, **ends)
    told = [one.fit(rows[:15_000], y[:15_000]).score(rows[15_000:], y[15_000:]) for _ in range(4)]
    assert np.mean(told) > least


@each_basis
def test_no_row_is_longer_than_linear_models_suppose(basis):
    X = np.random.default_rng(0).normal(0, 10, (500, 3))
    found = basis.fit_transform(X)
    assert found.shape == (500, len(basis.get_feature_names_out()))
    norms = np.linalg.norm(found, axis=1)
    assert norms.max() <= np.sqrt(found.shape[1]) * (1 + 1e-12)
    assert norms.min() >= np.sqrt(found.shape[1] / 2) * (1 - 1e-12)


@each_basis
def test_features_of_a_record_depend_on_nothing_but_that_record(basis):
    X = np.random.default_rng(0).uniform(-4, 4, (50, 3))
    alone = np.vstack([basis.fit(X[::-1]).transform(row[np.newaxis]) for row in X])
    np.testing.assert_array_equal(basis.fit(X).transform(X), alone)


@each_basis
def test_a_blank_record_stays_blank(basis):
    X, y = curved(600)
    X[3, 1] = np.nan
    found = basis.fit_transform(X)
    assert np.isnan(found[3]).all()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()
    make_pipeline(basis, LogisticRegression(epsilon=1.0, classes=[0, 1])).fit(X, y)


@each_basis
def test_a_basis_has_no_share_in_a_budget(basis):
    X, y = curved(1_000)
    steps = make_pipeline(made("scaler", bounds=RANGE), basis, LogisticRegression(classes=[0, 1]))
    model = split_budget(steps, epsilon=1.0, delta=1e-6)
    with dpcal.budget(epsilon=1.0, delta=1e-6) as shared:
        model.fit(X, y)
        alone = make_pipeline(ColumnTransformer([("a", Bins(bounds=RANGE), [0])]))
        assert alone.fit_transform(X).shape == (1_000, 16)
    assert 0.99 < shared.spent <= 1.0
