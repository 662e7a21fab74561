"""Certificates: proved intervals hold the truth, in easy questions and in hard corners."""

import json
import math
from decimal import Decimal

import pytest
from _tree import DATA
from contracts._events import WRITTEN, made

from dpcal import accountants
from dpcal.accountants import Certificate, certify, events, verify_certificate
from dpcal.accountants.certificates.proofs import SupportProof
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians
from dpcal.errors import TargetUnreachable, UnsupportedEvent

DPSGD = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
MIXED = events.ComposedDpEvent([events.GaussianDpEvent(4.0), DPSGD])


@pytest.mark.slow
@pytest.mark.parametrize(("width", "delta"), [(1e-9, 1e-6), (1e-6, 1e-30)])
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


def test_weights_of_many_equal_shifts_keep_their_digits():
    shares = [0.1 / 20_000] * 20_000
    both = mixture_of_gaussians([1.0] * 20_000 + [0.0], [*shares, 0.9], standard_deviation=1.0)
    few = mixture_of_gaussians([1.0, 0.0], [math.fsum(shares), 0.9], standard_deviation=1.0)
    assert both == few


@pytest.mark.parametrize(("event", "options", "reason"), WRITTEN["no_proof"])
def test_what_no_proof_covers_is_refused(event, options, reason):
    with pytest.raises(UnsupportedEvent, match=reason):
        certify(made(event), **options)


@pytest.mark.slow
def test_a_width_out_of_reach_is_refused():
    claim = r"relative width 1e-15; .* of width .*, by finite sum\."
    with pytest.raises(TargetUnreachable, match=claim):
        certify(events.LaplaceDpEvent(2.0), epsilon=0.2, width=1e-15)


# -- events of earlier documents, and hard corners

STORED = json.loads((DATA / "certificates.json").read_text())
RESPONSES = events.SelfComposedDpEvent(events.RandomizedResponseDpEvent(0.7, 3), 50)
# An event, an epsilon, a relation, what proves the worst upper end, and how wide that may be.
CORNERS = {
    "responses": (RESPONSES, 5.0, "replace-one", "finite sum", 0.1),
    "responses of blanked records": (RESPONSES, 2.5, "replace-special", "finite sum", 0.1),
}
for name, document in STORED.items():
    if document["delta"] is None:
        known = Certificate.from_json(json.dumps(document))
        event = events.ComposedDpEvent(
            [events.SelfComposedDpEvent(item.event, item.count) for item in known.mechanisms]
        )
        (bounds,) = known.proofs
        worst = max(bounds.directions, key=lambda item: item.upper)
        question = event, bounds.epsilon, known.neighboring_relation
        CORNERS[name] = *question, worst.upper_method, max(0.1, 1.1 * known.width)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORNERS)
def test_hard_corners_are_proved_and_hold_what_accountants_say(name):
    event, epsilon, relation, method, width = CORNERS[name]
    options = {"neighboring_relation": relation}
    certificate = certify(event, epsilon=epsilon, **options)
    assert 0 <= certificate.lower <= certificate.upper
    assert verify_certificate(certificate.to_json()) == certificate
    answer = accountants.log_delta(event, epsilon=epsilon, **options)
    rounding = 1e-13 * (1 + abs(answer.upper))
    assert answer.lower <= float(certificate.upper.ln()) + rounding
    assert answer.upper >= float(certificate.lower.ln()) - rounding
    assert certificate.width < width
    worst = max(certificate.proofs[0].directions, key=lambda item: item.upper)
    assert worst.upper_method == method
