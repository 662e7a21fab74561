"""Losses that grow along the outputs of Gaussian mixtures, in floats.

Nothing here is trusted: the numbers only choose grids, tilts and thresholds for proofs.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> loss = SampledGaussian(0.1, 1.0, "remove")
>>> mixtures(loss)
([(0.0, 0.9), (1.0, 0.1)], [(0.0, 1.0)])
>>> print(f"{losses_at(loss, np.array([0.5]))[0]:.3f} {tails_at(loss, np.array([0.0]), 1)[0]:.3f}")
0.000 0.500
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = [
    "CUT_FAMILIES",
    "LINE_FAMILIES",
    "first_output",
    "losses_at",
    "mixtures",
    "range_of_means",
    "tails_at",
]

Reals = NDArray[np.float64]
# Means and weights.
Mixture = list[tuple[float, float]]

# Families whose large losses are rarer than their moments suggest: cutting them off narrows bounds.
CUT_FAMILIES = (SampledGaussian, GaussianMixtures, FixedBatchGaussian)
# Families whose losses grow along the outputs.
LINE_FAMILIES = (Gaussian, *CUT_FAMILIES)


@singledispatch
def mixtures(loss: Any) -> tuple[Mixture, Mixture]:
    """Return the means and weights of P and of Q, along which the loss grows.

    For batches without replacement, whose pair has a mirror image, they are those of the sampled
    pair.
    """
    raise TypeError(f"loss must grow along outputs of Gaussian mixtures, got {loss!r}.")


@mixtures.register
def _(loss: Gaussian) -> tuple[Mixture, Mixture]:
    return [(1.0, 1.0)], [(0.0, 1.0)]


@mixtures.register
def _(loss: SampledGaussian) -> tuple[Mixture, Mixture]:
    q = float(loss.sampling_probability)
    if loss.direction == "add":
        return [(0.0, 1.0)], [(0.0, 1 - q), (-1.0, q)]
    return [(0.0, 1 - q), (1.0, q)], [(0.0, 1.0)]


@mixtures.register
def _(loss: FixedBatchGaussian) -> tuple[Mixture, Mixture]:
    q = float(loss.sampling_probability)
    return [(0.0, 1 - q), (1.0, q)], [(0.0, 1.0)]


@mixtures.register
def _(loss: GaussianMixtures) -> tuple[Mixture, Mixture]:
    return list(loss.numerator), list(loss.denominator)


def range_of_means(loss: PrivacyLoss) -> tuple[float, float]:
    """Return the smallest and the largest mean; for batches, the first of positive losses."""
    if isinstance(loss, FixedBatchGaussian):
        return 0.5, 1.0
    means = [mean for side in mixtures(loss) for mean, _ in side]
    return min(means), max(means)


def first_output(loss: PrivacyLoss, reach: float) -> float:
    """Return the smallest output that is not negligible.

    Parameters
    ----------
    loss
        A loss of one of the families here.
    reach
        Standard deviations below the smallest mean at which outputs begin to count; for batches
        only outputs with positive losses do.
    """
    low, _ = range_of_means(loss)
    if isinstance(loss, FixedBatchGaussian):
        return low
    return low - reach * float(loss.noise_multiplier)  # type: ignore[attr-defined]


def losses_at(loss: PrivacyLoss, x: Reals) -> Reals:
    """Return the loss at outputs, with the digits of small values."""
    sigma = float(loss.noise_multiplier)  # type: ignore[attr-defined]
    sides = []
    for mixture in mixtures(loss):
        exponents = np.array([a * (2 * x - a) / (2 * sigma**2) for a, _ in mixture])
        weights = np.array([[w] for _, w in mixture])
        gains = (weights * np.expm1(np.minimum(exponents, 1.0))).sum(axis=0)
        far = np.logaddexp.reduce(np.log(np.maximum(weights, 1e-300)) + exponents)
        sides.append(np.where(exponents.max(axis=0) < 1.0, np.log1p(gains), far))
    return np.asarray(sides[0] - sides[1])


def tails_at(loss: PrivacyLoss, x: Reals, side: int) -> Reals:
    """Return the probability of an output above x, under P (side 0) or Q (side 1)."""
    scale = float(loss.noise_multiplier) * math.sqrt(2)  # type: ignore[attr-defined]
    terms = [w * erfc((x - mean) / scale) / 2 for mean, w in mixtures(loss)[side]]
    return np.asarray(sum(terms))
