"""Selection by noisy products with Hessians (Tao et al. 2025, Remark 5): its bound, price, gain."""

import math

import numpy as np
import pytest
from saddles import Trigonometric

from dpcal import calibrate
from dpcal.calibrate.plans.common import single_release
from dpcal.calibrate.plans.second_order.select_point import Power, best_power
from dpcal.optim import FromGradients, Logistic, select_point
from dpcal.optim.objectives.contributions import hessian_products

TARGET = {"epsilon": 1.0, "delta": 1e-6}


def planned(n=100_000, d=5, **changes):
    given = {"candidates": 4, "accuracy": 0.3, "method": "power-method", **TARGET, **changes}
    constants = Trigonometric(np.zeros((1, d))).constants
    return calibrate.select_point(constants, n=n, dimension=d, **given)


@pytest.mark.parametrize("relation", ["replace-one", "replace-special"])
def test_gradients_and_products_take_half_of_the_budget_each(relation):
    gradient, product = planned(neighboring_relation=relation).queries
    z = single_release(1.0, 1e-6, relation)
    assert gradient.count == 4
    assert product.count % 4 == 0
    for query in (gradient, product):
        assert query.count / query.noise_multiplier**2 == pytest.approx(z**-2 / 2, rel=1e-9)
    assert product.max_norm == 1.0


def found_by(products, noise, eigenvalues, level):
    """Return the share of 1000 runs in which a product tells of an eigenvalue below a level."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal((1000, len(eigenvalues)))
    found = np.zeros(1000, dtype=bool)
    for _ in range(products):
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        answers = v * eigenvalues + noise * rng.standard_normal(v.shape)
        found |= (v * answers).sum(axis=1) < level
        v = v - answers
    return found.mean()


@pytest.mark.parametrize(("products", "noise"), [(40, 0.0), (60, 0.03)])
@pytest.mark.parametrize("spectrum", ["level", "spread", "top"])
def test_the_power_method_misses_an_eigenvalue_as_seldom_as_it_says(products, noise, spectrum):
    """1000 runs on a Hessian at the edge of the bound: its failure probability is 0.3.

    More than 0.3 + 4 standard errors is refuted, with a false alarm once in 30,000 times.
    """
    d, threshold = 30, 0.1
    run = Power(products, noise, d, 0.3)
    mu = run.missed(threshold)
    assert threshold < mu < 1
    # The other eigenvalues: just not found, anything, or as large as they may be.
    others = {
        "level": np.full(d - 1, -threshold - run.slack + 1e-6),
        "spread": np.linspace(-threshold, 1.0, d - 1),
        "top": np.ones(d - 1),
    }[spectrum]
    found = found_by(products, noise, [-mu, *others], -threshold)
    assert 1 - found <= 0.3 + 4 * math.sqrt(0.3 * 0.7 / 1000)


def test_the_bound_is_not_idle():
    """With a tenth of the products, the eigenvalue at the edge of the bound is missed."""
    d, threshold = 30, 0.1
    mu = Power(400, 0.0, d, 0.3).missed(threshold)
    eigenvalues = [-mu, *np.full(d - 1, -threshold)]
    assert found_by(4, 0.0, eigenvalues, -threshold - 0.1 * (mu - threshold)) < 0.5


def test_smaller_eigenvalues_are_found_too():
    rng = np.random.default_rng(1)
    for _ in range(300):
        run = Power(int(rng.integers(1, 500)), 10 ** rng.uniform(-5, -1), 50, 0.01)
        threshold = rng.uniform(0.01, 0.5)
        found = [run.finds(mu, threshold) for mu in np.linspace(threshold, 1, 40)]
        assert found == sorted(found)


@pytest.mark.parametrize("d", [10, 1_000, 100_000])
def test_no_other_number_of_products_misses_much_less(d):
    run, missed = best_power(1e-5, d, 0.001, 0.3)
    for factor in (0.1, 0.5, 0.9, 1.1, 2.0, 10.0):
        k = math.ceil(run.products * factor)
        other = Power(k, 1e-5 * math.sqrt(k), d, 0.001)
        assert missed <= other.missed(0.3 + other.slack) * 1.04


def test_noise_grows_less_with_the_dimension_than_that_of_whole_hessians():
    """A Hessian's noise is in proportion to d; that of products is small until s sqrt(d) is 1."""
    constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0, hessian_lipschitz=1.0)
    given = {"n": 10**6, "candidates": 10, "accuracy": 0.3, **TARGET}
    accuracies = {}
    for method in ("gaussian", "power-method"):
        plans = [
            calibrate.select_point(constants, dimension=d, method=method, **given)
            for d in (10, 4_000)
        ]
        accuracies[method] = [plan.parameters["accuracy"] for plan in plans]
    assert accuracies["gaussian"][0] < accuracies["power-method"][0]
    assert accuracies["power-method"][1] < accuracies["gaussian"][1] / 2


@pytest.mark.parametrize("name", ["linear", "trigonometric", "custom"])
def test_products_of_many_records_are_those_of_each(name):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((5_000, 3))
    X[7] = math.nan
    objective = {
        "linear": lambda: Logistic(X, X[:, 0] > 0, fit_intercept=False, classes=[0, 1]),
        "trigonometric": lambda: Trigonometric(X),
        "custom": lambda: FromGradients(
            lambda w, rows: X[rows] * w,
            n=5_000,
            dimension=3,
            hessian_vectors=lambda w, v, rows: X[rows] * v,
        ),
    }[name]()
    w, v = rng.standard_normal((2, 3))
    expected = np.zeros(3)
    for row in range(5_000):
        product = hessian_products(objective, np.array([row]), w, v).clipped(np.inf)
        expected += product * min(1.0, 0.3 / max(np.linalg.norm(product), 1e-300))
    everyone = np.arange(5_000)
    found = hessian_products(objective, everyone, w, v).clipped(0.3)
    assert found == pytest.approx(expected, rel=1e-9)
    assert np.linalg.norm(found) > 0


def test_discrete_noise_sums_products_in_whole_steps():
    """Many records at once are the same whole numbers as one record at a time."""
    objective = Trigonometric.drawn(5_000, 3, seed=0)
    w, v = np.full(3, 0.4), np.array([0.6, -0.8, 0.0])
    together = hessian_products(objective, np.arange(5_000), w, v).whole(0.5)
    alone = sum(hessian_products(objective, np.array([j]), w, v).whole(0.5) for j in range(5_000))
    assert (together == alone).all()


def test_a_flat_loss_is_accepted():
    """Whose curvature is above minus the threshold, and below the threshold."""
    flat = FromGradients(
        lambda w, rows: np.zeros((len(rows), 3)),
        n=2_000,
        dimension=3,
        hessian_vectors=lambda w, v, rows: np.zeros((len(rows), 3)),
    )
    plan = planned(n=2_000, d=3, epsilon=60.0)
    assert select_point(flat, [np.zeros(3)], plan, seed=0).index == 0


def test_what_the_bound_does_not_cover_is_refused():
    X = np.eye(3)[np.arange(600) % 3]
    objective = Logistic(X, X[:, 0] > 0, l2=0.1, fit_intercept=False, classes=[0, 1])
    plan = planned(n=600, d=3, epsilon=1e3)
    with pytest.raises(ValueError, match=r"objectives without a regularizer, got l2=0\.1"):
        select_point(objective, [np.zeros(3)], plan)
