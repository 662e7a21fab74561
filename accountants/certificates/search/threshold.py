"""Which test distinguishes two neighbors best? A lower bound on delta, chosen in floats.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> proof = choose_threshold(((Gaussian(1.0), 1),), 1.0)
>>> proof.least, 1.0 < proof.thresholds[0] < 2.0        # the loss is x - 1/2
(1, True)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
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
from dpcal.accountants.certificates.search.grids import check_covered
from dpcal.accountants.certificates.search.mixtures import (
    LINE_FAMILIES,
    first_output,
    losses_at,
    range_of_means,
    tails_at,
)
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.laplace import Laplace

__all__ = ["LargeOutputs", "TableOfOutputs", "choose_threshold", "large_outputs"]

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
    """Return a test whose errors bound delta from below.

    Parameters
    ----------
    parts
        Losses, and how often each is used.
    epsilon
        Where delta is bounded.

    Raises
    ------
    UnsupportedEvent
        If no proof covers a loss.
    OutOfReach
        If every test that was tried gives a bound of 0.
    """
    check_covered(parts)
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


class LargeOutputs(ABC):
    """The outputs of one loss above a threshold, and their probabilities.

    Attributes
    ----------
    levels
        Levels of loss above which an output may count as large.
    """

    levels: Reals

    @abstractmethod
    def threshold(self, level: float) -> float | None:
        """Return the output above which the loss is about ``level`` or more, or None."""

    @abstractmethod
    def chances(self, at: float) -> tuple[float, float]:
        """Return the probabilities under P and Q of an output above a threshold."""


class TableOfOutputs(LargeOutputs):
    """Large outputs of a loss that grows along them, by a table of losses.

    Parameters
    ----------
    loss
        A loss that grows along the outputs of Gaussian mixtures.
    """

    def __init__(self, loss: PrivacyLoss) -> None:
        self.loss = loss
        sigma = float(loss.noise_multiplier)  # type: ignore[attr-defined]
        high = range_of_means(loss)[1] + _HIGH_REACH * sigma
        self.x = np.linspace(first_output(loss, _LOW_REACH), high, _OUTPUTS)
        self.levels = losses_at(loss, self.x)

    def threshold(self, level: float) -> float | None:
        """Return the first output of the table whose loss is at least ``level``, or None."""
        index = int(np.searchsorted(self.levels, level))
        return float(self.x[index]) if index < len(self.x) else None

    def chances(self, at: float) -> tuple[float, float]:
        """Return the tails of both mixtures."""
        p, q = (float(tails_at(self.loss, np.array(at), side)) for side in (0, 1))
        return p, q


class _OfDiscreteGaussian(TableOfOutputs):
    """Large outputs of discrete Gaussian noise, whose tails are nearly those of the Gaussian."""

    def __init__(self, loss: DiscreteGaussian) -> None:
        self.sensitivity, self.sigma = s, sigma = loss.sensitivity, loss.sigma
        reach = math.ceil(_DISCRETE_REACH * sigma)
        self.x = np.arange(-reach, reach + s + 1.0)
        self.levels = np.asarray(s * (2 * self.x - s) / (2 * sigma**2))

    def chances(self, at: float) -> tuple[float, float]:
        scale = self.sigma * math.sqrt(2)
        p, q = (float(erfc((at - 0.5 - m) / scale)) / 2 for m in (self.sensitivity, 0))
        return p, q


class _OfLargestLoss(LargeOutputs):
    """Outputs with the largest loss, for a loss whose largest value has a probability p under P."""

    def __init__(self, loss: PrivacyLoss, p: float) -> None:
        self.upper, self.p = loss.upper, p
        self.levels = np.array([loss.upper])

    def threshold(self, level: float) -> float | None:
        return 0.0 if level <= self.upper else None

    def chances(self, at: float) -> tuple[float, float]:
        return self.p, self.p * math.exp(-self.upper)


@singledispatch
def large_outputs(loss: PrivacyLoss) -> LargeOutputs:
    """Return the large outputs of a loss."""
    return _OfLargestLoss(loss, 1 / (1 + math.exp(-loss.upper)))


large_outputs.register(DiscreteGaussian, _OfDiscreteGaussian)
large_outputs.register(Laplace, lambda loss: _OfLargestLoss(loss, 0.5))
for _family in LINE_FAMILIES:
    large_outputs.register(_family, TableOfOutputs)


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
