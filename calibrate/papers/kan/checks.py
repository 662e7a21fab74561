"""Programs that claims and errata of the paper name: loops, sums, and prices."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

from dpcal.calibrate.papers.claims.language import Enumeration

RATES = [Fraction(1, 3), Fraction(7, 10), Fraction(19, 20)]


def strategy(size: int, correlation: Fraction) -> list[list[Fraction]]:
    """Return C: powers of the correlation below the diagonal."""
    zero = Fraction(0)
    return [[correlation ** (t - k) if k <= t else zero for k in range(size)] for t in range(size)]


def sensitivity_squared(size: int, correlation: Fraction, chosen: tuple[int, ...]) -> Fraction:
    """Return the squared L2 norm of the sum of the chosen columns of C."""
    matrix = strategy(size, correlation)
    sums = (sum((row[k] for k in chosen), Fraction(0)) for row in matrix)
    return sum((total**2 for total in sums), Fraction(0))


PARTS = [(size, rate, k) for size in (4, 7) for rate in RATES for k in (1, 2, 4)]


def _inverse(size: int, correlation: Fraction) -> list[list[Fraction]]:
    """Return the bidiagonal inverse of C."""
    entries = {0: Fraction(1), 1: -correlation}
    return [[entries.get(t - k, Fraction(0)) for k in range(size)] for t in range(size)]


def _product(left: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, col, strict=True)) for col in columns] for row in left]


def _transposed(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    return [list(row) for row in zip(*matrix, strict=True)]


def _tridiagonal(case: tuple[int, Fraction]) -> bool:
    """(C C^T)^-1 is tridiagonal with 1 + lam^2 except for the last entry 1."""
    size, rate = case
    inverse = _inverse(size, rate)
    precision = _product(_transposed(inverse), inverse)
    return all(
        precision[a][b]
        == ((1 if a == size - 1 else 1 + rate**2) if a == b else -rate if abs(a - b) == 1 else 0)
        for a in range(size)
        for b in range(size)
    )


def _spectral(case: tuple[int, Fraction]) -> bool:
    """||C||_2 <= g_N by the Perron test: the row sums of C^T C are at most g_N^2."""
    size, rate = case
    matrix = strategy(size, rate)
    bound = ((1 - rate**size) / (1 - rate)) ** 2
    return all(sum(row) <= bound for row in _product(_transposed(matrix), matrix))


def _first_is_worst(case: tuple[int, Fraction, int]) -> bool:
    """Of all choices of k steps to take part in, the first k steps are the worst."""
    size, rate, count = case
    worst = max(
        sensitivity_squared(size, rate, chosen)
        for chosen in itertools.combinations(range(size), count)
    )
    return worst == sensitivity_squared(size, rate, tuple(range(count)))


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
    return sensitivity_squared(size, rate, tuple(range(count))) <= bound


def _binomial_tail(steps: int, rate: Fraction, above: int) -> Fraction:
    """P(Bin(steps, rate) > above)."""
    below = sum(comb(steps, k) * rate**k * (1 - rate) ** (steps - k) for k in range(above + 1))
    return Fraction(1 - below)


def _chernoff_count(case: tuple[int, Fraction, int, Fraction]) -> bool:
    """P(participations > tau) <= delta/2 for the tau of Lemma F.10, rounded down."""
    steps, rate, above, half_delta = case
    return _binomial_tail(steps, rate, above) <= half_delta


def _signed_pair(absolute: bool) -> bool:
    """For C = [[1, 0], [-1, 1]] the pair covers rows g2 = -g1, squared norm 5."""
    matrix = [[1, 0], [-1, 1]]
    rows = [[abs(x) if absolute else x for x in row] for row in matrix]
    return sum(sum(row) ** 2 for row in rows) >= 5


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
    "pair_of_sizes": Enumeration(_signed_pair, [True], complete=True),
    "pair_with_signs": Enumeration(_signed_pair, [False]),
}
