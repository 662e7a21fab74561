"""Claims of the paper: recursive."""

from __future__ import annotations

from fractions import Fraction

from sympy import Ge, Le, Min, log, sqrt

from dpcal.calibrate.auditing.language import Bound, Enumeration, Identity, Units
from dpcal.calibrate.schedules.spiderboost.quantities import (
    L0,
    L1,
    K_t,
    Lam,
    T,
    W,
    d,
    epsilon,
    j,
    kap,
    lam,
    m,
    n,
    sigma_t,
    u,
    v,
    x,
    z,
)


def _geometric_sum(case: tuple[Fraction, int]) -> bool:
    """Sum (1 - x)^-k = ((1 - x)^-K - 1)/x."""
    step, count = case
    total = sum((1 - step) ** -k for k in range(1, count + 1))
    return total == ((1 - step) ** -count - 1) / step


def _modulus(rounds: int) -> bool:
    """The weights lam_t = 2^t lam add up to (2^t - 1) lam, between lam_t/2 and lam_t."""
    total = sum(2**k for k in range(rounds))
    return bool(total == 2**rounds - 1 and total < 2**rounds <= 2 * total)


RECURSIVE = (
    Enumeration("S47", _modulus, list(range(1, 30)), statement="strong convexity of a round"),
    Enumeration(
        "S48",
        _geometric_sum,
        [(Fraction(a, 7), k) for a in (1, 2, 5) for k in (1, 4, 9)],
        statement="selector weights",
    ),
    Identity("S49", log(u) / (v * u) * v * u, log(u), statement="step times modulus times steps"),
    Bound(
        "S50",
        kap * log(2 * kap * log(kap)),
        2 * kap * log(kap),
        on={kap: (2, 1000)},
        statement="K = 2 kap log kap meets the step condition K/log K >= kap",
    ),
    Identity(
        "S51",
        K_t * (2 * L0 * T / n) ** 2 / (2 * sigma_t**2),
        epsilon**2 / (32 * Lam),
        free=(T,),
        statement="budget of a round, zCDP",
    ),
    Bound(
        "S51.budget",
        epsilon**2 / (32 * Lam) + epsilon / sqrt(8),
        epsilon,
        where=(Le(epsilon, 20 * Lam),),
        statement="the zCDP budget gives (epsilon, delta) for epsilon <= 20 Lam",
    ),
    Identity(
        "S52",
        K_t * (2 * L0 * T / n) ** 2 / (2 * sigma_t**2),
        T**2 * epsilon**2 / (32 * K_t * Lam),
        free=(T,),
        printed=(sigma_t,),
        statement="printed noise: private only for K of the order of T^2",
    ),
    Identity(
        "S53",
        d * sigma_t**2 / K_t,
        64 * d * L0**2 * T**2 * Lam / (n * epsilon) ** 2,
        free=(T,),
        statement="noise part of the excess does not depend on K",
    ),
    Identity(
        "S54", (2**j * u) ** 2 * (2 ** (j / 2) * W) ** 2, 8**j * u**2 * W**2, statement="bias"
    ),
    Identity("S54.last", 8**j * u**2 * W**2, L1**3 * W**2 / u, at={L1: 2**j * u}),
    Identity(
        "S55",
        (L0**2 + L1**3 * W**2 / u) / v,
        d * L0**2 * T**2 * Lam / (n * epsilon) ** 2,
        at={v: n**2 * epsilon**2 * (L0**2 * u + L1**3 * W**2) / (T**2 * u * d * L0**2 * Lam)},
        free=(T,),
        statement="inner steps balance bias and noise",
    ),
    Units("S56", L0**2 * lam, {"gradient": 3, "parameter": -1}, statement="unit of S55"),
    Units("S56.second", L1**3 * W**2, {"gradient": 3, "parameter": -1}, statement="unit of S55"),
    Bound(
        "S57",
        W**2 + v * W**2,
        2 * v * W**2,
        where=(Ge(v, 1),),
        statement="radii sqrt(2^t) W satisfy the recursion, v = 2^t",
    ),
    Identity("S57.root", W**2 + j * W**2, (j + 1) * W**2, statement="so do radii sqrt(t) W"),
    Bound(
        "S58",
        u * W + L1 * v,
        u * W + 4 * u * v,
        where=(Le(L1, 4 * u),),
        statement="gradient of the last center, one round (u = lam, v = its error)",
    ),
    Bound(
        "S59",
        u * x,
        2 * sqrt(u * v),
        where=(Le(u * x**2 / 4, v),),
        statement="distance from excess, modulus at least lam/2",
    ),
    Identity(
        "S60",
        lam * W,
        L0**2 / (L1 * W) * Min(1 / n, d / (n * epsilon) ** 2),
        statement="bias of the regularization",
    ),
    Identity(
        "S61",
        sqrt(K_t) * (2 * L0 / m) / (2 * L0 / m * sqrt(K_t) * z),
        1 / z,
        statement="exact noise of noisy gradient descent: K cancels",
    ),
    Identity(
        "S62",
        log(u) / (v * K_t) * 4 * d * L0**2 * K_t * z**2 / m**2,
        4 * d * L0**2 * z**2 * log(u) / (v * m**2),
        statement="noise part with the generalised step: K cancels",
    ),
)
