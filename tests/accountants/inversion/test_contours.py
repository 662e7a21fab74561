"""Inversions of laws with an atom at 0 or with rare jumps: bounds that meet, and that agree."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian


def fixed(size, batch, noise_multiplier, steps):
    gaussian = events.GaussianDpEvent(noise_multiplier)
    step = events.SampledWithoutReplacementDpEvent(size, batch, gaussian)
    return events.SelfComposedDpEvent(step, steps)


def two_steps(q, mu, epsilon):
    """delta of two steps by the trapezoid rule: the profile of one, integrated over the other."""

    def profile(alpha):
        below = alpha < 1
        a = 1 + (np.where(below, 1 / alpha, alpha) - 1) / q
        value = q * (ndtr(mu / 2 - np.log(a) / mu) - a * ndtr(-mu / 2 - np.log(a) / mu))
        return np.where(below, 1 - alpha + alpha * value, value)

    x, step = np.linspace(mu / 2, mu / 2 + 14, 400_001, retstep=True)
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    weight = 1 + q * np.expm1(mu * x - mu * mu / 2)
    alpha = math.exp(epsilon)
    terms = density * (weight * profile(alpha / weight) + profile(alpha * weight))
    atom = (1 - q) * math.erf(mu / math.sqrt(8))
    return atom * float(profile(np.array(alpha))) + step * (terms.sum() - terms[0] / 2)


@pytest.mark.slow
@pytest.mark.parametrize(("q", "mu", "epsilon"), [(0.01, 1.0, 0.3), (0.1, 0.5, 0.1), (0.3, 2, 1.5)])
def test_two_steps_agree_with_quadrature(q, mu, epsilon):
    part = FixedBatchGaussian(q, 1 / mu)
    bounds = log_delta_bounds(Direction("both", ((part, 2),)), epsilon)
    expected = math.log(two_steps(q, mu, epsilon))
    assert bounds.lower - 1e-8 <= expected <= bounds.upper + 1e-8
    assert bounds.upper == pytest.approx(expected, abs=1e-3)


def test_rare_jumps_beside_a_bulk():
    """At the saddle every wider tilt is dominated by jumps; the bounds meet all the same."""
    answer = accountants.epsilon(
        fixed(10_000, 50, 6.0, 500), delta=1e-6, neighboring_relation="replace-one"
    )
    assert answer.upper - answer.lower < 1e-9
    more = accountants.epsilon(
        fixed(10_000, 50, 6.0, 510), delta=1e-6, neighboring_relation="replace-one"
    )
    assert answer < more < 1.02 * answer


def test_a_single_use_with_much_noise_costs_less_than_two():
    # The search begins at Renyi's epsilon, 1e6 times too large, where log delta is -2e8 and its
    # closed form has an error of 1e-6.
    once, twice = (
        accountants.epsilon(
            events.dpsgd(sampling_probability=1e-6, noise_multiplier=3000.0, steps=steps),
            delta=1e-12,
        )
        for steps in (1, 2)
    )
    assert 0 < once.lower <= once <= twice
    assert once - once.lower < 1e-9 * once
