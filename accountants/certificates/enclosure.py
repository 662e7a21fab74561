r"""What do the numbers of a proof prove? An interval for delta, every step in ball arithmetic.

For one direction of a composition with transform M(z) = prod_i M_i(z)^T_i and c > 0,

    (h / pi) (F(0) / 2 + sum_{k >= 1} Re F(k h)) = sum_j exp(c d_j) delta(epsilon + d_j)

with d_j = 2 pi j / h, F(t) = exp(-epsilon z) M(z) / (z (z + 1)) and z = c + i t (Poisson
summation). The terms j != 0, the aliases, are positive and bounded by Chernoff's inequality at a
tilt below and one above c. The sum over k stops at N nodes; beyond, abs(F) is at most exp(-epsilon
c) / t^2 times a bound on abs(M) uniform in t >= N h.

The transform of a Gaussian has a closed form, that of a sampled Gaussian is summed on a lattice
(:mod:`~dpcal.accountants.certificates.transforms`). Any other loss is replaced by finite laws that
bound it from either side (:mod:`~dpcal.accountants.certificates.discretization`); their transforms
are finite sums, which need not decay. The transforms of rare sampling decay slowly as well. Then a
Gaussian loss xi of standard deviation eta is added. It is one mechanism more and never lowers
delta. As (1 - exp(epsilon + s - l - xi))_+ is at most (1 - exp(epsilon - l))_+ unless xi > s, the
sum at epsilon + s less P(xi > s) is a lower bound.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.certificates.search.contour import choose_contour
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> parts = decompose(event, "add-or-remove-one").directions[0].parts
>>> lower, upper = enclose(choose_contour(parts, 8.0, width=1e-9), parts, 8.0, bits=128)
>>> print(decimal_down(lower, 8), decimal_up(upper, 8))
2.0283809E-8 2.0283810E-8
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import singledispatch

from dpcal.accountants.certificates import balls, proofs
from dpcal.accountants.certificates.balls import Ball, probability
from dpcal.accountants.certificates.discretization import Law
from dpcal.accountants.certificates.enclosed_losses import EnclosedLoss, enclosed
from dpcal.accountants.certificates.transforms import GaussianTransform, Transform
from dpcal.accountants.losses.failure import LossWithFailure

__all__ = ["decimal_bounds", "decimal_down", "decimal_up", "enclose"]

Interval = tuple[Ball, Ball]

# Binary exponents beyond which a number is not written as a decimal: at 2^17 it has 40,000 digits,
# which take milliseconds.
_FARTHEST_EXPONENT = 1 << 17
# Upper bound for all positive numbers with a smaller exponent: it is larger than 2^-(2^17).
_LEAST = Decimal("1E-39000")


def enclose(
    proof: proofs.Proof,
    parts: proofs.Parts,
    epsilon: float,
    *,
    bits: int,
    rounded: bool = False,
    proves: str = "both",
) -> Interval:
    """Return the lower and the upper bound on delta(epsilon) that a proof gives, as balls.

    Parameters
    ----------
    proof
        Any numbers in the ranges that its record states. Bad numbers give wide bounds, never false
        ones.
    parts
        Losses, and how often each is used.
    epsilon
        The epsilon >= 0 at which delta is bounded.
    bits
        Precision of the arithmetic.
    rounded
        Whether sampling probabilities and weights are quotients that were rounded.
    proves
        The wanted bounds: ``"both"``, ``"lower"`` or ``"upper"``. With ``"upper"`` the lower one
        may be 0, which takes half of the time.
    """
    with balls.workprec(bits):
        # The probability that a loss is infinite is counted separately.
        finite, given = balls.arb(1), []
        for loss, times in parts:
            if isinstance(loss, LossWithFailure):
                finite *= (1 - probability(loss.failure_probability, rounded)) ** times
                given += [(loss.given, times)] if loss.given.upper else []
            else:
                given.append((loss, times))
        enclosed_parts = [(enclosed(loss, rounded), times) for loss, times in given]
        total = _Total(enclosed_parts, proves != "upper", bits)
        lower, upper = _prove(proof, total, balls.arb(epsilon))
        return 1 - finite + finite * lower, 1 - finite + finite * upper


class _Total:
    """A sum of losses, each used several times."""

    def __init__(self, parts: list[tuple[EnclosedLoss, int]], with_lower: bool, bits: int) -> None:
        self.parts, self.with_lower, self.bits = parts, with_lower, bits
        self._transforms: dict[tuple[int, bool, proofs.Substitute], Transform] = {}

    def transforms(
        self, substitutes: Sequence[proofs.Substitute], dominating: bool
    ) -> list[tuple[Transform, int]]:
        """Return the transform of each part, and the number of its uses."""
        found = []
        for index, ((loss, times), item) in enumerate(zip(self.parts, substitutes, strict=True)):
            # Only a loss that is bounded from one side has a law on each side.
            key = (index, dominating or not loss.one_sided(item), item)
            if key not in self._transforms:
                self._transforms[key] = loss.transform(item, dominating=dominating)
            found.append((self._transforms[key], times))
        return found

    def beside(self, substitutes: Sequence[proofs.Substitute], epsilon: Ball) -> Ball:
        """Return the chance that some dominating law on a grid is infinite, and all slack."""
        finite, slack = balls.arb(1), balls.arb(0)
        for (loss, times), item in zip(self.parts, substitutes, strict=True):
            slack += loss.slack(item, times, epsilon)
            if isinstance(item, proofs.Grid):
                finite *= (1 - loss.law(item, dominating=True).infinite) ** times
        return 1 - finite + slack


@singledispatch
def _prove(proof: proofs.Proof, total: _Total, epsilon: Ball) -> Interval:
    """Return a lower and an upper bound; 0 and 1 if the proof does not bound that side."""
    raise TypeError(f"proof must be a record of an argument, got {proof!r}.")


# -- upper bounds by moments


def _chernoff_factor(a: Ball, epsilon: Ball) -> Ball:
    """Enclose exp(-a epsilon) a^a / (1 + a)^(1 + a).

    Times M(a) it bounds exp(a (e - epsilon)) delta(e) for every e: the supremum over l of (1 -
    exp(-l)) exp(-a l) is a^a / (1 + a)^(1 + a).
    """
    return (-a * epsilon - a * (1 / a).log1p() - a.log1p()).exp()


def _chernoff(tilt: float, transforms: list[tuple[Transform, int]], epsilon: Ball) -> Ball:
    """Return a bound on exp(tilt (e - epsilon)) delta(e) for every e."""
    if tilt == 0:
        return balls.arb(1)
    value = _chernoff_factor(balls.arb(tilt), epsilon)
    for transform, times in transforms:
        value *= transform.at(balls.arb(tilt)) ** times
    return value


@_prove.register
def _(proof: proofs.ChernoffProof, total: _Total, epsilon: Ball) -> Interval:
    """Return 0, and the Renyi bound of order 1 + tilt plus the chance of an infinite loss."""
    bound = _chernoff(proof.tilt, total.transforms(proof.sums, True), epsilon)
    return balls.arb(0), total.beside(proof.sums, epsilon) + bound


@_prove.register
def _(proof: proofs.ConvexityProof, total: _Total, epsilon: Ball) -> Interval:
    """Return 0, and the Chernoff bound with a bound on each moment in closed form."""
    c = balls.arb(proof.tilt)
    value = _chernoff_factor(c, epsilon)
    for loss, times in total.parts:
        value *= loss.moment_bound(c) ** times
    return balls.arb(0), value


@_prove.register
def _(proof: proofs.SamplingProof, total: _Total, epsilon: Ball) -> Interval:
    """Return 0, and one minus the probability, under a coupling, that no output differs."""
    unchanged = balls.arb(1)
    for loss, times in total.parts:
        unchanged *= (1 - loss.distance) ** times
    return balls.arb(0), 1 - unchanged


@_prove.register
def _(proof: proofs.SupportProof, total: _Total, epsilon: Ball) -> Interval:
    """Return delta = 0 if the largest sum of the losses is at most epsilon."""
    largest = sum((times * loss.largest for loss, times in total.parts), balls.arb(0))
    return balls.arb(0), balls.arb(0) if largest <= epsilon else balls.arb(1)


# -- the contour


@_prove.register
def _(proof: proofs.ContourProof, total: _Total, epsilon: Ball) -> Interval:
    """Return the finite sum, plus or minus the omitted terms, less the aliases."""
    lower, upper = _contour(proof, total, epsilon)
    return lower, balls.arb.min(upper + total.beside(proof.sums, epsilon), balls.arb(1))


@_prove.register
def _(proof: proofs.ParityProof, total: _Total, epsilon: Ball) -> Interval:
    """Return 1 - K + K times the bounds of the other direction at -epsilon, K = exp(epsilon)."""
    opposite = [(loss.opposite, times) for loss, times in total.parts]
    known = [(loss, times) for loss, times in opposite if loss is not None]
    on_grids = any(isinstance(item, proofs.Grid) for item in proof.sums)
    if len(known) < len(opposite) or on_grids:
        return balls.arb(0), balls.arb(1)
    bounds = _contour(proof, _Total(known, total.with_lower, total.bits), -epsilon)
    lower, upper = (epsilon.exp() * bound - epsilon.expm1() for bound in bounds)
    return lower, balls.arb.min(upper + total.beside(proof.sums, epsilon), balls.arb(1))


def _contour(proof: proofs.ContourProof, total: _Total, epsilon: Ball) -> Interval:
    """Return bounds on delta at any real epsilon, where all losses are finite."""
    line = _along_line(proof, total, dominating=True)
    value, rest, aliases = _contour_sum(proof, total, epsilon, line, dominating=True)
    upper = value + rest
    pairs = zip(total.parts, proof.sums, strict=True)
    one_sided = any(loss.one_sided(item) for (loss, _), item in pairs)
    if proof.smoothing == 0 and not one_sided:
        return value - rest - aliases, upper
    if not total.with_lower:
        return balls.arb(0), upper
    moved = epsilon + proof.shift
    # The values for the lower bound differ only if a loss is bounded from one side.
    below = _along_line(proof, total, dominating=False) if one_sided else line
    value, rest, aliases = _contour_sum(proof, total, moved, below, dominating=False)
    lower = value - rest - aliases
    if proof.smoothing > 0:
        eta = balls.arb(proof.smoothing)
        lower -= ((proof.shift - eta * eta / 2) / (eta * balls.arb(2).sqrt())).erfc() / 2
    return lower, upper


_Line = tuple[list[tuple[Transform, int]], list[Ball]]
"""The transforms of a contour's parts with their uses, and the product at each node."""


def _along_line(proof: proofs.ContourProof, total: _Total, *, dominating: bool) -> _Line:
    """Return the transforms whose product is summed, and the product at each node."""
    smoothing: Transform = GaussianTransform(balls.arb(proof.smoothing))
    added = [(smoothing, 1)] if proof.smoothing > 0 else []
    transforms = added + total.transforms(proof.sums, dominating)
    products = [balls.acb(1)] * proof.nodes
    for transform, times in transforms:
        values = transform.along_line(balls.arb(proof.tilt), balls.arb(proof.step), proof.nodes)
        products = [a * value**times for a, value in zip(products, values, strict=True)]
    return transforms, products


def _contour_sum(
    proof: proofs.ContourProof, total: _Total, epsilon: Ball, line: _Line, *, dominating: bool
) -> tuple[Ball, Ball, Ball]:
    """Return the sum over the nodes, a bound on all other nodes, and one on the aliases."""
    arb, acb = balls.arb, balls.acb
    c, h = arb(proof.tilt), arb(proof.step)
    transforms, products = line
    value = arb(0)
    for k, product in enumerate(products):
        z = acb(c, k * h)
        term = (product * (-epsilon * z).exp() / (z * (z + 1))).real
        value += term if k else term / 2
    smoothing: Transform = GaussianTransform(arb(proof.smoothing))
    tails = [(smoothing, 1), *total.transforms(proof.tails, dominating)]
    aliases = arb(0)
    for tilt in (proof.below, proof.above):
        distance = 2 * arb.pi() * abs(arb(tilt) - proof.tilt) / proof.step
        # The aliases on one side are at most a geometric series.
        aliases += _chernoff(tilt, transforms, epsilon) / distance.expm1()
    return value * h / arb.pi(), _beyond(proof, tails, epsilon), aliases


def _beyond(proof: proofs.ContourProof, tails: list[tuple[Transform, int]], epsilon: Ball) -> Ball:
    """Return a bound on the sum over all other nodes; sum_{k >= N} 1 / k^2 <= 1/N + 1/N^2."""
    c, h, nodes = balls.arb(proof.tilt), balls.arb(proof.step), balls.arb(proof.nodes)
    product = (-c * epsilon).exp() * (1 / nodes + 1 / nodes**2) / (balls.arb.pi() * h)
    for transform, times in tails:
        product *= transform.bound_beyond(c, nodes * h) ** times
    return product


@_prove.register
def _(proof: proofs.OrderProof, total: _Total, epsilon: Ball) -> Interval:
    """Return bounds by laws of the likelihood ratio of the only loss."""
    if len(total.parts) != 1:
        return balls.arb(0), balls.arb(1)
    ((loss, times),) = total.parts
    return loss.by_convex_order(proof, times, epsilon, total.bits)


# -- sums over finite laws, and tests


@_prove.register
def _(proof: proofs.SumProof, total: _Total, epsilon: Ball) -> Interval:
    """Return the sums of (1 - exp(epsilon - l))_+ over the finite laws on either side."""
    ((loss, times),) = total.parts
    if times > 1 and not loss.equally_spaced:
        return balls.arb(0), balls.arb(1)
    lower, upper = (
        _delta_of_law(loss.law(proof.sums[0], dominating=dominating), times, epsilon)
        for dominating in (False, True)
    )
    return lower, upper


def _delta_of_law(law: Law, times: int, epsilon: Ball) -> Ball:
    """Enclose delta of a finite law with equally spaced values, used several times."""
    values, masses = law.values, law.masses
    if times > 1:
        masses = list((balls.arb_poly(masses) ** times).coeffs())
        step = values[1] - values[0] if len(values) > 1 else balls.arb(0)
        values = [times * values[0] + k * step for k in range(len(masses))]
    zero = balls.arb(0)
    delta = zero
    for value, mass in zip(values, masses, strict=True):
        if not value < epsilon:
            delta += balls.arb.max(mass, zero) * balls.arb.max(-(epsilon - value).expm1(), zero)
    return delta + 1 - (1 - law.infinite) ** times


@_prove.register
def _(proof: proofs.ThresholdProof, total: _Total, epsilon: Ball) -> Interval:
    """Return P(N >= least) - exp(epsilon) Q(N >= least), N the number of large outputs, and 1."""
    counted = [
        (loss.tails(threshold), times)
        for (loss, times), threshold in zip(total.parts, proof.thresholds, strict=True)
        if threshold is not None
    ]
    p, q = (
        1 - _at_most([(chances[side], times) for chances, times in counted], proof.least - 1)
        for side in (0, 1)
    )
    return p - epsilon.exp() * q, balls.arb(1)


def _at_most(chances: list[tuple[Ball, int]], most: int) -> Ball:
    """Enclose the probability that at most ``most`` >= 0 independent events occur.

    ``chances`` are probabilities of events, and the number of events with each.
    """
    distribution = [balls.arb(1)]
    for p, times in chances:
        terms, term = [], (1 - p) ** times
        for k in range(min(most, times) + 1):
            terms.append(term)
            term *= p * (times - k) / ((1 - p) * (k + 1))
        product = [balls.arb(0)] * min(most + 1, len(distribution) + len(terms) - 1)
        for i, a in enumerate(distribution):
            for j, b in enumerate(terms[: len(product) - i]):
                product[i + j] += a * b
        distribution = product
    return sum(distribution, balls.arb(0))


# -- decimals


def decimal_bounds(lower: Ball, upper: Ball) -> Callable[[int], tuple[Decimal, Decimal]]:
    """Return bounds on a probability as a function of the digits they are rounded outward to."""

    def outward(digits: int) -> tuple[Decimal, Decimal]:
        low, high = decimal_down(lower, digits), decimal_up(upper, digits)
        return max(low, Decimal(0)), min(high, Decimal(1))

    return outward


def decimal_down(ball: Ball, digits: int) -> Decimal:
    """Return a decimal with this number of digits, not above any number in the ball."""
    return _decimal(ball.lower(), digits, ROUND_FLOOR)


def decimal_up(ball: Ball, digits: int) -> Decimal:
    """Return a decimal with this number of digits, not below any number in the ball."""
    return _decimal(ball.upper(), digits, ROUND_CEILING)


def _decimal(point: Ball, digits: int, rounding: str) -> Decimal:
    """Return an exact ball that bounds a probability as a rounded decimal.

    A bound that is not finite, or huge, is useless for a probability. A bound that is tiny is not
    written to its last bit.
    """
    if not point.is_finite():
        return Decimal(0) if rounding == ROUND_FLOOR else Decimal(1)
    mantissa, exponent = (int(part) for part in point.man_exp())
    if mantissa and exponent + mantissa.bit_length() > _FARTHEST_EXPONENT:
        return Decimal(0) if rounding == ROUND_FLOOR else Decimal(1)
    if mantissa and exponent < -_FARTHEST_EXPONENT - mantissa.bit_length():
        away = (mantissa > 0) == (rounding == ROUND_CEILING)
        return _LEAST.copy_sign(mantissa) if away else Decimal(0)
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    if exponent >= 0:
        return context.create_decimal(mantissa << exponent)
    return context.divide(Decimal(mantissa), Decimal(1 << -exponent))
