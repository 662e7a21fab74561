"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary

QUANTITIES = (
    Quantity("n", "number of records", range="[1, oo)"),
    Quantity("d", "input dimension", range="[1, oo)"),
    Quantity("B", "batch size", range="[1, oo)"),
    Quantity("T", "steps", range="[1, oo)"),
    Quantity("epsilon", "target epsilon"),
    Quantity("Lam", "log(1/delta)"),
    Quantity("gamma", "margin, a public number", range="(0, 1]"),
    Quantity("lam", "correlation of the noise", range="(0, 1)"),
    Quantity("r", "sampling rate B/n", range="(0, 1]"),
    Quantity("relation", "1 for zero-out, 2 for replace-one", range="[1, 2]"),
    *auxiliary("C D G L beta c ell eta kappa m nu order p q rho t u v w x"),
    *auxiliary("De U Ws Wt Z Zp gr", range="(-oo, oo)"),
)

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
