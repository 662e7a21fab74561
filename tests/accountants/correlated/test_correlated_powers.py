"""Draws tilted by a power of a product bound: unbiased, below their range, at small deltas.

Statistical statements fail with probability below 1e-5 for a fresh seed.
"""

import itertools
import math
import pickle
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpcal.accountants import correlated
from dpcal.accountants.correlated.bounds.convexity import ConvexTail
from dpcal.accountants.correlated.draws.estimators import Direct, Setting
from dpcal.accountants.correlated.draws.montecarlo import simulate
from dpcal.accountants.correlated.draws.powers import PowerTilted, best_order
from dpcal.accountants.correlated.likelihood import BracketEngine, GridEngine, TransferEngine
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.question import Options, Question
from dpcal.accountants.matrix import BISR, BLT, Banded, LambdaCGD, SquareRoot
from dpcal.calibrate import correlated_dpsgd
from dpcal.calibrate.correlated import noise_multiplier, proved_noise_multiplier
from dpcal.errors import UnsupportedEvent

SURE = {"failure_probability": 1e-6}
RUNS = {
    "lambda-CGD": LambdaCGD(10, 0.6),
    "one buffer": BLT(10, (0.8,), (0.4,)),
    "bands": Banded(10, 3, (1.0, 0.7, 0.3)),
}


def setting_of(run, sigma, rate):
    options = Options(seed=1)
    return Question.of(run, correlated.Poisson(rate), sigma, options).setting("remove")


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
    mechanism, rng = Mechanism.of(run, noise_multiplier=1.7), np.random.default_rng(2)
    C = np.abs(run.matrix())
    y, x = np.array(rng.random((30, 5)) < 0.3, dtype=float), rng.standard_normal((30, 5))
    assert np.allclose(mechanism.means(y), C @ y, rtol=1e-11, atol=1e-12)
    assert np.allclose(mechanism.fields(x.copy()), C.T @ x / 1.7**2, rtol=1e-11, atol=1e-11)


def moment_by_enumeration(mechanism, rate, order):
    """log E_Q[B^q], by all counts of all rounds."""
    C, total = mechanism.matrix, []
    for counts in itertools.product(range(order + 1), repeat=mechanism.steps):
        n = np.array(counts)
        chance = math.prod(
            math.comb(order, k) * rate**k * (1 - rate) ** (order - k) for k in counts
        )
        mean = C @ n
        total.append(
            chance * math.exp(0.5 * mean @ mean / mechanism.variance - 0.5 * n @ mechanism.energies)
        )
    return math.log(math.fsum(total))


@pytest.mark.parametrize(
    "run",
    [
        LambdaCGD(6, 0.6),
        BLT(6, (0.8,), (0.4,)),
        Banded(6, 3, (1.0, 0.7, 0.3)),
        Banded(5, 5, (1.0, 0.7, 0.5, 0.3, 0.2)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("order", [2, 3])
def test_moments_against_every_count(run, order):
    setting = setting_of(run, 1.7, 0.2)
    exact = moment_by_enumeration(setting.mechanism, 0.2, order)
    found = PowerTilted(setting, order).log_moment
    # A polygon lies above the convex function, by little.
    assert exact - 1e-11 <= found <= exact + (1e-10 if run.bands else 1e-3)
    rough = PowerTilted(setting, order, cells=20).log_moment
    assert found <= rough + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("order", "cells"), [(2, 1500), (5, 40)])
def test_powers_agree_with_plain_draws(name, order, cells):
    setting = setting_of(RUNS[name], 5.0, 0.1)
    tilted = simulate(PowerTilted(setting, order, cells), draws=20_000, seed=2)
    plain = simulate(Direct(setting, "remove"), draws=40_000, seed=3)
    for epsilon in (0.1, 0.3):
        one, other = (sample.at(epsilon, **SURE) for sample in (tilted, plain))
        # 4.5 standard errors of both.
        apart = 4.5 * math.hypot(one.standard_error, other.standard_error)
        assert abs(one.mean - other.mean) <= apart
        assert tilted.estimator.terms(tilted.kept, epsilon).max() <= tilted.estimator.largest(
            epsilon
        )


def delta_by_rule(C, sigma, rate, epsilon):
    """E_Q (L - e^eps)_+ of two rounds, by the trapezoid rule under the pattern that reaches it."""
    x = np.linspace(-8, 16, 1601) * sigma
    first, second = np.meshgrid(x, x, indexing="ij")
    weight = (x[1] - x[0]) ** 2 / (2 * np.pi * sigma**2)
    log_q = -(first**2 + second**2) / (2 * sigma**2)
    mass = 0.0
    for y in itertools.product((0.0, 1.0), repeat=2):
        m = C @ np.array(y)
        chance = rate ** sum(y) * (1 - rate) ** (2 - sum(y))
        exponent = (m[0] * first + m[1] * second - 0.5 * m @ m) / sigma**2
        mass = mass + chance * np.exp(log_q + exponent)
    return float(np.maximum(mass - math.exp(epsilon) * np.exp(log_q), 0.0).sum() * weight)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 1e-4), (4.5, 1e-10), (6.0, 1e-13)])
@pytest.mark.parametrize("kind", ["lambda-CGD", "bands"])
def test_small_deltas_of_two_rounds(epsilon, least, kind):
    run = LambdaCGD(2, 0.5) if kind == "lambda-CGD" else Banded(2, 2, (1.0, 0.5))
    setting = setting_of(run, 1.0, 0.05)
    exact = delta_by_rule(run.matrix(), 1.0, 0.05, epsilon)
    assert least < exact
    chosen = best_order(setting, epsilon=epsilon)
    reading = simulate(chosen, draws=50_000, seed=4).at(epsilon, **SURE)
    assert reading.lower <= exact <= reading.upper
    assert reading.upper < 2 * exact
    assert abs(reading.mean - exact) < 5 * reading.standard_error + 1e-6 * exact


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "sigma", "epsilon", "expected", "error"),
    [
        (LambdaCGD(1000, 0.5), 2 / math.sqrt(0.75), 1.6, 9.95e-9, 0.03),
        (Banded.optimised(2000, 4), 2.638, 4.0, 5.6e-9, 0.1),
    ],
    ids=["lambda-CGD", "bands"],
)
def test_long_runs_against_another_implementation(run, sigma, epsilon, expected, error):
    setting = setting_of(run, sigma, 0.01)
    chosen = best_order(setting, epsilon=epsilon)
    reading = simulate(chosen, draws=8_192, seed=5).at(epsilon, failure_probability=1e-10)
    assert abs(reading.mean / expected - 1) < 4.5 * math.hypot(
        error, reading.standard_error / reading.mean
    )
    assert reading.upper < 4 * expected
    assert chosen.largest(epsilon) < 500 * expected


@pytest.mark.slow
def test_certified_epsilons_use_them_and_answer_small_deltas():
    run, sampler = LambdaCGD(200, 0.5), correlated.Poisson(0.01)
    asked = {"noise_multiplier": 2.0, "seed": 1, "draws": 10_000}
    found = correlated.epsilon(run, sampler, delta=1e-8, **asked)
    assert found.method.startswith("grid: PowerTilted")
    assert found.label == "statistical with certified confidence"
    assert found < found.certified
    back = correlated.delta(run, sampler, epsilon=float(found), failure_probability=1e-10, **asked)
    assert back == pytest.approx(1e-8, rel=0.3)
    bands = correlated.epsilon(Banded(200, 3, (1, 0.5, 0.2)), sampler, delta=1e-8, **asked)
    assert bands.method.startswith("transfer: PowerTilted")


@pytest.mark.slow
def test_draws_are_made_where_their_number_gains_though_their_range_alone_does_not():
    run, asked = LambdaCGD(40, 0.75), {"epsilon": 1.0, "delta": 1e-3}
    proved = proved_noise_multiplier(run, correlated.Poisson(0.01), **asked)
    found = noise_multiplier(run, correlated.Poisson(0.01), draws=8192, seed=3, **asked)
    assert found.label == "statistical with certified confidence"
    assert found.noise_multiplier < 0.8 * proved
    # The range would do with more noise than is proved.
    setting = setting_of(run, proved, 0.01)
    assert best_order(setting, epsilon=1.0).largest(1.0) > 1e-3


@pytest.mark.slow
def test_what_has_no_table_is_refused():
    run = Mechanism.of(LambdaCGD(6, 0.6), noise_multiplier=1.0)
    surely = correlated.Poisson(1.0).automaton(6)
    assert best_order(Setting(run, surely, GridEngine(run, surely)), epsilon=1.0) is None
    apart = correlated.MinSeparation(2, 0.1).automaton(6)
    with pytest.raises(UnsupportedEvent, match="independent participations"):
        PowerTilted(Setting(run, apart, GridEngine(run, apart)), 2)
    law = correlated.Poisson(0.1).automaton(6)
    with pytest.raises(UnsupportedEvent, match="likelihood ratios"):
        PowerTilted(Setting(run, law, BracketEngine(run, law)), 2)
    wide = Mechanism.of(Banded(12, 12, np.ones(12)), noise_multiplier=1.0)
    every = correlated.Poisson(0.1).automaton(12)
    assert best_order(Setting(wide, every, TransferEngine(wide, every)), epsilon=1.0) is not None
    wider = Mechanism.of(Banded(4000, 12, np.ones(12)), noise_multiplier=1.0)
    law = correlated.Poisson(0.1).automaton(4000)
    assert best_order(Setting(wider, law, TransferEngine(wider, law)), epsilon=1.0) is None


def test_copies_for_other_processes_are_small():
    tilted = best_order(setting_of(LambdaCGD(500, 0.5), 2.0, 0.01), epsilon=1.0)
    rng = np.random.default_rng(0)
    tilted.draw(16, rng)
    copy = pickle.loads(pickle.dumps(tilted))
    assert len(pickle.dumps(tilted)) < 100_000
    assert (
        copy.draw(16, np.random.default_rng(1)) == tilted.draw(16, np.random.default_rng(1))
    ).all()


def test_a_million_rounds_grow_evenly_and_travel_in_kilobytes():
    def tilted(rounds):
        mechanism = Mechanism.of(LambdaCGD(rounds, 0.5), noise_multiplier=3.0)
        law = correlated.Poisson(0.001).automaton(rounds)
        return PowerTilted(Setting(mechanism, law, GridEngine(mechanism, law)), 6, 300)

    short, longer, longest = (tilted(rounds) for rounds in (1000, 2000, 10**6))
    # Rounds far from the end weigh the same, each of them.
    each = (longer.log_moment - short.log_moment) / 1000
    assert longest.log_moment == pytest.approx(longer.log_moment + 998_000 * each, rel=1e-6)
    assert len(zlib.compress(pickle.dumps(longest), 6)) < 60_000


def added_by_rule(C, sigma, rate, epsilon):
    """E_Q (1 - e^eps L)_+ of two rounds, by the trapezoid rule on the plane."""
    x = np.linspace(-14, 10, 801) * sigma
    first, second = np.meshgrid(x, x, indexing="ij")
    q = np.exp(-(first**2 + second**2) / (2 * sigma**2)) / (2 * np.pi * sigma**2)
    ratio = np.zeros_like(q)
    for y in itertools.product((0.0, 1.0), repeat=2):
        m = C @ np.array(y)
        chance = rate ** sum(y) * (1 - rate) ** (2 - sum(y))
        ratio += chance * np.exp((m[0] * first + m[1] * second - 0.5 * m @ m) / sigma**2)
    return float((q * np.maximum(1 - math.exp(epsilon) * ratio, 0)).sum()) * (x[1] - x[0]) ** 2


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "sigma"), [(0.5, 1.0), (0.9, 2.0), (1 - 1e-9, 1.0)])
def test_the_convex_tail_holds_far_below_its_draws(rate, sigma):
    run = LambdaCGD(2, 0.5)
    setting = setting_of(run, sigma, rate)
    log_l = simulate(Direct(setting, "add"), draws=8_192, seed=6).kept[0]
    bound = ConvexTail.of(log_l, failure_probability=1e-10, slack=setting.slack)
    told = 0
    for epsilon in np.linspace(0.3, 6.0, 9):
        exact = added_by_rule(run.matrix(), sigma, rate, epsilon)
        found = bound.delta(epsilon)
        assert found >= exact * (1 - 1e-6)
        # Far fewer draws than 1 / delta tell that delta is small.
        told += found < 1e-6
    assert told > 0 or rate > 0.5
    back = bound.epsilon(1e-6).value
    assert bound.delta(back) == pytest.approx(1e-6, rel=1e-6) or bound.delta(0.0) <= 1e-6


@pytest.mark.slow
def test_the_convex_tail_covers_as_often_as_it_says():
    # Of 300 bounds that may fail with probability 0.1 each, more than 55 fail with one of 1e-6.
    rng, failures = np.random.default_rng(7), 0
    for _ in range(300):
        log_l = rng.normal(-0.125, 0.5, 400)
        bound = ConvexTail.of(log_l, failure_probability=0.1)
        # The law is Gaussian: the line through two levels is the truth, and delta follows from it.
        truth = ConvexTail(np.array([[10.0, 0.125, 0.5]])).delta(1.0)
        failures += bound.delta(1.0) < truth
    assert failures <= 55


@pytest.mark.slow
def test_adding_a_record_is_certified_where_half_spaces_prove_nothing():
    run, sampler = LambdaCGD(300, 0.5), correlated.Poisson(0.02)
    asked = {"noise_multiplier": 1.3, "seed": 1, "draws": 20_000}
    found = correlated.epsilon(run, sampler, delta=1e-6, **asked)
    assert found.label == "statistical with certified confidence"
    assert found < 0.7 * found.certified
    assert found.upper < 1.5 * found.lower


def test_an_interrupt_saves_what_was_drawn_and_clients_draw_as_they_are(tmp_path):
    tilted = best_order(setting_of(LambdaCGD(12, 0.5), 2.0, 0.1), epsilon=0.5)
    plain = simulate(tilted, draws=5_000, seed=8)
    path = tmp_path / "draws.npz"

    def stop(done, count):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(tilted, draws=5_000, seed=8, checkpoint=path, progress=stop)
    seen = []
    resumed = simulate(
        tilted, draws=5_000, seed=8, checkpoint=path, progress=lambda done, count: seen.append(done)
    )
    assert seen == [4, 5]
    assert (resumed.kept == plain.kept).all()

    class Client:
        def __init__(self, pool):
            self.get_executor = lambda: pool

    with ThreadPoolExecutor(2) as pool:
        spread = simulate(tilted, draws=5_000, seed=8, executor=Client(pool))
    assert (spread.kept == plain.kept).all()


@pytest.mark.slow
def test_an_interrupted_calibration_resumes(tmp_path):
    run, path = LambdaCGD(12, 0.5), tmp_path / "calibration"
    asked = {"n": 200, "batch_size": 10, "epsilon": 2.0, "delta": 1e-3, "draws": 2_048, "seed": 9}
    plan = correlated_dpsgd(run, **asked, checkpoint=path)
    assert sorted(each.name for each in tmp_path.iterdir())
    again = correlated_dpsgd(run, **asked, checkpoint=path)
    assert again == plan == correlated_dpsgd(run, **asked)
