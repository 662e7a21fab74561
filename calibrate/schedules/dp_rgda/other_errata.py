"""Errata of the paper: other."""

from __future__ import annotations

from sympy import Ge, Le, Max, sqrt

from dpcal.calibrate.auditing.language import Bound, Erratum, Identity, Prose, Rate, Units, erratum
from dpcal.calibrate.schedules.dp_rgda.quantities import (
    _R,
    F0,
    C,
    L,
    M,
    U,
    d,
    dx,
    eb,
    ell,
    epsilon,
    ga,
    mu,
    n,
    th,
    u,
    v,
    x,
)

_CONTRACTION = 1 - mu / (3 * (mu + L))  # A of (36), at lambda = 1/(6 L)

OTHER_ERRATA = (
    erratum(
        "ER-80",
        "Lipschitz and strongly concave in y force a bounded Y.",
        Bound("", mu * x, 2 * M, where=(Le(x, 2 * M / mu),), statement="diameter at most 2M/mu"),
        printed=Bound("", mu * x, 2 * M, statement="any diameter x"),
        use="A bounded Y, or clipping.",
        severity="rate",
        source="Assumptions 1 and 4",
    ),
    erratum(
        "ER-81",
        "With a bounded Y the value function need not have a Lipschitz Hessian.",
        Bound("", Max(0, 2 * x * u), 1, on={u: (0, 1), x: (0, _R(1, 4))}, statement="interior"),
        printed=Bound("", 1, C * x, statement="jump of Huber's second derivative over distance x"),
        use="Interior y* on the visited region.",
        severity="rate",
        source="Definition 4",
    ),
    erratum(
        "ER-90",
        "y has one coordinate per record, so eb >= sqrt(log(1/delta)/n)/epsilon.",
        Identity("", eb, sqrt(ell / n) / epsilon, at={d: n}, statement="rate variable at d2 = n"),
        printed=Rate(
            "", sqrt(n * ell) / (n * epsilon), 1 / n, growth={n: 1}, statement="eb falls like 1/n"
        ),
        use="Keep y_i inside record i's gradient.",
        severity="privacy",
        source="Section 5.1",
    ),
    erratum(
        "ER-91",
        "The instance has unbounded gradients, and per-sample curvature only in one coordinate.",
        None,
        printed=Bound("", u * x, C, statement="|y_i U V| stays bounded"),
        use="Clip; report kappa.",
        severity="privacy",
        source="Section 5.1",
    ),
    Erratum(
        "ER-92",
        "Settings of the experiment are unspecified.",
        Prose("ER-92.printed", "missing settings"),
        use="A reproduction plan of one's own.",
    ),
    Erratum(
        "ER-93",
        "A baseline that is announced is absent from the table.",
        Prose("ER-93.printed", "a missing experiment"),
        use="Run it.",
    ),
    Erratum(
        "ER-94",
        "The table may reflect noise only.",
        Prose("ER-94.printed", "needs the experiment's data"),
        use="Report the start and a data-free control.",
    ),
    erratum(
        "ER-40",
        "A sign in the display after (9).",
        Bound("", u - v, u + v, statement="+ eta B1^2/2 is an upper bound"),
        printed=Bound("", u + v, u - v, statement="- eta B1^2/2 is an upper bound"),
        use="+ eta B1^2/2.",
        source="B.1",
    ),
    Erratum(
        "ER-41",
        "Increment and running estimate exchange names; delta for delta1.",
        Prose("ER-41.printed", "names"),
        use="Lemma 1 with the roles exchanged.",
    ),
    Erratum(
        "ER-43",
        "Injected noise is called the only randomness of the ERM case.",
        Prose("ER-43.printed", "a remark in prose"),
        use="Sampling of S2 < n also.",
    ),
    erratum(
        "ER-59a",
        "(9, 21, 3) becomes (3, 7, 1): a factor 3 is lost.",
        Identity("", 3 * U + 3 * L**2 * dx + 3 * ga, 9 * th + 21 * L**2 * dx + 3 * ga),
        printed=Identity("", 3 * U + 3 * L**2 * dx + 3 * ga, 3 * th + 7 * L**2 * dx + ga),
        use="9, 21, 3.",
        source="after (35)",
    ),
    erratum(
        "ER-59b",
        "7 becomes 8 only for kappa >= 34/3.",
        Bound(
            "",
            1,
            _CONTRACTION / (36 * (1 - _CONTRACTION)),
            where=(Ge(L, mu * _R(34, 3)),),
            statement="lambda^2 L^2 A/(1 - A) >= 1 at lambda = 1/(6 L), for kappa >= 34/3",
        ),
        printed=Bound(
            "",
            1,
            _CONTRACTION / (36 * (1 - _CONTRACTION)),
            where=(Ge(L, mu),),
            points=({L: 1, mu: 1},),
            statement="lambda^2 L^2 A/(1 - A) >= 1 at lambda = 1/(6 L), for every kappa",
        ),
        use="State the condition.",
        source="(36)-(37)",
    ),
    erratum(
        "ER-59c",
        "F0/lambda^2 for F0/(L lambda^2).",
        Units("", F0 / (L * x**2), {"loss": 2, "parameter": -2}, at={x: 1 / L}),
        printed=Units("", F0 / x**2, {"loss": 2, "parameter": -2}, at={x: 1 / L}),
        use="F0/(L lambda^2).",
        source="(41)",
    ),
    Erratum(
        "ER-59d",
        "The privacy noise of u_{i,0} is missing in (35).",
        Prose("ER-59d.printed", "a missing term; its size depends on the listing chosen"),
        use="Add it.",
    ),
    Erratum(
        "ER-59e",
        "(36) and (37) disagree on noise factors and on norms or squared norms.",
        Prose("ER-59e.printed", "two displays that disagree"),
        use="Equal factors, squared norms.",
    ),
    Erratum(
        "ER-59f",
        "log(1/(2 delta1)), sigma_xi and [t/q] q are misprints.",
        Prose("ER-59f.printed", "misprints of symbols"),
        use="log(2/delta1), sigma_zeta, floor(t/q) q.",
    ),
    Erratum(
        "ER-60",
        "theta_t and gamma_t are defined twice, differently.",
        Prose("ER-60.printed", "two definitions"),
        use="(28)-(29).",
    ),
    Erratum(
        "ER-61",
        "d log(1/delta1) for d log(1/delta).",
        Prose("ER-61.printed", "a symbol's index"),
        use="delta.",
    ),
    erratum(
        "ER-62",
        "'For all t' without a union bound.",
        Bound("", u * (x / u), x, statement="failure x/u per event, u events"),
        printed=Bound("", u * x, x, points=({u: 2},), statement="failure x per event, u events"),
        use="log(4 T K/delta1).",
        source="Lemmas 2, 8",
    ),
    erratum(
        "ER-79",
        "Minor: stated 1 - delta1 - delta2 where 1 - 4 delta1 - delta2 is proved.",
        None,
        printed=Bound(
            "", 1 - u - v, 1 - 4 * u - v, statement="stated value follows from the proof"
        ),
        use="The proved value, and a union over phases.",
        source="Lemmas 6, 9, and misprints in (19), (24), (55), (60), Theorems 2, 3, Remark 2",
    ),
)
