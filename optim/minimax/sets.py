"""Closed convex sets for the dual variable, each with its exact projection.

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

import numpy as np

from dpcal._internal import validate
from dpcal.optim.objectives.arrays import Vector


class ConvexSet(ABC):
    """A closed convex set with its Euclidean projection."""

    @abstractmethod
    def project(self, y: Vector) -> Vector:
        """Return the nearest point of the set, shape (d2,); a new array."""


@dataclass(frozen=True)
class Everywhere(ConvexSet):
    """The whole space: no constraint."""

    def project(self, y: Vector) -> Vector:
        """Return a copy of the point."""
        return y.copy()


@dataclass(frozen=True)
class Ball(ConvexSet):
    """The Euclidean ball around the origin, of a finite radius > 0."""

    radius: float

    def __post_init__(self) -> None:
        validate.positive(radius=self.radius)

    def project(self, y: Vector) -> Vector:
        """Return the point, scaled down where it is too long."""
        norm = float(np.linalg.norm(y))
        return y.copy() if norm <= self.radius else y * (self.radius / norm)


@dataclass(frozen=True)
class Box(ConvexSet):
    """The points with all coordinates in one finite interval, ``low < high``."""

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = validate.finite(low=self.low), validate.finite(high=self.high)
        if not low < high:
            raise ValueError(
                f"low must be below high, or no point is left to project on, got {low!r} and "
                f"{high!r}."
            )

    def project(self, y: Vector) -> Vector:
        """Return the point with each coordinate clipped to the interval."""
        return np.clip(y, self.low, self.high)


@dataclass(frozen=True)
class Simplex(ConvexSet):
    """The points with coordinates >= 0 that sum to ``total``, a finite number > 0.

    The projection sorts and finds the threshold (Held, Wolfe and Crowder 1974).
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        validate.positive(total=self.total)

    def project(self, y: Vector) -> Vector:
        """Return the nearest point: coordinates less one threshold, and zero below it."""
        ordered = np.sort(y)[::-1]
        excess = (np.cumsum(ordered) - self.total) / np.arange(1, len(y) + 1)
        kept = int(np.count_nonzero(ordered > excess))
        return np.asarray(np.maximum(y - excess[max(kept, 1) - 1], 0.0))
