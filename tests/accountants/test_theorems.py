"""Where several theorems apply, the smallest bound is taken, and the answer names it."""

import math

import pytest

from dpcal import accountants
from dpcal.accountants import events


def _pure(epsilon, times=1):
    return events.SelfComposedDpEvent(events.EpsilonDeltaDpEvent(epsilon, 0.0), times)


def _best_of_geometric(p, mean):
    """P(best = 1) of a geometric number of runs, each 1 with probability p."""
    return 1 - (1 - p) / mean / (1 - (1 - p) * (1 - 1 / mean))


def _best_of_poisson(p, mean):
    return -math.expm1(-mean * p)


def test_repeating_a_pure_mechanism_stays_pure():
    runs = events.RepeatAndSelectDpEvent(_pure(0.5), 10.0, 1.0)
    answer = accountants.epsilon(runs, delta=1e-6, accountant="renyi")
    # (2 + shape) epsilon, which no finite Renyi order reaches.
    assert answer.method == "support"
    assert answer == pytest.approx(1.5, rel=1e-12)
    heads = 1 / (1 + math.exp(-0.5))
    truth = math.log(_best_of_geometric(heads, 10.0) / _best_of_geometric(1 - heads, 10.0))
    other = (1 - _best_of_geometric(1 - heads, 10.0)) / (1 - _best_of_geometric(heads, 10.0))
    assert max(truth, math.log(other)) <= answer


def test_poisson_repetition_of_a_pure_mechanism():
    runs = events.RepeatAndSelectDpEvent(_pure(0.5), 10.0, math.inf)
    answer = accountants.epsilon(runs, delta=1e-6, accountant="renyi")
    assert answer.method == "support"
    # epsilon + mean tanh(epsilon / 2), by the same theorem at infinite order.
    assert answer == pytest.approx(0.5 + 10 * math.tanh(0.25), rel=1e-12)
    heads = 1 / (1 + math.exp(-0.5))
    low, high = (math.exp(-10 * p) - math.exp(-10) for p in (heads, 1 - heads))
    ratio = _best_of_poisson(heads, 10.0) / _best_of_poisson(1 - heads, 10.0)
    assert max(math.log(high / low), math.log(ratio)) <= answer


def test_the_renyi_bound_where_it_is_smaller_than_the_support():
    runs = events.RepeatAndSelectDpEvent(_pure(1e-3), 2.0, 1.0)
    many = events.SelfComposedDpEvent(runs, 10_000)
    answer = accountants.epsilon(many, delta=1e-6, accountant="renyi")
    assert answer.method.startswith("Renyi order")
    assert answer < 10_000 * 3e-3


@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_optimal_composition_of_pure_claims_is_below_renyi_and_basic(epsilon):
    answer = accountants.epsilon(_pure(epsilon, 20), delta=1e-6)
    assert answer.method == "convolution"
    renyi = accountants.epsilon(_pure(epsilon, 20), delta=1e-6, accountant="renyi")
    assert answer <= renyi <= 20 * epsilon * (1 + 1e-12)
    # Binary randomized response, by the binomial law.
    heads = 1 / (1 + math.exp(-epsilon))
    delta = sum(
        math.comb(20, k)
        * heads**k
        * (1 - heads) ** (20 - k)
        * max(0.0, -math.expm1(float(answer) - (2 * k - 20) * epsilon))
        for k in range(21)
    )
    assert delta <= 1e-6 * (1 + 1e-9)


def test_bounded_range_takes_the_smaller_of_pair_and_divergences():
    event = events.SelfComposedDpEvent(events.ExponentialMechanismDpEvent(0.1), 100)
    answer = accountants.epsilon(event, delta=1e-6)
    renyi = accountants.epsilon(event, delta=1e-6, accountant="renyi")
    assert answer <= renyi
    assert answer.method == renyi.method if answer == renyi else answer.method
    one = accountants.epsilon(events.ExponentialMechanismDpEvent(1.0), delta=1e-6)
    # The pair's closed form, (sqrt(E) - sqrt(x))^2 / (E - 1) at x = exp(epsilon).
    x = math.exp(float(one))
    assert (math.sqrt(math.e) - math.sqrt(x)) ** 2 / (math.e - 1) <= 1e-6 * (1 + 1e-9)
