"""Statements of the theorems that no program decides: they stay OPEN, with the reason."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

THEOREMS = (
    *claims_of(
        "Lemma 1 and Corollary 1",
        """
        L1.escape: open it holds with a probability
            # one of two coupled runs leaves the ball of radius R within Gamma steps with
            probability 1/4
        """,
    ),
    *claims_of(
        "Corollary 2",
        """
        C2.descent: open it holds with high probability
            # the sum of gradients bounds the decrease, with probability 1 - 2 exp(-iota)
        """,
    ),
    *claims_of(
        "Lemma 5",
        """
        L5.error: open it holds with high probability
            # all errors are at most C sqrt(2 log(4T/omega)) psi <= chi
        """,
    ),
    *claims_of(
        "Theorem 1",
        """
        T1.sosp: open it holds with high probability, and a constant is hidden
            # with probability 1 - omega, Algorithm 1 returns an alpha-SOSP in O~(alpha^(-5/2))
            steps
        """,
    ),
    *claims_of(
        "Lemma 7",
        """
        L7.noise: open a constant is hidden
            # sigma and r of the oracle are of the stated order
        """,
    ),
    *claims_of(
        "Lemma 8",
        """
        L8.refreshes: open it holds with high probability
            # the number of refreshes is O(U eta/kappa)
        """,
    ),
    *claims_of(
        "Theorem 2",
        """
        T2.rate: open it holds with high probability, and a constant is hidden
            # alpha is O~((G U M/n)^(1/3)) plus a private term, for one machine
        """,
    ),
    *claims_of(
        "Theorem 3",
        """
        T3.rate: open it holds with high probability, and a constant is hidden
            # alpha is O~((G U M/(m n))^(1/3)) plus a private term, for m clients
        """,
    ),
    *claims_of(
        "Theorem 4",
        """
        T4.selection: open it holds with high probability, and a constant is hidden
            # Algorithm 4 selects an alpha'-SOSP where some candidate is an alpha-SOSP
        """,
    ),
)
