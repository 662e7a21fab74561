"""Claims of the paper: constants."""

from __future__ import annotations

from sympy import exp

from dpcal.calibrate.auditing.language import Bound, Claim, Identity, Private, Release
from dpcal.calibrate.schedules.dp_rgda.quantities import (
    _R,
    C1,
    C2,
    S1,
    S2,
    K,
    L,
    U,
    dx,
    ell1,
    g,
    ga,
    k,
    kappa,
    mu,
    multiplier,
    rho,
    sigma_u,
    sigma_v,
    th,
    u,
    v,
    w,
    x,
)

_G = 2 * L**2 * dx + 2 * ga

CONSTANTS: tuple[Claim, ...] = (
    Identity("C01", 3 * U + 3 * L**2 * dx + 3 * ga, 9 * th + 21 * L**2 * dx + 3 * ga),
    Identity(
        "C02",
        144 * k / K * _G
        + (144 * k / K + 120 * ell1) * U
        + 120 * ell1 * L**2 / w / (36 * L**2) * (9 * th + 21 * L**2 * dx + 3 * ga),
        (288 * k / K + 10 * ell1 / w) * ga
        + (432 * k / K + 360 * ell1 + 30 * ell1 / w) * th
        + (1152 * k / K + 720 * ell1 + 70 * ell1 / w) * L**2 * dx,
        statement="coefficients of (43), lambda = 1/(6 L)",
    ),
    Identity(
        "C03",
        x / (1 - x),
        3 * kappa + 2,
        at={x: 1 - 2 / (6 * L) * mu * L / (mu + L), L: kappa * mu},
        statement="contraction of an ascent step",
    ),
    Identity(
        "C03.kappa",
        1 - 2 / (6 * L) * mu * L / (mu + L),
        _R(36, 37),
        at={L: _R(34, 3) * mu},
        statement="where the contraction is 36/37",
    ),
    Bound(
        "C04",
        520,
        _R(4, 9) * (3 * kappa + 2) * (3 + 390 * ell1) / (kappa * ell1),
        statement="the induction factor exceeds 520 with the stated batches",
    ),
    Bound(
        "D04",
        2 * (exp(x) - 1),
        exp(2 * x) - 1,
        on={x: (_R(1, 100), 5)},
        statement="two blocks from one batch cost more than twice one",
    ),
    Identity(
        "D06",
        v**2 * u / (v * w**2) + g**2 * k / (g * w**2),
        (v * u + g * k) / w**2,
        statement="cost of a split noise budget",
    ),
    Identity("G01", rho * (1 + 2 * kappa + kappa**2) * (1 + kappa), rho * (1 + kappa) ** 3),
    Private(
        "D07",
        (Release(2 * C1 / S1, sigma_v, 1),),
        rho=1 / (2 * multiplier**2),
        free=(S1,),
        statement="a refresh costs what its multiplier says",
    ),
    Private(
        "D08",
        (Release(2 * C2 / S2, sigma_u, 1),),
        rho=1 / (2 * multiplier**2),
        free=(S2,),
        statement="an increment costs what its multiplier says",
    ),
    Identity("D07.std", sigma_v * S1 / (2 * C1), multiplier, statement="multiplier of a refresh"),
    Identity(
        "D08.std", sigma_u * S2 / (2 * C2), multiplier, free=(S2,), statement="of an increment"
    ),
)
