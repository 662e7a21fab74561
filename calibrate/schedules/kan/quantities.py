"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sympy import Ge, Le, Max, Rational, sqrt

from dpcal.calibrate.auditing.language import Bound, Quantity, positive, real

n, d, B, T, epsilon, Lam, gamma, rho, r = positive("n d B T epsilon Lam gamma rho r")

lam, kappa_sq, growth_sq, taus, relation = positive("lam kappa_sq growth_sq taus relation")

B55, T55, eta55, m55, T53, m53, delta56, T56, eta56 = positive(
    "B55 T55 eta55 m55 T53 m53 delta56 T56 eta56"
)

eta, m, kappa, beta, c, C, G, p, x, u, v, w, t, ell = positive(
    "eta m kappa beta c C G p x u v w t ell"
)

order, q, L, nu, D = positive("order q L nu D")

U, Wt, Z, gr, De, Zp, Ws = real("U Wt Z gr De Zp Ws")

HALF = Rational(1, 2)

R = Rational

SMALL = (Le(gamma, 1), Le(epsilon, 1), Ge(d, 1), Ge(n, 1))

QUANTITIES = (
    Quantity(n, "number of records"),
    Quantity(d, "input dimension"),
    Quantity(B, "batch size"),
    Quantity(T, "steps"),
    Quantity(epsilon, "target epsilon"),
    Quantity(Lam, "log(1/delta)"),
    Quantity(gamma, "margin, a public number"),
    Quantity(lam, "correlation of the noise", range="[0, 1)"),
    Quantity(r, "sampling rate B/n"),
    Quantity(relation, "1 for zero-out, 2 for replace-one"),
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

_q = (1 - lam) ** 2 + lam**2 * eta

_EFF = {"on": {lam: (0, R(999, 1000))}}

A55 = 1 / (gamma * sqrt(n))

_B55 = sqrt(d) / (gamma**3 * n * epsilon)

_TARGET = Max(A55, _B55)


def within(name: str, term: Any, statement: str, **options: Any) -> Bound:
    """A term stays within the claimed rate for gamma, epsilon <= 1 <= d, n."""
    return Bound(name, term, _TARGET, where=SMALL, statement=statement, **options)
