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
relation 'replace-one'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.atoms import discrete_laplace, randomized_response
from dpcal.accountants.envelope import FixedBatchGaussian
from dpcal.accountants.loss import Gaussian, PrivacyLoss
from dpcal.accountants.sampled import SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["dominating_pairs", "refuse"]

Pairs = tuple[PrivacyLoss, PrivacyLoss]
Rule = Callable[[Any, str], Pairs]


def dominating_pairs(event: events.DpEvent, relation: str) -> Pairs:
    """Dominating pairs of one elementary event, for removing and for adding a record.

    Parameters
    ----------
    event
        An event that is no composition.
    relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    UnsupportedEvent
        If no theorem in this package covers the event under this relation.
    """
    for cls in type(event).__mro__:
        if cls in RULES:
            return RULES[cls](event, relation)
    raise refuse(event, relation)


def refuse(event: events.DpEvent, relation: str, reason: str = "") -> UnsupportedEvent:
    """Return the refusal of an event under a relation, with the reason as a second sentence."""
    sentence = f"No theorem here prices {event!r} under neighboring relation {relation!r}."
    return UnsupportedEvent(f"{sentence} {reason}".rstrip())


def _gaussian(event: events.GaussianDpEvent, relation: str) -> Pairs:
    sigma = _validate.positive(noise_multiplier=event.noise_multiplier)
    # A replaced record moves the sum by up to twice the bound on its norm.
    loss = Gaussian(sigma / 2 if relation == "replace-one" else sigma)
    return loss, loss


def _poisson_sampled(event: events.PoissonSampledDpEvent, relation: str) -> Pairs:
    q = _validate.rate(sampling_probability=event.sampling_probability)
    if q == 1:
        return dominating_pairs(event.event, relation)
    if isinstance(event.event, events.GaussianDpEvent) and relation != "replace-one":
        sigma = _validate.positive(noise_multiplier=event.event.noise_multiplier)
        return SampledGaussian(q, sigma, "remove"), SampledGaussian(q, sigma, "add")
    raise refuse(event, relation)


def _without_replacement(event: events.SampledWithoutReplacementDpEvent, relation: str) -> Pairs:
    """A record takes its place in the batch from another one, so it always moves the sum by 2."""
    size = _validate.count(source_dataset_size=event.source_dataset_size)
    batch = _validate.count(sample_size=event.sample_size)
    if batch > size:
        raise ValueError(
            f"sample_size must be at most source_dataset_size = {size}, got {event.sample_size!r}."
        )
    if batch == size:
        return dominating_pairs(event.event, relation)
    if not isinstance(event.event, events.GaussianDpEvent):
        raise refuse(event, relation)
    sigma = _validate.positive(noise_multiplier=event.event.noise_multiplier) / 2
    q = batch / size
    if relation == "add-or-remove-one":
        return SampledGaussian(q, sigma, "remove"), SampledGaussian(q, sigma, "add")
    loss = FixedBatchGaussian(q, sigma)
    return loss, loss


def _discrete_laplace(event: events.DiscreteLaplaceDpEvent, relation: str) -> Pairs:
    shift = _validate.count(sensitivity=event.sensitivity)
    shift *= 2 if relation == "replace-one" else 1
    loss = discrete_laplace(noise_parameter=event.noise_parameter, sensitivity=shift)
    return loss, loss


def _randomized_response(event: events.RandomizedResponseDpEvent, relation: str) -> Pairs:
    if relation != "replace-one":
        raise refuse(event, relation)
    loss = randomized_response(noise_parameter=event.noise_parameter, num_buckets=event.num_buckets)
    return loss, loss


def _tree(event: events.SingleEpochTreeAggregationDpEvent, relation: str) -> Pairs:
    """A record enters one leaf of one tree, so each of its ancestors once (Kairouz et al. 2021, D).

    Of s steps, complete nodes cover a record at most ceil(log2(s + 1)) times; the deepest tree
    counts.
    """
    if relation != "replace-special":
        raise refuse(event, relation)
    several = isinstance(event.step_counts, list | tuple)
    counts = event.step_counts if several else (event.step_counts,)
    sizes = [_validate.count(step_counts=count) for count in counts]
    if not sizes:
        raise ValueError(f"step_counts must be one or more whole numbers, got {counts!r}.")
    nodes = max(size.bit_length() for size in sizes)
    sigma = _validate.positive(noise_multiplier=event.noise_multiplier)
    loss = Gaussian(sigma / math.sqrt(nodes))
    return loss, loss


RULES: dict[type[events.DpEvent], Rule] = {
    events.GaussianDpEvent: _gaussian,
    events.PoissonSampledDpEvent: _poisson_sampled,
    events.SampledWithoutReplacementDpEvent: _without_replacement,
    events.DiscreteLaplaceDpEvent: _discrete_laplace,
    events.RandomizedResponseDpEvent: _randomized_response,
    events.SingleEpochTreeAggregationDpEvent: _tree,
}
