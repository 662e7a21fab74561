"""What stands before a private estimator: imputer, encoder and clipper, learned or declared."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import impute, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

import dpcal
from dpcal.accountants import epsilon, events
from dpcal.estimators import (
    Clipper,
    KMeans,
    LogisticRegression,
    OneHotEncoder,
    PrivateSearch,
    SimpleImputer,
    noisy_accuracy,
    split_budget,
)
from dpcal.optim.attacks.recording import record
from tests._bad_records import CELLS
from tests.estimators._models import seeded

N = 4_000
RNG = np.random.default_rng(0)
X = RNG.normal([40.0, -3.0, 0.5], [10.0, 1.0, 0.2], (N, 3))
HOLES = np.where(RNG.uniform(size=X.shape) < 0.3, np.nan, X)
WIDE = {"bounds": ([0, -10, -1], [100, 10, 2])}
MUCH = {"epsilon": 1e4, "delta": 1e-6}
WARDS = RNG.choice(np.array(["east", "north", "west"], dtype=object), (N, 2), p=[0.5, 0.3, 0.2])


def marked(table, by=-99.0):
    """Return a table whose missing cells are marked by a number."""
    return np.where(np.isnan(table), by, table)


# -- beside scikit-learn, at an epsilon that hides nothing


@pytest.mark.parametrize("strategy", ["mean", "median"])
def test_statistics_are_those_of_scikit_learn(strategy):
    exact = impute.SimpleImputer(strategy=strategy).fit(HOLES)
    for options, table in ({}, HOLES), ({"missing_values": -99}, marked(HOLES)):
        private = SimpleImputer(strategy=strategy, **options, **WIDE, **MUCH).fit(table)
        np.testing.assert_allclose(private.statistics_, exact.statistics_, atol=5e-3)
        known = ~np.isnan(HOLES).all(axis=1) | ("missing_values" in options)
        np.testing.assert_allclose(
            private.transform(table)[known], exact.transform(HOLES)[known], atol=5e-3
        )


def test_a_mean_at_epsilon_one_is_within_its_noise():
    """Four deviations of sum and count; 3 columns, so a false alarm has 2e-4. Seed 1."""
    private = seeded(SimpleImputer(**WIDE), 1).fit(HOLES)
    (entry,) = private.ledger_.entries
    half = np.array([50.0, 10.0, 1.5])
    noise = entry.noise_multiplier * entry.max_norm / (0.7 * N) * half * math.sqrt(2)
    assert (np.abs(private.statistics_ - np.nanmean(HOLES, axis=0)) < 4 * noise).all()
    assert (noise < [2.0, 0.5, 0.1]).all()


def test_learned_and_declared_categories_encode_as_scikit_learn_does():
    exact = preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(WARDS)
    shown = np.array([["east", "palace"], ["west", "north"]], dtype=object)
    for categories in ("learn", [["west", "east", "north"]] * 2):
        private = OneHotEncoder(categories=categories).fit(WARDS)
        np.testing.assert_array_equal(private.transform(shown), exact.transform(shown))
        names = private.get_feature_names_out().tolist()
        assert names == exact.get_feature_names_out().tolist()
    numbers = RNG.integers(3, size=(N, 1))
    assert OneHotEncoder().fit(numbers).categories_[0].tolist() == [0, 1, 2]


def test_values_are_clipped_at_quantiles():
    private = Clipper(quantiles=(0.1, 0.75), **WIDE, **MUCH).fit(X)
    exact = np.quantile(X, [0.1, 0.75], axis=0)
    np.testing.assert_allclose(private.quantiles_, exact, atol=0.02)
    far = np.array([[-1e300, 1e300, np.nan]])
    found = private.transform(far)
    ends = [private.quantiles_[0, 0], private.quantiles_[1, 1], np.nan]
    np.testing.assert_array_equal(found[0], ends)
    # At epsilon 1 shares are off by a few hundredths. Seed 2.
    private = seeded(Clipper(bounds=(-1e4, 1e4), quantiles=(0.1, 0.75)), 2)
    shares = (private.fit(X).quantiles_[:, np.newaxis] > X).mean(axis=1)
    assert np.abs(shares - [[0.1], [0.75]]).max() < 0.06


def test_cells_that_are_missing_keep_no_other_cell_from_learning():
    """With 60 percent of the cells missing, few records are whole."""
    table = np.where(RNG.uniform(size=(N, 12)) < 0.6, np.nan, RNG.normal(40, 4, (N, 12)))
    assert np.isfinite(table).all(axis=1).sum() < 5
    for model in SimpleImputer(bounds="learn", epsilon=9.0), Clipper(bounds="learn", epsilon=9.0):
        model.fit(table)
        low, high = model.bounds_
        assert (low >= 16).all()
        assert (high <= 64).all()


# -- privacy


@pytest.mark.parametrize(
    "first",
    [
        SimpleImputer(**WIDE),
        SimpleImputer(strategy="median", **WIDE),
        SimpleImputer(strategy="constant"),
        SimpleImputer(strategy="constant", missing_values=-99),
        Clipper(**WIDE),
        Clipper(quantiles=None, **WIDE),
        OneHotEncoder(),
        OneHotEncoder(categories=[[0, 1], [0, -3], [0]]),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:No category")
def test_a_blank_record_contributes_nothing_to_the_next_step(first):
    """Were it filled, blanking a record would move the next sum by two bounds, and not by one."""
    table = np.round(X)
    table[7], table[8] = np.nan, [40.0, -3.0, 0.0]
    last = KMeans(2, bounds=(-100, 100))
    tape = record(lambda data: make_pipeline(first, last).fit(data), table)
    sums = [each for each in tape.answers if each.objective is not None]
    asked = [each for each in sums if each.query.name != "means"]
    assert asked
    for answer in asked:
        total = answer.objective.clipped_sum(answer.at[0], np.array([7]), answer.bound)
        assert not total.any()
        assert answer.objective.clipped_sum(answer.at[0], np.array([8]), answer.bound).any()


def test_no_record_moves_the_sum_of_an_imputer_by_more_than_is_priced():
    table = HOLES[:60].copy()
    table[0], table[1], table[2] = [100, 10, 2], [-1e300, 1e300, np.nan], np.nan
    tape = record(lambda data: SimpleImputer(**WIDE).fit(data), table)
    (answer,) = tape.answers
    sums = [answer.objective.clipped_sum(answer.at[0], np.array([row]), 1e9) for row in range(60)]
    moved = np.linalg.norm(sums, axis=1)
    assert answer.bound * (1 - 1e-8) <= max(moved) <= answer.bound
    assert moved[2] == 0


def test_the_price_of_learned_categories_covers_the_threshold():
    """Gaussian noise by its closed form, and lonely labels of two columns, named independently."""
    model = OneHotEncoder(epsilon=0.7, delta=1e-5).fit(WARDS)
    (entry,) = model.ledger_.entries
    assert entry.count == 2
    unnamed = norm.cdf((entry.threshold - 1) / entry.noise_multiplier) ** entry.count
    assert 1e-7 < 1 - unnamed < 2e-6
    whole = events.GaussianDpEvent(entry.noise_multiplier / math.sqrt(entry.count))
    left = (1e-5 - (1 - unnamed)) / unnamed
    exact = epsilon(whole, delta=left, neighboring_relation="replace-special")
    assert float(model.epsilon_spent_) >= exact.lower * (1 - 1e-9)
    assert exact.upper <= 0.7


def test_a_category_of_few_records_is_not_named():
    """A record alone is named with a probability of 5e-6 a fit, and so in 50 fits with 3e-4."""
    table = WARDS.copy()
    table[5] = ["secret", 3.25]
    for _ in range(50):
        model = OneHotEncoder(epsilon=8.0, delta=1e-4).fit(table)
        assert [each.tolist() for each in model.categories_] == [["east", "north", "west"]] * 2
        assert model.transform(table)[5].sum() == 0


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_that_is_no_number_is_missing_alone(cell):
    holes, odd = HOLES[:300].astype(object), HOLES[:300].astype(object)
    holes[3], odd[3] = [40.0, np.nan, 0.5], [40.0, cell, 0.5]
    for model in SimpleImputer(**WIDE), SimpleImputer(strategy="median", **WIDE), Clipper(**WIDE):
        known = [seeded(model, 3).fit(table).transform(table)[3] for table in (holes, odd)]
        np.testing.assert_array_equal(*known)
        assert known[0][0] == pytest.approx(40.0, abs=30)


# -- budgets

FREE = {
    "imputer": lambda: SimpleImputer(strategy="constant", fill_value=[40, -3, 0.5]),
    "encoder": lambda: OneHotEncoder(categories=[[0, 1, 2]] * 3),
    "clipper": lambda: Clipper(quantiles=None, **WIDE),
}


@pytest.mark.parametrize("name", FREE)
def test_what_is_declared_costs_nothing_and_has_no_share(name):
    y = (X[:, 0] > 40).astype(int)
    model = make_pipeline(FREE[name](), LogisticRegression(classes=[0, 1], steps=5))
    alone = split_budget(model, epsilon=1.0, delta=1e-6)
    assert alone[-1].epsilon == pytest.approx(1.0, rel=1e-3)
    with dpcal.budget(epsilon=2.0, delta=1e-6) as shared:
        FREE[name]().fit(X)
        assert shared.spent == 0
        alone.fit(X, y)
        assert 0.99 < shared.spent <= 1.0
    assert float(alone[0].epsilon_spent_) == 0
    assert not alone[0].ledger_.entries
    with pytest.raises(ValueError, match="must have a private step"):
        split_budget(make_pipeline(FREE[name]()), epsilon=1.0, delta=1e-6)


def test_scores_and_searches_count_records_whose_missing_cells_are_filled():
    """Were they blank, a third of the records would count as half right: 0.83. Noise: 0.002."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(0, 1, (N, 2))
    y = (numbers[:, 0] > 0).astype(int)
    numbers[::3, 1] = np.nan
    mixed = np.column_stack([numbers.astype(object), WARDS[:, 0]])
    last = LogisticRegression(classes=[0, 1], epsilon=4.0)
    fill = SimpleImputer(bounds=(-4, 4), epsilon=4.0)
    columns = ColumnTransformer([("n", fill, [0, 1]), ("c", OneHotEncoder(epsilon=4.0), [2])])
    filled = make_pipeline(fill, last)
    for table, model in ((numbers, filled), (mixed, make_pipeline(columns, last))):
        with dpcal.budget(epsilon=99.0, delta=1e-4):
            score = noisy_accuracy(model.fit(table, y), table, y, epsilon=5.0)
        assert score > 0.95
        assert score == pytest.approx((model.predict(table) == y).mean(), abs=0.01)
    search = PrivateSearch(filled, {"logisticregression__steps": [40]}, trials=5, shape=1.0)
    assert search.fit(numbers, y).best_score_ > 0.95


def test_columns_without_a_learned_category_are_named():
    with pytest.warns(UserWarning, match=r"learned for columns \[1\]"):
        model = OneHotEncoder().fit(np.column_stack([WARDS[:, 0], np.arange(N)]))
    assert model.transform([["east", 5]]).tolist() == [[1.0, 0.0, 0.0]]
