"""Delta of composed laws with finitely many values, by enumeration; exact where they are rational.

>>> from fractions import Fraction
>>> from flint import fmpq
>>> coin = [(fmpq(1, 4), fmpq(3, 4)), (fmpq(3, 4), fmpq(1, 4))]
>>> enumerated([(coin, 2)], arb(0)) == 0.5
True

Nothing here is shared with an accountant: python-flint is all that it needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from flint import arb, fmpq

Ball = Any
Law = list[tuple[Any, Any]]
"""Probabilities of each value under P and under Q: rational numbers, or balls."""
Places = list[tuple[int, Ball]]
"""Where noise is centered, and how likely each place is."""

# Most combinations of values that are enumerated.
MOST = 60_000


def combinations(parts: list[tuple[Law, int]]) -> int:
    """Return the number of combinations of values of laws, each used several times."""
    return math.prod(math.comb(times + len(law) - 1, len(law) - 1) for law, times in parts)


def enumerated(parts: list[tuple[Law, int]], epsilon: Ball) -> Ball:
    """Enclose delta of a composition of finite laws at an epsilon.

    With rational laws both sums, of P and of Q over the outputs with P > exp(epsilon) Q, are exact.
    """
    k = epsilon.exp()
    exact = all(isinstance(p, fmpq) for law, _ in parts for pair in law for p in pair)
    zero = fmpq(0) if exact else arb(0)
    above_p, above_q, doubtful = zero, zero, arb(0)
    for p, q in _products([_powers(law, times, zero) for law, times in parts], zero + 1):
        gain = arb(p) - k * arb(q)
        if gain > 0:
            above_p, above_q = above_p + p, above_q + q
        elif not gain < 0:
            doubtful += arb.max(gain, arb(0))
    return arb.max(arb(above_p) - k * arb(above_q), arb(0)) + doubtful


def combined(parts: list[tuple[Law, int]]) -> Law:
    """Return the law of a composition of laws in balls, each used several times."""
    return list(_products([_powers(law, times, arb(0)) for law, times in parts], arb(1)))


def _products(powers: list[Law], one: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the probabilities of every combination of the values of several laws."""
    for pairs in itertools.product(*powers):
        p = q = one
        for a, b in pairs:
            p, q = p * a, q * b
        yield p, q


def _powers(law: Law, times: int, zero: Any) -> Law:
    """Return the law of several independent uses, a value for each vector of numbers of values."""
    found = []
    tables = [[_row(value, times, zero) for value in column] for column in zip(*law, strict=True)]
    for counts in _vectors(times, len(law)):
        ways = math.factorial(times) // math.prod(map(math.factorial, counts))
        pair = []
        for side in tables:
            value = zero + ways
            for row, count in zip(side, counts, strict=True):
                value = value * row[count]
            pair.append(value)
        found.append((pair[0], pair[1]))
    return found


def _row(value: Any, most: int, zero: Any) -> list[Any]:
    """Return the powers 0, 1, ..., most of a number."""
    row = [zero + 1]
    for _ in range(most):
        row.append(row[-1] * value)
    return row


def _vectors(total: int, places: int) -> Iterator[tuple[int, ...]]:
    """Yield all vectors of whole numbers >= 0 of this sum."""
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _vectors(total - first, places - 1):
            yield (first, *rest)


def response(p: Any, buckets: int, blank: str | None) -> Law:
    """Return the law of randomized response: of a record replaced, or zeroed out in P or in Q."""
    own, other = 1 - p + p / buckets, p / buckets
    if blank is None:
        middle = [((buckets - 2) * other,) * 2] if buckets > 2 else []
        return [(other, own), *middle, (own, other)]
    rest = (buckets - 1) * other
    one, all_others = fmpq(1, buckets), fmpq(buckets - 1, buckets)
    pairs = [(rest, all_others), (own, one)]
    return [(b, a) for a, b in pairs] if blank == "P" else pairs


def stated(epsilon: Ball, delta: Any) -> Law:
    """Return the worst law of a claim (epsilon, delta) (Kairouz, Oh and Viswanath 2015)."""
    low, high = 1 / (1 + epsilon.exp()), 1 / (1 + (-epsilon).exp())
    given = 1 - delta
    return [
        (arb(delta), arb(0)),
        (given * high, given * low),
        (given * low, given * high),
        (arb(0), arb(delta)),
    ]


def discrete_laplace(a: Ball, p: Places, q: Places) -> Law:
    """Return the law of discrete Laplace noise at random places, of P against Q."""
    low, high = min(x for x, _ in p + q), max(x for x, _ in p + q)
    sides = [_masses(a, side, low, high) for side in (p, q)]
    return list(zip(*sides, strict=True))


def _masses(a: Ball, places: Places, low: int, high: int) -> list[Ball]:
    """Return the masses of "at most low", of the numbers in between, and of "at least high"."""
    half, point = 1 / (1 + (-a).exp()), (a / 2).tanh()
    found = [sum((w * half * (a * (low - x)).exp() for x, w in places), arb(0))]
    for y in range(low + 1, high):
        found.append(sum((w * point * (-a * abs(y - x)).exp() for x, w in places), arb(0)))
    found.append(sum((w * half * (-a * (high - x)).exp() for x, w in places), arb(0)))
    return found


def allocated(law: Law, batches: int, direction: str) -> Law:
    """Return the law of an epoch of batches, where a record draws one batch uniformly.

    Given the drawn batch, the law of the answers is that without the record times one ratio P / Q;
    over all draws it is that law times the mean of the ratios.
    """
    ratios, found = [p / q for p, q in law], []
    powers = [_row(q, batches, arb(0)) for _, q in law]
    for counts in _vectors(batches, len(law)):
        ways = math.factorial(batches) // math.prod(map(math.factorial, counts))
        chance = arb(ways)
        for row, count in zip(powers, counts, strict=True):
            chance *= row[count]
        mean = sum((n * r for n, r in zip(counts, ratios, strict=True)), arb(0)) / batches
        found.append((chance * mean, chance))
    return found if direction == "remove" else [(q, p) for p, q in found]


def sampled(law: Law, q: Any, direction: str) -> Law:
    """Return the law on a Poisson sample, of a record removed or added."""
    pairs = [((1 - q) * b + q * p, b) for p, b in law]
    return pairs if direction == "remove" else [(b, p) for p, b in pairs]


def fixed_batch(law: Law) -> Law:
    """Return a replaced record's law from a removed one's (Balle et al. 2018, Theorem 9).

    Values above 0 of the sampled law stay, their mirror images join them, and the rest has no loss.
    """
    above = [(p, q) for p, q in law if p > q]
    rest = 1 - sum(p + q for p, q in above)
    return [*above, *((q, p) for p, q in above), (rest, rest)]
