"""Whatever is changed in a certificate, it is rejected in a sentence, or what it claims is true."""

import contextlib
import json
import math
import random
from decimal import Decimal

import numpy as np
import pytest
from _certificates import changed, claim, entries, resigned
from scipy.stats import norm

from dpcal import accountants
from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates import verify
from dpcal.accountants.certificates.document import (
    Argument,
    Certificate,
    DeltaBounds,
    DirectionBounds,
    Mechanism,
)
from dpcal.accountants.certificates.proofs import (
    ChernoffProof,
    Clones,
    ContourProof,
    ConvexityProof,
    Grid,
    OrderProof,
    ParityProof,
    Rays,
    SamplingProof,
    SumProof,
    ThresholdProof,
)
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.errors import CertificateRejected

GAUSSIAN = events.GaussianDpEvent(1.0)
SAMPLED = events.PoissonSampledDpEvent(0.1, GAUSSIAN)
BATCH = events.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN)
MIXTURE = events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.3, 0.2])
SMOOTHED = ContourProof(2.0, 0.5, 40, 1.0, 4.0, (None,), (None,), 0.01, 0.05)

CLONES = Clones(0.55, (30, 50), Rays(0, 0.37, 0.08, 5, 52, 12))
SHUFFLED = (
    DirectionBounds("remove", Decimal(0), Decimal(1), ()),
    DirectionBounds(
        "add",
        Decimal(0),
        Decimal("0.008"),
        (Argument("upper", 128, ChernoffProof(20.0, (CLONES,))),),
    ),
)

RAYS = Rays(0, 0.37, 0.187, -112, 32, 25)
PARITY = ParityProof(1.18, 0.67, 16, 0.0, 12.6, (RAYS,), (RAYS,))
ORDER = OrderProof(0.25, 30, Grid(0.1, -40, 40))


def allocated(*arguments):
    """Return a claim about two epochs of three batches, a removed and an added record."""
    proved = [
        DirectionBounds(name, Decimal(low), Decimal(high), (Argument("both", 128, proof),))
        for name, low, high, proof in arguments
    ]
    run = Mechanism(events.RandomAllocationDpEvent(2.0, 3), 2)
    return Certificate(
        "add-or-remove-one", (run,), None, (DeltaBounds(1.0, tuple(proved)),)
    ).to_json()


# One document for each kind of mechanism and of argument, with bounds that its proofs give.
DOCUMENTS = {
    "contour": certify(
        events.ComposedDpEvent([events.GaussianDpEvent(4.0), SAMPLED]), epsilon=1.0, width=0.1
    ).to_json(),
    "epsilon": certify(events.GaussianDpEvent(2.0), delta=1e-3, width=0.1).to_json(),
    "smoothed contour": claim(GAUSSIAN, 2, 3.0, ("0", "0.2"), ("both", SMOOTHED)),
    "moments": claim(GAUSSIAN, 2, 6.0, ("0", "0.1"), ("upper", ChernoffProof(2.0, (None,)))),
    "convexity": claim(GAUSSIAN, 2, 6.0, ("0", "0.1"), ("upper", ConvexityProof(2.0))),
    "test": claim(
        GAUSSIAN,
        2,
        1.0,
        ("0.05", "0.63"),
        ("lower", ThresholdProof(1, (2.0,))),
        ("upper", SamplingProof()),
    ),
    "Laplace": certify(events.LaplaceDpEvent(2.0), epsilon=0.2, width=0.1).to_json(),
    "discrete Laplace": certify(
        events.SelfComposedDpEvent(events.DiscreteLaplaceDpEvent(0.2, 2), 5), epsilon=0.5, width=0.1
    ).to_json(),
    "discrete Gaussian": claim(
        events.DiscreteGaussianDpEvent(2.0),
        3,
        1.0,
        ("0.04", "0.4"),
        ("both", SumProof((Grid(1.0, -20, 21),))),
    ),
    "batch": certify(BATCH, epsilon=1.0, width=0.5, neighboring_relation="replace-one").to_json(),
    "mixture": certify(MIXTURE, epsilon=1.0, width=0.5).to_json(),
    "allocation": certify(
        events.SelfComposedDpEvent(events.RandomAllocationDpEvent(1.0, 20), 4),
        epsilon=2.0,
        width=0.1,
    ).to_json(),
    "convex order": allocated(
        ("remove", "0.0008", "0.0028", ORDER), ("add", "0.0004", "0.0031", ORDER)
    ),
    "parity": allocated(("remove", "0.0023", "0.0025", PARITY), ("add", "0.0004", "0.0031", ORDER)),
    "shuffle": Certificate(
        "replace-special",
        (Mechanism(events.ShuffledEpochsDpEvent(10.0, 100, 2), 1),),
        None,
        (DeltaBounds(0.05, SHUFFLED),),
    ).to_json(),
    "claim": certify(
        events.SelfComposedDpEvent(events.EpsilonDeltaDpEvent(0.1, 1e-8), 5), epsilon=0.2
    ).to_json(),
    "permute and flip": certify(events.PermuteAndFlipDpEvent(0.5), epsilon=0.2).to_json(),
}

# What a forger's own computation of the redundant entries may raise.
CONFUSED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

ANYTHING = [
    None,
    True,
    0,
    -1,
    1.5,
    10**400,
    1 << 62,
    1e300,
    5e-324,
    math.nan,
    math.inf,
    "",
    "x",
    "NaN",
    "1E-999999999",
    "0",
    "1",
    [],
    {},
    [[]],
    [1.0, 0.5],
    {"type": "GaussianDpEvent", "noise_multiplier": 1e9},
]
NAMES = [
    *("lower", "upper", "both", "remove", "add"),
    *("add-or-remove-one", "replace-one", "replace-special"),
    *("support", "sampling", "convexity", "finite sum", "threshold test", "Renyi moment"),
    *("contour", "smoothed contour", "parity", "convex order"),
    *("GaussianDpEvent", "LaplaceDpEvent", "EpsilonDeltaDpEvent", "MixtureOfGaussiansDpEvent"),
    *("RandomAllocationDpEvent", "ShuffledEpochsDpEvent"),
]


def _other_numbers(value):
    """Numbers near and far, on both sides, and of the other type."""
    near = [math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    scaled = [value * factor for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2, 10)]
    whole = [int(value) + step for step in (-2, -1, 0, 1, 2)]
    return [*near, *scaled, *whole, int(value) // 2, float(value), -value, 0, 1, str(value)]


def _other_texts(text):
    """Claims that are stronger and weaker, of a digit more, and other names."""
    try:
        number = Decimal(text)
        factors = ("0.5", "0.9", "0.99", "0.999", "1.001", "1.01", "1.1", "2")
        return [*(str(number * Decimal(item)) for item in factors), f"{text}0", str(1 - number)]
    except ArithmeticError:
        return [item for item in NAMES if item != text] + [text.upper(), f"{text} "]


def _other_lists(items):
    return [[], items[1:], items[:-1], items + items, items + items[-1:], items[::-1], [items]]


def _other_objects(value):
    shorter = [{name: value[name] for name in value if name != left} for left in value]
    return [*shorter, {**value, "more": 1}, list(value.items()), {}]


def _alternatives(value):
    if isinstance(value, bool) or value is None:
        return ANYTHING
    table = {float: _other_numbers, int: _other_numbers, str: _other_texts}
    table |= {list: _other_lists, dict: _other_objects}
    return table[type(value)](value)


def _is_true(certificate):
    """Whether the accountant in floats agrees with every bound of a certificate."""
    event = events.ComposedDpEvent(
        [events.SelfComposedDpEvent(item.event, item.count) for item in certificate.mechanisms]
    )
    relation = certificate.neighboring_relation
    if any(isinstance(item.event, events.ShuffledEpochsDpEvent) for item in certificate.mechanisms):
        return _is_true_of_shuffle(certificate)
    for bounds in certificate.proofs:
        answer = accountants.log_delta(event, epsilon=bounds.epsilon, neighboring_relation=relation)
        rounding = 1e-12 * (1 + abs(answer.upper)) if math.isfinite(answer.upper) else 0.0
        lower = float(bounds.lower.ln()) if bounds.lower > 0 else -math.inf
        upper = float(bounds.upper.ln()) if bounds.upper > 0 else -math.inf
        if not (lower <= answer.upper + rounding and upper >= answer.lower - rounding):
            return False
    if certificate.delta is None:
        return certificate.lower <= certificate.upper
    answer = accountants.epsilon(event, delta=certificate.delta, neighboring_relation=relation)
    return certificate.lower <= Decimal(answer.upper) and certificate.upper >= Decimal(answer.lower)


def _is_true_of_shuffle(certificate):
    """Whether bounds are above a test on the largest answer of one epoch, and below known batches.

    All other records contribute -1, and their sum is where answers count from.
    """
    run, norms = certificate.mechanisms[0].event, {"replace-special": 1.0, "replace-one": 2.0}
    mu = norms[certificate.neighboring_relation] / run.noise_multiplier
    c = run.noise_multiplier * np.linspace(-8.0, 10.0, 400)
    others = (run.batches - 1) * norm.logcdf(c / run.noise_multiplier)
    blank = 2.0 - norms[certificate.neighboring_relation]
    p, q = (
        -np.expm1(norm.logcdf((c - shift) / run.noise_multiplier) + others)
        for shift in (2.0, blank)
    )
    for bounds in certificate.proofs:
        test = max(0.0, (p - math.exp(min(bounds.epsilon, 700.0)) * q).max())
        known, _ = log_gaussian_delta(bounds.epsilon, mu * math.sqrt(run.epochs))
        if not (float(bounds.lower) <= math.exp(known) * (1 + 1e-9) and bounds.upper >= test):
            return False
    return certificate.delta is None or certificate.lower <= certificate.upper


def _verdict(document):
    """Return why a document is rejected, or the certificate that is accepted."""
    try:
        return "", verify_certificate(document)
    except CertificateRejected as error:
        return str(error), None


# Each of the two slow ones takes a few seconds.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in ("mixture", "contour") else [])
        for name in DOCUMENTS
    ],
)
def test_a_changed_document_is_rejected_or_true(name, monkeypatch):
    # The verifier may work for ten minutes on a document. Here it gives up within a second.
    monkeypatch.setattr(verify, "MAX_WORK", 2e6)
    document = json.loads(DOCUMENTS[name])
    assert _is_true(verify_certificate(document))
    choose = random.Random(0)
    rejected = 0
    for path, value in entries(document):
        alternatives = _alternatives(value)
        some = choose.sample(alternatives, min(3, len(alternatives))) + choose.sample(ANYTHING, 1)
        for other in some:
            forged = changed(document, path, lambda _, other=other: other)
            # Where the forger cannot compute what depends on this entry, the old value stays.
            with contextlib.suppress(*CONFUSED):
                forged = resigned(forged)
            reason, certificate = _verdict(forged)
            if certificate is None:
                rejected += 1
                assert reason.endswith("."), (path, other, reason)
            else:
                assert _is_true(certificate), (path, other)
    assert rejected > 50
