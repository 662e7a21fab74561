"""Private selection: try many candidates, and release only the best one.

Each trial draws a candidate at random and runs it, score included; the number of trials is random
too, and only the best run is released. Its epsilon grows with the logarithm of the number of
trials. If you release every run instead, epsilon grows with the square root of their number or
faster.

>>> from dpcal.accountants import events
>>> once = events.GaussianDpEvent(8.0)
>>> price = tuning(once, candidates=50, delta=1e-6)
>>> print(f"{price.single:.2f} once, {price:.2f} for the best of 50, {price.released:.2f} for all")
0.50 once, 0.83 for the best of 50, 4.25 for all
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.interface import epsilon as epsilon_of
from dpcal.accountants.mechanisms.best_run import log_inverse_gamma


class TuningPrice(float):
    """Epsilon of releasing the best run: a float equal to its upper bound.

    Attributes
    ----------
    delta
        At which it holds.
    method
        The theorem: ``"privacy profile"`` or ``"Renyi divergences"``.
    single
        Epsilon of one run, at the same delta.
    released
        Epsilon of releasing the mean number of runs, at the same delta.
    event
        The selection, as a ``RepeatAndSelectDpEvent``, which you can account for by itself or in a
        composition.
    """

    delta: float
    method: str
    single: float
    released: float
    event: events.DpEvent


def tuning(
    event: events.DpEvent,
    *,
    candidates: float,
    delta: float,
    shape: float = 0.0,
    neighboring_relation: str = "add-or-remove-one",
) -> TuningPrice:
    r"""Return the epsilon of running many candidates and releasing the best run.

    The number of trials K has mean ``candidates`` and is drawn beforehand; each trial draws its
    candidate at random, with replacement. Two bounds are computed, and the better is returned.

    * Renyi divergences: Papernot and Steinke 2022, Theorems 2 and 6.
    * The privacy profile of one run, by a bound of the kind of Koskela, Redberg and Wang 2024 that
      is never larger than theirs: :mod:`dpcal.accountants.mechanisms.best_run` derives it.

    You get the same answer as from :func:`dpcal.accountants.epsilon` of the selection as an event.

    Parameters
    ----------
    event
        One trial: the run of a candidate, and its private score. All candidates cost as much.
    candidates
        Mean number of trials, >= 1. With mean k, each of k candidates is tried once on average.
    delta
        In (0, 1).
    shape
        Shape of the law of K: eta >= 0 of the truncated negative binomial (0 is logarithmic, 1 is
        geometric), with which K is never 0; or infinity for Poisson, with which K is concentrated,
        and 0 with probability ``exp(-candidates)``: then the best run does not exist and the
        release is empty.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    ValueError
        For an argument out of range.
    UnsupportedEvent
        If no theorem covers the event.

    References
    ----------
    Liu and Talwar 2019, Private selection from private candidates. Papernot and Steinke 2022,
    Hyperparameter tuning with Renyi differential privacy. Koskela, Redberg and Wang 2024, Privacy
    profiles for private selection.
    """
    neighboring_relation = validate.relation(neighboring_relation)
    mean = validate.positive(candidates=candidates)
    if mean < 1:
        raise ValueError(f"candidates must be a number >= 1, got {candidates!r}.")
    target = validate.probability(delta=delta)
    if isinstance(shape, str) or not shape >= 0:
        raise ValueError(f"shape must be a number >= 0 or infinite, got {shape!r}.")
    relation: dict[str, Any] = {"neighboring_relation": neighboring_relation}
    selection = events.RepeatAndSelectDpEvent(event, mean, shape)
    price = epsilon_of(selection, delta=target, **relation)
    whole = events.SelfComposedDpEvent(event, math.ceil(mean))
    found = TuningPrice(price.upper)
    found.delta, found.event = target, selection
    found.method = "Renyi divergences" if price.accountant == "renyi" else "privacy profile"
    found.single = epsilon_of(event, delta=target, **relation).upper
    found.released = epsilon_of(whole, delta=target, **relation).upper
    return found


def number_of_runs(mean: float, shape: float, rng: np.random.Generator) -> int:
    """Return a random number of trials for a private selection. The number is a secret.

    Parameters
    ----------
    mean
        Mean >= 1, as ``candidates`` of :func:`tuning`.
    shape
        eta >= 0 of the truncated negative binomial law of the number of runs, or infinity for
        Poisson.
    rng
        Source of randomness, which must stay secret.

    >>> rng = np.random.default_rng(0)
    >>> print(f"{np.mean([number_of_runs(8.0, 1.0, rng) for _ in range(4000)]):.1f}")
    7.8
    """
    if math.isinf(shape):
        return int(rng.poisson(mean))
    if mean == 1:
        return 1
    gamma = math.exp(-log_inverse_gamma(mean, shape))
    if shape == 0:
        return int(rng.logseries(1 - gamma))
    while (found := int(rng.negative_binomial(shape, gamma))) == 0:
        pass
    return found
