"""A replaced record of draws with replacement, at deltas of rare numbers of draws."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.losses.gaussian import log_gaussian_delta


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "about", "loss"), [(130.0, 1e-20, 1e-6), (200.0, 1e-25, 1.0)])
def test_a_replaced_record_of_draws_has_a_price_at_tiny_deltas(epsilon, about, loss):
    """By how often it is drawn, in closed form; numbers of a chance below 1e-18 count, too."""
    size, batch, sigma, way = 10_000, 100, 1.0, "replace-one"
    drawn = -math.expm1(batch * math.log1p(-1 / size))
    shifted = epsilon - math.log(drawn)
    terms = binom.logpmf(np.arange(1, 40), batch, 1 / size)
    terms += [log_gaussian_delta(shifted, 2 * k / sigma)[0] for k in range(1, 40)]
    exact = float(np.exp(terms).sum())
    assert exact < about
    event = events.SampledWithReplacementDpEvent(size, batch, events.GaussianDpEvent(sigma))
    found = accountants.delta(event, epsilon=epsilon, neighboring_relation=way)
    assert exact * (1 - 1e-6) <= found.upper < exact * (1 + loss)
    assert found.lower <= exact
    back = accountants.epsilon(event, delta=exact, neighboring_relation=way)
    assert back.lower <= epsilon <= back.upper * (1 + 1e-9)
    assert back.upper < epsilon * 1.03
