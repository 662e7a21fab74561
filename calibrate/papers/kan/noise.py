"""Claims of the paper: noise."""

from __future__ import annotations

import itertools
from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Enumeration, claims_of
from dpcal.calibrate.papers.kan.quantities import PARTS, RATES, sensitivity_squared, strategy


def _inverse(size: int, correlation: Fraction) -> list[list[Fraction]]:
    """Return the bidiagonal inverse of C."""
    entries = {0: Fraction(1), 1: -correlation}
    return [[entries.get(t - k, Fraction(0)) for k in range(size)] for t in range(size)]


def _product(left: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, col, strict=True)) for col in columns] for row in left]


def _transposed(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    return [list(row) for row in zip(*matrix, strict=True)]


def _inverse_pair(case: tuple[int, Fraction]) -> bool:
    """C times its bidiagonal inverse is the identity, on both sides."""
    size, rate = case
    unit = [[Fraction(t == k) for k in range(size)] for t in range(size)]
    a, b = strategy(size, rate), _inverse(size, rate)
    return _product(a, b) == unit == _product(b, a)


def _row_sums(case: tuple[int, Fraction]) -> bool:
    """The last row and the first column of C sum to (1 - lam^N)/(1 - lam)."""
    size, rate = case
    matrix = strategy(size, rate)
    expected = (1 - rate**size) / (1 - rate)
    return sum(matrix[-1]) == expected == sum(row[0] for row in matrix)


def _gram(case: tuple[int, Fraction]) -> bool:
    """Entries of C^T C in closed form."""
    size, rate = case
    matrix = strategy(size, rate)
    gram = _product(_transposed(matrix), matrix)
    return all(
        gram[a][b] == rate ** abs(a - b) * (1 - rate ** (2 * (size - max(a, b)))) / (1 - rate**2)
        for a in range(size)
        for b in range(size)
    )


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


def _prefix_noise(case: tuple[int, Fraction]) -> bool:
    """Variance of prefix sums: 1 + (1 - lam)^2 (t - 1), and the total."""
    size, rate = case
    ones = [[Fraction(k <= t) for k in range(size)] for t in range(size)]
    rows = [sum(x**2 for x in row) for row in _product(ones, _inverse(size, rate))]
    total = size + (1 - rate) ** 2 * Fraction(size * (size - 1), 2)
    return rows == [1 + (1 - rate) ** 2 * k for k in range(size)] and sum(rows) == total


def _spectral(case: tuple[int, Fraction]) -> bool:
    """||C||_2 <= g_N by the Perron test: the row sums of C^T C are at most g_N^2."""
    size, rate = case
    matrix = strategy(size, rate)
    bound = ((1 - rate**size) / (1 - rate)) ** 2
    return all(sum(row) <= bound for row in _product(_transposed(matrix), matrix))


def _first_is_worst(case: tuple[int, Fraction, int]) -> bool:
    """Taking part in the first k steps is the worst of all ways to take part k times."""
    size, rate, count = case
    worst = max(
        sensitivity_squared(size, rate, chosen)
        for chosen in itertools.combinations(range(size), count)
    )
    return worst == sensitivity_squared(size, rate, tuple(range(count)))


def _closed_sensitivity(case: tuple[int, Fraction, int]) -> bool:
    """Closed form of the squared sensitivity of the first k steps."""
    size, rate, count = case
    head = sum((((1 - rate**t) / (1 - rate)) ** 2 for t in range(1, count + 1)), Fraction(0))
    tail = ((1 - rate**count) / (1 - rate)) ** 2 * rate**2
    tail *= (1 - rate ** (2 * (size - count))) / (1 - rate**2)
    return sensitivity_squared(size, rate, tuple(range(count))) == head + tail


_SIZES = [(size, rate) for size in (1, 2, 5) for rate in RATES]

NOISE = (
    *claims_of(
        "Section 5.1 and appendix F.1, correlation matrix C",
        Enumeration("I01", _inverse_pair, _SIZES, statement="inverse pair"),
        Enumeration("I02", _row_sums, _SIZES, statement="row and column sums"),
        Enumeration("I03", _gram, _SIZES, statement="Gram matrix"),
        Enumeration("I04", _tridiagonal, _SIZES, statement="precision matrix"),
        Enumeration("I05", _prefix_noise, _SIZES, statement="noise of prefix sums"),
        Enumeration("I06", _spectral, _SIZES, statement="spectral norm"),
        """
        I02.square: growth_sq*(1 - lam)**2 = (1 - lam**T)**2; definition
            # squared bound on the row sums
        """,
    ),
    *claims_of(
        "Lemma F.11, sensitivity",
        Enumeration("I07", _first_is_worst, PARTS, statement="the first k steps are worst"),
        Enumeration("I08", _closed_sensitivity, PARTS, statement="sensitivity in closed form"),
    ),
    *claims_of(
        "Lemma C.1, shifted recursion",
        """
        I09: Wt - eta*(gr + De + c*Z - lam*c*Zp) + eta*c*Z = Wt + eta*c*Zp - eta*(gr + De + (1 -
            lam)*c*Zp)  # shifted recursion: U_t = W_t + eta c Z_t
        """,
    ),
    *claims_of(
        "Lemma C.1, (6)",
        """
        I10: (U - eta*gr - Ws)**2 = (U - Ws)**2 - 2*eta*gr*(U - Ws) + eta**2*gr**2
            # expansion of a step's squared distance
        """,
    ),
    *claims_of(
        "Remark 4.2, noise factor",
        """
        I16: -2 + 2*lam + 2*eta*lam = 0 at lam = 1/(1 + eta)  # minimizer of the noise factor
        I16.value: (1 - lam)**2 + lam**2*eta = eta/(1 + eta) at lam = 1/(1 + eta)  # its minimum
        I16.one: (1 - lam)**2 + lam**2*eta = eta at lam = 1  # full correlation
        I17: ((1 - lam)**2 + lam**2*eta)/(1 - lam)**2 = 1 + eta*lam**2/(1 - lam)**2  # calibrated
        I17.slope: 2*eta*lam/(1 - lam)**2 + 2*eta*lam**2/(1 - lam)**3 = 2*eta*lam/(1 - lam)**3
            # the calibrated factor grows with lambda
        """,
    ),
    *claims_of(
        "Theorem 4.1, cross term",
        """
        I18: ((1 - lam)*kappa*eta*sqrt(m*d)/(B**(3/2)*sqrt(T)))**2 = (1 -
            lam)**2*eta*kappa**2*m*d/B**2*(eta/(B*T))  # cross term is a geometric mean
        I18.redundant: 2*sqrt(x*u) <= x + u  # the cross term is at most the sum of the two others
        """,
    ),
)
