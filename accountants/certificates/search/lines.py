"""On which lines is a transform summed with the least work, to some digits? Chosen in doubles.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> line = lines_of(SampledGaussian(0.01, 1.0, "remove"), digits=20.0).along(3.0, 10.0, 20)
>>> 0 < line.angle < 1.5, line.first < 0 < line.last
(True, True)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln, loggamma

from dpcal._ext.question import mixture_log_weights
from dpcal.accountants.certificates.transforms import MAX_POINTS, Line
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss, Reals
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["Lines", "lines_of"]

# Largest angle of the line of a sampled Gaussian, and the distance from the real axis, in standard
# deviations of the noise over the root of the digits, at which points times their digits are least.
_WIDEST, _DISTANCE = 1.3, 0.47
# Angles of the ray of an epoch that are tried.
_TURNS = (np.pi / 2 - np.geomspace(0.06, 1.2, 14)).tolist()
# Shares of the widest strips that are tried.
_SHARES = np.arange(1, 32) / 32
# Powers of L whose means bound what lies beyond the last point.
_POWERS = 2.0 ** np.arange(-2, 12, 0.5)
# Nats by which means over a batch are more accurate than sums of their powers need.
_SPARE_OF_MEANS = 6.0
# Most work of a line of an epoch: a few seconds; and that of a point, in products of a point and a
# node: functions, and products of polynomials.
_MOST_WORK, _FUNCTIONS, _POLYNOMIALS = 1.5e8, 150.0, 40.0


class Lines:
    """The lines on which the transform of a loss is summed to ``digits`` nats.

    A Gaussian, which has a closed form, has none.
    """

    def __init__(self, loss: Any, digits: float) -> None:
        self.loss, self.digits = loss, digits

    def along(self, c: float, far: float, nodes: int) -> Line | None:
        """Return a line for so many nodes from c to c + i far."""
        return None

    def nats_lost(self, c: float, line: Line) -> float:
        """Return the nats by which terms exceed their sum on a line, roughly."""
        return 0.0

    def log_beyond(self, c: float, t: float) -> float:
        """Return the log of a bound on the transform beyond c + i t, roughly."""
        return float((c * c + c - t * t) / (2 * self.loss.noise_multiplier**2))


class _OfSample(Lines):
    """Lines of the trapezoid rule of a sampled Gaussian."""

    def along(self, c: float, far: float, nodes: int) -> Line:
        """Return the coarsest line that is accurate enough.

        Two bounds on log M are known, by convexity and by the smallest w: points are needed where
        neither bound is small.
        """
        loss, sigma, power = self.loss, self.loss.noise_multiplier, float(self.loss._power(c))
        value = float(loss.cumulants([c])[0, 0])
        convex = max(loss.log_mgf_bound(c) - value, 0.0)
        flat = max(min(c * loss.upper - value, 1e300), 0.0)
        fixed = self.digits + min(convex, flat)
        # The growth of weights of an added record is like that of wider noise.
        wide = math.hypot(sigma, math.sqrt(max(-power, 0.0)) / 2)
        angle = min(_WIDEST, _DISTANCE * math.sqrt(fixed) / wide)
        turned = min(0.0, power) * math.log(math.cos(angle))
        needed = fixed + 2 * (angle * sigma) ** 2 + turned
        step = 2 * math.pi * angle * sigma**2 / needed
        growth = self.digits + (angle * sigma) ** 2 / 2 + turned
        near, far = (sigma * math.sqrt(2 * (growth + excess)) for excess in (convex, flat))
        low, high = max(min(0.0, power) - near, -far), min(max(0.0, power) + near, far)
        if not (high - low) / step < MAX_POINTS - 2:
            raise OutOfReach
        return Line(angle, step, math.floor(low / step), math.ceil(high / step))

    def nats_lost(self, c: float, line: Line) -> float:
        """Return the growth of the density on the line, and of the weights."""
        removing = self.loss.direction == "remove"
        turned = 0.0 if removing else -c * math.log(math.cos(line.angle / 2))
        return float((line.angle * self.loss.noise_multiplier) ** 2 / 2 + turned)

    def log_beyond(self, c: float, t: float) -> float:
        """Return the log of the sum of absolute values on the line, with the error of the rule."""
        sizes, rates = _decay(self.loss, c, self.along(c, 0.0, 1))
        error = float(self.loss.cumulants([c])[0, 0]) - self.digits
        return float(np.logaddexp(np.logaddexp.reduce(sizes - t * rates), error))


@lru_cache(maxsize=64)
def _decay(loss: SampledGaussian, c: float, line: Line) -> tuple[Reals, Reals]:
    """Return the logarithms of the terms of a line at c, and the rates at which these fall."""
    sigma, power = loss.noise_multiplier, float(loss._power(c))
    x = line.step * np.arange(line.first, line.last + 1.0)
    weights = mixture_log_weights(x, loss.sampling_probability, sigma, line.angle)
    sizes = 0.5 * ((line.angle * sigma) ** 2 - (x / sigma) ** 2) + power * weights.real
    return sizes + math.log(line.step / (sigma * math.sqrt(2 * math.pi))), weights.imag


class _OfEpoch(Lines):
    """Rays of the transform of an epoch of random allocation."""

    def along(self, c: float, far: float, nodes: int) -> Line:
        """Return the ray with nearly the least work."""
        return _ray(self.loss, c, far, nodes, self.digits)

    def nats_lost(self, c: float, line: Line) -> float:
        """Return the nats to which the sums over x are accurate, beyond those of the transform."""
        return float((line.reach * line.step * self.loss.noise_multiplier) ** 2 / 2 - self.digits)

    def log_beyond(self, c: float, t: float) -> float:
        """Return the log of the bound by a projection."""
        return float(self.loss.cumulants([c])[0, 0] - self.loss.rate_of_decay * t * t)


def lines_of(loss: PrivacyLoss, digits: float) -> Lines:
    """Return the lines of a loss that has a transform."""
    sampled, epoch = isinstance(loss, SampledGaussian), isinstance(loss, Allocation)
    return (_OfSample if sampled else _OfEpoch if epoch else Lines)(loss, digits)


@lru_cache(maxsize=64)
def _ray(loss: Allocation, c: float, far: float, nodes: int, digits: float) -> Line:
    """Return the ray with nearly the least work, for the values from c to c + i far."""
    u = np.array([0.0, far / 2, far]) if far else np.zeros(1)
    needed = _Needed(c, u, float(loss.cumulants([c])[0, 0]), digits)
    found = [_at_angle(loss, needed, angle, nodes) for angle in _TURNS]
    work, line = min(found, key=lambda item: item[0])
    if line is None or not work < _MOST_WORK:
        raise OutOfReach
    return line


class _Needed:
    """The points c - i u at which F is needed, its log size there at u = 0, and its digits."""

    def __init__(self, c: float, u: Reals, size: float, digits: float) -> None:
        self.c, self.u, self.size, self.digits = c, u, size, digits
        self.log_gamma = np.real(loggamma(c - 1j * u))

    def scale(self, angle: float) -> Reals:
        """Return the log of what terms are divided by, to be relative to F at u = 0."""
        return np.asarray(self.log_gamma + self.u * angle + self.size)

    def step(self, angle: float) -> float:
        """Return the largest step of v."""
        steps, shares = [], _SHARES[:, None]
        for sign, widest in ((1, math.pi / 2 + angle), (-1, math.pi / 2 - angle)):
            y = widest * shares
            away = angle - sign * y
            sizes = gammaln(self.c) - self.log_gamma - self.u * away - self.c * np.log(np.cos(away))
            steps.append((2 * math.pi * y / np.maximum(sizes + self.digits, 1.0)).max(0))
        return float(np.min(steps))


def _at_angle(
    loss: Allocation, needed: _Needed, angle: float, nodes: int
) -> tuple[float, Line | None]:
    """Return the work of a ray at this angle, and the ray; infinity if too much."""
    c = needed.c
    if c < 1e-3:
        return math.inf, None
    step, goal = needed.step(angle), needed.scale(angle) - needed.digits
    low = float(((goal - math.log(1 / c + step)) / c).min())
    k = _POWERS[:, None]
    # The log of a bound on G at Re s = r, for each power, without its -k log r.
    bounds = _log_moment_bounds(loss)[:, None] + k * (np.log(k) - 1)
    falls = k - c
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = bounds - k * math.log(math.cos(angle)) + np.log(1 / falls + step) - goal
        high = float(np.where(falls > 0, ends / falls, math.inf).min(0).max())
    if not low < high < math.inf:
        return math.inf, None
    nats = needed.digits + _SPARE_OF_MEANS + _lost(needed, angle, (low, high), loss)
    for group in loss.groups:
        t = 1 / group.noise_multiplier
        d = (math.pi / 2 - angle) / t * _SHARES
        step = min(step, t * float((2 * math.pi * d / (nats + 1 + d * d / 2)).max()))
    reach = math.ceil(math.sqrt(2 * nats) / (loss.noise_multiplier * step)) + 2
    points = (high - low) / step
    if not max(points, reach) < MAX_POINTS / 4:
        return math.inf, None
    line = Line(angle, step, math.floor(low / step), math.ceil(high / step), reach)
    table = (points + 2 * reach) * len(loss.groups)
    work = points * (nodes + _FUNCTIONS) + table * _FUNCTIONS + _POLYNOMIALS * (table + 2 * reach)
    return work * max(1.0, nats / 90) ** 1.5, line


def _log_moment_bounds(loss: Allocation) -> Reals:
    """Return bounds on log E L^-n for each of the powers."""
    drift = sum(chance / sigma**2 for sigma, _, chance in loss.groups)
    spread = sum(chance**2 / (m * sigma**2) for sigma, m, chance in loss.groups)
    return np.asarray(_POWERS * drift / 2 + _POWERS**2 * spread / 2)


def _lost(needed: _Needed, angle: float, ends: tuple[float, float], loss: Allocation) -> float:
    """Return the nats that errors of the means grow by in F.

    An error of a mean is multiplied by the other factors of the power, which fall with v as G does.
    """
    batches = sum(group.batches for group in loss.groups)
    largest = max(chance / m for _, m, chance in loss.groups)
    v = np.linspace(*ends, 65)
    log_r = v + math.log(math.cos(angle))
    powers = _POWERS[:, None]
    falls = powers * (np.log(powers) - 1 - log_r) + _log_moment_bounds(loss)[:, None]
    share = max(0.0, 1 - largest)
    grown = math.log(batches) + share * np.minimum(falls.min(0), 0.0)
    sizes = needed.c * v[:, None] + grown[:, None] - needed.scale(angle)
    return max(0.0, float(sizes.max()) + math.log(ends[1] - ends[0] + 1))
