"""Smooth cuts of a sampled Gaussian's law, on the axis of the noise.

>>> loss = SampledGaussian(0.01, 1.0, "remove")
>>> width_of_wide(1.0), round(loss_at(loss, loss_cut(loss, 0.5)), 12)
(0.5, 0.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.contour import mixture_log_weights
from dpcal._lazy import special
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian, log_expm1_over

__all__ = ["Cut", "log_weights", "loss_at", "loss_cut", "width_of_wide"]

Reals = NDArray[np.float64]


# Distance from a cut, in its widths, from which all of a point lies on one side: what is missing is
# below 1e-26 on the real line, and a factor of exp(9 / 2) larger on lines up to three widths away.
_WHOLE = 10.75


@dataclass(frozen=True)
class _Widths:
    """Upper limits on the width of a cut; the smallest of them counts.

    Attributes
    ----------
    sigmas
        In standard deviations of the noise. With a wider cut more of the law beyond it remains, and
        a narrower one takes more points.
    losses
        In sigma^2, over which the exponent of w changes by 1; for a sharp cut times the loss there.
    densities
        In units of the distance over which the normal density falls.
    """

    sigmas: float
    losses: float
    densities: float


_WIDE = _Widths(0.5, 0.7, 0.7)
# A tilt multiplies the tail of a cut by the exponential of the loss there.
_SHARP = _Widths(0.4, 0.08, 0.7)


def loss_cut(loss: SampledGaussian, level: float) -> float:
    """Return the position on the axis of the noise at which the loss when removing is ``level``."""
    u = log_expm1_over(level, loss.sampling_probability)
    return loss.noise_multiplier**2 * u + 0.5


def loss_at(loss: SampledGaussian, position: float) -> float:
    """Return the loss when removing at a position on the axis of the noise."""
    return float(log_weights(loss, np.array([position]))[0])


def log_weights(loss: SampledGaussian, x: Reals) -> Reals:
    """Return log w at points on the real axis, which is the loss when removing."""
    q, sigma = loss.sampling_probability, loss.noise_multiplier
    return np.asarray(mixture_log_weights(x, q, sigma, 0.0))


@dataclass(frozen=True)
class Cut:
    """A smooth cut: the share Phi((position - x) / width) of a point x lies below it.

    Attributes
    ----------
    position
        Position of the cut on the axis of the noise.
    width
        Distance > 0 over which the share falls.
    """

    position: float
    width: float

    @classmethod
    def sharp(cls, loss: SampledGaussian, position: float) -> Cut:
        """Return a cut whose tail stays small under the tilts of its own losses."""
        sigma, level = loss.noise_multiplier, loss_at(loss, position)
        width = min(_SHARP.sigmas * sigma, _SHARP.losses * sigma**2 * max(1.0, level))
        if level < 1.0:
            # For larger losses the loss grows linearly, and the density does not matter.
            width = min(width, _SHARP.densities * sigma**2 / max(position, sigma))
        return cls(position, width)

    def log_below(self, x: Reals, shift: float = 0.0) -> Any:
        """Return the log share below the cut at the points x + i shift; real for no shift."""
        return _log_share((self.position - x) / self.width, -shift / self.width)

    def log_beyond(self, x: Reals, shift: float = 0.0) -> Any:
        """Return the log share beyond the cut at the points x + i shift; real for no shift."""
        return _log_share((x - self.position) / self.width, shift / self.width)


def _log_share(z: Reals, shift: float) -> Any:
    """Return log Phi(z + i shift); real for no shift, and 0 where it is less than rounding."""
    some = np.flatnonzero(z < _WHOLE)
    share = np.zeros(len(z), dtype=complex if shift else float)
    share[some] = special.log_ndtr(z[some] + 1j * shift if shift else z[some])
    return share


def width_of_wide(sigma: float) -> float:
    """Return the width of a wide cut: no steeper than the noise in the complex plane."""
    return min(_WIDE.sigmas * sigma, _WIDE.losses * sigma**2)
