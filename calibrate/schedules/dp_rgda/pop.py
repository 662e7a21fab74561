"""Claims of the paper: pop."""

from __future__ import annotations

from sympy import Le, sqrt

from dpcal.calibrate.auditing.language import Bound, Claim, Identity
from dpcal.calibrate.schedules.dp_rgda.quantities import (
    _R,
    F0,
    L_Phi,
    S1_pop,
    S2_pop,
    T_pop,
    alpha,
    eb,
    ell1,
    kappa,
    n,
    q_pop,
    rr,
    u,
    v,
    w,
)

POP: tuple[Claim, ...] = (
    Identity(
        "P04", eb ** _R(-1, 3) * n ** _R(2, 3) / n, rr ** _R(-1, 3), at={eb: rr / n}, free=(eb,)
    ),
    Identity(
        "P05",
        eb ** _R(-2, 3) * kappa * (ell1**2 * kappa * eb ** _R(-1, 3)) / n,
        kappa**2 * ell1**2 / rr,
        at={eb: rr / n},
        free=(eb,),
        statement="records used by the increments",
    ),
    Identity("P09", rr**2 / (n * rr) / (rr / n), 1, statement="repaired refresh batch"),
    Bound(
        "P10",
        eb ** _R(-2, 3),
        n ** _R(2, 3),
        where=(Le(1 / n, eb),),
        free=(eb,),
        statement="the amplified branch is never active",
    ),
    Identity(
        "P12", eb ** _R(-1, 3) * eb * eb**2, eb ** _R(8, 3), free=(eb,), statement="harmless noise"
    ),
    Identity("P13", S1_pop / q_pop / S2_pop, 1, statement="refreshes and increments cost alike"),
    Identity(
        "P13.rate",
        alpha**-2 * S2_pop,
        rr * alpha ** _R(-7, 3),
        statement="records of the one-pass schedule: alpha = (rr/n)^(3/7)",
    ),
    Identity("P13.S1", S1_pop * alpha, rr, statement="privacy error of a refresh is alpha"),
    Identity(
        "P13.T",
        T_pop * (alpha * u / 2),
        F0,
        at={u: alpha / (2 * L_Phi)},
        statement="rounds times descent is the gap",
    ),
    Identity("P13.q", q_pop ** _R(3, 2) * rr, S1_pop, statement="period"),
    Identity(
        "P14",
        alpha**-2 * (u / w + v),
        2 * alpha**-3,
        at={u: alpha**-2, w: 1 / alpha, v: 1 / alpha},
        statement="where sampling dominates: alpha = n^(-1/3)",
    ),
    Identity(
        "P15",
        alpha**-2 * 2 * rr * sqrt((alpha**-2 / rr) ** _R(2, 3)),
        2 * rr ** _R(2, 3) * alpha ** _R(-8, 3),
        statement="between the regimes",
    ),
)
