"""One random round an epoch under correlated noise: proved bounds, against draws and limits."""

import math

import numpy as np
import pytest

from dpcal import accountants
from dpcal.accountants import correlated, events
from dpcal.accountants.correlated.bounds.allocation import spaced
from dpcal.accountants.correlated.bounds.revealed import Revealed
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.pricing import whole_run
from dpcal.accountants.matrix import Banded, LambdaCGD
from dpcal.accountants.samplers import BallsInBins, RandomAllocation


def bounds(strategy, sampler, sigma):
    mechanism = Mechanism.of(strategy, noise_multiplier=sigma)
    law = sampler.automaton(mechanism.steps)
    return spaced(mechanism, sampler), Revealed(mechanism, law)


def drawn(strategy, sampler, sigma, epsilon, draws):
    """Return delta of both directions from draws of every round, and five standard errors."""
    C, rng = strategy.matrix(), np.random.default_rng(1)
    steps, epochs = len(C), sampler.epochs(len(C))
    places = np.indices((epochs.rounds,) * epochs.drawn).reshape(epochs.drawn, -1)
    y = np.zeros((steps, places.shape[1]))
    for number, place in enumerate(places):
        for again in range(epochs.repeated):
            first = (number * epochs.repeated + again) * epochs.rounds
            y[first + place, np.arange(places.shape[1])] += 1
    means = C @ y / sigma
    energies = (means**2).sum(axis=0)
    z = rng.standard_normal((draws, steps))
    found = []
    for sign in (1, -1):
        x = z + means.T[rng.integers(means.shape[1], size=draws)] if sign == 1 else z
        log_l = np.log(np.exp(x @ means - energies / 2).mean(axis=1))
        terms = np.maximum(-np.expm1(np.minimum(epsilon - sign * log_l, 0.0)), 0.0)
        found.append((terms.mean(), 5 * terms.std() / math.sqrt(draws)))
    return found


@pytest.mark.parametrize(
    ("strategy", "sampler", "sigma"),
    [
        (Banded(6, 2, [1.0, 0.7]), RandomAllocation(1, epoch=6), 1.2),
        (Banded(12, 2, [1.0, 0.7]), RandomAllocation(1, epoch=6), 1.5),
        (LambdaCGD(12, 0.5), BallsInBins(6), 2.0),
        (LambdaCGD(12, 0.6), RandomAllocation(1, epoch=4), 2.0),
    ],
)
@pytest.mark.parametrize("epsilon", [0.1, 0.6])
def test_no_draws_exceed_the_bound(strategy, sampler, sigma, epsilon):
    bound, _ = bounds(strategy, sampler, sigma)
    for delta, error in drawn(strategy, sampler, sigma, epsilon, 40_000):
        assert bound.delta(epsilon) >= delta - error


@pytest.mark.slow
def test_a_bound_gains_on_known_rounds_and_answers_both_ways():
    strategy, sigma, epsilon = LambdaCGD(80, 0.5), 2.0, 0.5
    bound, revealed = bounds(strategy, BallsInBins(40), sigma)
    asked = {"noise_multiplier": sigma, "statistics": "none", "epsilon": epsilon}
    answer = correlated.delta(strategy, BallsInBins(40), **asked)
    assert answer == answer.certified
    assert 10 * answer < revealed.delta(epsilon)
    assert bound.epsilon(float(answer)).value == pytest.approx(epsilon, rel=1e-8)
    fresh, revealed = bounds(strategy, RandomAllocation(1, epoch=40), sigma)
    assert answer < fresh.delta(epsilon) < 0.25 * revealed.delta(epsilon)


def test_columns_that_never_meet_are_allocation_to_a_part_of_the_rounds():
    sampler = RandomAllocation(1, epoch=100)
    bound, _ = bounds(Banded(100, 4, [1.0, 0.5, 0.5, 0.5]), sampler, 2.0)
    assert (bound.rounds, bound.shared) == (25, pytest.approx(0.0, abs=1e-6))
    epoch = events.RandomAllocationDpEvent(2.0 / math.sqrt(1.75), 25)
    exact = accountants.delta(epoch, epsilon=0.3)
    assert bound.delta(0.3) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize(
    ("sampler", "sigma", "epochs"),
    [(RandomAllocation(1, epoch=10), 2.0, 4), (BallsInBins(10), 1.0, 1)],
)
def test_independent_noise_in_epochs_is_an_event_that_composes(sampler, sigma, epochs):
    event = whole_run(LambdaCGD(40, 0.0), sampler, noise_multiplier=2.0)
    assert (event.count, event.event.batches) == (epochs, 10)
    assert event.event.noise_multiplier == pytest.approx(sigma, rel=1e-14)
    assert event.event.noise_multiplier < sigma
    both = events.ComposedDpEvent([event, events.GaussianDpEvent(3.0)])
    assert accountants.epsilon(both, delta=1e-3) > accountants.epsilon(event, delta=1e-3)
