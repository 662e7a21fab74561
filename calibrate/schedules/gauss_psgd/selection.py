"""Claims of the paper: selection."""

from __future__ import annotations

from sympy import Le, exp, log, sqrt

from dpcal.calibrate.auditing.language import Bound, Identity, Private, Release
from dpcal.calibrate.schedules.gauss_psgd.quantities import (
    TO,
    G,
    L,
    Lam,
    M,
    N,
    T,
    alpha,
    d,
    epsilon,
    eta,
    m,
    n,
    omega,
    rho,
    t,
    u,
    v,
    x,
    z,
)

_CROSS = sqrt(rho * alpha) + M / sqrt(m * n) + M * d * alpha ** TO(-5, 4) / (sqrt(m) * n * epsilon)

SELECTION = (
    Identity(
        "C1",
        _CROSS**2 / rho,
        alpha
        + M**2 / (rho * m * n)
        + M**2 * d**2 / (rho * m * n**2 * epsilon**2 * alpha ** TO(5, 2))
        + 2 * M * sqrt(alpha) / (sqrt(rho) * sqrt(m * n))
        + 2 * M * d / (sqrt(rho) * sqrt(m) * n * epsilon * alpha ** TO(3, 4))
        + 2 * M**2 * d / (rho * m * n ** TO(3, 2) * epsilon * alpha ** TO(5, 4)),
        free=(alpha,),
        statement="square of the curvature error",
    ),
    Bound("C3", 2 * sqrt(x * u), x + u, statement="cross terms are absorbed by the squares"),
    Identity(
        "C4",
        sqrt(d) / (N * u ** TO(5, 4)) / u,
        d ** TO(1, 20) * N ** TO(-1, 10),
        at={u: (sqrt(d) / N) ** TO(2, 5)},
        statement="first condition of Remark 4",
    ),
    Identity(
        "C4.second",
        d / (N * u ** TO(3, 4)) / u,
        d ** TO(13, 20) * N ** TO(-3, 10),
        at={u: (sqrt(d) / N) ** TO(2, 5)},
        statement="second condition of Remark 4",
    ),
    Identity(
        "C5",
        t**2 / (2 * (4 * M**2 / x + 2 * M / x * t / 3)),
        L,
        at={t: 4 * M * sqrt(L / x), x: TO(4, 9) * L},
        statement="matrix Bernstein at m n = (4/9) L",
    ),
    Identity(
        "C6",
        4 * exp(-(t**2)),
        omega / 8,
        at={t: sqrt(log(32 / omega))},
        statement="tail",
        where=(Le(omega, 1),),
    ),
    Private(
        "C7",
        (
            Release(2 * G / n, sqrt(2 * T) * z * 2 * G / n, T),
            Release(2 * M * sqrt(d) / n, sqrt(2 * T) * z * 2 * M * sqrt(d) / n, T),
        ),
        rho=1 / (2 * z**2),
        statement="gradients and Hessians compose to one release at multiplier z",
    ),
    Identity(
        "X1",
        (2 * z * G / u) ** 2,
        v * G**2 * Lam / (u**2 * epsilon**2),
        at={v: 4 * z**2 * epsilon**2 / Lam},
    ),
    Identity(
        "X2",
        (2 * z * M * x / u) ** 2,
        v * M**2 * Lam * x**2 / (u**2 * epsilon**2),
        at={v: 4 * z**2 * epsilon**2 / Lam},
        statement="c2 equals c1",
    ),
    Identity(
        "X3",
        4 * z**2 * epsilon**2 / Lam,
        8 * L / Lam,
        at={z: sqrt(2 * L) / epsilon},
        statement="c1 of the textbook formula, L = log(1.25/delta)",
    ),
    Identity("X4", m * x**2 / m**2, x**2 / m, statement="variance of the clients' average"),
    Private(
        "X5",
        (Release(1, sqrt(u) * z, u),),
        rho=1 / (2 * z**2),
        statement="u passes at sqrt(u) z cost one release at z",
    ),
    Identity(
        "X6",
        (2 * z * M * eta / u) ** 2 * d / m,
        4 * d * z**2 * M**2 * eta**2 / (u**2 * m),
        free=(eta,),
    ),
)
