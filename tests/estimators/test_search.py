"""A private search pays for the best of its trials, finds it, and keeps nothing else."""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter

import numpy as np
import polars as pl
import pytest
from joblib import parallel_config
from scipy.stats import chisquare
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression as NotPrivate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpcal import budget, calibrate
from dpcal.accountants import epsilon, events
from dpcal.accountants.mechanisms.best_run import log_inverse_gamma
from dpcal.accountants.selection import number_of_runs
from dpcal.errors import BudgetExceeded, TargetUnreachable
from dpcal.estimators import LogisticRegression, PrivateSearch, noisy_roc_auc, search as module
from dpcal.optim.budget import in_use, scoring
from tests.estimators._models import made

GRID = {"learning_rate": [1e-6, 1.0], "steps": [10, 20]}


def table(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X[:, 0] > 0.2).astype(int)


def one(**changes):
    return LogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], **changes})


@pytest.mark.slow
def test_a_budget_is_charged_the_price_of_the_selection_and_no_more():
    X, y = table()
    search = PrivateSearch(one(), GRID, trials=10)
    before = set(vars(search))
    with budget(epsilon=3.0, delta=1e-6) as shared:
        search.fit(X, y)
        kept = {"best_estimator_", "best_params_", "best_score_", "ledger_", "epsilon_spent_"}
        assert set(vars(search)) - before == kept
        assert not hasattr(search.best_estimator_, "report_")
        price = calibrate.tuning(search.ledger_.trial, candidates=10, delta=1e-6)
        assert shared.spent == pytest.approx(float(price), rel=1e-12)
        assert search.epsilon_spent_ == search.best_estimator_.epsilon_spent_ == price
        assert 1.0 < price.single < price < 2.0
        assert search.ledger_.event == events.RepeatAndSelectDpEvent(search.ledger_.trial, 10, 0)
        # What is added to the best model later is added to that price.
        assert search.best_estimator_.ledger_.epsilon(1e-6) == price
        assert search.best_estimator_.partial_fit(X, y).epsilon_spent_ > price
        price = shared.spent
        one(epsilon=0.5).fit(X, y)
        assert price < shared.spent < price + 0.5


@pytest.mark.slow
def test_a_total_is_met_by_all_trials_together():
    X, y = table()
    steps = make_pipeline(made("scaler", bounds=(-1, 1), epsilon=0.25), one(epsilon=0.75))
    grid = {"logisticregression__steps": [5, 10]}
    with budget(epsilon=1.5, delta=1e-6) as shared:
        search = PrivateSearch(steps, grid, epsilon=1.5, trials=20).fit(X, y)
    assert 1.4999 < search.epsilon_spent_ <= 1.5
    assert shared.spent == search.epsilon_spent_
    first, last = (step.epsilon for step in search.best_estimator_)
    assert last == pytest.approx(3 * first)
    assert first + last < 1.5
    # The exact price of a search among trials of this noise, by another accountant.
    other = epsilon(search.ledger_.event, delta=1e-6, accountant="pld")
    assert other.lower <= search.epsilon_spent_ * (1 + 1e-9)
    quantiles = make_pipeline(made("quantiles", n_quantiles=15, epsilon=1.0), one())
    with pytest.raises(TargetUnreachable, match=r"epsilon=1\.5 cannot be met at delta=1e-06"):
        PrivateSearch(quantiles, grid, epsilon=1.5).fit(X, y)


@pytest.mark.slow
def test_a_trial_is_its_fit_and_its_score():
    X, y = table()
    search = PrivateSearch(one(), GRID, score_share=0.5).fit(X, y)
    fits = [one(epsilon=target).fit(X, y).ledger_.entries for target in (1.0, 0.5)]
    together = [each.count / each.noise_multiplier**2 for entries in fits for each in entries]
    assert search.ledger_.trial.noise_multiplier == pytest.approx(sum(together) ** -0.5, rel=1e-6)
    assert search.ledger_.mean == 4


@pytest.mark.slow
def test_it_prefers_the_candidate_that_learns():
    X, _ = table()
    # A model without an intercept errs on a third of these records, and one with it on few.
    y = (X[:, 0] > -0.7).astype(int)
    model = one(epsilon=8.0)
    search = PrivateSearch(model, {"fit_intercept": [False, True]}, trials=32, shape=math.inf)
    found = [clone(search).fit(X, y) for _ in range(2)]
    # All trials of a search are of the worse candidate with a chance of exp(-16), and scores have a
    # noise of 0.01.
    assert all(each.best_params_["fit_intercept"] for each in found)
    assert min(each.score(X, y) for each in found) > 0.85
    assert is_classifier(found[0])
    np.testing.assert_array_equal(found[0].predict(X), found[0].best_estimator_.predict(X))


class Touchy(LogisticRegression):
    """It cannot be fitted in 20 steps, unless all records are blank."""

    error = ValueError

    def fit(self, X, y):
        if self.steps == 20 and np.any(X):
            raise self.error("20 steps fail.")
        return super().fit(X, y)


class Broken(Touchy):
    """It raises what no bad value does."""

    error = TypeError


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Touchy, Broken])
def test_a_trial_that_fails_is_the_worst_and_told_only_if_all_fail(kind):
    # Raised at once, it would tell of a trial that is not released.
    X, y = table()
    model = kind(epsilon=1.0, classes=[0, 1])
    search = PrivateSearch(model, {"steps": [10, 20]}, trials=32, shape=math.inf).fit(X, y)
    assert search.best_params_ == {"steps": 10}
    failing = PrivateSearch(model, {"steps": [20]}, trials=4)
    with pytest.raises(kind.error, match=r"20 steps fail\."):
        failing.fit(X, y)
    assert not hasattr(failing, "best_estimator_")


@pytest.mark.slow
def test_warnings_of_trials_that_were_not_chosen_do_not_leave():
    """Their number is a lower bound on the number of trials, which nobody may know."""
    grid = {"learning_rate": [0.1, 1e308]}  # every trial with the second one overflows and warns
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivateSearch(one(), grid, trials=16, shape=math.inf).fit(*table())
    assert caught == []


def test_what_has_no_price_or_is_not_covered_is_refused_before_anything_is_spent():
    X, y = table()
    with budget(epsilon=1.05, delta=1e-6) as shared:
        for search, rows, told in (
            (PrivateSearch(NotPrivate(), {"C": [1.0, 2.0]}), X, "must be private"),
            (PrivateSearch(one(epsilon=0.1), {}, n_jobs=0), X, "n_jobs == 0"),
            (PrivateSearch(one(epsilon=0.1), GRID), X[:, 0], "Expected 2D array"),
            (PrivateSearch(one(), GRID, trials=50), X, "the total is"),
        ):
            with pytest.raises((ValueError, BudgetExceeded), match=told):
                search.fit(rows, y)
            assert not hasattr(search, "best_estimator_")
        assert shared.spent == 0


def test_a_poisson_number_may_be_none():
    X, y = table()
    numbers = [number_of_runs(1.0, math.inf, np.random.default_rng(seed)) for seed in range(9)]
    for seed in (numbers.index(0), next(i for i, number in enumerate(numbers) if number)):
        search = PrivateSearch(one(), {"steps": [5]}, trials=1.0, shape=math.inf)
        search._seed = seed
        if numbers[seed]:
            assert search.fit(X, y).best_params_ == {"steps": 5}
        else:
            with pytest.raises(ValueError, match="number of trials was 0"):
                search.fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
def test_the_number_of_trials_follows_its_law(shape):
    """Chi-squared with a false alarm in a million."""
    mean, rng = 4.0, np.random.default_rng(1)
    drawn = np.array([number_of_runs(mean, shape, rng) for _ in range(3000)])
    rest = 1 - math.exp(-log_inverse_gamma(mean, shape))
    weights, weight = [], 1.0
    for k in range(1, 400):
        weight *= rest * ((k - 1 + shape) / k if k > 1 else 1.0)
        weights.append(weight)
    chances = np.array(weights) / sum(weights)
    seen = np.bincount(np.minimum(drawn, 12), minlength=13)[1:]
    expected = len(drawn) * np.append(chances[:11], chances[11:].sum())
    assert chisquare(seen, expected).pvalue > 1e-6


def test_other_threads_see_nothing_of_a_search():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(in_use).result()  # starts the thread
        with scoring(0.5):
            assert len(in_use()) == 1
            assert pool.submit(in_use).result() == ()
    assert in_use() == ()


# -- data frames go on as they are, and trials run in threads that were paid for

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
    wide = {"bounds": (0, 100), "epsilon": 1.0}
    numbers = make_pipeline(made("imputer", **wide), made("scaler", **wide))
    columns = [
        ("numbers", numbers, ["stay", "age"]),
        ("ward", made("encoder", epsilon=1.0), ["ward"]),
    ]
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


def test_another_frame_is_cut_and_made_up_by_its_own_type():
    rows, y = table(n=2_000)
    cells = FunctionTransformer(attrgetter("table"))  # which no array has
    model = make_pipeline(cells, one())
    found = PrivateSearch(model, STEPS, epsilon=3.0).fit(Frame(rows, ["a", "b", "c"]), y)
    assert found.score(Frame(rows, ["a", "b", "c"]), y) > 0.8
    with pytest.raises(ValueError, match="X must have 4 records or more, got 3"):
        PrivateSearch(model, STEPS).fit(Frame(rows[:3], ["a", "b", "c"]), y[:3])


def test_threads_run_what_was_charged_before_they_started(monkeypatch):
    frame, y = patients()
    before = []

    class Watched(module.Parallel):
        def __call__(self, asked):
            before.append(shared.spent)
            return super().__call__(asked)

    monkeypatch.setattr(module, "Parallel", Watched)
    with budget(epsilon=4.0, delta=1e-6) as shared, parallel_config("loky"):
        found = PrivateSearch(pipeline(), STEPS, epsilon=3.0, n_jobs=2).fit(frame, y)
        assert before == [shared.spent] == [found.epsilon_spent_]
        assert 0 < found.score(frame, y) <= 1  # noisy, and paid
        assert shared.spent > before[0]
        with pytest.raises(BudgetExceeded):
            PrivateSearch(pipeline(), STEPS, epsilon=3.0, n_jobs=2).fit(frame, y)
    assert len(before) == 1  # the refused search started no worker
    assert found.score(frame, y) > 0.8
    assert found.best_estimator_[-1].epsilon_spent_ == found.epsilon_spent_
