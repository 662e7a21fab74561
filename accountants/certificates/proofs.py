r"""Which numbers is a proof about delta(epsilon) made of? One record for each kind of argument.

A proof is about one direction of a neighboring relation, in which losses are used several times
each. Its numbers are hints: :mod:`~dpcal.accountants.certificates.enclosure` derives the
interval from them alone. Bad numbers make the interval wide, never wrong. The fields of a record
are the entries of the JSON document.

>>> proof = PROOFS["Renyi moment"]({"tilt": 2.5, "sums": [None]}, "proof")
>>> proof
ChernoffProof(tilt=2.5, sums=(None,))
>>> proof.method
'Renyi moment'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from dpcal.accountants.certificates.schema import (
    Rule,
    Shape,
    list_of,
    number,
    one_of_shapes,
    optional,
    shape_of,
    whole,
)
from dpcal.accountants.losses.base import PrivacyLoss

__all__ = [
    "MAX_COUNTED",
    "MAX_COUNTED_OF_MANY",
    "MAX_NODES",
    "MAX_NUMBERS",
    "MAX_ORDER",
    "MAX_PARTS",
    "MAX_POINTS",
    "MAX_TERMS",
    "PROOFS",
    "ChernoffProof",
    "Clones",
    "ContourProof",
    "ConvexityProof",
    "Grid",
    "OrderProof",
    "ParityProof",
    "Parts",
    "Proof",
    "Rays",
    "SamplingProof",
    "Scores",
    "ShiftedLattice",
    "Substitute",
    "SumProof",
    "SupportProof",
    "ThresholdProof",
]

Parts = tuple[tuple[PrivacyLoss, int], ...]

# Most nodes of a contour. Searches need 20 to 20,000; losses that hardly decay need all of them.
MAX_NODES = 1 << 17
# Most points of one lattice or grid. Searches stop at a quarter of it.
MAX_POINTS = 1 << 16
# Most terms of the convolution of one loss with itself: the largest sums take about 5 seconds.
MAX_TERMS = 1 << 17
# Largest order of a power of sums over rays. Searches stay below 100.
MAX_ORDER = 1 << 8
# Most numbers of clones that are told apart: twice as many as searches take.
MAX_NUMBERS = 1 << 6
# Largest number of large outputs that a test counts, if it counts only one part: enough for sums of
# tens of thousands of steps, in seconds.
MAX_COUNTED = 1 << 14
# Largest number of large outputs that a test counts, if it counts several parts. The time grows as
# its square.
MAX_COUNTED_OF_MANY = 1 << 6
# Most different losses of a composition. Ten thousand different steps still have contours of
# affordable work.
MAX_PARTS = 1 << 14
# Largest first point of a lattice or grid, so that whole numbers stay short.
_FARTHEST = 1 << 40


_positive = number("a finite number > 0", lambda x: x > 0)
_not_negative = number("a finite number >= 0", lambda x: x >= 0)
_angle = number("in (0, 1.57)", lambda x: 0 < x < 1.57)
_first = whole(-_FARTHEST, _FARTHEST)
_last = whole(-_FARTHEST, _FARTHEST + MAX_POINTS)


@dataclass(frozen=True)
class ShiftedLattice:
    """The points j step + i angle sigma^2, first <= j <= last, of a trapezoid rule.

    They lie on a line parallel to the real axis, above it for removing a record and below it for
    adding one. There the densities of a sampled Gaussian with noise multiplier sigma are analytic.

    Attributes
    ----------
    angle
        Distance of the line from the axis in units of sigma^2, in (0, pi / 2).
    step
        Distance > 0 of neighboring points.
    first, last
        Whole numbers of the first and the last point.
    """

    angle: Annotated[float, _angle]
    step: Annotated[float, _positive]
    first: Annotated[int, _first]
    last: Annotated[int, _last]

    @property
    def points(self) -> int:
        """Number of points, less one."""
        return self.last - self.first


@dataclass(frozen=True)
class Grid:
    """Equal intervals into which outputs are cut, from first step to last step.

    The outputs of Gaussian mechanisms are cut at the multiples of ``step``. The losses of a Laplace
    mechanism between its extreme values are cut into last - first equal parts. The outputs of
    discrete noise are the whole numbers from ``first`` to ``last``.

    Attributes
    ----------
    step
        Width > 0 of an interval.
    first, last
        Whole numbers of the first and the last end of an interval.
    """

    step: Annotated[float, _positive]
    first: Annotated[int, _first]
    last: Annotated[int, _last]

    @property
    def points(self) -> int:
        """Number of intervals."""
        return self.last - self.first


@dataclass(frozen=True)
class Rays:
    """The ray and the lattices on which the transform of a random allocation is summed.

    The transform is an integral over the points exp(v - i angle) of a ray, v = first step, ...,
    last step, of means over a standard normal x, which are sums over multiples of step sigma.

    Attributes
    ----------
    order
        Whole number m, above the real parts of all powers of the likelihood ratio.
    angle
        Angle of the ray, in (0, pi / 2).
    step
        Distance > 0 of neighboring v.
    first, last
        Whole numbers of the first and the last v.
    reach
        Number of points x on either side of each mean.
    """

    order: Annotated[int, whole(0, MAX_ORDER)]
    angle: Annotated[float, _angle]
    step: Annotated[float, _positive]
    first: Annotated[int, _first]
    last: Annotated[int, _last]
    reach: Annotated[int, whole(1, MAX_POINTS)]

    @property
    def points(self) -> int:
        """Number of points v, less one."""
        return self.last - self.first

    def entries(self, noise_multiplier: float) -> float:
        """Return the number of entries of a table along the ray."""
        return self.points + 2 * self.reach + self.order / (self.step * noise_multiplier**2)


_few_points: Rule = (
    "last",
    f"at least first, and at most {MAX_POINTS} more",
    lambda item: 0 <= item.points <= MAX_POINTS,
)
_GRID = shape_of("a grid", Grid, _few_points)
_LATTICE = shape_of("a lattice", ShiftedLattice, _few_points)
_RAYS = shape_of("a ray", Rays, _few_points)


@dataclass(frozen=True)
class Clones:
    """Random allocation to random numbers of batches, of which a shuffled epoch costs no more.

    Attributes
    ----------
    probability
        Probability in (0, 1) that another record of the epoch is a clone, which releases a blank:
        any number, and this one exactly.
    numbers
        Ascending numbers of batches, one more than the clones. Each stands for all numbers up to
        the next one; fewer than the first count as a failure.
    rays
        The ray of all numbers, which begins, with the first number, at ``first``.
    """

    probability: Annotated[float, number("in (0, 1)", lambda x: 0 < x < 1)]
    numbers: Annotated[tuple[int, ...], list_of(whole(1, 1 << 62), 1, MAX_NUMBERS)]
    rays: Annotated[Rays, _RAYS]

    @property
    def points(self) -> int:
        """Number of points v of all numbers, less one."""
        return (self.rays.points + 1) * len(self.numbers) - 1


_CLONES = shape_of(
    "a ray of clones",
    Clones,
    ("numbers", "ascending", lambda item: all(a < b for a, b in pairwise(item.numbers))),
)


@dataclass(frozen=True)
class Scores:
    """Whole scores of the answers of a shuffled epoch, which are summed modulo a number of places.

    Attributes
    ----------
    answers
        The intervals into which answers are cut, over the standard deviation of the noise.
    unit
        What a score of 1 stands for, > 0.
    places
        Number of places.
    """

    answers: Annotated[Grid, _GRID]
    unit: Annotated[float, _positive]
    places: Annotated[int, whole(1, MAX_POINTS)]

    @property
    def points(self) -> int:
        """Number of values of the sum, less one."""
        return self.places - 1


_SCORES = shape_of("scores", Scores)

# A proof replaces the transform of each loss by a lattice on which it is summed, or by a grid of
# finite laws; None stands for a loss whose transform has a closed form.
Substitute = ShiftedLattice | Grid | Rays | Clones | Scores | None


def _shape_of(value: Mapping[str, Any]) -> Shape:
    if "rays" in value:
        return _CLONES
    if "places" in value:
        return _SCORES
    if "reach" in value:
        return _RAYS
    return _LATTICE if "angle" in value else _GRID


_substitutes = list_of(
    optional(one_of_shapes(_shape_of, "a lattice, a ray, a ray of clones, scores or a grid")),
    0,
    MAX_PARTS,
)


@dataclass(frozen=True)
class Proof:
    """One argument about delta at one epsilon."""

    NAME: ClassVar[str]

    @property
    def method(self) -> str:
        """The kind of argument, as in documents and messages."""
        return self.NAME


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
    smoothing
        Standard deviation >= 0 of a Gaussian loss that is added so that every transform decays.
    shift
        With smoothing, the lower bound is that at an epsilon larger by ``shift``, less the
        probability that the added loss exceeds ``shift``.
    """

    NAME: ClassVar[str] = "contour"

    tilt: Annotated[float, _positive]
    step: Annotated[float, _positive]
    nodes: Annotated[int, whole(1, MAX_NODES)]
    below: Annotated[float, _not_negative]
    above: Annotated[float, _positive]
    sums: Annotated[tuple[Substitute, ...], _substitutes]
    tails: Annotated[tuple[Substitute, ...], _substitutes]
    smoothing: Annotated[float, _not_negative] = 0.0
    shift: Annotated[float, _not_negative] = 0.0

    @property
    def method(self) -> str:
        """Whether the contour is smoothed."""
        return f"smoothed {self.NAME}" if self.smoothing > 0 else self.NAME


@dataclass(frozen=True)
class ParityProof(ContourProof):
    """Both bounds on delta, by a contour of the other direction at -epsilon (put-call parity)."""

    NAME: ClassVar[str] = "parity"

    @property
    def method(self) -> str:
        """The kind of argument."""
        return self.NAME


@dataclass(frozen=True)
class ChernoffProof(Proof):
    """An upper bound on delta from the Renyi divergence of order 1 + tilt.

    ``tilt`` > 0; ``sums`` has for each loss the substitute for its moment.
    """

    NAME: ClassVar[str] = "Renyi moment"

    tilt: Annotated[float, _positive]
    sums: Annotated[tuple[Substitute, ...], _substitutes]


@dataclass(frozen=True)
class ConvexityProof(Proof):
    """An upper bound on delta from bounds by convexity on the moments of order tilt > 0."""

    NAME: ClassVar[str] = "convexity"

    tilt: Annotated[float, _positive]


@dataclass(frozen=True)
class SamplingProof(Proof):
    """An upper bound on delta: the probability that the record changes any output."""

    NAME: ClassVar[str] = "sampling"


@dataclass(frozen=True)
class SumProof(Proof):
    """Both bounds on delta of one loss, as sums over finite laws that replace it.

    ``sums`` has the grid of these laws. A loss with equally spaced values may be used several
    times: its law is convolved with itself.
    """

    NAME: ClassVar[str] = "finite sum"

    sums: Annotated[tuple[Grid], list_of(_GRID, 1, 1)]


@dataclass(frozen=True)
class ThresholdProof(Proof):
    """A lower bound on delta from one test (Neyman and Pearson).

    The test rejects if at least ``least`` outputs exceed their thresholds. A part whose threshold
    is None is not counted. An output of a Laplace mechanism counts if its loss is the largest.
    """

    NAME: ClassVar[str] = "threshold test"

    least: Annotated[int, whole(1, MAX_COUNTED)]
    thresholds: Annotated[tuple[float | None, ...], list_of(optional(number()), 0, MAX_PARTS)]


@dataclass(frozen=True)
class OrderProof(Proof):
    """Both bounds on delta of random allocation, by laws on grids above and below in convex order.

    Attributes
    ----------
    width, cells
        Width > 0 of intervals of the likelihood ratio of one batch, and of its sums over an epoch,
        and their number.
    ratios
        Grid of the logarithms of the likelihood ratios of epochs and of the run.
    """

    NAME: ClassVar[str] = "convex order"

    width: Annotated[float, _positive]
    cells: Annotated[int, whole(1, MAX_POINTS)]
    ratios: Annotated[Grid, _GRID]


@dataclass(frozen=True)
class SupportProof(Proof):
    """Delta is 0, because the sum of the losses never exceeds epsilon."""

    NAME: ClassVar[str] = "support"


_TILTS: tuple[Rule, ...] = (
    ("below", "less than tilt", lambda item: item.below < item.tilt),
    ("above", "more than tilt", lambda item: item.above > item.tilt),
)
_CONTOUR = shape_of("a contour proof", ContourProof, *_TILTS)

# The reader of each kind of proof, by the method that an argument states.
PROOFS: dict[str, Shape] = {
    "contour": _CONTOUR,
    "smoothed contour": _CONTOUR,
    ParityProof.NAME: shape_of("a proof by parity", ParityProof, *_TILTS),
    ChernoffProof.NAME: shape_of("a Chernoff proof", ChernoffProof),
    ConvexityProof.NAME: shape_of("a proof by convexity", ConvexityProof),
    SamplingProof.NAME: shape_of("a proof by sampling", SamplingProof),
    SumProof.NAME: shape_of("a finite sum", SumProof),
    ThresholdProof.NAME: shape_of("a threshold test", ThresholdProof),
    OrderProof.NAME: shape_of("a proof by convex order", OrderProof),
    SupportProof.NAME: shape_of("a support proof", SupportProof),
}
