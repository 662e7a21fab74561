"""Whatever is changed in a certificate, it is rejected in a sentence, or what it claims is true."""

import contextlib
import json
import math
import random
from decimal import Decimal

import pytest
from _certificates import changed, entries, resigned
from _tree import DATA

from dpcal import accountants
from dpcal.accountants import events, verify_certificate
from dpcal.accountants.certificates import verify
from dpcal.errors import CertificateRejected

# One document for each kind of mechanism and of argument, with bounds that its proofs give.
DOCUMENTS = json.loads((DATA / "small_certificates.json").read_text())

# What a forger's own computation of the redundant entries may raise.
CONFUSED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

ANYTHING = [
    *(None, True, 0, -1, 1.5, 10**400, 1 << 62, 1e300, 5e-324, math.nan, math.inf),
    *("", "x", "NaN", "1E-999999999", "0", "1", [], {}, [[]], [1.0, 0.5]),
    {"type": "GaussianDpEvent", "noise_multiplier": 1e9},
]
NAMES = [
    *("lower", "upper", "both", "remove", "add"),
    *("add-or-remove-one", "replace-one", "replace-special"),
    *("contour", "parity", "convex order", "finite sum", "Renyi moment"),
    *("dpcal-certificate-5", "dpcal-certificate-6"),
    *("GaussianDpEvent", "LaplaceDpEvent", "EpsilonDeltaDpEvent", "MixtureOfGaussiansDpEvent"),
    "RandomAllocationDpEvent",
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


def _verdict(document):
    """Return why a document is rejected, or the certificate that is accepted."""
    try:
        return "", verify_certificate(document)
    except CertificateRejected as error:
        return str(error), None


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_changed_document_is_rejected_or_true(name, monkeypatch):
    # The verifier may work for ten minutes on a document. Here it gives up within a second.
    monkeypatch.setattr(verify, "MAX_WORK", 5e6)
    document = DOCUMENTS[name]
    assert _is_true(verify_certificate(document))
    choose = random.Random(0)
    rejected = 0
    for path, value in entries(document):
        alternatives = _alternatives(value)
        some = choose.sample(alternatives, min(2, len(alternatives))) + choose.sample(ANYTHING, 1)
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
