"""Likelihood ratios against enumeration of every pattern, published values, and each other."""

import math

import numpy as np
import pytest
from _integrals import independent, log_ratios, patterns, toeplitz
from scipy.special import logsumexp

from dpcal.accountants import correlated
from dpcal.accountants.correlated.draws.estimators import Setting
from dpcal.accountants.correlated.likelihood import (
    BracketEngine,
    GridEngine,
    ParticleEngine,
    TransferEngine,
    VectorEngine,
    likely_end,
    mean_field_minorant,
    refined,
    refined_vector,
)
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.matrix import BISR, BLT, Banded, LambdaCGD, SquareRoot

ROUNDS = 12
PATTERNS = patterns(ROUNDS)


def mechanism(column, sigma, decay=None):
    return Mechanism.of(correlated.Matrix(toeplitz(column), decay=decay), noise_multiplier=sigma)


def ar1(T, decay, sigma):
    return mechanism(decay ** np.arange(T), sigma, decay)


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


def agrees(engine, run, x, log_weights):
    truth = log_ratios(run.matrix, run.sigma, x, log_weights)
    error = np.abs(engine.log_ratio(run.fields(x.copy())) - truth)
    return (error <= 1e-12 * np.maximum(1.0, np.abs(truth).max())).all()


@pytest.mark.slow
@each_law
def test_grids_bands_and_states_agree_with_every_pattern(law, log_weights):
    for decay, sigma in ((0.3, 0.6), (0.8, 2.0), (0.97, 6.0)):
        run = ar1(ROUNDS, decay, sigma)
        x = observations(run)
        for logarithmic in (False, True):
            engine = GridEngine(run, law, nodes=64, logarithmic=logarithmic)
            assert agrees(engine, run, x, log_weights), (decay, logarithmic)
        assert not np.isnan(GridEngine(run, law, 64).trusted(run.fields(x.copy()))).any()
        # Observations beyond all bounds, whose likelihood ratios no double holds.
        rng = np.random.default_rng(0)
        far = np.concatenate([scale * rng.standard_normal((ROUNDS, 9)) for scale in (300, 1e5)], 1)
        for column in far.T:
            assert agrees(GridEngine(run, law, 64), run, column[:, None], log_weights), decay
    for column in ([1.0, 0.5, 0.3, 0.2] + [0.0] * 8, [1.0, 0.7] + [0.0] * 10, [1.0] + [0.0] * 11):
        run = mechanism(column, 0.8)
        assert agrees(TransferEngine(run, law), run, observations(run), log_weights), column
    for strategy, sigma, nodes in (
        (BLT(ROUNDS, (0.9, 0.4), (0.4, 0.3)), 1.5, (40, 24)),
        (BLT(ROUNDS, (0.6,), (0.3,)), 0.8, (40,)),
        (BISR(ROUNDS, 3), 1.0, (16, 32)),
    ):
        run = Mechanism.of(strategy, noise_multiplier=sigma)
        # The mechanism's decays may come in another order.
        nodes = np.array(nodes)[np.argsort(np.argsort(-np.abs(run.series[0])))]
        engine = VectorEngine(run, law, tuple(map(int, nodes)), (3.0,) * len(nodes))
        assert agrees(engine, run, observations(run, 20), log_weights), strategy


def test_three_buffers_and_separated_bands_agree_with_every_pattern():
    run = Mechanism.of(BLT(ROUNDS, (0.8, 0.5, 0.2), (0.2, 0.2, 0.1)), noise_multiplier=2.0)
    law, log_weights = correlated.RandomAllocation(3).automaton(ROUNDS), LAWS["3 of T"][1]
    engine = VectorEngine(run, law, (16, 20, 32), (3.0,) * 3)
    assert agrees(engine, run, observations(run, 9), log_weights)
    # Participations that no column reaches need no memory.
    run = mechanism([1.0, 0.5, 0.3] + [0.0] * 9, 0.8)
    engine = TransferEngine(run, correlated.MinSeparation(3, 0.4).automaton(ROUNDS), separated=True)
    assert agrees(engine, run, observations(run), min_separation(3, 0.4))


@pytest.mark.slow
@each_law
def test_brackets_hold_the_truth(law, log_weights):
    for decay, sigma in ((0.5, 0.8), (0.9, 2.0)):
        run = ar1(ROUNDS, decay, sigma)
        x = observations(run)
        truth = log_ratios(run.matrix, sigma, x, log_weights)
        widths = []
        for per_decay in (4, 16):
            options = {"per_decay": per_decay, "smallest": 1e-3}
            low, high = (
                BracketEngine(run, law, upper=upper, **options).log_ratio(run.fields(x.copy()))
                for upper in (False, True)
            )
            assert (low <= truth).all()
            assert (truth <= high).all()
            widths.append((high - low).max())
        assert widths[1] < 0.2 * widths[0] + 1e-10


@pytest.mark.parametrize("law", ["Poisson", "min-separation 3", "3 of T"])
def test_particles_are_unbiased(law):
    # False-alarm rate below 1e-5: means of 4000 positive terms, 5 standard errors.
    rng, (sampler, log_weights) = np.random.default_rng(3), LAWS[law]
    dense = mechanism(1 / np.sqrt(np.arange(1, ROUNDS + 1)), 2.0)
    x = observations(dense, 3)
    engine = ParticleEngine(dense, sampler.automaton(ROUNDS), particles=4)
    for draw, truth in zip(x.T, log_ratios(dense.matrix, 2.0, x, log_weights), strict=True):
        fields = dense.fields(np.repeat(draw[:, None], 4000, axis=1))
        ratio = np.exp(engine.log_ratio(fields, rng) - truth)
        assert abs(ratio.mean() - 1) <= 5 * ratio.std() / math.sqrt(4000)


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


# -- long runs, and what an engine says of its own accuracy


def draws_of_both_laws(run, law, draws, seed):
    """Fields of usual records, of busy ones, and of noise alone."""
    rng, setting = np.random.default_rng(seed), Setting(run, law, None)
    x = [setting.with_record(draws, rng)[0], setting.telling(draws, rng), setting.noise(draws, rng)]
    return run.fields(np.concatenate(x, axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("T", "decay", "z", "rate"),
    # From no draw trusted on 16 nodes to all.
    [(60, 0.05, 0.3, 0.01), (100, 0.87, 0.7, 0.45), (100, 0.5, 0.5, 0.5), (200, 0.99, 4.0, 0.01)],
)
def test_trusted_draws_are_as_accurate_as_they_claim(T, decay, z, rate):
    # The other arithmetic: log M, at many nodes.
    run, law = ar1(T, decay, z / math.sqrt(1 - decay**2)), correlated.Poisson(rate).automaton(T)
    a = draws_of_both_laws(run, law, 31, seed=T)
    truth, coarser = (
        GridEngine(run, law, nodes, logarithmic=True).log_ratio(a) for nodes in (160, 144)
    )
    known = np.abs(truth - coarser) < 1e-8
    assert known.mean() > 0.9
    for nodes in (16, 24, 40):
        engine = GridEngine(run, law, nodes)
        found = engine.trusted(a)
        assert np.nanmax(np.abs(found - truth)[known], initial=0.0) < 1e-7
        # Draws that are not trusted are left to logarithms, whatever draws are beside them.
        whole = engine.log_ratio(a)
        assert (whole[~np.isnan(found)] == found[~np.isnan(found)]).all()
        assert whole[7] == engine.log_ratio(np.ascontiguousarray(a[:, [7]]))[0]


def test_refinement_takes_the_likelihood_itself_only_where_logarithms_agree(monkeypatch):
    run, law = ar1(60, 0.9, 4.0), correlated.Poisson(0.02).automaton(60)
    a = draws_of_both_laws(run, law, 16, seed=1)
    start = GridEngine(run, law, 16, likely_end(run, law))
    assert not refined(start, [a]).logarithmic
    trusted = GridEngine.trusted
    for wrong in (lambda found: found + 2e-7, lambda found: found * np.nan):
        monkeypatch.setattr(
            GridEngine, "trusted", lambda self, a, wrong=wrong: wrong(trusted(self, a))
        )
        assert refined(start, [a]).logarithmic


def test_refined_grids_hold_for_records_that_take_part_often_though_few_do():
    # With 12 rounds at 0.001, 32 draws from the law itself hold none that takes part twice.
    q, rng = 0.001, np.random.default_rng(1)
    run, law = ar1(ROUNDS, 0.9, 1.0), correlated.Poisson(q).automaton(ROUNDS)
    often = law.telling(32, rng)
    assert often.sum(axis=0).min() <= 1 < often.sum(axis=0).max() <= 4
    grid = GridEngine(run, law, 16, likely_end(run, law))
    setting = Setting(run, law, grid)
    grid = refined(grid, [run.fields(setting.telling(32, rng)), run.fields(setting.noise(32, rng))])
    for taken in (1, 2, 3):
        y = np.zeros((ROUNDS, 200))
        for column in y.T:
            column[rng.permutation(ROUNDS)[:taken]] = 1.0
        x = run.matrix @ y + rng.normal(size=y.shape)
        truth = log_ratios(run.matrix, 1.0, x, independent(np.full(ROUNDS, q)))
        assert np.abs(grid.log_ratio(run.fields(x.copy())) - truth).max() < 1e-5


@pytest.mark.parametrize(
    ("run", "sigma"),
    [
        (BLT(ROUNDS, (0.9, 0.4), (0.4, 0.3)), 1.5),
        (BLT(ROUNDS, (0.5, 0.0), (0.5, 0.25)), 1.0),
        (BISR(ROUNDS, 3), 1.0),
    ],
    ids=repr,
)
def test_refined_grids_of_states_are_as_accurate_as_they_claim(run, sigma):
    found = Mechanism.of(run, noise_multiplier=sigma)
    x = observations(found, 64)
    truth = log_ratios(found.matrix, sigma, x, independent(np.full(ROUNDS, 0.2)))
    a = found.fields(x.copy())
    law = correlated.Poisson(0.2).automaton(ROUNDS)
    engine = refined_vector(found, law, [np.ascontiguousarray(a[:, :32])])
    assert np.abs(engine.log_ratio(a) - truth).max() < 3e-7


# -- values of an independent implementation with up to 160 nodes


def sine(T):
    return 1.5 * np.sin(np.arange(1, T + 1))[:, None]


def test_reference_log_likelihoods():
    for T, decay, sigma, sampler, value in (
        (1000, 0.9, 2.0, correlated.Poisson(0.01), -4.835854180666),
        (1000, 0.97, 4.0, correlated.Poisson(0.05), -31.26211985903),
        (30, 0.8, 1.5, correlated.MinSeparation(4, 0.3), -3.2687918714300),
        (30, 0.8, 1.5, correlated.BallsInBins(6), -2.7154045792271),
    ):
        run = ar1(T, decay, sigma)
        engine = GridEngine(run, sampler.automaton(T), nodes=48)
        found = engine.log_ratio(run.fields(sine(T)))[0]
        assert found == pytest.approx(value, abs=1e-10), (T, sampler)


def test_reference_minorant():
    run, law = ar1(30, 0.8, 1.5), correlated.Poisson(0.1).automaton(30)
    minorant = mean_field_minorant(run, law, run.fields(sine(30)))[0]
    assert abs(minorant + 1.673949049307) < 1e-11


# -- what a matrix is


def test_kinds_are_read_from_matrices_and_not_from_what_a_strategy_says():
    def kind(run):
        return Mechanism.of(run, noise_multiplier=1.0).kind

    assert kind(BISR(40, 2)) == kind(BLT(40, (0.7,), (0.7,))) == "lambda-CGD"
    assert kind(BISR(40, 3)) == "BLT"
    # Complex pairs of decays turn the states, and four states are too many.
    assert kind(BISR(40, 4)) == "dense"
    assert kind(BLT(40, (0.9, 0.8, 0.7, 0.6), (0.1, 0.1, 0.1, 0.1))) == "dense"
    merged = Mechanism.of(BLT(40, (0.9, 0.5, 0.9), (0.1, 0.2, 0.3)), noise_multiplier=1.0)
    assert [part.tolist() for part in merged.series] == [[0.5, 0.9], [0.2, 0.4]]

    class Lying(BLT):
        series = np.array([0.9]), np.array([0.2])

    assert kind(Lying(40, (0.9,), (0.1,))) == "dense"


def test_signs_are_left_out():
    C = toeplitz((-0.5) ** np.arange(6))
    flipped = Mechanism.of(correlated.Matrix(C, decay=-0.5), noise_multiplier=1.0)
    assert flipped.decay == 0.5
    assert (flipped.matrix == np.abs(C)).all()
    mixed = np.array([[1.0, 0, 0], [-0.5, 1, 0], [0.25, 0, 1]])
    found = Mechanism.of(correlated.Matrix(mixed), noise_multiplier=1.0)
    assert (found.matrix == np.abs(mixed)).all()
