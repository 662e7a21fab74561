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

import math

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import question
from dpcal.accountants import characteristic
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.failure import combine
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.inversion.solve import invert
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.inversion.ways import exact_log_delta
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["DirectionProfile"]

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

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
# Most intervals that are tried for an epsilon, each closer to it than the one before; the last has
# its center there.
_ATTEMPTS = 6
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
        self._one_sided = low[0] == -math.inf < high[0]

    def read(self, points: Reals) -> tuple[Reals, Reals, Flags]:
        """Return bounds at sorted points near the center, and a mask of the close ones."""
        found = [
            self.inversion.log_bounds_at(points[start : start + self._chunk])
            for start in range(0, len(points), self._chunk)
        ]
        lower, upper = (np.concatenate(ends) for ends in zip(*found, strict=True))
        if self._one_sided:
            return lower, upper, np.abs(points - self.center) <= self.reach / _SPREAD
        with np.errstate(invalid="ignore"):
            served = upper - lower <= self._accepted
        return lower, upper, served & np.isfinite(lower)


class DirectionProfile:
    """Log delta of one direction at many epsilons; contours are kept for later calls."""

    def __init__(self, direction: Direction) -> None:
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
        if self._total.renyi_is_tighter:
            # The interval of a contour for the pair gives neither the best upper bound nor a lower
            # bound.
            found = [characteristic.log_delta_bounds(self._direction, float(x)) for x in points]
            lower, upper = np.array([(item.lower, item.upper) for item in found]).T
            return lower, upper
        lower, upper = np.full(len(points), -math.inf), np.zeros(len(points))
        todo = self._without_contours(points, lower, upper)
        for interval in self._intervals:
            self._read(interval, points, todo, lower, upper)
        while todo.any():
            first = int(np.argmax(todo))
            if not self._read_new_interval(points, todo, lower, upper):
                bounds = characteristic.log_delta_bounds(self._direction, float(points[first]))
                lower[first], upper[first], todo[first] = bounds.lower, bounds.upper, False
        upper = np.minimum(upper, self._total.log_delta_bound)
        if math.isfinite(self._total.upper):
            support = [self._total.log_support_bound(float(point)) for point in points]
            upper = np.minimum(upper, support)
        one_sided = (lower == -math.inf) & (upper > -math.inf)
        if one_sided.any():
            crude = self._finite_chernoff(points[one_sided])
            upper[one_sided] = np.minimum(upper[one_sided], crude)
        return lower, upper

    def log_chernoff(self, epsilons: Reals) -> Reals:
        """Return crude upper bounds on log delta, from a grid of tilts."""
        return combine(self._log_finite, -math.inf, self._finite_chernoff(epsilons))[1]

    def _finite_chernoff(self, epsilons: Reals) -> Reals:
        """Return crude upper bounds on log delta, given that no loss is infinite."""
        upper = np.where(epsilons < self._total.upper, 0.0, -math.inf)
        try:
            _, variance = self._total.at_zero
            tilts = _TILTS / math.sqrt(variance) if variance > 0 else _TILTS
            constants = self._total.cumulants(tilts)[:, 0]
        except OutOfReach:
            return upper
        constants = constants + log_chernoff(tilts) + 64 * UNIT * (np.abs(constants) + 4)
        bounds = (constants - np.outer(epsilons, tilts) * (1 - 8 * UNIT)).min(axis=1)
        return np.asarray(np.minimum(upper, bounds))

    def _without_contours(self, points: Reals, lower: Reals, upper: Reals) -> Flags:
        """Fill in the points that take no contour; return a mask of the others."""
        beyond = points >= self._total.upper
        upper[beyond] = -math.inf
        todo = ~beyond
        if len(self._direction.parts) == 1:
            for place in np.flatnonzero(todo):
                bounds = exact_log_delta(self._direction, float(points[place]))
                if bounds is None and self._direction.parts[0][1] > 1:
                    # The other points would take contours as well.
                    break
                if bounds is not None:
                    lower[place], upper[place] = bounds.lower, bounds.upper
                    todo[place] = False
        return todo

    def _read(
        self, interval: _Interval, points: Reals, todo: Flags, lower: Reals, upper: Reals
    ) -> None:
        """Fill in the points that an interval serves."""
        near = np.flatnonzero(todo & (np.abs(points - interval.center) <= 1.1 * interval.reach))
        if len(near):
            low, high, served = interval.read(points[near])
            done = near[served]
            lower[done], upper[done], todo[done] = low[served], high[served], False
            if len(done) < len(near):
                # The reach is reduced to the points that were served.
                interval.reach = float(np.abs(points[done] - interval.center).max(initial=0.0))

    def _read_new_interval(self, points: Reals, todo: Flags, lower: Reals, upper: Reals) -> bool:
        """Fill in the points that a new interval serves; return whether the first is among them."""
        place = int(np.argmax(todo))
        first = float(points[place])
        reach = self._intervals[-1].reach if self._intervals else self._reach_at_zero()
        for attempt in range(_ATTEMPTS):
            # The last interval has its center at the first point.
            reach = reach if attempt < _ATTEMPTS - 1 else 0.0
            last = float(points[todo & (points <= first + 1.8 * reach)].max())
            try:
                interval = _Interval(self._total, 0.5 * (first + last))
            except OutOfReach:
                return False
            nominal = interval.reach
            self._read(interval, points, todo, lower, upper)
            if not todo[place]:
                self._intervals.append(interval)
                return True
            if last == first:
                return False
            reach = min(0.2 * (last - first), nominal)
        return False

    def _reach_at_zero(self) -> float:
        try:
            return _SPREAD * math.sqrt(self._total.at_zero[1])
        except OutOfReach:
            return 0.0
