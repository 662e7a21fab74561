"""Shuffled epochs in ball arithmetic: both proved ends hold the brackets of independent scripts."""

import math
from dataclasses import replace

import pytest
from _certificates import claim_about
from flint import ctx
from scipy.stats import binom, norm

from dpcal.accountants import certify, events, verify_certificate
from dpcal.accountants.certificates.composed import OrderProof, Use
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.mechanisms import Mechanism
from dpcal.accountants.certificates.proofs import Clones, Grid, Rays, Scores
from dpcal.accountants.certificates.search.contour import choose_contour, choose_parity
from dpcal.accountants.certificates.search.shuffles import proofs_of_shuffle
from dpcal.accountants.certificates.shuffled_epochs import Shuffled, _chances, directions_of
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.gaussian import Gaussian, log_gaussian_delta
from dpcal.errors import CertificateRejected

BLANK = "replace-special"


def run_of(sigma, batches, epochs):
    return events.ShuffledEpochsDpEvent(sigma, batches, epochs)


def parts_of(sigma, batches, epochs, direction, replacing=False):
    return ((Shuffled(sigma, batches, batches, direction, replacing), epochs),)


def ordered(cells):
    """Laws of a statistic, on fine grids."""
    return OrderProof(0.01, 1 << 14, 1e-20, (Use(0.0, 0, cells),))


def holds(event, epsilon, bounds, proves, proof, relation=BLANK):
    """Verify a claim about the direction of removing, with nothing claimed of the other one."""
    about = [Mechanism(event, 1)], "remove"
    return verify_certificate(
        claim_about(*about, epsilon, bounds, (proves, proof), bits=192, relation=relation)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "relation", "exact", "below", "known"),
    [
        # Prices of the worst pair by quadrature on the plane, of an attack by an independent
        # script, and of known batches. The short one of two batches counts below and not above.
        (events.ShuffledEpochsDpEvent(2.0, 1, 1, remainder=True), BLANK, 1.91946, 1.91476, 1.99309),
        # A replaced record, by twice its contribution.
        (run_of(0.8, 117, 1), "replace-one", 13.2067, 8.44475, 13.2067),
    ],
)
def test_epsilon_is_proved_around_the_exact_price(run, relation, exact, below, known):
    certificate = certify(run, delta=1e-5, neighboring_relation=relation)
    assert 0.99 * below < certificate.lower <= 1.00001 * below
    assert certificate.lower < exact < certificate.upper < 1.02 * known
    assert verify_certificate(certificate.to_json()) == certificate


def test_numbers_of_clones_have_binomial_masses():
    rays = Rays(1, 0.5, 0.1, -50, 50, 50)
    numbers = (21, 25, 31, 90)
    with ctx.workprec(128):
        chances, few = _chances(400, Clones(0.1, numbers, rays))
        found, below = [float(each) for each in chances], float(few)
    law = binom(400, 0.1)
    ends = [*(number - 2 for number in numbers[1:]), 400]
    masses = [law.cdf(end) - law.cdf(number - 2) for number, end in zip(numbers, ends, strict=True)]
    masses[-1] += law.cdf(numbers[0] - 2)
    assert found == pytest.approx(masses, rel=1e-9)
    assert law.cdf(numbers[0] - 2) < below < 1.5 * law.cdf(numbers[0] - 2)


def test_one_number_of_clones_is_an_allocation_and_a_slack():
    sigma, batches, epochs, least, epsilon, alpha = 6.0, 200, 3, 40, 0.1, 0.3
    allocation = ((Allocation(sigma, least, "remove"), epochs),)
    proof = choose_parity(allocation, epsilon, width=1e-6)
    clones = Clones(alpha, (least,), proof.sums[0])
    shuffled = replace(proof, sums=(clones,), tails=(clones,))
    _, exact = enclose(proof, allocation, epsilon, bits=256)
    lower, upper = enclose(shuffled, parts_of(sigma, batches, epochs, "remove"), epsilon, bits=256)
    t, x = 1 / sigma, -math.log(alpha)
    eta = norm.cdf(t / 2 - x / t) - norm.cdf(-t / 2 - x / t) / alpha
    with ctx.workprec(128):
        slack = epochs * float(_chances(batches - 1, clones)[1])
    slack += (1 + math.exp(epsilon)) * epochs * (batches - 1) * alpha * eta
    assert float(upper - exact) == pytest.approx(slack, rel=1e-9)
    assert not lower > 0


@pytest.mark.slow
def test_any_numbers_give_bounds_around_the_exact_price():
    sigma, epsilon = 5.0, 0.55775
    parts = parts_of(sigma, 2, 1, "remove")
    good = [
        proof
        for _, proof in proofs_of_shuffle(
            *directions_of(run_of(sigma, 2, 1), BLANK).directions[:1], epsilon, "both", 1e-4
        )
    ]
    clones = good[1].sums[0]
    others = [replace(clones, probability=p) for p in (1e-9, 0.1, 0.5, 0.9, 1 - 1e-9)]
    others += [replace(clones, numbers=numbers) for numbers in ((1,), (2,))]
    others += [replace(clones, rays=replace(clones.rays, reach=1))]
    tried = good + [replace(good[1], sums=(each,), tails=(each,)) for each in others]
    cells = Grid(0.1, -100, 150), Grid(2.0, 0, 3), Scores(Grid(0.1, -50, 100), 1e-3, 512)
    tried += [ordered(each) for each in cells]
    useful = 0
    for proof in tried:
        lower, upper = enclose(proof, parts, epsilon, bits=256)
        assert not lower > 1.0002e-5
        assert not upper < 0.9998e-5
        useful += bool(upper < 2e-4) + bool(lower > 1e-6)
    assert useful >= 4


def test_bounds_from_above_prove_nothing_below():
    run, epsilon = run_of(1.0, 100, 1), 1.0
    known = choose_contour(((Gaussian(1.0), 1),), epsilon, width=1e-6)
    delta = math.exp(log_gaussian_delta(epsilon, 1.0)[0])
    assert holds(run, epsilon, ("0", str(delta * 1.001)), "upper", known)
    # Epochs of an allocation, and of known batches, cost less and more than those of a shuffle.
    rays = choose_parity(((Allocation(1.0, 100, "remove"), 1),), epsilon, width=1e-6)
    grid, scores = Grid(0.01, -500, 600), Scores(Grid(0.1, -50, 100), 1e-3, 512)
    forged = [
        (known, "lower", ("0.1", "1")),
        (ordered(grid), "lower", ("0.1", "1")),
        (ordered(grid), "upper", ("0", "0.1")),
        (ordered(scores), "upper", ("0", "0.01")),
        (rays, "upper", ("0", "0.01")),
    ]
    for proof, proves, bounds in forged:
        with pytest.raises(CertificateRejected):
            holds(run, epsilon, bounds, proves, proof)
    for proof in (known, ordered(grid)):
        with pytest.raises(CertificateRejected):
            holds(run, epsilon, ("0.3", "1"), "lower", proof, relation="replace-one")


def test_more_batches_than_there_are_clones_for_are_refused():
    proof = choose_contour(((Gaussian(4.0), 10),), 1.0, width=0.1)
    clones = Clones(0.5, (101,), Rays(0, 0.5, 0.1, -50, 50, 50))
    changed = replace(proof, sums=(clones,), tails=(clones,))
    with pytest.raises(CertificateRejected, match="must fit its losses"):
        holds(run_of(4.0, 100, 10), 1.0, ("0", "1"), "upper", changed)
