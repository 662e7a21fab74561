r"""Answers about a random batch in ball arithmetic: samples and epochs of any composition.

Let R be the likelihood ratio of all answers about one batch when a record is removed, under Q. A
record that is in the batch with probability q leaves the ratio 1 - q + q R, one that draws one of M
batches the mean of M independent copies of R (:mod:`dpcal.accountants.mechanisms.batches`). Both
rise with R and are linear, so that laws above R, and below it, in convex order give laws above and
below.

>>> from dpcal.accountants import events
>>> answers = events.ComposedDpEvent([events.LaplaceDpEvent(4.0), events.GaussianDpEvent(3.0)])
>>> loss, _ = pairs_of(events.PoissonSampledDpEvent(0.1, answers), "add-or-remove-one")
>>> len(loss.answers), loss.direction
(2, 'remove')
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from numpy.typing import ArrayLike

from dpcal.accountants import events
from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.certificates.composed import law_of, work_of_laws
from dpcal.accountants.certificates.order import Law, Outcomes
from dpcal.accountants.certificates.pairs import AllocationPair, Grid, Limits, pair_of, points
from dpcal.accountants.certificates.proofs import Parts
from dpcal.accountants.directions import Composition, Direction
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.base import Pairs, PrivacyLoss, Reals
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.row import dominating_pairs
from dpcal.errors import UnsupportedEvent

__all__ = ["Batched", "is_batched", "pairs_of", "with_batches"]


@dataclass(frozen=True)
class Batched(PrivacyLoss):
    """Answers about a batch which a record may be in, as a removed or an added record changes them.

    Parameters
    ----------
    answers
        Losses of the answers when a record that is in the batch is removed.
    drawn, among
        The record is in the batch with probability drawn / among.
    epoch
        Whether it is in one of ``among`` batches of an epoch, and ``drawn`` is 1.
    direction
        ``"remove"`` or ``"add"``.
    priced
        The losses of both directions in doubles, for the search.
    """

    answers: Parts
    drawn: float
    among: int
    epoch: bool
    direction: str
    priced: Pairs = field(compare=False, repr=False)

    @property
    def opposite(self) -> Batched:
        """The loss of the other direction."""
        return replace(self, direction="add" if self.direction == "remove" else "remove")

    @property
    def in_doubles(self) -> PrivacyLoss:
        """The loss of this direction, in doubles."""
        return self.priced[self.direction == "add"]

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return those in doubles."""
        return self.in_doubles.cumulants(c)

    def log_mgf_bound(self, c: float) -> float:
        """Return that in doubles."""
        return self.in_doubles.log_mgf_bound(c)


def is_batched(event: DpEvent) -> bool:
    """Return whether an event is one of other answers about a random batch than a Gaussian one."""
    if isinstance(event, events.PoissonSampledDpEvent | events.SampledWithoutReplacementDpEvent):
        return not isinstance(event.event, events.GaussianDpEvent)
    return isinstance(event, events.AllocatedDpEvent)


def pairs_of(event: DpEvent, relation: str) -> tuple[Batched, Batched]:
    """Return the losses of removing and of adding a record; the price checks the parameters.

    In a batch of fixed size a record stands in another one's place.

    Raises
    ------
    UnsupportedEvent
        If the theorem on the ratio does not cover the event under this relation.
    """
    priced = dominating_pairs(event, relation)
    fixed = isinstance(event, events.SampledWithoutReplacementDpEvent)
    if relation == "replace-one" or (fixed and relation != "add-or-remove-one"):
        raise UnsupportedEvent(f"No certificate covers {event!r} under {relation!r}.")
    answers = decompose(event.event, "replace-one" if fixed else relation).directions[0].parts
    drawn, among, epoch = (1.0, 1, False)
    if fixed:
        drawn, among = float(event.sample_size), int(event.source_dataset_size)
    elif isinstance(event, events.PoissonSampledDpEvent):
        drawn = float(event.sampling_probability)
    else:
        among, epoch = int(event.batches), True
    remove = Batched(answers, drawn, among, epoch, "remove", priced)
    return remove, remove.opposite


def with_batches(composition: Composition, batched: list[tuple[DpEvent, int]]) -> Composition:
    """Return a composition with answers about random batches, and the numbers of their uses."""
    if not batched:
        return composition
    relation = composition.neighboring_relation
    pairs = [(pairs_of(event, relation), times) for event, times in batched]
    ends = (0, "remove", composition.directions[0]), (1, "add", composition.directions[-1])
    return Composition(
        relation,
        tuple(
            Direction(name, (*item.parts, *((both[way], times) for both, times in pairs)))
            for way, name, item in ends
        ),
        composition.private,
    )


class _Batched(AllocationPair):
    """The pair of answers about a batch. An epoch's ratios are summed on multiples of a step."""

    def __init__(self, loss: Batched, rounded: bool) -> None:
        self.answers, self.epoch, self.rounded = loss.answers, loss.epoch, rounded
        self.batches, self.share = loss.among, balls.arb(loss.drawn) / loss.among
        self.work_of_cell = self.work_of_cell if loss.epoch else 8
        if any(isinstance(each, Batched) for each, _ in loss.answers):
            raise UnsupportedEvent(f"No certificate covers batches within batches, got {loss!r}.")

    @property
    def least(self) -> Ball:
        """The logarithm of the chance of no answers."""
        return balls.arb(0) if self.epoch else (1 - self.share).log()

    def _of_answers(self, limits: Limits) -> Limits:
        """Return the numbers of the law of all answers, whose ratios are larger."""
        more = -math.log(float(self.share.mid()))
        return Limits(limits.step, limits.nodes, limits.tail, limits.top + more)

    def _largest(self, limits: Limits) -> float:
        """Return a ratio beyond which there is about the tail, from the range of answers."""
        inner = self._of_answers(limits)
        spans = [pair_of(loss).span(inner) * times**0.5 for loss, times in self.answers]
        reach = math.sqrt(2 * limits.nats)
        # The range of an answer is about twice the reach times its deviation.
        squares = sum((span / (2 * reach)) ** 2 for span in spans)
        of_one = math.exp(min(sum(spans) / 2, inner.top, 700.0))
        return self._beyond(of_one, squares, reach)

    def span(self, limits: Limits) -> float:
        """Return the distance of the extreme ratios."""
        if self.epoch:
            return super().span(limits)
        inner = self._of_answers(limits)
        largest = sum(pair_of(loss).span(inner) * times for loss, times in self.answers)
        q = float(self.share.mid())
        return math.log1p(q * math.expm1(min(largest, inner.top, 700.0))) - math.log1p(-q)

    def cells(self, limits: Limits) -> float:
        """Return the number of intervals of an epoch, or of nodes of a sample."""
        return super().cells(limits) if self.epoch else limits.nodes

    def work(self, limits: Limits) -> float:
        """Return the work with that of the law of all answers."""
        return super().work(limits) + work_of_laws(self.answers, self._of_answers(limits))

    def outcomes(self, grid: Grid, above: bool) -> Outcomes:
        """Return those of an epoch, or a point for each node of the law of all answers."""
        law = law_of(self.answers, self._of_answers(grid.limits), self.rounded, above)
        if law is None:
            raise ValueError("The answers have no law on this side.")
        self.law = law
        if self.epoch:
            return super().outcomes(grid, above)
        q, infinite = self.share, self.share * law.infinite
        logs = [(q * law.log_node(k).expm1()).log1p() for k in range(len(law.masses))]
        cells = points(zip(logs, law.masses, strict=True))
        if not above:
            return Outcomes(cells, law.lost, infinite, False)
        return Outcomes([*points([(self.least, law.lost)]), *cells], balls.arb(0), infinite, False)

    def _law(self, width: Ball, count: int, above: bool) -> list[Ball]:
        """Return masses of the ratio of one batch at multiples 0 to ``count`` of a width."""
        law: Law = self.law
        found = [balls.arb(0)] * (count + 1)
        rows = [(law.log_node(k).exp() / width, mass) for k, mass in enumerate(law.masses)]
        if not above:
            return self._gathered([(mass, mass * at * width) for at, mass in rows], width, count)
        found[0] += law.lost
        for at, mass in rows:
            place = min(int(float(at.lower())), count)
            if place == count or not place <= at:
                found[min(place, count) if place <= at else 0] += mass
                continue
            share = balls.arb.min(at - place, balls.arb(1))
            found[place] += mass * (1 - share)
            found[place + 1] += mass * share
        return found


pair_of.register(Batched, lambda loss, rounded=False, above=True: _Batched(loss, rounded))
