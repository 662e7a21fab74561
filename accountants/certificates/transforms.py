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

>>> from dpcal.accountants.certificates import balls
>>> with balls.workprec(64):
...     at_one = GaussianTransform(balls.arb(2)).along_line(balls.arb(1), balls.arb(1), nodes=1)[0]
...     at_one.overlaps(balls.acb(4).exp())             # exp(eta^2 (z^2 + z) / 2)
True
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball, probability
from dpcal.accountants.certificates.proofs import ShiftedLattice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

__all__ = [
    "GaussianTransform",
    "SampledGaussianTransform",
    "Transform",
    "sums_of_powers",
]

# Most points that are multiplied together: those of the longest contours take about 100 MB.
_CHUNK = 1 << 10


class Transform(ABC):
    """M(z) of one loss."""

    @abstractmethod
    def along_line(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        """Enclose M(c + i k h) for k = 0, ..., nodes - 1."""

    @abstractmethod
    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Bound abs(M(c + i s)) for every s >= t."""

    def at(self, c: Ball) -> Ball:
        """Enclose M(c) for real c."""
        return self.along_line(c, balls.arb(1), 1)[0].real


class GaussianTransform(Transform):
    """M of a Gaussian loss of standard deviation eta and mean eta^2 / 2."""

    def __init__(self, eta: Ball) -> None:
        self.variance = eta * eta

    def along_line(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        """Enclose exp(eta^2 (z^2 + z) / 2)."""
        points = [balls.acb(c, k * h) for k in range(nodes)]
        return [(self.variance * z * (z + 1) / 2).exp() for z in points]

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Return the absolute value at t: it falls along the line."""
        return (self.variance * (c * c + c - t * t) / 2).exp()


class SampledGaussianTransform(Transform):
    """M of a sampled Gaussian, by the trapezoid rule on a shifted line.

    Its sampling probability is that of the loss, or is known only up to rounding.
    """

    def __init__(
        self, loss: SampledGaussian, lattice: ShiftedLattice, rounded: bool = False
    ) -> None:
        arb, acb = balls.arb, balls.acb
        self.lattice = lattice
        self.q = probability(loss.sampling_probability, rounded)
        self.sigma = arb(loss.noise_multiplier)
        self.removing = loss.direction == "remove"
        self.variance = self.sigma**2
        self.step, self.angle = arb(lattice.step), arb(lattice.angle)
        shift = self.angle * self.variance * (1 if self.removing else -1)
        points = [acb(j * self.step, shift) for j in range(lattice.first, lattice.last + 1)]
        scale = self.step / (self.sigma * (2 * arb.pi()).sqrt())
        self.density = [scale * (-x * x / (2 * self.variance)).exp() for x in points]
        # abs(arg w) <= angle < pi / 2: the principal logarithm is the analytic one.
        self.log_weight = [
            (1 - self.q + self.q * ((2 * x - 1) / (2 * self.variance)).exp()).log() for x in points
        ]

    def _power(self, z: Ball) -> Ball:
        return 1 + z if self.removing else -z

    def _terms(self, z: Ball) -> list[Ball]:
        power = self._power(z)
        pairs = zip(self.density, self.log_weight, strict=True)
        return [density * (power * weight).exp() for density, weight in pairs]

    def along_line(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        """Sum the terms of the rule, and add its error."""
        error = balls.within(self._error(c))
        turn = balls.acb(0, h if self.removing else -h)
        values = sums_of_powers(self._terms(balls.acb(c)), self.log_weight, turn, nodes)
        return [value + error for value in values]

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Return the sum of the terms' absolute values at t, and the error of the rule."""
        return sum((abs(term) for term in self._terms(balls.acb(c, t))), self._error(c))

    def _error(self, c: Ball) -> Ball:
        """Return a bound on the error of the rule at c + i t, t >= 0: quadrature and cut-off."""
        # This is the square of the line's distance from the axis, in standard deviations of noise.
        square = (self.angle * self.sigma) ** 2
        on_line, on_edge = (square / 2).exp(), (2 * square).exp()
        if not self.removing:
            on_line /= (self.angle / 2).cos() ** c
            on_edge /= self.angle.cos() ** c
        one = balls.arb(1)
        decay = 2 * balls.arb.pi() * self.angle * self.variance / self.step
        quadrature = on_edge * self._integral(c, one, one) * 2 / decay.expm1()
        return quadrature + on_line * self._integral(c, *self._cut_off(self._power(c)))

    def _integral(self, c: Ball, near: Ball, far: Ball) -> Ball:
        """Return a bound on the integral of phi w^p over given shares of two normal laws.

        ``near`` is the share of the normal law around 0, ``far`` that of the one around p. By
        convexity w^p <= 1 - q + q exp(p (2 x - 1) / (2 sigma^2)), for p >= 1 and for p <= 0; for p
        <= 0 also w^p <= (1 - q)^p.
        """
        bound = (1 - self.q) * near + self.q * ((c * c + c) / (2 * self.variance)).exp() * far
        return bound if self.removing else balls.arb.min(bound, (1 - self.q) ** -c * near)

    def _cut_off(self, power: Ball) -> tuple[Ball, Ball]:
        """Return the shares of the normal laws around 0 and ``power`` outside the lattice."""
        scale = self.sigma * balls.arb(2).sqrt()
        left, right = self.lattice.first * self.step, self.lattice.last * self.step
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
