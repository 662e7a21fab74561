r"""Which event with certificates dominates draws with replacement? A mixture, with proved weights.

A batch of ``batch`` draws from ``size`` records holds the record k times with the probability b_k
of Bin(batch, 1 / size), each time in place of another record. If the record is removed or added,
the mixture of N(2 k, sigma^2) with the weights b_k against N(0, sigma^2) dominates
(:mod:`~dpcal.accountants.mechanisms.sampling`), and the loss grows with k. So

* more than ``most`` draws count as a failure, with a probability that is rounded up;
* given that there is none, the probability of k draws or more is rounded up to a multiple of 2^-53.

The weights are then doubles that sum to 1 exactly. All binomial probabilities are balls.

>>> event = dominating_draws(6000, 60, noise_multiplier=2.0, steps=10, failure=1e-10)
>>> mixture, claim = (item.event for item in event.events)
>>> mixture.sensitivities, claim.delta < 1e-10, sum(mixture.sampling_probs) == 1
([0.0, 2.0, 4.0, 6.0, 8.0], True, True)
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpcal import _validate
from dpcal.accountants.certificates import balls
from dpcal.accountants.certificates.balls import Ball
from dpcal.accountants.events import (
    ComposedDpEvent,
    DpEvent,
    EpsilonDeltaDpEvent,
    MixtureOfGaussiansDpEvent,
    SelfComposedDpEvent,
)
from dpcal.errors import UnsupportedEvent

__all__ = ["dominating_draws"]

# Precision of the binomial probabilities: a power of a number near 1, and quotients.
_BITS = 256
# Weights are multiples of 2 to minus this power, so that their sums are doubles. Each is rounded up
# by 1e-16 at most, which does not change a visible digit of a delta of 1e-12 over 1,000 steps.
_GRID = 53
# Most draws of one record that are counted: for a record that is drawn more often, sampling has no
# benefit.
_MOST_DRAWS = 64


def dominating_draws(
    size: int, batch: int, *, noise_multiplier: float, steps: int, failure: float
) -> DpEvent:
    """Return an event that dominates noisy sums over draws with replacement.

    The event dominates if a record is added or removed, ``size`` being the number of records of the
    larger data set. It need not dominate under another relation.

    Parameters
    ----------
    size
        Number of records, a whole number > 1.
    batch
        Number of draws of each step, a whole number >= 1.
    noise_multiplier
        Standard deviation > 0 of the noise over the bound on one record's norm.
    steps
        Number of steps >= 1.
    failure
        Largest probability in (0, 1), per step, of more draws than are counted.

    Returns
    -------
    DpEvent
        The steps of a mixture of Gaussians, with a failure for each step.

    Raises
    ------
    UnsupportedEvent
        If one record may be drawn more than 64 times, or is always drawn.

    Notes
    -----
    Source: joint convexity of hockey-stick divergences, and the lemma of Neyman and Pearson.
    """
    size = _validate.count(size=size)
    batch = _validate.count(batch=batch)
    steps = _validate.count(steps=steps)
    failure = _validate.probability(failure=failure)
    sigma = _validate.noise(noise_multiplier=noise_multiplier)
    if size == 1:
        raise UnsupportedEvent("A single record is drawn always: size must be > 1.")
    with balls.workprec(_BITS):
        chances, beyond = _law(size, batch, failure)
        weights = [_upper(chance / (1 - beyond)) for chance in chances]
        failing = _upper(beyond)
    tails = [Fraction(1)]
    for k in range(1, len(weights)):
        above = sum(math.ceil(weight * 2**_GRID) for weight in weights[k:])
        tails.append(min(Fraction(above, 2**_GRID), tails[-1]))
    shares = [float(a - b) for a, b in zip(tails, [*tails[1:], Fraction(0)], strict=True)]
    mixture = MixtureOfGaussiansDpEvent(sigma, [2.0 * k for k in range(len(shares))], shares)
    parts = [SelfComposedDpEvent(mixture, steps)]
    if failing > 0:
        nearest = float(failing)
        above_it = nearest if Fraction(nearest) >= failing else math.nextafter(nearest, 1.0)
        parts.append(SelfComposedDpEvent(EpsilonDeltaDpEvent(0.0, above_it), steps))
    return ComposedDpEvent(parts)


def _law(size: int, batch: int, failure: float) -> tuple[list[Ball], Ball]:
    """Return the chances of 0, 1, ... draws, and a bound <= ``failure`` on that of more draws."""
    chances = [(1 - balls.arb(1) / size) ** batch]
    for k in range(1, min(batch, _MOST_DRAWS) + 2):
        following = chances[-1] * (batch - k + 1) / (k * (size - 1))
        # The chances of k and more draws are at most a geometric series.
        ratio = balls.arb(batch - k) / ((k + 1) * (size - 1))
        if k > 1 and ratio < 1 and following / (1 - ratio) <= failure:
            return chances, following / (1 - ratio)
        chances.append(following)
    raise UnsupportedEvent(
        f"{batch} draws from {size} records may hold one record too often to be certified."
    )


def _upper(ball: Ball) -> Fraction:
    """Return the upper end of a ball, exactly."""
    mantissa, exponent = (int(part) for part in ball.upper().man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
