r"""Laws of privacy losses, and of their sums, on finitely many values.

A pair (P, Q) is kept as the values of its loss, with their probabilities under Q; under P each is
exp(value) times as likely. Where one of both laws has outcomes that the other has not, the loss is
infinite, and the probability of these under either law is kept apart. A law with a density, and a
sum of losses with too many values, is replaced by two laws: one that dominates it, where the mass
between two values moves to both so that P and Q keep their mass (Doroshenko et al. 2022), and one
that it dominates, where the outcomes between two values are merged, which is post-processing. Sums
are formed by doubling.

>>> from dpcal.accountants.losses.discrete import pure
>>> law = summed([(law_of(pure(1.0)), 3)])
>>> law.values.tolist()
[-3.0, -1.0, 1.0, 3.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, singledispatch
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal.lazy import special
from dpcal.accountants.inversion.masses import log_moments, log_sums, require_kept, rounding_of
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import DiscreteLoss, pure
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.laplace import BoundedRange, IntervalLoss, Laplace
from dpcal.accountants.rounding import log_of
from dpcal.errors import UnsupportedEvent

Places = NDArray[np.intp]

# Intervals of a density: ten Laplace steps at q = 0.1 then have ends of epsilon 3e-7 apart.
_INTERVALS = 1024
_FINER = 8
# Standard deviations beyond which Gaussian outcomes count as infinite losses: 1e-297.
_REACH = 37.0
_LEAST_OUTSIDE = 1e-300
_LOG_TWO = math.log(2.0)
# Most values of a law: each takes a complex multiplication at each node of a contour.
_MOST = 8192
# Most values of a sum before they are gathered: 2^22 doubles take 32 MB.
_MOST_OF_SUM = 1 << 22
_EVEN = 4.0
_CLOSEST = 2.0**-40
# Log probability of rare values, and one over their share of points, on each side.
_RAREST, _OF_RARE = -745.0, 256
_WIDE = 30.0
# Largest relative distance of values that are equal up to rounding.
_SAME = 2.0**-50
# Largest relative width of values that are taken as one; a chain of near ones is longer.
_CHAIN = 2.0**-47


@dataclass(frozen=True)
class FiniteLaw:
    """A dominating pair whose loss has finitely many values.

    Attributes
    ----------
    values
        The finite values, increasing.
    log_reference
        Log probability of each value under Q; under P it is that plus the value.
    outside
        Probability under P that the loss is infinite.
    below
        A law that the mechanism dominates, if this law is rounded up; None otherwise.
    log_finite
        Log probability under Q that the loss is finite, if it is not that under P.
    """

    values: Reals
    log_reference: Reals
    outside: float = 0.0
    below: FiniteLaw | None = None
    log_finite: float | None = None

    @property
    def down(self) -> FiniteLaw:
        """The law rounded down, or this law if it is not rounded."""
        return self.below or self

    @property
    def log_q(self) -> float:
        """Log probability under Q that the loss is finite."""
        if self.log_finite is not None:
            return self.log_finite
        return math.log1p(-self.outside) if self.outside < 1 else -math.inf

    @property
    def lost(self) -> float:
        """Probability under Q that the loss is minus infinity."""
        return self.outside if self.log_finite is None else -math.expm1(self.log_finite)

    def changed(self, change: Callable[[FiniteLaw], FiniteLaw]) -> FiniteLaw:
        """Return the law after a change, with the law below it after the same change."""
        below = None if self.below is None else change(self.below)
        return replace(change(self), below=below)

    @cached_property
    def moments(self) -> Reals:
        """Logarithms of the masses of Q and of P, and of two more sums (``log_moments``)."""
        return log_moments(self.values, self.log_reference)

    @property
    def whole(self) -> FiniteLaw:
        """The law with values moved outward by the mass that P lacks after rounding, and others.

        A sample makes values small, to which that would be a loss of mass.
        """

        def moved(law: FiniteLaw, way: int) -> FiniteLaw:
            lacks = math.log1p(-law.outside) - float(law.moments[1]) if law.outside < 1 else 0.0
            rounded = 0 < way * lacks <= rounding_of(law.values, law.log_reference)
            return replace(law, values=law.values + lacks) if rounded else law

        below = None if self.below is None else moved(self.below, -1)
        return replace(moved(self, 1), below=below)

    def require(self, step: str, up: Reals, down: Reals) -> None:
        """Refuse the law, and that below it, with less, or more, than the first few moments.

        Raises
        ------
        BrokenLaw
            If the law lost probability, or the one below it gained some.
        """
        require_kept(step, up, self.values, self.log_reference, up=True)
        require_kept(step, down, self.down.values, self.down.log_reference, up=False)


@singledispatch
def law_of(loss: PrivacyLoss) -> FiniteLaw:
    """Return the law of a loss as finitely many values.

    Raises
    ------
    UnsupportedEvent
        If there is no such law here for a loss of this family, or if it has too many values.
    """
    raise UnsupportedEvent(f"Sampling {loss!r} takes a quadrature that is not here.")


@law_of.register(type(NO_LOSS))
def _nothing(loss: PrivacyLoss) -> FiniteLaw:
    return FiniteLaw(np.zeros(1), np.zeros(1))


@law_of.register
def _(loss: DiscreteLoss) -> FiniteLaw:
    below = None if loss.below is None else law_of(loss.below)
    log_finite = loss.surplus if loss.surplus else None
    return FiniteLaw(loss.values, np.array(loss.log_reference), 0.0, below, log_finite)


@law_of.register
def _(loss: LossWithFailure) -> FiniteLaw:
    kept = loss.log_finite
    given = law_of(loss.given)

    def failing(law: FiniteLaw) -> FiniteLaw:
        outside = loss.failure_probability + law.outside
        log_finite = None if law.log_finite is None else law.log_finite + kept
        return FiniteLaw(law.values, law.log_reference + kept, outside, None, log_finite)

    law = given.changed(failing)
    return law if loss.below is None else replace(law, below=law_of(loss.below))


def closer_above(half_width: float, intervals: int) -> Reals:
    """Return ends of intervals from -a to a that are closer next to a, where losses of samples are.

    Half of their density is even, and half proportional to exp(l).
    """
    at = np.linspace(-half_width, half_width, _FINER * intervals + 1)
    below, above = at + half_width, at - half_width
    share = np.exp(above) * np.expm1(-below) / math.expm1(-2 * half_width)
    share += below / (2 * half_width)
    ends: Reals = np.interp(np.linspace(0.0, 2.0, intervals + 1), share, at)
    ends[0], ends[-1] = -half_width, half_width
    return ends


@law_of.register(Laplace)
def _of_interval(loss: IntervalLoss) -> FiniteLaw:
    """Return the law of ends and a density proportional to exp(l / 2), cut into intervals."""
    a = loss.upper
    ends = closer_above(a, _INTERVALS)
    # The masses between l and l + h are 2 (exp(-l / 2) - exp(-(l + h) / 2)) times the density under
    # Q, and exp(l + h / 2) times as much under P.
    half = np.diff(ends) / 2
    logs = loss.log_density - a / 2 + np.log(-2 * np.expm1(-half)) - ends[:-1] / 2
    law, points = cut(ends, logs, logs + ends[:-1] + half), loss.log_end + np.array([0.0, -a])
    up = law.log_reference.copy()
    up[[0, -1]] = np.logaddexp(up[[0, -1]], points)
    middles, inner = law.down.values, law.down.log_reference
    down = np.concatenate([[-a], middles, [a]]), np.concatenate([points[:1], inner, points[1:]])
    return FiniteLaw(ends, up, below=FiniteLaw(*down))


@law_of.register
def _(loss: BoundedRange) -> FiniteLaw:
    """Return the law of the worst mechanism at each epsilon, and below it one of them."""
    above = _of_interval(loss)
    return replace(above, below=law_of(pure(loss.epsilon / 2)))


@law_of.register
def _(loss: Gaussian) -> FiniteLaw:
    mu = 1 / loss.noise_multiplier
    x = _spread(mu / 2, 1.0, -_REACH, _REACH + mu, _MOST // 2)
    law = cut(mu * x - mu * mu / 2, _log_between(x), _log_between(x - mu))
    outside = 2 * math.exp(float(special.log_ndtr(-_REACH))) * (1 + 1e-9)
    law = replace(law, outside=max(outside, _LEAST_OUTSIDE))
    if loss.below is None:
        return law
    # For a sampled one no finite law is known here: the lower end is that of no loss.
    below = law_of(loss.below).down if isinstance(loss.below, Gaussian) else _nothing(loss)
    return replace(law, below=below)


def _log_between(x: Reals) -> Reals:
    """Return the logs of the standard normal probabilities between neighboring points."""
    left = x[1:] <= 0
    low, high = np.where(left, x[:-1], -x[1:]), np.where(left, x[1:], -x[:-1])
    tails = special.log_ndtr(high), special.log_ndtr(low)
    return np.asarray(tails[0] + np.log(-np.expm1(tails[1] - tails[0])))


def cut(ends: Reals, log_q: Reals, log_p: Reals) -> FiniteLaw:
    """Return the law of a loss from its masses between the losses ``ends``, rounded up and down."""
    below = FiniteLaw(np.clip(log_p - log_q, ends[:-1], ends[1:]), log_q)
    law = replace(_moved(below, ends), below=below)
    masses = np.array([np.logaddexp.reduce(log_q), np.logaddexp.reduce(log_p)])
    law.require("cutting a density", masses, masses)
    return law


def mirrored(values: Reals, logs: Reals, log_zero: float = -math.inf) -> tuple[Reals, Reals]:
    """Return a law that is its own mirror image: values >= 0, and their negatives under Q as P.

    The mass of a value 0, and the given one, are on both sides together.
    """
    gains = values > 0
    middle = np.logaddexp(np.logaddexp.reduce(logs[~gains], initial=-math.inf) + _LOG_TWO, log_zero)
    values, logs = values[gains], logs[gains]
    some = [0.0] if middle > -math.inf else []
    return (
        np.concatenate([-values[::-1], some, values]),
        np.concatenate([(logs + values)[::-1], some and [middle], logs]),
    )


def law_of_profile(
    alphas: Sequence[Fraction], deltas: Sequence[Fraction], reverse: Sequence[Fraction]
) -> FiniteLaw:
    """Return the law of the convex hull of bounds in both directions, in exact arithmetic.

    Parameters
    ----------
    alphas
        Numbers exp(epsilon) >= 1, increasing.
    deltas, reverse
        Bounds on delta at each, of P against Q and of Q against P.
    """
    points = [(1 / a, 1 - 1 / a + d / a) for a, d in zip(alphas, reverse, strict=True)]
    points += zip(alphas, deltas, strict=True)
    hull, slopes = lower_hull([(Fraction(0), Fraction(1)), *points])
    slopes = [slope for slope in slopes if slope < 0]
    values = np.array([log_of(a) for a, _ in hull[1 : len(slopes) + 1]])
    logs = np.array([log_of(after - slope) for slope, after in pairwise([*slopes, Fraction(0)])])
    gained, kept = float(hull[len(slopes)][1]), -slopes[0] if slopes else Fraction(1)
    log_finite = None if kept == 1 - gained else log_of(kept)
    return FiniteLaw(values, logs, gained, None, log_finite)


def lower_hull(points: Iterable[tuple[Any, Any]]) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """Return the vertices of the lower convex hull of points (x, y), and slopes between them."""
    hull: list[tuple[Any, Any]] = []
    slopes: list[Any] = []
    for x, y in sorted(dict(sorted(points, reverse=True)).items()):
        while hull:
            slope = (y - hull[-1][1]) / (x - hull[-1][0])
            if not slopes or slope > slopes[-1]:
                slopes.append(slope)
                break
            hull.pop()
            slopes.pop()
        hull.append((x, y))
    return hull, slopes


def gathered(law: FiniteLaw, most: int = _MOST) -> FiniteLaw:
    """Return a law with at most about ``most`` values: itself, or one rounded up and down."""
    found = _gathered(law, most)
    if found is not law:
        found.require("gathering", law.moments, law.down.moments)
    return found


def _gathered(law: FiniteLaw, most: int) -> FiniteLaw:
    values = law.values
    if len(values) <= most and len(law.down.values) <= most:
        return law
    # Points are close where neither P nor Q is rare: about the mean halfway between both.
    halfway = law.log_reference + values / 2
    weights = np.exp(halfway - halfway.max())
    weights /= weights.sum()
    mean = float(weights @ values)
    scale = math.sqrt(float(weights @ (values - mean) ** 2))
    likely = np.flatnonzero(law.log_reference + np.maximum(values, 0.0) >= _RAREST)
    low, high = values[likely[[0, -1]]]
    rare = [
        np.linspace(end, near, 1 + most // _OF_RARE, endpoint=False) if end != near else values[:0]
        for end, near in ((values[0], low), (values[-1], high))
    ]
    left = most - len(rare[0]) - len(rare[1])
    ends = [rare[0], _spread(mean, scale, float(low), float(high), left), rare[1][::-1]]
    points = np.concatenate(ends)
    return replace(_moved(law, points), below=_merged(law.down, points))


def _spread(mean: float, scale: float, low: float, high: float, count: int) -> Reals:
    """Return increasing points from low to high, closest within a few ``scale`` of ``mean``."""
    if low == high:
        return np.array([low])
    unit = max(_EVEN * scale, _CLOSEST * (high - low))
    first, last = (math.asinh((end - mean) / unit) for end in (low, high))
    points: Reals = mean + unit * np.sinh(np.linspace(first, last, count))
    points[0], points[-1] = low, high
    return np.unique(np.clip(points, low, high))


def _groups(values: Reals, ends: Reals) -> tuple[Places, Places]:
    """Return the interval between ends in which each value lies, and where new ones begin."""
    at = np.clip(np.searchsorted(ends, values, side="right") - 1, 0, len(ends) - 2)
    return at, np.flatnonzero(np.diff(at, prepend=-1))


def _moved(law: FiniteLaw, ends: Reals) -> FiniteLaw:
    """Return the law in which each value's mass has moved to both ends around it, above it."""
    values, logs = law.values, law.log_reference
    at, first = _groups(values, ends)
    low, high = ends[at], ends[at + 1]
    gap = np.expm1(low - high)
    # The lower end takes the first share of the mass under Q, and the upper one the second of P.
    with np.errstate(divide="ignore"):
        q = log_sums(logs + np.log(np.expm1(values - high) / gap), first)
        p = log_sums(logs + values + np.log(np.expm1(low - values) / gap), first)
    total, places = np.full(len(ends), -math.inf), at[first]
    total[places] = q
    total[places + 1] = np.logaddexp(total[places + 1], p - ends[places + 1])
    some = total > -math.inf
    return replace(law, values=ends[some], log_reference=total[some])


def _merged(law: FiniteLaw, ends: Reals) -> FiniteLaw:
    """Return the law in which all values between two ends are one outcome, below it."""
    values, logs = law.values, law.log_reference
    at, first = _groups(values, ends)
    least, q = values[first], log_sums(logs, first)
    places = np.cumsum(np.diff(at, prepend=at[0]) > 0)
    off = values - least[places]
    shares = np.exp(logs - q[places]) * np.expm1(np.minimum(off, _WIDE))
    merged = np.log1p(np.add.reduceat(shares, first))
    last = np.append(first[1:], len(values)) - 1
    if (off[last] > _WIDE).any():
        merged = np.where(off[last] > _WIDE, log_sums(logs + off, first) - q, merged)
    return replace(law, values=least + np.minimum(merged, off[last]), log_reference=q, below=None)


def summed(parts: list[tuple[FiniteLaw, int]], few: int = math.isqrt(_MOST_OF_SUM)) -> FiniteLaw:
    """Return the law of a sum of independent losses: laws, and how often each adds up.

    Two laws with more than the square of ``few`` values in their sum are gathered to ``few`` values
    first.
    """
    total, step = FiniteLaw(np.zeros(1), np.zeros(1)), "a sum of losses"
    for law, times in parts:
        power = law
        while times:
            total = combined(step, total, power, few) if times & 1 else total
            times >>= 1
            power = combined(step, power, power, few) if times else power
    return total


def combined(
    step: str,
    one: FiniteLaw,
    other: FiniteLaw,
    few: int,
    values_of: Callable[[Reals, Reals], Reals] = np.add.outer,
    moments_of: Callable[[Reals, Reals], Reals] = np.add,
) -> FiniteLaw:
    """Return the law of a number that two independent losses give, gathered if it is large.

    Parameters
    ----------
    step
        Name of the step, if the law is refused.
    one, other
        Laws, gathered to ``few`` values if the number has more than the square of that.
    values_of
        The number at each two values, of shape (m, n), from m and n values.
    moments_of
        Number of ``log_moments`` of both laws that the new law must have.
    """
    if len(one.values) * len(other.values) > few * few:
        one, other = gathered(one, few), gathered(other, few)
    law = joined(one, other, values_of(one.values, other.values))
    if one.below is not None or other.below is not None:
        down = values_of(one.down.values, other.down.values)
        law = replace(law, below=joined(one.down, other.down, down))
    law = _gathered(law, _MOST)
    up = moments_of(one.moments, other.moments)
    law.require(step, up, moments_of(one.down.moments, other.down.moments))
    return law


def joined(one: FiniteLaw, other: FiniteLaw, values: Reals) -> FiniteLaw:
    """Return the law of a number that two independent losses, of m and n values, give.

    The number at each two values is in ``values``, shape (m, n). Numbers that differ by rounding
    are one value.
    """
    values = values.ravel()
    logs = np.add.outer(one.log_reference, other.log_reference).ravel()
    order = np.argsort(values)
    values, logs = values[order], logs[order]
    largest = max(abs(float(values[0])), abs(float(values[-1])))
    first = np.flatnonzero(np.diff(values, prepend=-math.inf) > _SAME * largest)
    last = np.append(first[1:], len(values)) - 1
    if (values[last] - values[first] > _CHAIN * largest).any():
        first = last = np.arange(len(values))
    outside = one.outside + other.outside - one.outside * other.outside
    alike = one.log_finite is other.log_finite is None
    log_finite = None if alike else one.log_q + other.log_q
    return FiniteLaw(values[last], log_sums(logs, first), outside, None, log_finite)
