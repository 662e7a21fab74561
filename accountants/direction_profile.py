"""What is delta at many epsilons, in one direction? A few contours, each for several epsilons.

One contour serves an interval of epsilons around its saddle, of several standard deviations of the
tilted loss. Its nodes take nearly all of the work, and a further epsilon is a sum over them.

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
from numpy.typing import NDArray

from dpcal import _lazy
from dpcal._ext import question
from dpcal.accountants import renyi, ways
from dpcal.accountants.characteristic import finite_log_delta
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.failure import combine
from dpcal.accountants.inversion.parity import has_allocation, has_contour
from dpcal.accountants.inversion.solve import invert
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach

__all__ = ["DirectionProfile"]

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Laws of epochs, which few questions need.
_allocated = _lazy.Module("dpcal.accountants.inversion.allocated")
# Width of bounds on log delta that are accepted: ten digits of delta. A smaller width takes more
# contours.
_WIDTH = 1e-10
# Bounds are accepted up to this many times the width at the center of their interval. With a
# smaller factor an interval serves its center only; with a larger one profiles are looser than
# answers.
_LOOSER = 2.0
# Half-width of an interval in standard deviations of the tilted law. Errors relative to the sum
# grow by exp(half its square) towards the ends; a smaller one takes more contours.
_SPREAD = 4.5
# Most complex numbers held at once when a contour is read: 32 MB.
_ROOM = 2_000_000
# Tilts of the Chernoff bounds that prove a direction smaller, over the scale of the loss: ten a
# decade.
_TILTS = np.geomspace(1e-2, 1e3, 48)


class _Interval:
    """The epsilons that one inversion serves."""

    def __init__(self, total: Total, center: float) -> None:
        self.center = center
        self.inversion = invert(total, center, spread=_SPREAD)
        if self.inversion.smoothed:
            # Without the spread: closer nodes would end earlier, and need more smoothing.
            self.inversion = invert(total, center)
        contours = self.inversion.contours
        self.reach = _SPREAD / max(contour.width for contour in contours)
        self._chunk = max(16, int(_ROOM / math.sqrt(max(item.nodes for item in contours))))
        low, high = self.inversion.log_bounds_at(np.array([center]))
        self._accepted = max(_WIDTH, _LOOSER * float(high[0] - low[0]))
        # If rounding leaves no lower end here, a nearby contour would hardly have one.
        if low[0] == -math.inf < high[0]:
            self.reach, self._accepted = self.reach / _SPREAD, math.inf

    def read(self, points: Reals) -> tuple[Reals, Reals, Flags]:
        """Return bounds at points within reach, and a mask of the close ones."""
        found = [
            self.inversion.log_bounds_at(points[start : start + self._chunk])
            for start in range(0, len(points), self._chunk)
        ]
        lower, upper = (np.concatenate(ends) for ends in zip(*found, strict=True))
        with np.errstate(invalid="ignore"):
            return lower, upper, (upper - lower <= self._accepted) | (upper == lower)


class DirectionProfile:
    """Log delta of one direction at many epsilons; contours are kept for later calls."""

    def __init__(self, direction: Direction) -> None:
        if has_allocation(direction) and not has_contour(direction):
            direction = _allocated.on_finite_laws(direction)
        # Infinite losses have no transform: the law is inverted given that none occurs.
        self._log_finite, self._direction = direction.finite
        below = direction.below
        self._below = None if below is None else DirectionProfile(below)
        self._total = Total(self._direction.parts)
        self._intervals: list[_Interval] = []

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
        """Return bounds on log delta at sorted epsilons, from contours that are kept."""
        lower, upper = combine(self._log_finite, *self._given_finite(points))
        if self._below is not None:
            # Contours bound only the rounded losses.
            lower = np.minimum(self._below.log_bounds(points)[0], upper)
        return lower, upper

    def _given_finite(self, points: Reals) -> tuple[Reals, Reals]:
        """Return bounds on log delta at sorted epsilons, given that no loss is infinite."""
        lower, upper = np.full(len(points), -math.inf), np.zeros(len(points))
        todo = np.ones(len(points), dtype=bool)
        for interval in self._intervals:
            self._read(interval, points, todo, lower, upper)
        while todo.any():
            first = int(np.argmax(todo))
            self._read_new_interval(points, todo, lower, upper)
            if todo[first]:
                bounds = finite_log_delta(self._direction, float(points[first]))
                lower[first], upper[first], todo[first] = bounds.lower, bounds.upper, False
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

    def _read(
        self, interval: _Interval, points: Reals, todo: Flags, lower: Reals, upper: Reals
    ) -> None:
        """Fill in the points that an interval serves."""
        near = np.flatnonzero(todo & (np.abs(points - interval.center) <= interval.reach))
        if len(near):
            low, high, served = interval.read(points[near])
            done = near[served]
            lower[done], upper[done], todo[done] = low[served], high[served], False

    def _read_new_interval(self, points: Reals, todo: Flags, lower: Reals, upper: Reals) -> None:
        """Fill in the points that a new interval serves, if one serves the first of them."""
        if self._is_asked_alone:
            return
        first = int(np.argmax(todo))
        reach = self._intervals[-1].reach if self._intervals else _SPREAD * self._scale
        for ahead in (0.8 * reach, 0.2 * reach, 0.0):
            last = float(points[todo & (points <= points[first] + 2 * ahead)].max())
            with contextlib.suppress(OutOfReach):
                interval = _Interval(self._total, 0.5 * (float(points[first]) + last))
                self._read(interval, points, todo, lower, upper)
                if not todo[first]:
                    self._intervals.append(interval)
                    return
            if last == points[first]:
                return
