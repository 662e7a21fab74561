"""Oracles with discrete noise: every optimizer runs on them, at the price of its plan."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dpcal import calibrate, optim
from dpcal._ext.sums import grid_step
from dpcal.calibrate import Constants, Plan, Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim import FromGradients, Logistic, PrivateOracle
from dpcal.optim.boundary import exact

RNG = np.random.default_rng(0)
N, D = 2_000, 3
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
OBJECTIVE = Logistic(X, X[:, 0] > 0, l2=0.1, fit_intercept=False, classes_from_data=True)
CONSTANTS = Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.1, gap=0.7)
TARGET = {"n": N, "dimension": D, "epsilon": 4.0, "delta": 1e-5}
PLANS = {
    "noisy_gd": {"steps": 20},
    "spiderboost": {"steps": 20},
    "kl_spider": {"l2": 0.1},
    "adaptive_gd": {"steps": 20},
    "proximal_point": {"gamma": 2.0, "kappa": 2.0, "inner_steps": 10},
    "recursive_regularization": {
        "distance": 3.0,
        "neighboring_relation": "replace-one",
        "subsolver": "noisy_gd",
    },
    "tree_spider": {"neighboring_relation": "replace-one"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_every_optimizer_runs_with_discrete_noise_at_the_price_of_its_plan(name):
    plan = getattr(calibrate, name)(CONSTANTS, **TARGET, **PLANS[name])
    optimizer = getattr(optim, name)
    result = optimizer(PrivateOracle(OBJECTIVE, plan, seed=3, noise="discrete"), plan)
    result.verify()
    assert np.isfinite(result.w).all()
    if not any(query.budget for query in plan.queries):
        assert result.ledger.event == optimizer(OBJECTIVE, plan, seed=3).ledger.event
    # A run can be repeated, bit by bit, from a secret seed.
    again = optimizer(PrivateOracle(OBJECTIVE, plan, seed=3, noise="discrete"), plan)
    assert again.w.tobytes() == result.w.tobytes()


def asked_often(kind, count, **more):
    query = Query(
        name="q", kind=kind, sampler="full", max_norm=0.5, noise_multiplier=3.0, count=count, **more
    )
    return Plan(optimizer="noisy_gd", n=N, queries=(query,), epsilon=1e6, delta=1e-5)


@pytest.mark.slow
def test_answers_have_the_law_that_the_plan_prices():
    plan, w = asked_often("gradient", 3_000), np.array([0.3, -0.2, 1.0])
    oracle = PrivateOracle(OBJECTIVE, plan, seed=1, noise="discrete")
    answers = np.array([oracle.gradient(w, "q") for _ in range(3_000)])
    rows = np.arange(N, dtype=np.intp)
    mean = OBJECTIVE.clipped_sum(w, rows, 0.5) / N + OBJECTIVE.regularizer_gradient(w)
    noise = (answers - mean).ravel() * N / (3.0 * 0.5)
    # False alarm: one in a million seeds.
    assert stats.kstest(noise, stats.norm.cdf).pvalue > 1e-6


def test_answers_are_whole_steps_of_the_grid():
    plan, w = asked_often("gradient", 50), np.array([0.3, -0.2, 1.0])
    oracle = PrivateOracle(OBJECTIVE, plan, noise="discrete")
    for _ in range(50):
        steps = (oracle.gradient(w, "q") - OBJECTIVE.regularizer_gradient(w)) * N
        steps /= grid_step(0.5)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scalar", "gradient norm"])
def test_numbers_are_noisy_too(kind):
    plan, w = asked_often(kind, 2_000), np.array([0.3, -0.2, 1.0])
    oracle = PrivateOracle(OBJECTIVE, plan, seed=2, noise="discrete")
    ask = oracle.scalar if kind == "scalar" else oracle.norm
    answers = np.array([ask(w, "q") for _ in range(2_000)])
    rows = np.arange(N, dtype=np.intp)
    if kind == "scalar":
        mean = OBJECTIVE.clipped_loss_sum(w, rows, 0.5) / N + OBJECTIVE.regularizer(w)
    else:
        gradient = OBJECTIVE.clipped_sum(w, rows, 0.5) / N + OBJECTIVE.regularizer_gradient(w)
        mean = np.linalg.norm(gradient)
    assert stats.kstest((answers - mean) * N / 1.5, stats.norm.cdf).pvalue > 1e-6


@pytest.mark.slow
def test_one_record_of_many_moves_an_exact_sum_by_the_bound():
    n = 4_000
    table = np.full((n, 1), 1.0)
    objective = FromGradients(lambda w, rows: table[rows], n=n, dimension=1)
    rows = np.arange(n, dtype=np.intp)
    whole = exact.DiscreteMechanism.gradient_sum(objective, np.zeros(1), rows, 1.0)
    for gone in (0, n // 2, n - 1):
        without = exact.DiscreteMechanism.gradient_sum(
            objective, np.zeros(1), np.delete(rows, gone), 1.0
        )
        assert 1 - 1e-5 < int((whole - without)[0]) * grid_step(1.0) <= 1


def test_choices_and_unknown_noise_are_refused():
    selection = asked_often("selection", 1)
    with pytest.raises(UnsupportedEvent, match="noise='discrete' is for sums"):
        PrivateOracle(OBJECTIVE, selection, noise="discrete")
    with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'discrete'"):
        PrivateOracle(OBJECTIVE, asked_often("gradient", 1), noise="exact")


def test_so_many_numbers_that_distances_add_up_are_refused():
    with pytest.raises(UnsupportedEvent, match=r"numbers within 2\^-\d+ of their law"):
        PrivateOracle(OBJECTIVE, asked_often("gradient", 10**23), noise="discrete")


def test_a_delta_that_the_distance_could_exceed_is_refused():
    plan = dataclasses.replace(asked_often("gradient", 1), delta=1e-28)
    with pytest.raises(UnsupportedEvent, match="got delta=1e-28"):
        PrivateOracle(OBJECTIVE, plan, noise="discrete")
