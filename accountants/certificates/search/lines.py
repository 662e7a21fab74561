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
# Least tilt of a ray, which is long at small ones.
_LEAST_TILT = 1e-3
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
        """Return the ray with nearly the least work, at an angle among some."""
        return _ray(self.loss, c, far, nodes, self.digits)

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
    found = [_at_angle(loss, c, far, nodes, digits, angle) for angle in _TURNS if c >= _LEAST_TILT]
    work, line = min(found, key=lambda item: item[0], default=(math.inf, None))
    if line is None or not work < _MOST_WORK:
        raise OutOfReach
    return line


def _at_angle(
    loss: Allocation, c: float, far: float, nodes: int, digits: float, angle: float
) -> tuple[float, Line | None]:
    """Return the work of a ray at this angle, and the ray; infinity if too much."""
    # What is least, or largest, is so at the first node or the last one: sizes are convex.
    u, turned = np.array([0.0, far]), math.log(math.cos(angle))
    log_gamma, log_m = np.real(loggamma(c - 1j * u)), float(loss.cumulants([c])[0, 0])
    least = float((log_gamma + u * angle).min() + log_m)
    steps = []
    for sign in (1, -1):
        y = (math.pi / 2 + sign * angle) * _SHARES[:, None]
        away = angle - sign * y
        sizes = gammaln(c) - log_gamma - u * away - c * np.log(np.cos(away))
        steps.append((2 * math.pi * y / np.maximum(sizes + digits, 1.0)).max(0).min())
    step, goal = float(min(steps)), least - digits
    low = (goal - math.log(1 / c + step)) / c
    powers = _POWERS[c < _POWERS]
    drift = sum(chance / sigma**2 for sigma, _, chance in loss.groups)
    spread = sum(chance**2 / (m * sigma**2) for sigma, m, chance in loss.groups)
    # A bound on E L^-n gives one on what is beyond a point, for each power n.
    bounds = powers * (drift / 2 + np.log(powers) - 1 - turned) + powers**2 * spread / 2
    ends = (bounds + np.log(1 / (powers - c) + step) - goal) / (powers - c)
    high = float(ends.min(initial=math.inf))
    if not low < high < math.inf:
        return math.inf, None
    # An error of a mean is multiplied by the other factors of the power, which fall as G does.
    batches = sum(group.batches for group in loss.groups)
    share = max(0.0, 1 - max(chance / m for _, m, chance in loss.groups))
    v, n = np.linspace(low, high, 65), _POWERS[:, None]
    falls = (n * (drift / 2 + np.log(n) - 1 - turned - v) + n**2 * spread / 2).min(0)
    lost = float((c * v + share * np.minimum(falls, 0.0)).max())
    lost += math.log(batches * (high - low + 1)) - least
    nats = digits + _SPARE_OF_MEANS + max(lost, 0.0)
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
