"""The one lattice of all quadratures: its step, its limits, and the points that it leaves out."""

import math

import numpy as np
import pytest

from dpcal.accountants.losses import lattice
from dpcal.accountants.losses.base import OutOfReach


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
