"""Exponential mechanisms, each chosen from the past: bounds against brute force and two games."""

import math

import numpy as np
import pytest
from contracts._events import WRITTEN, made
from flint import arb, ctx
from scipy import stats

from dpcal import accountants
from dpcal.accountants import events

REPEAT = events.SelfComposedDpEvent


def exponential(epsilon, times):
    return REPEAT(events.ExponentialMechanismDpEvent(epsilon), times)


def on_lattice(length, times, steps, wider):
    """V_k at -n length, n = 0, ..., k - 1, of an adversary on a lattice, without truncation.

    With ``wider`` = 1 the loss lies in one more step, so that the adversary dominates the real one.
    """
    width = steps + wider
    h = length / steps
    u = h * np.arange(-times * width, times * width + 1)
    values = np.maximum(-np.expm1(-u), 0.0)
    t = h * np.arange(width + 1)
    p = np.expm1(t - h * width) / math.expm1(-h * width)
    for _ in range(times):
        longer = np.concatenate([np.zeros(width), values, np.ones(width)])
        shifts = (
            p[j] * longer[width + j : width + j + len(u)] + (1 - p[j]) * longer[j : j + len(u)]
            for j in range(width + 1)
        )
        values = np.maximum.reduce(list(shifts))
    return values[times * width - steps * np.arange(times)]


@pytest.mark.slow
@pytest.mark.parametrize(("length", "times"), [(0.02, 30), (0.4, 30), (1.5, 8)])
def test_bounds_lie_between_the_games_of_two_adversaries(length, times):
    low, high = (on_lattice(length, times, 24, wider) for wider in (0, 1))
    for n in range(0, times, 3):
        if low[n] < 1e-200:
            continue
        answer = accountants.delta(exponential(length, times), epsilon=n * length)
        assert low[n] <= answer.upper * (1 + 1e-12)
        assert answer.lower <= high[n] * (1 + 1e-12)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.625])
@pytest.mark.parametrize(("length", "times", "n"), [(0.1, 100, 20), (0.5, 30, 10), (0.5, 100, 30)])
def test_choosing_from_the_past_costs_no_less_than_one_choice_for_all(length, times, n, share):
    # With one t the number of upper losses is binomial (Dong, Durfee and Rogers 2020, section 4).
    t, heads = share * length, np.arange(times + 1)
    p = math.expm1(t - length) / math.expm1(-length)
    gain = np.maximum(-np.expm1(n * length - (times * (t - length) + heads * length)), 0.0)
    constant = math.fsum(stats.binom.pmf(heads, times, p) * gain)
    answer = accountants.delta(exponential(length, times), epsilon=n * length)
    assert constant <= answer.lower * (1 + 1e-9)


def test_claims_that_may_fail_are_counted_beside_the_recursion():
    claim, event = events.EpsilonDeltaDpEvent(0.0, 4e-7), exponential(0.1, 100)
    both = accountants.epsilon(events.ComposedDpEvent([event, claim]), delta=1e-6)
    alone = accountants.epsilon(event, delta=6e-7)
    assert both == pytest.approx(alone, rel=1e-6)
    assert 2.24 < accountants.epsilon(event, delta=1e-6).lower < alone.upper + 0.05 < 2.4


@pytest.mark.parametrize(("event", "least"), WRITTEN["choices"])
def test_other_compositions_have_a_bound_and_the_lower_end_of_one_mechanism(event, least):
    event = made(event)
    answer = accountants.epsilon(event, delta=1e-6)
    assert least * answer <= answer.lower <= answer
    assert answer <= accountants.epsilon(event, delta=1e-6, accountant="renyi")


@pytest.mark.parametrize("length", [1e-6, 1e-4, 0.5, 300.0])
@pytest.mark.parametrize("share", [0.9, 0.99, 0.997])
def test_one_mechanism_of_any_range_is_not_below_its_delta(length, share):
    """Renyi divergences of orders near 10^6 had lost the digits that decide it."""
    at, event = share * length, events.ExponentialMechanismDpEvent(length)
    with ctx.workprec(256):
        gap = (arb(at) - arb(length)) / 2
        exact = gap.expm1() ** 2 / -(-arb(length)).expm1()
        for accountant in ("auto", "renyi"):
            found = accountants.delta(event, epsilon=at, accountant=accountant)
            assert arb(found.lower) <= exact <= arb(found.upper)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "times", "sigma"), [(0.1, 10, 1.0), (1.0, 1, 1.0)])
def test_beside_others_one_mechanism_gives_a_lower_end(size, times, sigma):
    gaussian = events.GaussianDpEvent(sigma)

    def ask(mechanism, **options):
        event = events.ComposedDpEvent([events.SelfComposedDpEvent(mechanism, times), gaussian])
        return accountants.epsilon(event, delta=1e-6, neighboring_relation="replace-one", **options)

    bounds = ask(events.ExponentialMechanismDpEvent(size))
    # Its ratios are exp(size / 2) and exp(-size / 2), within a range of exp(size).
    at_random = 2 / (1 + math.exp(size / 2))
    response = events.RandomizedResponseDpEvent(noise_parameter=at_random, num_buckets=2)
    one = ask(response, accountant="pld", two_sided=True, interval=1e-4)
    assert one.lower - 1e-9 <= bounds.lower <= one.upper
    assert 0 < bounds.lower < bounds.upper < 1.2 * bounds.lower
