"""Likelihood ratios and canaries: they come close to what a run leaks, and stay below it."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from _answers import N, parted, plan_for, query
from scipy import stats
from scipy.special import logsumexp

from dpcal import accountants, calibrate, optim
from dpcal.accountants.curves.tradeoff import gdp_mu
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Constants, Correlation
from dpcal.errors import UnsupportedEvent
from dpcal.optim import attacks
from dpcal.optim.attacks.canaries import power
from dpcal.optim.attacks.evidence import evidence_of
from dpcal.optim.attacks.likelihood_ratio import _judged

DELTA = 1e-5
CONSTANTS = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)


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
    plan = calibrate.adaptive_gd(CONSTANTS, n=N, dimension=3, steps=3, epsilon=1.0, delta=DELTA)
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


# -- samplers: over all ways in which a record can take part

ROUNDS, NOISE = 6, 1.5


def query_of(sampler, **fields):
    rows = Correlation(strategy=LambdaCGD(ROUNDS, 0.6))
    fields |= {"sampler": sampler, "correlation": rows, "count": ROUNDS}
    return query(max_norm=1.0, noise_multiplier=NOISE, **fields)


def of_all(patterns, chances, z):
    """Return log of the mean over patterns y of N(C y, NOISE^2) over N(0, NOISE^2), at C z."""
    C = LambdaCGD(ROUNDS, 0.6).matrix()
    means = patterns @ C.T
    exponents = (means @ (C @ z)) / NOISE**2
    exponents -= (means**2).sum(axis=1)[:, np.newaxis] / (2 * NOISE**2)
    return logsumexp(exponents, axis=0, b=chances[:, np.newaxis])


EVERY = np.array(list(itertools.product([0.0, 1.0], repeat=ROUNDS)))


def bernoulli(q, allowed=1.0):
    """Return the chance of each pattern, where rounds are independent and some allowed."""
    return np.prod(np.where(EVERY == 1, q * allowed, 1 - q * allowed), axis=1)


BINS = np.tile(np.eye(3), (2, 1)).T
CHOSEN = EVERY[EVERY.sum(axis=1) == 2]
CASES = {
    "full": (query_of("full"), np.ones((1, ROUNDS)), np.ones(1)),
    "poisson": (query_of("poisson", sampling_probability=0.3), EVERY, bernoulli(0.3)),
    "balls-in-bins": (query_of("balls-in-bins", separation=3), BINS, np.full(3, 1 / 3)),
    "cyclic-poisson": (
        query_of("cyclic-poisson", separation=3, sampling_probability=0.4),
        EVERY,
        np.mean([bernoulli(0.4, allowed) for allowed in BINS], axis=0),
    ),
    "random-allocation": (
        query_of("random-allocation", participations=2),
        CHOSEN,
        np.full(len(CHOSEN), 1 / len(CHOSEN)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_ratios_of_correlated_noise_are_means_over_all_participations(name):
    asked, patterns, chances = CASES[name]
    answers = np.random.default_rng(3).standard_normal((ROUNDS, 40)) * NOISE
    evidence = evidence_of(asked, n=40)
    for number, x in enumerate(answers):
        if number == 1:
            with pytest.raises(UnsupportedEvent, match="6 answers, got one of 1"):
                evidence.log_ratios()
        evidence.add(x, np.arange(40))
    assert chances.sum() == pytest.approx(1)
    assert evidence.log_ratios() == pytest.approx(of_all(patterns, chances, answers), abs=1e-6)


def test_a_part_says_nothing_of_records_that_are_not_in_it():
    part = parted("q", 2, 2, max_norm=1.0, noise_multiplier=NOISE, partition=None)
    evidence = evidence_of(part, n=4)
    evidence.add(np.array([1.0, 9.0, 0.0, 9.0]), np.array([0, 2]))
    expected = [0.5 / NOISE**2, 0.0, -0.5 / NOISE**2, 0.0]
    assert evidence.log_ratios() == pytest.approx(expected)


def test_records_that_are_drawn_together_have_the_bound_of_hoeffding():
    """Its exponent is a divergence of Bernoulli laws, which no bound by Clopper and Pearson has."""
    alarm, sizes = 1e-6, {"n": 250, "dimension": 5, "batch_size": 25, "steps": 20}
    target = {"epsilon": 2.0, "delta": DELTA, "neighboring_relation": "replace-one"}
    plan = calibrate.spiderboost(CONSTANTS, **sizes, **target)
    found = attacks.likelihood(plan, samples=4_000, confidence=1 - alarm, seed=2)
    p, q = (found.members > 0).mean(), found.true_positive_rate
    divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert len(found.members) * divergence == pytest.approx(math.log(2 / alarm), rel=1e-6)
