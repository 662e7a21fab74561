r"""What is E L^q of a random allocation? A Gamma integral along the ray of its saddle.

L = (Y_1 + ... + Y_M) / M is the likelihood ratio of an epoch of M batches, Y_i = exp(t X_i - t^2 /
2), X_i standard normal, t = 1 / sigma. For a whole m >= 0, m > Re q = a, b = m - q and 0 <= theta <
pi / 2,

    F(q) = E L^q = 1 / Gamma(b) * integral over real v of exp(b (v - i theta)) G(exp(v - i theta)),
    G(s) = E L^m exp(-s L) = m! M^-m [x^m] (c_0 + c_1 x + ... + c_m x^m)^M,
    c_j = E Y^j exp(-s Y / M) / j!,

by the Gamma integral for L^(q - m) and a rotation of its ray. With theta = arctan(Im q / Re b) the
ray passes the saddle s = b, and few digits cancel. Both integrals, over v and in c_j over x, are
taken by the trapezoid rule, v and t x on one lattice, so that every c_j is a sliding sum over one
table. The errors that :func:`log_moments` adds up are relative to F(a):

* the step of v: the integrand at v + i y is at most that of the real line at s cos(y - theta)
  (Trefethen and Weideman 2014, Theorem 5.1, for each side of the strip);
* the ends of v: G <= E L^m on the left, and G(x) <= (k / (e x))^k E L^(m - k) on the right;
* the step and ends of x, and rounding: G is a sum, with coefficients >= 0, of products of M of the
  c_j, of which at most m are not c_0; errors of each c_j are relative to c_j at Re s.

>>> values, errors = log_moments(1.0, 2, -0.5, np.array([3.0]))
>>> print(f"{np.exp(values[0]):.12f}")
-0.025060410518-0.105297223256j
>>> bool(errors[0] < 1e-12)
True
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.special import digamma, loggamma, ndtr, polygamma

from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.rounding import UNIT

__all__ = ["log_cumulants", "log_moments", "log_whole_moment"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Nats by which each error of a quadrature lies below F(a): a hundredth of a rounding.
_NATS = 41.0
# Most terms of all nodes together: about a second.
_MOST_WORK = 3e9
# Nodes of which the terms are counted, for the work of all of them.
_COUNTED = 8
# Most terms of a sum over the table of one node: about 0.1 s.
_MOST_TERMS = 30_000_000
# Largest logarithm of a moment E Y^m, which extended doubles hold with room for products. Where
# they are plain doubles, numbers that overflow are out of reach too.
_LARGEST = 5000.0
# Above this logarithm numbers are extended doubles.
_LARGEST_DOUBLE = 250.0
# Most terms c_j: a node then takes 0.1 s, and whole contours seconds.
_MOST_ORDERS = 100
# Growth of m along a line, in roots of Im q.
_WIDER = 0.8
# Largest factor of the angle between ray and imaginary axis off the saddle, and the angle up to
# which there is a factor: each costs a few digits.
_OFF = 2.5
_WIDE = 0.5
# Roundings of one term of a sum, of its weight and of its exponential.
_ROUNDINGS = 8.0


def whole_order(a: float, u: float) -> int:
    """Return m >= 0 with m - a >= 1; a larger m widens the angle of the ray."""
    return max(0, math.ceil(a) + 1 + round(_WIDER * math.sqrt(u)))


def _log_scales(t: float, batches: int, m: int) -> Reals:
    """Return log (E Y^j / j!) kappa^j for j = 0, ..., m: then E L^m is the last coefficient."""
    if m > _MOST_ORDERS or m * (m - 1) * t * t / 2 > _LARGEST:
        raise OutOfReach
    j = np.arange(m + 1.0)
    log_kappa = (math.lgamma(m + 1) / m if m else 0.0) - math.log(batches)
    return np.asarray(j * (j - 1) * t * t / 2 - loggamma(j + 1) + j * log_kappa)


def _scaled(log_scales: Reals) -> Any:
    """Return exponentials, as extended doubles where powers of them may overflow."""
    if np.abs(log_scales).max() < _LARGEST_DOUBLE:
        return np.exp(log_scales)
    return np.exp(log_scales.astype(np.longdouble))


def log_whole_moment(t: float, batches: int, m: int) -> float:
    """Return log E L^m; OutOfReach if it is above what extended doubles hold."""
    if m < 2:
        return 0.0
    return float(np.log(power_coefficient(_scaled(_log_scales(t, batches, m)), batches)))


class _Ray:
    """The integral for one q = a + i u.

    Parameters
    ----------
    t, batches
        1 / sigma > 0, and M >= 1.
    a, u
        Real part of q, and imaginary part >= 0.
    log_least
        A lower bound on log F(a).
    """

    def __init__(self, t: float, batches: int, a: float, u: float, log_least: float) -> None:
        self.t, self.batches, self.a, self.u = t, batches, a, u
        self.m = whole_order(a, u)
        self.b = self.m - a
        # A little off the saddle fewer points do: the strips of analyticity are wider.
        angle = math.atan2(self.b, u)
        self.theta = math.pi / 2 - min(max(angle, min(_OFF * angle, _WIDE)), math.pi / 2)
        self.log_gamma = complex(loggamma(complex(self.b, -u)))
        # The integrand's terms are divided by this number, and compared with F(a).
        self.log_scale = self.log_gamma.real + u * self.theta
        self.log_least = log_least
        self._choose_steps()
        self._choose_ends()

    def _choose_steps(self) -> None:
        b, u, t, theta = self.b, self.u, self.t, self.theta
        grid = np.linspace(0.01, 0.99, 99)
        self.log_step_error = -math.inf
        steps = []
        excess = math.lgamma(b) - self.log_gamma.real
        for sign, most in ((1, theta + math.pi / 2), (-1, math.pi / 2 - theta)):
            y = most * grid
            growth = excess - u * (theta - sign * y) - b * np.log(np.cos(theta - sign * y))
            steps.append(float((2 * math.pi * y / np.maximum(growth + _NATS, 1.0)).max()))
        dv = min(steps)
        # Within this distance of the real line, Re(s Y) >= 0.
        strip = (math.pi / 2 - theta) / t * 0.999
        d = strip * grid
        # At the saddle c_m is smaller than at 0, and errors of the rule are relative to c_m at 0.
        needed = _NATS + math.log(self.batches + 1.0) + self.m + 0.5 * (b * t) ** 2 * (self.m > 0)
        self.reach = math.sqrt(2 * (needed + 9.0))
        dx = float((2 * math.pi * d / (needed + d * d / 2)).max())
        self.stride = max(1, int(dv / (t * dx)))
        self.dx = min(dx, dv / t)
        self.dv = self.stride * t * self.dx
        with np.errstate(over="ignore"):
            self.log_x_error = float(
                (d * d / 2 + math.log(2) - np.log(np.expm1(2 * math.pi * d / self.dx))).min()
            )
        total: float = -math.inf
        for sign, most in ((1, theta + math.pi / 2), (-1, math.pi / 2 - theta)):
            y = most * grid
            growth = excess - u * (theta - sign * y) - b * np.log(np.cos(theta - sign * y))
            with np.errstate(over="ignore"):
                side = float((growth - np.log(np.expm1(2 * math.pi * y / self.dv))).min())
            total = float(np.logaddexp(total, side))
        self.log_step_error = total

    def _choose_ends(self) -> None:
        a, b, t, M = self.a, self.b, self.t, self.batches
        whole = log_whole_moment(t, M, self.m)
        goal = self.log_scale + self.log_least - _NATS
        self.low = (goal - whole - math.log(1 / b + self.dv)) / b
        # G(x) <= (k / (e x))^k E L^(m - k), k = b + n + a, and E L^-n has a closed bound.
        n = np.geomspace(0.5, 200 * (1 + b), 200)
        n = n[n + a > 0.25]
        k = b + n + a
        bounds = n * t * t / 2 + n * n * t * t / (2 * M) + k * (np.log(k) - 1)
        bounds += np.log(1 / (n + a) + self.dv) - k * math.log(math.cos(self.theta))
        self.high = float(((bounds - goal) / (n + a)).min())
        if not self.low < self.high:
            raise OutOfReach

    @property
    def _shape(self) -> tuple[int, int]:
        """The numbers of points v and x."""
        width = (2 * self.reach + self.m * self.t) / self.dx
        return math.ceil((self.high - self.low) / self.dv) + 1, math.ceil(width) + 1

    @property
    def terms_needed(self) -> float:
        """Number of products that its sums take."""
        count, width = self._shape
        return float(count) * width * (self.m + 2)

    def _sums(self) -> tuple[Reals, Reals, Reals, Reals]:
        """Return v, the sums over x for each order and v, and bounds on what they leave out.

        Rows of the sums: c_j over E Y^j / j!, real and imaginary; c_j at Re s; the rounding of
        arguments, in units. The third result holds the real part of c_0 - 1, and c_0(Re s) - 1.
        """
        t, m, (count, width) = self.t, self.m, self._shape
        if self.terms_needed > _MOST_TERMS:
            raise OutOfReach
        x = -self.reach + self.dx * np.arange(width)
        v: Reals = self.low + self.dv * np.arange(count, dtype=np.float64)
        places = self.low + t * (x[0] + self.dx * np.arange(self.stride * (count - 1) + len(x)))
        places -= t * t / 2 + math.log(self.batches)
        r = np.exp(np.minimum(places, 600.0))
        real, imag = r * math.cos(self.theta), r * math.sin(self.theta)
        shrink, less = np.exp(-real), np.expm1(-real)
        cosine, sine = np.cos(imag), shrink * np.sin(imag)
        rounded = shrink * r * (np.abs(places) + 8)
        halves = 2 * np.sin(imag / 2) ** 2
        tables = np.stack([shrink * cosine, sine, shrink, rounded, less * cosine - halves, less])
        windows = sliding_window_view(tables, len(x), axis=1)[:, :: self.stride]
        # The density times Y^j / E Y^j is a normal density around j t.
        orders = np.arange(m + 1.0)
        weights = np.exp(-0.5 * (x - t * orders[:, None]) ** 2)
        weights *= self.dx / math.sqrt(2 * math.pi)
        sums: Reals = np.moveaxis(np.asarray(windows[:4] @ weights.T, dtype=np.float64), 2, 0)
        first: Reals = np.asarray(windows[4:] @ weights[0], dtype=np.float64)
        beyond = ndtr(-self.reach - orders * t) + ndtr((orders - m) * t - self.reach)
        return v, sums, first, math.exp(self.log_x_error) + beyond

    def terms(self) -> tuple[Reals, Complexes, Reals, Reals]:
        """Return v, log G, log G(Re s), and the error of G at each v relative to G(Re s)."""
        M, m = self.batches, self.m
        v, sums, (real_less, less), cut = self._sums()
        near = less > -0.5
        mass = np.where(near, 1 + less, sums[0, 2])
        size = np.minimum(1.0, np.exp(np.minimum(v, 600.0)) / M)
        # The record's mean is 1 at t, so that what is cut off of 1 - c_0 is as small as s.
        lost = 2 * cut[0] * size + ndtr(self.t - self.reach) * size
        rounded = np.where(near, np.abs(less), mass) + sums[0, 3]
        lost = lost + _ROUNDINGS * UNIT * rounded
        # Upper bounds on c_j at Re s have their own errors added: ratios of errors stay below 1.
        mass = mass + lost
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            direct = sums[0, 0] + 1j * sums[0, 1]
            first = np.where(near, 1 + real_less + 1j * sums[0, 1], direct)
            log_g = M * np.where(near, _log1p(real_less, sums[0, 1]), np.log(direct))
            log_real = M * np.where(near, np.log1p(less + lost), np.log(mass))
            grown = M * np.log1p(lost / mass)
            if m:
                scales = _scaled(_log_scales(self.t, M, m))[:, None]
                c = scales * ((sums[:, 0] + 1j * sums[:, 1]) / first)
                own = cut[1:, None] + _ROUNDINGS * UNIT * (sums[1:, 2] + sums[1:, 3])
                upper = sums[1:, 2] + own
                real = np.concatenate([scales[:1] + 0 * mass, scales[1:] * (upper / mass)])
                c[0] = 1.0
                # Of the M factors of a product, at most m are not c_0.
                grown += m * np.log1p((own / upper).max(axis=0))
                log_g = log_g + np.log(power_coefficient(c, M)).astype(complex)
                log_real = log_real + np.log(power_coefficient(real, M)).astype(float)
            grown = np.expm1(np.minimum(grown, 700.0))
        grown += (m + 1) * (m + 8) * UNIT
        return v, log_g, log_real, grown

    def integral(self) -> tuple[complex, float, Reals, Reals]:
        """Return log F(q), its error relative to F(a), and v with the terms' sizes over F(a)."""
        v, log_g, log_real, grown = self.terms()
        b = complex(self.b, -self.u)
        exponents = b * (v - 1j * self.theta) + log_g - self.log_gamma + math.log(self.dv)
        sizes = self.b * v + log_real - self.log_scale + math.log(self.dv)
        kept = np.isfinite(exponents.real)
        top = float(exponents.real[kept].max())
        total = np.exp(exponents[kept] - top).sum()
        units = 16 + np.abs(log_g) + 4 * abs(b) * (np.abs(v) + self.theta) + 4 * abs(self.log_gamma)
        with np.errstate(over="ignore", invalid="ignore"):
            amounts = np.exp(np.minimum(sizes, 700.0))
            errors = amounts * grown
            errors[kept] += np.exp(exponents.real[kept]) * units[kept] * UNIT
        least = math.exp(self.log_least)
        error = float(errors[np.isfinite(errors)].sum()) / least
        if not np.isfinite(errors).all():
            raise OutOfReach
        error += math.exp(self.log_step_error) + 2 * math.exp(-_NATS)
        return complex(np.log(total)) + top, error, v, amounts


def _log1p(x: Reals, y: Reals) -> Complexes:
    """Return log(1 + x + i y) to the last digits of small x and y, which numpy's log1p loses."""
    return np.asarray(0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x))


def power_coefficient(terms: Any, power: int) -> Any:
    """Return the last coefficient of (terms[0] + terms[1] x + ...)^power, with terms[0] = 1.

    Both ways add up numbers of one sign where the terms are >= 0, so that little is rounded.
    """
    count = len(terms)
    if power >= count:
        found = np.ones_like(terms)
        orders = np.arange(1, count).astype(terms.real.dtype)
        for k in range(1, count):
            j = orders[:k]
            weights = ((j * power - k + j) / k)[(..., *[None] * (terms.ndim - 1))]
            found[k] = (weights * terms[1 : k + 1] * found[k - 1 :: -1][:k]).sum(axis=0)
        return np.asarray(found[-1])
    found = None
    for digit in f"{power:b}":
        if found is None:
            found = terms
            continue
        found = _product(found, found)
        if digit == "1":
            found = _product(found, terms)
    return np.asarray(found[-1])


def _product(one: Any, other: Any) -> Any:
    """Return a product of polynomials to as many terms."""
    return np.stack([(one[: k + 1] * other[k::-1]).sum(axis=0) for k in range(len(one))])


def _log_least(t: float, batches: int, a: float) -> float:
    """Return a lower bound on log F(a): 0 by Jensen, or from F(1) = 1, F(2) and log-convexity."""
    if not 0 < a < 1:
        return 0.0
    return -(1 - a) * math.log1p(math.expm1(t * t) / batches)


def log_cumulants(t: float, batches: int, a: float) -> tuple[Reals, float]:
    """Return log F(a), three moments of log L tilted by L^a, and the error of log F(a).

    Under the integrand's density v is log Gamma_b - log L, independent parts, so that cumulants of
    log L are differences. The moments are the mean, the variance and the fourth central moment;
    they have no error bound, and only place contours.
    """
    ray = _Ray(t, batches, a, 0.0, _log_least(t, batches, a))
    value, _, v, amounts = ray.integral()
    ray = _Ray(t, batches, a, 0.0, value.real - 1e-6)
    value, error, v, amounts = ray.integral()
    weights = amounts / amounts.sum()
    mean = float(weights @ v)
    second, fourth = (float(weights @ (v - mean) ** k) for k in (2, 4))
    b = ray.b
    variance = second - float(polygamma(1, b))
    kurtosis = fourth - 3 * second**2 - float(polygamma(3, b))
    variance = max(variance, 1e-3 * math.log1p(math.expm1(t * t) / batches))
    fourth = max(kurtosis + 3 * variance**2, variance**2)
    return np.array([value.real, float(digamma(b)) - mean, variance, fourth]), error


def log_moments(t: float, batches: int, a: float, u: Reals) -> tuple[Complexes, Reals]:
    """Return log F(a + i u) at each u >= 0, and bounds on the errors of F relative to F(a).

    Parameters
    ----------
    t
        1 / sigma > 0.
    batches
        Number M >= 1 of batches.
    a
        Real part.
    u
        Imaginary parts >= 0.

    Raises
    ------
    OutOfReach
        If an integral takes too many points.
    """
    least = float(log_cumulants(t, batches, a)[0][0]) - 1e-6
    counted = u[:: -(-len(u) // _COUNTED)]
    work = sum(_Ray(t, batches, a, float(each), least).terms_needed for each in counted)
    if work * len(u) / len(counted) > _MOST_WORK:
        raise OutOfReach
    found = [_Ray(t, batches, a, float(each), least).integral()[:2] for each in u]
    return np.array([value for value, _ in found]), np.array([error for _, error in found])
