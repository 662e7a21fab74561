"""Claims of the paper: pop."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

POP = (
    *claims_of(
        "Theorem 2 and Lemma 8, B.2, one-pass schedule",
        """
        P04: eb**(-1/3)*n**(2/3)/n = rr**(-1/3) at eb = rr/n; free eb
        P05: eb**(-2/3)*kappa*(ell1**2*kappa*eb**(-1/3))/n = kappa**2*ell1**2/rr at eb = rr/n; free
            eb  # records used by the increments
        P09: rr**2/(n*rr)/(rr/n) = 1; definition  # repaired refresh batch
        P10: eb**(-2/3) <= n**(2/3) where 1/n <= eb; free eb  # the amplified branch is never active
        P13: S1_pop/q_pop/S2_pop = 1  # refreshes and increments cost alike
        P13.rate: alpha**(-2)*S2_pop = rr*alpha**(-7/3)
            # records of the one-pass schedule: alpha = (rr/n)^(3/7)
        P13.S1: S1_pop*alpha = rr; definition  # privacy error of a refresh is alpha
        P13.T: T_pop*(alpha*u/2) = F0 at u = alpha/(2*L_Phi)  # rounds times descent is the gap
        P13.q: q_pop**(3/2)*rr = S1_pop  # period
        P14: alpha**(-2)*(u/w + v) = 2*alpha**(-3) at u = alpha**(-2), w = 1/alpha, v = 1/alpha
            # where sampling dominates: alpha = n^(-1/3)
        P15: alpha**(-2)*2*rr*sqrt((alpha**(-2)/rr)**(2/3)) = 2*rr**(2/3)*alpha**(-8/3)
            # between the regimes
        """,
    ),
)
