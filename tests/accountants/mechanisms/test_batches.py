"""Mechanisms that are not Gaussian, on random batches, against sums over all outputs."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as builders

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import UnsupportedEvent

REPEAT = events.SelfComposedDpEvent
POISSON = events.PoissonSampledDpEvent
FIXED = events.SampledWithoutReplacementDpEvent
DISCRETE_GAUSSIAN = events.DiscreteGaussianDpEvent(1.5, 2)
DISCRETE_LAPLACE = events.DiscreteLaplaceDpEvent(0.4, 3)
SUMS = [DISCRETE_GAUSSIAN, DISCRETE_LAPLACE]


def noise(event):
    """The law of the noise at distances -110 to 110."""
    x = np.arange(-110.0, 111.0)
    if isinstance(event, events.DiscreteGaussianDpEvent):
        law = np.exp(-0.5 * (x / event.sigma) ** 2)
    else:
        law = np.exp(-event.noise_parameter * np.abs(x))
    return law / law.sum()


def moved(law, by):
    """A law on the whole numbers, moved."""
    return np.concatenate([np.zeros(max(by, 0)), law, np.zeros(max(-by, 0))])[
        max(-by, 0) : len(law) + max(-by, 0)
    ]


def hockey_stick(p, q, epsilon):
    """The divergence of order exp(epsilon) of two laws on the same outcomes."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def worst_pairs(event, q, relation):
    """The laws of one step on the worst data sets, in either direction."""
    law, s = noise(event), event.sensitivity
    mixed = {k: (1 - q) * law + q * moved(law, k * s) for k in (-1, 1)}
    if relation == "replace-one":
        return [(mixed[1], mixed[-1])]
    return [(mixed[1], law), (law, mixed[1])]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("event", SUMS)
@pytest.mark.parametrize(("q", "epsilon"), [(0.01, 0.0), (0.2, 0.3), (0.9, 1.0), (1e-6, 1e-4)])
def test_one_step_on_a_sample_is_a_sum_over_outputs(event, q, relation, epsilon):
    truth = max(hockey_stick(*pair, epsilon) for pair in worst_pairs(event, q, relation))
    asked = {"epsilon": epsilon, "neighboring_relation": relation}
    delta = accountants.delta(POISSON(q, event), **asked)
    assert delta.lower <= truth * (1 + 1e-9)
    assert truth <= delta.upper * (1 + 1e-9)
    assert delta.upper - delta.lower <= 1e-9 * delta.upper


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("event", SUMS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
def test_one_batch_of_a_fixed_size_is_a_sum_over_outputs(event, relation, epsilon):
    # The record displaces another one, so that the sums differ by twice the sensitivity.
    law, q = noise(event), 3 / 10
    far = moved(law, 2 * event.sensitivity)
    mixed = (1 - q) * law + q * far
    truth = hockey_stick(mixed, law, epsilon)
    if relation == "add-or-remove-one":
        truth = max(truth, hockey_stick(law, mixed, epsilon))
    asked = {"epsilon": epsilon, "neighboring_relation": relation}
    delta = accountants.delta(FIXED(10, 3, event), **asked)
    assert truth == pytest.approx(delta.upper, rel=1e-9)
    assert delta.upper - delta.lower <= 1e-9 * delta.upper


def atoms(values, masses):
    """Two laws from losses and their probabilities under the second."""
    return np.array(masses) * np.exp(values), np.array(masses)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("times", [1, 2])
def test_several_answers_about_one_sample(times, epsilon):
    q, first, second = (
        0.2,
        events.DiscreteLaplaceDpEvent(0.5, 1),
        events.DiscreteLaplaceDpEvent(0.3, 2),
    )
    one, other = (
        atoms(loss.values, np.exp(loss.log_reference))
        for loss in (
            decompose(event, RELATIONS[0]).directions[0].parts[0][0] for event in (first, second)
        )
    )
    # Both answers are about the same sample: their laws are multiplied before they are mixed.
    above, blank = (np.multiply.outer(a, b).ravel() for a, b in zip(one, other, strict=True))
    mixed = (1 - q) * blank + q * above
    if times == 2:
        mixed, blank = (np.multiply.outer(law, law).ravel() for law in (mixed, blank))
    truth = max(hockey_stick(mixed, blank, epsilon), hockey_stick(blank, mixed, epsilon))
    event = REPEAT(POISSON(q, events.ComposedDpEvent([first, second])), times)
    delta = accountants.delta(event, epsilon=epsilon)
    assert delta.lower <= truth * (1 + 1e-9)
    assert truth <= delta.upper * (1 + 1e-9)
    # Two samples for two answers cost less than one for both.
    apart = events.ComposedDpEvent([REPEAT(POISSON(q, each), times) for each in (first, second)])
    assert (
        accountants.epsilon(apart, delta=1e-3).upper < accountants.epsilon(event, delta=1e-3).lower
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.2])
def test_responses_on_a_sample_show_who_was_drawn(epsilon):
    p, k, q, times = 0.4, 3, 0.3, 3
    own, other = 1 - p + p / k, p / k
    # No answer, or one of three.
    laws = [np.array([1 - q, *(q * np.roll([own, other, other], shift))]) for shift in (0, 1)]
    one, two = (np.multiply.outer(np.multiply.outer(law, law), law).ravel() for law in laws)
    event = REPEAT(POISSON(q, events.RandomizedResponseDpEvent(p, k)), times)
    delta = accountants.delta(event, epsilon=epsilon, neighboring_relation="replace-one")
    assert delta == pytest.approx(hockey_stick(one, two, epsilon), rel=1e-10)
    with pytest.raises(UnsupportedEvent, match="reveals the record's presence"):
        accountants.delta(event, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2])
def test_a_sampled_choice_is_the_worst_pair_of_losses(epsilon):
    length, q = 1.0, 0.3
    tops = np.linspace(1e-4, length - 1e-4, 4001)
    low = tops - length
    # Losses top and top - length, with the chance that makes both laws sum to 1.
    top = (1 - np.exp(-low)) / (np.exp(-tops) - np.exp(-low))
    p = np.array([top, 1 - top])
    blank = p * np.exp(-np.array([tops, low]))
    mixed = (1 - q) * blank + q * p
    truth = max(
        float(np.maximum(a - math.exp(epsilon) * b, 0).sum(axis=0).max())
        for a, b in ((mixed, blank), (blank, mixed))
    )
    found = accountants.delta(
        POISSON(q, events.ExponentialMechanismDpEvent(length)), epsilon=epsilon
    )
    assert truth <= found.upper * (1 + 1e-9)
    assert found.upper == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "event", [*SUMS, events.LaplaceDpEvent(1.0), events.ExponentialMechanismDpEvent(0.8)]
)
def test_almost_everyone_costs_almost_what_everyone_does(event, relation):
    asked = {"epsilon": 0.3, "neighboring_relation": relation}
    whole = accountants.delta(event, **asked)
    assert accountants.delta(POISSON(1.0, event), **asked) == whole
    assert accountants.delta(POISSON(1 - 1e-9, event), **asked) == pytest.approx(whole, rel=1e-5)


def _claims_that_fail():
    """Return two claims, and the laws of their outcomes with and without the record."""
    claims = [events.EpsilonDeltaDpEvent(1.0, 0.3), events.EpsilonDeltaDpEvent(0.5, 0.2)]
    laws = []
    for claim in claims:
        fails, odds = claim.delta, math.exp(claim.epsilon)
        more, less = (1 - fails) * odds / (1 + odds), (1 - fails) / (1 + odds)
        laws.append(np.array([[fails, 0.0], [0.0, fails], [more, less], [less, more]]).T)
    return events.ComposedDpEvent(claims), [np.outer(*each) for each in zip(*laws, strict=True)]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
def test_sampled_claims_that_fail_are_summed_over_outcomes(times, epsilon):
    """Only P fails on a sample: what Q alone has is as likely as if the record was not drawn."""
    both, (p, q) = _claims_that_fail()
    sampled = 0.4 * p + 0.6 * q
    laws = [sampled.ravel(), q.ravel()]
    if times == 2:
        laws = [np.outer(law, law) for law in laws]
    truth = max(hockey_stick(*laws, epsilon), hockey_stick(*laws[::-1], epsilon))
    found = accountants.delta(REPEAT(POISSON(0.4, both), times), epsilon=epsilon)
    assert found.lower <= truth * (1 + 1e-13)
    assert truth <= found.upper * (1 + 1e-13)
    assert found.upper - found.lower < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "q", "times", "interval", "width"),
    [(1.0, 0.1, 20, 1e-4, 0.01), (4.0, 0.1, 50, 1e-4, 0.01), (1.0, 1e-3, 10, 1e-5, 0.3)],
)
def test_sampled_discrete_gaussians_against_a_distribution(sigma, q, times, interval, width):
    ours = accountants.epsilon(
        REPEAT(POISSON(q, events.DiscreteGaussianDpEvent(sigma)), times), delta=1e-6
    )
    peer = builders.from_discrete_gaussian_mechanism(
        sigma, sampling_prob=q, value_discretization_interval=interval
    )
    peer = peer.self_compose(times).get_epsilon_for_delta(1e-6)
    assert ours.lower <= peer * (1 + 1e-6)
    # The peer rounds losses up to multiples of the interval.
    assert peer < ours.upper + interval * times
    assert ours.upper < peer * 1.01
    assert ours.upper - ours.lower < width * ours.upper


def test_a_sampled_discrete_gaussian_at_tiny_deltas():
    event = POISSON(0.1, events.DiscreteGaussianDpEvent(1.0))
    # Noise x has the loss x - 1/2, and almost all of delta is where it just exceeds epsilon.
    found = accountants.log_delta(event, epsilon=30.0)
    x = np.arange(30.0, 60.0)
    losses = np.log1p(0.1 * np.expm1(x - 0.5))
    law = np.exp(-0.5 * x * x) / np.exp(-0.5 * np.arange(-40.0, 41.0) ** 2).sum()
    truth = math.log(float((law * np.maximum(np.exp(losses) - math.exp(30.0), 0)).sum()))
    assert found.lower <= truth * (1 - 1e-13)
    assert truth * (1 + 1e-13) <= found.upper
    assert found.upper - found.lower < 1e-9
    # Beyond 37 standard deviations an outcome counts as a failure, and no lower end is claimed.
    far = accountants.log_delta(event, epsilon=100.0)
    assert far.lower < -0.5 * 100**2
    assert -700 < far.upper < -680
