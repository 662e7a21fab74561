r"""Which finite laws lie above and below a privacy loss? Cells of outputs, in ball arithmetic.

Cut the outputs of a pair (P, Q), along which the loss grows, into cells. Gathering each cell in one
point is post-processing: the loss log P(cell) / Q(cell) is dominated by the pair's. Spreading both
masses of a cell over its two ends, where the loss takes its values, gives a loss that dominates it
(Doroshenko et al. 2022, "connect the dots"). What lies beyond the last end has a loss of infinity
above, and is gathered below.

>>> from flint import ctx
>>> from dpcal.accountants.certificates.proofs import Cells
>>> with ctx.workprec(96):
...     values, masses, infinite = above(Laplace(2.0), Cells(0.1, 0, 8))
...     exact = (2 * (arb(1) / 2).exp() + (-arb(1)).exp()) / 3
...     moment = sum(mass * value.exp() for value, mass in zip(values, masses))
...     moment > exact, moment < exact * 1.001, infinite == 0
(True, True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dpcal.accountants.certificates.proofs import Cells
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import MissingExtra, UnsupportedEvent

try:
    from flint import arb
except ImportError as error:
    raise MissingExtra("Certificates need python-flint: pip install 'dpcal[certify]'.") from error

__all__ = ["Law", "Line", "above", "batch", "below", "line", "probability"]

Ball = Any
# Values, masses under P, and the mass under P of an infinite loss.
Law = tuple[list[Ball], list[Ball], Ball]
# Relative size of the balls around numbers that were derived from an event in doubles.
_ROUNDING = 2.0**-50


def _rounded(value: float) -> Ball:
    return arb(value, abs(value) * _ROUNDING)


# -- outputs on a line, along which the loss grows


@dataclass(frozen=True)
class Line:
    """Mixtures of Gaussians P and Q of one standard deviation, no mean of P below one of Q."""

    numerator: tuple[tuple[Ball, Ball], ...]
    denominator: tuple[tuple[Ball, Ball], ...]
    sigma: Ball

    def loss(self, x: Ball) -> Ball:
        """Log of the ratio of the densities at x."""
        return self._log_weight(self.numerator, x) - self._log_weight(self.denominator, x)

    def _log_weight(self, mixture: tuple[tuple[Ball, Ball], ...], x: Ball) -> Ball:
        variance = self.sigma * self.sigma
        # log(1 + sum of weights times expm1) keeps the digits of rare terms.
        gain = sum(w * ((2 * x - a) * a / (2 * variance)).expm1() for a, w in mixture)
        return gain.log1p()

    @property
    def distance(self) -> Ball:
        """Bound on the total variation distance: how much of the weights differ."""
        shared = arb(0)
        for a, p in self.numerator:
            shared += sum((arb.min(p, q) for b, q in self.denominator if a == b), arb(0))
        return 1 - shared

    @property
    def largest(self) -> Ball | None:
        """Supremum of the loss, None if infinite: P reaches further than Q."""
        (a, p), (b, q) = (
            max(side, key=lambda item: item[0].mid()) for side in (self.numerator, self.denominator)
        )
        return (p / q).log() if a == b else None

    def tails(self, x: Ball) -> tuple[Ball, Ball]:
        """P(X > x) and Q(X > x)."""
        return self._mass(self.numerator, x, None), self._mass(self.denominator, x, None)

    def masses(self, low: Ball | None, high: Ball | None) -> tuple[Ball, Ball]:
        """P and Q of an interval; None is an infinite end."""
        return self._mass(self.numerator, low, high), self._mass(self.denominator, low, high)

    def _mass(
        self, mixture: tuple[tuple[Ball, Ball], ...], low: Ball | None, high: Ball | None
    ) -> Ball:
        scale = self.sigma * arb(2).sqrt()

        def part(mean: Ball) -> Ball:
            left = None if low is None else (low - mean) / scale
            right = None if high is None else (high - mean) / scale
            if left is None and right is None:
                return arb(1)
            if right is None:
                return left.erfc() / 2  # type: ignore[union-attr]
            if left is None:
                return (-right).erfc() / 2
            # The difference of the smaller tails.
            if left + right > 0:
                return (left.erfc() - right.erfc()) / 2
            return ((-right).erfc() - (-left).erfc()) / 2

        return sum(weight * part(mean) for mean, weight in mixture)


def line(loss: PrivacyLoss, rounded: bool = False) -> Line | None:
    """Return the loss as one of mixtures of Gaussians on a line, or None.

    Parameters
    ----------
    loss
        Any loss.
    rounded
        Whether its sampling probability is a quotient that was rounded to a double.
    """
    one = arb(1)
    if isinstance(loss, Gaussian):
        return Line(((one, one),), ((arb(0), one),), arb(loss.noise_multiplier))
    if isinstance(loss, SampledGaussian):
        q = probability(loss.sampling_probability, rounded)
        sigma = arb(loss.noise_multiplier)
        if loss.direction == "remove":
            return Line(((arb(0), 1 - q), (one, q)), ((arb(0), one),), sigma)
        return Line(((arb(0), one),), ((arb(0), 1 - q), (-one, q)), sigma)
    if isinstance(loss, GaussianMixtures):
        sides = [_completed(side, rounded) for side in (loss.numerator, loss.denominator)]
        return Line(sides[0], sides[1], arb(loss.noise_multiplier))
    return None


def probability(value: float, rounded: bool) -> Ball:
    """Return the number itself, or a ball around it if it is a quotient that was rounded."""
    return _rounded(value) if rounded else arb(value)


def _completed(mixture: Sequence[tuple[float, float]], rounded: bool) -> Any:
    """Means and weights; the weight of the mean nearest to 0 is what the others leave."""
    center = min(mixture, key=lambda item: abs(item[0]))
    others = [
        (arb(mean), probability(weight, rounded)) for mean, weight in mixture if mean != center[0]
    ]
    rest = 1 - sum((weight for _, weight in others), arb(0))
    return ((arb(center[0]), rest), *others)


# -- laws with atoms


def _atoms(loss: PrivacyLoss, cells: Cells, *, up: bool) -> Law | None:
    """Equally spaced values and masses of a discrete loss, or None if it is none.

    The discrete Gaussian is cut at the cells: what lies beyond is rounded up or down.
    """
    if isinstance(loss, LatticeLoss):
        return _discrete_laplace(loss)
    if isinstance(loss, DiscreteGaussian):
        return _discrete_gaussian(loss, cells, up)
    return None


def _discrete_laplace(loss: LatticeLoss) -> Law | None:
    """Two values -a and a, or all that discrete Laplace noise has; every mass from a alone."""
    s, a = len(loss.multiples) - 1, arb(loss.unit)
    if loss.multiples != tuple(range(-s, s + 1, 2)) or loss.offset != 0:
        return None
    tail = 1 / (1 + (-a).exp())
    inner = [(a / 2).tanh() * (-a * x).exp() for x in range(1, s)]
    reference = [tail, *inner, tail * (-a * s).exp()]
    values = [multiple * a for multiple in loss.multiples]
    return values, [q * v.exp() for q, v in zip(reference, values, strict=True)], arb(0)


def _discrete_gaussian(loss: DiscreteGaussian, cells: Cells, up: bool) -> Law:
    """Outputs from first to last, with the mass beyond either end."""
    s, variance = loss.sensitivity, arb(loss.sigma) ** 2
    outputs = range(cells.first, cells.last + 1)
    weights = [(-arb((x - s) ** 2) / (2 * variance)).exp() for x in outputs]
    left = _tail_of_theta(1 - cells.first + s, variance)
    right = _tail_of_theta(cells.last + 1 - s, variance)
    whole = sum(weights, arb(0)) + left + right
    masses = [weight / whole for weight in weights]
    values = [arb(s * (2 * x - s)) / (2 * variance) for x in outputs]
    if up:
        masses[0] += left / whole
        return values, masses, right / whole
    masses[-1] += right / whole
    return values, masses, arb(0)


def _tail_of_theta(x: int, variance: Ball) -> Ball:
    """Enclose the sum of exp(-k^2 / (2 variance)) over k >= x > 0: at most a geometric series."""
    if x <= 0:
        return arb("nan")
    first = (-arb(x * x) / (2 * variance)).exp()
    return first * arb(0.5, 0.5) / (1 - (-arb(x) / variance).exp())


# -- cells


def above(loss: PrivacyLoss, cells: Cells, rounded: bool = False) -> Law:
    """Return a finite law that dominates the loss, but for an infinite loss beyond the cells."""
    exact = _atoms(loss, cells, up=True)
    if exact is not None:
        return exact
    if isinstance(loss, Laplace):
        a = 1 / arb(loss.scale)
        bounds = _segment_bounds(a, cells)
        pieces = [_spread(*_laplace_masses(a, u, v), u, v) for u, v in pairwise(bounds)]
        values, masses = _flat(pieces)
        half = arb(1) / 2
        return [*values, a, -a], [*masses, half, half * (-a).exp()], arb(0)
    points = [arb(j) * arb(cells.step) for j in range(cells.first, cells.last + 1)]
    if isinstance(loss, FixedBatchGaussian):
        return _above_batch(loss, points, rounded)
    pair = line(loss, rounded)
    if pair is None:
        raise UnsupportedEvent(f"No certificate covers {loss!r}.")
    losses = [pair.loss(x) for x in points]
    # Below the first point the loss is at most its value there.
    ends = [pair.masses(None, points[0])[0], *[arb(0)] * (len(points) - 1)]
    for j, ((x, y), (u, v)) in enumerate(zip(pairwise(points), pairwise(losses), strict=True)):
        _, (low, high) = _spread(*pair.masses(x, y), u, v)
        ends[j] += low
        ends[j + 1] += high
    largest = pair.largest
    if largest is None:
        return losses, ends, pair.tails(points[-1])[0]
    _, (low, high) = _spread(*pair.tails(points[-1]), losses[-1], largest)
    return [*losses, largest], [*ends[:-1], ends[-1] + low, high], arb(0)


def below(loss: PrivacyLoss, cells: Cells, rounded: bool = False) -> Law:
    """Return a finite law that the loss dominates; its last entry is 0."""
    exact = _atoms(loss, cells, up=False)
    if exact is not None:
        return exact
    if isinstance(loss, Laplace):
        a = 1 / arb(loss.scale)
        bounds = _segment_bounds(a, cells)
        values, masses = _flat([_gathered(*_laplace_masses(a, u, v)) for u, v in pairwise(bounds)])
        half = arb(1) / 2
        return [*values, a, -a], [*masses, half, half * (-a).exp()], arb(0)
    points = [arb(j) * arb(cells.step) for j in range(cells.first, cells.last + 1)]
    if isinstance(loss, FixedBatchGaussian):
        return _below_batch(loss, points, rounded)
    pair = line(loss, rounded)
    if pair is None:
        raise UnsupportedEvent(f"No certificate covers {loss!r}.")
    ends = [None, *points, None]
    values, masses = _flat([_gathered(*pair.masses(x, y)) for x, y in pairwise(ends)])
    return values, masses, arb(0)


def _flat(pieces: list[tuple[list[Ball], list[Ball]]]) -> tuple[list[Ball], list[Ball]]:
    values = [value for piece, _ in pieces for value in piece]
    return values, [mass for _, piece in pieces for mass in piece]


def _spread(p: Ball, q: Ball, u: Ball, v: Ball) -> tuple[list[Ball], list[Ball]]:
    """Masses p and q of a cell at its ends' losses u < v: both stay what they are."""
    # p_v (exp(-u) - exp(-v)) = p exp(-u) - q.
    share = (p - q * u.exp()) / -(u - v).expm1()
    high = arb.max(arb.min(share, p), arb(0))
    return [u, v], [p - high, high]


def _gathered(p: Ball, q: Ball) -> tuple[list[Ball], list[Ball]]:
    """The cell as a single output."""
    return [(p / q).log()], [p]


def _segment_bounds(a: Ball, cells: Cells) -> list[Ball]:
    """Ends of equal cells of the losses from -a to a."""
    # However few are asked for, the cells cover the whole interval: no mass may be lost.
    count = max(cells.last - cells.first, 1)
    return [a * (2 * arb(j) / count - 1) for j in range(count + 1)]


def _laplace_masses(a: Ball, u: Ball, v: Ball) -> tuple[Ball, Ball]:
    """P and Q of the losses between u < v inside (-a, a): densities exp((+-l - a) / 2) / 4."""
    p = ((u - a) / 2).exp() * ((v - u) / 2).expm1() / 2
    q = ((-v - a) / 2).exp() * ((v - u) / 2).expm1() / 2
    return p, q


# -- batches of fixed size


def batch(loss: FixedBatchGaussian, rounded: bool) -> tuple[Line, Ball, Ball]:
    """Return the sampled pair, the middle of its means, and the atom at 0."""
    q = probability(loss.sampling_probability, rounded)
    sigma, one = arb(loss.noise_multiplier), arb(1)
    pair = Line(((arb(0), 1 - q), (one, q)), ((arb(0), one),), sigma)
    atom = (1 - q) * (1 / (sigma * arb(8).sqrt())).erf()
    return pair, arb(0.5), atom


def _above_batch(loss: FixedBatchGaussian, points: list[Ball], rounded: bool) -> Law:
    pair, middle, atom = batch(loss, rounded)
    ends = [middle, *(x for x in points if x > middle)]
    losses = [arb(0), *(pair.loss(x) for x in ends[1:])]
    pieces: list[tuple[list[Ball], list[Ball]]] = [([arb(0)], [atom])]
    for (x, y), (u, v) in zip(pairwise(ends), pairwise(losses), strict=True):
        p, q = pair.masses(x, y)
        pieces += [_spread(p, q, u, v), _spread(q, p, -v, -u)]
    p, q = pair.tails(ends[-1])
    # Of the mirror image the losses beyond the last end are at most its value there.
    values, masses = _flat([*pieces, ([-losses[-1]], [q])])
    return values, masses, p


def _below_batch(loss: FixedBatchGaussian, points: list[Ball], rounded: bool) -> Law:
    pair, middle, atom = batch(loss, rounded)
    ends = [middle, *(x for x in points if x > middle), None]
    pieces: list[tuple[list[Ball], list[Ball]]] = [([arb(0)], [atom])]
    for x, y in pairwise(ends):
        p, q = pair.masses(x, y)
        pieces += [_gathered(p, q), _gathered(q, p)]
    values, masses = _flat(pieces)
    return values, masses, arb(0)
