"""How much correlated noise does a target need, when the accountant itself draws at random?

The search uses common random numbers: the same draws at every noise multiplier, so that the
estimate is a smooth function. What it finds owes something to the luck of those draws, so it is
confirmed once, or a few times after raising it, by independent draws. The failure probabilities of
all confirmations sum to the one that is asked for.

>>> import numpy as np
>>> from types import SimpleNamespace
>>> from dpcal.accountants import correlated
>>> from dpcal.calibrate.correlated import noise_multiplier
>>> C = np.tril(0.5 ** np.maximum(np.subtract.outer(np.arange(64), np.arange(64)), 0))
>>> run = SimpleNamespace(steps=64, matrix=lambda: C, decay=0.5)
>>> found = noise_multiplier(run, correlated.Poisson(0.02), epsilon=2.0, delta=1e-3, draws=20_000,
...                          seed=0)
>>> found.confirmation <= 1e-3, found.confirmation.label, 0.5 < found.noise_multiplier < 1.5
(True, 'statistical with certified confidence', True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcal import _validate
from dpcal.accountants import correlated
from dpcal.accountants.correlated import CorrelatedDelta, Mechanism, Sampler
from dpcal.accountants.correlated.table import EXACT, chosen
from dpcal.errors import TargetUnreachable

__all__ = ["CalibratedNoise", "noise_multiplier", "proved_noise_multiplier"]

# The search aims at this part of delta, so that the confirmation rarely fails.
_AIM = 0.9
_WIDTH = 2e-3
_EXACT_WIDTH = 1e-7

# A confirmation that fails raises the noise by this factor.
_RAISE = 1.01
_MOST_CONFIRMATIONS = 8


@dataclass(frozen=True)
class CalibratedNoise:
    """A noise multiplier, and the independent answer that confirms it.

    Attributes
    ----------
    noise_multiplier
        Standard deviation of z, in units of the clipping norm; not divided by a norm of C.
    epsilon, delta
        The target.
    confirmation
        The delta at this multiplier from draws that the search did not use; its label and failure
        probability are the result's.
    confirmations
        How many times a multiplier was put to the test; each has its own part, halving from one to
        the next, of the failure probability.
    """

    noise_multiplier: float
    epsilon: float
    delta: float
    confirmation: CorrelatedDelta
    confirmations: int

    @property
    def label(self) -> str:
        """How the answer is known."""
        return self.confirmation.label


def noise_multiplier(
    strategy: Any,
    sampler: Sampler,
    *,
    epsilon: float,
    delta: float,
    failure_probability: float | None = None,
    seed: int | None = None,
    **options: Any,
) -> CalibratedNoise:
    """Return a noise multiplier that meets (epsilon, delta) under correlated noise.

    Parameters
    ----------
    strategy, sampler
        As for :func:`dpcal.accountants.correlated.epsilon`.
    epsilon, delta
        The target: epsilon >= 0 and delta in (0, 1).
    failure_probability
        Of all confirmations together, default delta / 100; it is part of delta.
    seed
        Fixes the draws; fresh and secret by default.
    **options
        As for :func:`dpcal.accountants.correlated.delta`.

    Returns
    -------
    CalibratedNoise
        With the confirming answer; the least multiplier within about 1% at 100,000 draws.

    Raises
    ------
    TargetUnreachable
        If no multiplier up to 1e6 is confirmed.
    """
    target = _validate.probability(delta=delta)
    at = _validate.non_negative(epsilon=epsilon)
    total = target / 100 if failure_probability is None else failure_probability
    # Different questions get different draws: child 0 for the search, one for each confirmation.
    seeds = np.random.SeedSequence(seed).generate_state(_MOST_CONFIRMATIONS + 1, np.uint64)

    def answer(z: float, attempt: int, gamma: float) -> CorrelatedDelta:
        return correlated.delta(
            strategy,
            sampler,
            noise_multiplier=z,
            epsilon=at,
            failure_probability=gamma,
            seed=int(seeds[attempt]),
            **options,
        )

    row = chosen(Mechanism.of(strategy, noise_multiplier=1.0), sampler)
    exact = row.label == EXACT
    aim, width = (target, _EXACT_WIDTH) if exact else (_AIM * target, _WIDTH)
    start = 1.0 if exact else proved_noise_multiplier(strategy, sampler, epsilon=at, delta=target)
    z = _least(lambda value: answer(value, 0, total / 2) <= aim, width, start)
    for attempt in range(1, _MOST_CONFIRMATIONS + 1):
        confirmation = answer(z, attempt, total / 2**attempt)
        if confirmation <= target:
            return CalibratedNoise(z, at, target, confirmation, attempt)
        z *= _RAISE
    raise TargetUnreachable(
        f"No noise multiplier near {z:.4g} was confirmed for epsilon={at!r} at delta={target!r}: "
        "the draws are too few to tell. Choose more draws."
    )


def proved_noise_multiplier(
    strategy: Any, sampler: Sampler, *, epsilon: float, delta: float
) -> float:
    """Return a noise multiplier that meets (epsilon, delta) by a deterministic bound.

    Parameters and errors as for :func:`noise_multiplier`. Participations are revealed, or, for
    lambda-CGD with Poisson sampling, Renyi moments are taken where they need less noise.
    """
    at = _validate.non_negative(epsilon=epsilon)
    target = _validate.probability(delta=delta)

    def meets(z: float) -> bool:
        answer = correlated.epsilon(
            strategy, sampler, noise_multiplier=z, delta=target, statistics="none"
        )
        return bool(answer <= at)

    # A sure bound that is cheap: nobody gains from knowing who took part.
    revealed = _least(
        lambda z: bool(
            correlated.revealed_delta(strategy, sampler, noise_multiplier=z, epsilon=at) <= target
        ),
        _WIDTH,
        1.0,
    )
    return _least(meets, _WIDTH, revealed)


def _least(meets: Callable[[float], bool], width: float, start: float) -> float:
    """The least multiplier that meets a target, to a relative width."""
    low, high = 0.0, start
    while not meets(high):
        low, high = high, 2 * high
        if high > 1e6 * start:
            raise TargetUnreachable(f"No noise multiplier up to {high:.3g} meets the target.")
    while low == 0.0:
        if high < 1e-3 * start:
            return high
        low, high = (high / 2, high) if not meets(high / 2) else (0.0, high / 2)
    while high / low > 1 + width:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high
