"""Sampled Gaussians in layers of their loss: below a cut, and between two cuts.

Where a record is hardly ever sampled, the loss of a step has a law with the tail of a log-normal:
no tilt serves it, as every tilt sees either the peak at zero or the largest losses that there are.
In each of some layers of the loss, however, the law is as plain as any.

>>> loss = SampledGaussian(1e-6, 1.0, "remove")
>>> band = Band(Below(loss, loss_cut(loss, 1e-4)), Below(loss, loss_cut(loss, 1e-3)))
>>> below, between = band.cumulants([0.0])
>>> print(f"{below[0, 0]:.4f} {between[0, 0]:.4f}")
-0.0000 -15.5825
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from dpcal._ext.contour import mixture_log_weights, plain_moments
from dpcal.accountants.losses import sampled_gaussian as sampled
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.quadrature import QuadratureTilt
from dpcal.accountants.losses.sampled_gaussian import (
    SampledGaussian,
    TrimmedLoss,
    log_expm1_over,
    shared_tilt,
)

__all__ = ["SURPLUS", "Band", "Below", "blur_at", "loss_at", "loss_cut"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Width of a cut, relative to the loss there, to the distance over which the density falls, and to
# sigma: sharp, lest the tail of a cut is tilted to where the loss has grown exponentially.
_LOSS_BLUR, _BLUR, _WIDEST = 0.08, 0.7, 0.4
# How many widths below a cut a band begins.
_DEEPEST = 14.0
# Corrections for what is cut off that are worth the digits they take, and logarithms of the mass
# that have such digits: from the two, the mass itself is above 1/2.
_MOST_LOST, _FAR = 0.2, 0.3
# Points of a lattice, at most.
_MAX_POINTS = 40_000
# Distance of the shifted line from the real one, in widths of a cut: large, as what is left of a
# layer far out on a contour falls with it, but the share of a cut grows, here 90-fold.
_SHIFT = 3.0
# Log of what is negligible at the end of a smooth cut, relative to the most that the measure has.
_NOTHING = math.log(sampled._QUADRATURE_TOLERANCE) - 8.0
# What the shares of a point in all layers add up to may exceed 1 by, or what is taken from a point
# beyond a ceiling, relative to what stays.
SURPLUS = 1e-18
# Where, in widths of its blur, a cut's own tail may end: what the cut leaves beyond the first of
# them, 1e-19 of each point, is not told from what the cut above takes.
_TAIL = np.linspace(9.0, 40.0, 125)


def loss_cut(loss: SampledGaussian, level: float) -> float:
    """Where on the axis of the noise the loss when removing is ``level``."""
    u = log_expm1_over(level, loss.sampling_probability)
    return loss.noise_multiplier**2 * u + 0.5


def loss_at(loss: SampledGaussian, cut: float) -> float:
    """The loss there."""
    q, sigma = loss.sampling_probability, loss.noise_multiplier
    return float(mixture_log_weights(np.array([cut]), q, sigma, 0.0)[0].real)


def blur_at(loss: SampledGaussian, cut: float) -> float:
    """Width of a cut there."""
    sigma, level = loss.noise_multiplier, loss_at(loss, cut)
    if level >= 1.0:
        # The loss grows linearly from here on.
        return min(_WIDEST * sigma, _LOSS_BLUR * sigma**2 * level)
    return min(_WIDEST * sigma, _BLUR * sigma**2 / max(cut, sigma), _LOSS_BLUR * sigma**2)


class Below(TrimmedLoss):
    """The part of a sampled Gaussian (remove) below a smooth cut.

    Parameters
    ----------
    loss
        The loss.
    cut
        Where the cut lies, on the axis of the noise.
    """

    def __init__(self, loss: SampledGaussian, cut: float) -> None:
        self.loss, self.cut = loss, cut
        self.blur = self._blur = blur_at(loss, cut)
        self._lattice = None
        self._set_rest()

    def _ceiling(self, power: float) -> float:
        """Where the tilted measure has first become negligible beyond the cut; there it ends."""
        start = -sampled._RANGE * self.loss.noise_multiplier
        return _ceiling(self.loss, power, self.cut, self._blur, start)

    def _lattice_to(self, lowest: float, highest: float, ceiling: float) -> sampled._Lattice:
        return _lattice(self.loss, lowest, highest, ceiling, (self._blur,))

    def _lost(self, c: Any) -> Any:
        """Size of the terms that correct the sums of :class:`TrimmedLoss` for what is cut off."""
        return np.abs(c) * math.exp(self._log_base_rest) + (1.0 + c) * math.exp(self.log_rest)

    def _plain(self, c: Any) -> Any:
        """Whether the mass is so far from 1, or corrected so much, that plain sums are better."""
        far = np.abs(c) * self.loss.sampling_probability > _FAR
        return (self._lost(c) > _MOST_LOST) | far

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log mass and three moments of the tilts.

        The digits of the mass less 1 are kept where little is cut off; elsewhere the corrections
        for that would cost more digits than they keep, and the sums are plain ones.
        """
        c = np.atleast_1d(np.asarray(c, dtype=float))
        plain = self._plain(c)
        if plain.all():
            lattice = self._points(1.0 + c)
            return plain_moments(lattice.ell, self._log_kept, 1.0 + c)
        result = super().cumulants(c)
        if plain.any():
            lattice = self._points(1.0 + c)
            result[plain] = plain_moments(lattice.ell, self._log_kept, 1.0 + c[plain])
        return result

    def tilt(self, c: float) -> QuadratureTilt:
        """Return the tilted measure, normalised to mass 1."""
        tilt = super().tilt(c)
        if not self._plain(c):
            tilt.mean_rounding += 16.0 * (math.exp(self._log_base_rest) + math.exp(self.log_rest))
        return tilt

    def mass_rounding(self, c: float) -> float:
        """Rounding of the log mass, in units, beyond that of a sum near its size."""
        return 64.0 if self._plain(c) else 64.0 * float(self._lost(c))


class Band:
    """The parts of a sampled Gaussian (remove) below a smooth cut, and between it and another.

    With blurs a and b, the share of a point x is Phi((low - x) / a) below and Phi((x - low) / a)
    Phi((high - x) / b) between. The two add up to Phi((high - x) / b), the share below the upper
    cut, and a surplus of Phi((low - x) / a) Phi((x - high) / b): relative to that share less than
    :data:`SURPLUS` where the cuts are 7 (a + b) apart, as one of the two factors is then that of
    7 standard deviations or more, and so is the other unless the first is that of 14.

    Parameters
    ----------
    below, above
        The parts of one loss below the lower and below the upper cut.
    """

    def __init__(self, below: Below, above: Below) -> None:
        self.loss, self.below = below.loss, below
        self.low, self.high = below.cut, above.cut
        self._blurs = below.blur, above.blur
        self._lattice: sampled._Lattice | None = None

    def _points(self, powers: Reals) -> sampled._Lattice:
        lowest, highest = float(powers.min()), float(powers.max())
        lattice = self._lattice
        if lattice is None or not lattice.lowest <= lowest <= highest <= lattice.highest:
            sigma = self.loss.noise_multiplier
            highest = max(8.0, sampled._HEADROOM * highest)
            ceiling = _ceiling(self.loss, highest, self.high, self._blurs[1], self.low)
            blur = self._blurs[0]
            # The lower cut leaves exp(-s^2 / 2) at s widths, where the density is up to exp(s blur
            # low / sigma^2) times what it is at the cut.
            floor = self.low - blur * (_DEEPEST + 2 * blur * max(self.low, 0.0) / sigma**2)
            lattice = _lattice(self.loss, lowest, highest, ceiling, self._blurs, floor)
            self._lattice = lattice
            self._log_band = lattice.log_base + self._log_share(lattice.x, 0.0).real
        return lattice

    def _log_share(self, x: Reals, shift: float) -> Complexes:
        """Log of the share of each point on the line Im x = shift."""
        above = ((x - self.low) + 1j * shift) / self._blurs[0]
        beyond = ((x - self.high) + 1j * shift) / self._blurs[1]
        return np.asarray(log_ndtr(above) + log_ndtr(-beyond))

    def cumulants(self, c: ArrayLike) -> tuple[Reals, Reals]:
        """Return log mass and three moments of the tilted law below, and of the one between."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        lattice = self._points(1.0 + c)
        return self.below.cumulants(c), plain_moments(lattice.ell, self._log_band, 1.0 + c)

    def tilts(self, c: float) -> tuple[QuadratureTilt, QuadratureTilt]:
        """Return the tilted law below and the one between, each normalised to mass 1."""
        _, between = self.cumulants([c])
        lattice = self._points(np.array([1.0 + c]))
        log_share = self._log_share(lattice.x, lattice.angle * self.loss.noise_multiplier**2)
        second = shared_tilt(lattice, 1.0 + c, between[0], log_share, self._log_band)
        return self.below.tilt(c), second


def _lattice(
    loss: SampledGaussian,
    lowest: float,
    highest: float,
    ceiling: float,
    blurs: tuple[float, ...],
    floor: float = -math.inf,
) -> sampled._Lattice:
    """Points for integrals from a floor to a ceiling in which cuts' shares are factors."""
    sigma = loss.noise_multiplier
    angle = min(1.5, 1.5 / sigma, _SHIFT * min(blurs) / sigma**2)
    return sampled._Lattice(
        loss.sampling_probability,
        sigma,
        lowest,
        highest,
        angle,
        ceiling,
        _MAX_POINTS,
        1 / math.hypot(*(1 / blur for blur in blurs)),
        floor,
    )


def _ceiling(loss: SampledGaussian, power: float, cut: float, blur: float, start: float) -> float:
    """The first point beyond a cut where the tilted measure below it is negligible.

    The measure ends there. Of each point beyond, the cut leaves a share below 1e-19, which no
    double holds against the rest of that point: the next band has it, or what is cut off in all.
    """
    q, sigma = loss.sampling_probability, loss.noise_multiplier
    x = np.concatenate([np.linspace(start, cut, 64), cut + blur * _TAIL])
    sizes = power * mixture_log_weights(x, q, sigma, 0.0).real - 0.5 * (x / sigma) ** 2
    sizes += log_ndtr((cut - x) / blur)
    most = np.maximum.accumulate(sizes)
    negligible = np.flatnonzero((sizes < most + _NOTHING)[64:])
    if not len(negligible):
        raise OutOfReach
    return float(x[64 + negligible[0]])
