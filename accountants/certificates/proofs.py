r"""Which numbers is a proof about delta(epsilon) made of? Its interface, and parts of records.

A proof is about one direction of a neighboring relation, in which losses are used several times
each. Its numbers are hints: the interval is derived from them alone. Bad numbers make it wide,
never wrong. The fields of a record are the entries of the JSON document, and each kind of proof is
a record that bounds delta: :class:`~dpcal.accountants.certificates.contour.ContourProof` and
:class:`~dpcal.accountants.certificates.composed.OrderProof`.

>>> GRID({"step": 0.5, "first": 0, "last": 9}, "cells").points
9
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.schema import (
    Reader,
    Rule,
    list_of,
    number,
    one_of_shapes,
    optional,
    positive,
    shape_of,
    whole,
)
from dpcal.accountants.losses.base import PrivacyLoss

if TYPE_CHECKING:
    from dpcal.accountants.certificates.composed import Batch

__all__ = ["MAX_PARTS", "MAX_POINTS", "Cells", "Interval", "Parts", "Proof", "Substitute"]

Parts = tuple[tuple[PrivacyLoss, int], ...]
Interval = tuple[Ball, Ball]


class Proof(ABC):
    """One argument about delta at one epsilon."""

    NAME: ClassVar[str]
    """The kind of argument, as in documents and messages."""
    RULES: ClassVar[tuple[Rule, ...]] = ()
    """What must hold between the entries of its document."""

    @abstractmethod
    def fits(self, parts: Parts) -> bool:
        """Return whether it is a proof about these losses."""

    @abstractmethod
    def work(self, parts: Parts) -> float:
        """Return the units of work of its bounds at 128 bits; it must fit the losses."""

    @abstractmethod
    def bounds(
        self, parts: Parts, epsilon: Ball, *, rounded: bool = False, proves: str = "both"
    ) -> Interval:
        """Return the lower and upper bound on delta at the current precision.

        A bound that is not wanted may be 0 or 1, and is if the proof does not fit.
        """


# Most points of one lattice or grid. Searches stop at a quarter of it.
MAX_POINTS = 1 << 16
# Most numbers of clones that are told apart: twice as many as searches take.
MAX_NUMBERS = 1 << 6
# Most different losses of a composition. Ten thousand different steps still have contours of
# affordable work.
MAX_PARTS = 1 << 14
# Largest first point of a lattice or grid, so that whole numbers stay short.
_FARTHEST = 1 << 40


_angle = number("in (0, 1.57)", lambda x: 0 < x < 1.57)
_first = whole(-_FARTHEST, _FARTHEST)
_last = whole(-_FARTHEST, _FARTHEST + MAX_POINTS)


class _Range:
    """Equally spaced points, from a first to a last one."""

    first: int
    last: int

    @property
    def points(self) -> int:
        """Number of points, less one, or of the intervals between them."""
        return self.last - self.first


@dataclass(frozen=True)
class ShiftedLattice(_Range):
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
    step: Annotated[float, positive]
    first: Annotated[int, _first]
    last: Annotated[int, _last]


@dataclass(frozen=True)
class Grid(_Range):
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

    step: Annotated[float, positive]
    first: Annotated[int, _first]
    last: Annotated[int, _last]


@dataclass(frozen=True)
class Rays(_Range):
    """The ray and the lattices on which the transform of a random allocation is summed.

    The transform is an integral over the points exp(v - i angle) of a ray, v = first step, ...,
    last step, of means over a standard normal x, which are sums over multiples of step sigma.

    Attributes
    ----------
    order
        0: sums of powers are not read.
    angle
        Angle of the ray, in (0, pi / 2).
    step
        Distance > 0 of neighboring v.
    first, last
        Whole numbers of the first and the last v.
    reach
        Number of points x on either side of each mean.
    """

    order: Annotated[int, whole(0, 0, "other orders are not read: prove the claim again")]
    angle: Annotated[float, _angle]
    step: Annotated[float, positive]
    first: Annotated[int, _first]
    last: Annotated[int, _last]
    reach: Annotated[int, whole(1, MAX_POINTS)]


_few_points: Rule = (
    "last",
    f"at least first, and at most {MAX_POINTS} more",
    lambda item: 0 <= item.points <= MAX_POINTS,
)
GRID = shape_of("a grid", Grid, _few_points)
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

    answers: Annotated[Grid, GRID]
    unit: Annotated[float, positive]
    places: Annotated[int, whole(1, MAX_POINTS)]

    @property
    def points(self) -> int:
        """Number of values of the sum, less one."""
        return self.places - 1


SCORES = shape_of("scores", Scores)

# A contour sums the transform of each loss on a lattice; None stands for a closed form.
Substitute = ShiftedLattice | Rays | Clones | None
# A law on a grid is built from cells.
Cells: TypeAlias = "Grid | Scores | Batch"


def _shape_of(value: Mapping[str, Any]) -> Reader:
    if "rays" in value:
        return _CLONES
    return _RAYS if "reach" in value else _LATTICE


SUBSTITUTE = optional(one_of_shapes(_shape_of, "a lattice, a ray or a ray of clones"))
