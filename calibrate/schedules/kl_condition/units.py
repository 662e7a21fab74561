"""Claims of the paper: units."""

from __future__ import annotations

from sympy import Lt, sqrt

from dpcal.calibrate.auditing.language import Units
from dpcal.calibrate.schedules.kl_condition.quantities import (
    F0,
    L0,
    L1,
    START,
    K,
    Ltil,
    R,
    T_k,
    T_prox,
    X,
    a,
    beta_k,
    d,
    gamma,
    h,
    kappa,
    lam,
    level,
    main_term,
    n,
    rho,
    sigma_0,
    sigma_1,
)

UNITS = (
    Units("G.a", a, {}, statement="condition number"),
    Units("G.R", R, {}, statement="ratio of start to target"),
    Units("G.K", K, {}, statement="rounds"),
    Units("G.beta", beta_k, {}, statement="failure probability", free=(K,)),
    Units("G.T", T_k, {}, statement="steps of a round"),
    Units("G.prox", T_prox, {}, statement="stages of Algorithm 2"),
    Units(
        "G.floor",
        level,
        {"loss": 1},
        free=(K, beta_k),
        statement="floor",
    ),
    Units("G.h", h, {"parameter": 1}, statement="step length"),
    Units("G.sigma", sigma_0, {"loss": 1, "parameter": -1}, free=(K,), statement="noise"),
    Units("G.sigma1", sigma_1, {"loss": 1, "parameter": -1}, free=(K,), statement="noise"),
    Units("G.lam", lam, {"loss": 1, "parameter": -2}, statement="proximal weight"),
    Units("G.radius", K * START / (gamma * L1), {"parameter": 1}, free=(K,), statement="radius"),
    Units("G.thm9", L0**2 * d / (Ltil * n**2 * rho), {"loss": 1}, statement="Lemma 3"),
    Units(
        "G.thm4", main_term, {"loss": 1}, statement="Theorem 4, first term", where=(Lt(kappa, 4),)
    ),
    Units(
        "G.thm5",
        sqrt(L0 * X * sqrt(F0 * L1)),
        {"loss": 1, "parameter": -1},
        statement="Theorem 5, worst case",
    ),
)
