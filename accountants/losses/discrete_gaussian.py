r"""The discrete Gaussian mechanism: its privacy loss lives on a lattice.

With P(x) proportional to exp(-(x - s)^2 / (2 sigma^2)) on the whole numbers and Q its shift to 0,
the loss of x is s (2 x - s) / (2 sigma^2), and completing the square

    M(z) = exp(s^2 (z^2 + z) / (2 sigma^2)) theta((1 + z) s) / theta(0),
    theta(u) = sum_x exp(-(x - u)^2 / (2 sigma^2))

(Canonne, Kamath and Steinke 2020). This is the Gaussian's value times a factor that Poisson
summation shows to be 1 up to exp(-2 pi^2 sigma^2).

>>> loss = DiscreteGaussian(sigma=2.0, sensitivity=1)
>>> print(f"{loss.cumulants([1.0])[0, 0]:.12f}")
0.250000000000
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcal.accountants.losses.base import OutOfReach, Points
from dpcal.accountants.losses.discrete import AtomLoss, atoms, hockey_stick
from dpcal.accountants.losses.lattice import MOST_POINTS
from dpcal.accountants.rounding import UNIT

# Distance from the centers, in sigma, beyond which no noise counts: a normal law has 2e-21 there.
_REACH = 9.5
_FEWEST = 12.0
_COARSE = 1000.0
# Least sigma of the dual series: its omitted terms are below 1e-100.
_DUAL = 0.9
# Half-width of the sums, in sigma around the tilted center: the mass beyond is about exp(-60).
_RANGE = 11.0
# Largest noise: whole numbers up to this, and their halves, are exact.
_MOST_NOISE = 2.0**51


@dataclass(frozen=True)
class DiscreteGaussian(AtomLoss):
    """The discrete Gaussian mechanism, the same in both directions.

    Parameters
    ----------
    sigma
        Scale > 0 of the noise.
    sensitivity
        Shift s >= 1, a whole number, between neighbors.
    """

    sigma: float
    sensitivity: int

    @property
    def _variance(self) -> float:
        return (self.sensitivity / self.sigma) ** 2

    def points(self, highest: float, *, shifted: bool = False) -> Points:
        """Return the values; sums over every k-th one serve early times.

        By Poisson summation they differ from sums over all by a factor of 1 + 2.1 exp(2 pi s abs(t)
        / k - 2 pi^2 (sigma / k)^2), at most, on Re z = c + i t. They serve times at which exp(-13
        (sigma / k)^2) is left. With y = t s / sigma^2 a tilted characteristic function is at most
        the Gaussian's times (1 + 2 e) / (1 - 2 e), e = exp(2 pi sigma^2 (y - pi)), which is 1 to
        rounding up to the time below.
        """
        s, sigma = self.sensitivity, self.sigma
        stride = max(1, math.floor(sigma / _COARSE))
        far = math.ceil(max(_REACH * sigma, _FEWEST) / stride)
        high = (1 + highest) * s / stride + far
        if not high + far < MOST_POINTS:
            raise OutOfReach
        noise = np.arange(-far, far + 1.0) * stride
        log_norm = math.log(np.exp(-0.5 * (noise / sigma) ** 2).sum())
        x = np.arange(-far, math.ceil(max(high, s / stride + far)) + 1.0) * stride
        values = s * (2 * x - s) / (2 * sigma**2)
        until = sigma**2 / s * (math.pi - 45.0 / (2 * math.pi * sigma**2))
        return atoms(
            values,
            -0.5 * (x / sigma) ** 2 - log_norm,
            np.abs(values) + s * s / sigma**2,
            latest=sigma**2 / (stride * s) if stride > 1 else math.inf,
            normal=(self._variance, max(until, 0.0) if sigma >= _DUAL else 0.0),
        )

    def log_mgf_bound(self, c: float) -> float:
        """Return the Gaussian's log M(c), which is never smaller (Canonne et al. 2020)."""
        return self._variance * (c * c + c) / 2

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return the sum over the noise above epsilon; None if it takes too many terms."""
        s, sigma = self.sensitivity, self.sigma
        middle = (epsilon * 2 * sigma**2 / s + s) / 2
        # Beyond that, neighboring values are equal in double precision.
        if sigma > 1e4 or s > 1e6 * sigma or middle > _MOST_NOISE:
            return None
        start = max(math.floor(middle) - 1, math.floor(s - _RANGE * 4 * sigma) - 1)
        x = np.arange(start, max(start, s) + math.ceil(_RANGE * sigma) + 3.0)
        values = s * (2 * x - s) / (2 * sigma**2)
        if not values[-1] > epsilon:
            return None
        k = np.arange(-math.ceil(_REACH * sigma) - 1.0, math.ceil(_REACH * sigma) + 2.0)
        log_norm = math.log(np.exp(-0.5 * (k / sigma) ** 2).sum())
        logs = -0.5 * ((x - s) / sigma) ** 2 - log_norm
        return hockey_stick(logs, values, epsilon, UNIT * (32 + 4 * len(x)))
