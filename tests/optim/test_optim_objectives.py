"""Losses, gradients and optima against finite differences and scikit-learn, and what is refused."""

import math
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from dpcal.errors import VacuousSchedule
from dpcal.optim import FromGradients, Logistic, Softmax, Squared, check_objective


@pytest.mark.parametrize(
    ("family", "load", "fit_intercept"),
    [
        (Logistic, load_breast_cancer, True),
        (Logistic, load_breast_cancer, False),
        (Softmax, load_iris, True),
    ],
)
def test_optima_of_classes_are_scikit_learn_s(family, load, fit_intercept):
    X, y = load(return_X_y=True)
    X, l2 = StandardScaler().fit_transform(X), 0.01
    peer = LogisticRegression(
        C=1 / (l2 * len(y)), fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000
    ).fit(X, y)
    objective = family(X, y, l2=l2, fit_intercept=fit_intercept, classes_from_data=True)
    w, coefficients = objective.minimize(), peer.coef_.ravel()
    np.testing.assert_allclose(w[: coefficients.size], coefficients, atol=2e-4)
    assert (objective.predict(X, w) == peer.predict(X)).all()
    assert np.abs(objective.gradient(w)).max() < 1e-6
    if family is Logistic:
        np.testing.assert_allclose(objective.decision(X, w), peer.decision_function(X), atol=1e-4)


def test_squared_optimum_is_ridge_regression_s():
    X, y = load_diabetes(return_X_y=True)
    l2 = 0.001
    peer = Ridge(alpha=l2 * len(y), tol=1e-12).fit(X, y)
    w = Squared(X, y, l2=l2).minimize()
    np.testing.assert_allclose(w, np.append(peer.coef_, peer.intercept_), rtol=1e-4)


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


FROM_DATA = {"classes_from_data": True}


def test_bad_records_are_refused_in_a_sentence():
    text, two = np.array(["a", "b"]), [[1.0], [2.0]]
    objective = Logistic([[1.0, 2.0], [2.0, 1.0]], [0, 1], **FROM_DATA)
    for y in ([1, 1], [0, 1, 2]):
        with pytest.raises(ValueError, match=f"y must hold two classes, got {len(set(y))}"):
            Logistic(np.ones((len(y), 2)), y, **FROM_DATA)
    for ask, sentence in (
        (lambda: Logistic(text[:, None], [0, 1], **FROM_DATA), "X must be an array"),
        (lambda: Logistic(np.ones((0, 2)), [], **FROM_DATA), "X must have shape"),
        (lambda: Logistic(two, text, classes=[0, 1]), "y must hold numbers"),
        (lambda: Squared(two, text), "y must be an array of real numbers"),
        (lambda: objective.decision([[1.0, 2.0, 3.0]], np.zeros(3)), "X must have 2 c"),
        (lambda: objective.decision([[1.0, 2.0]], np.zeros(2)), r"w must have shape"),
    ):
        with pytest.raises((TypeError, ValueError), match=sentence):
            ask()


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
