"""Errata of the paper: other."""

from __future__ import annotations

from sympy import Ge, Le, Rational, sqrt

from dpcal.calibrate.auditing.language import Bound, Erratum, Identity, Prose, erratum
from dpcal.calibrate.schedules.spiderboost.quantities import L0, THIRD, d, epsilon, n, u, v, x

OTHER_ERRATA = (
    erratum(
        "E28",
        "'Faster than sqrt(d/n)' holds only for d >= n^(1/3).",
        Bound("", n ** (-THIRD), sqrt(d / n), where=(Le(n**THIRD, d),)),
        printed=Bound(
            "", n ** (-THIRD), sqrt(d / n), where=(Ge(n, 1), Ge(d, 1)), points=({n: 10**6, d: 1},)
        ),
        use="State the condition.",
        source="introduction",
    ),
    erratum(
        "E29",
        "sqrt(d epsilon) is printed for sqrt(d) epsilon.",
        Identity(
            "",
            sqrt(d) * epsilon,
            (d / n) ** THIRD,
            at={epsilon: d ** Rational(-1, 6) * n ** (-THIRD)},
        ),
        printed=Identity(
            "",
            sqrt(d * epsilon),
            (d / n) ** THIRD,
            at={epsilon: d ** Rational(-1, 6) * n ** (-THIRD)},
        ),
        use="sqrt(d) epsilon.",
        source="Section 1.3",
    ),
    Erratum(
        "E45",
        "Theorems 2 and 7 fix the instance before the algorithm.",
        Prose("E45.printed", "the order of quantifiers over algorithms"),
        use="For every algorithm there is an instance.",
    ),
    Erratum(
        "E46",
        "The proof of Theorem 2 conditions on an event that depends on the algorithm.",
        Prose("E46.printed", "a conditioning step inside a proof"),
        use="||grad F|| >= (L1/2)||Proj(w) - mean|| for every w.",
    ),
    erratum(
        "E47",
        "The proof of Lemma 2 has '> 0' for '>= 0' by monotonicity.",
        Bound("", 0, (x - u) * (x - u), statement="monotonicity of the identity map"),
        printed=Bound("", u, (x - x) * u, statement="strict at equal points"),
        use=">= 0.",
        source="Lemma 2",
    ),
    Erratum(
        "E48",
        "Theorem 7 takes L0 and L1 in N and speaks of R^d.",
        Prose("E48.printed", "the set of admissible constants, in prose"),
        use="Positive reals, d = 1.",
    ),
    erratum(
        "E49",
        "Lemma 4 omits that the oracle is private; the exact oracle has tau1 = 0.",
        None,
        printed=Bound(
            "", L0 * u, v, at={v: 0}, statement="tau1 >= Omega(L0 abar) for the exact oracle"
        ),
        use="(epsilon, delta)-DP per answer as a hypothesis.",
        source="Lemma 4",
    ),
    Erratum(
        "E50",
        "L(0) - argmin for L(0) - min.",
        Prose("E50.printed", "a misprint of an operator's name"),
        use="min.",
    ),
)
