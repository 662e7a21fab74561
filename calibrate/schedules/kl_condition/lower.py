"""Claims of the paper: lower."""

from __future__ import annotations

from sympy import Gt, oo, sqrt

from dpcal.calibrate.auditing.language import Identity
from dpcal.calibrate.schedules.kl_condition.quantities import (
    HALF,
    L0,
    D,
    Delta,
    Nz,
    d,
    epsilon,
    gamma,
    kappa,
    n,
    r,
    tau,
    u,
    v,
)

_lam1 = (
    HALF * 4 ** ((tau - 1) / tau) * (tau / (tau - 1)) ** (1 / tau) * Delta ** (1 / tau) / D
) ** ((tau - 1) / tau)

_c1 = tau ** (1 / (tau - 1)) * (tau - 1)

LOWER = (
    Identity(
        "F1",
        (2 ** (-(tau - 1) / tau) * u) ** (tau / (tau - 1)),
        HALF * 4 ** ((tau - 1) / tau) * (tau / (tau - 1)) ** (1 / tau) * Delta ** (1 / tau) / D,
        at={
            u: 4 ** ((tau - 1) ** 2 / tau**2)
            * (Delta * tau / (D**tau * (tau - 1))) ** ((tau - 1) / tau**2)
        },
        on={tau: (1, oo)},
        statement="growth constant of the first level",
    ),
    Identity(
        "F2",
        u**tau * 2 ** (tau - 2) * tau * (tau - 1) * v ** (tau - 2),
        u ** (tau / (tau - 1)) * L0 ** ((tau - 2) / (tau - 1)) * _c1,
        at={v: (L0 / (2 * tau * u**tau * 2 ** (tau - 2))) ** (1 / (tau - 1))},
        on={tau: (1, oo)},
        statement="smoothness of a level",
    ),
    Identity(
        "F3",
        (L0 / (2 * tau * u**tau * 2 ** (tau - 2))) ** (1 / (tau - 1)),
        2
        * (1 / (2 * tau ** (1 / (tau - 1))))
        * ((tau - 1) / tau) ** (1 / tau)
        * 4 ** (-(tau - 1) / tau)
        * L0 ** (1 / (tau - 1))
        * D
        / Delta ** (1 / tau),
        at={u: _lam1},
        on={tau: (1, oo)},
        statement="radius of a level",
    ),
    Identity(
        "F4",
        D * Delta ** ((tau - 1) / tau),
        L0 * D * sqrt(d) / (n * epsilon),
        at={Delta: (L0 * sqrt(d) / (n * epsilon)) ** (tau / (tau - 1))},
        statement="Delta of Theorem 6",
    ),
    Identity(
        "F5",
        (2 * u) ** (kappa / (kappa - 1)),
        2 * r * u,
        at={u: HALF * r ** (kappa - 1)},
        statement="instance of Theorem 8",
        where=(Gt(kappa, 1),),
    ),
    Identity(
        "F5.value",
        2 * r * u,
        (1 / (n * epsilon)) ** kappa,
        at={u: HALF * (n * epsilon) ** (1 - kappa), r: 1 / (n * epsilon)},
        statement="value of Theorem 8",
    ),
    Identity("F6.slope", 8 * u * D, 4 * Nz * L0 / n, at={u: Nz * L0 / (2 * n * D)}),
    Identity(
        "F6.margin",
        16 * u * D**2 - 4 * D * L0 * Nz / n,
        4 * Nz * L0 * D / n,
        at={u: Nz * L0 / (2 * n * D)},
        statement="margin outside the ball",
    ),
    Identity(
        "F7",
        ((kappa - 1) / (kappa * gamma) * u) ** (kappa / (kappa - 1)),
        u ** (kappa / (kappa - 1)) * (kappa - 1) / kappa,
        at={gamma: ((kappa - 1) / kappa) ** (1 / kappa)},
        on={kappa: (1, oo)},
        statement="Lemma 7 is tight on r^p/p",
        where=(Gt(kappa, 1),),
    ),
)
