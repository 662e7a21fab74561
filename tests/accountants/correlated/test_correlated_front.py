"""The front door to correlated noise: exact routes, labels, refusals, and what they refuse for.

Statistical statements here fail with probability below 1e-5 for a fresh seed.
"""

import itertools
import math
import pickle
import re

import numpy as np
import pytest
from _tree import ROOT
from scipy.stats import norm

from dpcal import accountants
from dpcal.accountants import correlated, events
from dpcal.accountants.correlated.likelihood import vector_grids as engines
from dpcal.accountants.correlated.table import (
    EXACT,
    LABELS,
    STATISTICAL,
    WITH_CONFIDENCE,
    chosen,
    render,
)
from dpcal.accountants.matrix import BISR, BLT, Banded, LambdaCGD, LeastSeparation
from dpcal.calibrate.correlated import noise_multiplier, proved_noise_multiplier
from dpcal.errors import UnsupportedEvent


def strategy(column, decay=None):
    T = len(column)
    lag = np.subtract.outer(np.arange(T), np.arange(T))
    C = np.where(lag >= 0, np.asarray(column)[np.abs(lag)], 0.0)
    return correlated.Matrix(C, decay=decay)


T = 24
STRATEGIES = {
    "diagonal": strategy([1.0] + [0.0] * (T - 1)),
    "banded": strategy([1.0, 0.5, 0.25] + [0.0] * (T - 3)),
    "lambda-CGD": strategy(0.7 ** np.arange(T), 0.7),
    "BLT": BLT(T, (0.9, 0.4), (0.3, 0.2)),
    "dense": strategy(1 / np.sqrt(np.arange(1, T + 1))),
}
SAMPLERS = [
    correlated.Poisson(0.1),
    correlated.CyclicPoisson(4, 0.3),
    correlated.CyclicPoisson(2, 0.3),
    correlated.CyclicPoisson(4, 0.3, random_shift=True),
    correlated.MinSeparation(4, 0.2),
    correlated.MinSeparation(2, 0.2, warm_start=True),
    correlated.RandomAllocation(2),
    correlated.RandomAllocation(1, epoch=8),
    correlated.BallsInBins(8),
    correlated.FixedSize(10, 100),
]


def _cells():
    """Each kind, told by its matrix alone; all samplers are asked of named strategies elsewhere."""
    for sampler in SAMPLERS:
        for kind in STRATEGIES:
            few = isinstance(sampler, correlated.Poisson | correlated.MinSeparation)
            marks = [] if few else [pytest.mark.study]
            yield pytest.param(kind, sampler, marks=marks, id=f"{sampler!r}-{kind}")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sampler"), list(_cells()))
def test_every_cell_answers_or_refuses_with_its_reason(kind, sampler):
    arguments = {"noise_multiplier": 2.0, "epsilon": 0.5}
    if isinstance(sampler, correlated.FixedSize):
        with pytest.raises(UnsupportedEvent, match=r"Poisson.*revealed_delta"):
            correlated.delta(STRATEGIES[kind], sampler, **arguments)
        return
    answer = correlated.delta(
        STRATEGIES[kind], sampler, **arguments, draws=2048, particles=4, seed=0
    )
    mechanism = correlated.Mechanism.of(STRATEGIES[kind], noise_multiplier=2.0)
    row = chosen(mechanism, sampler)
    assert row in correlated.decision_table()
    assert mechanism.kind == kind
    assert answer.label in LABELS
    assert answer.label in row.label
    assert 0 <= answer.lower <= answer.estimate <= answer <= 1
    assert answer.lower <= answer.certified
    proved = correlated.delta(STRATEGIES[kind], sampler, **arguments, statistics="none")
    assert proved.label == ("exact" if answer.label == EXACT else "certified")
    assert answer.lower <= answer <= proved


def test_the_identity_is_the_sampled_gaussian():
    event = events.dpsgd(sampling_probability=0.1, noise_multiplier=2.0, steps=T)
    answer = correlated.epsilon(
        STRATEGIES["diagonal"], correlated.Poisson(0.1), noise_multiplier=2.0, delta=1e-6
    )
    assert answer == accountants.epsilon(event, delta=1e-6)
    assert answer.label == EXACT
    scaled = correlated.epsilon(
        strategy([3.0] + [0.0] * (T - 1)), correlated.Poisson(0.1), noise_multiplier=6.0, delta=1e-6
    )
    assert scaled == pytest.approx(answer, rel=1e-12)


def test_known_deltas_of_a_thousand_sampled_gaussians():
    identity = strategy([1.0] + [0.0] * 999)
    for epsilon, delta in ((1, 0.0241677472), (3, 1.76713759e-5), (5, 4.7559692e-9)):
        answer = correlated.delta(
            identity, correlated.Poisson(0.01), noise_multiplier=0.8, epsilon=epsilon
        )
        assert answer == pytest.approx(delta, rel=1e-8)


def test_banded_noise_with_cyclic_groups_is_a_composition():
    # Six eligible rounds of a record in the worst group; the last columns of C are shorter.
    C = STRATEGIES["banded"].matrix()
    norms = np.linalg.norm(C, axis=0)[::4]
    event = events.ComposedDpEvent(
        [events.PoissonSampledDpEvent(0.3, events.GaussianDpEvent(2.0 / x)) for x in norms]
    )
    answer = correlated.epsilon(
        STRATEGIES["banded"], correlated.CyclicPoisson(4, 0.3), noise_multiplier=2.0, delta=1e-6
    )
    assert answer == pytest.approx(accountants.epsilon(event, delta=1e-6), rel=1e-9)


def test_the_worst_group_is_not_always_the_first():
    C = np.diag(np.linspace(1.0, 2.0, 8))
    growing = correlated.Matrix(C)
    answer = correlated.epsilon(
        growing, correlated.CyclicPoisson(2, 0.3), noise_multiplier=1.0, delta=1e-6
    )
    late = events.ComposedDpEvent(
        [
            events.PoissonSampledDpEvent(0.3, events.GaussianDpEvent(1.0 / x))
            for x in np.diagonal(C)[1::2]
        ]
    )
    assert answer == pytest.approx(accountants.epsilon(late, delta=1e-6), rel=1e-9)


@pytest.mark.slow
def test_confidence_is_part_of_delta():
    options = {"noise_multiplier": 2.0, "seed": 3, "draws": 10_000}
    run = STRATEGIES["lambda-CGD"]
    answer = correlated.epsilon(run, correlated.Poisson(0.1), delta=1e-3, **options)
    assert answer.label == WITH_CONFIDENCE
    assert answer.failure_probability == pytest.approx(1e-5)
    assert answer.lower < answer.estimate < answer < answer.certified
    back = correlated.delta(
        run,
        correlated.Poisson(0.1),
        epsilon=float(answer),
        failure_probability=answer.failure_probability,
        **options,
    )
    assert back <= 1e-3 * (1 + 1e-6)
    surer = correlated.epsilon(
        run, correlated.Poisson(0.1), delta=1e-3, failure_probability=1e-8, **options
    )
    assert surer > answer
    again = pickle.loads(pickle.dumps(answer))
    assert again == answer
    assert again.to_dict() == answer.to_dict()


@pytest.mark.slow
def test_statistics_agree_across_methods():
    run, sampler = STRATEGIES["lambda-CGD"], correlated.Poisson(0.1)
    options = {"noise_multiplier": 2.0, "delta": 1e-3}
    sharp = correlated.epsilon(
        run,
        sampler,
        **options,
        statistics="asymptotic",
        draws=8192,
        seed=1,
        failure_probability=1e-5,
    )
    assert sharp.label == STATISTICAL
    for extra in ({}, {"arithmetic": "bracketed"}):
        sure = correlated.epsilon(run, sampler, **options, draws=30_000, seed=2, **extra)
        assert sure.label == WITH_CONFIDENCE
        assert sharp.lower <= sure
        assert sure.lower <= sharp
    banded = strategy([1.0, 0.5] + [0.0] * (T - 2))
    pair = [
        correlated.delta(
            each, sampler, noise_multiplier=2.0, epsilon=0.5, draws=12_288, seed=4, particles=16
        )
        for each in (banded, correlated.Matrix(banded.matrix()))
    ]
    assert pair[0].lower <= pair[1]
    assert pair[1].lower <= pair[0]


@pytest.mark.slow
@pytest.mark.study
def test_states_and_particles_agree_on_buffers():
    run, sampler = BLT(80, (0.95, 0.5), (0.12, 0.3)), correlated.Poisson(0.05)
    options = {"noise_multiplier": 3.0, "epsilon": 0.4, "draws": 4096}
    states = correlated.delta(run, sampler, seed=1, **options)
    assert states.method.startswith("states: Direct")
    assert states.label == WITH_CONFIDENCE
    unnamed = correlated.Matrix(run.matrix())
    particles = correlated.delta(unnamed, sampler, seed=2, **options)
    assert particles.method.startswith("particles: Direct")
    # States bound from both sides, particles from above only.
    assert 0 == particles.lower < states.lower < states.estimate < 2 * states.lower
    # Means of 4096 terms in [0, 1], 5 standard errors of about sqrt(delta / 4096) at most.
    apart = abs(states.estimate - particles.estimate)
    assert apart < 5 * math.sqrt(2 * states.estimate / 4096)
    sharp = correlated.delta(run, sampler, seed=3, statistics="asymptotic", **options)
    assert states.lower <= sharp <= states


def test_too_large_a_grid_of_states_falls_back_to_particles(monkeypatch):
    monkeypatch.setattr(engines, "MOST_NODES", 40)
    answer = correlated.delta(
        STRATEGIES["BLT"],
        correlated.Poisson(0.1),
        noise_multiplier=2.0,
        epsilon=0.5,
        draws=2048,
        seed=0,
    )
    assert answer.method.startswith("particles")
    assert answer.lower == 0


@pytest.mark.slow
@pytest.mark.study
def test_rare_participation_with_much_noise_has_an_upper_end():
    # Adding a record is decided far out, some forty times beyond the mean of a participation.
    answer = correlated.epsilon(
        LambdaCGD(300, 0.5),
        correlated.Poisson(0.01),
        noise_multiplier=2.0 / math.sqrt(1 - 0.5**2),
        delta=1e-5,
        statistics="asymptotic",
        draws=12_288,
        seed=1,
    )
    assert answer.label == STATISTICAL
    assert answer.method.endswith(" and ShiftAdd")
    assert 0 < answer.lower < answer < 1.1 * answer.lower
    assert answer < answer.certified < math.inf


@pytest.mark.slow
def test_too_few_draws_name_enough():
    run = strategy(0.9 ** np.arange(200), 0.9)
    options = {"noise_multiplier": 1.2, "delta": 1e-6, "seed": 0}
    answer = correlated.epsilon(run, correlated.MinSeparation(5, 0.05), draws=2000, **options)
    assert answer.label == "certified"
    assert re.match(r"draws=2000 cannot .* choose draws >= (\d+)", answer.note)
    with pytest.raises(ValueError, match="failure_probability must be less than delta"):
        correlated.epsilon(
            run, correlated.MinSeparation(5, 0.05), failure_probability=0.1, **options
        )


def normalised(run, sigma):
    """What the literature calls z: it divides by the largest norm of a column of C."""
    return sigma / np.linalg.norm(run.matrix(), axis=0).max()


def test_reading_a_multiplier_as_normalised_would_understate_epsilon():
    # A run whose noise has standard deviation z, priced as if z were normalised, that is, as if
    # its noise were z * norm, would be sold for less than it costs.
    run, sampler, sigma = STRATEGIES["banded"], correlated.CyclicPoisson(4, 0.3), 2.0
    misread = correlated.epsilon(run, sampler, delta=1e-5, noise_multiplier=sigma)
    z = normalised(run, sigma)
    assert z == pytest.approx(sigma / math.sqrt(1 + 0.25 + 0.0625))
    true = correlated.epsilon(run, sampler, delta=1e-5, noise_multiplier=z)
    assert true.lower > 1.1 * misread
    # Columns of larger norm cost more at the same multiplier, in proportion.
    twice = correlated.Matrix(2 * run.matrix())
    doubled = correlated.epsilon(twice, sampler, delta=1e-5, noise_multiplier=2 * sigma)
    assert doubled == pytest.approx(misread, rel=1e-12)
    with pytest.raises(TypeError, match="noise_standard_deviation"):
        correlated.epsilon(
            run, sampler, delta=1e-5, noise_multiplier=2.0, noise_standard_deviation=1
        )


@pytest.mark.slow
@pytest.mark.parametrize("run", [LambdaCGD(T, 0.7), Banded(T, 3, [1.0, 0.5, 0.25]), BISR(T, 3)])
def test_every_record_at_every_round_is_the_event_without_sampling(run):
    # One noise multiplier, two accountants: as q -> 1 all participate always, and the run is one
    # Gaussian mechanism of sensitivity ||C 1||.
    sigma, delta = 8.0, 1e-5
    event = run.event(sigma, LeastSeparation(1))
    unsampled = accountants.epsilon(event, delta=delta, neighboring_relation="replace-special")
    sure = correlated.epsilon(
        run, correlated.Poisson(1.0), noise_multiplier=sigma, delta=delta, statistics="none"
    )
    assert sure.label == "certified"
    assert sure == pytest.approx(unsampled, rel=1e-6)
    nearly = correlated.epsilon(
        run, correlated.Poisson(1 - 1e-9), noise_multiplier=sigma, delta=delta, statistics="none"
    )
    assert nearly == pytest.approx(unsampled, rel=1e-6)
    drawn = correlated.delta(
        run, correlated.Poisson(1.0), noise_multiplier=sigma, epsilon=1.0, draws=20_000, seed=5
    )
    exact = accountants.delta(event, epsilon=1.0, neighboring_relation="replace-special")
    assert drawn.lower <= exact <= drawn
    assert drawn - exact < 0.1


def test_arguments_are_checked():
    run = STRATEGIES["lambda-CGD"]
    good = {"noise_multiplier": 1.0, "delta": 1e-5}
    for wrong, name in (
        ({"delta": 1.5}, "delta"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"draws": 0}, "draws"),
        ({"statistics": "some"}, "statistics"),
        ({"arithmetic": "fast"}, "arithmetic"),
    ):
        with pytest.raises(ValueError, match=name):
            correlated.epsilon(run, correlated.Poisson(0.1), **{**good, **wrong})
    with pytest.raises(TypeError, match="sampler"):
        correlated.epsilon(run, "poisson", **good)
    with pytest.raises(ValueError, match="sampling_probability"):
        correlated.Poisson(0.0)
    with pytest.raises(ValueError, match="multiple of the epoch"):
        correlated.delta(
            run, correlated.RandomAllocation(2, epoch=5), noise_multiplier=1.0, epsilon=1.0
        )


def hockey_stick(epsilon, weights_p, means_p, weights_q, means_q, sigma):
    """Of two mixtures of Gaussians on the line, by quadrature."""
    x = np.linspace(-14 * sigma, 14 * sigma + 2, 400_001)
    p = sum(w * norm.pdf(x, m, sigma) for w, m in zip(weights_p, means_p, strict=True))
    q = sum(w * norm.pdf(x, m, sigma) for w, m in zip(weights_q, means_q, strict=True))
    return np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0])


@pytest.mark.parametrize(
    ("rate", "sigma", "epsilon", "attack", "claimed"),
    [(0.1, 1.0, 1.0, 7.717e-3, 2.071e-4), (0.01, 1.0, 1.0, 1.693e-4, 2.73e-9)],
)
def test_batches_of_fixed_size_beat_the_bernoulli_pair(rate, sigma, epsilon, attack, claimed):
    # One round. Every other record contributes -1 and ours +1 (or 0): a batch that holds it holds
    # one other record less, so the sums differ by 2 against 1, which a Bernoulli mixture against
    # plain noise does not dominate.
    found = hockey_stick(epsilon, (1 - rate, rate), (0, 2), (1 - rate, rate), (0, 1), sigma)
    one = strategy([1.0])
    bernoulli = correlated.delta(
        one, correlated.Poisson(rate), noise_multiplier=sigma, epsilon=epsilon
    )
    assert found == pytest.approx(attack, rel=1e-3)
    assert bernoulli == pytest.approx(claimed, rel=2e-3)
    assert found > 37 * bernoulli
    sampler = correlated.FixedSize(round(1000 * rate), 1000)
    with pytest.raises(UnsupportedEvent, match="Poisson"):
        correlated.delta(one, sampler, noise_multiplier=sigma, epsilon=epsilon)
    revealed = correlated.revealed_delta(one, sampler, noise_multiplier=sigma, epsilon=epsilon)
    assert found <= revealed
    assert revealed == pytest.approx(rate * 0.1269367375, rel=1e-6)
    assert revealed.label == "certified"


@pytest.mark.slow
def test_calibrated_noise_is_confirmed_by_other_draws():
    run, sampler = STRATEGIES["lambda-CGD"], correlated.Poisson(0.05)
    found = noise_multiplier(run, sampler, epsilon=1.0, delta=1e-3, draws=10_000, seed=1)
    assert found.confirmation <= 1e-3
    assert found.label == WITH_CONFIDENCE
    assert found.confirmation.failure_probability <= 1e-5
    assert found.confirmation.seed != 1
    less = correlated.delta(
        run,
        sampler,
        noise_multiplier=0.8 * found.noise_multiplier,
        epsilon=1.0,
        draws=10_000,
        seed=9,
    )
    assert less.lower > 0.0
    assert less > 1e-3


def test_draws_that_cannot_tell_are_not_the_end_of_a_search():
    """Fewer draws promise a multiplier that more of them cannot confirm."""
    run, sampler = LambdaCGD(100, 0.75), correlated.Poisson(0.01)
    target = {"epsilon": 4.0, "delta": 1e-3}
    found = noise_multiplier(run, sampler, **target, draws=10_000, seed=1)
    assert found.label == WITH_CONFIDENCE
    assert found.noise_multiplier < 0.9 * proved_noise_multiplier(run, sampler, **target)


@pytest.mark.study
@pytest.mark.parametrize("decay", [0.5, 0.75, 0.9])
def test_more_draws_do_not_ask_for_more_noise(decay):
    run, sampler = LambdaCGD(100, decay), correlated.Poisson(0.01)
    found = [
        noise_multiplier(run, sampler, epsilon=4.0, delta=1e-3, draws=draws, seed=1)
        for draws in (1_000, 2_500, 5_000, 10_000, 20_000, 40_000)
    ]
    # Searches end within 0.3 percent, tests with new draws within one.
    for fewer, more in itertools.pairwise(found):
        assert more.noise_multiplier <= 1.01 * fewer.noise_multiplier


def test_exact_calibration_agrees_with_the_exact_solver():
    from dpcal import calibrate

    found = noise_multiplier(
        STRATEGIES["diagonal"], correlated.Poisson(0.1), epsilon=1.0, delta=1e-5
    )
    exact = calibrate.noise_multiplier(
        lambda z: events.dpsgd(sampling_probability=0.1, noise_multiplier=z, steps=T),
        epsilon=1.0,
        delta=1e-5,
    )
    assert found.label == EXACT
    assert found.noise_multiplier == pytest.approx(exact, rel=1e-6)


def test_the_page_shows_the_table():
    page = (ROOT / "docs" / "correlated.md").read_text()
    assert f"\n\n{render()}\n\n" in page
