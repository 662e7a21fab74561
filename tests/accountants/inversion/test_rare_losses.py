"""Layers of a law of rare large losses: against closed forms, brute force and each other."""

import math

import numpy as np
import pytest
from _integrals import POINTS
from scipy.special import log_ndtr

from dpcal.accountants import characteristic
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.layers.layered import invert_in_layers
from dpcal.accountants.inversion.layers.rare_losses import Layers
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian


def layered(parts, epsilon, size):
    """Bounds on log delta from layers around a delta of this size."""
    return invert_in_layers(Layers(parts, size - 37.0), epsilon, size).log_bounds(epsilon)


@pytest.mark.slow
def test_layers_of_one_step_hold_its_closed_form():
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(25):
        q, sigma = 10 ** rng.uniform(-9, -0.1), 10 ** rng.uniform(-1, 0.7)
        loss, epsilon = SampledGaussian(q, sigma, "remove"), 10 ** rng.uniform(-6, 1.3)
        truth, error = loss.log_delta(epsilon)
        if truth < -300:
            continue
        try:
            bounds = layered(((loss, 1),), epsilon, truth)
        except OutOfReach:
            continue
        assert bounds.lower <= truth + error
        assert bounds.upper >= truth - error
        held += bounds.upper - bounds.lower < 1e-6
    assert held >= 10


def test_cuts_that_are_close_are_one():
    # The loss of a record that is nearly always sampled is no exponential of the noise: cuts at
    # losses four times apart would overlap, and the layers add up to more than the law.
    loss = SampledGaussian(0.7555974970482255, 0.12393886258140152, "remove")
    truth, error = loss.log_delta(1.0469341855232856e-4)
    bounds = layered(((loss, 1),), 1.0469341855232856e-4, truth)
    assert bounds.upper - bounds.lower < 1e-11
    assert bounds.lower - error <= truth <= bounds.upper + error


def two_steps(q, sigma, epsilon):
    """Log delta of two steps: the closed form of the second, averaged over the first's output."""
    # The integrand is a density times a smooth function: the rule converges geometrically.
    far = math.sqrt(2 * 400.0)
    x = np.linspace(-12 * sigma, 1 + far * sigma, 400_001)
    u = (2 * x - 1) / (2 * sigma**2)
    left = epsilon - np.log1p(q * np.expm1(np.minimum(u, 600.0)))
    log_density = np.logaddexp(
        math.log1p(-q) - 0.5 * (x / sigma) ** 2, math.log(q) - 0.5 * ((x - 1) / sigma) ** 2
    )
    inner = np.where(left <= math.log1p(-q), np.log(-np.expm1(np.minimum(left, -1e-300))), 0.0)
    some = left > math.log1p(-q)
    shifted = np.log1p(np.expm1(left[some]) / q)
    a, b = shifted * sigma - 0.5 / sigma, shifted * sigma + 0.5 / sigma
    # q (Phi(-a) - exp(u) Phi(-b)); where the two cancel, to fewer digits.
    first, second = log_ndtr(-a), shifted + log_ndtr(-b)
    inner[some] = math.log(q) + first + np.log(-np.expm1(np.minimum(second - first, -1e-16)))
    terms = log_density + inner
    total = np.logaddexp.reduce(terms) + math.log(x[1] - x[0])
    return float(total - math.log(sigma * math.sqrt(2 * math.pi)))


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma", "epsilon"), POINTS["two_rare_steps"])
def test_two_steps_agree_with_brute_force(q, sigma, epsilon):
    parts = ((SampledGaussian(q, sigma, "remove"), 2),)
    truth = two_steps(q, sigma, epsilon)
    bounds = layered(parts, epsilon, truth)
    assert bounds.upper - bounds.lower < 1e-4
    assert bounds.lower - 1e-7 < truth < bounds.upper + 1e-7


def test_rare_jumps_are_priced_on_both_sides():
    # Every tilt of these laws sees no jump or the largest: Renyi's epsilon is 14 times too large.
    direction = Direction("remove", ((SampledGaussian(1.9e-5, 1.94, "remove"), 24),))
    bounds = characteristic.epsilon_bounds(direction, -160.0)
    assert bounds.method == "layers"
    assert bounds.upper - bounds.lower < 1e-6 * bounds.upper
    # One jump at least: what it costs alone, 24 times over, is a little less.
    single, _ = direction.parts[0][0].log_delta(bounds.upper)
    assert -160.1 < single + math.log(24) < -160.0 + 1e-6


@pytest.mark.slow
def test_a_delta_below_its_own_rounding_has_an_upper_end():
    loss = SampledGaussian(5e-8, 4.738173755939964, "remove")
    direction = Direction("remove", ((loss, 51),))
    for epsilon in (1.863, 1.95):
        single, _ = loss.log_delta(epsilon)
        bounds = characteristic.log_delta_bounds(direction, epsilon)
        assert single < bounds.upper < single + math.log(51) + 60
    loss = SampledGaussian(4.1007708662480444e-09, 7.888805968948533, "remove")
    bounds = characteristic.epsilon_bounds(Direction("remove", ((loss, 9),)), -318.0679262030678)
    # At the upper end one step alone meets the target; a tenth before it, nine deltas do not.
    single, both = (loss.log_delta(epsilon)[0] for epsilon in (bounds.upper, bounds.upper / 1.1))
    assert single < -318.0679262030678 < both + math.log(9)
