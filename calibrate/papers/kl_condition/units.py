"""Claims of the paper: units."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

UNITS = (
    *claims_of(
        "Theorem 1, units of Algorithm 1",
        """
        G.a: [a] = 1  # condition number
        G.R: [R] = 1  # ratio of start to target
        G.K: [K] = 1  # rounds
        G.beta: [beta_k] = 1; free K  # failure probability
        G.T: [T_k] = 1  # steps of a round
        G.floor: [level] = loss; free K beta_k  # floor
        G.h: [h] = parameter  # step length
        G.sigma: [sigma_0] = loss/parameter; free K  # noise
        G.sigma1: [sigma_1] = loss/parameter; free K  # noise
        """,
    ),
    *claims_of(
        "Theorem 2, units",
        """
        G.prox: [T_prox] = 1  # stages of Algorithm 2
        G.lam: [lam] = loss/parameter**2  # proximal weight
        """,
    ),
    *claims_of(
        "Lemma 1, units",
        """
        G.radius: [K*F0**(1/kappa)/(gamma*L1)] = parameter; free K  # radius
        """,
    ),
    *claims_of(
        "Theorem 9, units",
        """
        G.thm9: [L0**2*d/(Ltil*n**2*rho)] = loss  # Lemma 3
        """,
    ),
    *claims_of(
        "Theorem 5, units",
        """
        G.thm5: [sqrt(L0*X*sqrt(F0*L1))] = loss/parameter  # Theorem 5, worst case
        """,
    ),
)
