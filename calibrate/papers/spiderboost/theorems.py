"""Statements of the theorems that no program decides: they stay OPEN, with the reason."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

THEOREMS = (
    *claims_of(
        "Theorem 1 and Theorem 9",
        """
        T9.utility: open a constant is hidden
            # E ||grad F(w; S)|| = O((sqrt(F0 L1 L0) abar)^(2/3) + L0 abar)
        """,
    ),
    *claims_of(
        "Lemma 1",
        """
        L1.error: open an expectation over the run
            # the squared error is at most tau2^2 times the squared movement since the refresh,
            plus tau1^2
        """,
    ),
    *claims_of(
        "Theorem 8",
        """
        T8.privacy: open a constant c is not given
            # noise c lambda sqrt(log(1/delta))/epsilon max(1/b, sqrt(T)/n) makes T sampled
            answers private
        """,
    ),
    *claims_of(
        "Theorem 2",
        """
        T2.lower: open a constant is hidden
            # some data set has E ||grad F|| = Omega(L0 min(1, sqrt(d Lam)/(n epsilon)))
        """,
    ),
    *claims_of(
        "Theorem 4",
        """
        T4.utility: open it holds with high probability
            # with probability 1 - p, ||grad F(w)|| <= 3 sqrt(2) L0 Ct max(n^(-1/3), (sqrt(d)/(n
            epsilon))^(1/2))
        """,
    ),
    *claims_of(
        "Lemma 5",
        """
        L5.error: open it holds with high probability
            # with probability 1 - p, all visited leaves have squared error at most alpha times
            the stopping level
        """,
    ),
    *claims_of(
        "Theorem 5.1",
        """
        T51.utility: open a constant is hidden
            # E ||grad F(w)|| = O~(L0/sqrt(n) + L0 sqrt(d)/(n epsilon)) with noisy gradient
            descent inside
        """,
    ),
    *claims_of(
        "Theorem 5.2",
        """
        T52.utility: open a constant is hidden
            # the same with phased SGD inside, plus L1 ||w*||/sqrt(n)
        """,
    ),
    *claims_of(
        "Theorem 6",
        """
        T6.reduction: open a constant is hidden
            # a random projection reduces the dimension of a generalized linear model
        """,
    ),
    *claims_of(
        "Theorem 7",
        """
        T7.lower: open a constant is hidden
            # without privacy, sup E ||grad F(w)|| = Omega(L0/sqrt(n))
        """,
    ),
    *claims_of(
        "Theorem 10",
        """
        T10.lower: open a constant is hidden
            # in the oracle model, Omega((F0 tau2 tau1/G)^(1/3) + tau1/sqrt(G))
        """,
    ),
)
