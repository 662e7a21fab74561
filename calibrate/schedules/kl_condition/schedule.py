"""Claims of the paper: schedule."""

from __future__ import annotations

from fractions import Fraction

from sympy import Gt, Le, Rational, exp, log, sqrt

from dpcal.calibrate.auditing.language import Bound, Definition, Enumeration, Feasible, Identity
from dpcal.calibrate.schedules.kl_condition.quantities import (
    F0,
    GAIN,
    L0,
    L1,
    LOG,
    ROOT,
    START,
    TO_TWO,
    K,
    Phi,
    Phi_before,
    R,
    T_k,
    X,
    a,
    beta,
    beta_k,
    c,
    d,
    ell,
    gamma,
    h,
    kappa,
    level,
    n,
    rho,
    sigma_k,
    u,
)

_DRIFT = F0 ** ((kappa - 1) / kappa)


def _recursion_is_maximum(case: tuple[Fraction, int, int]) -> bool:
    """Phi_k = max(c^-k F0, floor) solves the recursion, for F0 = 1."""
    contraction, inverse, rounds = case
    lowest = Fraction(1, inverse)
    value = Fraction(1)
    for _ in range(rounds):
        value = max(value / contraction, lowest)
    return value == max(contraction**-rounds, lowest)


_SCHEDULE = (
    Identity("A1", T_k * Phi ** (2 / kappa), GAIN * Phi, statement="work of a round"),
    Identity("A2", T_k * ROOT, GAIN * Phi ** ((kappa - 1) / kappa), statement="path of a round"),
    Bound(
        "A2.cap",
        T_k * ROOT,
        START,
        where=(Le(Phi, F0),),
        on=TO_TWO,
        statement="the path of a round is at most F0^(1/kappa)",
    ),
    Identity(
        "A3",
        sqrt(T_k) * sigma_k,
        sqrt(K) / (gamma * n * sqrt(rho)) * GAIN * Phi ** ((kappa - 1) / kappa),
        free=(K,),
        statement="accumulated noise of a round's differences",
    ),
    Identity("A4", 4 * L1 * h, ROOT / gamma, statement="step length, whatever the data"),
    Identity(
        "A4.eta", h / (Rational(7, 8) * ROOT / gamma), 2 / (7 * L1), statement="largest step size"
    ),
    Bound("A5", Rational(1, 64), Rational(7, 8) / 16 - Rational(1, 256), statement="Lemma 9"),
    Identity("A6", 1 - (c - 1) / c, 1 / c, free=(c,), statement="contraction per round"),
    Bound(
        "A6.decrease",
        u / (1 + u) * Phi_before,
        u * Phi,
        where=(Le(Phi_before / (1 + u), Phi),),
        statement="the decrease of a round pays for its contraction (u = c - 1)",
    ),
    Identity(
        "A7",
        c / (c - 1),
        1 + 64 * F0 ** (-(2 - kappa) / kappa) * gamma**2 * L1,
        statement="rounds needed per factor e",
    ),
    Bound(
        "A8",
        u / (1 + u),
        log(1 + u),
        on={u: (Rational(1, 64), 64)},
        statement="log(1 + u) >= u/(1 + u) makes K sufficient",
    ),
    Identity(
        "A9",
        K / log(R),
        c / (c - 1),
        statement="K is the rounds per factor e times log R",
        where=(Gt(R, 1),),
    ),
    Identity(
        "A9.R",
        log(R),
        log(F0) + kappa * log(n * sqrt(rho) / (gamma * L0 * sqrt(d))),
        statement="the bracket of K as the paper prints it",
    ),
    Enumeration(
        "A10",
        _recursion_is_maximum,
        [(Fraction(p, 8), q, k) for p in (9, 12, 20) for q in (3, 50, 4000) for k in (1, 5, 17)],
        statement="Phi_k = max(c^-k F0, floor) solves the recursion",
    ),
    Identity(
        "A11",
        4 * L0 * sqrt(K * d * LOG) / (n * sqrt(rho)),
        level ** (1 / kappa) / (8 * gamma),
        free=(K, beta_k),
        at={beta_k: exp(-ell)},
        statement="at the floor the gradient error bound meets the stop test",
    ),
    Identity(
        "A12",
        K * (F0 / (gamma * L0 * sqrt(K) * X) ** kappa) ** ((2 - kappa) / kappa) * beta_k,
        beta,
        free=(K,),
        statement="beta' times the number of estimates is beta",
    ),
    Identity(
        "A13",
        K * START / (4 * gamma * L1),
        (START / (4 * gamma * L1) + 16 * gamma * _DRIFT) * log(R),
        statement="radius of the trajectory, Lemma 1",
    ),
    Identity(
        "A14",
        a,
        gamma**kappa * L1 / L0 ** (2 - kappa),
        at={F0: (gamma * L0) ** kappa},
        statement="condition number when nothing better than Lipschitz is known of F0",
    ),
    Identity("A15.steps", T_k, 1, at={kappa: 2}, statement="kappa = 2: one step per round"),
    Identity("A15.c", c, 1 + 1 / (64 * gamma**2 * L1), at={kappa: 2}, statement="kappa = 2"),
    Identity(
        "A15.sigma",
        sigma_k,
        sqrt(Phi * K) / (gamma * n * sqrt(rho)),
        at={kappa: 2},
        free=(K,),
        statement="kappa = 2: noise of a difference",
    ),
    Identity("A15.one", T_k, F0 / Phi, at={kappa: 1}, statement="kappa = 1: F0/Phi steps"),
    Identity(
        "A15.beta",
        beta_k,
        beta * gamma * L0 * sqrt(K) * X / (K * F0),
        at={kappa: 1},
        free=(K, X),
        statement="kappa = 1: failure probability per estimate",
    ),
    Feasible(
        "A16",
        (Le(1, T_k), Le(h, START / (4 * gamma * L1))),
        where=(Le(Phi, F0),),
        on=TO_TWO,
        statement="a round makes at least one step, no longer than the first round's",
    ),
    Definition("A17", X, sqrt(d / rho) / n, statement="rate variable"),
)
