r"""What is the law of the privacy loss? One dominating pair seen as its log-MGF.

For a dominating pair (P, Q) of a mechanism let L = log dP/dQ under P and

    M(z) = E_P[exp(z L)].

A :class:`PrivacyLoss` knows log M on the strip where it converges, the cumulants of the tilted
laws ``exp(c L) P / M(c)``, and, for a fixed tilt, the characteristic function along a vertical
line together with a proved bound on its decay (a :class:`Tilt`). Everything an accountant computes
is read off these.

>>> loss = SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction="remove")
>>> print(f"{loss.mean:.6e} {loss.std:.6e}")
8.381221e-05 1.310078e-02
>>> Gaussian(noise_multiplier=2.0).log_mgf(1.0)          # (z^2 + z) / (2 sigma^2)
np.complex128(0.25+0j)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr

from dpcal import _validate
from dpcal._ext.contour import second_order_sums, tilted_moments

__all__ = ["Gaussian", "PrivacyLoss", "SampledGaussian", "Tilt"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

UNIT = float(np.finfo(np.float64).eps)

# Relative size of what the quadrature may miss, against terms of second order in the loss.
_QUADRATURE_TOLERANCE = 1e-19
# Half-width of a quadrature range in standard deviations of the noise.
_RANGE = 9.5
# More quadrature points than this and the caller is told to use a bound in closed form.
_MAX_POINTS = 400_000


class OutOfReach(Exception):  # noqa: N818 -- internal signal, never leaves the package
    """A tilt so extreme that no quadrature of affordable size covers it."""


class Tilt(ABC):
    """The law ``exp(c L) P / M(c)`` of a loss, along the vertical line Re z = c."""

    mean: float
    """Mean of the loss under the tilted law."""
    points: int
    """Cost of one contour node, in complex multiplications."""
    amplification: float
    """By how much sums exceed the unit mass they represent: the growth of rounding error."""

    @abstractmethod
    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return log psi(k step) for k = 0, ..., nodes - 1.

        Here psi(t) = E[exp(i t (L - mean))] under the tilted law.
        """

    @abstractmethod
    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return a proved upper bound on log abs(psi) over [t, ratio t], for each t > 0."""

    @abstractmethod
    def log_slope(self, step: float, nodes: int, parameter: str) -> Complexes:
        """Return the derivative of log M(c + i k step) in a parameter of the mechanism."""


class PrivacyLoss(ABC):
    """One direction of a dominating pair."""

    @property
    @abstractmethod
    def upper(self) -> float:
        """Supremum of the loss; may be infinite."""

    @abstractmethod
    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted law, for each real c > -1.

        The columns of the result, of shape (len(c), 4), are log M, mean, variance and fourth
        central moment.
        """

    @abstractmethod
    def log_mgf_bound(self, c: float) -> float:
        """Return a closed-form upper bound on log M(c), c > 0, valid however extreme c is."""

    @abstractmethod
    def log_mgf(self, z: ArrayLike) -> Any:
        """Return log M(z) for complex z with Re z > -1, elementwise (principal branch)."""

    @abstractmethod
    def tilt(self, c: float) -> Tilt:
        """Return the tilted law along Re z = c, for real c > -1."""

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return log delta(epsilon) of a single use and its relative error, if in closed form."""
        return None

    @property
    def mean(self) -> float:
        """Mean of the privacy loss: the Kullback-Leibler divergence of P from Q."""
        return float(self.cumulants([0.0])[0, 1])

    @property
    def std(self) -> float:
        """Standard deviation of the privacy loss."""
        return math.sqrt(float(self.cumulants([0.0])[0, 2]))


@dataclass(frozen=True)
class Gaussian(PrivacyLoss):
    """The Gaussian mechanism: P = N(1, sigma^2), Q = N(0, sigma^2), the same in both directions.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise over the L2 sensitivity, > 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)

    @property
    def upper(self) -> float:
        """Infinity: the loss is Gaussian."""
        return math.inf

    @property
    def _variance(self) -> float:
        return 1.0 / self.noise_multiplier**2

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, in closed form."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        v = self._variance
        ones = np.ones_like(c)
        return np.column_stack([v * (c * c + c) / 2, v * (c + 0.5), v * ones, 3 * v * v * ones])

    def log_mgf_bound(self, c: float) -> float:
        """Return log M(c) itself."""
        return self._variance * (c * c + c) / 2

    def log_mgf(self, z: ArrayLike) -> Any:
        """Return (z^2 + z) / (2 sigma^2)."""
        z = np.asarray(z, dtype=complex)
        return (self._variance * (z * z + z) / 2)[()]

    def tilt(self, c: float) -> Tilt:
        """Return the tilted law, a Gaussian with the same variance."""
        return _GaussianTilt(c, self.noise_multiplier)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form of Balle and Wang (2018), Theorem 8."""
        return _log_gaussian_delta(epsilon, 1.0 / self.noise_multiplier)


class _GaussianTilt(Tilt):
    """The tilted law of a Gaussian loss."""

    points = 1
    amplification = 1.0

    def __init__(self, c: float, noise_multiplier: float) -> None:
        self._c = c
        self._sigma = noise_multiplier
        self._variance = 1.0 / noise_multiplier**2
        self.mean = self._variance * (c + 0.5)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        t = step * np.arange(nodes)
        return np.asarray(-0.5 * self._variance * t * t, dtype=complex)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        return np.asarray(-0.5 * self._variance * t * t)

    def log_slope(self, step: float, nodes: int, parameter: str) -> Complexes:
        if parameter != "noise_multiplier":
            return np.zeros(nodes, dtype=complex)
        z = self._c + 1j * step * np.arange(nodes)
        return np.asarray(-(z * z + z) * self._variance / self._sigma)


def _log_gaussian_delta(epsilon: float, mu: float) -> tuple[float, float]:
    """Log delta(epsilon) of N(mu, 1) against N(0, 1) and its relative error; any real epsilon.

    delta = Phi(-a) - exp(epsilon) Phi(-b), a = epsilon / mu - mu / 2, b = a + mu. As phi(a) =
    exp(epsilon) phi(b), this is phi(a) times a difference of Mills ratios, free of overflow.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < -5.0:
        # The first term is 1 up to 3e-7: no cancellation.
        first, second = math.exp(log_ndtr(-a)), math.exp(epsilon + log_ndtr(-b))
        return math.log(first - second), 64 * UNIT * (1 + abs(epsilon)) / (first - second)
    ratios = math.sqrt(math.pi / 2) * erfcx(np.array([a, b]) / math.sqrt(2))
    gap = float(ratios[0] - ratios[1])
    if gap <= 0.0:
        # The two ratios agree to rounding: bound the gap by mu times the slope at a, R'(a) = a
        # R(a) - 1.
        return -math.inf, math.inf
    log_density = -0.5 * a * a - 0.5 * math.log(2 * math.pi)
    error = UNIT * (16 * float(ratios[0]) / gap + 8 * a * a + 8)
    return log_density + math.log(gap), error


@dataclass(frozen=True)
class SampledGaussian(PrivacyLoss):
    """The Poisson-sampled Gaussian mechanism in one direction of add-or-remove-one.

    With w(x) = 1 - q + q exp((2 x - 1) / (2 sigma^2)), the mixture (1 - q) N(0, sigma^2) + q N(1,
    sigma^2) has density w relative to N(0, sigma^2). ``"remove"`` has the mixture as P and N(0,
    sigma^2) as Q, ``"add"`` the reverse; together they dominate every pair of neighbors (Zhu, Dong
    and Wang 2022, Theorem 11).

    Parameters
    ----------
    sampling_probability
        q in (0, 1).
    noise_multiplier
        sigma > 0.
    direction
        ``"remove"`` or ``"add"``.

    Notes
    -----
    M(z) is the integral of phi_sigma(x) w(x)^p with p = 1 + z (remove) or p = -z (add). The
    integrand is analytic for abs(Im x) < pi sigma^2. On the line Im x = y > 0 (remove; y < 0 for
    add) every factor w^(i t), t > 0, shrinks, so the trapezoid rule there has an error bounded
    uniformly in t, and its absolute sum bounds abs(M(c + i t)) from above by a quantity that falls
    with t.
    """

    sampling_probability: float
    noise_multiplier: float
    direction: str
    _lattices: dict[str, _Lattice] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        _validate.probability(sampling_probability=self.sampling_probability)
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.choice(("remove", "add"), direction=self.direction)

    @property
    def upper(self) -> float:
        """Infinity when removing; -log(1 - q) when adding."""
        return math.inf if self.direction == "remove" else -math.log1p(-self.sampling_probability)

    def _power(self, c: Any) -> Any:
        return 1.0 + c if self.direction == "remove" else -c

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "remove" else -1.0

    def _lattice(self, powers: Reals) -> _Lattice:
        """Quadrature lattice that serves all ``powers``; the last one is kept."""
        lowest, highest = float(powers.min()), float(powers.max())
        lattice = self._lattices.get("last")
        if lattice is None or not lattice.lowest <= lowest <= highest <= lattice.highest:
            lattice = _Lattice(self.sampling_probability, self.noise_multiplier, lowest, highest)
            self._lattices["last"] = lattice
        return lattice

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, by the trapezoid rule."""
        powers = self._power(np.atleast_1d(np.asarray(c, dtype=float)))
        lattice = self._lattice(powers)
        result = tilted_moments(lattice.ell, lattice.log_base, powers)
        result[:, 1] *= self._sign
        return result

    def log_mgf_bound(self, c: float) -> float:
        """Return log(1 - q + q exp((c^2 + c) / (2 sigma^2))).

        It is a bound by convexity of x^(1 + c) and x^(-c).
        """
        q = self.sampling_probability
        exponent = (c * c + c) / (2 * self.noise_multiplier**2)
        if exponent < 700:
            return math.log1p(q * math.expm1(exponent))
        return exponent + math.log(q + (1 - q) * math.exp(-exponent))

    def log_mgf(self, z: ArrayLike) -> Any:
        """Return log M(z) by the trapezoid rule, directly for each z."""
        z = np.asarray(z, dtype=complex)
        flat = np.atleast_1d(z).ravel()
        result = np.empty(flat.shape, dtype=complex)
        for i, point in enumerate(flat):
            tilt = self.tilt(float(point.real))
            base = float(self.cumulants([point.real])[0, 0])
            t = abs(float(point.imag))
            value = base + 1j * t * tilt.mean + (tilt.log_ratio(t, 2)[1] if t else 0.0)
            result[i] = value if point.imag >= 0 else value.conjugate()
        return result.reshape(z.shape)[()]

    def tilt(self, c: float) -> _SampledTilt:
        """Return the tilted law along Re z = c."""
        return _SampledTilt(self, c)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form of a single use: the Gaussian's delta at an amplified epsilon.

        With exp(u) = 1 + (exp(epsilon) - 1) / q the sampled mechanism has delta = q
        delta_Gaussian(u) when removing (Balle, Barthe and Gaboardi 2018, Theorem 2); when adding,
        delta = exp(epsilon) q (exp(u) Phi(b) - Phi(a)) at the point where the loss is epsilon,
        which is again a Gaussian's delta by symmetry.
        """
        q, mu = self.sampling_probability, 1.0 / self.noise_multiplier
        if self.direction == "remove":
            shifted = _log_expm1_over(epsilon, q)
            log_delta, error = _log_gaussian_delta(shifted, mu)
            return math.log(q) + log_delta, error + 4 * UNIT * (1 + abs(shifted) / mu**2)
        if epsilon >= self.upper:
            return -math.inf, 0.0
        # exp(u) Phi(b) - Phi(a) = exp(u) (1 - Phi(-b)) - (1 - Phi(-a)), the Gaussian's delta at -u
        # times exp(u).
        u = math.log1p(math.expm1(-epsilon) / q)
        log_delta, error = _log_gaussian_delta(-u, mu)
        conditioning = (1 + abs(u) / mu**2) * (1 + abs(math.expm1(-epsilon)) / (q * math.exp(u)))
        return epsilon + math.log(q) + u + log_delta, error + 8 * UNIT * conditioning


def _log_expm1_over(epsilon: float, q: float) -> float:
    """log(1 + (exp(epsilon) - 1) / q), without overflow."""
    if epsilon < 700:
        return math.log1p(math.expm1(epsilon) / q)
    return epsilon - math.log(q)


class _Lattice:
    """Trapezoid points for the integrals of phi_sigma(x) w(x)^p, lowest <= p <= highest.

    The step makes the rule's error, bounded on the lines Im x = +-shift of the strip of
    analyticity, smaller than ``_QUADRATURE_TOLERANCE``, both on the real line and on the shifted
    line Im x = shift.
    """

    def __init__(self, q: float, sigma: float, lowest: float, highest: float) -> None:
        self.q, self.sigma = q, sigma
        self.lowest = min(0.0, lowest if lowest >= 0 else -(2.0 ** math.ceil(math.log2(-lowest))))
        self.highest = max(4.0, 2.0 ** math.ceil(math.log2(highest)) if highest > 0 else 0.0)
        at_zero = q * math.exp(-0.5 / sigma**2) if sigma > 0.03 else 0.0
        self.low = -_RANGE * sigma + self.lowest * min(1.0, at_zero / (1 - q + at_zero))
        self.high = _RANGE * sigma + self.highest
        angle = min(1.5, 1.0 / sigma)
        if self.lowest < 0:
            angle = self._angle_for_negative_powers(angle)
        self.angle = angle
        self.step = self._step(angle)
        self.x = self._points(self.step)
        self.ell = self.log_weight(self.x, 0.0).real.copy()
        self.log_base = self.log_density(self.x, 0.0).real.copy()

    def _step(self, angle: float) -> float:
        strip = 2 * math.pi * angle * self.sigma**2
        return strip / (2.0 - math.log(_QUADRATURE_TOLERANCE) + 2 * (angle * self.sigma) ** 2)

    def _points(self, step: float) -> Reals:
        if (self.high - self.low) / step > _MAX_POINTS:
            raise OutOfReach
        return step * np.arange(math.floor(self.low / step), math.ceil(self.high / step) + 1.0)

    def _angle_for_negative_powers(self, angle: float) -> float:
        """Shrink the strip until abs(w)^p on its far edge is within a factor of the real line."""
        while True:
            x = self._points(self._step(angle))
            density = self.log_density(x, 0.0).real
            on_line = density + self.lowest * self.log_weight(x, 0.0).real
            on_edge = density + self.lowest * self.log_weight(x, 2 * angle).real
            peak = on_line.max()
            growth = np.exp(np.minimum(on_edge - peak, 700.0)).sum() / np.exp(on_line - peak).sum()
            if growth < 8.0:
                return angle
            angle /= math.sqrt(2.0)

    def log_density(self, x: Reals, angle: float) -> Complexes:
        """log(step phi_sigma(x + i angle sigma^2))."""
        scaled = x / self.sigma
        size = -0.5 * scaled * scaled + 0.5 * (angle * self.sigma) ** 2
        step = getattr(self, "step", 1.0)
        size += math.log(step / (self.sigma * math.sqrt(2 * math.pi)))
        return size - 1j * angle * x

    def log_weight(self, x: Reals, angle: float) -> Complexes:
        """Log w(x + i angle sigma^2), keeping the digits of w - 1."""
        u = (2 * x - 1) / (2 * self.sigma**2)
        large = u > 30.0
        phase = complex(math.cos(angle), math.sin(angle))
        with np.errstate(over="ignore", under="ignore"):
            moderate = np.where(large, 0.0, u)
            small = _complex_log1p(self.q * np.expm1(moderate + 1j * angle))
            tail = np.exp(-np.where(large, u, 0.0)) * phase.conjugate()
            big = u + 1j * angle + math.log(self.q) + _complex_log1p((1 - self.q) / self.q * tail)
        return np.where(large, big, small)


def _complex_log1p(z: Any) -> Complexes:
    """log(1 + z) with full relative precision for small z."""
    a, b = z.real, z.imag
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * np.log1p(a * (2 + a) + b * b) + 1j * np.arctan2(b, 1 + a))


class _SampledTilt(Tilt):
    """The tilted law of a sampled Gaussian, as a quadrature rule on the shifted line."""

    def __init__(self, loss: SampledGaussian, c: float) -> None:
        self._loss, self._c = loss, c
        power = float(loss._power(c))
        lattice = loss._lattice(np.array([power]))
        log_mgf, mean, variance, fourth = loss.cumulants([c])[0]
        self.mean = float(mean)
        self._variance, self._fourth = float(variance), float(fourth)
        ell = lattice.log_weight(lattice.x, lattice.angle)
        weights = lattice.log_density(lattice.x, lattice.angle) + power * ell
        weights -= log_mgf
        keep = weights.real > math.log(_QUADRATURE_TOLERANCE) + weights.real.max()
        weights, ell = np.exp(weights[keep]), ell[keep]
        self._x, self._angle = lattice.x[keep], lattice.angle
        if loss.direction == "remove":
            self._loss_values = ell - self.mean
        else:
            weights, self._loss_values = weights.conj(), -ell.conj() - self.mean
        self._weights = weights
        self.points = len(weights)
        self._sizes = np.abs(weights)
        self.amplification = float(self._sizes.sum())
        self._half_time: float | None = None

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        sums = second_order_sums(step * self._loss_values, self._weights, 0, nodes)
        return _complex_log1p(sums)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Smallest of three bounds: fourth moment, doubling, absolute sum on the shifted line.

        With D the difference of two independent copies of L, 1 - abs(psi(t))^2 = E[1 - cos(t D)]
        is at least t^2 E[D^2] / 2 - t^4 E[D^4] / 24, and at least a quarter of 1 - abs(psi(2
        t))^2.
        """
        v, fourth = self._variance, self._fourth + 3 * self._variance**2
        falling = (ratio * t) ** 2 <= 6 * v / fourth
        square = np.where(falling, t * t, 0.0)
        moment = 0.5 * np.log1p(-square * (v - square * fourth / 12))
        half = self._time_of_half_power()
        halvings = np.maximum(0.0, np.ceil(np.log2(half / t)))
        bound = np.minimum(moment, 0.5 * np.log1p(-0.5 * 0.25**halvings))
        late = t >= half
        if late.any():
            exponents = np.exp(-np.outer(t[late], self._loss_values.imag))
            with np.errstate(divide="ignore"):
                bound[late] = np.minimum(bound[late], np.log(exponents @ self._sizes))
        return bound

    def _time_of_half_power(self) -> float:
        """A time from which abs(psi)^2 <= 1/2, by the absolute sum on the shifted line."""
        if self._half_time is None:
            decay = self._loss_values.imag
            t = 0.35 / max(float(self._sizes @ decay), 1e-300)
            while float(self._sizes @ np.exp(-t * decay)) > math.sqrt(0.5):
                t *= 1.25
            self._half_time = t
        return self._half_time

    def log_slope(self, step: float, nodes: int, parameter: str) -> Complexes:
        """Derivative of log M along the nodes, from the same points with other weights."""
        loss = self._loss
        q, sigma = loss.sampling_probability, loss.noise_multiplier
        sign = 1.0 if loss.direction == "remove" else -1.0
        x = self._x + 1j * sign * self._angle * sigma**2
        u = (2 * x - 1) / (2 * sigma**2)
        values = sign * (self._loss_values + self.mean)
        if parameter == "noise_multiplier":
            # At fixed x / sigma, d log w / d sigma = posterior (1 - x) / sigma^3.
            factor = np.exp(math.log(q) + u - values) * (1 - x) / sigma**3
        else:
            factor = np.exp(u - values) - np.exp(-values)
        weights = self._weights * factor
        theta = step * self._loss_values
        k = np.arange(nodes)
        sums = (
            second_order_sums(theta, weights, 0, nodes) + weights.sum() + 1j * k * (weights @ theta)
        )
        power = loss._power(self._c + 1j * step * k)
        return np.asarray(power * sums / np.exp(self.log_ratio(step, nodes)))
