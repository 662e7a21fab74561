"""Errata of the paper: algorithm 1."""

from __future__ import annotations

from dpcal.accountants import events
from dpcal.accountants.events import DpEvent
from dpcal.calibrate.papers.claims.language import (
    Enumeration,
    Priced,
    Private,
    Release,
    errata_of,
    erratum,
)


def _printed_releases(case: tuple[int, int]) -> bool:
    """The loop t = 0..T makes at most T/q refreshes."""
    total, period = case
    return sum(t % period == 0 for t in range(total + 1)) * period <= total


def _useful_releases(case: tuple[int, int]) -> bool:
    """The loop t = 0..T-1 makes ceil(T/q) refreshes, and every release reaches an output."""
    total, period = case
    refreshes = sum(t % period == 0 for t in range(total))
    return refreshes == -(-total // period)


def _joint_run(scale: float) -> DpEvent:
    """53 refreshes, 2621 sampled differences: n = 10^4, T = 2674, q = 51, b2 = 194."""
    refresh = events.GaussianDpEvent(scale * (2674 / 51) ** 0.5)
    gaussian = events.GaussianDpEvent(scale * 194 * 2674**0.5 / 10_000)
    difference = events.PoissonSampledDpEvent(0.0194, gaussian)
    return events.ComposedDpEvent(
        [
            events.SelfComposedDpEvent(refresh, 53),
            events.SelfComposedDpEvent(difference, 2621),
        ]
    )


_CASES = [(total, period) for total in (5, 6, 12) for period in (2, 3, 5)]

ALGORITHM_1_ERRATA = errata_of(
    """
        E1 (rate; Theorem 9): The period q of Theorem 9 carries a factor L1^-2 that its proof
            does not.
            claim: 2*L1**2*T*abar**2*q <= L1**2; free T  # tau2^2 q <= L1^2
            settings: q
            use: q = 1/(2 T abar^2), rounded down.
        E2 (rate; Algorithm 1, line 2): sqrt(T)/sqrt(q n) for sqrt(T)/(sqrt(q) n): the noise
            variance is n times too large.
            claim: sigma1 = L0*kappa*sqrt(T/q)/n at T = q*(1 + x); free T q  # refresh noise
                from Theorem 8 with T/q refreshes
            settings: sigma1
            use: sqrt(T/q)/n.
        E3 (rate; Section 3.1): tau1^2 adds the noise variance times L0^2 although it contains
            L0 and acts on d coordinates.
            claim: [tau1_sq] = gradient**2  # squared error has the unit of a gradient^2
            settings: tau1_sq
            use: Sampling error (0 for b1 = n) plus d sigma1^2.
        E4 (rate; Theorem 9): With q = 1/(T abar^2) the descent coefficient can vanish.
            claim: 1/(16*L1) <= (1 - x)/(8*L1) at x = 1/2  # q <= L1^2/tau2^2
            printed: 1/(16*L1) <= (1 - x)/(8*L1) at x = 1  # A at tau2^2 q = 2 L1^2
            about: a descent coefficient, for any share x of its condition
            use: The factor 2 in q.
        E5 (rate; Theorems 1 and 9): The condition on n that should give q >= 1 lacks
            sqrt(log(1/delta)).
            claim: 1 <= T where sqrt(d*Lam)/epsilon <= n  # T >= 1
            printed: 1 <= T where sqrt(d)*Max(1, sqrt(L1*F0)/L0)/epsilon <= n; points n = 1100,
                d = 1000000, epsilon = 1, Lam = 14, L0 = 1, L1 = 1, F0 = 1  # T >= 1 under the
                printed condition
            use: n >= sqrt(d log(1/delta)) max(1, sqrt(L1 F0)/L0)/epsilon.
        E6 (rate; Theorem 9): b2 <= n does not follow: it needs a lower bound on F0 L1.
            claim: b2 <= n  # b2 from the actual T, capped, is at most n
            printed: b2 <= n where sqrt(d*Lam)/epsilon <= n, sqrt(d*Lam*L1*F0)/(L0*epsilon) <=
                n, L0**2*epsilon**2/(F0*L1*d*Lam) <= n; printed b2; points n = 10000, d =
                1000000, epsilon = 1, Lam = 23/2, L0 = 1, L1 = 1, F0 = 1/10000  # printed b2 <=
                n under the stated conditions
            use: b2 = min(n, max(1/(T abar^2), n/sqrt(T))) with the actual T.
        E7 (minor; Theorem 9): T and b2 are rounded down although they enter as lower bounds.
            claim: T <= T + x; free T  # rounding up keeps a lower bound (x < 1)
            printed: T <= T - x; free T  # rounding down keeps a lower bound
            about: the rounding of any number
            use: Round T and b2 up, q down.
        E8 (minor; Theorem 9): tau2^2 = O(L1^2/b2^2): the variance of a batch mean is L1^2/b2.
            claim: tau2_sq = b2*(L1/b2)**2 + d*sigma2**2; definition; free b2 sigma2  # variance of
                a mean of b2 terms, and noise
            settings: tau2_sq
            use: L1^2/b2.
        E9 (minor; Theorem 9): The displays in the proof of Theorem 9 put abar under the root.
            claim: T1 = ((F0*L1)**(1/4)/(sqrt(L0)*abar))**(4*(1/3)); free abar  # T1 with abar
                outside the root
            settings: T1
            use: abar outside the root.
        E10 (privacy; Theorem 8): Theorem 8 divides the sum over a batch of size b by n.
            printed: u*(1/n) = 1  # mean of a constant as printed
            about: the mean of a batch of any size
            use: 1/b, and exact accounting in place of Theorem 8.
    """,
    erratum(
        "E11",
        "Refreshes and differences each get the whole budget; their union costs twice the zCDP.",
        Private(
            "",
            (Release(1, "sqrt(2)*z"), Release(1, "sqrt(2)*z")),
            rho="1/(2*z**2)",
            statement="both families at sqrt(2) z compose to one release at z",
        ),
        printed=Private(
            "",
            (Release(1, "422468/100000"), Release(1, "422468/100000")),
            epsilon=1,
            delta="1/10**6",
            statement="two families, each calibrated to (1, 1e-6), are (1, 1e-6)-DP together",
        ),
        about="noise of two families at fixed numbers",
        use="Joint calibration: multipliers near sqrt(2) z*.",
        severity="privacy",
        source="Theorem 9",
    ),
    erratum(
        "E11.priced",
        "A scale that suits each family alone overspends for both.",
        Priced(
            "",
            lambda: _joint_run(5.999),
            epsilon=1.0,
            delta=1e-06,
            statement="both families at the common scale 5.999",
        ),
        printed=Priced(
            "",
            lambda: _joint_run(4.2248),
            epsilon=1.0,
            delta=1e-06,
            statement="both families at the scale of one Gaussian release",
        ),
        about="one run at fixed numbers",
        use="Joint calibration: a scale near sqrt(2) z*.",
        severity="privacy",
        source="Theorem 9",
    ),
    erratum(
        "E12",
        "The loop t = 0..T makes one release more than is ever used.",
        Enumeration("", _useful_releases, _CASES, statement="t = 0..T-1 makes ceil(T/q) refreshes"),
        printed=Enumeration("", _printed_releases, _CASES, statement="t = 0..T: at most T/q"),
        about="the count of a loop",
        use="t = 0..T-1.",
        severity="algorithm",
        source="Algorithm 1",
    ),
    """
        E13 (rate; Theorem 9): A sampled batch of size n leaves a term L0/sqrt(n) in the
            empirical rate.
            claim: (n - b1)/((n - 1)*b1) = 0 where 1 < n  # all records leave no variance
            printed: abar**(2*(1/3)) + 1/sqrt(b1) =O abar**(2*(1/3)); growth n = 1  # empirical
                rate with a sampled refresh
            use: All records, exactly once.
        E14 (minor; Lemma 3, proof, indices): Index slips in the proof of Lemma 3.
            open: names of indices in a proof that is otherwise right
            use: Sum of eta^2 ||V_k||^2 over k = s_t..t-1.
        E15 (minor; Theorem 9): delta = 1 is allowed, at which the printed noise is 0.
            claim: 1/1000 <= sqrt(log(1/u)) where u in [1/1000000000, 99/100]  # noise scale for
                delta up to 0.99
            printed: 1/1000 <= sqrt(log(1/u)) where u in [1/1000000000, 1]; points u = 1  #
                noise scale for delta up to 1
            about: the range of delta
            use: epsilon > 0 and 0 < delta < 1.
        E51 (minor; Section 3.1): The sensitivity of a difference is printed as proportional to
            beta instead of L1.
            claim: [L1*W] = gradient  # L1 times movement is a gradient
            printed: [L0*W] = gradient  # beta (a gradient) times movement
            about: the unit of a sensitivity
            use: L1 ||w_t - w_{t-1}||.
    """,
)
