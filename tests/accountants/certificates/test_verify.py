"""Verifying: nothing in a certificate can be changed unnoticed, and no document takes for ever."""

import json
import math
from decimal import Decimal

import pytest
from _certificates import changed, claim_about, leaves, resigned
from _tree import DATA

from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.contour import ContourProof
from dpcal.accountants.certificates.mechanisms import Mechanism
from dpcal.accountants.certificates.transforms import Line
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import CertificateRejected

DPSGD = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
MIXED = events.ComposedDpEvent([events.GaussianDpEvent(4.0), DPSGD])
# One document for each kind of mechanism and of argument.
WRITTEN_BEFORE = json.loads((DATA / "certificates.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN_BEFORE)
def test_documents_written_before_still_hold(name):
    document = WRITTEN_BEFORE[name]
    assert verify_certificate(document).to_dict() == document


@pytest.mark.parametrize("version", [2, 4, 5])
def test_another_version_is_refused_by_its_name(version):
    document = {**WRITTEN_BEFORE["gauss12"], "format": f"dpcal-certificate-{version}"}
    with pytest.raises(CertificateRejected, match=f"certificate-{version}': prove the claim again"):
        verify_certificate(document)


@pytest.mark.parametrize("asked", [{"delta": 1e-9}, {"epsilon": 8.0}])
def test_a_contour_is_verified_without_moments_in_doubles(asked, monkeypatch):
    """Last digits of doubles differ between machines."""
    document = certify(DPSGD, **asked).to_dict()
    monkeypatch.setattr(SampledGaussian, "cumulants", lambda *_: pytest.fail("they were asked"))
    assert verify_certificate(document).to_dict() == document


# -- tampering

DOCUMENT = certify(MIXED, epsilon=8.0).to_dict()


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


def test_any_change_is_rejected():
    for path in leaves(DOCUMENT):
        with pytest.raises(CertificateRejected):
            verify_certificate(changed(DOCUMENT, path, _nudged))


REMOVE = "proofs.0.directions.0"
# One line for each forgery: the place of what is changed, and how.
FORGERIES = json.loads((DATA / "forgeries.json").read_text())


def path_of(place):
    """Return the keys and indices of a place such as ``proofs.0.epsilon``."""
    return [int(each) if each.isdigit() else each for each in place.split(".")]


def forged(value, how):
    """Return what a forger puts in the place of a value."""
    (change, given), *_ = how.items()
    if change == "times":
        return type(value)(Decimal(value) * Decimal(given))
    return {
        "plus": lambda: value + given,
        "kept": lambda: [value[each] for each in given],
        "set": lambda: given,
    }[change]()


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forger_who_signs_anew_is_rejected(name):
    place, how = FORGERIES[name]
    document = changed(DOCUMENT, path_of(place), lambda value: forged(value, how))
    with pytest.raises(CertificateRejected):
        verify_certificate(resigned(document))


def test_an_entry_given_twice_is_rejected():
    text = json.dumps(DOCUMENT)
    twice = text.replace('"upper":', '"upper": "1E-9", "upper":', 1)
    assert twice != text
    with pytest.raises(CertificateRejected, match="twice"):
        verify_certificate(twice)


@pytest.mark.parametrize("name", ["format", "quantity", "lower", "upper", "digest"])
def test_an_entry_that_follows_from_others_is_missed(name):
    document = {key: value for key, value in DOCUMENT.items() if key != name}
    with pytest.raises(CertificateRejected, match=f"{name} of the certificate must be .*, got"):
        verify_certificate(document)


def test_an_honest_second_signature_is_accepted():
    loosened = changed(DOCUMENT, path_of(f"{REMOVE}.upper"), lambda text: str(Decimal(text) * 2))
    assert verify_certificate(resigned(loosened)).upper == 2 * Decimal(DOCUMENT["upper"])


# -- documents that ask for much work

GAUSSIAN = events.GaussianDpEvent(1.0)


def _sampled(count, noise=GAUSSIAN):
    """Different sampled Gaussians."""
    return [Mechanism(events.PoissonSampledDpEvent((k + 1) / 1e6, noise), 1) for k in range(count)]


def _mixtures(count):
    """Different mixtures of as many components as certificates cover."""
    means = [k / 256 for k in range(256)]
    return [
        Mechanism(events.MixtureOfGaussiansDpEvent(1.0 + k, means, [1 / 256] * 256), 1)
        for k in range(count)
    ]


def _contour(nodes, losses, points):
    lines = ((Line(0.1, 0.01, 1 - points, 0),) * 3,) * losses
    return ContourProof(4096, 1.0, 0.1, nodes, 0.5, 2.0, lines)


FINEST = OrderProof(4096, 1e-12, 1 << 16, 0.0, 1e300)
DISCRETE_GAUSSIAN, DISCRETE_LAPLACE = events.DiscreteGaussianDpEvent, events.DiscreteLaplaceDpEvent
ALLOCATION = [Mechanism(events.RandomAllocationDpEvent(1.0, 1 << 62), 1)]
# Each of them would take from ten minutes to days, all of it in what checks a direction.
HOSTILE = {
    "long contour of many bits": (_sampled(1), _contour(1 << 17, 1, 500)),
    "one node, many long lattices": (_sampled(300), _contour(1, 300, 1 << 16)),
    "laws on many fine grids": (_sampled(300), FINEST),
    "grid of many components": (_mixtures(1), FINEST),
    "products of many bits": ([Mechanism(DISCRETE_GAUSSIAN(1e4), 1 << 62)], FINEST),
    "laws of thousands of parts": (_sampled(5000), FINEST),
    "sums of many batches": (ALLOCATION, FINEST),
    "draws of one record many times": (
        [Mechanism(events.SampledWithReplacementDpEvent(1 << 36, 1 << 40, GAUSSIAN), 1 << 62)],
        FINEST,
    ),
    "batches of many answers": (
        _sampled(9, events.ComposedDpEvent([events.LaplaceDpEvent(k + 1.0) for k in range(16)])),
        FINEST,
    ),
    "discrete noise of many values": (
        [Mechanism(DISCRETE_LAPLACE(1.0 + k, 65536), 1) for k in range(65)],
        FINEST,
    ),
    "more parts than any composition has": (_sampled((1 << 14) + 1), FINEST),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_rejected_before_its_work_is_done(name, monkeypatch):
    mechanisms, proof = HOSTILE[name]
    discrete = isinstance(mechanisms[0].event, DISCRETE_GAUSSIAN | DISCRETE_LAPLACE)
    about = mechanisms, "both" if discrete else "remove"
    document = claim_about(*about, 1.0, ("0", "0.5"), proof)
    checks = "dpcal.accountants.certificates.verify._check_bounds"
    monkeypatch.setattr(checks, lambda *_: pytest.fail("it was begun"))
    with pytest.raises(CertificateRejected, match=r"more work|at most|a list of"):
        verify_certificate(resigned(json.loads(document)))
