"""Ways of inverting a law where they end: at the support, beyond doubles, beside another way."""

import math

import numpy as np
import pytest

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.bounded_range import (
    epsilon_by_recursion,
    log_delta_by_recursion,
)
from dpcal.accountants.inversion.parity import epsilon_by_parity, log_delta_by_parity
from dpcal.accountants.inversion.solve import epsilon_on_contours
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.laplace import BoundedRange
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.mechanisms.decompose import decompose


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
    rare = Total(((SampledGaussian(1e-9, 1.0, "remove"), 100),))
    found = epsilon_on_contours(rare, math.log(1e-6))
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


@pytest.mark.parametrize("log_delta", [-3.0, math.log(1e-6)])
def test_both_sides_of_parity_are_in_the_bounds_of_the_direction_itself(log_delta):
    """Epochs beside a Gaussian: contours of the losses of adding tell those of removing."""
    epochs = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(2.0, 10), 20)
    event = events.ComposedDpEvent([epochs, events.GaussianDpEvent(8.0)])
    remove, add = decompose(event, "add-or-remove-one").directions
    found = epsilon_by_parity(remove, log_delta)
    own = epsilon_on_contours(Total(remove.parts), log_delta)
    assert found.lower <= own.upper
    assert own.lower <= found.upper
    assert found.upper - found.lower < 1e-3 * found.upper
    # The contour at the end is another one than that which proved it.
    assert log_delta_by_parity(remove, found.upper).lower <= log_delta
    assert log_delta_by_parity(remove, found.lower).upper >= log_delta
    # An added record's losses do not tell their other; and beyond 20 no digits are left.
    assert epsilon_by_parity(add, log_delta) is None
    assert log_delta_by_parity(remove, 25.0) is None
    assert epsilon_by_parity(remove, -1e9) is None
