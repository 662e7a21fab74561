r"""Which pair dominates any mechanism on a random batch? Rules for Poisson samples and fixed sizes.

Gaussian mechanisms have rules of their own, in :mod:`dpcal.accountants.mechanisms.sampling`. All
others are priced from their law on everyone, by the theorems of
:mod:`dpcal.accountants.mechanisms.amplification`.

For a record that is replaced, one more theorem holds for sums with symmetric log-concave noise, on
the line or on the whole numbers. Let xi_k be the law of the noise moved by k. On a Poisson sample
``(1 - q) xi + q xi_s`` against ``(1 - q) xi + q xi_-s`` dominates, s the bound on a contribution.

*Proof.* Given the other records, the laws are (1 - q) xi + q xi_a and (1 - q) xi + q xi_b, with a
and b at most s in size. For alpha > 1, H_alpha is q times H_c of xi_a against (1 - r) xi + r xi_b,
for some c and r (Balle, Barthe and Gaboardi 2018, Theorem 2). An event of probability p under xi_a
has at least some T_a(p) under xi and T_(a - b)(p) under xi_b, by the lemma of Neyman and Pearson,
where T falls with the size of the shift. At a = s and b = -s both are least, and half-lines, with a
share of their end, attain both at once. For alpha < 1 exchange a and b.

A rule takes an event, whose mechanism is perhaps a composition of answers about one batch, a
neighboring relation, and a function that returns the dominating pairs of an elementary event.

>>> from dpcal.accountants.mechanisms.table import dominating_pairs
>>> event = events.PoissonSampledDpEvent(0.1, events.DiscreteGaussianDpEvent(2.0))
>>> remove, add = dominating_pairs(event, "add-or-remove-one")
>>> remove.failure_probability < 1e-290, f"{add.upper:.6f}"      # -log(0.9)
(True, '0.105361')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.inversion.finite_laws import (
    BYTES_OF_NOISE,
    FiniteLaw,
    cut,
    gathered,
    law_of,
    mirrored,
    noise_reach,
    summed,
)
from dpcal.accountants.inversion.transform import Parts
from dpcal.accountants.limits import hold
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss, Reals
from dpcal.accountants.losses.discrete import DiscreteLoss
from dpcal.accountants.mechanisms import sampling as samplers
from dpcal.accountants.mechanisms.allocated import allocated
from dpcal.accountants.mechanisms.amplification import (
    amplified,
    fixed_batch,
    loss_of,
    revealed,
    sampled,
)
from dpcal.accountants.mechanisms.leaves import Pairs, composed, leaves, only_auto, refuse
from dpcal.accountants.rounding import rounded_up
from dpcal.errors import TooLarge, UnsupportedEvent

__all__ = [
    "checked_share",
    "count_of_batches",
    "is_sum",
    "poisson_sampled",
    "thinned",
    "with_replacement",
    "without_replacement",
]

PairsOf = Callable[[events.DpEvent, str], Pairs]

# Least sampling probability > 0: moments need its sixth power as a normal double.
_LEAST_SAMPLING = 1e-50
# Number of intervals into which each half of the outputs between two shifts is cut.
_INTERVALS = 512
# Values that each of two laws keeps before they are added, up to so many sums of such laws: each
# takes a second. Of more sums, they are fewer, for as much work in all.
_FEW, _MOST_SUMS = 2048, 4
# Most answers of one mechanism about one batch: so many times the rounding of a mass is small.
_MOST_ANSWERS = 10**12
# Relative change of each mass, per answer, that rounding explains: half a unit in the last place of
# logarithms up to 256 nats, of which the masses are that add up to 1.
_ROUNDING = 2.0**-46
# Most batches of an epoch: a contour, and means, take some seconds with so many, and longer with
# more.
_MOST_BATCHES = 1 << 27
# Sums with noise: a blanked record that is sampled leaves the same law as one that is not.
_SUMS = (
    events.GaussianDpEvent,
    events.LaplaceDpEvent,
    events.DiscreteLaplaceDpEvent,
    events.DiscreteGaussianDpEvent,
)
# Other mechanisms whose pair for a replaced record follows from their parameters, or is stated for
# a replaced record, and is not a claim for the relation in question.
_SCALED = (
    events.DominatingPairDpEvent,
    events.RandomizedResponseDpEvent,
    events.AboveThresholdDpEvent,
    events.ReportNoisyMaxDpEvent,
)


def poisson_sampled(event: events.PoissonSampledDpEvent, relation: str, pairs_of: PairsOf) -> Pairs:
    """Return the pairs of a mechanism on a batch that each record joins with probability q.

    Where neither theorem on samples applies, whether the record was drawn counts as known.
    """
    q, inner = thinned(event)
    if q == 0:
        # No record is ever read, so the output does not depend on the data.
        return NO_LOSS, NO_LOSS
    sigma = gaussian_noise(inner)
    if sigma is not None:
        return samplers.poisson(q, sigma, relation)
    event = events.PoissonSampledDpEvent(q, inner)
    if q == 1:
        return _on_everyone(event, relation, pairs_of)
    if relation == "replace-one" and type(inner) in _REPLACED:
        # The pairs on everyone check the parameters.
        pairs_of(inner, relation)
        loss = loss_of(_replaced(event, relation), repr(event), q)
        return loss, loss
    if relation == "add-or-remove-one" and _may_fail(inner):
        return pairs_of(_amplified_claim(q, inner), relation)
    laws = _laws(event, relation, pairs_of)
    if relation == "replace-one" and laws and is_sum(inner):
        return _replaced_in_sums(q, event, laws, _laws(event, "add-or-remove-one", pairs_of, 2))
    return _amplified(q, event, relation, laws)


def _replaced_in_sums(
    q: float, event: Any, replaced: list[FiniteLaw], removed: list[FiniteLaw]
) -> Pairs:
    """Return the pairs of sums where a record is replaced: a bound, and one below it.

    Above, whether the record was drawn counts as known; below, the record in its place adds nothing
    to the sums.
    """
    above: Any = revealed(replaced[0], q, repr(event.event))
    if above is NO_LOSS:
        return NO_LOSS, NO_LOSS
    below = sampled(removed[0], q, repr(event.event))[0]
    loss = replace(above, rounded_down=below.below or below)
    return loss, loss


def thinned(event: Any) -> tuple[float, events.DpEvent]:
    """Return the probability of being in a sample of samples, and the event on the last one."""
    q, inner = _probability(event), event.event
    while isinstance(inner, events.PoissonSampledDpEvent) and q > 0:
        # A sample of a sample: a record stays with the product of both probabilities.
        product = Fraction(q) * Fraction(_probability(inner))
        q, inner = min(1.0, rounded_up(float(product), product)), inner.event
    return q, inner


def _amplified(q: float, event: Any, relation: str, laws: list[FiniteLaw]) -> Pairs:
    """Return the pairs on a Poisson sample from the laws on everyone, in each direction."""
    name = repr(event.event)
    if not laws:
        return NO_LOSS, NO_LOSS
    if relation == "add-or-remove-one" or (relation == "replace-special" and is_sum(event.event)):
        return sampled(laws[0], q, name)
    losses = [
        revealed(law, q, each) for law, each in zip(laws, (name, f"{name}, added"), strict=False)
    ]
    return losses[0], losses[-1]


def without_replacement(
    event: events.SampledWithoutReplacementDpEvent, relation: str, pairs_of: PairsOf
) -> Pairs:
    """Return the pairs of a mechanism on a batch of distinct records, of fixed size.

    A record always takes its place in the batch from another one, so that the mechanism's pair for
    a replaced record counts. When a record is added or removed, it is amplified as on a Poisson
    sample: the batch without the record is the batch with another one in its place. A blanked
    record is priced for sums alone, and an added one for mechanisms that are not claims for the
    relation in question.
    """
    inner = event.event
    size, batch = event.source_dataset_size, event.sample_size
    sigma = gaussian_noise(inner)
    if sigma is not None:
        return samplers.without_replacement(size, batch, sigma, relation)
    q = checked_share(event, relation)
    if q == 1:
        return _on_everyone(event, relation, pairs_of)
    laws = _laws(event, "replace-one", pairs_of)
    if not laws:
        return NO_LOSS, NO_LOSS
    if len(laws) > 1:
        raise refuse(event, relation, "Its pairs for a replaced record depend on the order.")
    if relation == "add-or-remove-one":
        return sampled(laws[0], q, repr(inner))
    loss = fixed_batch(laws[0], q, repr(inner))
    return loss, loss


def checked_share(event: events.SampledWithoutReplacementDpEvent, relation: str) -> float:
    """Return the share of a batch of distinct records, about which a mechanism has a price."""
    q = samplers.share_of_batch(event.source_dataset_size, event.sample_size, relation)
    if q < 1 and relation == "replace-special" and not is_sum(event.event):
        reason = "A blanked record may leave a law that no record that takes its place leaves."
        raise refuse(event, relation, reason)
    if q < 1 and relation == "add-or-remove-one" and not _all_are(event.event, _SUMS + _SCALED):
        # A stated claim holds for the relation in question, and here another one is needed.
        reason = "Its claim for an added record does not cover one that takes another's place."
        raise refuse(event, relation, reason)
    return q


def random_allocation(event: events.AllocatedDpEvent, relation: str, pairs_of: PairsOf) -> Pairs:
    """Return the pairs of an epoch of a mechanism on batches of which each record draws one.

    A record is added or removed, or, for sums alone, blanked.
    """
    inner, batches = event.event, count_of_batches(event.batches)
    sigma = gaussian_noise(inner)
    if sigma is not None:
        return pairs_of(events.RandomAllocationDpEvent(sigma, batches), relation)
    if batches == 1:
        return _on_everyone(event, relation, pairs_of)
    if relation == "replace-one" and is_sum(inner):
        raise only_auto(event, relation, "by a bracket, from two blanked records")
    if relation != "add-or-remove-one" and not is_sum(inner):
        reason = "A blanked record may leave other answers than no record."
        raise refuse(event, relation, reason)
    laws = _laws(event, relation, pairs_of)
    if not laws:
        return NO_LOSS, NO_LOSS
    with _refusing(event, relation):
        return allocated(laws[0], batches, repr(inner))


def count_of_batches(batches: int) -> int:
    """Return a number of batches of an epoch, of which a record draws one, that has a price."""
    count = _validate.count(batches=batches)
    if count > _MOST_BATCHES:
        raise TooLarge(
            f"batches must be at most {_MOST_BATCHES} for a price in reasonable time, got "
            f"{batches!r}: more batches cost less."
        )
    return count


def with_replacement(event: events.SampledWithReplacementDpEvent, relation: str) -> Pairs:
    """Return the pairs of Gaussian answers about independent draws of records."""
    sigma = gaussian_noise(event.event)
    if sigma is None:
        reason = "Only Gaussian mechanisms and compositions of them are priced on repeated draws."
        raise refuse(event, relation, reason)
    return samplers.with_replacement(event.source_dataset_size, event.sample_size, sigma, relation)


def gaussian_noise(event: events.DpEvent) -> float | None:
    """Return the noise multiplier of one Gaussian that equals several on the same records.

    Their losses add up to that of a Gaussian (Dong, Roth and Su 2022, composition of GDP).

    Returns
    -------
    float or None
        None if the event composes anything but Gaussian mechanisms.
    """
    if isinstance(event, events.GaussianDpEvent):
        return _validate.noise(noise_multiplier=event.noise_multiplier)
    total = 0.0
    for item, times in leaves(event).items():
        if not isinstance(item, events.GaussianDpEvent):
            return None
        total += times / _validate.noise(noise_multiplier=item.noise_multiplier) ** 2
    return 1 / math.sqrt(total) * (1 - 1e-15) if total > 0 else None


def _probability(event: Any) -> float:
    """Return a sampling probability that is 0, or in the range that accountants take."""
    q = _validate.within(0.0, 1.0, sampling_probability=event.sampling_probability)
    return q if q == 0 else _validate.within(_LEAST_SAMPLING, 1.0, sampling_probability=q)


def _all_are(event: events.DpEvent, classes: tuple[type[events.DpEvent], ...]) -> bool:
    """Return whether every mechanism that an event composes is of one of these classes."""
    return all(isinstance(leaf, (*classes, events.NoOpDpEvent)) for leaf in leaves(event))


def is_sum(event: events.DpEvent) -> bool:
    """Return whether a blanked record of every answer leaves the law of no record."""
    return _all_are(event, _SUMS)


def _may_fail(event: events.DpEvent) -> bool:
    return isinstance(event, events.EpsilonDeltaDpEvent) and event.delta > 0


def _amplified_claim(q: float, claim: Any) -> events.EpsilonDeltaDpEvent:
    """Return a sampled claim, rounded up (Balle, Barthe and Gaboardi 2018, Theorem 8)."""
    given = _validate.non_negative(epsilon=claim.epsilon)
    epsilon = float(amplified(np.array(given), q))
    delta = math.nextafter(q * claim.delta, 1.0)
    return events.EpsilonDeltaDpEvent(epsilon * (1 + 2.0**-50), delta)


def _losses(event: Any, relation: str, pairs_of: PairsOf) -> list[Parts]:
    """Return the losses of the answers about one batch, in each direction."""
    composition = composed(event.event, relation, pairs_of)
    laws = composition.laws
    if not composition.private:
        raise refuse(event, relation, "What is sampled is not private.")
    if laws is None:
        raise refuse(event, relation, "The law of what is sampled is not known.")
    return [item.parts for item in laws.directions if item.parts]


@contextmanager
def _refusing(event: Any, relation: str) -> Iterator[None]:
    """Say of which event a law has no price; what is too large says so itself."""
    try:
        yield
    except TooLarge:
        raise
    except UnsupportedEvent as error:
        raise refuse(event, relation, str(error)) from None


def _laws(event: Any, relation: str, pairs_of: PairsOf, coarser: int = 1) -> list[FiniteLaw]:
    """Return the law of the answers about one batch, in each direction; none without a loss.

    A law that is added keeps fewer values by the factor ``coarser``.
    """
    found = _losses(event, relation, pairs_of)
    most = max((times for parts in found for _, times in parts), default=0)
    if most > _MOST_ANSWERS:
        raise TooLarge(
            f"event must answer at most 1e12 times about one batch, got a {type(event).__name__} "
            f"with about 1e{math.log10(most):.0f} answers of one mechanism."
        )
    with _refusing(event, relation):
        few = _values_of_sums(found) // coarser
        sums = (summed([(law_of(loss), times) for loss, times in parts], few) for parts in found)
        return [_rescaled(law, most) for law in sums]


def _rescaled(law: FiniteLaw, answers: int) -> FiniteLaw:
    """Return the law of a sum without the factor by which rounding changes all of its masses.

    A factor that rounding does not explain stays, and is found as a fault.
    """
    lost = float(law.moments[0]) - math.log1p(-law.outside) if len(law.values) else 0.0
    below = None if law.below is None else _rescaled(law.below, answers)
    kept = abs(lost) <= answers * _ROUNDING
    return replace(law, log_reference=law.log_reference - (lost if kept else 0.0), below=below)


def _values_of_sums(directions: list[Parts]) -> int:
    """Return how many values of a law are kept before it is added: fewer, of very many answers."""
    costly = sum(_costly_sums(loss, times) for parts in directions for loss, times in parts)
    return int(_FEW / math.sqrt(max(1.0, costly / _MOST_SUMS)))


def _costly_sums(loss: PrivacyLoss, times: int) -> int:
    """Return about how many sums of laws of many values are formed for a loss that adds up."""
    if loss is NO_LOSS:
        return 0
    given = loss.when_finite
    size = len(given.values) if isinstance(given, DiscreteLoss) else _FEW
    total, costly = 1, 0
    for bit in bin(times)[:1:-1]:
        for other in (total, size) if bit == "1" else (size,):
            costly += size * other >= _FEW * _FEW // 4
        # On a lattice, values of a sum are as many as those of both together.
        grown = (total + size, 2 * size) if given.lattice else (total * size, size * size)
        total, size = (min(grown[0], 4 * _FEW) if bit == "1" else total), min(grown[1], 4 * _FEW)
    return costly


def _on_everyone(event: Any, relation: str, pairs_of: PairsOf) -> Pairs:
    """Return the pairs where every record is in the batch."""
    found = _losses(event, relation, pairs_of)
    if all(len(parts) == 1 and parts[0][1] == 1 for parts in found):
        losses = [parts[0][0] for parts in found]
    else:
        losses = [loss_of(law, repr(event)) for law in _laws(event, relation, pairs_of)]
    return (losses[0], losses[-1]) if losses else (NO_LOSS, NO_LOSS)


# -- a replaced record of a sum on a Poisson sample


def _replaced(event: Any, relation: str) -> FiniteLaw:
    """Return the law of a replaced record of a sum."""
    with _refusing(event, relation):
        return _REPLACED[type(event.event)](event.event, event.sampling_probability)


def _between(log_noise: Reals, above: Reals, below: Reals, q: float) -> tuple[Reals, Reals]:
    """Return losses and log probabilities under Q from those of noise, and of noise moved."""
    up, down = amplified(above, q), amplified(below, q)
    return up - down, log_noise + down


def _replaced_discrete_gaussian(event: Any, q: float) -> FiniteLaw:
    s, variance = event.sensitivity, event.sigma**2
    far, log_norm, outside = noise_reach(event.sigma)
    hold(2 * (far + s), f"sensitivity={s!r}", BYTES_OF_NOISE)
    x = np.arange(-far - s, far + s + 1.0)
    above, below = (s * (sign * 2 * x - s) / (2 * variance) for sign in (1, -1))
    exact = FiniteLaw(*_between(-(x**2) / (2 * variance) - log_norm, above, below, q))
    return gathered(replace(exact, outside=outside, below=exact))


def _replaced_discrete_laplace(event: Any, q: float) -> FiniteLaw:
    a, s = event.noise_parameter, event.sensitivity
    x = np.arange(-s, s + 1.0)
    log_noise = math.log(math.tanh(a / 2)) - a * np.abs(x)
    # Outputs further out have the losses of s and -s.
    log_noise[[0, -1]] = -a * s - math.log1p(math.exp(-a))
    above, below = (a * (np.abs(x) - np.abs(x - shift)) for shift in (s, -s))
    return FiniteLaw(*_between(log_noise, above, below, q))


def _replaced_laplace(event: Any, q: float) -> FiniteLaw:
    """Return the law, cut into intervals of outputs between the shifts -1 and 1."""
    a = 1 / event.noise_multiplier
    x = np.linspace(0.0, 1.0, _INTERVALS + 1)
    low, high = x[:-1], x[1:]
    log_noise = -a * low + math.log(-math.expm1(-a / _INTERVALS) / 2)
    away = np.full(_INTERVALS, -a)
    ends, _ = _between(x, a * (2 * x - 1), np.full(len(x), -a), q)
    values, log_q = _between(log_noise, a * (low + high - 1), away, q)
    half = cut(ends, log_q, log_q + values)
    # All outputs beyond 1 have one loss.
    tail, log_tail = _between(np.array([-a - math.log(2.0)]), np.array([a]), np.array([-a]), q)
    laws = [
        FiniteLaw(np.append(item.values, tail), np.append(item.log_reference, log_tail))
        for item in (half, half.down)
    ]
    up, down = (mirrored(law.values, law.log_reference) for law in laws)
    return FiniteLaw(*up, below=FiniteLaw(*down))


_REPLACED: dict[type[events.DpEvent], Callable[[Any, float], FiniteLaw]] = {
    events.DiscreteGaussianDpEvent: _replaced_discrete_gaussian,
    events.DiscreteLaplaceDpEvent: _replaced_discrete_laplace,
    events.LaplaceDpEvent: _replaced_laplace,
}
