"""Likelihood ratios and canaries: they come close to what a run leaks, and stay below it."""

import dataclasses
import math

import numpy as np
import pytest
from _answers import N, plan_for, query
from scipy import stats

from dpcal import accountants, calibrate, optim
from dpcal.accountants.curves.tradeoff import gdp_mu
from dpcal.calibrate import Constants
from dpcal.errors import UnsupportedEvent
from dpcal.optim import attacks
from dpcal.optim.attacks.canaries import power
from dpcal.optim.attacks.likelihood_ratio import _judged

DELTA = 1e-5


def sampled(epsilon, **options):
    given = {"n": 500, "batch_size": 50, "steps": 20, "delta": DELTA}
    return calibrate.dpsgd(epsilon=epsilon, **given, **options)


def quieter(factor):
    """Return an optimizer that runs with a share of the planned noise, and its true plan."""

    def true(plan):
        (asked,) = plan.queries
        asked = dataclasses.replace(asked, noise_multiplier=factor * asked.noise_multiplier)
        return dataclasses.replace(plan, queries=(asked,))

    return lambda objective, plan: optim.dpsgd(objective, true(plan)), true


# Rates are known to within the root of the samples: a small epsilon needs more of them.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "share", "samples", "options"),
    [
        pytest.param(1.0, 0.9, 1_000_000, {}, marks=pytest.mark.study),
        pytest.param(4.0, 0.9, 400_000, {}, marks=pytest.mark.study),
        (8.0, 0.9, 80_000, {}),
        (4.0, 0.85, 60_000, {"neighboring_relation": "replace-one"}),
    ],
)
def test_most_of_the_claim_is_found(epsilon, share, samples, options):
    plan = sampled(epsilon, **options)
    found = attacks.likelihood(plan, samples=samples, seed=1)
    # A bound that is wrong for one draw in a hundred says what is found, but not whether it holds.
    assert _judged(plan, found.members, found.others, 1 - 1e-6).holds
    assert found.epsilon > share * epsilon
    assert 0 < found.alone < epsilon


@pytest.mark.slow
def test_too_little_noise_is_found():
    plan, (run, true) = sampled(2.0), quieter(0.8)
    found = attacks.likelihood(plan, run=run, samples=60_000, seed=3)
    assert not found.holds
    assert found.scale < 1
    # The truth is an upper end for the attack on any mechanism.
    assert found.epsilon <= true(plan).price()


def test_ratios_of_one_gaussian_answer_have_their_law():
    """Of one answer about everybody: x / z^2 - 1 / (2 z^2), normal with mean -+ 1 / (2 z^2)."""
    plan = plan_for(query(count=1), relation="add-or-remove-one", optimizer="noisy_gd")
    found = attacks.likelihood(
        plan, run=lambda o, p: optim.noisy_gd(o, p, learning_rate=1.0), samples=4_000, seed=4
    )
    for ratios, sign in ((found.members, 1), (found.others, -1)):
        law = stats.norm(sign / 8, 1 / 2)
        assert stats.kstest(ratios, law.cdf).pvalue > 1e-6
    positives, negatives = found.rates()
    exact = stats.norm.cdf(stats.norm.isf(positives[50]) - 0.5)
    assert negatives[50] == pytest.approx(exact, abs=0.05)


def test_what_mixes_canaries_is_refused():
    constants = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
    plan = calibrate.adaptive_gd(constants, n=N, dimension=3, steps=3, epsilon=1.0, delta=DELTA)
    with pytest.raises(UnsupportedEvent, match="in which each canary has a coordinate"):
        attacks.likelihood(plan)
    with pytest.raises(ValueError, match="samples must be at least 1000"):
        attacks.likelihood(sampled(1.0), samples=10)


# -- one run, seen from outside


def test_right_guesses_alone_bound_epsilon_as_in_closed_form():
    """With delta = 0 and k guesses, all right, epsilon is the logit of chance^(1/k)."""
    included = np.arange(100) % 2 == 0
    found = attacks.one_run(included, included, guesses=100, delta=0.0)
    root = 0.05 ** (1 / 100)
    assert found.epsilon == pytest.approx(math.log(root / (1 - root)), abs=2e-3)
    assert found.right == 100


@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_bounds_of_one_run_are_seldom_above_the_truth(mu):
    """Scores of mu-Gaussian privacy: each bound is wrong in at most one run of twenty."""
    rng, m, runs, epsilon = np.random.default_rng(5), 400, 150, 0.0
    if mu:
        event = accountants.events.GaussianDpEvent(1 / mu)
        epsilon = float(accountants.epsilon(event, delta=DELTA))
    wrong = np.zeros(2)
    for run in range(runs):
        included = attacks.coins(m, seed=run)
        scores = mu * included + rng.standard_normal(m)
        found = attacks.one_run(included, scores, guesses=m // 2, delta=DELTA)
        wrong += [found.mu > mu, found.epsilon > epsilon]
    # 5 percent of 150 are 7.5; 18 and more of them have a chance of 4e-4.
    assert (wrong < 18).all()


@pytest.mark.slow
def test_one_run_shows_about_what_its_power_says_and_more_canaries_show_more():
    plan = calibrate.dpsgd(n=2_000, batch_size=2_000, steps=20, epsilon=8.0, delta=DELTA)
    found, expected = attacks.plant(plan, seed=8)
    assert found.epsilon <= plan.epsilon
    assert found.mu <= gdp_mu(plan.event)
    assert found.mu > 0.7 * expected.expected_mu > 0.3
    few, many = (power(mu=1.5, canaries=m, delta=DELTA, seed=9) for m in (100, 3_000))
    assert few.expected_mu < many.expected_mu < 1.5


def test_a_run_without_noise_is_found():
    plan = calibrate.dpsgd(n=1_000, batch_size=1_000, steps=20, epsilon=1.0, delta=DELTA)
    found, _ = attacks.plant(plan, run=quieter(0.01)[0], seed=10)
    assert found.right == found.guesses
    assert found.epsilon > plan.epsilon
