"""On which shifted lattices is the transform of a sampled Gaussian summed? Chosen in floats.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> integrand = Integrand(SampledGaussian(0.01, 1.0, "remove"), tilts=(1.0, 3.0), digits=20.0)
>>> lattice = integrand.coarsest()
>>> lattice.points < 100, 0 < lattice.angle < 1.57
(True, True)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.contour import mixture_log_weights
from dpcal.accountants.certificates.proofs import MAX_POINTS, ShiftedLattice
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = ["Decay", "Integrand"]

Reals = NDArray[np.float64]

# Angles of the shifted lines that are tried, in units of sigma^2: 1.3 times powers of 0.8, down to
# 1.3e-3; the bounds on the strip end at pi / 2.
_ANGLES = 1.3 * 0.8 ** np.arange(32.0)


class Integrand:
    """phi_sigma(x) w(x)^p on shifted lines, for one sampled Gaussian.

    Parameters
    ----------
    loss
        The loss.
    tilts
        Tilts at which the transform is needed.
    digits
        Logarithm of the accuracy that the transform needs, > 0.
    """

    def __init__(self, loss: SampledGaussian, tilts: tuple[float, ...], digits: float) -> None:
        self.loss, self.digits = loss, digits
        self.sigma = loss.noise_multiplier
        self.powers = [float(loss._power(c)) for c in tilts]
        values = loss.cumulants(tilts)[:, 0]
        # Two bounds on log M are known, by convexity and by the smallest w. These are their
        # excesses over log M.
        self.convex = self._excess([loss.log_mgf_bound(c) for c in tilts], values)
        self.flat = self._excess([c * loss.upper if c else 0.0 for c in tilts], values)

    @staticmethod
    def _excess(bounds: list[float], values: Reals) -> float:
        return float(max(0.0, (np.asarray(bounds) - values).max()))

    def _range(self, growth: float) -> tuple[float, float]:
        """Return the range in which phi w^p is not negligible, for its growth on the line."""
        reaches = [
            self.sigma * math.sqrt(2 * (self.digits + growth + min(excess, 1e300)))
            for excess in (self.convex, self.flat)
        ]
        low, high = min(0.0, *self.powers) - reaches[0], max(0.0, *self.powers) + reaches[0]
        return max(low, -reaches[1]), min(high, reaches[1])

    def lattice(self, angle: float) -> ShiftedLattice | None:
        """Return the coarsest lattice on a line that is accurate enough, unless it is too long."""
        shift = angle * self.sigma**2
        turned = min(0.0, *self.powers) * math.log(math.cos(angle))
        deviations = (angle * self.sigma) ** 2
        needed = self.digits + min(self.convex, self.flat) + 2 * deviations + turned
        step = 2 * math.pi * shift / needed
        low, high = self._range(deviations / 2 + turned)
        if not (high - low) / step < MAX_POINTS - 2:
            return None
        return ShiftedLattice(angle, step, math.floor(low / step), math.ceil(high / step))

    def coarsest(self) -> ShiftedLattice:
        """Return the lattice with the largest step, of all angles."""
        found = [lattice for angle in _ANGLES if (lattice := self.lattice(float(angle)))]
        if not found:
            raise OutOfReach
        return max(found, key=lambda lattice: lattice.step)


class Decay:
    """Upper estimates of log abs(M(c + i s)), s >= t, on the shifted lines of all angles."""

    def __init__(self, integrand: Integrand, c: float) -> None:
        loss, sigma = integrand.loss, integrand.sigma
        power = float(loss._power(c))
        self.rows: list[tuple[ShiftedLattice, Reals, Reals]] = []
        for angle in _ANGLES:
            lattice = integrand.lattice(float(angle))
            if lattice is None:
                break
            x = lattice.step * np.arange(lattice.first, lattice.last + 1.0)
            weights = mixture_log_weights(x, loss.sampling_probability, sigma, float(angle))
            scale = lattice.step / (sigma * math.sqrt(2 * math.pi))
            sizes = 0.5 * ((angle * sigma) ** 2 - (x / sigma) ** 2) + power * weights.real
            self.rows.append((lattice, sizes + math.log(scale), weights.imag))

    def best(self, t: float) -> tuple[float, ShiftedLattice]:
        """Return the smallest estimate and its lattice."""
        if not self.rows:
            raise OutOfReach
        values = [np.logaddexp.reduce(sizes - t * angles) for _, sizes, angles in self.rows]
        chosen = int(np.argmin(values))
        return float(values[chosen]), self.rows[chosen][0]
