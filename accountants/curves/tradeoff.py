r"""Trade-off curves, and risks read off them: the limits of an attacker.

An attacker who sees the output tests whether a record was in the data. The most powerful test with
a given false-positive rate against a dominating pair has

    true-positive rate(alpha) = min over all real epsilon of delta(epsilon) + exp(epsilon) alpha,

the convex dual of the privacy profile (Dong, Roth and Su 2022). For epsilon < 0 the profile follows
from the other direction: delta(epsilon) = 1 - exp(epsilon) + exp(epsilon) delta'(-epsilon). Every
epsilon gives a valid upper bound; convexity in exp(epsilon) gives the lower bound from three points
around the best one.

>>> from dpcal.accountants import events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)
>>> print(f"{true_positive_rate(event, false_positive_rate=1e-3):.6f}")
0.004068
>>> print(f"{advantage(event):.6f} {bayes_success(event, prior=0.1):.6f}")
0.161018 0.900000
>>> print(f"{gdp_mu(event):.3f}")
0.516
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal._internal.lazy import special
from dpcal.accountants import characteristic
from dpcal.accountants.answers import Bounds, Risk
from dpcal.accountants.characteristic import DirectionProfile
from dpcal.accountants.curves.conversions import largest_mu
from dpcal.accountants.directions import Direction, relation_of
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.base import Reals
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT, exp_down, exp_up

NULLS = ("absent", "present", "either")

_FIRST_POINTS = 65
_POINTS = 17
_ROUNDS = 6

# Points of the profile for the search of the tightest Gaussian curve.
_LINES = 257
# Error of a normal quantile x, over 1 + |x|: ten times the error that mpmath finds.
_QUANTILE = 1e-11
# A pair with exp(-epsilon) below this does not change the curve visibly.
_NO_LINE = 1e-300


class _Test:
    """The best tests of one null hypothesis: delta at real epsilons."""

    def __init__(self, forward: Direction, backward: Direction) -> None:
        self._forward = DirectionProfile(forward)
        self._backward = self._forward if forward is backward else DirectionProfile(backward)

    def delta(self, epsilon: float) -> Bounds:
        """Return bounds on delta at an epsilon of either sign."""
        low, high = self.deltas(np.array([epsilon]))
        return Bounds(float(low[0]), float(high[0]), "contour")

    @cached_property
    def at_zero(self) -> Bounds:
        """Bounds on delta at 0, the largest difference of the two rates."""
        return self.delta(0.0)

    def deltas(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return lower and upper bounds on delta at epsilons of either sign."""
        low, high = np.empty(len(epsilons)), np.empty(len(epsilons))
        other = epsilons < 0
        for rows, profile in ((~other, self._forward), (other, self._backward)):
            if rows.any():
                log_low, log_high = profile.log_bounds(np.abs(epsilons[rows]))
                low[rows] = [exp_down(value) for value in log_low.tolist()]
                high[rows] = [exp_up(value) for value in log_high.tolist()]
        rest, factor = -np.expm1(epsilons[other]), np.exp(epsilons[other])
        low[other] = (rest + factor * low[other]) * (1 - 8 * UNIT)
        high[other] = np.minimum(1.0, (rest + factor * high[other]) * (1 + 8 * UNIT))
        return low, high

    def lines(self, epsilons: Reals, rates: Reals) -> tuple[Reals, Reals]:
        """Return bounds on delta(epsilon) + exp(epsilon) rate, above every true-positive rate."""
        low, high = (ends.reshape(epsilons.shape) for ends in self.deltas(epsilons.ravel()))
        rises = np.exp(epsilons + np.log(rates))
        errors = 8 * UNIT * (1 + np.abs(epsilons) + np.abs(np.log(rates)))
        return low + rises * (1 - errors), high + rises * (1 + errors)

    def powers(self, rates: Reals) -> tuple[Reals, Reals]:
        """Return bounds on the best true-positive rates at false-positive rates, shape (n,)."""
        column = rates[:, None]
        at_zero = np.minimum(self.at_zero.upper + rates * (1 + 8 * UNIT), 1.0)
        ends = np.log(at_zero / rates) + 1e-9
        starts = np.maximum(np.log(np.maximum(1 - at_zero, 1e-18) / (1 - rates)), -40.0) - 1e-9
        best, lower, number = at_zero, np.zeros(len(rates)), _FIRST_POINTS
        for _ in range(_ROUNDS):
            shares = np.linspace(0.0, 1.0, number)
            epsilons = starts[:, None] + (ends - starts)[:, None] * shares
            lows, highs = self.lines(epsilons, column)
            lower = np.maximum(lower, _minimum_from_below(epsilons, lows, highs))
            rows = np.arange(len(rates))
            places = np.argmin(highs, axis=1)
            best = np.minimum(best, highs[rows, places])
            starts = epsilons[rows, np.maximum(places - 1, 0)]
            ends = epsilons[rows, np.minimum(places + 1, number - 1)]
            number = _POINTS
        lower = np.maximum(lower, [self._power_from_advantage(float(rate)) for rate in rates])
        return np.minimum(lower, best), best

    def _power_from_advantage(self, rate: float) -> float:
        """Return a lower bound on the best true-positive rate, from delta(0).

        The curve of true- against false-positive rates is concave, holds (0, 0) and (1, 1), and is
        delta(0) above the diagonal somewhere; the extremes are at false-positive rates of 0 and 1 -
        delta(0).
        """
        rest = 1 - self.at_zero.lower + UNIT
        return max(rate, min(rate / rest, 1 - (1 - rate) * rest) - 4 * UNIT)


def _minimum_from_below(epsilons: Reals, lows: Reals, highs: Reals) -> Reals:
    """Return lower bounds on the minima of convex functions of exp(epsilon), one in each row.

    If the smallest of the points lies between two larger ones, chords through it and either of
    them, extended beyond it, stay below the function; otherwise the bound is 0.
    """
    places = np.clip(np.argmin(highs, axis=1), 1, epsilons.shape[1] - 2)[:, None] + [-1, 0, 1]
    points, low, high = (np.take_along_axis(x, places, axis=1).T for x in (epsilons, lows, highs))
    to_left, to_right = np.diff(points, axis=0)
    stretch = np.exp(to_left) * np.expm1(to_right) / np.expm1(to_left)
    drop = np.maximum((high[0] - low[1]) * stretch, (high[2] - low[1]) / stretch)
    enclosed = np.minimum(low[0], low[2]) >= high[1]
    return np.where(enclosed, low[1] - drop * (1 + 1e-6), 0.0)


def _tests(event: DpEvent, relation: str, null: str) -> list[_Test]:
    """Return the tests that attackers may use; none if the event is not private."""
    composition = decompose(event, relation_of(relation))
    validate.choice(NULLS, null=null)
    if not composition.private:
        return []
    forward, backward = composition.directions[0], composition.directions[-1]
    absent, present = _Test(forward, backward), _Test(backward, forward)
    if forward is backward:
        return [absent]
    return {"absent": [absent], "present": [present], "either": [absent, present]}[null]


def _risk(bounds: Bounds, name: str) -> Risk:
    relation = relation_of(name)
    return Risk.of(bounds, accountant="characteristic", neighboring_relation=relation)


def _worst_powers(tests: list[_Test], rates: Reals) -> tuple[Reals, Reals]:
    """Return bounds on the largest true-positive rates of any test, shape (n,)."""
    if not tests:
        return np.ones(len(rates)), np.ones(len(rates))
    lower, upper = zip(*(test.powers(rates) for test in tests), strict=True)
    return np.max(lower, axis=0), np.max(upper, axis=0)


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The smallest false-negative rates of any test, between bounds.

    Attributes
    ----------
    false_positive_rates
        Array of numbers in (0, 1).
    lower
        Array of the same length: no attack has a smaller false-negative rate.
    upper
        Array of the same length: against the dominating pair some attack has at most this rate.
    null
        ``"absent"``, ``"present"`` or ``"either"``, as in :func:`trade_off`.
    neighboring_relation
        The relation that the bounds hold for.
    """

    false_positive_rates: Reals
    lower: Reals
    upper: Reals
    null: str
    neighboring_relation: str


def trade_off(
    event: DpEvent,
    false_positive_rates: ArrayLike | None = None,
    *,
    null: str = "either",
    neighboring_relation: str = "add-or-remove-one",
) -> TradeOff:
    """Return the trade-off curve of an event: false-negative against false-positive rate.

    Parameters
    ----------
    event
        Any nesting of compositions of supported mechanisms.
    false_positive_rates
        Numbers in (0, 1); by default 33 from 0.001 to 0.999.
    null
        The hypothesis that a false positive rejects wrongly: the record is ``"absent"`` (the
        attacker looks for members), ``"present"``, or ``"either"``, the worse of the two. The
        curves differ where the mechanism is asymmetric.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``; where one record
        replaces another, the hypotheses are alike.

    >>> from dpcal.accountants import events
    >>> curve = trade_off(events.GaussianDpEvent(1.0), [0.1, 0.5])
    >>> [f"{rate:.6f}" for rate in curve.lower]
    ['0.610856', '0.158655']
    """
    if false_positive_rates is None:
        false_positive_rates = 0.5 - 0.499 * np.cos(np.linspace(0.0, np.pi, 33))
    rates = validate.each(validate.probability, false_positive_rates=false_positive_rates).ravel()
    tests = _tests(event, neighboring_relation, null)
    weakest, strongest = _worst_powers(tests, rates)
    # 1 - x is exact where the power is at least a half, and half a unit off elsewhere.
    lower = np.maximum(0.0, (1.0 - strongest) * (1 - UNIT))
    upper = np.minimum((1.0 - weakest) * (1 + UNIT), 1.0)
    return TradeOff(rates, lower, upper, null, relation_of(neighboring_relation))


def trade_off_from_deltas(
    epsilons: ArrayLike,
    deltas: ArrayLike,
    false_positive_rates: ArrayLike,
    *,
    neighboring_relation: str = "add-or-remove-one",
) -> TradeOff:
    """Return the trade-off curve that finitely many (epsilon, delta) prove.

    This serves mechanisms with a profile at single epsilons only. Each pair keeps the
    false-negative rate at or above max(1 - delta - exp(epsilon) alpha, exp(-epsilon) (1 - delta -
    alpha)), and the largest of these is a bound too (Dong, Roth and Su 2022, equation 5 and
    Proposition 2.5; Kairouz, Oh and Viswanath 2015). It is rounded down.

    Parameters
    ----------
    epsilons
        Array of k >= 1 numbers >= 0.
    deltas
        Array of k numbers in [0, 1]: the mechanism is (epsilon, delta)-differentially private for
        each pair, whichever of two neighbors comes first.
    false_positive_rates
        Numbers in (0, 1), shape (n,).
    neighboring_relation
        The relation that the pairs hold for.

    Returns
    -------
    TradeOff
        ``lower`` is the bound. ``upper`` is the rate of guessing, 1 - alpha: the pairs do not imply
        that an attack does better.

    >>> curve = trade_off_from_deltas([0.0, 1.0], [0.4, 0.1], [0.1, 0.9])
    >>> [f"{rate:.6f}" for rate in curve.lower]
    ['0.628172', '0.000000']
    """
    relation = relation_of(neighboring_relation)
    at = np.atleast_1d(validate.each(validate.non_negative, epsilons=epsilons))
    most = np.atleast_1d(validate.each(partial(validate.within, 0.0, 1.0), deltas=deltas))
    if at.shape != most.shape or at.ndim > 1 or not at.size:
        raise ValueError(
            "epsilons and deltas must be arrays of the same length >= 1, got shapes "
            f"{at.shape} and {most.shape}."
        )
    rates = validate.each(validate.probability, false_positive_rates=false_positive_rates).ravel()
    lower = np.zeros(len(rates))
    for epsilon, delta in zip(at.tolist(), most.tolist(), strict=True):
        if (fall := exp_down(-epsilon)) >= _NO_LINE:
            steep = 1 - delta - rates / fall * (1 + 2 * UNIT) - 4 * UNIT
            flat = fall * (1 - delta - rates - 4 * UNIT) * (1 - 2 * UNIT)
            lower = np.maximum(lower, np.maximum(steep, flat))
    upper = np.minimum((1.0 - rates) * (1 + UNIT), 1.0)
    return TradeOff(rates, lower, upper, "either", relation)


def true_positive_rate(
    event: DpEvent,
    *,
    false_positive_rate: float,
    null: str = "either",
    neighboring_relation: str = "add-or-remove-one",
) -> Risk:
    """Return the largest true-positive rate of any test at a false-positive rate, rounded up.

    For ``event`` and ``neighboring_relation`` see :func:`dpcal.accountants.epsilon`.

    Parameters
    ----------
    false_positive_rate
        A number in (0, 1).
    null
        ``"absent"``, ``"present"`` or ``"either"``, as in :func:`trade_off`.

    Returns
    -------
    Risk
        A float equal to its upper bound, with ``.lower`` and ``.upper``.
    """
    rate = validate.probability(false_positive_rate=false_positive_rate)
    tests = _tests(event, neighboring_relation, null)
    lower, upper = _worst_powers(tests, np.array([rate]))
    method = "dual of the profile" if tests else "non-private event"
    return _risk(Bounds(float(lower[0]), float(upper[0]), method), neighboring_relation)


def advantage(event: DpEvent, *, neighboring_relation: str = "add-or-remove-one") -> Risk:
    """Return the largest true-positive minus false-positive rate of any test, rounded up.

    It is delta(0), the total variation distance of the dominating pair.

    For ``event`` and ``neighboring_relation`` see :func:`dpcal.accountants.epsilon`.
    """
    tests = _tests(event, neighboring_relation, "either")
    bounds = [test.at_zero for test in tests] or [Bounds(1.0, 1.0, "non-private event")]
    return _risk(Bounds.worst(bounds), neighboring_relation)


def bayes_success(
    event: DpEvent, *, prior: float, neighboring_relation: str = "add-or-remove-one"
) -> Risk:
    """Return the largest chance of guessing a record's membership, given a prior, rounded up.

    With prior pi and epsilon = log((1 - pi) / pi) it is 1 - pi + pi delta(epsilon), which is at
    least max(pi, 1 - pi), the chance of a guess without the output.

    For ``event`` and ``neighboring_relation`` see :func:`dpcal.accountants.epsilon`.

    Parameters
    ----------
    prior
        Probability in (0, 1) that the record is present.
    """
    pi = validate.probability(prior=prior)
    tests = _tests(event, neighboring_relation, "either")
    if not tests:
        return _risk(Bounds(1.0, 1.0, "non-private event"), neighboring_relation)
    test, rarer = (tests[0], pi) if pi <= 0.5 else (tests[-1], 1.0 - pi)
    # Delta falls in epsilon: epsilon is rounded down for the upper bound, and up for the lower.
    epsilon = max(0.0, math.log1p(-rarer) - math.log(rarer))
    margin = 8 * UNIT * epsilon
    delta = test.delta(max(0.0, epsilon - margin))
    lower = (1 - rarer + rarer * test.delta(epsilon + margin).lower) * (1 - 4 * UNIT)
    upper = (1 - rarer + rarer * delta.upper) * (1 + 4 * UNIT)
    return _risk(Bounds(lower, min(1.0, upper), delta.method), neighboring_relation)


def attack_risk(
    event: DpEvent,
    *,
    false_positive_rate: float | None = None,
    prior: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
) -> Risk:
    """Return the largest success of any attack on a record's membership, rounded up.

    For ``event`` and ``neighboring_relation`` see :func:`dpcal.accountants.epsilon`.

    Parameters
    ----------
    false_positive_rate
        A number in (0, 1): the success is the true-positive rate of the best test at it. Without a
        rate and a prior it is the best difference of true-positive and false-positive rates.
    prior
        Probability in (0, 1) that the record is present: success means the best guess.

    Raises
    ------
    ValueError
        If both a rate and a prior are given, or an argument is out of range.

    >>> from dpcal.accountants.events import GaussianDpEvent
    >>> found = [attack_risk(GaussianDpEvent(2.0), **how) for how in ({}, {"prior": 0.5})]
    >>> print(*(f"{risk:.4f}" for risk in found))
    0.1974 0.5987
    """
    relation = {"neighboring_relation": relation_of(neighboring_relation)}
    if false_positive_rate is not None and prior is not None:
        given = f"{false_positive_rate!r} and {prior!r}"
        raise ValueError(f"false_positive_rate and prior exclude each other, got {given}.")
    if false_positive_rate is not None:
        return true_positive_rate(event, false_positive_rate=false_positive_rate, **relation)
    if prior is not None:
        return bayes_success(event, prior=prior, **relation)
    return advantage(event, **relation)


def squared_gdp_mu(direction: Direction) -> float | None:
    """Return mu^2 of a composition of Gaussian mechanisms, rounded up; None if there are others.

    Gaussian mechanisms compose to one with mu^2 = sum 1 / sigma_i^2 (Dong, Roth and Su 2022, on
    the composition of Gaussian trade-off functions).
    """
    total = 0.0
    for loss, times in direction.parts:
        if not isinstance(loss, Gaussian):
            return None
        total += times / loss.noise_multiplier**2 * (1 + 4 * UNIT)
    return total * (1 + len(direction.parts) * UNIT)


def gdp_mu(
    event: DpEvent, *, slack: float = 1e-10, neighboring_relation: str = "add-or-remove-one"
) -> Risk:
    """Return mu of the tightest Gaussian-DP curve below the event's trade-off curve, rounded up.

    Guaranteed: delta(epsilon) <= delta_mu(epsilon) + slack at every epsilon >= 0, that is, every
    false-negative rate is at least that of mu-GDP, minus slack. The tails of a sampled mechanism
    have the mu of no sampling, which is useless; slack leaves them out. Compositions of Gaussian
    mechanisms need no slack and get their exact mu.

    Parameters
    ----------
    event
        Any nesting of compositions of supported mechanisms.
    slack
        A number in (0, 1): largest excess of delta over the Gaussian mechanism's.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    Risk
        A float equal to its upper bound. ``.lower`` is proved too: no smaller mu has the property.
    """
    level = validate.probability(slack=slack)
    composition = decompose(event, relation_of(neighboring_relation))
    bounds = [Bounds(math.inf, math.inf, "non-private event")]
    if composition.private:
        bounds = [_gdp_mu(direction, level) for direction in composition.directions]
    return _risk(Bounds.worst(bounds), neighboring_relation)


def _gdp_mu(direction: Direction, slack: float) -> Bounds:
    squared = squared_gdp_mu(direction)
    if squared is not None:
        mu, rounding = math.sqrt(squared) * (1 + UNIT), (16 + 2 * len(direction.parts)) * UNIT
        # A Gaussian that is rounded up only dominates the mechanism.
        least = squared_gdp_mu(direction.below or direction) or 0.0
        return Bounds(math.sqrt(least) * (1 - rounding), mu, "closed form")
    end = characteristic.epsilon_bounds(direction, math.log(slack))
    if end.upper in (0.0, math.inf):
        return Bounds(end.upper if end.lower == end.upper else 0.0, end.upper, "slack")
    # The point before the last still proves a lower bound: mu is often attained near it.
    points = np.array([*np.linspace(0.0, end.lower * (1 - 1e-4), _LINES), end.upper])
    return _mu_of_profile(points, *DirectionProfile(direction).log_bounds(points), slack)


def _mu_of_profile(epsilons: Reals, log_low: Reals, log_high: Reals, slack: float) -> Bounds:
    """Return bounds on mu from bounds on log delta at increasing epsilons; at the last, <= slack.

    Delta is convex in x = exp(epsilon), so it lies below a line E - v x through two neighbors. As
    delta_mu is the supremum over v of Phi(Phi^-1(v) + mu) - v x, a line with E - slack <=
    Phi(Phi^-1(v) + mu) lies below delta_mu + slack. The best mu meets this for each exact chord,
    which lies below delta beyond its two points.
    """
    deltas, widths = np.exp(log_high) * (1 + 8 * UNIT), np.diff(epsilons)
    deltas[-1] = min(deltas[-1], slack)
    starts, ends = epsilons[:-1], epsilons[1:]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_v = np.log(np.maximum(-np.diff(deltas), 0.0)) - np.log(-np.expm1(-widths)) - ends
        log_v = np.minimum(log_v, -1e-16)
        tops = np.maximum(deltas[:-1] + np.exp(log_v + starts), deltas[1:] + np.exp(log_v + ends))
        excesses = tops * (1 + 8 * UNIT * (1 + np.abs(log_v) + ends)) - slack
        low, high = special.ndtri_exp(log_v), special.ndtri(np.minimum(excesses, 1.0))
        mus = high - low + _QUANTILE * (1 + np.abs(high) + np.abs(low))
        mus = np.where(excesses <= 0, 0.0, mus)
        worst, lower = int(np.argmax(mus)), 0.0
        touching = -mus[worst] * (low[worst] + mus[worst] / 2)
    for place in np.clip(np.searchsorted(epsilons, touching) - [1, 0], 0, len(epsilons) - 1):
        excess = exp_down(float(log_low[place])) * (1 - UNIT) - slack
        if excess > 0:
            lower = max(lower, largest_mu(float(epsilons[place]), math.log(excess) - 4 * UNIT))
    return Bounds(lower, float(mus[worst]), "supporting lines")
