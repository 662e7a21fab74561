"""Contours of a single use, with its closed form at 50 digits inside their bounds.

A single use is never asked of a contour by the accountant: here it is, as the one composition whose
delta is known to any precision. Bounds are about 1e-10 wide, so that rounding that is
accounted for too lightly shows.
"""

import math
import sys

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from dpcal import accountants
from dpcal._ext import question
from dpcal.accountants import events
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.cut import split
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.random_choice import RandomChoice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import exp_down, exp_up, sum_up


def log_delta(q, sigma, epsilon, name):
    """Log delta of one sampled Gaussian at 50 digits; a fixed batch has that of removing."""
    with mpmath.workdps(50):
        q, mu, epsilon = mpmath.mpf(q), 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
        if name == "remove":
            # The ratio 1 - q + q exp(mu x - mu^2 / 2) is exp(epsilon) at x.
            x = mpmath.log1p(mpmath.expm1(epsilon) / q) / mu + mu / 2
            return mpmath.log(
                q * mpmath.ncdf(mu - x) - (mpmath.expm1(epsilon) + q) * mpmath.ncdf(-x)
            )
        inner = 1 + mpmath.expm1(-epsilon) / q
        if inner <= 0:
            return -mpmath.inf
        x = mpmath.log(inner) / mu + mu / 2
        growth = mpmath.exp(epsilon)
        mixed = (1 - q) * mpmath.ncdf(x) + q * mpmath.ncdf(x - mu)
        return mpmath.log(mpmath.ncdf(x) - growth * mixed)


def law(kind, name, q, sigma):
    loss = SampledGaussian(q, sigma, name)
    if kind == "mixture":
        pair = mixture_of_gaussians([0.0, 1.0], [1 - q, q], standard_deviation=sigma)
        return pair[0] if name == "remove" else pair[1]
    if kind == "revealed":
        return RandomChoice(((0.25, loss), (0.75, loss)))
    return FixedBatchGaussian(q, sigma) if kind == "fixed" else loss


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in ("sampled", "mixture", "revealed") for name in ("remove", "add")]
    + [pytest.param("fixed", "remove", marks=pytest.mark.study)],
)
def test_bounds_hold_the_closed_form(kind, name):
    rng = np.random.default_rng(11)
    # One that rounding once put outside, for a fixed batch and, near the largest loss, for others;
    # and one with points whose mean, off by 1e-14, was missed at late times.
    settings = [
        (0.36203372065645384, 10.106991335557401, 1.522052350990094),
        (0.0836073700115527, 18.570994426962365, 0.12531655389772864),
    ]
    settings += [
        (q, 10 ** rng.uniform(0, 1.5), q * 10 ** rng.uniform(-1, 1))
        for q in 10 ** rng.uniform(-3, -0.1, 60 if kind == "fixed" else 24)
    ]
    compared = 0
    for q, sigma, epsilon in settings:
        # The direction of adding has no loss above -log(1 - q).
        if name == "add":
            epsilon = min(epsilon, -0.9 * np.log1p(-q))
        found = question.log_delta([(law(kind, name, q, sigma).compiled, 1)], epsilon, patient=True)
        if found is not None:
            bounds, truth = Bounds(*found), log_delta(q, sigma, epsilon, name)
            assert bounds.lower <= truth <= bounds.upper, (q, sigma, epsilon, bounds)
            compared += bounds.upper - bounds.lower < 1e-7
    assert compared >= 5


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "epsilon"),
    [
        (0.0349373345068709, 0.2821874789264303, 63, 1.7e-8),
        (0.0006727244862911809, 0.3364556998744535, 2002, 0.0),
        (0.00026691299428421855, 0.3199947908900095, 145_110, 2e-5),
        (0.0031815, 0.4407654892496309, 87_972, 120.7),
    ],
)
def test_a_cut_meets_the_contour_of_the_whole_law(q, sigma, steps, epsilon):
    # A mass that is cut off is subtracted as it is, and a bound on it would be subtracted twice;
    # the mass of a bulk is the small difference of two masses, each with a rounding of its own.
    parts = ((SampledGaussian(q, sigma, "remove"), steps),)
    whole = Bounds(*question.log_delta(Direction("", parts).laws, epsilon, patient=True))
    assert whole.upper - whole.lower < 1e-9
    laws, beyond = split(parts, epsilon, whole.lower)
    lower, upper, _ = question.log_delta(laws, epsilon, True, beyond)
    assert upper - lower < 1e-5
    assert whole.lower <= upper
    assert lower <= whole.upper


@pytest.mark.parametrize(("scale", "steps"), [(0.49, 21_768), (0.03, 20_000)])
def test_laplace_noise_in_many_steps_holds_its_inverse_transform(scale, steps):
    # A tilt of 0.007 as the difference of 1.007 and 1 has lost digits; so have weights of a rule.
    loss = Laplace(scale)
    mean, variance = steps * loss.cumulants([0.0])[0, 1:3]
    epsilon, deviation = mean + 0.5 * variance**0.5, variance**0.5
    event = events.SelfComposedDpEvent(events.LaplaceDpEvent(scale), steps)
    answer = accountants.log_delta(event, epsilon=epsilon)
    assert answer.upper - answer.lower < 2e-10
    c, fine, nodes = 0.5 / deviation, math.tau / (120 * deviation), 240
    with mpmath.workdps(40):
        a, step, values = mpmath.mpf(loss.upper), mpmath.mpf(fine), []
        for k in range(nodes):
            z = mpmath.mpc(c, k * step)
            moment = (1 + z) * mpmath.exp(z * a) + z * mpmath.exp(-(1 + z) * a)
            log_value = steps * mpmath.log(moment / (1 + 2 * z)) - z * mpmath.mpf(epsilon)
            values.append((mpmath.exp(log_value) / (z * (1 + z))).real)
        truth = mpmath.log(step / mpmath.pi * (mpmath.fsum(values) - values[0] / 2))
        assert answer.lower <= truth <= answer.upper


def test_exponentials_are_rounded_outward_also_below_the_normal_doubles():
    """A delta of 1e-320 has three digits, and the nearest double may be below it."""
    with ctx.workprec(128):
        for log_delta in np.linspace(-760.0, -700.0, 2001):
            exact = arb(float(log_delta)).exp()
            assert exp_down(float(log_delta)) <= exact <= exp_up(float(log_delta))


def test_a_sum_beyond_all_doubles_is_bounded_from_above():
    most = sys.float_info.max
    assert sum_up([most, most]) == math.inf
    assert sum_up([-most], [2]) == -most
