"""What does a whole run of correlated noise cost? From a strategy to an event, and back.

Answers of a matrix mechanism are not independent, so that a run is one event and its steps have no
price of their own. Where steps are independent after all, the event says so and every accountant
prices it:

>>> from dpcal.accountants import correlated
>>> from dpcal.accountants.matrix import Banded, LambdaCGD
>>> whole_run(LambdaCGD(100, 0.0), correlated.Poisson(0.01), noise_multiplier=1.0)
... # doctest: +NORMALIZE_WHITESPACE
SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01,
event=GaussianDpEvent(noise_multiplier=1.0)), count=100)

Otherwise it is a :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`, also where its price
is that of a composition under the relations that theorems speak of: under others it is not.

>>> event = whole_run(
...     LambdaCGD(100, 0.5), correlated.Poisson(0.01), noise_multiplier=3.0, statistics="none")
>>> answer = epsilon(event, delta=1e-5, neighboring_relation="add-or-remove-one")
>>> print(f"{answer:.3f} {answer.label}")
0.560 certified
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import attr

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.correlated import api
from dpcal.accountants.correlated.answers import CorrelatedDelta, CorrelatedEpsilon
from dpcal.accountants.correlated.bounds.proved import compositions
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.table import chosen
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.samplers import Sampler
from dpcal.errors import UnsupportedEvent

__all__ = ["check_relation", "delta", "epsilon", "whole_run"]


def whole_run(
    strategy: Any, sampler: Sampler, *, noise_multiplier: float, **accounting: Any
) -> events.DpEvent:
    """Return the event of a whole run of correlated noise on random batches.

    Parameters
    ----------
    strategy
        The matrix C, a :class:`dpcal.accountants.matrix.Strategy`.
    sampler
        Who takes part when.
    noise_multiplier
        Standard deviation > 0 of z, in units of the clipping norm.
    **accounting
        The other fields of :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`; they do
        not matter where the price is exact.

    Raises
    ------
    UnsupportedEvent
        With the reason, where no theorem covers the matrix or the sampler.
    """
    sigma = _validate.noise(noise_multiplier=noise_multiplier)
    mechanism = Mechanism.of(strategy, noise_multiplier=sigma)
    chosen(mechanism, sampler)
    groups = sampler.groups(mechanism.steps)
    if groups is not None and sampler.independent and mechanism.bands == 1:
        if mechanism.column is not None and mechanism.column[0] == 1:
            return events.dpsgd(
                sampling_probability=groups.rate,
                noise_multiplier=sigma,
                steps=mechanism.steps,
            )
        (event,) = compositions(mechanism, sampler)
        return event
    return events.CorrelatedGaussianDpEvent(strategy, sampler, sigma, **accounting)


def check_relation(strategy: Any, sampler: Sampler, neighboring_relation: str) -> None:
    """Refuse a neighboring relation that no theorem covers under correlated noise.

    A record's participations do not depend on other records, and sums are divided by a public
    number: adding or removing a record and zeroing it out are one pair of distributions. For a
    record that is replaced no dominating pair is known, unless steps are independent.
    """
    _validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
    if neighboring_relation != "replace-one":
        return
    if sampler.independent and Mechanism.of(strategy, noise_multiplier=1.0).bands == 1:
        return
    raise UnsupportedEvent(
        "No theorem here prices correlated noise on random batches under neighboring relation "
        "'replace-one'. Use 'add-or-remove-one' or 'replace-special', or ask all records at every "
        "step (sampler 'full')."
    )


def epsilon(
    event: events.CorrelatedGaussianDpEvent,
    *,
    delta: float,
    neighboring_relation: str,
    **options: Any,
) -> CorrelatedEpsilon:
    """Return the epsilon of a whole run.

    Parameters
    ----------
    event
        The run.
    delta
        In (0, 1).
    neighboring_relation
        ``"add-or-remove-one"`` or ``"replace-special"``.
    **options
        Fields of the event to replace, such as a ``seed`` for independent draws.

    Raises
    ------
    UnsupportedEvent
        For ``"replace-one"``, or where no theorem covers the pair.
    """
    check_relation(event.strategy, event.sampler, neighboring_relation)
    target = _validate.probability(delta=delta)
    asked = _replaced(event, options)
    return _copy(_epsilon(asked, target), neighboring_relation)


def delta(
    event: events.CorrelatedGaussianDpEvent,
    *,
    epsilon: float,
    neighboring_relation: str,
    **options: Any,
) -> CorrelatedDelta:
    """Return the delta of a whole run.

    Parameters
    ----------
    event
        The run.
    epsilon
        At least 0.
    neighboring_relation
        ``"add-or-remove-one"`` or ``"replace-special"``.
    **options
        Fields of the event to replace, such as a ``seed`` for independent draws.

    Raises
    ------
    UnsupportedEvent
        For ``"replace-one"``, or where no theorem covers the pair.
    """
    check_relation(event.strategy, event.sampler, neighboring_relation)
    at = _validate.non_negative(epsilon=epsilon)
    asked = _replaced(event, options)
    return _copy(_delta(asked, at), neighboring_relation)


def _replaced(
    event: events.CorrelatedGaussianDpEvent, options: dict[str, Any]
) -> events.CorrelatedGaussianDpEvent:
    """The event with other draws, which must not change what is priced."""
    drawing = ("statistics", "draws", "seed", "failure_probability")
    for name in options:
        if name not in drawing:
            raise TypeError(
                f"options of correlated noise must be among {', '.join(drawing)}, got {name!r}."
            )
    return attr.evolve(event, **options)


def _epsilon(event: events.CorrelatedGaussianDpEvent, target: float) -> CorrelatedEpsilon:
    # Fresh draws are drawn afresh; those of a seed need not be drawn twice.
    ask = _ask_epsilon if event.seed is None else _remembered_epsilon
    return ask(event, target)


def _delta(event: events.CorrelatedGaussianDpEvent, at: float) -> CorrelatedDelta:
    return (_ask_delta if event.seed is None else _remembered_delta)(event, at)


def _ask_epsilon(event: events.CorrelatedGaussianDpEvent, target: float) -> CorrelatedEpsilon:
    failure = _failure(event, target)
    return api.epsilon(
        event.strategy,
        event.sampler,
        noise_multiplier=event.noise_multiplier,
        delta=target - _reserved(event, failure),
        **_drawing(event, failure),
    )


def _ask_delta(event: events.CorrelatedGaussianDpEvent, at: float) -> CorrelatedDelta:
    failure = _failure(event, 1e-7)
    answer = api.delta(
        event.strategy,
        event.sampler,
        noise_multiplier=event.noise_multiplier,
        epsilon=at,
        **_drawing(event, failure),
    )
    reserved = 0.0 if answer.failure_probability == 0 else _reserved(event, failure)
    return _copy(answer, answer.neighboring_relation, min(1.0, answer.upper + reserved))


_remembered_epsilon = lru_cache(maxsize=128)(_ask_epsilon)
_remembered_delta = lru_cache(maxsize=128)(_ask_delta)


def _failure(event: events.CorrelatedGaussianDpEvent, target: float) -> float:
    """The failure probability of one answer; by default a hundredth of delta for all of them."""
    if event.failure_probability is not None:
        return float(event.failure_probability)
    return 0.01 * target / event.confirmations if event.statistics == "certified" else 0.05


def _reserved(event: events.CorrelatedGaussianDpEvent, failure: float) -> float:
    """The part of delta that belongs to answers before this one."""
    return (event.confirmations - 1) * failure if event.statistics == "certified" else 0.0


def _drawing(event: events.CorrelatedGaussianDpEvent, failure: float) -> dict[str, Any]:
    return {
        "statistics": event.statistics,
        "draws": event.draws,
        "seed": event.seed,
        "failure_probability": failure,
    }


Answer = TypeVar("Answer", CorrelatedEpsilon, CorrelatedDelta)


def _copy(answer: Answer, relation: str, upper: float | None = None) -> Answer:
    """The answer under the relation that was asked for: zeroing out is the same pair."""
    upper = answer.upper if upper is None else upper
    return type(answer)(
        upper,
        lower=min(answer.lower, upper),
        method=answer.method,
        label=answer.label,
        estimate=answer.estimate,
        failure_probability=answer.failure_probability,
        draws=answer.draws,
        seed=answer.seed,
        certified=answer.certified,
        note=answer.note,
        neighboring_relation=relation,
    )
