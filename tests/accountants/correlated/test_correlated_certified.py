"""Deterministic bounds on correlated noise under sampling, against enumeration of every pattern.

Statistical statements here fail with probability below 1e-5 for a fresh seed.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from dpcal import accountants
from dpcal.accountants import correlated, events
from dpcal.accountants.correlated import bounds
from dpcal.accountants.correlated.bounds.conditional import (
    Conditional,
    covers,
    posterior_chances,
)
from dpcal.accountants.correlated.draws.estimators import Direct, Setting
from dpcal.accountants.correlated.draws.montecarlo import simulate
from dpcal.accountants.correlated.likelihood import TransferEngine
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.matrix import BLT, Identity, LambdaCGD, SquareRoot, Tree

ROUNDS = 10
PATTERNS = np.array(list(itertools.product([0, 1], repeat=ROUNDS)), dtype=float)


def normalised(strategy, z):
    return Mechanism.of(
        strategy,
        noise_multiplier=z * Mechanism.of(strategy, noise_multiplier=1.0).largest_column,
    )


def chances_of_patterns(rate):
    return np.exp(PATTERNS @ np.full(ROUNDS, math.log(rate / (1 - rate)))) * (1 - rate) ** ROUNDS


def exact_deltas(C, sigma, rate, epsilon):
    """Both directions for two rounds, on a grid of observations."""
    x = np.linspace(-9 * sigma, 9 * sigma + 2.5, 2001)
    weight = norm.pdf(x, scale=sigma) * (x[1] - x[0])
    ratio = np.zeros((x.size, x.size))
    for y in itertools.product([0, 1], repeat=2):
        m = C @ np.array(y, dtype=float)
        chance = rate ** sum(y) * (1 - rate) ** (2 - sum(y))
        ratio += chance * np.exp((m[0] * x[:, None] + m[1] * x - 0.5 * m @ m) / sigma**2)
    both = weight[:, None] * weight
    removed = (np.maximum(ratio - math.exp(epsilon), 0) * both).sum()
    return removed, (np.maximum(1 - math.exp(epsilon) * ratio, 0) * both).sum()


@pytest.mark.slow
def test_conditioning_one_round_is_a_sampled_gaussian():
    mechanism = Mechanism.of(Identity(1), noise_multiplier=2.0)
    event = events.dpsgd(sampling_probability=0.2, noise_multiplier=2.0, steps=1)
    found = Conditional(mechanism, 0.2).epsilon(1e-4).value
    # A tenth of delta is set aside for posteriors, which one round does not have.
    assert accountants.epsilon(event, delta=1e-4).upper <= found
    assert found <= accountants.epsilon(event, delta=0.9e-4) * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("z", "rate", "factor"), [(1.0, 0.1, 2.3), (4.0, 0.3, 1.3)])
def test_conditioning_two_rounds_against_quadrature(z, rate, factor):
    mechanism = normalised(LambdaCGD(2, 0.7), z)
    delta = 1e-3
    found = Conditional(mechanism, rate).epsilon(delta).value
    assert max(exact_deltas(mechanism.matrix, mechanism.sigma, rate, found)) <= delta
    # Not much less would do.
    assert max(exact_deltas(mechanism.matrix, mechanism.sigma, rate, found / factor)) > delta


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", [SquareRoot(ROUNDS), LambdaCGD(ROUNDS, 0.9), BLT(ROUNDS, (0.9,), (0.3,))]
)
def test_conditioning_ten_rounds_against_draws(strategy):
    mechanism, rate, delta = normalised(strategy, 5.0), 0.2, 1e-2
    law = correlated.Poisson(rate).automaton(ROUNDS)
    # The transfer matrix over ten rounds is enumeration.
    shape = replace(mechanism.shape, kind="banded", decay=None, bands=ROUNDS, series=None)
    column = replace(mechanism, shape=shape)
    setting = Setting(column, law, TransferEngine(column, law))
    found = Conditional(mechanism, rate).epsilon(delta).value
    sure = {"failure_probability": 1e-6}
    for direction in ("remove", "add"):
        sample = simulate(Direct(setting, direction), draws=20_000, seed=3)
        assert sample.at(found, **sure).lower <= delta
        if direction == "remove":
            assert sample.at(found / 2.4, **sure).lower > delta


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [SquareRoot(ROUNDS), LambdaCGD(ROUNDS, 0.5)])
def test_posteriors_stay_below_their_bounds(strategy):
    mechanism, rate, tail = normalised(strategy, 1.0), 0.2, 0.05
    bounds = posterior_chances(mechanism, rate, tail)
    assert bounds[0] == pytest.approx(rate, rel=1e-8)
    rng = np.random.default_rng(7)
    chances = chances_of_patterns(rate)
    draws = 2000
    y = PATTERNS[rng.choice(len(PATTERNS), size=draws, p=chances / chances.sum())]
    x = y @ mechanism.matrix.T + mechanism.sigma * rng.standard_normal((draws, ROUNDS))
    means = PATTERNS @ mechanism.matrix.T
    good, tightest = np.ones(draws, dtype=bool), 0.0
    for t in range(1, ROUNDS):
        past = means[:, :t]
        logs = (x[:, :t] @ past.T - 0.5 * (past**2).sum(axis=1)) / mechanism.variance
        logs += np.log(chances)
        posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) @ PATTERNS
        for j in range(t):
            good &= posterior[:, j] <= bounds[t - j]
            tightest = max(tightest, float((posterior[:, j] / bounds[t - j]).max()))
    # 2000 draws, of which a part of at most 0.05 may fail: 5 standard errors above it.
    assert 1 - good.mean() <= tail + 5 * math.sqrt(tail / draws)
    assert tightest > 0.5


def test_conditioning_helps_dense_matrices_and_says_so():
    run = SquareRoot(60)
    options = {"noise_multiplier": 20.0, "delta": 1e-5, "statistics": "none"}
    answer = correlated.epsilon(run, correlated.Poisson(0.03), **options)
    assert answer.method == "conditional composition"
    assert answer.label == "certified"
    mechanism = Mechanism.of(run, noise_multiplier=20.0)
    law = correlated.Poisson(0.03).automaton(60)
    revealed = bounds.Revealed(mechanism, law).epsilon(1e-5).value
    assert answer < 0.8 * revealed
    # Columns of a tree are not shifts of one another.
    assert not covers(Mechanism.of(Tree(8), noise_multiplier=1.0), 0.1)
    assert not covers(mechanism, 1.0)


@pytest.mark.parametrize("decay", [0.3, 0.8])
def test_the_law_of_norms_is_rounded_up_and_little(decay):
    mechanism = Mechanism.of(LambdaCGD(ROUNDS, decay), noise_multiplier=1.3)
    law = correlated.Poisson(0.3).automaton(ROUNDS)
    weights, norms = bounds.norms_law(mechanism, law)
    truth = np.linalg.norm(PATTERNS @ mechanism.matrix.T, axis=1) / mechanism.sigma
    chances = chances_of_patterns(0.3)
    for level in np.linspace(0.0, truth.max(), 50):
        assert chances[truth > level].sum() <= weights[norms > level].sum() + 1e-12
    assert weights @ norms <= 1.03 * (chances @ truth)
    assert weights.sum() == pytest.approx(1.0, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decay", "z", "published"), [(0.5, 0.8, 33.4), (0.9, 0.8, 43.1), (0.9, 4.0, 4.6)]
)
def test_published_epsilons_of_revealed_participations(decay, z, published):
    mechanism = normalised(LambdaCGD(1000, decay), z)
    revealed = bounds.Revealed(mechanism, correlated.Poisson(0.01).automaton(1000))
    found = revealed.epsilon(1e-5).value
    assert 0.99 * published < found < 1.05 * published


def test_a_record_that_never_takes_part_has_a_law_of_norms():
    run = Mechanism.of(LambdaCGD(12, 0.9), noise_multiplier=1.0)
    weights, norms = bounds.norms_law(run, correlated.Poisson(1e-16).automaton(12))
    assert len(weights) == len(norms) > 0
