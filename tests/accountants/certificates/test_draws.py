"""Draws with replacement: weights against exact binomials, and proofs against the accountant."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from dpcal import accountants
from dpcal.accountants import certify, dominating_draws, events, verify_certificate
from dpcal.errors import CertificateRejected


@pytest.mark.parametrize(
    ("size", "batch", "failure"),
    [(6000, 60, 1e-10), (2, 3, 1e-9), (3, 40, 1e-9), (5, 1, 1e-6)],
)
def test_more_draws_are_never_rarer_than_they_are(size, batch, failure):
    """Every tail of the law of draws is at most that of the mixture with its failures."""
    event = dominating_draws(size, batch, noise_multiplier=1.0, steps=7, failure=failure)
    mixture, *failures = (item.event for item in event.events)
    failing = Fraction(failures[0].delta) if failures else Fraction(0)
    weights = [Fraction(weight) for weight in mixture.sampling_probs]
    assert mixture.sensitivities == [2.0 * k for k in range(len(weights))]
    assert sum(weights) == 1
    exact = [
        Fraction(math.comb(batch, k) * (size - 1) ** (batch - k), size**batch)
        for k in range(batch + 1)
    ]
    assert sum(exact[len(weights) :]) <= failing <= failure
    for k in range(len(weights)):
        told = failing + (1 - failing) * sum(weights[k:])
        assert sum(exact[k:]) <= told <= sum(exact[k:]) + failing + Fraction(1, 2**45)


@pytest.mark.slow
def test_the_proved_upper_bound_is_just_above_the_accountants_price():
    size, batch, sigma, steps, delta = 60_000, 512, 1.6, 1, 1e-5
    run = events.SelfComposedDpEvent(
        events.SampledWithReplacementDpEvent(size, batch, events.GaussianDpEvent(sigma)), steps
    )
    priced = accountants.epsilon(run, delta=delta)
    event = dominating_draws(
        size, batch, noise_multiplier=sigma, steps=steps, failure=1e-3 * delta / steps
    )
    certificate = certify(event, delta=delta, sides="upper")
    assert certificate.lower == 0
    assert priced.lower <= float(certificate.upper) <= 1.01 * priced.upper
    assert verify_certificate(certificate.to_dict()).upper == certificate.upper
    # A document of rarer draws is rejected.
    document = json.loads(certificate.to_json())
    document["mechanisms"][0]["event"]["sampling_probs"][1] /= 2
    with pytest.raises(CertificateRejected):
        verify_certificate(document)


def test_the_upper_side_alone_has_half_of_the_work():
    upper = certify(events.GaussianDpEvent(1.0), delta=1e-5, sides="upper")
    both = certify(events.GaussianDpEvent(1.0), delta=1e-5)
    assert upper.lower == 0
    assert both.lower <= upper.upper <= Decimal("1.02") * both.upper
    assert verify_certificate(upper.to_json()).upper == upper.upper
