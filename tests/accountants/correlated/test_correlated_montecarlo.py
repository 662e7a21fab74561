"""Estimates of delta against quadrature, exact accountants, published values, and each other.

Statistical tests fix their seeds; a fresh seed would fail any of them with probability below 1e-4,
because they allow 4 to 5 standard errors, or bounds that fail with probability 1e-6.
"""

import itertools
import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpcal import accountants
from dpcal.accountants import correlated, events
from dpcal.accountants.correlated import bounds
from dpcal.accountants.correlated.bounds.half_space import BinsHalfSpace
from dpcal.accountants.correlated.draws.bins import Bins
from dpcal.accountants.correlated.draws.confidence import (
    draws_needed,
    lower_mean,
    pipeline_delta,
    upper_mean,
)
from dpcal.accountants.correlated.draws.estimators import Direct, Setting
from dpcal.accountants.correlated.draws.importance import Counts, ShiftAdd, ShiftRemove
from dpcal.accountants.correlated.draws.montecarlo import simulate
from dpcal.accountants.correlated.draws.tilted import Tilted
from dpcal.accountants.correlated.likelihood import (
    BracketEngine,
    GridEngine,
    ParticleEngine,
    TransferEngine,
)
from dpcal.accountants.correlated.mechanism import Mechanism, Shape

SURE = {"failure_probability": 1e-6}


def lower_toeplitz(column):
    lag = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(lag >= 0, np.asarray(column)[np.abs(lag)], 0.0)


def from_normalised(column, z):
    """The standard deviation that the literature names by z: it divides by the largest column."""
    return z * np.linalg.norm(column)


def ar1(T, decay, z):
    column = decay ** np.arange(T)
    C = lower_toeplitz(column)
    return Mechanism.of(
        correlated.Matrix(C, decay=decay),
        noise_multiplier=from_normalised(column, z),
    )


def on_grid(run, rate, nodes=20):
    law = correlated.Poisson(rate).automaton(run.steps)
    return Setting(run, law, GridEngine(run, law, nodes, 9.0))


def deltas_by_quadrature(C, sigma, rate, epsilon):
    """Both directions for two rounds, on a grid of observations."""
    x = np.linspace(-9 * sigma, 9 * sigma + 2.5, 2501)
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
@pytest.mark.parametrize(
    ("decay", "epsilon", "remove", "add"),
    [(0.5, 0.5, 0.098213, 0.010903), (0.5, 1.0, 0.046330, 0.0), (0.9, 0.5, 0.134583, 0.018952)],
)
def test_two_rounds_against_quadrature(decay, epsilon, remove, add):
    C = lower_toeplitz(decay ** np.arange(2))
    exact = deltas_by_quadrature(C, 1.0, 0.3, epsilon)
    assert exact == pytest.approx((remove, add), abs=2e-6)
    setting = on_grid(ar1(2, decay, 1 / math.hypot(1, decay)), 0.3, nodes=32)
    estimators = [
        (Direct(setting, "remove"), 0),
        (Tilted(setting), 0),
        (ShiftRemove(setting, 1.0), 0),
        (Counts(setting, (0.6, 0.35, 0.05), 0.2), 0),
        (Direct(setting, "add"), 1),
        (ShiftAdd(setting, 1.0, 1.0), 1),
    ]
    for estimator, side in estimators:
        reading = simulate(estimator, draws=20_000, seed=7).at(epsilon, **SURE)
        assert reading.lower <= exact[side] <= reading.upper, type(estimator).__name__
        assert reading.standard_error < 0.05 * exact[side] + 1e-6


@pytest.mark.slow
def test_uncorrelated_noise_is_a_sampled_gaussian_for_every_method():
    T, z, rate = 100, 1.0, 0.02
    column = np.eye(T)[0]
    run = Mechanism(Shape("lambda-CGD", T, column, None, 1e-12, 1), z)
    setting = on_grid(run, rate)
    law = setting.law
    event = events.dpsgd(sampling_probability=rate, noise_multiplier=z, steps=T)
    exact = float(accountants.delta(event, epsilon=0.5))
    estimators = [
        Direct(setting, "remove"),
        Direct(Setting(run, law, BracketEngine(run, law)), "remove"),
        Direct(Setting(run, law, TransferEngine(run, law)), "remove"),
        Direct(Setting(run, law, ParticleEngine(run, law, 8)), "remove"),
        Tilted(setting),
        ShiftRemove(setting, 2.0),
        Counts(setting, (0.97, 0.028, 0.002), 0.0),
    ]
    for estimator in estimators:
        reading = simulate(estimator, draws=8192, seed=1).at(0.5, **SURE)
        assert reading.lower <= exact <= reading.upper, type(estimator).__name__


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decay", "z", "epsilon", "published", "error", "near_exact", "odds", "attraction"),
    [
        pytest.param(
            *(0.5, 0.8, 4.0, 1.13e-4, 0.02, 4.87, (0.9705, 0.025, 0.0045), 1.36),
            marks=pytest.mark.study,
        ),
        pytest.param(
            *(0.9, 2.0, 3.0, 6.55e-5, 0.013, 3.42, (0.9615, 0.0375, 0.001), 0.48),
            marks=pytest.mark.study,
        ),
        (0.9, 0.8, 17.0, 1.32e-5, 0.018, 17.3, (0.977, 0.0222, 0.0008), 0.57),
    ],
)
def test_published_deltas_of_a_thousand_rounds(
    decay, z, epsilon, published, error, near_exact, odds, attraction
):
    # Importance samples of two proposal families, with the published relative errors.
    setting = on_grid(ar1(1000, decay, z), 0.01, nodes=16)
    total = sum(odds)
    estimator = Counts(setting, tuple(p / total for p in odds), attraction)
    sample = simulate(estimator, draws=2048, seed=2)
    reading = sample.at(epsilon, **SURE)
    reach = 4 * math.hypot(reading.standard_error / reading.mean, error)
    assert abs(reading.mean / published - 1) <= reach
    assert reach < 0.35
    assert reading.effective_draws > 100
    found = bounds.least_epsilon(lambda e: sample.at(e, **SURE).mean, 1e-5)
    # Published to three digits, from a sample of about this size.
    assert abs(found - near_exact) < 0.02 * near_exact


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decay", "z", "log_moment"), [(0.5, 0.8, 0.840670), (0.9, 2.0, 0.525483), (0.9, 4.0, 0.120377)]
)
def test_second_moments(decay, z, log_moment):
    tilted = Tilted(on_grid(ar1(1000, decay, z), 0.01))
    assert tilted.log_moment == pytest.approx(log_moment, abs=1e-6)
    assert tilted.validated()


@pytest.mark.slow
def test_tilted_draws_never_exceed_their_range_and_agree_with_direct_ones():
    setting = on_grid(ar1(200, 0.7, 1.5), 0.02)
    direct = simulate(Direct(setting, "remove"), draws=10_000, seed=3)
    tilted = simulate(Tilted(setting), draws=10_000, seed=4)
    for epsilon in (0.5, 1.5, 2.5):
        one, two = direct.at(epsilon, **SURE), tilted.at(epsilon, **SURE)
        apart = abs(one.mean - two.mean)
        assert apart <= 4.5 * math.hypot(one.standard_error, two.standard_error)
        raw = tilted.estimator.terms(tilted.kept, epsilon)
        assert raw.max() <= tilted.estimator.largest(epsilon)
        moment = tilted.estimator.log_moment
        assert tilted.estimator.largest(epsilon) <= 1.01 * math.exp(moment - epsilon) / 2


@pytest.mark.slow
def test_adding_a_record_inside_a_half_space():
    setting = on_grid(ar1(200, 0.7, 2.0), 0.05)
    direct = simulate(Direct(setting, "add"), draws=16_384, seed=3)
    epsilon = 2.5
    bound, share = bounds.HalfSpaces(setting.mechanism, setting.law).best(epsilon)
    _, kappa, mu = ShiftAdd(setting, share, 1.0).half_space
    shifted = ShiftAdd(setting, share, (epsilon - kappa) / mu**2)
    moved = simulate(shifted, draws=16_384, seed=4).at(epsilon, **SURE)
    plain = direct.at(epsilon, **SURE)
    assert shifted.largest(epsilon) < 0.9
    assert abs(moved.mean - plain.mean) <= 4.5 * math.hypot(
        moved.standard_error, plain.standard_error
    )
    assert plain.lower <= bound
    # The half-space bounds weights of a move against the mean only.
    with pytest.raises(ValueError, match="scale"):
        ShiftAdd(setting, share, -1.0)


@pytest.mark.slow
def test_deterministic_bounds_enclose_the_draws():
    # Forty confidence intervals, each of which fails with probability 1e-6.
    rng = np.random.default_rng(11)
    for _ in range(20):
        decay, z = rng.uniform(0.1, 0.9), rng.uniform(0.8, 4)
        rate, T = rng.uniform(0.02, 0.3), int(rng.integers(4, 40))
        setting = on_grid(ar1(T, decay, z), rate, nodes=32)
        epsilon = rng.uniform(0.1, 2.0)
        remove = simulate(Direct(setting, "remove"), draws=1024, seed=1).at(epsilon, **SURE)
        add = simulate(Direct(setting, "add"), draws=1024, seed=2).at(epsilon, **SURE)
        revealed = bounds.Revealed(setting.mechanism, setting.law).delta(epsilon)
        assert remove.lower <= revealed
        half = bounds.HalfSpaces(setting.mechanism, setting.law)
        assert add.lower <= min(revealed, half.delta(epsilon))


@pytest.mark.slow
def test_renyi_bounds_lie_above_the_near_exact_epsilon():
    # Near-exact epsilon 1.12, 3.42 and 1.41 at delta = 1e-5, r = 0.01, 1000 rounds.
    for decay, z, near_exact, published in (
        (0.5, 2.0, 1.12, 1.313),
        (0.9, 2.0, 3.42, 5.48),
        (0.9, 4.0, 1.41, 1.69),
    ):
        bound = bounds.CappedMoments(ar1(1000, decay, z), 0.01).epsilon(1e-5).value
        assert near_exact < bound < 1.15 * published


def test_state_caps():
    for decay, cap in ((0.5, 1.875), (0.9, 3.896), (0.97, 5.505)):
        found = bounds.state_cap(decay, 0.01, 1000, 1e-6)
        assert cap - 1e-3 <= found <= 1.02 * cap


@pytest.mark.slow
def test_orthogonal_bins_against_a_certified_bracket():
    # Brackets from convolving lognormals on a grid, rounded down and up.
    for mu, epsilon, low, high in (
        (1.0, 0.25, 2.1544e-3, 2.1635e-3),
        (1.0, 0.5, 4.4006e-5, 4.4171e-5),
        (1.5, 1.0, 1.2737e-3, 1.2891e-3),
    ):
        gram = mu**2 * np.eye(100)
        for order in (2, 3):
            reading = simulate(Bins(gram, "remove", order), draws=20_000, seed=order).at(
                epsilon, **SURE
            )
            assert reading.lower <= high
            assert low <= reading.upper
            assert reading.standard_error < 0.3 * reading.mean
    add = simulate(Bins(np.eye(10), "add"), draws=40_000, seed=4)
    for epsilon in (0.1, 0.5):
        bound = BinsHalfSpace(np.eye(10)).delta(epsilon)
        assert add.at(epsilon, **SURE).lower <= bound
    assert Bins(np.eye(100), "remove", 2).log_moment == pytest.approx(0.0170368632, abs=1e-9)
    assert Bins(np.eye(100), "remove", 3).log_moment == pytest.approx(0.0515876988, abs=1e-9)


@pytest.mark.slow
def test_correlated_bins_against_published_values():
    C = lower_toeplitz(0.9 ** np.arange(1000))
    M = C @ correlated.BallsInBins(100).equally_likely(1000)
    gram = M.T @ M
    gram *= 2.25 / np.diagonal(gram).max()
    sample = simulate(Bins(gram, "remove", 3), draws=20_000, seed=0)
    for epsilon, published, error in ((2, 5.28e-3, 0.004), (3, 2.9e-4, 0.008), (4, 1.05e-5, 0.017)):
        reading = sample.at(epsilon, **SURE)
        reach = 4 * math.hypot(reading.standard_error / reading.mean, error)
        assert abs(reading.mean / published - 1) <= reach < 0.4


@pytest.mark.slow
@pytest.mark.study
def test_particles_are_conservative_and_nearly_sharp():
    setting = on_grid(ar1(60, 0.8, 2.0), 0.05)
    law, run = setting.law, setting.mechanism
    particles = Setting(run, law, ParticleEngine(run, law, 16))
    for direction in ("remove", "add"):
        exact = simulate(Direct(setting, direction), draws=20_000, seed=5).at(0.5, **SURE)
        found = simulate(Direct(particles, direction), draws=20_000, seed=6).at(0.5, **SURE)
        error = math.hypot(exact.standard_error, found.standard_error)
        assert found.mean >= exact.mean - 4.5 * error
        assert found.mean <= 1.05 * exact.mean + 4.5 * error


@pytest.mark.slow
@pytest.mark.study
def test_cross_entropy_beats_plain_draws():
    setting = on_grid(ar1(150, 0.8, 1.0), 0.02)
    start = Counts(setting, (0.985, 0.014, 0.001), 0.1)
    fitted = start.fitted(lambda kept, proposal: 5.0, np.random.default_rng(0))
    reading = simulate(fitted, draws=4096, seed=1).at(5.0, **SURE)
    assert reading.mean < 1e-2
    assert reading.effective_draws > 10 * 4096 * reading.mean


# --- how draws are run ------------------------------------------------------------------------


def small():
    return Direct(on_grid(ar1(30, 0.6, 1.0), 0.1), "remove")


@pytest.mark.slow
def test_results_do_not_depend_on_the_workers():
    alone = simulate(small(), draws=5000, seed=1)
    with ThreadPoolExecutor(3) as threads:
        assert (simulate(small(), draws=5000, seed=1, executor=threads).kept == alone.kept).all()
    with ProcessPoolExecutor(2) as processes:
        assert (simulate(small(), draws=5000, seed=1, executor=processes).kept == alone.kept).all()
    assert (simulate(small(), draws=5000, seed=2).kept != alone.kept).any()
    assert (simulate(small(), draws=5000, seed=1, stream=1).kept != alone.kept).any()


def test_an_interrupted_run_resumes(tmp_path):
    path = tmp_path / "draws.npz"
    whole = simulate(small(), draws=6 * 1024, seed=1)

    def interrupt(done, count):
        if done == 4:
            raise KeyboardInterrupt

    options = {"draws": 6 * 1024, "seed": 1, "checkpoint": path, "save_every": 1}
    with pytest.raises(KeyboardInterrupt):
        simulate(small(), progress=interrupt, **options)
    seen = []
    resumed = simulate(small(), progress=lambda done, count: seen.append((done, count)), **options)
    assert (resumed.kept == whole.kept).all()
    assert seen == [(5, 6), (6, 6)]
    with pytest.raises(ValueError, match="another mechanism"):
        simulate(small(), draws=6 * 1024, seed=2, checkpoint=path)


# --- confidence -------------------------------------------------------------------------------


@pytest.mark.slow
def test_confidence_bounds_hold_at_every_sample_size():
    # Exact coverage for binomial means, summed over outcomes.
    for n, p in ((20, 0.3), (200, 0.02), (1000, 0.5)):
        k = np.arange(n + 1)
        weights = binom.pmf(k, n, p)
        for gamma in (0.05, 1e-3):
            options = {"draws": n, "failure_probability": gamma}
            below = np.array([upper_mean(j / n, **options) < p for j in k])
            above = np.array([lower_mean(j / n, **options) > p for j in k])
            assert weights @ below <= gamma
            assert weights @ above <= gamma


def test_published_confidence_bounds():
    options = {"draws": 100_000, "failure_probability": 1e-3}
    assert upper_mean(0.0, **options) == pytest.approx(6.9075e-5, rel=1e-4)
    assert upper_mean(1e-3, **options) == pytest.approx(1.41880e-3, rel=1e-5)
    assert upper_mean(0.0, **options, largest=0.01) == pytest.approx(6.9075e-7, rel=1e-4)
    needed = draws_needed(1e-5, failure_probability=1e-7)
    assert upper_mean(0.0, draws=needed, failure_probability=1e-7) <= 1e-5
    assert upper_mean(0.0, draws=needed - 5, failure_probability=1e-7) > 1e-5


def test_published_draws_for_verified_release():
    for base, draws, largest in (
        (0.5e-5, 1.1e7, 1.0),
        (0.7e-5, 3.6e5, 1e-2),
        (0.5e-5, 4.1e3, 3.8e-4),
    ):
        assert pipeline_delta(base, draws=int(1.1 * draws), largest=largest) <= 1e-5
        assert pipeline_delta(base, draws=int(draws / 1.3), largest=largest) > 1e-5
