"""Scales, quantiles, components, clusters and bounds: what is found, and what it costs."""

import numpy as np
import pytest
from scipy.stats import expon
from sklearn import decomposition

from dpcal.accountants import epsilon, events
from dpcal.estimators import (
    PCA,
    Clipper,
    KMeans,
    QuantileTransformer,
    SimpleImputer,
    StandardScaler,
)
from dpcal.estimators.bounds import _orders, _range
from tests.estimators._models import made, seeded


def test_moments_have_the_noise_that_was_paid_for():
    """Means of 3600 columns of records in the middle of their bounds: sigma sqrt(5 d / 4) / n.

    The standard deviation of 3600 normals is within 6 percent of sigma but for one time in 10^6.
    """
    X = np.zeros((100, 3600))
    scaler = seeded(StandardScaler(bounds=(-1e3, 1e3), epsilon=2e3), 7).fit(X)
    (entry,) = scaler.ledger_.entries
    expected = 1e3 * entry.noise_multiplier * np.sqrt(1.25 * 3600) / 100
    assert expected < 500  # far from the bounds
    assert np.std(scaler.mean_) == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_noise_leads_no_mean_out_of_the_bounds(value):
    """Records at an end of their bounds, and noise as large as they are: 40 columns, both signs."""
    X = np.full((60, 40), value)
    given = {"bounds": (0, 1), "epsilon": 5.0}
    imputer = seeded(SimpleImputer(**given), 3).fit(X)
    scaler = seeded(StandardScaler(**given), 3).fit(X)
    for found in (imputer.statistics_, scaler.mean_):
        assert ((found >= 0) & (found <= 1)).all()
        assert len(np.unique(found)) > 10  # noise leads most of them inside


def test_quantiles_are_those_of_the_law():
    """Ranks of 15 quantiles of 20,000 records, within 0.02. Seed 0."""
    X = np.random.default_rng(0).exponential(size=(20_000, 1))
    model = seeded(QuantileTransformer(bounds=(0, 50), epsilon=2.0), 0).fit(X)
    assert np.abs(expon.cdf(model.quantiles_[1:-1, 0]) - model.references_[1:-1]).max() < 0.02
    assert (np.diff(model.quantiles_[:, 0]) >= 0).all()


def test_quantiles_cost_a_level_of_the_tree_for_each_column():
    X = np.random.default_rng(1).uniform(size=(300, 2))
    model = QuantileTransformer(bounds=(0, 1), n_quantiles=7, epsilon=1.0).fit(X)
    (entry,) = model.ledger_.entries
    assert entry.count == 3 * 2
    one = events.ExponentialMechanismDpEvent(2 / entry.noise_multiplier)
    exact = epsilon(events.SelfComposedDpEvent(one, 6), delta=1e-6)
    assert model.epsilon_spent_ == pytest.approx(exact, rel=1e-6)


def test_much_budget_gives_the_components_of_everybody_else():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (4_000, 3)) * [1.0, 0.5, 0.1] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    private = seeded(PCA(2, bounds=(-2, 2), epsilon=1e3), 2).fit(X)
    exact = decomposition.PCA(2).fit(X)
    aligned = np.abs((private.components_ * exact.components_).sum(axis=1))
    np.testing.assert_allclose(aligned, 1.0, atol=1e-3)
    np.testing.assert_allclose(private.explained_variance_, exact.explained_variance_, rtol=0.05)
    np.testing.assert_allclose(private.components_ @ private.components_.T, np.eye(2), atol=1e-12)
    back = private.inverse_transform(private.transform(X))
    assert np.abs(back - X).max() < 0.2


@pytest.mark.slow
def test_clusters_are_found_at_epsilon_one():
    """Three clusters of 5000; noise moves a centre by 0.0021 of its range, so that 0.02 is far."""
    rng = np.random.default_rng(3)
    places = np.array([[10.0, 100.0], [30.0, 300.0], [10.0, 300.0]])
    X = np.repeat(places, 5_000, axis=0) + rng.normal(size=(15_000, 2)) * [1.5, 15.0]
    for seed in range(3):
        model = seeded(KMeans(3, bounds=([0, 0], [40, 400]), epsilon=1.0), seed).fit(X)
        away = np.abs(model.cluster_centers_[:, np.newaxis] - places) / [40, 400]
        assert away.max(axis=2).min(axis=0).max() < 0.02
        assert np.abs(np.sort(model.counts_) - 5_000).max() < 300
    assert [query.name for query in model.ledger_.entries] == ["grid", "clusters"]


def test_a_fitted_model_keeps_no_cluster_of_a_record():
    X = np.random.default_rng(3).uniform(0, 1, (500, 2))
    model = KMeans(2, bounds=(0, 1))
    assert (model.fit_predict(X) == model.predict(X)).all()
    kept = [np.shape(value) for value in vars(model).values() if isinstance(value, np.ndarray)]
    assert kept
    assert not [shape for shape in kept if 500 in shape]
    assert not hasattr(model, "labels_")


# -- bounds that are learned


def table(n=5000):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(1000, 100, n), rng.normal(0, 1e-3, n), rng.uniform(-9, -5, n)])
    return X, (X[:, 0] > 1000).astype(int)


@pytest.mark.parametrize("name", ["scaler", "quantiles", "pca", "kmeans", "declared", "line"])
def test_learned_bounds_are_wide_enough_and_the_first_that_is_paid(name):
    X, y = table()
    model = made(name, bounds="learn", epsilon=2.0, delta=1e-5)
    if name == "line":
        model.set_params(target_bounds="learn", solver="auto")
    model.fit(X, y)
    assert model.ledger_.entries[0].name == "bounds"
    low, high = model.bounds_
    inside = ((low <= X) & (high >= X)).mean(axis=0)
    assert (inside > 0.9).all()
    # Orders of magnitude are powers of two: no more than four times too wide, and more about 0.
    assert (high - low <= 4 * np.ptp(X, axis=0)).all()
    assert getattr(model, "target_bounds_", (0.0, 1.0))[1] >= 1.0
    assert model.bounds == "learn"
    # A fit with declared ones forgets them.
    ends = [each for each in ("bounds", "target_bounds") if each in model.get_params()]
    model.set_params(**dict.fromkeys(ends, (-2000, 2000))).fit(X, y)
    assert not hasattr(model, "bounds_")
    assert "bounds" not in [entry.name for entry in model.ledger_.entries]


def test_the_ends_of_orders_of_magnitude_hold_their_values():
    for values, ends in (
        ([3.0, 5.0, 900.0], (2.0, 1024.0)),
        ([-3.0, 0.0, 0.3], (-4.0, 0.5)),
        ([-3.0, -100.0], (-128.0, -2.0)),
        ([1.0], (1.0, 2.0)),
        ([1e-300, 0.0, 2e300], (0.0, 2.0**998)),
    ):
        assert _range(np.unique(_orders(np.array(values))), 0) == ends, values


def test_few_records_have_no_bounds_and_partial_fit_needs_them():
    X, _ = table(20)
    with pytest.raises(ValueError, match="too few records share an order of magnitude"):
        StandardScaler(bounds="learn", epsilon=0.5).fit(X)
    with pytest.raises(ValueError, match="learned by fit alone"):
        StandardScaler(bounds="learn").partial_fit(X)


@pytest.mark.parametrize("make", [StandardScaler, PCA, Clipper])
def test_bounds_whose_squares_are_still_numbers_are_taken(make):
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    model = make(bounds=(-1e100, 1e100)).fit(1e100 * X)
    kept = [each for each in vars(model).values() if isinstance(each, np.ndarray)]
    assert all(np.isfinite(each).all() for each in kept if each.dtype.kind == "f")
