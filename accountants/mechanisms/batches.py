r"""Which pair dominates any mechanism on a random batch? Rules for Poisson samples and fixed sizes.

Gaussian mechanisms have rules of their own, in :mod:`dpcal.accountants.mechanisms.sampling`.
Theorems of :mod:`dpcal.accountants.inversion.amplification` bound all others from their law on
everyone.

For a record that is replaced, one more theorem holds for sums with symmetric log-concave noise, on
the line or on the whole numbers. Let xi_k be the law of the noise moved by k. On a Poisson sample
``(1 - q) xi + q xi_s`` against ``(1 - q) xi + q xi_-s`` dominates, s the bound on a contribution.

*Proof.* Given the other records, the laws are (1 - q) xi + q xi_a and (1 - q) xi + q xi_b, with a
and b at most s in size. For alpha > 1, H_alpha is q times H_c of xi_a against (1 - r) xi + r xi_b,
for some c and r (Balle, Barthe and Gaboardi 2018, Theorem 2). An event of probability p under xi_a
has at least some T_a(p) under xi and T_(a - b)(p) under xi_b, by the lemma of Neyman and Pearson,
where T falls with the size of the shift. At a = s and b = -s both are least, and half-lines, with a
share of their end, attain both at once. For alpha < 1 exchange a and b.

A mechanism is perhaps a composition of answers about one batch.

>>> from dpcal.accountants.mechanisms.row import dominating_pairs
>>> event = events.PoissonSampledDpEvent(0.1, events.DiscreteGaussianDpEvent(2.0))
>>> remove, add = dominating_pairs(event, "add-or-remove-one")
>>> remove.failure_probability < 1e-290, f"{add.upper:.6f}"      # -log(0.9)
(True, '0.105361')
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion import amplification
from dpcal.accountants.inversion.finite_laws import FiniteLaw, law_of, summed
from dpcal.accountants.losses.base import NO_LOSS, Pairs, PrivacyLoss
from dpcal.accountants.losses.discrete import DiscreteLoss, LatticeLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.mechanisms import pure, sampling as samplers
from dpcal.accountants.mechanisms.allocation import count_of_batches
from dpcal.accountants.mechanisms.decompose import decompose, leaves
from dpcal.accountants.mechanisms.gaussian import noise_of
from dpcal.accountants.mechanisms.row import Row, dominating_pairs, only_auto, refuse, row_of
from dpcal.accountants.rounding import rounded_up
from dpcal.errors import TooLarge, UnsupportedEvent

# Least sampling probability > 0: moments need its sixth power as a normal double.
_LEAST_SAMPLING = 1e-50
_FEW, _MOST_SUMS = 2048, 4
# Most answers of one mechanism about one batch: the rounding of a mass times this is small.
_MOST_ANSWERS = 10**12
# Relative rounding of a mass, per answer: half a unit of logarithms up to 256 nats.
_ROUNDING = 2.0**-46


def _thinned(event: events.PoissonSampledDpEvent, relation: str) -> events.DpEvent | None:
    """Return the answers about everyone or no record, or about a sample of a sample."""
    q, inner = _probability(event), event.event
    if q in (0, 1):
        # With q = 0 no record is read, and the output does not depend on data; with q = 1 all are.
        return inner if q else events.NoOpDpEvent()
    if not isinstance(inner, events.PoissonSampledDpEvent):
        return None
    product = Fraction(q) * Fraction(_probability(inner))
    q = min(1.0, rounded_up(float(product), product))
    return events.PoissonSampledDpEvent(q, inner.event)


def _probability(event: events.PoissonSampledDpEvent) -> float:
    """Return a sampling probability that is 0, or in the range that accountants take."""
    q = validate.within(0.0, 1.0, sampling_probability=event.sampling_probability)
    return q if q == 0 else validate.within(_LEAST_SAMPLING, 1.0, sampling_probability=q)


def _largest_of_sample(event: events.PoissonSampledDpEvent, relation: str) -> pure.Sides:
    """Return the largest losses on a Poisson sample.

    With the record the law is (1 - q) M + q M', of a mechanism without it and with it on everyone.
    A replaced record of a sum may leave M' = e^l M or M' = e^-l M at the same answer, and no more.
    For other mechanisms, the law may also publish whether the record was drawn.
    """
    q, inner = _probability(event), event.event
    if relation == "replace-one" and is_sum(inner):
        single = pure.largest_losses(inner, "add-or-remove-one")[0]
        both = pure.total([(pure.on_sample(single, q), 1), (pure.added(single, q), 1)])
        return both, both
    remove, add = pure.largest_losses(inner, relation)
    if relation == "add-or-remove-one" or is_sum(inner):
        return pure.on_sample(remove, q), pure.added(add, q)
    return pure.at_most(remove), pure.at_most(add)


@Row(
    events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(1.0)),
    samplers.SAMPLERS,
    same=_thinned,
    largest=_largest_of_sample,
)
def _poisson_sampled(event: events.PoissonSampledDpEvent, relation: str) -> Pairs:
    """Return the pairs of a mechanism on a batch that each record joins with probability q.

    Where neither theorem on samples applies, whether the record was drawn counts as known. For a
    replaced record in several sums that is an upper bound; below, the record in its place adds 0.
    """
    q, inner = _probability(event), event.event
    sigma = noise_of(inner)
    if sigma is not None:
        return samplers.poisson(q, sigma, relation)
    if (row := row_of(inner)) and row.replaced and relation == "replace-one":
        dominating_pairs(inner, relation)
        with _refusing(event, relation):
            if (law := row.replaced(inner, q)) is not None:
                loss = amplification.loss_of(law, repr(event), q)
                return loss, loss
    laws, name = _laws(event, relation), repr(inner)
    if relation == "add-or-remove-one" or (relation == "replace-special" and is_sum(inner)):
        return amplification.sampled(laws[0], q, name)
    if relation == "replace-one" and is_sum(inner):
        above: Any = amplification.revealed(laws[0], q, name)
        below = amplification.sampled(_laws(event, "add-or-remove-one", 2)[0], q, name)[0]
        loss = above
        if above is not NO_LOSS:
            loss = replace(above, below=below.below or below)
        return loss, loss
    remove, *add = (amplification.revealed(law, q, name) for law in laws)
    return remove, add[0] if add else remove


def _full_batch(
    event: events.SampledWithoutReplacementDpEvent, relation: str
) -> events.DpEvent | None:
    """Return the mechanism on a batch of every record."""
    return event.event if _share(event, relation) == 1 else None


def _share(event: events.SampledWithoutReplacementDpEvent, relation: str) -> float:
    """Return the share of a batch of distinct records, if a mechanism on it has an epsilon."""
    size = validate.count(source_dataset_size=event.source_dataset_size)
    m = validate.count(sample_size=event.sample_size)
    if m > size:
        raise ValueError(
            f"sample_size must be at most source_dataset_size = {size}, got {event.sample_size!r}."
        )
    if m == size and relation == "add-or-remove-one":
        raise UnsupportedEvent(
            f"A batch of all {size} records has no neighbor with one record less: "
            "sample_size must be below source_dataset_size under 'add-or-remove-one'."
        )
    inner = event.event
    if m == size or noise_of(inner) is not None:
        return m / size
    if relation == "replace-special" and not is_sum(inner):
        reason = "A blanked record may leave a law that no record that takes its place leaves."
        raise refuse(event, relation, reason)
    if relation == "add-or-remove-one" and not _all_are(inner, "sum", "scaled"):
        # A stated claim holds for the relation in question, and here another one is needed.
        reason = "Its claim for an added record does not cover one that takes another's place."
        raise refuse(event, relation, reason)
    return m / size


def _largest_of_fixed_size(
    event: events.SampledWithoutReplacementDpEvent, relation: str
) -> pure.Sides:
    """Return the largest losses on a batch of distinct records: another record takes the place.

    Added or removed, the law is (1 - q) M + q M' against M; replaced, the same, where all other
    records are as the one that replaces it.
    """
    q = _share(event, relation)
    single = Bounds.worst(list(pure.largest_losses(event.event, "replace-one")))
    more = pure.on_sample(single, q)
    return more, pure.added(single, q) if relation == "add-or-remove-one" else more


@Row(
    events.SampledWithoutReplacementDpEvent(10, 2, events.GaussianDpEvent(1.0)),
    samplers.SAMPLERS,
    same=_full_batch,
    largest=_largest_of_fixed_size,
)
def _without_replacement(event: events.SampledWithoutReplacementDpEvent, relation: str) -> Pairs:
    """Return the pairs of a mechanism on a batch of distinct records, of fixed size.

    A record always takes its place in the batch from another one, so that the mechanism's pair for
    a replaced record counts. When a record is added or removed, it is amplified as on a Poisson
    sample: the batch without the record is the batch with another one in its place. A zeroed-out
    record is covered for sums only, and an added one for mechanisms that are not claims for the
    relation in question.
    """
    q, name, sigma = _share(event, relation), repr(event.event), noise_of(event.event)
    if sigma is not None:
        return samplers.displacing(q, sigma, relation)
    laws = _laws(event, "replace-one")
    if len(laws) > 1:
        raise refuse(event, relation, "Its pairs for a replaced record depend on the order.")
    if relation == "add-or-remove-one":
        return amplification.sampled(laws[0], q, name)
    loss = amplification.fixed_batch(laws[0], q, name)
    return loss, loss


def _epoch(event: events.AllocatedDpEvent, relation: str) -> events.DpEvent | None:
    """Return the mechanism on a single batch of every record, and the epoch of Gaussian noise."""
    batches, inner = validate.count(batches=event.batches), event.event
    sigma = noise_of(inner)
    if sigma is not None:
        return events.RandomAllocationDpEvent(sigma, batches)
    return inner if batches == 1 else None


def _largest_of_epoch(event: events.AllocatedDpEvent, relation: str) -> pure.Sides:
    """Return the largest losses of an epoch: a mean of likelihood ratios, which may all be largest.

    For a replaced record, ratios of means are at most the largest ratio of two terms.
    """
    remove, add = pure.largest_losses(event.event, relation)
    if relation == "add-or-remove-one":
        return remove, add
    return pure.at_most(remove), pure.at_most(add)


@Row(
    events.AllocatedDpEvent(events.DiscreteLaplaceDpEvent(0.5, 1), 2),
    "[any mechanism on a batch](../explanation/batches.md#any-mechanism-on-a-batch); "
    "zero-out or replaced in sums",
    same=_epoch,
    largest=_largest_of_epoch,
)
def _allocated(event: events.AllocatedDpEvent, relation: str) -> Pairs:
    """Return the pairs of an epoch of a mechanism on batches; each record draws one batch.

    A record is added or removed, or, for sums only, zeroed out.
    """
    inner = event.event
    if relation == "replace-one" and is_sum(inner):
        raise only_auto(event, relation, "by a bracket, from two blanked records")
    if relation != "add-or-remove-one" and not is_sum(inner):
        reason = "A blanked record may leave other answers than no record."
        raise refuse(event, relation, reason)
    laws = _laws(event, relation)
    with _refusing(event, relation):
        return amplification.allocated(laws[0], count_of_batches(event.batches), repr(inner))


def _all_are(event: events.DpEvent, *kinds: str) -> bool:
    """Return whether a record enters every mechanism that an event composes in one of some ways."""
    found = (row_of(leaf) for leaf in leaves(event))
    return all(row is not None and row.record in kinds for row in found)


def is_sum(event: events.DpEvent) -> bool:
    """Return whether a blanked record of every answer leaves the law of no record."""
    return _all_are(event, "sum")


@contextmanager
def _refusing(event: Any, relation: str) -> Iterator[None]:
    """Name the event that has no law; an event that is too large has its own error."""
    try:
        yield
    except TooLarge:
        raise
    except UnsupportedEvent as error:
        raise refuse(event, relation, str(error)) from None


def _laws(event: Any, relation: str, coarser: int = 1) -> list[FiniteLaw]:
    """Return the law of the answers about one batch, in each direction.

    A law that is added keeps fewer values by the factor ``coarser``.
    """
    composition = decompose(event.event, relation)
    laws = composition.laws
    if not composition.private:
        raise refuse(event, relation, "What is sampled is not private.")
    if laws is None:
        raise refuse(event, relation, "The law of what is sampled is not known.")
    found = [item.parts for item in laws.directions]
    most = max((times for parts in found for _, times in parts), default=0)
    if most > _MOST_ANSWERS:
        raise TooLarge(
            f"event must answer at most 1e12 times about one batch, got a {type(event).__name__} "
            f"with about 1e{math.log10(most):.0f} answers of one mechanism."
        )
    with _refusing(event, relation):
        costly = sum(_costly_sums(loss, times) for parts in found for loss, times in parts)
        few = int(_FEW / math.sqrt(max(1.0, costly / _MOST_SUMS))) // coarser
        sums = (summed([(law_of(loss), times) for loss, times in parts], few) for parts in found)
        return [law.changed(partial(_rescaled, answers=most)) for law in sums]


def _costly_sums(loss: PrivacyLoss, times: int) -> int:
    """Return about how many sums of laws of many values are formed for a loss that adds up."""
    given = loss.when_finite
    size = len(given.values) if isinstance(given, DiscreteLoss) else _FEW
    on_lattice = isinstance(given, LatticeLoss | DiscreteGaussian)
    cheap = _FEW // size if on_lattice else int(math.log(_FEW, max(size, 2)))
    costly = times // max(cheap, 1)
    return costly.bit_length() + costly.bit_count() - 1 if costly else 0


def _rescaled(law: FiniteLaw, answers: int) -> FiniteLaw:
    """Return the law of a sum without the factor by which rounding changes all of its masses.

    A factor that rounding does not explain stays, and is found as a fault.
    """
    lost = float(law.moments[0]) - law.log_q if law.outside < 1 else 0.0
    kept = abs(lost) <= answers * _ROUNDING
    return replace(law, log_reference=law.log_reference - (lost if kept else 0.0))
