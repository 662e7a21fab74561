"""Claims of the paper: erm."""

from __future__ import annotations

from sympy import Ge, Le, Min, sqrt

from dpcal.calibrate.auditing.language import Balance, Bound, Claim, Feasible, Identity, Units
from dpcal.calibrate.schedules.dp_rgda.quantities import (
    _R,
    F0,
    S1,
    S2,
    T1,
    B1_sq,
    B2_sq,
    K,
    L,
    M,
    T,
    d,
    eb,
    ell,
    epsilon,
    eta,
    n,
    q,
    rr,
    u,
    v,
    w,
    x,
)

_A0 = u / 2 - L * u**2 / 2 - u**3 * v * w / 2  # u = eta, v = B2^2, w = q

_AT = {u: 1 / (2 * L)}

ERM: tuple[Claim, ...] = (
    Identity(
        "E01",
        T1,
        (L * F0) ** _R(1, 3) * M ** _R(-2, 3) * eb ** _R(-4, 3),
        free=(eb,),
        statement="first branch of T",
    ),
    Balance("E02", sqrt(F0 * L / T1), M * T1 * eb**2, of=T1, statement="T1 balances both errors"),
    Identity("E03", sqrt(F0 * L / T1), (sqrt(F0 * L * M) * eb) ** _R(2, 3), statement="rate"),
    Identity("E04", sqrt(F0 * L * eb) / (M * eb), sqrt(F0 * L) / (M * sqrt(eb)), free=(eb,)),
    Bound("E04.T1", T1, T, free=(eb, T1), statement="T is at least the balance"),
    Bound("E04.T2", 1 / eb, T, free=(eb, T1), statement="T is at least 1/eb"),
    Bound(
        "E04.cap",
        T,
        x / eb,
        where=(Ge(x, 1), Le(T1 * eb, x)),
        free=(eb, T1),
        statement="T is no larger than its branches",
    ),
    Identity("E05", L**2 / B2_sq, q, free=(T, eb), statement="period from the increments' error"),
    Identity("E05.eta", 1 / (B2_sq / (2 * L) ** 2), 4 * q, free=(T, eb), statement="the same"),
    Identity("E05.B1", B1_sq, M**2 * (T * eb**2) ** 2, free=(T, eb), statement="refresh error"),
    Identity("E07", _A0, 1 / (16 * L), at={**_AT, v: L**2 * T * eb**2, w: q}, free=(T, eb)),
    Identity("E08", _A0, 0, at={**_AT, v: L**2 * T * eb**2, w: 2 / (T * eb**2)}, free=(T, eb)),
    Identity(
        "E09",
        2 / (T * v) * (1 + L**2 / q * q / (4 * L**2)) * T,
        40 * L,
        at={v: 1 / (16 * L)},
        free=(T, q),
        statement="first constant of the explicit bound",
    ),
    Identity("E09.B1", u / v + 2 + L**2 * u**3 / v, 12, at={u: 1 / (2 * L), v: 1 / (16 * L)}),
    Identity("E10", T / q, (T * eb) ** 2, free=(T, eb), statement="T >= q iff T >= 1/eb"),
    Bound("E10.order", q, T, free=(eb, T1), statement="a period is at most the whole run"),
    Identity("E12", 1 / (T1 * eb**2), (M / (sqrt(F0 * L) * eb)) ** _R(2, 3), free=(eb,)),
    Identity(
        "E12.sub",
        1 / (T1 * eb**2),
        (M * n * epsilon / sqrt(F0 * L * d * ell)) ** _R(2, 3),
        statement="first branch of S2",
    ),
    Identity(
        "E13", n / sqrt(T1), M ** _R(1, 3) * n * eb ** _R(2, 3) / (L * F0) ** _R(1, 6), free=(eb,)
    ),
    Identity(
        "E13.sub",
        n / sqrt(T1),
        (M * n * d * ell) ** _R(1, 3) / ((L * F0) ** _R(1, 6) * epsilon ** _R(2, 3)),
        statement="second branch of S2",
    ),
    Feasible(
        "E15",
        (Le(1, q),),
        where=(Le(eb, 1), Le(eb * sqrt(F0 * L), M)),
        free=(eb,),
        statement="a period is at least 1",
    ),
    Feasible(
        "E16",
        (Le(1 / (T1 * eb**2), n),),
        where=(Le(M**2 * epsilon**2 / (F0 * L * d * ell), n),),
        statement="first branch of S2 is at most n",
    ),
    Bound(
        "E17",
        n / sqrt(T1),
        n,
        where=(Le(eb, (L * F0) ** _R(1, 4) / sqrt(M)),),
        free=(eb,),
        statement="second branch of S2 is at most n",
    ),
    Feasible(
        "E17.S2",
        (Le(S2, n), Le(1, S2)),
        where=(Le(eb, 1), Ge(n, 1), Ge(T, 1), Le(T * eb**2, 1), Ge(K, 2)),
        free=(eb, T),
        statement="1 <= S2 <= n",
    ),
    Bound(
        "E17.branch",
        n / sqrt(T * K),
        S2,
        where=(Ge(T, 1), Ge(K, 1)),
        free=(T, eb),
        statement="amplified branch of the noise",
    ),
    Bound(
        "E17.period",
        Min(n, q),
        S2,
        free=(T, eb),
        statement="increments are at least as many as the period",
    ),
    Identity(
        "E17.value",
        S2,
        n / (1 + u),
        free=(T, eb),
        at={T: (1 + u) ** 2 / K, eb: sqrt((1 + x) * (1 + u) / (n * T))},
        statement="S2 where the amplified branch decides",
    ),
    Identity(
        "E18",
        T1 * eb,
        (sqrt(L * F0) / M) ** _R(2, 3) * eb ** _R(-1, 3),
        free=(eb,),
        statement="which branch of T is active",
    ),
    Identity("E19", T1 / (T1 * eb**2), eb**-2, free=(eb,), statement="gradient count"),
    Identity("E19.S1", S1, n, statement="a refresh uses all records"),
    Units("E24.T", T, {}, statement="rounds are a number"),
    Units("E24.q", q, {}, statement="the period is a number"),
    Units("E24.S2", S2, {}, statement="the batch is a number"),
    Units("E24.B1", B1_sq, {"loss": 2, "parameter": -2}, statement="squared refresh error"),
    Units("E24.B2", B2_sq, {"loss": 2, "parameter": -4}, statement="squared increment error"),
    Units("E24.eta", eta, {"parameter": 1}, statement="length of a normalized step"),
    Identity("E25", eb, rr / n, at={rr: sqrt(d * ell) / epsilon}, statement="rate variable"),
)
