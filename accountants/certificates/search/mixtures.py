"""Losses that grow along the outputs of Gaussian mixtures, in floats.

Nothing here is trusted: the numbers only choose grids, tilts and thresholds for proofs.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> line = line_of(SampledGaussian(0.1, 1.0, "remove"))
>>> line.mixtures
(((0.0, 0.9), (1.0, 0.1)), ((0.0, 1.0),))
>>> print(f"{line.losses(np.array([0.5]))[0]:.3f} {line.tails(np.array([0.0]), 1)[0]:.3f}")
0.000 0.500
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures, Mixture
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["CUT_FAMILIES", "LINE_FAMILIES", "Line", "line_of"]

Reals = NDArray[np.float64]

# Families whose large losses are rarer than their moments suggest: cutting them off narrows bounds.
CUT_FAMILIES = (SampledGaussian, GaussianMixtures, FixedBatchGaussian)
# Families whose losses grow along the outputs.
LINE_FAMILIES = (Gaussian, *CUT_FAMILIES)


@dataclass(frozen=True)
class Line:
    """The outputs of two mixtures of Gaussians, along which a loss grows.

    Attributes
    ----------
    mixtures
        Means and weights of P and of Q.
    sigma
        Standard deviation of every component.
    mirrored
        Whether the mirror image of positive losses takes the place of negative ones, as for batches
        without replacement. Then only outputs with positive losses count.
    """

    mixtures: tuple[Mixture, Mixture]
    sigma: float
    mirrored: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest mean; or the first output that counts, and the latter."""
        means = [mean for side in self.mixtures for mean, _ in side]
        return (0.5 if self.mirrored else min(means)), max(means)

    def first(self, reach: float) -> float:
        """Return the smallest output that is not negligible, ``reach`` sigma below all means."""
        return self.ends[0] - (0.0 if self.mirrored else reach * self.sigma)

    def losses(self, x: Reals) -> Reals:
        """Return the loss at outputs, with the digits of small values."""
        sides = []
        for mixture in self.mixtures:
            exponents = np.array([a * (2 * x - a) / (2 * self.sigma**2) for a, _ in mixture])
            weights = np.array([[w] for _, w in mixture])
            gains = (weights * np.expm1(np.minimum(exponents, 1.0))).sum(axis=0)
            far = np.logaddexp.reduce(np.log(np.maximum(weights, 1e-300)) + exponents)
            sides.append(np.where(exponents.max(axis=0) < 1.0, np.log1p(gains), far))
        return np.asarray(sides[0] - sides[1])

    def tails(self, x: Reals, side: int) -> Reals:
        """Return the probability of an output above x, under P (side 0) or Q (side 1)."""
        scale = self.sigma * math.sqrt(2)
        return np.asarray(sum(w * erfc((x - a) / scale) / 2 for a, w in self.mixtures[side]))


@singledispatch
def line_of(loss: Any) -> Line:
    """Return the line of a loss of one of these families."""
    raise TypeError(f"loss must grow along outputs of Gaussian mixtures, got {loss!r}.")


@line_of.register
def _(loss: Gaussian) -> Line:
    return Line((((1.0, 1.0),), ((0.0, 1.0),)), float(loss.noise_multiplier))


@line_of.register
def _(loss: GaussianMixtures) -> Line:
    return Line((loss.numerator, loss.denominator), float(loss.noise_multiplier))


@line_of.register(SampledGaussian)
@line_of.register(FixedBatchGaussian)
def _(loss: Any) -> Line:
    q, added = float(loss.sampling_probability), getattr(loss, "direction", "remove") == "add"
    alone, sampled = ((0.0, 1.0),), ((0.0, 1 - q), (-1.0 if added else 1.0, q))
    mixtures = (alone, sampled) if added else (sampled, alone)
    is_batch = isinstance(loss, FixedBatchGaussian)
    return Line(mixtures, float(loss.noise_multiplier), mirrored=is_batch)
