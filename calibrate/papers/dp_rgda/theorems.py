"""Statements of the theorems that no program decides: they stay OPEN, with the reason."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

THEOREMS = (
    *claims_of(
        "Lemma 1 and Lemma 3",
        """
        L1.error: open it holds with high probability
            # the squared error is at most log(1/delta1) (B2^2 movement^2 + B1^2)
        """,
    ),
    *claims_of(
        "Lemma 5 and Theorem 1",
        """
        T1.utility: open it holds with high probability, and a constant is hidden
            # ||grad Phi|| = O((sqrt(F0 L M) eb)^(2/3) + M eb)
        """,
    ),
    *claims_of(
        "Lemma 6",
        """
        L6.certify: open it holds with high probability
            # a phase that is not broken certifies lambda_min >= -alpha_H
        """,
    ),
    *claims_of(
        "Lemma 7",
        """
        L7.escape: open it holds with high probability
            # one of two coupled runs leaves the radius R within t_thres steps
        """,
    ),
    *claims_of(
        "Lemma 8 and Theorem 2",
        """
        T2.utility: open it holds with high probability, and a constant is hidden
            # population rate n^(-1/3) + (sqrt(d)/(n epsilon))^(1/2)
        """,
    ),
    *claims_of(
        "Lemma 11",
        """
        L11: open it quantifies over functions
            # co-coercivity of strongly convex, smooth functions
        """,
    ),
    *claims_of(
        "Lemma 12",
        """
        L12: open it quantifies over functions
            # (mu/2) ||y - y*(x)|| is at most the gradient mapping, for lambda <= 1/L
        """,
    ),
)
