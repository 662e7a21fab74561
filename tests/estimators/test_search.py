"""A private search pays for the best of its trials, finds it, and keeps nothing else."""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.base import clone, is_classifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression as NotPrivate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler as NotPrivateScaler

from dpcal import budget, calibrate
from dpcal.accountants import epsilon, events
from dpcal.accountants.mechanisms.best_run import log_inverse_gamma
from dpcal.calibrate.selection import number_of_runs
from dpcal.errors import BudgetExceeded, TargetUnreachable, UnsupportedEvent
from dpcal.estimators import (
    LogisticRegression,
    PrivateSearch,
    QuantileTransformer,
    Ridge,
    StandardScaler,
    split_budget,
)
from dpcal.optim.budget import in_use, scoring

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
    with budget(epsilon=3.0, delta=1e-6) as shared:
        search = PrivateSearch(one(), GRID, trials=10).fit(X, y)
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
    steps = make_pipeline(StandardScaler(bounds=(-1, 1), epsilon=0.25), one(epsilon=0.75))
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
    quantiles = make_pipeline(QuantileTransformer(bounds=(-1, 1)), one())
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


@pytest.mark.slow
def test_nothing_but_the_best_trial_is_kept():
    X, y = table()
    search = PrivateSearch(one(), GRID)
    before = set(vars(search))
    search.fit(X, y)
    kept = {"best_estimator_", "best_params_", "best_score_", "ledger_", "epsilon_spent_"}
    assert set(vars(search)) - before == kept
    assert not hasattr(search.best_estimator_, "report_")


class Touchy(LogisticRegression):
    """It cannot be fitted in 20 steps, unless all records are blank."""

    def fit(self, X, y):
        if self.steps == 20 and np.any(X):
            raise ValueError("20 steps fail.")
        return super().fit(X, y)


@pytest.mark.slow
def test_a_trial_that_fails_is_the_worst_and_told_only_if_all_fail():
    # Raised at once, it would tell of a trial that is not released.
    X, y = table()
    model = Touchy(epsilon=1.0, classes=[0, 1])
    search = PrivateSearch(model, {"steps": [10, 20]}, trials=32, shape=math.inf).fit(X, y)
    assert search.best_params_ == {"steps": 10}
    failing = PrivateSearch(model, {"steps": [20]}, trials=4)
    with pytest.raises(ValueError, match=r"20 steps fail\."):
        failing.fit(X, y)
    assert not hasattr(failing, "best_estimator_")


@pytest.mark.slow
def test_a_search_that_the_budget_does_not_cover_costs_nothing():
    X, y = table()
    with budget(epsilon=1.05, delta=1e-6) as shared:
        search = PrivateSearch(one(), GRID, trials=50)
        with pytest.raises(BudgetExceeded, match="all there is"):
            search.fit(X, y)
        with pytest.raises(ValueError, match="Expected 2D array"):
            PrivateSearch(one(epsilon=0.1), GRID).fit(X[:, 0], y)
        assert shared.spent == 0.0
    assert not hasattr(search, "best_estimator_")


@pytest.mark.slow
def test_regressors_are_searched():
    X, y = table()
    ridge = Ridge(bounds=(-1, 1), target_bounds=(0, 1), epsilon=1.0)
    search = PrivateSearch(ridge, {"alpha": [0.1, 10.0]}).fit(X, y)
    assert search.best_params_["alpha"] in (0.1, 10.0)


@pytest.mark.parametrize(
    ("estimator", "grid", "error", "told"),
    [
        (one(), {"epsilon": [0.5, 1.0]}, UnsupportedEvent, "Candidates must cost the same noise"),
        (NotPrivate(), {"C": [1.0, 2.0]}, ValueError, "estimator must be private"),
        (one(budget=budget(epsilon=1, delta=0.1)), {}, ValueError, "Give budget to the search"),
    ],
)
def test_what_has_no_price_is_refused(estimator, grid, error, told):
    with pytest.raises(error, match=told):
        PrivateSearch(estimator, grid).fit(*table())


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


@pytest.mark.slow
def test_warnings_and_errors_of_trials_that_were_not_chosen_do_not_leave():
    """Their number is a lower bound on the number of trials, which nobody may know."""
    X, y = table()
    grid = {"learning_rate": [0.1, 1e308]}  # every trial with the second one overflows and warns
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivateSearch(one(), grid, trials=16, shape=math.inf).fit(X, y)
    assert caught == []

    class Broken(LogisticRegression):
        def fit(self, X, y):
            if self.steps == 20 and X.any():
                raise TypeError("20 steps")
            return super().fit(X, y)

    model = Broken(epsilon=1.0, classes=[0, 1])
    search = PrivateSearch(model, {"steps": [10, 20]}, trials=32, shape=math.inf).fit(X, y)
    assert search.best_params_ == {"steps": 10}


def test_other_threads_see_nothing_of_a_search():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(in_use).result()  # starts the thread
        with scoring(0.5):
            assert len(in_use()) == 1
            assert pool.submit(in_use).result() == ()
    assert in_use() == ()


@pytest.mark.parametrize(
    "steps",
    [
        (NotPrivateScaler(), one()),
        (SelectKBest(k=2), one()),
        (make_pipeline(NotPrivateScaler()), one()),
    ],
)
def test_steps_that_learn_and_are_not_private_are_named(steps):
    X, y = table()
    pipeline = make_pipeline(*steps)
    told = f"{pipeline.steps[0][0]}.*not private"
    with pytest.raises(ValueError, match=told):
        PrivateSearch(pipeline, {"logisticregression__steps": [10, 20]}).fit(X, y)
    with pytest.raises(ValueError, match=told):
        split_budget(pipeline, epsilon=1.0, delta=1e-6)


def test_steps_that_learn_nothing_may_stand_before_private_ones():
    pipeline = make_pipeline(Normalizer(), "passthrough", one())
    assert split_budget(pipeline, epsilon=1.0, delta=1e-6)[-1].epsilon == pytest.approx(1.0)
