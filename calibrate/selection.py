"""What does it cost to try many candidates and keep the best? The price of private selection.

Each trial draws a candidate at random and runs it, score included; the number of trials is random
too, and the best run alone is released. Its price grows with the logarithm of the number of trials,
where releasing every run would cost its square root or more.

>>> from dpcal.accountants import events
>>> once = events.GaussianDpEvent(8.0)
>>> price = tuning(once, candidates=50, delta=1e-6)
>>> print(f"{price.single:.2f} once, {price:.2f} for the best of 50, {price.released:.2f} for all")
0.50 once, 0.98 for the best of 50, 4.25 for all
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq

from dpcal import _validate
from dpcal.accountants import delta as delta_of
from dpcal.accountants import epsilon as epsilon_of
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent

__all__ = ["TuningPrice", "tuning"]

# Epsilons, in units of a single run's, at which its privacy profile bounds how much likelier a
# better run is. Between two of them little is lost; far above 1.5 the first term alone is too much.
_LEVELS = np.concatenate([[0.0], np.geomspace(0.02, 2.0, 40)])


class TuningPrice(float):
    """Epsilon of releasing the best run: a float equal to its upper bound.

    Attributes
    ----------
    delta
        At which it holds.
    method
        Which theorem gave it: ``"privacy profile"`` or ``"Renyi divergences"``.
    single
        Epsilon of one run, at the same delta.
    released
        Epsilon of releasing as many runs as there are on average, at the same delta.
    event
        The selection, as a ``RepeatAndSelectDpEvent``, which accountants price by Renyi
        divergences.
    """

    delta: float
    method: str
    single: float
    released: float
    event: events.DpEvent

    @classmethod
    def of(cls, value: float, **fields: Any) -> Self:
        """Return a price with its attributes."""
        made = cls(value)
        for name, field in fields.items():
            setattr(made, name, field)
        return made


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
    candidate at random, with replacement. Two bounds are asked, and the better one is returned.

    * Renyi divergences: Papernot and Steinke 2022, Theorems 2 and 6.
    * Privacy profiles. With F and F' the laws of the score on two neighbors, f the generating
      function of K, and y the best run, its density is q(y) f'(F(y)). For the truncated negative
      binomial law, f'(x) is proportional to ``(1 - (1 - gamma) x)^(-eta - 1)``, and because ``1 -
      F' <= e^s (1 - F) + delta(s)`` for every s >= 0, ``f'(F) <= R f'(F')`` with ``R = (e^s + (1 -
      gamma) delta(s) / gamma)^(eta + 1)``. For the Poisson law of mean m, ``f'(x) = m e^(-m (1 -
      x))`` gives ``R = exp(m (e^s - 1 + delta(s)))``. Since f' is at most ``f'(1) = m``, the
      profile of the best run is at most ``m delta(epsilon - log R)``, for every s. Koskela,
      Redberg and Wang 2024 have bounds of this kind.

    Parameters
    ----------
    event
        One trial: the run of a candidate, and its private score. All candidates cost as much.
    candidates
        Mean number of trials, >= 1. Each of k candidates is tried once on average where it is k.
    delta
        In (0, 1).
    shape
        Of the law of K: eta >= 0 of the truncated negative binomial (0 is logarithmic, 1 is
        geometric), of which K is never 0; or infinity for Poisson, which is concentrated, and 0
        with probability ``exp(-candidates)``: then nothing is released.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    ValueError
        For an argument out of range.
    UnsupportedEvent
        If no theorem prices the event.

    References
    ----------
    Liu and Talwar 2019, Private selection from private candidates. Papernot and Steinke 2022,
    Hyperparameter tuning with Renyi differential privacy. Koskela, Redberg and Wang 2024, Privacy
    profiles for private selection.
    """
    mean = _validate.positive(candidates=candidates)
    if mean < 1:
        raise ValueError(f"candidates must be a number >= 1, got {candidates!r}.")
    target = _validate.probability(delta=delta)
    if not shape >= 0:
        raise ValueError(f"shape must be a number >= 0 or infinite, got {shape!r}.")
    relation: dict[str, Any] = {"neighboring_relation": neighboring_relation}
    single = epsilon_of(event, delta=target, **relation).upper
    selection = events.RepeatAndSelectDpEvent(event, mean, shape)
    found = {"privacy profile": _by_profile(event, single, mean, shape, target, relation)}
    # A mechanism that may fail has no Renyi divergences, and has a profile.
    with suppress(UnsupportedEvent):
        found["Renyi divergences"] = epsilon_of(selection, delta=target, **relation).upper
    method = min(found, key=lambda name: found[name])
    whole = events.SelfComposedDpEvent(event, math.ceil(mean))
    return TuningPrice.of(
        found[method],
        delta=target,
        method=method,
        single=single,
        released=epsilon_of(whole, delta=target, **relation).upper,
        event=selection,
    )


def _by_profile(
    event: events.DpEvent, single: float, mean: float, shape: float, delta: float, relation: Any
) -> float:
    """Epsilon by the profile theorem: that of one run at delta / mean, plus the least log R."""
    needed = epsilon_of(event, delta=delta / mean * (1 - 1e-12), **relation).upper
    least = math.inf
    for level in _LEVELS * single:
        tail = delta_of(event, epsilon=float(level), **relation).upper
        least = min(least, _log_ratio(float(level), tail, mean, shape))
    return (needed + least) * (1 + 1e-12)


def _log_ratio(level: float, tail: float, mean: float, shape: float) -> float:
    """Log R for one s, its level, and delta(s), its tail; rounded up."""
    if math.isinf(shape):
        return mean * (math.expm1(level) + tail) * (1 + 1e-12)
    inverse = _inverse_gamma(mean, shape)
    return (shape + 1) * math.log(math.exp(level) + (inverse - 1) * tail) * (1 + 1e-12) + 1e-15


def _inverse_gamma(mean: float, shape: float) -> float:
    """1 / gamma of the truncated negative binomial law with this mean, rounded up."""
    if mean == 1:
        return 1.0

    def excess(y: float) -> float:
        # With y = log 1 / gamma, the mean is shape (e^y - 1) / (1 - e^(-shape y)); it is (e^y - 1)
        # / y for shape 0.
        below = y if shape == 0 else -math.expm1(-shape * y) / shape
        return math.log(math.expm1(y)) - math.log(below) - math.log(mean)

    high = 1.0
    while excess(high) < 0:
        high *= 2
    if excess(1e-9) >= 0:
        return math.exp(1e-9)
    return math.exp(float(brentq(excess, 1e-9, high, xtol=1e-14)) + 1e-9)
