"""Likelihood ratios by sampler: exact, below the claim, and above it with half the noise."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Constants, Correlation, Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim import attacks
from dpcal.optim.attacks.evidence import evidence_of
from dpcal.optim.registry import find

N, CLAIM = 250, 2.0
CONSTANTS = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0, hessian_lipschitz=0.1)
# A claim that holds is accused with at most this chance, in each test.
ALARM = 1e-6
SMALL = {"batch_size": 25, "difference_batch_size": 5, "drift": 0.05}


def priced(plan):
    """Return a plan that claims what it costs."""
    return dataclasses.replace(plan, epsilon=float(plan.price()))


def tree():
    """One pass over disjoint parts; no estimate is small enough to end it."""
    plan = calibrate.tree_spider(CONSTANTS, n=N, dimension=5, epsilon=CLAIM, delta=1e-5)
    return dataclasses.replace(plan, parameters={**plan.parameters, "threshold": 1e-300})


def walk():
    return calibrate.gauss_psgd(CONSTANTS, n=N, dimension=5, epsilon=CLAIM, delta=1e-5, **SMALL)


def silos():
    return calibrate.distributed_psgd(
        CONSTANTS, silos=2, n=N, dimension=5, epsilon=CLAIM, delta=1e-5, **SMALL
    )


def fixed():
    plan = calibrate.dpsgd(
        n=N,
        batch_size=25,
        steps=20,
        epsilon=CLAIM,
        delta=1e-5,
        neighboring_relation="replace-one",
    )
    (query,) = plan.queries
    fields = {
        "sampler": "fixed-size",
        "batch_size": 25,
        "sampling_probability": None,
        "noise_multiplier": 2 * query.noise_multiplier,
    }
    return priced(dataclasses.replace(plan, queries=(dataclasses.replace(query, **fields),)))


def correlated(sampler, batch_size=25, **fields):
    return calibrate.correlated_dpsgd(
        LambdaCGD(10, 0.5),
        n=N,
        batch_size=batch_size,
        sampler=sampler,
        epsilon=CLAIM,
        delta=1e-3,
        seed=0,
        draws=20_000,
        **fields,
    )


PLANS = {
    "parts of a tree": tree,
    "parts of a walk": walk,
    "silos": silos,
    "batches of one size": fixed,
    "correlated, all records": lambda: correlated("full", N),
    "correlated, Poisson": lambda: correlated("poisson"),
    "correlated, bins": lambda: correlated("balls-in-bins"),
}


def with_half_the_noise(records, plan):
    queries = tuple(
        dataclasses.replace(query, noise_multiplier=query.noise_multiplier / 2)
        for query in plan.queries
    )
    return find(plan.optimizer).optimizer()(records, dataclasses.replace(plan, queries=queries))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # a walk is informative from more records on
@pytest.mark.parametrize("name", PLANS)
def test_an_attack_stays_below_the_claim_and_finds_half_the_noise(name):
    plan = PLANS[name]()
    options = {"samples": 40_000, "confidence": 1 - ALARM, "seed": 2}
    honest = attacks.likelihood(plan, **options)
    assert honest.holds, str(honest)
    assert honest.epsilon > 0.2 * plan.epsilon
    quiet = attacks.likelihood(plan, run=with_half_the_noise, **options)
    assert quiet.epsilon > plan.epsilon, str(quiet)
    assert not quiet.holds


# -- the ratios themselves, over all ways in which a record can take part


ROUNDS, NOISE = 6, 1.5


def query_of(sampler, **fields):
    return Query(
        name="gradient",
        kind="gradient",
        sampler=sampler,
        max_norm=1.0,
        noise_multiplier=NOISE,
        count=ROUNDS,
        correlation=Correlation(strategy=LambdaCGD(ROUNDS, 0.6)),
        **fields,
    )


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
    query, patterns, chances = CASES[name]
    answers = np.random.default_rng(3).standard_normal((ROUNDS, 40)) * NOISE
    evidence = evidence_of(query, n=40)
    for x in answers:
        evidence.add(x, np.arange(40))
    assert chances.sum() == pytest.approx(1)
    assert evidence.log_ratios() == pytest.approx(of_all(patterns, chances, answers), abs=1e-6)


def test_a_part_says_nothing_of_records_that_are_not_in_it():
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="fixed-size",
        batch_size=2,
        composition="disjoint",
        max_norm=1.0,
        noise_multiplier=NOISE,
        count=2,
    )
    evidence = evidence_of(query, n=4)
    evidence.add(np.array([1.0, 9.0, 0.0, 9.0]), np.array([0, 2]))
    expected = [0.5 / NOISE**2, 0.0, -0.5 / NOISE**2, 0.0]
    assert evidence.log_ratios() == pytest.approx(expected)


def test_a_run_with_correlated_noise_that_ends_early_is_refused():
    evidence = evidence_of(query_of("full"), n=2)
    evidence.add(np.zeros(2), np.arange(2))
    with pytest.raises(UnsupportedEvent, match="6 answers, got one of 1"):
        evidence.log_ratios()


@pytest.mark.slow
def test_records_that_are_drawn_together_have_the_bound_of_hoeffding():
    """Its exponent is a divergence of Bernoulli laws, which no bound by Clopper and Pearson has."""
    found = attacks.likelihood(fixed(), samples=4_000, confidence=1 - ALARM, seed=2)
    p, q = (found.members > 0).mean(), found.true_positive_rate
    divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert len(found.members) * divergence == pytest.approx(math.log(2 / ALARM), rel=1e-6)
