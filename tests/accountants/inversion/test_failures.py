"""Losses that may be infinite, where the target is near the probability of that, or near 1."""

import math

import pytest

from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.failure import _epsilon_beyond

SUPPORT = 2.0


def of_pure(log_delta):
    """Epsilon of the loss of a 2-private mechanism, in closed form.

    delta = (e^2 - e^epsilon) / (1 + e^2).
    """
    gap = math.exp(SUPPORT) - math.exp(log_delta) * (1 + math.exp(SUPPORT))
    found = math.log(gap) if gap > 1 else 0.0
    return Bounds(found * (1 - 1e-12), found * (1 + 1e-12), "closed form")


@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("infinite", [1e-9, 1e-3, 0.5])
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5])
def test_a_target_above_the_failure_leaves_its_rest_to_finite_losses(infinite, share, side):
    log_finite = math.log1p(-infinite)
    target = math.log(infinite + (1 - infinite) * share)
    found = _epsilon_beyond(log_finite, target, of_pure, SUPPORT, side)
    truth = of_pure(math.log(share)).upper
    assert found.lower <= truth * (1 + 1e-11) + 1e-11 if side <= 0 else True
    assert found.upper >= truth * (1 - 1e-11) if side >= 0 else True
    # The rest of the target is a difference, whose rounding grows as the failure over the rest.
    slack = 1e-9 + 1e-13 * infinite / share
    assert found.upper - found.lower <= slack
    assert found.upper == pytest.approx(truth, rel=slack, abs=slack)


def test_no_epsilon_meets_a_target_below_the_failure():
    found = _epsilon_beyond(math.log1p(-1e-3), math.log(0.9e-3), of_pure, SUPPORT, 0)
    assert (found.lower, found.upper) == (math.inf, math.inf)


def test_at_the_failure_itself_the_upper_end_is_safe():
    """Whether the target is met is not known in doubles: at most by the largest finite loss."""
    log_finite = math.log1p(-1e-3)
    infinite = math.log(-math.expm1(log_finite))
    found = _epsilon_beyond(log_finite, infinite, of_pure, SUPPORT, 0)
    assert found.upper == math.inf
    assert found.lower <= SUPPORT
    above = _epsilon_beyond(log_finite, infinite, of_pure, SUPPORT, -1)
    assert above.lower <= SUPPORT
    # A target that is the failure after it was rounded leaves nothing to finite losses.
    tried = (infinite - k * 2.0**-53 * abs(infinite) for k in range(4000))
    ends = [_epsilon_beyond(log_finite, at, of_pure, SUPPORT, -1) for at in tried]
    assert any(end.method == "support" and end.upper == SUPPORT for end in ends)
    assert ends[-1].lower == math.inf


def test_a_target_of_one_costs_nothing():
    found = _epsilon_beyond(math.log1p(-1e-3), 0.0, of_pure, SUPPORT, 0)
    assert (found.lower, found.upper) == (0.0, 0.0)
