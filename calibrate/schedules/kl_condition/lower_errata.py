"""Errata of the paper: lower."""

from __future__ import annotations

from sympy import Le, Min, Rational, exp, sqrt

from dpcal.calibrate.auditing.language import Bound, Identity, erratum
from dpcal.calibrate.schedules.kl_condition.quantities import (
    HALF,
    L0,
    L1,
    D,
    Delta,
    G,
    Nz,
    d,
    epsilon,
    gamma,
    n,
    r,
    tau,
    u,
    v,
    w,
)

LOWER_ERRATA = (
    erratum(
        "EL1",
        "The outer part 4 D ||w|| of H in Theorem 7 makes the slope jump down: H is not convex.",
        Bound("", 2 * u, 8 * D, at={u: 4 * D}, statement="slope at radius 4 D, inside and outside"),
        printed=Bound("", 2 * 4 * D, 4 * D, statement="slope inside is at most the slope outside"),
        use="H = 8 D ||w|| - 16 D^2 outside the ball of radius 4 D.",
        severity="rate",
        source="Theorem 7",
    ),
    erratum(
        "EL2",
        "F(w) - F(w*) is printed without the factor 1/2.",
        Identity("", u, Nz * L0 / (2 * n * D), at={u: Nz * L0 / (2 * n * D)}),
        printed=Identity("", u, Nz * L0 / (n * D), at={u: Nz * L0 / (2 * n * D)}),
        use="Nz L0/(2 n D) ||w - w*||^2.",
        source="Theorem 7",
    ),
    erratum(
        "EL3",
        "Delta of Theorem 6 lacks the exponent tau/(tau - 1).",
        Identity(
            "",
            D * Delta ** ((tau - 1) / tau),
            L0 * D * sqrt(d) / (n * epsilon),
            at={Delta: (L0 * sqrt(d) / (n * epsilon)) ** (tau / (tau - 1))},
        ),
        printed=Identity(
            "",
            D * Delta ** ((tau - 1) / tau),
            L0 * D * sqrt(d) / (n * epsilon),
            at={Delta: L0 * sqrt(d) / (n * epsilon)},
            on={tau: (2, 6)},
        ),
        use="(L0 sqrt(d)/(n epsilon))^(tau/(tau-1)).",
        source="Theorem 6",
    ),
    erratum(
        "EL4",
        "The first argument of D in Theorem 6 is inverted.",
        Identity(
            "", u * v / D, L1, at={D: u * v / L1}, statement="smoothness with u = c2 Delta^.."
        ),
        printed=Identity("", u * v / D, L1, at={D: v * L1 / u}),
        use="c2 Delta^(1/tau) L0^((tau-2)/(tau-1))/L1.",
        source="Theorem 6",
    ),
    erratum(
        "EL5",
        "The growth constant of the regularized function is lam, not 2^((tau-2)/tau) lam.",
        Bound("", (w - 1) ** 4, 4 * w**4 - 16 * w + 12, statement="tau = 4, lam = s = 1"),
        printed=Bound("", 4 * (w - 1) ** 4, 4 * w**4 - 16 * w + 12, points=({w: -1},)),
        use="(lam, tau)-growth.",
        source="Theorem 6",
    ),
    erratum(
        "EL6",
        "lambda_1 contributes a factor 1/2 that c2 omits.",
        Identity("", (2 ** (-(tau - 1) / tau)) ** (tau / (tau - 1)), HALF),
        printed=Identity("", (2 ** (-(tau - 1) / tau)) ** (tau / (tau - 1)), 1),
        use="The constants with that factor; both printed ones are safe.",
        source="Theorem 6",
    ),
    erratum(
        "EL7",
        "Theorem 6 needs sqrt(d) <= n epsilon, as Theorem 7 has min(sqrt(d)/(n epsilon), 1).",
        Bound("", u, Min(u, 1), where=(Le(u, 1),), statement="u = sqrt(d)/(n epsilon)"),
        printed=Bound("", u, Min(u, 1), statement="u = sqrt(d)/(n epsilon), any d"),
        use="State the condition, and Omega~ for the logarithm.",
        source="Theorem 6",
    ),
    erratum(
        "EL8",
        "gamma and L1 are not free: smooth and PL force gamma^2 L1 >= 1/2.",
        Bound(
            "",
            HALF,
            gamma**2 * L1,
            where=(Le(G**2 / (2 * L1), gamma**2 * G**2),),
            statement="descent G^2/(2 L1) within the KL bound gamma^2 G^2 forces it",
        ),
        printed=Bound("", HALF, gamma**2 * L1, statement="for all gamma and L1"),
        use="Evaluate the lower bound at feasible tuples only.",
        severity="rate",
        source="Theorem 6, Corollary 1",
    ),
    erratum(
        "EL9",
        "The growth of the Theorem 8 instance fails beyond distance 1.",
        Bound(
            "",
            u**tau,
            (1 + r) / 2 * u**tau + (1 - r) / 2 * u,
            on={
                u: (Rational(1, 20), Rational(9, 25)),
                tau: (Rational(6, 5), 2),
                r: (0, Rational(1, 10)),
            },
            statement="growth on the restricted ball",
        ),
        printed=Bound(
            "",
            u**tau,
            (1 + r) / 2 * u**tau + (1 - r) / 2 * u,
            on={tau: (Rational(21, 20), 2), r: (0, Rational(1, 10))},
            points=({u: 2, tau: 2, r: Rational(1, 10)},),
            statement="growth everywhere",
        ),
        use="|w| <= 0.36 and 1/(n epsilon) <= 0.1.",
        severity="rate",
        source="Theorem 8",
    ),
    erratum(
        "EL10",
        "F(-a; S') is (1 - r) a, not (1 + r) a; the constant 1/4 holds anyway.",
        Bound(
            "",
            Rational(1, 4),
            (HALF - (1 - exp(-epsilon)) / 16 * (exp(HALF) - 1) / (exp(epsilon) - 1)) * exp(-HALF),
            on={epsilon: (Rational(1, 1000), Rational(7, 10))},
            statement="constant of Theorem 8 from an independent derivation",
        ),
        printed=Identity("", (1 - r) * u, (1 + r) * u, statement="value at -a"),
        use="Needs 1/epsilon an even integer.",
        source="Theorem 8",
    ),
)
