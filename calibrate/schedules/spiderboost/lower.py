"""Claims of the paper: lower."""

from __future__ import annotations

from fractions import Fraction
from math import comb

from sympy import Le, Rational, oo, sqrt

from dpcal.calibrate.auditing.language import Balance, Bound, Enumeration, Feasible, Identity, Prose
from dpcal.calibrate.schedules.spiderboost.quantities import (
    F0,
    FRACTION_HALF,
    HALF,
    L0,
    L1,
    THIRD,
    B,
    G,
    abar,
    d,
    epsilon,
    n,
    r,
    tau1,
    tau2,
    u,
    v,
    x,
)


def _total_variation_is_small(size: int) -> bool:
    """Total variation of Binomial(n, 1/2 -+ p/2), p = 1/(4 sqrt n), is at most 1/4."""
    root = int(size**0.5)
    shift = Fraction(1, 8 * root)
    low, high = FRACTION_HALF - shift, FRACTION_HALF + shift

    def mass(chance: Fraction, k: int) -> Fraction:
        return comb(size, k) * chance**k * (1 - chance) ** (size - k)

    return sum(abs(mass(low, k) - mass(high, k)) for k in range(size + 1)) / 2 <= Fraction(1, 4)


LOWER = (
    Identity("S70", L1 * u, L0, at={u: L0 / L1}, statement="Huber slope at the switch"),
    Identity("S71", L1 * (B / 2) ** 2 / (B / 2), L0 / 2, at={B: L0 / L1}, statement="sphere"),
    Prose(
        "S72",
        "a bound over all vectors and data sets; it repairs E46 and was derived on paper",
        statement="||grad F(w)|| >= (L1/2) ||Proj(w) - mean|| for every w",
    ),
    Identity("S73", L1 * u + L0 / 2, L0, at={u: L0 / (2 * L1)}, statement="total slope"),
    Bound(
        "S74",
        Rational(1, 8),
        Rational(1, 4) - 1 / (8 * sqrt(n)),
        on={n: (1, oo)},
        statement="case 1 of Theorem 7",
    ),
    Identity(
        "S74.second",
        (L0 * v * r / 2 + L1 * u) ** 2,
        L0**2 / 4 * (v * r - x) ** 2,
        at={u: -L0 * x / (2 * L1)},
        statement="case 2 of Theorem 7",
    ),
    Identity(
        "S75",
        L0 / 2 * r * (1 - Rational(1, 4)) / 2,
        3 * L0 / (64 * sqrt(n)),
        at={r: 1 / (4 * sqrt(n))},
        statement="two-point constant",
    ),
    Enumeration(
        "S75.tv", _total_variation_is_small, [1, 4, 9, 16, 25, 64, 100], statement="binomials"
    ),
    Identity(
        "S76",
        (F0 * tau2 * tau1 / G) ** THIRD,
        (F0 * L1 * L0) ** THIRD * abar ** (2 * THIRD),
        at={tau1: L0 * sqrt(G) * abar, tau2: L1 * sqrt(G) * abar},
        free=(abar,),
        statement="Theorem 10: G cancels",
    ),
    Bound(
        "S77",
        (F0 * L1 * L0) ** THIRD * abar ** (2 * THIRD),
        L0 * abar,
        where=(Le(L1, L0**2 * abar / F0),),
        free=(abar,),
        statement="window in which Theorem 1 is optimal",
    ),
    Balance(
        "S78",
        2 * F0 * L1 / u,
        L0**2 * u * abar**2,
        of=u,
        at={u: sqrt(2 * F0 * L1) / (L0 * abar)},
        free=(abar,),
        statement="steps of plain noisy gradient descent",
    ),
    Identity(
        "S79",
        sqrt(d) * epsilon,
        (sqrt(d) / (n * epsilon)) ** HALF,
        at={epsilon: d ** Rational(-1, 6) * n ** (-THIRD)},
        statement="comparison with an earlier rate",
    ),
    Feasible(
        "S80",
        (Le(x ** (2 * THIRD), sqrt(x)), Le(sqrt(x), x ** Rational(2, 5))),
        where=(Le(x, 1),),
        statement="order of the exponents",
    ),
    Bound(
        "S81",
        n ** (-THIRD),
        sqrt(d / n),
        where=(Le(n**THIRD, d),),
        statement="faster than uniform convergence for d >= n^(1/3)",
    ),
)
