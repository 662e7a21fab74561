r"""What is the law of a sum of losses with finitely many values? Exact, or between two laws.

A pair (P, Q) is kept as the values of its loss, with their probabilities under Q; under P each is
exp(value) times as likely. Where one of both laws has outcomes that the other has not, the loss is
infinite, and the same probability of either law is kept apart. A sum of losses with too many values
is replaced by two laws: one that dominates it, where the mass between two values moves to both so
that P and Q keep their mass (Doroshenko et al. 2022), and one that it dominates, where the outcomes
between two values are merged, which is post-processing. Sums are formed by doubling.

Few uses of a loss with scattered values have no short contour: their transform does not decay. Sums
are then close from both sides. Rounding is counted as a distance of values and as a relative error
of masses, which a doubling doubles, and so does the number of uses. Values whose probability under
P is a tiny share of delta are left out: they count in full above, and not at all below.

>>> import numpy as np
>>> coin = FiniteLaw(np.array([-1.0, 1.0]), np.log([0.5, 0.5]))
>>> summed([(coin, 3)]).values.tolist()
[-3.0, -1.0, 1.0, 3.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcal._roots import Sides, Stop, bisect
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.transform import Parts
from dpcal.accountants.losses.discrete import DiscreteLoss, hockey_stick

__all__ = [
    "MOST",
    "MOST_OF_SUM",
    "FiniteLaw",
    "epsilon_by_doubling",
    "gathered",
    "joined",
    "log_delta_by_doubling",
    "spread",
    "summed",
]

Reals = NDArray[np.float64]

# Most values of a law: each takes a complex multiplication at each node of a contour.
MOST = 8192
# Most values of a sum before they are gathered: 2^22 doubles take 32 MB.
MOST_OF_SUM = 1 << 22
# Standard deviations of a law within which its values are gathered about evenly.
_EVEN = 4.0
# Largest distance of two values, over their size, at which they are one value up to rounding.
_SAME = 2.0**-50
# Largest width, over their size, of values that are taken as one: a chain of near ones is longer.
_CHAIN = 2.0**-47
# Most values that each of two laws keeps before a doubling that answers a question: ten uses of
# sampled discrete Gaussian noise take half a second, and epsilon is within a thousandth.
_FEW = 512
# Most sums that are formed for an answer, about a second of processor time.
_MOST_SUMS = 12
# Share of delta that values left out may have.
_REST = 1e-8
# Distance of the log deltas for which sums are kept.
_STEP = 8.0
# Largest size of a sum, and least log delta: halfway between P and Q, where masses are added, what
# is below the range of a double has less than exp(-745 + 300) under P, exp(-145) of such a delta.
_LARGEST, _LEAST = 600.0, -300.0
# Relative error of a mass at one sum: of up to 2^18 terms, with exponents up to 745.
_OF_MASS = 2.0**-32
_METHOD = "doubling"


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
        Probability under P that the loss is infinite; that of minus infinity under Q is the same.
    below
        A law that the mechanism dominates, if this law is rounded up; None otherwise.
    """

    values: Reals
    log_reference: Reals
    outside: float = 0.0
    below: FiniteLaw | None = None

    @property
    def down(self) -> FiniteLaw:
        """The law rounded down, or this law if it is not rounded."""
        return self.below or self


def gathered(law: FiniteLaw, most: int = MOST) -> FiniteLaw:
    """Return a law with at most about ``most`` values: itself, or one rounded up and down."""
    values = law.values
    if len(values) <= most and len(law.down.values) <= most:
        return law
    # Halfway between P and Q neither has tails that leave the range of a double.
    halfway = np.exp(law.log_reference + values / 2)
    weights = halfway / halfway.sum()
    mean = float(weights @ values)
    scale = math.sqrt(float(weights @ (values - mean) ** 2))
    ends = spread(mean, scale, float(values[0]), float(values[-1]), most)
    below = FiniteLaw(*_merged(law.down, ends), law.down.outside)
    return FiniteLaw(*_moved(law, ends), law.outside, below)


def spread(mean: float, scale: float, low: float, high: float, count: int) -> Reals:
    """Return increasing points from low to high, closest within a few ``scale`` of ``mean``."""
    unit = _EVEN * scale
    first, last = (math.asinh((end - mean) / unit) for end in (low, high))
    points: Reals = mean + unit * np.sinh(np.linspace(first, last, count))
    points[0], points[-1] = low, high
    return points


def _moved(law: FiniteLaw, ends: Reals) -> tuple[Reals, Reals]:
    """Return the law in which each value's mass has moved to both ends around it."""
    values, logs = law.values, law.log_reference
    at = np.clip(np.searchsorted(ends, values, side="right") - 1, 0, len(ends) - 2)
    low, high = ends[at], ends[at + 1]
    gap = np.expm1(low - high)
    shares = np.expm1(values - high) / gap, np.exp(values - high) * np.expm1(low - values) / gap
    total = np.zeros(len(ends))
    for places, share, ended in ((at, shares[0], low), (at + 1, shares[1], high)):
        total += np.bincount(places, share * np.exp(logs + ended / 2), len(ends))
    some = total > 0
    return ends[some], np.log(total[some]) - ends[some] / 2


def _merged(law: FiniteLaw, ends: Reals) -> tuple[Reals, Reals]:
    """Return the law in which all values between two ends are one outcome."""
    values, halfway = law.values, np.exp(law.log_reference + law.values / 2)
    at = np.clip(np.searchsorted(ends, values, side="right") - 1, 0, len(ends) - 2)
    middle = (ends[:-1] + ends[1:]) / 2
    off = (values - middle[at]) / 2
    p, q = (np.bincount(at, halfway * np.exp(sign * off), len(middle)) for sign in (1.0, -1.0))
    some = (p > 0) & (q > 0)
    p, q, middle = p[some], q[some], middle[some]
    return middle + np.log(p / q), np.log(q) - middle / 2


def summed(parts: list[tuple[FiniteLaw, int]], few: int = math.isqrt(MOST_OF_SUM)) -> FiniteLaw:
    """Return the law of a sum of independent losses.

    Parameters
    ----------
    parts
        Laws, and how often each adds up.
    few
        Number of values to which two laws are gathered whose sum has more than its square.
    """
    total = FiniteLaw(np.zeros(1), np.zeros(1))
    for law, times in parts:
        power = law
        while times:
            total = _sum(total, power, few) if times & 1 else total
            times >>= 1
            power = _sum(power, power, few) if times else power
    return total


def _sum(one: FiniteLaw, other: FiniteLaw, few: int) -> FiniteLaw:
    """Return the law of the sum of two losses, gathered if it has too many values."""
    if len(one.values) * len(other.values) > few * few:
        one, other = gathered(one, few), gathered(other, few)
    law = _outer(one, other)
    if one.below is not None or other.below is not None:
        law = replace(law, below=_outer(one.down, other.down))
    return gathered(law)


def _outer(one: FiniteLaw, other: FiniteLaw) -> FiniteLaw:
    """Return the law of the sum of two losses."""
    return joined(one, other, np.add.outer(one.values, other.values))


def joined(one: FiniteLaw, other: FiniteLaw, values: Reals) -> FiniteLaw:
    """Return the law of a number that two independent losses give.

    Parameters
    ----------
    one, other
        Laws of m and of n values.
    values
        The number at each two values, shape (m, n). Those that differ by rounding are one value.
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
    return FiniteLaw(values[last], np.logaddexp.reduceat(logs, first), outside)


# -- bounds on delta and epsilon of a sum


@dataclass(frozen=True)
class _Sum:
    """The law of a sum, rounded up and down.

    ``shift`` bounds the error of a value and of a mass, and ``lost`` is the probability under P of
    what is left out.
    """

    law: FiniteLaw
    shift: float
    lost: float

    def log_delta(self, epsilon: float) -> Bounds:
        """Return bounds on log delta at an epsilon."""
        up, down = (
            hockey_stick(law.log_reference + law.values, law.values, epsilon + distance)
            for law, distance in ((self.law, -self.shift), (self.law.down, self.shift))
        )
        upper = math.exp(up[0]) * (1 + up[1] + self.shift) + self.lost
        lower = math.exp(down[0]) * max(0.0, 1 - down[1] - self.shift)
        return Bounds.of_logarithms(lower, min(upper, 1.0), _METHOD)


def _of(loss: DiscreteLoss, rest: float) -> tuple[FiniteLaw, float]:
    """Return the law of a loss without values that are rare under P, and their probability."""
    values, logs = loss.values, np.array(loss.log_reference)
    masses = np.exp(logs + values)
    first = int(np.searchsorted(np.cumsum(masses), rest))
    last = len(values) - int(np.searchsorted(np.cumsum(masses[::-1]), rest))
    lost = float(masses[:first].sum() + masses[last:].sum())
    return FiniteLaw(values[first:last], logs[first:last]), lost


@lru_cache(maxsize=16)
def _sum_of(parts: Parts, log_delta: float) -> _Sum | None:
    """Return the law of a sum where that is affordable, for answers about a log delta."""
    sums = sum(times.bit_length() + times.bit_count() for _, times in parts)
    if sums > _MOST_SUMS or not log_delta > _LEAST:
        return None
    uses, size, lost = sum(times for _, times in parts), 0.0, 0.0
    laws: list[tuple[FiniteLaw, int]] = []
    for loss, times in parts:
        if not isinstance(loss, DiscreteLoss):
            return None
        law, left_out = _of(loss, _REST * math.exp(log_delta) / (2 * uses))
        laws.append((law, times))
        size += times * float(np.abs(law.values).max())
        lost += times * left_out
    if size > _LARGEST:
        return None
    # A sum adds the errors of both, and those of its own steps, which are relative to its size and
    # mass: there are at most as many steps on the way to a value as sums, and 2 uses in all.
    shift = 4 * (sums + 1) * _CHAIN * size + 12 * uses * _OF_MASS
    return _Sum(summed(laws, _FEW), shift, lost * (1 + _OF_MASS))


def _rounded(log_delta: float) -> float:
    """Return a smaller log delta, the same one for questions about similar ones."""
    return _STEP * math.floor(log_delta / _STEP) if math.isfinite(log_delta) else -math.inf


def log_delta_by_doubling(direction: Direction, epsilon: float, log_delta: float) -> Bounds | None:
    """Return bounds on log delta(epsilon) of a sum of few losses with finitely many values.

    Parameters
    ----------
    direction
        The losses that add up.
    epsilon
        A number >= 0.
    log_delta
        About the result; another one is safe, and less close.

    Returns
    -------
    Bounds or None
        None for other losses, and where sums are many, too large, or of tiny probability.
    """
    found = _sum_of(direction.parts, _rounded(log_delta))
    return None if found is None else found.log_delta(epsilon)


def epsilon_by_doubling(direction: Direction, log_delta: float, most: float) -> Bounds | None:
    """Return bounds on epsilon of a sum of few losses with finitely many values, at a log delta.

    Parameters
    ----------
    direction
        The losses that add up.
    log_delta
        Negative number.
    most
        An upper bound on epsilon.

    Returns
    -------
    Bounds or None
        None for other losses, and where sums are many, too large, or of tiny probability.
    """
    found = _sum_of(direction.parts, _rounded(log_delta))
    if found is None:
        return None

    def is_met(at: float) -> bool:
        return found.log_delta(at).upper <= log_delta

    def is_missed(at: float) -> bool:
        return found.log_delta(at).lower >= log_delta

    if is_met(0.0):
        return Bounds(0.0, 0.0, _METHOD)
    # No loss is larger than this.
    upper, stop = min(most, found.law.values[-1] + 1.0), Stop(relative=1e-9)
    upper = bisect(is_met, Sides(meet=upper, miss=0.0), stop).meet if is_met(upper) else most
    lower = bisect(is_missed, Sides(meet=0.0, miss=upper), stop).meet if is_missed(0.0) else 0.0
    return Bounds(lower, upper, _METHOD)
