"""Weights of classes change what is learned, and neither the price nor a record's share."""

import numpy as np
import pytest

from dpcal import budget
from dpcal.estimators import LogisticRegression, PrivateSearch

RARE = {0: 1, 1: 9}


def table(seed=0, n=5_000):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 1.1).astype(int)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_rare_class_is_found_at_the_same_price(scale):
    X, y = table()
    plain = LogisticRegression(classes=[0, 1]).fit(X, y)
    weights = {label: scale * weight for label, weight in RARE.items()}
    weighted = LogisticRegression(class_weight=weights).fit(X, y)
    assert plain.predict(X)[y == 1].mean() < 0.2
    assert weighted.predict(X)[y == 1].mean() > 0.7
    assert weighted.epsilon_spent_ == plain.epsilon_spent_
    assert weighted.classes_.tolist() == [0, 1]  # those of the weights are declared
    assert [query.name for query in weighted.ledger_.entries] == ["scale", "gradient"]


def test_a_record_moves_one_step_by_the_clip_at_most_whatever_its_weight():
    X, y = table(n=200)
    found = []
    for blank in (False, True):
        rows = X.copy()
        rows[np.flatnonzero(y == 1)[0]] = np.nan if blank else X[np.flatnonzero(y == 1)[0]]
        model = LogisticRegression(
            class_weight={0: 1, 1: 1e6}, max_norm=0.5, steps=1, learning_rate=1.0, epsilon=1e8
        )
        model.fit(rows, y)
        found.append(np.append(model.coef_, model.intercept_))
    moved = np.linalg.norm(found[0] - found[1])
    assert moved == pytest.approx(0.5 / len(X), rel=0.01)  # the noise is below that


def test_three_classes_and_a_search_take_weights():
    X, y = table()
    y = y + (X[:, 1] > 0.9)
    model = LogisticRegression(class_weight={0: 1, 1: 5, 2: 20}).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    grid = {"class_weight": [RARE, {0: 1, 1: 3}]}
    search = PrivateSearch(LogisticRegression(), grid, epsilon=2.0).fit(X, y)
    assert search.best_params_["class_weight"] in grid["class_weight"]


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ("balanced", r"got 'balanced'. Counts of classes are private: .* class_weight=\{0: 1"),
        ({0: 1}, r"for each of the classes \[0, 1\], got \{0: 1\}"),
    ],
)
def test_weights_that_are_none_are_refused_before_anything_is_spent(weights, told):
    X, y = table(n=100)
    with budget(epsilon=1.0, delta=1e-6) as shared:
        model = LogisticRegression(classes=[0, 1], class_weight=weights)
        with pytest.raises(ValueError, match=told):
            model.fit(X, y)
        with pytest.raises(ValueError, match=told):
            model.partial_fit(X, y)
        assert shared.spent == 0
