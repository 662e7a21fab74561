"""Quantiles, components and clusters: what is found, and what it costs."""

import numpy as np
import pytest
from scipy.stats import expon
from sklearn import decomposition
from sklearn.pipeline import make_pipeline

from dpcal.accountants import epsilon, events
from dpcal.estimators import (
    PCA,
    KMeans,
    LogisticRegression,
    QuantileTransformer,
    StandardScaler,
    split_budget,
)


def seeded(model, seed):
    """Return a model whose noise is that of a seed; in tests alone."""
    model._seed = seed
    return model


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
    with pytest.raises(ValueError, match=r"2\^k - 1 with k >= 1, got 8"):
        QuantileTransformer(bounds=(0, 1), n_quantiles=8).fit(X)


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
    with pytest.raises(AttributeError, match=r"fit_predict\(X\)"):
        _ = model.labels_


@pytest.mark.slow
def test_a_split_budget_adds_up_over_a_pipeline():
    steps = make_pipeline(
        StandardScaler(bounds=(-1, 1)), PCA(2, bounds=(-3, 3)), LogisticRegression(classes=[0, 1])
    )
    model = split_budget(steps, epsilon=2.0, delta=1e-6, weights=[1, 2, 5])
    shares = [(step.epsilon, step.delta) for step in model]
    assert shares[1][0] / shares[0][0] == pytest.approx(2.0)
    assert shares[2][0] / shares[0][0] == pytest.approx(5.0)
    assert 2.0 < sum(share[0] for share in shares) < 2.0 * 3**0.5
    assert sum(share[1] for share in shares) <= 1e-6
    X = np.random.default_rng(4).uniform(-1, 1, (300, 4))
    model.fit(X, (X[:, 0] > 0).astype(int))
    whole = events.ComposedDpEvent([step.ledger_.event for step in model])
    assert 1.999 < epsilon(whole, delta=1e-6) <= 2.0
    assert steps[0].epsilon == 1.0


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ([1.0], "one for each of standardscaler, logisticregression, got 1"),
        ({"standardscaler": 1.0}, "for the private steps standardscaler, logisticregression"),
        ([1.0, -1.0], "weights must be a finite number > 0, got -1.0"),
    ],
)
def test_bad_weights_are_sentences(weights, told):
    steps = make_pipeline(StandardScaler(bounds=(-1, 1)), LogisticRegression(classes=[0, 1]))
    with pytest.raises(ValueError, match=told):
        split_budget(steps, epsilon=1.0, delta=1e-6, weights=weights)
