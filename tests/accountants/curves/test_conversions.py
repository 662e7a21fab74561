"""Conversions between notions of privacy, against mechanisms that attain them and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.curves import conversions as convert

ORDERS = st.floats(1.05, 60.0)


@pytest.mark.slow
@given(order=ORDERS, target=st.floats(0.01, 6.0), log_delta=st.floats(-25.0, -0.7))
@settings(max_examples=60, deadline=None)
def test_renyi_conversion_is_implied_by_the_lossless_one(order, target, log_delta):
    # The least divergence that permits delta at epsilon: below it, delta is smaller. The published
    # conversion needs a divergence that is not larger. Rounding least down costs up to 3e-7.
    level = math.exp(log_delta)
    least = convert.least_renyi(target, delta=level, order=order)
    if least > 1e-6:
        assert convert.epsilon_from_renyi(least, order=order, delta=level) >= target * (1 - 1e-6)
    near = np.geomspace(1e-12, 0.5, 20_001)
    probabilities = level + (1 - level) * np.concatenate([near, 1 - near[near > 1e-9]])
    others = (probabilities - level) * math.exp(-target)
    logs = np.logaddexp(
        order * np.log(probabilities) + (1 - order) * np.log(others),
        order * np.log1p(-probabilities) + (1 - order) * np.log1p(-others),
    )
    brute = logs.min() / (order - 1)
    assert least <= brute * (1 + 1e-9) + 1e-12
    assert least == pytest.approx(brute, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("sigma", [0.7, 2.0, 20.0])
def test_no_gaussian_mechanism_is_below_the_least_divergence(sigma):
    event = events.GaussianDpEvent(sigma)
    for order in (1.5, 4.0, 20.0):
        own = convert.renyi_divergence(event, order=order)
        assert own == pytest.approx(order / (2 * sigma**2), rel=1e-12)
        for target in (0.1, 1.0, 3.0):
            level = delta(event, epsilon=target).lower
            if level > 0:
                assert convert.least_renyi(target, delta=level, order=order) <= own


@given(order=ORDERS, value=st.floats(0.0, 20.0), log_delta=st.floats(-60.0, -0.1))
@settings(max_examples=60, deadline=None)
def test_epsilon_and_delta_of_a_divergence_are_inverse(order, value, log_delta):
    level = math.exp(log_delta)
    found = convert.epsilon_from_renyi(value, order=order, delta=level)
    if found > 0:
        back = convert.delta_from_renyi(value, order=order, epsilon=found)
        assert back == pytest.approx(level, rel=1e-9)


@given(target=st.floats(0.0, 30.0), order=ORDERS)
@settings(max_examples=60, deadline=None)
def test_pure_privacy_is_randomized_response(target, order):
    p = 1 / (1 + math.exp(-target))
    terms = [
        order * math.log(a) + (1 - order) * math.log(b) for a, b in ((p, 1 - p), (1 - p, p))
    ] if target < 20 else [(order - 1) * target, -order * target]  # fmt: skip
    exact = np.logaddexp(*terms) / (order - 1)
    found = convert.renyi_from_pure(target, order=order)
    assert found == pytest.approx(exact, rel=1e-7, abs=1e-8)
    # Bun and Steinke's bound is weaker at every order.
    assert found <= convert.renyi_from_zcdp(convert.rho_from_pure(target), order=order) + 1e-12


@pytest.mark.parametrize("mu", [0.05, 1.0, 4.0])
def test_gaussian_privacy_is_the_gaussian_mechanism(mu):
    for target in (0.0, 0.5, 3.0):
        exact = norm.cdf(mu / 2 - target / mu) - math.exp(target) * norm.cdf(-mu / 2 - target / mu)
        assert convert.delta_from_gdp(mu, epsilon=target) == pytest.approx(exact, rel=1e-9)
    found = convert.epsilon_from_gdp(mu, delta=1e-5)
    assert found >= epsilon(events.GaussianDpEvent(1 / mu), delta=1e-5).lower
    # zCDP knows less than the curve, and the divergences are the same.
    rho = convert.rho_from_gdp(mu)
    assert convert.epsilon_from_zcdp(rho, delta=1e-5) > found
    assert convert.renyi_from_zcdp(rho, order=7.0) == pytest.approx(3.5 * mu**2)
    assert convert.renyi_from_gdp(mu, order=7.0) == pytest.approx(3.5 * mu**2)


@pytest.mark.parametrize("rho", [1e-4, 0.1, 3.0])
def test_the_best_order_of_zcdp_is_no_worse_than_any(rho):
    found = convert.epsilon_from_zcdp(rho, delta=1e-6)
    orders = 1 + np.geomspace(0.01, 1e5, 4001)
    every = [
        convert.epsilon_from_renyi(order * rho, order=order, delta=1e-6)
        for order in orders.tolist()
    ]
    assert found <= min(every)
    assert found == pytest.approx(min(every), rel=1e-4)
    assert convert.delta_from_zcdp(rho, epsilon=found) == pytest.approx(1e-6, rel=1e-4)


def test_another_epsilon_of_a_pair_is_attained():
    # Kairouz, Oh and Viswanath: reveal with probability delta, else randomized response.
    target, level = 1.2, 0.03
    p = math.exp(target) / (1 + math.exp(target))
    for other in (0.0, 0.4, 1.1, 1.2, 2.0):
        exact = level + (1 - level) * max(0.0, p - math.exp(other) * (1 - p))
        found = convert.delta_from_pair(target, level, other_epsilon=other)
        assert found == pytest.approx(exact, rel=1e-12)
        assert found >= exact * (1 - 1e-14)


def test_nothing_costs_nothing_and_no_noise_everything():
    assert convert.epsilon_from_zcdp(0.0, delta=1e-6) == 0
    assert convert.delta_from_gdp(0.0, epsilon=1.0) == 0
    assert convert.renyi_divergence(events.NonPrivateDpEvent(), order=2.0) == math.inf
