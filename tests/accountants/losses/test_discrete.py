"""Mechanisms with discrete privacy losses, against exact sums and another package."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from _integrals import holds
from dp_accounting.pld import privacy_loss_distribution as builders

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.losses import discrete
from dpcal.accountants.losses.quadrature import log_mixture


@pytest.mark.parametrize("k", [2, 3, 10, 10**9])
@pytest.mark.parametrize(
    "p", [1e-308, 1e-300, 1e-9, 0.3, 0.9999991019181362, 1 - 3 * 2.0**-53, 1 - 2.0**-53]
)
def test_largest_losses_are_rounded_up_by_few_units(p, k):
    with mpmath.workdps(400):
        own = 1 - mpmath.mpf(p) + mpmath.mpf(p) / k
        truths = [mpmath.log(own * k / p), mpmath.log(own * k), -mpmath.log(p)]
        losses = [
            discrete.randomized_response(noise_parameter=p, num_buckets=k),
            *discrete.blanked_response(noise_parameter=p, num_buckets=k),
        ]
        for loss, truth in zip(losses, truths, strict=True):
            assert truth <= loss.upper <= truth * (1 + 16 * 2.0**-52)
            masses = [mpmath.exp(log) for log in loss.log_reference]
            assert abs(sum(masses) - 1) < 1e-12
            moved = [m * mpmath.exp(v) for m, v in zip(masses, loss.values, strict=True)]
            assert abs(sum(moved) - 1) < 1e-12


def test_answers_about_few_values_are_narrow():
    """That they hold is asked of the corpus, which proves such answers in balls."""
    response, other = (events.RandomizedResponseDpEvent(p, k) for p, k in ((0.5, 2), (0.3, 3)))
    laplace = events.DiscreteLaplaceDpEvent(0.5, 3)
    both = events.ComposedDpEvent([response, events.SelfComposedDpEvent(other, 4)])
    sample = events.SelfComposedDpEvent(events.PoissonSampledDpEvent(0.1, laplace), 10)
    how = {"neighboring_relation": "replace-one"}
    for event in (both, sample, *(events.SelfComposedDpEvent(x, 200) for x in (response, laplace))):
        for epsilon in (0.0, 0.3, 2.0):
            found = accountants.delta(event, epsilon=epsilon, **how)
            assert 0 <= found.upper - found.lower <= 1e-8 * found.upper, (event, epsilon)
        found = accountants.epsilon(event, delta=1e-9, **how)
        assert 0 <= found.upper - found.lower <= 1e-8 * found.upper, event


def test_a_response_close_to_random_stays_within_its_support():
    p = 0.9999991019181362
    event = events.RandomizedResponseDpEvent(p, 3)
    found = accountants.epsilon(event, delta=1e-300, neighboring_relation="replace-one")
    with mpmath.workdps(40):
        assert mpmath.log1p((1 - mpmath.mpf(p)) * 3 / p) <= found.upper
    # The total variation distance is 1 - p.
    distance = accountants.delta(event, epsilon=0.0, neighboring_relation="replace-one")
    assert distance.lower <= 1 - p <= distance.upper <= (1 - p) * (1 + 1e-8)


@pytest.mark.parametrize("unit", [0.1, 0.7, 1.1, 1e-3])
def test_a_product_is_rounded_up(unit):
    for shift in range(1, 40):
        loss = discrete.discrete_laplace(noise_parameter=unit, sensitivity=shift)
        assert Fraction(loss.upper) >= Fraction(unit) * shift
        assert loss.upper == pytest.approx(unit * shift, rel=1e-15)
    assert discrete.pure(unit).upper == unit


@pytest.mark.parametrize("q", [1e-30, 0.01, 0.9, 1 - 1e-15])
def test_sampling_thins_losses_of_any_size(q):
    values = np.array([-2000.0, -40.0, -1.0, -1e-9, 1e-12, 0.3, 5.0, 499.9, 500.1, 710.0, 1e6])
    found = log_mixture(q, values)
    with mpmath.workdps(400):
        q = mpmath.mpf(q)
        truth = [mpmath.log1p(q * mpmath.expm1(mpmath.mpf(value))) for value in values]
    np.testing.assert_allclose(found, [float(x) for x in truth], rtol=4e-15, atol=0)


@pytest.mark.parametrize("q", [0.01, 0.9])
@pytest.mark.parametrize(
    ("event", "largest"),
    [
        (events.EpsilonDeltaDpEvent(710.0, 0.0), 710.0),
        (events.EpsilonDeltaDpEvent(3000.0, 0.0), 3000.0),
        (events.DiscreteLaplaceDpEvent(720.0, 1), 720.0),
        (events.DiscreteLaplaceDpEvent(400.0, 2), 800.0),
    ],
)
def test_sampling_of_what_reveals_almost_everything(event, largest, q):
    event = events.PoissonSampledDpEvent(q, event)
    found = accountants.epsilon(event, delta=1e-12)
    # The largest loss, and that less log(1 - 2e-12 / q) at a share of its probability.
    top = largest + math.log(q)
    assert top - 4e-12 / q <= found.upper <= top * (1 + 1e-12)
    distance = accountants.delta(event, epsilon=1.0)
    assert holds(distance, q, 1e-15)
    assert distance.upper <= q * (1 + 1e-9)


@pytest.mark.parametrize(("scale", "q"), [(1 / 729, 0.01), (1 / 800, 0.3), (1 / 2000, 1e-4)])
@pytest.mark.parametrize("epsilon", [0.5, 300.0])
def test_sampled_laplace_noise_of_a_tiny_scale(scale, q, epsilon):
    event = events.PoissonSampledDpEvent(q, events.LaplaceDpEvent(scale))
    found = accountants.delta(event, epsilon=epsilon)
    with mpmath.workdps(40):
        within = mpmath.log1p(mpmath.expm1(epsilon) / mpmath.mpf(q))
        truth = mpmath.mpf(q) * -mpmath.expm1((within - 1 / mpmath.mpf(scale)) / 2)
    assert holds(found, truth, 1e-15)
    assert found.upper - found.lower < 1e-3 * found.upper


@pytest.mark.slow
def test_atoms_beside_a_sampled_gaussian():
    gaussian = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)
    atomic = events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(0.05, 2), 50)
    answer = accountants.epsilon(events.ComposedDpEvent([atomic, gaussian]), delta=1e-6)
    first = builders.from_discrete_laplace_mechanism(0.05, 2).self_compose(50)
    second = builders.from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(1000)
    peer = first.compose(second).get_epsilon_for_delta(1e-6)
    assert answer.upper <= peer + 1e-9
    assert peer < answer.upper + 1e-2
    assert answer.upper - answer.lower < 1e-6


@pytest.mark.parametrize("times", [5, 900, 18_837])
def test_few_values_that_add_up_often_have_the_error_they_say(times):
    p, q = 2.0**-2 + 2.0**-10, 2.0**-3 + 2.0**-9
    loss, middle = accountants.from_pmf([p, 1 - p], [q, 1 - q]).removed, int(times * p)
    with mpmath.workdps(60):
        gain, fall = mpmath.log(mpmath.mpf(p) / q), mpmath.log(mpmath.mpf(1 - p) / (1 - q))
        terms = range(middle, min(times, middle + 12 * math.isqrt(times)) + 1)
        masses = [
            mpmath.binomial(times, i) * mpmath.mpf(p) ** i * mpmath.mpf(1 - p) ** (times - i)
            for i in terms
        ]
        # Next to an atom a loss is rounded to either side.
        for epsilon in (float(i * gain + (times - i) * fall) for i in terms[:3]):
            gaps = [i * gain + (times - i) * fall - epsilon for i in terms]
            truth = mpmath.fdot(masses, [-mpmath.expm1(min(-gap, 0)) for gap in gaps])
            log_delta, error = discrete.log_delta_of_sum(((loss, times),), epsilon)
            assert error < 1e-7
            assert abs(mpmath.exp(log_delta) - truth) <= error * truth
