r"""What do the numbers of a proof prove? Every step in ball arithmetic, with python-flint.

For one direction of a composition with transform M(z) = prod_i M_i(z)^T_i and c > 0,

    (h / pi) (F(0) / 2 + sum_{k >= 1} Re F(k h)) = sum_j exp(c d_j) delta(epsilon + d_j)

with d_j = 2 pi j / h, F(t) = exp(-epsilon z) M(z) / (z (z + 1)) and z = c + i t (Poisson
summation). The terms j != 0 are positive and bounded by Chernoff's inequality at a tilt below and
one above c. The sum over k stops at N; beyond, abs(F) is at most exp(-epsilon c) / t^2 times a
bound on abs(M) uniform in t >= N h.

A sampled Gaussian has M_i(z) = integral of phi_sigma(x) w(x)^p, w(x) = 1 - q + q exp((2 x - 1) / (2
sigma^2)), with p = 1 + z (remove) or p = -z (add). It is summed by the trapezoid rule of step H on
a line Im x = y, abs(y) = angle sigma^2, on whose side of the real axis abs(w^(i t)) <= 1. In the
strip between the real axis and Im x = 2 y the integrand is analytic and, with P = Re p,

    abs(phi_sigma w^p)(x) <= exp(2 (y / sigma)^2) (phi_sigma w^P)(Re x) / cos(angle)^max(0, -P),

so that the rule's error is at most 2 / (exp(2 pi abs(y) / H) - 1) times the integral of the right
side (Trefethen and Weideman 2014, Theorem 5.1), whatever t is. As each term of the sum shrinks with
t, the sum of absolute values at t bounds abs(M_i) everywhere beyond.

>>> from dpcal.accountants import events, proof
>>> from dpcal.accountants.composition import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> parts = decompose(event, "add-or-remove-one").directions[0].parts
>>> lower, upper = enclose(proof.choose_contour(parts, 8.0, width=1e-9), parts, 8.0, bits=128)
>>> print(decimal_down(lower, 8), decimal_up(upper, 8))
2.0283809E-8 2.0283810E-8
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from dpcal.accountants.loss import PrivacyLoss
from dpcal.accountants.proof import ChernoffProof, ContourProof, Lattice, Proof, SupportProof
from dpcal.accountants.sampled import SampledGaussian
from dpcal.errors import MissingExtra

try:
    from flint import acb, acb_mat, arb, ctx
except ImportError as error:
    raise MissingExtra("Certificates need python-flint: pip install 'dpcal[certify]'.") from error

__all__ = ["decimal_down", "decimal_up", "enclose"]

Parts = tuple[tuple[PrivacyLoss, int], ...]
# python-flint's balls are untyped.
Ball = Any
# Lattice points taken together, so that little memory is needed.
_CHUNK = 1 << 10


def enclose(proof: Proof, parts: Parts, epsilon: float, *, bits: int) -> tuple[Ball, Ball]:
    """Return what the proof proves: a lower and an upper bound on delta(epsilon), as balls.

    Parameters
    ----------
    proof
        For a contour, any parameters with 0 <= below < tilt < above, steps > 0 and angles in (0,
        pi / 2); bad ones prove little, never anything false.
    parts
        Gaussian and sampled Gaussian losses, and how often each is used.
    epsilon
        Where delta is bounded.
    bits
        Precision of the arithmetic.
    """
    with ctx.workprec(bits):
        if isinstance(proof, SupportProof):
            return arb(0), arb(0 if _largest_loss(parts) <= epsilon else 1)
        if isinstance(proof, ChernoffProof):
            return arb(0), _chernoff(proof.tilt, proof.sums, parts, epsilon)
        return _contour(proof, parts, epsilon)


def _largest_loss(parts: Parts) -> Ball:
    """Largest sum of the losses: adding a record, each is at most -log(1 - q)."""
    total = arb(0)
    for loss, times in parts:
        if not (isinstance(loss, SampledGaussian) and loss.direction == "add"):
            return arb("inf")
        total -= times * (-arb(loss.sampling_probability)).log1p()
    return total


def _contour(proof: ContourProof, parts: Parts, epsilon: float) -> tuple[Ball, Ball]:
    """Finite sum, plus or minus what it leaves out, less the aliases."""
    c, h = arb(proof.tilt), arb(proof.step)
    products = [acb(1)] * proof.nodes
    for (loss, times), lattice in zip(parts, proof.sums, strict=True):
        values = _along(loss, lattice, c, h, proof.nodes)
        products = [product * value**times for product, value in zip(products, values, strict=True)]
    total = arb(0)
    for k, product in enumerate(products):
        z = acb(c, k * h)
        term = (product * (-epsilon * z).exp() / (z * (z + 1))).real
        total += term if k else term / 2
    total *= h / arb.pi()
    rest, aliases = _rest(proof, parts, epsilon), _aliases(proof, parts, epsilon)
    return total - rest - aliases, arb.min(total + rest, arb(1))


def _rest(proof: ContourProof, parts: Parts, epsilon: float) -> Ball:
    """Bound on the sum over all nodes that are left out; sum_{k >= N} 1 / k^2 <= 1/N + 1/N^2."""
    c, h, nodes = arb(proof.tilt), arb(proof.step), arb(proof.nodes)
    product = (-c * epsilon).exp() * (1 / nodes + 1 / nodes**2) / (arb.pi() * h)
    for (loss, times), lattice in zip(parts, proof.tails, strict=True):
        product *= _beyond(loss, lattice, c, nodes * h) ** times
    return product


def _aliases(proof: ContourProof, parts: Parts, epsilon: float) -> Ball:
    """Bound on the sum of all aliases: two geometric series."""
    total = arb(0)
    for tilt in (proof.below, proof.above):
        distance = 2 * arb.pi() * abs(arb(tilt) - proof.tilt) / proof.step
        total += _chernoff(tilt, proof.sums, parts, epsilon) / distance.expm1()
    return total


def _chernoff(
    tilt: float, lattices: Sequence[Lattice | None], parts: Parts, epsilon: float
) -> Ball:
    """Bound exp(a (e - epsilon)) delta(e) for every e, a = tilt.

    The bound is M(a) exp(-a epsilon) times sup_l (1 - exp(-l)) exp(-a l) = a^a / (1 + a)^(1 + a).
    """
    if tilt == 0:
        return arb(1)
    a = arb(tilt)
    value = (-a * epsilon - a * (1 / a).log1p() - a.log1p()).exp()
    for (loss, times), lattice in zip(parts, lattices, strict=True):
        value *= _along(loss, lattice, a, arb(1), 1)[0].real ** times
    return value


# -- transforms of one part


def _along(loss: PrivacyLoss, lattice: Lattice | None, c: Ball, h: Ball, nodes: int) -> list[Ball]:
    """Enclose M(c + i k h) for k = 0, ..., nodes - 1."""
    if isinstance(loss, SampledGaussian):
        return _Line(loss, _given(lattice)).transforms(c, h, nodes)
    variance = 1 / arb(_sigma(loss)) ** 2
    points = [acb(c, k * h) for k in range(nodes)]
    return [(variance * z * (z + 1) / 2).exp() for z in points]


def _beyond(loss: PrivacyLoss, lattice: Lattice | None, c: Ball, t: Ball) -> Ball:
    """Bound abs(M(c + i s)) for every s >= t."""
    if isinstance(loss, SampledGaussian):
        return _Line(loss, _given(lattice)).bound_beyond(c, t)
    return ((c * c + c - t * t) / (2 * arb(_sigma(loss)) ** 2)).exp()


def _sigma(loss: PrivacyLoss) -> float:
    return float(loss.noise_multiplier)  # type: ignore[attr-defined]


def _given(lattice: Lattice | None) -> Lattice:
    if lattice is None:
        raise ValueError("lattice must be given for a sampled Gaussian, got None.")
    return lattice


class _Line:
    """The shifted trapezoid rule for one sampled Gaussian: its terms, and bounds on its errors."""

    def __init__(self, loss: SampledGaussian, lattice: Lattice) -> None:
        self.lattice = lattice
        self.q, self.sigma = arb(loss.sampling_probability), arb(loss.noise_multiplier)
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

    def transforms(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        """Enclose M(c + i k h), k < nodes, as a product of two matrices: k = i + block j."""
        error = arb(0, self._error(c).upper())
        turn = acb(0, h if self.removing else -h)
        block = math.isqrt(nodes - 1) + 1
        terms, sums = self._terms(acb(c)), acb_mat(-(-nodes // block), block)
        for start in range(0, len(terms), _CHUNK):
            weights = self.log_weight[start : start + _CHUNK]
            ratios = [(turn * weight).exp() for weight in weights]
            jumps = [(block * turn * weight).exp() for weight in weights]
            rows = _powers([acb(1)] * len(weights), jumps, -(-nodes // block))
            columns = _powers(terms[start : start + _CHUNK], ratios, block)
            sums += acb_mat(rows) * acb_mat(columns).transpose()
        return [value + acb(error, error) for value in sums.entries()[:nodes]]

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Bound abs(M(c + i s)) for every s >= t."""
        return sum((abs(term) for term in self._terms(acb(c, t))), self._error(c))

    def _error(self, c: Ball) -> Ball:
        """Bound on the error of the rule at c + i t, for every t >= 0: quadrature and cut-off."""
        # The square of the line's distance from the axis, in deviations of the noise.
        square = (self.angle * self.sigma) ** 2
        on_line, on_edge = (square / 2).exp(), (2 * square).exp()
        if not self.removing:
            on_line /= (self.angle / 2).cos() ** c
            on_edge /= self.angle.cos() ** c
        decay = 2 * arb.pi() * self.angle * self.variance / self.step
        quadrature = on_edge * self._mass(c, arb(1), arb(1)) * 2 / decay.expm1()
        return quadrature + on_line * self._mass(c, *self._cut_off(self._power(c)))

    def _mass(self, c: Ball, near: Ball, far: Ball) -> Ball:
        """Bound on the integral of phi w^p, given the shares of it around 0 and around p.

        By convexity w^p <= 1 - q + q exp(p (2 x - 1) / (2 sigma^2)), for p >= 1 and for p <= 0; for
        p <= 0 also w^p <= (1 - q)^p.
        """
        bound = (1 - self.q) * near + self.q * ((c * c + c) / (2 * self.variance)).exp() * far
        return bound if self.removing else arb.min(bound, (1 - self.q) ** -c * near)

    def _cut_off(self, power: Ball) -> tuple[Ball, Ball]:
        """Shares of the normal laws around 0 and around ``power`` that the lattice leaves out."""
        scale = self.sigma * arb(2).sqrt()
        left, right = self.lattice.first * self.step, self.lattice.last * self.step
        shares = []
        for center in (arb(0), power):
            # A sum over points beyond the last is below the integral only where the law falls.
            covered = left <= center and center <= right
            share = (((right - center) / scale).erfc() + ((center - left) / scale).erfc()) / 2
            shares.append(share if covered else arb("inf"))
        return shares[0], shares[1]


def _powers(start: list[Ball], ratios: list[Ball], count: int) -> list[list[Ball]]:
    """Rows start, start ratios, start ratios^2, ..."""
    rows = [start]
    while len(rows) < count:
        rows.append([a * b for a, b in zip(rows[-1], ratios, strict=True)])
    return rows


# -- decimals


def decimal_down(ball: Ball, digits: int) -> Decimal:
    """Return a decimal of so many digits not above any number in the ball."""
    return _decimal(ball.lower(), digits, ROUND_FLOOR)


def decimal_up(ball: Ball, digits: int) -> Decimal:
    """Return a decimal of so many digits not below any number in the ball."""
    return _decimal(ball.upper(), digits, ROUND_CEILING)


def _decimal(point: Ball, digits: int, rounding: str) -> Decimal:
    """Round an exact ball; a bound that is not finite says nothing about a probability."""
    if not point.is_finite():
        return Decimal(0) if rounding == ROUND_FLOOR else Decimal(1)
    mantissa, exponent = (int(part) for part in point.man_exp())
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    if exponent >= 0:
        return context.create_decimal(mantissa << exponent)
    return context.divide(Decimal(mantissa), Decimal(1 << -exponent))
