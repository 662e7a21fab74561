"""Likelihood ratios against enumeration of every pattern, published values, and each other."""

import itertools
import math

import numpy as np
import pytest
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
from dpcal.accountants.correlated.likelihood.base import chebyshev, interpolation
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.matrix import BISR, BLT

ROUNDS = 12
PATTERNS = np.array(list(itertools.product([0, 1], repeat=ROUNDS)), dtype=float)


def toeplitz(column):
    T = len(column)
    lag = np.subtract.outer(np.arange(T), np.arange(T))
    return np.where(lag >= 0, np.asarray(column)[np.abs(lag)], 0.0)


def strategy(column, decay=None):
    return correlated.Matrix(toeplitz(column), decay=decay)


def mechanism(column, sigma, decay=None):
    return Mechanism.of(strategy(column, decay), noise_multiplier=sigma)


def ar1(T, decay, sigma):
    return mechanism(decay ** np.arange(T), sigma, decay)


def brute_force(run, x, log_weights):
    """log L by summing over every pattern, in the observations and not in the fields."""
    means = PATTERNS @ run.matrix.T
    exponents = (x.T @ means.T - 0.5 * (means**2).sum(axis=1)) / run.variance
    return logsumexp(exponents + log_weights, axis=1)


def independent(rates):
    with np.errstate(divide="ignore"):
        logs = np.where(PATTERNS > 0, np.log(rates), np.log1p(-np.asarray(rates)))
    return logs.sum(axis=1)


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


def subsets(k):
    with np.errstate(divide="ignore"):
        return np.log((PATTERNS.sum(axis=1) == k).astype(float) / math.comb(ROUNDS, k))


def bins(b):
    regular = [
        [float(t % b == group) for t in range(ROUNDS)] == list(y)
        for group in range(b)
        for y in PATTERNS
    ]
    with np.errstate(divide="ignore"):
        return np.log(np.array(regular).reshape(b, -1).any(axis=0) / b)


def shifted(b, r):
    parts = [
        independent([r if t % b == group else 0.0 for t in range(ROUNDS)]) for group in range(b)
    ]
    return logsumexp(np.nan_to_num(parts, nan=-np.inf), axis=0) - math.log(b)


LAWS = {
    "Poisson": (correlated.Poisson(0.3), independent(np.full(ROUNDS, 0.3))),
    "min-separation 1": (correlated.MinSeparation(1, 0.3), independent(np.full(ROUNDS, 0.3))),
    "min-separation 3": (correlated.MinSeparation(3, 0.4), min_separation(3, 0.4)),
    "3 of T": (correlated.RandomAllocation(3), subsets(3)),
    "balls in bins": (correlated.BallsInBins(4), bins(4)),
    "random shift": (correlated.CyclicPoisson(3, 0.5, random_shift=True), shifted(3, 0.5)),
}


def observations(run, draws=40, seed=0):
    rng = np.random.default_rng(seed)
    means = run.matrix @ PATTERNS[rng.integers(0, len(PATTERNS), draws)].T
    return means + run.sigma * rng.standard_normal(means.shape)


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("decay", "sigma"), [(0.3, 0.6), (0.8, 2.0), (0.97, 6.0)])
def test_the_grid_agrees_with_every_pattern(law, decay, sigma, logarithmic):
    sampler, log_weights = LAWS[law]
    run = ar1(ROUNDS, decay, sigma)
    x = observations(run)
    engine = GridEngine(run, sampler.automaton(ROUNDS), nodes=64, logarithmic=logarithmic)
    truth = brute_force(run, x, log_weights)
    a = run.fields(x.copy())
    assert np.abs(engine.log_ratio(a) - truth).max() <= 1e-12 * max(1.0, np.abs(truth).max())
    if not logarithmic:
        assert not np.isnan(engine.trusted(a)).any()


def draws_of_both_laws(run, law, draws, seed):
    """Fields of usual records, of busy ones, and of noise alone."""
    rng = np.random.default_rng(seed)
    setting = Setting(run, law, None)
    x = [setting.with_record(draws, rng)[0], setting.telling(draws, rng), setting.noise(draws, rng)]
    return run.fields(np.concatenate(x, axis=1))


# Rounds, decay, noise over the largest column, rate: from no draw trusted on 16 nodes to all.
SETTINGS = [
    (12, 0.96, 0.64, 0.0045),
    (50, 0.99, 1.2, 0.045),
    (60, 0.05, 0.3, 0.01),
    (60, 0.79, 0.3, 0.03),
    (60, 0.9, 0.3, 1e-3),
    (100, 0.87, 0.7, 0.45),
    (100, 0.5, 0.5, 0.5),
    (200, 0.99, 4.0, 0.01),
    (200, 0.95, 1.0, 0.05),
    pytest.param(1000, 0.9, 1.0, 0.01, marks=pytest.mark.study),
    pytest.param(1000, 0.9, 2.0, 1e-4, marks=pytest.mark.study),
    (1000, 0.97, 8.0, 0.2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("T", "decay", "z", "rate"), SETTINGS)
def test_trusted_draws_are_as_accurate_as_they_claim(T, decay, z, rate):
    # The other arithmetic: log M, at many nodes.
    run, law = ar1(T, decay, z / math.sqrt(1 - decay**2)), correlated.Poisson(rate).automaton(T)
    a = draws_of_both_laws(run, law, 32, seed=T)
    truth, coarser = (
        GridEngine(run, law, nodes, logarithmic=True).log_ratio(a) for nodes in (160, 144)
    )
    known = np.abs(truth - coarser) < 1e-8
    assert known.mean() > 0.9
    for nodes in (16, 24, 40):
        found = GridEngine(run, law, nodes).trusted(a)
        assert np.nanmax(np.abs(found - truth)[known], initial=0.0) < 1e-7


def test_draws_whose_polynomials_would_be_wrong_are_found():
    # A record that takes part often with little noise: M falls by hundreds of orders of magnitude.
    run, law = ar1(100, 0.9, 0.7), correlated.Poisson(0.3).automaton(100)
    a = draws_of_both_laws(run, law, 40, seed=0)
    engine = GridEngine(run, law, 32)
    truth = GridEngine(run, law, 144, logarithmic=True).log_ratio(a)
    blind = GridEngine.trusted(engine, a, tolerance=math.inf)
    wrong = ~(np.abs(blind - truth) < 1e-4)
    assert wrong.mean() > 0.3
    trusted = engine.trusted(a)
    assert np.isnan(trusted[wrong]).all()
    left = np.isnan(trusted)
    finer = GridEngine(run, law, 64, logarithmic=True)
    assert (engine.log_ratio(a)[left] == finer.log_ratio(a)[left]).all()


@pytest.mark.parametrize("law", LAWS)
def test_fields_beyond_all_bounds_are_left_to_logarithms(law):
    run = ar1(ROUNDS, 0.8, 1.0)
    automaton = LAWS[law][0].automaton(ROUNDS)
    engine = GridEngine(run, automaton, 32)
    rng = np.random.default_rng(0)
    a = np.concatenate([scale * rng.standard_normal((ROUNDS, 64)) for scale in (30, 300, 1e5)], 1)
    found = engine.log_ratio(a)
    truth = GridEngine(run, automaton, 64, logarithmic=True).log_ratio(a)
    assert np.abs(found - truth).max() <= 1e-12 * np.abs(truth).max()
    assert np.isnan(engine.trusted(a)[64:]).mean() > 0.9


@pytest.mark.parametrize("nodes", [8, 16, 20])
def test_the_error_of_a_polynomial_is_bounded_by_its_own_coefficient(nodes):
    # Mixtures of exponentials with any rates that M may have, and any tilt.
    run, law = ar1(ROUNDS, 0.8, 1.5), correlated.Poisson(0.2).automaton(ROUNDS)
    engine = GridEngine(run, law, nodes)
    s, weights = chebyshev(nodes, 5.0)
    steepest = 0.8 * run.energies.max() / (1 - 0.8)
    at = np.linspace(0, 5.0, 201)
    rng = np.random.default_rng(nodes)
    visible = 0
    for _ in range(200):
        rates = rng.uniform(0, steepest, 5) - rng.uniform(0, steepest)
        shares = rng.dirichlet(np.full(5, 0.3))
        values = shares @ np.exp(-rates[:, None] * s)
        found = interpolation(s, weights, at) @ values
        error = np.abs(found - shares @ np.exp(-rates[:, None] * at)).max()
        bound = engine._tail @ (values[: nodes // 2] + values[: nodes // 2 - 1 : -1])
        rounding = 4 * nodes * 2.0**-53 * values.max()
        assert error <= abs(bound) + rounding
        visible += error > rounding
    assert visible > 50


VECTORS = [
    (BLT(ROUNDS, (0.9, 0.4), (0.4, 0.3)), 1.5, (40, 24)),
    (BLT(ROUNDS, (0.6,), (0.3,)), 0.8, (40,)),
    (BLT(ROUNDS, (0.5, 0.0), (0.5, 0.25)), 1.0, (32, 24)),
    (BLT(ROUNDS, (0.8, 0.5, 0.2), (0.2, 0.2, 0.1)), 2.0, (32, 20, 16)),
    (BISR(ROUNDS, 3), 1.0, (32, 16)),
]


def _vectors_and_laws():
    """Every pair; of three buffers, which take longest, the laws without and with a memory."""
    for run, sigma, nodes in VECTORS:
        for law in LAWS:
            left = len(nodes) == 3 and law not in ("Poisson", "3 of T")
            marks = [pytest.mark.study] * left
            yield pytest.param(run, sigma, nodes, law, marks=marks, id=f"{repr(run)[:30]}-{law}")


@pytest.mark.slow
@pytest.mark.parametrize(("run", "sigma", "nodes", "law"), list(_vectors_and_laws()))
def test_the_grid_of_vectors_agrees_with_every_pattern(run, sigma, nodes, law):
    sampler, log_weights = LAWS[law]
    mechanism = Mechanism.of(run, noise_multiplier=sigma)
    assert mechanism.kind == "BLT"
    # The mechanism's decays may come in another order.
    order = np.argsort(np.argsort(-np.abs(mechanism.series[0])))
    nodes = tuple(nodes[place] for place in order)
    x = observations(mechanism, 20)
    truth = brute_force(mechanism, x, log_weights)
    law_of = sampler.automaton(ROUNDS)
    engine = VectorEngine(mechanism, law_of, nodes, (3.0,) * len(nodes))
    found = engine.log_ratio(mechanism.fields(x.copy()))
    assert np.abs(found - truth).max() <= 1e-12 * max(1.0, np.abs(truth).max())


def test_validated_grids_of_vectors_are_as_accurate_as_they_claim():
    for run, sigma, _ in VECTORS:
        mechanism = Mechanism.of(run, noise_multiplier=sigma)
        x = observations(mechanism, 64)
        truth = brute_force(mechanism, x, independent(np.full(ROUNDS, 0.2)))
        law = correlated.Poisson(0.2).automaton(ROUNDS)
        a = mechanism.fields(x.copy())
        engine = refined_vector(mechanism, law, [np.ascontiguousarray(a[:, :32])])
        assert np.abs(engine.log_ratio(a) - truth).max() < 3e-7


@pytest.mark.slow
def test_a_grid_of_vectors_lies_where_particles_see_it():
    # False-alarm rate below 1e-5: means of 400 positive terms for 4 draws, 5 standard errors.
    rng = np.random.default_rng(4)
    mechanism = Mechanism.of(BLT(300, (0.97, 0.6), (0.1, 0.3)), noise_multiplier=4.0)
    law = correlated.Poisson(0.05).automaton(300)
    y, _ = law.sample(4, rng)
    a = mechanism.fields(mechanism.means(y) + 4.0 * rng.standard_normal((300, 4)))
    exact = refined_vector(mechanism, law, [a]).log_ratio(a)
    particles = ParticleEngine(mechanism, law, particles=32)
    for draw in range(4):
        copies = np.ascontiguousarray(np.repeat(a[:, [draw]], 400, axis=1))
        ratio = np.exp(particles.log_ratio(copies, rng) - exact[draw])
        assert abs(ratio.mean() - 1) <= 5 * ratio.std() / 20
        assert ratio.std() < 0.5


def test_which_matrices_have_vector_states():
    def kind(run):
        return Mechanism.of(run, noise_multiplier=1.0).kind

    assert kind(BISR(40, 2)) == "lambda-CGD"
    assert kind(BISR(40, 3)) == "BLT"
    # Complex pairs of decays turn the states, and four states are too many.
    assert kind(BISR(40, 4)) == "dense"
    assert kind(BLT(40, (0.9, 0.8, 0.7, 0.6), (0.1, 0.1, 0.1, 0.1))) == "dense"
    merged = Mechanism.of(BLT(40, (0.9, 0.5, 0.9), (0.1, 0.2, 0.3)), noise_multiplier=1.0)
    assert merged.series[0].tolist() == [0.5, 0.9]
    assert merged.series[1].tolist() == [0.2, 0.4]
    assert kind(BLT(40, (0.7,), (0.7,))) == "lambda-CGD"

    # What a strategy says of itself is checked against its matrix.
    class Lying(BLT):
        series = np.array([0.9]), np.array([0.2])

    assert kind(Lying(40, (0.9,), (0.1,))) == "dense"


def test_reference_log_likelihood_of_buffers():
    # From an independent implementation.
    run = Mechanism.of(BLT(30, (0.9, 0.4), (0.4, 0.3)), noise_multiplier=1.5)
    law = correlated.Poisson(0.1).automaton(30)
    found = VectorEngine(run, law, (24, 40), (4.0, 4.0)).log_ratio(run.fields(sine(30)))[0]
    assert abs(found + 1.348455466452) < 1e-11


@pytest.mark.parametrize("law", LAWS)
def test_the_transfer_matrix_agrees_with_every_pattern(law):
    sampler, log_weights = LAWS[law]
    for column in ([1.0, 0.5, 0.3, 0.2] + [0.0] * 8, [1.0, 0.7] + [0.0] * 10, [1.0] + [0.0] * 11):
        run = mechanism(column, 0.8)
        x = observations(run)
        engine = TransferEngine(run, sampler.automaton(ROUNDS))
        truth = brute_force(run, x, log_weights)
        found = engine.log_ratio(run.fields(x.copy()))
        assert np.abs(found - truth).max() <= 1e-12 * max(1.0, np.abs(truth).max())


def test_separated_participations_need_no_memory():
    run = mechanism([1.0, 0.5, 0.3] + [0.0] * 9, 0.8)
    x = observations(run)
    law = correlated.MinSeparation(3, 0.4).automaton(ROUNDS)
    found = TransferEngine(run, law, separated=True).log_ratio(run.fields(x.copy()))
    assert np.abs(found - brute_force(run, x, min_separation(3, 0.4))).max() < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("decay", "sigma"), [(0.5, 0.8), (0.9, 2.0)])
def test_brackets_hold_the_truth(law, decay, sigma):
    sampler, log_weights = LAWS[law]
    run = ar1(ROUNDS, decay, sigma)
    x = observations(run)
    truth = brute_force(run, x, log_weights)
    fields = run.fields(x.copy())
    automaton = sampler.automaton(ROUNDS)
    widths = []
    for per_decay in (4, 16):
        low, high = (
            BracketEngine(
                run, automaton, upper=upper, per_decay=per_decay, smallest=1e-3
            ).log_ratio(fields)
            for upper in (False, True)
        )
        assert (low <= truth).all()
        assert (truth <= high).all()
        widths.append((high - low).max())
    assert widths[1] < 0.2 * widths[0] + 1e-10


def test_particles_are_unbiased():
    # False-alarm rate below 1e-5: means of 4000 positive terms, 5 standard errors.
    rng = np.random.default_rng(3)
    dense = mechanism(1 / np.sqrt(np.arange(1, ROUNDS + 1)), 2.0)
    x = observations(dense, 3)
    for sampler, log_weights in (LAWS["Poisson"], LAWS["min-separation 3"], LAWS["3 of T"]):
        engine = ParticleEngine(dense, sampler.automaton(ROUNDS), particles=4)
        for draw, truth in zip(x.T, brute_force(dense, x, log_weights), strict=True):
            fields = dense.fields(np.repeat(draw[:, None], 4000, axis=1))
            ratio = np.exp(engine.log_ratio(fields, rng) - truth)
            assert abs(ratio.mean() - 1) <= 5 * ratio.std() / math.sqrt(4000)


def sine(T):
    return 1.5 * np.sin(np.arange(1, T + 1))[:, None]


@pytest.mark.parametrize(
    ("T", "decay", "sigma", "sampler", "value", "digits"),
    [
        (8, 0.6, 1.1, correlated.Poisson(0.2), 0.013272011634, 12),
        (1000, 0.9, 2.0, correlated.Poisson(0.01), -4.835854180666, 11),
        (1000, 0.97, 4.0, correlated.Poisson(0.05), -31.26211985903, 10),
        (30, 0.8, 1.5, correlated.Poisson(0.1), -1.4983000484995, 11),
        (30, 0.8, 1.5, correlated.CyclicPoisson(5, 0.5), -1.3694389926480, 11),
        (30, 0.8, 1.5, correlated.MinSeparation(4, 0.3), -3.2687918714300, 11),
        (30, 0.8, 1.5, correlated.RandomAllocation(3), -2.2461676512429, 11),
        (30, 0.8, 1.5, correlated.BallsInBins(6), -2.7154045792271, 11),
    ],
)
def test_reference_log_likelihoods(T, decay, sigma, sampler, value, digits):
    # Values from an independent implementation with up to 160 nodes.
    run = ar1(T, decay, sigma)
    engine = GridEngine(run, sampler.automaton(T), nodes=48)
    found = engine.log_ratio(run.fields(sine(T)))[0]
    assert abs(found - value) < 10.0**-digits


def test_reference_brackets_and_bands():
    run = ar1(30, 0.8, 1.5)
    law = correlated.Poisson(0.1).automaton(30)
    options = {"per_decay": 4, "end": 5.0}
    low, high = (
        BracketEngine(run, law, upper=upper, **options).log_ratio(run.fields(sine(30)))[0]
        for upper in (False, True)
    )
    assert abs(low + 1.49830762) < 2e-8
    assert abs(high + 1.49827999) < 2e-8
    minorant = mean_field_minorant(run, law, run.fields(sine(30)))[0]
    assert abs(minorant + 1.673949049307) < 1e-11
    banded = Mechanism.of(
        strategy([1.0, 0.5, 0.3, 0.2] + [0.0] * 26),
        noise_multiplier=1.5,
    )
    found = TransferEngine(banded, law).log_ratio(banded.fields(sine(30)))[0]
    assert abs(found + 0.5875429905753) < 1e-11


def test_full_participation_is_a_gaussian():
    run = ar1(50, 0.9, 4.0)
    x = run.sigma * np.random.default_rng(0).standard_normal((50, 20))
    mean = run.matrix.sum(axis=1)
    truth = (mean @ x - 0.5 * mean @ mean) / run.variance
    for sampler in (correlated.Poisson(1.0), correlated.RandomAllocation(50)):
        engine = GridEngine(run, sampler.automaton(50), nodes=48)
        assert np.abs(engine.log_ratio(run.fields(x.copy())) - truth).max() < 1e-8


@pytest.mark.parametrize(
    ("decay", "sigma", "sampler", "least", "most"),
    [
        (0.7, 1.2, correlated.Poisson(0.1), 0.0, 0.0),
        (0.8, 1.5, correlated.Poisson(0.1), 0.1, 0.9),
        (0.8, 1.5, correlated.MinSeparation(2, 0.3), 0.1, 0.9),
        (0.7, 1.1, correlated.RandomAllocation(3), 0.1, 0.9),
    ],
)
def test_results_do_not_depend_on_the_block_of_a_draw(decay, sigma, sampler, least, most):
    run, law = ar1(40, decay, sigma), sampler.automaton(40)
    engine = GridEngine(run, law)
    a = draws_of_both_laws(run, law, 36, seed=0)[:, :101]
    assert least <= np.isnan(engine.trusted(np.ascontiguousarray(a))).mean() <= most
    whole = engine.log_ratio(np.ascontiguousarray(a))
    single = [engine.log_ratio(np.ascontiguousarray(a[:, [i]]))[0] for i in range(101)]
    assert (whole == single).all()
    parts = [engine.log_ratio(np.ascontiguousarray(a[:, i : i + 7])) for i in range(0, 101, 7)]
    assert (whole == np.concatenate(parts)).all()


def test_refinement_takes_the_likelihood_itself_only_where_logarithms_agree(monkeypatch):
    run, law = ar1(60, 0.9, 4.0), correlated.Poisson(0.02).automaton(60)
    a = draws_of_both_laws(run, law, 16, seed=1)
    start = GridEngine(run, law, 16, likely_end(run, law))
    chosen = refined(start, [a])
    assert (chosen.nodes, chosen.end, chosen.logarithmic) == (16, None, False)
    truth = GridEngine(run, law, 96, logarithmic=True).log_ratio(a)
    assert np.abs(chosen.log_ratio(a) - truth).max() < 1e-10
    trusted = GridEngine.trusted
    monkeypatch.setattr(GridEngine, "trusted", lambda self, a: trusted(self, a) + 2e-7)
    assert refined(start, [a]).logarithmic
    monkeypatch.setattr(GridEngine, "trusted", lambda self, a: trusted(self, a) * np.nan)
    assert refined(start, [a]).logarithmic


def test_laws_have_the_rates_and_counts_of_their_samplers():
    rng = np.random.default_rng(5)
    for sampler, log_weights in LAWS.values():
        law = sampler.automaton(ROUNDS)
        weights = np.exp(log_weights)
        assert np.allclose(law.rates, weights @ PATTERNS, atol=1e-12)
        counts = [weights[PATTERNS.sum(axis=1) == k].sum() for k in range(ROUNDS + 1)]
        assert np.allclose(np.exp(law.counts()), counts, atol=1e-12)
        # False-alarm rate below 1e-5 a law: 12 frequencies, 5.5 standard errors.
        y, _ = law.sample(20_000, rng)
        error = np.sqrt(law.rates * (1 - law.rates) / 20_000) + 1e-9
        assert (np.abs(y.mean(axis=1) - law.rates) <= 5.5 * error).all()


def test_epochs_of_random_allocation_are_independent():
    law = correlated.RandomAllocation(1, epoch=3).automaton(ROUNDS)
    y, _ = law.sample(1000, np.random.default_rng(0))
    assert (y.reshape(4, 3, -1).sum(axis=1) == 1).all()
    assert np.allclose(law.rates, 1 / 3)


@pytest.mark.parametrize(("decay", "sigma", "q"), [(0.9, 1.0, 0.001), (0.5, 0.4, 0.001)])
def test_grids_are_refined_for_records_that_take_part_often_though_few_do(decay, sigma, q):
    # With 12 rounds at 0.001, 32 draws from the law itself hold none that takes part twice.
    run, law = ar1(ROUNDS, decay, sigma), correlated.Poisson(q).automaton(ROUNDS)
    grid = GridEngine(run, law, 16, likely_end(run, law))
    setting = Setting(run, law, grid)
    rng = np.random.default_rng(1)
    often = law.telling(32, rng)
    assert often.shape == (ROUNDS, 32)
    assert often.sum(axis=0).min() <= 1 < often.sum(axis=0).max() <= 4
    grid = refined(grid, [run.fields(setting.telling(32, rng)), run.fields(setting.noise(32, rng))])
    for taken in (1, 2, 3):
        y = np.zeros((ROUNDS, 200))
        for column in y.T:
            column[rng.permutation(ROUNDS)[:taken]] = 1.0
        x = run.matrix @ y + sigma * rng.normal(size=y.shape)
        truth = brute_force(run, x, independent(np.full(ROUNDS, q)))
        assert np.abs(grid.log_ratio(run.fields(x.copy())) - truth).max() < 1e-5


def test_noise_whose_square_underflows_is_refused():
    with pytest.raises(ValueError, match=r"noise_multiplier must be a number in \[1e-06, 1e\+12\]"):
        Mechanism.of(BLT(ROUNDS, (0.9, 0.4), (0.4, 0.3)), noise_multiplier=1e-160)


def test_signs():
    lag = np.subtract.outer(np.arange(6), np.arange(6))
    C = np.where(lag >= 0, (-0.5) ** np.abs(lag), 0.0)
    flipped = Mechanism.of(correlated.Matrix(C, decay=-0.5), noise_multiplier=1.0)
    assert flipped.decay == 0.5
    assert (flipped.matrix == np.abs(C)).all()
    mixed = np.eye(3)
    mixed[1, 0], mixed[2, 0] = -0.5, 0.25
    found = Mechanism.of(correlated.Matrix(mixed), noise_multiplier=1.0)
    assert (found.matrix == np.abs(mixed)).all()
    with pytest.raises(ValueError, match="lower triangular"):
        correlated.Matrix(np.ones((2, 2)))


def test_an_array_is_not_taken_for_a_strategy():
    with pytest.raises(TypeError, match=r"correlated\.Matrix"):
        Mechanism.of(np.eye(3), noise_multiplier=1.0)
    found = Mechanism.of(correlated.Matrix(np.eye(3)), noise_multiplier=1.0)
    assert (found.kind, found.steps) == ("diagonal", 3)
    with pytest.raises(ValueError, match="decay must be the ratio"):
        correlated.Matrix(np.eye(3), decay=0.5)
