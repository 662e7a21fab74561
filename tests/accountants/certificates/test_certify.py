"""Certificates: proved intervals hold the truth, in easy questions and in hard corners."""

import json
import math
from decimal import Decimal

import pytest
from _certificates import resigned
from _tree import DATA
from contracts._events import WRITTEN, made
from flint import arb

from dpcal import accountants
from dpcal.accountants import Certificate, certify, events, verify_certificate
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians
from dpcal.errors import CertificateRejected, TargetUnreachable, UnsupportedEvent

DPSGD = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)


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
    removed, added = certificate.proofs[0].directions
    assert added.upper < removed.lower
    laplace = certify(events.LaplaceDpEvent(0.5), epsilon=2.0)
    assert laplace.upper == 0
    assert verify_certificate(laplace.to_json()) == laplace
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
    claim = r"relative width 1e-15; .* of width .*, by convex order\."
    with pytest.raises(TargetUnreachable, match=claim):
        certify(events.LaplaceDpEvent(2.0), epsilon=0.2, width=1e-15)


# -- events of earlier documents, and hard corners

STORED = json.loads((DATA / "certificates.json").read_text())
RESPONSES = events.SelfComposedDpEvent(events.RandomizedResponseDpEvent(0.7, 3), 50)
# An event, an epsilon, a relation, what proves the worst upper end, and how wide that may be.
CORNERS = {
    "responses": (RESPONSES, 5.0, "replace-one", "convex order", 0.1),
    "responses of blanked records": (RESPONSES, 2.5, "replace-special", "convex order", 0.1),
}
ANSWERS = events.ComposedDpEvent([events.LaplaceDpEvent(4.0), events.GaussianDpEvent(3.0)])
NOISELESS = events.PoissonSampledDpEvent(0.01, events.GaussianDpEvent(0.03))
ADDED = (
    ("sample", events.PoissonSampledDpEvent(0.1, ANSWERS), 5, 0.4),
    ("batch", events.SampledWithoutReplacementDpEvent(100, 10, ANSWERS), 2, 0.5),
    ("epoch", events.AllocatedDpEvent(ANSWERS, 10), 2, 0.5),
    ("next to no noise", NOISELESS, 10, 1.0),
)
for name, event, times, epsilon in ADDED:
    run = events.SelfComposedDpEvent(event, times)
    CORNERS[name] = run, epsilon, "add-or-remove-one", "convex order", 0.01
# The search for a proof of "rare" takes half a minute; "smoothed" is "rare_steps".
for name, document in STORED.items():
    if document["delta"] is None and name not in ("rare", "smoothed"):
        known = Certificate.from_json(json.dumps(document))
        event = events.ComposedDpEvent(
            [events.SelfComposedDpEvent(item.event, item.count) for item in known.mechanisms]
        )
        (bounds,) = known.proofs
        worst = max(bounds.directions, key=lambda item: item.upper)
        question = event, bounds.epsilon, known.neighboring_relation
        CORNERS[name] = *question, worst.method, max(0.1, 1.1 * known.width)


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
    if certificate.lower:
        assert answer.upper >= float(certificate.lower.ln()) - rounding
    assert certificate.width < width
    worst = max(certificate.proofs[0].directions, key=lambda item: item.upper)
    assert worst.method == method


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.1, 1 / 3])
def test_an_answer_about_a_sample_is_amplified(q):
    """On a sample delta(log(1 + q (e^x - 1))) is q delta(x) of a removed record (Balle et al.)."""
    x = 0.3
    truth = q * -math.expm1((x - 0.5) / 2)
    sample = events.PoissonSampledDpEvent(q, events.LaplaceDpEvent(2.0))
    certificate = certify(sample, epsilon=math.log1p(q * math.expm1(x)))
    assert Decimal(truth * (1 - 1e-12)) <= certificate.upper
    assert certificate.lower <= Decimal(truth * (1 + 1e-12))
    assert certificate.width < 1e-2
    document = certificate.to_dict()
    document["proofs"][0]["directions"][0]["upper"] = str(0.99 * truth)
    with pytest.raises(CertificateRejected, match="gives delta in"):
        verify_certificate(resigned(document))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "batch", "sigma"), [(60, 6, 2.0), (2, 3, 3.0), (9, 5, 0.8)])
def test_a_batch_drawn_with_replacement_is_told_by_a_threshold(size, batch, sigma):
    """Delta is P(X > x) - exp(epsilon) Q(X > x) where the ratio is exp(epsilon), in balls."""
    scale, counts = arb(sigma) * arb(2).sqrt(), range(batch + 1)
    chances = [arb(math.comb(batch, k) * (size - 1) ** (batch - k)) / size**batch for k in counts]
    at = 1.5 * sigma
    ratio = sum(chances[k] * (4 * (k * at - k * k) / scale**2).exp() for k in counts)
    tails = [((at - 2 * k) / scale).erfc() / 2 for k in counts]
    epsilon = float(ratio.log())
    drawn = sum(chances[k] * tails[k] for k in counts)
    truth = float(drawn - arb(epsilon).exp() * tails[0])
    event = events.SampledWithReplacementDpEvent(size, batch, events.GaussianDpEvent(sigma))
    certificate = certify(event, epsilon=epsilon)
    assert float(certificate.lower) <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= float(certificate.upper)
    assert certificate.width < 2e-3
    assert verify_certificate(certificate.to_json()) == certificate
