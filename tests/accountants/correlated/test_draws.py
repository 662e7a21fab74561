"""Estimates of delta against quadrature, exact accountants, published values, and each other.

Statistical tests fix their seeds; a fresh seed would fail any of them with probability below 1e-4,
because they allow 4 to 5 standard errors, or bounds that fail with probability 1e-6.
"""

import itertools
import math
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from _integrals import toeplitz, two_rounds
from mpmath import log, mpf, workdps
from scipy.stats import binom

from dpcal import accountants
from dpcal.accountants import correlated, events
from dpcal.accountants.correlated.bounds.adding import Adding, ConvexTail
from dpcal.accountants.correlated.bounds.replicas import Key, ReplicaMoments
from dpcal.accountants.correlated.draws.estimators import Bins, Direct, Tilted, best_tilt
from dpcal.accountants.correlated.draws.montecarlo import (
    bets_prove,
    draws_needed,
    last_proved,
    lower_mean,
    simulate,
    upper_mean,
)
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.price import Options, Question
from dpcal.accountants.matrix import BLT, Banded, LambdaCGD
from dpcal.errors import UnsupportedEvent

SURE = {"failure_probability": 1e-6}


def asked(run, sigma, sampler):
    return Question.of(run, sampler, sigma, Options(seed=1))


def standard_error(sample, epsilon):
    """Return the standard error of the mean that draws estimate."""
    terms = sample.estimator.terms(sample.kept, epsilon)
    return terms.std() / math.sqrt(sample.draws)


def tilted(run, sigma, sampler, order):
    question = asked(run, sigma, sampler)
    return Tilted(question.engine, question.joining, order)


@pytest.mark.slow
@pytest.mark.parametrize(("decay", "epsilon"), [(0.5, 0.5), (0.5, 1.0), (0.9, 0.5)])
def test_two_rounds_against_quadrature(decay, epsilon):
    run, sampler = LambdaCGD(2, decay), correlated.Poisson(0.3)
    exact = two_rounds(toeplitz(decay ** np.arange(2)), 1.0, 0.3, epsilon)
    engine = asked(run, 1.0, sampler).engine
    rounded = Likelihood(engine.mechanism, engine.law, "sum")
    for estimator, side in (
        (Direct(engine), 0),
        (Direct(rounded), 0),
        (tilted(run, 1.0, sampler, 2), 0),
        (Direct(engine, direction="add"), 1),
        (Direct(rounded, direction="add"), 1),
    ):
        sample = simulate(estimator, draws=20_000, seed=7)
        reading, kind = sample.at(epsilon, **SURE), type(estimator).__name__
        assert reading.lower <= exact[side] <= reading.upper, kind
        assert standard_error(sample, epsilon) < 0.05 * exact[side] + 1e-6, kind
        assert estimator.terms(sample.kept, epsilon).max() <= estimator.largest(epsilon), kind


def delta_of_patterns(question, epsilon, draws, seed):
    """Delta of removing, and its standard error, from all patterns of a few rounds."""
    mechanism, (y, first) = (
        question.mechanism,
        question.engine.law.sample(200_000, np.random.default_rng(1)),
    )
    del first
    patterns, counts = np.unique(y.T, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    means = patterns @ mechanism.matrix.T / mechanism.sigma
    x = means[rng.choice(len(counts), draws, p=counts / counts.sum())]
    x = x + rng.standard_normal(x.shape)
    logs = np.log(counts / counts.sum()) + x @ means.T - 0.5 * (means**2).sum(axis=1)
    terms = np.maximum(0.0, 1 - math.exp(epsilon) / np.exp(logs).sum(axis=1))
    return terms.mean(), terms.std() / math.sqrt(draws)


@pytest.mark.parametrize(
    ("run", "sampler"),
    [
        (LambdaCGD(6, 0.7), correlated.MinSeparation(2, 0.4)),
        (LambdaCGD(6, 0.7), correlated.MinSeparation(3, 0.3)),
        (LambdaCGD(6, 0.7), correlated.RandomAllocation(1, epoch=3)),
        (Banded(6, 3, (1.0, 0.7, 0.3)), correlated.MinSeparation(2, 0.4)),
        (Banded(6, 3, (1.0, 0.7, 0.3)), correlated.RandomAllocation(1, epoch=3)),
        (Banded(6, 2, (1.0, 0.7)), correlated.MinSeparation(2, 0.4)),
        (BLT(6, (0.8,), (0.4,)), correlated.CyclicPoisson(2, 0.4)),
    ],
    ids=repr,
)
def test_tilted_draws_have_the_delta_of_the_law(run, sampler):
    question = asked(run, 2.0, sampler)
    exact, error = delta_of_patterns(question, 0.5, 200_000, seed=3)
    walks = question.mechanism.walk is not None
    for order, shared in ((2, 0.0), (5, 0.0), *([(2, 1.0), (4, 1.0)] if walks else [])):
        estimator = Tilted(question.engine, question.joining, order, shared=shared)
        sample = simulate(estimator, draws=8192, seed=order)
        reading = sample.at(0.5, **SURE)
        # The frequencies of patterns are known to about a percent, and 5 standard errors.
        reach = 5 * math.hypot(error, standard_error(sample, 0.5)) + 0.02 * exact + 5e-4
        # Overlaps that replicas share leave a mean above delta.
        assert exact - reach < reading.mean < exact * (1 + shared) + reach
        assert 0 < estimator.terms(sample.kept, 0.5).max() <= estimator.largest(0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 1e-4), (6.0, 1e-13)])
@pytest.mark.parametrize(
    "run", [LambdaCGD(2, 0.5), Banded(2, 2, (1.0, 0.5)), BLT(2, (0.8,), (0.4,))], ids=repr
)
def test_small_deltas_of_two_rounds(run, epsilon, least):
    question = asked(run, 1.0, correlated.Poisson(0.05))
    exact, _ = two_rounds(run.matrix(), 1.0, 0.05, epsilon)
    assert least < exact
    best = best_tilt(question.engine, question.joining, epsilon)
    sample = simulate(best, draws=50_000, seed=4)
    reading = sample.at(epsilon, **SURE)
    assert reading.lower <= exact <= reading.upper < 2 * exact
    assert abs(reading.mean - exact) < 5 * standard_error(sample, epsilon) + 1e-5 * exact


def test_an_order_without_a_moment_has_no_draws():
    hopeless = tilted(LambdaCGD(2, 0.9), 0.05, correlated.Poisson(0.3), 3)
    assert hopeless.log_moment == math.inf
    with pytest.raises(UnsupportedEvent, match="no finite range"):
        hopeless.draw(8, np.random.default_rng(0))


def moment_by_enumeration(mechanism, rate, order):
    """log E_Q[B^q], by all counts of all rounds."""
    total = []
    for counts in itertools.product(range(order + 1), repeat=mechanism.steps):
        n = np.array(counts)
        chance = math.prod(
            math.comb(order, k) * rate**k * (1 - rate) ** (order - k) for k in counts
        )
        mean = mechanism.matrix @ n
        exponent = 0.5 * mean @ mean / mechanism.variance - 0.5 * n @ mechanism.energies
        total.append(chance * math.exp(exponent))
    return math.log(math.fsum(total))


@pytest.mark.parametrize(
    "run",
    [
        LambdaCGD(5, 0.6),
        BLT(5, (0.8,), (0.4,)),
        Banded(5, 3, (1.0, 0.7, 0.3)),
        Banded(5, 5, (1.0, 0.7, 0.5, 0.3, 0.2)),
    ],
    ids=repr,
)
def test_moments_against_every_count(run):
    for order in (2, 3):
        found = tilted(run, 1.7, correlated.Poisson(0.2), order)
        exact = moment_by_enumeration(found.engine.mechanism, 0.2, order)
        # A polygon lies above the convex function, by little.
        assert exact - 1e-11 <= found.log_moment <= exact + (1e-8 if run.bands else 1e-3)
        moments = ReplicaMoments(found.engine.mechanism, found.joining)
        assert found.log_moment <= moments.total(Key(0, order), 20).log() + 1e-12


# -- published values, and another implementation


def correlated_bins():
    M = toeplitz(0.9 ** np.arange(1000)) @ correlated.BallsInBins(100).equally_likely(1000)
    gram = M.T @ M
    return Bins(gram * (2.25 / np.diagonal(gram).max()), "remove", 3)


def powers(run, sigma, epsilon):
    question = asked(run, sigma, correlated.Poisson(0.01))
    return best_tilt(question.engine, question.joining, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator_of", "draws", "epsilon", "published", "error"),
    [
        (correlated_bins, 10_000, 2.0, 5.28e-3, 0.004),
        (correlated_bins, 10_000, 4.0, 1.05e-5, 0.017),
        # Another implementation.
        (lambda: powers(LambdaCGD(1000, 0.5), 2 / 0.75**0.5, 1.6), 4096, 1.6, 9.95e-9, 0.03),
        (lambda: powers(Banded.optimised(2000, 4), 2.638, 4.0), 4096, 4.0, 5.6e-9, 0.1),
    ],
)
def test_published_deltas_of_long_runs(estimator_of, draws, epsilon, published, error):
    sample = simulate(estimator_of(), draws=draws, seed=5)
    mean = sample.mean(epsilon)
    reach = 4.5 * math.hypot(standard_error(sample, epsilon) / mean, error)
    assert abs(mean / published - 1) <= reach < 1


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "epsilon", "order"), [(1.0, 0.25, 2), (1.0, 0.5, 3), (1.5, 1.0, 3)])
def test_bins_of_independent_noise_are_an_allocation(mu, epsilon, order):
    exact = accountants.delta(events.RandomAllocationDpEvent(1 / mu, 100), epsilon=epsilon)
    drawn = simulate(Bins(mu**2 * np.eye(100), "remove", order), draws=20_000, seed=order)
    reading = drawn.at(epsilon, **SURE)
    assert reading.lower <= exact <= reading.upper
    assert standard_error(drawn, epsilon) < 0.3 * reading.mean


def test_bins_when_a_record_is_added_stay_below_a_half_space():
    add = simulate(Bins(np.eye(10), "add"), draws=20_000, seed=4)
    for epsilon in (0.1, 0.5):
        assert add.at(epsilon, **SURE).lower <= Adding.of_bins(np.eye(10)).delta(epsilon)


# -- how draws are run


def small():
    return Direct(asked(LambdaCGD(30, 0.6), 1.25, correlated.Poisson(0.1)).engine)


def test_results_do_not_depend_on_the_workers():
    alone = simulate(small(), draws=5000, seed=1).kept

    class Client:
        def __init__(self, pool):
            self.get_executor = lambda: pool

    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as processes:
        for executor in (threads, Client(threads), processes):
            assert (simulate(small(), draws=5000, seed=1, executor=executor).kept == alone).all()
    assert (simulate(small(), draws=5000, seed=2).kept != alone).any()
    assert (simulate(small(), draws=5000, seed=1, stream=1).kept != alone).any()


def test_what_is_sent_for_a_long_run_is_small():
    question = asked(LambdaCGD(100_000, 0.5), 2.0, correlated.Poisson(0.001))
    sizes = []

    class Executor:
        def map(self, function, work):
            sizes.extend(len(pickle.dumps(function)) for _ in work)
            return []

    for estimator in (Direct(question.engine), Tilted(question.engine, question.joining, 6)):
        with pytest.raises(ValueError, match="concatenate"):
            simulate(estimator, draws=3000, seed=0, executor=Executor())
    assert len(sizes) == 6
    assert max(sizes) < 80 * question.mechanism.steps


# -- confidence


def test_confidence_bounds_hold_at_every_sample_size():
    # Exact coverage for binomial means, summed over outcomes.
    for n, p in ((20, 0.3), (200, 0.02)):
        k = np.arange(n + 1)
        weights = binom.pmf(k, n, p)
        for gamma in (0.05, 1e-3):
            options = {"draws": n, "failure_probability": gamma}
            below = np.array([upper_mean(j / n, **options) < p for j in k])
            above = np.array([lower_mean(j / n, **options) > p for j in k])
            assert weights @ below <= gamma
            assert weights @ above <= gamma


def test_published_confidence_bounds():
    options = {"draws": 100_000, "failure_probability": 1e-3, "largest": 0.01}
    assert upper_mean(0.0, **options) == pytest.approx(6.9075e-7, rel=1e-4)
    needed = draws_needed(1e-5, failure_probability=1e-7)
    assert upper_mean(0.0, draws=needed, failure_probability=1e-7) <= 1e-5
    assert upper_mean(0.0, draws=needed - 5, failure_probability=1e-7) > 1e-5


def test_confidence_bounds_are_rounded_outward():
    with workdps(40):
        for mean, draws, failure in ((1e-3, 10**5, 1e-3), (0.3, 50, 1e-9), (1e-7, 10**8, 1e-6)):
            found = upper_mean(mean, draws=draws, failure_probability=failure)
            p, q = mpf(mean), mpf(found)
            divergence = p * log(p / q) + (1 - p) * log((1 - p) / (1 - q))
            assert draws * divergence > -log(mpf(failure))


def test_bets_bound_means_more_often_than_they_promise():
    rng, failure, draws = np.random.default_rng(7), 0.05, 4096
    rate, missed, gains = 0.03, 0, 0
    sure = {"failure_probability": failure, "largest": 1.0}
    for _ in range(400):
        x = np.where(rng.random(draws) < rate, rng.random(draws) ** 3, 0.0)
        missed += bets_prove(x, 0.25 * rate * (1 - 1e-9), **sure)
        plain = upper_mean(float(x.mean()), draws=draws, failure_probability=failure)
        gains += bets_prove(x, x.mean() + 0.95 * (plain - x.mean()), **sure)
    # 5 percent of 400, and four standard errors; a false alarm is rarer than one in 10,000.
    assert missed <= 20 + 4 * math.sqrt(400 * 0.05 * 0.95)
    assert gains > 200


def test_the_last_of_falling_epsilons_is_wrong_as_rarely_as_one_test():
    # Exponential draws of mean 1: delta(e) is e^-e, and exceeds 0.01 below log 100.
    rng, wrong, near = np.random.default_rng(9), 0, math.log(100)
    sure = {"failure_probability": 0.05, "largest": 1.0}
    for _ in range(200):
        x = rng.exponential(size=2048)
        found = last_proved(
            lambda epsilon, x=x: bets_prove((x > epsilon) * 1.0, 0.01, **sure),
            near * rng.uniform(0.8, 1.3),
        )
        wrong += found < near
    assert wrong <= 10 + 4 * math.sqrt(200 * 0.05 * 0.95)
    assert last_proved(lambda epsilon: epsilon > 1, 0.9) == pytest.approx(1.0, rel=2e-3)
    assert last_proved(lambda epsilon: epsilon > 3, 1.0) == last_proved(bool, math.inf) == math.inf


def test_what_bets_prove_falls_with_the_draws():
    x = np.random.default_rng(8).random(2048) ** 8
    sure = {"failure_probability": 1e-6}
    assert bets_prove(x, 0.2, **sure, largest=1.0)
    assert not bets_prove(x, 0.115, **sure, largest=1.0)
    assert bets_prove(0.3 * x, 0.07, **sure, largest=0.3)
    # A wide range proves nothing, and one below the mean all.
    assert not bets_prove(x, 5.0, **sure, largest=1e9)
    assert bets_prove(x, 1.0, **sure, largest=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "sigma"), [(0.5, 1.0), (0.9, 2.0)])
def test_the_convex_tail_holds_far_below_its_draws(rate, sigma):
    run = LambdaCGD(2, 0.5)
    engine = asked(run, sigma, correlated.Poisson(rate)).engine
    log_l = simulate(Direct(engine, direction="add"), draws=8_192, seed=6).kept
    bound = ConvexTail.of(log_l, failure_probability=1e-10)
    told = 0
    for epsilon in np.linspace(0.3, 6.0, 5):
        _, exact = two_rounds(run.matrix(), sigma, rate, epsilon)
        found = bound.delta(epsilon)
        assert found >= exact * (1 - 1e-6)
        # Far fewer draws than 1 / delta tell that delta is small.
        told += found < 1e-6
    assert told > 0 or rate > 0.5
    back = bound.epsilon(1e-6).value
    assert bound.delta(back) == pytest.approx(1e-6, rel=1e-6) or bound.delta(0.0) <= 1e-6


def test_levels_of_a_convex_tail_lie_below_their_draws():
    log_l = np.random.default_rng(3).normal(-5.0, 2.0, (1, 1024))
    levels = ConvexTail.of(log_l, failure_probability=1e-6).lines[:, 0]
    nearest = log_l[0, np.abs(levels[:, None] - log_l).argmin(axis=1)]
    assert levels.size
    assert (levels < nearest).all()


@pytest.mark.slow
def test_the_convex_tail_covers_as_often_as_it_says():
    # Of 300 bounds that may fail with probability 0.1 each, more than 55 fail with one of 1e-6.
    rng, failures = np.random.default_rng(7), 0
    # The law is Gaussian: the line through two levels is the truth, and delta follows from it.
    truth = ConvexTail(np.array([[10.0, 0.125, 0.5]])).delta(1.0)
    for _ in range(300):
        log_l = rng.normal(-0.125, 0.5, 400)
        bound = ConvexTail.of(np.stack([log_l, log_l]), failure_probability=0.1)
        failures += bound.delta(1.0) < truth
    assert failures <= 55
