"""Accountants against closed forms, high precision, other packages and each other."""

import itertools
import math
import pickle

import mpmath
import numpy as np
import pytest
from _integrals import density, integral, power
from flint import acb, arb, ctx
from hypothesis import given, settings, strategies as st

from dpcal import accountants
from dpcal.accountants import characteristic, events, interface, renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import RELATIONS, Direction
from dpcal.accountants.inversion.finite_laws import law_of
from dpcal.accountants.losses.discrete import pure
from dpcal.accountants.losses.gaussian import Gaussian, log_gaussian_delta
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.mechanisms import batches
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import (
    AccountantsDisagree,
    BackendRefused,
    DisagreementWarning,
    UnsupportedEvent,
)


def dpsgd(q, sigma, steps):
    return events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=steps)


def gaussian_log_delta(epsilon, mu):
    """Balle and Wang (2018), Theorem 8, at 60 digits."""
    with mpmath.workdps(60):
        a, b = mpmath.mpf(epsilon) / mu - mu / 2, mpmath.mpf(epsilon) / mu + mu / 2
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        return float(mpmath.log(tail(a) - mpmath.exp(epsilon) * tail(b)))


def mixture_log_mgf(q, sigma, direction, z):
    """log M(z) of the sampled Gaussian by integrals in balls of 160 bits."""
    with ctx.workprec(160):
        exponent = acb(z) + 1 if direction == "remove" else -acb(z)

        def integrand(x, analytic):
            excess = arb(q) * ((2 * x - 1) / (2 * arb(sigma) ** 2)).expm1()
            return density(x, sigma) * (
                power(1 + excess, exponent, analytic) - 1 - exponent * excess
            )

        centers = (0.0, abs(complex(z).real) + 1)
        ends = sorted(m + 14 * k * sigma for m in centers for k in (-1, 0, 1))
        return complex((1 + integral(integrand, ends, bits=160)).log())


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1e-4, 20.0),
    st.floats(0.05, 100.0),
    st.integers(1, 10**9),
)
def test_gaussian_composition_is_one_gaussian(epsilon, sigma, steps):
    mu = math.sqrt(steps) / sigma
    truth = gaussian_log_delta(epsilon, mu)
    bounds = characteristic.log_delta_bounds(
        Direction("both", ((Gaussian(sigma), steps),)), epsilon
    )
    slack = 1e-15 * max(1.0, abs(truth))
    assert bounds.lower - slack <= truth <= bounds.upper + slack
    assert bounds.upper - bounds.lower < 1e-9 * max(1.0, abs(truth))


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 7.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 1.0, 30.0])
def test_gaussian_closed_form_bounds_its_error(mu, epsilon):
    value, error = log_gaussian_delta(epsilon, mu)
    truth = gaussian_log_delta(epsilon, mu)
    assert abs(math.expm1(value - truth)) <= error


@pytest.mark.parametrize(
    ("q", "sigma", "direction", "z"),
    [
        (0.01, 1.0, "remove", 2.0),
        (0.01, 1.0, "add", 2.0 + 3.0j),
        (0.3, 0.5, "add", 0.5 + 4.0j),
        (0.3, 5.0, "remove", 0.5 + 20.0j),
        (1e-5, 0.6, "remove", 2.0 + 3.0j),
        (1e-7, 30.0, "add", -0.5 + 1.0j),
        (1e-5, 0.6, "add", 437.0),
    ],
)
def test_log_mgf_keeps_the_digits_of_m_minus_one(q, sigma, direction, z):
    value = SampledGaussian(q, sigma, direction).log_mgf(z)
    truth = mixture_log_mgf(q, sigma, direction, z)
    assert abs(value - truth) < 2e-13 * abs(truth) + 1e-25


def test_tilted_decay_is_a_bound():
    for direction, q, sigma in [("remove", 0.01, 0.7), ("add", 0.2, 2.0), ("remove", 1e-3, 0.5)]:
        tilt = SampledGaussian(q, sigma, direction).tilt(2.5)
        step = 0.3
        log_ratio = tilt.log_ratio(step, 4000).real
        t = step * np.arange(1, 3000)
        bound = tilt.log_decay(t, 1.2)
        for k in range(1, 3000, 37):
            reach = slice(k, int(1.2 * k) + 1)
            assert log_ratio[reach].max() <= bound[k - 1] + 1e-9


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    st.floats(-4, -0.05).map(lambda x: 10.0**x),
    st.floats(0.45, 20.0),
    st.integers(2, 10**6),
    st.floats(0.01, 10.0),
)
def test_bounds_agree_with_renyi_and_are_ordered(q, sigma, steps, epsilon):
    for direction in decompose(dpsgd(q, sigma, steps), "add-or-remove-one").directions:
        bounds = characteristic.log_delta_bounds(direction, epsilon)
        upper = renyi.log_delta_bounds(direction, epsilon).upper
        assert bounds.lower <= bounds.upper <= 0
        assert bounds.lower <= upper
        assert bounds.upper == upper or bounds.upper <= upper + 1e-6 * abs(upper) + 1e-9


@settings(max_examples=15, deadline=None)
@given(
    st.floats(-3, -0.3).map(lambda x: 10.0**x),
    st.floats(0.6, 8.0),
    st.integers(1, 10**5),
    st.floats(-12, -1).map(lambda x: 10.0**x),
)
def test_epsilon_and_delta_are_inverse_and_outward(q, sigma, steps, delta):
    event = dpsgd(q, sigma, steps)
    answer = accountants.epsilon(event, delta=delta)
    assert answer.lower <= answer.upper == float(answer)
    if answer > 0:
        assert accountants.delta(event, epsilon=answer).lower <= delta * (1 + 1e-9)
        assert accountants.delta(event, epsilon=answer.lower).upper >= delta * (1 - 1e-9)


@pytest.mark.parametrize(
    ("direction", "q", "sigma", "epsilon"),
    [("remove", 0.1, 0.8, 0.7), ("add", 0.3, 0.8, 0.2), ("remove", 1e-3, 0.5, 0.01)],
)
def test_single_use_closed_form_matches_quadrature(direction, q, sigma, epsilon):
    # delta(epsilon) of one sampled Gaussian as the integral of (P - exp(epsilon) Q)_+.
    remove = direction == "remove"
    signed = epsilon if remove else -epsilon
    with mpmath.workdps(30):

        def gain(x):
            base = mpmath.npdf(x, 0, sigma)
            mixed = (1 - q) * base + q * mpmath.npdf(x, 1, sigma)
            return (
                mixed - mpmath.exp(epsilon) * base if remove else base - mpmath.exp(epsilon) * mixed
            )

        edge = sigma**2 * mpmath.log(1 + mpmath.expm1(signed) / q) + mpmath.mpf(1) / 2
        ends = [edge + k * (1 if remove else -1) for k in (0, 1, 3, 30)]
        truth = float(mpmath.log(abs(mpmath.quad(gain, ends))))
    value, error = SampledGaussian(q, sigma, direction).log_delta(epsilon)
    assert abs(math.expm1(value - truth)) <= error + 1e-13


def test_split_reaches_a_gap_in_the_law():
    # epsilon lies between no jump (loss near 0) and one jump (loss near 9): Chernoff at the
    # saddle of the whole law is off by 100 in log delta, and the split proves both sides.
    direction = Direction("remove", ((SampledGaussian(1e-4, 2.0, "remove"), 100),))
    bounds = characteristic.log_delta_bounds(direction, 2.0)
    # One step must jump: between 1 and 1.01 times T times a single step's delta, whose bulk
    # partners add little; the single-step closed form is exact.
    single, _ = SampledGaussian(1e-4, 2.0, "remove").log_delta(2.0)
    assert bounds.method.startswith(("split", "layers"))
    assert bounds.upper - bounds.lower < 1e-4
    assert bounds.lower > single + math.log(100)
    assert bounds.upper < single + math.log(100) + 0.5


def test_directions_are_composed_before_the_maximum_is_taken():
    # Removing dominates for large epsilon, adding for none of these; composing the worse of
    # both per step instead would report more than either direction needs.
    event = dpsgd(0.05, 1.0, 200)
    composition = decompose(event, "add-or-remove-one")
    values = [
        characteristic.epsilon_bounds(direction, math.log(1e-5)).upper
        for direction in composition.directions
    ]
    assert accountants.epsilon(event, delta=1e-5) == max(values)
    assert min(values) < max(values)


@pytest.mark.slow
def test_other_packages_agree():
    event = dpsgd(0.02, 1.1, 500)
    answer = accountants.epsilon(event, delta=1e-5)
    pld = accountants.epsilon(event, delta=1e-5, accountant="pld")
    prv = accountants.epsilon(event, delta=1e-5, accountant="prv", eps_error=0.05)
    assert answer.upper <= pld < answer + 1e-3
    assert prv.lower <= answer <= prv.upper
    assert accountants.epsilon(event, delta=1e-5, accountant="renyi") > answer


@pytest.mark.slow
def test_tiny_delta_where_backends_stop():
    event = dpsgd(0.01, 1.0, 10_000)
    assert accountants.epsilon(event, delta=1e-30, accountant="pld") == math.inf
    with pytest.raises(BackendRefused, match="prv-accountant refused"):
        accountants.epsilon(event, delta=1e-30, accountant="prv", eps_error=0.1)
    assert accountants.epsilon(event, delta=1e-30) == pytest.approx(17.6350611, abs=1e-7)


def test_log_delta_far_below_a_double():
    event = dpsgd(0.01, 1.0, 10_000)
    value = accountants.log_delta(event, epsilon=300.0)
    assert value < -2000
    assert value.upper - value.lower < 1e-9 * abs(value)
    assert 0 < accountants.delta(event, epsilon=300.0) <= 5e-324
    assert accountants.delta(event, epsilon=300.0).lower == 0.0


def test_replace_one_doubles_the_sensitivity_of_a_gaussian():
    one = accountants.epsilon(events.GaussianDpEvent(3.0), delta=1e-6)
    two = accountants.epsilon(
        events.GaussianDpEvent(6.0), delta=1e-6, neighboring_relation="replace-one"
    )
    assert two == one


def test_nesting_and_order_do_not_matter():
    a, b = dpsgd(0.01, 1.0, 10), dpsgd(0.02, 2.0, 30)
    flat = events.ComposedDpEvent([a, b, a])
    nested = events.SelfComposedDpEvent(
        events.ComposedDpEvent([events.ComposedDpEvent([b]), a, a, events.NoOpDpEvent()]), 1
    )
    assert accountants.epsilon(flat, delta=1e-6) == pytest.approx(
        accountants.epsilon(nested, delta=1e-6), rel=1e-12
    )


def test_nothing_and_everything():
    assert accountants.epsilon(events.NoOpDpEvent(), delta=1e-6) == 0
    assert accountants.epsilon(events.NonPrivateDpEvent(), delta=1e-6) == math.inf
    assert accountants.delta(events.NonPrivateDpEvent(), epsilon=1.0) == 1
    assert accountants.delta(events.NoOpDpEvent(), epsilon=0.0) == 0


def test_unknown_events_are_refused_in_a_sentence():
    with pytest.raises(UnsupportedEvent, match=r"No theorem here prices UnsupportedDpEvent"):
        accountants.epsilon(events.UnsupportedDpEvent(), delta=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: accountants.epsilon(dpsgd(0.01, 1.0, 10), delta=-0.5),
            r"delta must be .*\[0, 1\)",
        ),
        (lambda: accountants.epsilon(dpsgd(0.01, 1.0, 10), delta=math.nan), "delta must be"),
        (lambda: accountants.delta(dpsgd(0.01, 1.0, 10), epsilon=-1.0), "epsilon must be .* >= 0"),
        (lambda: accountants.delta(dpsgd(0.01, 1.0, 10), epsilon=math.inf), "epsilon must be"),
        (lambda: dpsgd(0.0, 1.0, 10), r"sampling_probability must be a number in \(0, 1\]"),
        (lambda: dpsgd(1.5, 1.0, 10), "sampling_probability must be"),
        (lambda: dpsgd(0.5, 0.0, 10), "noise_multiplier must be a finite number > 0"),
        (lambda: dpsgd(0.5, 1.0, 0), "steps must be a whole number >= 1"),
        (lambda: dpsgd(0.5, 1.0, 2.5), "steps must be a whole number >= 1"),
        (
            lambda: accountants.epsilon(dpsgd(0.5, 1.0, 1), delta=0.1, accountant="gdp"),
            "accountant must be one of",
        ),
        (
            lambda: accountants.epsilon(dpsgd(0.5, 1.0, 1), delta=0.1, neighboring_relation="swap"),
            "neighboring_relation must be one of",
        ),
        (
            lambda: accountants.epsilon(
                events.PoissonSampledDpEvent(0.5, events.GaussianDpEvent(-1.0)), delta=0.1
            ),
            "noise_multiplier must be",
        ),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_types():
    with pytest.raises(TypeError, match="event must be a DpEvent"):
        accountants.epsilon("dpsgd", delta=0.1)
    with pytest.raises(TypeError, match="takes no options"):
        accountants.epsilon(dpsgd(0.5, 1.0, 1), delta=0.1, eps_error=0.1)
    with pytest.raises(TypeError, match="delta must be"):
        accountants.epsilon(dpsgd(0.5, 1.0, 1), delta="small")


def test_answers_survive_pickling():
    answer = accountants.epsilon(dpsgd(0.01, 1.0, 100), delta=1e-6)
    copy = pickle.loads(pickle.dumps(answer))
    assert copy == answer
    assert copy.to_dict() == answer.to_dict()


@pytest.mark.slow
def test_compare_reports_disagreement():
    comparison = accountants.compare(dpsgd(0.01, 1.0, 100), delta=1e-6)
    assert comparison.disagreements == ()
    assert [row.accountant for row in comparison.rows] == ["characteristic", "renyi", "pld", "prv"]
    assert "characteristic" in str(comparison)
    rows = comparison.rows
    wrong = type(rows[0])("wrong", 0.0, rows[0].lower * 0.9, 0.0)
    bad = type(comparison)(1e-6, "add-or-remove-one", (*rows, wrong))
    assert any("wrong gives at most" in sentence for sentence in bad.disagreements)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "sigma", "epsilon"),
    [(0.0121407, 5.018843, 0.0464874), (0.0121407, 5.018843, 0.03), (0.05, 3.0, 0.6)],
)
def test_bounds_hold_where_weights_are_exponentials_of_large_terms_that_cancel(q, sigma, epsilon):
    # Two steps: the first one's loss shifts the epsilon that is left for the second, whose delta
    # at any real epsilon is a difference of normal tails; 30 digits, trapezoid rule.
    with mpmath.workdps(30):
        Q, S, e = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.mpf(epsilon)

        def survival(x):
            return mpmath.erfc(x / S / mpmath.sqrt(2)) / 2

        def single(rest):
            ratio = (mpmath.exp(rest) - 1 + Q) / Q
            if ratio <= 0:
                return 1 - mpmath.exp(rest)
            x = S * S * mpmath.log(ratio) + mpmath.mpf(1) / 2
            return (1 - Q) * survival(x) + Q * survival(x - 1) - mpmath.exp(rest) * survival(x)

        total, step = mpmath.mpf(0), S / 36
        for k in range(-36 * 12, 36 * 24):
            x = k * step
            weight = 1 - Q + Q * mpmath.exp((2 * x - 1) / (2 * S * S))
            total += mpmath.npdf(x, 0, S) * weight * single(e - mpmath.log(weight))
        exact = float(mpmath.log(total * step))
    event = events.SelfComposedDpEvent(
        events.PoissonSampledDpEvent(q, events.GaussianDpEvent(sigma)), 2
    )
    found = accountants.log_delta(event, epsilon=epsilon)
    assert found.lower <= exact <= found.upper


def broken_below(*_, **__):
    """Bounds of an accountant that is wrong on the unsafe side."""
    return Bounds(0.5, 0.6, "broken")


def test_a_cross_check_finds_an_epsilon_that_is_too_small(monkeypatch):
    event = dpsgd(0.1, 2.0, 100)
    true = accountants.epsilon(event, delta=1e-6, cross_check=True, interval=1e-3)
    assert true == accountants.epsilon(event, delta=1e-6)
    monkeypatch.setattr(characteristic, "epsilon_bounds", broken_below)
    monkeypatch.setattr(characteristic, "log_delta_bounds", lambda *_: Bounds(-40, -39, "broken"))
    with pytest.raises(AccountantsDisagree, match=r"'characteristic' proves \[0\.5, 0\.6\]"):
        accountants.epsilon(event, delta=1e-6, cross_check=True, interval=1e-3)
    with pytest.raises(AccountantsDisagree, match=r"log delta at epsilon=1\.0"):
        accountants.delta(event, epsilon=1.0, cross_check=True, interval=1e-3)


def test_a_cross_check_finds_a_broken_backend(monkeypatch):
    monkeypatch.setattr(interface._BACKENDS["pld"], "epsilon_bounds", broken_below)
    event = dpsgd(0.1, 2.0, 100)
    assert accountants.epsilon(event, delta=1e-6, accountant="pld") == 0.6
    for name in ("pld", "auto"):
        with pytest.raises(AccountantsDisagree, match=r"'pld' proves \[0\.5, 0\.6\]"):
            accountants.epsilon(event, delta=1e-6, accountant=name, cross_check=True)


LAPLACES = [events.DiscreteLaplaceDpEvent(a, 1) for a in (0.5, 1.0, 2.0)]


@pytest.mark.parametrize(
    ("wrap", "law"),
    [
        (lambda inner: events.PoissonSampledDpEvent(0.1, inner), "sampled"),
        (lambda inner: events.SampledWithoutReplacementDpEvent(1000, 100, inner), "sampled"),
        (lambda inner: events.AllocatedDpEvent(inner, 10), "allocated"),
    ],
)
def test_a_cross_check_finds_a_composition_on_batches_whose_law_lost_its_mass(
    monkeypatch, wrap, law
):
    """All accountants price the same law: a sum of the composition, alone, has its own."""
    plain, small = getattr(batches, law), law_of(pure(1e-9))

    def lost(found, *how):
        return plain(small if len(found.values) > 3 else found, *how)

    once = wrap(events.ComposedDpEvent(LAPLACES))
    for event in (once, events.SelfComposedDpEvent(once, 2)):
        assert accountants.epsilon(event, delta=1e-6, cross_check=True) > 1e-3
        with monkeypatch.context() as patch:
            patch.setattr(batches, law, lost)
            assert accountants.epsilon(event, delta=1e-6) < 1e-7
            with pytest.raises(AccountantsDisagree, match="a part of it, costs at least"):
                accountants.epsilon(event, delta=1e-6, cross_check=True)
            with pytest.raises(AccountantsDisagree, match="a part of it, costs at least"):
                accountants.delta(event, epsilon=1e-4, cross_check=True)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_cross_check_of_compositions_on_batches_agrees(relation):
    """A sum alone costs hardly less than the composition where the others say hardly anything."""
    both = events.ComposedDpEvent([events.DiscreteLaplaceDpEvent(a, 1) for a in (3.0, 1e-4)])
    how = {"neighboring_relation": relation, "delta": 1e-2}
    for event in (
        events.PoissonSampledDpEvent(0.1, both),
        events.SampledWithoutReplacementDpEvent(1000, 300, both),
        *([events.AllocatedDpEvent(both, 4)] if relation != "replace-one" else []),
    ):
        plain = accountants.epsilon(event, **how)
        assert accountants.epsilon(event, cross_check=True, **how) == plain > 0.1


def test_a_cross_check_by_renyi_where_pld_prices_nothing(monkeypatch):
    mixture = events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.9, 0.1])
    event = events.SelfComposedDpEvent(mixture, 30)
    assert accountants.epsilon(event, delta=1e-6, cross_check=True) > 0
    with pytest.raises(TypeError, match="'renyi' takes no options, got interval"):
        accountants.epsilon(event, delta=1e-6, cross_check=True, interval=1e-3)
    monkeypatch.setattr(renyi, "epsilon_bounds", lambda *_: Bounds(0.0, 0.1, "broken"))
    monkeypatch.setattr(renyi, "log_delta_bounds", lambda *_: Bounds(-99, -98, "broken"))
    with pytest.raises(AccountantsDisagree, match="'renyi' proves"):
        accountants.delta(event, epsilon=1.0, cross_check=True)


def test_pld_bounds_epsilon_from_both_sides():
    event = dpsgd(0.1, 2.0, 100)
    for delta in (1e-4, 1e-9, 1e-14):
        true = accountants.epsilon(event, delta=delta)
        both = accountants.epsilon(
            event, delta=delta, accountant="pld", interval=1e-3, two_sided=True
        )
        assert 0 < both.lower <= true.upper
        assert true.lower <= both.upper


def test_a_comparison_warns_of_intervals_that_do_not_meet(monkeypatch):
    event = dpsgd(0.1, 2.0, 100)
    monkeypatch.setattr(interface._BACKENDS["pld"], "epsilon_bounds", broken_below)
    with pytest.warns(DisagreementWarning, match="pld gives at most"):
        found = accountants.compare(event, delta=1e-6, accountants=("characteristic", "pld"))
    assert "CONTRADICTION" in str(found)


def test_a_comparison_passes_options_on():
    event = dpsgd(0.1, 2.0, 100)
    options = {"pld": {"interval": 1e-2, "two_sided": True}, "prv": {"eps_error": 0.5}}
    found = accountants.compare(event, delta=1e-6, accountants=("pld", "prv"), options=options)
    low, high = found.rows[0].lower, found.rows[0].upper
    assert 0 < low < 2.675035 < high
    assert 0.5 < found.rows[1].upper - found.rows[1].lower < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "steps"), [(1e-50, 1), (1e-12, 100), (1e-3, 1), (1e-3, 100), (1.0, 1)]
)
def test_extreme_noise_has_a_price_between_its_bounds(q, steps):
    def price(noise, probability=q):
        event = events.dpsgd(sampling_probability=probability, noise_multiplier=noise, steps=steps)
        return accountants.epsilon(event, delta=1e-6), accountants.delta(event, epsilon=1.0)

    prices = [price(noise) for noise in (1e-6, 1e-3, 1e-2, 1e5, 1e8, 1e12)]
    for before, after in itertools.pairwise(prices):
        assert all(known.lower <= known.upper for known in after)
        assert after[0].lower <= before[0].upper
        assert after[1].lower <= before[1].upper
    # No sampling hurts, and delta is at most the chance of being sampled at all.
    epsilon, delta = prices[2]
    assert epsilon.upper <= price(1e-2, 1.0)[0].upper * (1 + 1e-9)
    assert delta.upper <= -math.expm1(steps * math.log1p(-min(q, 1 - 1e-16))) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"noise_multiplier": 1e-7}, r"noise_multiplier must be a number in \[1e-06, 1e\+12\]"),
        ({"noise_multiplier": 1e160}, r"noise_multiplier must be a number in \[1e-06, 1e\+12\]"),
        ({"sampling_probability": 1e-200}, r"sampling_probability must be .*\[1e-50, 1\]"),
    ],
)
def test_what_double_precision_can_not_square_is_refused(given, named):
    given = {"sampling_probability": 0.01, "noise_multiplier": 1.0, **given}
    with pytest.raises(ValueError, match=named):
        accountants.epsilon(events.dpsgd(steps=10, **given), delta=1e-6)


@pytest.mark.parametrize("event", [events.GaussianDpEvent(0.01), dpsgd(0.5, 0.5, 1000)])
def test_a_delta_that_rounds_to_one_is_bounded_by_one(event):
    # For the Gaussian alone, 1 - delta is about exp(-1250).
    log_delta = accountants.log_delta(event, epsilon=1.0)
    assert -1e-12 < log_delta.lower < 0.0
    assert log_delta.lower <= log_delta.upper <= 0.0
    assert accountants.delta(event, epsilon=1.0).upper == 1.0
