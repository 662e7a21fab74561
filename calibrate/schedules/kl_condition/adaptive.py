"""Claims of the paper: adaptive."""

from __future__ import annotations

from sympy import Gt, Lt, sqrt

from dpcal.calibrate.auditing.language import Bound, Identity
from dpcal.calibrate.schedules.kl_condition.quantities import (
    F0,
    GAIN,
    L0,
    L1,
    X05,
    G,
    J,
    N,
    N_t,
    Phi,
    W,
    d,
    ell,
    gamma,
    inner,
    kappa,
    main_term,
    n,
    noise,
    p_max,
    rho,
    s,
    sigma_t,
    u,
    v,
    x,
)

ADAPTIVE = (
    Identity(
        "D1",
        X05,
        (G**2 - noise) / (4 * L1) + (G**2 + 2 * inner + noise) / (8 * L1),
        statement="exact descent with step 1/(2 L1); noise = ||e||^2, inner = <grad F, e>",
    ),
    Identity("D2", X05, 0, at={inner: -(G**2), noise: G**2}, statement="no step, no descent"),
    Bound(
        "D3",
        (G**2 - s**2) / (8 * L1),
        (G**2 - v**2) / (4 * L1),
        at={v: sqrt((G**2 + s**2) / 2)},
        statement="halved noise gives the claimed descent",
    ),
    Bound("D3.square", (G + s) ** 2, 2 * G**2 + 2 * s**2, statement="square of a sum"),
    Identity(
        "D4",
        J * (Phi / u) ** (2 / kappa) / (16 * gamma**2 * L1),
        (u - 1) / u * Phi,
        at={
            J: (u * F0 / Phi) ** ((2 - kappa) / kappa),
            L1: GAIN / (16 * gamma**2 * (u - 1)),
        },
        statement="steps per phase",
        where=(Gt(u, 1),),
    ),
    Identity(
        "D6", Phi ** ((kappa - 2) / kappa) * Phi ** (-2 / kappa), Phi ** ((kappa - 4) / kappa)
    ),
    Identity(
        "D7",
        Phi ** ((4 - kappa) / kappa),
        GAIN * W**2,
        at={Phi: F0 ** ((2 - kappa) / (4 - kappa)) * W ** (2 * kappa / (4 - kappa))},
        statement="solving the privacy term for the excess risk",
        where=(Lt(kappa, 4),),
    ),
    Identity(
        "D7.main",
        main_term ** ((4 - kappa) / kappa),
        GAIN * gamma**2 * L0**2 * d * ell * p_max / (n**2 * rho),
        statement="the main term solves it",
        where=(Lt(kappa, 4),),
    ),
    Identity("D8", (1 + x) / x, 1 + 8 * gamma**2 * L1, at={x: 1 / (8 * gamma**2 * L1)}),
    Identity(
        "D9",
        (sqrt(N ** (2 * (2 - kappa) / (4 - kappa))) / N) ** kappa,
        N ** (-2 * kappa / (4 - kappa)),
        statement="norm budget when kappa is known",
        where=(Lt(kappa, 4),),
    ),
    Identity("D10", sigma_t**2 * d * ell, N_t**2, statement="gradient noise follows the norm"),
)
