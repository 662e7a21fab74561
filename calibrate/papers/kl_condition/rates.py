"""Claims of the paper: rates."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

RATES = (
    *claims_of(
        "Theorem 4, rates after the statement",
        """
        E1.one: 2*kappa/(4 - kappa) = 2/3 at kappa = 1
        E1.two: 2*kappa/(4 - kappa) = 2 at kappa = 2
        E2.switch: (sqrt(d)/N)**(2*kappa/(4 - kappa)) = N**(-kappa/2) where kappa < 4 at d =
            N**(kappa/2)  # the terms meet at d = N^(kappa/2)
        E3: kappa/2 <= kappa/(2 - kappa) where kappa in [1, 199/100]  # E3
        E3.third: 2*kappa/(4 - kappa) <= kappa/(2 - kappa) where kappa in [1, 199/100]
            # the third term never dominates
        """,
    ),
    *claims_of(
        "Corollary 1, from Theorem 6",
        """
        E4: tau/(tau - 1) = kappa where 1 < kappa at tau = kappa/(kappa - 1)
        E4.constant: tau**(-1/(tau - 1)) = (kappa/(kappa - 1))**(1 - kappa) where 1 < kappa, kappa
            in [1, oo] at tau = kappa/(kappa - 1)  # constant of Corollary 1
        """,
    ),
    *claims_of(
        "Theorem 5, worst case",
        """
        E5: sqrt(d)/(u*N) = u at u = sqrt(sqrt(d)/N)  # Theorem 5, worst
        """,
    ),
)
