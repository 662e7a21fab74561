"""What does the event of a whole run of correlated noise cost? From a strategy to an event.

Answers of a matrix mechanism are not independent, so that a run is one event and a single step has
no price. If the steps are in fact independent, the event is a composition that every accountant
prices:

>>> from dpcal.accountants.matrix import Banded, LambdaCGD
>>> from dpcal.accountants.samplers import Poisson
>>> whole_run(LambdaCGD(100, 0.0), Poisson(0.01), noise_multiplier=1.0)
... # doctest: +NORMALIZE_WHITESPACE
SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01,
event=GaussianDpEvent(noise_multiplier=1.0)), count=100)

Otherwise it is a :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`, even if it has the
price of a composition under the relations of the theorems: under other relations it has not.

>>> event = whole_run(LambdaCGD(100, 0.5), Poisson(0.01), noise_multiplier=3.0, statistics="none")
>>> answer = epsilon(event, delta=1e-5, neighboring_relation="add-or-remove-one")
>>> print(f"{answer:.3f} {answer.label}")
0.418 certified
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import attr

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.correlated.answers import CorrelatedDelta, CorrelatedEpsilon
from dpcal.accountants.correlated.bounds.reductions import compositions
from dpcal.accountants.correlated.mechanism import Mechanism, Shaped
from dpcal.accountants.correlated.price import Goal, Options, Question, answer
from dpcal.accountants.correlated.table import chosen
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.samplers import Poisson, Sampler
from dpcal.errors import UnsupportedEvent

__all__ = ["DRAWING", "check_relation", "delta", "epsilon", "priced", "whole_run"]

# Options that a question may replace in an event, because they do not change what is priced.
DRAWING = ("statistics", "draws", "seed", "failure_probability")


def whole_run(
    strategy: Shaped, sampler: Sampler, *, noise_multiplier: float, **accounting: Any
) -> events.DpEvent:
    """Return the event of a whole run of correlated noise on random batches.

    Parameters
    ----------
    strategy
        The matrix C, a :class:`dpcal.accountants.matrix.Strategy`.
    sampler
        How batches are drawn.
    noise_multiplier
        Standard deviation > 0 of z, in units of the clipping norm.
    **accounting
        The other fields of :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`; they are
        not used if the price is exact.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the matrix or the sampler, with the reason.
    """
    sigma = _validate.noise(noise_multiplier=noise_multiplier)
    mechanism = Mechanism.of(strategy, noise_multiplier=sigma)
    chosen(mechanism, sampler)
    groups = sampler.groups(mechanism.steps)
    if groups is not None and isinstance(sampler, Poisson) and mechanism.bands == 1:
        if mechanism.column is not None and mechanism.column[0] == 1:
            return events.dpsgd(
                sampling_probability=groups.rate,
                noise_multiplier=sigma,
                steps=mechanism.steps,
            )
        (event,) = compositions(mechanism, sampler)
        return event
    epochs = sampler.epochs(mechanism.steps)
    if mechanism.bands == 1 and mechanism.column is not None and epochs and epochs.times == 1:
        norm = float(mechanism.column[0]) * math.sqrt(epochs.repeated) / sigma
        epoch = events.RandomAllocationDpEvent((1 - 1e-15) / norm, epochs.rounds)
        return events.SelfComposedDpEvent(epoch, epochs.drawn)
    return events.CorrelatedGaussianDpEvent(strategy, sampler, sigma, **accounting)


def check_relation(strategy: Shaped, sampler: Sampler, neighboring_relation: str) -> None:
    """Refuse a neighboring relation that runs with correlated noise are not calibrated for.

    A record's participations do not depend on other records, and sums are divided by a public
    number: adding or removing a record and zeroing it out are one pair of distributions. For a
    record that is replaced the pair is another one, which :func:`epsilon` and :func:`delta` price.
    """
    _validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
    if neighboring_relation != "replace-one":
        return
    if isinstance(sampler, Poisson) and Mechanism.of(strategy, noise_multiplier=1.0).bands == 1:
        return
    raise UnsupportedEvent(
        "Correlated noise on random batches is not calibrated for neighboring relation "
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
        ``"add-or-remove-one"``, ``"replace-special"`` or ``"replace-one"``.
    **options
        Fields of the event to replace, such as a ``seed`` for independent draws.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the pair.
    """
    goal = Goal(delta=_validate.probability(delta=delta))
    found: CorrelatedEpsilon = _asked(goal, event, neighboring_relation, options)
    return found


def delta(
    event: events.CorrelatedGaussianDpEvent,
    *,
    epsilon: float,
    neighboring_relation: str,
    **options: Any,
) -> CorrelatedDelta:
    """Return the delta of a whole run at an epsilon >= 0; see :func:`epsilon`."""
    goal = Goal(epsilon=_validate.non_negative(epsilon=epsilon))
    found: CorrelatedDelta = _asked(goal, event, neighboring_relation, options)
    return found


def _asked(
    goal: Goal, event: events.CorrelatedGaussianDpEvent, relation: str, options: dict[str, Any]
) -> Any:
    _validate.choice(RELATIONS, neighboring_relation=relation)
    for name in options:
        if name not in DRAWING:
            raise TypeError(
                f"options of correlated noise must be among {', '.join(DRAWING)}, got {name!r}."
            )
    event = attr.evolve(event, **options)
    # The answer for a seed is kept, since its draws are always the same.
    return (priced if event.seed is None else _remembered)(goal, event, relation)


def priced(
    goal: Goal,
    event: events.CorrelatedGaussianDpEvent,
    relation: str = "zero-out",
    executor: Any = None,
) -> Any:
    """Return the price of a whole run, for a record that is zeroed out, or replaced.

    Parameters
    ----------
    goal
        Its epsilon, or its delta, is given.
    event
        The run.
    relation
        The relation that the answer names; ``"replace-one"`` has a pair of its own.
    executor
        Who draws.
    """
    options = Options(**{name: getattr(event, name) for name in DRAWING}, executor=executor)
    reserved = 0.0
    if event.statistics == "certified" and event.confirmations > 1:
        failure = event.failure_probability
        if failure is None:
            # The default failure probability is that of all confirmations together.
            total = options.failure(goal.delta)
            failure = total / event.confirmations
        options = replace(options, failure_probability=failure)
        reserved = (event.confirmations - 1) * failure
    run = event.strategy, event.sampler, event.noise_multiplier
    return answer(Question.of(*run, options, relation), goal, reserved)


_remembered = lru_cache(maxsize=128)(priced)
