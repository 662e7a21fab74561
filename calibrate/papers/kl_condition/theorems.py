"""Statements of the theorems that no program decides: they stay OPEN, with the reason."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

THEOREMS = (
    *claims_of(
        "Theorem 1",
        """
        T1.utility: open it holds with high probability, and a constant is hidden
            # with probability 1 - beta, F(w) - F* = O((gamma L0 sqrt(d K log(1/beta'))/(n
            sqrt(rho)))^kappa)
        """,
    ),
    *claims_of(
        "Lemma 2",
        """
        L2: open it holds with high probability
            # with probability 1 - beta, every gradient error of a round is at most
            Phi_k^(1/kappa)/(8 gamma)
        """,
    ),
    *claims_of(
        "Theorem 2",
        """
        T2.utility: open it holds with high probability, and a constant is hidden
            # F(w) - F* = O((gamma L0 sqrt(T d Lam)/(n sqrt(rho)))^kappa) for kappa >= 2, with
            the repaired weight
        """,
    ),
    *claims_of(
        "Lemma 3 and Theorem 9",
        """
        L3: open it holds with high probability, and a constant is hidden
            # the inner solver's excess is O(L0^2 d log(n^2 log^2(2/beta)/(d beta))/(Ltil n^2
            rho))
        """,
    ),
    *claims_of(
        "Theorem 4",
        """
        T4: open it holds with high probability, and a constant is hidden
            # three terms bound the excess of Algorithm 3, with probability 1 - 2 beta
        """,
    ),
    *claims_of(
        "Theorem 5",
        """
        T5: open it holds with high probability, and a constant is hidden
            # a point with small gradient is selected, with probability 1 - 3 beta
        """,
    ),
    *claims_of(
        "Theorem 6",
        """
        T6: open a constant is hidden
            # excess risk is Omega(tau^(-1/(tau-1)) (L0 sqrt(d)/(lambda n
            epsilon))^(tau/(tau-1))) under growth
        """,
    ),
    *claims_of(
        "Corollary 1",
        """
        C1.lower: open a constant is hidden
            # excess risk is Omega~((gamma L0 sqrt(d)/(n sqrt(rho)))^kappa) for feasible
            constants
        """,
    ),
    *claims_of(
        "Theorem 7",
        """
        T7: open a constant is hidden
            # excess risk is Omega(L0 D min(sqrt(d)/(n epsilon), 1)) without constraints
        """,
    ),
    *claims_of(
        "Theorem 8",
        """
        T8: open it quantifies over all algorithms
            # excess risk is at least (1/4)(1/(n epsilon))^kappa for kappa >= 2
        """,
    ),
    *claims_of(
        "Lemma 5",
        """
        L5: open a path in a level set is no formula
            # the trajectory of Algorithm 3 stays in one component of a level set
        """,
    ),
)
