"""Statements of the theorems that no program decides: they stay OPEN, with the reason."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

THEOREMS = (
    *claims_of(
        "Theorem 4.1",
        """
        T41.risk: open it holds with high probability, and a constant is hidden
            # the average empirical risk is within A_corr times logarithms
        """,
    ),
    *claims_of(
        "Theorem 5.2",
        """
        T52.population: open it holds with high probability, and a constant is hidden
            # the average population risk is within (1 + eta T/n) A_corr times logarithms
        """,
    ),
    *claims_of(
        "Corollary 5.3",
        """
        C53.rate: open it holds with high probability, and a constant is hidden
            # correlated noise: risks are O~(1/(gamma sqrt(n)) + sqrt(d)/(gamma^4 n epsilon))
        """,
    ),
    *claims_of(
        "Theorem 5.1 and Theorem 5.4",
        """
        T54.privacy: open a constant is hidden in the main text
            # noise multipliers are stated up to constants; E02, E05 and E07 treat the explicit
            ones
        """,
    ),
    *claims_of(
        "Corollary 5.5",
        """
        C55.rate: open it holds with high probability, and a constant is hidden
            # independent noise: risks are O~(1/(gamma sqrt(n)) + sqrt(d)/(gamma^3 n epsilon))
        """,
    ),
    *claims_of(
        "Corollary 5.6",
        """
        C56.rate: open it holds with high probability, and a constant is hidden
            # without noise: empirical risk is O~(1/n), population risk O~(1/(gamma^2 n))
        """,
    ),
    *claims_of(
        "Lemma C.12",
        """
        LC12: open it holds with high probability
            # a comparator near the start has risk at most 1/T
        """,
    ),
    *claims_of(
        "Lemma F.7",
        """
        LF7: open an external theorem about adaptive mixtures
            # mixtures of Gaussians with adaptive rows are dominated
        """,
    ),
)
