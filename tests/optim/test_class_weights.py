"""Weights of classes: a weighted record counts as several, and is clipped like one."""

import pickle

import numpy as np
import pytest

from dpcal.optim import Logistic, Sigmoid, Softmax
from dpcal.optim.objectives import softmax

WEIGHTS = {"a": 1.0, "b": 3.0, "c": 2.0}


def table(classes, n=30, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.choice(classes, n)


@pytest.fixture(params=["logistic", "sigmoid", "softmax", "softmax by matrices"])
def make(request, monkeypatch):
    """How to make an objective, and its classes."""
    if request.param == "softmax by matrices":
        # Sums by matrices, as where a kernel would be too wide.
        monkeypatch.setattr(softmax, "WIDEST_KERNEL", 0)
    kind = {"logistic": Logistic, "sigmoid": Sigmoid}.get(request.param, Softmax)
    return kind, ["a", "b"] if kind is not Softmax else ["a", "b", "c"]


def test_a_weight_of_three_is_three_records(make):
    kind, classes = make
    X, y = table(classes)
    weights = {name: WEIGHTS[name] for name in classes}
    weighted = kind(X, y, class_weights=weights)
    times = np.array([int(weights[label]) for label in y])
    repeated = kind(np.repeat(X, times, axis=0), np.repeat(y, times), classes=classes)
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=(2, weighted.dimension))
    share = times.sum() / len(y)  # means are over other numbers of records
    assert weighted.loss(w) == pytest.approx(share * repeated.loss(w), rel=1e-12)
    np.testing.assert_allclose(weighted.gradient(w), share * repeated.gradient(w), atol=1e-13)
    np.testing.assert_allclose(
        weighted.hessian_vector(w, v), share * repeated.hessian_vector(w, v), atol=1e-13
    )
    everyone, all_of_them = np.arange(weighted.n), np.arange(repeated.n)
    np.testing.assert_allclose(
        weighted.clipped_difference_sum(w, v, everyone, np.inf),
        repeated.clipped_difference_sum(w, v, all_of_them, np.inf),
        atol=1e-12,
    )


def test_a_record_is_clipped_after_it_was_weighted(make):
    """The sensitivity is the clipping norm, however large a weight is."""
    kind, classes = make
    X, y = table(classes)
    huge = kind(X, y, class_weights=dict.fromkeys(classes, 1e6))
    plain = kind(X, y, classes=classes)
    w, v = np.random.default_rng(2).normal(size=(2, plain.dimension))
    for row in range(plain.n):
        alone = np.array([row])
        for weighted, bare in (
            (huge.clipped_sum(w, alone, 0.5), plain.clipped_sum(w, alone, np.inf)),
            (
                huge.clipped_difference_sum(w, v, alone, 0.5),
                plain.clipped_difference_sum(w, v, alone, np.inf),
            ),
        ):
            assert np.linalg.norm(weighted) <= 0.5
            expected = bare * 0.5 / np.linalg.norm(bare)
            np.testing.assert_allclose(weighted, expected, rtol=1e-9, atol=1e-12)


def test_constants_bound_what_weights_do(make):
    kind, classes = make
    X, y = table(classes, n=12)
    objective = kind(X, y, class_weights={name: WEIGHTS[name] for name in classes}, l2=0.0)
    constants, rng = objective.constants, np.random.default_rng(3)
    for _ in range(50):
        w, v = rng.normal(size=(2, objective.dimension)) * rng.choice([0.1, 1, 10])
        for row in range(objective.n):
            alone = np.array([row])
            change = objective.clipped_difference_sum(w, v, alone, np.inf)
            size = np.linalg.norm(objective.clipped_sum(w, alone, np.inf))
            assert size <= constants.lipschitz
            assert np.linalg.norm(change) <= constants.smoothness * np.linalg.norm(w - v)
            bound = objective.smoothness_when_convex(alone)
            if bound is not None:
                assert np.linalg.norm(change) <= bound[0] * np.linalg.norm(w - v)


def test_public_constants_grow_by_the_largest_weight():
    plain, heavy = (Logistic.constants_for(row_norm=2.0, largest_weight=at) for at in (1.0, 3.0))
    for name in ("lipschitz", "smoothness", "gap", "hessian_lipschitz"):
        assert getattr(heavy, name) == pytest.approx(3 * getattr(plain, name), rel=1e-15)
    gap = Softmax.constants_for(row_norm=2.0, classes=4, largest_weight=2.0).gap
    assert gap >= 2 * np.log(4)


def test_other_weights_are_other_noise_and_copies_are_alike(make):
    kind, classes = make
    X, y = table(classes)
    first = kind(X, y, class_weights=dict.fromkeys(classes, 1.0))
    second = kind(X, y, class_weights=dict.fromkeys(classes, 2.0))
    assert first.digest() != second.digest()
    again = pickle.loads(pickle.dumps(second))
    w = np.random.default_rng(4).normal(size=second.dimension)
    assert np.array_equal(again.gradient(w), second.gradient(w))


def test_weights_name_the_classes():
    X, y = table(["a", "b"])
    only = Logistic(X[y == "a"], y[y == "a"], class_weights={"b": 2.0, "a": 1.0})
    assert only.classes_.tolist() == ["a", "b"]
    assert only.weights.tolist() == [1.0, 2.0]
    for weights, sentence in (
        ({"a": 1.0, "b": 0.0}, "finite numbers > 0"),
        ({"a": 1.0, "b": np.inf}, "finite numbers > 0"),
        ({"a": 1.0, "c": 1.0}, "must name each of the classes"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Logistic(X, y, classes=["a", "b"], class_weights=weights)
