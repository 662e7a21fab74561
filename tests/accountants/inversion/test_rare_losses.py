"""Laws of rare large losses below a cut and beyond it: against closed forms and brute force."""

import math

import numpy as np
import pytest
from _integrals import POINTS
from scipy.special import log_ndtr

from dpcal._ext import question
from dpcal.accountants import characteristic, epsilon as epsilon_of, events
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.cut import split
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.below_cut import Cut
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians, replaced_record
from dpcal.accountants.losses.random_choice import RandomChoice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian


def cut(parts, epsilon, size):
    """Bounds on log delta by a cut for a delta of this size."""
    laws, beyond = split(parts, epsilon, size)
    found = question.log_delta(laws, epsilon, True, beyond)
    return (-math.inf, 0.0) if found is None else found[:2]


@pytest.mark.slow
def test_one_step_below_and_beyond_a_cut_has_its_closed_form():
    rng = np.random.default_rng(3)
    held = np.zeros(5)
    for number in range(75):
        q, sigma = 10 ** rng.uniform(-9, -0.1), 10 ** rng.uniform(-1, 0.7)
        epsilon = 10 ** rng.uniform(-6, 1.3)
        batch, twice = (FixedBatchGaussian(q, each) for each in (sigma, sigma / 2))
        weights = (1 - q - q * q / 4, q, q * q / 4)
        loss = [
            SampledGaussian(q, sigma, "remove"),
            batch,
            replaced_record(sampling_probability=q, noise_multiplier=sigma),
            mixture_of_gaussians((0.0, 1.0, 2.0), weights, standard_deviation=sigma)[0],
            RandomChoice(((0.99, batch), (0.01, twice))),
        ][number % 5]
        if (known := loss.log_delta(epsilon)) is None:
            continue
        truth, error = known
        if truth < -60:
            continue
        try:
            lower, upper = cut(((loss, 1),), epsilon, truth)
        except OutOfReach:
            continue
        assert lower <= truth + error
        assert upper >= truth - error
        held[number % 5] += upper - lower < 1e-6
    assert held.min() >= 2


@pytest.mark.parametrize(
    ("q", "sigma", "position", "share"),
    [
        (1e-4, 0.8, 4.9, 0.04),
        (0.02, 2.0, 9.3, 0.1),
        (3e-6, 0.4, 2.4, 0.05),
        (1e-3, 14.7, 80.0, 0.15),
    ],
)
def test_masses_beyond_a_cut_are_integrals(q, sigma, position, share):
    piece = Cut(SampledGaussian(q, sigma, "remove"), position / sigma, share)
    x = np.linspace(-14 * sigma, 14 * sigma + 1, 40_001)
    loss = np.log1p(q * np.expm1((x - 0.5) / sigma**2))
    density = -0.5 * (x / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))
    logs = density + loss + math.log(x[1] - x[0])
    far = logs + log_ndtr((x - position) / (sigma * piece.width))
    below = logs + log_ndtr((position - x) / (sigma * piece.width))
    assert np.logaddexp.reduce(far) == pytest.approx(math.log(piece.gone[0]), abs=1e-11)
    assert np.logaddexp.reduce(far - loss) == pytest.approx(math.log(piece.gone[1]), abs=1e-11)
    tilts = -1.0 - np.array([0.5, 10.0, 300.0])
    bounds = piece.log_beyond(tilts)
    for tilt, bound in zip(tilts, bounds, strict=True):
        exact = np.logaddexp.reduce(far + tilt * loss)
        assert exact <= bound < exact + 6.0
    # The points have the law below the cut, on the real line and on the shifted one.
    served = piece.served(64.0)
    for c in (0.0, 3.0, 40.0):
        exact = np.logaddexp.reduce(below + c * loss)
        found = np.log(served.real[1] @ np.exp(c * served.real[0]))
        assert found == pytest.approx(exact, abs=1e-11)
        line = served.line
        values, masses = line[0] + 1j * line[1], np.exp(line[2] + 1j * line[3])
        assert np.log(masses @ np.exp(c * values)) == pytest.approx(exact, abs=1e-9)
        turned = np.exp(below + c * loss) @ np.exp(2j * loss)
        assert masses @ np.exp((c + 2j) * values) == pytest.approx(turned, rel=1e-9)


def test_beyond_a_cut_delta_is_bounded_where_exp_epsilon_overflows():
    loss = SampledGaussian(1e-9, 0.028, "remove")
    laws, beyond = split(((loss, 1),), 560.0, -20.0)
    for epsilon in (705.0, 710.0, 712.0):
        lower, upper, _ = question.log_delta(laws, epsilon, True, beyond)
        assert lower <= loss.log_delta(epsilon)[0] <= upper


def test_points_next_to_a_far_cut_are_not_rounded():
    loss = SampledGaussian(1e-5, 0.08, "remove").mixture
    lattice = loss._lattice(64.0, Cut(loss, 0.57 / 0.08, 0.02))
    x, step = lattice.x, lattice.step
    assert len(x) > 2**13
    exact = np.longdouble(step) * np.rint(x / step)
    assert (x == exact).all()


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
    bounds = characteristic.log_delta_bounds(Direction("remove", parts), epsilon)
    assert bounds.upper - bounds.lower < 1e-4
    assert bounds.lower - 1e-7 < truth < bounds.upper + 1e-7


def test_rare_jumps_are_priced_on_both_sides():
    # Every tilt of these laws sees no jump or the largest: Renyi's epsilon is 14 times too large.
    direction = Direction("remove", ((SampledGaussian(1.9e-5, 1.94, "remove"), 24),))
    bounds = characteristic.epsilon_bounds(direction, -160.0)
    assert bounds.method == "cut"
    assert bounds.upper - bounds.lower < 1e-6 * bounds.upper
    # One jump at least: what it costs alone, 24 times over, is a little less.
    single, _ = direction.parts[0][0].log_delta(bounds.upper)
    assert -160.1 < single + math.log(24) < -160.0 + 1e-6


def test_a_record_that_is_rarely_replaced_has_two_ends():
    # One draw is a batch of one record; the sampled pair of one direction costs no more.
    inner, asked = events.GaussianDpEvent(8.701), {"delta": 6.67e-15}
    drawn = events.SampledWithReplacementDpEvent(1623, 1, inner)
    batch = events.SampledWithoutReplacementDpEvent(1623, 1, inner)
    first, second = (
        epsilon_of(events.SelfComposedDpEvent(e, 3), neighboring_relation="replace-one", **asked)
        for e in (drawn, batch)
    )
    sample = events.PoissonSampledDpEvent(1 / 1623, events.GaussianDpEvent(8.701 / 2))
    third = epsilon_of(events.SelfComposedDpEvent(sample, 3), **asked)
    for one in (first, second):
        assert third.lower <= one.upper < third.upper * 1.001
        assert one.upper - one.lower < 1e-6 * one.upper
    assert max(first.lower, second.lower) <= min(first.upper, second.upper)


def test_a_delta_far_below_its_own_rounding_has_two_ends():
    loss = SampledGaussian(4.1007708662480444e-09, 7.888805968948533, "remove")
    bounds = characteristic.epsilon_bounds(Direction("remove", ((loss, 9),)), -318.0679262030678)
    assert bounds.upper - bounds.lower < 1e-5 * bounds.upper
    # At the upper end one step alone meets the target, and at a tenth of it it does not.
    single, far = (loss.log_delta(epsilon)[0] for epsilon in (bounds.upper, bounds.upper / 10))
    assert single < -318.0679262030678 < far
