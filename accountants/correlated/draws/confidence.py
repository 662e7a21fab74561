"""How sure is a sample mean? Confidence bounds that hold at every sample size.

>>> print(f"{upper_mean(0.0, draws=100_000, failure_probability=1e-3):.5e}")
6.90752e-05
>>> print(f"{upper_mean(1e-3, draws=100_000, failure_probability=1e-3):.5e}")
1.41880e-03
>>> print(f"{pipeline_delta(5e-6, draws=11_000_000):.2e}")
9.93e-06
"""

from __future__ import annotations

import math

import numpy as np

from dpcal import _validate

__all__ = ["draws_needed", "lower_mean", "pipeline_delta", "upper_mean"]


def _divergence(p: float, q: float) -> float:
    """Kullback-Leibler divergence of Bernoulli(p) from Bernoulli(q)."""
    if q <= 0 or q >= 1:
        return 0.0 if p == q else math.inf
    first = p * math.log(p / q) if p > 0 else 0.0
    second = (1 - p) * (math.log1p(-p) - math.log1p(-q)) if p < 1 else 0.0
    return max(0.0, first + second)


def upper_mean(
    mean: float, *, draws: int, failure_probability: float, largest: float = 1.0
) -> float:
    """Return a bound that the true mean exceeds with at most the given probability.

    Parameters
    ----------
    mean
        Mean of independent draws in [0, largest].
    draws
        Their number.
    failure_probability
        In (0, 1).
    largest
        A proved bound on every draw.

    Notes
    -----
    Hoeffding 1963, Theorem 1, inverted. The bound is increasing in ``mean`` and in ``largest``.
    """
    p = min(max(mean / largest, 0.0), 1.0)
    goal = -math.log(failure_probability) / draws
    low, high = p, 1.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if _divergence(p, middle) <= goal else (low, middle)
    return largest * high * (1 + 1e-12)


def lower_mean(
    mean: float, *, draws: int, failure_probability: float, largest: float = 1.0
) -> float:
    """Return a bound that the true mean falls below with at most the given probability.

    Parameters as for :func:`upper_mean`.
    """
    p = min(max(mean / largest, 0.0), 1.0)
    return largest * max(
        0.0, 1 - upper_mean(1 - p, draws=draws, failure_probability=failure_probability)
    )


def draws_needed(delta: float, *, failure_probability: float, largest: float = 1.0) -> int:
    """Return the least number of draws whose bound can fall to ``delta``, were every draw zero.

    Parameters
    ----------
    delta
        Upper bound wanted on the mean, positive.
    failure_probability, largest
        As for :func:`upper_mean`.

    >>> draws_needed(1e-5, failure_probability=1e-7)
    1611802
    """
    if delta >= largest:
        return 1
    return math.ceil(1.0000001 * -math.log(failure_probability) / -math.log1p(-delta / largest))


def pipeline_delta(base: float, *, draws: int, largest: float = 1.0) -> float:
    """Return the delta of calibrating, verifying with fresh draws, and only then running.

    Candidates are tested from most to least private, each with fresh and secret draws, and the last
    one before the first failure runs; a candidate passes if the mean of both directions is at most
    ``base``. The statement is about the randomised pipeline, not about one printed parameter.

    Parameters
    ----------
    base
        Threshold of the sample mean, in (0, largest).
    draws
        Draws for each candidate and direction.
    largest
        A proved bound on every draw.

    Notes
    -----
    Wang et al. 2023 (A randomized approach for tight privacy accounting), in the ordered form of
    Dong and Ganesh 2026: min over tau > 1 of tau base + q (1 - tau base), with
    q = exp(-draws KL(base / largest, tau base / largest)).
    """
    _validate.positive(base=base)
    if base >= largest:
        raise ValueError(f"base must be less than largest={largest!r}, got {base!r}.")
    best = 1.0
    for tau in np.geomspace(1.0001, max(1.0002, min(50.0, 0.999 * largest / base)), 4000):
        accepted = float(tau) * base
        if accepted >= min(1.0, largest):
            break
        q = math.exp(-draws * _divergence(base / largest, accepted / largest))
        best = min(best, accepted + q * (1 - accepted))
    return best
