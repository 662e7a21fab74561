"""Which test distinguishes two neighbors best? A lower bound on delta, chosen in floats.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> proof = choose_threshold(((Gaussian(1.0), 1),), 1.0)
>>> proof.least, 1.0 < proof.thresholds[0] < 2.0        # the loss is x - 1/2
(1, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, erfc, gammainc

from dpcal.accountants.certificates.proofs import (
    MAX_COUNTED,
    MAX_COUNTED_OF_MANY,
    Parts,
    ThresholdProof,
)
from dpcal.accountants.certificates.search.mixtures import LINE_FAMILIES, line_of
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.laplace import Laplace

__all__ = ["choose_threshold", "large_outputs"]

Reals = NDArray[np.float64]

# Most losses that are tried as the level from which an output counts as large.
_MAX_LEVELS = 200
# Outputs in a table of losses.
_OUTPUTS = 4000
# Standard deviations of the noise that such a table reaches below the smallest mean.
_LOW_REACH = 5.0
# Standard deviations of the noise that such a table reaches above the largest mean: probabilities
# underflow beyond 38.
_HIGH_REACH = 38.0
# Standard deviations of discrete Gaussian noise that its table reaches on either side.
_DISCRETE_REACH = 30
# Exponential of epsilon, as a logarithm, above which doubles overflow.
_MAX_EXPONENT = 700.0


def choose_threshold(parts: Parts, epsilon: float) -> ThresholdProof:
    """Return a test whose errors bound delta from below; refuse to if none gives more than 0."""
    if any(isinstance(loss, Allocation) for loss, _ in parts):
        # No test of an allocation that counts outputs is worth its search.
        raise OutOfReach
    tests = [large_outputs(loss) for loss, _ in parts]
    levels = np.unique(np.concatenate([test.levels for test in tests]))
    if len(levels) > _MAX_LEVELS:
        levels = levels[:: -(-len(levels) // _MAX_LEVELS)]
    best: tuple[float, int, tuple[float | None, ...]] = (0.0, 1, ())
    for level in levels:
        thresholds = tuple(test.threshold(float(level)) for test in tests)
        chances = [
            (*test.chances(at), times)
            for test, at, (_, times) in zip(tests, thresholds, parts, strict=True)
            if at is not None
        ]
        if chances:
            value, least = _difference(chances, epsilon)
            if value > best[0]:
                best = value, least, thresholds
    if best[0] <= 0:
        raise OutOfReach
    return ThresholdProof(best[1], best[2])


@dataclass(frozen=True)
class LargeOutputs:
    """The outputs of one loss that may count as large.

    Attributes
    ----------
    x, levels
        Outputs, and their ascending losses.
    chances
        Function from a threshold to the probabilities under P and Q of an output above it.
    """

    x: Reals
    levels: Reals
    chances: Callable[[float], tuple[float, float]]

    def threshold(self, level: float) -> float | None:
        """Return the first of the outputs whose loss is at least ``level``, or None."""
        index = int(np.searchsorted(self.levels, level))
        return float(self.x[index]) if index < len(self.x) else None


@singledispatch
def large_outputs(loss: PrivacyLoss) -> LargeOutputs:
    """Return the large outputs of a loss: those with the largest one, for one of finite size."""
    return _with_largest_loss(loss, 1 / (1 + math.exp(-loss.upper)))


@large_outputs.register
def _(loss: Laplace) -> LargeOutputs:
    return _with_largest_loss(loss, 0.5)


def _with_largest_loss(loss: PrivacyLoss, p: float) -> LargeOutputs:
    """Return the outputs with the largest loss, which have probability p under P."""
    both = p, p * math.exp(-loss.upper)
    return LargeOutputs(np.zeros(1), np.array([loss.upper]), lambda at: both)


@large_outputs.register
def _(loss: DiscreteGaussian) -> LargeOutputs:
    s, sigma = loss.sensitivity, loss.sigma
    reach = math.ceil(_DISCRETE_REACH * sigma)
    x = np.arange(-reach, reach + s + 1.0)

    def chances(at: float) -> tuple[float, float]:
        """Return the tails of Gaussian noise, which are nearly the same."""
        p, q = (float(erfc((at - 0.5 - m) / (sigma * math.sqrt(2)))) / 2 for m in (s, 0))
        return p, q

    return LargeOutputs(x, np.asarray(s * (2 * x - s) / (2 * sigma**2)), chances)


def _along_line(loss: PrivacyLoss) -> LargeOutputs:
    """Return the outputs of Gaussian mixtures along which a loss grows."""
    line = line_of(loss)
    x = np.linspace(line.first(_LOW_REACH), line.ends[1] + _HIGH_REACH * line.sigma, _OUTPUTS)

    def chances(at: float) -> tuple[float, float]:
        return float(line.tails(np.array(at), 0)), float(line.tails(np.array(at), 1))

    return LargeOutputs(x, line.losses(x), chances)


for _family in LINE_FAMILIES:
    large_outputs.register(_family, _along_line)


def _difference(chances: list[tuple[float, float, int]], epsilon: float) -> tuple[float, int]:
    """Return an approximate largest P(N >= k) - exp(epsilon) Q(N >= k), and its k.

    N is the number of large outputs, which is approximately Poisson.
    """
    rates = [sum(times * item[side] for *item, times in chances) for side in (0, 1)]
    if not 0 < rates[1] < rates[0]:
        return 0.0, 1
    # From this count on the likelihood ratio of two Poisson laws is above exp(epsilon).
    least = math.ceil((epsilon + rates[0] - rates[1]) / math.log(rates[0] / rates[1]))
    most = MAX_COUNTED if len(chances) == 1 else MAX_COUNTED_OF_MANY
    best = (0.0, 1)
    for k in {1, *range(max(1, least - 1), least + 2)}:
        if k > min(most, sum(times for *_, times in chances)):
            continue
        if len(chances) == 1:
            p, q, times = chances[0]
            tails = [float(betainc(k, times - k + 1, chance)) for chance in (p, q)]
        else:
            tails = [float(gammainc(k, rate)) for rate in rates]
        value = tails[0] - math.exp(min(epsilon, _MAX_EXPONENT)) * tails[1]
        best = max(best, (value, k))
    return best
