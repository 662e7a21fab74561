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

The line is a part of the proof. A bad line makes the error large, but no enclosure false.

>>> from dpcal.accountants.certificates.balls import workprec
>>> transform = SampledGaussianTransform(SampledGaussian(0.1, 2.0, "remove"))
>>> with workprec(64):
...     mean = transform.at(Line(angle=1.0, step=0.5, first=-50, last=50), 0.0)
>>> mean.overlaps(arb(1)), mean.rad() < 1e-9
(True, True)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

from dpcal.accountants.certificates.balls import Ball, acb, acb_mat, arb, within
from dpcal.accountants.certificates.schema import number, positive, shape_of, whole
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

MAX_POINTS, _FARTHEST = 1 << 16, 1 << 31
# Points in one product: the longest contours take about 100 MB.
_CHUNK = 1 << 10


@dataclass(frozen=True)
class Line:
    """Where one transform is summed: at the points k step + i shift, first <= k <= last.

    Attributes
    ----------
    angle
        Argument in (0, 1.57], below pi / 2, by which the line is turned from the real axis.
    step, first, last
        Distance of neighboring points, and the places of the first and the last one.
    reach
        Points on either side over which a mean over one batch is summed; 0 of a sampled Gaussian.
    """

    angle: Annotated[float, number("in (0, 1.57]", lambda x: 0 < x <= 1.57)]
    step: Annotated[float, positive]
    first: Annotated[int, whole(-_FARTHEST, _FARTHEST)]
    last: Annotated[int, whole(-_FARTHEST, _FARTHEST)]
    reach: Annotated[int, whole(0, MAX_POINTS)] = 0

    def __post_init__(self) -> None:
        """Refuse a line without points, or of too many."""
        if not 0 < self.points <= MAX_POINTS:
            raise ValueError(f"last must be in [first, first + {MAX_POINTS - 1}]")

    @property
    def points(self) -> int:
        """The number of points."""
        return self.last - self.first + 1


LINE = shape_of("a line", Line)


class Transform(ABC):
    """M(z) of one loss."""

    laws = 1
    """Number of different laws that are summed on a line."""

    @abstractmethod
    def along(self, line: Line, c: float, h: float, nodes: int) -> list[Ball]:
        """Enclose M(c + i k h) for k = 0, ..., nodes - 1."""

    @abstractmethod
    def beyond(self, line: Line, c: float, t: Ball) -> Ball:
        """Bound abs(M(c + i s)) for every s >= t."""

    def at(self, line: Line, c: float) -> Ball:
        """Enclose M(c) for real c."""
        return self.along(line, c, 1.0, 1)[0].real


class SampledGaussianTransform(Transform):
    """M of a sampled Gaussian, by the trapezoid rule on a shifted line."""

    def __init__(self, loss: SampledGaussian) -> None:
        self.q = arb(loss.sampling_probability)
        self.sigma = arb(loss.noise_multiplier)
        self.removing = loss.direction == "remove"
        self.variance = self.sigma**2

    def _terms(self, line: Line, z: Ball) -> tuple[list[Ball], list[Ball]]:
        """Return the terms at z, and the logarithms of w."""
        step = arb(line.step)
        shift = arb(line.angle) * self.variance * (1 if self.removing else -1)
        points = [acb(j * step, shift) for j in range(line.first, line.last + 1)]
        scale = step / (self.sigma * (2 * arb.pi()).sqrt())
        power = 1 + z if self.removing else -z
        # abs(arg w) <= angle < pi / 2: the principal logarithm is the analytic one.
        weights = [
            (1 - self.q + self.q * ((2 * x - 1) / (2 * self.variance)).exp()).log() for x in points
        ]
        densities = (scale * (-x * x / (2 * self.variance)).exp() for x in points)
        terms = [a * (power * b).exp() for a, b in zip(densities, weights, strict=True)]
        return terms, weights

    def along(self, line: Line, c: float, h: float, nodes: int) -> list[Ball]:
        """Sum the terms of the rule, and add its error."""
        error = within(self._error(line, arb(c)))
        turn = acb(0, h if self.removing else -h)
        values = sums_of_powers(*self._terms(line, acb(c)), turn, nodes)
        return [value + error for value in values]

    def beyond(self, line: Line, c: float, t: Ball) -> Ball:
        """Return the sum of the terms' absolute values at t, and the error of the rule."""
        terms, _ = self._terms(line, acb(c, t))
        return sum((abs(term) for term in terms), self._error(line, arb(c)))

    def _error(self, line: Line, c: Ball) -> Ball:
        """Return a bound on the error of the rule at c + i t, t >= 0: quadrature and cut-off."""
        angle, one = arb(line.angle), arb(1)
        square = (angle * self.sigma) ** 2
        on_line, on_edge = (square / 2).exp(), (2 * square).exp()
        if not self.removing:
            on_line /= (angle / 2).cos() ** c
            on_edge /= angle.cos() ** c
        decay = 2 * arb.pi() * angle * self.variance / line.step
        quadrature = on_edge * self._integral(c, one, one) * 2 / decay.expm1()
        power = 1 + c if self.removing else -c
        return quadrature + on_line * self._integral(c, *self._cut_off(line, power))

    def _integral(self, c: Ball, near: Ball, far: Ball) -> Ball:
        """Return a bound on the integral of phi w^p over given shares of two normal laws.

        ``near`` is the share of the normal law around 0, and ``far`` is the share of the normal law
        around p. By convexity w^p <= 1 - q + q exp(p (2 x - 1) / (2 sigma^2)), for p >= 1 and for p
        <= 0; for p <= 0 also w^p <= (1 - q)^p.
        """
        bound = (1 - self.q) * near + self.q * ((c * c + c) / (2 * self.variance)).exp() * far
        return bound if self.removing else arb.min(bound, (1 - self.q) ** -c * near)

    def _cut_off(self, line: Line, power: Ball) -> tuple[Ball, Ball]:
        """Return the shares of the normal laws around 0 and ``power`` outside the line."""
        scale, step = self.sigma * arb(2).sqrt(), arb(line.step)
        left, right = line.first * step, line.last * step
        shares = []
        for center in (arb(0), power):
            # A sum over points beyond the last is below the integral only where the law falls.
            covered = left <= center and center <= right
            share = (((right - center) / scale).erfc() + ((center - left) / scale).erfc()) / 2
            shares.append(share if covered else arb("inf"))
        return shares[0], shares[1]


def sums_of_powers(terms: list[Ball], weights: list[Ball], turn: Ball, nodes: int) -> list[Ball]:
    """Return the sums of terms times exp(k turn weight) for each k < nodes.

    With k = i + B j, B about sqrt(nodes), the sums are the entries of a product of two matrices,
    of powers of exp(turn weight) and of exp(B turn weight).
    """
    block = math.isqrt(nodes - 1) + 1
    sums = acb_mat(-(-nodes // block), block)
    factors = [
        (term, (turn * weight).exp(), (block * turn * weight).exp())
        for term, weight in zip(terms, weights, strict=True)
    ]
    for start in range(0, len(factors), _CHUNK):
        chunk = factors[start : start + _CHUNK]
        rows = [[jump**i for _, _, jump in chunk] for i in range(-(-nodes // block))]
        columns = [[term * ratio**j for term, ratio, _ in chunk] for j in range(block)]
        sums += acb_mat(rows) * acb_mat(columns).transpose()
    return list(sums.entries()[:nodes])
