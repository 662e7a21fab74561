"""Claims of the paper: e rates."""

from __future__ import annotations

from fractions import Fraction

from sympy import Ge, Le, Max, sqrt

from dpcal.calibrate.auditing.language import Bound, Enumeration, Feasible, Identity, Units
from dpcal.calibrate.schedules.gauss_psgd.quantities import (
    GRADIENT,
    HALF,
    TO,
    A,
    G,
    M,
    U,
    a13,
    a14,
    a23,
    a24,
    alpha,
    b1,
    b2,
    chi,
    d,
    drift_window,
    e1,
    e2,
    e3,
    e4,
    epsilon,
    eta,
    g,
    k13,
    k14,
    k23,
    k24,
    kappa,
    m,
    n,
    rho,
    u,
    v,
    x,
)


def _crossings_are_optimal(a: Fraction) -> bool:
    """With unit constants and p = n^-a, the best kappa gives the largest crossing."""
    lines = [  # exponent of e_i as intercept + slope * (exponent of kappa)
        (Fraction(-2, 3), Fraction(-2, 3)),
        (-2 * a, Fraction(-2)),
        (Fraction(-2, 9), Fraction(2, 9)),
        (-2 * a / 7, Fraction(1, 7)),
    ]
    crossings = [(b - a_) / (i - j) for a_, i in lines[:2] for b, j in lines[2:]]
    best = min(max(c0 + c1 * k for c0, c1 in lines) for k in crossings)
    claimed = max(Fraction(-1, 3), -2 * a / 5, -2 * (2 * a + 1) / 17, -(a + 1) / 5)
    return best == claimed


_UNIT = {G: 1, M: 1, U: 1, rho: 1, m: 1, epsilon: 1}

E_RATES = (
    Identity(
        "B1",
        b1 * (U * eta / kappa) + b2 * (U / (eta * chi**2)),
        n,
        free=(eta, chi),
        statement="budget",
    ),
    Identity(
        "B2.1",
        G**2 / (m * b1),
        2 * G**2 * U * eta / (m * n * kappa),
        free=(eta,),
        statement="sampling error of a refresh",
    ),
    Identity(
        "B2.2",
        G**2 * d / (m * b1**2 * epsilon**2),
        4 * G**2 * d * U**2 * eta**2 / (m * n**2 * epsilon**2 * kappa**2),
        free=(eta,),
        statement="privacy error of a refresh",
    ),
    Identity(
        "B2.3",
        M**2 * kappa / (m * b2),
        2 * M**2 * U * kappa / (m * n * eta * chi**2),
        free=(eta, chi),
        statement="sampling error of the differences",
    ),
    Identity(
        "B2.4",
        M**2 * d * kappa / (m * b2**2 * epsilon**2),
        4 * M**2 * d * U**2 * kappa / (m * n**2 * epsilon**2 * eta**2 * chi**4),
        free=(eta, chi),
        statement="privacy error of the differences",
    ),
    Identity(
        "B3.1",
        G**2 * U * u / (m * n * kappa),
        G**2 * U * sqrt(rho * alpha) / (m * M**2 * n * kappa),
        at={u: sqrt(rho * alpha) / M**2},
        free=(alpha,),
        statement="first error with the step size put in",
    ),
    Identity(
        "B3.4",
        M**2 * d * U**2 * kappa / (m * n**2 * epsilon**2 * u**2 * alpha**4),
        M**6 * d * U**2 * kappa / (m * rho * n**2 * epsilon**2 * alpha**5),
        at={u: sqrt(rho * alpha) / M**2},
        free=(alpha,),
        statement="fourth error with the step size put in",
    ),
    Identity("B4.1", e1**2, G**2 * U * sqrt(rho * e1) / (m * M**2 * n * kappa)),
    Identity("B4.2", e2**2, G**2 * d * U**2 * rho * e2 / (m * M**4 * n**2 * epsilon**2 * kappa**2)),
    Identity("B4.3", e3**2, M**4 * U * kappa / (m * sqrt(rho) * n * e3 ** TO(5, 2))),
    Identity("B4.4", e4**2, M**6 * d * U**2 * kappa / (m * rho * n**2 * epsilon**2 * e4**5)),
    Identity("B5", e1, e3, at={kappa: k13}, statement="where e1 and e3 cross"),
    Identity("B5.alpha", e1, a13, at={kappa: k13}, statement="accuracy there"),
    Identity("B6", e2, e4, at={kappa: k24}, statement="where e2 and e4 cross"),
    Identity("B6.alpha", e2, a24, at={kappa: k24}, statement="accuracy there"),
    Identity("B7", e1, e4, at={kappa: k14}, statement="where e1 and e4 cross"),
    Identity("B7.alpha", e1, a14, at={kappa: k14}, statement="accuracy there"),
    Identity("B8", e2, e3, at={kappa: k23}, statement="where e2 and e3 cross"),
    Identity("B8.alpha", e2, a23, at={kappa: k23}, statement="accuracy there"),
    Enumeration(
        "B9",
        _crossings_are_optimal,
        [Fraction(k, 24) for k in range(1, 48)],
        statement="the best kappa gives the largest of the four crossings",
    ),
    Bound(
        "B10",
        u ** TO(1, 5) * n ** TO(-2, 5),
        Max(n ** TO(-1, 3), (u / n) ** TO(2, 5)),
        where=(Ge(u, 1), Ge(n, 1)),
        statement="the crossing of e2 and e3 never dominates (unit constants, u = sqrt(d)/epsilon)",
    ),
    Identity("B12", e4, n ** TO(-13, 42), at={**_UNIT, kappa: k13, d: n ** TO(1, 3)}),
    Identity("B12.best", a14, n ** TO(-16, 51), at={**_UNIT, d: n ** TO(1, 3)}),
    Identity(
        "B13.b1",
        n * k13 / u,
        n ** TO(2, 3),
        at={**_UNIT, u: n ** TO(-1, 6)},
        statement="refresh batch where sampling dominates",
    ),
    Identity(
        "B13.b2",
        n * u * a24**2,
        n * x,
        at={**_UNIT, u: x ** TO(1, 5), d: (n * x) ** 2},
        statement="difference batch where privacy dominates (x = p)",
    ),
    Feasible(
        "B14",
        (Le(b1, n), Le(1, b1)),
        where=(Le(kappa, 2 * U * eta), Le(2 * U * eta / kappa, n)),
        free=(eta,),
        statement="1 <= b1 <= n",
    ),
    Feasible(
        "B14.b2",
        (Le(b2, n), Le(1, b2)),
        where=(Le(eta * chi**2, 2 * U), Le(2 * U / (eta * chi**2), n)),
        free=(eta, chi),
        statement="1 <= b2 <= n",
    ),
    Bound("B15", x * g - g**2 / 2 + g**2 / 6, TO(3, 4) * x**2, statement="rise of a call, x = chi"),
    Identity(
        "B16",
        u * (A * U / (eta * chi**2)),
        A / 2 * n,
        at={u: n * eta * chi**2 / (2 * U)},
        free=(eta, chi),
        statement="records used by the differences",
    ),
    Identity(
        "B16.refresh",
        u * 6 * eta / kappa * (U + TO(3, 4) * A * U),
        3 * (1 + TO(3, 4) * A) * n,
        at={u: n * kappa / (2 * U * eta)},
        free=(eta,),
        statement="records used by the refreshes",
    ),
    Identity(
        "B18",
        (u / (n * v)) ** HALF,
        n ** TO(-1, 3),
        at={u: 1, v: n ** TO(-1, 3)},
        statement="earlier exponent with eta = 1/M, unit constants",
    ),
    Units("B19.k13", k13, {"parameter": 2}),
    Units("B19.k24", k24, {"parameter": 2}),
    Units("B19.k14", k14, {"parameter": 2}),
    Units("B19.k23", k23, {"parameter": 2}),
    Units("B19.a13", a13, GRADIENT),
    Units("B19.a24", a24, GRADIENT),
    Units("B19.a14", a14, GRADIENT),
    Units("B19.a23", a23, GRADIENT),
    Enumeration("B20", drift_window, list(range(2, 8)), statement="drift of answered calls"),
    Identity("D1", k13, v, at={v: k13}, statement="m n in place of n, by B5 with symbolic m"),
    Identity(
        "X9",
        a14 / u,
        m ** TO(-4, 17),
        at={u: (G**2 * M**4 * U**3 * d / (sqrt(rho) * n**3 * epsilon**2)) ** TO(2, 17)},
        statement="gain from m clients in the mixed regime",
    ),
)
