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

Any other loss is replaced by finite laws above and below it (:mod:`cells`), whose transforms are
finite sums; they need not decay, nor do those of rare sampling. Then a Gaussian loss xi of standard
deviation eta is added, which is one mechanism more and never lowers delta. As (1 - exp(epsilon + s
- l - xi))_+ is at most (1 - exp(epsilon - l))_+ unless xi > s, the sum at epsilon + s less P(xi >
s) is a lower bound.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.certificates import proofs as proof
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> parts = decompose(event, "add-or-remove-one").directions[0].parts
>>> lower, upper = enclose(proof.choose_contour(parts, 8.0, width=1e-9), parts, 8.0, bits=128)
>>> print(decimal_down(lower, 8), decimal_up(upper, 8))
2.0283809E-8 2.0283810E-8
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from dpcal.accountants.certificates.proofs import (
    Cells,
    ChernoffProof,
    ContourProof,
    ConvexityProof,
    Lattice,
    Proof,
    SamplingProof,
    SumProof,
    SupportProof,
    ThresholdProof,
)
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import MissingExtra

try:
    from flint import acb, acb_mat, arb, arb_poly, ctx
except ImportError as error:
    raise MissingExtra("Certificates need python-flint: pip install 'dpcal[certify]'.") from error

# It needs python-flint as well.
from dpcal.accountants.certificates import discretization as cells

__all__ = ["decimal_down", "decimal_up", "enclose"]

Parts = tuple[tuple[PrivacyLoss, int], ...]
# python-flint's balls are untyped.
Ball = Any
# Lattice points taken together, so that little memory is needed.
_CHUNK = 1 << 10
# Relative size of the balls around numbers that were derived in doubles.
_ROUNDING = 2.0**-50
# Binary exponents beyond which a number is not written out, and a power of ten below all others.
_FAR, _LEAST = 1 << 17, Decimal("1E-39000")


def enclose(
    proof: Proof, parts: Parts, epsilon: float, *, bits: int, rounded: bool = False
) -> tuple[Ball, Ball]:
    """Return what the proof proves: a lower and an upper bound on delta(epsilon), as balls.

    Parameters
    ----------
    proof
        For a contour, any parameters with 0 <= below < tilt < above, steps > 0 and angles in (0,
        pi / 2); bad ones prove little, never anything false.
    parts
        Losses, and how often each is used.
    epsilon
        Where delta is bounded.
    bits
        Precision of the arithmetic.
    rounded
        Whether sampling probabilities and weights are quotients, known to a rounding only.
    """
    with ctx.workprec(bits):
        # A loss that may be infinite is so with a probability of its own.
        finite, given = arb(1), []
        for loss, times in parts:
            if isinstance(loss, LossWithFailure):
                chance = arb(loss.failure_probability)
                if rounded:
                    chance *= arb(1, _ROUNDING)
                finite *= (1 - chance) ** times
                given += [(loss.given, times)] if loss.given.upper else []
            else:
                given.append((loss, times))
        lower, upper = _Enclosure(tuple(given), arb(epsilon), rounded).bounds(proof)
        return 1 - finite + finite * lower, 1 - finite + finite * upper


class _Enclosure:
    """What proofs prove about one direction at one epsilon."""

    def __init__(self, parts: Parts, epsilon: Ball, rounded: bool) -> None:
        self.parts, self.epsilon, self.rounded = parts, epsilon, rounded
        self._sources: dict[tuple[int, bool, Any], _Source] = {}

    def bounds(self, proof: Proof) -> tuple[Ball, Ball]:
        """Lower and upper bound; 0 and 1 where the proof is silent."""
        zero, one = arb(0), arb(1)
        if isinstance(proof, SupportProof):
            return zero, zero if _largest_loss(self.parts, self.rounded) <= self.epsilon else one
        if isinstance(proof, ChernoffProof):
            return zero, self._failing(proof.sums) + self._chernoff(proof.tilt, proof, True)
        if isinstance(proof, ConvexityProof):
            return zero, self._convexity(arb(proof.tilt))
        if isinstance(proof, SamplingProof):
            return zero, self._sampling()
        if isinstance(proof, SumProof):
            return self._sum(proof.sums[0])
        if isinstance(proof, ThresholdProof):
            return self._threshold(proof), one
        return self._contour(proof)

    # -- transforms

    def _source(self, index: int, lattice: Lattice | Cells | None, upper: bool) -> _Source:
        """The transform of one part, or of the finite law above or below it."""
        upper = upper or not isinstance(lattice, Cells)
        key = (index, upper, lattice)
        if key not in self._sources:
            loss, _ = self.parts[index]
            if isinstance(lattice, Cells):
                make = cells.above if upper else cells.below
                values, masses, _ = make(loss, lattice, self.rounded)
                self._sources[key] = _Atoms(values, masses)
            elif isinstance(loss, SampledGaussian):
                self._sources[key] = _Line(loss, _given(lattice), self.rounded)
            elif isinstance(loss, Gaussian):
                self._sources[key] = _Normal(1 / arb(loss.noise_multiplier))
            else:
                raise ValueError(f"cells must be given for {loss!r}, got {lattice!r}.")
        return self._sources[key]

    def _failing(self, sums: Sequence[Lattice | Cells | None]) -> Ball:
        """Chance that an output lies beyond the cells above, where its loss is infinite."""
        finite = arb(1)
        for (loss, times), item in zip(self.parts, sums, strict=True):
            if isinstance(item, Cells):
                finite *= (1 - cells.above(loss, item, self.rounded)[2]) ** times
        return 1 - finite

    def _chernoff(self, tilt: float, proof: ContourProof | ChernoffProof, upper: bool) -> Ball:
        """Bound exp(a (e - epsilon)) delta(e) for every e, a = tilt.

        The bound is M(a) exp(-a epsilon) times sup_l (1 - exp(-l)) exp(-a l) = a^a / (1 + a)^(1 +
        a).
        """
        if tilt == 0:
            return arb(1)
        value = _chernoff_factor(arb(tilt), self.epsilon)
        for index, ((_, times), item) in enumerate(zip(self.parts, proof.sums, strict=True)):
            source = self._source(index, item, upper)
            value *= source.transforms(arb(tilt), arb(1), 1)[0].real ** times
        if isinstance(proof, ContourProof):
            value *= _Normal(arb(proof.smoothing)).transforms(arb(tilt), arb(1), 1)[0].real
        return value

    # -- arguments

    def _contour(self, proof: ContourProof) -> tuple[Ball, Ball]:
        """Finite sum, plus or minus what it leaves out, less the aliases."""
        total, rest, aliases = self._contour_sum(proof, True)
        upper = arb.min(total + rest + self._failing(proof.sums), arb(1))
        if proof.smoothing == 0 and not any(isinstance(item, Cells) for item in proof.sums):
            return total - rest - aliases, upper
        moved = _Enclosure(self.parts, self.epsilon + proof.shift, self.rounded)
        total, rest, aliases = moved._contour_sum(proof, False)
        lower = total - rest - aliases
        if proof.smoothing > 0:
            eta = arb(proof.smoothing)
            lower -= ((proof.shift - eta * eta / 2) / (eta * arb(2).sqrt())).erfc() / 2
        return lower, upper

    def _contour_sum(self, proof: ContourProof, upper: bool) -> tuple[Ball, Ball, Ball]:
        """The sum over the nodes, a bound on all others, and one on the aliases."""
        c, h = arb(proof.tilt), arb(proof.step)
        powers: list[tuple[_Source, int]] = [(_Normal(arb(proof.smoothing)), 1)]
        powers = (powers if proof.smoothing > 0 else []) + [
            (self._source(index, item, upper), times)
            for index, ((_, times), item) in enumerate(zip(self.parts, proof.sums, strict=True))
        ]
        products = [acb(1)] * proof.nodes
        for source, times in powers:
            values = source.transforms(c, h, proof.nodes)
            products = [a * value**times for a, value in zip(products, values, strict=True)]
        total = arb(0)
        for k, product in enumerate(products):
            z = acb(c, k * h)
            term = (product * (-self.epsilon * z).exp() / (z * (z + 1))).real
            total += term if k else term / 2
        return total * h / arb.pi(), self._rest(proof, upper), self._aliases(proof, upper)

    def _rest(self, proof: ContourProof, upper: bool) -> Ball:
        """Bound on the sum over all nodes left out; sum_{k >= N} 1 / k^2 <= 1/N + 1/N^2."""
        c, h, nodes = arb(proof.tilt), arb(proof.step), arb(proof.nodes)
        product = (-c * self.epsilon).exp() * (1 / nodes + 1 / nodes**2) / (arb.pi() * h)
        for index, ((_, times), item) in enumerate(zip(self.parts, proof.tails, strict=True)):
            product *= self._source(index, item, upper).bound_beyond(c, nodes * h) ** times
        return product * _Normal(arb(proof.smoothing)).bound_beyond(c, nodes * h)

    def _aliases(self, proof: ContourProof, upper: bool) -> Ball:
        """Bound on the sum of all aliases: two geometric series."""
        total = arb(0)
        for tilt in (proof.below, proof.above):
            distance = 2 * arb.pi() * abs(arb(tilt) - proof.tilt) / proof.step
            total += self._chernoff(tilt, proof, upper) / distance.expm1()
        return total

    def _convexity(self, c: Ball) -> Ball:
        """The Chernoff bound with w^p replaced by 1 - q + q exp(p u), for p >= 1 and p <= 0."""
        value = _chernoff_factor(c, self.epsilon)
        for loss, times in self.parts:
            value *= self._convex_moment(loss, c) ** times
        return value

    def _convex_moment(self, loss: PrivacyLoss, c: Ball) -> Ball:
        if isinstance(loss, Laplace):
            return (c / arb(loss.scale)).exp()
        if isinstance(loss, LatticeLoss):
            return (c * _largest_value(loss)).exp()
        if not isinstance(loss, Gaussian | SampledGaussian | FixedBatchGaussian):
            return arb("inf")
        growth = ((c * c + c) / (2 * arb(loss.noise_multiplier) ** 2)).exp()
        if isinstance(loss, Gaussian):
            return growth
        q = cells.probability(loss.sampling_probability, self.rounded)
        if isinstance(loss, FixedBatchGaussian):
            # Where a loss is negative its mirror image's powers are at most 1.
            growth += (1 - _distance(loss.noise_multiplier)) / 2
        elif loss.direction == "add":
            growth = arb.min(growth, (1 + ((1 - q) ** -c - 1) / q))
        return 1 - q + q * growth

    def _sampling(self) -> Ball:
        """One minus the chance, under a coupling, that no output differs."""
        same = arb(1)
        for loss, times in self.parts:
            if isinstance(loss, Gaussian | SampledGaussian | FixedBatchGaussian):
                distance = _distance(loss.noise_multiplier)
                if not isinstance(loss, Gaussian):
                    distance *= cells.probability(loss.sampling_probability, self.rounded)
            elif isinstance(loss, GaussianMixtures):
                pair = cells.line(loss, self.rounded)
                assert pair is not None
                distance = pair.distance
            else:
                return arb(1)
            same *= (1 - distance) ** times
        return 1 - same

    def _sum(self, item: Cells) -> tuple[Ball, Ball]:
        """Sum of (1 - exp(epsilon - l))_+ over the finite laws."""
        ((loss, times),) = self.parts
        if times > 1 and not isinstance(loss, LatticeLoss | DiscreteGaussian):
            # Only equally spaced values are convolved.
            return arb(0), arb(1)
        bounds = []
        for make in (cells.below, cells.above):
            values, masses, infinite = make(loss, item, self.rounded)
            if times > 1:
                masses = list((arb_poly(masses) ** times).coeffs())
                step = values[1] - values[0] if len(values) > 1 else arb(0)
                values = [times * values[0] + k * step for k in range(len(masses))]
            total = arb(0)
            for value, mass in zip(values, masses, strict=True):
                if not value < self.epsilon:
                    total += arb.max(mass, arb(0)) * arb.max(
                        -(self.epsilon - value).expm1(), arb(0)
                    )
            bounds.append(total + 1 - (1 - infinite) ** times)
        return bounds[0], bounds[1]

    def _threshold(self, proof: ThresholdProof) -> Ball:
        """P(N >= least) - exp(epsilon) Q(N >= least), N the number of large outputs."""
        chances = [
            (*_exceeds(loss, threshold, self.rounded), times)
            for (loss, times), threshold in zip(self.parts, proof.thresholds, strict=True)
            if threshold is not None
        ]
        p, q = (
            1 - _fewer([(item[side], item[2]) for item in chances], proof.least) for side in (0, 1)
        )
        return p - self.epsilon.exp() * q


def _chernoff_factor(a: Ball, epsilon: Ball) -> Ball:
    return (-a * epsilon - a * (1 / a).log1p() - a.log1p()).exp()


def _distance(noise_multiplier: float) -> Ball:
    """Total variation distance of N(1, sigma^2) and N(0, sigma^2)."""
    return (1 / (arb(noise_multiplier) * arb(8).sqrt())).erf()


def _exceeds(loss: PrivacyLoss, threshold: float, rounded: bool) -> tuple[Ball, Ball]:
    """P and Q of a set of large losses."""
    if isinstance(loss, Laplace):
        return arb(1) / 2, (-1 / arb(loss.scale)).exp() / 2
    if isinstance(loss, FixedBatchGaussian):
        pair = cells.batch(loss, rounded)[0]
        # Outputs of the sampled pair below its middle are no gains.
        return pair.tails(arb.max(arb(threshold), arb(0.5)))
    line = cells.line(loss, rounded)
    if line is not None:
        return line.tails(arb(threshold))
    values, masses, _ = cells.below(loss, Cells(1.0, math.floor(threshold), math.ceil(threshold)))
    return masses[-1], masses[-1] * (-values[-1]).exp()


def _fewer(chances: list[tuple[Ball, int]], least: int) -> Ball:
    """Probability that fewer than ``least`` independent events occur."""
    total = [arb(1)]
    for p, times in chances:
        terms, term = [], (1 - p) ** times
        for k in range(min(least, times + 1)):
            terms.append(term)
            term *= p * (times - k) / ((1 - p) * (k + 1))
        product = [arb(0)] * min(least, len(total) + len(terms) - 1)
        for i, a in enumerate(total):
            for j, b in enumerate(terms[: len(product) - i]):
                product[i + j] += a * b
        total = product
    return sum(total, arb(0))


def _largest_value(loss: LatticeLoss) -> Ball:
    return arb(loss.unit) * loss.multiples[-1]


def _largest_loss(parts: Parts, rounded: bool) -> Ball:
    """Largest sum of the losses: adding a record, each is at most -log(1 - q)."""
    total = arb(0)
    for loss, times in parts:
        line = cells.line(loss, rounded)
        if isinstance(loss, Laplace):
            largest = 1 / arb(loss.scale)
        elif isinstance(loss, LatticeLoss):
            largest = _largest_value(loss)
        elif line is None or line.largest is None:
            return arb("inf")
        else:
            largest = line.largest
        total += times * largest
    return total


class _Source(ABC):
    """A transform, enclosed along a line."""

    @abstractmethod
    def transforms(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        """Enclose M(c + i k h) for k = 0, ..., nodes - 1."""

    @abstractmethod
    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        """Bound abs(M(c + i s)) for every s >= t."""


class _Normal(_Source):
    """A Gaussian loss of standard deviation eta, and mean eta^2 / 2."""

    def __init__(self, eta: Ball) -> None:
        self.variance = eta * eta

    def transforms(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        points = [acb(c, k * h) for k in range(nodes)]
        return [(self.variance * z * (z + 1) / 2).exp() for z in points]

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        return (self.variance * (c * c + c - t * t) / 2).exp()


class _Atoms(_Source):
    """A finite law."""

    def __init__(self, values: list[Ball], masses: list[Ball]) -> None:
        self.values, self.masses = values, masses

    def transforms(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        terms = [mass * (c * v).exp() for v, mass in zip(self.values, self.masses, strict=True)]
        return _matrix_sums([acb(term) for term in terms], self.values, acb(0, h), nodes)

    def bound_beyond(self, c: Ball, t: Ball) -> Ball:
        pairs = zip(self.values, self.masses, strict=True)
        return sum((mass * (c * v).exp() for v, mass in pairs), arb(0))


def _given(lattice: Lattice | Cells | None) -> Lattice:
    if not isinstance(lattice, Lattice):
        raise ValueError(f"lattice must be given for a sampled Gaussian, got {lattice!r}.")
    return lattice


class _Line(_Source):
    """The shifted trapezoid rule for one sampled Gaussian: its terms, and bounds on its errors."""

    def __init__(self, loss: SampledGaussian, lattice: Lattice, rounded: bool = False) -> None:
        self.lattice = lattice
        self.q = cells.probability(loss.sampling_probability, rounded)
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

    def transforms(self, c: Ball, h: Ball, nodes: int) -> list[Ball]:
        error = arb(0, self._error(c).upper())
        turn = acb(0, h if self.removing else -h)
        values = _matrix_sums(self._terms(acb(c)), self.log_weight, turn, nodes)
        return [value + acb(error, error) for value in values]

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


def _matrix_sums(terms: list[Ball], weights: list[Ball], turn: Ball, nodes: int) -> list[Ball]:
    """Sums of terms times exp(k turn weight), k < nodes, by a product of matrices: k = i + B j."""
    block = math.isqrt(nodes - 1) + 1
    sums = acb_mat(-(-nodes // block), block)
    for start in range(0, len(terms), _CHUNK):
        chunk = weights[start : start + _CHUNK]
        ratios = [(turn * weight).exp() for weight in chunk]
        jumps = [(block * turn * weight).exp() for weight in chunk]
        rows = _powers([acb(1)] * len(chunk), jumps, -(-nodes // block))
        columns = _powers(terms[start : start + _CHUNK], ratios, block)
        sums += acb_mat(rows) * acb_mat(columns).transpose()
    return list(sums.entries()[:nodes])


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
    """Round an exact ball; a bound that is not finite says nothing about a probability.

    Nor does one that is huge; one that is tiny is not written out to its last bit.
    """
    if not point.is_finite():
        return Decimal(0) if rounding == ROUND_FLOOR else Decimal(1)
    mantissa, exponent = (int(part) for part in point.man_exp())
    if mantissa and exponent + mantissa.bit_length() > _FAR:
        return Decimal(0) if rounding == ROUND_FLOOR else Decimal(1)
    if mantissa and exponent < -_FAR - mantissa.bit_length():
        away = (mantissa > 0) == (rounding == ROUND_CEILING)
        return _LEAST.copy_sign(mantissa) if away else Decimal(0)
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    if exponent >= 0:
        return context.create_decimal(mantissa << exponent)
    return context.divide(Decimal(mantissa), Decimal(1 << -exponent))
