"""Privacy losses in ball arithmetic: their laws, moments and large values, family by family.

:func:`enclosed` gives for each loss that certificates cover an :class:`EnclosedLoss`, from the
loss's parameters alone. The float tables of the loss are not used.

>>> from dpcal.accountants.certificates import balls
>>> from dpcal.accountants.certificates.proofs import Grid
>>> from dpcal.accountants.losses.laplace import Laplace
>>> with balls.workprec(96):
...     law = enclosed(Laplace(2.0)).law(Grid(0.1, 0, 8), dominating=True)
...     exact = (2 * (balls.arb(1) / 2).exp() + (-balls.arb(1)).exp()) / 3
...     moment = sum(mass * value.exp() for value, mass in zip(law.values, law.masses))
...     moment > exact, moment < exact * 1.001, law.infinite == 0
(True, True, True)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import singledispatch
from itertools import pairwise
from typing import Any, ClassVar

from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.allocation_transform import (
    AllocationTransform,
    UnequalTransform,
)
from dpcal.accountants.certificates.balls import Ball, probability
from dpcal.accountants.certificates.convex_order import laws_of_ratio
from dpcal.accountants.certificates.discretization import (
    Law,
    as_one_value,
    at_both_ends,
    law_of,
    law_of_pair,
    theta_tail,
)
from dpcal.accountants.certificates.gaussian_pairs import (
    GaussianPair,
    normal_distance,
    with_exact_sum,
)
from dpcal.accountants.certificates.proofs import (
    Grid,
    OrderProof,
    Rays,
    ShiftedLattice,
    Substitute,
)
from dpcal.accountants.certificates.transforms import (
    FiniteTransform,
    GaussianTransform,
    SampledGaussianTransform,
    Transform,
)
from dpcal.accountants.losses.allocation import Allocation, KnownBatch, UnequalAllocation
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import LatticeLoss, ResponseLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["EnclosedGaussian", "EnclosedLoss", "enclosed", "other_direction", "points_of"]


class EnclosedLoss(ABC):
    """One direction of a dominating pair (P, Q) in ball arithmetic."""

    substitutes: tuple[type[Any], ...] = (Grid,)
    """Kinds of substitutes that may replace the loss in sums over its transform."""
    equally_spaced: ClassVar[bool] = False
    """Whether the values of the loss are equally spaced, so that its law can be convolved."""
    components: int = 0
    """Number of Gaussians of the pair, in both mixtures together."""

    @abstractmethod
    def values(self, grid: Grid) -> int:
        """Return the largest number of values of a law on this grid."""

    def entries(self, rays: Rays) -> float:
        """Return the number of entries of a table along a ray."""
        return math.inf

    @abstractmethod
    def _law(self, grid: Grid, dominating: bool) -> Law:
        """Return the finite law on one side of the loss."""

    def law(self, grid: Grid, *, dominating: bool) -> Law:
        """Return a finite law, by intervals of outputs, that dominates the loss or is dominated."""
        laws: dict[tuple[Grid, bool], Law] = self.__dict__.setdefault("_laws", {})
        if (grid, dominating) not in laws:
            laws[grid, dominating] = self._law(grid, dominating)
        return laws[grid, dominating]

    def transform(self, substitute: Substitute, *, dominating: bool) -> Transform:
        """Return the transform of the loss, or of the finite law on a grid that replaces it."""
        if isinstance(substitute, Grid):
            return FiniteTransform(self.law(substitute, dominating=dominating))
        if not isinstance(substitute, self.substitutes):
            raise ValueError(f"a grid must be given for this loss, got {substitute!r}.")
        return self._own_transform(substitute)

    def _own_transform(self, substitute: Any) -> Transform:
        """Return the transform of the loss itself, summed on a substitute that is not a grid."""
        raise NotImplementedError

    def fits(self, item: Substitute) -> bool:
        """Return whether a substitute may replace the loss."""
        return isinstance(item, self.substitutes)

    def one_sided(self, item: Substitute) -> bool:
        """Return whether the transform of a substitute bounds the loss from one side only."""
        return isinstance(item, Grid)

    def slack(self, item: Substitute, times: int, epsilon: Ball) -> Ball:
        """Return what delta of a substitute, used several times, may lie below that of the loss."""
        return balls.arb(0)

    @property
    def opposite(self) -> EnclosedLoss | None:
        """The loss of the other direction, if no output has an infinite loss; None if unknown."""
        return None

    def by_convex_order(
        self, proof: OrderProof, times: int, epsilon: Ball, bits: int
    ) -> tuple[Ball, Ball]:
        """Return bounds on delta of several uses, by laws in convex order; 0 and 1 if unknown."""
        return balls.arb(0), balls.arb(1)

    @property
    def largest(self) -> Ball:
        """Supremum of the loss."""
        return balls.arb("inf")

    def moment_bound(self, c: Ball) -> Ball:
        """Return a bound on M(c) by convexity; infinity if no such bound is known."""
        return balls.arb("inf")

    @property
    def distance(self) -> Ball:
        """Bound on the total variation distance of P and Q."""
        return balls.arb(1)

    @abstractmethod
    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        """Enclose the probabilities under P and Q of a set of outputs with large losses."""


def other_direction(name: str) -> str:
    """Return the direction that is not the named one."""
    return "add" if name == "remove" else "remove"


def points_of(grid: Grid) -> list[Ball]:
    """Return the ends of all intervals."""
    return [balls.arb(j) * balls.arb(grid.step) for j in range(grid.first, grid.last + 1)]


# -- Gaussian mechanisms


class _OnLine(EnclosedLoss):
    """A loss that grows along the outputs of a pair of Gaussian mixtures."""

    def __init__(self, pair: GaussianPair) -> None:
        self.pair = pair
        self.components = len(pair.numerator) + len(pair.denominator)

    def values(self, grid: Grid) -> int:
        return grid.points + 2

    def _law(self, grid: Grid, dominating: bool) -> Law:
        return law_of_pair(self.pair, points_of(grid), dominating)

    @property
    def largest(self) -> Ball:
        largest = self.pair.largest_loss
        return balls.arb("inf") if largest is None else largest

    @property
    def distance(self) -> Ball:
        return self.pair.distance

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        return self.pair.masses(balls.arb(threshold), None)


class EnclosedGaussian(_OnLine):
    """The Gaussian mechanism, whose transform has a closed form."""

    substitutes: tuple[type[Any], ...] = (type(None),)

    def __init__(self, loss: Gaussian) -> None:
        one = balls.arb(1)
        self.noise_multiplier = loss.noise_multiplier
        sigma = balls.arb(loss.noise_multiplier)
        super().__init__(GaussianPair(((one, one),), ((balls.arb(0), one),), sigma))

    def _own_transform(self, substitute: Any) -> Transform:
        return GaussianTransform(1 / self.pair.sigma)

    def moment_bound(self, c: Ball) -> Ball:
        """Return M(c)."""
        return ((c * c + c) / (2 * self.pair.sigma**2)).exp()

    @property
    def opposite(self) -> EnclosedLoss:
        """The loss itself."""
        return self

    @property
    def distance(self) -> Ball:
        """The total variation distance of P and Q."""
        return normal_distance(self.noise_multiplier)


class _OfSample(_OnLine):
    """The Gaussian mechanism on a sample that holds the record with probability q, or on others."""

    def __init__(self, loss: Any, removing: bool, rounded: bool) -> None:
        self.loss, self.rounded = loss, rounded
        self.q = chance = probability(loss.sampling_probability, rounded)
        zero, one = balls.arb(0), balls.arb(1)
        sampled = (zero, 1 - chance), (one if removing else -one, chance)
        p, q = (sampled, ((zero, one),)) if removing else (((zero, one),), sampled)
        super().__init__(GaussianPair(p, q, balls.arb(loss.noise_multiplier)))

    @property
    def distance(self) -> Ball:
        return normal_distance(self.loss.noise_multiplier) * self.q


class _SampledGaussian(_OfSample):
    """The Gaussian mechanism on a Poisson sample."""

    substitutes = (ShiftedLattice, Grid)

    def __init__(self, loss: SampledGaussian, rounded: bool = False) -> None:
        super().__init__(loss, loss.direction == "remove", rounded)

    def _own_transform(self, substitute: Any) -> Transform:
        return SampledGaussianTransform(self.loss, substitute, self.rounded)

    @property
    def opposite(self) -> EnclosedLoss:
        return type(self)(self.loss.opposite, self.rounded)

    def moment_bound(self, c: Ball) -> Ball:
        growth = ((c * c + c) / (2 * self.pair.sigma**2)).exp()
        if self.loss.direction == "add":
            # The loss is at most -log(1 - q).
            growth = balls.arb.min(growth, (1 + ((1 - self.q) ** -c - 1) / self.q))
        return 1 - self.q + self.q * growth


class _Mixtures(_OnLine):
    """One mixture of Gaussians against another."""

    def __init__(self, loss: GaussianMixtures, rounded: bool = False) -> None:
        numerator = with_exact_sum(loss.numerator, rounded)
        denominator = with_exact_sum(loss.denominator, rounded)
        super().__init__(GaussianPair(numerator, denominator, balls.arb(loss.noise_multiplier)))


class _FixedBatch(_OfSample):
    """The Gaussian mechanism on a batch without replacement.

    Its pair has the losses of the sampled pair where they are positive, their mirror image, and an
    atom at 0. The sampled pair's loss is positive above the middle of its means.
    """

    def __init__(self, loss: FixedBatchGaussian, rounded: bool = False) -> None:
        super().__init__(loss, removing=True, rounded=rounded)
        self.middle = balls.arb(0.5)
        self.atom = (1 - self.q) * (1 / (self.pair.sigma * balls.arb(8).sqrt())).erf()

    def values(self, grid: Grid) -> int:
        return 4 * grid.points + 4

    def _law(self, grid: Grid, dominating: bool) -> Law:
        points = [x for x in points_of(grid) if x > self.middle]
        return self._above(points) if dominating else self._below(points)

    def _above(self, points: list[Ball]) -> Law:
        ends = [self.middle, *points]
        losses = [balls.arb(0), *(self.pair.loss(x) for x in points)]
        atoms = [(balls.arb(0), self.atom)]
        for (x, y), (u, v) in zip(pairwise(ends), pairwise(losses), strict=True):
            p, q = self.pair.masses(x, y)
            atoms += [*at_both_ends(p, q, u, v), *at_both_ends(q, p, -v, -u)]
        p, q = self.pair.masses(ends[-1], None)
        # The losses of the mirror image beyond the last end are at most the loss there.
        return law_of([*atoms, (-losses[-1], q)], infinite=p)

    def _below(self, points: list[Ball]) -> Law:
        atoms = [(balls.arb(0), self.atom)]
        for x, y in pairwise([self.middle, *points, None]):
            p, q = self.pair.masses(x, y)
            atoms += [as_one_value(p, q), as_one_value(q, p)]
        return law_of(atoms)

    def moment_bound(self, c: Ball) -> Ball:
        growth = ((c * c + c) / (2 * self.pair.sigma**2)).exp()
        # The powers of the mirror image are at most 1 at negative losses.
        growth += (1 - normal_distance(self.loss.noise_multiplier)) / 2
        return 1 - self.q + self.q * growth

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        # Outputs of the sampled pair below the middle have no positive loss.
        return self.pair.masses(balls.arb.max(balls.arb(threshold), self.middle), None)


class _UnequalAllocation(EnclosedLoss):
    """An epoch of random allocation, summed along a ray, which has order 0 where batches differ."""

    substitutes = (Rays,)
    along_rays: ClassVar[type[AllocationTransform]] = UnequalTransform

    def __init__(self, loss: Allocation) -> None:
        self.loss = loss
        self.variance = 1 / balls.arb(loss.noise_multiplier) ** 2

    def fits(self, item: Substitute) -> bool:
        return super().fits(item) and isinstance(item, Rays) and item.order == 0

    def values(self, grid: Grid) -> int:
        return 1

    def entries(self, rays: Rays) -> float:
        return sum(rays.entries(group.noise_multiplier) for group in self.loss.groups)

    def _law(self, grid: Grid, dominating: bool) -> Law:
        """Return an infinite loss above, and no loss below."""
        zero, one = balls.arb(0), balls.arb(1)
        return Law([], [], one) if dominating else Law([zero], [one], zero)

    def _own_transform(self, substitute: Any) -> Transform:
        return self.along_rays(self.loss, substitute)

    @property
    def opposite(self) -> EnclosedLoss:
        return type(self)(replace(self.loss, direction=other_direction(self.loss.direction)))

    def moment_bound(self, c: Ball) -> Ball:
        """Return that of a single answer with the least noise, which dominates."""
        return ((c * c + c) * self.variance / 2).exp()

    @property
    def distance(self) -> Ball:
        """Return that of a Gaussian: whoever is told the batch sees no more."""
        return normal_distance(self.loss.noise_multiplier)

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        """Return the probabilities of no output at all."""
        return balls.arb(0), balls.arb(0)


class _Allocation(_UnequalAllocation):
    """An epoch of alike batches, whose rays may have any order."""

    along_rays = AllocationTransform

    def fits(self, item: Substitute) -> bool:
        return isinstance(item, Rays)

    def by_convex_order(
        self, proof: OrderProof, times: int, epsilon: Ball, bits: int
    ) -> tuple[Ball, Ball]:
        laws = laws_of_ratio(self.loss.noise_multiplier, self.loss.batches, times, proof, bits)
        return laws.delta(epsilon, self.loss.direction)

    def moment_bound(self, c: Ball) -> Ball:
        """Return that of a single batch, or, when adding, of a mean over its geometric mean."""
        bound = super().moment_bound(c)
        if self.loss.direction == "remove":
            return bound
        return balls.arb.min(bound, ((c + c * c / self.loss.batches) * self.variance / 2).exp())


# -- Laplace and discrete noise


class _Bounded(EnclosedLoss):
    """A loss that is finite, so that its largest value bounds all moments."""

    def moment_bound(self, c: Ball) -> Ball:
        return (c * self.largest).exp()


class _Laplace(_Bounded):
    """Laplace noise: losses with a density on (-a, a), a = 1 / scale, and an atom at either end."""

    def __init__(self, loss: Laplace) -> None:
        self.a = 1 / balls.arb(loss.scale)

    def values(self, grid: Grid) -> int:
        return 2 * max(grid.points, 1) + 2

    def _law(self, grid: Grid, dominating: bool) -> Law:
        # The intervals always cover (-a, a), for any requested number: no mass may be lost.
        count = max(grid.points, 1)
        ends = [self.a * (2 * balls.arb(j) / count - 1) for j in range(count + 1)]
        half = balls.arb(1) / 2
        atoms = [(self.a, half), (-self.a, half * (-self.a).exp())]
        for u, v in pairwise(ends):
            p, q = self._masses(u, v)
            atoms += at_both_ends(p, q, u, v) if dominating else [as_one_value(p, q)]
        return law_of(atoms)

    def _masses(self, u: Ball, v: Ball) -> tuple[Ball, Ball]:
        """Return P and Q of the losses between u < v, of densities exp((+-l - a) / 2) / 4."""
        p = ((u - self.a) / 2).exp() * ((v - u) / 2).expm1() / 2
        q = ((-v - self.a) / 2).exp() * ((v - u) / 2).expm1() / 2
        return p, q

    @property
    def largest(self) -> Ball:
        return self.a

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        """Enclose the probabilities of the largest loss, for every threshold."""
        return balls.arb(1) / 2, (-self.a).exp() / 2


class _DiscreteLaplace(_Bounded):
    """Discrete Laplace noise of parameter a, or two values -a and a: every mass follows from a."""

    equally_spaced = True

    def __init__(self, loss: LatticeLoss) -> None:
        self.sensitivity = s = len(loss.multiples) - 1
        if loss.multiples != tuple(range(-s, s + 1, 2)) or loss.offset != 0:
            raise UnsupportedEvent(f"No certificate covers {loss!r}.")
        self.multiples, self.a = loss.multiples, balls.arb(loss.unit)

    def values(self, grid: Grid) -> int:
        return len(self.multiples)

    def _law(self, grid: Grid, dominating: bool) -> Law:
        a, s = self.a, self.sensitivity
        tail = 1 / (1 + (-a).exp())
        inner = [(a / 2).tanh() * (-a * x).exp() for x in range(1, s)]
        reference = [tail, *inner, tail * (-a * s).exp()]
        values = [multiple * a for multiple in self.multiples]
        return law_of((v, q * v.exp()) for v, q in zip(values, reference, strict=True))

    def law(self, grid: Grid, *, dominating: bool) -> Law:
        """Return the law of the loss itself, which has finitely many values."""
        return super().law(Grid(1.0, 0, 1), dominating=True)

    @property
    def largest(self) -> Ball:
        return self.a * self.multiples[-1]

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        """Enclose the probabilities of the largest value, for every threshold."""
        return self.law(Grid(1.0, 0, 1), dominating=False).last


class _Response(_Bounded):
    """Randomized response: a loss with two values, or with v, 0 and -v."""

    equally_spaced = True

    def __init__(self, loss: ResponseLoss) -> None:
        p, k = balls.arb(loss.noise_parameter), balls.arb(loss.num_buckets)
        own, other = 1 - p + p / k, p / k
        # Pairs of probabilities under P and Q of a record's answer, and of the others together.
        if loss.blank:
            pairs = [((k - 1) * other, (k - 1) / k), (own, 1 / k)]
            self.pairs = [(b, a) for a, b in pairs[::-1]] if loss.blank == "P" else pairs
        else:
            rest = (k - 2) * other
            middle = [(rest, rest)] if loss.num_buckets > 2 else []
            self.pairs = [(other, own), *middle, (own, other)]

    def values(self, grid: Grid) -> int:
        return len(self.pairs)

    def _law(self, grid: Grid, dominating: bool) -> Law:
        return law_of(as_one_value(p, q) for p, q in self.pairs)

    @property
    def largest(self) -> Ball:
        p, q = self.pairs[-1]
        return (p / q).log()

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        """Return the probabilities of the largest value, for every threshold."""
        return self.pairs[-1]


class _DiscreteGaussian(EnclosedLoss):
    """Discrete Gaussian noise; outputs beyond a grid have their losses rounded up or down."""

    equally_spaced = True

    def __init__(self, loss: DiscreteGaussian) -> None:
        self.sensitivity, self.variance = loss.sensitivity, balls.arb(loss.sigma) ** 2

    def values(self, grid: Grid) -> int:
        return grid.points + 1

    def _law(self, grid: Grid, dominating: bool) -> Law:
        s, variance = self.sensitivity, self.variance
        outputs = range(grid.first, grid.last + 1)
        weights = [(-balls.arb((x - s) ** 2) / (2 * variance)).exp() for x in outputs]
        left = theta_tail(1 - grid.first + s, variance)
        right = theta_tail(grid.last + 1 - s, variance)
        whole = sum(weights, balls.arb(0)) + left + right
        masses = [weight / whole for weight in weights]
        values = [balls.arb(s * (2 * x - s)) / (2 * variance) for x in outputs]
        if dominating:
            masses[0] += left / whole
            return Law(values, masses, right / whole)
        masses[-1] += right / whole
        return Law(values, masses, balls.arb(0))

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        """Enclose P of the outputs at least at the threshold, and bound Q from above."""
        grid = Grid(1.0, math.floor(threshold), math.ceil(threshold))
        return self.law(grid, dominating=False).last


# -- from a loss to its enclosure


@singledispatch
def enclosed(loss: PrivacyLoss, rounded: bool = False) -> EnclosedLoss:
    """Return a loss in ball arithmetic, at the precision of python-flint's context.

    ``rounded`` says that its sampling probability or weights are known only up to rounding. Losses
    that no certificate covers raise UnsupportedEvent.
    """
    raise UnsupportedEvent(f"No certificate covers {loss!r}.")


# The parameters of these families are never quotients that were rounded.
enclosed.register(Gaussian, lambda loss, rounded=False: EnclosedGaussian(loss))
enclosed.register(Allocation, lambda loss, rounded=False: _Allocation(loss))
enclosed.register(UnequalAllocation, lambda loss, rounded=False: _UnequalAllocation(loss))
enclosed.register(Laplace, lambda loss, rounded=False: _Laplace(loss))
enclosed.register(LatticeLoss, lambda loss, rounded=False: _DiscreteLaplace(loss))
enclosed.register(ResponseLoss, lambda loss, rounded=False: _Response(loss))
enclosed.register(DiscreteGaussian, lambda loss, rounded=False: _DiscreteGaussian(loss))
enclosed.register(SampledGaussian, _SampledGaussian)
enclosed.register(GaussianMixtures, _Mixtures)
enclosed.register(FixedBatchGaussian, _FixedBatch)


@enclosed.register
def _(loss: KnownBatch, rounded: bool = False) -> EnclosedLoss:
    # Its Gaussian proves an upper end only.
    raise UnsupportedEvent(
        "No certificate covers random allocation with so little noise, got noise_multiplier="
        f"{loss.noise_multiplier!r}: certify a Gaussian for each epoch, which costs no less."
    )
