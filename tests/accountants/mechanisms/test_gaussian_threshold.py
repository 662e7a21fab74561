"""Sparse vectors with Gaussian noise: above all runs by brute force, one query in closed form."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.mechanisms.gaussian_threshold import _gaussian, _law, _passing


def sparse(a, b, n):
    return events.GaussianAboveThresholdDpEvent(a, b, n)


def law_of_outcomes(queries, a, b):
    """Return the chances of the first query above N(0, a^2), and of none, by quadrature."""
    x, step = np.linspace(-9 * a, 9 * a, 801, retstep=True)
    below = norm.cdf((x - queries[:, np.newaxis]) / b)
    before = np.cumprod(np.concatenate([np.ones((1, len(x))), below]), axis=0)
    chances = before * np.concatenate([1 - below, np.ones((1, len(x)))])
    return chances @ norm.pdf(x, scale=a) * step


@pytest.mark.parametrize(("a", "b", "n"), [(1.0, 2.0, 1), (1.0, 1.5, 3), (4.0, 2.0, 20)])
def test_no_run_is_less_private_than_its_price(a, b, n):
    rng, event = np.random.default_rng(n), sparse(a, b, n)
    targets = np.array([0.0, 0.3, 1.0, 2.0])
    prices = np.array([delta(event, epsilon=target).upper for target in targets])
    worst = np.zeros(len(targets))
    for _ in range(60):
        # Levels where about one query in n is above, and any moves by at most 1.
        queries = rng.normal(-b * norm.isf(min(0.4, 1 / n)), rng.choice([0.1, 1.0]) * b, n)
        moves = rng.choice([np.full(n, 1.0), -np.ones(n), rng.uniform(-1, 1, n)])
        if rng.random() < 0.3:
            moves = np.where(queries > np.median(queries), -1.0, 1.0)
        p, q = (law_of_outcomes(each, a, b) for each in (queries, queries + moves))
        assert p.sum() == pytest.approx(1, abs=1e-9)
        gaps = np.maximum(p - np.exp(targets)[:, np.newaxis] * q, 0).sum(axis=1)
        worst = np.maximum(worst, gaps)
    assert (worst <= prices).all()
    assert worst[0] > 0.1 * prices[0]


@pytest.mark.parametrize(("a", "b"), [(4.0, 8.0), (1.0, 20.0), (30.0, 2.0)])
def test_one_query_costs_a_gaussian_mechanism(a, b):
    gaussian = events.GaussianDpEvent(1 / math.hypot(1 / a, 2 / b))
    for target in (1e-3, 1e-6, 1e-10):
        exact = epsilon(gaussian, delta=target)
        assert exact < epsilon(sparse(a, b, 1), delta=target) < exact * (1 + 3e-3)


@pytest.mark.parametrize("queries", [2, 5, 60])
def test_the_recursion_is_that_of_the_best_thresholds(queries):
    """By a search over thresholds u at each query, in place of the closed maximum."""
    s, u = 0.6, np.linspace(-8, 30, 40_001)
    p, moved = norm.sf(u), norm.sf(u + s)
    for target in (0.0, 0.5, 2.0):
        w = 0.0
        for _ in range(queries):
            w = ((1 - p) * w + np.maximum(p - math.exp(target) * moved, 0)).max()
        found = float(_passing(np.array([target]), s, queries)[0])
        assert w * (1 - 1e-9) <= found <= w * (1 + 1e-5)


@pytest.mark.parametrize(("s", "queries"), [(0.25, 30), (1.0, 2), (0.1, 1000)])
def test_the_law_given_the_noise_of_the_threshold_bounds_the_recursion_below_one_too(s, queries):
    """The noise of the threshold may raise the odds by more than k: then k exp(-L) is below 1."""
    law = _law(lambda epsilons: _passing(epsilons, s, queries), "given", both=False)
    failure, given = getattr(law, "failure_probability", 0.0), getattr(law, "given", law)
    masses = (1 - failure) * np.exp(given.values + given.log_reference)
    for log_k in (-3.0, -1.0, -0.1, 0.0, 0.05, 0.3, 1.0):
        log_u = min(log_k, 0.0)
        for _ in range(queries):
            log_u += math.log1p(-float(_gaussian(np.array([log_k - log_u]), s)[0]))
        bound = failure + masses @ np.maximum(-np.expm1(log_k - given.values), 0.0)
        assert -math.expm1(log_u) * (1 - 1e-9) <= bound


def test_blocks_of_queries_count_no_less_than_each_by_itself():
    s, targets = 0.25, np.array([0.2, 1.0, 2.0])
    log_u = np.zeros(3)
    for _ in range(3_000):
        log_u += np.log1p(-_gaussian(targets - log_u, s))
    alone, blocks = -np.expm1(log_u), _passing(targets, s, 3_000)
    assert (alone * (1 - 1e-9) <= blocks).all()
    assert (blocks < 1.01 * alone).all()


def test_more_queries_cost_more_and_runs_compose():
    prices = [epsilon(sparse(20.0, 40.0, n), delta=1e-6) for n in (1, 10, 1_000, 10**9)]
    assert all(few < many for few, many in itertools.pairwise(prices))
    assert prices[-1] < 2 * prices[2]
    ten = epsilon(events.SelfComposedDpEvent(sparse(20.0, 40.0, 1_000), 10), delta=1e-6)
    assert prices[2] < ten < 10 * prices[2]
    replaced = epsilon(sparse(20.0, 40.0, 10), delta=1e-6, neighboring_relation="replace-one")
    assert replaced == epsilon(sparse(10.0, 20.0, 10), delta=1e-6)
    sampled = events.PoissonSampledDpEvent(0.1, sparse(2.0, 4.0, 10))
    assert epsilon(sampled, delta=1e-6) < epsilon(sampled.event, delta=1e-6) / 2
