"""Bounds without draws hold where everything can be integrated, and say enough in practice.

Statistical statements here fail with probability below 1e-5 for a fresh seed.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from _correlated_runs import price
from _integrals import independent, patterns, plane, two_rounds
from scipy.special import logsumexp

from dpcal import accountants
from dpcal.accountants import events, matrix
from dpcal.accountants.correlated.bounds import adding
from dpcal.accountants.correlated.bounds.adding import Adding, lower_tail
from dpcal.accountants.correlated.bounds.joining import Joining, state_cap
from dpcal.accountants.correlated.bounds.reductions import (
    allocated,
    revealed as revealed_of,
    spaced,
)
from dpcal.accountants.correlated.bounds.replicas import Key, Past, ReplicaMoments
from dpcal.accountants.correlated.draws.estimators import Direct
from dpcal.accountants.correlated.draws.montecarlo import simulate
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.price import Question
from dpcal.accountants.correlated.pricing import losses
from dpcal.accountants.loaders.subsets import SubsetBelow
from dpcal.accountants.samplers import (
    BallsInBins,
    CyclicPoisson,
    MinSeparation,
    Poisson,
    RandomAllocation,
)

SURE = {"failure_probability": 1e-6}


def normalised(strategy, z):
    largest = Mechanism.of(strategy, noise_multiplier=1.0).largest_column
    return Mechanism.of(strategy, noise_multiplier=z * largest)


def revealed(mechanism, rate):
    return revealed_of(mechanism, Poisson(rate))


def replicas(mechanism, rate):
    return ReplicaMoments(mechanism, Joining(np.full(mechanism.steps, rate)))


def half_spaces(mechanism, rate):
    return replace(Adding.of(mechanism, Joining(np.full(mechanism.steps, rate))), tail=None)


def convex(mechanism, rate):
    return replace(Adding.of(mechanism, Joining(np.full(mechanism.steps, rate))), pairs=())


ADDING = half_spaces, convex
BOTH = (revealed,)
DENSE = matrix.Dense([[1.0, 0.0], [0.7, 1.3]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "sigma", "rate"),
    [
        (DENSE, 1.0, 0.1),
        (matrix.LambdaCGD(2, 0.9), 2.0, 0.3),
        (matrix.Banded(2, 2, (1.0, 0.6)), 1.2, 0.05),
        (matrix.BLT(2, (0.7,), (0.4,)), 1.5, 0.2),
    ],
    ids=["dense", "lambda-CGD", "bands", "buffer"],
)
def test_every_bound_is_above_the_integral_of_two_rounds(run, sigma, rate):
    mechanism = Mechanism.of(run, noise_multiplier=sigma)
    # At 6 deltas are down to 4e-16.
    for epsilon in (0.0, 0.5, 2.5, 6.0):
        removed, added = two_rounds(run.matrix(), sigma, rate, epsilon)
        for bound_of in (*ADDING, *BOTH):
            assert added <= bound_of(mechanism, rate).delta(epsilon), (bound_of, epsilon)
        for bound_of in (replicas, *BOTH):
            assert removed <= bound_of(mechanism, rate).delta(epsilon), (bound_of, epsilon)
    # It says enough: not much less would do.
    found = replicas(mechanism, rate).epsilon(1e-3).value
    assert max(two_rounds(run.matrix(), sigma, rate, found / 4)) > 1e-3


def test_the_lower_tail_against_integrals_of_its_moments():
    for run, sigma, rate in ((DENSE, 1.0, 0.1), (matrix.Identity(2), 0.8, 0.02)):
        log_q, log_l = plane(run.matrix(), sigma, rate)
        weights = np.exp(log_q)
        mean = float(weights @ log_l)
        variance = float(weights @ (log_l - mean) ** 2)
        odds = np.full(2, rate / (1 - rate))
        proved = lower_tail(Mechanism.of(run, noise_multiplier=sigma), odds)
        assert -mean <= proved[0]
        assert variance <= proved[1] ** 2
        # Both are rounded outward.
        C = run.matrix() / sigma
        J, both = C.T @ C, np.outer(odds, odds)
        exact = 0.5 * (both * np.expm1(J)).sum(), math.sqrt((both * J * np.exp(J)).sum())
        assert all(value > least * (1 + 1e-10) for value, least in zip(proved, exact, strict=True))
        for power in (0.5, 2.0, 6.0):
            # The lower tail is Gaussian with the variance itself.
            moment = float(logsumexp(log_q - power * log_l))
            assert moment <= -power * mean + 0.5 * power**2 * variance + 1e-9


@pytest.mark.slow
def test_bounds_of_longer_runs_lie_above_draws():
    # Confidence intervals, each of which fails with probability 1e-6.
    rng = np.random.default_rng(11)
    for _ in range(5):
        decay, z, rate = rng.uniform(0.1, 0.9), rng.uniform(0.8, 4), rng.uniform(0.02, 0.3)
        mechanism = normalised(matrix.LambdaCGD(int(rng.integers(4, 40)), decay), z)
        law = Poisson(rate).automaton(mechanism.steps)
        engine = Likelihood(mechanism, law, mechanism.memory)
        epsilon = rng.uniform(0.1, 2.0)
        for direction, proofs in (("remove", (*BOTH, replicas)), ("add", (*BOTH, *ADDING))):
            law = Direct(engine, direction=direction)
            drawn = simulate(law, draws=1024, seed=1).at(epsilon, **SURE)
            for bound_of in proofs:
                assert drawn.lower <= bound_of(mechanism, rate).delta(epsilon), bound_of


# -- Renyi moments


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound_of", "decay", "z", "least", "most"),
    [
        # Near-exact epsilons, and the published bound by Renyi moments, which may be missed by 15%.
        (replicas, 0.5, 2.0, 1.12, 1.15 * 1.313),
        (replicas, 0.9, 4.0, 1.41, 1.15 * 1.69),
    ],
)
def test_bounds_of_a_thousand_rounds_are_near_published_ones(bound_of, decay, z, least, most):
    mechanism = normalised(matrix.LambdaCGD(1000, decay), z)
    assert least < bound_of(mechanism, 0.01).epsilon(1e-5).value < most


def test_the_tail_of_a_capped_sum_may_be_below_all_doubles():
    # At this epsilon a tenth of delta underflows.
    moments = ReplicaMoments(
        Mechanism.of(matrix.LambdaCGD(24, 0.9), noise_multiplier=2.0),
        Joining.of(CyclicPoisson(4, 0.2), 24),
    )
    assert moments.delta(1000.0) < 1e-300 < moments.delta(60.0) < 1e-42


def test_published_state_caps():
    for decay, cap in ((0.5, 1.875), (0.9, 3.896), (0.97, 5.505)):
        assert cap - 1e-3 <= state_cap(decay, 0.01, 1000, 1e-6) <= 1.02 * cap


@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_epsilon_and_delta_of_a_capped_state_agree(delta):
    """Each adds the probability of the patterns beyond the cap, and chooses a cap by itself."""
    moments = replicas(normalised(matrix.LambdaCGD(40, 0.9), 2.0), 0.05)
    assert moments.proof(moments.epsilon(delta).value).value == pytest.approx(delta, rel=1e-6)


@pytest.mark.slow
def test_long_runs_are_priced_without_dense_matrices():
    asked = {"noise_multiplier": 2.0, "delta": 1e-6, "statistics": "none"}
    assert 0 < price(matrix.LambdaCGD(100_000, 0.5), Poisson(0.001), **asked) < 6


# -- one random round an epoch


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.5), (1.0, 2.0), (1.0, 6.0)])
def test_all_rounds_of_an_epoch_are_the_gaussian_mechanism(mu, epsilon):
    # Epochs of one round, or of all rounds, compose to a Gaussian of a larger norm.
    def exact(count):
        event = events.GaussianDpEvent(1 / (math.sqrt(count) * mu))
        return float(accountants.delta(event, epsilon=epsilon))

    for epochs in (1, 4):
        bound = allocated(mu, 1, epochs)
        for found in (bound.delta(epsilon), bound.proof(epsilon).lower):
            assert found == pytest.approx(exact(epochs), rel=1e-9)
    for taken, epochs in ((1, 4), (4, 1), (4, 3)):
        for attack in SubsetBelow(mu, taken, taken, epochs).attacks:
            assert 0.98 * exact(taken * epochs) <= attack.delta(epsilon) <= exact(taken * epochs)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("taken", [1, 2])
def test_hardly_any_noise_is_priced_without_warnings(taken):
    asked = {"noise_multiplier": 0.01, "delta": 1e-6, "statistics": "none"}
    found = price(matrix.Identity(8), RandomAllocation(taken, epoch=4), **asked)
    # Two rounds of norm 100 for each of one or two participations.
    exact = accountants.epsilon(events.GaussianDpEvent(0.01 / math.sqrt(2 * taken)), delta=1e-6)
    assert 0.99 * float(exact) <= found <= 1.001 * float(exact)


# -- one random round an epoch, under correlated noise


def bounds_of(strategy, sampler, sigma):
    mechanism = Mechanism.of(strategy, noise_multiplier=sigma)
    return *spaced(mechanism, sampler), revealed_of(mechanism, sampler)


def drawn(strategy, sampler, sigma, epsilon, draws):
    """Return delta of both directions from draws of every round, and five standard errors."""
    C, rng, patterns = strategy.matrix(), np.random.default_rng(1), []
    epochs = sampler.epochs(len(C))
    taken = itertools.combinations(range(epochs.rounds), epochs.times)
    for places in itertools.product(map(list, taken), repeat=epochs.drawn):
        pattern = np.zeros((epochs.drawn, epochs.repeated, epochs.rounds))
        for epoch, place in zip(pattern, places, strict=True):
            epoch[:, place] = 1
        patterns.append(pattern.ravel())
    means = C @ np.transpose(patterns) / sigma
    energies = (means**2).sum(axis=0)
    z = rng.standard_normal((draws, len(C)))
    for sign in (1, -1):
        x = z + means.T[rng.integers(means.shape[1], size=draws)] if sign == 1 else z
        log_l = np.log(np.exp(x @ means - energies / 2).mean(axis=1))
        terms = np.maximum(-np.expm1(np.minimum(epsilon - sign * log_l, 0.0)), 0.0)
        yield terms.mean(), 5 * terms.std() / math.sqrt(draws)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "sampler", "sigma"),
    [
        (matrix.Banded(6, 2, [1.0, 0.7]), RandomAllocation(1, epoch=6), 1.2),
        (matrix.LambdaCGD(6, 0.6), RandomAllocation(1, epoch=6), 0.8),
        (matrix.Banded(12, 2, [1.0, 0.7]), RandomAllocation(1, epoch=6), 1.5),
        (matrix.LambdaCGD(12, 0.5), BallsInBins(6), 2.0),
        (matrix.LambdaCGD(12, 0.6), RandomAllocation(1, epoch=4), 2.0),
        (matrix.Identity(8), RandomAllocation(2, epoch=4), 1.0),
    ],
)
def test_no_draws_exceed_the_bound(strategy, sampler, sigma):
    for epsilon in (0.1, 0.6, 1.5):
        asked = {"noise_multiplier": sigma, "epsilon": epsilon}
        found = price(strategy, sampler, statistics="none", **asked)
        assert found.label == "certified"
        both = list(drawn(strategy, sampler, sigma, epsilon, 20_000))
        assert all(delta - error <= found for delta, error in both)
        if isinstance(strategy, matrix.Identity):
            # Whoever knows the pairs of rounds knows more, by this much here.
            worst, error = max(both)
            assert found <= 1.3 * worst + error
            assert 0.97 * worst - error <= found.lower <= worst + error
            assert found < 0.9 * revealed_of(
                Mechanism.of(strategy, noise_multiplier=sigma), sampler
            ).delta(epsilon)


@pytest.mark.slow
def test_a_bound_gains_on_known_rounds():
    strategy, sigma, epsilon = matrix.LambdaCGD(80, 0.5), 2.0, 0.5
    bound, revealed = bounds_of(strategy, BallsInBins(40), sigma)
    asked = {"noise_multiplier": sigma, "statistics": "none", "epsilon": epsilon}
    answer = price(strategy, BallsInBins(40), **asked)
    assert 9 * answer < revealed.delta(epsilon)
    assert bound.epsilon(float(answer)).value == pytest.approx(epsilon, rel=1e-8)


# -- no price is above the one of participations that are all public

EPOCHS = matrix.FixedEpochs(6, 4)
WORST_CASES = [
    (Poisson(0.9), matrix.LeastSeparation(1)),
    (CyclicPoisson(4, 0.9), EPOCHS),
    (CyclicPoisson(4, 0.9, random_shift=True), EPOCHS),
    (MinSeparation(4, 0.9), matrix.LeastSeparation(4)),
    (BallsInBins(4), EPOCHS),
    (RandomAllocation(1, epoch=4), matrix.LeastSeparation(1, at_most=6)),
    (RandomAllocation(2, epoch=4), matrix.LeastSeparation(1, at_most=12)),
]
STRATEGIES = [
    matrix.Tree(24),
    matrix.LambdaCGD(24, 0.95),
    matrix.Banded(24, 6, 0.7 ** np.arange(6)),
    matrix.BISR(24, 4),
    matrix.Dense(np.tril(np.random.default_rng(7).normal(size=(24, 24)))),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(("sampler", "worst"), WORST_CASES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one"])
def test_no_price_is_above_that_of_public_participations(strategy, sampler, worst, relation):
    public, sigma = events.GaussianDpEvent(1.5), 1.5 * strategy.sensitivity(worst).value
    run = events.CorrelatedGaussianDpEvent(strategy, sampler, sigma, statistics="none", seed=0)
    asked, beside = {"epsilon": 2.0, "neighboring_relation": relation}, events.GaussianDpEvent(3.0)
    for pair in ((run, public), [events.ComposedDpEvent([each, beside]) for each in (run, public)]):
        found, most = (float(accountants.delta(event, **asked)) for event in pair)
        assert 0 < found <= most * (1 + 1e-6)


def test_a_first_group_bounds_no_other_one_where_columns_grow():
    growing = matrix.Dense(np.tril(np.ones((6, 6))) * np.arange(1, 7))
    for kind, secret in ((CyclicPoisson, "random_shift"), (MinSeparation, "warm_start")):
        question = Question.of(growing, kind(2, 0.3, **{secret: True}), 2.0)
        assert (question.joining, question.dominated) == (None, False)


# -- moments of replicas


def of_patterns(sampler, rounds):
    """Return all patterns of participations, of shape (patterns, rounds), and probabilities."""
    found, law = [], sampler.automaton(rounds)
    idle, join = np.exp(law.idle), np.exp(law.join)
    for y in itertools.product((0, 1), repeat=rounds):
        states = np.exp(law.start)
        for t, joins in enumerate(y):
            moved = np.zeros_like(states)
            to, chance = (law.join_to, join) if joins else (law.idle_to, idle)
            np.add.at(moved, to[t], states * chance[t])
            states = moved
        found.append((y, states.sum()))
    return np.array([y for y, chance in found if chance]), [chance for _, chance in found if chance]


@pytest.mark.parametrize(
    "strategy", [DENSE, matrix.Banded(2, 2, (1, 0.6)), matrix.LambdaCGD(2, 0.9)], ids=str
)
@pytest.mark.parametrize(
    "sampler",
    [
        Poisson(0.3),
        CyclicPoisson(2, 0.3),
        CyclicPoisson(2, 0.3, random_shift=True),
        MinSeparation(2, 0.3, warm_start=True),
        BallsInBins(1),
        RandomAllocation(1),
        RandomAllocation(2),
    ],
    ids=repr,
)
def test_a_run_composes_by_moments_above_the_integrals_of_two_rounds(strategy, sampler):
    y, chances = of_patterns(sampler, 2)
    groups = sampler.groups(2)
    if groups is not None and not groups.secret:
        # The worst group counts.
        y, chances = patterns(2), np.exp(independent([0.3, 0.3 * (sampler.least_separation == 1)]))
    sigma, axis = 1.3, np.linspace(-16.0, 16.0, 601)
    x = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    def log_law(sign):
        means = sign * y @ np.abs(strategy.matrix()).T
        square = ((x[:, None] - means) ** 2).sum(axis=2) / (2 * sigma**2)
        return logsumexp(-square, b=chances, axis=1)

    run = events.CorrelatedGaussianDpEvent(strategy, sampler, sigma)
    nothing = -(x**2).sum(axis=1) / (2 * sigma**2)
    for relation, other in (("replace-special", nothing), ("replace-one", log_law(-1))):
        laws = log_law(1), other
        for loss, p, q in zip(losses(run, relation), laws, laws[::-1], strict=True):
            for c in (0.3, 1.0, 2.5, 6.0):
                truth = logsumexp(p + c * (p - q)) - logsumexp(p)
                assert truth <= loss.log_mgf_bound(c) * (1 + 1e-7)


@pytest.mark.parametrize(
    ("strategy", "sampler", "gap"),
    [
        # Where participations are as far apart as C has bands, or never meet, they are equal.
        (matrix.Banded(5, 2, (1, 0.5)), MinSeparation(2, 0.4), 1e-7),
        (matrix.Banded(6, 3, (1, 0.5, 0.3)), MinSeparation(4, 0.3), 1e-7),
        (matrix.Banded(6, 2, (1, 0.5)), RandomAllocation(1), 1e-7),
        (matrix.LambdaCGD(6, 0.5), RandomAllocation(1), 1e-4),
        (matrix.BLT(6, (0.9,), (0.3,)), RandomAllocation(1), 1e-4),
        (matrix.Banded(6, 2, (1, 0.5)), RandomAllocation(1, epoch=3), 0.3),
        (matrix.Banded(6, 3, (1, 0.5, 0.3)), MinSeparation(2, 0.3, warm_start=True), 0.7),
        (matrix.LambdaCGD(6, 0.6), MinSeparation(2, 0.3), 1.0),
        (matrix.LambdaCGD(6, 0.6), RandomAllocation(1, epoch=3), 1.0),
    ],
)
def test_moments_of_replicas_against_all_tuples_of_patterns(strategy, sampler, gap):
    mechanism = Mechanism.of(strategy, noise_multiplier=1.3)
    moments = ReplicaMoments(mechanism, Joining.of(sampler, mechanism.steps))
    for order in (2, 3):
        exact = of_tuples(mechanism, sampler, order)
        assert exact <= moments.log_moment(order) <= exact + gap


@pytest.mark.parametrize("sampler", [Poisson(0.3), MinSeparation(2, 0.4), RandomAllocation(1)])
@pytest.mark.parametrize(
    "strategy",
    [
        matrix.SquareRoot(6),
        matrix.BLT(6, (0.95, 0.4), (0.2, 0.3)),
        matrix.BISR(6, 3),
        matrix.Tree(6),
        matrix.Banded(6, 5, (1.0, 0.9, 0.9, 0.8, 0.8)),
        matrix.Dense(np.tril(np.random.default_rng(3).uniform(0.1, 1, size=(6, 6)))),
    ],
    ids=lambda each: type(each).__name__,
)
def test_one_number_carries_a_larger_past_of_any_matrix(strategy, sampler):
    mechanism = Mechanism.of(strategy, noise_multiplier=2.0)
    past, rounds = Past.of(mechanism), np.arange(200)
    column = np.concatenate([[1.0], past.scale * past.decay ** rounds[:-1]])
    for k in range(6):
        most = (column[: 200 - k] * column[k:]).sum() / past.variance
        assert np.diagonal(mechanism.gram, k).max() <= most * (1 + 1e-7)
    moments = ReplicaMoments(mechanism, Joining.of(sampler, 6))
    for order in (2, 3):
        exact = of_tuples(mechanism, sampler, order)
        # Overlaps that are shared need the number, so that the last counts are not used.
        keys = [Key(0, order, shared) for shared in (1e-12, 0.3, 1.0)]
        assert exact <= min(moments.total(key, 500).log() for key in keys) <= 8 * exact + 1


@pytest.mark.parametrize(
    "sampler", [Poisson(0.3), CyclicPoisson(2, 0.3), MinSeparation(2, 0.3), RandomAllocation(1, 3)]
)
@pytest.mark.parametrize("column", [0.6 ** np.arange(6), (1, 0, 0.8)])
def test_half_spaces_against_all_patterns(column, sampler):
    # In the second C only participations two rounds apart overlap.
    mechanism = Mechanism.of(matrix.Banded(6, len(column), column), noise_multiplier=1.3)
    pairs = Adding.of(mechanism, Joining.of(sampler, 6)).pairs
    y, chances = of_patterns(sampler, 6)
    means, laws = y @ mechanism.matrix.T / 1.3, [chances]
    if not isinstance(sampler, RandomAllocation):
        rates = sampler.sampling_probability * adding._SHARES
        laws = [of_patterns(replace(sampler, sampling_probability=q), 6)[1] for q in rates]
    for (kappa, mu), law in zip(pairs, map(np.array, laws), strict=True):
        divergence = law @ np.log(law / chances)
        assert kappa >= 0.5 * law @ (means**2).sum(axis=1) + divergence
        assert mu == pytest.approx(np.linalg.norm(law @ means), rel=1e-9)


def of_tuples(mechanism, sampler, order):
    """Return the log of E_Q L^order by all tuples of patterns."""
    y, chances = of_patterns(sampler, mechanism.steps)
    one = y @ mechanism.matrix.T / mechanism.sigma
    weight = np.array(chances) * np.exp(-0.5 * (one**2).sum(axis=1))
    M, weights = one, weight
    for _ in range(order - 1):
        M = (M[:, None] + one).reshape(-1, mechanism.steps)
        weights = np.outer(weights, weight).ravel()
    return math.log(weights @ np.exp(0.5 * (M**2).sum(axis=1)))
