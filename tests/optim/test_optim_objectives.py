"""Losses, gradients and optima against finite differences and scikit-learn, and what is refused."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from dpcal.errors import VacuousSchedule
from dpcal.optim import FromGradients, Logistic, Squared, check_objective


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [partial(Logistic, classes=[0, 1]), Squared])
def test_gradient_is_the_derivative_of_the_loss(kind, fit_intercept):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.integers(0, 2, 30)
    objective = kind(X, y, l2=0.3, fit_intercept=fit_intercept)
    w, h = rng.standard_normal(objective.dimension), 1e-5
    steps = h * np.eye(objective.dimension)
    slopes = [(objective.loss(w + e) - objective.loss(w - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(objective.gradient(w), slopes, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_optimum_is_scikit_learn_s(cancer, fit_intercept):
    X, y = cancer
    l2 = 0.01
    peer = LogisticRegression(
        C=1 / (l2 * len(y)), fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000
    ).fit(X, y)
    objective = Logistic(X, y, l2=l2, fit_intercept=fit_intercept, classes_from_data=True)
    w = objective.minimize()
    expected = np.append(peer.coef_, peer.intercept_) if fit_intercept else peer.coef_[0]
    np.testing.assert_allclose(w, expected, atol=1e-5)
    np.testing.assert_allclose(objective.decision(X, w), peer.decision_function(X), atol=1e-4)
    assert (objective.predict(X, w) == peer.predict(X)).all()
    assert np.abs(objective.gradient(w)).max() < 1e-7


def test_squared_optimum_is_ridge_regression_s():
    X, y = load_diabetes(return_X_y=True)
    l2 = 0.001
    peer = Ridge(alpha=l2 * len(y), tol=1e-12).fit(X, y)
    w = Squared(X, y, l2=l2).minimize()
    np.testing.assert_allclose(w, np.append(peer.coef_, peer.intercept_), rtol=1e-4)


@pytest.mark.parametrize("kind", [partial(Logistic, classes=[0, 1]), Squared])
def test_constants_bound_gradients_and_their_change(kind):
    rng = np.random.default_rng(1)
    X, y = 3 * rng.standard_normal((20, 5)), rng.integers(0, 2, 20)
    objective = kind(X, y)
    constants = objective.constants
    for _ in range(200):
        v, w = rng.standard_normal((2, 6)) * rng.choice([0.01, 1.0, 100.0])
        for row in range(20):
            rows = np.array([row])
            at_v, at_w = (objective.clipped_sum(u, rows, math.inf) for u in (v, w))
            assert np.linalg.norm(at_v) <= constants.lipschitz
            change = constants.smoothness * np.linalg.norm(v - w)
            assert np.linalg.norm(at_v - at_w) <= change * (1 + 1e-12)


def test_logistic_constants_are_attained():
    # At w = 0 the slope changes at rate 1/4; far on the wrong side the slope is 1.
    objective = Logistic(
        [[3.0, 4.0], [0.0, 0.0]], [0, 1], fit_intercept=False, classes_from_data=True
    )
    far = objective.clipped_sum(np.array([600.0, 800.0]), np.array([0]), math.inf)
    assert np.linalg.norm(far) == pytest.approx(objective.constants.lipschitz, rel=1e-12)
    w = 1e-4 * np.array([0.6, 0.8])
    plus, minus = (objective.clipped_sum(s * w, np.array([0]), math.inf) for s in (1, -1))
    rate = np.linalg.norm(plus - minus) / 2e-4
    assert rate == pytest.approx(objective.constants.smoothness, rel=1e-6)


def test_intercept_counts_in_the_norm_and_not_in_the_regulariser():
    objective = Logistic([[3.0], [0.0]], [0, 1], l2=2.0, classes_from_data=True)
    assert objective.constants.lipschitz == pytest.approx(math.sqrt(10), rel=1e-13)
    w = np.array([0.0, 7.0])
    assert objective.regularizer_gradient(w).tolist() == [0.0, 0.0]
    assert objective.loss(w) == Logistic([[3.0], [0.0]], [0, 1], classes_from_data=True).loss(w)


@pytest.mark.parametrize(
    "labels", [["no", "yes", "no"], [True, False, True], [-1, 1, -1], [2.0, 7.0, 2.0]]
)
def test_any_two_classes_will_do(labels):
    X = [[0.0], [1.0], [0.2]]
    objective = Logistic(X, labels, classes_from_data=True)
    assert set(objective.classes_) == set(labels)
    reference = Logistic(
        X, [label == objective.classes_[1] for label in labels], classes_from_data=True
    )
    w = np.array([0.3, -0.2])
    assert objective.loss(w) == reference.loss(w)


def test_other_layouts_and_types_mean_the_same_records():
    X = np.arange(12.0).reshape(4, 3)
    y, w = [0, 1, 0, 1], np.array([0.1, -0.2, 0.3, 0.4])
    loss = Logistic(X, y, classes_from_data=True).loss(w)
    for same in (np.asfortranarray(X), X.astype(np.int8), X.tolist(), np.repeat(X, 2, 0)[::2]):
        assert Logistic(same, y, classes_from_data=True).loss(w) == loss


@pytest.mark.parametrize("family", [partial(Logistic, classes=[0, 1]), Squared])
def test_sparse_records_are_refused_as_sparse(family):
    with pytest.raises(TypeError, match="X must be a dense array, got a sparse one"):
        family(scipy.sparse.csr_array(np.eye(3)), [0, 1, 1])


@pytest.mark.parametrize(
    ("X", "y", "options", "sentence"),
    [
        (np.empty((0, 2)), [], {}, "y must hold two classes, got 0"),
        (np.empty((2, 0)), [0, 1], {}, r"X must have shape \(n, d\) .* got shape \(2, 0\)"),
        ([1.0, 2.0], [0, 1], {}, r"X must have shape \(n, d\) .* got shape \(2,\)"),
        ([[1.0], [2.0]], [1, 1], {}, "y must hold two classes, got 1"),
        ([[1.0]] * 3, [0, 1, 2], {}, "y must hold two classes, got 3"),
        ([[1.0]] * 3, [0, 1], {}, r"y must have shape \(3,\) to match X, got \(2,\)"),
        ([[1.0]] * 2, [[0], [1]], {}, r"y must have shape \(2,\) to match X, got \(2, 1\)"),
        ([[1.0], [2.0]], [0, 1], {"l2": -1.0}, "l2 must be a finite number >= 0, got -1.0"),
    ],
)
def test_bad_records_are_refused_in_a_sentence(X, y, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Logistic(X, y, **options, classes_from_data=True)


def test_text_is_no_table_of_numbers():
    with pytest.raises(TypeError, match="X must be an array of real numbers"):
        Logistic(np.array([["a"], ["b"]]), [0, 1], classes_from_data=True)
    with pytest.raises(ValueError, match="y must hold numbers, as classes do, got text"):
        Logistic([[1.0], [2.0]], np.array(["a", "b"]), classes=[0, 1])
    with pytest.raises(TypeError, match="y must be an array of real numbers"):
        Squared([[1.0], [2.0]], np.array(["a", "b"]))


def test_squared_refuses_empty_data():
    with pytest.raises(ValueError, match="X must have shape"):
        Squared(np.empty((0, 2)), [])


def test_new_records_must_have_the_same_columns():
    objective = Logistic([[1.0, 2.0], [2.0, 1.0]], [0, 1], classes_from_data=True)
    with pytest.raises(ValueError, match="X must have 2 columns, got 3"):
        objective.decision([[1.0, 2.0, 3.0]], np.zeros(3))
    with pytest.raises(ValueError, match=r"w must have shape \(3,\), got \(2,\)"):
        objective.decision([[1.0, 2.0]], np.zeros(2))


def test_a_hinge_under_a_smooth_theorem_is_named_and_smooth_losses_are_not():
    """The gradient of a hinge jumps by a row's norm however near two parameters are."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    signs = np.where(rng.random(60) < 0.5, -1.0, 1.0)

    def hinge(w, rows):
        inside = signs[rows] * (X[rows] @ w) < 1
        return -(inside * signs[rows])[:, np.newaxis] * X[rows]

    with pytest.warns(VacuousSchedule, match="the loss has a kink, as a hinge has"):
        check_objective(FromGradients(hinge, n=60, dimension=3), smoothness=1e3)
    logistic = Logistic(X, signs, fit_intercept=False, classes=[-1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_objective(logistic, smoothness=0.25)
    # A constant that is ten times too small is found as well.
    with pytest.warns(VacuousSchedule, match=r"more than smoothness=0\.025 allows"):
        check_objective(logistic, smoothness=0.025)
