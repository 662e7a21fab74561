"""Certificates: proved intervals hold the truth, in easy questions and in hard corners."""

import math
from decimal import Decimal

import pytest

from dpcal import accountants
from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates.proofs import SupportProof
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians
from dpcal.errors import TargetUnreachable, UnsupportedEvent

DPSGD = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
MIXED = events.ComposedDpEvent([events.GaussianDpEvent(4.0), DPSGD])


@pytest.mark.slow
@pytest.mark.parametrize("event", [DPSGD, MIXED, events.GaussianDpEvent(1.0)])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 20.0])
def test_the_float_accountant_meets_the_certificate(event, epsilon):
    certificate = certify(event, epsilon=epsilon, width=1e-9)
    answer = accountants.log_delta(event, epsilon=epsilon)
    # Comparison of logarithms costs a few roundings.
    rounding = 1e-15 * (1 + abs(answer.upper))
    assert answer.upper >= float(certificate.lower.ln()) - rounding
    assert answer.lower <= float(certificate.upper.ln()) + rounding


@pytest.mark.slow
@pytest.mark.parametrize(("width", "delta"), [(1e-3, 1e-6), (1e-9, 1e-6), (1e-6, 1e-30)])
def test_epsilon_is_certified(width, delta):
    certificate = certify(DPSGD, delta=delta, width=width)
    answer = accountants.epsilon(DPSGD, delta=delta)
    assert certificate.quantity == "epsilon"
    assert certificate.lower < Decimal(answer.lower) <= Decimal(answer.upper) < certificate.upper
    assert (certificate.upper - certificate.lower) <= Decimal(width) * certificate.upper
    low, high = verify_certificate(certificate).proofs
    assert high.upper <= Decimal(delta) <= low.lower


def test_a_bounded_loss_and_no_loss():
    event = events.dpsgd(sampling_probability=0.05, noise_multiplier=0.4, steps=100)
    certificate = certify(event, epsilon=10.0)
    added = certificate.proofs[0].directions[1]
    assert [item.proof for item in added.arguments] == [SupportProof()]
    assert added.upper == 0
    assert certify(events.NoOpDpEvent(), epsilon=0.0).upper == 0
    for item in (certificate, certify(events.NoOpDpEvent(), epsilon=0.0)):
        assert verify_certificate(item.to_json()) == item


def test_a_gaussian_far_from_any_danger_has_a_certificate():
    certificate = certify(events.GaussianDpEvent(1.0), epsilon=2000.0)
    assert 0 <= certificate.lower <= certificate.upper < Decimal("1E-30000")


def test_weights_of_many_equal_shifts_keep_their_digits():
    shares = [0.1 / 20_000] * 20_000
    both = mixture_of_gaussians([1.0] * 20_000 + [0.0], [*shares, 0.9], standard_deviation=1.0)
    few = mixture_of_gaussians([1.0, 0.0], [math.fsum(shares), 0.9], standard_deviation=1.0)
    assert both == few


# -- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of epsilon and delta"),
        ({"epsilon": 1.0, "delta": 1e-5}, "exactly one of epsilon and delta"),
        ({"epsilon": -1.0}, r"epsilon must be a finite number >= 0, got -1\.0\."),
        ({"delta": 1.0}, r"delta must be a number in \(0, 1\), got 1\.0\."),
        ({"epsilon": 1.0, "width": 0.0}, r"width must be a number in \(0, 1\), got 0\.0\."),
        ({"epsilon": 1.0, "neighboring_relation": "near"}, "neighboring_relation must be one of"),
    ],
)
def test_bad_input_gets_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        certify(DPSGD, **options)


@pytest.mark.parametrize(
    "event", [events.ZCDpEvent(0.1), events.NonPrivateDpEvent(), events.UnsupportedDpEvent()]
)
def test_uncovered_events_are_refused(event):
    with pytest.raises(UnsupportedEvent, match=r"No certificate covers .*: only Gaussian"):
        certify(event, epsilon=1.0)


@pytest.mark.slow
def test_a_width_out_of_reach_is_refused():
    claim = r"relative width 1e-15; .* of width .*, by finite sum\."
    with pytest.raises(TargetUnreachable, match=claim):
        certify(events.LaplaceDpEvent(2.0), epsilon=0.2, width=1e-15)


# -- hard corners

SPARSE = events.dpsgd(sampling_probability=1e-4, noise_multiplier=0.4, steps=30)
CORNERS = {
    "a few rare large losses": (SPARSE, 15.0, {}, "smoothed contour"),
    "losses of any size": (
        events.dpsgd(sampling_probability=1e-9, noise_multiplier=0.5, steps=10**6),
        1.0,
        {},
        "",
    ),
    "different rare steps": (
        events.ComposedDpEvent(
            [
                events.dpsgd(sampling_probability=1e-5, noise_multiplier=0.3, steps=100),
                events.dpsgd(sampling_probability=1e-4, noise_multiplier=0.4, steps=10),
            ]
        ),
        8.0,
        {},
        "smoothed contour",
    ),
    "a replaced record": (
        events.PoissonSampledDpEvent(0.01, events.GaussianDpEvent(1.0)),
        0.3,
        {"neighboring_relation": "replace-one"},
        "finite sum",
    ),
    "batches without replacement": (
        events.SelfComposedDpEvent(
            events.SampledWithoutReplacementDpEvent(10_000, 100, events.GaussianDpEvent(2.0)), 1000
        ),
        2.0,
        {},
        "contour",
    ),
    "one batch, a replaced record": (
        events.SampledWithoutReplacementDpEvent(10_000, 100, events.GaussianDpEvent(2.0)),
        1.0,
        {"neighboring_relation": "replace-one"},
        "finite sum",
    ),
    "Laplace noise": (events.LaplaceDpEvent(2.0), 0.2, {}, "finite sum"),
    "discrete Laplace noise": (
        events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(0.2, 2), 50),
        3.0,
        {},
        "finite sum",
    ),
    "randomized response": (
        events.SelfComposedDpEvent(events.RandomizedResponseDpEvent(0.7, 3), 50),
        5.0,
        {"neighboring_relation": "replace-one"},
        "finite sum",
    ),
    "responses of blanked records": (
        events.SelfComposedDpEvent(events.RandomizedResponseDpEvent(0.7, 3), 50),
        2.5,
        {"neighboring_relation": "replace-special"},
        "finite sum",
    ),
    "discrete Gaussian noise": (
        events.SelfComposedDpEvent(events.DiscreteGaussianDpEvent(10.0, 1), 100),
        4.0,
        {},
        "finite sum",
    ),
    "a mixture": (
        events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.9, 0.09, 0.01]),
        0.5,
        {},
        "finite sum",
    ),
    "a claim that may fail": (
        events.SelfComposedDpEvent(events.EpsilonDeltaDpEvent(0.1, 1e-8), 50),
        2.0,
        {},
        "finite sum",
    ),
}


LEFT_TO_THE_STUDY = ("different rare steps", "discrete Gaussian noise")


@pytest.mark.slow
@pytest.mark.study
def test_losses_of_hundreds_have_a_certificate():
    event = events.dpsgd(sampling_probability=1e-3, noise_multiplier=0.05, steps=1000)
    certificate = certify(event, epsilon=1000.0)
    assert verify_certificate(certificate.to_json()) == certificate
    # A sample of the record loses about 200 +- 20 + log(1e-3): six are enough, five may be.
    chances = [math.exp(-1) / math.factorial(k) for k in range(7)]
    assert 0.9 * (1 - sum(chances[:6])) < certificate.upper
    assert certificate.lower <= certificate.upper < 1.1 * (1 - sum(chances[:5]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        # A certificate of one kind of rare step takes a quarter of a minute already, and a sum over
        # discrete noise is proved like that over discrete Laplace noise.
        pytest.param(name, marks=[pytest.mark.study] * (name in LEFT_TO_THE_STUDY))
        for name in CORNERS
    ],
)
def test_hard_corners_are_proved(name):
    event, epsilon, options, method = CORNERS[name]
    certificate = certify(event, epsilon=epsilon, **options)
    assert 0 < certificate.lower <= certificate.upper
    assert verify_certificate(certificate.to_json()) == certificate
    answer = accountants.log_delta(event, epsilon=epsilon, **options)
    rounding = 1e-13 * (1 + abs(answer.upper))
    assert answer.lower <= float(certificate.upper.ln()) + rounding
    assert answer.upper >= float(certificate.lower.ln()) - rounding
    assert certificate.width < (0.1 if method else 0.9)
    worst = max(certificate.proofs[0].directions, key=lambda item: item.upper)
    assert method in worst.upper_method
