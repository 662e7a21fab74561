"""Whole profiles: what one contour says of many epsilons is what each epsilon's own would say."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcal.accountants import (
    characteristic,
    delta,
    epsilon,
    epsilon_profile,
    events,
    log_delta,
    privacy_profile,
)
from dpcal.accountants.losses.gaussian import log_gaussian_delta


def sampled(q, sigma):
    return events.PoissonSampledDpEvent(q, events.GaussianDpEvent(sigma))


SETTINGS = st.tuples(
    st.floats(math.log(3e-4), math.log(0.8)),
    st.floats(math.log(0.6), math.log(8.0)),
    st.integers(40, 20_000),
)


@pytest.mark.slow
@given(setting=SETTINGS, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_profile_meets_the_single_answers(setting, seed):
    q, sigma, steps = math.exp(setting[0]), math.exp(setting[1]), setting[2]
    event = events.SelfComposedDpEvent(sampled(q, sigma), steps)
    rng = np.random.default_rng(seed)
    furthest = max(epsilon(event, delta=1e-12).upper, 1e-3)
    epsilons = np.append(rng.uniform(0, furthest, 60), [0.0, furthest])
    profile = privacy_profile(event, epsilons)
    for place in rng.integers(0, 62, 4):
        single = log_delta(event, epsilon=float(epsilons[place]))
        low, high = profile.log_lower[place], profile.log_upper[place]
        assert low <= single.upper
        assert single.lower <= high
        # As narrow as promised, or as the single answer is.
        assert high - low <= max(1e-6, single.upper - single.lower)


@pytest.mark.parametrize("sigma", [0.3, 2.0, 50.0])
def test_gaussian_profile_is_the_closed_form_far_beyond_doubles(sigma):
    event = events.SelfComposedDpEvent(events.GaussianDpEvent(2 * sigma), 4)
    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, 60 / sigma, 200)])
    profile = privacy_profile(event, epsilons)
    for x, low, high in zip(epsilons, profile.log_lower, profile.log_upper, strict=True):
        exact, error = log_gaussian_delta(float(x), 1 / sigma)
        assert low <= exact + 2 * error
        assert exact - 2 * error <= high
        assert high - low < 1e-9
    assert profile.log_upper[-1] < -1000
    assert profile.lower[-1] == 0.0 < profile.upper[-1]


def test_a_thousand_epsilons_take_a_handful_of_contours():
    steps = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
    event = events.ComposedDpEvent([steps, events.LaplaceDpEvent(20.0)])
    single = mock.patch.object(
        characteristic, "finite_log_delta", wraps=characteristic.finite_log_delta
    )
    with single as asked:
        profile = privacy_profile(event, np.linspace(0.0, 20.0, 1000))
    assert asked.call_count < 20
    assert (profile.log_upper - profile.log_lower).max() < 1e-9


def test_lower_ends_of_losses_that_may_fail_are_those_of_losses_rounded_down():
    claims = events.ComposedDpEvent(
        [events.LaplaceDpEvent(2.0), events.EpsilonDeltaDpEvent(0.5, 1e-3)]
    )
    event = events.SelfComposedDpEvent(events.PoissonSampledDpEvent(0.5, claims), 3)
    for x in (0.1, 1.0):
        (low,) = privacy_profile(event, [x]).log_lower
        assert low <= log_delta(event, epsilon=x).lower + 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.01, 1.0, 10_000), (0.3, 4.0, 200)])
def test_epsilons_at_many_deltas_are_the_single_answers(q, sigma, steps):
    event = events.SelfComposedDpEvent(sampled(q, sigma), steps)
    deltas = np.geomspace(1e-40, 0.9, 80)[::-1]
    found = epsilon_profile(event, deltas)
    for place in range(0, 80, 11):
        single = epsilon(event, delta=float(deltas[place]))
        assert found.lower[place] <= single.upper
        assert single.lower <= found.upper[place]
    assert np.all(found.upper - found.lower <= 1e-8 * found.upper)
    # Both ends are proved at that very delta.
    for place in (3, 40, 79):
        target = float(deltas[place])
        assert delta(event, epsilon=float(found.upper[place])).lower <= target
        if found.lower[place] > 0:
            assert delta(event, epsilon=float(found.lower[place])).upper >= target


RESPONSES = [events.RandomizedResponseDpEvent(p, k) for p, k in ((0.3, 3), (0.4, 7))]
ALONE = [
    # Infinite losses of a rare event; losses known by their Renyi divergences; laws on two
    # lattices; and two of which each has a compiled contour.
    events.ComposedDpEvent([sampled(0.1, 1.0), events.EpsilonDeltaDpEvent(0.1, 1e-7)]),
    events.SelfComposedDpEvent(events.ExponentialMechanismDpEvent(0.3), 20),
    events.ComposedDpEvent([*RESPONSES, events.DiscreteLaplaceDpEvent(0.2, 1)]),
    events.ComposedDpEvent([sampled(0.1, 1.0), sampled(0.3, 2.0)]),
]


@pytest.mark.slow
@pytest.mark.parametrize("event", ALONE)
def test_profile_of_laws_that_no_contour_holds_alone(event):
    # A profile that left one of them out would claim too little, or never end.
    how = {"neighboring_relation": "replace-one"}
    epsilons = np.array([0.9, 0.0, 0.2, 0.2, 2.5, 40.0])
    profile = privacy_profile(event, epsilons, **how)
    for x, low, high in zip(epsilons, profile.log_lower, profile.log_upper, strict=True):
        single = log_delta(event, epsilon=float(x), **how)
        assert low <= single.upper
        assert single.lower <= high <= single.upper + 2e-6


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("steps", [2, 1386])
def test_a_profile_of_little_noise(steps):
    # Losses near 24_000, of which no quadrature is affordable: a participation is certain to show.
    event = events.dpsgd(sampling_probability=3.8e-5, noise_multiplier=0.00456, steps=steps)
    profile = privacy_profile(event, [0.0, 1.0, 1000.0])
    assert profile.upper == pytest.approx(-math.expm1(steps * math.log1p(-3.8e-5)), rel=1e-9)


def test_a_profile_has_the_ends_of_single_answers_where_they_are_wide():
    event = events.SelfComposedDpEvent(events.ExponentialMechanismDpEvent(0.5), 10)
    epsilons = np.array([0.5, 2.0])
    profile = privacy_profile(event, epsilons)
    singles = [log_delta(event, epsilon=float(each)) for each in epsilons]
    assert profile.log_lower == pytest.approx([single.lower for single in singles], abs=1e-9)
    assert profile.log_upper == pytest.approx([single.upper for single in singles], abs=1e-9)
