"""The price of keeping the best run covers best runs whose law is known."""

import math

import mpmath
import numpy as np
import pytest
from _integrals import divergence, worse
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from dpcal import calibrate
from dpcal.accountants import characteristic, delta, epsilon, events
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.discrete import ScatteredLoss
from dpcal.accountants.mechanisms.best_run import best_run_laws, log_inverse_gamma


def best_of(law, mean, shape):
    """The law of the best run, by the generating function at the chances of being no better."""
    ends = np.concatenate([[0.0], np.cumsum(law)])
    if math.isinf(shape):
        return np.diff(np.exp(-mean * (1 - ends)))
    gamma = math.exp(-log_inverse_gamma(mean, shape))
    rest = 1 - (1 - gamma) * ends
    if shape == 0:
        return np.diff(np.log(rest)) / math.log(gamma)
    return np.diff((rest**-shape - 1) / (gamma**-shape - 1))


def best_score_delta(sigma, mean, shape, level):
    """Return delta of the best of K scores N(1, sigma^2) against N(0, sigma^2), on a fine grid."""
    y = np.linspace(-9 * sigma, 9 * sigma, 40_001)
    one, two = (best_of(np.diff(norm.cdf(y, at, sigma)), mean, shape) for at in (0.0, 1.0))
    # In all, the best run is released as often as there is a run.
    released = 1 - math.exp(-mean) if math.isinf(shape) else 1.0
    assert one.sum() == pytest.approx(released, abs=1e-9)
    return worse(one, two, level)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "mean"), [(0.0, 30.0), (1.0, 3.0), (2.5, 30.0), (math.inf, 3.0)])
def test_the_price_covers_the_best_of_gaussian_scores(shape, mean):
    """The score is all that a run puts out: then the law of the best is a formula."""
    sigma, delta = 4.0, 1e-3
    price = calibrate.tuning(
        events.GaussianDpEvent(sigma), candidates=mean, delta=delta, shape=shape
    )
    exact = brentq(lambda e: best_score_delta(sigma, mean, shape, e) - delta, 0.0, 9.0)
    assert exact <= price
    assert price.single <= price


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.0, 1.0, 3.0])
def test_of_a_pure_mechanism_it_is_at_most_what_papernot_and_steinke_say(shape):
    """Their Theorem 2 at infinite order: (2 + eta) epsilon. A mechanism that needs 1.2: below."""
    price = calibrate.tuning(
        events.EpsilonDeltaDpEvent(0.3), candidates=100, delta=1e-9, shape=shape
    )
    assert price <= (2 + shape) * 0.3 * (1 + 1e-6)
    assert price > (1.9 + 0.7 * shape) * 0.3


@st.composite
def neighbors(draw):
    """Two laws of (output, score) on the same few outputs, in order of their scores."""
    chance = st.floats(0.02, 1.0)
    laws = [np.array(draw(st.lists(chance, min_size=5, max_size=5))) for _ in range(2)]
    one, two = (law / law.sum() for law in laws)
    # Outputs that tell a lot are rare, as those of mechanisms with a small delta are.
    rare = draw(st.floats(1e-6, 1e-2)) * draw(st.booleans())
    one[draw(st.integers(0, 4))] += rare
    return one / one.sum(), two


def loss_between(one, two):
    """The exact privacy loss between two laws, as a mechanism's dominating pair."""
    places = np.log(one / two)
    order = np.argsort(places)
    return ScatteredLoss(tuple(places[order]), tuple(np.log(two)[order]), "a few outputs")


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(neighbors(), st.sampled_from([1.5, 6.0, 40.0]), st.sampled_from([0.0, 0.5, 2.0, math.inf]))
def test_it_covers_the_best_run_of_every_mechanism_with_few_outputs(laws, mean, shape):
    directions = (
        Direction("remove", ((loss_between(*laws), 1),)),
        Direction("add", ((loss_between(*laws[::-1]), 1),)),
    )
    bounds = best_run_laws(directions, mean, shape)
    exact = [best_of(law, mean, shape) for law in laws]
    for bound, pair in zip(bounds, (exact, exact[::-1]), strict=True):
        twice = [np.multiply.outer(law, law).ravel() for law in pair]
        for number, (one, two) in ((1, pair), (2, twice)):
            direction = Direction("best", ((bound, number),))
            for level in (0.0, 0.3, 1.0, 2.5):
                held = math.exp(characteristic.log_delta_bounds(direction, level).upper)
                assert divergence(one, two, level) <= held * (1 + 1e-9)


def test_every_accountant_prices_it_alone_and_beside_others():
    once = events.GaussianDpEvent(6.0)
    price = calibrate.tuning(once, candidates=20, delta=1e-6)
    assert price == epsilon(price.event, delta=1e-6)
    assert price == epsilon(price.event, delta=1e-6, accountant="characteristic")
    pld = epsilon(price.event, delta=1e-6, accountant="pld", interval=1e-3)
    assert price <= pld * (1 + 1e-6)
    assert pld == pytest.approx(price, rel=5e-3)
    again = events.GaussianDpEvent(4.0)
    beside = events.ComposedDpEvent([price.event, again])
    together = epsilon(beside, delta=1e-6)
    assert price.single < price < together < price + epsilon(again, delta=1e-6)
    assert together < epsilon(beside, delta=1e-6, accountant="renyi")
    other = epsilon(beside, delta=1e-6, accountant="pld", interval=1e-3)
    assert other == pytest.approx(together, rel=5e-3)
    assert delta(beside, epsilon=float(together)) == pytest.approx(1e-6, rel=1e-6)


def test_it_is_close_to_the_worst_order_of_scores():
    """What selection costs where outputs score well that are rare, or tell the opposite."""
    sigma, mean, target = 4.0, 30.0, 1e-6
    price = calibrate.tuning(events.GaussianDpEvent(sigma), candidates=mean, delta=target)
    y = np.linspace(-9 * sigma, 9 * sigma, 20_001)
    one, two = (norm.pdf(y, shift, sigma) for shift in (1.0, 0.0))
    worst = 0.0
    for rare in np.arange(2.5, 5.5, 1.0) * sigma:
        for best in np.arange(-2.4, -0.8, 0.4) * sigma:
            groups = [(y >= best) & (y < rare), y >= rare, y < best]
            order = np.concatenate([np.flatnonzero(group)[::-1] for group in groups])
            laws = [best_of(law[order] / law.sum(), mean, 0.0) for law in (one, two)]
            found = brentq(lambda e, laws=laws: divergence(*laws, e) - target, 0.0, 9.0)
            worst = max(worst, found)
    assert worst <= price
    assert price <= 1.1 * worst


def test_one_run_costs_one_run_and_a_run_that_may_fail_has_a_price():
    once = events.GaussianDpEvent(3.0)
    assert calibrate.tuning(once, candidates=1, delta=1e-6) == pytest.approx(
        epsilon(once, delta=1e-6), rel=1e-6
    )
    failing = events.ComposedDpEvent([once, events.EpsilonDeltaDpEvent(0.0, 1e-9)])
    price = calibrate.tuning(failing, candidates=10, delta=1e-6)
    assert price.method == "privacy profile"
    assert calibrate.tuning(once, candidates=10, delta=1e-6) < price < 2 * price.single


@pytest.mark.slow
def test_noise_is_calibrated_for_the_best_of_many_runs():
    """The answer meets its target, and a millionth less noise does not."""

    def event(sigma):
        return events.RepeatAndSelectDpEvent(events.GaussianDpEvent(sigma), 6.0, 0.0)

    target = {"delta": 1e-6, "neighboring_relation": "replace-special"}
    sigma = calibrate.noise_multiplier(event, epsilon=1.0, **target)
    assert epsilon(event(sigma), **target).upper <= 1.0
    assert epsilon(event(sigma * (1 - 2e-6)), **target).upper > 1.0
    # A score alone, by its own law: no bound may ask for less noise than it.
    assert best_score_delta(sigma, 6.0, 0.0, 1.0) <= 1e-6


@pytest.mark.parametrize("mean", [1 + 1e-9, 1 + 1e-6, 1.5, 1e3])
@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 3.0])
def test_a_mean_number_of_runs_is_rounded_up(mean, shape):
    with mpmath.workdps(40):
        grown = mpmath.expm1(y := mpmath.mpf(log_inverse_gamma(mean, shape)))
        found = grown / y if shape == 0 else shape * grown / -mpmath.expm1(-shape * y)
        assert mean <= found <= mean * (1 + 1e-8)


def test_prices_beside_that_of_the_best_run_are_upper_ends():
    event = events.ExponentialMechanismDpEvent(0.3)
    price = calibrate.tuning(event, candidates=10, shape=1.0, delta=1e-6)
    released = epsilon(events.SelfComposedDpEvent(event, 10), delta=1e-6)
    assert price.released == released.upper > released.lower
    assert price.single == epsilon(event, delta=1e-6).upper


@pytest.mark.parametrize("accountant", ["auto", "renyi"])
def test_the_best_of_runs_that_may_fail_has_no_lower_end(accountant):
    """A bound on the profile of the best run does not say that a mechanism attains it."""
    best = events.RepeatAndSelectDpEvent(events.EpsilonDeltaDpEvent(0.5, 1e-7), 5.0, 0.0)
    assert epsilon(best, delta=1e-4, accountant=accountant).lower == 0
