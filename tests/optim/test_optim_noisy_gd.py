"""Noisy gradient descent: its steps, the textbook loop, its bound."""

import math

import numpy as np
import pytest
from _built_plans import noise_again, records, rounding

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.optim import Logistic, Sigmoid, noisy_gd, spiderboost
from dpcal.optim.boundary.seeds import Streams

N = 300
X, Y = records(N)
CONSTANTS = Constants(lipschitz=1.0, smoothness=0.25, gap=math.log(2))
OBJECTIVE = Logistic(X, Y, fit_intercept=False, classes_from_data=True)


def plan_for(objective=OBJECTIVE, **options):
    given = {"epsilon": 2.0, "delta": 1e-5, **options}
    return calibrate.noisy_gd(CONSTANTS, n=N, dimension=objective.dimension, **given)


# -- calibration


def test_steps_minimise_the_bound_which_is_promised_only_where_it_is_proved():
    best = plan_for()
    assert best.parameters["learning_rate"] == 4.0
    others = [plan_for(steps=best.parameters["steps"] + k) for k in (-8, 8)]
    accuracy = [plan.parameters["accuracy"] for plan in (best, *others)]
    assert accuracy[0] == min(accuracy)
    assert "accuracy" not in plan_for(max_norm=0.5).parameters
    assert "accuracy" not in plan_for(learning_rate=4.1).parameters


def test_the_published_size_of_the_bound():
    # L0 = L1 = F0 = 1, d = 20, epsilon = 1, delta = 1e-6: sqrt(2 / T + d s^2) at its best T.
    ones = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
    target = {"dimension": 20, "epsilon": 1.0, "delta": 1e-6}
    found = {
        n: calibrate.noisy_gd(ones, n=n, **target).parameters["accuracy"]
        for n in (1_000, 10_000, 100_000)
    }
    slope = math.log(found[100_000] / found[1_000]) / math.log(100)
    assert slope == pytest.approx(-0.5, abs=0.01)
    assert found[10_000] == pytest.approx(0.0731, abs=2e-4)


# -- the run


def test_steps_are_the_textbook_algorithm():
    objective = Logistic(X, Y, l2=0.1, classes_from_data=True)
    plan = plan_for(Logistic(X, Y, classes_from_data=True), steps=20)
    query, eta = plan.query("gradient"), plan.parameters["learning_rate"]
    noise = Streams(3, plan, objective.digest).noise
    eta /= 1 + 0.1 * eta  # the regulariser adds its l2 to the smoothness
    w = np.zeros(5)
    for _ in range(20):
        total = objective.clipped_sum(w, np.arange(N), query.max_norm)
        total += noise_again(noise, query.noise_multiplier, query.max_norm, 5)
        w = w - eta * (total / N + 0.1 * np.append(w[:-1], 0.0))
        w *= min(1.0, 2.0 / np.linalg.norm(w))
    found = noisy_gd(objective, plan, seed=3, radius=2.0)
    off = 20 * eta * rounding(query.max_norm, 5, N)  # no step makes it larger
    np.testing.assert_allclose(found.w, w, rtol=0, atol=off)


def iterates_of(optimizer, plan, seed, objective=OBJECTIVE):
    """Return the iterates of a run, from its start on."""
    found = [np.zeros(4)]
    optimizer(objective, plan, seed=seed, callback=lambda p: found.append(p.w), callback_every=1)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [noisy_gd, spiderboost])
def test_a_random_iterate_is_uniform_and_one_of_them(optimizer):
    # 300 draws out of 3 iterates: each 100 +- 50 is beyond 6 standard deviations.
    build = getattr(calibrate, optimizer.__name__)
    plan = build(CONSTANTS, n=N, dimension=4, epsilon=2.0, delta=1e-5, steps=3)
    drawn = []
    for seed in range(300):
        iterates = iterates_of(optimizer, plan, seed)
        w = optimizer(OBJECTIVE, plan, seed=seed, output="random").w
        drawn += [k for k in range(3) if (iterates[k] == w).all()]
    assert len(drawn) == 300
    assert np.abs(np.bincount(drawn, minlength=3) - 100).max() < 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "runs", "epsilon"), [(calibrate.noisy_gd, 5, 8.0), (calibrate.spiderboost, 2, 20.0)]
)
def test_the_bound_holds_on_average(build, runs, epsilon):
    # The mean square of the true gradient along the iterates, for a loss that is not convex.
    constants = Constants(lipschitz=0.3, smoothness=0.16, gap=0.25)
    objective = Sigmoid(X, Y, fit_intercept=False, classes=[0, 1])
    plan = build(constants, n=N, dimension=4, epsilon=epsilon, delta=1e-5)
    optimizer, squares = getattr(optim, build.__name__), []
    for seed in range(runs):
        iterates = iterates_of(optimizer, plan, seed, objective)[:-1]
        squares.append(np.mean([np.sum(objective.gradient(w) ** 2) for w in iterates]))
    assert math.sqrt(np.mean(squares)) <= plan.parameters["accuracy"] < 0.3
