"""One use of a mechanism never costs more than two, whatever finds the answers."""

import math
import random

import pytest

from dpcal.accountants import epsilon, events
from dpcal.errors import UnsupportedEvent

RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")


def mechanism(draw):
    """Return a random mechanism of a random family."""
    scale = math.exp(draw.uniform(math.log(0.3), math.log(30)))
    return draw.choice(
        [
            events.GaussianDpEvent(scale),
            events.LaplaceDpEvent(scale),
            events.DiscreteGaussianDpEvent(scale, draw.choice([1, 2])),
            events.DiscreteLaplaceDpEvent(1 / scale, draw.choice([1, 3])),
            events.ExponentialMechanismDpEvent(1 / scale),
            events.EpsilonDeltaDpEvent(1 / scale, draw.choice([0.0, 1e-9])),
            events.RandomizedResponseDpEvent(draw.uniform(0.1, 0.9), draw.choice([2, 10])),
        ]
    )


def on_records(draw):
    """Return a random mechanism on everyone, on a sample, or beside another."""
    one, rate = mechanism(draw), math.exp(draw.uniform(math.log(1e-5), math.log(0.5)))
    return draw.choice(
        [
            one,
            events.PoissonSampledDpEvent(rate, one),
            events.SampledWithoutReplacementDpEvent(1000, draw.choice([1, 10, 300]), one),
            events.ComposedDpEvent([one, mechanism(draw)]),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count"), [(1, 8), pytest.param(2, 300, marks=pytest.mark.study)])
def test_one_use_costs_no_more_than_two(seed, count):
    draw, priced = random.Random(seed), 0
    while priced < count:
        event, relation = on_records(draw), draw.choice(RELATIONS)
        how = {"delta": 10.0 ** draw.uniform(-12, -2), "neighboring_relation": relation}
        try:
            once = epsilon(event, **how)
        except UnsupportedEvent:
            continue
        twice = epsilon(events.SelfComposedDpEvent(event, 2), **how)
        assert once.upper <= twice.upper * (1 + 1e-12), (event, how)
        assert once.lower <= twice.upper
        priced += 1
