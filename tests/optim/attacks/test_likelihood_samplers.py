"""Likelihood ratios by sampler, over all ways in which a record can take part."""

import itertools
import math

import numpy as np
import pytest
from _answers import parted, query
from scipy.special import logsumexp

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Correlation
from dpcal.errors import UnsupportedEvent
from dpcal.optim import attacks
from dpcal.optim.attacks.evidence import evidence_of

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
    for x in answers:
        evidence.add(x, np.arange(40))
    assert chances.sum() == pytest.approx(1)
    assert evidence.log_ratios() == pytest.approx(of_all(patterns, chances, answers), abs=1e-6)


def test_a_part_says_nothing_of_records_that_are_not_in_it():
    part = parted("q", 2, 2, max_norm=1.0, noise_multiplier=NOISE, partition=None)
    evidence = evidence_of(part, n=4)
    evidence.add(np.array([1.0, 9.0, 0.0, 9.0]), np.array([0, 2]))
    expected = [0.5 / NOISE**2, 0.0, -0.5 / NOISE**2, 0.0]
    assert evidence.log_ratios() == pytest.approx(expected)


def test_a_run_with_correlated_noise_that_ends_early_is_refused():
    evidence = evidence_of(query_of("full"), n=2)
    evidence.add(np.zeros(2), np.arange(2))
    with pytest.raises(UnsupportedEvent, match="6 answers, got one of 1"):
        evidence.log_ratios()


def test_records_that_are_drawn_together_have_the_bound_of_hoeffding():
    """Its exponent is a divergence of Bernoulli laws, which no bound by Clopper and Pearson has."""
    target, alarm = {"n": 250, "epsilon": 2.0, "delta": 1e-5}, 1e-6
    plan = calibrate.spiderboost(
        calibrate.Constants(lipschitz=1.0, smoothness=1.0, gap=1.0),
        dimension=5,
        batch_size=25,
        steps=20,
        neighboring_relation="replace-one",
        **target,
    )
    found = attacks.likelihood(plan, samples=4_000, confidence=1 - alarm, seed=2)
    p, q = (found.members > 0).mean(), found.true_positive_rate
    divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert len(found.members) * divergence == pytest.approx(math.log(2 / alarm), rel=1e-6)
