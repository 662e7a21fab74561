r"""Answers about a random batch in ball arithmetic: samples and epochs of any composition.

Let R be the likelihood ratio of all answers about one batch when a record is removed, under Q. A
record that is in the batch with probability q leaves the ratio 1 - q + q R. A record that draws one
of M batches leaves the mean of M independent copies of R
(:mod:`dpcal.accountants.mechanisms.batches`). Both rise with R and are linear, so that laws above
R, and below it, in convex order give laws above and below.

>>> from dpcal.accountants import events
>>> answers = events.ComposedDpEvent((events.LaplaceDpEvent(4.0), events.GaussianDpEvent(3.0)))
>>> loss, _ = pairs_of(events.PoissonSampledDpEvent(0.1, answers), "add-or-remove-one")
>>> loss.direction, len(pair_of(loss).answers)
('remove', 2)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from attr import evolve

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.certificates.balls import Ball, arb, arb_poly, ctx
from dpcal.accountants.certificates.composed import law_of, work_of_laws
from dpcal.accountants.certificates.order import Law, Masses, gathered
from dpcal.accountants.certificates.pairs import Limits, Line, Outcomes, Pair, pair_of, points
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.allocation import Allocation, UnequalAllocation
from dpcal.accountants.losses.base import Pairs, Parts, PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.row import dominating_pairs
from dpcal.errors import UnsupportedEvent

# In steps of the grid, over the root of the number of batches.
_INTERVAL = 2.0
_MOST_DRAWS = 1 << 8
_SPARE_BITS = 64


@dataclass(frozen=True)
class Batched(PrivacyLoss):
    """Answers about a random batch, as a removed or an added record changes them.

    Parameters
    ----------
    event
        A batch, and the answers about it.
    relation
        The neighboring relation, under which a proof covers the event.
    direction
        ``"remove"`` or ``"add"``.
    """

    event: DpEvent
    relation: str
    direction: str

    @property
    def opposite(self) -> Batched:
        """The loss of the other direction."""
        return replace(self, direction="add" if self.direction == "remove" else "remove")

    def log_mgf_bound(self, c: float) -> float:
        """Return infinity: no bound in doubles is known."""
        return math.inf


def is_batched(event: DpEvent) -> bool:
    """Return whether an event has answers about a random batch that have no transform."""
    if isinstance(event, events.PoissonSampledDpEvent | events.SampledWithoutReplacementDpEvent):
        return not isinstance(event.event, events.GaussianDpEvent)
    return isinstance(event, events.AllocatedDpEvent | events.SampledWithReplacementDpEvent)


def pairs_of(event: DpEvent, relation: str) -> Pairs:
    """Return the losses of an elementary event when a record is removed, and when one is added.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the event under this relation.
    """
    if not is_batched(event):
        return dominating_pairs(event, relation)
    if isinstance(event, events.SampledWithReplacementDpEvent):
        validate.count(sample_size=event.sample_size)
        if validate.count(source_dataset_size=event.source_dataset_size) == 1:
            raise UnsupportedEvent("Of one record, which is drawn always, no sample is certified.")
    else:
        # The cost of one answer checks the parameters of the batch.
        dominating_pairs(evolve(event, event=events.GaussianDpEvent(1.0)), relation)
    if relation == "replace-one" or (_displaces(event) and relation != "add-or-remove-one"):
        raise UnsupportedEvent(f"No certificate covers {event!r} under {relation!r}.")
    _answers(event, relation)
    remove = Batched(event, relation, "remove")
    return remove, remove.opposite


def _displaces(event: DpEvent) -> bool:
    """Return whether a record stands in another one's place, in a batch of fixed size."""
    fixed = events.SampledWithoutReplacementDpEvent | events.SampledWithReplacementDpEvent
    return isinstance(event, fixed)


@lru_cache(maxsize=64)
def _answers(event: Any, relation: str) -> Parts:
    """Return the losses of the answers when a record that is in the batch is removed."""
    relation = "replace-one" if _displaces(event) else relation
    return decompose(event.event, relation).directions[0].parts


class _OfBatch(Pair):
    """Answers about a batch: the record is in a ``share`` of batches, or in one batch an epoch."""

    def __init__(self, answers: Parts, share: Ball, batches: int) -> None:
        self.answers, self.share, self.batches = answers, share, batches
        self.work_of_cell = 400 + 4 * batches.bit_length() if batches else 8

    def _of_answers(self, limits: Limits) -> Limits:
        """Return the numbers of the law of all answers, which has larger ratios."""
        return replace(limits, top=limits.top - math.log(float(self.share.mid())))

    def span(self, limits: Limits) -> float:
        """Return twice the logarithm of a ratio in one batch with others of 1."""
        inner = self._of_answers(limits)
        largest = sum(pair_of(loss).span(inner) * times for loss, times in self.answers)
        q = float(self.share.mid())
        return 2 * math.log1p(q * math.expm1(min(largest, inner.top, 700.0)))

    def cells(self, limits: Limits) -> float:
        """Return the most intervals of an epoch, or about the nodes of a sample."""
        return limits.nodes if self.batches else super().cells(limits)

    def work(self, limits: Limits) -> float:
        """Return the work, including the law of all answers."""
        return super().work(limits) + work_of_laws(self.answers, self._of_answers(limits))

    def outcomes(self, step: Ball, limits: Limits, above: bool) -> Outcomes:
        """Return outcomes of an epoch, or a point for each node of the law of all answers."""
        law, _ = law_of(self.answers, self._of_answers(limits), above)
        if self.batches:
            return self._epoch(law, limits)
        q = self.share
        rows = [((q * at.expm1()).log1p(), mass) for at, mass in law.logs()]
        if not above:
            return points(rows, right=(law.lost, 0))
        return points([((1 - q).log(), law.lost), *rows], right=(0, q * law.infinite))

    def _epoch(self, law: Law, limits: Limits) -> Outcomes:
        """Return the multiples of an interval, over the sums of ratios of all batches."""
        zero = arb(0)
        ratios = [(at.exp(), mass) for at, mass in law.logs()]
        square = sum((mass * at * at for at, mass in ratios), zero)
        # About the mass of the tail lies beyond the largest ratio.
        far = math.sqrt(2 * limits.nats * float(square.mid()) / self.batches)
        largest = 1 + far + float(ratios[-1][0].mid()) / self.batches
        interval = _INTERVAL * limits.step / math.sqrt(self.batches)
        step = arb(max(interval, largest / (limits.nodes - 1)))
        count = math.ceil(largest / float(step.mid()))

        rows = [(at / (step * self.batches), mass) for at, mass in ratios]
        if law.above:
            one = _above(rows, law.lost, count)
        else:
            cells = ((mass, mass * at) for at, mass in rows if mass > 0)
            one = gathered(cells, arb, lambda ratio: float(ratio.mid()))
        sums = _power([one.get(k, zero) for k in range(count + 1)], self.batches)
        beyond = 1 - sum(sums, zero)
        if law.above:
            sums[-1] += beyond
        found = [((k * step).log(), sums[k]) for k in range(1, count + 1)]
        if not law.above:
            return points(found, right=(beyond, 0))
        mean = sum((mass * k for k, mass in enumerate(sums)), zero) * step
        return points(found, (sums[0], 0), (0, arb.max(1 - mean, zero)))


def _power(law: list[Ball], times: int) -> list[Ball]:
    """Return the least terms of the law of a sum of ``times`` >= 1 values with one law.

    The result has as many terms as the given law: the probabilities of 0, 1, ....
    """
    size, one = len(law), arb_poly(law)
    found = one
    for bit in bin(times)[3:]:
        found = (found * found).truncate(size)
        if bit == "1":
            found = (found * one).truncate(size)
    return [found[k] for k in range(size)]


def _above(rows: list[tuple[Ball, Ball]], lost: Ball, most: int) -> Masses:
    """Return masses at whole numbers above the rows in convex order; at ``most`` beyond it."""
    found = Masses(int, {0: lost})
    for at, mass in rows:
        place = min(int(at.lower().floor().unique_fmpz()), most)
        share = arb.min(at - place, arb(place < most))
        found[place] += mass * (1 - share)
        found[place + 1] += mass * share
    return found


def _draws(event: Any) -> Line:
    """Return the pair of a Gaussian sum over independent draws from all records.

    A record that is drawn k times shifts the sum by up to 2 k: it stands in another one's place.
    Conditioned on at most so many draws, the answer reveals less, which bounds the ratio from
    below. From above, a record that is drawn more often is known to be there. The probability of k
    draws follows from the probability of k - 1 draws.
    """
    zero, never = arb(0), arb(2) ** (_SPARE_BITS - ctx.prec)
    size, draws = int(event.source_dataset_size), int(event.sample_size)
    chances = [((-1 / arb(size)).log1p() * draws).exp()]
    for k in range(1, min(draws, _MOST_DRAWS) + 1):
        if k * size > draws and chances[-1] < never:
            break
        chances.append(chances[-1] * (draws - k + 1) / (k * (size - 1)))
    whole = sum(chances, zero)
    shifts = ((arb(2 * k), chance / whole) for k, chance in enumerate(chances[1:], 1))
    mixture = ((zero, chances[0] / whole), *shifts)
    beyond = arb.max(1 - whole, zero)
    return Line(mixture, ((zero, arb(1)),), arb(event.event.noise_multiplier), beyond)


@pair_of.register
def _(loss: Batched) -> Pair:
    event: Any = loss.event
    if isinstance(event, events.SampledWithReplacementDpEvent):
        return _draws(event)
    share, batches = arb(1), 0
    if isinstance(event, events.PoissonSampledDpEvent):
        share *= event.sampling_probability
    elif isinstance(event, events.SampledWithoutReplacementDpEvent):
        share = share * int(event.sample_size) / int(event.source_dataset_size)
    else:
        batches = int(event.batches)
        share /= batches
    return _OfBatch(_answers(event, loss.relation), share, batches)


@pair_of.register
def _(loss: Allocation) -> Pair:
    if isinstance(loss, UnequalAllocation):
        raise UnsupportedEvent("No law of an epoch with unequal batches is known.")
    answers = ((Gaussian(loss.noise_multiplier), 1),)
    return _OfBatch(answers, 1 / arb(loss.batches), loss.batches)
