"""Bounds without draws hold where everything can be integrated, and say enough in practice."""

import itertools
import math
import pickle
import zlib

import numpy as np
import pytest

from dpcal.accountants import correlated
from dpcal.accountants.correlated.bounds.band_moments import BandMoments
from dpcal.accountants.correlated.bounds.half_space import HalfSpaces
from dpcal.accountants.correlated.bounds.lower_tail import LowerTail
from dpcal.accountants.correlated.bounds.moments import CappedMoments
from dpcal.accountants.correlated.draws.confidence import Bets, upper_mean
from dpcal.accountants.correlated.draws.estimators import Direct, Setting
from dpcal.accountants.correlated.draws.montecarlo import simulate
from dpcal.accountants.correlated.likelihood import GridEngine
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.matrix import BLT, Banded, Dense, Identity, LambdaCGD
from dpcal.calibrate.correlated import proved_noise_multiplier
from dpcal.errors import UnsupportedEvent


def two_rounds(C, sigma, rate):
    """Observations on a grid, their weights under Q, and likelihood ratios."""
    x = np.linspace(-9, 12, 1201) * sigma
    first, second = np.meshgrid(x, x, indexing="ij")
    weights = np.exp(-(first**2 + second**2) / (2 * sigma**2)) / (2 * np.pi * sigma**2)
    ratio = np.zeros_like(first)
    for y in itertools.product((0.0, 1.0), repeat=2):
        m = C @ np.array(y)
        chance = rate ** sum(y) * (1 - rate) ** (2 - sum(y))
        ratio += chance * np.exp((m[0] * first + m[1] * second - 0.5 * m @ m) / sigma**2)
    return weights * (x[1] - x[0]) ** 2, ratio


RUNS = [
    (Dense([[1.0, 0.0], [0.7, 1.3]]), 1.0, 0.1),
    (LambdaCGD(2, 0.9), 2.0, 0.3),
    (Identity(2), 0.8, 0.02),
    (BLT(2, (0.7,), (0.4,)), 1.5, 0.2),
]


@pytest.mark.parametrize("bound", [LowerTail, BandMoments, HalfSpaces])
def test_rounds_that_depend_on_each_other_are_refused(bound):
    mechanism = Mechanism.of(Banded(12, 2, (1.0, 0.5)), noise_multiplier=2.0)
    law = correlated.MinSeparation(3, 0.1).automaton(12)
    with pytest.raises(UnsupportedEvent, match="needs independent participations"):
        bound(mechanism, law).delta(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("run", "sigma", "rate"), RUNS, ids=lambda each: str(each)[:12])
def test_adding_a_record_against_integrals(run, sigma, rate):
    weights, ratio = two_rounds(run.matrix(), sigma, rate)
    mechanism = Mechanism.of(run, noise_multiplier=sigma)
    bound = LowerTail(mechanism, correlated.Poisson(rate).automaton(2))
    log_ratio = np.log(ratio)
    mean = float((weights * log_ratio).sum())
    variance = float((weights * (log_ratio - mean) ** 2).sum())
    proved_mean, proved_variance = bound._moments
    assert -mean <= proved_mean
    assert variance <= proved_variance
    for power in (0.5, 2.0, 6.0):
        # The lower tail is Gaussian with the variance itself.
        moment = math.log(float((weights * ratio**-power).sum()))
        assert moment <= -power * mean + 0.5 * power**2 * variance + 1e-9
    for epsilon in (0.0, 0.05, 0.1, 0.3, 0.5):
        exact = float((weights * np.maximum(0.0, 1 - math.exp(epsilon) * ratio)).sum())
        assert exact <= bound.delta(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "bound_of"),
    [
        (Banded(2, 2, (1.0, 0.6)), BandMoments),
        (BLT(2, (0.7,), (0.4,)), lambda mechanism, law: CappedMoments(mechanism, 0.05)),
    ],
    ids=["bands", "one buffer"],
)
def test_removing_a_record_against_integrals(run, bound_of):
    mechanism = Mechanism.of(run, noise_multiplier=1.2)
    bound = bound_of(mechanism, correlated.Poisson(0.05).automaton(2))
    weights, ratio = two_rounds(run.matrix(), 1.2, 0.05)
    for epsilon in (0.2, 1.0, 2.5, 4.0):
        exact = float((weights * np.maximum(0.0, ratio - math.exp(epsilon))).sum())
        assert exact <= bound.delta(epsilon) < 0.2
        assert bound.epsilon(bound.delta(epsilon)).value == pytest.approx(epsilon, rel=0.02)


@pytest.mark.slow
def test_one_buffer_that_is_nearly_lambda_cgd_is_priced_like_it():
    sampler, asked = correlated.Poisson(0.02), {"delta": 1e-5, "statistics": "none"}
    same, near = (
        correlated.epsilon(run, sampler, noise_multiplier=2.0, **asked)
        for run in (LambdaCGD(300, 0.6), BLT(300, (0.6,), (0.6 - 1e-9,)))
    )
    assert near == pytest.approx(float(same), rel=1e-6)
    assert near.label == "certified"


@pytest.mark.slow
def test_proofs_alone_beat_independent_noise():
    sampler, asked = correlated.Poisson(0.01), {"epsilon": 4.0, "delta": 1e-6}
    independent, bands = (
        proved_noise_multiplier(run, sampler, **asked) * run.mean_error()
        for run in (Identity(2000), Banded(2000, 2, (1.0, 0.904775)))
    )
    assert bands < 0.91 * independent


@pytest.mark.slow
def test_long_runs_are_priced_without_dense_matrices():
    found = [
        correlated.epsilon(
            LambdaCGD(steps, 0.5),
            correlated.Poisson(100 / steps),
            noise_multiplier=2.0,
            delta=1e-6,
            statistics="none",
        )
        for steps in (20_000, 100_000)
    ]
    # The same participations, further apart: less is lost.
    assert 0 < found[1] < found[0] < 6


def test_what_is_sent_for_a_long_run_is_small():
    steps = 100_000
    mechanism = Mechanism.of(LambdaCGD(steps, 0.5), noise_multiplier=2.0)
    law = correlated.Poisson(0.001).automaton(steps)
    direct = Direct(Setting(mechanism, law, GridEngine(mechanism, law)), "remove")

    sizes = []

    class Executor:
        def map(self, function, work):
            sizes.extend(len(each[0]) for each in work)
            return []

    with pytest.raises(ValueError, match="concatenate"):
        simulate(direct, draws=3000, seed=0, executor=Executor())
    assert len(sizes) == 3
    assert max(sizes) < 50_000
    assert len(zlib.decompress(zlib.compress(pickle.dumps(direct)))) > 1_000_000


def test_bets_bound_means_more_often_than_they_promise():
    rng, failure, draws = np.random.default_rng(7), 0.05, 4096
    rates, missed, share = 0.03, 0, []
    for _ in range(400):
        x = np.where(rng.random(draws) < rates, rng.random(draws) ** 3, 0.0)
        bets = Bets.of(draws, lambda past, x=x: (x[:past], 1.0), failure_probability=failure)
        bound = bets.upper_mean(x, failure_probability=failure, largest=1.0)
        missed += bound < 0.25 * rates
        plain = upper_mean(float(x.mean()), draws=draws, failure_probability=failure)
        share.append((bound - x.mean()) / (plain - x.mean()))
    # 5 percent of 400, and four standard errors; a false alarm is rarer than one in 10,000.
    assert missed <= 20 + 4 * math.sqrt(400 * 0.05 * 0.95)
    assert np.mean(share) < 0.95


def test_bounds_by_bets_fall_with_the_draws():
    rng = np.random.default_rng(8)
    x = rng.random(2048) ** 8
    bets = Bets.of(2048, lambda past: (x[:past], 1.0), failure_probability=1e-6)
    found = [
        bets.upper_mean(part * x, failure_probability=1e-6, largest=1.0)
        for part in (1.0, 0.7, 0.3, 0.0)
    ]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 0
    # Bets that could ruin the capital prove nothing.
    assert bets.upper_mean(5 * x, failure_probability=1e-6, largest=1e9) == 1e9
