"""The Poisson-sampled Gaussian mechanism: its privacy loss, and how it splits into bulk and jumps.

>>> loss = SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction="remove")
>>> print(f"{loss.mean:.6e} {loss.std:.6e}")
8.381221e-05 1.310078e-02
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr, ndtri_exp

from dpcal import _validate
from dpcal._ext.contour import (
    mixture_log_weights,
    plain_moments,
    prepared_moments,
    tilted_moments,
)
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss
from dpcal.accountants.losses.gaussian import log_gaussian_delta
from dpcal.accountants.losses.quadrature import QuadratureTilt, argument_sizes, exponents_of
from dpcal.accountants.rounding import UNIT

__all__ = [
    "SampledGaussian",
    "SplitLoss",
    "TrimmedLoss",
    "log_expm1_over",
    "restricted_moments",
    "shared_tilt",
]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Relative size of what the quadrature may miss, against terms of second order in the loss.
_QUADRATURE_TOLERANCE = 1e-19
# Half-width of a quadrature range, in standard deviations of the noise: what lies beyond has a
# probability of 2e-21, below a rounding. Half as much would cost digits of delta.
_RANGE = 9.5
# Quadrature points above which the caller takes a bound in closed form: 2^18 take 15 ms a tilt.
_MAX_POINTS = 1 << 18
# The same for a trimmed law, which is meant to be cheap.
_MAX_TRIMMED_POINTS = 12_000
# Probabilities of the events to which a law is restricted when its decay is bounded.
_SHARES = np.array([0.6, 0.75, 0.85, 0.93, 0.97, 0.99, 0.999, 0.9999, 1.0])
# Largest disagreement between the real and the shifted line that a split may show.
_SPLIT_TOLERANCE = 1e-9
# By how much a lattice for trimmed laws serves larger powers than were asked for.
_HEADROOM = 1.25
# Log of a weight, relative to the largest, below which a point changes no double.
_NO_WEIGHT = -200.0
# Distances beyond a cut, in widths of its blur, at which a trimmed law may end.
_BEYOND = np.linspace(0.0, 40.0, 161)


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
    _last: list[Any] = field(
        default_factory=lambda: [math.nan, None], init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        _validate.probability(sampling_probability=self.sampling_probability)
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.choice(("remove", "add"), direction=self.direction)

    @property
    def upper(self) -> float:
        """Infinity when removing; -log(1 - q), rounded up, when adding."""
        largest = -math.log1p(-self.sampling_probability)
        return math.inf if self.direction == "remove" else largest * (1 + 4 * UNIT)

    @property
    def log_unaffected(self) -> float:
        """log(1 - q): the record is not sampled."""
        return math.log1p(-self.sampling_probability)

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
        c = np.atleast_1d(np.asarray(c, dtype=float))
        single = float(c[0]) if len(c) == 1 else math.nan
        # A contour asks for its own tilt again and again.
        if single == self._last[0]:
            return np.array(self._last[1])
        powers = self._power(c)
        lattice = self._lattice(powers)
        # 1 + c has lost digits of a small c, which large epsilons would miss.
        excesses = c if self.direction == "remove" else powers - 1.0
        result = tilted_moments(lattice.ell, lattice.log_base, powers, lattice.prepared, excesses)
        result[:, 1] *= self._sign
        if len(c) == 1:
            self._last[:] = single, result.copy()
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
            shifted = log_expm1_over(epsilon, q)
            log_delta, error = log_gaussian_delta(shifted, mu)
            return math.log(q) + log_delta, error + 4 * UNIT * (1 + abs(shifted) / mu**2)
        if epsilon >= self.upper:
            return -math.inf, 0.0
        # exp(u) Phi(b) - Phi(a) = exp(u) (1 - Phi(-b)) - (1 - Phi(-a)), the Gaussian's delta at -u
        # times exp(u).
        u = math.log1p(max(math.expm1(-epsilon) / q, UNIT - 1.0))
        log_delta, error = log_gaussian_delta(-u, mu)
        conditioning = (1 + abs(u) / mu**2) * (1 + abs(math.expm1(-epsilon)) / (q * math.exp(u)))
        return epsilon + math.log(q) + u + log_delta, error + 8 * UNIT * conditioning


def log_expm1_over(epsilon: float, q: float) -> float:
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

    def __init__(
        self,
        q: float,
        sigma: float,
        lowest: float,
        highest: float,
        cap: float = 1.5,
        ceiling: float = math.inf,
        most: int = _MAX_POINTS,
        blur: float = math.inf,
        floor: float = -math.inf,
    ) -> None:
        self.most, self._blur = most, blur
        self.q, self.sigma = q, sigma
        # Rounded outward, so that a search for a saddle seldom needs a wider lattice.
        self.lowest = -(2.0 ** math.ceil(math.log2(max(8.0, -lowest)))) if lowest < 0 else 0.0
        self.highest = max(8.0, highest)
        if math.isinf(ceiling):
            self.highest = 2.0 ** math.ceil(math.log2(self.highest))
        at_zero = q * math.exp(-0.5 / sigma**2) if sigma > 0.03 else 0.0
        self.low = -_RANGE * sigma + self.lowest * min(1.0, at_zero / (1 - q + at_zero))
        self.low = max(self.low, floor)
        # What lies above a floor is all there is, however improbable.
        self.high = min(_RANGE * sigma + self.highest if floor == -math.inf else math.inf, ceiling)
        angle = min(cap, 1.5 / sigma)
        if self.lowest < 0:
            angle = self._angle_for_negative_powers(angle)
        self.angle = angle
        self.step = self._step(angle)
        self.x = self._points(self.step)
        self.ell = self.log_weight(self.x, 0.0).real.copy()
        self.log_base = self.log_density(self.x, 0.0).real.copy()
        self.prepared = prepared_moments(self.ell, self.log_base)

    def _step(self, angle: float) -> float:
        shift = angle * self.sigma**2
        # Far from the real line the density grows, and so does a cut's share.
        growth = 2 * (shift / self.sigma) ** 2 + 2 * (shift / self._blur) ** 2
        return 2 * math.pi * shift / (4.0 - math.log(_QUADRATURE_TOLERANCE) + growth)

    def _points(self, step: float) -> Reals:
        if (self.high - self.low) / step > self.most:
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

    def tilted(
        self, power: float, moments: Reals, angle: float, log_share: Complexes | float = 0.0
    ) -> tuple[Complexes, Complexes, Reals]:
        """Log w and exp(log_share) w^power / mass on a shifted line, and the points that count.

        ``moments`` holds log mass, mean and variance of log w. Points whose weight is negligible,
        also in the variance, are left out.
        """
        log_mass, mean, variance = moments[:3]
        rows = self._window(power, moments)
        x = self.x[rows]
        ell = self.log_weight(x, angle)
        share = log_share if isinstance(log_share, float) else log_share[rows]
        exponents = self.log_density(x, angle) + power * ell - log_mass + share
        square = (ell.real - mean) ** 2 + ell.imag**2
        relevant = exponents.real + np.log1p(square / variance)
        keep = relevant > math.log(_QUADRATURE_TOLERANCE) + relevant.max()
        return ell[keep], np.exp(exponents[keep]), x[keep]

    def _window(self, power: float, moments: Reals) -> slice | NDArray[np.intp]:
        """Rows that may count on a shifted line: a superset, from the weights on the real one.

        For positive powers abs(w) is largest on the real line, so that a point's weight relative to
        the mass grows by at most exp((angle sigma)^2 / 2) < 4, and the sum over the shifted line
        has the same mass.
        """
        if power < 0:
            return slice(None)
        sizes = self.log_base + power * self.ell - moments[0]
        # Angles are below 2, and squares of imaginary parts of log w with them.
        sizes += np.log1p(((self.ell - moments[1]) ** 2 + 4.0) / moments[2])
        return np.flatnonzero(sizes > math.log(_QUADRATURE_TOLERANCE) - 20.0)

    def exponents(
        self, ell: Complexes, weights: Complexes, x: Reals, power: float, log_mass: float
    ) -> Reals:
        """Sizes of the terms of the logarithms of weights on the shifted line."""
        u: Complexes = (x - 0.5) / self.sigma**2 + np.complex128(1j * self.angle)
        sizes = exponents_of(ell, weights, power, log_mass)
        return np.asarray(sizes + abs(power) * argument_sizes(self.q, u, ell))

    def log_density(self, x: Reals, angle: float) -> Complexes:
        """log(step phi_sigma(x + i angle sigma^2))."""
        scaled = x / self.sigma
        size = -0.5 * scaled * scaled + 0.5 * (angle * self.sigma) ** 2
        step = getattr(self, "step", 1.0)
        size += math.log(step / (self.sigma * math.sqrt(2 * math.pi)))
        return size - 1j * angle * x

    def log_weight(self, x: Reals, angle: float) -> Complexes:
        """Log w(x + i angle sigma^2), keeping the digits of w - 1."""
        return mixture_log_weights(x, self.q, self.sigma, angle)


def restricted_moments(ell: Reals, log_base: Reals, power: float, moments: Reals) -> Reals:
    """Probability, variance and fourth central moment of a tilted law on the events x <= x_j.

    ``moments`` holds its log mass and mean. Leaving out rare large losses makes the fourth moment
    commensurate with the variance.
    """
    exponents = log_base + power * ell - moments[0]
    rows = np.flatnonzero(exponents > _NO_WEIGHT)
    weights = np.exp(exponents[rows])
    centered = ell[rows] - moments[1]
    table = np.cumsum(weights * np.vander(centered, 5, increasing=True).T, axis=1)
    chosen = np.searchsorted(table[0], _SHARES * table[0, -1])
    mass, *raw = table[:, np.minimum(chosen, len(weights) - 1)]
    m1, m2, m3, m4 = raw / mass
    variance = m2 - m1**2
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    # Rounding outward; an event too small for its digits is no help anyway.
    rows = np.column_stack([mass * (1 - 1e-9), variance * (1 - 1e-6), fourth * (1 + 1e-6)])
    return np.asarray(rows[(variance > 1e-6 * m2) & (fourth > 0)])


class _SampledTilt(QuadratureTilt):
    """The tilted law of a sampled Gaussian."""

    def __init__(self, loss: SampledGaussian, c: float) -> None:
        self._loss, self._c = loss, c
        power = float(loss._power(c))
        lattice = loss._lattice(np.array([power]))
        log_mgf, mean, variance, fourth = loss.cumulants([c])[0]
        moments = np.array([log_mgf, loss._sign * mean, variance])
        ell, weights, self._x = lattice.tilted(power, moments, lattice.angle)
        near, sizes, _ = lattice.tilted(power, moments, min(lattice.angle, 0.6 / lattice.sigma))
        self._angle = lattice.angle
        exponents = lattice.exponents(ell, weights, self._x, power, float(log_mgf))
        if loss.direction == "add":
            weights, ell = weights.conj(), -ell.conj()
        restricted = restricted_moments(lattice.ell, lattice.log_base, power, moments)
        super().__init__(
            ell,
            weights,
            (float(mean), float(variance), float(fourth)),
            exponents=exponents,
            restricted=restricted,
            nearer=(near, sizes),
        )

    def log_slope(self, step: float, nodes: int, parameter: str) -> Complexes:
        """Derivative of log M along the nodes, from the same points with other weights."""
        loss = self._loss
        q, sigma = loss.sampling_probability, loss.noise_multiplier
        sign = loss._sign
        x = self._x + 1j * sign * self._angle * sigma**2
        u = (2 * x - 1) / (2 * sigma**2)
        values = sign * (self._centered + self.mean)
        if parameter == "noise_multiplier":
            # At fixed x / sigma, d log w / d sigma = posterior (1 - x) / sigma^3.
            factor = np.exp(math.log(q) + u - values) * (1 - x) / sigma**3
        else:
            factor = np.exp(u - values) - np.exp(-values)
        weights = QuadratureTilt(
            self._centered, self._weights * factor, (0.0, 1.0, 3.0), exponents=0.0
        )
        sums = weights.ratio(step, nodes, 0.0)
        power = loss._power(self._c + 1j * step * np.arange(nodes))
        return np.asarray(power * sums / np.exp(self.log_ratio(step, nodes)))


class SplitLoss:
    """A sampled Gaussian (remove) as a bulk of small losses and rare jumps.

    The integrand phi_sigma(x) w(x)^p of M has two peaks where jumps are rare: one where the record
    was hardly noticed and one where it stands out. A smooth cut between them writes M = A + B with
    two positive measures, each of which is easy on a contour of its own.

    Parameters
    ----------
    loss
        The loss.
    cut
        Where the cut lies, on the axis of the noise.
    """

    def __init__(self, loss: SampledGaussian, cut: float) -> None:
        self.loss, self.cut = loss, cut
        self._blur = _blur(loss.noise_multiplier)
        self._lattice: _Lattice | None = None

    @classmethod
    def at(cls, loss: PrivacyLoss, c: float) -> SplitLoss | None:
        """Split at the valley between the two peaks of the integrand at tilt c, if there is one."""
        if not isinstance(loss, SampledGaussian) or loss.direction != "remove":
            return None
        q, sigma, power = loss.sampling_probability, loss.noise_multiplier, 1.0 + c
        if power <= 4 * sigma**2:
            return None
        # Stationary points solve x = p r, with r = expit(a) the posterior that the record is in.
        turn = 2 * math.atanh(math.sqrt(1 - 4 * sigma**2 / power))
        prior = math.log(q / (1 - q))

        def slope(a: float) -> float:
            return float(power * expit(a)) - sigma**2 * (a - prior) - 0.5

        if not slope(-turn) < 0 < slope(turn):
            return None
        valley = float(brentq(slope, -turn, turn))
        return cls(loss, sigma**2 * (valley - prior) + 0.5)

    def _points(self, powers: Reals) -> _Lattice:
        lowest, highest = float(powers.min()), float(powers.max())
        lattice = self._lattice
        if lattice is None or not lattice.lowest <= lowest <= highest <= lattice.highest:
            q, sigma = self.loss.sampling_probability, self.loss.noise_multiplier
            lattice = _Lattice(q, sigma, lowest, highest, cap=self._blur / sigma**2)
            self._lattice = lattice
            scaled = (lattice.x - self.cut) / self._blur
            self._log_bulk = lattice.log_base + log_ndtr(-scaled)
            self._log_jump = lattice.log_base + log_ndtr(scaled)
        return lattice

    def cumulants(self, c: ArrayLike) -> tuple[Reals, Reals]:
        """Return log mass and three moments of the tilted bulk, and of the tilted jumps."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        powers = 1.0 + c
        lattice = self._points(powers)
        bulk = plain_moments(lattice.ell, self._log_bulk, powers)
        jumps = plain_moments(lattice.ell, self._log_jump, powers)
        # Where jumps are rare, the bulk keeps the digits of M - 1.
        whole = tilted_moments(lattice.ell, lattice.log_base, powers, lattice.prepared, c)[:, 0]
        rare = jumps[:, 0] < whole - math.log(2)
        share = np.exp(np.where(rare, jumps[:, 0] - whole, -1.0))
        bulk[:, 0] = np.where(rare, whole + np.log1p(-share), bulk[:, 0])
        return bulk, jumps

    def tilts(self, c: float) -> tuple[QuadratureTilt, QuadratureTilt]:
        """Return the tilted bulk and the tilted jumps, each normalised to mass 1."""
        bulk, jumps = self.cumulants([c])
        lattice = self._points(np.array([1.0 + c]))
        scaled = (lattice.x - self.cut) / self._blur
        shifted = scaled + 1j * lattice.angle * self.loss.noise_multiplier**2 / self._blur
        return (
            shared_tilt(lattice, 1.0 + c, bulk[0], log_ndtr(-shifted), self._log_bulk),
            shared_tilt(lattice, 1.0 + c, jumps[0], log_ndtr(shifted), self._log_jump),
        )


def _blur(sigma: float) -> float:
    """Width of a smooth cut: narrow, but no steeper than the noise in the complex plane."""
    return min(0.5 * sigma, 0.7 * sigma**2)


def shared_tilt(
    lattice: _Lattice, power: float, moments: Reals, log_share: Any, log_base: Reals
) -> QuadratureTilt:
    """The tilt of one side of a cut, with its share of each point on the shifted line."""
    ell, weights, x = lattice.tilted(power, moments, lattice.angle, log_share)
    if not abs(weights.sum() - 1) <= _SPLIT_TOLERANCE:
        raise OutOfReach
    # The law has mass 1 and its own mean by definition: take out what rounding left.
    weights = weights / weights.sum()
    mean = float(moments[1])
    exponents = lattice.exponents(ell, weights, x, power, float(moments[0]))
    ell = ell - weights @ (ell - mean)
    return QuadratureTilt(
        ell,
        weights,
        (mean, float(moments[2]), float(moments[3])),
        exponents=exponents,
        restricted=lambda: restricted_moments(lattice.ell, log_base, power, moments),
    )


class TrimmedLoss:
    """A sampled Gaussian (remove) without its rarest large losses, which are only bounded.

    A smooth cut far out in the noise leaves a measure that is tilted without ever seeing what lies
    beyond. Where a record is hardly ever sampled, the tilt at which the bulk of the law is known
    best would otherwise be that of events that never happen.

    Parameters
    ----------
    loss
        The loss.
    log_rest
        Log of the probability that may be cut off.
    sharpness
        How much sharper than usual the cut is: it needs as many times more points.

    Attributes
    ----------
    log_rest
        Log of a bound on the probability that was cut off.
    """

    def __init__(self, loss: SampledGaussian, log_rest: float, sharpness: float = 1.0) -> None:
        self.loss = loss
        q, sigma = loss.sampling_probability, loss.noise_multiplier
        self._blur = _blur(sigma) / sharpness
        # The share of a normal law beyond a blurred cut is that of a wider law beyond the cut.
        wide = math.hypot(sigma, self._blur)
        share = log_rest - math.log(2)
        self.cut = max(
            -wide * float(ndtri_exp(min(share, -1.0))),
            1.0 - wide * float(ndtri_exp(min(share - math.log(q), -1e-3))),
        )
        self._set_rest()

    def _set_rest(self) -> None:
        """Log probabilities of what is cut off, without and with the record."""
        q = self.loss.sampling_probability
        wide = math.hypot(self.loss.noise_multiplier, self._blur)
        out, far = log_ndtr(-self.cut / wide), log_ndtr((1.0 - self.cut) / wide)
        self._log_base_rest = float(out) * (1 - 1e-12)
        self.log_rest = float(np.logaddexp(math.log1p(-q) + out, math.log(q) + far)) * (1 - 1e-12)
        self._lattice: _Lattice | None = None

    def _points(self, powers: Reals) -> _Lattice:
        lowest, highest = float(powers.min()), float(powers.max())
        lattice = self._lattice
        if lattice is None or not lattice.lowest <= lowest <= highest <= lattice.highest:
            highest = max(8.0, _HEADROOM * highest)
            ceiling = self._ceiling(highest)
            lattice = self._lattice = self._lattice_to(lowest, highest, ceiling)
            self._log_kept = lattice.log_base + log_ndtr((self.cut - lattice.x) / self._blur)
            self._prepared = prepared_moments(lattice.ell, self._log_kept)
        return lattice

    def _lattice_to(self, lowest: float, highest: float, ceiling: float) -> _Lattice:
        """Points up to a ceiling, for these powers."""
        q, sigma = self.loss.sampling_probability, self.loss.noise_multiplier
        angle = self._blur / sigma**2
        return _Lattice(q, sigma, lowest, highest, angle, ceiling, _MAX_TRIMMED_POINTS)

    def _ceiling(self, power: float) -> float:
        """Where the tilted measure has become negligible beyond the cut."""
        q, sigma = self.loss.sampling_probability, self.loss.noise_multiplier
        x = np.concatenate(
            [np.linspace(-_RANGE * sigma, self.cut, 64), self.cut + self._blur * _BEYOND]
        )
        sizes = power * mixture_log_weights(x, q, sigma, 0.0).real - 0.5 * (x / sigma) ** 2
        sizes += log_ndtr((self.cut - x) / self._blur)
        counted = np.flatnonzero(sizes > sizes.max() + math.log(_QUADRATURE_TOLERANCE) - 8.0)
        if not len(counted) or counted[-1] >= len(x) - 2:
            raise OutOfReach
        return float(x[counted[-1] + 1])

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log mass and three moments of the tilts, keeping the digits of the mass less 1."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        powers = 1.0 + c
        lattice = self._points(powers)
        result = tilted_moments(lattice.ell, self._log_kept, powers, self._prepared, c)
        # The sums take P and Q to have mass 1: correct for what each has lost.
        base, mixed = math.exp(self._log_base_rest), math.exp(self.log_rest)
        small = result[:, 0] < 100.0
        mass = np.expm1(np.where(small, result[:, 0], 0.0))
        corrected = mass + c * base - powers * mixed
        if not corrected.min() > -0.5:
            raise OutOfReach
        mean = (result[:, 1] * (1 + mass) + base - mixed) / (1 + corrected)
        result[:, 0] = np.where(small, np.log1p(corrected), result[:, 0])
        result[:, 1] = np.where(small, mean, result[:, 1])
        return result

    def tilt(self, c: float) -> QuadratureTilt:
        """Return the tilted measure, normalised to mass 1."""
        moments = self.cumulants([c])[0]
        lattice = self._points(np.array([1.0 + c]))
        shift = lattice.angle * self.loss.noise_multiplier**2
        argument = (lattice.x + 1j * shift - self.cut) / self._blur
        return shared_tilt(lattice, 1.0 + c, moments, log_ndtr(-argument), self._log_kept)
