r"""What is delta at a thousand epsilons? The whole privacy profile, from a handful of contours.

One contour serves an interval of epsilons around its saddle, of several standard deviations of the
tilted loss. Its nodes take nearly all of the work, and a further epsilon is a sum over them.
Aliases, truncation and rounding are bounded at every epsilon. An epsilon that a contour bounds too
loosely is left to the next contour, and in the end to a contour of its own.

>>> import numpy as np
>>> from dpcal.accountants import events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> profile = privacy_profile(event, np.linspace(0.0, 20.0, 1001))
>>> bool((profile.log_upper - profile.log_lower).max() < 1e-9)
True
>>> print(f"{profile.epsilons[400]:.1f} {profile.upper[400]:.9e}")
8.0 2.028380941e-08
>>> answers = epsilon_profile(event, [1e-5, 1e-6, 1e-30])
>>> [f"{epsilon:.6f}" for epsilon in answers.upper]
['6.187712', '6.907384', '17.635061']
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from dpcal import _validate
from dpcal.accountants import characteristic
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Composition, Direction
from dpcal.accountants.events import DpEvent
from dpcal.accountants.inversion.failure import combine
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.inversion.strategy import invert
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT, exp_down, exp_up

__all__ = [
    "DirectionProfile",
    "EpsilonProfile",
    "PrivacyProfile",
    "epsilon_profile",
    "privacy_profile",
]

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Width of bounds on log delta that are accepted: ten digits of delta. Less of it takes more
# contours.
_WIDTH = 1e-10
# Bounds are accepted up to this many times the width that they have at the center of their
# interval. With less of it no interval serves more than its center; more of it makes profiles
# looser than answers.
_LOOSER = 2.0
# Half-width of an interval in standard deviations of the tilted law. Errors against the sum grow by
# exp(half its square) towards the ends: twice of it would lose all digits, half of it takes twice
# the contours.
_SPREAD = 4.5
# Intervals that are tried for an epsilon, each closer to it than the one before; the last has its
# center there.
_ATTEMPTS = 6
# Complex numbers held at once when a contour is read: 32 MB.
_ROOM = 2_000_000
# Tilts of the Chernoff bounds that spare a direction, over the scale of the loss: ten a decade.
_TILTS = np.geomspace(1e-2, 1e3, 48)
# Points of the profile between which the first guess at an epsilon is interpolated, and corrections
# of the guess, each of which squares its error.
_GUESS_POINTS, _CORRECTIONS = 129, 3
# Relative width of an epsilon from a profile above which it is asked for by itself.
_LOOSE = 1e-6


class _Interval:
    """The epsilons that one inversion serves."""

    def __init__(self, total: Total, center: float) -> None:
        self.center = center
        self.inversion = invert(total, center, spread=_SPREAD)
        if self.inversion.smoothed:
            # Closer nodes end earlier, which more smoothing would have to pay for.
            self.inversion = invert(total, center)
        contours = self.inversion.contours
        self.reach = _SPREAD / max(contour.width for contour in contours)
        self._chunk = max(16, int(_ROOM / math.sqrt(max(item.nodes for item in contours))))
        low, high = self.inversion.log_bounds_at(np.array([center]))
        self._accepted = max(_WIDTH, _LOOSER * float(high[0] - low[0]))
        # If rounding leaves no lower end here, the contour of a neighbor would hardly have one.
        self._one_sided = low[0] == -math.inf < high[0]

    def read(self, points: Reals) -> tuple[Reals, Reals, Flags]:
        """Lower and upper bounds at sorted points near the center, and which are good enough."""
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
    """Log delta of one direction at many epsilons; its contours are kept for the next question.

    Parameters
    ----------
    direction
        The losses that add up.
    """

    def __init__(self, direction: Direction) -> None:
        # Infinite losses have no transform: the rest is asked given that none occurs.
        self._log_finite, self._direction = direction.finite
        below = self._direction.below
        self._below = None if below is None else DirectionProfile(below)
        self._total = Total(self._direction.parts)
        self._intervals: list[_Interval] = []

    def log_bounds(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Lower and upper bounds on log delta at each epsilon >= 0, in any order."""
        lower, upper = self._given_finite(epsilons)
        if self._log_finite < 0:
            pairs = [Bounds(*ends, "") for ends in zip(lower.tolist(), upper.tolist(), strict=True)]
            found = [combine(self._log_finite, item) for item in pairs]
            lower = np.array([item.lower for item in found])
            upper = np.array([item.upper for item in found])
        return lower, upper

    def _given_finite(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Bounds on log delta at each epsilon, given that no loss is infinite."""
        points, places = np.unique(epsilons, return_inverse=True)
        lower, upper = np.full(len(points), -math.inf), np.zeros(len(points))
        if self._total.renyi_is_tighter:
            # The contour's interval for the pair is neither the best upper bound nor a lower bound.
            found = [characteristic.log_delta_bounds(self._direction, float(x)) for x in points]
            lower[:], upper[:] = [item.lower for item in found], [item.upper for item in found]
        else:
            self._fill(points, lower, upper)
        if self._below is not None:
            # Contours bound the rounded losses only.
            lower = self._below._given_finite(points)[0]
        # Delta falls: every bound holds on one side of its epsilon.
        upper = np.minimum.accumulate(upper)
        lower = np.minimum(np.maximum.accumulate(lower[::-1])[::-1], upper)
        return lower[places], upper[places]

    def _fill(self, points: Reals, lower: Reals, upper: Reals) -> None:
        """Fill in bounds at sorted epsilons, of the dominating pairs as they are."""
        todo = self._without_contours(points, lower, upper)
        for interval in self._intervals:
            self._read(interval, points, todo, lower, upper)
        while todo.any():
            first = int(np.argmax(todo))
            if not self._read_new_interval(points, todo, lower, upper):
                bounds = characteristic.log_delta_bounds(self._direction, float(points[first]))
                lower[first], upper[first], todo[first] = bounds.lower, bounds.upper, False
        upper[:] = np.minimum(upper, self._total.log_delta_bound + 8 * UNIT)
        if math.isfinite(self._total.upper):
            support = [self._total.log_support_bound(float(point)) for point in points]
            upper[:] = np.minimum(upper, support)
        one_sided = (lower == -math.inf) & (upper > -math.inf)
        if one_sided.any():
            crude = self._finite_chernoff(points[one_sided])
            upper[one_sided] = np.minimum(upper[one_sided], crude)

    def log_chernoff(self, epsilons: Reals) -> Reals:
        """Crude upper bounds on log delta, from a grid of tilts."""
        upper = self._finite_chernoff(epsilons)
        if self._log_finite < 0:
            found = [combine(self._log_finite, Bounds(-math.inf, x, "")) for x in upper.tolist()]
            upper = np.array([item.upper for item in found])
        return upper

    def _finite_chernoff(self, epsilons: Reals) -> Reals:
        """Crude upper bounds on log delta, given that no loss is infinite."""
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
        """Fill in what takes no contour; which points are left."""
        beyond = points >= self._total.upper
        upper[beyond] = -math.inf
        todo = ~beyond
        if len(self._direction.parts) == 1:
            for place in np.flatnonzero(todo):
                bounds = characteristic.without_contour(self._direction, float(points[place]))
                if bounds is None and self._direction.parts[0][1] > 1:
                    # None of the others takes less.
                    break
                if bounds is not None:
                    lower[place], upper[place] = bounds.lower, bounds.upper
                    todo[place] = False
        return todo

    def _read(
        self, interval: _Interval, points: Reals, todo: Flags, lower: Reals, upper: Reals
    ) -> None:
        """Fill in what an interval serves."""
        near = np.flatnonzero(todo & (np.abs(points - interval.center) <= 1.1 * interval.reach))
        if len(near):
            low, high, served = interval.read(points[near])
            done = near[served]
            lower[done], upper[done], todo[done] = low[served], high[served], False
            if len(done) < len(near):
                # How far the next one will get.
                interval.reach = float(np.abs(points[done] - interval.center).max(initial=0.0))

    def _read_new_interval(self, points: Reals, todo: Flags, lower: Reals, upper: Reals) -> bool:
        """Fill in what a new interval serves; whether the first point is among it."""
        place = int(np.argmax(todo))
        first = float(points[place])
        reach = self._intervals[-1].reach if self._intervals else self._reach_at_zero()
        for attempt in range(_ATTEMPTS):
            # The last one has its center at the first point.
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


class _WorstProfile:
    """The larger of the directions' deltas; a direction that is provably smaller is not asked."""

    def __init__(self, composition: Composition) -> None:
        self._directions = [DirectionProfile(item) for item in composition.directions]

    def log_bounds(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Lower and upper bounds on log delta at each epsilon >= 0, in any order."""
        lower, upper = self._directions[0].log_bounds(epsilons)
        for direction in self._directions[1:]:
            asked = direction.log_chernoff(epsilons) > lower
            if asked.any():
                low, high = direction.log_bounds(epsilons[asked])
                lower[asked] = np.maximum(lower[asked], low)
                upper[asked] = np.maximum(upper[asked], high)
        return lower, upper


@dataclass(frozen=True, eq=False)
class PrivacyProfile:
    """Bounds on delta at many epsilons.

    Attributes
    ----------
    epsilons
        Array of numbers >= 0.
    log_lower, log_upper
        Arrays of the same length: the natural logarithm of delta lies between them.
    neighboring_relation
        The relation that the bounds hold for.
    """

    epsilons: Reals
    log_lower: Reals
    log_upper: Reals
    neighboring_relation: str

    @property
    def lower(self) -> Reals:
        """Lower bounds on delta; 0 below the range of a double."""
        return np.array([exp_down(float(value)) for value in self.log_lower])

    @property
    def upper(self) -> Reals:
        """Upper bounds on delta; the smallest positive double below the range of a double."""
        return np.array([exp_up(float(value)) for value in self.log_upper])


@dataclass(frozen=True, eq=False)
class EpsilonProfile:
    """Bounds on epsilon at many deltas.

    Attributes
    ----------
    deltas
        Array of numbers in (0, 1).
    lower, upper
        Arrays of the same length: epsilon lies between them.
    neighboring_relation
        The relation that the bounds hold for.
    """

    deltas: Reals
    lower: Reals
    upper: Reals
    neighboring_relation: str


def _numbers(values: ArrayLike, **named: None) -> Reals:
    (name,) = named
    array = np.atleast_1d(np.asarray(values, dtype=float))
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}.")
    return array


def privacy_profile(
    event: DpEvent,
    epsilons: ArrayLike,
    *,
    neighboring_relation: str = "add-or-remove-one",
) -> PrivacyProfile:
    """Return bounds on delta at many epsilons, at the cost of a few.

    Parameters
    ----------
    event
        Any nesting of compositions of supported mechanisms.
    epsilons
        Finite numbers >= 0 in any order, shape (n,).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    PrivacyProfile
        Where :func:`dpcal.accountants.delta` proves log delta to better than 1e-10, the bounds are
        at most that far apart, and otherwise about as far apart as its own.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no theorem here covers the event under this relation.
    """
    asked = _numbers(epsilons, epsilons=None)
    for value in asked[~(np.isfinite(asked) & (asked >= 0))][:1]:
        _validate.non_negative(epsilons=float(value))
    composition = decompose(event, neighboring_relation)
    if not composition.private:
        lower = upper = np.zeros(len(asked))
    else:
        lower, upper = _WorstProfile(composition).log_bounds(asked)
    return PrivacyProfile(asked, lower, upper, neighboring_relation)


def epsilon_profile(
    event: DpEvent,
    deltas: ArrayLike,
    *,
    neighboring_relation: str = "add-or-remove-one",
) -> EpsilonProfile:
    """Return bounds on epsilon at many deltas, read off the privacy profile.

    Parameters
    ----------
    event, neighboring_relation
        As for :func:`privacy_profile`.
    deltas
        Numbers in (0, 1) in any order, shape (n,).

    Returns
    -------
    EpsilonProfile
        Every end is proved by a bound on delta there; what is interpolated is a first guess only.
    """
    asked = _numbers(deltas, deltas=None)
    for value in asked[~((asked > 0) & (asked < 1))][:1]:
        _validate.probability(deltas=float(value))
    composition = decompose(event, neighboring_relation)
    if not composition.private:
        infinite = np.full(len(asked), math.inf)
        return EpsilonProfile(asked, infinite, infinite, neighboring_relation)
    targets, places = np.unique(np.log(asked), return_inverse=True)
    lower, upper = _invert(composition, targets)
    return EpsilonProfile(asked, lower[places], upper[places], neighboring_relation)


def _single(composition: Composition, log_delta: float) -> Bounds:
    """Bounds on the epsilon of a single delta."""
    return Bounds.worst(
        [characteristic.epsilon_bounds(item, log_delta) for item in composition.directions]
    )


def _invert(composition: Composition, targets: Reals) -> tuple[Reals, Reals]:
    """Bounds on the epsilons at increasing log deltas."""
    lower, upper = np.zeros(len(targets)), np.full(len(targets), math.inf)
    profile = _WorstProfile(composition)
    at_zero = profile.log_bounds(np.zeros(1))[1][0]
    upper[targets >= at_zero] = 0.0
    todo = targets < at_zero
    if todo.sum() > 2:
        first, last = (_single(composition, float(targets[todo][k])) for k in (-1, 0))
        guesses = _guesses(profile, targets[todo], first.lower, last.upper)
        if guesses is not None:
            lower[todo], upper[todo] = _prove(profile, targets[todo], *guesses)
    loose = np.isinf(upper) | (upper - lower > _LOOSE * upper)
    for place in np.flatnonzero(todo & loose):
        bounds = _single(composition, float(targets[place]))
        lower[place], upper[place] = bounds.lower, bounds.upper
    return lower, upper


def _guesses(
    profile: _WorstProfile, targets: Reals, low: float, high: float
) -> tuple[Reals, Reals] | None:
    """Approximate epsilons at the targets, and the rate at which they fall there."""
    if not 0 <= low < high < math.inf:
        return None
    grid = np.linspace(low, high, _GUESS_POINTS)
    values = profile.log_bounds(grid)[1]
    keep = np.append(np.diff(values) < 0, True) & np.isfinite(values)
    if keep.sum() < 2:
        return None
    curve = PchipInterpolator(values[keep][::-1], grid[keep][::-1])
    epsilons, rates = curve(targets), -curve.derivative()(targets)
    for _ in range(_CORRECTIONS):
        epsilons = np.clip(epsilons, 0.0, high)
        errors = profile.log_bounds(epsilons)[1] - targets
        epsilons = epsilons + np.where(np.isfinite(errors), errors * rates, 0.0)
    return np.clip(epsilons, 0.0, high), rates


def _prove(
    profile: _WorstProfile, targets: Reals, epsilons: Reals, rates: Reals
) -> tuple[Reals, Reals]:
    """Move outward from the guesses and keep the ends that bounds on delta prove."""
    low, high = profile.log_bounds(epsilons)
    margins = 8 * UNIT * epsilons + 1e-14 * rates
    with np.errstate(invalid="ignore"):
        above = epsilons + 1.01 * rates * np.maximum(high - targets, 0.0) + margins
        below = epsilons - 1.01 * rates * np.maximum(targets - low, 0.0) - margins
    above, below = np.nan_to_num(above, nan=0.0), np.maximum(np.nan_to_num(below, nan=0.0), 0.0)
    proved_above = profile.log_bounds(above)[1] <= targets
    proved_below = (below == 0) | (profile.log_bounds(below)[0] >= targets)
    return np.where(proved_below, below, 0.0), np.where(proved_above, above, math.inf)
