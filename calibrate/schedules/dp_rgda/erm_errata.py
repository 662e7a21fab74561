"""Errata of the paper: erm."""

from __future__ import annotations

from sympy import Ge, Le, sqrt

from dpcal.calibrate.auditing.language import Bound, Identity, Rate, Units, erratum
from dpcal.calibrate.schedules.dp_rgda.quantities import (
    _R,
    F0,
    GRADIENT,
    HALF,
    S2,
    T1,
    B1_sq,
    B2_sq,
    C,
    K,
    L,
    M,
    T,
    d,
    eb,
    ell,
    epsilon,
    mu,
    n,
    p,
    q,
    u,
    w,
    y,
)

ERM_ERRATA = (
    erratum(
        "ER-30",
        "The period of Lemma 4 has T where B2 belongs.",
        Bound("", 1, 4 * q, free=(eb,), where=(Le(eb, 1), Le(eb * sqrt(F0 * L), M))),
        printed=Bound("", 1, 4 * L**2 / T**2, free=(T,), points=({T: 100},), statement="q >= 1"),
        use="q = 1/(B2^2 eta^2).",
        severity="rate",
        source="Lemma 4",
    ),
    erratum(
        "ER-31",
        "The bound of Lemma 4 is sqrt(F0/(qT) + B1) for sqrt(F0/(eta T)) + B1.",
        Units("", sqrt(F0 * L / T) + M * T * eb**2, GRADIENT, free=(T, eb)),
        printed=Rate(
            "",
            sqrt(T * eb**2),
            eb ** _R(2, 3),
            growth={eb: -1},
            at={T: eb ** _R(-4, 3)},
            free=(T, eb),
            statement="the printed bound gives the claimed rate",
        ),
        use="sqrt(F0/(eta T)) + B1.",
        severity="rate",
        source="(8)",
    ),
    erratum(
        "ER-32",
        "The second term of T has log(1/delta) for its square root.",
        Bound("", 1 / eb, T, free=(T1,), statement="T >= 1/eb"),
        printed=Bound(
            "",
            1 / eb,
            T,
            printed=(T,),
            free=(T1,),
            points=({ell: 14, n: 1000, epsilon: 1, d: 1, T1: 1},),
            statement="T >= 1/eb",
        ),
        use="n epsilon/sqrt(d log(1/delta)).",
        severity="rate",
        source="Lemma 5",
    ),
    erratum(
        "ER-33",
        "The period q carries a factor L^-2.",
        Units("", q, {}, statement="the period is a number"),
        settings=(q,),
        use="q = 1/(T eb^2).",
        severity="rate",
        source="Lemma 5",
    ),
    erratum(
        "ER-34",
        "The second term of S2 lacks epsilon^(-2/3).",
        Bound(
            "",
            n / sqrt(T * K),
            S2,
            where=(Ge(T, 1), Ge(K, 1)),
            free=(T, eb),
            statement="S2 >= n/sqrt(T K)",
        ),
        printed=Bound(
            "",
            n / sqrt(T1),
            S2,
            printed=(S2,),
            points=({n: 10**5, d: 100, epsilon: HALF, ell: _R(138, 10), M: 1, L: 1, F0: 1},),
            statement="S2 >= n/sqrt(T1)",
        ),
        use="S2 from the actual T.",
        severity="rate",
        source="Theorem 1, Lemma 5",
    ),
    erratum(
        "ER-35",
        "B2 and B1 of the proof lack L and M.",
        Units("", B2_sq, {"loss": 2, "parameter": -4}),
        settings=(B2_sq,),
        use="B2^2 = L^2 T eb^2, B1^2 = M^2 T eb^2/q.",
        source="Lemma 5, proof",
    ),
    erratum(
        "ER-35.B1",
        "B1 of the proof lacks M.",
        Units("", B1_sq, {"loss": 2, "parameter": -2}),
        settings=(B1_sq,),
        use="B1^2 = M^2 T eb^2/q.",
        source="Lemma 5, proof",
    ),
    erratum(
        "ER-36",
        "Theorem 1 states no lower bound on n, without which q < 1.",
        Bound("", 1, q, free=(eb,), where=(Le(eb, 1), Le(eb * sqrt(F0 * L), M))),
        printed=Bound("", 1, q, free=(eb,), statement="q >= 1 for every n"),
        use="eb <= min(1, M/sqrt(L F0)).",
        severity="rate",
        source="Theorem 1",
    ),
    erratum(
        "ER-37",
        "F0 subtracts a minimum over y of a strongly concave function: infinite.",
        Bound(
            "", M * y - mu * y**2 / 2, M**2 / (2 * mu), statement="gap of the value function in y"
        ),
        printed=Bound(
            "", -C, M * y - mu * y**2 / 2, points=({y: 100},), statement="f(x, y) is bounded below"
        ),
        use="Phi(x0) - inf Phi.",
        severity="rate",
        source="Theorem 1",
    ),
    erratum(
        "ER-38",
        "(v, -u) is treated as the gradient of F; the y-part has the opposite sign.",
        Identity("", -y, -y, statement="F = -y^2/2: derivative in y"),
        printed=Identity(
            "", y, -y, points=({y: 1},), statement="estimate -u equals the derivative"
        ),
        use="Estimator error plus tracking error, through (7).",
        severity="rate",
        source="Lemmas 1 and 3 to 5",
    ),
    erratum(
        "ER-39",
        "A logarithm above 1 multiplies a bracket that may be negative.",
        Bound("", u, w * u, where=(Ge(w, 1),), statement="for a positive bracket"),
        printed=Bound("", p, w * p, where=(Ge(w, 1),), points=({p: -1, w: 2},), statement="any"),
        use="Logarithms on B1 and B2 only.",
        severity="rate",
        source="B.1",
    ),
    erratum(
        "ER-42",
        "The final rate drops M, L and the second branch.",
        Units(
            "",
            (sqrt(F0 * L * M) * eb) ** _R(2, 3) + M * eb,
            GRADIENT,
            free=(eb,),
            statement="the rate has the unit of a gradient",
        ),
        printed=Units(
            "", (sqrt(F0) * eb) ** _R(2, 3), GRADIENT, free=(eb,), statement="printed rate"
        ),
        use="(sqrt(F0 L M) eb)^(2/3) + M eb.",
        source="Lemma 5",
    ),
)
