"""Certificates: proved intervals hold the truth, and nothing can be changed unnoticed."""

import copy
import hashlib
import json
import math
from decimal import Decimal

import mpmath
import pytest
from _tree import DATA
from flint import acb, arb, ctx

from dpcal import accountants
from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates import enclosure
from dpcal.accountants.certificates import proofs as proof
from dpcal.accountants.certificates.certify import (
    Argument,
    Certificate,
    DeltaBounds,
    DirectionBounds,
    Mechanism,
)
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import CertificateRejected, TargetUnreachable, UnsupportedEvent

ROWS = json.loads((DATA / "poisson_gaussian.json").read_text())["rows"]
DPSGD = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
MIXED = events.ComposedDpEvent([events.GaussianDpEvent(4.0), DPSGD])


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['q']}-{row['sigma']}-{row['epsilon']}")
@pytest.mark.parametrize("width", [1e-3, 1e-10])
def test_the_reference_is_inside(row, width):
    parts = ((SampledGaussian(row["q"], row["sigma"], row["direction"]), row["steps"]),)
    chosen = proof.choose_contour(parts, row["epsilon"], width=width)
    lower, upper = enclosure.enclose(chosen, parts, row["epsilon"], bits=192)
    truth = Decimal(row["delta"])
    # The truth is given to 20 digits, and proved to 13 or more.
    slack = truth * Decimal("1e-13")
    assert enclosure.decimal_down(lower, 30) <= truth + slack
    assert truth - slack <= enclosure.decimal_up(upper, 30)
    assert float((upper.upper() - lower.lower()) / upper) < 10 * width


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 1.0), (0.3, 0.5), (0.2, 5.0)])
def test_transforms_agree_with_rigorous_integration(q, sigma, direction):
    c, h = 2.5, 3.0
    parts = ((SampledGaussian(q, sigma, direction), 10),)
    chosen = proof.choose_contour(parts, 0.05, width=1e-6)
    line = enclosure._Line(parts[0][0], chosen.sums[0])
    beyond = enclosure._Line(parts[0][0], chosen.tails[0]).bound_beyond(arb(c), arb(h))
    with ctx.workprec(96):
        for k, value in enumerate(line.transforms(arb(c), arb(h), 4)):
            z = acb(c, k * h)
            power = 1 + z if direction == "remove" else -z

            def integrand(x, _, power=power):
                weight = 1 - arb(q) + arb(q) * ((2 * x - 1) / (2 * arb(sigma) ** 2)).exp()
                return weight**power * (-x * x / (2 * arb(sigma) ** 2)).exp()

            reach = 12 * sigma + 5
            truth = acb.integral(integrand, -reach, reach) / (arb(sigma) * (2 * arb.pi()).sqrt())
            assert value.overlaps(truth)
            assert k == 0 or abs(truth) <= beyond


@pytest.mark.parametrize("event", [DPSGD, MIXED, events.GaussianDpEvent(1.0)])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 20.0])
def test_the_float_accountant_meets_the_certificate(event, epsilon):
    certificate = certify(event, epsilon=epsilon, width=1e-9)
    answer = accountants.log_delta(event, epsilon=epsilon)
    # Comparison of logarithms costs a few roundings.
    rounding = 1e-15 * (1 + abs(answer.upper))
    assert answer.upper >= float(certificate.lower.ln()) - rounding
    assert answer.lower <= float(certificate.upper.ln()) + rounding


@pytest.mark.parametrize(("width", "delta"), [(1e-3, 1e-6), (1e-9, 1e-6), (1e-6, 1e-30)])
def test_epsilon_is_certified(width, delta):
    certificate = certify(DPSGD, delta=delta, width=width)
    answer = accountants.epsilon(DPSGD, delta=delta)
    assert certificate.quantity == "epsilon"
    assert certificate.lower < Decimal(answer.lower) <= Decimal(answer.upper) < certificate.upper
    assert (certificate.upper - certificate.lower) <= Decimal(width) * certificate.upper
    low, high = verify_certificate(certificate).proofs
    assert high.upper <= Decimal(delta) <= low.lower


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one", "replace-special"])
def test_a_gaussian_has_its_closed_form(relation):
    certificate = certify(
        events.GaussianDpEvent(2.0), epsilon=1.0, neighboring_relation=relation, width=1e-12
    )
    with ctx.workprec(200):
        mu = arb(1) if relation == "replace-one" else arb(1) / 2
        upper_tail, lower_tail = (
            ((1 / mu + sign * mu / 2) / arb(2).sqrt()).erfc() / 2 for sign in (-1, 1)
        )
        truth = upper_tail - arb(1).exp() * lower_tail
        assert arb(str(certificate.lower)) <= truth <= arb(str(certificate.upper))


def test_a_bounded_loss_and_no_loss():
    event = events.dpsgd(sampling_probability=0.05, noise_multiplier=0.4, steps=100)
    certificate = certify(event, epsilon=10.0)
    added = certificate.proofs[0].directions[1]
    assert [item.proof for item in added.arguments] == [proof.SupportProof()]
    assert added.upper == 0
    assert certify(events.NoOpDpEvent(), epsilon=0.0).upper == 0
    for item in (certificate, certify(events.NoOpDpEvent(), epsilon=0.0)):
        assert verify_certificate(item.to_json()) == item


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"epsilon": 8.0}, {"epsilon": 300.0}, {"delta": 1e-9, "width": 1e-6}]
)
def test_round_trip(options):
    certificate = certify(MIXED, **options)
    text = certificate.to_json()
    assert Certificate.from_json(text) == verify_certificate(text) == certificate
    assert verify_certificate(json.loads(text)).to_json() == text


# -- tampering

DOCUMENT = certify(MIXED, epsilon=8.0).to_dict()


def _leaves(value, path=()):
    """Paths of all entries that are numbers, strings or null."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _leaves(item, (*path, key))
    else:
        yield path


def _changed(path, change):
    document = copy.deepcopy(DOCUMENT)
    owner = document
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = change(owner[path[-1]])
    return document


def _resigned(document):
    """The document with the digest, and the redundant entries, that a forger would compute."""
    directions = document["proofs"][0]["directions"]
    for end in ("lower", "upper"):
        document[end] = str(max(Decimal(item[end]) for item in directions))
    body = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return {**body, "digest": hashlib.sha256(text.encode()).hexdigest()}


def _nudged(value):
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    if isinstance(value, int):
        return value + 1
    if value is None:
        return 1e-6
    try:
        return str(Decimal(value).next_plus())
    except ArithmeticError:
        return value[:-1] + chr(ord(value[-1]) ^ 1)


@pytest.mark.parametrize("path", list(_leaves(DOCUMENT)), ids=lambda path: ".".join(map(str, path)))
def test_any_change_is_rejected(path):
    with pytest.raises(CertificateRejected):
        verify_certificate(_changed(path, _nudged))


REMOVE = ("proofs", 0, "directions", 0)
SAMPLED = ("mechanisms", 1, "event")
CONTOUR = (*REMOVE, "arguments", 0)
FORGERIES = {
    "upper bound lowered": ((*REMOVE, "upper"), lambda text: str(Decimal(text) * Decimal("0.99"))),
    "lower bound raised": ((*REMOVE, "lower"), lambda text: str(Decimal(text) * Decimal("1.01"))),
    "smaller epsilon": (("proofs", 0, "epsilon"), lambda value: value - 0.01),
    "larger epsilon": (("proofs", 0, "epsilon"), lambda value: value + 0.01),
    "more steps": (("mechanisms", 1, "count"), lambda value: value + 10),
    "fewer steps": (("mechanisms", 1, "count"), lambda value: value - 10),
    "less noise": ((*SAMPLED, "event", "noise_multiplier"), lambda value: value * 0.999),
    "less Gaussian noise": (
        ("mechanisms", 0, "event", "noise_multiplier"),
        lambda value: value * 0.99,
    ),
    "larger sample": ((*SAMPLED, "sampling_probability"), lambda value: value * 1.001),
    "fewer nodes": ((*CONTOUR, "proof", "nodes"), lambda value: value // 2),
    "coarser contour": ((*CONTOUR, "proof", "step"), lambda value: value * 2),
    "coarser lattice": ((*CONTOUR, "proof", "sums", 1, "step"), lambda value: value * 2),
    "shorter lattice": ((*CONTOUR, "proof", "sums", 1, "last"), lambda value: value // 2),
    "no lattice": ((*CONTOUR, "proof", "sums", 1), lambda value: None),
    "little precision": ((*CONTOUR, "bits"), lambda value: 8),
    "huge contour": ((*CONTOUR, "proof", "nodes"), lambda value: 10**12),
    "alias tilt on the wrong side": ((*CONTOUR, "proof", "below"), lambda value: 99.0),
    "angle beyond the strip": ((*CONTOUR, "proof", "sums", 1, "angle"), lambda value: 3.0),
    "a direction left out": (("proofs", 0, "directions"), lambda value: value[:1]),
    "no direction": (("proofs", 0, "directions"), lambda value: value * 0 + [value[1]]),
    "another method": ((*CONTOUR, "method"), lambda value: "support"),
    "not a number": ((*CONTOUR, "proof", "tilt"), lambda value: math.nan),
    "text for a number": ((*CONTOUR, "proof", "tilt"), str),
    "true for a number": (("mechanisms", 1, "count"), lambda value: True),
    "another format": (("format",), lambda value: "dpcal-certificate-0"),
    "a relation without theorem": (("neighboring_relation",), lambda value: "replace-one"),
    "an unknown relation": (("neighboring_relation",), lambda value: "none"),
    "a delta out of nowhere": (("delta",), lambda value: 1e-9),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forger_who_signs_anew_is_rejected(name):
    path, change = FORGERIES[name]
    document = _changed(path, change)
    with pytest.raises(CertificateRejected):
        verify_certificate(_resigned(document))


def forged(event, count, epsilon, upper, claimed):
    """A signed claim about one direction that stands for both, with an argument of one's own."""
    argument = Argument("upper", 128, claimed)
    direction = DirectionBounds("both", Decimal(0), Decimal(upper), (argument,))
    bounds = DeltaBounds(epsilon, (direction,))
    mechanism = Mechanism(event, count)
    return Certificate("add-or-remove-one", (mechanism,), None, (bounds,)).to_json()


EMPTY = (proof.Cells(1.0, 0, 0),)


@pytest.mark.parametrize(
    ("event", "count", "epsilon", "upper", "claimed"),
    [
        # The law above a Laplace mechanism keeps the mass between its atoms, whatever its cells.
        (events.LaplaceDpEvent(1.0), 1, 0.5, "0.1968", proof.SumProof(EMPTY)),
        (events.LaplaceDpEvent(1.0), 100, 5.0, "1E-16", proof.ChernoffProof(1e-3, EMPTY)),
        # Numbers that nobody should write out to their last bit.
        (events.GaussianDpEvent(1.0), 1, 1e12, "1E-45000", proof.ConvexityProof(10.0)),
        (events.GaussianDpEvent(1.0), 1, 1.0, "1E-9", proof.ConvexityProof(1e4)),
        (events.DiscreteLaplaceDpEvent(1.0, 10**12), 1, 1.0, "0.5", proof.SumProof(EMPTY)),
        (
            events.DiscreteGaussianDpEvent(1.0),
            10**6,
            1.0,
            "0.5",
            proof.SumProof((proof.Cells(1.0, 1, 1),)),
        ),
    ],
)
def test_arguments_of_a_forgers_own_prove_nothing(event, count, epsilon, upper, claimed):
    with pytest.raises(CertificateRejected):
        verify_certificate(forged(event, count, epsilon, upper, claimed))


def test_a_gaussian_far_from_any_danger_has_a_certificate():
    certificate = certify(events.GaussianDpEvent(1.0), epsilon=2000.0)
    assert 0 <= certificate.lower <= certificate.upper < Decimal("1E-30000")


def test_an_entry_given_twice_is_rejected():
    text = json.dumps(DOCUMENT)
    twice = text.replace('"upper":', '"upper": "1E-9", "upper":', 1)
    assert twice != text
    with pytest.raises(CertificateRejected, match="twice"):
        verify_certificate(twice)


def test_weights_of_many_equal_shifts_keep_their_digits():
    shares = [0.1 / 20_000] * 20_000
    both = accountants.mixtures.mixture_of_gaussians(
        [1.0] * 20_000 + [0.0], [*shares, 0.9], standard_deviation=1.0
    )
    few = accountants.mixtures.mixture_of_gaussians(
        [1.0, 0.0], [math.fsum(shares), 0.9], standard_deviation=1.0
    )
    assert both == few


def test_an_honest_second_signature_is_accepted():
    loosened = _changed((*REMOVE, "upper"), lambda text: str(Decimal(text) * 2))
    assert verify_certificate(_resigned(loosened)).upper == 2 * Decimal(DOCUMENT["upper"])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', "null", json.dumps("x")])
def test_what_is_no_certificate_is_rejected(text):
    with pytest.raises(CertificateRejected, match=r"\.$"):
        verify_certificate(text)


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


@pytest.mark.slow
def test_losses_of_hundreds_have_a_certificate():
    event = events.dpsgd(sampling_probability=1e-3, noise_multiplier=0.05, steps=1000)
    certificate = certify(event, epsilon=1000.0)
    assert verify_certificate(certificate.to_json()) == certificate
    # A sample of the record loses about 200 +- 20 + log(1e-3): six are enough, five may be.
    chances = [math.exp(-1) / math.factorial(k) for k in range(7)]
    assert 0.9 * (1 - sum(chances[:6])) < certificate.upper
    assert certificate.lower <= certificate.upper < 1.1 * (1 - sum(chances[:5]))


@pytest.mark.parametrize(("noise", "step", "last"), [(0.03, 1e-3, 2000), (1e4, 100.0, 600)])
def test_moments_of_a_table_keep_their_digits(noise, step, last):
    table = proof._Table(SampledGaussian(0.5, noise, "remove"), proof.Cells(step, -last, last))
    with mpmath.workdps(60):
        masses = [mpmath.exp(mpmath.mpf(log)) for log in table.log_q]
        for c in (-0.5, 1e-3, 0.7, 40.0):
            powers = [mpmath.exp((1 + mpmath.mpf(c)) * mpmath.mpf(ell)) for ell in table.ell]
            moment = mpmath.fsum(q * w for q, w in zip(masses, powers, strict=True))
            truth = float(mpmath.log(moment / mpmath.fsum(masses)))
            assert table.cumulants([c])[0, 0] == pytest.approx(truth, rel=1e-6, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORNERS)
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
