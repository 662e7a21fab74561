"""Random allocation in ball arithmetic: whatever a proof says, the known values are inside."""

import itertools
import math
from dataclasses import replace

import pytest
from flint import arb, ctx

from dpcal import accountants
from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates import enclosure
from dpcal.accountants.certificates.allocation_transform import AllocationTransform
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.proofs import Rays
from dpcal.accountants.certificates.search.contour import choose_contour, choose_parity
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import CertificateRejected, UnsupportedEvent

# M(z) at z = 1/2 + 3i when adding: the mean of L^q, q = -1/2 - 3i, sigma = 1, by mpmath.
TRANSFORMS = {
    2: ("-.0250604105180254037176313635", ".1052972232559920876005481494"),
    3: (".0535370984911119131566697", ".2016658797649704453699035"),
    5: (".2373575825717217752987585339", ".2751339880000166114802084152"),
    100: (".9333430689194762391706967883", ".0480633618105014816610860543"),
    1000: (".9929616029768361477129345945", ".0051215621392219327343447"),
}
# sigma, batches, epochs, delta, and epsilons of a removed and an added record, to 10 decimals.
ROWS = [
    (1, 2, 1, 1e-5, 3.6973852125, 3.0797325885),
    (1, 5, 20, 1e-5, 13.0289204555, 11.7247237259),
    (2, 10, 10, 1e-5, 2.1420731081, 2.1042637417),
    (1, 100, 1, 1e-5, 0.6209396716, 0.4219534733),
    (1, 100, 10, 1e-10, 3.0880582397, 2.4038801551),
    (0.5, 1000, 1, 1e-5, 3.1341522061, 0.4975188186),
    (4, 100, 1000, 1e-5, 3.4013202065, 3.4010400529),
    (0.8, 117, 10, 1e-5, 2.6647247892, 2.0794836969),
    (0.7085, 10_000, 100, 1e-5, 0.9433900366, 0.9230260343),
    (1, 1_000_000, 10_000, 1e-6, 0.5301592273, 0.5301419910),
    (0.3, 1000, 5, 1e-5, 25.2458518740, 6.2099036820),
    (1, 1000, 100, 1e-12, 2.8539941142, 2.8060886352),
]


def epochs_of(sigma, batches, epochs):
    return events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)


def parts_of(sigma, batches, epochs, direction):
    return ((Allocation(float(sigma), batches, direction), epochs),)


@pytest.mark.parametrize("order", [0, 1, 4])
@pytest.mark.parametrize("batches", TRANSFORMS)
def test_transforms_hold_the_values_of_fifty_digits(batches, order):
    rays = Rays(order, angle=1.2, step=0.04, first=-2500, last=250, reach=250)
    with ctx.workprec(192):
        line = AllocationTransform(Allocation(1.0, batches, "add"), rays)
        value = line.along_line(arb(0.5), arb(3), 2)[1]
        for part, exact in zip((value.real, value.imag), TRANSFORMS[batches], strict=True):
            assert part.overlaps(arb(f"{exact} +/- 1e-24"))
            assert part.rad() < 1e-12
        assert line.bound_beyond(arb(0.5), arb(3)) > abs(value)


@pytest.mark.parametrize(("sigma", "batches", "epochs", "delta", "removed", "added"), ROWS)
def test_known_deltas_are_enclosed_in_both_directions(
    sigma, batches, epochs, delta, removed, added
):
    for direction, epsilon in (("remove", removed), ("add", added)):
        parts = parts_of(sigma, batches, epochs, direction)
        proof = choose_contour(parts, epsilon, width=1e-8)
        lower, upper = enclose(proof, parts, epsilon, bits=256)
        # Epsilons are rounded to 10 decimals, which moves delta by less than this.
        assert delta * (1 - 1e-6) < lower < delta * (1 + 1e-8)
        assert delta * (1 - 1e-8) < upper < delta * (1 + 1e-6)


def test_any_numbers_of_a_ray_give_bounds_around_the_truth():
    parts, epsilon = parts_of(1, 100, 10, "remove"), 1.9642696130
    good = choose_contour(parts, epsilon, width=1e-6)
    rays = good.sums[0]
    changes = {
        "order": [0, 5, 8, 9, 20],
        "angle": [0.01, 1.0, 1.569],
        "step": [0.01, 0.5, 3.0, 100.0],
        "first": [-20, 0, rays.last],
        "last": [rays.first, 0, 10, 300],
        "reach": [1, 5, 30],
    }
    useless = 0
    for name, value in itertools.chain(
        *(zip([k] * 9, v, strict=False) for k, v in changes.items())
    ):
        other = replace(rays, **{name: value})
        proof = replace(good, sums=(other,), tails=(other,))
        lower, upper = enclose(proof, parts, epsilon, bits=256)
        assert not lower > 1.0000001e-6
        assert not upper < 0.9999999e-6
        useless += not upper - lower < 1e-8
    assert useless > 10


ALIASES = ("_chernoff", lambda tilt, transforms, epsilon: arb(0), 2.0, 1.0)
REST = ("_beyond", lambda proof, tails, epsilon: arb(0), 1.0, 0.2)


@pytest.mark.parametrize(("term", "left_out", "coarser", "longer"), [ALIASES, REST])
@pytest.mark.parametrize("choose", [choose_contour, choose_parity])
def test_each_term_of_a_contour_is_needed(choose, term, left_out, coarser, longer, monkeypatch):
    """A contour too coarse or too short proves little; without its term it proves a falsehood."""
    truths = [(3.6973852125, "remove")] + [(3.0797325885, "add")] * (choose is choose_contour)
    for epsilon, direction in truths:
        parts = parts_of(1, 2, 1, direction)
        proof = choose(parts, epsilon, width=1e-3)
        nodes = math.ceil(longer * proof.nodes)
        proof = replace(proof, step=coarser * proof.step, nodes=nodes)
        lower, upper = enclose(proof, parts, epsilon, bits=256)
        assert lower.lower() < 1e-5 < upper.upper()
        with monkeypatch.context() as patch:
            patch.setattr(enclosure, term, left_out)
            lower, upper = enclose(proof, parts, epsilon, bits=256)
        assert lower > 1.0001e-5 or upper < 0.9999e-5


def test_parity_proves_nothing_of_losses_whose_other_direction_is_unknown():
    """Were they left out, bounds would be those of the rest, and delta is above them."""
    event = events.PoissonSampledDpEvent(0.5, events.GaussianDpEvent(1.0))
    sampled = decompose(event, "add-or-remove-one").directions[0].parts
    both = (*parts_of(1, 2, 1, "remove"), *sampled)
    alone = choose_parity(both[:1], 1.0, width=1e-3)
    lattice = choose_contour(sampled, 1.0, width=1e-3)
    proof = replace(alone, sums=alone.sums + lattice.sums, tails=alone.tails + lattice.tails)
    assert enclose(proof, both, 1.0, bits=128) == (0, 1)
    _, upper = enclose(alone, both[:1], 1.0, bits=128)
    known = accountants.delta(
        events.ComposedDpEvent([event, events.RandomAllocationDpEvent(1.0, 2)]), epsilon=1.0
    )
    assert upper < 0.9 * known.lower


def test_an_epoch_is_the_gaussian_mechanism_where_the_batch_is_no_secret():
    certificate = certify(epochs_of(1.0, 1, 4), epsilon=9.9972561464, width=1e-6)
    assert float(certificate.upper) == pytest.approx(1e-5, rel=1e-6)


def test_a_composition_with_poisson_steps_and_noise_on_everyone():
    event = events.ComposedDpEvent(
        [
            epochs_of(1.0, 100, 3),
            events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=100),
            events.GaussianDpEvent(3.0),
        ]
    )
    certificate = certify(event, epsilon=1.5, width=1e-6)
    found = accountants.delta(event, epsilon=1.5)
    assert found.lower * (1 - 1e-7) <= float(certificate.upper)
    assert float(certificate.lower) <= found.upper * (1 + 1e-7)
    assert verify_certificate(certificate.to_json()) == certificate


def test_epsilon_is_proved_where_the_accountant_has_moments_alone():
    certificate = certify(epochs_of(1.0, 100, 1), delta=1e-5)
    assert certificate.lower <= 0.6209396716 <= certificate.upper
    assert certificate.width < 2e-3
    assert verify_certificate(certificate.to_json()) == certificate


def test_what_no_proof_covers_is_refused():
    event = epochs_of(1.0, 100, 10)
    with pytest.raises(UnsupportedEvent, match="under neighboring relation 'replace-one'"):
        certify(event, delta=1e-5, neighboring_relation="replace-one")
    document = certify(event, epsilon=1.0, width=0.1).to_json()
    for old, new in (('"batches": 100', '"batches": 100.5'), ('"batches": 100', '"batches": 0')):
        with pytest.raises(CertificateRejected):
            verify_certificate(document.replace(old, new))


def test_what_only_a_known_batch_dominates_has_no_certificate():
    with pytest.raises(UnsupportedEvent, match="a Gaussian for each epoch"):
        accountants.certify(events.RandomAllocationDpEvent(0.04, 100), epsilon=300.0)
