"""Accountants against closed forms, high precision, other packages and each other."""

import itertools
import math
import pickle

import mpmath
import pytest
from _integrals import POINTS, exact_gaussian_delta, sampled_moment

from dpcal import accountants
from dpcal.accountants import characteristic, events, interface, renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import RELATIONS, Direction
from dpcal.accountants.inversion import amplification
from dpcal.accountants.inversion.finite_laws import law_of
from dpcal.accountants.losses.discrete import pure
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import AccountantsDisagree, DisagreementWarning


def dpsgd(q, sigma, steps):
    return events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=steps)


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 7.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 1.0, 30.0])
def test_gaussian_closed_form_bounds_its_error(mu, epsilon):
    value, error = log_gaussian_delta(epsilon, mu)
    truth = float(mpmath.log(exact_gaussian_delta(mu, epsilon)))
    assert abs(math.expm1(value - truth)) <= error


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma", "directions", "tilts"), POINTS["sampled_moments"])
def test_moments_keep_their_digits(q, sigma, directions, tilts):
    for direction, c in itertools.product(directions, tilts):
        truth = float(sampled_moment(q, sigma, direction, c).real)
        loss = SampledGaussian(q, sigma, direction)
        # Losses near 1 / (2 sigma^2) are rounded themselves.
        error = abs(loss.cumulants([c])[0, 0] - truth)
        allowed = 2e-14 + 1e-16 / sigma**2 * (c > 0)
        assert error < allowed * abs(truth) + 1e-16 * (c < 0), (direction, c)


def test_a_cut_reaches_a_gap_in_the_law():
    # epsilon lies between no jump (loss near 0) and one jump (loss near 9): Chernoff at the
    # saddle of the whole law is off by 100 in log delta, and a cut proves both sides.
    direction = Direction("remove", ((SampledGaussian(1e-4, 2.0, "remove"), 100),))
    bounds = characteristic.log_delta_bounds(direction, 2.0)
    # One step must jump: between 1 and 1.01 times T times a single step's delta, whose bulk
    # partners add little; the single-step closed form is exact.
    single, _ = SampledGaussian(1e-4, 2.0, "remove").log_delta(2.0)
    assert bounds.method == "cut"
    assert bounds.upper - bounds.lower < 1e-3
    assert bounds.lower > single + math.log(100)
    assert bounds.upper < single + math.log(100) + 0.5


def test_log_delta_far_below_a_double():
    event = dpsgd(0.01, 1.0, 10_000)
    value = accountants.log_delta(event, epsilon=300.0)
    assert value < -2000
    assert value.upper - value.lower < 1e-9 * abs(value)
    assert 0 < accountants.delta(event, epsilon=300.0) <= 5e-324
    assert accountants.delta(event, epsilon=300.0).lower == 0.0


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


STEPS = dpsgd(0.1, 2.0, 100)


def broken_below(*_, **__):
    """Return bounds of an accountant that is wrong on the unsafe side."""
    return Bounds(0.5, 0.6, "broken")


def test_a_cross_check_finds_an_epsilon_that_is_too_small(monkeypatch):
    true = accountants.epsilon(STEPS, delta=1e-6, cross_check=True, interval=1e-3)
    assert true == accountants.epsilon(STEPS, delta=1e-6)
    monkeypatch.setattr(characteristic, "epsilon_bounds", broken_below)
    monkeypatch.setattr(characteristic, "log_delta_bounds", lambda *_: Bounds(-40, -39, "broken"))
    with pytest.raises(AccountantsDisagree, match=r"characteristic gives at most 0\.6 where pld"):
        accountants.epsilon(STEPS, delta=1e-6, cross_check=True, interval=1e-3)
    with pytest.raises(AccountantsDisagree, match=r"log delta at epsilon=1\.0"):
        accountants.delta(STEPS, epsilon=1.0, cross_check=True, interval=1e-3)


def test_a_cross_check_or_a_comparison_finds_a_broken_backend(monkeypatch):
    monkeypatch.setattr(interface._BACKENDS["pld"], "epsilon_bounds", broken_below)
    assert accountants.epsilon(STEPS, delta=1e-6, accountant="pld") == 0.6
    for name in ("pld", "auto"):
        with pytest.raises(
            AccountantsDisagree, match=r"pld gives at most 0\.6 where char.* least 2\.67"
        ):
            accountants.epsilon(STEPS, delta=1e-6, accountant=name, cross_check=True)
    with pytest.warns(DisagreementWarning, match="pld gives at most"):
        found = accountants.compare(STEPS, delta=1e-6, accountants=("characteristic", "pld"))
    assert "CONTRADICTION" in str(found)
    assert str(found).splitlines()[3].split()[:3] == ["pld", "0.5", "0.6"]


LAPLACES = [events.DiscreteLaplaceDpEvent(a, 1) for a in (0.5, 1.0, 2.0)]


@pytest.mark.parametrize(
    ("wrap", "module", "law"),
    [
        (lambda inner: events.PoissonSampledDpEvent(0.1, inner), amplification, "sampled"),
        (
            lambda inner: events.SampledWithoutReplacementDpEvent(1000, 100, inner),
            amplification,
            "sampled",
        ),
        (lambda inner: events.AllocatedDpEvent(inner, 10), amplification, "allocated"),
    ],
)
def test_a_cross_check_finds_a_composition_on_batches_whose_law_lost_its_mass(
    monkeypatch, wrap, module, law
):
    """All accountants price the same law: a sum of the composition, alone, has its own."""
    plain, small = getattr(module, law), law_of(pure(1e-9))

    def lost(found, *how):
        return plain(small if len(found.values) > 3 else found, *how)

    once = wrap(events.ComposedDpEvent(LAPLACES))
    for event in (once, events.SelfComposedDpEvent(once, 2)):
        assert accountants.epsilon(event, delta=1e-6, cross_check=True) > 1e-3
        with monkeypatch.context() as patch:
            patch.setattr(module, law, lost)
            assert accountants.epsilon(event, delta=1e-6) < 1e-7
            with pytest.raises(AccountantsDisagree, match="a part of it, proves at least"):
                accountants.epsilon(event, delta=1e-6, cross_check=True)
            with pytest.raises(AccountantsDisagree, match="a part of it, proves at least"):
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
    with pytest.raises(AccountantsDisagree, match="renyi gives at most"):
        accountants.delta(event, epsilon=1.0, cross_check=True)


@pytest.mark.slow
def test_a_comparison_passes_options_on_and_no_package_disagrees():
    event = dpsgd(0.02, 1.1, 500)
    options = {"pld": {"interval": 1e-3, "two_sided": True}, "prv": {"eps_error": 0.5}}
    found = accountants.compare(event, delta=1e-5, options=options)
    assert found.disagreements == ()
    own, by_renyi, pld, prv = found.rows
    assert [own.accountant, by_renyi.accountant] == ["characteristic", "renyi"]
    assert 0 < pld.lower <= own.lower <= own.upper <= pld.upper < own.upper + 0.1 < by_renyi.upper
    assert 0.5 < prv.upper - prv.lower < 1.5
    assert prv.lower <= own.upper
    assert pickle.loads(pickle.dumps(found)) == found


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


@pytest.mark.parametrize("event", [events.GaussianDpEvent(0.01), dpsgd(0.5, 0.5, 1000)])
def test_a_delta_that_rounds_to_one_is_bounded_by_one(event):
    # For the Gaussian alone, 1 - delta is about exp(-1250).
    log_delta = accountants.log_delta(event, epsilon=1.0)
    assert -1e-12 < log_delta.lower < 0.0
    assert log_delta.lower <= log_delta.upper <= 0.0
    assert accountants.delta(event, epsilon=1.0).upper == 1.0
