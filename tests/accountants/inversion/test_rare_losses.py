"""Layers of a law of rare large losses: against closed forms, brute force and each other."""

import math

import numpy as np
import pytest
from scipy.special import expit, log_ndtr

from dpcal import accountants
from dpcal._ext.contour import second_order_sums
from dpcal.accountants import characteristic, events
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.jumps import Jumps
from dpcal.accountants.inversion.layered import invert_in_layers
from dpcal.accountants.inversion.rare_losses import Layers
from dpcal.accountants.inversion.saddle import increasing_root
from dpcal.accountants.inversion.tilts import epsilon_estimate, saddle_tilt
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.cuts import loss_at, loss_cut
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.losses.truncation import below, between
from dpcal.accountants.mechanisms.decompose import decompose


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
@pytest.mark.parametrize(
    ("q", "sigma", "epsilon"),
    [
        (1e-5, 1.0, 1e-4),
        (1e-5, 1.0, 3e-2),
        (2e-5, 1.9, 0.13),
        (1e-7, 0.5, 2.0),
        (3e-4, 0.7, 1e-6),
        (1e-3, 0.3, 0.5),
    ],
)
def test_two_steps_agree_with_brute_force(q, sigma, epsilon):
    parts = ((SampledGaussian(q, sigma, "remove"), 2),)
    truth = two_steps(q, sigma, epsilon)
    bounds = layered(parts, epsilon, truth)
    assert bounds.upper - bounds.lower < 1e-4
    assert bounds.lower - 1e-7 < truth < bounds.upper + 1e-7


@pytest.mark.slow
def test_layers_and_whole_contours_agree():
    # Wherever the law has a contour of its own as well, the intervals meet.
    rng = np.random.default_rng(8)
    compared = 0
    while compared < 25:
        q, sigma = 10 ** rng.uniform(-6, -0.5), 10 ** rng.uniform(-0.5, 1)
        parts = ((SampledGaussian(q, sigma, "remove"), int(10 ** rng.uniform(0.5, 6))),)
        total, log_delta = Total(parts), -(10 ** rng.uniform(0, 2))
        try:
            epsilon = epsilon_estimate(total, log_delta)
            if epsilon <= 0:
                continue
            contour = Contour(total, saddle_tilt(total, epsilon), epsilon, smooth=False)
            whole = contour.log_bounds(epsilon)
            layers = layered(parts, epsilon, log_delta)
        except OutOfReach:
            continue
        compared += 1
        assert layers.lower <= whole.upper
        assert whole.lower <= layers.upper


def test_rare_jumps_are_priced_on_both_sides():
    # Every tilt of these laws sees no jump or the largest: Renyi's epsilon is 14 times too large.
    direction = Direction("remove", ((SampledGaussian(1.9e-5, 1.94, "remove"), 24),))
    bounds = characteristic.epsilon_bounds(direction, -160.0)
    assert bounds.method == "layers"
    assert bounds.upper - bounds.lower < 1e-6 * bounds.upper
    # One jump at least: what it costs alone, 24 times over, is a little less.
    single, _ = direction.parts[0][0].log_delta(bounds.upper)
    assert -160.1 < single + math.log(24) < -160.0 + 1e-6


@pytest.mark.parametrize(("q", "sigma"), [(1e-6, 1.0), (1e-3, 3.0), (1e-8, 0.2)])
def test_what_is_below_and_what_is_between_add_up(q, sigma):
    loss = SampledGaussian(q, sigma, "remove")
    for level in (10 * q, 1000 * q, 0.3, 4.0):
        low, high = (below(loss, loss_cut(loss, at)) for at in (level, 4 * level))
        assert math.isclose(loss_at(loss, low.upper.position), level, rel_tol=1e-9)
        for c in (0.0, 0.5, 3.0, 1 / level):
            parts = between(low, high)
            small, large = parts.bulk.cumulants([c]), parts.jumps.cumulants([c])
            sums = np.logaddexp(small[0, 0], large[0, 0])
            assert sums == pytest.approx(high.cumulants([c])[0, 0], abs=2e-14, rel=1e-11)


def test_jumps_too_rare_for_doubles_keep_their_size():
    # One jump is all there is: its mass is T times that of one step's, however small.
    loss = SampledGaussian(1e-9, 8.0, "remove")
    layer = between(*(below(loss, loss_cut(loss, at)) for at in (0.2, 0.9)))
    jumps = Jumps([(layer, 1000)])
    small, large = layer.bulk.cumulants([2.0]), layer.jumps.cumulants([2.0])
    expected = math.log(1000) + large[0, 0] + 999 * small[0, 0]
    assert large[0, 0] < -1000
    assert jumps.cumulants([2.0])[0, 0] == pytest.approx(expected, rel=1e-13)
    ratio = jumps.line(2.0).log_ratio(0.5, 40)
    one = layer.jumps.tilt(2.0).log_ratio(0.5, 40)
    rest = layer.bulk.tilt(2.0).log_ratio(0.5, 40)
    assert np.allclose(np.exp(ratio), np.exp(one + 999 * rest), atol=1e-12)


def test_small_phases_are_summed_by_moments():
    rng = np.random.default_rng(0)
    phases = rng.uniform(-0.7, 0.7, 300) + 1j * rng.uniform(0, 0.7, 300)
    weights = rng.normal(size=300) + 1j * rng.normal(size=300)
    s = np.outer(np.arange(50) / 50, phases)
    # exp(i s) - 1 - i s as a series, in which nothing cancels.
    terms, direct = -(s**2) / 2, 0.0
    for order in range(3, 40):
        direct = direct + terms
        terms = terms * 1j * s / order
    found = second_order_sums(phases / 50, weights, 0, 50)
    assert np.allclose(found, direct @ weights, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_a_wide_answer_says_so():
    wide = events.dpsgd(sampling_probability=1.6e-7, noise_multiplier=1.5, steps=11_000)
    answer = accountants.epsilon(wide, delta=3.5e-17)
    width = (answer.upper - answer.lower) / answer.upper
    assert ("relative width" in answer.method) == (width >= 1e-5)
    step = events.dpsgd(sampling_probability=7.3e-7, noise_multiplier=2.63, steps=125)
    answer = accountants.log_delta(step, epsilon=0.145)
    width = answer.upper - answer.lower
    assert ("relative width" in answer.method) == (width >= 1e-5)


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


def test_moments_of_many_losses_are_those_of_each():
    losses = [SampledGaussian(q, sigma, "remove") for q, sigma in ((1e-6, 0.4), (0.1, 2.0))]
    parts = (*((loss, 7) for loss in losses), (Gaussian(3.0), 2))
    c = np.array([-0.4, 1e-3, 2.5, 60.0])
    alone = sum(times * loss.cumulants(c)[:, :3] for loss, times in parts)
    np.testing.assert_allclose(Total(parts).cumulants(c), alone, rtol=1e-14)
    layers = Layers(parts, -40.0)
    together = layers.between(1).cumulants([3.0])[0]
    # The parts below two cuts differ by the layer between them.
    high, low = (layers.below(index).cumulants([3.0])[0, 0] for index in (0, 1))
    assert together[0] == pytest.approx(high + math.log(-math.expm1(low - high)), rel=1e-9)


def test_a_search_finds_a_kink_in_few_evaluations():
    asked = []

    def equation(c):
        # The derivative of log(exp(1e-3 c) + exp(1e3 (c - 5e4))) - c.
        asked.append(c)
        z = 1e3 * (c - 5e4) - 1e-3 * c
        share = float(expit(z))
        curvature = 1e6 * share * (1 - share)
        return 1e3 * share + 1e-3 * (1 - share) - 1, curvature, 1e-3 * c + np.logaddexp(0, z) - c

    root = increasing_root(equation, 0.0, math.inf, 8.0)
    assert root == pytest.approx(5e4 * (1 + 1e-6) - 6.9e-3, abs=1e-3)
    # Halving alone takes 24 evaluations from the first bracket, whose ends have a ratio of four.
    assert len(asked) < 18


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "log_delta"), [(0.2, 0.5, 7, -500.0), (0.01, 1.0, 900, -14.0)]
)
def test_a_direction_that_is_left_out_needs_no_more(q, sigma, steps, log_delta):
    directions = decompose(
        events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=steps),
        "add-or-remove-one",
    ).directions
    worst = characteristic.worst_epsilon_bounds(directions, log_delta)
    each = [characteristic.epsilon_bounds(item, log_delta) for item in directions]
    assert worst.upper == max(item.upper for item in each)
    assert worst.lower == max(item.lower for item in each)
