r"""The narrow proof of Gaussian mechanisms, their samples and allocations: a sum along a contour.

For one direction of a composition with transform M(z) = prod_i M_i(z)^T_i and c > 0,

    (h / pi) (F(0) / 2 + sum_{k >= 1} Re F(k h)) = sum_j exp(c d_j) delta(epsilon + d_j)

with d_j = 2 pi j / h, F(t) = exp(-epsilon z) M(z) / (z (z + 1)) and z = c + i t (Poisson
summation). The terms j != 0, the aliases, are positive and bounded by Chernoff's inequality at a
tilt below and one above c, which bounds delta itself as well. The sum over k stops at N nodes;
beyond, abs(F) is at most exp(-epsilon c) / t^2 times a bound on abs(M) uniform in t >= N h.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> proof = ContourProof(96, tilt=3.0, step=0.5, nodes=40, below=0.5, above=6.0, lines=((),))
>>> from dpcal.accountants.certificates.balls import workprec
>>> with workprec(96):
...     lower, upper = (proof.bound(((Gaussian(1.0), 1),), 2.0, above) for above in (False, True))
>>> print(lower.str(6, radius=False), upper.str(6, radius=False))
0.0209236 0.0209236
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, cast

from dpcal.accountants.certificates.allocation_transform import AllocationTransform
from dpcal.accountants.certificates.balls import Ball, acb, arb, ctx
from dpcal.accountants.certificates.proofs import FUNCTION, MAX_PARTS, PRODUCT, Proof
from dpcal.accountants.certificates.schema import list_of, not_negative, positive, whole
from dpcal.accountants.certificates.transforms import (
    LINE,
    Line,
    SampledGaussianTransform,
    Transform,
)
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import Parts, PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

# Searches need 20 to 20,000 nodes; losses that hardly decay need all of them.
MAX_NODES = 1 << 17
# Functions of balls, with terms and errors: for a node of a contour, and for a point of a line.
_OF_NODE, _OF_POINT = 6, 36

_ALONG, _BELOW, _ABOVE = range(3)
# The variance of all Gaussian losses, and the transform of each other loss, its lines and its uses.
Sums = tuple[Ball, list[tuple[Transform, tuple[Line, ...], int]]]


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
        Tilts with 0 <= below < tilt < above. Their Chernoff bounds control the aliases of the rule.
    lines
        For each loss in turn, the lines on which its transform is summed along the contour, and at
        the tilts ``below`` and ``above``. If ``below = 0``, where a moment is 1, the line for
        ``below`` bounds the rest beyond the contour; otherwise the line along the contour does. A
        Gaussian loss, which has a closed form, has none.
    """

    NAME = "contour"

    tilt: Annotated[float, positive]
    step: Annotated[float, positive]
    nodes: Annotated[int, whole(1, MAX_NODES)]
    below: Annotated[float, not_negative]
    above: Annotated[float, positive]
    lines: Annotated[tuple[tuple[Line, ...], ...], list_of(list_of(LINE, 0, 3), 0, MAX_PARTS)]

    def __post_init__(self) -> None:
        """Refuse tilts in another order."""
        if not self.below < self.tilt < self.above:
            raise ValueError("below must be less than tilt, and above more")

    def _sums(self, parts: Parts) -> Sums:
        """Return the variance of Gaussian losses, and the transforms of other losses."""
        needed = [0 if _is_gaussian(loss) else 3 for loss, _ in parts]
        if not has_contour(parts) or needed != [len(lines) for lines in self.lines]:
            raise ValueError("a contour must have the lines of its losses, and no others")
        variance, found = arb(0), []
        for (loss, times), lines in zip(parts, self.lines, strict=True):
            if isinstance(loss, Gaussian):
                variance += times / arb(loss.noise_multiplier) ** 2
            elif transform := _transform_of(loss):
                found.append((transform, lines, times))
        return variance, found

    def work_at_128(self, parts: Parts) -> float:
        """Return the work of a product at each node and point of a line, and of powers."""
        total = float(FUNCTION * _OF_NODE * self.nodes)
        in_matrices = self.nodes + 2 * PRODUCT * (self.nodes**0.5 + 1)
        for transform, lines, times in self._sums(parts)[1]:
            total += 2 * PRODUCT * self.nodes * times.bit_length()
            sums = sum(line.points + line.reach for line in lines)
            total += FUNCTION * _OF_POINT * transform.laws * sums
            total += in_matrices * lines[_ALONG].points
        return total

    def bound(self, parts: Parts, epsilon: float, above: bool) -> Ball:
        """Return the finite sum, plus or minus the omitted terms, less the aliases."""
        return self._ends(parts, epsilon, ctx.prec)[above]

    @lru_cache(maxsize=4)  # noqa: B019 -- proofs of few numbers
    def _ends(self, parts: Parts, epsilon: float, bits: int) -> tuple[Ball, Ball]:
        """Return bounds on delta at any real epsilon."""
        at = arb(epsilon)
        c, h = arb(self.tilt), arb(self.step)
        variance, others = sums = self._sums(parts)
        products = [acb(1)] * self.nodes
        for transform, lines, times in others:
            values = transform.along(lines[_ALONG], self.tilt, self.step, self.nodes)
            products = [a * value**times for a, value in zip(products, values, strict=True)]
        value = arb(0)
        for k, product in enumerate(products):
            z = acb(c, k * h)
            term = (product * (variance * z * (z + 1) / 2 - at * z).exp() / (z * (z + 1))).real
            value += term if k else term / 2
        value *= h / arb.pi()
        rest = _beyond(self, sums, at)
        tilts = (self.below, _BELOW), (self.above, _ABOVE)
        bounds = [_chernoff(tilt, place, sums, at) for tilt, place in tilts]
        lower = value - rest - _aliases(self, bounds)
        # The minimum of wide balls would have a radius of few digits.
        ends = [arb(end.upper()) for end in (value + rest, *bounds)]
        return lower, arb.min(ends[0], arb.min(*ends[1:]))


@dataclass(frozen=True)
class ParityProof(ContourProof):
    """Both bounds on delta, by a contour of the other direction at -epsilon (put-call parity)."""

    NAME = "parity"

    def _sums(self, parts: Parts) -> Sums:
        """Return the sums of the other direction."""
        return super()._sums(opposite(parts))

    def bound(self, parts: Parts, epsilon: float, above: bool) -> Ball:
        """Return exp(epsilon) times the bound of the other direction, less exp(epsilon) - 1."""
        at = arb(epsilon)
        return at.exp() * super().bound(parts, -epsilon, above) - at.expm1()


def opposite(parts: Parts) -> Parts:
    """Return the losses of the other direction; None in place of one that is not known."""
    return cast(Parts, tuple((loss.opposite, times) for loss, times in parts))


def has_contour(parts: Parts) -> bool:
    """Return whether every loss has a transform that contours are summed of."""
    return bool(parts) and all(_is_gaussian(loss) or _transform_of(loss) for loss, _ in parts)


def _is_gaussian(loss: PrivacyLoss | None) -> bool:
    """Return whether a loss is of a Gaussian mechanism, with sums in closed form."""
    return isinstance(loss, Gaussian) and loss.below is None


def _transform_of(loss: PrivacyLoss | None) -> Transform | None:
    """Return the transform of a loss that is summed on lines, or None."""
    if isinstance(loss, Allocation) and loss.direction == "add":
        return AllocationTransform(loss)
    return SampledGaussianTransform(loss) if isinstance(loss, SampledGaussian) else None


def _chernoff(tilt: float, place: int, sums: Sums, epsilon: Ball) -> Ball:
    """Return a bound on exp(tilt (e - epsilon)) delta(e) for every e.

    The supremum over l of (1 - exp(-l)) exp(-a l) is a^a / (1 + a)^(1 + a).
    """
    if tilt == 0:
        return arb(1)
    (variance, others), a = sums, arb(tilt)
    value = (variance * a * (a + 1) / 2 - a * epsilon - a * (1 / a).log1p() - a.log1p()).exp()
    for transform, lines, times in others:
        value *= transform.at(lines[place], tilt) ** times
    return value


def _aliases(proof: ContourProof, bounds: list[Ball]) -> Ball:
    """Return a bound on the terms on either side, which are at most geometric series."""
    distances = [abs(arb(tilt) - proof.tilt) for tilt in (proof.below, proof.above)]
    turns = [2 * arb.pi() * distance / proof.step for distance in distances]
    return sum((b / t.expm1() for b, t in zip(bounds, turns, strict=True)), arb(0))


def _beyond(proof: ContourProof, sums: Sums, epsilon: Ball) -> Ball:
    """Return a bound on the sum over all other nodes; sum_{k >= N} 1 / k^2 <= 1/N + 1/N^2."""
    c, h, nodes = arb(proof.tilt), arb(proof.step), arb(proof.nodes)
    (variance, others), t = sums, nodes * h
    product = (variance * (c * c + c - t * t) / 2 - c * epsilon).exp()
    product *= (1 / nodes + 1 / nodes**2) / (arb.pi() * h)
    place = _ALONG if proof.below else _BELOW
    for transform, lines, times in others:
        product *= transform.beyond(lines[place], proof.tilt, t) ** times
    return product
