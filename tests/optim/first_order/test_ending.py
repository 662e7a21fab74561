"""A run that ended no better than its start says so, as far as its own answers tell."""

import math
import warnings

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.errors import VacuousSchedule
from dpcal.optim.driver import Ending

SAID = "as far as its own answers tell, the run ended no better than its start"
RNG = np.random.default_rng(3)
N, D = 5_000, 4
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
SCORES = X @ np.array([3.0, -4.0, 1.0, 2.0])
OBJECTIVES = {
    "squared": optim.Squared(X, SCORES / 5, fit_intercept=False),
    "logistic": optim.Logistic(
        X, RNG.random(N) < 1 / (1 + np.exp(-SCORES)), fit_intercept=False, classes=[False, True]
    ),
    "penalized": optim.Logistic(X, SCORES > 0, l2=1e-3, fit_intercept=False, classes=[False, True]),
}
TARGET = {"n": N, "epsilon": 1.0, "delta": 1e-6}
CONSTANTS = calibrate.Constants(lipschitz=1.0, smoothness=0.25, gap=math.log(2))
PLANS = {
    "noisy_gd": calibrate.noisy_gd(CONSTANTS, dimension=D, steps=100, **TARGET),
    "dpsgd": calibrate.dpsgd(batch_size=N // 10, steps=200, **TARGET),
    "full": calibrate.dpsgd(batch_size=N, steps=40, **TARGET),
}


def said(objective, plan, **how):
    """Return whether a run says it, by its message and by a warning alike."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = optim.run(objective, plan, output="last", **how)
    warned = [each for each in told if str(each.message).startswith(SAID)]
    assert bool(warned) == (SAID in found.message)
    assert all(each.category is VacuousSchedule for each in warned)
    return bool(warned), objective.loss(found.w) - objective.loss(np.zeros(D))


@pytest.mark.parametrize("plan", PLANS)
def test_runs_of_absurd_rates_say_it_and_good_runs_never_do(plan):
    for loss, absurd in (("squared", 300.0), ("logistic", 1e4), ("penalized", None)):
        for _ in range(10):
            told, rise = said(OBJECTIVES[loss], PLANS[plan], learning_rate=2.0)
            assert (rise < 0, told) == (True, False), loss
            if absurd is not None:
                told, rise = said(OBJECTIVES[loss], PLANS[plan], learning_rate=absurd)
                assert (rise > 0, told) == (True, True), loss


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_nobody_who_ended_below_the_start_says_it_however_loud_the_noise(loss):
    loud = calibrate.dpsgd(n=N, batch_size=N // 4, steps=60, epsilon=0.05, delta=1e-6)
    for learning_rate in (1.0, 30.0, 1000.0):
        runs = [said(OBJECTIVES[loss], loud, learning_rate=learning_rate) for _ in range(10)]
        assert not any(told and rise < 0 for told, rise in runs)


def test_the_rise_of_a_quadratic_is_exact():
    """Without noise, two gradients tell whether the loss rose, by however little."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        H, best = rng.standard_normal((3, 3)), rng.standard_normal(3)
        H = H @ H.T
        start, end = rng.standard_normal((2, 3))
        ending = Ending()
        for step, w in enumerate((start, end)):
            ending.hear(step, w, H @ (w - best), deviation=0.0)
        losses = [(w - best) @ H @ (w - best) for w in (start, end)]
        assert ending.no_better == (losses[1] >= losses[0])


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_false_alarms_at_a_standstill_are_rare(sampling):
    """Gradients are noise alone: at three standard errors, at most 1.3 alarms in 1,000 runs.

    More than 9 have a chance below 1e-5.
    """
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(1_000):
        ending, w = Ending(), np.zeros(5)
        noise = rng.normal(size=(200, 5))
        noise[:, 0] += sampling * rng.normal(size=200)
        for step, g in enumerate(noise):
            if step == 0 or step >= 150:
                ending.hear(step, w, g, deviation=1.0, sampling=sampling)
            w = w - 0.1 * g
        alarms += ending.no_better
    assert alarms <= 9


def test_far_from_the_origin_the_entropy_of_a_logistic_loss_tells():
    """F(w) >= w . grad F(w): a lower bound where a quadratic would say that the loss fell."""
    objective = OBJECTIVES["logistic"]
    far = 300 * np.array([3.0, -4.0, 1.0, 2.0])
    g_0, g = (objective.gradient(w) for w in (np.zeros(D), far))
    assert objective.loss(far) > far @ g > math.log(2)
    for at_origin, told in ((math.log(2), True), (math.inf, far @ (g_0 + g) >= 0)):
        ending = Ending(at_origin=at_origin)
        ending.hear(0, np.zeros(D), g_0, deviation=1e-9)
        ending.hear(1, far, g, deviation=1e-9)
        assert ending.no_better == told
    # A start elsewhere has another loss.
    ending = Ending(at_origin=math.log(2))
    ending.hear(0, far, g, deviation=1e-9)
    ending.hear(1, far / 2, objective.gradient(far / 2), deviation=1e-9)
    assert not ending.no_better
    # Two gradients at the start, and none later, tell nothing.
    ending = Ending()
    ending.hear(0, far, g, deviation=1e-9)
    ending.hear(0, far, g, deviation=1e-9)
    assert not ending.no_better


def test_the_mean_of_iterates_does_not_tell():
    with warnings.catch_warnings():
        warnings.simplefilter("error", VacuousSchedule)
        plan = PLANS["dpsgd"]
        mean = optim.dpsgd(OBJECTIVES["squared"], plan, learning_rate=300.0, output="linear")
    assert SAID not in mean.message


@pytest.mark.parametrize("name", ["adaptive_gd", "kl_spider", "spiderboost"])
def test_other_descents_are_heard(name):
    """At a smoothness that is a hundred times too small, steps are a hundred times too long."""
    objective, start = OBJECTIVES["squared"], OBJECTIVES["squared"].loss(np.zeros(D))
    for smoothness, told in ((1.0, False), (0.01, True)):
        stated = calibrate.Constants(
            lipschitz=1.0, smoothness=smoothness, strong_convexity=0.01, gap=0.7
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = getattr(calibrate, name)(stated, dimension=D, **{**TARGET, "epsilon": 8.0})
            ends = [optim.run(objective, plan) for _ in range(4)]
        assert all((objective.loss(end.w) > start) == told for end in ends)
        assert all((SAID in end.message) == told for end in ends)
