"""Claims of the paper: glm."""

from __future__ import annotations

from sympy import Le, Rational, log, sqrt

from dpcal.calibrate.auditing.language import Balance, Bound, Identity
from dpcal.calibrate.schedules.spiderboost.quantities import (
    HALF,
    L0,
    L1,
    THIRD,
    N,
    Xn,
    ell,
    k,
    rank,
)

GLM = (
    Identity("S63", (sqrt(2) * Xn) ** 2 * L1, 2 * L1 * Xn**2, statement="projected smoothness"),
    Bound("S63.lipschitz", sqrt(2) * L0 * Xn, 2 * L0 * Xn, statement="projected Lipschitz"),
    Balance(
        "S64",
        k**THIRD / N ** (2 * THIRD),
        k ** (-HALF),
        of=k,
        at={k: N ** Rational(4, 5)},
        statement="embedding dimension, nonconvex",
    ),
    Identity("S64.error", k ** (-HALF), N ** Rational(-2, 5), at={k: N ** Rational(4, 5)}),
    Balance("S65", sqrt(k) / N, k ** (-HALF), of=k, at={k: N}, statement="convex"),
    Identity(
        "S66",
        (sqrt(rank * ell) / N) ** (2 * THIRD),
        (sqrt(rank) / N) ** (2 * THIRD) * ell**THIRD,
        statement="rank branch",
    ),
    Bound(
        "S67",
        (sqrt(rank) / N) ** (2 * THIRD),
        N ** Rational(-2, 5),
        where=(Le(rank, N ** Rational(4, 5)),),
        statement="where the rank branch wins",
    ),
    Bound(
        "S68",
        2 / (1 - log(2)),
        Rational(6518, 1000),
        statement="chi-square tail: k >= 6.518 log(2n/delta) is enough",
    ),
    Identity("S69", k**THIRD / N ** (2 * THIRD), k ** Rational(-1, 4), at={k: N ** Rational(8, 7)}),
)
