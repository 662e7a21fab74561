r"""Losses with a density proportional to exp(l / 2) on [-a, a]: Laplace noise, bounded range.

The privacy loss of Laplace noise of scale 1 / a has that density, less than half of its mass, and
point masses at both ends. A mechanism whose loss on any two neighbors lies in some interval of
length a is dominated by the density alone (:class:`BoundedRange`).

>>> loss = Laplace(scale=2.0)
>>> print(f"{loss.upper} {loss.cumulants([1.0])[0, 0]:.12f}")
0.5 0.200303896174
>>> print(f"{math.log(2 / 3 * math.exp(0.5) + math.exp(-1.0) / 3):.12f}")  # Mironov (2017)
0.200303896174
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.contour import tilted_moments
from dpcal._lazy import special
from dpcal.accountants.limits import hold
from dpcal.accountants.losses.base import NO_LOSS, Complexes, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import randomized_response
from dpcal.accountants.losses.quadrature import QuadratureTilt, complex_log1p
from dpcal.accountants.rounding import UNIT, rounded_up

__all__ = [
    "BoundedRange",
    "IntervalLoss",
    "Laplace",
    "are_few_uses",
    "log_delta_of_few_uses",
]


@cache
def _gauss_legendre(points: int = 64) -> tuple[Reals, Reals]:
    """Return nodes and weights on [-1, 1]; numpy's last weights are off by 1e-12."""
    x = np.polynomial.legendre.leggauss(points)[0]
    before, last = np.ones(points), x
    for k in range(1, points):
        before, last = last, ((2 * k + 1) * x * last - k * before) / (k + 1)
    gap = (1 - x) * (1 + x)
    slope = points * (before - x * last) / gap
    # The weight at the node that x rounds, which is -last / slope away.
    return x, 2 / (gap * slope**2) * (1 + 2 * x * last / (slope * gap))


# Largest product of tilt and half-width up to which 64 nodes of Gauss and Legendre integrate an
# exponential density to rounding.
_SMOOTH = 25.0
# Largest phase, in radians over half of the interval, that 64 nodes of Gauss and Legendre integrate
# to rounding; beyond it the closed form loses no digits.
_PHASE = 30.0
# Most uses, and largest loss of one, whose sum has a law in pieces that these nodes integrate: the
# Taylor series of exp(16) after 96 terms is off by 1e-29.
_FEW_USES, _LARGEST_LOSS = 32, 16.0
# Distance from its end, in units of 1 / tilt, beyond which an exponential density is left out:
# exp(-45) is 3e-20, below a rounding.
_REACH = 45.0


def _log_integral(a: float, rate: Reals) -> Reals:
    """Return the log of the integral of exp(rate l) over [-a, a]."""
    size = np.maximum(np.abs(rate), 1e-300)
    return np.asarray(a * size + np.log(-np.expm1(-2 * a * size) / size))


def _interval_moments(a: float, rate: Reals) -> Reals:
    """Return moments 1 to 4 of a - l, for density exp(rate l) on [-a, a]; shape (n, 4)."""
    x = 2 * a * rate
    mass = -np.expm1(-x)
    columns = [
        math.factorial(k) * special.gammainc(k + 1, x) / mass / rate**k for k in (1, 2, 3, 4)
    ]
    return np.column_stack(columns)


class IntervalLoss(PrivacyLoss):
    """A loss with density e l / 2 on [-a, a] under P, times a constant, perhaps with point masses.

    By symmetry it is the same in both directions.
    """

    @property
    @abstractmethod
    def half_width(self) -> float:
        """The largest loss a > 0."""

    @property
    @abstractmethod
    def log_end(self) -> float:
        """Log of the point mass at a under P times exp(-a / 2); -infinity if there is none."""

    @property
    @abstractmethod
    def log_density(self) -> float:
        """Log of the density under P times exp(-l / 2)."""

    @property
    def upper(self) -> float:
        """The half-width."""
        return self.half_width

    @abstractmethod
    def _log_mgf_near_zero(self, c: Reals) -> Reals:
        """Return log M(c), abs(c) <= 1/4, without loss of digits at small c if a is large."""

    @cached_property
    def _points(self) -> tuple[Reals, Reals]:
        """Quadrature points and log weights under Q."""
        a, (nodes, weights) = self.half_width, _gauss_legendre()
        values, logs = a * nodes, self.log_density + np.log(a * weights) - a * nodes / 2
        if self.log_end > -math.inf:
            values = np.concatenate([values, [-a, a]])
            logs = np.concatenate([logs, self.log_end + np.array([a / 2, -a / 2])])
        return values, logs

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted laws, to full relative precision."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        smooth = (np.abs(c) + 1) * self.half_width <= _SMOOTH
        result = np.empty((len(c), 4))
        if smooth.any():
            result[smooth] = tilted_moments(*self._points, 1.0 + c[smooth], c[smooth])
        if not smooth.all():
            result[~smooth] = self._far(c[~smooth])
        return result

    def shares(self, c: Reals) -> tuple[Reals, Reals]:
        """Return log masses of the tilts in rows (lower end, upper end, density), and their sum."""
        a, rate = self.half_width, c + 0.5
        ends = self.log_end + a * np.multiply.outer([-1.0, 1.0], rate)
        logs = np.vstack([ends, self.log_density + _log_integral(a, rate)])
        return logs, np.logaddexp.reduce(logs)

    def _far(self, c: Reals) -> Reals:
        """Return cumulants in closed form, for tilts that concentrate the law at one end."""
        a, rate = self.half_width, c + 0.5
        sign = np.where(rate < 0, -1.0, 1.0)
        logs, whole = self.shares(c)
        near, far, inner = np.exp(np.where(rate < 0, logs[[0, 1, 2]], logs[[1, 0, 2]]) - whole)
        v1, v2, v3, v4 = _interval_moments(a, np.maximum(np.abs(rate), 1e-6 / a)).T
        # Moments of the distance from the end where the law is.
        m1 = far * 2 * a + inner * v1
        central2 = near * m1**2 + far * (2 * a - m1) ** 2 + inner * (v2 - 2 * v1 * m1 + m1**2)
        inner4 = v4 - 4 * v3 * m1 + 6 * v2 * m1**2 - 4 * v1 * m1**3 + m1**4
        central4 = near * m1**4 + far * (2 * a - m1) ** 4 + inner * inner4
        # The pair is symmetric: M(c) = M(-1 - c). Next to M(0) = 1 the log masses lose digits.
        small = np.where(rate < 0, -1.0 - c, c)
        near_zero = self._log_mgf_near_zero(np.clip(small, -0.25, 0.25))
        whole = np.where(np.abs(small) < 0.25, near_zero, whole)
        return np.column_stack([whole, sign * (a - m1), central2, central4])

    def log_mgf_bound(self, c: float) -> float:
        """Return c a."""
        return c * self.half_width

    def tilt(self, c: float) -> IntervalTilt:
        """Return the tilted law."""
        logs, whole = self.shares(np.array([c]))
        _, *moments = self.cumulants([c])[0]
        return IntervalTilt(self.half_width, c + 0.5, np.exp(logs[:, 0] - whole[0]), moments)


@dataclass(frozen=True)
class Laplace(IntervalLoss):
    """The Laplace mechanism: P = Laplace(1, b) against Q = Laplace(0, b).

    Parameters
    ----------
    scale
        b > 0, the scale of the noise over the L1 sensitivity.
    """

    scale: float

    def __post_init__(self) -> None:
        _validate.positive(scale=self.scale)

    @cached_property
    def half_width(self) -> float:
        """1 / b, the largest loss, rounded up."""
        nearest = 1.0 / self.scale
        return nearest if math.isinf(nearest) else rounded_up(nearest, 1 / Fraction(self.scale))

    @property
    def log_end(self) -> float:
        """Log of 1/2, the mass at the upper end, times exp(-a / 2)."""
        return -math.log(2.0) - self.half_width / 2

    @property
    def log_density(self) -> float:
        """Log of 1/4 times exp(-a / 2)."""
        return -math.log(4.0) - self.half_width / 2

    def _log_mgf_near_zero(self, c: Reals) -> Reals:
        a = self.half_width
        with np.errstate(over="ignore"):
            grown = ((1 + c) * np.expm1(c * a) + c * np.expm1(-(1 + c) * a)) / (1 + 2 * c)
        near = np.abs(grown) < 0.5
        size = c * a + np.log((1 + c) / (1 + 2 * c))
        size += np.log1p(c / (1 + c) * np.exp(-(1 + 2 * c) * a))
        return np.where(near, np.log1p(np.where(near, grown, 0.0)), size)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return 1 - exp((epsilon - a) / 2), the closed form for 0 <= epsilon < a."""
        gap = self.half_width - epsilon
        if gap <= 0:
            return -math.inf, 0.0
        size = 1 + self.half_width / gap
        return math.log(-math.expm1(-gap / 2)), 16 * UNIT * size


@dataclass(frozen=True)
class BoundedRange(IntervalLoss):
    """The tightest pair that dominates every mechanism of bounded range.

    If the loss on any two neighbors lies in an interval of length epsilon, then in the worst case
    it is t or t - epsilon, for some t (Dong, Durfee and Rogers 2020). The supremum over t of these
    privacy profiles at x = exp(epsilon') is (sqrt(E) - sqrt(x))^2 / (E - 1), E = exp(epsilon): it
    is convex, hence the profile of a pair (Zhu, Dong and Wang 2022, Proposition 8), whose law of
    the loss is this one. Compositions of a dominating pair dominate adaptive ones (their Theorem
    10). At each single order the worst t gives a smaller Renyi divergence than the pair has.

    Parameters
    ----------
    epsilon
        Length > 0 of the interval.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)

    @property
    def half_width(self) -> float:
        """Epsilon."""
        return self.epsilon

    @property
    def log_end(self) -> float:
        """Minus infinity: the ends have no mass of their own."""
        return -math.inf

    @property
    def log_density(self) -> float:
        """Log of 1 / (4 sinh(epsilon / 2))."""
        return -math.log(2.0) - self.epsilon / 2 - math.log(-math.expm1(-self.epsilon))

    def _log_mgf_near_zero(self, c: Reals) -> Reals:
        other = np.exp(-(1 + 2 * c) * self.epsilon) - math.exp(-self.epsilon)
        ends = np.log1p(other / math.expm1(-self.epsilon))
        return np.asarray(c * self.epsilon - np.log1p(2 * c) + ends)

    @property
    def renyi_is_tighter(self) -> bool:
        """True."""
        return True

    @property
    def attained(self) -> PrivacyLoss:
        """The loss of randomized response: epsilon / 2 or minus that, less some rounding."""
        other = math.exp(-self.epsilon / 2)
        at_random = 2 * other / (1 + other) * (1 + 8 * UNIT)
        if at_random >= 1:
            return NO_LOSS
        return randomized_response(noise_parameter=max(at_random, 1e-300), num_buckets=2)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the closed form (sqrt(E) - sqrt(x))^2 / (E - 1)."""
        gap = self.epsilon - epsilon
        if gap <= 0:
            return -math.inf, 0.0
        size = 1 + self.epsilon / gap
        log_delta = 2 * math.log(-math.expm1(-gap / 2)) - math.log(-math.expm1(-self.epsilon))
        return log_delta, 32 * UNIT * size

    def moments(self, c: ArrayLike) -> Reals:
        """Return the largest log M(c) of any pair of losses t and t - epsilon, and derivatives.

        With T = exp(t), M(c) is T^c (A - B T) / (E - 1), A = E - E^-c, B = 1 - E^-c, largest at T =
        c A / ((1 + c) B).
        """
        c = np.atleast_1d(np.asarray(c, dtype=float))
        step = 1e-4 * np.maximum(c, 1e-3)
        below, here, above = (self._worst(x) for x in (c - step, c, c + step))
        slope = (above - below) / (2 * step)
        curvature = np.maximum((above - 2 * here + below) / step**2, 1e-12)
        return np.column_stack([here, slope, curvature])

    def _worst(self, c: Reals) -> Reals:
        epsilon = self.epsilon
        # The formula has a removable singularity at 0; c is kept away from it.
        c = np.where(np.abs(c) < 1e-12, 1e-12, c)
        log_a = np.log(-np.expm1(-(1 + c) * epsilon)) - np.log1p(c)
        log_t = epsilon + log_a - np.log(-np.expm1(-c * epsilon) / c)
        # It is multiplied by c: at large c it is taken from terms as small as epsilon and 1 / c.
        large = np.maximum(c, 1.0)
        ratio = np.exp(-large * epsilon) * np.expm1(-epsilon) / np.expm1(-large * epsilon)
        log_t = np.where(c > 1, epsilon - np.log1p(1 / large) + np.log1p(ratio), log_t)
        return np.asarray(c * np.minimum(log_t, epsilon) + log_a - math.log(-math.expm1(-epsilon)))


class IntervalTilt(QuadratureTilt):
    """A tilted law on both ends of an interval and between them, known in closed form.

    Parameters
    ----------
    a
        Half-width.
    rate
        The density is proportional to exp(rate l).
    shares
        Masses of the lower end, the upper end and the density.
    moments
        Mean, variance and fourth central moment.
    """

    def __init__(self, a: float, rate: float, shares: Reals, moments: Any) -> None:
        self._a, self._rate = a, max(abs(rate), 1e-12 / a)
        # The law is mirrored if most of it is near the lower end.
        self._sign = -1.0 if rate < 0 else 1.0
        self._near, self._far = (shares[1], shares[0]) if rate >= 0 else (shares[0], shares[1])
        self._inner = float(shares[2])
        self._length = min(2 * a, _REACH / self._rate)
        nodes, weights = _gauss_legendre()
        distance = self._length * (nodes + 1) / 2
        density = weights * np.exp(-self._rate * distance)
        density *= self._inner / density.sum()
        keep = density > 0
        ends = np.array([0.0, 2 * a])
        masses = np.array([self._near, self._far])
        used = masses > 0
        values = self._sign * (a - np.concatenate([distance[keep], ends[used]]))
        weights = np.concatenate([density[keep], masses[used]])
        super().__init__(
            values.astype(complex),
            weights.astype(complex),
            moments,
            exponents=np.abs(self._rate * values) + 2 * self._rate * a,
        )
        self.points = 8
        self.amplification = 4.0 * (1 + self._far / max(self._inner, 1e-300))
        x = 2 * a * self._rate
        self._slope: float = (1 + math.exp(-x)) / -math.expm1(-x) * self._rate

    @property
    def decays(self) -> bool:
        """Whether the transform decays: it does if some mass lies between the ends."""
        return bool(self._near + self._far < 1.0)

    def sum_rounding(self, t: Reals) -> tuple[Reals, Reals, Reals]:
        """Return the errors of a closed form: one relative to psi - 1, and that of the mean."""
        nothing = np.zeros_like(t)
        return nothing, 8 * self.amplification + self.mean_rounding * t, nothing

    def absolute(self, t: Reals) -> Reals:
        """Return a bound on abs(psi): the ends, and the density's variation over t."""
        with np.errstate(divide="ignore"):
            part = np.minimum(1.0, self._slope / np.hypot(self._rate, t))
        return np.asarray(self._near + self._far + self._inner * part)

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return the smallest of three bounds: fourth moments, doubling, :meth:`absolute`."""
        with np.errstate(divide="ignore"):
            bound = np.minimum(self._moment_bound(t, ratio), np.log(self.absolute(t)))
        half = self._time_of_half_power()
        if math.isfinite(half):
            halvings = np.maximum(0.0, np.ceil(np.log2(half / t)))
            bound = np.minimum(bound, 0.5 * np.log1p(-0.5 * 0.25**halvings))
        return np.asarray(bound)

    def _time_of_half_power(self) -> float:
        """Return a time from which abs(psi)^2 <= 1/2, by the bound; infinity if there is none."""
        rest = math.sqrt(0.5) - self._near - self._far
        return float(self._slope * self._inner / rest if rest > 0 else math.inf)

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return log psi(k step): by points while phases are small, then in closed form."""
        few = min(nodes, 1 + int(2 * _PHASE / (self._length * step)))
        result = np.empty(nodes, dtype=complex)
        result[:few] = super().log_ratio(step, few)
        if few < nodes:
            t = step * np.arange(few, nodes)
            result[few:] = complex_log1p(self._less_one(t)) + 1j * t * self._to_end
        return result

    def ratio(self, step: float, nodes: int, center: float) -> Complexes:
        """Return E[exp(i k step (L - center))]."""
        t = step * np.arange(nodes)
        return np.asarray(
            (1 + self._less_one(t)) * np.exp(1j * t * (self._sign * self._a - center))
        )

    @property
    def _to_end(self) -> float:
        """Signed distance from the mean to the end at which the law is concentrated."""
        inner = float(_interval_moments(self._a, np.array([self._rate]))[0, 0])
        return float(self._sign * (self._far * 2 * self._a + self._inner * inner))

    def _less_one(self, t: Any) -> Complexes:
        """Return E[exp(i t (L - end))] - 1."""
        s = self._rate + 1j * t
        a = self._a
        inner = self._rate / s * np.expm1(-2 * a * s) / math.expm1(-2 * a * self._rate)
        value = self._far * np.expm1(-2j * a * t) + self._inner * (inner - 1)
        return np.asarray(value if self._sign > 0 else value.conj())


def are_few_uses(
    parts: Sequence[tuple[PrivacyLoss, int]],
) -> TypeGuard[Sequence[tuple[Laplace, int]]]:
    """Return whether :func:`log_delta_of_few_uses` knows the law of a sum."""
    if len(parts) != 1:
        return False
    loss, times = parts[0]
    return isinstance(loss, Laplace) and times <= _FEW_USES and loss.half_width <= _LARGEST_LOSS


def log_delta_of_few_uses(loss: Laplace, times: int, epsilon: float) -> tuple[float, float] | None:
    """Return log delta(epsilon) of few Laplace mechanisms of one scale, and its relative error.

    Under P exp(-l / 2), a loss is an end of [-a, a] or uniform between them. With m uniform losses
    and k at the lower end, the composed loss is epsilon + 2 a (r - s), r = (n a - epsilon) / (2 a)
    - k, and s is a sum of m uniform numbers in [0, 1], whose density is a spline. Its recursion has
    positive terms alone (de Boor 1972), and so has the sum over m and k.

    Parameters
    ----------
    loss
        The loss of one use.
    times
        Number n of uses, as :func:`are_few_uses` allows.
    epsilon
        Any finite number >= 0.

    Returns
    -------
    (float, float) or None
        None if delta is next to the smallest doubles.
    """
    a = loss.half_width
    gap = times * a - epsilon
    if gap <= 0:
        return -math.inf, 0.0
    # The gap loses digits next to the largest loss; delta falls with it.
    rounding = 2 * UNIT * (times * a + epsilon) / gap + 4 * UNIT
    if rounding > 0.1:
        return None
    low, value, high = (_delta_of_uses(a, times, gap * (1 + x * rounding)) for x in (-1, 0, 1))
    if low < 1e-250:
        return None
    error = (high - low) / low + UNIT * (256 + 8 * times**2 + 8 * a * times)
    return math.log(value), error


def _delta_of_uses(a: float, times: int, gap: float) -> float:
    """Return delta where the largest loss exceeds epsilon by ``gap``."""
    whole = gap / (2 * a)
    cells = int(whole)
    part = whole - cells
    hold((cells + 1) ** 2 * 256, f"a loss of {gap:.6g} above epsilon")
    # Nodes in each unit cell lie on both sides of the distance r, which breaks it for every k.
    nodes, weights = _gauss_legendre()
    x = (nodes + 1) / 2
    inner = np.concatenate([part * x, part + (1 - part) * x])
    to_break = np.concatenate([part * (1 - x), 1 - (1 - part) * x])
    weights = np.concatenate([part * weights, (1 - part) * weights]) / 2
    cell, lower = np.arange(cells + 1), np.arange(cells + 1)
    s = cell[:, None] + inner
    # Distance from s to r; it is negative beyond r.
    units = (cells - lower)[:, None] - cell
    distance = np.stack([units, units - 1], axis=-1).repeat(len(x), axis=-1) + to_break
    kernel = -np.expm1(-2 * a * np.maximum(distance, 0.0))
    kernel *= weights * np.exp(-a * (lower[:, None, None] + s))
    density, total = np.ones_like(s), 0.0
    for uniform in range(times + 1):
        if uniform == 0:
            means = np.exp(-a * lower) * -np.expm1(-2 * a * (whole - lower))
        else:
            density = _next_spline(density, s, uniform)
            means = np.tensordot(kernel, density)
        for k in range(min(cells, times - uniform) + 1):
            ways = math.comb(times, uniform) * math.comb(times - uniform, k)
            total += ways * 0.5**times * a**uniform * float(means[k])
    return total


def _next_spline(density: Reals, s: Reals, order: int) -> Reals:
    """Return the density of a sum of ``order`` uniform numbers at s, from that of one fewer.

    Rows of s are a unit apart.
    """
    if order == 1:
        return np.where(s < 1, 1.0, 0.0)
    before = np.vstack([np.zeros_like(density[:1]), density[:-1]])
    return (s * density + np.maximum(order - s, 0.0) * before) / (order - 1)
