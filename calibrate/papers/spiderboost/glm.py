"""Claims of the paper: glm."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

GLM = (
    *claims_of(
        "Theorem 6, projected constants",
        """
        S63.lipschitz: sqrt(2)*L0*Xn <= 2*L0*Xn  # projected Lipschitz
        """,
    ),
    *claims_of(
        "Corollary 1, embedding dimension",
        """
        S64: k**(1/3)/N**(2*(1/3)) = k**(-(1/2)) at k = N**(4/5); balance of k
            # embedding dimension, nonconvex
        S64.error: k**(-(1/2)) = N**(-2/5) at k = N**(4/5); definition
        S65: sqrt(k)/N = k**(-(1/2)) at k = N; balance of k  # convex
        S66: (sqrt(rank*ell)/N)**(2*(1/3)) = (sqrt(rank)/N)**(2*(1/3))*ell**(1/3)  # rank branch
        S67: (sqrt(rank)/N)**(2*(1/3)) <= N**(-2/5) where rank <= N**(4/5)
            # where the rank branch wins
        S69: k**(1/3)/N**(2*(1/3)) = k**(-1/4) at k = N**(8/7)
        """,
    ),
    *claims_of(
        "Algorithm 4, norm event",
        """
        S68: 2/(1 - log(2)) <= 6518/1000  # chi-square tail: k >= 6.518 log(2n/delta) is enough
        """,
    ),
)
