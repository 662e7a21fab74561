"""Equal events cost the same, and one more answer never costs less: 132 random pairs, or 2,010."""

import numpy as np
import pytest
from contracts._identities import KINDS, pairs, wrong
from scipy.special import logsumexp

from dpcal._ext.question import moments
from dpcal.accountants import epsilon, events, log_delta
from dpcal.accountants.losses.base import Points

S = events.SelfComposedDpEvent


# Of these, a pair takes about a second; of the others, some hundredths.
DEAR, SEEDS = ("unequal", "beside another", "order"), {"beside another": 3, "one and two uses": 3}


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [False, pytest.param(True, marks=pytest.mark.study)])
def test_random_pairs(kind, more):
    count = (120 if more else 4) if kind in DEAR else (275 if more else 20)
    seed = 7 if more else SEEDS.get(kind, 2026)
    assert [found for pair in pairs(count, seed, names=(kind,)) if (found := wrong(pair))] == []


@pytest.mark.parametrize(("many", "few"), [(0.9, 0.1), (0.7, 0.3)])
def test_groups_whose_probabilities_add_up_to_one_but_for_rounding(many, few):
    """They add up to 1 + 2.8e-17 and 1 - 5.6e-17, and a thousand epochs multiply that."""
    batches = round(10 * many)
    near = 5.0 * (1 + 1e-12)
    groups = (5.0, batches, many), (near, 10 - batches, few)
    unequal = S(events.UnequalAllocationDpEvent(groups), 1000)
    least, most = (S(events.RandomAllocationDpEvent(x, 10), 1000) for x in (near, 5.0))
    for delta in (1e-8, 1e-13):
        found = epsilon(unequal, delta=delta)
        assert found.upper >= epsilon(least, delta=delta).lower
        assert found.lower <= epsilon(most, delta=delta).upper
    found = log_delta(unequal, epsilon=14.5)
    assert found.upper >= log_delta(least, epsilon=14.5).lower
    assert found.lower <= log_delta(most, epsilon=14.5).upper
    assert found.upper - found.lower < 1e-8


def test_a_lower_end_at_the_floor_of_a_delta():
    """Delta is convex in exp(epsilon), and there is no jump at 1e-300, which stands for tails."""
    noise = events.DiscreteGaussianDpEvent(1.466347939126927, 2)
    event = events.PoissonSampledDpEvent(0.8291858172865268, noise)
    asked = {"neighboring_relation": "replace-one"}
    at, above = (epsilon(event, delta=delta, **asked) for delta in (1e-300, 2e-300))
    # In 60 digits.
    assert at.lower <= 52.7385 <= at.upper
    assert above.upper - 1e-9 <= at.upper
    # A claim's own delta is one, at which its epsilon is exact.
    claim = epsilon(events.EpsilonDeltaDpEvent(1.0, 1e-300), delta=1e-300)
    assert (claim.lower, claim.upper) == (claim.upper, 1.0)


@pytest.mark.parametrize("size", [600.0, 707.0, 709.0, 1911.37, 5000.0, 1e5])
@pytest.mark.parametrize("excess", [-0.5, -0.3700516, -0.2, -0.01, 0.01, 0.3])
def test_moments_of_large_losses(size, excess):
    """No product of exponentials that are out of range is taken for 1."""
    values = np.array([-size, -size / 3, size / 3, size])
    logs = np.array([0.0, -size / 3, -2 * size / 3, -size]) - 20 * np.array([0.0, 1, 1, 0])
    logs -= logsumexp(logs)
    exponents = logs + (1 + excess) * values
    points = Points(values, logs + values, np.abs(values), np.abs(logs))
    found = moments(points.real_rows(0.0), np.array([excess]))[0]
    truth = logsumexp(exponents)
    assert found[0] == pytest.approx(truth, rel=1e-9, abs=1e-9 * size)
    assert found[1] == pytest.approx(np.exp(exponents - truth) @ values, rel=1e-8, abs=1e-8 * size)


@pytest.mark.slow
def test_loud_answers_beside_a_quiet_one():
    """Each of 25 answers tells a record apart, but for a probability of exp(-637)."""
    loud = S(events.DiscreteLaplaceDpEvent(637.1245283637274, 3), 25)
    both = events.ComposedDpEvent([loud, events.LaplaceDpEvent(0.580008338411461)])
    found = epsilon(both, delta=1e-280)
    assert found.upper >= epsilon(loud, delta=1e-280).lower > 47_000
