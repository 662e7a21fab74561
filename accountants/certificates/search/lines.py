"""Lines on which a transform is summed to some digits with the least work, in doubles.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> line = line_of(SampledGaussian(0.01, 1.0, "remove"), digits=20.0, c=3.0, far=10.0)
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
from dpcal.accountants.losses.base import OutOfReach, Reals
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

# Largest angle; and the distance of least work, in deviations over the root of the digits.
_WIDEST, _DISTANCE = 1.3, 0.47
# Least and largest angle of a ray; and the saddle's place with the least work on 28 epochs.
_FLATTEST, _STEEPEST, _SADDLE = 0.37, 1.51, 0.1
_SHARES = np.arange(1, 32) / 32
# Powers of L: their means bound the rest beyond the last point.
_POWERS = 2.0 ** np.arange(-2, 12, 0.5)
_SPARE_OF_MEANS = 6.0


def line_of(loss: Any, digits: float, c: float, far: float = 0.0) -> Line | None:
    """Return a line on which a transform has errors of ``-digits`` nats from c to c + i far.

    A Gaussian, which has a closed form, has none.
    """
    if isinstance(loss, SampledGaussian):
        return _of_sample(loss, digits, c)
    return _ray(loss, digits, c, far) if isinstance(loss, Allocation) else None


def log_beyond(loss: Any, digits: float, c: float, t: float) -> float:
    """Return the log of a bound on a transform beyond c + i t, roughly."""
    if isinstance(loss, SampledGaussian):
        sizes, rates = _decay(loss, digits, c)
        error = float(loss.cumulants([c])[0, 0]) - digits
        return float(np.logaddexp(np.logaddexp.reduce(sizes - t * rates), error))
    if isinstance(loss, Allocation):
        return float(loss.cumulants([c])[0, 0] - loss.rate_of_decay * t * t)
    return float((c * c + c - t * t) / (2 * loss.noise_multiplier**2))


def _of_sample(loss: SampledGaussian, digits: float, c: float) -> Line:
    """Return the coarsest line of a sampled Gaussian that is accurate enough at any node.

    Two bounds on log M are known, by convexity and by the smallest w: points are needed where
    neither bound is small.
    """
    sigma, power = loss.noise_multiplier, float(loss._power(c))
    value = float(loss.cumulants([c])[0, 0])
    convex = max(loss.log_mgf_bound(c) - value, 0.0)
    flat = max(min(c * loss.upper - value, 1e300), 0.0)
    fixed = digits + min(convex, flat)
    wide = math.hypot(sigma, math.sqrt(max(-power, 0.0)) / 2)
    angle = min(_WIDEST, _DISTANCE * math.sqrt(fixed) / wide)
    turned = min(0.0, power) * math.log(math.cos(angle))
    needed = fixed + 2 * (angle * sigma) ** 2 + turned
    step = 2 * math.pi * angle * sigma**2 / needed
    growth = digits + (angle * sigma) ** 2 / 2 + turned
    near, far = (sigma * math.sqrt(2 * (growth + excess)) for excess in (convex, flat))
    low, high = max(min(0.0, power) - near, -far), min(max(0.0, power) + near, far)
    if not (high - low) / step < MAX_POINTS - 2:
        raise OutOfReach
    return Line(angle, step, math.floor(low / step), math.ceil(high / step))


@lru_cache(maxsize=64)
def _decay(loss: SampledGaussian, digits: float, c: float) -> tuple[Reals, Reals]:
    """Return the logarithms of the terms of a line at c, and the rates at which these fall."""
    sigma, power, line = loss.noise_multiplier, float(loss._power(c)), _of_sample(loss, digits, c)
    x = line.step * np.arange(line.first, line.last + 1.0)
    weights = mixture_log_weights(x, loss.sampling_probability, sigma, line.angle)
    sizes = 0.5 * ((line.angle * sigma) ** 2 - (x / sigma) ** 2) + power * weights.real
    return sizes + math.log(line.step / (sigma * math.sqrt(2 * math.pi))), weights.imag


@lru_cache(maxsize=64)
def _ray(loss: Any, digits: float, c: float, far: float) -> Line:
    """Return a ray for the values from c to c + i far, at the saddle of one of them."""
    angle = min(max(math.atan2(_SADDLE * far, c), _FLATTEST), _STEEPEST)
    # Sizes are convex: the least and the largest are at the first or the last node.
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
    bounds = powers * (drift / 2 + np.log(powers) - 1 - turned) + powers**2 * spread / 2
    ends = (bounds + np.log(1 / (powers - c) + step) - goal) / (powers - c)
    high = float(ends.min(initial=math.inf))
    if not low < high < math.inf:
        raise OutOfReach
    # The other factors of the power multiply an error of a mean, and fall as G does.
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
    if not max((high - low) / step, reach) < MAX_POINTS / 4:
        raise OutOfReach
    return Line(angle, step, math.floor(low / step), math.ceil(high / step), reach)
