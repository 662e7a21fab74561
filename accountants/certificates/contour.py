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
...     lower, upper = proof.bounds([(Gaussian(1.0), 1)], balls.arb(2))
>>> print(lower.str(6, radius=False), upper.str(6, radius=False))
0.0209236 0.0209236
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated

from dpcal.accountants.certificates import balls, shuffled_epochs as shuffles
from dpcal.accountants.certificates.allocation_transform import AllocationTransform
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.cost import FUNCTION, PRODUCT, TERM
from dpcal.accountants.certificates.proofs import (
    MAX_PARTS,
    SUBSTITUTE,
    Clones,
    Interval,
    Parts,
    Proof,
    Rays,
    ShiftedLattice,
    Substitute,
)
from dpcal.accountants.certificates.schema import list_of, not_negative, positive, whole
from dpcal.accountants.certificates.transforms import (
    GaussianTransform,
    SampledGaussianTransform,
    Transform,
)
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["MAX_NODES", "ContourProof", "ParityProof"]

# Most nodes of a contour. Searches need 20 to 20,000; losses that hardly decay need all of them.
MAX_NODES = 1 << 17

# Functions for a node of a contour, and for a value in the sum of a transform along a line, where a
# transform is summed at three tilts and beyond the last node.
_FUNCTIONS_OF_NODE, _FUNCTIONS_OF_TRANSFORM = 6, 12

Transforms = list[tuple[Transform, int]]


@dataclass(frozen=True)
class ContourProof(Proof):
    """Both bounds on delta, by the trapezoid rule on the line Re z = tilt.

    Attributes
    ----------
    tilt
        Tilt > 0 at which the line crosses the real axis.
    step, nodes
        Distance > 0 of neighboring nodes, and their number.
    below, above
        Tilts with 0 <= below < tilt < above, whose Chernoff bounds control the aliases of the rule.
    sums
        For each loss, the substitute for its transform at the nodes.
    tails
        For each loss, the substitute for the bound on its transform beyond the last node.
    """

    NAME = "contour"
    RULES = (
        ("below", "less than tilt", lambda item: item.below < item.tilt),
        ("above", "more than tilt", lambda item: item.above > item.tilt),
    )

    tilt: Annotated[float, positive]
    step: Annotated[float, positive]
    nodes: Annotated[int, whole(1, MAX_NODES)]
    below: Annotated[float, not_negative]
    above: Annotated[float, positive]
    sums: Annotated[tuple[Substitute, ...], list_of(SUBSTITUTE, 0, MAX_PARTS)]
    tails: Annotated[tuple[Substitute, ...], list_of(SUBSTITUTE, 0, MAX_PARTS)]

    def fits(self, parts: Parts) -> bool:
        """Return whether every loss has a transform on its substitutes."""
        return all(
            len(items) == len(parts)
            and all(_transform_of(loss, x) for (loss, _), x in zip(parts, items, strict=True))
            for items in (self.sums, self.tails)
        )

    def work(self, parts: Parts) -> float:
        """Return the work of a product at each node and term of a transform, and of powers."""
        total = float(FUNCTION * _FUNCTIONS_OF_NODE * self.nodes)
        for (loss, times), item, tail in zip(parts, self.sums, self.tails, strict=True):
            # This includes the rows and columns of the two matrices, which are computed outside
            # their product.
            in_matrices = self.nodes + 2 * PRODUCT * (self.nodes**0.5 + 1)
            total += in_matrices * (item.points + 1 if item else 1)
            total += 2 * PRODUCT * self.nodes * times.bit_length()
            total += _work_of(loss, item) + _work_of(loss, tail)
        return total

    def bounds(
        self, parts: Parts, epsilon: Ball, *, rounded: bool = False, proves: str = "both"
    ) -> Interval:
        """Return the finite sum, plus or minus the omitted terms, less the aliases.

        Where substitutes bound losses from one side, the other bound is 0 or 1.
        """
        if not self.fits(parts):
            return balls.arb(0), balls.arb(1)
        lower, upper = self._sum(parts, epsilon, rounded)
        for (loss, times), item in zip(parts, self.sums, strict=True):
            if isinstance(loss, shuffles.Shuffled):
                # Clones and known batches cost no less, and what a ray sums costs no more.
                lower = lower if isinstance(item, Rays) else balls.arb(0)
                upper = balls.arb(1) if isinstance(item, Rays) else upper
                if isinstance(item, Clones):
                    upper += shuffles.slack_of_clones(loss, item, times, epsilon)
        return lower, balls.arb.min(upper, balls.arb(1))

    def _sum(self, parts: Parts, epsilon: Ball, rounded: bool) -> Interval:
        """Return bounds on delta at any real epsilon of the losses that are summed."""
        arb, acb = balls.arb, balls.acb
        c, h = arb(self.tilt), arb(self.step)
        known: dict[tuple[int, Substitute], Transform] = {}

        def transforms(items: Iterable[Substitute]) -> Transforms:
            found = []
            for index, ((loss, times), item) in enumerate(zip(parts, items, strict=True)):
                build = _transform_of(loss, item)
                if (index, item) not in known and build is not None:
                    known[index, item] = build(rounded)
                found.append((known[index, item], times))
            return found

        sums = transforms(self.sums)
        products = [acb(1)] * self.nodes
        for transform, times in sums:
            values = transform.along_line(c, h, self.nodes)
            products = [a * value**times for a, value in zip(products, values, strict=True)]
        value = arb(0)
        for k, product in enumerate(products):
            z = acb(c, k * h)
            term = (product * (-epsilon * z).exp() / (z * (z + 1))).real
            value += term if k else term / 2
        value *= h / arb.pi()
        rest = _beyond(self, transforms(self.tails), epsilon)
        bounds = [_chernoff(tilt, sums, epsilon) for tilt in (self.below, self.above)]
        lower = value - rest - _aliases(self, bounds)
        # The least ball of wide ones has a radius of few digits.
        ends = [arb(end.upper()) for end in (value + rest, *bounds)]
        return lower, arb.min(ends[0], arb.min(*ends[1:]))


@dataclass(frozen=True)
class ParityProof(ContourProof):
    """Both bounds on delta, by a contour of the other direction at -epsilon (put-call parity)."""

    NAME = "parity"

    def fits(self, parts: Parts) -> bool:
        """Return whether every loss is that of one direction, and the other one fits."""
        turned = _opposite(parts)
        return len(turned) == len(parts) and super().fits(turned)

    def _sum(self, parts: Parts, epsilon: Ball, rounded: bool) -> Interval:
        lower, upper = super()._sum(_opposite(parts), -epsilon, rounded)
        return epsilon.exp() * lower - epsilon.expm1(), epsilon.exp() * upper - epsilon.expm1()


def _opposite(parts: Parts) -> Parts:
    return tuple((loss.opposite, times) for loss, times in parts if loss.opposite is not None)


def _work_of(loss: PrivacyLoss, item: Substitute) -> float:
    """Return the work of building a transform and of summing it at a few real points."""
    found = float(FUNCTION * _FUNCTIONS_OF_TRANSFORM * (item.points + 1 if item else 1))
    if not isinstance(item, Rays | Clones):
        return found
    rays, numbers = (item, (1,)) if isinstance(item, Rays) else (item.rays, item.numbers)
    tables = len(loss.groups) if isinstance(loss, Allocation) else 1
    # The tables, a product of polynomials for each, and powers for each number of batches; and the
    # masses of all numbers of clones, for a transform and for its slack.
    entries = rays.points + 2 * rays.reach
    found += tables * ((2 * FUNCTION + TERM) * entries + 2 * FUNCTION * rays.reach)
    powers = 2 * PRODUCT * rays.points * len(numbers)
    return found + powers + 8 * PRODUCT * (numbers[-1] - numbers[0])


def _transform_of(loss: PrivacyLoss, item: Substitute) -> Callable[[bool], Transform] | None:
    """Return what builds the transform of a loss, or of one that bounds it, on a substitute.

    It takes whether probabilities were rounded. None if the loss is not summed on the substitute.
    """
    match loss, item:
        case shuffles.Shuffled(replacing=False), Clones() if item.numbers[-1] <= loss.batches:
            return lambda _: shuffles.allocation_of_clones(loss, item)
        case shuffles.Shuffled(replacing=True), Rays():
            # Others contribute -1, and so does the substitute.
            epoch = Allocation(loss.noise_multiplier, loss.answers, loss.direction)
            return lambda _: AllocationTransform(epoch, item)
        case Allocation(), Rays():
            return lambda _: AllocationTransform(loss, item)
        case SampledGaussian(), ShiftedLattice():
            return lambda rounded: SampledGaussianTransform(loss, item, rounded)
        case Gaussian(), None if type(loss) in (Gaussian, shuffles.Shuffled):
            return lambda _: GaussianTransform(1 / balls.arb(loss.noise_multiplier))
    return None


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
