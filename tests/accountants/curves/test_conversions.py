"""Conversions between notions of privacy, against mechanisms that attain them and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcal.accountants import epsilon, events
from dpcal.accountants.curves import conversions as convert

ORDERS = st.floats(1.05, 60.0)


@given(target=st.floats(0.0, 30.0), order=ORDERS)
@settings(max_examples=60, deadline=None)
def test_pure_privacy_is_randomized_response(target, order):
    both = np.logaddexp(order * target, (1 - order) * target)
    exact = (both - np.logaddexp(0.0, target)) / (order - 1)
    found = convert.renyi_divergence(events.EpsilonDeltaDpEvent(target), order=order)
    assert found == pytest.approx(exact, rel=1e-7, abs=1e-8)
    # Bun and Steinke's bound is weaker at every order.
    assert found <= order * target**2 / 2 + 1e-12


@pytest.mark.parametrize("rho", [1e-4, 0.1, 3.0])
def test_the_best_order_of_zcdp_is_no_worse_than_any(rho):
    found = epsilon(events.ZCDpEvent(rho), delta=1e-6)
    # A Gaussian mechanism has these divergences, and a curve that says more.
    gaussian = events.GaussianDpEvent((2 * rho) ** -0.5)
    assert convert.renyi_divergence(gaussian, order=4.5) == pytest.approx(4.5 * rho, rel=1e-12)
    assert found > epsilon(gaussian, delta=1e-6)
    # Canonne, Kamath and Steinke (2020), Proposition 12, at each order 1 + c.
    c = np.geomspace(0.01, 1e5, 4001)
    penalties = (c * np.log(c) - (1 + c) * np.log1p(c) - math.log(1e-6)) / c
    every = (1 + c) * rho + penalties
    assert found <= min(every) * (1 + 1e-12)
    assert found == pytest.approx(min(every), rel=1e-4)


def test_nothing_costs_nothing_and_no_noise_everything():
    assert epsilon(events.ZCDpEvent(0.0), delta=1e-6) == 0
    assert convert.renyi_divergence(events.NonPrivateDpEvent(), order=2.0) == math.inf
