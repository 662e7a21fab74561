"""Compiled sums over points of a loss beside 40 digits, and the lattice where the points lie."""

import math

import mpmath
import numpy as np
import pytest

from dpcal._ext.contour import power_sums, second_order_sums, tilted_line, tilted_moments
from dpcal.accountants.inversion.layers.cuts import Cut
from dpcal.accountants.losses import lattice
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.sampled_gaussian import TrapezoidRule
from dpcal.accountants.rounding import UNIT


def moments(ell, log_base, power, excess):
    """Log M, mean, variance and fourth central moment, of points whose masses are taken to be 1."""
    with mpmath.workdps(40):
        ell = [mpmath.mpf(x) for x in ell]
        base = [mpmath.exp(mpmath.mpf(x)) for x in log_base]
        # The digits of the power next to 1 are those of the excess.
        power = 1 + mpmath.mpf(excess) if abs(excess) < 0.5 else mpmath.mpf(power)
        terms = [b * mpmath.exp(power * x) for x, b in zip(ell, base, strict=True)]
        rises = [b * mpmath.expm1(x) for x, b in zip(ell, base, strict=True)]
        mass = 1 + mpmath.fsum(
            b * mpmath.expm1(power * x) - power * rise
            for x, b, rise in zip(ell, base, rises, strict=True)
        )
        first = mpmath.fsum(x * w for x, w in zip(ell, terms, strict=True)) - mpmath.fsum(rises)
        mean, total = first / mass, mpmath.fsum(terms)
        central = [
            mpmath.fsum(w * (x - mean) ** k for x, w in zip(ell, terms, strict=True)) / total
            for k in (2, 4)
        ]
        return np.array([float(value) for value in (mpmath.log(mass), mean, *central)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "sigma", "powers"),
    [
        (0.01, 1.0, (-2.5, 0.3, 1 + 1e-7, 4.0)),
        (1e-9, 2.0, (-1.5, 1.01, 7.9)),
        (0.0025, 1.262, (-4802.7, 2.0)),  # exponents far below -708
        (1e-6, 0.06, (1.001, 8.0)),  # losses whose exponentials no double holds
        (0.3, 30.0, (0.999, 6.0)),
        (1e-6, 0.4, (-1e-9, 1e-9)),  # losses above 1 times a tilt whose exponential is nearly 1
    ],
)
def test_tilted_moments_have_their_digits(q, sigma, powers):
    rule = TrapezoidRule(q, sigma, min(0.0, *powers), max(8.0, *powers))
    excesses = np.array(powers) - 1.0
    # Not a multiple of eight points.
    last = len(rule.ell) - len(rule.ell) % 8 - 3
    ell, log_base = rule.ell[:last].copy(), rule.log_base[:last].copy()
    found = tilted_moments(ell, log_base, np.array(powers), excesses)
    for row, power, excess in zip(found, powers, excesses, strict=True):
        truth = moments(ell, log_base, power, excess)
        # An exponential of a large argument has the error of its argument.
        np.testing.assert_allclose(row[:2], truth[:2], rtol=2e-13)
        np.testing.assert_allclose(row[2:], truth[2:], rtol=1e-10)


def test_nodes_are_sums_of_powers():
    rng = np.random.default_rng(4)
    theta = 0.1 * rng.normal(size=21) + 0.01j * rng.uniform(size=21)
    weights = rng.normal(size=21) + 1j * rng.normal(size=21)
    k = np.arange(300)
    exact = np.exp(1j * np.outer(k, theta)) @ weights
    np.testing.assert_allclose(power_sums(theta, weights, 0, 300), exact, atol=1e-12)
    exact -= weights.sum() + 1j * k * (weights @ theta)
    np.testing.assert_allclose(second_order_sums(theta, weights, 0, 300), exact, atol=1e-11)


@pytest.mark.parametrize(
    ("q", "sigma", "power", "cut"),
    [
        (0.27, 5.1, 1.2, None),
        (0.02, 0.2, -9.0, None),
        (2e-3, 2.0, 142.0, Cut(4.6, 0.31)),
        (6.5e-5, 14.7, 1.6, Cut(602.0, 0.25)),
        (0.01, 0.21, 18.0, Cut(0.685, 0.00376)),
    ],
)
def test_weights_on_a_line_are_as_accurate_as_the_sizes_of_their_terms_say(q, sigma, power, cut):
    scale, width = -0.3, math.inf if cut is None else cut.width
    angle = min(1.5, 1.5 / sigma, 3 * width / sigma**2)
    x = np.linspace(-9.5 * sigma, (9.5 * sigma if cut is None else cut.position + 9 * width), 157)
    share = None if cut is None else cut.log_below(x, angle * sigma**2)
    # All points are kept, as none is this small.
    at = np.array([-0.7, 0.1, 2.0, scale + 0.5 * (angle * sigma) ** 2])
    ell, weights, sizes = tilted_line(x, q, sigma, angle, power, at, -1e300, share)
    assert len(ell) == len(x)
    with mpmath.workdps(40):
        s, q, p = mpmath.mpf(sigma), mpmath.mpf(q), mpmath.mpf(power)
        for point, value, weight, size in zip(x, ell, weights, sizes, strict=True):
            z = mpmath.mpc(point, angle * s**2)
            loss = mpmath.log(1 - q + q * mpmath.exp((z - 0.5) / s**2))
            exponent = scale - z**2 / (2 * s**2) + p * loss + mpmath.mpf(0.7)
            # The density is given by its largest logarithm, rounded as the kernel has it.
            exponent += mpmath.mpf(at[3]) - scale - mpmath.mpf(angle) ** 2 * s**2 / 2
            if cut is not None:
                below = (mpmath.mpf(cut.position) - z) / mpmath.mpf(cut.width)
                exponent += mpmath.log(mpmath.erfc(-below / mpmath.sqrt(2)) / 2)
            assert abs(mpmath.mpc(value) - loss) <= 2e-15 * abs(loss)
            if weight:
                error = abs(mpmath.mpc(weight) / mpmath.exp(exponent) - 1)
                assert error <= 1.25 * (8 + size) * UNIT


# -- the lattice of all quadratures


@pytest.mark.parametrize("width", [0.3, 0.7, 1.2, 1.5])
def test_the_step_integrates_what_is_analytic_that_far(width):
    # sech is analytic for abs(Im x) < pi / 2, and its integral is pi. Its absolute value on the
    # line Im x = width is 1 / hypot(cosh x cos w, sinh x sin w), at most sech x / cos w.
    step = lattice.step_within(width, growth=-math.log(math.cos(width)))
    x = lattice.spaced(-45.0, 45.0, step, most=10_000)
    assert step * math.fsum(1 / np.cosh(x)) == pytest.approx(math.pi, rel=4e-16)


def test_points_are_multiples_of_the_step_that_cover_the_range():
    x = lattice.spaced(-1.05, 2.31, 0.1, most=40)
    np.testing.assert_allclose(x / 0.1, np.arange(-11, 25), atol=1e-9)
    with pytest.raises(OutOfReach):
        lattice.spaced(-1.05, 2.31, 0.1, most=33)
    with pytest.raises(OutOfReach):
        lattice.spaced(-1.05, math.nan, 0.1, most=33)


def test_a_strip_is_narrowed_until_the_growth_is_small():
    # cos(w)^-40 is the growth of sech^40.
    angle = lattice.narrowed(1.5, lambda w: math.cos(w) ** -40.0)
    assert math.cos(angle) ** -40.0 < 8.0 < math.cos(angle * math.sqrt(2)) ** -40.0
    with pytest.raises(OutOfReach):
        lattice.narrowed(1.5, lambda w: math.inf)


def test_points_left_out_change_neither_mass_nor_variance():
    x = np.linspace(-40.0, 40.0, 4001) + 0j
    logs = -0.5 * x**2 - 0.5 * math.log(2 * math.pi) + math.log(0.02)
    kept = lattice.relevant(x, logs, 0.0, 1.0)
    assert 0.2 < kept.mean() < 0.3
    weights = np.exp(logs[~kept].real)
    assert math.fsum(weights) < 1e-18
    assert math.fsum(weights * x[~kept].real ** 2) < 1e-16
