r"""The narrow proof of Gaussian mechanisms, their samples and allocations: a sum along a contour.

For one direction of a composition with transform M(z) = prod_i M_i(z)^T_i and c > 0,

    (h / pi) (F(0) / 2 + sum_{k >= 1} Re F(k h)) = sum_j exp(c d_j) delta(epsilon + d_j)

with d_j = 2 pi j / h, F(t) = exp(-epsilon z) M(z) / (z (z + 1)) and z = c + i t (Poisson
summation). The terms j != 0, the aliases, are positive and bounded by Chernoff's inequality at a
tilt below and one above c, which bounds delta itself as well. The sum over k stops at N nodes;
beyond, abs(F) is at most exp(-epsilon c) / t^2 times a bound on abs(M) uniform in t >= N h.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> proof = ContourProof(3.0, 0.5, 40, 0.5, 6.0, (None,), (None,))
>>> with balls.workprec(96):
...     lower, upper = contour_bounds(proof, [(Gaussian(1.0), 1)], balls.arb(2), False)
>>> print(lower.str(6, radius=False), upper.str(6, radius=False))
0.0209236 0.0209236
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.allocation_transform import (
    AllocationTransform,
    UnequalTransform,
)
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.proofs import (
    Clones,
    ContourProof,
    ParityProof,
    Rays,
    ShiftedLattice,
    Substitute,
)
from dpcal.accountants.certificates.shuffled_epochs import (
    Shuffled,
    allocation_of_clones,
    slack_of_clones,
)
from dpcal.accountants.certificates.transforms import (
    GaussianTransform,
    SampledGaussianTransform,
    Transform,
)
from dpcal.accountants.losses.allocation import Allocation, UnequalAllocation
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["contour_bounds", "entries_of", "fits"]

Interval = tuple[Ball, Ball]
Losses = Sequence[tuple[PrivacyLoss, int]]
Transforms = list[tuple[Transform, int]]


def fits(loss: PrivacyLoss, item: Substitute) -> bool:
    """Return whether the transform of a loss may be summed on a substitute."""
    if isinstance(loss, Shuffled):
        if isinstance(item, Clones):
            return not loss.replacing and item.numbers[-1] <= loss.batches
        return item is None or (loss.replacing and isinstance(item, Rays))
    if isinstance(loss, Allocation):
        alike = not isinstance(loss, UnequalAllocation)
        return isinstance(item, Rays) and (alike or item.order == 0)
    if isinstance(loss, SampledGaussian):
        return isinstance(item, ShiftedLattice)
    return type(loss) is Gaussian and item is None


def entries_of(loss: PrivacyLoss, rays: Rays) -> float:
    """Return the number of entries of a table along a ray."""
    if isinstance(loss, Allocation):
        return sum(rays.entries(group.noise_multiplier) for group in loss.groups)
    assert isinstance(loss, Shuffled)
    return rays.entries(loss.noise_multiplier)


def contour_bounds(proof: ContourProof, losses: Losses, epsilon: Ball, rounded: bool) -> Interval:
    """Return the finite sum, plus or minus the omitted terms, less the aliases.

    Where substitutes bound losses from one side, the other bound is 0 or 1.
    """
    parity = isinstance(proof, ParityProof)
    turned = [(loss.opposite if parity else loss, times) for loss, times in losses]
    known = [(loss, times) for loss, times in turned if loss is not None]
    if len(known) < len(losses):
        return balls.arb(0), balls.arb(1)
    pairs = list(zip(known, proof.sums, strict=True))
    if not all(fits(loss, item) for (loss, _), item in pairs):
        return balls.arb(0), balls.arb(1)
    at = -epsilon if parity else epsilon
    lower, upper = _contour(proof, known, at, rounded)
    if parity:
        lower, upper = (epsilon.exp() * bound - epsilon.expm1() for bound in (lower, upper))
    for (loss, times), item in pairs:
        if isinstance(loss, Shuffled):
            # Clones and known batches cost no less, and what a ray sums costs no more.
            lower = lower if isinstance(item, Rays) else balls.arb(0)
            upper = balls.arb(1) if isinstance(item, Rays) else upper
            if isinstance(item, Clones):
                upper += slack_of_clones(loss, item, times, epsilon)
    return lower, balls.arb.min(upper, balls.arb(1))


def _contour(proof: ContourProof, losses: Losses, epsilon: Ball, rounded: bool) -> Interval:
    """Return bounds on delta at any real epsilon of the losses that are summed."""
    arb, acb = balls.arb, balls.acb
    c, h = arb(proof.tilt), arb(proof.step)
    known: dict[tuple[int, Substitute], Transform] = {}

    def transforms(items: Iterable[Substitute]) -> Transforms:
        found = []
        for index, ((loss, times), item) in enumerate(zip(losses, items, strict=True)):
            if (index, item) not in known:
                known[index, item] = _transform_of(loss, item, rounded)
            found.append((known[index, item], times))
        return found

    sums = transforms(proof.sums)
    products = [acb(1)] * proof.nodes
    for transform, times in sums:
        values = transform.along_line(c, h, proof.nodes)
        products = [a * value**times for a, value in zip(products, values, strict=True)]
    value = arb(0)
    for k, product in enumerate(products):
        z = acb(c, k * h)
        term = (product * (-epsilon * z).exp() / (z * (z + 1))).real
        value += term if k else term / 2
    value *= h / arb.pi()
    rest = _beyond(proof, transforms(proof.tails), epsilon)
    bounds = [_chernoff(tilt, sums, epsilon) for tilt in (proof.below, proof.above)]
    lower = value - rest - _aliases(proof, bounds)
    # The least ball of wide ones has a radius of few digits.
    ends = [arb(end.upper()) for end in (value + rest, *bounds)]
    return lower, arb.min(ends[0], arb.min(*ends[1:]))


def _transform_of(loss: PrivacyLoss, item: Substitute, rounded: bool) -> Transform:
    """Return the transform of a loss, or of what bounds it from one side."""
    if isinstance(loss, Shuffled):
        if isinstance(item, Clones):
            return allocation_of_clones(loss, item)
        if isinstance(item, Rays):
            # Others contribute -1, and so does the substitute.
            epoch = Allocation(loss.noise_multiplier, loss.answers, loss.direction)
            return AllocationTransform(epoch, item)
    if isinstance(loss, Allocation):
        assert isinstance(item, Rays)
        along = UnequalTransform if isinstance(loss, UnequalAllocation) else AllocationTransform
        return along(loss, item)
    if isinstance(loss, SampledGaussian):
        assert isinstance(item, ShiftedLattice)
        return SampledGaussianTransform(loss, item, rounded)
    assert isinstance(loss, Gaussian | Shuffled)
    return GaussianTransform(1 / balls.arb(loss.noise_multiplier))


def _chernoff(tilt: float, transforms: Transforms, epsilon: Ball) -> Ball:
    """Return a bound on exp(tilt (e - epsilon)) delta(e) for every e.

    The supremum over l of (1 - exp(-l)) exp(-a l) is a^a / (1 + a)^(1 + a).
    """
    if tilt == 0:
        return balls.arb(1)
    a = balls.arb(tilt)
    value = (-a * epsilon - a * (1 / a).log1p() - a.log1p()).exp()
    for transform, times in transforms:
        value *= transform.at(a) ** times
    return value


def _aliases(proof: ContourProof, bounds: list[Ball]) -> Ball:
    """Return a bound on the terms on either side, which are at most geometric series."""
    distances = [abs(balls.arb(tilt) - proof.tilt) for tilt in (proof.below, proof.above)]
    turns = [2 * balls.arb.pi() * distance / proof.step for distance in distances]
    return sum((b / t.expm1() for b, t in zip(bounds, turns, strict=True)), balls.arb(0))


def _beyond(proof: ContourProof, tails: Transforms, epsilon: Ball) -> Ball:
    """Return a bound on the sum over all other nodes; sum_{k >= N} 1 / k^2 <= 1/N + 1/N^2."""
    c, h, nodes = balls.arb(proof.tilt), balls.arb(proof.step), balls.arb(proof.nodes)
    product = (-c * epsilon).exp() * (1 / nodes + 1 / nodes**2) / (balls.arb.pi() * h)
    for transform, times in tails:
        product *= transform.bound_beyond(c, nodes * h) ** times
    return product
