"""Likelihood ratios and canaries: they come close to what a run leaks, and stay below it."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dpcal import calibrate, optim
from dpcal.accountants.curves.tradeoff import gdp_mu
from dpcal.calibrate import Constants, Plan, Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim import attacks
from dpcal.optim.attacks.canaries import power

N, DELTA = 500, 1e-5


def sampled(epsilon, **options):
    return calibrate.dpsgd(n=N, batch_size=50, steps=20, epsilon=epsilon, delta=DELTA, **options)


# Rates are known to within the root of the samples: a small epsilon needs more of them.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "samples"),
    [pytest.param(1.0, 1_000_000, marks=pytest.mark.study), (4.0, 400_000), (8.0, 200_000)],
)
def test_nine_tenths_of_the_claim_are_found(epsilon, samples):
    # A bound that is wrong for one draw in a hundred says what is found, but not whether it holds.
    found, sure = (
        attacks.likelihood(sampled(epsilon), samples=samples, seed=1, confidence=confidence)
        for confidence in (0.99, 1 - 1e-6)
    )
    assert sure.holds
    assert found.epsilon > 0.9 * epsilon
    assert 0 < found.alone < epsilon


@pytest.mark.slow
def test_replaced_records_are_told_apart_as_well():
    plan = sampled(4.0, neighboring_relation="replace-one")
    found = attacks.likelihood(plan, samples=60_000, seed=2)
    assert found.holds
    assert found.epsilon > 0.85 * 4.0


@pytest.mark.slow
def test_too_little_noise_is_found():
    """An optimizer that runs with four fifths of the planned noise."""
    plan = sampled(2.0)

    def loud(objective, plan):
        (query,) = plan.queries
        query = dataclasses.replace(query, noise_multiplier=0.8 * query.noise_multiplier)
        return optim.dpsgd(objective, dataclasses.replace(plan, queries=(query,)))

    found = attacks.likelihood(plan, run=loud, samples=60_000, seed=3)
    assert not found.holds
    assert found.scale < 1
    # The truth is an upper end for the attack on any mechanism.
    (query,) = plan.queries
    true = dataclasses.replace(
        plan,
        queries=(dataclasses.replace(query, noise_multiplier=0.8 * query.noise_multiplier),),
    )
    assert found.epsilon <= true.price()


def test_ratios_of_one_gaussian_answer_have_their_law():
    """Of one answer about everybody: x / z^2 - 1 / (2 z^2), normal with mean -+ 1 / (2 z^2)."""
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="full",
        max_norm=0.3,
        noise_multiplier=2.0,
        count=1,
    )
    plan = Plan(optimizer="noisy_gd", n=N, queries=(query,), epsilon=3.0, delta=DELTA)
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
    plan = calibrate.adaptive_gd(
        Constants(lipschitz=1.0, smoothness=1.0, gap=1.0),
        n=N,
        dimension=3,
        steps=3,
        epsilon=1.0,
        delta=DELTA,
    )
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


def test_bounds_of_one_run_are_seldom_above_the_truth():
    """Scores of mu-Gaussian privacy: each bound is wrong in at most one run of twenty."""
    rng, mu, m, runs = np.random.default_rng(5), 1.0, 400, 150
    epsilon = epsilon_of_gaussian(mu)
    wrong = np.zeros(2)
    for run in range(runs):
        included = attacks.coins(m, seed=run)
        scores = mu * included + rng.standard_normal(m)
        found = attacks.one_run(included, scores, guesses=m // 2, delta=DELTA)
        wrong += [found.mu > mu, found.epsilon > epsilon]
    # 5 percent of 150 are 7.5; 18 and more of them have a chance of 4e-4.
    assert (wrong < 18).all()


def epsilon_of_gaussian(mu):
    """Epsilon at DELTA of mu-Gaussian privacy (Balle and Wang 2018), by bisection."""

    def delta(epsilon):
        a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return stats.norm.cdf(a) - math.exp(epsilon) * stats.norm.cdf(b)

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
    return high


def test_no_guess_is_better_than_a_coin_without_a_leak():
    included = attacks.coins(1_000, seed=6)
    scores = np.random.default_rng(7).standard_normal(1_000)
    found = attacks.one_run(included, scores, guesses=500, delta=DELTA)
    assert found.mu == 0
    assert found.epsilon < 0.1


def test_one_run_shows_about_what_its_power_says():
    plan = calibrate.dpsgd(n=2_000, batch_size=2_000, steps=20, epsilon=8.0, delta=DELTA)
    found, expected = attacks.plant(plan, seed=8)
    assert found.epsilon <= plan.epsilon
    assert found.mu <= gdp_mu(plan.event)
    assert found.mu > 0.7 * expected.expected_mu > 0.3


@pytest.mark.slow
def test_more_canaries_show_more():
    few, many = (power(mu=1.5, canaries=m, delta=DELTA, seed=9) for m in (100, 3_000))
    assert few.expected_mu < many.expected_mu < 1.5


def test_a_run_without_noise_is_found():
    plan = calibrate.dpsgd(n=1_000, batch_size=1_000, steps=20, epsilon=1.0, delta=DELTA)

    def bare(objective, plan):
        (query,) = plan.queries
        query = dataclasses.replace(query, noise_multiplier=0.01)
        return optim.dpsgd(objective, dataclasses.replace(plan, queries=(query,)))

    found, _ = attacks.plant(plan, run=bare, seed=10)
    assert found.right == found.guesses
    assert found.epsilon > plan.epsilon


def test_wrong_arguments_of_one_run():
    with pytest.raises(ValueError, match=r"scores must have shape \(3,\)"):
        attacks.one_run([True, False, True], [1.0], guesses=1, delta=0.0)
    with pytest.raises(ValueError, match=r"guesses must be in \[1, 2\]"):
        attacks.one_run([True, False], [1.0, 2.0], guesses=3, delta=0.0)
