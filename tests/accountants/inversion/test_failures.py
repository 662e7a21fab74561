"""Losses that may be infinite, where the target is near the probability of that, or near 1."""

import math

import pytest

from dpcal.accountants.answers import Bounds
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion import failure
from dpcal.accountants.losses.discrete import pure
from dpcal.accountants.losses.failure import LossWithFailure

SUPPORT = pure(2.0).upper


def of_pure(log_delta):
    """Epsilon of the loss of a 2-private mechanism, in closed form.

    delta = (e^2 - e^epsilon) / (1 + e^2).
    """
    gap = math.exp(SUPPORT) - math.exp(log_delta) * (1 + math.exp(SUPPORT))
    found = math.log(gap) if gap > 1 else 0.0
    return Bounds(found * (1 - 1e-12), found * (1 + 1e-12), "closed form")


def epsilon_beyond(infinite, log_delta):
    """Bounds on epsilon of a 2-private mechanism that fails with some probability."""
    direction = Direction("remove", ((LossWithFailure(pure(2.0), infinite), 1),))
    return failure.epsilon(direction, direction, log_delta, lambda _, at: of_pure(at))


@pytest.mark.parametrize("infinite", [1e-9, 1e-3, 0.5])
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5])
def test_a_target_above_the_failure_leaves_its_rest_to_finite_losses(infinite, share):
    target = math.log(infinite + (1 - infinite) * share)
    found = epsilon_beyond(infinite, target)
    truth = of_pure(math.log(share)).upper
    assert found.lower <= truth * (1 + 1e-11) + 1e-11
    assert found.upper >= truth * (1 - 1e-11)
    # The rest of the target is a difference, whose rounding grows as the failure over the rest.
    slack = 1e-9 + 1e-13 * infinite / share
    assert found.upper - found.lower <= slack
    assert found.upper == pytest.approx(truth, rel=slack, abs=slack)


def test_no_epsilon_meets_a_target_below_the_failure():
    found = epsilon_beyond(1e-3, math.log(0.9e-3))
    assert (found.lower, found.upper) == (math.inf, math.inf)


def test_at_the_failure_itself_the_upper_end_is_safe():
    """Whether the target is met is not known in doubles: at most by the largest finite loss."""
    infinite = math.log(-math.expm1(math.log1p(-1e-3)))
    found = epsilon_beyond(1e-3, infinite)
    assert found.upper == math.inf
    assert found.lower <= SUPPORT
    # A target that is the failure after it was rounded leaves nothing to finite losses.
    tried = (infinite - k * 2.0**-53 * abs(infinite) for k in range(4000))
    ends = [epsilon_beyond(1e-3, at) for at in tried]
    assert any(end.lower == SUPPORT for end in ends)
    assert ends[-1].lower == math.inf


def test_a_target_of_one_costs_nothing():
    found = epsilon_beyond(1e-3, 0.0)
    assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize("infinite", [1e-9, 1e-3, 0.5])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 1.9, 3.0])
def test_delta_is_the_failure_and_a_share_of_finite_losses(infinite, epsilon):
    direction = Direction("remove", ((LossWithFailure(pure(2.0), infinite), 1),))
    bounds = log_delta_bounds(direction, epsilon)
    finite = max(0.0, math.exp(2.0) - math.exp(epsilon)) / (1 + math.exp(2.0))
    truth = math.log(infinite + (1 - infinite) * finite)
    assert bounds.lower <= truth + 1e-14
    assert truth - 1e-14 <= bounds.upper <= bounds.lower + 1e-12
