"""Which dominating pair does each mechanism have, under which relation, and by what theorem?

One table holds a rule for each class of events: a function that returns the dominating pairs, or
raises :class:`~dpcal.errors.UnsupportedEvent` with the reason why no theorem applies.

>>> from dpcal.accountants import events
>>> remove, add = dominating_pairs(events.GaussianDpEvent(2.0), "replace-one")
>>> remove
Gaussian(noise_multiplier=1.0)
>>> dominating_pairs(events.UnsupportedDpEvent(), "replace-one")
Traceback (most recent call last):
    ...
dpcal.errors.UnsupportedEvent: No theorem here prices UnsupportedDpEvent() under neighboring \
relation 'replace-one'. It stands for an operation that has no description.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from dpcal import _lazy, _validate
from dpcal.accountants import events
from dpcal.accountants.limits import hold
from dpcal.accountants.losses.allocation import Allocation, Group, KnownBatch, UnequalAllocation
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss
from dpcal.accountants.losses.discrete import (
    blanked_response,
    discrete_laplace,
    pure,
    randomized_response,
)
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.failure import Concentrated, LossWithFailure
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians
from dpcal.accountants.losses.laplace import BoundedRange, Laplace
from dpcal.accountants.mechanisms import sampling as samplers
from dpcal.accountants.mechanisms.batches import (
    count_of_batches,
    poisson_sampled,
    random_allocation,
    with_replacement,
    without_replacement,
)
from dpcal.accountants.mechanisms.leaves import (
    Pairs,
    composed,
    only_auto,
    refuse,
    refuse_reordering,
)

__all__ = ["dominating_pairs"]

# From an event and a relation to the losses in both directions, or to one loss for both.
Rule = Callable[[Any, str], Pairs | PrivacyLoss]

# Laws of selections and of last iterates, which few questions need.
_selection = _lazy.Module("dpcal.accountants.mechanisms.repeated_selection")
_descents = _lazy.Module("dpcal.accountants.mechanisms.last_iterate")
_BRACKET = "by a bracket, as the pair of a replaced record is known, but not the law of its losses"
# Largest mean number of runs, and shape of its law, of a selection: powers of both stay doubles.
_MOST_RUNS = 1e15
# Least noise with which an epoch's own transform is used: with less, powers of L are far beyond the
# range of a double, and a contour takes half a minute.
_LEAST_NOISE_TO_ALLOCATE = 1 / 20
# Bytes of a value of a discrete Laplace loss, and of what is computed from it: a million values,
# which have 170 MB, take six seconds.
_BYTES_OF_VALUE = 700
# Bytes of a component of a mixture of Gaussians, and of what is computed from it.
_BYTES_OF_COMPONENT = 14_000
# Largest loss, in nats, of a discrete Laplace mechanism. Moments need its fourth power, which must
# stay far below the range of a double.
_LARGEST_LOSS = 1e12
# Smallest loss > 0, in nats: its half, and a share of it, are normal doubles.
_LEAST_LOSS = 1e-300
# Largest shift of discrete Gaussian noise: fourth moments of a loss must stay doubles, too.
_LARGEST_SHIFT = 1e18


def dominating_pairs(event: events.DpEvent, relation: str) -> Pairs:
    """Return dominating pairs of one elementary event, for removing and for adding a record.

    Parameters
    ----------
    event
        An event that is not a composition.
    relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    UnsupportedEvent
        If no theorem in this package covers the event under this relation.
    """
    for cls in type(event).__mro__:
        if cls in RULES:
            found = RULES[cls](event, relation)
            return found if isinstance(found, tuple) else (found, found)
    if isinstance(event, events.CorrelatedGaussianDpEvent):
        raise only_auto(event, relation, "as a whole run, alone and not in a composition")
    if isinstance(event, events.ShuffledEpochsDpEvent):
        if relation == "add-or-remove-one":
            raise refuse_reordering(event, relation)
        raise only_auto(event, relation, "as a whole run, once in a composition")
    raise refuse(event, relation)


def _gaussian(event: events.GaussianDpEvent, relation: str) -> PrivacyLoss:
    sigma = _validate.noise(noise_multiplier=event.noise_multiplier)
    return Gaussian(sigma / _moved(relation))


def _truncated_poisson(event: events.TruncatedSubsampledGaussianDpEvent, relation: str) -> Pairs:
    q, sigma = event.sampling_probability, _validate.noise(noise_multiplier=event.noise_multiplier)
    size, batch = event.dataset_size, event.truncated_batch_size
    return samplers.truncated_poisson(size, q, batch, sigma, relation)


def _mixture_of_gaussians(event: events.MixtureOfGaussiansDpEvent, relation: str) -> Pairs:
    if relation == "replace-one":
        reason = "It says what a record adds to the output, not what exchanging two of them does."
        raise refuse(event, relation, reason)
    for name in ("sensitivities", "sampling_probs"):
        if not hasattr(value := getattr(event, name), "__len__"):
            raise TypeError(f"{name} must be a sequence of numbers, got {value!r}.")
    components = len(event.sensitivities)
    hold(components, f"a mixture of {components} Gaussians", _BYTES_OF_COMPONENT)
    return mixture_of_gaussians(
        event.sensitivities, event.sampling_probs, standard_deviation=event.standard_deviation
    )


def _exchanged_rows(event: events.ExchangedRowsDpEvent, relation: str) -> Pairs:
    if relation != "add-or-remove-one":
        reason = "Batches of a fixed size then have the rows in both worlds: the mixture is beaten."
        raise refuse(event, relation, reason)
    return _mixture_of_gaussians(event, relation)


def _random_allocation(event: events.RandomAllocationDpEvent, relation: str) -> Pairs:
    """Return the pair of docs/accountants.md, "Random allocation"."""
    sigma = _validate.noise(noise_multiplier=event.noise_multiplier)
    batches = count_of_batches(event.batches)
    if relation == "replace-one":
        raise only_auto(event, relation, _BRACKET)
    if batches == 1:
        return Gaussian(sigma), Gaussian(sigma)
    loss = KnownBatch if sigma < _LEAST_NOISE_TO_ALLOCATE else Allocation
    return loss(sigma, batches, "remove"), loss(sigma, batches, "add")


def _unequal_allocation(event: events.UnequalAllocationDpEvent, relation: str) -> Pairs:
    """Return the pair of docs/accountants.md, "Random allocation", for batches that differ."""
    groups = _groups_of(event)
    if relation == "replace-one":
        raise only_auto(event, relation, _BRACKET)
    if len(groups) == 1:
        (sigma, batches, _), *_ = groups
        return _random_allocation(events.RandomAllocationDpEvent(sigma, batches), relation)
    least = min(group.noise_multiplier for group in groups)
    if least < _LEAST_NOISE_TO_ALLOCATE:
        reason = (
            f"Batches that differ are priced with noise of at least {_LEAST_NOISE_TO_ALLOCATE:g}, "
            f"got {least!r}: with less, one Gaussian answer an epoch costs hardly more."
        )
        raise refuse(event, relation, reason)
    return UnequalAllocation.of(groups, "remove"), UnequalAllocation.of(groups, "add")


def _groups_of(event: events.UnequalAllocationDpEvent) -> tuple[Group, ...]:
    """Return the groups that a record may draw, alike batches in one group."""
    alike: dict[tuple[float, float], Group] = {}
    try:
        groups = [(sigma, batches, probability) for sigma, batches, probability in event.groups]
    except (TypeError, ValueError):
        raise TypeError(
            "groups must be triples of a noise multiplier, a number of batches and a probability, "
            f"got {event.groups!r}."
        ) from None
    for sigma, batches, probability in groups:
        sigma, m = _validate.noise(noise_multiplier=sigma), count_of_batches(batches)
        chance = _validate.within(0.0, 1.0, probability=probability)
        if chance > 0:
            known = alike.get((sigma, chance / m), Group(sigma, 0, 0.0))
            alike[sigma, chance / m] = Group(sigma, known.batches + m, known.probability + chance)
    total = math.fsum(group.probability for group in alike.values())
    if abs(total - 1) > 1e-9:
        raise ValueError(f"groups must have probabilities that add up to 1, got {event.groups!r}.")
    return tuple(group._replace(probability=group.probability / total) for group in alike.values())


def _discrete_laplace(event: events.DiscreteLaplaceDpEvent, relation: str) -> PrivacyLoss:
    shift = _moved(relation) * _validate.count(sensitivity=event.sensitivity)
    hold(shift, f"sensitivity={event.sensitivity!r}", _BYTES_OF_VALUE)
    a = _check_least(noise_parameter=_validate.positive(noise_parameter=event.noise_parameter))
    if a * shift > _LARGEST_LOSS:
        raise ValueError(
            f"noise_parameter must be at most {_LARGEST_LOSS:g} over the distance {shift} of two "
            f"neighbors, got {event.noise_parameter!r}."
        )
    return discrete_laplace(noise_parameter=a, sensitivity=shift)


def _randomized_response(
    event: events.RandomizedResponseDpEvent, relation: str
) -> Pairs | PrivacyLoss:
    if relation == "add-or-remove-one":
        raise refuse(
            event, relation, "An answer that is there or not reveals the record's presence."
        )
    parameters = {"noise_parameter": event.noise_parameter, "num_buckets": event.num_buckets}
    if relation == "replace-special":
        return blanked_response(**parameters)
    return randomized_response(**parameters)


def _epsilon_delta(event: events.EpsilonDeltaDpEvent, relation: str) -> PrivacyLoss:
    """Return the loss of failing with probability delta (Kairouz, Oh and Viswanath 2015)."""
    epsilon = _validate.non_negative(epsilon=event.epsilon)
    delta = _validate.non_negative(delta=event.delta)
    if delta > 1:
        raise ValueError(f"delta must be a number in [0, 1], got {event.delta!r}.")
    given = pure(epsilon) if epsilon > 0 else NO_LOSS
    return LossWithFailure(given, delta) if delta > 0 else given


def _own(event: events.DominatingPairDpEvent, relation: str) -> Pairs:
    if relation != event.neighboring_relation:
        reason = f"Its pair dominates it under {event.neighboring_relation!r}."
        raise refuse(event, relation, reason)
    for name, loss in (("removed", event.removed), ("added", event.added)):
        if not isinstance(loss, PrivacyLoss):
            raise TypeError(f"{name} must be a PrivacyLoss, got {loss!r}.")
    return event.removed, event.added


def _undescribed(event: events.DpEvent, relation: str) -> Pairs:
    raise refuse(event, relation, "It stands for an operation that has no description.")


def _laplace(event: events.LaplaceDpEvent, relation: str) -> PrivacyLoss:
    scale = _validate.noise(noise_multiplier=event.noise_multiplier)
    return Laplace(scale / _moved(relation))


def _discrete_gaussian(event: events.DiscreteGaussianDpEvent, relation: str) -> PrivacyLoss:
    shift = _moved(relation) * _validate.count(sensitivity=event.sensitivity)
    sigma = _validate.noise(sigma=event.sigma)
    if shift > _LARGEST_SHIFT:
        raise ValueError(
            f"sensitivity must be at most {_LARGEST_SHIFT / _moved(relation):g}, got "
            f"{event.sensitivity!r}."
        )
    if shift > _LARGEST_LOSS * sigma:
        raise ValueError(
            f"sensitivity must be at most {_LARGEST_LOSS:g} times sigma, got {event.sensitivity!r} "
            f"with sigma={event.sigma!r}."
        )
    return DiscreteGaussian(sigma, shift)


def _bounded_range(event: events.ExponentialMechanismDpEvent, relation: str) -> PrivacyLoss:
    epsilon = _halved(event.epsilon, event, relation)
    return BoundedRange(epsilon) if epsilon > 0 else NO_LOSS


def _permute_and_flip(event: events.PermuteAndFlipDpEvent, relation: str) -> PrivacyLoss:
    epsilon = _halved(event.epsilon, event, relation)
    return _epsilon_delta(events.EpsilonDeltaDpEvent(epsilon, 0.0), relation)


def _halved(epsilon: float, event: Any, relation: str) -> float:
    """Return the epsilon of a selection: half of it where all scores move the same way.

    Let scores move by numbers in [0, Delta]. Exponents of the exponential mechanism then move by
    numbers in [0, epsilon / 2], so that losses of two answers differ by at most epsilon / 2.
    Permute and flip releases the largest score with exponential noise of scale 2 Delta / epsilon
    (Ding, Kifer, Steinke et al. 2021): the distance from a score to the largest of the others moves
    by at most Delta, so that the ratio of the chances to exceed it is at most exp(epsilon / 2). A
    record that is replaced moves scores both ways.
    """
    value = _check_least(epsilon=_validate.non_negative(epsilon=epsilon))
    return value / 2 if _is_monotone(event) and relation != "replace-one" else value


def _check_least(**argument: float) -> float:
    """Return a number by which losses are multiplied or divided, if it is a normal double, or 0."""
    ((name, value),) = argument.items()
    if 0 < abs(value) < _LEAST_LOSS:
        raise ValueError(f"{name} must be 0 or at least {_LEAST_LOSS:g} in size, got {value!r}.")
    return value


def _is_monotone(event: Any) -> bool:
    return bool(_validate.flag(monotone=event.monotone))


def _above_threshold(event: events.AboveThresholdDpEvent, relation: str) -> PrivacyLoss:
    """Return the loss: the threshold moves by one sensitivity, the passing answer by two."""
    threshold = _validate.noise(threshold_noise=event.threshold_noise)
    query = _validate.noise(query_noise=event.query_noise)
    epsilon = _moved(relation) * (1 / threshold + 2 / query) * (1 + 2.0**-50)
    return _epsilon_delta(events.EpsilonDeltaDpEvent(epsilon, 0.0), relation)


def _report_noisy_max(event: events.ReportNoisyMaxDpEvent, relation: str) -> PrivacyLoss:
    """Return the loss: the winning score moves by one sensitivity, and so do all others.

    The distance from a score to the largest of the others then moves by two, or by one if all
    scores move the same way (Dwork and Roth 2014, Claim 3.9, for counts). A record that is replaced
    is one that is removed, and one that is added.
    """
    noise = _validate.noise(noise=event.noise)
    distance = 1 if _is_monotone(event) else 2
    epsilon = _moved(relation) * distance / noise * (1 + 2.0**-50)
    return _epsilon_delta(events.EpsilonDeltaDpEvent(epsilon, 0.0), relation)


def _moved(relation: str) -> int:
    """Return how far a record moves a sum, in bounds on one contribution: replaced, up to twice."""
    return 2 if relation == "replace-one" else 1


def _concentrated(event: events.ZCDpEvent, relation: str) -> PrivacyLoss:
    rho, xi = _validate.non_negative(rho=event.rho), _validate.non_negative(xi=event.xi)
    return Concentrated(rho=rho, xi=xi)


def _repeat_and_select(event: events.RepeatAndSelectDpEvent, relation: str) -> Pairs:
    single = composed(event.event, relation, dominating_pairs)
    if not single.private:
        raise refuse(event, relation, "What is repeated is not private.")
    mean = _validate.positive(mean=event.mean)
    shape = event.shape if event.shape == math.inf else _validate.finite(shape=event.shape)
    _check_least(shape=shape)
    if mean > _MOST_RUNS or _MOST_RUNS < shape < math.inf:
        raise ValueError(
            f"mean and shape must be at most {_MOST_RUNS:g}, or shape infinite, got {mean!r} and "
            f"{shape!r}."
        )
    pairs = [
        _selection.RepeatedSelection(single.directions, mean, shape, forward)
        for forward in (True, len(single.directions) == 1)
    ]
    if all(item.finite[0] == 0 for item in single.directions):
        return pairs[0], pairs[1]
    # A run that may fail has no finite Renyi divergences, but its profile may be known.
    remove, add = (pair.law for pair in pairs)
    if remove is None or add is None:
        raise refuse(event, relation, "What is repeated has infinite Renyi divergences.")
    return remove, add


def _tree(event: events.SingleEpochTreeAggregationDpEvent, relation: str) -> PrivacyLoss:
    """Return the loss of a record in one leaf and its ancestors (Kairouz et al. 2021, appendix D).

    Of s steps, complete nodes cover a record at most ceil(log2(s + 1)) times; the deepest tree
    counts.
    """
    if relation != "replace-special":
        reason = "Only a blanked record leaves all others in their leaves of the tree."
        raise refuse(event, relation, reason)
    several = isinstance(event.step_counts, list | tuple)
    counts = event.step_counts if several else (event.step_counts,)
    sizes = [_validate.count(step_counts=count) for count in counts]
    if not sizes:
        raise ValueError(f"step_counts must be one or more whole numbers, got {counts!r}.")
    nodes = max(size.bit_length() for size in sizes)
    sigma = _validate.noise(noise_multiplier=event.noise_multiplier)
    return Gaussian(sigma / math.sqrt(nodes))


RULES: dict[type[events.DpEvent], Rule] = {
    events.GaussianDpEvent: _gaussian,
    events.PoissonSampledDpEvent: partial(poisson_sampled, pairs_of=dominating_pairs),
    events.SampledWithoutReplacementDpEvent: partial(
        without_replacement, pairs_of=dominating_pairs
    ),
    events.SampledWithReplacementDpEvent: with_replacement,
    events.TruncatedSubsampledGaussianDpEvent: _truncated_poisson,
    events.MixtureOfGaussiansDpEvent: _mixture_of_gaussians,
    events.ExchangedRowsDpEvent: _exchanged_rows,
    events.RandomAllocationDpEvent: _random_allocation,
    events.UnequalAllocationDpEvent: _unequal_allocation,
    events.AllocatedDpEvent: partial(random_allocation, pairs_of=dominating_pairs),
    events.DiscreteLaplaceDpEvent: _discrete_laplace,
    events.RandomizedResponseDpEvent: _randomized_response,
    events.LaplaceDpEvent: _laplace,
    events.DiscreteGaussianDpEvent: _discrete_gaussian,
    events.ExponentialMechanismDpEvent: _bounded_range,
    events.PermuteAndFlipDpEvent: _permute_and_flip,
    events.ZCDpEvent: _concentrated,
    events.RepeatAndSelectDpEvent: _repeat_and_select,
    events.EpsilonDeltaDpEvent: _epsilon_delta,
    events.DominatingPairDpEvent: _own,
    events.LastIterateDpEvent: lambda event, relation: _descents.last_iterate(event, relation),
    events.AboveThresholdDpEvent: _above_threshold,
    events.ReportNoisyMaxDpEvent: _report_noisy_max,
    events.SingleEpochTreeAggregationDpEvent: _tree,
    events.UnsupportedDpEvent: _undescribed,
}
