"""What every method owes: one bound answers epsilon and delta, and more noise never costs more."""

import itertools

import numpy as np
import pytest

from dpcal.accountants import correlated, matrix
from dpcal.accountants.correlated import pricing
from dpcal.accountants.matrix import BLT, Banded, Dense, Identity, LambdaCGD, SquareRoot
from dpcal.calibrate import correlated_dpsgd
from dpcal.calibrate.correlated import noise_multiplier, proved_noise_multiplier

T = 24
STRATEGIES = {
    "diagonal": Identity(T),
    "banded": Banded(T, 3, (1.0, 0.5, 0.25)),
    "lambda-CGD": LambdaCGD(T, 0.7),
    "BLT": BLT(T, (0.9, 0.4), (0.3, 0.2)),
    "dense": SquareRoot(T),
}
SAMPLERS = {
    "Poisson": correlated.Poisson(0.1),
    "cyclic": correlated.CyclicPoisson(4, 0.3),
    "overlapping groups": correlated.CyclicPoisson(2, 0.3),
    "secret groups": correlated.CyclicPoisson(4, 0.3, random_shift=True),
    "separated": correlated.MinSeparation(4, 0.2),
    "allocated": correlated.RandomAllocation(2),
    "bins": correlated.BallsInBins(8),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"),
    [
        # Bins are one allocation, whose bound the same code answers for all rounds at once.
        pytest.param(name, law, marks=[pytest.mark.study] * ((name, law) == ("diagonal", "bins")))
        for law, name in itertools.product(SAMPLERS, STRATEGIES)
    ],
)
def test_proofs_answer_both_ways_alike(name, sampler):
    sampler = SAMPLERS[sampler]
    asked = {"noise_multiplier": 4.0, "statistics": "none"}
    found = correlated.epsilon(STRATEGIES[name], sampler, delta=1e-4, **asked)
    back = correlated.delta(STRATEGIES[name], sampler, epsilon=float(found), **asked)
    assert back == pytest.approx(1e-4, rel=1e-5)
    assert back.label == found.label
    quieter = {**asked, "noise_multiplier": 5.0}
    assert correlated.epsilon(STRATEGIES[name], sampler, delta=1e-4, **quieter) <= found
    assert correlated.epsilon(STRATEGIES[name], sampler, delta=1e-5, **asked) >= found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"),
    [
        *itertools.product(["banded"], ["Poisson", "secret groups", "allocated", "bins"]),
        *itertools.product(["lambda-CGD", "BLT"], ["Poisson", "bins"]),
    ],
)
def test_draws_answer_both_ways_alike(name, sampler):
    asked = {"noise_multiplier": 1.2, "seed": 5, "draws": 4096, "failure_probability": 1e-6}
    run, law = STRATEGIES[name], SAMPLERS[sampler]
    found = correlated.epsilon(run, law, delta=1e-2, **asked)
    back = correlated.delta(run, law, epsilon=float(found), **asked)
    assert back.label == found.label
    assert back == pytest.approx(1e-2, rel=1e-5)


@pytest.mark.slow
def test_epsilon_and_delta_of_one_run_rest_on_the_same_proof():
    run, sampler = LambdaCGD(50, 0.5), correlated.Poisson(0.1)
    asked = {"noise_multiplier": 6.36, "statistics": "none"}
    found = correlated.epsilon(run, sampler, delta=1e-5, **asked)
    back = correlated.delta(run, sampler, epsilon=float(found), **asked)
    assert found < 0.997
    assert found.method == back.method
    assert back == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.slow
def test_both_calibrators_are_one():
    run, target = LambdaCGD(50, 0.5), {"epsilon": 1.0, "delta": 1e-5}
    sampler = correlated.Poisson(0.1)
    proved = proved_noise_multiplier(run, sampler, **target)
    plan = correlated_dpsgd(run, n=100, batch_size=10, statistics=False, **target)
    assert plan.query("gradient").noise_multiplier == proved < 6.37
    # With draws, which take long to reach a small delta, of fewer rounds.
    run, target = LambdaCGD(16, 0.5), {"epsilon": 1.0, "delta": 1e-3}
    drawn = noise_multiplier(run, sampler, **target, draws=4096, seed=3)
    planned = correlated_dpsgd(run, n=100, batch_size=10, draws=4096, seed=3, **target)
    sigma = planned.query("gradient").noise_multiplier
    assert sigma == drawn.noise_multiplier < proved_noise_multiplier(run, sampler, **target)
    assert planned.price() <= 1.0
    assert drawn.confirmation <= 1e-3


@pytest.mark.slow
def test_draws_never_ask_for_more_noise_than_proofs():
    # Ten draws cannot bound this delta: the proof answers, and says what was missing.
    run, sampler, target = SquareRoot(16), correlated.Poisson(0.05), {"delta": 1e-6}
    found = correlated.epsilon(run, sampler, noise_multiplier=4.0, draws=10, seed=0, **target)
    proved = correlated.epsilon(run, sampler, noise_multiplier=4.0, statistics="none", **target)
    assert (float(found), found.label) == (float(proved), "certified")
    assert "choose draws >=" in found.note
    least = noise_multiplier(run, sampler, epsilon=2.0, draws=10, seed=0, **target)
    assert least.label == "certified"
    assert least.noise_multiplier == proved_noise_multiplier(run, sampler, epsilon=2.0, **target)


@pytest.mark.slow
@pytest.mark.parametrize("bands", [12, 13, 32])
def test_separated_bands_are_a_composition_however_many_they_are(bands):
    # The columns of records in one group do not overlap, whatever the matrix is called.
    steps, target = 320, {"epsilon": 4.0, "delta": 1e-6}
    run = Banded(steps, bands, np.linspace(1.0, 0.1, bands))
    sampler = correlated.CyclicPoisson(bands, 0.01 * bands)
    found = noise_multiplier(run, sampler, **target)
    assert found.label == "exact"
    scaled = noise_multiplier(
        Identity(-(-steps // bands)), correlated.Poisson(0.01 * bands), **target
    )
    norm = np.linalg.norm(run.coefficients)
    # Late columns are cut short, so that equal columns need a little more.
    assert 0.97 < found.noise_multiplier / (norm * scaled.noise_multiplier) <= 1 + 1e-6
    separated = correlated.MinSeparation(bands, 0.01)
    answer = correlated.delta(run, separated, noise_multiplier=2.0, epsilon=1.0, draws=2048, seed=1)
    assert answer.method.startswith("separated: Direct")


def hockey_stick(columns, weights, epsilon, sigma):
    """E_Q (L - e^eps)_+ and E_Q (1 - e^eps L)_+ of two rounds, by a rule on the plane."""
    x = np.linspace(-9, 9, 601) * sigma
    first, second = np.meshgrid(x, x, indexing="ij")
    log_q = -(first**2 + second**2) / (2 * sigma**2)
    q = np.exp(log_q) / (2 * np.pi * sigma**2) * (x[1] - x[0]) ** 2
    ratio = sum(
        w * np.exp((m[0] * first + m[1] * second - 0.5 * (m @ m)) / sigma**2)
        for w, m in zip(weights, columns, strict=True)
    )
    e = np.exp(epsilon)
    return (q * np.maximum(ratio - e, 0)).sum(), (q * np.maximum(1 - e * ratio, 0)).sum()


def test_absolute_values_dominate_mixed_signs():
    # Contributions of any sign, the second of which looks at the first output, never beat those of
    # abs(C): here all signs of two rounds with a negative entry.
    C, sigma, rate, epsilon = np.array([[1.0, 0.0], [-0.6, 1.0]]), 1.3, 0.3, 0.4
    patterns = [np.array(y, dtype=float) for y in ((0, 0), (1, 0), (0, 1), (1, 1))]
    weights = [rate ** y.sum() * (1 - rate) ** (2 - y.sum()) for y in patterns]
    worst = hockey_stick([np.abs(C) @ y for y in patterns], weights, epsilon, sigma)
    for signs in ((1, 1), (1, -1)):
        found = hockey_stick([C @ (y * signs) for y in patterns], weights, epsilon, sigma)
        assert all(a <= b + 1e-12 for a, b in zip(found, worst, strict=True))
    answer = correlated.delta(
        Dense(C), correlated.Poisson(rate), noise_multiplier=sigma, epsilon=epsilon, draws=50_000,
        seed=2,
    )  # fmt: skip
    assert answer.lower <= max(worst) <= answer


LAWS = (
    correlated.Poisson(0.3),
    correlated.CyclicPoisson(4, 0.5),
    correlated.CyclicPoisson(3, 0.5, random_shift=True),
    correlated.MinSeparation(3, 0.6),
    correlated.MinSeparation(2, 0.6, warm_start=True),
    correlated.RandomAllocation(2, 6),
    correlated.RandomAllocation(1),
    correlated.BallsInBins(4),
)


@pytest.mark.parametrize("sampler", LAWS, ids=repr)
def test_facts_of_a_sampler_hold_in_its_law(sampler):
    """Bounds are chosen by these facts, so that a wrong one would prove a wrong epsilon."""
    rounds = 12
    law = sampler.automaton(rounds)
    y, _ = law.sample(4000, np.random.default_rng(0))
    together = np.lib.stride_tricks.sliding_window_view(y, sampler.least_separation, axis=0)
    assert together.sum(axis=-1).max() == 1
    groups, epochs = sampler.groups(rounds), sampler.epochs(rounds)
    if groups is not None:
        covered = np.concatenate([np.arange(rounds)[rows] for rows in groups.rounds])
        assert sorted(covered) == list(range(rounds))
        first = law.rates[groups.rounds[0]]
        share = len(groups.rounds) if groups.secret else 1
        np.testing.assert_allclose(first, groups.rate / share)
    if epochs is not None:
        assert epochs.drawn * epochs.repeated * epochs.rounds == rounds
        taken = y.reshape(-1, epochs.rounds, y.shape[1]).sum(axis=1)
        assert (taken == epochs.times).all()
        np.testing.assert_allclose(law.rates, epochs.times / epochs.rounds)
    if (patterns := sampler.equally_likely(rounds)) is not None:
        np.testing.assert_allclose(patterns.mean(axis=1), law.rates)
        seen = {tuple(column) for column in y.T}
        assert seen == {tuple(column) for column in patterns.T}


@pytest.mark.parametrize("sampler", [correlated.RandomAllocation(2, 7), correlated.BallsInBins(7)])
def test_a_run_that_epochs_do_not_fill_is_refused_when_it_is_made(sampler):
    with pytest.raises(ValueError, match="number of rounds"):
        pricing.whole_run(Identity(40), sampler, noise_multiplier=3.0)


def test_the_former_name_of_a_schema_warns():
    with pytest.warns(DeprecationWarning, match="is now .*LeastSeparation"):
        assert matrix.MinSeparation is matrix.LeastSeparation
