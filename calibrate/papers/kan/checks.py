"""Programs that claims and errata of the paper name: loops, sums, and costs."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from dpcal.calibrate.papers.claims.kinds import Enumeration

RATES = [Fraction(1, 3), Fraction(7, 10), Fraction(19, 20)]


def _lower(size: int, diagonals: list[Fraction]) -> Any:
    """Return a matrix of fractions with constant diagonals, from the main one downward."""
    rows = range(size)
    entries = dict(enumerate(diagonals))
    return np.array([[entries.get(t - k, Fraction(0)) for k in rows] for t in rows], dtype=object)


def _strategy(size: int, correlation: Fraction) -> Any:
    """Return C: powers of the correlation below the diagonal."""
    return _lower(size, [correlation**k for k in range(size)])


def _sensitivity_squared(size: int, correlation: Fraction, chosen: tuple[int, ...]) -> Any:
    """Return the squared L2 norm of the sum of the chosen columns of C."""
    return (_strategy(size, correlation)[:, list(chosen)].sum(axis=1) ** 2).sum()


PARTS = [(size, rate, k) for size in (4, 7) for rate in RATES for k in (1, 2, 4)]


def _tridiagonal(case: tuple[int, Fraction]) -> bool:
    """(C C^T)^-1 is tridiagonal with 1 + lam^2 except for the last entry 1."""
    size, rate = case
    inverse = _lower(size, [Fraction(1), -rate])
    expected = _lower(size, [1 + rate**2, -rate])
    expected = np.tril(expected) + np.tril(expected, -1).T
    expected[-1, -1] = Fraction(1)
    return bool((inverse.T @ inverse == expected).all())


def _spectral(case: tuple[int, Fraction]) -> bool:
    """||C||_2 <= g_N by the Perron test: the row sums of C^T C are at most g_N^2."""
    size, rate = case
    matrix = _strategy(size, rate)
    return bool(((matrix.T @ matrix).sum(axis=1) <= ((1 - rate**size) / (1 - rate)) ** 2).all())


def _first_is_worst(case: tuple[int, Fraction, int]) -> bool:
    """Return whether the first k steps are the worst of all choices of k steps to take part in."""
    size, rate, count = case
    worst = max(
        _sensitivity_squared(size, rate, chosen)
        for chosen in itertools.combinations(range(size), count)
    )
    return bool(worst == _sensitivity_squared(size, rate, tuple(range(count))))


_SIZES = [(size, rate) for size in (1, 2, 5) for rate in RATES]


def _batch_variance(size: int) -> bool:
    """Variance of a batch mean without replacement, over all batches of five numbers."""
    values = [Fraction(k) for k in (3, -1, 4, 1, -5)]
    mean = sum(values) / 5
    spread = sum((x - mean) ** 2 for x in values) / 5
    means = [sum(batch) / size for batch in itertools.combinations(values, size)]
    variance = sum((x - mean) ** 2 for x in means) / len(means)
    return variance == Fraction(5 - size, size * 4) * spread


def _bound_holds(case: tuple[int, Fraction, int]) -> bool:
    """g_N sqrt(k) is at least the sensitivity of k participations."""
    size, rate, count = case
    bound = ((1 - rate**size) / (1 - rate)) ** 2 * count
    return bool(_sensitivity_squared(size, rate, tuple(range(count))) <= bound)


def _chernoff_count(case: tuple[int, Fraction, int, Fraction]) -> bool:
    """P(participations > tau) <= delta/2 for the tau of Lemma F.10, rounded down."""
    steps, rate, above, half_delta = case
    below = sum(comb(steps, k) * rate**k * (1 - rate) ** (steps - k) for k in range(above + 1))
    return 1 - below <= half_delta


CHECKS: dict[str, Enumeration] = {
    "tridiagonal": Enumeration(_tridiagonal, _SIZES),
    "spectral": Enumeration(_spectral, _SIZES),
    "first_is_worst": Enumeration(_first_is_worst, PARTS),
    "batch_variance": Enumeration(_batch_variance, [2, 3], complete=True),
    "bound_holds": Enumeration(_bound_holds, PARTS),
    "at_most_8": Enumeration(
        _chernoff_count, [(1000, Fraction(1, 1000), 8, Fraction(1, 200000))], complete=True
    ),
    "at_most_7": Enumeration(_chernoff_count, [(1000, Fraction(1, 1000), 7, Fraction(1, 200000))]),
}
