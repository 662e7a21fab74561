"""Which sets may the dual variable be in? Closed convex sets, each with its exact projection.

The privacy claim does not rest on them: a projection is post-processing of released values.

>>> import numpy as np
>>> Simplex().project(np.array([0.9, 0.6, -0.3])).round(12).tolist()
[0.65, 0.35, 0.0]
>>> Box(0.0, 1.0).project(np.array([1.5, 0.2])).tolist()
[1.0, 0.2]
>>> Ball(1.0).project(np.array([3.0, 4.0])).round(12).tolist()
[0.6, 0.8]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcal import _validate
from dpcal.optim.objectives.arrays import Vector

__all__ = ["Ball", "Box", "ConvexSet", "Everywhere", "Simplex"]

# A point whose coordinate, or slack, is smaller is on the boundary. Projections are exact to a few
# units in the last place of numbers near one.
_ON_BOUNDARY = 1e-12


class ConvexSet(ABC):
    """A closed convex set with its Euclidean projection."""

    # Whether the boundary is flat.
    polyhedral: ClassVar[bool] = True

    @abstractmethod
    def project(self, y: Vector) -> Vector:
        """Return the nearest point of the set, shape (d2,); a new array."""

    @abstractmethod
    def free_directions(self, y: Vector) -> Vector:
        """Return an orthonormal basis of the directions in which a point can move both ways.

        Its shape is (d2, k); inside the set, k is d2.
        """


@dataclass(frozen=True)
class Everywhere(ConvexSet):
    """The whole space: no constraint."""

    def project(self, y: Vector) -> Vector:
        """Return a copy of the point."""
        return y.copy()

    def free_directions(self, y: Vector) -> Vector:
        """Return every direction."""
        return np.eye(len(y))


@dataclass(frozen=True)
class Ball(ConvexSet):
    """The Euclidean ball around the origin, of a finite radius > 0."""

    polyhedral: ClassVar[bool] = False
    radius: float

    def __post_init__(self) -> None:
        _validate.positive(radius=self.radius)

    def project(self, y: Vector) -> Vector:
        """Return the point, scaled down where it is too long."""
        norm = float(np.linalg.norm(y))
        return y.copy() if norm <= self.radius else y * (self.radius / norm)

    def free_directions(self, y: Vector) -> Vector:
        """Return every direction inside, and the tangents of the sphere on it."""
        norm = float(np.linalg.norm(y))
        if norm < self.radius * (1 - _ON_BOUNDARY):
            return np.eye(len(y))
        basis = np.linalg.qr(np.column_stack([y / norm, np.eye(len(y))]))[0]
        return np.asarray(basis[:, 1:])


@dataclass(frozen=True)
class Box(ConvexSet):
    """The points whose coordinates all lie in one interval, finite, with ``low < high``."""

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = _validate.finite(low=self.low), _validate.finite(high=self.high)
        if not low < high:
            raise ValueError(
                f"low must be below high, or no point is left to project on, got {low!r} and "
                f"{high!r}."
            )

    def project(self, y: Vector) -> Vector:
        """Return the point with each coordinate clipped to the interval."""
        return np.clip(y, self.low, self.high)

    def free_directions(self, y: Vector) -> Vector:
        """Return the axes along which the point is inside."""
        slack = _ON_BOUNDARY * (self.high - self.low)
        inside = (y > self.low + slack) & (y < self.high - slack)
        return np.asarray(np.eye(len(y))[:, inside])


@dataclass(frozen=True)
class Simplex(ConvexSet):
    """The points with coordinates >= 0 whose sum is ``total``, a finite number > 0.

    The projection is that of Held, Wolfe and Crowder 1974: sort, and find the threshold.
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive(total=self.total)

    def project(self, y: Vector) -> Vector:
        """Return the nearest point: coordinates less one threshold, and zero below it."""
        ordered = np.sort(y)[::-1]
        excess = (np.cumsum(ordered) - self.total) / np.arange(1, len(y) + 1)
        kept = int(np.count_nonzero(ordered > excess))
        return np.asarray(np.maximum(y - excess[max(kept, 1) - 1], 0.0))

    def free_directions(self, y: Vector) -> Vector:
        """Return the directions of sum zero in the coordinates that are not zero."""
        inside = np.flatnonzero(y > _ON_BOUNDARY * self.total)
        if len(inside) < 2:
            return np.zeros((len(y), 0))
        ones = np.ones((len(inside), 1))
        basis = np.zeros((len(y), len(inside) - 1))
        basis[inside] = np.linalg.qr(np.column_stack([ones, np.eye(len(inside))[:, 1:]]))[0][:, 1:]
        return basis
