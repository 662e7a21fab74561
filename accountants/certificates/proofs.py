r"""Which numbers is a proof about delta(epsilon) made of? One record for each kind of argument.

A proof is about one direction of a neighboring relation, in which losses are used several times
each. Its numbers are hints: :mod:`~dpcal.accountants.certificates.enclosure` derives the
interval from them alone. Bad numbers make the interval wide, never wrong. The fields of a record
are the entries of the JSON document.

>>> entries = {"step": 0.5, "nodes": 100, "tail": 1e-9, "uses": []}
>>> PROOFS["convex order"](entries, "proof")
OrderProof(step=0.5, nodes=100, tail=1e-09, uses=())
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
    "MAX_NODES",
    "MAX_NUMBERS",
    "MAX_ORDER",
    "MAX_PARTS",
    "MAX_POINTS",
    "PROOFS",
    "Cells",
    "Clones",
    "ContourProof",
    "Grid",
    "OrderProof",
    "ParityProof",
    "Parts",
    "Proof",
    "Rays",
    "Scores",
    "ShiftedLattice",
    "Substitute",
    "Use",
]

Parts = tuple[tuple[PrivacyLoss, int], ...]

# Most nodes of a contour. Searches need 20 to 20,000; losses that hardly decay need all of them.
MAX_NODES = 1 << 17
# Most points of one lattice or grid. Searches stop at a quarter of it.
MAX_POINTS = 1 << 16
# Most doublings of a grid's step.
MAX_LEVEL = 64
# Largest order of a power of sums over rays. Searches stay below 100.
MAX_ORDER = 1 << 8
# Most numbers of clones that are told apart: twice as many as searches take.
MAX_NUMBERS = 1 << 6
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

    The outputs of Gaussian mechanisms, and the likelihood ratios of an epoch of random allocation,
    are cut at the multiples of ``step``. The losses of a Laplace mechanism between its extreme
    values are cut into last - first equal parts. The outputs of discrete Gaussian noise are the
    whole numbers from ``first`` to ``last``. Other discrete noise is not cut.

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

# A contour sums the transform of each loss on a lattice; None stands for a closed form.
Substitute = ShiftedLattice | Rays | Clones | None
# A law on a grid is built from cells.
Cells = Grid | Scores


def _shape_of(value: Mapping[str, Any]) -> Shape:
    if "rays" in value:
        return _CLONES
    return _RAYS if "reach" in value else _LATTICE


def _cells_of(value: Mapping[str, Any]) -> Shape:
    return _SCORES if "places" in value else _GRID


_substitutes = list_of(
    optional(one_of_shapes(_shape_of, "a lattice, a ray or a ray of clones")), 0, MAX_PARTS
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
    """

    NAME: ClassVar[str] = "contour"

    tilt: Annotated[float, _positive]
    step: Annotated[float, _positive]
    nodes: Annotated[int, whole(1, MAX_NODES)]
    below: Annotated[float, _not_negative]
    above: Annotated[float, _positive]
    sums: Annotated[tuple[Substitute, ...], _substitutes]
    tails: Annotated[tuple[Substitute, ...], _substitutes]


@dataclass(frozen=True)
class ParityProof(ContourProof):
    """Both bounds on delta, by a contour of the other direction at -epsilon (put-call parity)."""

    NAME: ClassVar[str] = "parity"


@dataclass(frozen=True)
class Use:
    """How one part of a composition is put on a grid.

    Attributes
    ----------
    offset
        Logarithm of a node of the grid below, for a part without a lattice of its own; the grid
        above has the least ratio as a node.
    level
        How often its grid is twice as coarse as the finest.
    cells
        The cells into which its outcomes are cut.
    """

    offset: Annotated[float, number()]
    level: Annotated[int, whole(0, MAX_LEVEL)]
    cells: Annotated[Cells, one_of_shapes(_cells_of, "a grid or scores")]


_USE = shape_of("a use", Use)


@dataclass(frozen=True)
class OrderProof(Proof):
    """Both bounds on delta, by laws on grids above and below the likelihood ratio in convex order.

    Attributes
    ----------
    step
        Step > 0 of the finest grid of logarithms of ratios; 0 for one of which the lattice of the
        first part that has one is as much coarser as that part's ``level`` says.
    nodes
        Most nodes of a law, which is made coarser until it has no more.
    tail
        Mass in [0, 1) that laws may cut off, roughly.
    uses
        How each part is put on a grid.
    """

    NAME: ClassVar[str] = "convex order"

    step: Annotated[float, _not_negative]
    nodes: Annotated[int, whole(2, MAX_POINTS)]
    tail: Annotated[float, number("in [0, 1)", lambda x: 0 <= x < 1)]
    uses: Annotated[tuple[Use, ...], list_of(_USE, 0, MAX_PARTS)]


_TILTS: tuple[Rule, ...] = (
    ("below", "less than tilt", lambda item: item.below < item.tilt),
    ("above", "more than tilt", lambda item: item.above > item.tilt),
)
# The reader of each kind of proof, by the method that an argument states.
PROOFS: dict[str, Shape] = {
    ContourProof.NAME: shape_of("a contour proof", ContourProof, *_TILTS),
    ParityProof.NAME: shape_of("a proof by parity", ParityProof, *_TILTS),
    OrderProof.NAME: shape_of("a proof by convex order", OrderProof),
}
