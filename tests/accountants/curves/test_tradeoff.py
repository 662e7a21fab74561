"""Trade-off curves and attack risks against closed forms, and the promises of their bounds."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from _integrals import holds
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

from dpcal.accountants import (
    advantage,
    attack_risk,
    bayes_success,
    delta,
    events,
    gdp_mu,
    trade_off,
    trade_off_from_deltas,
    true_positive_rate,
)
from dpcal.accountants.curves.tradeoff import squared_gdp_mu
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.calibrate import noise_multiplier, noise_multiplier_for_risk

RATES = np.array([1e-9, 1e-4, 0.01, 0.2, 0.5, 0.9, 0.999])


def sampled(q, sigma):
    return events.PoissonSampledDpEvent(q, events.GaussianDpEvent(sigma))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 100.0])
def test_gaussian_trade_off_is_dong_roth_su(sigma):
    # Dong, Roth and Su (2022), equation (6): beta = Phi(Phi^-1(1 - alpha) - mu).
    curve = trade_off(events.GaussianDpEvent(sigma), RATES)
    exact = norm.cdf(norm.isf(RATES) - 1 / sigma)
    assert holds(curve, exact, 1e-14)
    assert np.all(curve.upper - curve.lower < 1e-7)


@given(log_sigma=st.floats(-1.5, 4.0), log_rate=st.floats(-60.0, -1e-3))
@settings(max_examples=25, deadline=None)
def test_gaussian_power_keeps_its_digits_at_tiny_rates(log_sigma, log_rate):
    sigma, rate = math.exp(log_sigma), math.exp(log_rate)
    exact = norm.sf(norm.isf(rate) - 1 / sigma)
    found = true_positive_rate(events.GaussianDpEvent(sigma), false_positive_rate=rate)
    assert holds(found, exact, 1e-11)
    assert found.upper - found.lower < 1e-5 * exact


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 0.5), (0.3, 1.0), (0.9, 3.0)])
def test_sampled_gaussian_is_asymmetric(q, sigma):
    # The likelihood ratio is monotone, so the best tests are thresholds, in either direction.
    mu = 1 / sigma
    absent = trade_off(sampled(q, sigma), RATES, null="absent")
    power = (1 - q) * RATES + q * norm.sf(norm.isf(RATES) - mu)
    assert holds(absent, 1 - power, 1e-12)

    thresholds = np.array([-4.0, -1.0, 0.0, 1.0, 3.0])
    rates = (1 - q) * norm.cdf(thresholds) + q * norm.cdf(thresholds - mu)
    present = trade_off(sampled(q, sigma), rates, null="present")
    assert holds(present, norm.sf(thresholds), 1e-12)

    either = trade_off(sampled(q, sigma), rates, null="either")
    other = trade_off(sampled(q, sigma), rates, null="absent")
    assert np.all(either.lower == np.minimum(present.lower, other.lower))
    assert np.abs(present.lower - other.lower).max() > 1e-4


@pytest.mark.parametrize("sigma", [0.5, 2.0, 30.0])
def test_gaussian_advantage_and_bayes_success(sigma):
    event, mu = events.GaussianDpEvent(sigma), 1 / sigma
    assert advantage(event) == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-12)
    for prior in (0.5, 0.2, 0.9):
        # Guess "present" where prior phi(x - mu) >= (1 - prior) phi(x).
        cut = mu / 2 + math.log((1 - prior) / prior) / mu
        exact = prior * norm.sf(cut - mu) + (1 - prior) * norm.cdf(cut)
        found = bayes_success(event, prior=prior)
        assert found == pytest.approx(exact, rel=1e-12)
        assert found.lower <= exact * (1 + 1e-14)


def test_bayes_success_of_an_asymmetric_mechanism():
    q, sigma, prior = 0.4, 0.7, 0.8
    x = np.linspace(-8 * sigma, 1 + 8 * sigma, 400_001)
    absent = (1 - prior) * norm.pdf(x, 0, sigma)
    present = prior * ((1 - q) * norm.pdf(x, 0, sigma) + q * norm.pdf(x, 1, sigma))
    exact = np.trapezoid(np.maximum(absent, present), x)
    assert bayes_success(sampled(q, sigma), prior=prior) == pytest.approx(exact, rel=1e-8)


def test_gdp_of_gaussian_compositions_is_exact():
    event = events.ComposedDpEvent(
        [events.SelfComposedDpEvent(events.GaussianDpEvent(3.0), 7), events.GaussianDpEvent(0.5)]
    )
    exact = math.sqrt(7 / 9 + 4)
    found = gdp_mu(event)
    assert found.lower <= exact <= found.upper
    assert found == pytest.approx(exact, rel=1e-14)
    replaced = gdp_mu(event, neighboring_relation="replace-one")
    assert replaced == pytest.approx(2 * exact, rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.01, 1.0, 1000), (0.2, 2.0, 50), (0.5, 1, 1)])
@pytest.mark.parametrize("slack", [1e-4, 1e-10])
def test_gdp_promise_between_the_points(q, sigma, steps, slack):
    event = events.SelfComposedDpEvent(sampled(q, sigma), steps)
    mu = gdp_mu(event, slack=slack)
    assert 0 < mu.upper - mu.lower < 2e-3 * mu.upper
    gaussian, smaller = events.GaussianDpEvent(1 / mu), events.GaussianDpEvent(1.01 / mu.lower)
    epsilons = np.random.default_rng(3).uniform(0, 8, 30)
    for epsilon in epsilons:
        allowed = delta(gaussian, epsilon=epsilon) + slack
        assert delta(event, epsilon=epsilon) <= allowed * (1 + 1e-9)
    # A smaller mu breaks the promise somewhere.
    assert any(
        own > slack and own.lower > delta(smaller, epsilon=x) + slack
        for x in np.linspace(0, 8, 160)
        if (own := delta(event, epsilon=x))
    )


def test_no_gaussian_covers_failures_above_the_slack():
    claim = events.EpsilonDeltaDpEvent(0.5, 1e-3)
    assert gdp_mu(claim) == gdp_mu(claim).lower == math.inf
    # Below it, delta_mu(0) = 2 Phi(mu / 2) - 1 = tanh(1 / 4) - slack, where a pure law is widest.
    small = gdp_mu(events.EpsilonDeltaDpEvent(0.5, 1e-13))
    assert holds(small, -2 * norm.ppf((1 - math.tanh(0.25)) / 2 + 5e-11), 1e-9)


@pytest.mark.slow
def test_noise_for_a_risk_has_a_closed_form():
    def power(event):
        return true_positive_rate(event, false_positive_rate=0.01)

    def run(sigma):
        return events.SelfComposedDpEvent(sampled(0.05, sigma), 100)

    cases = [
        (run, advantage, 0.3, noise_multiplier(run, epsilon=0.0, delta=0.3)),
        (events.GaussianDpEvent, power, 0.1, 1 / (norm.isf(0.01) - norm.isf(0.1))),
        (events.GaussianDpEvent, gdp_mu, 0.5, 2.0),
    ]
    for event, risk, level, truth in cases:
        sigma = noise_multiplier_for_risk(event, risk, at_most=level)
        assert sigma == pytest.approx(truth, rel=1e-5), risk
        assert risk(event(sigma)) <= level


@given(
    st.lists(st.tuples(st.floats(0, 800), st.floats(0, 1)), min_size=1, max_size=4),
    st.floats(1e-12, 1 - 1e-12),
)
def test_a_bound_from_pairs_is_rounded_down_from_dong_roth_su(pairs, rate):
    # Dong, Roth and Su (2022), equation (5), in fifty digits.
    epsilons, deltas = zip(*pairs, strict=True)
    (found,) = trade_off_from_deltas(epsilons, deltas, [rate]).lower
    with mpmath.workdps(50):
        exact = mpmath.mpf(0)
        for epsilon, delta_ in pairs:
            rise, rest = mpmath.exp(epsilon), 1 - mpmath.mpf(delta_)
            exact = max(exact, rest - rise * rate, (rest - rate) / rise)
        assert found <= exact
        assert exact - found < 1e-12


def test_one_function_gives_each_risk():
    event = events.GaussianDpEvent(1.5)
    assert attack_risk(event) == advantage(event)
    assert attack_risk(event, prior=0.2) == bayes_success(event, prior=0.2)
    found = attack_risk(event, false_positive_rate=0.05, neighboring_relation="replace-special")
    assert found == true_positive_rate(
        event, false_positive_rate=0.05, neighboring_relation="replace-special"
    )


def test_the_mu_of_gaussians_is_rounded_up():
    rng = np.random.default_rng(0)
    for _ in range(100):
        sigmas = (10 ** rng.uniform(-1, 2, rng.integers(1, 6))).tolist()
        counts = rng.integers(1, 1000, len(sigmas)).tolist()
        parts = tuple(zip(map(Gaussian, sigmas), counts, strict=True))
        truth = sum(Fraction(n) / Fraction(s) ** 2 for s, n in zip(sigmas, counts, strict=True))
        found = Fraction(squared_gdp_mu(Direction("remove", parts)))
        assert truth <= found <= truth * (1 + Fraction(1, 10**14))
