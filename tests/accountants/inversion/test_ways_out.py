"""Ways of inverting a law where they end or meet: at the support, beyond doubles, at a kink."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from dpcal import accountants
from dpcal.accountants import characteristic, events
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.bounded_range import epsilon_by_recursion, log_delta_by_recursion
from dpcal.accountants.inversion.saddle import increasing_root
from dpcal.accountants.losses.laplace import BoundedRange
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian


def test_the_recursion_ends_with_the_largest_loss():
    """Four losses of at most 1/2 are at most 2: delta is 0 there, and no grid of it is read."""
    direction = Direction("remove", ((BoundedRange(0.5), 4),))
    assert log_delta_by_recursion(direction, 1.99).upper < -20
    for epsilon in (2.0, 3.0):
        assert log_delta_by_recursion(direction, epsilon) is None
    total_variation = log_delta_by_recursion(direction, 0.0)
    for log_delta in (total_variation.upper + 1e-6, -1e-9):
        found = epsilon_by_recursion(direction, log_delta, 2.0)
        assert (found.lower, found.upper) == (0.0, 0.0)
    assert epsilon_by_recursion(direction, total_variation.lower - 1e-2, 2.0).upper > 0


def test_a_record_that_is_hardly_ever_sampled_costs_nothing():
    rare = Direction("remove", ((SampledGaussian(1e-9, 1.0, "remove"), 100),))
    found = characteristic.finite_epsilon(rare, math.log(1e-6))
    assert (found.lower, found.upper, found.method) == (0.0, 0.0, "sampling")


@pytest.mark.slow
def test_many_rare_losses_cost_nothing_where_delta_is_met_at_zero():
    """Forty losses with the saddle's epsilon at 0: there is nothing to the left to be sought."""
    steps = [
        events.dpsgd(sampling_probability=2e-8, noise_multiplier=float(sigma), steps=4_000_000)
        for sigma in np.linspace(0.43, 4.3, 40)
    ]
    event = events.ComposedDpEvent(steps)
    at_zero = accountants.log_delta(event, epsilon=0.0)
    for target in (-1.0, -3.0, at_zero.upper):
        assert accountants.epsilon(event, delta=math.exp(target) * (1 + 1e-12)) == 0.0
    assert accountants.epsilon(event, delta=math.exp(at_zero.lower) / 2).upper > 0.0


def test_a_participation_that_cannot_be_missed_costs_its_probability():
    # The loss of a step that samples the record is 1250, give or take 50, against epsilon = 50.
    event = events.dpsgd(sampling_probability=1e-6, noise_multiplier=0.02, steps=10**6)
    answer = accountants.log_delta(event, epsilon=50.0)
    assert answer.upper == pytest.approx(math.log(-math.expm1(1e6 * math.log1p(-1e-6))), abs=1e-12)
    assert answer.upper - answer.lower < 1e-8


def _rare(sigma):
    return events.PoissonSampledDpEvent(1e-4, events.GaussianDpEvent(sigma))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "sigma", "count"),
    [(events.LaplaceDpEvent, 10.0, 25), (_rare, 0.8, 25), (_rare, 0.8, 200)],
)
def test_steps_that_hardly_differ_cost_as_much_as_equal_ones(step, sigma, count):
    distinct = [step(sigma * (1 + 1e-13 * i)) for i in range(count)]
    found = accountants.epsilon(events.ComposedDpEvent(distinct), delta=1e-6)
    equal = accountants.epsilon(events.SelfComposedDpEvent(step(sigma), count), delta=1e-6)
    assert found.upper - found.lower < 1e-6 * found.upper
    assert found.lower <= equal.upper
    assert equal.lower <= found.upper * (1 + 1e-8)


def test_a_bulk_that_decides_is_priced_to_the_last_digit():
    # Steps that hardly ever see the record: delta is that of the bulk, and the saddle of
    # the whole law is that of jumps with a probability of exp(-1000).
    direction = Direction("remove", ((SampledGaussian(8.3e-8, 53.6, "remove"), 62_781),))
    bounds = characteristic.epsilon_bounds(direction, math.log(3e-11))
    assert bounds.upper - bounds.lower < 1e-9 * bounds.upper
    # The bulk is a sum of q (exp(u) - 1), nearly Gaussian: its delta by central limit, to 5%.
    deviation = 8.3e-8 * math.sqrt(62_781 * math.expm1(53.6**-2))
    a = bounds.upper / deviation
    with mpmath.workdps(20):
        tail = mpmath.npdf(a) - a * mpmath.ncdf(-a)
    assert float(deviation * tail) == pytest.approx(3e-11, rel=0.05)


def test_a_search_finds_a_kink_in_few_evaluations():
    asked = []

    def equation(c):
        # The derivative of log(exp(1e-3 c) + exp(1e3 (c - 5e4))) - c.
        asked.append(c)
        z = 1e3 * (c - 5e4) - 1e-3 * c
        share = float(expit(z))
        curvature = 1e6 * share * (1 - share)
        return 1e3 * share + 1e-3 * (1 - share) - 1, curvature, 1e-3 * c + np.logaddexp(0, z) - c

    root = increasing_root(equation, 8.0)
    assert root == pytest.approx(5e4 * (1 + 1e-6) - 6.9e-3, abs=1e-3)
    # Halving alone takes 24 evaluations from the first bracket, whose ends have a ratio of four.
    assert len(asked) < 18


def test_rare_jumps_beside_a_bulk():
    """At the saddle every wider tilt is dominated by jumps; the bounds meet all the same."""
    batch = events.SampledWithoutReplacementDpEvent(10_000, 50, events.GaussianDpEvent(6.0))
    how = {"delta": 1e-6, "neighboring_relation": "replace-one"}
    answer, more = (
        accountants.epsilon(events.SelfComposedDpEvent(batch, steps), **how) for steps in (500, 510)
    )
    assert answer.upper - answer.lower < 1e-9
    assert answer < more < 1.02 * answer
