"""Random allocation in ball arithmetic: whatever a proof says, the known values are inside."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from _certificates import resigned
from _integrals import TABLES, allocation, each_row
from contracts._events import WRITTEN, made
from flint import arb, ctx

from dpcal import accountants
from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates import contour
from dpcal.accountants.certificates.allocation_transform import AllocationTransform
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.search.contour import choose_contour
from dpcal.accountants.certificates.search.lines import line_of
from dpcal.accountants.certificates.transforms import Line
from dpcal.accountants.losses.allocation import Allocation, Group, UnequalAllocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.laplace import Laplace
from dpcal.errors import CertificateRejected

QUICK = {(1.0, 2, 1e-5), (1.0, 3, 1e-5), (1.0, 100, 1e-10), (0.7085, 10_000, 1e-5)}
# Epsilons of one of two batches at delta 1e-5, sigma = 1.
KNOWN = (("remove", 3.6973852125), ("add", 3.0797325885))
TWO = ((1.0, 1, 0.3), (2.0, 1, 0.7))
THREE = ((1.0, 1, 0.5), (1.5, 1, 0.25), (3.0, 1, 0.25))
PAIR_OF_TWO = ((1.0, 2, 0.75), (2.0, 1, 0.25))
SHORT = ((2.0, 10, 1000 / 1050), (2.0, 1, 50 / 1050))


def epochs_of(sigma, batches, epochs):
    return events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)


def unequal(groups, epochs=1):
    return events.SelfComposedDpEvent(events.UnequalAllocationDpEvent(groups), epochs)


def parts_of(sigma, batches, epochs, direction):
    return ((Allocation(float(sigma), batches, direction), epochs),)


def parts_of_groups(groups, direction):
    rows = tuple(Group(float(sigma), m, p) for sigma, m, p in groups)
    return ((UnequalAllocation.of(rows, direction), 1),)


def truth_of(groups, epsilon):
    return allocation([(sigma, p / m) for sigma, m, p in groups for _ in range(m)], epsilon)


# -- enclosures of known values


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLES["transforms"][::2], ids=lambda row: str(row["batches"]))
def test_transforms_hold_the_values_of_fifty_digits(row):
    # M(z) at z = 1/2 + 3i when adding is the conjugate of that mean.
    with ctx.workprec(192):
        loss = Allocation(1.0, row["batches"], "add")
        transform, ray = AllocationTransform(loss), line_of(loss, 32.0, 0.5, 6.0)
        value = transform.along(ray, 0.5, 3.0, 2)[1]
        assert value.real.overlaps(arb(f"{row['real']} +/- 1e-24"))
        assert (-value.imag).overlaps(arb(f"{row['imag']} +/- 1e-24"))
        assert max(value.real.rad(), value.imag.rad()) < 1e-12
        assert transform.beyond(ray, 0.5, arb(3)) > abs(value)


@pytest.mark.slow
@each_row(
    TABLES["allocation"],
    lambda row: (row["sigma"], row["batches"], row["delta"]) in QUICK and row["epochs"] != 5,
)
def test_known_deltas_are_enclosed_in_both_directions(row):
    delta = row["delta"]
    for direction, epsilon in (("remove", row["removed"]), ("add", row["added"])):
        parts = parts_of(row["sigma"], row["batches"], row["epochs"], direction)
        proof = choose_contour(parts, epsilon, log_delta=math.log(delta), width=1e-8)
        lower, upper = enclose(proof, parts, epsilon)
        assert delta * (1 - 1e-7) < lower < delta * (1 + 1e-11)
        assert delta * (1 - 1e-11) < upper < delta * (1 + 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "epsilon", "direction"),
    [(TWO, 0.1, "remove"), (TWO, 0.1, "add"), (THREE, 1.5, "add"), (PAIR_OF_TWO, 1.5, "remove")],
)
def test_two_and_three_batches_against_quadrature(groups, epsilon, direction):
    truth, parts = truth_of(groups, epsilon)[direction], parts_of_groups(groups, direction)
    proof = choose_contour(parts, epsilon, log_delta=math.log(truth), width=1e-7)
    lower, upper = enclose(proof, parts, epsilon)
    assert truth * (1 - 3e-7) < lower < truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) < upper < truth * (1 + 3e-7)


def test_the_transform_of_groups_is_that_of_equal_batches_and_falls_below_its_bound():
    rows = (Group(1.0, 2, 0.4), Group(1.0, 3, 0.6))
    with ctx.workprec(192):
        alike = UnequalAllocation.of(rows, "add")
        differing = parts_of_groups(PAIR_OF_TWO, "add")[0][0]
        for u in (1, 3):
            found = []
            for loss in (alike, Allocation(1.0, 5, "add"), differing):
                transform, ray = AllocationTransform(loss), line_of(loss, 32.0, 0.5, u)
                found.append(transform.along(ray, 0.5, float(u), 2)[1])
            # 0.4 and 0.6 are not fifths.
            assert abs(found[0] - found[1]) < 1e-12
            value = abs(found[2])
            assert transform.beyond(ray, 0.5, arb(u)) > value
            assert value.rad() < 1e-10


# -- whatever a document says


@pytest.mark.parametrize("angle", [0.01, 0.8, 1.2, 1.56])
def test_the_error_of_a_step_is_a_bound_of_lines_within_the_strip(angle):
    shares = np.arange(1, 4096) / 4096
    for c, u, step in itertools.product((0.5, 3.0), (0.0, 2.0), (0.05, 1.0, 20.0)):
        least = 0.0
        for sign in (1, -1):
            y = (math.pi / 2 + sign * angle) * shares
            away = angle - sign * y
            bounds = np.exp(-u * away) / np.cos(away) ** c / np.expm1(2 * math.pi * y / step)
            least += float(bounds.min())
        assert AllocationTransform._rule(Line(angle, step, 0, 1), arb(c), arb(u)) > 0.99 * least


@pytest.mark.parametrize(("angle", "step", "t"), [(0.2, 1.2, 0.5), (1.2, 0.7, 0.5), (1.0, 0.1, 1)])
def test_the_error_of_a_mean_is_a_bound_of_strips_where_no_density_grows(angle, step, t):
    d = (math.pi / 2 - angle) / t * np.arange(1, 4096) / 4096
    least = (2 * np.exp(d * d / 2) / np.expm1(2 * math.pi * d / step)).min()
    line = Line(angle, step, 0, 1, reach=20)
    omitted = math.erfc(line.reach * step / math.sqrt(2))
    error = AllocationTransform._error_of_mean(line, arb(t), arb(step))
    assert error > 0.99 * (float(least) + omitted)


@pytest.mark.parametrize(
    ("name", "share"),
    [("first", 0.5), ("first", 0.25), ("last", 0.5), ("last", 0.75), ("reach", 0.25), ("step", 4)],
)
def test_a_coarse_or_short_ray_encloses_the_transform(name, share):
    loss = Allocation(1.0, 2, "add")
    with ctx.workprec(128):
        transform, ray = AllocationTransform(loss), line_of(loss, 25.0, 0.5, 3.0)
        value = getattr(ray, name) * share
        other = replace(ray, **{name: value if name == "step" else int(value)})
        found, truth = (transform.along(each, 0.5, 3.0, 2) for each in (other, ray))
        for one, true in zip(found, truth, strict=True):
            assert one.overlaps(true)
            assert one.real.rad() > 10 * true.real.rad()


def test_the_errors_of_a_ray_add_up(monkeypatch):
    loss, radii = Allocation(1.0, 2, "add"), []
    for rule, ends in ((0.1, 0.1), (0.1, 0.0), (0.0, 0.1)):
        monkeypatch.setattr(AllocationTransform, "_rule", lambda *_, error=rule: arb(error))
        monkeypatch.setattr(AllocationTransform, "_ends", lambda *_, error=ends: arb(error))
        with ctx.workprec(128):
            ray = line_of(loss, 25.0, 0.5, 3.0)
            value = AllocationTransform(loss).along(ray, 0.5, 3.0, 2)[1]
        radii.append(float(value.real.rad()))
    both, *each = radii
    assert both > 0.999 * sum(each)
    assert min(each) > 1e-3 * max(each)


def _in(ray, name, value):
    """Return a value with which the ray has a point."""
    return {"first": min(value, ray.last), "last": max(value, ray.first)}.get(name, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "epsilon", "truth"),
    [
        (parts_of(1, 100, 10, "remove"), 1.9642696130, 1e-6),
        (parts_of_groups(PAIR_OF_TWO, "remove"), 1.5, truth_of(PAIR_OF_TWO, 1.5)["remove"]),
    ],
    ids=["equal batches", "batches that differ"],
)
def test_any_ray_gives_bounds_around_the_truth(parts, epsilon, truth):
    good = choose_contour(parts, epsilon, log_delta=math.log(truth), width=1e-6)
    (rays,) = good.lines
    changes = [
        *(("angle", value) for value in (0.01, 1.569)),
        *(("step", value) for value in (0.5, 3.0, 100.0)),
        *(("first", value) for value in (-20, 0, 1 << 20)),
        *(("last", value) for value in (-(1 << 20), 0, 10)),
        *(("reach", value) for value in (1, 5, 30)),
    ]
    useless = 0
    for name, value in changes:
        others = tuple(replace(ray, **{name: _in(ray, name, value)}) for ray in rays)
        lower, upper = enclose(replace(good, lines=(others,)), parts, epsilon)
        assert not lower > truth * (1 + 1e-7)
        assert not upper < truth * (1 - 1e-7)
        useless += not upper - lower < 1e-2 * truth
    assert useless > 8


ALIASES = ("_aliases", lambda proof, bounds: arb(0), 2.0, 1.0)
REST = ("_beyond", lambda proof, sums, epsilon: arb(0), 1.0, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("term", "left_out", "coarser", "longer"), [ALIASES, REST])
def test_each_term_of_a_contour_is_needed(term, left_out, coarser, longer, monkeypatch):
    """A contour too coarse or too short proves little; without its term it proves a falsehood."""
    direction, epsilon = KNOWN[1]
    parts = parts_of(1, 2, 1, direction)
    proof = choose_contour(parts, epsilon, log_delta=math.log(1e-5), width=1e-3)
    nodes = math.ceil(longer * proof.nodes)
    proof = replace(proof, step=coarser * proof.step, nodes=nodes)
    lower, upper = enclose(proof, parts, epsilon)
    assert lower.lower() < 1e-5 < upper.upper()
    with monkeypatch.context() as patch:
        patch.setattr(contour, term, left_out)
        contour.ContourProof._ends.cache_clear()
        lower, upper = enclose(proof, parts, epsilon)
        contour.ContourProof._ends.cache_clear()
    assert lower > 1.0001e-5 or upper < 0.9999e-5


def test_contours_prove_nothing_of_losses_without_a_transform():
    """Were they left out, bounds would be those of the rest, and delta is above them."""
    laplace = ((Laplace(1.0), 1),)
    both = (*parts_of(1, 2, 1, "remove"), *laplace)
    about = {"log_delta": -3.0, "width": 1e-3}
    assert enclose(choose_contour(both[:1], 1.0, **about), both, 1.0) == (0, 1)
    with pytest.raises(OutOfReach):
        choose_contour(both, 1.0, **about)


# -- certificates


@pytest.mark.slow
@pytest.mark.parametrize(("event", "epsilon"), WRITTEN["proved_runs"])
def test_a_run_is_proved_and_checked(event, epsilon):
    event = made(event)
    certificate = certify(event, epsilon=epsilon)
    found = accountants.delta(event, epsilon=epsilon)
    assert float(certificate.lower) <= found.upper
    assert found.lower <= float(certificate.upper) < 1.001 * found.upper
    assert verify_certificate(certificate.to_json()) == certificate


@pytest.mark.slow
def test_forged_groups_claims_and_rays_are_refused():
    text = certify(unequal(SHORT, 20), epsilon=3.0).to_json()
    first, last = json.loads(text)["mechanisms"][0]["event"]["groups"]
    forged = [
        *([[1.9, *first[1:]], last], [[2.0, 9, first[2]], last], [[2.0, 0, first[2]], last]),
        *([[2.0, 10, 0.5], [2.0, 1, 0.5]], [[2.0, 10, 0.9], last], [[2.0, 10], last]),
        *([first], [first, last] * 2, [[2.0, 10.5, first[2]], last], [["2", 10, 1.0]], []),
        [[2.0, 11, 1 - 2**-53 * k] for k in range(20)],
    ]
    upper = json.loads(text)["upper"]
    changed = (text.replace(upper, f"{float(upper) * 0.9:.9f}"),)
    documents = [json.loads(each) for each in changed]
    for groups in forged:
        document = json.loads(text)
        document["mechanisms"][0]["event"]["groups"] = groups
        documents.append(document)
    for document in documents:
        assert document != json.loads(text)
        with pytest.raises(CertificateRejected):
            verify_certificate(resigned(document))


# -- a second proof, by convex order


@pytest.mark.slow
def test_any_grids_of_a_convex_order_give_bounds_around_the_truth():
    good = OrderProof(128, 0.02, 1500, 1e-9, 20.0)
    others = [replace(good, step=each) for each in (2e-3, 0.35, 3.0, 15.0)]
    others += [replace(good, nodes=each) for each in (2, 3, 20, 100)]
    others += [replace(good, tail=each) for each in (1e-20, 1e-3, 0.3, 0.999)]
    others += [replace(good, top=each) for each in (0.0, 1.0, 3.0, 1e3)]
    useless = 0
    for proof in (good, *others):
        for direction, epsilon in KNOWN:
            lower, upper = enclose(proof, parts_of(1, 2, 1, direction), epsilon)
            assert not lower > 1.0000002e-5
            assert not upper < 0.9999998e-5
            useless += not upper - lower < 1e-6
    assert 5 < useless < 2 * len(others)


@pytest.mark.slow
def test_a_second_proof_of_an_epsilon_is_verified_and_refused_where_it_claims_more():
    event = epochs_of(2.0, 10, 10)
    certificate = certify(event, epsilon=2.1420731081, method="convex-order", width=0.3)
    assert certificate.lower < 1e-5 < certificate.upper
    assert certificate.width < 0.3
    assert verify_certificate(certificate.to_json()) == certificate
    *before, last = certificate.proofs
    narrower = replace(last.directions[0], upper=last.directions[0].lower)
    forged = replace(last, directions=(narrower, *last.directions[1:]))
    with pytest.raises(CertificateRejected):
        verify_certificate(replace(certificate, proofs=(*before, forged)))
