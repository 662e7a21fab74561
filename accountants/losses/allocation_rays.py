r"""What is E L^q of a random allocation? A Gamma integral along a ray near its saddle.

L = (Y_1 + ... + Y_M) / M is the likelihood ratio of an epoch of M batches, Y_i = exp(t X_i - t^2 /
2), X_i standard normal, t = 1 / sigma. For a whole m >= 0, m > Re q = a, b = m - q and 0 <= theta <
pi / 2,

    F(q) = E L^q = 1 / Gamma(b) * integral over real v of exp(b (v - i theta)) G(exp(v - i theta)),
    G(s) = E L^m exp(-s L) = m! M^-m [x^m] (c_0 + c_1 x + ... + c_m x^m)^M,
    c_j = E Y^j exp(-s Y / M) / j!,

by the Gamma integral for L^(q - m) and a rotation of its ray. With theta = arctan(Im q / Re b) the
ray passes the saddle s = b, and few digits cancel; nor do they for q near by, so that one table of
G serves a block of nodes. Both integrals, over v and in c_j over x, are taken by the trapezoid
rule, v and t x on one lattice, so that every c_j is a sliding sum over one table. Where t is not
small the line of x is moved by eta, which turns s Y by t eta towards the positive numbers:
oscillations end, and terms grow by exp(eta^2 / 2) at most. The errors that :func:`log_moments` adds
up are relative to F(a):

* the step of v: the integrand at v + i y is at most that of the real line at s cos(y - theta)
  (Trefethen and Weideman 2014, Theorem 5.1, for each side of the strip);
* the ends of v: G <= E L^m on the left, and G(x) <= (k / (e x))^k E L^(m - k) on the right;
* the step and ends of x, and rounding: at x + i y the number s is turned, so that a sum over x errs
  by a share of a mean at a smaller s; with P a polynomial whose coefficients are bounds on those
  of both c and what was computed, an error e_j of c_j changes the M-th power's coefficient by at
  most M e_j [x^(m - j)] P^(M - 1).

>>> values, errors = log_moments(1.0, 2, -0.5, np.array([3.0]))
>>> print(f"{np.exp(values[0]):.12f}")
-0.025060410518-0.105297223256j
>>> bool(errors[0] < 1e-12)
True
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache

import numpy as np
from scipy.special import digamma, loggamma, ndtr, polygamma

from dpcal.accountants.losses.allocation_powers import Circle, Recurrence, log1p, power_of
from dpcal.accountants.losses.base import Complexes, OutOfReach, Reals
from dpcal.accountants.losses.lattice import SUMMED, earlier, sliding, turned_sums
from dpcal.accountants.rounding import UNIT

__all__ = ["log_cumulants", "log_moments", "log_whole_moment"]

# Nats by which each error of a quadrature lies below F(a): a hundredth of a rounding.
_NATS = 41.0
# Most terms of the sums over the table of one ray: about 0.3 s.
_MOST_TERMS = 3_000_000_000
# Nats that cancel at the ends of a block of nodes.
_CANCELLED = 2.0
# Nats between F(a) and its lower bound from which it is taken once more, with its own.
_FAR = 1.0
# Places in a strip that are tried.
_GRID = np.linspace(0.01, 0.99, 99)
# Nats by which weights with roundings exceed those of means.
_WEIGHTED = 8.0
# More than all numbers that underflow add up to.
_UNDERFLOW = 1e-300
# 1 / sigma from which real rays are shared, and how much wider they are made.
_SHARED, _WIDENED = 1.5, 0.15
# Rounds of a bound that is a share of itself: each gains forty nats.
_REPEATED = 20
# Growth of m along a line, in roots of Im q.
_WIDER = 0.8
# Least b, and most orders but one, times t.
_LEAST_B, _FEW_ORDERS = 0.5, 28.0
# Largest factor of the angle between ray and imaginary axis off the saddle, and the angle up to
# which there is a factor.
_OFF = 2.5
_WIDE = 0.5
# Most that the line of x is moved: terms grow by e to half its square.
_MOST_GROWN = 3.0
# Roundings of one term of a sum, of its weight and of its exponential.
_ROUNDINGS = 8.0


def _power(t: float, batches: int, a: float, u: float) -> tuple[int, Circle | Recurrence | None]:
    """Return m >= a + 1/2, and the m-th power; a larger m widens the angle of the ray."""
    least = math.ceil(a + _LEAST_B)
    m = max(0, least + round(_WIDER * math.sqrt(u)))
    # Nine deviations off, E Y^m exp(-s Y) must be a double.
    m = min(m, max(0, least, 1 + int(_FEW_ORDERS / t)))
    # Above the first number E L^m is that of a single batch, drawn m times; above the second one
    # batches are drawn so often that many orders matter.
    most = min(2 * (math.log(batches) - 2) / (t * t), batches)
    if a > 1:
        m = max(m, min(least + round(u), int(most)))
    return m, power_of(t, batches, m) if m else None


def log_whole_moment(t: float, batches: int, m: int) -> float:
    """Return log E L^m for a whole m >= 0; OutOfReach if it takes too long or is too large."""
    return power_of(t, batches, m).log_whole if m > 1 else 0.0


class _Ray:
    """The integrals for neighboring q = a + i u along one ray, that of the middle of them.

    Parameters
    ----------
    t, batches
        1 / sigma > 0, and M >= 1.
    a, u
        Real part of q, and imaginary parts >= 0, ascending.
    log_least
        A lower bound on log F(a).
    """

    def __init__(self, t: float, batches: int, a: float, u: Reals, log_least: float) -> None:
        self.t, self.batches, self.a, self.u = t, batches, a, u
        middle = 0.5 * float(u[0] + u[-1])
        self.m, self.power = _power(t, batches, a, middle)
        # Terms c_j are taken up to this order.
        self.last = len(self.power.scales) - 1 if self.power else 0
        self.b = self.m - a
        # A little off the saddle fewer points do: the strips of analyticity are wider.
        angle = math.atan2(self.b, middle)
        further = math.sqrt(2 * _CANCELLED * self.b) / math.hypot(self.b, middle)
        self.theta = math.pi / 2 - max(angle, min(_OFF * angle, angle + further, _WIDE))
        self.log_gamma: Complexes = np.asarray(loggamma(self.b - 1j * u))
        # The integrand's terms are divided by these numbers, and compared with F(a).
        self.log_scale: Reals = np.asarray(self.log_gamma.real + u * self.theta)
        self.log_least = log_least
        self.known: tuple[Reals, Complexes, Reals] | None = None
        self._choose_steps()

    def _growths(self, u: Reals, log_gamma: Complexes) -> list[tuple[Reals, Reals]]:
        """Return, on both sides, distances from the line of v, and log growth there for each u."""
        excess = math.lgamma(self.b) - log_gamma.real[:, None]
        found = []
        for sign in (1, -1):
            y = _GRID * (math.pi / 2 + sign * self.theta)
            angle = self.theta - sign * y
            found.append((y, excess - u[:, None] * angle - self.b * np.log(np.cos(angle))))
        return found

    def _choose_steps(self) -> None:
        t, theta = self.t, self.theta
        ends = [0, -1]
        growths = self._growths(self.u[ends], self.log_gamma[ends])
        dv = min(
            float((2 * math.pi * y / np.maximum(growth + _NATS, 1.0)).max(axis=1).min())
            for y, growth in growths
        )
        worst = float(self.log_scale.min()) + self.log_least
        self._choose_ends(dv, worst - _NATS)
        # The line of x is moved by eta, which turns s Y by t eta towards the real line. Terms grow.
        self.eta = min(theta / t, _MOST_GROWN)
        if t * self.eta < math.pi / 2 - theta:
            self.eta = 0.0
        # Where it is turned all the way, by a rounding more or less, terms are real.
        self.angle = angle = theta - t * self.eta if self.eta in (0.0, _MOST_GROWN) else 0.0
        # An error of c_0 counts M times, and is as small as s / M.
        needed = (
            _NATS
            + _WEIGHTED
            + np.logaddexp(math.log(self.m + 1.0), min(self.high, math.log(self.batches)))
        )
        most = math.exp(min(self.high, 600.0)) / self.batches
        self.reach = math.sqrt(2 * (needed + 9.0) + self.eta**2)
        # Of few batches with much noise c_0 is far below 1, and so must be the ends of x.
        small = -most * math.expm1(-2 * t * self.reach)
        small = min(small, (max(0.0, math.log(most)) / t + t) ** 2)
        self.reach = math.sqrt(2 * (needed + 9.0 + small) + self.eta**2)
        # Means fall no faster with v than this, about.
        slope = self.last + min(most, 12 / t + 1)
        sides, steps = [], []
        for sign in (1, -1):
            # Within these distances Re(s Y) >= 0; the density grows, and the mean is that of a
            # smaller s.
            d = 0.999 * _GRID * (math.pi / 2 + sign * angle) / t
            grown = (self.eta + sign * d) ** 2 / 2
            shrunk = np.maximum(
                0.0, math.log(math.cos(angle)) - np.log(np.cos(angle - sign * t * d))
            )
            steps.append(2 * math.pi * d / (needed + grown + slope * shrunk))
            sides.append((d, grown, shrunk))
        dx = min(float(step.max()) for step in steps)
        # Of v and t x, one lattice is that of multiples of the other's step.
        self.stride = max(1, int(dv / (t * dx)))
        self.spread = max(1, int(t * dx / dv))
        self.dx = min(dx, self.spread * dv / t)
        self.dv = self.stride * t * self.dx / self.spread
        # The error's logarithm on each side, over the mean as many points of v earlier.
        self.x_errors = []
        for step, (d, grown, shrunk) in zip(steps, sides, strict=True):
            k = int(step.argmax())
            error = grown[k] - _log_expm1(2 * math.pi * d[k] / self.dx)
            self.x_errors.append((float(error), math.ceil(shrunk[k] / self.dv)))

    def _step_errors(self) -> Reals:
        """Return what the step of v adds to the error of F at each u, relative to F(a)."""
        with np.errstate(over="ignore"):
            return np.asarray(
                sum(
                    np.exp((growth - np.log(np.expm1(2 * math.pi * y / self.dv))).min(axis=1))
                    for y, growth in self._growths(self.u, self.log_gamma)
                )
            )

    def _choose_ends(self, step: float, goal: float) -> None:
        """Choose the ends of v, beyond which less than exp(goal) is left."""
        a, b, t, M = self.a, self.b, self.t, self.batches
        whole = self.power.log_whole if self.power else 0.0
        self.low = (goal - whole - math.log(1 / b + step)) / b
        # G(x) <= (k / (e x))^k E L^(m - k), k = b + n + a, and E L^-n has a closed bound.
        n = np.geomspace(0.5, 200 * (1 + b), 200)
        n = n[n + a > 0.25]
        k = b + n + a
        bounds = n * t * t / 2 + n * n * t * t / (2 * M) + k * (np.log(k) - 1)
        bounds += np.log(1 / (n + a) + step) - k * math.log(math.cos(self.theta))
        self.high = float(((bounds - goal) / (n + a)).min())
        if not self.low < self.high:
            raise OutOfReach

    @property
    def _shape(self) -> tuple[int, int]:
        """The numbers of points v and x."""
        width = (2 * self.reach + self.last * self.t) / self.dx
        return math.ceil((self.high - self.low) / self.dv) + 1, math.ceil(width) + 1

    @property
    def terms_needed(self) -> float:
        """Number of products that its sums take."""
        count, width = self._shape
        return float(count) * width * (self.last + 2)

    def _sums(self) -> tuple[Reals, Complexes, Complexes, tuple[Reals, Reals, Reals]]:
        """Return v, the sums over x for each order and v, c_0 - 1, and bounds on what they lack.

        The sums are c_j over E Y^j / j!. The bounds are their roundings and those of c_0 - 1, in
        units, and what the rule and the ends of x leave out.
        """
        t, last, (count, width) = self.t, self.last, self._shape
        if self.terms_needed > _MOST_TERMS:
            raise OutOfReach
        x = -self.reach + self.dx * np.arange(width)
        v: Reals = self.low + self.dv * np.arange(count, dtype=np.float64)
        size = self.stride * (count - 1) + self.spread * (width - 1) + 1
        places = self.low + t * (x[0] + self.dx / self.spread * np.arange(size))
        places -= t * t / 2 + math.log(self.batches)
        r = np.exp(np.minimum(places, 600.0))
        angle = self.angle
        real, imag = r * math.cos(angle), r * math.sin(angle)
        shrink = np.exp(-real)
        sine = shrink * np.sin(imag)
        less = np.expm1(-real) * np.cos(imag) - 2 * np.sin(imag / 2) ** 2
        moved = shrink * r * (np.abs(places) + 8)
        rows = [
            shrink * np.cos(imag),
            sine,
            less,
            sine,
            shrink + moved,
            moved + np.hypot(less, sine),
        ]
        tables = np.stack(rows)
        # The density times Y^j / E Y^j is a normal density around j t, here on the moved line.
        z = x - t * np.arange(last + 1.0)[:, None]
        sizes = np.exp(0.5 * (self.eta**2 - z * z)) * (self.dx / math.sqrt(2 * math.pi))
        cosines, sines = sizes * np.cos(self.eta * z), -sizes * np.sin(self.eta * z)
        erring = sizes * (1 + self.eta * np.abs(z) + z * z / _ROUNDINGS)

        def weighted(rows: slice, weights: Reals) -> Reals:
            """Return sums of each row with each order's weights."""
            how = count, self.stride, self.spread
            return np.array(
                [[sliding(row, each, *how) for row in tables[rows]] for each in weights]
            )

        def turned(first: int, orders: slice) -> Complexes:
            if not self.theta:
                alone = weighted(slice(first, first + 1), cosines[orders])[:, 0]
                return np.asarray(alone, dtype=np.complex128)
            rows = slice(first, first + (2 if angle else 1))
            plain, moved = weighted(rows, cosines[orders]), weighted(rows, sines[orders])
            found = plain[:, 0] + 1j * moved[:, 0]
            if plain.shape[1] > 1:
                found += 1j * (plain[:, 1] + 1j * moved[:, 1])
            return np.asarray(found)

        c, less = turned(0, slice(None)), turned(2, slice(1))[0]
        bounds = weighted(slice(4, 5), erring)[:, 0] + _UNDERFLOW
        rounded_less = weighted(slice(5, 6), erring[:1])[0, 0]
        means, beyond = self._means(v, bounds, angle)
        cut = math.exp(self.eta**2 / 2) * beyond
        cut += sum(math.exp(error) * earlier(means, k) for error, k in self.x_errors)
        return v, c, less, (bounds, rounded_less, cut + _UNDERFLOW)

    def _means(self, v: Reals, sums: Reals, angle: float) -> tuple[Reals, Reals]:
        """Return bounds on real c_j / E Y^j at each v, and on what lies beyond the ends of x.

        A mean at x = abs(s) cos(angle) is at most its sum over the lattice, an error that is a
        share of the mean at x cos(t d), and what is beyond the ends.
        """
        t, orders = self.t, np.arange(self.last + 1.0)[:, None]

        def left(x: float) -> Reals:
            """Return the share of numbers above x that is left."""
            log_r = v + (t * x - t * t / 2 - math.log(self.batches))
            return np.asarray(np.exp(-np.exp(np.minimum(log_r, 600.0)) * math.cos(angle)))

        beyond = ndtr((orders - self.last) * t - self.reach) * left(self.reach + self.last * t)
        beyond += ndtr(-self.reach - orders * t) * left(-2 * self.reach)
        beyond += ndtr(-2 * self.reach - orders * t)
        d = min(math.pi / (3 * t), 2 * math.pi / self.dx)
        share = 2 * math.exp(d * d / 2 - _log_expm1(2 * math.pi * d / self.dx))
        before = math.ceil(-math.log(math.cos(t * d)) / self.dv)
        base = math.exp(-(self.eta**2) / 2) * sums + beyond
        found = np.ones_like(base)
        for _ in range(_REPEATED):
            found = np.minimum(1.0, base + share * earlier(found, before))
        return found, beyond

    def terms(self) -> tuple[Reals, Complexes, Reals]:
        """Return v, log G, and the logarithm of a bound on the error of G at each v."""
        M = self.batches
        v, sums, less, (rounded, rounded_less, cut) = self._sums()
        near = np.abs(less) < 0.5
        size = np.minimum(1.0, np.exp(np.minimum(v, 600.0)) / M)
        # Of 1 - c_0 the rule and the ends of x leave out no more than as much of s Y / M, or of 2.
        rule = sum(math.exp(error) for error, _ in self.x_errors)
        further = self.reach + self.last * self.t
        ends = np.minimum(
            (ndtr(-self.reach - self.t) + ndtr(self.t - further))
            * np.exp(np.minimum(v, 600.0))
            / M,
            2 * (ndtr(-self.reach) + ndtr(-further)),
        )
        lost = 2 * rule * size + math.exp(self.eta**2 / 2) * ends
        lost = np.where(near, lost, np.minimum(lost, cut[0]))
        lost = lost + _ROUNDINGS * UNIT * np.where(near, rounded_less, rounded[0])
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            first = np.where(near, 1 + less, sums[0])
            log_first = np.where(near, log1p(less.real, less.imag), np.log(first))
            # A number below its own error gives way to that.
            below = np.abs(first) < lost
            first, log_first = (
                np.where(below, lost, first),
                np.where(below, np.log(lost), log_first),
            )
            lost = np.where(below, 3 * lost, lost)
            # An upper bound on |c_0|.
            log_size = log_first.real + np.log1p(lost / np.abs(first))
            log_g = M * log_first
            if self.power:
                scales = self.power.scales[:, None]
                c = scales * (sums / first)
                c[0] = 1.0
                own = cut[1:] + _ROUNDINGS * UNIT * rounded[1:]
                errors = np.concatenate([lost[None], scales[1:] * own]) / np.abs(first)
                log_c, log_rounded = self.power.log_coefficient(c)
                # What multiplies one factor's error is bounded with c_0 as large as it may be.
                log_error = self.power.log_error(c, errors.astype(float)) + M * log_size
                log_g, log_rounded = log_g + log_c, log_rounded + M * log_size
            else:
                log_error = np.log(M * lost) + (M - 1) * log_size
                log_rounded = math.log(8) + M * log_size
            log_error = np.logaddexp(log_error, log_rounded + math.log(UNIT))
        return v, log_g, log_error

    def takes(self, other: _Ray) -> bool:
        """Return whether terms of another real ray of the same m serve, and take them then."""
        serves = other.low <= self.low and self.high <= other.high and other.dv <= self.dv
        if serves:
            self.low, self.high, self.dv, self.known = other.low, other.high, other.dv, other.known
        return serves

    def widen(self) -> None:
        """Take more and closer points, so that the terms serve neighboring a, too."""
        room = _WIDENED * (self.high - self.low)
        self.low, self.high = self.low - room, self.high + room
        self.dx, self.dv = (1 - _WIDENED) * self.dx, (1 - _WIDENED) * self.dv

    def integrals(self) -> tuple[Complexes, Reals, Reals, Reals]:
        """Return log F at each u, errors relative to F(a), and v with sizes of terms at u = 0."""
        if self.known is None:
            self.known = self.terms()
        v, log_g, log_error = self.known
        kept = np.isfinite(log_g.real)
        q = self.b - 1j * self.u
        exponents = np.where(kept, self.b * v + log_g, -math.inf)
        top = float(exponents.real.max())
        values = np.log(turned_sums(np.exp(exponents - top), self.u, self.dv))
        values += top + math.log(self.dv) - 1j * (self.theta * q + self.u * v[0]) - self.log_gamma
        # All that errs, over the least scale: by recurrences, in c_j, and in exponents.
        scale = float(self.log_scale.min())
        sizes = self.b * v + math.log(self.dv) - scale
        with np.errstate(over="ignore"):
            lost = np.exp(sizes + log_error).sum()
            amounts = np.exp(sizes[kept] + log_g[kept].real) * UNIT
        units = 16 + SUMMED + np.abs(log_g[kept])
        places = 4 * (abs(v[0]) + v[kept] - v[0] + self.theta)
        with np.errstate(over="ignore", invalid="ignore"):
            errors = lost + amounts @ units + np.abs(q) * (amounts @ places)
            errors += 4 * np.abs(self.log_gamma) * amounts.sum()
            errors = errors * np.exp(scale - self.log_scale - self.log_least)
        errors += self._step_errors() + 2 * math.exp(-_NATS)
        if not np.isfinite(errors).all():
            raise OutOfReach
        return values, errors, v, np.exp(sizes + log_g.real + scale - self.log_scale[0])


def _log_expm1(x: float) -> float:
    """Return log(exp(x) - 1) for x > 0."""
    return x + math.log(-math.expm1(-x))


def _log_least(t: float, batches: int, a: float) -> float:
    """Return a lower bound on log F(a).

    It is 0 by Jensen, or that of the Y_j apart, whose powers add up to less than their sum's; or
    from F(1) = 1, F(2) and log-convexity.
    """
    if 0 < a < 1:
        return -(1 - a) * math.log1p(math.expm1(t * t) / batches)
    return max(0.0, (1 - a) * math.log(batches) + a * (a - 1) * t * t / 2) if a > 1 else 0.0


@lru_cache(maxsize=16)
def _rays_of(t: float, batches: int, m: int) -> deque[_Ray]:
    """Return the last real rays of an m, which others may take the terms of."""
    return deque(maxlen=4)


def _real_ray(t: float, batches: int, a: float, log_least: float) -> _Ray:
    """Return a ray for F(a); where terms are dear, they serve several a."""
    ray = _Ray(t, batches, a, np.zeros(1), log_least)
    if t > _SHARED and not any(map(ray.takes, _rays_of(t, batches, ray.m))):
        ray.widen()
        _rays_of(t, batches, ray.m).append(ray)
    return ray


def log_cumulants(t: float, batches: int, a: float) -> tuple[Reals, float]:
    """Return log F(a), three moments of log L tilted by L^a, and the error of log F(a).

    Under the integrand's density v is log Gamma_b - log L, independent parts, so that cumulants of
    log L are differences. The moments are the mean, the variance and the fourth central moment;
    they have no error bound, and only place contours.
    """
    ray = _real_ray(t, batches, a, _log_least(t, batches, a))
    (value,), (error,), v, amounts = ray.integrals()
    if value.real - ray.log_least > _FAR:
        # The integral was taken to more digits than F(a) has, at the end that it was compared with.
        ray = _real_ray(t, batches, a, float(value.real) - 1e-6)
        (value,), (error,), v, amounts = ray.integrals()
    with np.errstate(over="ignore"):
        total = float(amounts.sum())
    if not 0 < total < math.inf:
        raise OutOfReach
    weights = amounts / total
    mean = float(weights @ v)
    second, fourth = (float(weights @ (v - mean) ** k) for k in (2, 4))
    b = ray.b
    variance = second - float(polygamma(1, b))
    kurtosis = fourth - 3 * second**2 - float(polygamma(3, b))
    variance = max(variance, 1e-3 * math.log1p(math.expm1(t * t) / batches))
    fourth = max(kurtosis + 3 * variance**2, variance**2)
    return np.array([value.real, float(digamma(b)) - mean, variance, fourth]), float(error)


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
    values, errors, start = np.empty(len(u), dtype=np.complex128), np.empty(len(u)), 0
    while start < len(u):
        # Far from the middle of a block digits cancel, and its first half is as wide as its start.
        b = _power(t, batches, a, float(u[start]))[0] - a
        last = u[start] + 2 * math.sqrt(2 * _CANCELLED * (b + u[start] ** 2 / b))
        end = int(np.searchsorted(u, last, side="right"))
        ray = _Ray(t, batches, a, u[start:end], least)
        values[start:end], errors[start:end], _, _ = ray.integrals()
        start = end
    return values, errors
