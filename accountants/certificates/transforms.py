r"""The transform M(z) = E exp(z L) of a privacy loss, enclosed along a line Re z = c.

A sampled Gaussian has M(z) = integral of phi_sigma(x) w(x)^p, w(x) = 1 - q + q exp((2 x - 1) / (2
sigma^2)), with p = 1 + z when removing a record and p = -z when adding one. It is summed by the
trapezoid rule of step H on a line Im x = y, abs(y) = angle sigma^2, on the side of the real axis
where abs(w^(i t)) <= 1. In the strip between the real axis and Im x = 2 y the integrand is analytic
and, with P = Re p,

    abs(phi_sigma w^p)(x) <= exp(2 (y / sigma)^2) (phi_sigma w^P)(Re x) / cos(angle)^max(0, -P),

so that the rule's error is at most 2 / (exp(2 pi abs(y) / H) - 1) times the integral of the right
side (Trefethen and Weideman 2014, Theorem 5.1), for every t. As each term of the sum shrinks with
t, the sum of absolute values at t bounds abs(M) everywhere beyond.

The line is chosen in doubles, for a number of digits. A bad one makes the error large, and no
enclosure false.

>>> from dpcal.accountants.certificates import balls
>>> with balls.workprec(64):
...     at_one = GaussianTransform(balls.arb(2)).along_line(1.0, 1.0, nodes=1)[0]
...     at_one.overlaps(balls.acb(4).exp())             # exp(eta^2 (z^2 + z) / 2)
True
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpcal._ext.question import mixture_log_weights
from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball, probability
from dpcal.accountants.losses.base import OutOfReach, Reals
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = [
    "MAX_POINTS",
    "GaussianTransform",
    "SampledGaussianTransform",
    "Transform",
    "sums_of_powers",
]

# Most points of a lattice.
MAX_POINTS = 1 << 16
# Most points that are multiplied together: those of the longest contours take about 100 MB.
_CHUNK = 1 << 10
# Angles of the shifted lines that are tried, in units of sigma^2: 1.3 times powers of 0.8, down to
# 1.3e-3; the bounds on the strip end at pi / 2.
_ANGLES = 1.3 * 0.8 ** np.arange(32.0)


class Transform(ABC):
    """M(z) of one loss."""

    @abstractmethod
    def along_line(self, c: float, h: float, nodes: int) -> list[Ball]:
        """Enclose M(c + i k h) for k = 0, ..., nodes - 1."""

    @abstractmethod
    def bound_beyond(self, c: float, t: Ball) -> Ball:
        """Bound abs(M(c + i s)) for every s >= t."""

    @abstractmethod
    def log_beyond(self, c: float, t: float) -> float:
        """Return the logarithm of that bound, roughly."""

    def size(self, c: float, h: float, nodes: int) -> tuple[float, float]:
        """Return the points of the sum on a line, and the functions of a point, roughly."""
        return 1.0, 1.0

    def nats_lost(self, c: float, h: float, nodes: int) -> float:
        """Return the nats by which terms exceed their sum on a line, roughly."""
        return 0.0

    def at(self, c: float) -> Ball:
        """Enclose M(c) for real c."""
        return self.along_line(c, 1.0, 1)[0].real


class GaussianTransform(Transform):
    """M of a Gaussian loss of standard deviation eta and mean eta^2 / 2."""

    def __init__(self, eta: Ball) -> None:
        self.variance = eta * eta

    def along_line(self, c: float, h: float, nodes: int) -> list[Ball]:
        """Enclose exp(eta^2 (z^2 + z) / 2)."""
        points = [balls.acb(c, k * balls.arb(h)) for k in range(nodes)]
        return [(self.variance * z * (z + 1) / 2).exp() for z in points]

    def bound_beyond(self, c: float, t: Ball) -> Ball:
        """Return the absolute value at t: it falls along the line."""
        at = balls.arb(c)
        return (self.variance * (at * at + at - t * t) / 2).exp()

    def log_beyond(self, c: float, t: float) -> float:
        """Return its logarithm."""
        return float(self.variance.mid()) * (c * c + c - t * t) / 2


class _Lattice(NamedTuple):
    """The points j step + i angle sigma^2, first <= j <= last, of a trapezoid rule."""

    angle: float
    step: float
    first: int
    last: int


@lru_cache(maxsize=256)
def _lattices(loss: SampledGaussian, c: float, digits: float) -> tuple[_Lattice, ...]:
    """Return the coarsest lattices that are accurate enough, on lines of falling angles.

    ``digits`` > 0 is the logarithm of the accuracy. Two bounds on log M are known, by convexity and
    by the smallest w: points are needed where neither bound is small.
    """
    sigma, power = loss.noise_multiplier, float(loss._power(c))
    value = float(loss.cumulants([c])[0, 0])
    convex = max(loss.log_mgf_bound(c) - value, 0.0)
    flat = max(min(c * loss.upper - value, 1e300), 0.0)
    found = []
    for angle in _ANGLES.tolist():
        deviations = (angle * sigma) ** 2
        turned = min(0.0, power) * math.log(math.cos(angle))
        needed = digits + min(convex, flat) + 2 * deviations + turned
        step = 2 * math.pi * angle * sigma**2 / needed
        growth = digits + deviations / 2 + turned
        near, far = (sigma * math.sqrt(2 * (growth + excess)) for excess in (convex, flat))
        low, high = max(min(0.0, power) - near, -far), min(max(0.0, power) + near, far)
        if (high - low) / step < MAX_POINTS - 2:
            found.append(_Lattice(angle, step, math.floor(low / step), math.ceil(high / step)))
    if not found:
        raise OutOfReach
    return tuple(found)


@lru_cache(maxsize=64)
def _decays(
    loss: SampledGaussian, c: float, digits: float
) -> tuple[tuple[_Lattice, Reals, Reals], ...]:
    """Return lattices, the logarithms of their terms at c, and the rates at which these fall."""
    sigma, power, rows = loss.noise_multiplier, float(loss._power(c)), []
    for lattice in _lattices(loss, c, digits):
        angle, step, first, last = lattice
        x = step * np.arange(first, last + 1.0)
        weights = mixture_log_weights(x, loss.sampling_probability, sigma, angle)
        sizes = 0.5 * ((angle * sigma) ** 2 - (x / sigma) ** 2) + power * weights.real
        scale = math.log(step / (sigma * math.sqrt(2 * math.pi)))
        rows.append((lattice, sizes + scale, weights.imag))
    return tuple(rows)


class SampledGaussianTransform(Transform):
    """M of a sampled Gaussian, by the trapezoid rule on a shifted line, to some digits.

    Its sampling probability is that of the loss, or is known only up to rounding.
    """

    def __init__(self, loss: SampledGaussian, digits: float, rounded: bool = False) -> None:
        self.loss, self.digits = loss, digits
        self.q = probability(loss.sampling_probability, rounded)
        self.sigma = balls.arb(loss.noise_multiplier)
        self.removing = loss.direction == "remove"
        self.variance = self.sigma**2

    def _cheapest(self, c: float) -> _Lattice:
        """Return the lattice with the least work: points, at the precision for the growth."""

        def cost(lattice: _Lattice) -> float:
            nats = self.digits + self._growth(lattice.angle, c)
            return float((lattice.last - lattice.first) * nats**1.5)

        return min(_lattices(self.loss, c, self.digits), key=cost)

    def _growth(self, angle: float, c: float) -> float:
        turned = 0.0 if self.removing else -c * math.log(math.cos(angle / 2))
        return (angle * self.loss.noise_multiplier) ** 2 / 2 + turned

    def size(self, c: float, h: float, nodes: int) -> tuple[float, float]:
        """Return the points on the cheapest lattice, and functions of those at all tilts."""
        lattice = self._cheapest(c)
        return lattice.last - lattice.first + 1, 36.0

    def nats_lost(self, c: float, h: float, nodes: int) -> float:
        """Return the growth of the density on the line, and of the weights."""
        return self._growth(self._cheapest(c).angle, c)

    def log_beyond(self, c: float, t: float) -> float:
        """Return the least estimate of all lines, with the error of the rule."""
        error = float(self.loss.cumulants([c])[0, 0]) - self.digits
        return float(np.logaddexp(self._best(c, t)[0], error))

    def _best(self, c: float, t: float) -> tuple[float, _Lattice]:
        rows = _decays(self.loss, c, self.digits)
        return min((float(np.logaddexp.reduce(a - t * b)), lattice) for lattice, a, b in rows)

    def _terms(self, lattice: _Lattice, z: Ball) -> tuple[list[Ball], list[Ball]]:
        """Return the terms at z, and the logarithms of w."""
        arb, (angle, step, first, last) = balls.arb, lattice
        shift = arb(angle) * self.variance * (1 if self.removing else -1)
        points = [balls.acb(j * arb(step), shift) for j in range(first, last + 1)]
        scale = arb(step) / (self.sigma * (2 * arb.pi()).sqrt())
        power = 1 + z if self.removing else -z
        # abs(arg w) <= angle < pi / 2: the principal logarithm is the analytic one.
        weights = [
            (1 - self.q + self.q * ((2 * x - 1) / (2 * self.variance)).exp()).log() for x in points
        ]
        densities = (scale * (-x * x / (2 * self.variance)).exp() for x in points)
        terms = [a * (power * b).exp() for a, b in zip(densities, weights, strict=True)]
        return terms, weights

    def along_line(self, c: float, h: float, nodes: int) -> list[Ball]:
        """Sum the terms of the rule, and add its error."""
        lattice = self._cheapest(c)
        error = balls.within(self._error(lattice, balls.arb(c)))
        turn = balls.acb(0, h if self.removing else -h)
        values = sums_of_powers(*self._terms(lattice, balls.acb(c)), turn, nodes)
        return [value + error for value in values]

    def bound_beyond(self, c: float, t: Ball) -> Ball:
        """Return the sum of the terms' absolute values at t, and the error of the rule."""
        _, lattice = self._best(c, float(t.mid()))
        terms, _ = self._terms(lattice, balls.acb(c, t))
        return sum((abs(term) for term in terms), self._error(lattice, balls.arb(c)))

    def _error(self, lattice: _Lattice, c: Ball) -> Ball:
        """Return a bound on the error of the rule at c + i t, t >= 0: quadrature and cut-off."""
        angle, one = balls.arb(lattice.angle), balls.arb(1)
        # This is the square of the line's distance from the axis, in standard deviations of noise.
        square = (angle * self.sigma) ** 2
        on_line, on_edge = (square / 2).exp(), (2 * square).exp()
        if not self.removing:
            on_line /= (angle / 2).cos() ** c
            on_edge /= angle.cos() ** c
        decay = 2 * balls.arb.pi() * angle * self.variance / lattice.step
        quadrature = on_edge * self._integral(c, one, one) * 2 / decay.expm1()
        power = 1 + c if self.removing else -c
        return quadrature + on_line * self._integral(c, *self._cut_off(lattice, power))

    def _integral(self, c: Ball, near: Ball, far: Ball) -> Ball:
        """Return a bound on the integral of phi w^p over given shares of two normal laws.

        ``near`` is the share of the normal law around 0, ``far`` that of the one around p. By
        convexity w^p <= 1 - q + q exp(p (2 x - 1) / (2 sigma^2)), for p >= 1 and for p <= 0; for p
        <= 0 also w^p <= (1 - q)^p.
        """
        bound = (1 - self.q) * near + self.q * ((c * c + c) / (2 * self.variance)).exp() * far
        return bound if self.removing else balls.arb.min(bound, (1 - self.q) ** -c * near)

    def _cut_off(self, lattice: _Lattice, power: Ball) -> tuple[Ball, Ball]:
        """Return the shares of the normal laws around 0 and ``power`` outside the lattice."""
        scale, step = self.sigma * balls.arb(2).sqrt(), balls.arb(lattice.step)
        left, right = lattice.first * step, lattice.last * step
        shares = []
        for center in (balls.arb(0), power):
            # A sum over points beyond the last is below the integral only where the law falls.
            covered = left <= center and center <= right
            share = (((right - center) / scale).erfc() + ((center - left) / scale).erfc()) / 2
            shares.append(share if covered else balls.arb("inf"))
        return shares[0], shares[1]


def sums_of_powers(terms: list[Ball], weights: list[Ball], turn: Ball, nodes: int) -> list[Ball]:
    """Return the sums of terms times exp(k turn weight) for each k < nodes.

    With k = i + B j, B about sqrt(nodes), the sums are the entries of a product of two matrices,
    of powers of exp(turn weight) and of exp(B turn weight).
    """
    block = math.isqrt(nodes - 1) + 1
    sums = balls.acb_mat(-(-nodes // block), block)
    for start in range(0, len(terms), _CHUNK):
        chunk = weights[start : start + _CHUNK]
        ratios = [(turn * weight).exp() for weight in chunk]
        jumps = [(block * turn * weight).exp() for weight in chunk]
        rows = _geometric([balls.acb(1)] * len(chunk), jumps, -(-nodes // block))
        columns = _geometric(terms[start : start + _CHUNK], ratios, block)
        sums += balls.acb_mat(rows) * balls.acb_mat(columns).transpose()
    return list(sums.entries()[:nodes])


def _geometric(start: list[Ball], ratios: list[Ball], count: int) -> list[list[Ball]]:
    """Return the rows start, start ratios, start ratios^2, ..."""
    rows = [start]
    while len(rows) < count:
        rows.append([a * b for a, b in zip(rows[-1], ratios, strict=True)])
    return rows
