"""Exponential mechanisms, each chosen from the past: bounds against brute force and two games."""

import math

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from dpcal import accountants
from dpcal.accountants import events

REPEAT = events.SelfComposedDpEvent


def exponential(epsilon, times):
    return REPEAT(events.ExponentialMechanismDpEvent(epsilon), times)


def one_use(u, length):
    """V_1(u) in closed form: the price of one mechanism at epsilon -u."""
    inner = (math.exp(length / 2) - np.exp(-u / 2)) ** 2 / math.expm1(length)
    return np.where(u <= -length, 0.0, np.where(u < length, inner, -np.expm1(-np.abs(u))))


def by_brute_force(u, length, times, points):
    """V_k(u) by nested search over t, from the closed form; a lower bound, close to the value."""
    if times == 1:
        return one_use(u, length)
    t = np.linspace(0, length, points)
    p = np.expm1(t - length) / math.expm1(-length)
    up, down = (
        by_brute_force(np.add.outer(u, shift), length, times - 1, points)
        for shift in (t, t - length)
    )
    return (p * up + (1 - p) * down).max(axis=-1)


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


@pytest.mark.parametrize("length", [0.05, 1.0, 6.0])
@pytest.mark.parametrize(("times", "points"), [(2, 2001), (3, 301)])
def test_few_mechanisms_cost_as_much_as_by_brute_force(length, times, points):
    for share in (0.0, 0.37, 0.96):
        epsilon = share * times * length
        truth = float(by_brute_force(np.array(-epsilon), length, times, points))
        answer = accountants.delta(exponential(length, times), epsilon=epsilon)
        assert truth <= answer.upper
        assert answer.lower <= truth * (1 + 1e-4)
        assert answer.upper < truth * 1.02
        assert answer.lower > truth * 0.75


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
@pytest.mark.parametrize(("length", "times", "n"), [(0.1, 100, 20), (0.5, 30, 10)])
def test_choosing_from_the_past_costs_no_less_than_one_choice_for_all(length, times, n, share):
    # With one t the number of upper losses is binomial (Dong, Durfee and Rogers 2020, section 4).
    t, heads = share * length, np.arange(times + 1)
    p = math.expm1(t - length) / math.expm1(-length)
    gain = np.maximum(-np.expm1(n * length - (times * (t - length) + heads * length)), 0.0)
    constant = math.fsum(stats.binom.pmf(heads, times, p) * gain)
    answer = accountants.delta(exponential(length, times), epsilon=n * length)
    assert constant <= answer.lower * (1 + 1e-9)


def test_a_hundred_selections_cost_less_than_by_divergences():
    event = exponential(0.1, 100)
    answer = accountants.epsilon(event, delta=1e-6)
    renyi = accountants.epsilon(event, delta=1e-6, accountant="renyi")
    assert renyi > 2.4
    assert answer < 2.255
    assert answer.lower > 2.245
    assert accountants.delta(event, epsilon=answer.upper) <= 1e-6 * (1 + 1e-12)
    assert accountants.delta(event, epsilon=answer.lower).upper >= 1e-6


@pytest.mark.parametrize("length", [1e-3, 0.7])
def test_more_mechanisms_cost_no_less(length):
    answers = [accountants.epsilon(exponential(length, k), delta=1e-5) for k in (1, 2, 3, 20)]
    assert answers == sorted(answers)
    assert all(0 <= answer.lower <= answer.upper for answer in answers)


def test_claims_that_may_fail_are_counted_beside_the_recursion():
    claim = events.EpsilonDeltaDpEvent(0.0, 4e-7)
    event = exponential(0.1, 100)
    both = accountants.epsilon(events.ComposedDpEvent([event, claim]), delta=1e-6)
    alone = accountants.epsilon(event, delta=6e-7)
    assert both == pytest.approx(alone, rel=1e-6)


@pytest.mark.parametrize(
    "event",
    [
        exponential(0.01, 3000),
        exponential(20.0, 3),
        events.ComposedDpEvent([exponential(0.1, 50), events.GaussianDpEvent(2.0)]),
        events.ComposedDpEvent([exponential(0.1, 50), exponential(0.2, 50)]),
    ],
)
def test_other_compositions_have_a_bound_and_the_lower_end_of_one_mechanism(event):
    answer = accountants.epsilon(event, delta=1e-6)
    assert 0.5 * answer < answer.lower <= answer
    assert answer <= accountants.epsilon(event, delta=1e-6, accountant="renyi")


def test_beside_laplace_noise_there_is_the_upper_end_alone():
    event = events.ComposedDpEvent([exponential(0.1, 50), events.LaplaceDpEvent(2.0)])
    answer = accountants.epsilon(event, delta=1e-6)
    assert 0 == answer.lower < answer
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


@pytest.mark.parametrize(("size", "times", "sigma"), [(0.1, 10, 1.0), (1.0, 1, 1.0), (0.5, 5, 2.0)])
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
