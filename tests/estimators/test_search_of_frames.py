"""A search hands data frames on as they are, and runs its trials in workers that it paid for."""

import os
from functools import partial

import numpy as np
import polars as pl
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from dpcal import budget
from dpcal.errors import BudgetExceeded
from dpcal.estimators import (
    LogisticRegression,
    OneHotEncoder,
    PrivateSearch,
    SimpleImputer,
    StandardScaler,
    noisy_roc_auc,
    search,
)

STEPS = {"logisticregression__steps": [10, 40]}


def patients(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    ward = rng.choice(["east", "north"], n)
    stay = rng.exponential(5.0, n)
    y = (stay + 4 * (ward == "east") > 6).astype(int)
    gone = [None if lost else days for lost, days in zip(rng.random(n) < 0.05, stay, strict=True)]
    return pl.DataFrame({"stay": gone, "ward": ward, "age": rng.integers(0, 99, n)}), y


def pipeline():
    """Return a pipeline that names columns, which no array has."""
    numbers = make_pipeline(SimpleImputer(bounds=(0, 100)), StandardScaler(bounds=(0, 100)))
    columns = [("numbers", numbers, ["stay", "age"]), ("ward", OneHotEncoder(), ["ward"])]
    return make_pipeline(ColumnTransformer(columns), LogisticRegression(classes=[0, 1]))


@pytest.mark.parametrize("scoring", [None, partial(noisy_roc_auc, epsilon=1.0)])
def test_a_frame_with_texts_is_searched_by_the_names_of_its_columns(scoring):
    frame, y = patients()
    with budget(epsilon=8.0, delta=1e-6) as shared:
        found = PrivateSearch(pipeline(), STEPS, epsilon=8.0, scoring=scoring).fit(frame, y)
        assert shared.spent == found.epsilon_spent_ <= 8.0
    assert found.best_estimator_.feature_names_in_.tolist() == frame.columns
    assert found.score(frame, y) > 0.85
    ward = found.best_estimator_[0].named_transformers_["ward"]
    assert ward.categories_[0].tolist() == ["east", "north"]


def test_what_a_frame_holds_has_no_say_in_the_price():
    frame, y = patients()
    odd = frame.with_columns(pl.lit(None, pl.Float64).alias("stay"), pl.lit("x").alias("ward"))
    for each in (frame, odd, frame.clear(len(frame))):
        found = PrivateSearch(pipeline(), STEPS, epsilon=3.0)
        assert found.fit(each, y).ledger_.trial == found.fit(frame, y).ledger_.trial


class Frame:
    """What scikit-learn reads of a pandas frame."""

    def __init__(self, table, columns):
        self.table, self.columns = np.asarray(table), columns
        self.shape, self.iloc = self.table.shape, self

    def __len__(self):
        return len(self.table)

    def take(self, rows, axis=0):
        return Frame(self.table[rows], self.columns)


class Named(TransformerMixin, BaseEstimator):
    """Stateless, and needs names."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        assert X.columns == ["a", "b"]
        return X.table

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def test_another_frame_is_cut_and_made_up_by_its_own_type():
    rows = np.random.default_rng(0).uniform(-1, 1, (2_000, 2))
    model = make_pipeline(Named(), LogisticRegression(classes=[0, 1]))
    y = (rows[:, 0] > 0).astype(int)
    found = PrivateSearch(model, STEPS, epsilon=3.0).fit(Frame(rows, ["a", "b"]), y)
    assert found.score(Frame(rows, ["a", "b"]), y) > 0.8
    with pytest.raises(ValueError, match="X must have 4 records or more, got 3"):
        PrivateSearch(model, STEPS).fit(Frame(rows[:3], ["a", "b"]), y[:3])


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_run_what_was_charged_before_they_started(monkeypatch, backend):
    frame, y = patients()
    before = []

    class Watched(search.Parallel):
        def __call__(self, asked):
            before.append(shared.spent)
            return super().__call__(asked)

    monkeypatch.setattr(search, "Parallel", Watched)
    with budget(epsilon=4.0, delta=1e-6) as shared, parallel_config(backend):
        found = PrivateSearch(pipeline(), STEPS, epsilon=3.0, n_jobs=2).fit(frame, y)
        assert before == [shared.spent] == [found.epsilon_spent_]
        assert 0 < found.score(frame, y) <= 1  # noisy, and paid
        assert shared.spent > before[0]
        with pytest.raises(BudgetExceeded):
            PrivateSearch(pipeline(), STEPS, epsilon=3.0, n_jobs=2).fit(frame, y)
    assert len(before) == 1  # the refused search started no worker
    assert found.score(frame, y) > 0.8
    assert found.best_estimator_[-1].epsilon_spent_ == found.epsilon_spent_


class Fatal(LogisticRegression):
    """Its process ends where records are not blank."""

    def fit(self, X, y):
        if np.any(X):
            os._exit(1)
        return super().fit(X, y)


def test_a_worker_that_is_lost_takes_its_price_with_it_and_tells_nothing():
    X = np.ones((100, 2))
    with budget(epsilon=1.0, delta=1e-6) as shared:
        found = PrivateSearch(Fatal(classes=[0, 1]), {"steps": [5]}, epsilon=1.0, n_jobs=2)
        with pytest.raises(RuntimeError, match=r"A worker was lost .* stays charged"):
            found.set_params(trials=5).fit(X, np.zeros(100))
        assert 0.99 < shared.spent <= 1.0
        assert not hasattr(found, "best_estimator_")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scoring": "roc_auc"}, "scoring must pay for what it tells, .*noisy_roc_auc.*'roc_auc'"),
        ({"n_jobs": 0}, "n_jobs == 0"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_spent(options, told):
    frame, y = patients(100)
    with budget(epsilon=4.0, delta=1e-6) as shared:
        with pytest.raises(ValueError, match=told):
            PrivateSearch(pipeline(), STEPS, epsilon=3.0, **options).fit(frame, y)
        assert shared.spent == 0
