"""Claims of the paper: proximal."""

from __future__ import annotations

from fractions import Fraction

from sympy import Ge, Gt, Max, Rational, log, oo, sqrt

from dpcal.calibrate.auditing.language import Bound, Enumeration, Identity
from dpcal.calibrate.schedules.kl_condition.quantities import (
    F0,
    HALF,
    L0,
    ROOT,
    A,
    Lam,
    Ltil,
    Phi,
    R,
    T,
    T_in,
    T_prox,
    X,
    Y,
    d,
    ell_in,
    eta_in,
    gamma,
    kappa,
    level_prox,
    n,
    rho,
    t,
    u,
    x,
    y,
)

_FROM_TWO = {kappa: (2, oo)}


def _weights_sum_to_one(steps: int) -> bool:
    """The weights 2 t / (T (T + 1)) of Algorithm 4 sum to one."""
    return sum(Fraction(2 * k, steps * (steps + 1)) for k in range(1, steps + 1)) == 1


_TAU = A * L0**2 * X**2 * T * Lam

PROXIMAL = (
    Identity(
        "C1",
        (1 + x) / x,
        1 + 32 * F0 ** ((kappa - 2) / kappa) * gamma**2 * Ltil,
        at={x: F0 ** ((2 - kappa) / kappa) / (32 * gamma**2 * Ltil)},
        statement="stages per factor e of the printed Algorithm 2",
    ),
    Identity(
        "C2",
        Ltil / 4 * (ROOT / (2 * gamma * Ltil)) ** 2,
        Phi ** (2 / kappa) / (16 * gamma**2 * Ltil),
        statement="decrease forced by the KL condition",
    ),
    Identity("C3", Phi ** (2 / kappa), Phi ** ((2 - kappa) / kappa) * Phi, statement="exponents"),
    Bound(
        "C3.contraction",
        1 / u,
        u ** (-2 / kappa),
        where=(Ge(u, 1),),
        on=_FROM_TWO,
        statement="c^(-2/kappa) >= 1/c for kappa >= 2",
    ),
    Identity("C4", L0 + 2 * u * L0 / (2 * u), 2 * L0, statement="Lipschitz constant on the ball"),
    Enumeration("C5", _weights_sum_to_one, list(range(1, 40)), statement="weights sum to 1"),
    Identity(
        "C6",
        t * (1 / (2 * eta_in) - Ltil / 2) - (t - 1) / (2 * eta_in.subs(t, t)) * t / (t + 1),
        0,
        statement="the weighted descent sum telescopes",
    ),
    Identity("C7.noise", u**2 / 2, 2 * L0**2 * ell_in**2 / d, at={u: 2 * L0 * ell_in / sqrt(d)}),
    Identity(
        "C7.rate",
        4 * L0**2 * ell_in**2 / (Ltil * T_in),
        4 * L0**2 * d / (Ltil * n**2 * rho),
        statement="noise term of Lemma 3",
    ),
    Identity(
        "C7.tail",
        L0**2 / (Ltil * T_in),
        L0**2 * d / (Ltil * n**2 * rho * ell_in**2),
        statement="deterministic term of Lemma 3",
    ),
    Identity("C8", Rational(2, 3) * -HALF + Rational(1, 3), 0, statement="the distance cancels"),
    Identity(
        "C9",
        Y,
        Rational(1, 4),
        at={u: Phi ** ((2 - kappa) / kappa) / (8 * gamma**2)},
        statement="largest contraction of a stage",
    ),
    Identity(
        "C9.weight",
        y,
        Rational(1, 4),
        at={Ltil: Phi ** ((2 - kappa) / kappa) / (8 * gamma**2 * (1 + x))},
        statement="the staged weight contracts by the most wherever Ltil is smaller",
    ),
    Bound("C9.cap", y, Rational(1, 4), on=_FROM_TWO, statement="y is at most 1/4"),
    Bound(
        "C9.half", Phi / 4, 4 ** (-2 / kappa) * Phi, on=_FROM_TWO, statement="splitting at Phi/4"
    ),
    Identity(
        "C10",
        Y * Phi / 2,
        Phi ** (2 / kappa) / (64 * u * gamma**2),
        statement="allowed error of the inner solver",
    ),
    Identity(
        "C10.floor",
        Phi ** (2 / kappa) / (64 * gamma**2),
        _TAU,
        at={Phi: (8 * sqrt(A) * gamma * L0 * X * sqrt(T * Lam)) ** kappa},
        statement="the repaired floor is where the inner solver's error fits",
    ),
    Identity(
        "C10.level",
        level_prox ** (2 / kappa) / (64 * gamma**2),
        A * L0**2 * d * T * Lam / (n**2 * rho),
        statement="the floor setting is that value",
    ),
    Identity(
        "C11",
        (32 * gamma**2 * Ltil * u) ** (kappa / 2),
        u,
        at={u: (32 * gamma**2 * Ltil) ** (-kappa / (kappa - 2))},
        statement="where the printed floor falls below the inner error",
        where=(Gt(kappa, 2),),
    ),
    Bound(
        "C12",
        u / 2,
        -log(1 - u / 2),
        on={u: (Rational(1, 100), Rational(1, 4))},
        statement="log(1/(1 - y/2)) >= y/2",
    ),
    Identity(
        "C12.stages",
        T_prox / log(R),
        Max(8, 2 / (F0 ** ((2 - kappa) / kappa) / (32 * Ltil * gamma**2))),
        statement="stages are 2/y at the smallest y",
        where=(Gt(R, 1),),
    ),
    Identity(
        "C13",
        2 * (4 * L0**2 + d * 2 * L0**2 * T_in / (n**2 * rho)) / (u * T_in),
        (4 + 8 / ell_in**2) * L0**2 * d / (u * n**2 * rho),
        statement="Algorithm 4 in expectation",
    ),
)
