"""Mechanisms that are not Gaussian, on random batches, against sums over all outputs."""

import math
from functools import partial

import numpy as np
import pytest
from _integrals import divergence, holds, masses, product, response, worse
from dp_accounting.pld import privacy_loss_distribution as builders

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import UnsupportedEvent

REPEAT = events.SelfComposedDpEvent
POISSON = events.PoissonSampledDpEvent
FIXED = events.SampledWithoutReplacementDpEvent
GAUSSIAN, LAPLACE = events.DiscreteGaussianDpEvent, events.LaplaceDpEvent


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("q", "epsilon"), [(0.01, 0.0), (0.2, 0.3), (0.9, 1.0), (1e-6, 1e-4)])
def test_one_step_with_discrete_noise_is_a_sum_over_outputs(q, relation, epsilon):
    """The corpus has discrete Laplace noise. In a fixed batch the record displaces another one."""
    noise = np.exp(-0.5 * (np.arange(-110.0, 111.0) / 1.5) ** 2)
    noise /= noise.sum()
    # What goes round the ends has a mass of 1e-19.
    once, back, twice = ((1 - q) * noise + q * np.roll(noise, moves) for moves in (2, -2, 4))
    event, largest = events.DiscreteGaussianDpEvent(1.5, 2), worse
    truths = {POISSON(q, event): worse(once, back if relation == "replace-one" else noise, epsilon)}
    if q in (0.01, 0.2, 0.9):
        largest = worse if relation == "add-or-remove-one" else divergence
        truths[FIXED(100, round(100 * q), event)] = largest(twice, noise, epsilon)
    for sampled, truth in truths.items():
        delta = accountants.delta(sampled, epsilon=epsilon, neighboring_relation=relation)
        assert holds(delta, truth), sampled
        assert delta.upper - delta.lower <= 1e-9 * delta.upper, sampled


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("times", [1, 2])
def test_several_answers_about_one_sample(times, epsilon):
    q, answers = 0.2, [events.DiscreteLaplaceDpEvent(0.5, 1), events.DiscreteLaplaceDpEvent(0.3, 2)]
    losses = [decompose(each, RELATIONS[0]).directions[0].parts[0][0] for each in answers]
    # Both answers are about the same sample: their laws are multiplied before they are mixed.
    above, blank = product(*map(masses, losses))
    truth = worse(*product(*[((1 - q) * blank + q * above, blank)] * times), epsilon)
    event = REPEAT(POISSON(q, events.ComposedDpEvent(answers)), times)
    assert holds(accountants.delta(event, epsilon=epsilon), truth)
    # Two samples for two answers cost less than one for both.
    apart = events.ComposedDpEvent([REPEAT(POISSON(q, each), times) for each in answers])
    less, more = (accountants.epsilon(each, delta=1e-3) for each in (apart, event))
    assert less.upper < more.lower


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.2])
def test_responses_on_a_sample_show_who_was_drawn(epsilon):
    p, k, q, times = 0.4, 3, 0.3, 3
    own, other = 1 - p + p / k, p / k
    # No answer, or one of three.
    laws = [np.array([1 - q, *(q * np.roll([own, other, other], shift))]) for shift in (0, 1)]
    event = REPEAT(POISSON(q, events.RandomizedResponseDpEvent(p, k)), times)
    delta = accountants.delta(event, epsilon=epsilon, neighboring_relation="replace-one")
    assert delta == pytest.approx(divergence(*product(*[laws] * times), epsilon), rel=1e-10)
    with pytest.raises(UnsupportedEvent, match="reveals the record's presence"):
        accountants.delta(event, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2])
def test_a_sampled_choice_is_the_worst_pair_of_losses(epsilon):
    length, q = 1.0, 0.3
    tops = np.linspace(1e-4, length - 1e-4, 4001)
    low = tops - length
    # Losses top and top - length, with the chance that makes both laws sum to 1.
    top = (1 - np.exp(-low)) / (np.exp(-tops) - np.exp(-low))
    pairs = np.array([top, 1 - top]).T
    blanks = pairs * np.exp(-np.array([tops, low])).T
    truth = max(
        worse((1 - q) * blank + q * p, blank, epsilon)
        for p, blank in zip(pairs, blanks, strict=True)
    )
    event = POISSON(q, events.ExponentialMechanismDpEvent(length))
    found = accountants.delta(event, epsilon=epsilon)
    assert truth <= found.upper * (1 + 1e-9)
    assert found.upper == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
def test_sampled_claims_that_fail_are_summed_over_outcomes(times, epsilon):
    """Only P fails on a sample: what Q alone has is as likely as if the record was not drawn."""
    claims = [(1.0, 0.3), (0.5, 0.2)]
    p, q = product(*(response(*claim) for claim in claims))
    truth = worse(*product(*[(0.4 * p + 0.6 * q, q)] * times), epsilon)
    both = events.ComposedDpEvent([events.EpsilonDeltaDpEvent(*claim) for claim in claims])
    found = accountants.delta(REPEAT(POISSON(0.4, both), times), epsilon=epsilon)
    assert holds(found, truth, 1e-13)
    assert found.upper - found.lower < 1e-10
    # A blanked record that is sampled may leave another law than one that is not.
    blanked = POISSON(0.2, events.EpsilonDeltaDpEvent(0.7, 1e-3))
    found = accountants.delta(blanked, epsilon=0.7, neighboring_relation="replace-special")
    assert found == pytest.approx(0.2e-3, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "peer", "times", "interval", "width"),
    [
        (POISSON(q, event(scale)), partial(peer, scale, sampling_prob=q), times, interval, width)
        for event, peer, scale, q, times, interval, width in (
            (GAUSSIAN, builders.from_discrete_gaussian_mechanism, 1.0, 0.1, 20, 1e-4, 0.01),
            (GAUSSIAN, builders.from_discrete_gaussian_mechanism, 4.0, 0.1, 50, 1e-4, 0.01),
            (GAUSSIAN, builders.from_discrete_gaussian_mechanism, 1.0, 1e-3, 10, 1e-5, 0.3),
            (LAPLACE, builders.from_laplace_mechanism, 1.0, 0.1, 50, 1e-3, 0.01),
            (LAPLACE, builders.from_laplace_mechanism, 0.5, 0.01, 1000, 1e-3, 0.01),
        )
    ],
)
def test_sampled_noise_against_a_distribution(event, peer, times, interval, width):
    ours = accountants.epsilon(REPEAT(event, times), delta=1e-6)
    theirs = peer(value_discretization_interval=interval).self_compose(times)
    found = theirs.get_epsilon_for_delta(1e-6)
    assert ours.lower <= found * (1 + 1e-6)
    # The peer rounds losses up to multiples of the interval.
    assert found < ours.upper + interval * times
    assert ours.upper < found * 1.01
    assert ours.upper - ours.lower < width * ours.upper


@pytest.mark.parametrize(("claimed", "failure"), [(1.0, 1e-3), (3.0, 0.1), (0.2, 1e-9), (1.0, 0.0)])
def test_two_claims_on_batches_of_fixed_size(claimed, failure):
    """By Balle, Barthe and Gaboardi 2018, a loss is l, -l or 0, or reveals the record."""
    q, event = 0.05, events.EpsilonDeltaDpEvent(claimed, failure)
    largest, lost = math.log1p(q * math.expm1(claimed)), q * failure
    gain = q * (1 - failure) * math.tanh(claimed / 2) / (1 - lost)
    most = gain / -math.expm1(-largest)
    none = 1 - most - most * math.exp(-largest)
    for epsilon in (0.3 * largest, 1.5 * largest):
        twice = most**2 * -math.expm1(epsilon - 2 * largest)
        once = 2 * most * none * max(0.0, -math.expm1(epsilon - largest))
        truth = 1 - (1 - lost) ** 2 * (1 - twice - once)
        sampled = REPEAT(FIXED(1000, 50, event), 2)
        delta = accountants.delta(sampled, epsilon=epsilon, neighboring_relation="replace-one")
        assert delta == pytest.approx(truth, rel=1e-11)


@pytest.mark.slow
def test_very_many_answers_about_one_batch_keep_their_mass():
    """So many small answers are one Gaussian, and rounding them takes no mass that counts."""
    sampled, count = partial(POISSON, 0.01), 10**8
    many = sampled(REPEAT(LAPLACE(math.sqrt(count)), count))
    limit = accountants.epsilon(sampled(events.GaussianDpEvent(1.0)), delta=1e-6)
    found = accountants.epsilon(many, delta=1e-6)
    assert found.lower <= limit.upper * (1 + 1e-3)
    assert limit.lower * (1 - 1e-3) <= found.upper <= limit.upper * 1.03
