"""Second-order stationary points: Gauss-PSGD, Ada-DP-SPIDER, private model selection.

A perturbed SGD whose escape phases are driven by the Gaussian noise of a private variance-reduced
oracle. ``p = sqrt(d)/(n epsilon)``; ``e1 .. e4`` are the accuracies at which each error of the
oracle alone equals alpha.

>>> from dpcal.calibrate.auditing.prover import prove
>>> verdict = prove(SCHEDULE.resolve(SCHEDULE.claim("E5.printed")))
>>> verdict.status, verdict.reason.split(" grows ")[1]
('REFUTED', 'by the power 1/42 more than claimed')
"""

from __future__ import annotations

from fractions import Fraction

from sympy import Ge, Le, Max, Rational, exp, log, sqrt

from dpcal.calibrate.auditing.language import (
    Bound,
    Enumeration,
    Erratum,
    Feasible,
    Identity,
    Private,
    Prose,
    Quantity,
    Rate,
    Release,
    Schedule,
    Setting,
    Units,
    erratum,
    positive,
)

__all__ = ["SCHEDULE"]

n, m, d, epsilon, G, M, U, rho, psi, kappa = positive("n m d epsilon G M U rho psi kappa")
s, C, c, mu, iota, chi, alpha, eta, Gamma, R = positive("s C c mu iota chi alpha eta Gamma R")
Phi, b1, b2, T, Q, saddles, omega, r, g, z = positive("Phi b1 b2 T Q saddles omega r g z")
k13, k24, k14, k23, a13, a24, a14, a23 = positive("k13 k24 k14 k23 a13 a24 a14 a23")
e1, e2, e3, e4 = positive("e1 e2 e3 e4")
x, u, v, w, L, A, N, t, Lam = positive("x u v w L A N t Lam")
_HALF = Rational(1, 2)
_GRADIENT = {"loss": 1, "parameter": -1}

QUANTITIES = (
    Quantity(n, "records per client"),
    Quantity(m, "clients"),
    Quantity(d, "dimension"),
    Quantity(epsilon, "target epsilon"),
    Quantity(G, "Lipschitz constant", _GRADIENT),
    Quantity(M, "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity(rho, "Lipschitz constant of the Hessian", {"loss": 1, "parameter": -3}),
    Quantity(U, "initial gap", {"loss": 1}),
    Quantity(psi, "size of the oracle's error", _GRADIENT),
    Quantity(r, "noise per coordinate", _GRADIENT),
    Quantity(kappa, "drift after which the oracle refreshes", {"parameter": 2}),
    Quantity(mu, "logarithmic factor"),
    Quantity(s, "absolute constant"),
    Quantity(C, "absolute constant"),
    Quantity(omega, "failure probability"),
    Quantity(T, "oracle calls"),
)

_TO = Rational
SETTINGS = (
    Setting(iota, s * mu, source="(5)"),
    Setting(
        chi,
        4 * sqrt(C) * s ** _TO(3, 2) * mu ** _TO(5, 2) * psi,
        printed=4 * sqrt(C) * s * mu**2 * psi,
        source="(5)",
    ),
    Setting(alpha, 4 * chi, source="(5)"),
    Setting(
        eta,
        sqrt(rho * alpha) / (M**2 * iota**3),
        printed=sqrt(rho * alpha) / (M**2 * iota**2),
        source="(5)",
    ),
    Setting(Gamma, iota / (s * eta * sqrt(rho * alpha)), source="(5)", rounding="up"),
    Setting(R, iota ** _TO(-3, 2) * sqrt(alpha / rho), source="(5)"),
    Setting(
        Phi,
        s / (8 * iota**4) * sqrt(alpha**3 / rho),
        printed=s / (8 * iota**3) * sqrt(alpha**3 / rho),
        source="(5)",
    ),
    Setting(
        saddles,
        U / Phi,
        printed=8 * iota**3 * U / s * sqrt(rho / chi**3),
        source="(77)",
        rounding="up",
    ),
    Setting(
        Q,
        log(1 / omega) / log(_TO(8, 7)),
        printed=_TO(26, 5) * log(1 / omega),
        source="Lemma 2",
        rounding="up",
    ),
    Setting(b1, n * kappa / (2 * U * eta), source="Theorem 2", rounding="down"),
    Setting(b2, n * eta * chi**2 / (2 * U), source="Theorem 2", rounding="down"),
    Setting(e1, (G**2 * U * sqrt(rho) / (m * M**2 * n * kappa)) ** _TO(2, 3), source="Theorem 3"),
    Setting(
        e2,
        G**2 * d * U**2 * rho / (m * M**4 * n**2 * epsilon**2 * kappa**2),
        source="Theorem 3",
    ),
    Setting(e3, (M**4 * U * kappa / (m * n * sqrt(rho))) ** _TO(2, 9), source="Theorem 3"),
    Setting(
        e4,
        (M**6 * d * U**2 * kappa / (m * rho * n**2 * epsilon**2)) ** _TO(1, 7),
        source="Theorem 3",
    ),
    Setting(
        k13,
        G ** _TO(3, 2) * sqrt(U * rho) / (M ** _TO(5, 2) * sqrt(m * n)),
        source="Theorem 3",
    ),
    Setting(
        k24,
        G ** _TO(14, 15)
        * d ** _TO(2, 5)
        * U ** _TO(4, 5)
        * rho ** _TO(8, 15)
        / (M ** _TO(34, 15) * (sqrt(m) * n * epsilon) ** _TO(4, 5)),
        source="Theorem 3",
    ),
    Setting(
        k14,
        G ** _TO(28, 17)
        * U ** _TO(8, 17)
        * rho ** _TO(10, 17)
        * epsilon ** _TO(6, 17)
        / (M ** _TO(46, 17) * d ** _TO(3, 17) * m ** _TO(11, 17) * n ** _TO(8, 17)),
        source="mixed regime, missing in the paper",
    ),
    Setting(
        k23,
        G ** _TO(9, 10)
        * U ** _TO(4, 5)
        * sqrt(rho)
        * d ** _TO(9, 20)
        / (M ** _TO(11, 5) * epsilon ** _TO(9, 10) * m ** _TO(7, 20) * n ** _TO(4, 5)),
        source="mixed regime",
    ),
    Setting(a13, (G * U * M / (m * n)) ** _TO(1, 3), source="Theorem 3"),
    Setting(
        a24,
        G ** _TO(2, 15)
        * U ** _TO(2, 5)
        * M ** _TO(8, 15)
        * rho ** _TO(-1, 15)
        * (sqrt(d) / (sqrt(m) * n * epsilon)) ** _TO(2, 5),
        printed=G ** _TO(2, 15)
        * U ** _TO(2, 5)
        * M ** _TO(8, 15)
        * rho ** _TO(-1, 15)
        * (sqrt(d) / (m * n * epsilon)) ** _TO(2, 5),
        source="Theorem 3; the introduction prints m n epsilon",
    ),
    Setting(
        a14,
        (G**2 * M**4 * U**3 * d / (sqrt(rho) * m**2 * n**3 * epsilon**2)) ** _TO(2, 17),
        source="mixed regime, missing in the paper",
    ),
    Setting(
        a23,
        (G * M**2 * U**2) ** _TO(1, 5)
        * d ** _TO(1, 10)
        / (epsilon ** _TO(1, 5) * m ** _TO(3, 10) * n ** _TO(2, 5)),
        source="mixed regime",
    ),
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


def _returns_anchor(case: tuple[int, int]) -> bool:
    """After the last failed round, index t - 1 is the anchor's."""
    anchor, steps = case
    t_now = anchor
    for _ in range(steps):
        t_now += 1
    return t_now - 1 == anchor


def _drift_window(calls: int) -> bool:
    """The drift tested at call t ends with x_{t-1} - x_{t-2}."""
    moves = [k * k for k in range(1, calls + 1)]
    tested = sum(moves[: calls - 1])
    return tested == sum(k * k for k in range(1, calls))


def _printed_drift_window(calls: int) -> bool:
    """The drift tested at call t includes x_t - x_{t-1}, which is not known yet."""
    moves = [k * k for k in range(1, calls + 1)]
    return sum(moves) == sum(k * k for k in range(1, calls))


_ESCAPE = (
    Identity(
        "A1",
        Gamma,
        mu / (eta * sqrt(rho * alpha)),
        free=(alpha, eta),
        statement="length of a round",
    ),
    Identity(
        "A2",
        eta * sqrt(rho * alpha),
        rho * alpha / (M**2 * iota**3),
        free=(alpha,),
        statement="escape rate per step",
    ),
    Bound(
        "A3",
        s * eta * sqrt(rho * alpha),
        1,
        free=(alpha, iota),
        where=(Le(rho * alpha, M**2), Le(s, iota**3)),
        statement="a round has at least iota steps",
    ),
    Identity(
        "A4",
        R**2 / (4 * eta * Gamma),
        2 * Phi,
        free=(alpha, eta),
        statement="twice the guaranteed decrease of an escape",
    ),
    Identity(
        "A5",
        c * eta * psi**2 * 2 * Gamma,
        2 * c * psi**2 * iota / (s * sqrt(rho * alpha)),
        free=(alpha, eta),
        statement="noise term of a round",
    ),
    Identity(
        "A6",
        2 * c * psi**2 * iota / (s * sqrt(rho * alpha)),
        s / (8 * iota**4) * sqrt(alpha**3 / rho),
        at={alpha: 4 * sqrt(c) * s ** _TO(3, 2) * mu ** _TO(5, 2) * psi},
        free=(alpha,),
        statement="smallest alpha for which the noise takes at most half of the decrease",
    ),
    Identity(
        "A7",
        alpha**2 / (16 * c * s**3 * mu**5 * psi**2),
        16 * C / c,
        statement="margin of the corrected alpha over A6",
    ),
    Identity(
        "A8",
        Phi / Gamma,
        2 * chi**2 * eta / (s**3 * mu**5),
        free=(chi, eta),
        statement="decrease per step of a round",
    ),
    Identity(
        "A9",
        U * s**3 * mu**5 / (2 * chi**2 * eta),
        U * Gamma / Phi,
        free=(chi, eta),
        statement="effective number of steps",
    ),
    Identity(
        "A10",
        saddles,
        iota**4 * U / s * sqrt(rho / chi**3),
        free=(chi, iota),
        statement="escapes",
    ),
    Identity(
        "A11",
        2 * saddles / omega,
        16 * iota**3 * U / (s * omega) * sqrt(rho / chi**3),
        free=(chi, iota),
        printed=(saddles,),
        statement="argument of the logarithm in the printed Q",
    ),
    Bound(
        "A12",
        1,
        _TO(26, 5) * log(_TO(8, 7)) / log(2),
        statement="26/5 rounds per bit suffice with base-2 logarithms",
    ),
    Identity("A12.Q", Q * log(_TO(8, 7)), log(1 / omega), statement="rounds until failure omega"),
    Identity(
        "A13",
        4 * sqrt(C) * s * u**2,
        C * sqrt(2 * L),
        at={u: (C * L) ** _TO(1, 4) / (2 ** _TO(3, 4) * sqrt(s))},
        statement="third entry of mu as printed",
    ),
    Identity(
        "A13.corrected",
        4 * sqrt(C) * s ** _TO(3, 2) * u ** _TO(5, 2),
        C * sqrt(2 * L),
        at={u: (C * L / (8 * s**3)) ** _TO(1, 5)},
        statement="third entry of mu, corrected",
    ),
    Identity(
        "A14",
        36 * d * Gamma,
        9 * d / (C ** _TO(1, 4) * s ** _TO(3, 4) * mu ** _TO(1, 4) * eta * sqrt(rho * psi)),
        free=(eta,),
        statement="argument of the first entry of mu",
    ),
    Identity(
        "A15",
        R / (eta * r),
        4 * C ** _TO(1, 4) * sqrt(psi / rho) / (s ** _TO(3, 4) * mu ** _TO(1, 4) * eta * r),
        free=(eta,),
        statement="inner logarithm of the first entry of mu",
    ),
    Identity(
        "A16",
        2 * c * eta * rho * R * Gamma * sqrt(iota),
        2 * c / s,
        free=(alpha, eta),
        statement="(41) with sqrt(iota)",
    ),
    Identity(
        "A17",
        eta * M * sqrt(Gamma) * iota,
        1 / sqrt(s),
        statement="stochastic-gradient part of the induction",
    ),
    Identity(
        "A18",
        v * sqrt(eta) * r / (40 * sqrt(2 * g)),
        v / sqrt(2 * eta * g) * eta * r / 40,
        free=(eta,),
        statement="noise reaches this fraction of the growth (v = (1 + eta g)^Gamma)",
    ),
    Bound(
        "A19",
        1 + x,
        2 * mu,
        where=(Le(x, 1), Ge(mu, 1)),
        statement="growth increases with the curvature",
    ),
    Identity(
        "A20",
        40 * sqrt(2) * (rho * alpha) ** _TO(1, 4) * R / (sqrt(eta) * r),
        40 * sqrt(2) * M * sqrt(alpha / rho) / r,
        free=(alpha,),
        statement="growth needed for an escape",
    ),
    Identity("A21", _TO(3, 4) * (1 - _TO(2, 9)), _TO(7, 12), statement="probability budget"),
    Identity("A21.rest", 1 - _TO(1, 3) - _TO(5, 12), _TO(1, 4), statement="probability budget"),
    Bound(
        "A22",
        2**x,
        1 + x,
        on={x: (_TO(1, 100), _TO(99, 100))},
        statement="1 + a >= 2^a on [0.01, 0.99]; equality at 0 and 1",
    ),
    Identity(
        "A23",
        (v**2 - 1) / ((1 + x) ** 2 - 1) / (v**2 / (2 * x)),
        2 * (1 - v**-2) / (2 + x),
        statement="ratio of the two growth factors, v = (1 + x)^t",
    ),
    Bound(
        "A23.half",
        _HALF,
        2 * (1 - v**-2) / (2 + x),
        where=(Ge(v, 2), Le(x, 1)),
        on={v: (2, 10**6), x: (0, 1)},
        statement="at least 1/2 once the growth has doubled",
    ),
    Identity(
        "A24",
        -(x * u),
        ((u - x) ** 2 - x**2 - u**2) / 2,
        statement="inner product by squares, one coordinate",
    ),
    Identity(
        "A25", R / (eta * Gamma), alpha / (s ** _TO(3, 2) * mu ** _TO(5, 2)), free=(alpha, eta)
    ),
    Identity(
        "A26",
        U / (u * alpha**2),
        U * M**2 / (sqrt(rho) * alpha ** _TO(5, 2)),
        at={u: sqrt(rho * alpha) / M**2},
        free=(alpha,),
        statement="steps, up to logarithms",
    ),
    Identity(
        "A27",
        eta / 2 * (2 * chi) ** 2 - eta / 2 * chi**2,
        _TO(3, 2) * eta * chi**2,
        free=(eta, chi),
        statement="net decrease of a normal step",
    ),
    Identity("A27.alpha", alpha, 4 * chi, free=(chi,), statement="accuracy and error"),
    Units("A28.R", R, {"parameter": 1}, statement="radius"),
    Units("A28.Phi", Phi, {"loss": 1}, statement="decrease"),
    Units("A28.Gamma", Gamma, {}, statement="length of a round"),
    Units("A28.eta", eta, {"parameter": 2, "loss": -1}, statement="step size"),
    Units(
        "A28.log",
        d / (eta * sqrt(rho * psi)) * (C / s),
        {},
        statement="argument of the first logarithm in mu",
    ),
)

_UNIT = {G: 1, M: 1, U: 1, rho: 1, m: 1, epsilon: 1}
_E_RATES = (
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
    Identity("B4.3", e3**2, M**4 * U * kappa / (m * sqrt(rho) * n * e3 ** _TO(5, 2))),
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
        u ** _TO(1, 5) * n ** _TO(-2, 5),
        Max(n ** _TO(-1, 3), (u / n) ** _TO(2, 5)),
        where=(Ge(u, 1), Ge(n, 1)),
        statement="the crossing of e2 and e3 never dominates (unit constants, u = sqrt(d)/epsilon)",
    ),
    Identity("B12", e4, n ** _TO(-13, 42), at={**_UNIT, kappa: k13, d: n ** _TO(1, 3)}),
    Identity("B12.best", a14, n ** _TO(-16, 51), at={**_UNIT, d: n ** _TO(1, 3)}),
    Identity(
        "B13.b1",
        n * k13 / u,
        n ** _TO(2, 3),
        at={**_UNIT, u: n ** _TO(-1, 6)},
        statement="refresh batch where sampling dominates",
    ),
    Identity(
        "B13.b2",
        n * u * a24**2,
        n * x,
        at={**_UNIT, u: x ** _TO(1, 5), d: (n * x) ** 2},
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
    Bound(
        "B15", x * g - g**2 / 2 + g**2 / 6, _TO(3, 4) * x**2, statement="rise of a call, x = chi"
    ),
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
        u * 6 * eta / kappa * (U + _TO(3, 4) * A * U),
        3 * (1 + _TO(3, 4) * A) * n,
        at={u: n * kappa / (2 * U * eta)},
        free=(eta,),
        statement="records used by the refreshes",
    ),
    Identity(
        "B18",
        (u / (n * v)) ** _HALF,
        n ** _TO(-1, 3),
        at={u: 1, v: n ** _TO(-1, 3)},
        statement="earlier exponent with eta = 1/M, unit constants",
    ),
    Units("B19.k13", k13, {"parameter": 2}),
    Units("B19.k24", k24, {"parameter": 2}),
    Units("B19.k14", k14, {"parameter": 2}),
    Units("B19.k23", k23, {"parameter": 2}),
    Units("B19.a13", a13, _GRADIENT),
    Units("B19.a24", a24, _GRADIENT),
    Units("B19.a14", a14, _GRADIENT),
    Units("B19.a23", a23, _GRADIENT),
    Enumeration("B20", _drift_window, list(range(2, 8)), statement="drift of answered calls"),
    Identity("D1", k13, v, at={v: k13}, statement="m n in place of n, by B5 with symbolic m"),
    Identity(
        "X9",
        a14 / u,
        m ** _TO(-4, 17),
        at={u: (G**2 * M**4 * U**3 * d / (sqrt(rho) * n**3 * epsilon**2)) ** _TO(2, 17)},
        statement="gain from m clients in the mixed regime",
    ),
)

_CROSS = sqrt(rho * alpha) + M / sqrt(m * n) + M * d * alpha ** _TO(-5, 4) / (sqrt(m) * n * epsilon)
_SELECTION = (
    Identity(
        "C1",
        _CROSS**2 / rho,
        alpha
        + M**2 / (rho * m * n)
        + M**2 * d**2 / (rho * m * n**2 * epsilon**2 * alpha ** _TO(5, 2))
        + 2 * M * sqrt(alpha) / (sqrt(rho) * sqrt(m * n))
        + 2 * M * d / (sqrt(rho) * sqrt(m) * n * epsilon * alpha ** _TO(3, 4))
        + 2 * M**2 * d / (rho * m * n ** _TO(3, 2) * epsilon * alpha ** _TO(5, 4)),
        free=(alpha,),
        statement="square of the curvature error",
    ),
    Bound("C3", 2 * sqrt(x * u), x + u, statement="cross terms are absorbed by the squares"),
    Identity(
        "C4",
        sqrt(d) / (N * u ** _TO(5, 4)) / u,
        d ** _TO(1, 20) * N ** _TO(-1, 10),
        at={u: (sqrt(d) / N) ** _TO(2, 5)},
        statement="first condition of Remark 4",
    ),
    Identity(
        "C4.second",
        d / (N * u ** _TO(3, 4)) / u,
        d ** _TO(13, 20) * N ** _TO(-3, 10),
        at={u: (sqrt(d) / N) ** _TO(2, 5)},
        statement="second condition of Remark 4",
    ),
    Identity(
        "C5",
        t**2 / (2 * (4 * M**2 / x + 2 * M / x * t / 3)),
        L,
        at={t: 4 * M * sqrt(L / x), x: _TO(4, 9) * L},
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

_TEXTBOOK = sqrt(2 * log(Rational(125, 100) * 10**5))
_DELTA5 = Rational(1, 10**5)

_ERRATA = (
    erratum(
        "E1",
        "R^2/(4 eta Gamma) has iota^4, not iota^3: the decrease of an escape is overstated.",
        Identity("", R**2 / (4 * eta * Gamma), 2 * Phi, free=(alpha, eta)),
        settings=(Phi,),
        use="Phi = (s/(8 iota^4)) sqrt(alpha^3/rho), chi = 4 sqrt(C) s^(3/2) mu^(5/2) psi.",
        severity="rate",
        source="Lemma 4, (71)-(72), (5)",
    ),
    erratum(
        "E1.chi",
        "alpha of (5) is too small by sqrt(iota) for the noise to take half of the decrease.",
        Bound("", 16 * C * s**3 * mu**5 * psi**2, alpha**2, statement="requirement A6 with c = C"),
        printed=Bound(
            "",
            16 * C * s**3 * mu**5 * psi**2,
            alpha**2,
            printed=(chi,),
            statement="requirement A6 with c = C",
        ),
        use="chi = 4 sqrt(C) s^(3/2) mu^(5/2) psi.",
        severity="rate",
        source="(5)",
    ),
    erratum(
        "E2",
        "The induction of Lemma 20 needs iota where sqrt(iota) is printed.",
        Identity("", eta * M * sqrt(Gamma) * iota, 1 / sqrt(s)),
        settings=(eta,),
        use="eta = sqrt(rho alpha)/(M^2 iota^3).",
        severity="rate",
        source="Lemma 20, (42)-(43)",
    ),
    erratum(
        "E3",
        "26/5 rounds per unit of log(1/omega) are enough only for base-2 logarithms.",
        Bound("", 1, x * log(_TO(8, 7)), at={x: 1 / log(_TO(8, 7))}, statement="log(1/w) rounds"),
        printed=Bound("", 1, _TO(26, 5) * log(_TO(8, 7)), statement="natural logarithm"),
        use="Q = ceil(log(1/omega)/log(8/7)).",
        severity="rate",
        source="Lemmas 2 and 6",
    ),
    erratum(
        "E4",
        "(52) has sqrt(eta r) for sqrt(eta) r/sqrt(gamma): too optimistic when r < gamma.",
        Identity("", v / sqrt(2 * u * g) * u * r, v * sqrt(u) * r / sqrt(2 * g)),
        printed=Identity("", v / sqrt(2 * u * g) * u * r, v * sqrt(u * r) / sqrt(2)),
        use="log2(40 sqrt2 M sqrt(alpha/rho)/r).",
        severity="rate",
        source="(52)-(53), (6)",
    ),
    erratum(
        "E4.units",
        "The second logarithm of (6) has an argument with units.",
        Units("", M * sqrt(alpha / rho) / r, {}, statement="argument of the logarithm"),
        printed=Units("", sqrt(psi / rho) / sqrt(eta * r), {}, statement="printed argument"),
        use="log2(40 sqrt2 M sqrt(alpha/rho)/r).",
        severity="rate",
        source="(6)",
    ),
    erratum(
        "E5",
        "The larger of two kappas does not give the sum of two rates: a mixed regime lies between.",
        Rate(
            "",
            a13 + a24 + a14,
            a14,
            growth={n: 1, d: _TO(1, 3)},
            statement="with the mixed term, at p = n^(-5/6)",
        ),
        printed=Rate(
            "",
            e4,
            a13 + a24,
            growth={n: 1, d: _TO(1, 3), kappa: -_HALF},
            statement="e4 at kappa_13 is within the claimed sum, at p = n^(-5/6)",
        ),
        use="kappa at the crossing of max(e1, e2) and max(e3, e4).",
        severity="rate",
        source="Theorems 2 and 3",
    ),
    erratum(
        "E6",
        "With the proved bounds the oracle may use more than n records.",
        Bound("", b1 * u + b2 * v, n, where=(Le(2 * b1 * u, n), Le(2 * b2 * v, n)), free=(b1, b2)),
        printed=Bound(
            "", 3 * (1 + 5 * A) * n + A / 2 * n, n, statement="records used are at most n"
        ),
        use="Hard caps on both kinds of call, b_i = floor(n/(2 N_i)).",
        severity="privacy",
        source="Theorems 2 and 3, (98), (115)",
    ),
    Erratum(
        "E7",
        "Theorem 1 assumes fresh isotropic noise; the SPIDER oracle's errors are correlated "
        "in time.",
        Prose("E7.printed", "a property of a joint law that no formula of the paper states"),
        use="Treat the guarantee as empirical for Algorithms 2 and 3.",
        severity="rate",
    ),
    erratum(
        "E8",
        "The jump back after a failed round is not counted, neither as drift nor in F.",
        Identity("", 4 * M * mu / sqrt(rho * alpha), M * R**2 / 2 / Phi, free=(alpha, eta)),
        printed=Bound(
            "",
            M * R**2 / 2,
            Phi,
            free=(alpha, eta),
            statement="the jump costs at most one decrease",
        ),
        use="Rewind the estimator; measure true movements; cap the calls.",
        severity="rate",
        source="Algorithms 1 and 2",
    ),
    erratum(
        "E9",
        "The pseudocode returns the last iterate of a failed round, not the certified anchor.",
        Enumeration("", _returns_anchor, [(5, 1)], statement="one step later, index t - 1"),
        printed=Enumeration("", _returns_anchor, [(5, 4), (9, 3)], statement="index t - 1"),
        use="Return the anchor.",
        severity="algorithm",
        source="Algorithm 1",
    ),
    Erratum(
        "E10",
        "Privacy needs at most n consumed records, which is shown only with high probability.",
        Prose("E10.printed", "whether a stopping rule exists is a matter of the listing"),
        use="Stop when the pool is exhausted.",
        severity="privacy",
    ),
    erratum(
        "E11",
        "Advanced composition needs two logarithms and log T more than the stated noise.",
        Bound(
            "",
            16 * T * z**2,
            u * T,
            at={u: 16 * z**2},
            statement="exact composition needs T times a constant",
        ),
        printed=Bound(
            "",
            16 * 2 * T * log(2 / w) * log(5 * T / w),
            16 * T * log(1 / w),
            on={w: (Rational(1, 10**8), Rational(1, 10)), T: (10, 1000)},
            statement="Lemma 16 fits the stated variance",
        ),
        use="sigma_1 = sqrt(2T) z 2G/n, sigma_2 = sqrt(2T) z 2M sqrt(d)/n.",
        severity="privacy",
        source="Theorem 4, Algorithm 4",
    ),
    erratum(
        "E12",
        "With exact noise the selection thresholds do not cover the noise they ignore.",
        Bound(
            "",
            Rational(859, 100),
            log(16 / omega),
            on={omega: (Rational(1, 10**6), Rational(29, 10**4))},
            statement="the gradient slack covers the noise for omega <= 0.0029",
        ),
        printed=Bound(
            "",
            Rational(859, 100),
            log(16 / omega),
            on={omega: (Rational(1, 100), _HALF)},
            statement="the gradient slack covers the noise for omega >= 0.01",
        ),
        use="Explicit thresholds, union over the T candidates.",
        severity="rate",
        source="Algorithm 4",
    ),
    erratum(
        "E13",
        "The cross term of (143) is alpha/sqrt(mn) for sqrt(alpha/(mn)).",
        Identity("", sqrt(u) * sqrt(1 / (m * n)), sqrt(u / (m * n)), statement="cross term"),
        printed=Identity("", sqrt(u) * sqrt(1 / (m * n)), u / sqrt(m * n), statement="cross term"),
        use="sqrt(alpha/(mn)); absorbed anyway.",
        source="(143), Theorem 4",
    ),
    erratum(
        "E14",
        "The introduction prints epsilon m n where Theorem 3 proves sqrt(m) n epsilon.",
        Identity("", e2, a24, at={kappa: k24}),
        settings=(a24,),
        use="sqrt(m) n epsilon.",
        source="introduction",
    ),
    erratum(
        "E15",
        "The earlier rate with exponent 3/7 is smaller, not larger, than the new one.",
        Bound("", x ** _TO(3, 7), x ** _TO(2, 5), where=(Le(x, 1),)),
        printed=Bound("", x ** _TO(2, 5), x ** _TO(3, 7), where=(Le(x, 1),)),
        use="The new rate is weaker and repairs an over-optimistic one.",
        source="introduction",
    ),
    erratum(
        "E16",
        "The number of escapes is printed 8 times too large.",
        Identity("", saddles, U / Phi, free=(alpha, iota), statement="escapes"),
        printed=Identity(
            "",
            8 * iota**3 * U / s * sqrt(rho / chi**3),
            U / (s / (8 * iota**3) * sqrt((4 * chi) ** 3 / rho)),
            free=(chi, iota),
            statement="escapes with the printed decrease",
        ),
        use="U/Phi.",
        source="(77)",
    ),
    erratum(
        "E17",
        "A normal step decreases F by 3/2 eta chi^2, not 2 eta chi^2.",
        Identity("", eta / 2 * (4 * chi**2 - chi**2), _TO(3, 2) * eta * chi**2, free=(eta, chi)),
        printed=Identity("", eta / 2 * (4 * chi**2 - chi**2), 2 * eta * chi**2, free=(eta, chi)),
        use="3/2 eta chi^2, and the calls of the last round.",
        source="(75), (79)",
    ),
    erratum(
        "E18",
        "Nothing in (6) makes the failure probability of the escapes at most omega.",
        Bound(
            "",
            u * exp(-x),
            omega / 2,
            at={x: log(2 * u / omega)},
            statement="iota >= log(2 N_saddle/omega)",
        ),
        printed=Bound("", 2 * u * exp(-x), omega, statement="N_saddle 2 exp(-iota) <= omega"),
        use="mu >= (1/s) log(2 N_saddle/omega).",
        severity="rate",
        source="Theorem 1",
    ),
    erratum(
        "E19",
        "Lemma 14 states a tail for the norm with prefactor d; it needs 2 d.",
        Bound("", 1, 2 * exp(Rational(-3, 8)), statement="Rademacher at t = 1, prefactor 2 d"),
        printed=Bound("", 1, exp(Rational(-3, 8)), statement="Rademacher at t = 1, prefactor d"),
        use="2 d.",
        source="Lemma 14",
    ),
    erratum(
        "E20",
        "log(2d/w)/log(2/w) <= 2 log d fails for d <= 6.",
        Bound(
            "",
            log(2 * d / w) / log(2 / w),
            Rational(101, 100) + log(d) / log(2),
            on={d: (2, 50), w: (Rational(1, 10), 1)},
            statement="at most 1.01 + log2(d)",
        ),
        printed=Bound(
            "",
            log(2 * d / w) / log(2 / w),
            2 * log(d),
            on={d: (2, 1000), w: (Rational(1, 100), 1)},
            points=({d: 2, w: 1},),
        ),
        use="log(2 d) in place of log(d).",
        source="Corollary 3",
    ),
    erratum(
        "E21",
        "Definition 8 states the textbook Gaussian formula for every sigma; it fails for "
        "large epsilon.",
        Private(
            "",
            (Release(1, _TEXTBOOK / u, 1),),
            epsilon=u,
            delta=_DELTA5,
            on={u: (Rational(1, 2), 2)},
            statement="in the experiments' range 0.5 to 2 it is enough",
        ),
        printed=Private(
            "",
            (Release(1, _TEXTBOOK / u, 1),),
            epsilon=u,
            delta=_DELTA5,
            on={u: (Rational(1, 2), 10)},
            points=({u: Rational(17, 2)},),
            statement="enough at every epsilon",
        ),
        use="The exact Gaussian profile.",
        severity="privacy",
        source="Definition 8",
    ),
    erratum(
        "E22",
        "c1 and c2 depend on epsilon and delta; taken as 1 they double epsilon.",
        Private(
            "",
            (Release(2 * G / u, 2 * Rational(373064, 100000) * G / u, 1),),
            epsilon=1,
            delta=_DELTA5,
            statement="multiplier 3.73064 at (1, 1e-5)",
        ),
        printed=Private(
            "",
            (Release(2 * G / u, G * sqrt(log(10**5)) / u, 1),),
            epsilon=1,
            delta=_DELTA5,
            statement="c1 = 1 at (1, 1e-5), replace-one",
        ),
        use="Convert c1 to a multiplier and report the resulting epsilon.",
        severity="privacy",
        source="Lemma 7",
    ),
    erratum(
        "E23",
        "Results are plotted over epochs; the proof covers one use of each record.",
        Private(
            "",
            (Release(1, sqrt(2) * Rational(703183, 100000), 2),),
            epsilon=_HALF,
            delta=_DELTA5,
            statement="two epochs at sqrt(2) z*",
        ),
        printed=Private(
            "",
            (Release(1, Rational(703183, 100000), 2),),
            epsilon=_HALF,
            delta=_DELTA5,
            statement="two epochs with noise for one",
        ),
        use="sqrt(E) z* for E epochs, per-example clipping.",
        severity="privacy",
        source="experiments",
    ),
    erratum(
        "E24",
        "Small items; (9) sums a movement that is not known when the drift is tested.",
        Enumeration("", _drift_window, list(range(2, 8))),
        printed=Enumeration("", _printed_drift_window, list(range(2, 8))),
        use="sum of ||x_{i-1} - x_{i-2}||^2.",
        source="(9), and (32), (34), (38), (45), (55)-(57), (72), (90)",
    ),
    erratum(
        "E25",
        "min(N^2, N^(6/13)) is N^(6/13); the condition assumes that privacy dominates.",
        Bound("", N ** _TO(6, 13), N**2, where=(Ge(N, 1),)),
        printed=Bound("", N**2, N ** _TO(6, 13), where=(Ge(N, 1),), statement="N^2 can be smaller"),
        use="sqrt(d)/N <= alpha^(9/4) and d/N <= alpha^(7/4) with the actual alpha.",
        source="Remark 4",
    ),
    erratum(
        "E26",
        "Definition 8 and Lemma 16 require epsilon < 1; the experiments use 1 and 2.",
        Private(
            "",
            (Release(1, _TEXTBOOK / 2, 1),),
            epsilon=2,
            delta=_DELTA5,
            statement="the textbook noise at epsilon = 2 is enough all the same",
        ),
        printed=Bound("", 2, 1, statement="epsilon = 2 is within the stated range"),
        use="Exact accounting, which has no such range.",
        severity="privacy",
        source="experiments",
    ),
    erratum(
        "E27",
        "On the localization event the distance is at most 2 R, not R.",
        Bound("", (2 * R) ** 2, 4 * R**2, free=(R,), statement="squared distance"),
        printed=Bound("", (2 * R) ** 2, R**2, free=(R,), statement="squared distance"),
        use="log(2R/(eta r)).",
        source="Lemma 20",
    ),
    Erratum(
        "E28",
        "Lemma 20 conditions martingale statements on a future event.",
        Prose("E28.printed", "the conditioning of a martingale inside a proof"),
        use="P(event and not bound).",
    ),
    Erratum(
        "E29",
        "A comparison relies on an external theorem.",
        Prose("E29.printed", "the external theorem is not part of the text"),
        use="Not used.",
    ),
)

SCHEDULE = Schedule(
    name="gauss_psgd",
    title="Second-order stationary points by Gauss-PSGD and Ada-DP-SPIDER",
    citation=(
        "Tao, Zhang, Yu, Cheng, Dressler, Wang: Second-Order Convergence in Private Stochastic "
        "Non-Convex Optimization, arXiv 2505.15647"
    ),
    quantities=QUANTITIES,
    settings=SETTINGS,
    claims=(*_ESCAPE, *_E_RATES, *_SELECTION),
    errata=_ERRATA,
)
