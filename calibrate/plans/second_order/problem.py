"""How wrong is a gradient that is kept up to date by noisy differences? Ada-DP-SPIDER's error.

Letters are those of Tao et al. (2025), with every constant written out:

=========== ====================================================================================
n, d, m     records of a silo, parameters, silos
G, M, rho   bounds on one record's gradient, Hessian and change of the Hessian
z           noise multiplier of the plan, in units of one record's contribution
b1, b2      records behind a fresh gradient, and behind a difference
kappa       squared movement after which the next gradient is fresh
eta         step size
sigma, r    sampling error of an estimate, and standard deviation of its noise in a coordinate
psi         sqrt(sigma^2 + d r^2), the size of an estimate's error
=========== ====================================================================================

An estimate holds one fresh gradient, and differences along a path whose squared steps add up to
less than kappa. So

    sigma = 2 sqrt((G^2 / b1 + M^2 kappa / b2) / m),   r = z sqrt((G^2 / b1^2 + M^2 kappa / b2^2) /
    m),

and with probability 1 - omega / 2 no error among T estimates is larger than
``sigma sqrt(2 ln(8 T / omega)) + r (sqrt(d) + sqrt(2 ln(4 T / omega)))``: a martingale bound for
vectors, and a Gaussian's tail.

>>> error = Errors(n=100_000, d=10, m=1, G=10**0.5, M=1.0, z=8.45, eta=0.2, b1=2000, b2=100,
...                kappa=0.05)
>>> print(f"psi = {error.size:.3f}, at most {error.level(300, 0.05):.2f} in 300 estimates")
psi = 0.165, at most 0.87 in 300 estimates
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["FEEDBACK", "Errors"]

# The noise of a difference is in proportion to the step, and the step to the estimate with its
# noise. At a ratio of 1 the noise feeds on itself until kappa stops it; at 1/2 it adds a third.
FEEDBACK = 0.5


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The error of an estimate, in the letters of the module; every number is checked before."""

    n: int
    d: int
    m: int
    G: float
    M: float
    z: float
    eta: float
    b1: int
    b2: int
    kappa: float

    @property
    def spread(self) -> float:
        """The sampling error sigma."""
        return 2 * math.sqrt((self.G**2 / self.b1 + self.M**2 * self.kappa / self.b2) / self.m)

    @property
    def noise(self) -> float:
        """The noise r in a coordinate."""
        squares = (self.G / self.b1) ** 2 + self.kappa * (self.M / self.b2) ** 2
        return self.z * math.sqrt(squares / self.m)

    @property
    def size(self) -> float:
        """The size psi of the whole error."""
        return math.hypot(self.spread, math.sqrt(self.d) * self.noise)

    def level(self, calls: float, failure_probability: float) -> float:
        """Return a bound on all errors of estimates, but for half the failure probability."""
        sampled = math.sqrt(2 * math.log(8 * calls / failure_probability))
        drawn = math.sqrt(self.d) + math.sqrt(2 * math.log(4 * calls / failure_probability))
        return self.spread * sampled + self.noise * drawn

    @property
    def feedback(self) -> float:
        """Factor by which the noise of a difference exceeds the estimate that led to it."""
        return self.z * self.M * self.eta * math.sqrt(self.d / self.m) / self.b2

    @property
    def own_drift(self) -> float:
        """Squared length of the step that a fresh gradient's noise alone makes."""
        return (self.eta * self.z * self.G / self.b1) ** 2 * self.d / self.m

    @property
    def balanced_kappa(self) -> float:
        """The kappa at which differences err as much as the fresh gradient before them."""
        fresh = 4 * self.G**2 / self.b1 + self.d * (self.z * self.G / self.b1) ** 2
        differences = 4 * self.M**2 / self.b2 + self.d * (self.z * self.M / self.b2) ** 2
        return fresh / differences
