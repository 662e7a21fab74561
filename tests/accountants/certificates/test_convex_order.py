"""Random allocation by convex order: known prices are inside, whatever the grids."""

from dataclasses import replace

import pytest
from flint import arb

from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates import convex_order
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.proofs import Grid, OrderProof
from dpcal.accountants.certificates.search.contour import choose_contour
from dpcal.accountants.losses.allocation import Allocation
from dpcal.errors import CertificateRejected, UnsupportedEvent

# sigma, batches, epochs, epsilons at delta 1e-5 of a removed and an added record to 10 decimals,
# grids, and the relative width that they give.
ROWS = [
    (2, 10, 10, 2.1420731081, 2.1042637417, OrderProof(0.02, 1600, Grid(0.002, -1500, 1500)), 0.1),
    (1, 100, 10, 1.7014984358, 1.5477272966, OrderProof(0.15, 4000, Grid(0.004, -900, 900)), 0.12),
]


def parts_of(sigma, batches, epochs, direction):
    return ((Allocation(float(sigma), batches, direction), epochs),)


@pytest.mark.parametrize(("sigma", "batches", "epochs", "removed", "added", "proof", "width"), ROWS)
def test_known_deltas_are_enclosed_in_both_directions(
    sigma, batches, epochs, removed, added, proof, width
):
    for direction, epsilon in (("remove", removed), ("add", added)):
        parts = parts_of(sigma, batches, epochs, direction)
        lower, upper = enclose(proof, parts, epsilon, bits=128)
        assert lower <= 1.0000002e-5
        assert upper >= 0.9999998e-5
        assert upper - lower < width * 1e-5
        contour = enclose(choose_contour(parts, epsilon, width=1e-4), parts, epsilon, bits=256)
        assert arb.max(lower, contour[0]) <= arb.min(upper, contour[1])


def test_any_grids_give_bounds_around_the_truth():
    good = OrderProof(0.1, 1500, Grid(0.02, -300, 300))
    others = [replace(good, width=each) for each in (1e-3, 0.03, 0.7, 30.0)]
    others += [replace(good, cells=each) for each in (1, 2, 30, 400)]
    windows = ((0.02, -300, 10), (0.02, -10, 300), (0.5, -9, 9), (0.02, 5, 300), (0.02, -9, -2))
    others += [replace(good, ratios=Grid(*each)) for each in windows]
    useless = 0
    for proof in (good, *others):
        for direction, epsilon in (("remove", 3.6973852125), ("add", 3.0797325885)):
            parts = parts_of(1, 2, 1, direction)
            lower, upper = enclose(proof, parts, epsilon, bits=128)
            assert not lower > 1.0000002e-5
            assert not upper < 0.9999998e-5
            useless += not upper - lower < 1e-6
    assert 5 < useless < 27


def test_a_second_proof_of_an_epsilon_is_verified_and_refused_where_it_claims_more():
    event = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(2.0, 10), 10)
    certificate = certify(event, epsilon=2.1420731081, method="convex-order", width=0.3)
    assert certificate.lower < 1e-5 < certificate.upper
    assert certificate.width < 0.3
    assert verify_certificate(certificate.to_json()) == certificate
    claim = certificate.proofs[-1].directions[0]
    narrower = replace(claim, upper=claim.lower)
    forged = replace(
        certificate.proofs[-1], directions=(narrower, *certificate.proofs[-1].directions[1:])
    )
    with pytest.raises(CertificateRejected):
        verify_certificate(replace(certificate, proofs=(*certificate.proofs[:-1], forged)))
    with pytest.raises(UnsupportedEvent, match="one random allocation"):
        certify(events.GaussianDpEvent(1.0), epsilon=1.0, method="convex-order")


# -- without one step of the argument, grids prove bounds that the truth is not in


COARSE = OrderProof(0.5, 200, Grid(0.2, -40, 60))
# Likelihood ratios that matter are beyond its last interval.
SHORT = replace(COARSE, cells=8)


def bounds_of(proof, direction, epsilon):
    convex_order.laws_of_ratio.cache_clear()
    return enclose(proof, parts_of(1, 2, 1, direction), epsilon, bits=128)


def with_mass_at_the_first_node(self, epsilon, direction):
    """Count mass that a lower law lacks where it is least, in place of infinity."""
    lower, upper = self.laws
    whole = [lower[0] + 1 - sum(lower, arb(0)), *lower[1:]]
    return HONEST(type("", (), {"laws": [whole, upper], "nodes": self.nodes})(), epsilon, direction)


HONEST = convex_order.LawsOfRatio.delta
MUTATIONS = {
    "lower laws split mass between nodes": ("_gathered", convex_order._spread, COARSE, "lower"),
    "upper laws move mass to its mean": ("_spread", convex_order._gathered, COARSE, "upper"),
    "mass that lower laws lack is at the first node": (
        "LawsOfRatio.delta",
        with_mass_at_the_first_node,
        SHORT,
        "lower",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_step_of_the_argument_is_needed(name, monkeypatch):
    place, changed, proof, side = MUTATIONS[name]
    owner, _, attribute = place.rpartition(".")
    known = (("remove", 3.6973852125), ("add", 3.0797325885))
    for at in known:
        lower, upper = bounds_of(proof, *at)
        assert lower < 1e-5 < upper
    monkeypatch.setattr(getattr(convex_order, owner) if owner else convex_order, attribute, changed)
    mutated = [bounds_of(proof, *at) for at in known]
    convex_order.laws_of_ratio.cache_clear()
    if side == "lower":
        assert any(lower > 1.01e-5 for lower, _ in mutated)
    else:
        assert any(upper < 0.99e-5 for _, upper in mutated)
