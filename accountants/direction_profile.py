"""What is delta at many epsilons, in one direction? A few contours, each for several epsilons.

One contour serves an interval of epsilons around its saddle; its nodes take nearly all of the work,
and a further epsilon is a sum over them. What no contour serves is asked one by one.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> profile = DirectionProfile(Direction("both", ((Gaussian(2.0), 9),)))
>>> lower, upper = profile.log_bounds(np.linspace(0.0, 9.0, 91))
>>> f"{upper[50]:.9f}", bool((upper - lower).max() < 1e-9)
('-6.438883845', True)
"""

from __future__ import annotations

import contextlib
import math
from functools import cached_property

import numpy as np

from dpcal import _lazy
from dpcal._ext import question
from dpcal.accountants import renyi, ways
from dpcal.accountants.characteristic import finite_log_delta
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.failure import combine
from dpcal.accountants.inversion.parity import has_allocation, has_contour
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, Reals

__all__ = ["DirectionProfile"]


# Laws of epochs, which few questions need.
_allocated = _lazy.Module("dpcal.accountants.inversion.allocated")
# Tilts of the Chernoff bounds that prove a direction smaller, over the scale of the loss: ten a
# decade.
_TILTS = np.geomspace(1e-2, 1e3, 48)
# Width of bounds on log delta from which a point of a curve is asked by itself.
_WIDE = 1e-5


class DirectionProfile:
    """Log delta of one direction at many epsilons."""

    def __init__(self, direction: Direction) -> None:
        if has_allocation(direction) and not has_contour(direction):
            direction = _allocated.on_finite_laws(direction)
        # Infinite losses have no transform: the law is inverted given that none occurs.
        self._log_finite, self._direction = direction.finite
        below = direction.below
        self._below = None if below is None else DirectionProfile(below)
        self._total = Total(self._direction.parts)

    def log_bounds(self, epsilons: Reals, above: Reals | None = None) -> tuple[Reals, Reals]:
        """Return lower and upper bounds on log delta at epsilons >= 0 in any order, shape (n,).

        Bounds need not be close below the log deltas ``above``, shape (n,).
        """
        points, places = np.unique(epsilons, return_inverse=True)
        lower, upper = self._compiled(points)
        todo = np.isnan(lower)
        if above is not None and todo.any():
            most = np.empty(len(points))
            most[places] = above
            low = todo.copy()
            low[todo] = self.log_chernoff(points[todo]) <= most[todo]
            lower[low], upper[low] = -math.inf, most[low]
            todo &= ~low
        if todo.any():
            lower[todo], upper[todo] = self._on_contours(points[todo])
        # Delta falls, so that every bound also holds on one side of its epsilon.
        upper = np.minimum.accumulate(upper)
        lower = np.minimum(np.maximum.accumulate(lower[::-1])[::-1], upper)
        return lower[places], upper[places]

    def _compiled(self, points: Reals) -> Reals:
        """Return both bounds at sorted epsilons, as far as compiled calls give them, or NaN."""
        parts = self._direction.compiled if self._log_finite == 0 and self._below is None else None
        if parts is None:
            return np.full((2, len(points)), math.nan)
        return question.log_deltas(parts, points)

    def _on_contours(self, points: Reals) -> tuple[Reals, Reals]:
        """Return bounds on log delta at sorted epsilons, whatever may fail or is rounded."""
        lower, upper = combine(self._log_finite, *self._given_finite(points))
        if self._below is not None:
            # Contours bound only the rounded losses.
            lower = np.minimum(self._below.log_bounds(points)[0], upper)
        return lower, upper

    def _given_finite(self, points: Reals) -> tuple[Reals, Reals]:
        """Return bounds on log delta at sorted epsilons, given that no loss is infinite."""
        laws = None if self._is_asked_alone else self._direction.laws
        if laws is None:
            lower, upper = np.full((2, len(points)), math.nan)
        else:
            lower, upper = question.log_deltas(laws, points, patient=True)
        with np.errstate(invalid="ignore"):
            wide = np.isnan(lower) | (upper - lower > _WIDE)
        for i in np.flatnonzero(wide):
            bounds = finite_log_delta(self._direction, float(points[i]))
            if not bounds.upper - bounds.lower >= upper[i] - lower[i]:
                lower[i], upper[i] = bounds.lower, bounds.upper
        one_sided = (lower == -math.inf) & (upper > -math.inf)
        if one_sided.any():
            crude = renyi.log_deltas_by_tilts(self._direction, points[one_sided], self._tilts)
            upper[one_sided] = np.minimum(upper[one_sided], crude)
        return lower, np.minimum(upper, self._total.log_delta_bound)

    def log_chernoff(self, epsilons: Reals) -> Reals:
        """Return crude upper bounds on log delta, from a grid of tilts."""
        crude = renyi.log_deltas_by_tilts(self._direction, epsilons, self._tilts)
        return combine(self._log_finite, -math.inf, crude)[1]

    @cached_property
    def _is_asked_alone(self) -> bool:
        """Whether no interval has the best upper bound of a class, or the digits of a sum."""
        exact = ways.exact_log_delta(self._direction, 0.0)
        return exact is not None or self._total.renyi_is_tighter or has_allocation(self._direction)

    @property
    def _scale(self) -> float:
        """Standard deviation of the sum; 0 where no quadrature reaches it."""
        with contextlib.suppress(OutOfReach):
            return math.sqrt(max(self._total.at_zero[1], 0.0))
        return 0.0

    @property
    def _tilts(self) -> Reals:
        return _TILTS / (self._scale or 1.0)
