"""Losses of all kinds: derivatives, constants, clipped sums and differences, softmax's kernel."""

import math
import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from dpcal.optim import (
    KAN,
    MLP,
    Cauchy,
    Constants,
    FromGradients,
    Huber,
    Logistic,
    Objective,
    Sigmoid,
    Softmax,
    Squared,
    Welsch,
)
from dpcal.optim.objectives.contributions import kernel_of
from dpcal.optim.objectives.linear import smoothness_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((25, 4))
LABELS = RNG.integers(0, 2, 25)
CLASSES = RNG.integers(0, 3, 25)
TARGETS = 3 * RNG.standard_normal(25)


def user(l2=0.0, **options):
    """Least squares as a user would write it."""

    def residuals(w, rows):
        return X[rows] @ w - TARGETS[rows]

    return FromGradients(
        lambda w, rows: residuals(w, rows)[:, np.newaxis] * X[rows],
        loss=lambda w, rows: residuals(w, rows) ** 2 / 2,
        **{"n": 25, "dimension": 4, "l2": l2, "block": 7, **options},
    )


LABELLED, WEIGHTS = {"classes": [0, 1]}, {0: 1.0, 1: 3.0, 2: 2.0}
CASES = {
    "Logistic": lambda **k: Logistic(X, LABELS, **LABELLED, **k),
    "Logistic, no intercept": lambda **k: Logistic(X, LABELS, fit_intercept=False, **LABELLED, **k),
    "Squared": lambda **k: Squared(X, TARGETS, **k),
    "Huber": lambda **k: Huber(X, TARGETS, width=0.7, **k),
    "Cauchy": lambda **k: Cauchy(X, TARGETS, width=0.7, **k),
    "Welsch": lambda **k: Welsch(X, TARGETS, width=0.7, **k),
    "Sigmoid": lambda **k: Sigmoid(X, LABELS, **LABELLED, **k),
    "Softmax": lambda **k: Softmax(X, CLASSES, classes=[0, 1, 2], **k),
    "Softmax, no intercept": lambda **k: Softmax(
        X, CLASSES, fit_intercept=False, classes=[0, 1, 2], **k
    ),
    "FromGradients": user,
    "Logistic, weighted": lambda **k: Logistic(X, LABELS, class_weights={0: 1.0, 1: 3.0}, **k),
    "Sigmoid, weighted": lambda **k: Sigmoid(X, LABELS, class_weights={0: 1.0, 1: 3.0}, **k),
    "Softmax, weighted": lambda **k: Softmax(X, CLASSES, class_weights=WEIGHTS, **k),
}
NETWORKS = {
    "MLP": lambda **k: MLP(X, CLASSES, width=6, classes=[0, 1, 2], **k),
    "MLP, two classes": lambda **k: MLP(X, LABELS, width=3, **LABELLED, **k),
    "KAN": lambda **k: KAN(X / 4, LABELS, width=6, intervals=4, **LABELLED, **k),
    "KAN, three intervals": lambda **k: KAN(X / 4, LABELS, width=3, intervals=3, **LABELLED, **k),
}
ALL = {**CASES, **NETWORKS}
FAR = np.array([[1e308, 1e308], [1e-308, 1e-308], [1.0, 1.0]])
EXTREME = {
    "Softmax, extreme records": lambda: Softmax(FAR, [0, 1, 2], classes=[0, 1, 2]),
}
# Of rows of the last length half of the smallest number, and a bit, is a clip factor.
for length in (1e165, 1e175, 1e180, 2.24e183):
    rows = np.full((2, 3), length), [1.0, 0.0]
    EXTREME[f"Squared, {length}"] = partial(Squared, *rows, fit_intercept=False)
    EXTREME[f"Softmax, {length}"] = partial(Softmax, *rows, fit_intercept=False, classes=[0, 1])


def one_by_one(objective, w, rows):
    """Unclipped gradients of single records, shape (len(rows), dimension)."""
    gradients = [objective.clipped_sum(w, np.array([row]), math.inf) for row in rows]
    return np.array(gradients).reshape(len(rows), objective.dimension)


def clipped(gradients, max_norm):
    norms = np.linalg.norm(gradients, axis=1)
    return (gradients * np.minimum(1, max_norm / np.maximum(norms, 1e-300))[:, None]).sum(axis=0)


@pytest.mark.parametrize("name", ALL)
def test_gradient_is_the_derivative_of_the_loss(name):
    objective = ALL[name](l2=0.3)
    w, h = RNG.standard_normal(objective.dimension), 1e-5
    steps = h * np.eye(objective.dimension)
    slopes = [(objective.loss(w + e) - objective.loss(w - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(objective.gradient(w), slopes, atol=3e-8)


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(sorted(ALL)), st.floats(1e-3, 10), st.integers(0, 2**32))
def test_clipped_sums_are_brute_force_s(name, max_norm, seed):
    objective = ALL[name]()
    rng = np.random.default_rng(seed)
    w, v = rng.standard_normal((2, objective.dimension))
    rows = rng.integers(0, 25, rng.integers(0, 40))
    at_w, at_v = (one_by_one(objective, u, rows) for u in (w, v))
    found = objective.clipped_sum(w, rows, max_norm)
    np.testing.assert_allclose(found, clipped(at_w, max_norm), atol=1e-10)
    found = objective.clipped_difference_sum(w, v, rows, max_norm)
    np.testing.assert_allclose(found, clipped(at_w - at_v, max_norm), atol=1e-10)
    losses = [objective.clipped_loss_sum(w, np.array([row]), math.inf) for row in rows]
    expected = np.clip(losses, -max_norm, max_norm).sum()
    assert objective.clipped_loss_sum(w, rows, max_norm) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", [*ALL, *EXTREME])
def test_no_record_moves_a_sum_by_more_than_the_bound(name):
    # Also where activations saturate, products overflow, or nothing is a number any more.
    objective = {**ALL, **EXTREME}[name]()
    rng = np.random.default_rng(8)
    for magnitude, bound in product((-300, -3, 0, 3, 150, 308), (1e-300, 1e-140, 1e-3, 1.0, 1e3)):
        w, v = 10.0**magnitude * np.clip(rng.standard_normal((2, objective.dimension)), -1, 1)
        for row in range(objective.n):
            alone = np.array([row])
            with np.errstate(all="ignore"):
                sums = (
                    objective.clipped_sum(w, alone, bound),
                    objective.clipped_difference_sum(w, v, alone, bound),
                    np.array([objective.clipped_loss_sum(w, alone, bound)]),
                )
            for found in sums:
                assert np.isfinite(found).all(), (magnitude, bound)
                # In exact arithmetic on the sum of one record, to the last bits of it.
                assert math.fsum((found / bound) ** 2) <= 1 + 2.0**-50, (magnitude, bound)


@pytest.mark.parametrize("name", CASES)
def test_constants_bound_gradients_and_their_change(name):
    objective = CASES[name]()
    constants = objective.constants
    rng = np.random.default_rng(1)
    for _ in range(40):
        w, v = rng.standard_normal((2, objective.dimension)) * rng.choice([0.01, 1.0, 30.0])
        at_w, at_v = (one_by_one(objective, u, range(25)) for u in (w, v))
        assert np.linalg.norm(at_w, axis=1).max() <= constants.lipschitz
        change = np.linalg.norm(at_w - at_v, axis=1).max()
        moved = np.linalg.norm(w - v) * (1 + 1e-12)
        assert change <= constants.smoothness * moved
        bounds = smoothness_of(kernel_of(objective), np.arange(25))
        if bounds is not None:
            assert (np.linalg.norm(at_w - at_v, axis=1) <= bounds * moved).all()


@pytest.mark.parametrize("kind", [Huber, Cauchy, Welsch, Sigmoid, Logistic])
def test_constants_are_attained(kind):
    # One record with x = 1: the slope as a function of the score, maximised numerically.
    given = {"fit_intercept": False}
    if kind in (Sigmoid, Logistic):
        objective = kind([[1.0], [1.0]], [0, 1], classes=[0, 1], **given)
    else:
        objective = kind([[1.0]], [0.0], width=1.7, **given)

    def slope(score):
        return objective.clipped_sum(np.array([score]), np.array([objective.n - 1]), math.inf)[0]

    def curvature(score):
        return (slope(score + 1e-5) - slope(score - 1e-5)) / 2e-5

    def largest(function):
        grid = np.linspace(-20, 6, 4001)
        best = grid[np.argmax([abs(function(s)) for s in grid])]
        near = {"bounds": (best - 0.01, best + 0.01), "options": {"xatol": 1e-9}}
        return -minimize_scalar(lambda s: -abs(function(s)), method="bounded", **near).fun

    assert objective.constants.lipschitz == pytest.approx(largest(slope), rel=1e-7)
    assert objective.constants.smoothness == pytest.approx(largest(curvature), rel=1e-5)


@pytest.mark.parametrize("kind", [Huber, Cauchy, Welsch])
def test_within_the_width_they_are_least_squares_and_outliers_count_little(kind):
    wide = kind(X, TARGETS, width=1e4)
    w = RNG.standard_normal(5)
    assert wide.loss(w) == pytest.approx(Squared(X, TARGETS).loss(w), rel=1e-6)
    far = kind([[1.0]], [1e200], width=1.0, fit_intercept=False)
    assert abs(far.gradient([0.0])[0]) <= 1.0


@pytest.mark.parametrize("name", ["Softmax", "MLP", "KAN"])
def test_blocks_add_up(name, monkeypatch):
    objective = ALL[name]()
    w = objective.initial(seed=9) if name in NETWORKS else RNG.standard_normal(15)
    whole = objective.clipped_sum(w, np.arange(25), 0.5)
    monkeypatch.setattr("dpcal.optim.objectives.networks.MOST", 7)
    for rows in (5_000, 25, 0):
        found = objective.clipped_sum(w, np.arange(rows, dtype=np.intp) % 25, 0.5)
        np.testing.assert_allclose(found, whole * (rows / 25), atol=1e-8)


def test_differences_are_available_for_objectives_that_only_sum():
    class Minimal(Objective):
        n, dimension, penalized = 25, 4, 4
        kernel = "rbf"  # a name that classes of users may have for something else

        def record_gradients(self, w, rows):
            return user().record_gradients(w, rows)

    w, v = RNG.standard_normal((2, 4))
    rows = np.array([3, 1, 3, 20])
    np.testing.assert_allclose(
        Minimal().clipped_difference_sum(w, v, rows, 0.8),
        user().clipped_difference_sum(w, v, rows, 0.8),
        rtol=1e-12,
    )
    with pytest.raises(TypeError, match="Minimal gives no losses of single records"):
        Minimal().clipped_loss_sum(w, rows, 1.0)


def test_user_functions_and_records_are_checked():
    given, w, softmax = {"n": 5, "dimension": 2}, np.zeros(2), {"classes": [0, 1, 2]}
    mean = FromGradients(lambda w, rows: np.zeros(2), **given)
    scalar = FromGradients(lambda w, rows: X, loss=lambda w, rows: 1.0, **given)
    shape = r"gradients must return shape \(5, 2\) for 5 rows, got \(2,\)"
    for ask, sentence in (
        (lambda: mean.clipped_sum(w, np.arange(5), 1.0), shape),
        (lambda: mean.loss(w), "loss must be given"),
        (lambda: scalar.loss(w), r"loss must return shape \(5,\) for 5 rows"),
        (lambda: Softmax(X, 0 * LABELS, classes_from_data=True), "two classes or more, got 1"),
        (lambda: Softmax(X, CLASSES, **softmax).predict(X[:, :3], np.zeros(15)), "X must have 4 c"),
    ):
        with pytest.raises((TypeError, ValueError), match=sentence):
            ask()
    assert mean.constants == Constants(lipschitz=math.inf, smoothness=math.inf)


@pytest.mark.parametrize(("d", "K"), [(1, 2), (3, 7), (30, 33), (2, 70)])
def test_softmax_is_what_numpy_makes_of_its_formula(d, K):
    rng = np.random.default_rng(d)
    X, y = 3 * rng.standard_normal((120, d)), np.arange(120) % K
    for intercept in (False, True):
        made = Softmax(X, y, fit_intercept=intercept, classes_from_data=True)
        w, v = rng.standard_normal((2, made.dimension))
        at_w, at_v = (
            X @ u[: K * d].reshape(K, d).T + (u[K * d :] if intercept else 0.0) for u in (w, v)
        )
        losses = logsumexp(at_w, axis=1) - at_w[np.arange(120), y]
        assert made.record_losses(w, np.arange(120)) == pytest.approx(losses, rel=1e-12)
        left = softmax(at_w, axis=1) - softmax(at_v, axis=1)
        table = (left[:, :, np.newaxis] * X[:, np.newaxis]).reshape(120, -1)
        table = np.hstack([table, left]) if intercept else table
        table *= np.minimum(1, 0.3 / np.linalg.norm(table, axis=1, keepdims=True))
        for rows in (np.arange(120), np.array([7, 5, 7]), np.empty(0, dtype=np.intp)):
            found = made.clipped_difference_sum(w, v, rows, 0.3)
            np.testing.assert_allclose(found, table[rows].sum(axis=0), rtol=1e-10, atol=1e-11)


# -- weights of classes


@pytest.mark.parametrize("kind", [Logistic, Sigmoid, Softmax])
def test_a_weight_of_three_is_three_records(kind):
    y, classes = (LABELS, [0, 1]) if kind in (Logistic, Sigmoid) else (CLASSES, [0, 1, 2])
    weights = {each: WEIGHTS[each] for each in classes}
    weighted, times = (
        kind(X, y, class_weights=weights),
        np.array([int(weights[each]) for each in y]),
    )
    repeated = kind(np.repeat(X, times, axis=0), np.repeat(y, times), classes=classes)
    w, v = np.random.default_rng(1).normal(size=(2, weighted.dimension))
    share = times.sum() / len(y)  # means are over other numbers of records
    assert weighted.loss(w) == pytest.approx(share * repeated.loss(w), rel=1e-12)
    for name, at in (("gradient", (w,)), ("hessian_vector", (w, v))):
        one, other = (getattr(each, name)(*at) for each in (weighted, repeated))
        np.testing.assert_allclose(one, share * other, atol=1e-13)
    # Other weights are other noise, and copies are alike.
    other = kind(X, y, class_weights=dict.fromkeys(classes, 1.0))
    again = pickle.loads(pickle.dumps(weighted))
    assert again.digest() == weighted.digest() != other.digest()
    assert np.array_equal(again.gradient(w), weighted.gradient(w))


@pytest.mark.parametrize("kind", [Logistic, Sigmoid])
def test_public_constants_grow_by_the_largest_weight(kind):
    plain, heavy = (kind.constants_for(row_norm=2.0, largest_weight=at) for at in (1.0, 3.0))
    for name in ("lipschitz", "smoothness", "gap", "hessian_lipschitz"):
        assert getattr(heavy, name) == pytest.approx(3 * getattr(plain, name), rel=1e-15)
    # Of one score, the third derivative by differences of curvatures.
    scores = np.linspace(-8, 8, 200_001)
    curved = kind(X, LABELS, classes=[0, 1]).curvatures(scores, np.ones_like(scores))
    third = np.abs(np.gradient(curved, scores)).max()
    bound = kind.constants_for(row_norm=1.0, fit_intercept=False).hessian_lipschitz
    assert bound * 0.999 < third <= bound * (1 + 1e-6)
    gap = Softmax.constants_for(row_norm=2.0, classes=4, largest_weight=2.0).gap
    assert gap >= 2 * np.log(4)


def test_weights_name_the_classes():
    only = Logistic(X[LABELS == 0], LABELS[LABELS == 0], class_weights={1: 2.0, 0: 1.0})
    assert (only.classes_.tolist(), only.weights.tolist()) == ([0, 1], [1.0, 2.0])
