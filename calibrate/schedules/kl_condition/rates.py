"""Claims of the paper: rates."""

from __future__ import annotations

from sympy import Gt, Lt, Rational, oo, sqrt

from dpcal.calibrate.auditing.language import Bound, Identity, Rate
from dpcal.calibrate.schedules.kl_condition.quantities import TO_TWO, N, d, kappa, tau, u

RATES = (
    Identity("E1.one", 2 * kappa / (4 - kappa), Rational(2, 3), at={kappa: 1}),
    Identity("E1.two", 2 * kappa / (4 - kappa), 2, at={kappa: 2}),
    Bound("E1.gap", 2 * kappa / (4 - kappa), kappa, on=TO_TWO, statement="price of adaptivity"),
    Rate(
        "E2",
        (sqrt(d) / N) ** (2 * kappa / (4 - kappa)) + N ** (-kappa / 2),
        N ** (-kappa / 2),
        growth={N: 1},
        on=TO_TWO,
        statement="at fixed d the second term of Theorem 4 dominates",
    ),
    Identity(
        "E2.switch",
        (sqrt(d) / N) ** (2 * kappa / (4 - kappa)),
        N ** (-kappa / 2),
        at={d: N ** (kappa / 2)},
        statement="the terms meet at d = N^(kappa/2)",
        where=(Lt(kappa, 4),),
    ),
    Bound(
        "E3", kappa / 2, kappa / (2 - kappa), on={kappa: (1, Rational(199, 100))}, statement="E3"
    ),
    Bound(
        "E3.third",
        2 * kappa / (4 - kappa),
        kappa / (2 - kappa),
        on={kappa: (1, Rational(199, 100))},
        statement="the third term never dominates",
    ),
    Identity("E4", tau / (tau - 1), kappa, at={tau: kappa / (kappa - 1)}, where=(Gt(kappa, 1),)),
    Identity(
        "E4.constant",
        tau ** (-1 / (tau - 1)),
        (kappa / (kappa - 1)) ** (1 - kappa),
        at={tau: kappa / (kappa - 1)},
        on={kappa: (1, oo)},
        statement="constant of Corollary 1",
        where=(Gt(kappa, 1),),
    ),
    Identity("E5", sqrt(d) / (u * N), u, at={u: sqrt(sqrt(d) / N)}, statement="Theorem 5, worst"),
)
