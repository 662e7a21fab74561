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
>>> print(f"{loss.lattice.spacing:.6f}")
0.250000
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.accountants.losses.base import Complexes, Lattice, OutOfReach, PrivacyLoss, Reals, Tilt
from dpcal.accountants.losses.quadrature import complex_log1p
from dpcal.accountants.rounding import UNIT

__all__ = ["DiscreteGaussian"]

# Values of the noise over which a theta function is summed, around its center. For sigma < 0.9 the
# other values add less than 1e-25.
_NOISE = np.arange(-12.0, 13.0)
# Sigma from which on the dual series is used: its omitted terms are below 1e-100 there.
_DUAL = 0.9
# Distance from the tilted center, in sigma, within which values of the noise are summed: the mass
# beyond is about exp(-60), far below a rounding.
_RANGE = 11.0
# Whole numbers up to this, and their halves, are exact.
_MOST_NOISE = 2.0**51
# The smallest normal double. Variances and fourth moments are at least this, so that they have
# logarithms.
_LEAST = float(np.finfo(np.float64).tiny)


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
        whole, fraction, rest = np.array([self._place(float(x)) for x in c]).T
        log_ratio, *moments = self._theta(fraction, rest)
        scale = self.sensitivity / self.sigma**2
        mean = scale * (whole + self.sensitivity / 2 + moments[0])
        log_mgf = self._variance * (c * (1 + c)) / 2 + log_ratio
        return np.column_stack([log_mgf, mean, scale**2 * moments[1], scale**4 * moments[2]])

    def _place(self, c: float) -> tuple[float, float, float]:
        """Return the whole number nearest to c s, and the excess of c s over it, in two parts.

        A small sigma magnifies the second part, which is below the rounding of the first.
        """
        if not math.isfinite(c):
            raise OutOfReach
        product = Fraction(c) * self.sensitivity
        whole = round(product)
        fraction = float(product - whole)
        return float(whole), fraction, float(product - whole - Fraction(fraction))

    def _theta(self, fraction: Reals, rest: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Return log theta(u) / theta(0) for u a whole number plus a fraction in [-1/2, 1/2].

        The other results are the mean of the noise about u less that number, its variance and its
        fourth central moment.
        """
        if self.sigma >= _DUAL:
            return self._dual_theta(fraction)
        return self._direct_theta(fraction, rest)

    def _dual_theta(self, fraction: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Return the log of the theta ratio and three moments of the noise, by Poisson summation.

        The noise about u is Gaussian but for the factor 1 + 2 sum a_k cos(2 pi k u).
        """
        sigma, k = self.sigma, np.arange(1.0, 4.0)
        a = 2 * np.exp(-2 * (math.pi * sigma * k) ** 2)
        angle = 2 * math.pi * np.outer(fraction, k)
        log_ratio = np.log1p(-2 * (np.sin(angle / 2) ** 2 @ a) / (1 + a.sum()))
        whole = 1 + np.cos(angle) @ a
        w = 2 * math.pi * k * sigma**2
        # Moments of exp(-y^2 / (2 sigma^2)) against cos(2 pi k (u + y)).
        m1 = -(np.sin(angle) @ (a * w)) / whole
        m2 = (sigma**2 + np.cos(angle) @ (a * (sigma**2 - w**2))) / whole
        m3 = -(np.sin(angle) @ (a * (3 * sigma**2 * w - w**3))) / whole
        fourth = 3 * sigma**4 - 6 * sigma**2 * w**2 + w**4
        m4 = (3 * sigma**4 + np.cos(angle) @ (a * fourth)) / whole
        # Here m1 is below 1e-5, so that no digits cancel.
        central = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        return log_ratio, fraction + m1, m2 - m1**2, central

    def _direct_theta(self, fraction: Reals, rest: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Return the log of the theta ratio and three moments of the noise, summed term by term."""
        twice = 2 * self.sigma**2
        weights = np.exp(-self._exponents(fraction, rest))
        mass = weights.sum(axis=1)
        square = fraction**2 / twice
        # Differences from theta(0), term by term, keep the digits of a ratio near 1.
        base = np.exp(-(_NOISE**2) / twice)
        change = fraction[:, None] * (2 * _NOISE - fraction[:, None]) / twice
        far = np.exp(-square)[:, None] * weights - base
        gain = np.where(change < 1.0, base * np.expm1(np.minimum(change, 1.0)), far).sum(axis=1)
        ratio = gain / base.sum()
        near = np.log1p(np.maximum(ratio, -0.5))
        log_ratio = np.where(ratio > -0.5, near, np.log(mass) - square - math.log(base.sum()))
        shares = weights / mass[:, None]
        mean = shares @ _NOISE
        squares = (_NOISE - mean[:, None]) ** 2
        variance, fourth = (shares * squares).sum(axis=1), (shares * squares**2).sum(axis=1)
        # A law is never a single point, but its variance may be below the range of a double.
        return log_ratio, mean, np.maximum(variance, _LEAST), np.maximum(fourth, _LEAST)

    def _exponents(self, fraction: Reals, rest: Reals) -> Reals:
        """Return the largest exponent of the noise minus each of them; shape (len(fraction), m).

        As abs(fraction) <= 1/2, the largest exponent is that of noise 0.
        """
        distance = (_NOISE - 2 * fraction[:, None]) - 2 * rest[:, None]
        return np.asarray(_NOISE * distance / (2 * self.sigma**2))

    def log_mgf_bound(self, c: float) -> float:
        """Return the Gaussian's log M(c), which is never smaller (Canonne et al. 2020)."""
        return self._variance * (c * c + c) / 2

    def tilt(self, c: float) -> _DiscreteTilt:
        """Return the tilted law, again a discrete Gaussian."""
        return _DiscreteTilt(self, c)

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return the sum over the noise above epsilon; None if it takes too many terms."""
        s, sigma = self.sensitivity, self.sigma
        middle = (epsilon * 2 * sigma**2 / s + s) / 2
        # Beyond that, neighboring values are equal in double precision.
        if sigma > 1e4 or s > 1e6 * sigma or middle > _MOST_NOISE:
            return None
        start = max(math.floor(middle) - 1, math.floor(s - _RANGE * 4 * sigma) - 1)
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

    def __init__(self, loss: DiscreteGaussian, c: float) -> None:
        self._loss = loss
        self.mean = float(loss.cumulants([c])[0, 1])
        _, self._fraction, rest = loss._place(c)
        place = np.array([self._fraction]), np.array([rest])
        # This is the mean of the noise less the whole number next to (1 + c) s.
        self._mean_noise = float(loss._theta(*place)[1][0])
        self.amplification, error = 4.0, 4.0
        if loss.sigma < _DUAL:
            exponents = loss._exponents(*place)[0]
            weights = np.exp(-exponents)
            keep = weights > 0
            self._noise, self._weights = _NOISE[keep], weights[keep] / weights.sum()
            # The relative error of a weight is that of its exponent; psi - 1 is a sum over all
            # values but the nearest.
            errors = self._weights * exponents[keep]
            error += 4 * float(errors @ np.abs(self._noise - self._mean_noise))
            self.amplification += float(errors.sum()) / max(
                float(self._weights[self._noise != 0].sum()), 1e-300
            )
        self.mean_rounding = loss.sensitivity / loss.sigma**2 * error

    @property
    def decays(self) -> bool:
        """False: the characteristic function is periodic."""
        return False

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        loss, t = self._loss, step * np.arange(nodes)
        scale = loss.sensitivity / loss.sigma**2
        # Apart from the phase of the mean, psi has this period in t.
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
        # The whole number next to (1 + c) s is a value of the noise, and all values have its phase.
        shift = -scale * self._mean_noise
        return np.asarray(values + 1j * turns * period * shift)

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
        drift = self._mean_noise - self._fraction
        return np.asarray(-0.5 * (sigma * y) ** 2 + complex_log1p(excess) - 1j * drift * y)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return the Gaussian's bound times its factor at the far end, to half a period; then 0."""
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


def _sine_less_angle(a: Reals) -> Reals:
    """Return sin(a) - a with full relative precision."""
    square = a * a
    series = 1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110)))
    return np.asarray(np.where(np.abs(a) < 0.5, -a * square / 6 * series, np.sin(a) - a))
