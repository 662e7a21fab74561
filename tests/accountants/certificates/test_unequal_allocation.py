"""Allocation to batches that differ, in balls: quadrature, equal batches, and forgeries."""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import ndtr

from dpcal import accountants
from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates.allocation_transform import (
    AllocationTransform,
    UnequalTransform,
)
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.proofs import Rays
from dpcal.accountants.certificates.search.contour import choose_contour, choose_parity
from dpcal.accountants.losses.allocation import Allocation, Group, UnequalAllocation
from dpcal.errors import CertificateRejected, UnsupportedEvent

TWO = ((1.0, 1, 0.3), (2.0, 1, 0.7))
THREE = ((1.0, 1, 0.5), (1.5, 1, 0.25), (3.0, 1, 0.25))
PAIR_OF_TWO = ((1.0, 2, 0.75), (2.0, 1, 0.25))
SHORT = ((2.0, 10, 1000 / 1050), (2.0, 1, 50 / 1050))


def epochs_of(groups, epochs=1):
    return events.SelfComposedDpEvent(events.UnequalAllocationDpEvent(groups), epochs)


@cache
def short_run():
    return certify(epochs_of(SHORT, 20), epsilon=3.0).to_json()


def parts_of(groups, epochs, direction):
    rows = tuple(Group(float(sigma), m, p) for sigma, m, p in groups)
    return ((UnequalAllocation.of(rows, direction), epochs),)


def truths(groups, epsilon):
    """Return deltas of removing and adding: the first batch in closed form, all others summed."""
    batches = [(sigma, p / m) for sigma, m, p in groups for _ in range(m)]
    (sigma, p), *others = batches
    x = np.linspace(-9, 9 + 1 / min(rho for rho, _ in others), 1501)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    weights, rest = np.ones(1), np.zeros(1)
    for rho, q in others:
        rest = np.add.outer(rest, q * np.exp(x / rho - 1 / (2 * rho * rho))).ravel()
        weights = np.multiply.outer(weights, density).ravel()
    t, k = 1 / sigma, math.exp(epsilon)

    def places(strike):
        level = np.where(strike > 0, strike, 1.0)
        return level, np.log(level / p) / t + t / 2

    level, d = places(k - rest)
    call = np.where(k > rest, p * ndtr(t - d) - level * ndtr(-d), p - (k - rest))
    level, d = places(1 / k - rest)
    put = np.where(1 / k > rest, level * ndtr(d) - p * ndtr(d - t), 0.0)
    return {"remove": float(weights @ call), "add": k * float(weights @ put)}


def enclosed_delta(groups, epochs, direction, epsilon, width):
    parts = parts_of(groups, epochs, direction)
    choose = choose_contour if direction == "add" else choose_parity
    return enclose(choose(parts, epsilon, width=width), parts, epsilon, bits=256)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("epsilon", [0.1, 1.5])
@pytest.mark.parametrize("groups", [TWO, THREE, PAIR_OF_TWO])
def test_two_and_three_batches_against_quadrature(groups, epsilon, direction):
    truth = truths(groups, epsilon)[direction]
    lower, upper = enclosed_delta(groups, 1, direction, epsilon, 1e-7)
    assert truth * (1 - 3e-7) < lower < truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) < upper < truth * (1 + 3e-7)


@pytest.mark.parametrize(
    ("direction", "epsilon"), [("remove", 3.0880582397), ("add", 2.4038801551)]
)
def test_equal_batches_in_two_groups_have_the_price_of_equal_batches(direction, epsilon):
    groups = ((1.0, 30, 0.25), (1.0, 90, 0.75))
    lower, upper = enclosed_delta(((1.0, 25, 0.25), (1.0, 75, 0.75)), 10, direction, epsilon, 1e-6)
    assert 1e-10 * (1 - 2e-6) < lower < 1e-10 * (1 + 1e-7)
    assert 1e-10 * (1 - 1e-7) < upper < 1e-10 * (1 + 2e-6)
    assert enclosed_delta(groups, 10, direction, epsilon, 1e-6)[1] < 1e-10


@pytest.mark.slow
def test_the_transform_is_that_of_equal_batches_and_falls_below_its_bound():
    rays = Rays(order=0, angle=1.2, step=0.04, first=-1500, last=250, reach=250)
    rows = (Group(1.0, 2, 0.4), Group(1.0, 3, 0.6))
    with ctx.workprec(192):
        alike = UnequalTransform(UnequalAllocation.of(rows, "add"), rays)
        equal = AllocationTransform(Allocation(1.0, 5, "add"), rays)
        differing = UnequalTransform(parts_of(PAIR_OF_TWO, 1, "add")[0][0], rays)
        for u in range(1, 5):
            one, two = (each.along_line(arb(0.5), arb(u), 2)[1] for each in (alike, equal))
            # 0.4 and 0.6 are not fifths.
            assert abs(one - two) < 1e-12
            value = abs(differing.along_line(arb(0.5), arb(u), 2)[1])
            assert differing.bound_beyond(arb(0.5), arb(u)) > value
            assert value.rad() < 1e-10


@pytest.mark.slow
def test_any_numbers_of_a_ray_give_bounds_around_the_truth():
    epsilon, useless = 1.5, 0
    truth = truths(PAIR_OF_TWO, epsilon)["remove"]
    parts = parts_of(PAIR_OF_TWO, 1, "remove")
    good = choose_parity(parts, epsilon, width=1e-6)
    rays = good.sums[0]
    changes = {
        "angle": [0.01, 1.0, 1.569],
        "step": [0.5, 3.0, 100.0],
        "first": [-20, 0, rays.last],
        "last": [rays.first, 0, 10],
        "reach": [1, 5, 30],
    }
    for name, value in ((name, value) for name, values in changes.items() for value in values):
        other = replace(rays, **{name: value})
        proof = replace(good, sums=(other,), tails=(other,))
        lower, upper = enclose(proof, parts, epsilon, bits=256)
        assert not lower > truth * (1 + 1e-9)
        assert not upper < truth * (1 - 1e-9)
        useless += not upper - lower < 1e-5 * truth
    assert useless > 8
    with pytest.raises(ValueError, match="order must be 0 where batches differ, got 1"):
        enclose(replace(good, sums=(replace(rays, order=1),)), parts, epsilon, bits=256)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (epochs_of(SHORT, 20), 3.0),
        (epochs_of(TWO), 1.5),
        (epochs_of(((3.0, 50, 0.25), (4.0, 50, 0.75)), 10), 0.4),
        (events.ComposedDpEvent([epochs_of(SHORT, 5), events.GaussianDpEvent(3.0)]), 2.0),
    ],
)
def test_a_run_is_proved_and_checked(event, epsilon):
    certificate = certify(event, epsilon=epsilon)
    found = accountants.delta(event, epsilon=epsilon)
    assert float(certificate.lower) <= found.upper
    assert found.lower <= float(certificate.upper) < 1.001 * found.upper
    assert verify_certificate(certificate.to_json()) == certificate


@pytest.mark.slow
def test_epsilon_is_proved():
    certificate = certify(epochs_of(SHORT, 20), delta=1e-5)
    found = accountants.epsilon(epochs_of(SHORT, 20), delta=1e-5)
    assert certificate.lower <= found <= certificate.upper
    assert certificate.width < 2e-3
    assert verify_certificate(certificate.to_json()) == certificate


@pytest.mark.slow
@pytest.mark.parametrize(
    "forge",
    [
        lambda groups: [[1.9, *groups[0][1:]], groups[1]],
        lambda groups: [[2.0, 9, groups[0][2]], groups[1]],
        lambda groups: [[2.0, 10, 0.5], [2.0, 1, 0.5]],
        lambda groups: [groups[0]],
        lambda groups: groups * 2,
        lambda groups: [[2.0, 10, 0.9], groups[1]],
        lambda groups: [[2.0, 0, groups[0][2]], groups[1]],
        lambda groups: [[2.0, 10.5, groups[0][2]], groups[1]],
        lambda groups: [[2.0, 10], groups[1]],
        lambda groups: [["2", 10, 1.0]],
        lambda groups: [],
        lambda groups: [[2.0, 11, 1 - 2**-53 * k] for k in range(20)],
    ],
)
def test_forged_groups_are_refused(forge):
    document = json.loads(short_run())
    event = document["mechanisms"][0]["event"]
    assert event["type"] == "UnequalAllocationDpEvent"
    event["groups"] = forge(event["groups"])
    with pytest.raises(CertificateRejected):
        verify_certificate(json.dumps(document))


def test_forged_claims_and_rays_are_refused():
    good = short_run()
    document = json.loads(good)
    assert '"order": 0' in good
    with pytest.raises(CertificateRejected):
        verify_certificate(good.replace('"order": 0', '"order": 1'))
    smaller = good.replace(document["upper"], f"{float(document['upper']) * 0.9:.9f}")
    assert smaller != good
    with pytest.raises(CertificateRejected):
        verify_certificate(smaller)


def test_probabilities_that_are_scaled_or_gathered_have_no_certificate():
    """The price divides by their sum and adds those of alike batches, in doubles."""
    for groups in (
        ((1.0, 3, 0.3), (2.0, 3, 0.7 + 1e-10)),
        ((1.0, 2, 0.25), (1.0, 2, 0.25), (2.0, 1, 0.5)),
    ):
        with pytest.raises(UnsupportedEvent, match="add up to 1 in doubles"):
            certify(epochs_of(groups), epsilon=1.0)
