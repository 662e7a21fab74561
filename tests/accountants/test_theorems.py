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
    """P(best = 1) of a Poisson number of runs."""
    return -math.expm1(-mean * p)


@pytest.mark.parametrize(
    ("shape", "published", "best"),
    [
        # (2 + shape) epsilon, which no finite Renyi order reaches.
        (1.0, 1.5, _best_of_geometric),
        # epsilon + mean tanh(epsilon / 2), by the same theorem at infinite order.
        (math.inf, 0.5 + 10 * math.tanh(0.25), _best_of_poisson),
    ],
)
def test_repeating_a_pure_mechanism_stays_pure(shape, published, best):
    runs = events.RepeatAndSelectDpEvent(_pure(0.5), 10.0, shape)
    answer = accountants.epsilon(runs, delta=1e-6, accountant="renyi")
    assert answer.method == "support"
    assert answer == pytest.approx(published, rel=1e-12)
    heads = 1 / (1 + math.exp(-0.5))
    high, low = best(heads, 10.0), best(1 - heads, 10.0)
    none = math.exp(-10.0) if shape == math.inf else 0.0
    assert max(math.log(high / low), math.log((1 - none - low) / (1 - none - high))) <= answer


def test_the_renyi_bound_where_it_is_smaller_than_the_support():
    runs = events.RepeatAndSelectDpEvent(_pure(1e-3), 2.0, 1.0)
    many = events.SelfComposedDpEvent(runs, 10_000)
    answer = accountants.epsilon(many, delta=1e-6, accountant="renyi")
    assert answer.method.startswith("Renyi order")
    assert answer < 10_000 * 3e-3
