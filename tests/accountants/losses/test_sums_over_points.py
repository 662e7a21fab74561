"""Compiled sums over points of a loss beside 40 digits, and the lattice where the points lie."""

import math

import mpmath
import numpy as np
import pytest

from dpcal._ext.question import moments
from dpcal.accountants.losses import gaussian_mixtures, lattice
from dpcal.accountants.losses.base import OutOfReach, Points
from dpcal.accountants.losses.below_cut import Cut
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT


def exact_moments(ell, log_base, power, excess):
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
    name = "add" if min(powers) < 0 else "remove"
    points = SampledGaussian(q, sigma, name).points(max(8.0, *np.abs(powers)))
    excesses = np.array(powers) - 1.0
    # Not a multiple of eight points.
    last = len(points.values) - len(points.values) % 8 - 3
    values, logs = (x.real[:last].astype(float) for x in (points.values, points.log_masses))
    ell, log_base = (-values, logs) if name == "add" else (values, logs - values)
    removed = Points(ell, log_base + ell, np.abs(ell), np.abs(log_base)).real_rows(0.0)
    added = Points(-ell, log_base, np.abs(ell), np.abs(log_base)).real_rows(0.0)
    for power, excess in zip(powers, excesses, strict=True):
        row = moments(removed, np.array([excess]))[0]
        if power < 0.5:
            row = moments(added, np.array([-power]))[0] * [1, -1, 1, 1]
        truth = exact_moments(ell, log_base, power, excess)
        # An exponential of a large argument has the error of its argument.
        np.testing.assert_allclose(row[:2], truth[:2], rtol=2e-13)
        np.testing.assert_allclose(row[2:], truth[2:], rtol=1e-10)


@pytest.mark.parametrize(
    ("q", "sigma", "position", "share"),
    [(2e-3, 2.0, 16.6, 0.08), (6.5e-5, 14.7, 602.0, 0.02), (0.01, 0.21, 0.685, 0.04)],
)
def test_points_below_a_cut_are_as_accurate_as_their_errors_say(q, sigma, position, share):
    tail = SampledGaussian(q, sigma, "remove").mixture
    cut = Cut(tail, position / sigma, share)
    served, lattice = cut.served(16.0), tail._lattice(16.0, cut)
    heights = (0.0, min(lattice.angle, 3.0 * cut.width))
    for height, rows in zip(heights, (served.real, served.line), strict=True):
        for place in np.linspace(0, len(lattice.x) - 1, 41).astype(int):
            # The lattice's points are exact; losses rise along it on the real line.
            x = mpmath.mpf(float(lattice.x[place]))
            with mpmath.workdps(40):
                s, z = mpmath.mpf(sigma), mpmath.mpc(x, height)
                loss = mpmath.log(1 - mpmath.mpf(q) + q * mpmath.exp(z / s - 0.5 / s**2))
                below = (mpmath.mpf(cut.position) - z) / mpmath.mpf(cut.width)
                log_mass = mpmath.log(mpmath.erfc(-below / mpmath.sqrt(2)) / 2) + loss
                log_mass += mpmath.log(mpmath.mpf(lattice.step) / mpmath.sqrt(2 * mpmath.pi))
                log_mass -= z**2 / 2
                away = abs(rows[0] - float(loss.real)) + abs(rows[2] - float(log_mass.real))
                nearest = np.argmin(away)
                found = complex(rows[0, nearest], 0.0 if height == 0.0 else rows[1, nearest])
                mass = complex(rows[2, nearest], 0.0 if height == 0.0 else rows[3, nearest])
                error, rounding = rows[4, nearest], rows[5 if height else 3, nearest]
                # Logs of masses on the real line have the rounding to doubles that kernels add.
                rounding += 0.0 if height else 0.6 * abs(mass.real)
                assert abs(found - loss) <= max(error, 9 * abs(loss)) * UNIT
                # Logs of masses differ by whole turns.
                gap = mass - log_mass
                turns = mpmath.nint(gap.imag / (2 * mpmath.pi))
                assert abs(gap - 2j * mpmath.pi * turns) <= rounding * UNIT


# -- the lattice of all quadratures


@pytest.mark.parametrize("width", [0.3, 0.7, 1.2, 1.5])
def test_the_step_integrates_what_is_analytic_that_far(width):
    # sech is analytic for abs(Im x) < pi / 2, and its integral is pi. Its absolute value on the
    # line Im x = width is 1 / hypot(cosh x cos w, sinh x sin w), at most sech x / cos w.
    step = lattice.step_within(width, growth=-math.log(math.cos(width)))
    x = lattice.spaced(-45.0, 45.0, step)
    assert step * math.fsum(1 / np.cosh(x)) == pytest.approx(math.pi, rel=4e-16)


def test_points_are_multiples_of_the_step_that_cover_the_range():
    x = lattice.spaced(-1.05, 2.31, 0.1)
    np.testing.assert_allclose(x / 0.1, np.arange(-11, 25), atol=1e-9)
    with pytest.raises(OutOfReach):
        lattice.spaced(0.0, 1.0, 0.99 / lattice.MOST_POINTS)
    with pytest.raises(OutOfReach):
        lattice.spaced(-1.05, math.nan, 0.1)


def test_a_strip_is_narrowed_until_the_growth_is_small():
    # cos(w)^-40 is the growth of sech^40.
    angle = gaussian_mixtures._narrowed(1.5, lambda w: math.cos(w) ** -40.0)
    assert math.cos(angle) ** -40.0 < 8.0 < math.cos(angle * math.sqrt(2)) ** -40.0
    with pytest.raises(OutOfReach):
        gaussian_mixtures._narrowed(1.5, lambda w: math.inf)
