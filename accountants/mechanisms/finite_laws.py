r"""What is the law of a privacy loss, as finitely many values? What samples amplify value by value.

A law with a density is replaced by two laws: one that dominates it, where the mass between two
values moves to both so that P and Q keep their mass (Doroshenko et al. 2022), and one that it
dominates, where the outcomes between two values are merged, which is post-processing. Sums are
those of :mod:`dpcal.accountants.inversion.finite_sums`.

>>> from dpcal.accountants.losses.discrete import pure
>>> law_of(pure(1.0)).values.tolist()
[-1.0, 1.0]
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpcal._lazy import special
from dpcal.accountants.inversion.finite_sums import (
    MOST,
    MOST_OF_SUM,
    FiniteLaw,
    gathered,
    spread,
)
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss
from dpcal.accountants.losses.discrete import DiscreteLoss, pure
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.laplace import BoundedRange, IntervalLoss, Laplace
from dpcal.errors import UnsupportedEvent

__all__ = ["cut", "law_of", "mirrored", "noise_reach"]

Reals = NDArray[np.float64]

# Number of intervals into which a density between two ends is cut. For ten steps at q = 0.1 of
# Laplace noise of scale 1, rounding up adds 2e-7 to epsilon.
_INTERVALS = 1024
# Standard deviations of Gaussian noise beyond which outcomes count as infinite losses. A discrete
# Gaussian has 1e-297 there.
_REACH = 37.0
# The smallest probability of such outcomes, which stands for those below the range of a double.
_LEAST_OUTSIDE = 1e-300
_LOG_TWO = math.log(2.0)


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
    # A surplus of Q moves all values up, which is above.
    law = FiniteLaw(loss.values + loss.surplus, np.array(loss.log_reference) - loss.surplus)
    return law if loss.below is None else replace(law, below=law_of(loss.below))


@law_of.register
def _(loss: LossWithFailure) -> FiniteLaw:
    kept = loss.log_finite
    given = law_of(loss.given)

    def failing(law: FiniteLaw) -> FiniteLaw:
        outside = loss.failure_probability + law.outside
        return FiniteLaw(law.values, law.log_reference + kept, outside)

    law = failing(given)
    # Where P fails and Q does not, the law has Q fail, too, which is above alone.
    one_sided = isinstance(loss.given, DiscreteLoss) and loss.given.surplus != 0
    below = NO_LOSS if one_sided else loss.below
    if below is not None:
        return replace(law, below=law_of(below))
    return law if given.below is None else replace(law, below=failing(given.below))


@law_of.register
def _(loss: DiscreteGaussian) -> FiniteLaw:
    s, variance = loss.sensitivity, loss.sigma**2
    far, log_norm, outside = noise_reach(loss.sigma)
    x = np.arange(-far, far + s + 1.0)
    exact = FiniteLaw(s * (2 * x - s) / (2 * variance), -(x**2) / (2 * variance) - log_norm)
    return gathered(replace(exact, outside=outside, below=exact))


def noise_reach(sigma: float) -> tuple[int, float, float]:
    """Return the reach of discrete Gaussian noise, the log of its norm, and P(abs(noise) > reach).

    Raises
    ------
    UnsupportedEvent
        If there are too many whole numbers within its reach.
    """
    far = math.ceil(_REACH * sigma)
    if 4 * far > MOST_OF_SUM:
        raise UnsupportedEvent(
            f"Discrete Gaussian noise is priced on batches up to sigma = "
            f"{MOST_OF_SUM // (4 * _REACH):g}, got sigma = {sigma!r}."
        )
    log_norm = math.log(np.exp(-0.5 * (np.arange(-far, far + 1.0) / sigma) ** 2).sum())
    # The terms beyond fall faster than a geometric series.
    first = -0.5 * ((far + 1) / sigma) ** 2 - log_norm
    beyond = math.exp(max(first, -720.0)) / -math.expm1(-(far + 1) / sigma**2)
    return far, log_norm, max(2 * beyond, _LEAST_OUTSIDE)


@law_of.register(Laplace)
def _of_interval(loss: IntervalLoss) -> FiniteLaw:
    """Return the law of ends and a density proportional to exp(l / 2), cut into intervals."""
    a, h = loss.half_width, 2 * loss.half_width / _INTERVALS
    ends = np.linspace(-a, a, _INTERVALS + 1)
    # Under Q the interval from l to l + h has the density times 2 (exp(-l / 2) - exp(-(l + h) /
    # 2)), of which its lower end gets 2 exp(-l / 2) tanh(h / 4), and the upper one exp(-h / 2)
    # times that.
    falling, density = -0.5 * ends, loss.log_density
    points = loss.log_end + np.array([a / 2, -a / 2])
    lower = density + math.log(2 * math.tanh(h / 4)) + falling
    up = lower + math.log(2.0)
    up[[0, -1]] = np.logaddexp(lower[[0, -1]], points)
    inner = density + math.log(2.0) + falling[:-1] + math.log(-math.expm1(-h / 2))
    middles = np.concatenate([[-a], ends[:-1] + h / 2, [a]])
    down = np.concatenate([points[:1], inner, points[1:]])
    some = down > -math.inf
    return FiniteLaw(ends, up, below=FiniteLaw(middles[some], down[some]))


@law_of.register
def _(loss: BoundedRange) -> FiniteLaw:
    """Return the law of the worst mechanism at each epsilon, above one of those mechanisms."""
    above = _of_interval(loss)
    # Answers with losses epsilon / 2 and -epsilon / 2 have this range.
    return replace(above, below=law_of(pure(loss.epsilon / 2)))


@law_of.register
def _(loss: Gaussian) -> FiniteLaw:
    mu = 1 / loss.noise_multiplier
    x = spread(mu / 2, 1.0, -_REACH, _REACH + mu, MOST // 2)
    law = cut(mu * x - mu * mu / 2, _log_between(x), _log_between(x - mu))
    outside = 2 * math.exp(float(special.log_ndtr(-_REACH))) * (1 + 1e-9)
    return replace(law, outside=max(outside, _LEAST_OUTSIDE))


def _log_between(x: Reals) -> Reals:
    """Return the logs of the standard normal probabilities between neighboring points."""
    # On the right the upper tails keep the digits.
    left = x[1:] <= 0
    low, high = np.where(left, x[:-1], -x[1:]), np.where(left, x[1:], -x[:-1])
    tails = special.log_ndtr(high), special.log_ndtr(low)
    return np.asarray(tails[0] + np.log(-np.expm1(tails[1] - tails[0])))


def cut(ends: Reals, log_q: Reals, log_p: Reals) -> FiniteLaw:
    """Return the law of a loss from its masses between the losses ``ends``, rounded up and down."""
    low, high, ratio = ends[:-1], ends[1:], log_p - log_q
    ratio = np.clip(ratio, low, high)
    gap = np.expm1(low - high)
    with np.errstate(divide="ignore"):
        to_low = log_q + np.log(np.expm1(ratio - high) / gap)
        to_high = log_q + ratio - high + np.log(np.expm1(low - ratio) / gap)
    up = np.logaddexp(np.append(to_low, -math.inf), np.append(-math.inf, to_high))
    some = up > -math.inf
    return FiniteLaw(ends[some], up[some], below=FiniteLaw(ratio, log_q))


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
