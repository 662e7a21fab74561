r"""The best of a random number of runs: Renyi divergences from those of one run, and a law.

>>> from dpcal.accountants import epsilon
>>> best = events.RepeatAndSelectDpEvent(events.GaussianDpEvent(5.0), mean=10.0, shape=1.0)
>>> print(f"{epsilon(best, delta=1e-6, accountant='renyi'):.4f}")
1.8135
>>> answer = epsilon(best, delta=1e-6)      # the smaller of this, and of what a run's profile gives
>>> print(f"{answer:.4f} {answer.accountant}")
1.2313 characteristic

The law belongs to a pair that is built from a run's profile. Let one run have law M on a data set
and M' on its neighbor, with ``H_k(M || M') = sup_S M(S) - k M'(S) <= h(k)`` for every k > 0 (its
privacy profile, at k = e^epsilon), and let h' bound the same with M and M' exchanged. Let f be the
generating function of the number of runs and m its mean, ``f'(1) = m``. The best run has the
density ``M(y) f'(F(y))``, where F(y) is the chance under M that a run is not better than y; ties
are broken at random. Write ``g(b) = f'(1 - b) / m``, which falls from g(0) = 1.

1. If a run is better than y with chance b under M', its chance under M is at least
   ``T(b) = max_k (b - h'(k)) / k``.
2. So the best run's densities at y are at most ``m M(y) g(T(b))`` and exactly ``m M'(y) g(b)``,
   for some b in [0, 1]. With L = M(y) / M'(y) and k = e^epsilon,

       delta(epsilon) <= m E_M' max_b (L g(T(b)) - k g(b))_+.

3. The maximum is a convex function of L, piecewise linear where b is on a grid, zero at L = 0: a
   sum of ``w_j (L - k x_j)_+`` with all w_j > 0. Hence ``delta(epsilon) <= m sum_j w_j h(k x_j)``.

For the truncated negative binomial law ``g(b) = (1 + (1 / gamma - 1) b)^(-1 - eta)``, and for the
Poisson law ``g(b) = e^(-m b)``. Bounds at the points of a grid, and their convex hull, are the
profile of a pair with finitely many losses (Doroshenko et al. 2022), which composes with others.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> law, _ = best_run_laws((Direction("both", ((Gaussian(8.0), 1),)),), 50.0, 0.0)
>>> print(f"{law.upper} {law.failure_probability < 1e-29}")
inf True

Papernot and Steinke 2022 take the step from 1 to 2 for Renyi divergences, and Koskela, Redberg and
Wang 2024 for profiles: they bound the maximum by ``m (L - k / R)_+`` with R the largest ratio of
g(T(b)) to g(b). The sum is never larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal._internal.roots import Stop, bracket, brent, minimum
from dpcal.accountants import events, renyi
from dpcal.accountants.characteristic import DirectionProfile
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.amplification import loss_of
from dpcal.accountants.inversion.finite_laws import law_of, law_of_profile, lower_hull
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss, Reals
from dpcal.accountants.losses.failure import MomentBound
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.row import Pairs, Row, normal, refuse
from dpcal.accountants.rounding import UNIT

_LOG_FLOOR = -75.0
# Log of the delta below which Chernoff bounds replace contours.
_LOG_FAR = -45.0
_LARGEST = 300.0
# Points of a profile: at delta 1e-6 they add 1e-4 to a Gaussian's epsilon.
_POINTS = 512
# Levels of the maximum, even in their logarithm: they add 2e-3 to epsilon for fifty runs.
_LEVELS = 8000
# Smallest level, over the level at which g starts to fall. Below it g is 1 up to this.
_SMALLEST_LEVEL = 1e-3
# Shape from which on g, a power with this exponent, falls at smaller levels by as much.
_LARGE_SHAPE = 100.0
# Relative slack on every bound, far above the rounding of the sums here.
_SLACK = 1e-11
# Relative error of 1 / gamma - 1, in units of log(1 / gamma) where that is above 1.
_GAMMA = 4e-9

_LEAST_ORDER = 1e-3
# Largest log(1 / gamma) of a law of the number of runs: its exponential is a double.
_MOST_LOG_INVERSE = 600.0
_MOST_ORDER = 1e4
# Smallest tilt at which moments are taken by differences.
_LEAST_TILT = 1e-6
_SECTIONS = 30
# Largest mean number of runs, and largest shape: powers of both stay doubles.
_MOST_RUNS = 1e15


@lru_cache(maxsize=64)
def best_run_laws(
    directions: tuple[Direction, ...], mean: float, shape: float
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """Return dominating pairs of the best run, for removing and for adding a record.

    Parameters
    ----------
    directions
        The losses of a single run, in each direction; every loss has a law.
    mean
        Mean of the number of runs: at least 1, or any number > 0 for Poisson's law.
    shape
        eta > -1 of its truncated negative binomial law, or infinity for Poisson's.
    """
    if not any(item.parts for item in directions):
        return NO_LOSS, NO_LOSS
    grid, profiles = _tabulated(directions)
    there, back = _Curve(grid, profiles[0], profiles[-1]), _Curve(grid, profiles[-1], profiles[0])
    sums = [_Best(mean, shape, back, there), _Best(mean, shape, there, back)]
    top = max(each.end() for each in sums)
    losses = np.linspace(0.0, top, _POINTS)
    one, other = (each.at(losses) for each in sums)
    one[-1] = other[-1] = max(one[-1], other[-1])
    name = f"best of {mean:g} runs"
    law = _loss_of_profile(losses, one, other, name)
    if np.array_equal(one, other):
        return law, law
    return law, _loss_of_profile(losses, other, one, f"{name}, added")


def _loss_of_profile(losses: Reals, deltas: Reals, reverse: Reals, name: str) -> PrivacyLoss:
    """Return a loss with these deltas or more both ways."""
    alphas, here, back = ([Fraction(x) for x in each] for each in (np.exp(losses), deltas, reverse))
    law = law_of_profile(alphas, here, back)
    # Bounds on a profile are no lower ends: the best run may reveal no record.
    return loss_of(replace(law, below=law_of(NO_LOSS)), name)


@lru_cache(maxsize=64)
def _tabulated(directions: tuple[Direction, ...]) -> tuple[Reals, list[Reals]]:
    """Return epsilons, and upper bounds on each direction's delta at these epsilons."""
    profiles = [DirectionProfile(item) for item in directions]
    least = max(-math.expm1(item.finite[0]) for item in directions)
    floor = max(_LOG_FLOOR, math.log(least) + 1e-3 if least > 0 else -math.inf)
    top = max(renyi.epsilon_bounds(item, floor).upper for item in directions)
    grid = np.linspace(0.0, min(top, _LARGEST), _POINTS)
    found = []
    for each in profiles:
        logs = each.log_chernoff(grid)
        close = logs > _LOG_FAR
        logs[close] = np.minimum(logs[close], each.log_bounds(grid[close])[1])
        found.append(np.exp(np.minimum.accumulate(logs)) * (1 + _SLACK))
    return grid, found


class _Curve:
    """A convex bound on H_k, linear between points, from bounds on delta both ways."""

    def __init__(self, grid: Reals, deltas: Reals, reverse: Reals) -> None:
        above = np.exp(grid)
        below = 1 / above[:0:-1]
        # H_k in one direction is 1 - k + k H_(1/k) in the other.
        k = np.concatenate([[0.0], below, above])
        h = np.concatenate([[1.0], 1 - below + below * reverse[:0:-1], deltas])
        hull, slopes = lower_hull(zip(k.tolist(), h.tolist(), strict=True))
        self.slopes, (self.k, self.h) = np.array(slopes), np.array(hull).T
        self.top = float(grid[-1])

    def __call__(self, k: Reals) -> Reals:
        return np.asarray(np.interp(k, self.k, self.h))

    def least(self, chances: Reals) -> Reals:
        """Return T(b): the least probability of an event that has b in the other direction."""
        # Between the intercepts of its two segments, the maximum is at a corner.
        corner = np.searchsorted(-(self.h[:-1] - self.slopes * self.k[:-1]), -chances)
        corner = np.clip(corner, 1, len(self.k) - 1)
        least = (chances * (1 - 1e-14) - self.h[corner]) / self.k[corner]
        return np.asarray(np.maximum(least * (1 - 1e-14), 0.0))


class _Best:
    """``m sum_j w_j h(k x_j)``: the bound on delta of the best run, from curves both ways."""

    def __init__(self, mean: float, shape: float, reverse: _Curve, curve: _Curve) -> None:
        exponent = 0.0 if math.isinf(shape) else log_inverse_gamma(mean, shape)
        self._shape, self._inverse, self._curve = shape, math.expm1(exponent), curve
        # As a function of log(1 / gamma), the log of the mean grows at most as fast as the log of 1
        # / gamma - 1: the relative error of the mean is at most that of 1 / gamma - 1.
        self._error = 0.0 if math.isinf(shape) else _GAMMA * max(1.0, exponent)
        self._mean = mean * (1 + self._error)
        weights, self._places = self._envelope(reverse)
        self._weights = self._mean * weights
        self._least = float(self._weights.sum() * curve.h[-1])

    def _g(self, chances: Reals, error: float) -> Reals:
        if math.isinf(self._shape):
            return np.asarray(np.exp(-self._mean * chances))
        inverse = self._inverse * (1 + error)
        return np.asarray((1 + inverse * chances) ** (-self._shape - 1))

    def _envelope(self, reverse: _Curve) -> tuple[Reals, Reals]:
        """Return weights w and places x of the sum, by the upper envelope of the lines of all b."""
        falls = self._mean
        if math.isfinite(self._shape):
            falls = max(self._inverse * max((self._shape + 1) / _LARGE_SHAPE, 1.0), 1.0)
        levels = np.geomspace(min(_SMALLEST_LEVEL / falls, 0.5), 1.0, _LEVELS)
        levels = np.concatenate([[0.0], levels])
        slopes = self._g(reverse.least(levels[:-1]), -self._error)
        heights = self._g(levels[1:], self._error)
        # The maximum of lines changes its slope where the hull of (slope, height) is as steep.
        lines = zip(slopes.tolist(), heights.tolist(), strict=True)
        hull, places = lower_hull([(0.0, 0.0), *lines])
        return np.diff([slope for slope, _ in hull]), np.array(places) * (1 - _SLACK)

    def at(self, epsilons: Reals) -> Reals:
        """Return the bound at each epsilon >= 0, at most 1."""
        terms = self._curve(np.multiply.outer(np.exp(epsilons), self._places))
        return np.asarray(np.minimum(terms @ self._weights * (1 + _SLACK), 1.0))

    def end(self) -> float:
        """Return an epsilon from which the bound hardly falls, or is constant where possible."""
        smallest = float(self._places[0])
        most = self._curve.top - math.log(smallest) + 1e-9 if smallest > 0 else math.inf
        epsilons = np.linspace(0.0, min(most, 2 * _LARGEST), _POINTS)
        constant = self.at(epsilons) <= self._least * (1 + 1e-3)
        return float(epsilons[np.argmax(constant)] if constant.any() else epsilons[-1])


def log_inverse_gamma(mean: float, shape: float) -> float:
    """Return log(1 / gamma) of the truncated negative binomial law with this mean, rounded up.

    With y = log(1 / gamma) the mean is eta (e^y - 1) / (1 - e^(-eta y)), or (e^y - 1) / y at eta
    = 0; it grows with y, more slowly for eta near -1. The relative error is 3e-9 at most.

    Parameters
    ----------
    mean
        Mean number of runs, at least 1.
    shape
        Finite eta > -1.
    """
    if mean == 1.0:
        return 0.0

    def excess(y: float) -> float:
        grown = -shape * y if shape < 0 else 0.0
        below = y if abs(shape) < 1e-300 else -math.expm1(-abs(shape) * y) / abs(shape)
        log_expm1 = y + math.log(-math.expm1(-y)) if y > 1 else math.log(math.expm1(y))
        return log_expm1 - math.log(below) - grown - math.log(mean)

    # Below this, the mean has no correct digits of its difference from 1.
    if excess(1e-12) >= 0:
        return 2e-12
    high = bracket(lambda y: excess(y) >= 0, miss=0.0, start=1.0).meet
    stop = Stop(absolute=1e-15, relative=4 * UNIT)
    return brent(excess, 1e-12, high, stop).root * (1 + 1e-9) + 1e-12


@dataclass(frozen=True)
class RepeatedSelection(MomentBound):
    """The best of a random number of runs of one mechanism (Papernot and Steinke 2022).

    Parameters
    ----------
    directions
        The losses of a single run, in each direction; the worse direction counts at each order.
    mean_runs
        Mean of the number of runs: at least 1, or any number > 0 for Poisson.
    shape
        Its law: infinite for Poisson (their Theorem 6), otherwise the shape eta > -1 of a truncated
        negative binomial law (their Theorem 2), 1 for geometric, 0 for logarithmic.
    forward
        Direction of its :attr:`law`: removing a record (True), or adding one.
    """

    directions: tuple[Direction, ...]
    mean_runs: float
    shape: float
    forward: bool = True

    @property
    def law(self) -> PrivacyLoss | None:
        """The law that follows from a run's privacy profile, or None if a run has none."""
        if not all(loss.has_law for item in self.directions for loss, _ in item.parts):
            return None
        laws = best_run_laws(self.directions, self.mean_runs, self.shape)
        return laws[0 if self.forward else 1]

    @property
    def upper(self) -> float:
        """Bound on the loss itself: the limit of the theorems at infinite order, rounded up.

        With e the largest loss of a single run, Theorem 2 tends to (2 + eta) e, and Theorem 6 to e
        plus the mean number of runs times a run's delta(0).
        """
        single = max(Total(item.parts).upper for item in self.directions)
        if math.isinf(single):
            return math.inf
        if math.isinf(self.shape):
            log_delta = max(renyi.log_delta_bounds(item, 0.0).upper for item in self.directions)
            # Renyi divergences bound delta(0) loosely; the loss bounds it by tanh(e / 2), too.
            share = min(math.exp(log_delta), math.tanh(single / 2))
            return (single + self.mean_runs * share) * (1 + 16 * UNIT)
        return (2 + self.shape) * single * (1 + 16 * UNIT)

    def _single(self, c: float) -> float:
        """Return log M(c) of a single run, in the worse direction, rounded up."""
        found = [renyi.log_mgf(Total(item.parts), c) for item in self.directions]
        return max(value + 32 * UNIT * abs(value) for value in found)

    @lru_cache(maxsize=1024)  # noqa: B019 -- selections of selections ask for a tilt often
    def log_mgf_bound(self, c: float) -> float:
        """Return the theorem's bound on log M(c)."""
        if math.isinf(self.shape):
            # The theorem's epsilon has exp(epsilon) = 1 + 1 / (order - 1).
            epsilon = math.log1p(1 / c)
            log_delta = max(renyi.log_delta_bounds(item, epsilon).upper for item in self.directions)
            extra = self.mean_runs * math.exp(log_delta)
        else:
            extra = self._overhead
        bound = self._single(c) + c * extra + math.log(self.mean_runs) * (1 + UNIT)
        if self.mean_runs >= 1:
            return bound
        # Without a run the release is empty, in either world: its probability adds to M(c).
        return float(np.logaddexp(bound, -self.mean_runs)) + 8 * UNIT

    @cached_property
    def _overhead(self) -> float:
        """(1 + eta) times the smallest of (1 - 1/b) D_b + log(1/gamma) / b over orders b."""
        inverse = log_inverse_gamma(self.mean_runs, self.shape)

        def cost(x: float) -> float:
            return (self._single(math.exp(x)) + inverse) / (1 + math.exp(x))

        best = minimum(cost, math.log(_LEAST_ORDER), math.log(_MOST_ORDER), sections=_SECTIONS)
        return (1 + self.shape) * cost(best) * (1 + 16 * UNIT)

    def moments(self, c: ArrayLike) -> Reals:
        """Return the bound on log M, with differences instead of its derivatives."""
        tilts = np.maximum(np.atleast_1d(np.asarray(c, dtype=float)), _LEAST_TILT)
        bound = np.vectorize(self.log_mgf_bound, otypes=[float])
        return self.by_differences(bound, tilts, 1e-3 * tilts)


@Row(
    events.RepeatAndSelectDpEvent(events.GaussianDpEvent(1.0), 3.0, 1.0),
    "Papernot and Steinke 2022, Theorems 2 and 6; a law from [the profile of a run]"
    "(../explanation/accountant.md#the-best-of-many-runs)",
)
def _repeat_and_select(event: events.RepeatAndSelectDpEvent, relation: str) -> Pairs:
    single = decompose(event.event, relation)
    if not single.private:
        raise refuse(event, relation, "What is repeated is not private.")
    mean = validate.positive(mean=event.mean)
    shape = event.shape if event.shape == math.inf else validate.finite(shape=event.shape)
    normal(shape=shape)
    if mean > _MOST_RUNS or _MOST_RUNS < shape < math.inf:
        raise ValueError(
            f"mean and shape must be at most {_MOST_RUNS:g}, or shape infinite, got {mean!r} and "
            f"{shape!r}."
        )
    if not shape > -1:
        raise ValueError(f"shape must be a number > -1, got {shape!r}.")
    if math.isfinite(shape):
        if mean < 1:
            raise ValueError(f"mean must be a number >= 1 unless shape is infinite, got {mean!r}.")
        if not log_inverse_gamma(mean, shape) < _MOST_LOG_INVERSE:
            raise ValueError(
                f"shape must be further from -1 for a mean of {mean!r} runs, got {shape!r}."
            )
    pairs = [
        RepeatedSelection(single.directions, mean, shape, forward)
        for forward in (True, len(single.directions) == 1)
    ]
    if all(item.finite[0] == 0 for item in single.directions):
        return pairs[0], pairs[1]
    # A run that may fail has no finite Renyi divergences, but its profile may be known.
    remove, add = (pair.law for pair in pairs)
    if remove is None or add is None:
        raise refuse(event, relation, "What is repeated has infinite Renyi divergences.")
    return remove, add
