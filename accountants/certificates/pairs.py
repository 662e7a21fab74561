r"""What can one use of a mechanism tell? Its outcomes in balls, above and below, by family.

A mechanism's outputs are cut into cells.

* Below, only the cell is reported. This is post-processing, so that the mechanism dominates it.
* Above, a cell's masses under P and Q are moved to its two ends, so that both are kept
  (Doroshenko et al. 2022, "connect the dots"); of outputs beyond all cells, the ratio may be 0 or
  infinite.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> with balls.workprec(96):
...     above = pair_of(Laplace(2.0)).outcomes(Grid(1.0, 0, 8), above=True)
...     whole = sum(mass for _, mass, _ in above.points)
...     moment = sum(mass * at.exp() for at, mass, _ in above.points)
...     whole.overlaps(balls.arb(1)), moment.overlaps(balls.arb(1))
(True, True)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from itertools import pairwise
from typing import Any

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball, power, probability
from dpcal.accountants.certificates.order import Point, gathered
from dpcal.accountants.certificates.proofs import Cells, Grid
from dpcal.accountants.losses.allocation import Allocation, KnownBatch
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss, ResponseLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["AllocationPair", "Line", "Outcomes", "Pair", "ends_of", "oriented", "pair_of"]

# Means and weights of a mixture.
Mixture = tuple[tuple[Ball, Ball], ...]


def _zero() -> Ball:
    return balls.arb(0)


@dataclass
class Outcomes:
    """Outcomes of one use, of which the ratio is P over Q.

    Attributes
    ----------
    points
        Logarithms of ratios, their masses under Q, and their places on the pair's own lattice.
    cells
        Masses under Q and P of other sets of outcomes.
    lost
        Mass at a ratio of 0 above, at an infinite one below.
    infinite
        Mass under P of infinite ratios, above.
    """

    points: list[Point] = field(default_factory=list)
    cells: list[tuple[Ball, Ball]] = field(default_factory=list)
    lost: Ball = field(default_factory=_zero)
    infinite: Ball = field(default_factory=_zero)

    @property
    def reversed(self) -> Outcomes:
        """The outcomes of the other direction; below, none if those are not cells alone."""
        points: list[Point] = [(-at, mass * at.exp(), None) for at, mass, _ in self.points]
        cells = [(p, q) for q, p in self.cells]
        return Outcomes(points[::-1], cells[::-1], self.infinite, self.lost)

    def between(self, masses: tuple[Ball, Ball], ends: tuple[Ball, Ball], *places: int) -> None:
        """Move the masses under Q and P of a cell to its ends, with ratios u < v."""
        (q, p), (u, v) = masses, ends
        low_place, high_place = places or (None, None)
        more, apart = p - q * u.exp(), v.exp() - u.exp()
        if not apart > 0:
            # Ratios of so few digits are the lower one, with what that leaves at infinity.
            self.points.append((u, q, low_place))
            self.infinite += balls.arb.max(more, balls.arb(0))
            return
        high = balls.arb.max(balls.arb.min(more / apart, q), balls.arb(0))
        self.points += [(u, q - high, low_place), (v, high, high_place)]


class Pair(ABC):
    """One direction of a dominating pair (P, Q) in ball arithmetic."""

    has_upper = True
    """Whether outcomes above are known."""
    kinds: tuple[type[Any], ...] = (Grid,)
    """What its outcomes may be cut into."""
    work_of_cell: float = 8
    """Functions of balls that a cell takes, roughly."""

    @abstractmethod
    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        """Return outcomes whose ratio is above that of the pair in convex order, or below it."""

    def fits(self, cells: Cells) -> bool:
        """Return whether its outcomes may be cut into these cells."""
        return isinstance(cells, self.kinds)

    def lattice(self, cells: Cells) -> tuple[Ball, Ball] | None:
        """Return the offset and step of the points' own lattice, if they have one."""
        return None

    @property
    def least(self) -> Ball:
        """The logarithm of the least ratio, if it is told often; any number."""
        return balls.arb(0)

    def size(self, cells: Cells) -> int:
        """Return the number of cells, roughly."""
        return cells.points + 2

    def terms(self, cells: Cells) -> int:
        """Return the terms of polynomials whose powers the outcomes take."""
        return 0


# -- Gaussian mechanisms


class Line(Pair):
    """Mixtures of Gaussians of one standard deviation, no mean of P below one of Q.

    The ratio then grows along the outputs, which are cut at the points of the grid.
    """

    def __init__(self, numerator: Mixture, denominator: Mixture, sigma: Ball) -> None:
        self.numerator, self.denominator, self.sigma = numerator, denominator, sigma
        self.scale = sigma * balls.arb(2).sqrt()
        self.work_of_cell = 16 * (len(numerator) + len(denominator))

    def loss(self, x: Ball) -> Ball:
        """Return the logarithm of the ratio of the densities at x."""
        return self._log_weight(self.numerator, x) - self._log_weight(self.denominator, x)

    @property
    def least(self) -> Ball:
        """The logarithm of the least ratio, if both mixtures have the same least mean."""
        (a, p), (b, q) = (
            min(side, key=lambda item: float(item[0].mid()))
            for side in (self.numerator, self.denominator)
        )
        return (p / q).log() if a == b else balls.arb(0)

    def _log_weight(self, mixture: Mixture, x: Ball) -> Ball:
        """Return the log of a mixture's density at x, over that of a component with mean 0."""
        variance = self.sigma * self.sigma
        # The form log(1 + sum of weights times expm1) keeps the digits of terms of small weight.
        gain = sum(w * ((2 * x - a) * a / (2 * variance)).expm1() for a, w in mixture)
        return gain.log1p()

    def masses(self, ends: Sequence[Ball]) -> list[tuple[Ball, Ball]]:
        """Return the masses under Q and P below the first end, between ends, beyond the last."""
        sides = []
        for mixture in (self.denominator, self.numerator):
            total = [balls.arb(0)] * (len(ends) + 1)
            for mean, weight in mixture:
                shares = self._shares([(x - mean) / self.scale for x in ends])
                total = [a + weight * b for a, b in zip(total, shares, strict=True)]
            sides.append(total)
        return list(zip(*sides, strict=True))

    @staticmethod
    def _shares(ends: list[Ball]) -> list[Ball]:
        """Return those of one normal law, as differences of the smaller tails."""
        tails = [(z > 0, abs(z).erfc() / 2) for z in ends]
        (right, tail), *_ = tails
        found = [1 - tail if right else tail]
        for (left_is_right, a), (is_right, b) in pairwise(tails):
            found.append(a - b if left_is_right else b - a if not is_right else 1 - a - b)
        right, tail = tails[-1]
        return [*found, tail if right else 1 - tail]

    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        """Return the intervals of the grid, or their ends."""
        ends = ends_of(cells)
        masses = self.masses(ends)
        if not above:
            return Outcomes(cells=masses)
        found, losses = Outcomes(), [self.loss(x) for x in ends]
        q, p = masses[0]
        first = p / losses[0].exp()
        found.points, found.lost = [(losses[0], first, None)], q - first
        for between, both in zip(masses[1:-1], pairwise(losses), strict=True):
            found.between(between, both)
        q, p = masses[-1]
        found.points.append((losses[-1], q, None))
        found.infinite = p - q * losses[-1].exp()
        return found


class _FixedBatch(Pair):
    """The Gaussian mechanism on a batch without replacement, of which a record is replaced.

    Its pair has the losses of the sampled pair where they are positive, their mirror image, and an
    atom at 0. The sampled pair's loss is positive above the middle of its means.
    """

    work_of_cell = 2 * 48

    def __init__(self, line: Line) -> None:
        (_, rest), _ = line.numerator
        self.line = line
        self.atom = rest * (1 / (line.sigma * balls.arb(8).sqrt())).erf()

    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        half, zero = balls.arb(1) / 2, balls.arb(0)
        ends = [half, *(x for x in ends_of(cells) if x > half)]
        masses = self.line.masses(ends)[1:]
        found = Outcomes([(zero, self.atom, None)])
        if not above:
            found.cells = [(p, q) for q, p in reversed(masses)] + masses
            return found
        losses = [zero, *(self.line.loss(x) for x in ends[1:])]
        for (q, p), (u, v) in zip(masses, pairwise(losses), strict=False):
            found.between((q, p), (u, v))
            found.between((p, q), (-v, -u))
        (q, p), last = masses[-1], losses[-1]
        found.points += [(last, q, None), (-last, q * last.exp(), None)]
        found.infinite = found.lost = p - q * last.exp()
        return found


def ends_of(cells: Cells) -> list[Ball]:
    """Return the ends of all intervals of a grid."""
    assert isinstance(cells, Grid)
    return [balls.arb(j) * balls.arb(cells.step) for j in range(cells.first, cells.last + 1)]


# -- random allocation


class AllocationPair(Pair):
    """An epoch of random allocation: a weighted mean of independent ratios of batches.

    Each is exp(t X - t^2 / 2), X standard normal. Both they, times their weights, and their sums
    are cut at the multiples of the grid's step.
    """

    work_of_cell = 400

    def __init__(self, loss: Allocation) -> None:
        groups = [(g.noise_multiplier, g.batches, balls.arb(g.probability)) for g in loss.groups]
        # Doubles may add up to 1 but for their rounding.
        whole = sum((chance for *_, chance in groups), balls.arb(0))
        self.groups = [(1 / balls.arb(s), m, chance / whole / m) for s, m, chance in groups]

    def size(self, cells: Cells) -> int:
        """Return the number of multiples."""
        assert isinstance(cells, Grid)
        return max(cells.last, 1) * len(self.groups)

    def terms(self, cells: Cells) -> int:
        """Return the terms of a product of two laws."""
        return 2 * self.size(cells)

    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        """Return the multiples of the step, over the sums of ratios."""
        assert isinstance(cells, Grid)
        arb, step, count = balls.arb, balls.arb(cells.step), max(cells.last, 1)

        def sum_of(one: list[Ball], other: list[Ball]) -> list[Ball]:
            terms = (balls.arb_poly(one) * balls.arb_poly(other)).coeffs()
            terms += [arb(0)] * (count + 1 - len(terms))
            law: list[Ball] = terms[: count + 1]
            if above:
                law[-1] += sum(terms[count + 1 :], arb(0))
            return law

        sums = [arb(1)] + [arb(0)] * count
        for t, batches, weight in self.groups:
            law = self._law(t, step / weight, count, above)
            sums = sum_of(sums, power(law, batches, sum_of))
        found = Outcomes([((k * step).log(), sums[k], None) for k in range(1, count + 1)])
        found.lost = sums[0] if above else 1 - sum(sums, arb(0))
        if above:
            mean = sum((mass * k for k, mass in enumerate(sums)), arb(0)) * step
            found.infinite = arb.max(1 - mean, arb(0))
        return found

    def _law(self, t: Any, width: Ball, count: int, above: bool) -> list[Ball]:
        """Return masses of one ratio at multiples 0 to ``count`` of a width."""
        root, law = balls.arb(2).sqrt(), [balls.arb(0)] * (count + 1)
        below, cells = (balls.arb(0), balls.arb(0)), []
        for k in range(1, count + 1):
            x = ((k * width).log() / t + t / 2) / root
            # E Y 1{X < z} = P(X < z - t).
            at = (-x).erfc() / 2, (t / root - x).erfc() / 2
            mass, moment = at[0] - below[0], at[1] - below[1]
            high = moment / width - (k - 1) * mass
            law[k - 1] += mass - high
            law[k] += high
            if mass > 0 and moment > 0:
                cells.append((float((moment / mass / width).mid()), mass, moment))
            below = at
        if above:
            law[-1] += 1 - below[0]
            return law
        found = gathered(cells, lambda place: place * width)
        return [found.get(k, balls.arb(0)) for k in range(count + 1)]


# -- Laplace and discrete noise


class _Laplace(Pair):
    """Laplace noise: losses with a density on (-a, a), a = 1 / scale, and an atom at either end."""

    def __init__(self, loss: Laplace) -> None:
        self.a = 1 / balls.arb(loss.scale)

    def lattice(self, cells: Cells) -> tuple[Ball, Ball]:
        return -self.a, 2 * self.a / max(cells.points, 1)

    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        # The cells always cover (-a, a), for any requested number: no mass may be lost.
        count, (offset, step), half = max(cells.points, 1), self.lattice(cells), balls.arb(1) / 2
        found = Outcomes([(-self.a, half, 0), (self.a, half * (-self.a).exp(), count)])
        for k in range(count):
            u, v = offset + k * step, offset + (k + 1) * step
            # Densities under P and Q are exp((+-l - a) / 2) / 4.
            p = ((u - self.a) / 2).exp() * ((v - u) / 2).expm1() / 2
            q = ((-v - self.a) / 2).exp() * ((v - u) / 2).expm1() / 2
            if above:
                found.between((q, p), (u, v), k, k + 1)
            else:
                found.cells.append((q, p))
        return found


class _OfPoints(Pair):
    """A mechanism with finitely many outcomes, with ratios at equal distances."""

    def __init__(self, offset: Ball, step: Ball, masses: Sequence[tuple[int, Ball]]) -> None:
        self.own = offset, step
        self.masses = masses

    def lattice(self, cells: Cells) -> tuple[Ball, Ball]:
        return self.own

    def size(self, cells: Cells) -> int:
        return len(self.masses)

    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        offset, step = self.own
        return Outcomes([(offset + k * step, mass, k) for k, mass in self.masses])


def _discrete_laplace(loss: LatticeLoss) -> Pair:
    """Discrete Laplace noise of parameter a, or two values -a and a: every mass follows from a."""
    s = len(loss.multiples) - 1
    if loss.multiples != tuple(range(-s, s + 1, 2)) or loss.offset != 0:
        raise UnsupportedEvent(f"No certificate covers {loss!r}.")
    a = balls.arb(loss.unit)
    tail = 1 / (1 + (-a).exp())
    inner = [(a / 2).tanh() * (-a * x).exp() for x in range(1, s)]
    reference = [tail, *inner, tail * (-a * s).exp()]
    return _OfPoints(-s * a, 2 * a, list(enumerate(reference)))


def _response(loss: ResponseLoss) -> Pair:
    """Randomized response: a loss with two values, or with v, 0 and -v."""
    p, k = balls.arb(loss.noise_parameter), balls.arb(loss.num_buckets)
    own, other = 1 - p + p / k, p / k
    if loss.blank:
        # Masses under P and Q of a record's answer, and of the others together.
        pairs = [((k - 1) * other, (k - 1) / k), (own, 1 / k)]
        pairs = [(b, a) for a, b in pairs[::-1]] if loss.blank == "P" else pairs
        low, high = ((a / b).log() for a, b in pairs)
        return _OfPoints(low, high - low, [(place, q) for place, (_, q) in enumerate(pairs)])
    v = (own / other).log()
    middle = [(1, (k - 2) * other)] if loss.num_buckets > 2 else []
    return _OfPoints(-v, v, [(0, own), *middle, (2, other)])


class _DiscreteGaussian(Pair):
    """Discrete Gaussian noise; the cells are outputs, and those beyond lose their ratios."""

    def __init__(self, loss: DiscreteGaussian) -> None:
        self.sensitivity, self.variance = loss.sensitivity, balls.arb(loss.sigma) ** 2

    def lattice(self, cells: Cells) -> tuple[Ball, Ball]:
        step = balls.arb(self.sensitivity) / self.variance
        return -step * self.sensitivity / 2, step

    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        assert isinstance(cells, Grid)
        s, variance, (offset, step) = self.sensitivity, self.variance, self.lattice(cells)
        outputs = range(cells.first, cells.last + 1)
        weights = [(-balls.arb(x * x) / (2 * variance)).exp() for x in outputs]
        (left, left_of_p), (right, right_of_p) = (
            [_theta_tail(end + move, variance) for move in (0, sign * s)]
            for end, sign in ((1 - cells.first, 1), (cells.last + 1, -1))
        )
        whole = sum(weights, balls.arb(0)) + left + right
        masses = [weight / whole for weight in weights]
        found = Outcomes(lost=right / whole)
        if above:
            found.lost += left / whole
            found.infinite = (left_of_p + right_of_p) / whole
        else:
            masses[0] += left / whole
        pairs = zip(outputs, masses, strict=True)
        found.points = [(offset + x * step, mass, x) for x, mass in pairs]
        return found


def _theta_tail(x: int, variance: Ball) -> Ball:
    """Enclose the sum of exp(-k^2 / (2 variance)) over whole numbers k >= x > 0.

    The sum is at least its first term, at most a geometric series; unbounded for x <= 0.
    """
    if x <= 0:
        return balls.arb("nan")
    first = (-balls.arb(x * x) / (2 * variance)).exp()
    return first * balls.arb(0.5, 0.5) / (1 - (-balls.arb(x) / variance).exp())


# -- from a loss to its pair


@singledispatch
def pair_of(loss: PrivacyLoss, rounded: bool = False, above: bool = True) -> Pair:
    """Return a loss in ball arithmetic, at the precision of python-flint's context.

    ``rounded`` says that its sampling probability or weights are known only up to rounding. Of
    outcomes ``above``, and of others, they are then those that tell most, and least.

    Raises
    ------
    UnsupportedEvent
        If no certificate covers the loss.
    """
    raise UnsupportedEvent(f"No certificate covers {loss!r}.")


pair_of.register(Allocation, lambda loss, rounded=False, above=True: AllocationPair(loss))
pair_of.register(Laplace, lambda loss, rounded=False, above=True: _Laplace(loss))
pair_of.register(LatticeLoss, lambda loss, rounded=False, above=True: _discrete_laplace(loss))
pair_of.register(ResponseLoss, lambda loss, rounded=False, above=True: _response(loss))
pair_of.register(DiscreteGaussian, lambda loss, rounded=False, above=True: _DiscreteGaussian(loss))


@pair_of.register
def _(loss: KnownBatch, rounded: bool = False, above: bool = True) -> Pair:
    # Its Gaussian proves an upper end only.
    raise UnsupportedEvent(
        "No certificate covers random allocation with so little noise, got noise_multiplier="
        f"{loss.noise_multiplier!r}: certify a Gaussian for each epoch, which costs no less."
    )


@pair_of.register
def _(loss: Gaussian, rounded: bool = False, above: bool = True) -> Pair:
    zero, one = balls.arb(0), balls.arb(1)
    return Line(((one, one),), ((zero, one),), balls.arb(loss.noise_multiplier))


@pair_of.register(SampledGaussian)
@pair_of.register(FixedBatchGaussian)
def _(loss: Any, rounded: bool = False, above: bool = True) -> Pair:
    """Return the pair of a sample that holds the record, or of others.

    A larger sampling probability tells more: a sample can be sampled again.
    """
    q = _end(probability(loss.sampling_probability, rounded), above)
    zero, one = balls.arb(0), balls.arb(1)
    sigma = balls.arb(loss.noise_multiplier)
    line = Line(((zero, 1 - q), (one, q)), ((zero, one),), sigma)
    return _FixedBatch(line) if isinstance(loss, FixedBatchGaussian) else line


@pair_of.register
def _(loss: GaussianMixtures, rounded: bool = False, above: bool = True) -> Pair:
    """Return the pair of two mixtures.

    Of one against a single mean, larger weights of other means tell more (Neyman and Pearson).
    """
    one_sided = rounded and len(loss.denominator) == 1

    def mixture(side: Sequence[tuple[float, float]]) -> Mixture:
        center, _ = min(side, key=lambda item: abs(item[0]))
        others = [(m, probability(w, rounded)) for m, w in side if m != center]
        balled = [(balls.arb(m), _end(w, above) if one_sided else w) for m, w in others]
        rest = 1 - sum((w for _, w in balled), balls.arb(0))
        return ((balls.arb(center), rest), *balled)

    sigma = balls.arb(loss.noise_multiplier)
    return Line(mixture(loss.numerator), mixture(loss.denominator), sigma)


def _end(ball: Ball, above: bool) -> Ball:
    return balls.arb((ball.upper() if above else ball.lower()).mid())


def oriented(loss: PrivacyLoss) -> tuple[PrivacyLoss, bool | None]:
    """Return the loss of which both directions are told, and whether it is this direction's.

    None stands for a loss that is the same in both directions.
    """
    if isinstance(loss, GaussianMixtures):
        if len(loss.denominator) <= len(loss.numerator):
            return loss, True
        p, q = (tuple((-m, w) for m, w in s) for s in (loss.denominator, loss.numerator))
        return GaussianMixtures(p, q, loss.noise_multiplier), False
    direction = getattr(loss, "direction", None)
    if direction == "add" and loss.opposite is not None:
        return loss.opposite, False
    told = direction == "remove" or (isinstance(loss, ResponseLoss) and loss.blank)
    return loss, True if told else None
