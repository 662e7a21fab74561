"""Random compositions, with each answer checked by independent bounds.

    python -m benchmarks sweep           # the families "everywhere" and "little_noise" of the gate

Sampling probabilities from 1e-9 to 1, noise multipliers from 0.1 to 1e4, up to 1e9 steps, one
mechanism or several hundred; delta at an epsilon from 1e-8 to 1e4, and epsilon at a delta down to
1e-300 and, in logarithms, far below. With little noise, multipliers go from 0.002 to 0.8 and
epsilons from a thousandth of the largest cost of one step: losses of many hundreds, too large for
their exponentials to be doubles. No answer may be NaN, or lie on the wrong side of

* a lower bound: what a test that somebody could really run achieves (some step stands out; the
  average of all steps is high), and the cost of one step by itself, all in closed form;
* an upper bound: Renyi's at integer orders, whose moments are binomial sums;
* for some of the points, bounds proved in ball arithmetic, where these take little.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, log_ndtr

from benchmarks.limits import TooSlow, at_most
from dpcal.accountants import (
    certify,
    characteristic,
    epsilon as epsilon_of,
    events,
    log_delta,
    renyi,
)
from dpcal.accountants.answers import Bounds
from dpcal.accountants.losses.gaussian import Gaussian, log_gaussian_delta
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import TargetUnreachable, UnsupportedEvent

# Seconds of a proof, after which it is given up.
_BALL_SECONDS = 5
# Relative rounding of the checks themselves, in logarithms.
_ROUNDING = 1e-11
_ORDERS = np.unique(np.round(np.geomspace(2, 1000, 60))).astype(int)
_EVENT_RANGE = (60.0, 4000)
# Most mechanisms of a composition for ball arithmetic.
_BALL_PARTS = 5


@dataclass(frozen=True)
class Point:
    """One question: steps (q, sigma, T), and epsilon or log delta; one of the two is given."""

    steps: tuple[tuple[float, float, int], ...]
    epsilon: float | None
    log_delta: float | None

    @property
    def event(self):
        """The composition of the steps."""
        return events.ComposedDpEvent(
            [
                events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=times)
                for q, sigma, times in self.steps
            ]
        )

    @property
    def directions(self):
        """The losses that add up, in either direction."""
        return decompose(self.event, "add-or-remove-one").directions


def draw(seed, index):
    """The point of a sweep with this index; the same on every machine."""
    rng = np.random.default_rng([seed, index])
    distinct = int(rng.choice([1, 2, 5, 40, 200], p=[0.7, 0.15, 0.08, 0.05, 0.02]))
    q = 10 ** rng.uniform(-9, 0)
    sigma = 10 ** rng.uniform(-1, rng.choice([0.7, 4.0]))
    times = 10 ** rng.uniform(0, 9)
    steps = []
    for _ in range(distinct):
        spread = 10 ** rng.uniform(-0.5, 0.5, size=3) if distinct > 1 else np.ones(3)
        whole = distinct == 1 and rng.uniform() < 0.03
        steps.append(
            (
                1.0 if whole else min(1.0, max(1e-9, q * spread[0])),
                min(1e4, max(0.1, sigma * spread[1])),
                int(min(1e9, max(1, times * spread[2]))),
            )
        )
    kind = rng.choice(["epsilon", "delta", "far"], p=[0.45, 0.45, 0.1])
    if kind == "epsilon":
        return Point(tuple(steps), float(10 ** rng.uniform(-8, 4)), None)
    exponent = rng.uniform(-12, -0.5) if rng.uniform() < 0.6 else rng.uniform(-300, -12)
    scale = 10 ** rng.uniform(0, 3) if kind == "far" else 1.0
    return Point(tuple(steps), None, float(exponent * math.log(10) * scale))


def draw_with_little_noise(seed, index):
    """The point of a sweep with this index among losses with exponentials that overflow."""
    rng = np.random.default_rng([seed, index])
    distinct = int(rng.choice([1, 2, 5], p=[0.6, 0.25, 0.15]))
    q, sigma = 10 ** rng.uniform(-9, 0), 10 ** rng.uniform(-2.7, -0.6)
    times = 10 ** rng.uniform(0, rng.choice([1.5, 6]))
    steps = []
    for _ in range(distinct):
        spread = 10 ** rng.uniform(-0.5, 0.5, size=3) if distinct > 1 else np.ones(3)
        steps.append(
            (min(1.0, max(1e-9, q * spread[0])), sigma * spread[1], int(max(1, times * spread[2])))
        )
    if rng.uniform() < 0.5:
        return Point(tuple(steps), float(10 ** rng.uniform(-3, 1) / (2 * sigma**2)), None)
    return Point(tuple(steps), None, float(rng.uniform(-12, -0.05) * math.log(10)))


def ask(point):
    """The accountant's interval, for log delta or for epsilon."""
    if point.epsilon is not None:
        answer = log_delta(point.event, epsilon=point.epsilon)
        return Bounds(answer.lower, answer.upper, answer.method)
    if point.log_delta > math.log(sys.float_info.min):
        answer = epsilon_of(point.event, delta=math.exp(point.log_delta))
        return Bounds(answer.lower, answer.upper, answer.method)
    return characteristic.worst_epsilon_bounds(point.directions, point.log_delta)


def _log_difference(first, second):
    """Log of exp(first) - exp(second), less rounding, where the difference keeps its digits."""
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    error = _ROUNDING * (1 + np.abs(first) + np.abs(second))
    gap = second - first + 2 * error
    with np.errstate(divide="ignore", invalid="ignore"):
        value = first - error + np.log(-np.expm1(np.minimum(gap, -1e-12)))
    return np.where((gap < -1e-9) & np.isfinite(first), value, -math.inf)


def _log_any(log_chances, times):
    """Log of the chance that any of independent trials succeeds, along the last axis."""
    with np.errstate(divide="ignore", over="ignore"):
        missed = times * np.log1p(-np.minimum(np.exp(log_chances), 1 - 1e-16))
        rare = np.logaddexp.reduce(log_chances + np.log(times), axis=-1)
        common = np.log(-np.expm1(missed.sum(axis=-1)))
    # A sum of chances s exceeds the chance of any by less than s^2 / 2.
    return np.where(rare < -26, rare, common)


def _outlier_test(direction, epsilon):
    """Guess that the record is in (out, when adding) if any step's loss exceeds a threshold."""
    parts = [(loss, times) for loss, times in direction.parts if not isinstance(loss, Gaussian)]
    if not parts:
        return -math.inf
    sign = -1.0 if direction.name == "add" else 1.0
    q = np.array([loss.sampling_probability for loss, _ in parts])
    sigma = np.array([loss.noise_multiplier for loss, _ in parts])
    times = np.array([float(times) for _, times in parts])
    reach = np.linspace(-2.0, 40.0, 400)[:, None]
    if sign > 0:
        start = 0.5 + reach * sigma[0]
        with np.errstate(over="ignore"):
            level = np.log1p(-q[0]) + np.logaddexp(
                0, np.log(q[0] / (1 - q[0])) + (start - 0.5) / sigma[0] ** 2
            )
        level = np.maximum(level, 1e-300)
        log_excess = np.where(level > 30, level, np.log(np.expm1(np.minimum(level, 30))))
        edge = 0.5 + sigma**2 * np.logaddexp(0.0, log_excess - np.log(q))
    else:
        edge = 0.5 - reach * sigma
    out = log_ndtr(-sign * edge / sigma)
    with np.errstate(divide="ignore"):
        within = np.logaddexp(np.log1p(-q) + out, np.log(q) + log_ndtr(-sign * (edge - 1) / sigma))
    mixed, plain = _log_any(within, times), _log_any(out, times)
    pair = (mixed, plain) if sign > 0 else (plain, mixed)
    return float(_log_difference(pair[0], epsilon + pair[1]).max())


def _average_test(direction, epsilon):
    """Guess by the sum of the outputs of the most frequent sampled mechanism."""
    parts = [(loss, times) for loss, times in direction.parts if not isinstance(loss, Gaussian)]
    if not parts:
        return -math.inf
    loss, times = max(parts, key=lambda part: part[1] * part[0].sampling_probability)
    q, sigma = loss.sampling_probability, loss.noise_multiplier
    spread, most = _EVENT_RANGE
    mean, deviation = times * q, math.sqrt(times * q * (1 - q))
    first = max(0, math.floor(mean - 8 * deviation))
    last = min(times, math.ceil(mean + spread * deviation + spread))
    if last - first > most:
        return -math.inf
    hits = np.arange(first, last + 1.0)
    log_choose = gammaln(times + 1.0) - gammaln(hits + 1) - gammaln(times - hits + 1)
    weights = log_choose + hits * math.log(q) + (times - hits) * math.log1p(-q)
    weights -= 1e-14 * (gammaln(times + 1.0) + 1)
    noise = sigma * math.sqrt(times)
    top = max(3 * (last - mean), 40 * noise)
    if direction.name == "add":
        if first > 0:
            return -math.inf
        edges = np.linspace(mean - top, mean + noise, 120)
        plain = log_ndtr(edges / noise)
        mixed = np.logaddexp.reduce(
            2e-14 * (gammaln(times + 1.0) + 1)
            + weights
            + log_ndtr((edges[:, None] - hits) / noise),
            axis=1,
        )
        if last < times:
            mixed = np.logaddexp(mixed, log_ndtr((edges - last - 1) / noise))
        return float(_log_difference(plain, epsilon + mixed).max())
    edges = np.concatenate(
        [np.linspace(-noise, mean + top, 100), mean + noise * np.linspace(0, 6, 40)]
    )
    plain = log_ndtr(-edges / noise)
    mixed = np.logaddexp.reduce(weights + log_ndtr((hits - edges[:, None]) / noise), axis=1)
    return float(_log_difference(mixed, epsilon + plain).max())


def _one_step(direction, epsilon):
    """The closed form of the worst single step; Gaussian steps taken together."""
    best, squares = -math.inf, 0.0
    for loss, times in direction.parts:
        if isinstance(loss, Gaussian):
            squares += times / loss.noise_multiplier**2
            continue
        value, error = loss.log_delta(epsilon)
        if error < 0.1:
            best = max(best, value - 2 * error)
    if squares > 0:
        value, error = log_gaussian_delta(epsilon, math.sqrt(squares))
        if error < 0.1:
            best = max(best, value - 2 * error)
    return best


def log_delta_from_below(point, epsilon):
    """A lower bound on log delta that no transform enters."""
    tests = (_one_step, _outlier_test, _average_test)
    value = max(test(item, epsilon) for test in tests for item in point.directions)
    return value - _ROUNDING * (1 + abs(value))


def _log_moments(loss):
    """Log M(order - 1) at the integer orders, by binomial sums (removing dominates adding)."""
    variance = loss.noise_multiplier**2
    if isinstance(loss, Gaussian):
        return (_ORDERS * (_ORDERS - 1.0)) / (2 * variance)
    q = loss.sampling_probability
    values = []
    for order in _ORDERS:
        k = np.arange(2, order + 1.0)
        # The terms of a binomial law sum to 1: what each is multiplied with exceeds 1 by this.
        gain = (k * k - k) / (2 * variance)
        log_gain = np.where(gain > 30, gain, np.log(np.expm1(np.minimum(gain, 30))))
        terms = gammaln(order + 1.0) - gammaln(k + 1) - gammaln(order - k + 1)
        terms = terms + k * math.log(q) + (order - k) * math.log1p(-q) + log_gain
        values.append(np.logaddexp(0.0, np.logaddexp.reduce(terms)))
    return np.array(values)


def log_delta_from_above(point, epsilon):
    """Renyi's upper bound at integer orders, which no quadrature enters."""
    c = _ORDERS - 1.0
    total = sum(times * _log_moments(loss) for loss, times in point.directions[0].parts)
    total = total * (1 + 1e-11)
    factor = c * np.log(c) - (1 + c) * np.log1p(c)
    value = min(0.0, float((total - c * epsilon + factor).min()))
    return value + _ROUNDING * (1 + abs(value) + abs(epsilon))


def log_delta_in_balls(point, epsilon):
    """Proved bounds on log delta; None where a proof takes long."""
    if len(point.steps) > _BALL_PARTS:
        return None
    try:
        with at_most(_BALL_SECONDS):
            proof = certify(point.event, epsilon=epsilon)
    except (TargetUnreachable, TooSlow, UnsupportedEvent):
        return None
    low, high = (float(end.ln()) if end else -math.inf for end in (proof.lower, proof.upper))
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def problems(point, answer, *, balls=False):
    """Sentences on the faults of an answer, and whether ball arithmetic checked it."""
    found, asked = [], False
    if math.isnan(answer.lower) or math.isnan(answer.upper) or answer.lower > answer.upper:
        return [f"no interval: [{answer.lower!r}, {answer.upper!r}]"], asked
    if point.epsilon is not None:
        at_upper = at_lower = point.epsilon
        claimed_upper, claimed_lower = answer.upper, answer.lower
        best = max(renyi.log_delta_bounds(item, point.epsilon).upper for item in point.directions)
        loose = answer.upper > best + 1e-9 * (1 + abs(best))
    else:
        at_upper, at_lower = answer.upper, answer.lower
        claimed_upper = claimed_lower = point.log_delta
        best = max(renyi.epsilon_bounds(item, point.log_delta).upper for item in point.directions)
        loose = answer.upper > best * (1 + 1e-9)
    if loose:
        found.append(f"above Renyi's bound {best!r}")
    if math.isfinite(at_upper) and log_delta_from_below(point, at_upper) > claimed_upper:
        found.append("unsafe: a test achieves more than the upper end")
    if at_lower > 0 and log_delta_from_above(point, at_lower) < claimed_lower:
        found.append("lower end above a Renyi bound at an integer order")
    if balls and math.isfinite(at_upper):
        proved = log_delta_in_balls(point, at_upper)
        asked = proved is not None
        if asked and proved[0] > claimed_upper:
            found.append(f"unsafe: ball arithmetic proves log delta >= {proved[0]!r}")
        if asked and at_lower == at_upper > 0 and proved[1] < claimed_lower:
            found.append(f"lower end above what ball arithmetic proves, {proved[1]!r}")
        if asked and at_lower < at_upper and at_lower > 0:
            proved = log_delta_in_balls(point, at_lower)
            if proved is not None and proved[1] < claimed_lower:
                found.append(f"lower end above what ball arithmetic proves, {proved[1]!r}")
    return found, asked
