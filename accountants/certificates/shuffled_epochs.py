r"""Shuffled epochs in ball arithmetic: a theorem from above, an attack from below.

Let a record's contribution become 0 while it keeps its place among T batches of an epoch, t = 1 /
sigma, and alpha be any number in (0, 1). E epochs have delta(epsilon) at most (docs/accountants.md,
"Shuffled epochs")

    E delta of random allocation to C_e + 1 batches, C_e ~ Bin(T - 1, alpha) independent,
    + (1 + exp(epsilon)) E (T - 1) alpha eta,
    eta = Phi(t / 2 - x / t) - exp(x) Phi(-t / 2 - x / t),   x = log(1 / alpha),

and at most that of E Gaussian answers, by which the batches are known. Fewer
clones C than a first number are counted as a failure, of which there are E; others are counted as
the least of their group, since allocation to more batches costs no more.

>>> from dpcal.accountants import events
>>> run = events.ShuffledEpochsDpEvent(noise_multiplier=10.0, batches=1000, epochs=20)
>>> [direction.name for direction in directions_of(run, "replace-special").directions]
['remove', 'add']
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from dpcal import _validate
from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.allocation_transform import AllocationTransform
from dpcal.accountants.certificates.balls import Ball, power
from dpcal.accountants.certificates.discretization import Law, as_one_value, law_of
from dpcal.accountants.certificates.enclosed_losses import (
    EnclosedGaussian,
    enclosed,
    other_direction,
    points_of,
)
from dpcal.accountants.certificates.gaussian_pairs import GaussianPair
from dpcal.accountants.certificates.proofs import Clones, Grid, Rays, Scores, Substitute
from dpcal.accountants.certificates.transforms import FiniteTransform, Transform
from dpcal.accountants.directions import Composition, Direction
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["Shuffled", "directions_of"]

# Probability of an interval, under either law, below which an attack passes it over.
_LEAST = 1e-30
# Groups of outcomes in one standard deviation of their loss, of which they hide a ten-thousandth.
_GROUPS = 32


@dataclass(frozen=True)
class Shuffled(Gaussian):
    """A shuffled epoch, of which no dominating pair is known but that of known batches: this one.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise, over the distance by which the record moves its batch.
    batches
        Number T >= 1 of batches of the largest size of an epoch.
    answers
        Number of all batches, with a short one.
    direction
        ``"remove"`` or ``"add"``.
    replacing
        Whether the record is replaced by another one. If not, its contribution becomes 0.
    """

    batches: int
    answers: int
    direction: str
    replacing: bool


def directions_of(run: DpEvent, relation: str) -> Composition:
    """Return both directions of a run over shuffled epochs, the losses being those of epochs.

    A record that is added or removed moves others, which no theorem covers.
    """
    sigma = _validate.noise(noise_multiplier=run.noise_multiplier)
    T, E = _validate.count(batches=run.batches), _validate.count(epochs=run.epochs)
    if relation == "add-or-remove-one":
        raise UnsupportedEvent(
            f"No theorem here prices {run!r} under neighboring relation {relation!r}. A record "
            "that is added or removed moves others to other batches: use 'replace-special' or "
            "'replace-one'."
        )
    replacing = relation == "replace-one"
    sigma = sigma / 2 if replacing else sigma
    answers = T + bool(run.remainder)
    losses = [Shuffled(sigma, T, answers, name, replacing) for name in ("remove", "add")]
    return Composition(relation, tuple(Direction(x.direction, ((x, E),)) for x in losses))


class _Shuffled(EnclosedGaussian):
    """An epoch of a shuffle: substitutes bound it from one side each."""

    def __init__(self, loss: Shuffled) -> None:
        super().__init__(loss)
        self.loss = loss
        self.substitutes = (
            (type(None), Rays) if loss.replacing else (type(None), Grid, Clones, Scores)
        )

    def fits(self, item: Substitute) -> bool:
        """Return whether a substitute is of these kinds, and has at most T batches."""
        if isinstance(item, Clones) and item.numbers[-1] > self.loss.batches:
            return False
        return super().fits(item)

    def one_sided(self, item: Substitute) -> bool:
        """Return True: no substitute bounds a shuffle from both sides."""
        return True

    @property
    def opposite(self) -> EnclosedGaussian:
        """The epoch in the other direction."""
        return _Shuffled(replace(self.loss, direction=other_direction(self.loss.direction)))

    def entries(self, rays: Rays) -> float:
        """Return the number of entries of a table along a ray."""
        return rays.entries(self.loss.noise_multiplier)

    def transform(self, substitute: Substitute, *, dominating: bool) -> Transform:
        """Return that of what dominates an epoch, or of what an epoch dominates; or of no loss."""
        if dominating and isinstance(substitute, Clones):
            return self._of_clones(substitute)
        if not dominating and isinstance(substitute, Rays):
            # Others contribute -1, and so does the substitute.
            return AllocationTransform(self._allocation(self.loss.answers), substitute)
        if not dominating and isinstance(substitute, Scores):
            return FiniteTransform(self._law_of_sum(substitute))
        if isinstance(substitute, Grid) or (dominating and substitute is None):
            return super().transform(substitute, dominating=dominating)
        return FiniteTransform(_no_loss())

    def _law(self, grid: Grid, dominating: bool) -> Law:
        """Return a law above that of known batches, or that of the largest answer's interval."""
        if dominating:
            return super()._law(grid, dominating)
        if self.loss.replacing:
            return _no_loss()
        ends = [None, *points_of(grid), None]
        cells = (self._masses(x, y) for x, y in pairwise(ends))
        return law_of(as_one_value(p, q) for p, q in cells if p > _LEAST and q > _LEAST)

    def _law_of_sum(self, item: Scores) -> Law:
        """Return the law of the sum of an epoch's scores, modulo a number of places."""
        arb, places = balls.arb, item.places
        a, one, others = 1 / self.pair.sigma, arb(1), self.loss.answers - 1
        moved = GaussianPair(((2 * a, one),), ((a, one),), one)
        alone = GaussianPair(((arb(0), one),), ((arb(0), one),), one)
        laws = [[arb(0)] * places for _ in range(3)]
        ends = points_of(item.answers)
        for low, high in pairwise([None, *ends, None]):
            place = _score(low, high, a, others, item.unit) % places
            masses = (alone.masses(low, high)[0], *moved.masses(low, high))
            for law, mass in zip(laws, masses, strict=True):
                law[place] += mass
        none = [arb(1)] + [arb(0)] * (places - 1)
        rest = power(laws[0], others, _cyclic_product) if others else none
        present, blank = (_cyclic_product(rest, law) for law in laws[1:])
        pairs = zip(present, blank, strict=True)
        if self.loss.direction == "add":
            pairs = zip(blank, present, strict=True)
        return _gathered([(p, q) for p, q in pairs if p > _LEAST and q > _LEAST])

    def tails(self, threshold: float) -> tuple[Ball, Ball]:
        """Enclose the probabilities of a largest answer above a threshold, or below it."""
        if self.loss.replacing:
            return balls.arb(0), balls.arb(0)
        at = balls.arb(threshold)
        return self._masses(at, None) if self.loss.direction == "remove" else self._masses(None, at)

    def _masses(self, low: Ball | None, high: Ball | None) -> tuple[Ball, Ball]:
        """Enclose probabilities of an interval of the largest answer, if all others contribute -1.

        Answers count from what an epoch's others sum to: that with the record is higher by 2, or by
        1 if it is blank.
        """
        present, blank = (self._mass_of_largest(shift, low, high) for shift in (2, 1))
        return (present, blank) if self.loss.direction == "remove" else (blank, present)

    def _mass_of_largest(self, shift: int, low: Ball | None, high: Ball | None) -> Ball:
        """Return the probability of an interval if the record's answer is higher by ``shift``."""
        scale, others = self.pair.sigma * balls.arb(2).sqrt(), self.loss.answers - 1

        def log_below(x: Ball) -> Ball:
            return _log_normal((x - shift) / scale) + others * _log_normal(x / scale)

        left = None if low is None else log_below(low)
        right = balls.arb(0) if high is None else log_below(high)
        if left is None:
            return right.exp()
        # The difference of smaller terms loses fewer digits.
        return right.exp() - left.exp() if right < -1 else right.expm1() - left.expm1()

    def _allocation(self, batches: int) -> Allocation:
        return Allocation(self.loss.noise_multiplier, batches, self.loss.direction)

    def _of_clones(self, item: Clones) -> Transform:
        """Return the transform of allocation to a random number of batches."""
        chances, _ = _chances(self.loss.batches - 1, item)
        return AllocationTransform(
            self._allocation(item.numbers[0]),
            item.rays,
            list(zip(item.numbers, chances, strict=True)),
        )

    def slack(self, item: Substitute, times: int, epsilon: Ball) -> Ball:
        """Return the terms of the theorem beside delta of an allocation, or what is not bounded."""
        if isinstance(item, Rays | Scores):
            return balls.arb(1)
        if not isinstance(item, Clones):
            return balls.arb(0)
        alpha, t = balls.arb(item.probability), 1 / self.pair.sigma
        x, root = -alpha.log(), balls.arb(2).sqrt()
        eta = (((x / t - t / 2) / root).erfc() - ((x / t + t / 2) / root).erfc() / alpha) / 2
        _, few = _chances(self.loss.batches - 1, item)
        moved = (1 + epsilon.exp()) * (self.loss.batches - 1) * alpha * eta
        return times * (few + moved)


def _no_loss() -> Law:
    """Return the law of a loss of 0."""
    return Law([balls.arb(0)], [balls.arb(1)], balls.arb(0))


def _log_normal(x: Ball) -> Ball:
    """Return the log of the standard normal distribution function at sqrt(2) x."""
    return ((-x).erfc() / 2).log() if x < 0 else (-x.erfc() / 2).log1p()


def _gathered(outcomes: list[tuple[Ball, Ball]]) -> Law:
    """Return the law of reporting only in which of equal intervals the loss of an outcome is."""
    losses = [float((p / q).log().mid()) for p, q in outcomes]
    weights = [float(p.mid()) for p, _ in outcomes]
    whole = math.fsum(weights)
    mean = math.fsum(x * y for x, y in zip(losses, weights, strict=True)) / whole
    square = math.fsum(y * (x - mean) ** 2 for x, y in zip(losses, weights, strict=True)) / whole
    groups: dict[int, tuple[Ball, Ball]] = {}
    for loss, (p, q) in zip(losses, outcomes, strict=True):
        place = math.floor((loss - mean) * _GROUPS / math.sqrt(square)) if square > 0 else 0
        known = groups.get(place, (balls.arb(0), balls.arb(0)))
        groups[place] = known[0] + p, known[1] + q
    return law_of(as_one_value(p, q) for p, q in groups.values())


def _score(low: Ball | None, high: Ball | None, a: Ball, others: int, unit: float) -> int:
    """Return the whole score of answers of an interval.

    It is about the log of the ratio in which an answer moves, to first order, the likelihoods with
    and without the record: of T laws of answers, of which one is higher by 2 a, and by a.
    """
    inner = [end for end in (low, high) if end is not None]
    x = sum(inner, balls.arb(0)) / max(len(inner), 1)
    present, blank = (2 * a * x - 2 * a * a).exp(), (a * x - a * a / 2).exp()
    return math.floor(float((((others + present) / (others + blank)).log() / unit).mid()))


def _cyclic_product(a: list[Ball], b: list[Ball]) -> list[Ball]:
    """Return the convolution of two laws modulo their length."""
    product = (balls.arb_poly(a) * balls.arb_poly(b)).coeffs()
    product += [balls.arb(0)] * (2 * len(a) - len(product))
    return [x + y for x, y in zip(product[: len(a)], product[len(a) :], strict=True)]


def _chances(others: int, item: Clones) -> tuple[list[Ball], Ball]:
    """Return masses of the numbers of clones, and a bound on the chance of fewer than the first.

    The last number has all mass that other numbers have not, with that of fewer than the first.
    """
    arb = balls.arb
    alpha, first = arb(item.probability), item.numbers[0] - 1
    odds = alpha / (1 - alpha)
    log_term = arb(others + 1).lgamma() - arb(first + 1).lgamma() - arb(others - first + 1).lgamma()
    term = (log_term + first * alpha.log() + (others - first) * (1 - alpha).log()).exp()
    few, place = arb(0), first
    if first > 0:
        # The chances of fewer and fewer clones are at most a geometric series.
        ratio = first / ((others - first + 1) * odds)
        few = term * ratio / (1 - ratio) if ratio < 1 else arb(1)
    chances, rest = [], arb(1)
    for _, end in pairwise(item.numbers):
        chance = arb(0)
        while place < end - 1:
            chance += term
            term *= (others - place) * odds / (place + 1)
            place += 1
        chances.append(chance)
        rest -= chance
    return [*chances, rest], few


enclosed.register(Shuffled, lambda loss, rounded=False: _Shuffled(loss))
