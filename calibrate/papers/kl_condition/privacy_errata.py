"""Errata of the paper: privacy."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from dpcal.calibrate.papers.claims.language import Enumeration, Private, Release, errata_of, erratum


def _literal_loop_count(steps: Fraction) -> bool:
    """``while t <= T`` makes at most T steps."""
    taken = 0
    while taken <= steps:
        taken += 1
    return taken <= steps


def _repaired_loop_count(steps: Fraction) -> bool:
    """``while t < ceil(T)`` makes ceil(T) steps, and releases one difference less."""
    taken, releases, limit = 0, 0, max(1, ceil(steps))
    while taken < limit:
        taken += 1
        releases += taken < limit
    return taken == limit and releases == limit - 1


def _unbounded_filter(costs: tuple[int, ...]) -> bool:
    """Testing past cost only keeps the total within a budget of 8."""
    total = 0
    for cost in costs:
        if total > 8:
            break
        total += cost
    return total <= 8


def _strict_filter(costs: tuple[int, ...]) -> bool:
    """Testing the total including the coming release keeps it within a budget of 8."""
    total = 0
    for cost in costs:
        if total + cost > 8:
            break
        total += cost
    return total <= 8


_COSTS = [(3, 3, 3, 3), (8, 1), (1,) * 12, (5, 2, 2, 9), (7, 8)]

PRIVACY_ERRATA = errata_of(
    erratum(
        "EP1",
        "The printed noise of Algorithm 1 costs 17/8 of its budget under the paper's own relation.",
        Private(
            "",
            (Release("D0", "sigma_0", "K"), Release("D_k", "sigma_1", "K*m")),
            rho="rho",
            free="K",
            statement="exact split, M - 1 differences per round: rho-zCDP under replace-one",
        ),
        printed=Private(
            "",
            (Release("D0", "sigma_hat", "K"), Release("D_k", "sigma_k", "K*T_k")),
            rho="rho",
            free="K T_k",
            statement="printed noise: rho-zCDP under replace-one",
        ),
        use="The exact split of a round's budget: rho exactly, with the same utility constants.",
        severity="privacy",
        source="Theorem 1, Lemma 8",
    ),
    """
        EP2 (privacy; Lemma 8, Theorem 3): Algorithms 1 and 3 use sensitivity L0/n, half of what
            replacing one record can do.
            claim: D0 = 2*L0/n; definition  # replacing a record moves the mean gradient by 2
                L0/n
            settings: D0
            use: An explicit neighboring relation everywhere; 2 L0/n for replace-one.
        EP3 (minor; Lemma 8): The sensitivity of a gradient difference lacks 1/gamma.
            claim: 2*L1*Phi**(1/kappa)/(4*gamma*L1*n) <= D_k  # difference sensitivity
            settings: D_k
            use: 2 L1 h/n with the actual step length h = Phi^(1/kappa)/(4 gamma L1).
        EP4 (minor; Lemma 8): The budget per release is printed as 1/K instead of rho/K.
            claim: D0_ar**2/sigma_hat**2 = rho/K; free K  # budget of a round start, as the
                paper charges it
            printed: D0_ar**2/sigma_hat**2 = 1/K; free K  # as printed
            use: rho/K.
        EP5 (minor; Lemma 8, Theorem 3): A Gaussian release is charged (D/s)^2 instead of
            (D/s)^2/2.
            claim: K*D0_ar**2/(2*sigma_hat**2) = rho/2; free K  # zCDP of all round starts
            printed: K*D0_ar**2/(2*sigma_hat**2) = rho; free K  # as charged
            use: (D/s)^2/2; it partly hides EP2.
    """,
    erratum(
        "EP6",
        "The loop 'while t <= T_k' makes floor(T_k) + 1 releases; the privacy proof counts T_k.",
        Enumeration(
            "",
            _repaired_loop_count,
            [Fraction(k, 4) for k in range(2, 30)],
            statement="t < ceil(T)",
        ),
        printed=Enumeration(
            "",
            _literal_loop_count,
            [Fraction(k, 4) for k in range(4, 30)],
            statement="'while t <= T' makes at most T steps",
        ),
        about="the count of a loop",
        use="M = ceil(T_k), 't < M', and M - 1 difference releases.",
        severity="privacy",
        source="Algorithm 1",
    ),
    """
        EP7 (privacy; Algorithm 3, Theorem 3): Algorithm 3 charges by the noisy norm even when
            it is negative and the noise is at its floor.
            claim: D0_ar**2/(2*sigma_t**2) <= charge  # charging D^2/(2 sigma_t^2) from the
                noise that was used covers its cost
            printed: D0_ar**2/(2*floor_t**2) <= Min(L0**2*d*ell/(n**2*N_t**2), rho/2) +
                sqrt(rho)/n; points L0 = 1, n = 10000, d = 1, rho = 1/2, ell = 12,
                N_t = 1/100  # charge at N_t < 0 (N_t stands for its size) covers the floor's
                cost
            use: Charge D^2/(2 sigma_t^2) from sigma_t, never from N_t, and test before
                spending.
        EP8 (privacy; Theorem 3, Lemmas 10 and 11): At its floor sigma_t costs rho/4 by the
            paper's own formula, not the rho/2 it equates.
            claim: (L0/(n*floor_t))**2 = rho/4
            printed: (L0/(n*floor_t))**2 = rho/2
            use: The cost of the noise that was used.
    """,
    erratum(
        "EP9",
        "The stopping test of Algorithm 3 looks at past cost only, so the last step overshoots.",
        Enumeration("", _strict_filter, _COSTS, statement="test including the coming release"),
        printed=Enumeration("", _unbounded_filter, _COSTS, statement="test of past cost only"),
        about="the order of test and release in a loop",
        use="A filter that refuses before spending.",
        severity="privacy",
        source="Algorithm 3",
    ),
    erratum(
        "EP10",
        "With EP7 repaired, releasing everything still costs up to 3/2 rho under replace-one.",
        Private(
            "",
            (Release("D0", "D0/sqrt(2*(rho - u))"), Release("D0", "D0/sqrt(2*u)")),
            rho="rho",
            where="u <= rho/2",
            statement="a filter that charges every release stays within rho",
        ),
        printed="rho + 2*sqrt(rho)/n + D0**2/(2*floor_t**2) <= rho  # steps, "
        "last norm and last gradient fit rho",
        use="The strict filter over norms and gradients.",
        severity="privacy",
        source="Theorem 3",
    ),
    """
        EP11 (minor; Algorithm 3): A vector of noise is added to a scalar norm.
            printed: d*u**2 = u**2  # squared size of a d-dimensional draw
            about: sizes of random vectors, for any dimension
            use: One scalar Gaussian.
        EP12 (privacy; Algorithm 3, its filter): rho_t depends on N_t, which is released in the
            same round.
            open: a statement about the order of conditioning, not a formula
            use: Norm and gradient as two rounds of the filter.
        EP13 (minor; Algorithm 3, budget of the last gradient): Half of the budget of Algorithm
            3 is kept for a gradient that no guarantee uses.
            printed: u <= rho where u <= rho/2; loose 2  # useful steps spend what is not
                reserved
            about: how a budget is divided, for any budget
            use: The strict filter spends all of rho on useful steps.
    """,
    erratum(
        "EP14",
        "Theorem 5 adds 2 rho by one formula; under replace-one the printed weights cost "
        "rho/2 to 2 rho.",
        Private(
            "",
            (Release("2*L0/n", "2*L0/n/sqrt(2*rho_sel)"),),
            rho="rho_sel",
            statement="selection within a budget reserved beforehand (Gaussian cost as a stand-in)",
        ),
        printed="(2*sqrt(rho))**2/2 <= rho/2  # selection costs rho/2",
        about="the cost of a selection, which no setting enters",
        use="argmin of the released norms (free), or a budgeted exponential mechanism.",
        severity="privacy",
        source="Theorem 5",
    ),
    """
        EP15 (minor; Theorem 9): Algorithm 4's printed noise is twice as large as replace-one
            needs; its claim holds.
            claim: (T - 1)*D0**2/(2*sigma_in**2) = rho where 1 < T  # exact noise spends rho
            printed: (T - 1)*D0**2/(2*sigma_in**2) <= rho where 1 <= T; loose 2; printed
                sigma_in  # printed noise is within rho
            use: sigma^2 = 2 L0^2 (T - 1)/(n^2 rho).
        EP16 (minor; Theorem 5, sampling): Lemma 8 assumes regularity on a ball around the
            data-dependent minimizer.
            open: which ball is meant is a matter of wording
            use: The ball around w0.
        EP17 (privacy; neighboring relation, Section 1): Add-or-remove with sensitivity L0/n
            needs a public, fixed n.
            open: a convention about the normalizer
            use: A public n in every denominator.
    """,
)
