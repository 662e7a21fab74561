r"""Outcomes of one use of a mechanism in balls, above and below its ratio, by family.

A mechanism's outputs are cut into cells, where the logarithm of the ratio of P to Q passes the
nodes of a grid.

* Below, only the cell is reported. This is post-processing, so that the mechanism dominates it.
* Above, a cell's masses under P and Q are moved to its two ends, so that both are kept
  (Doroshenko et al. 2022, "connect the dots").
* Outputs beyond all cells have ratios of 0 and infinity above.

Where outputs are cut is computed in doubles. It decides how wide bounds are, and not whether they
hold.

>>> from dpcal.accountants.losses.laplace import Laplace
>>> from dpcal.accountants.certificates.balls import workprec
>>> with workprec(96):
...     pair = pair_of(Laplace(2.0))
...     cells, _ = pair.outcomes(arb(0.125), Limits(0.125, 64, 0.0, 9.0), True)
...     [sum(cell[side] for cell in cells).overlaps(arb(1)) for side in (0, 1)]
[True, True]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from dpcal.accountants.certificates.balls import Ball, arb
from dpcal.accountants.certificates.order import MAX_NODES_OF_LAW, Cell
from dpcal.accountants.certificates.proofs import FUNCTION
from dpcal.accountants.certificates.schema import not_negative, number, positive, whole
from dpcal.accountants.losses.base import PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import LatticeLoss, ResponseLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import UnsupportedEvent

Mixture = tuple[tuple[Ball, Ball], ...]
# Ascending cells of one use, and a logarithm of a ratio that is a node.
Outcomes = tuple[list[Cell], Ball]
_TABLE = 1 << 13
_MOST_NATS = 3000.0


@dataclass(frozen=True)
class Limits:
    """The numbers of a proof, by which outputs are cut.

    Attributes
    ----------
    step
        Step > 0 of the finest grid of logarithms of ratios, which is made a little finer where a
        loss has values at equal distances.
    nodes
        Most nodes of a law, which is made coarser until it has no more.
    tail
        Mass in [0, 1) that cells and laws may leave out, roughly.
    top
        Logarithm of a ratio: outcomes with larger ratios are not distinguished.
    """

    step: Annotated[float, positive]
    nodes: Annotated[int, whole(2, MAX_NODES_OF_LAW)]
    tail: Annotated[float, number("in [0, 1)", lambda x: 0 <= x < 1)]
    top: Annotated[float, not_negative]

    @property
    def nats(self) -> float:
        """The logarithm of the tail, negated."""
        return min(-math.log(self.tail), _MOST_NATS) if self.tail > 0 else _MOST_NATS


def points(
    masses: Iterable[tuple[Ball, Ball]],
    left: tuple[Ball, Ball] = (0, 0),
    right: tuple[Ball, Ball] = (0, 0),
) -> Outcomes:
    """Return cells of one ratio each, from its logarithm and its mass under Q; the first is a node.

    ``left`` and ``right`` are masses under Q and P of smaller and of larger ratios.
    """
    cells = [(mass, mass * at.exp(), at, at) for at, mass in masses]
    least, largest = cells[0][2], cells[-1][3]
    return [(*left, None, least), *cells, (*right, largest, None)], least


class Pair(ABC):
    """One direction of a dominating pair (P, Q) in ball arithmetic."""

    work_of_cell: float = 8
    """Functions of balls that a cell takes, roughly."""
    spacing: Ball = None
    """The distance of logarithms of ratios which hold mass, if they are at equal distances."""

    @abstractmethod
    def outcomes(self, step: Ball, limits: Limits, above: bool) -> Outcomes:
        """Return outcomes with a ratio above the pair's in convex order, or below it.

        If there are more outcomes, a ``step`` of the logarithm of their ratio separates them.
        """

    @abstractmethod
    def span(self, limits: Limits) -> float:
        """Return the distance of the extreme losses that are distinguished, in doubles."""

    def cells(self, limits: Limits) -> float:
        """Return the number of cells, roughly."""
        return min(self.span(limits) / limits.step, limits.nodes) + 2

    def work(self, limits: Limits) -> float:
        """Return the work of the outcomes."""
        return FUNCTION * self.work_of_cell * self.cells(limits)


class Line(Pair):
    """Mixtures of Gaussians of one standard deviation, no mean of P below one of Q.

    The ratio then grows along the outputs. Outputs below the ``floor`` are not reported. With the
    probability ``beyond`` an output under P is above all, where it counts.
    """

    def __init__(
        self, numerator: Mixture, denominator: Mixture, sigma: Ball, beyond: Ball = 0
    ) -> None:
        self.numerator, self.denominator, self.sigma = numerator, denominator, sigma
        self.beyond = arb(beyond)
        self.scale = sigma * arb(2).sqrt()
        self.work_of_cell = 16 * (len(numerator) + len(denominator))
        self.floor = -math.inf

    def loss(self, x: Ball) -> Ball:
        """Return the logarithm of the ratio of the densities at x."""
        return self._log_weight(self.numerator, x) - self._log_weight(self.denominator, x)

    def _log_weight(self, mixture: Mixture, x: Ball) -> Ball:
        """Return the log of a mixture's density at x, over a component's density with mean 0."""
        variance = self.sigma * self.sigma
        # The form log(1 + sum of weights times expm1) keeps the digits of terms with small weights.
        gain = sum(w * ((2 * x - a) * a / (2 * variance)).expm1() for a, w in mixture)
        return gain.log1p()

    @lru_cache(maxsize=1)  # noqa: B019 -- two arrays
    def _table(self, limits: Limits) -> tuple[Reals, Reals]:
        """Return outputs and their losses in doubles, with no more mass than the tail beyond."""
        sigma, sides = float(self.sigma.mid()), []
        for mixture in (self.numerator, self.denominator):
            sides.append(np.array([[float(x.mid()) for x in row] for row in mixture]))
        means, weights = np.concatenate(sides).T
        nats = np.log(np.maximum(weights, 1e-300)) + limits.nats
        reach = sigma * np.sqrt(2 * np.maximum(nats, 4.0))
        x = np.linspace(max((means - reach).min(), self.floor), (means + reach).max(), _TABLE)
        losses = np.zeros(_TABLE)
        for sign, side in zip((1, -1), sides, strict=True):
            logs = [math.log(max(w, 1e-300)) + a * (2 * x - a) / (2 * sigma**2) for a, w in side]
            losses += sign * np.logaddexp.reduce(logs)
        return x[losses <= limits.top], losses[losses <= limits.top]

    def span(self, limits: Limits) -> float:
        """Return the distance of the losses at the ends of the table."""
        _, losses = self._table(limits)
        return float(np.ptp(losses)) if len(losses) else 0.0

    @property
    def least(self) -> Ball:
        """The logarithm of the ratio of the first weights: the least one if its means are least."""
        (_, p), (_, q) = self.numerator[0], self.denominator[0]
        return (p / q).log()

    def ends(self, offset: Ball, step: Ball, limits: Limits) -> list[Ball]:
        """Return the outputs at which the loss passes the nodes, nearly."""
        x, losses = self._table(limits)
        if not len(x):
            return [arb(0)]
        start, width = float(offset.mid()), float(step.mid())
        low, high = (losses[k] - start for k in (0, -1))
        nodes = np.arange(math.ceil(low / width), math.floor(high / width) + 1)
        found = np.interp(start + nodes * width, np.maximum.accumulate(losses), x)
        return [arb(at) for at in np.unique([x[0], *found, x[-1]]).tolist()]

    def masses(self, ends: Sequence[Ball]) -> list[tuple[Ball, Ball]]:
        """Return the masses under Q and P below the first end, between ends, beyond the last."""
        sides = []
        for mixture in (self.denominator, self.numerator):
            total = [arb(0)] * (len(ends) + 1)
            for mean, weight in mixture:
                shares = self._shares([(x - mean) / self.scale for x in ends])
                total = [a + weight * b for a, b in zip(total, shares, strict=True)]
            sides.append(total)
        return list(zip(*sides, strict=True))

    @staticmethod
    def _shares(ends: list[Ball]) -> list[Ball]:
        """Return the shares of one normal law, as differences of the smaller tails."""
        inner = ((z > 0, (z if z > 0 else -z).erfc() / 2) for z in ends)
        tails = pairwise([(False, arb(0)), *inner, (True, arb(0))])
        return [
            a - b if left_is_right else 1 - a - b if is_right else b - a
            for (left_is_right, a), (is_right, b) in tails
        ]

    def outcomes(self, step: Ball, limits: Limits, above: bool) -> Outcomes:
        """Return the intervals between the ends."""
        beyond = self.beyond if above else arb(0)
        ends, log = self.ends(self.least, step, limits), (-beyond).log1p()
        losses = [None, *(self.loss(x) + log for x in ends), None]
        both = zip(self.masses(ends), pairwise(losses), strict=True)
        *cells, (q, p, largest, _) = [(q, (1 - beyond) * p, *logs) for (q, p), logs in both]
        return [*cells, (q, p + beyond, largest, None)], self.least + log


class _FixedBatch(Pair):
    """The Gaussian mechanism on a batch without replacement, where one record is replaced.

    Its pair has the losses of the sampled pair where they are positive, their mirror image, and an
    atom at 0. The sampled pair's loss is positive above the middle of its means.
    """

    work_of_cell = 2 * 48

    def __init__(self, line: Line) -> None:
        (_, rest), _ = line.numerator
        self.line = line
        self.line.floor = 0.5
        self.atom = rest * (1 / (line.sigma * arb(8).sqrt())).erf()

    def span(self, limits: Limits) -> float:
        """Return twice the distance from 0."""
        return 2 * self.line.span(limits)

    def outcomes(self, step: Ball, limits: Limits, above: bool) -> Outcomes:
        """Return the intervals on either side of 0."""
        half, zero = arb(1) / 2, arb(0)
        ends = [half, *(x for x in self.line.ends(zero, step, limits) if x > half)]
        losses = [zero, *(self.line.loss(x) for x in ends[1:]), None]
        masses = self.line.masses(ends)[1:]
        right = [(*both, *log) for both, log in zip(masses, pairwise(losses), strict=True)]
        left = [(p, q, None if v is None else -v, -u) for q, p, u, v in reversed(right)]
        return [*left, (self.atom, self.atom, zero, zero), *right], zero


class _Laplace(Pair):
    """Laplace noise: losses with a density on (-a, a), a = 1 / scale, and an atom at either end."""

    def __init__(self, loss: Laplace) -> None:
        self.a = 1 / arb(loss.scale)
        self.spacing = 2 * self.a

    def span(self, limits: Limits) -> float:
        """Return the distance of the two atoms."""
        return float(self.spacing.mid())

    def outcomes(self, step: Ball, limits: Limits, above: bool) -> Outcomes:
        """Return the atoms, and cells between the nodes."""
        a, half = self.a, arb(1) / 2
        count = max(round(float((2 * a / step).mid())), 1)
        ends = [-a + k * step for k in range(count)] + [a]
        inner: list[Cell] = []
        for u, v in pairwise(ends):
            # Densities under P and Q are exp((+-l - a) / 2) / 4.
            width = ((v - u) / 2).expm1() / 2
            inner.append((((-v - a) / 2).exp() * width, ((u - a) / 2).exp() * width, u, v))
        (_, low, high, _), _ = points([(-a, half), (a, half * (-a).exp())])
        return [low, *inner, high], -a


class _OfPoints(Pair):
    """A mechanism with finitely many outcomes, with ratios at equal distances."""

    def __init__(self, offset: Ball, spacing: Ball, masses: Sequence[Ball]) -> None:
        self.offset, self.spacing, self.masses = offset, spacing, masses

    def span(self, limits: Limits) -> float:
        """Return the distance of the extreme ratios."""
        return float(self.spacing.mid()) * (self.cells(limits) - 1)

    def cells(self, limits: Limits) -> float:
        """Return the number of outcomes."""
        return len(self.masses)

    def outcomes(self, step: Ball, limits: Limits, above: bool) -> Outcomes:
        """Return all outcomes."""
        return points((self.offset + k * self.spacing, q) for k, q in enumerate(self.masses))


def _discrete_laplace(loss: LatticeLoss) -> Pair:
    """Discrete Laplace noise of parameter a, or two values -a and a: every mass follows from a."""
    s = len(loss.multiples) - 1
    if loss.multiples != tuple(range(-s, s + 1, 2)) or loss.offset != 0:
        raise UnsupportedEvent(f"No certificate covers {loss!r}.")
    a = arb(loss.unit)
    tail = 1 / (1 + (-a).exp())
    inner = [(a / 2).tanh() * (-a * x).exp() for x in range(1, s)]
    reference = [tail, *inner, tail * (-a * s).exp()]
    return _OfPoints(-s * a, 2 * a, reference)


def _response(loss: ResponseLoss) -> Pair:
    """Randomized response: a loss with two values, or with v, 0 and -v."""
    p, k = arb(loss.noise_parameter), arb(loss.num_buckets)
    own, other = 1 - p + p / k, p / k
    if loss.blank:
        # Masses under P and Q: of all other answers together, and of a record's own answer.
        pairs = [((k - 1) * other, (k - 1) / k), (own, 1 / k)]
        low, high = ((a / b).log() for a, b in pairs)
        return _OfPoints(low, high - low, [q for _, q in pairs])
    v = (own / other).log()
    return _OfPoints(-v, v, [own, (k - 2) * other, other])


class _DiscreteGaussian(_OfPoints):
    """Discrete Gaussian noise; outputs farther than the reach lose their ratios."""

    def __init__(self, loss: DiscreteGaussian) -> None:
        self.sigma, self.sensitivity = loss.sigma, loss.sensitivity
        self.variance = arb(loss.sigma) ** 2
        self.spacing = arb(self.sensitivity) / self.variance

    def _reach(self, limits: Limits) -> int:
        return math.ceil(min(self.sigma * math.sqrt(2 * limits.nats), MAX_NODES_OF_LAW)) + 1

    def cells(self, limits: Limits) -> float:
        """Return the number of outputs that are distinguished."""
        return 2 * self._reach(limits) + self.sensitivity + 1

    def outcomes(self, step: Ball, limits: Limits, above: bool) -> Outcomes:
        """Return all outputs within the reach of the noise of either record."""
        s, variance, own = self.sensitivity, self.variance, self.spacing
        reach = self._reach(limits)
        outputs = range(-reach, s + reach + 1)
        weights = [(-arb(x * x) / (2 * variance)).exp() for x in outputs]
        near, far = (_theta_tail(end, variance) for end in (reach + 1, reach + s + 1))
        whole = sum(weights, near + far)
        near, far = near / whole, far / whole
        places = ((x - arb(s) / 2) * own for x in outputs)
        masses = (weight / whole for weight in weights)
        return points(zip(places, masses, strict=True), (near, far), (far, near))


def _theta_tail(x: int, variance: Ball) -> Ball:
    """Enclose the sum of exp(-k^2 / (2 variance)) over whole numbers k >= x > 0.

    The sum is at least its first term, at most a geometric series.
    """
    first = (-arb(x * x) / (2 * variance)).exp()
    return first * arb(0.5, 0.5) / (1 - (-arb(x) / variance).exp())


@singledispatch
def pair_of(loss: PrivacyLoss) -> Pair:
    """Return a loss in ball arithmetic, at the precision of python-flint's context.

    Raises
    ------
    UnsupportedEvent
        If no certificate covers the loss.
    """
    raise UnsupportedEvent(f"No certificate covers {loss!r}.")


pair_of.register(Laplace)(_Laplace)
pair_of.register(LatticeLoss)(_discrete_laplace)
pair_of.register(ResponseLoss)(_response)
pair_of.register(DiscreteGaussian)(_DiscreteGaussian)


@pair_of.register
def _(loss: Gaussian) -> Pair:
    if loss.below is not None:
        # The Gaussian of an epoch with so little noise proves an upper end only.
        raise UnsupportedEvent(
            "No certificate covers random allocation with so little noise, got noise_multiplier="
            f"{loss.noise_multiplier!r}: certify a Gaussian for each epoch, which costs no less."
        )
    zero, one = arb(0), arb(1)
    return Line(((one, one),), ((zero, one),), arb(loss.noise_multiplier))


@pair_of.register(SampledGaussian)
@pair_of.register(FixedBatchGaussian)
def _(loss: Any) -> Pair:
    """Return the pair of a sample that holds the record, or of others."""
    q, zero, one = arb(loss.sampling_probability), arb(0), arb(1)
    line = Line(((zero, 1 - q), (one, q)), ((zero, one),), arb(loss.noise_multiplier))
    return _FixedBatch(line) if isinstance(loss, FixedBatchGaussian) else line


@pair_of.register
def _(loss: GaussianMixtures) -> Pair:
    """Return the pair of two mixtures; the weight of the least mean completes each sum to 1."""

    def mixture(side: Sequence[tuple[float, float]]) -> Mixture:
        least = least_mean(side)
        others = [(arb(m), arb(w)) for m, w in side if m != least]
        return ((arb(least), 1 - sum((w for _, w in others), arb(0))), *others)

    sigma = arb(loss.noise_multiplier)
    return Line(mixture(loss.numerator), mixture(loss.denominator), sigma)


def least_mean(side: Sequence[tuple[float, float]]) -> float:
    """Return the mean of a mixture that is nearest to 0."""
    return min((mean for mean, _ in side), key=abs)


def oriented(loss: Any) -> tuple[PrivacyLoss, bool | None]:
    """Return the loss of a record that is removed, and whether it is the one given.

    None stands for a loss that is the same in both directions.
    """
    if isinstance(loss, ResponseLoss) and loss.blank:
        return replace(loss, blank="Q"), loss.blank == "Q"
    way = {"remove": True, "add": False}.get(getattr(loss, "direction", ""))
    if isinstance(loss, GaussianMixtures) and len(loss.numerator) != len(loss.denominator):
        way = len(loss.denominator) < len(loss.numerator)
    return (loss.opposite if way is False else loss), way
