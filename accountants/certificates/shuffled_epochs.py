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
from dpcal.accountants.certificates.pairs import Line, Outcomes, Pair, ends_of, pair_of
from dpcal.accountants.certificates.proofs import Cells, Clones, Grid, Scores
from dpcal.accountants.directions import Composition, Direction
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["Shuffled", "allocation_of_clones", "directions_of", "slack_of_clones"]


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

    @property
    def opposite(self) -> Shuffled:
        """The epoch in the other direction."""
        return replace(self, direction="add" if self.direction == "remove" else "remove")


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


class _Statistics(Pair):
    """What an epoch tells at least: a statistic of its answers, with the record and with a blank.

    All others contribute -1, and answers count from what they sum to. The statistic is the interval
    of the largest answer, or the sum of whole scores.
    """

    has_upper = False
    kinds = (Grid, Scores)
    work_of_cell = 200

    def __init__(self, loss: Shuffled) -> None:
        self.sigma, self.others = balls.arb(loss.noise_multiplier), loss.answers - 1

    def outcomes(self, cells: Cells, *, above: bool) -> Outcomes:
        rows = self._sums(cells) if isinstance(cells, Scores) else self._intervals(cells)
        return Outcomes(cells=rows)

    # -- the largest answer

    def _intervals(self, cells: Cells) -> list[tuple[Ball, Ball]]:
        ends = [None, *ends_of(cells), None]
        blank, present = (
            [self._mass_of_largest(shift, x, y) for x, y in pairwise(ends)] for shift in (1, 2)
        )
        return list(zip(blank, present, strict=True))

    def _mass_of_largest(self, shift: int, low: Ball | None, high: Ball | None) -> Ball:
        """Return the probability of an interval if the record's answer is higher by ``shift``."""
        scale = self.sigma * balls.arb(2).sqrt()

        def log_below(x: Ball) -> Ball:
            return _log_normal((x - shift) / scale) + self.others * _log_normal(x / scale)

        left = None if low is None else log_below(low)
        right = balls.arb(0) if high is None else log_below(high)
        if left is None:
            return right.exp()
        # The difference of smaller terms loses fewer digits.
        return right.exp() - left.exp() if right < -1 else right.expm1() - left.expm1()

    # -- the sum of scores

    def _sums(self, item: Scores) -> list[tuple[Ball, Ball]]:
        """Return masses of the sum of an epoch's scores, modulo a number of places, by its size."""
        places, t = item.places, 1 / self.sigma
        normal, ends = (
            Line(((balls.arb(0), balls.arb(1)),), (), balls.arb(1)),
            ends_of(item.answers),
        )
        laws = [[balls.arb(0)] * places for _ in range(3)]
        scores = [
            _score(low, high, t, self.others, item.unit) % places
            for low, high in pairwise([None, *ends, None])
        ]
        for law, shift in zip(laws, (0, 1, 2), strict=True):
            masses = normal.masses([x - shift * t for x in ends])
            for place, (_, mass) in zip(scores, masses, strict=True):
                law[place] += mass
        none = [balls.arb(1)] + [balls.arb(0)] * (places - 1)
        rest = power(laws[0], self.others, _cyclic_product) if self.others else none
        blank, present = (_cyclic_product(rest, law) for law in laws[1:])
        pairs = zip(blank, present, strict=True)
        return sorted(pairs, key=lambda both: float((both[1] / both[0]).mid()))


def _statistics(loss: Shuffled, rounded: bool = False, above: bool = False) -> Pair:
    if loss.replacing:
        raise UnsupportedEvent("No statistic of a shuffle with replaced records is known.")
    return _Statistics(loss)


pair_of.register(Shuffled, _statistics)


def allocation_of_clones(loss: Shuffled, item: Clones) -> AllocationTransform:
    """Return the transform of allocation to a random number of batches."""
    chances, _ = _chances(loss.batches - 1, item)
    epoch = Allocation(loss.noise_multiplier, item.numbers[0], loss.direction)
    return AllocationTransform(epoch, item.rays, list(zip(item.numbers, chances, strict=True)))


def slack_of_clones(loss: Shuffled, item: Clones, times: int, epsilon: Ball) -> Ball:
    """Return the terms of the theorem beside delta of an allocation."""
    alpha, t = balls.arb(item.probability), 1 / balls.arb(loss.noise_multiplier)
    x, root = -alpha.log(), balls.arb(2).sqrt()
    eta = (((x / t - t / 2) / root).erfc() - ((x / t + t / 2) / root).erfc() / alpha) / 2
    _, few = _chances(loss.batches - 1, item)
    return times * (few + (1 + epsilon.exp()) * (loss.batches - 1) * alpha * eta)


def _log_normal(x: Ball) -> Ball:
    """Return the log of the standard normal distribution function at sqrt(2) x."""
    return ((-x).erfc() / 2).log() if x < 0 else (-x.erfc() / 2).log1p()


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
