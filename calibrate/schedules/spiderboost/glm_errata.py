"""Errata of the paper: glm."""

from __future__ import annotations

from sympy import Rational, erfc, exp, log

from dpcal.calibrate.auditing.language import Bound, Erratum, Identity, Prose, Rate, erratum
from dpcal.calibrate.schedules.spiderboost.quantities import THIRD, N, k, n, u

GLM_ERRATA = (
    erratum(
        "E40",
        "k may fall far below log(2n/delta), where the norm event behind delta/2 fails.",
        Bound(
            "",
            n * exp(-k * (1 - log(2)) / 2),
            u / 2,
            at={n: 10**3, u: Rational(1, 10**5), k: 125},
            statement="norm event at k >= 6.52 log(2n/delta), n = 1e3, delta = 1e-5",
        ),
        printed=Bound(
            "",
            erfc(1),
            Rational(1, 2 * 10**5),
            statement="k = 1: P(chi2_1 > 2) is below delta/2",
        ),
        use="Clip in the projected space.",
        severity="privacy",
        source="Algorithm 4",
    ),
    Erratum(
        "E41",
        "k depends on the rank of the private design matrix.",
        Prose("E41.printed", "whether an input is public is not a formula"),
        use="A public rank bound.",
        severity="privacy",
    ),
    Erratum(
        "E42",
        "g is declared and called with its arguments in different orders.",
        Prose("E42.printed", "the order of arguments of an unspecified function"),
        use="Keyword arguments.",
    ),
    Erratum(
        "E43",
        "Corollary 1.2 feeds a population guarantee to a theorem that asks for an empirical one.",
        Prose("E43.printed", "needs a uniform convergence theorem that the text does not contain"),
        use="Adds 1/sqrt(n), which leaves the rate unchanged.",
    ),
    erratum(
        "E44",
        "Definition 1 alone gives (log n/k)^(1/4), not k^(-1/2).",
        Identity(
            "",
            k**THIRD / N ** (2 * THIRD),
            N ** Rational(-2, 5),
            at={k: N ** Rational(4, 5)},
            statement="rate with k^(-1/2)",
        ),
        printed=Rate(
            "",
            N ** Rational(-2, 7),
            N ** Rational(-2, 5),
            growth={N: 1},
            statement="rate with k^(-1/4) is the claimed one",
        ),
        use="A Gaussian Phi, for which k^(-1/2) is provable.",
        severity="rate",
        source="Corollary 1",
    ),
)
