"""Inversions of laws with an atom at 0 or with rare jumps: bounds that meet, and that agree."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.characteristic import epsilon_bounds, log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.jumps import Jumps
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian, zero_and_rest


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


def test_atom_and_rest_make_up_the_law():
    loss = FixedBatchGaussian(0.05, 0.8)
    jumps, whole = Jumps([(zero_and_rest(loss), 7)]), Total(((loss, 7),))
    bulk = jumps.bulk
    assert bulk.is_zero
    for c in (0.5, 4.0):
        masses = [math.exp(measure.cumulants([c])[0, 0]) for measure in (bulk, jumps, whole)]
        assert masses[0] + masses[1] == pytest.approx(masses[2], rel=1e-12)
        assert masses[0] == pytest.approx(loss.mass_at_zero**7, rel=1e-12)
        ratios = [measure.line(c).log_ratio(0.3, 40) for measure in (jumps, whole)]
        means = [measure.cumulants([c])[0, 1] for measure in (jumps, whole)]
        t = 0.3 * np.arange(40)
        rest, total = (
            mass * np.exp(ratio + 1j * t * mean)
            for mass, ratio, mean in zip(masses[1:], ratios, means, strict=True)
        )
        np.testing.assert_allclose(rest + masses[0], total, atol=1e-12 * masses[2])


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


def test_epsilon_and_delta_are_inverse():
    for sigma, steps in ((1.0, 300), (0.5, 5000), (10.0, 40)):
        direction = Direction("both", ((FixedBatchGaussian(0.02, sigma), steps),))
        epsilon = epsilon_bounds(direction, math.log(1e-7))
        bounds = log_delta_bounds(direction, epsilon.upper)
        assert bounds.upper == pytest.approx(math.log(1e-7), abs=1e-8)


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


@pytest.mark.parametrize("c", [0.01, 3.0, 2000.0, -0.5])
@pytest.mark.parametrize("first", [1, 60])
def test_the_poles_alone_bound_all_nodes_beyond_a_time(c, first):
    """A law that does not decay: the sum over nodes, and an integral beyond them."""
    step = 0.3
    flat = SimpleNamespace(step=step, c=c, _log_decay=lambda t, _: np.zeros(len(t)))
    bound = math.exp(Contour._remainders(flat, np.array([step * first]), -math.inf)[-1])
    t = step * np.arange(first, 400_000)
    sizes = 1 / np.sqrt((1 + (t / c) ** 2) * (1 + (t / (1 + c)) ** 2))
    further = abs(c) * (1 + c) / (t[-1] + step) / step * (1 - (max(abs(c), 1 + c) / t[-1]) ** 2)
    assert sizes.sum() + further <= bound <= 2 * (sizes.sum() + further) + 1
