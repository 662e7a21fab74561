r"""The discrete Gaussian mechanism: its privacy loss lives on a lattice.

With P(x) proportional to exp(-(x - s)^2 / (2 sigma^2)) on the whole numbers and Q its shift to 0,
the loss of x is s (2 x - s) / (2 sigma^2), and completing the square

    M(z) = exp(s^2 (z^2 + z) / (2 sigma^2)) theta((1 + z) s) / theta(0),
    theta(u) = sum_x exp(-(x - u)^2 / (2 sigma^2))

(Canonne, Kamath and Steinke 2020). The Gaussian's value times a factor that Poisson summation
shows to be 1 up to exp(-2 pi^2 sigma^2).

>>> loss = DiscreteGaussian(sigma=2.0, sensitivity=1)
>>> print(f"{loss.cumulants([1.0])[0, 0]:.12f}")
0.250000000000
>>> print(f"{loss.lattice.spacing:.6f}")
0.250000
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal.accountants.loss import UNIT, Lattice, PrivacyLoss, Tilt
from dpcal.accountants.quadrature import complex_log1p

__all__ = ["DiscreteGaussian"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Terms of a theta function on either side of its center, which leave out less than 1e-25.
_TERMS = 12
# From this sigma on the dual series converges faster.
_DUAL = 0.9
# Values of the noise within this many sigma of its tilted center are summed.
_RANGE = 11.0


@dataclass(frozen=True)
class DiscreteGaussian(PrivacyLoss):
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

    def __post_init__(self) -> None:
        _validate.positive(sigma=self.sigma)
        _validate.count(sensitivity=self.sensitivity)

    @property
    def upper(self) -> float:
        """Infinity."""
        return math.inf

    @property
    def _variance(self) -> float:
        return (self.sensitivity / self.sigma) ** 2

    @property
    def lattice(self) -> Lattice:
        """Odd or even multiples of s / (2 sigma^2)."""
        unit = self.sensitivity / (2 * self.sigma**2)
        return Lattice(-self.sensitivity * unit, unit, 2)

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, as sums of theta functions."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        v = self._variance
        log_ratio, *moments = self._theta(c)
        scale = self.sensitivity / self.sigma**2
        mean = v * (c + 0.5) + scale * moments[0]
        log_mgf = v * (c * c + c) / 2 + log_ratio
        return np.column_stack([log_mgf, mean, scale**2 * moments[1], scale**4 * moments[2]])

    def _theta(self, c: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Log theta(u) / theta(0) at u = (1 + c) s, and moments of the noise about u.

        They are mean, variance and fourth central moment. Both depend on the fraction of u alone.
        """
        fraction = np.remainder(c * self.sensitivity, 1.0)
        sigma = self.sigma
        if sigma >= _DUAL:
            k = np.arange(1.0, 4.0)
            # The noise about u is Gaussian but for the factor 1 + 2 sum a_k cos(2 pi k u).
            a = 2 * np.exp(-2 * (math.pi * sigma * k) ** 2)
            angle = 2 * math.pi * np.outer(fraction, k)
            log_ratio = np.log1p((a * (np.cos(angle) - 1)).sum(axis=1) / (1 + a.sum()))
            whole = 1 + np.cos(angle) @ a
            w = 2 * math.pi * k * sigma**2
            # Moments of exp(-y^2 / (2 sigma^2)) against cos(2 pi k (u + y)).
            m1 = -(np.sin(angle) @ (a * w)) / whole
            m2 = (sigma**2 + np.cos(angle) @ (a * (sigma**2 - w**2))) / whole
            m3 = -(np.sin(angle) @ (a * (3 * sigma**2 * w - w**3))) / whole
            fourth = 3 * sigma**4 - 6 * sigma**2 * w**2 + w**4
            m4 = (3 * sigma**4 + np.cos(angle) @ (a * fourth)) / whole
        else:
            y = np.arange(-float(_TERMS), _TERMS + 1.0) - fraction[:, None]
            weights = np.exp(-0.5 * (y / sigma) ** 2)
            # Differences from theta(0), term by term.
            x = np.arange(-float(_TERMS), _TERMS + 1.0)
            base = np.exp(-0.5 * (x / sigma) ** 2)
            change = (fraction[:, None] * (x - fraction[:, None] / 2)) / sigma**2
            gain = (base * np.expm1(np.minimum(change, 700.0))).sum(axis=1)
            log_ratio = np.log1p(gain / base.sum())
            mass = weights.sum(axis=1)
            m1, m2, m3, m4 = ((weights * y**n).sum(axis=1) / mass for n in (1, 2, 3, 4))
        variance = m2 - m1**2
        central = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        return log_ratio, m1, np.maximum(variance, 0.0), np.maximum(central, 0.0)

    def log_mgf_bound(self, c: float) -> float:
        """Return the Gaussian's log M(c), which is never smaller (Canonne et al. 2020)."""
        return self._variance * (c * c + c) / 2

    def log_mgf(self, z: ArrayLike) -> Any:
        """Return log M(z), up to multiples of 2 pi i."""
        z = np.asarray(z, dtype=complex)
        base = self.cumulants(z.real.ravel())[:, 0].reshape(z.shape)
        change = [self.tilt(float(p.real)).at(np.array([p.imag]))[0] for p in z.ravel()]
        means = [self.tilt(float(p.real)).mean for p in z.ravel()]
        phase = 1j * z.imag * np.reshape(means, z.shape)
        return (base + np.reshape(change, z.shape) + phase)[()]

    def tilt(self, c: float) -> _DiscreteTilt:
        """Return the tilted law, again a discrete Gaussian."""
        return _DiscreteTilt(self, c)

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return the sum over the noise above epsilon; None where it takes too many terms."""
        s, sigma = self.sensitivity, self.sigma
        if sigma > 1e4 or s > 1e6 * sigma:
            return None
        first = math.floor((epsilon * 2 * sigma**2 / s + s) / 2)
        start = max(first - 1, math.floor(s - _RANGE * 4 * sigma) - 1)
        x = np.arange(start, max(start, s) + math.ceil(_RANGE * sigma) + 3.0)
        gaps = s * (2 * x - s) / (2 * sigma**2) - epsilon
        x, gaps = x[gaps > 0], gaps[gaps > 0]
        if not len(x):
            return None
        k = np.arange(-math.ceil(9.5 * sigma) - 1.0, math.ceil(9.5 * sigma) + 2.0)
        log_norm = math.log(np.exp(-0.5 * (k / sigma) ** 2).sum())
        logs = -0.5 * ((x - s) / sigma) ** 2 - log_norm + np.log(-np.expm1(-gaps))
        total = float(np.logaddexp.reduce(logs))
        sizes = np.abs(epsilon) + gaps + ((x - s) / sigma) ** 2
        spread = float((np.exp(logs - total) * sizes * (1 + 1 / np.minimum(gaps, 1.0))).sum())
        return total, UNIT * (64 + 8 * spread + 4 * len(x))


class _DiscreteTilt(Tilt):
    """The tilted law of a discrete Gaussian loss."""

    points = 4
    amplification = 4.0

    def __init__(self, loss: DiscreteGaussian, c: float) -> None:
        self._loss, self._c = loss, c
        self.mean = float(loss.cumulants([c])[0, 1])
        fraction = math.remainder(c * loss.sensitivity, 1.0)
        if loss.sigma < _DUAL:
            y = np.arange(-float(_TERMS), _TERMS + 1.0) - fraction
            weights = np.exp(-0.5 * (y / loss.sigma) ** 2)
            keep = weights > 0
            self._noise, self._weights = y[keep], weights[keep] / weights.sum()
            self._mean_noise = float(self._weights @ self._noise)
        self._fraction = fraction

    @property
    def decays(self) -> bool:
        """Whether it falls to 0: never, as it is periodic."""
        return False

    def at(self, t: Any) -> Complexes:
        """Log psi(t), for any times."""
        loss = self._loss
        scale = loss.sensitivity / loss.sigma**2
        # psi has this period in t, but for the phase of the mean.
        period = 2 * math.pi / scale
        turns = np.rint(t / period)
        rest = t - turns * period
        if loss.sigma < _DUAL:
            angle = np.outer(rest * scale, self._noise - self._mean_noise)
            # exp(i a) - 1 - i a, keeping the digits of small a.
            second = -2 * np.sin(angle / 2) ** 2 + 1j * _sine_less_angle(angle)
            values = complex_log1p(second @ self._weights)
        else:
            values = self._dual(rest, scale)
        shift = self._noise_at_zero() * scale - self.mean
        return np.asarray(values + 1j * turns * period * shift)

    def _noise_at_zero(self) -> float:
        """A value of the noise, of which the lattice's phase is that of every other one.

        The loss is scale times (noise + u) less s^2 / (2 sigma^2), with noise in Z - fraction.
        """
        s = self._loss.sensitivity
        return round((1 + self._c) * s - self._fraction) - s / 2

    def _dual(self, t: Reals, scale: float) -> Complexes:
        sigma = self._loss.sigma
        k = np.arange(1.0, 4.0)
        y = t * scale
        # exp(-sigma^2 y^2 / 2) (1 + sum a_k cosh(2 pi k (sigma^2 y + i f))) over its value at 0.
        a = 2 * np.exp(-2 * (math.pi * sigma * k) ** 2)
        angle = 2 * math.pi * k * self._fraction
        grow = np.exp(
            -2 * (math.pi * sigma * k) ** 2 + 2 * math.pi * sigma**2 * np.outer(np.abs(y), k)
        )
        fade = np.exp(
            -2 * (math.pi * sigma * k) ** 2 - 2 * math.pi * sigma**2 * np.outer(np.abs(y), k)
        )
        whole = 1 + float(np.cos(angle) @ a)
        real = (grow + fade) @ np.cos(angle)
        imaginary = np.sign(y) * ((grow - fade) @ np.sin(angle))
        excess = (real - float(np.cos(angle) @ a)) / whole - 1j * imaginary / whole
        drift = self.mean / scale - (self._c + 0.5) * self._loss.sensitivity
        return np.asarray(-0.5 * (sigma * y) ** 2 + complex_log1p(excess) - 1j * drift * y)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        return self.at(step * np.arange(nodes))

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """The Gaussian's, times its factor at the far end, up to half a period; then nothing."""
        loss = self._loss
        half = math.pi * loss.sigma**2 / loss.sensitivity
        end = np.minimum(ratio * t, 1e300)
        bound = np.zeros_like(t)
        inside = end <= half
        if loss.sigma >= _DUAL:
            k = np.arange(1.0, 4.0)
            y = end[inside] * loss.sensitivity / loss.sigma**2
            exponents = 2 * math.pi * loss.sigma**2 * (np.outer(y, k) - math.pi * k * k)
            factor = (1 + 2 * np.exp(exponents).sum(axis=1)) / (
                1 - 2 * float(np.exp(-2 * (math.pi * loss.sigma * k) ** 2).sum())
            )
            bound[inside] = np.log(factor) - 0.5 * loss._variance * t[inside] ** 2
        return np.minimum(bound, 0.0)

    def log_slope(self, step: float, nodes: int, parameter: str) -> Complexes:
        raise NotImplementedError(f"no derivative with respect to {parameter!r}")


def _sine_less_angle(a: Reals) -> Reals:
    """sin(a) - a with full relative precision."""
    square = a * a
    series = 1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110)))
    return np.asarray(np.where(np.abs(a) < 0.5, -a * square / 6 * series, np.sin(a) - a))
