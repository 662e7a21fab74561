"""The price of keeping the best run covers best runs whose law is known."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpcal import calibrate
from dpcal.accountants import epsilon, events
from dpcal.calibrate.selection import _inverse_gamma


def derivative(mean, shape, x):
    """Return f'(x) of the law of K, f its generating function, by its closed form."""
    if math.isinf(shape):
        return mean * np.exp(-mean * (1 - x))
    gamma = 1 / _inverse_gamma(mean, shape)
    if shape == 0:
        return (1 - gamma) / (1 - (1 - gamma) * x) / -math.log(gamma)
    scale = shape * (1 - gamma) / (gamma**-shape - 1)
    return scale * (1 - (1 - gamma) * x) ** (-shape - 1)


def best_run_delta(sigma, mean, shape, level):
    """Return delta of the best of K scores N(1, sigma^2) against N(0, sigma^2), by quadrature."""
    y = np.linspace(-9 * sigma, 9 * sigma, 40_001)
    one, two = (
        norm.pdf(y, shift, sigma) * derivative(mean, shape, norm.cdf(y, shift, sigma))
        for shift in (0.0, 1.0)
    )
    # In all, the best run is released as often as there is a run.
    released = 1 - math.exp(-mean) if math.isinf(shape) else 1.0
    assert np.trapezoid(one, y) == pytest.approx(released, abs=1e-6)
    return max(
        float(np.trapezoid(np.maximum(first - math.exp(level) * second, 0.0), y))
        for first, second in ((one, two), (two, one))
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.0, 1.0, 2.5, math.inf])
@pytest.mark.parametrize("mean", [3.0, 30.0])
def test_the_price_covers_the_best_of_gaussian_scores(shape, mean):
    """The score is all that a run puts out: then the law of the best is a formula."""
    sigma, delta = 4.0, 1e-3
    price = calibrate.tuning(
        events.GaussianDpEvent(sigma), candidates=mean, delta=delta, shape=shape
    )
    exact = brentq(lambda e: best_run_delta(sigma, mean, shape, e) - delta, 0.0, 9.0)
    assert exact <= price
    assert price.single <= price


@pytest.mark.parametrize("shape", [0.0, 1.0, 3.0])
def test_of_a_pure_mechanism_it_is_what_papernot_and_steinke_say(shape):
    """Their Theorem 2 at infinite order: (2 + eta) epsilon."""
    price = calibrate.tuning(
        events.EpsilonDeltaDpEvent(0.3), candidates=100, delta=1e-9, shape=shape
    )
    assert price == pytest.approx((2 + shape) * 0.3, rel=0.02)
    assert price <= (2 + shape) * 0.3 * (1 + 1e-6)


def test_it_is_below_renyi_and_far_below_releasing_everything():
    once = events.dpsgd(sampling_probability=0.02, noise_multiplier=1.5, steps=100)
    price = calibrate.tuning(once, candidates=50, delta=1e-6)
    renyi = epsilon(price.event, delta=1e-6)
    assert price.single < price < renyi < price.released
    assert price.method == "privacy profile"


def test_one_run_costs_one_run_and_a_run_that_may_fail_has_a_price():
    once = events.GaussianDpEvent(3.0)
    assert calibrate.tuning(once, candidates=1, delta=1e-6) == pytest.approx(
        epsilon(once, delta=1e-6), rel=1e-6
    )
    failing = events.ComposedDpEvent([once, events.EpsilonDeltaDpEvent(0.0, 1e-9)])
    price = calibrate.tuning(failing, candidates=10, delta=1e-6)
    assert price.method == "privacy profile"
    assert calibrate.tuning(once, candidates=10, delta=1e-6) < price < 2 * price.single


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"candidates": 0.5}, "candidates must be a number >= 1, got 0.5"),
        ({"delta": 0.0}, "delta must be a number in"),
        ({"shape": -0.5}, "shape must be a number >= 0 or infinite, got -0.5"),
    ],
)
def test_bad_input_is_a_sentence(changes, told):
    settings = {"candidates": 10, "delta": 1e-6, **changes}
    with pytest.raises(ValueError, match=told):
        calibrate.tuning(events.GaussianDpEvent(3.0), **settings)
