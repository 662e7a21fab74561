"""One random round an epoch, without draws: against brackets, draws, and closed forms."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import norm

from dpcal import accountants
from dpcal.accountants import correlated, events
from dpcal.accountants.correlated.bounds.allocation import Allocated
from dpcal.accountants.correlated.bounds.allocation_sums import SubsetBelow
from dpcal.accountants.correlated.draws.bins import Bins
from dpcal.accountants.correlated.draws.montecarlo import simulate
from dpcal.accountants.matrix import Identity, LambdaCGD


@pytest.mark.parametrize(
    ("mu", "epsilon", "low", "high"),
    [
        (1.0, 0.25, 2.1544e-3, 2.1635e-3),
        (1.0, 0.5, 4.4006e-5, 4.4171e-5),
        (1.5, 1.0, 1.2737e-3, 1.2891e-3),
    ],
)
def test_one_epoch_of_a_hundred_rounds_lies_in_a_certified_bracket(mu, epsilon, low, high):
    # Brackets from convolving lognormals on a grid, rounded down and up.
    bound = Allocated(mu, 100, 1)
    assert low < bound.lower_delta(epsilon) < bound.delta(epsilon) < high


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_one_round_is_the_gaussian_mechanism(mu, epsilon):
    # Epochs of one round compose to a Gaussian of a larger norm.
    for epochs in (1, 4):
        exact = accountants.delta(events.GaussianDpEvent(1 / (epochs**0.5 * mu)), epsilon=epsilon)
        bound = Allocated(mu, 1, epochs)
        assert bound.delta(epsilon) == pytest.approx(float(exact), rel=1e-9)
        assert bound.lower_delta(epsilon) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.slow
def test_the_front_door_answers_without_draws_at_any_delta():
    sampler = correlated.RandomAllocation(1, epoch=100)
    for delta in (1e-6, 1e-30):
        found = correlated.epsilon(Identity(1000), sampler, noise_multiplier=1.0, delta=delta)
        assert (found.label, found.draws) == ("certified", 0)
        assert 0.999 * found < found.lower < found
        back = correlated.delta(Identity(1000), sampler, noise_multiplier=1.0, epsilon=float(found))
        assert back == pytest.approx(delta, rel=1e-6)
    # Below Poisson sampling at the same rate, which a uniform round is at most as bad as here.
    poisson = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)
    found = correlated.epsilon(Identity(1000), sampler, noise_multiplier=1.0, delta=1e-6)
    assert found < 1.02 * accountants.epsilon(poisson, delta=1e-6)


@pytest.mark.slow
def test_bins_of_independent_noise_are_one_epoch():
    sampler = correlated.BallsInBins(50)
    answer = correlated.delta(Identity(200), sampler, noise_multiplier=2.0, epsilon=0.5)
    assert answer.label == "certified"
    drawn = simulate(Bins(np.eye(50), "remove", 2), draws=60_000, seed=1)
    reading = drawn.at(0.5, failure_probability=1e-6)
    assert reading.lower <= answer <= 1.02 * reading.mean + 5 * reading.standard_error
    # Correlated noise still asks for draws.
    other = correlated.delta(
        LambdaCGD(200, 0.5), sampler, noise_multiplier=2.0, epsilon=1.0, draws=4_096, seed=1
    )
    assert "Bins" in other.method


@pytest.mark.parametrize(("taken", "epochs"), [(1, 4), (4, 1), (4, 3)])
def test_a_subset_of_all_rounds_is_the_gaussian_mechanism_from_below(taken, epochs):
    size = math.sqrt(taken * epochs) * 0.7
    for epsilon in (0.3, 2.0, 5.0):
        exact = float(accountants.delta(events.GaussianDpEvent(1 / size), epsilon=epsilon))
        for found in SubsetBelow(0.7, taken, taken, epochs).directions(epsilon):
            assert 0.99 * exact <= found <= exact


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_two_of_three_rounds_against_quadrature(mu):
    x, q = np.linspace(-8, 8 + mu, 161), 1.0
    parts = np.meshgrid(x, x, x, indexing="ij", sparse=True)
    for part in parts:
        q = q * norm.pdf(part) * (x[1] - x[0])
    first, second, third = (np.exp(mu * part - mu * mu / 2) for part in parts)
    ratio = (first * second + first * third + second * third) / 3
    below = SubsetBelow(mu, 3, 2, 1)
    for epsilon in (0.2, 1.0, 2.5):
        remove = (q * np.maximum(ratio - math.exp(epsilon), 0)).sum()
        add = (q * np.maximum(1 - math.exp(epsilon) * ratio, 0)).sum()
        for exact, found in zip((remove, add), below.directions(epsilon), strict=True):
            # What the sum does not tell is a fifth of delta at 1e-6, and far less of epsilon.
            assert 0.75 * exact - 1e-15 <= found <= exact * (1 + 1e-6) + 1e-14


@pytest.mark.parametrize("taken", [1, 2])
def test_hardly_any_noise_is_priced_without_warnings(taken):
    sampler = correlated.RandomAllocation(taken, epoch=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = correlated.epsilon(
            Identity(8), sampler, noise_multiplier=0.01, delta=1e-6, statistics="none"
        )
    # Two rounds of norm 100 for each of one or two participations.
    exact = accountants.epsilon(events.GaussianDpEvent(0.01 / math.sqrt(2 * taken)), delta=1e-6)
    assert found.label == "certified"
    assert 0.99 * float(exact) <= found <= 1.001 * float(exact)


@pytest.mark.slow
def test_several_rounds_an_epoch_against_draws():
    # Two of four rounds, and two epochs: L is a product of means over six pairs of rounds.
    rng, mu, epsilon = np.random.default_rng(1), 1.0, 1.5
    x = np.exp(mu * (rng.standard_normal((200_000, 2, 4)) + mu * np.array([1, 1, 0, 0])) - 0.5)
    sums, squares = x.sum(axis=2), (x * x).sum(axis=2)
    loss = np.log((sums * sums - squares) / 12).sum(axis=1)
    terms = np.maximum(-np.expm1(epsilon - loss), 0)
    sampler = correlated.RandomAllocation(2, epoch=4)
    asked = {"noise_multiplier": 1 / mu, "epsilon": epsilon}
    found = correlated.delta(Identity(8), sampler, statistics="none", **asked)
    assert found.label == "certified"
    # 4.5 standard errors. Whoever knows the pairs of rounds knows more, by this much here.
    error = 4.5 * terms.std() / math.sqrt(len(terms))
    assert terms.mean() - error <= found <= 1.3 * terms.mean() + error
    assert 0.97 * terms.mean() - error <= found.lower <= terms.mean() + error
    # Without the blocks, what is proved is what is lost if participations are known.
    assert found < 0.9 * correlated.revealed_delta(Identity(8), sampler, **asked)
    # Draws bracket it.
    drawn = correlated.delta(Identity(8), sampler, draws=20_000, seed=1, **asked)
    assert drawn.lower <= terms.mean() + error
    assert drawn <= found
