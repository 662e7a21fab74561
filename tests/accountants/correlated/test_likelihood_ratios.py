"""Likelihood ratios against enumeration of every pattern, published values, and each other."""

import math

import numpy as np
import pytest
from _integrals import independent, log_ratios, patterns, toeplitz
from scipy.special import logsumexp

from dpcal.accountants import correlated, matrix
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.price import Question
from dpcal.accountants.matrix import BISR, BLT, Banded, LambdaCGD, SquareRoot

ROUNDS = 12
PATTERNS = patterns(ROUNDS)


def mechanism(column, sigma):
    return Mechanism.of(matrix.Dense(toeplitz(column)), noise_multiplier=sigma)


def ar1(T, decay, sigma):
    return mechanism(decay ** np.arange(T), sigma)


def min_separation(b, p):
    """Written from the definition, pattern by pattern."""
    out = np.full(len(PATTERNS), -np.inf)
    for i, y in enumerate(PATTERNS):
        chosen = np.flatnonzero(y)
        if (np.diff(chosen) < b).any():
            continue
        eligible = sum(not any(0 < t - u < b for u in chosen) for t in range(ROUNDS))
        out[i] = len(chosen) * math.log(p) + (eligible - len(chosen)) * math.log1p(-p)
    return out


def alike(condition):
    """Patterns for which a condition holds, all as likely."""
    with np.errstate(divide="ignore"):
        return np.log(condition / condition.sum())


def bins(b):
    regular = np.arange(ROUNDS)[None] % b == np.arange(b)[:, None]
    return alike((PATTERNS[:, None] == regular[None]).all(axis=2).any(axis=1))


def shifted(b, r):
    parts = [independent(np.where(np.arange(ROUNDS) % b == group, r, 0.0)) for group in range(b)]
    return logsumexp(np.nan_to_num(parts, nan=-np.inf), axis=0) - math.log(b)


LAWS = {
    "Poisson": (correlated.Poisson(0.3), independent(np.full(ROUNDS, 0.3))),
    "min-separation 1": (correlated.MinSeparation(1, 0.3), independent(np.full(ROUNDS, 0.3))),
    "min-separation 3": (correlated.MinSeparation(3, 0.4), min_separation(3, 0.4)),
    "3 of T": (correlated.RandomAllocation(3), alike(PATTERNS.sum(axis=1) == 3)),
    "balls in bins": (correlated.BallsInBins(4), bins(4)),
    "random shift": (correlated.CyclicPoisson(3, 0.5, random_shift=True), shifted(3, 0.5)),
}
each_law = pytest.mark.parametrize(
    ("law", "log_weights"),
    [(sampler.automaton(ROUNDS), weights) for sampler, weights in LAWS.values()],
    ids=LAWS,
)


def observations(run, draws=41, seed=0):
    rng = np.random.default_rng(seed)
    means = run.matrix @ PATTERNS[rng.integers(0, len(PATTERNS), draws)].T
    return means + run.sigma * rng.standard_normal(means.shape)


def differences(engine, run, x, log_weights):
    """Both bounds less the truth, and what rounding may add."""
    truth, a = log_ratios(run.matrix, run.sigma, x, log_weights), run.fields(x.copy())
    bounds = [engine.log_ratio(a, above=above) - truth for above in (False, True)]
    return *bounds, 1e-12 * max(1.0, float(np.abs(truth).max()))


@each_law
def test_windows_agree_with_every_pattern(law, log_weights):
    columns = [1.0, 0.5, 0.3, 0.2], [1.0, 0.7], [1.0], list(0.8 ** np.arange(ROUNDS))
    for column in columns:
        run = mechanism(column + [0.0] * (ROUNDS - len(column)), 0.8 if len(column) < 9 else 2.0)
        engine = Likelihood(run, law, "window" if run.bands > 1 else "none")
        low, high, rounding = differences(engine, run, observations(run), log_weights)
        assert (np.abs([low, high]) <= rounding).all(), column


@each_law
def test_sums_are_bounds_on_both_sides_of_every_pattern(law, log_weights):
    pairs = ((0.3, 0.6), (0.5, 0.8), (0.8, 2.0), (0.9, 2.0), (0.97, 6.0), (0.999999, 6.0))
    for decay, sigma in pairs:
        run = ar1(ROUNDS, decay, sigma)
        low, high, rounding = differences(
            Likelihood(run, law, "sum"), run, observations(run), log_weights
        )
        assert (low <= rounding).all(), decay
        assert (high >= -rounding).all(), decay
        # Sums are rounded to nodes that are up to 30 percent apart.
        assert high.max() < 0.15, decay
        assert low.min() > -1.2, decay
    buffer = Mechanism.of(BLT(ROUNDS, (0.6,), (0.3,)), noise_multiplier=0.8)
    engine = Likelihood(buffer, law, "sum")
    low, high, rounding = differences(engine, buffer, observations(buffer), log_weights)
    assert (low <= rounding).all()
    assert ((high >= -rounding) & (high < 0.05)).all()


def test_no_path_of_two_participations_is_rounded():
    # Records that take part at most twice: 2 of T rounds, whatever the decay.
    law, log_weights = correlated.RandomAllocation(2).automaton(ROUNDS), alike(PATTERNS.sum(1) == 2)
    run = ar1(ROUNDS, 0.7, 1.0)
    found = differences(Likelihood(run, law, "sum"), run, observations(run), log_weights)
    assert (np.abs(found[:2]) <= found[2]).all()


@each_law
def test_leaving_out_overlaps_is_a_bound_above(law, log_weights):
    run = mechanism(1 / np.sqrt(np.arange(1, ROUNDS + 1)), 2.0)
    _, high, rounding = differences(
        Likelihood(run, law, "none"), run, observations(run), log_weights
    )
    assert (high >= -rounding).all()
    assert high.max() > 1e-3


def test_participations_that_no_column_reaches_need_no_memory():
    run, law = mechanism([1.0, 0.5, 0.3] + [0.0] * 9, 0.8), correlated.MinSeparation(3, 0.4)
    engine = Question.of(run, law, run.sigma).engine
    assert engine.memory == "none"
    low, high, rounding = differences(engine, run, observations(run), min_separation(3, 0.4))
    assert (np.abs([low, high]) <= rounding).all()


def test_outputs_that_overflow_are_in_doubt():
    run, law = ar1(ROUNDS, 0.8, 0.05), correlated.Poisson(0.3).automaton(ROUNDS)
    x = np.stack([np.full(ROUNDS, size) for size in (0.0, 1e3, np.inf)], axis=1)
    for memory in ("none", "window", "sum"):
        found = Likelihood(run, law, memory).log_ratio(run.fields(x.copy()))
        assert np.isnan(found).tolist() == [False, True, True]


def test_decays_near_one_take_few_nodes():
    x = np.random.default_rng(0).standard_normal((300, 7))
    for decay in (0.99, 0.9999, 0.999999):
        run = Mechanism.of(LambdaCGD(300, decay), noise_multiplier=20.0)
        engine = Likelihood(run, correlated.Poisson(0.02).automaton(300), run.memory)
        low, high = (engine.log_ratio(run.fields(x.copy()), above=above) for above in (False, True))
        assert (low < high).all()
        assert engine._nodes.size < 130


@each_law
def test_laws_have_the_rates_and_counts_of_their_samplers(law, log_weights):
    weights = np.exp(log_weights)
    assert np.allclose(law.rates, weights @ PATTERNS, atol=1e-12)
    counts = [weights[PATTERNS.sum(axis=1) == k].sum() for k in range(ROUNDS + 1)]
    assert np.allclose(np.exp(law.counts()), counts, atol=1e-12)
    # False-alarm rate below 1e-5 a law: 12 frequencies, 5.5 standard errors.
    y, _ = law.sample(20_000, np.random.default_rng(5))
    error = np.sqrt(law.rates * (1 - law.rates) / 20_000) + 1e-9
    assert (np.abs(y.mean(axis=1) - law.rates) <= 5.5 * error).all()


@pytest.mark.parametrize(
    "run",
    [
        LambdaCGD(30, 0.6),
        BLT(30, (0.8, 0.5), (0.4, 0.1)),
        BISR(30, 3),
        Banded(30, 3, (1.0, 0.7, 0.3)),
        SquareRoot(30),
    ],
    ids=repr,
)
def test_recurrences_multiply_by_the_matrix(run):
    found, rng = Mechanism.of(run, noise_multiplier=1.7), np.random.default_rng(2)
    C = np.abs(run.matrix())
    y, x = np.array(rng.random((30, 5)) < 0.3, dtype=float), rng.standard_normal((30, 5))
    assert np.allclose(found.means(y), C @ y, rtol=1e-11, atol=1e-12)
    assert np.allclose(found.fields(x.copy()), C.T @ x / 1.7**2, rtol=1e-11, atol=1e-11)


# -- values of an independent implementation


def sine(T):
    return 1.5 * np.sin(np.arange(1, T + 1))[:, None]


def test_reference_log_likelihoods():
    for T, decay, sigma, sampler, value, width in (
        (1000, 0.9, 2.0, correlated.Poisson(0.01), -4.835854180666, 2e-3),
        (1000, 0.97, 4.0, correlated.Poisson(0.05), -31.26211985903, 0.3),
        (30, 0.8, 1.5, correlated.MinSeparation(4, 0.3), -3.2687918714300, 0.02),
        (30, 0.8, 1.5, correlated.BallsInBins(6), -2.7154045792271, 0.02),
    ):
        run = ar1(T, decay, sigma)
        engine, a = Likelihood(run, sampler.automaton(T), run.memory), run.fields(sine(T))
        assert engine.log_ratio(a, above=False)[0] <= value <= engine.log_ratio(a)[0]
        assert engine.log_ratio(a)[0] <= value + width, (T, sampler)


# -- what a matrix is


@pytest.mark.parametrize("name", ["Poisson", "min-separation 3"])
def test_odds_of_a_participation_given_all_others(name):
    sampler, log_weights = LAWS[name]
    weights = np.exp(log_weights).reshape((2,) * ROUNDS)
    for t, most in enumerate(Joining.of(sampler, ROUNDS).odds):
        absent, present = np.moveaxis(weights, t, 0)
        assert (present <= most * absent).all()
        # It is attained away from the ends.
        assert t not in range(3, 9) or (present > most * absent * (1 - 1e-6)).any()


def test_walks_are_read_from_matrices():
    runs = BISR(40, 2), BLT(40, (0.7,), (0.7,)), BISR(40, 3), BLT(40, (0.9, 0.5), (0.1, 0.2))
    # Two sums are too many.
    assert [Mechanism.of(run).walk for run in runs] == [(0.5, 0.5), (0.7, 0.7), None, None]
    assert Mechanism.of(BLT(40, (0.9,), (0.1,))).walk == pytest.approx((0.9, 0.1), rel=1e-15)


def test_signs_are_left_out():
    C = toeplitz((-0.5) ** np.arange(6))
    flipped = Mechanism.of(matrix.Dense(C), noise_multiplier=1.0)
    assert flipped.walk == (0.5, 0.5)
    assert (flipped.matrix == np.abs(C)).all()
    mixed = np.array([[1.0, 0, 0], [-0.5, 1, 0], [0.25, 0, 1]])
    found = Mechanism.of(matrix.Dense(mixed), noise_multiplier=1.0)
    assert (found.matrix == np.abs(mixed)).all()
