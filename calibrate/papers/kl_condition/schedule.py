"""Claims of the paper: schedule."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Enumeration, claims_of


def _recursion_is_maximum(case: tuple[Fraction, int, int]) -> bool:
    """Phi_k = max(c^-k F0, floor) solves the recursion, for F0 = 1."""
    contraction, inverse, rounds = case
    lowest = Fraction(1, inverse)
    value = Fraction(1)
    for _ in range(rounds):
        value = max(value / contraction, lowest)
    return value == max(contraction**-rounds, lowest)


_SCHEDULE = (
    *claims_of(
        "Theorem 1, Algorithm 1, steps and noise of a round",
        """
        A2: T_k*Phi**(1/kappa) = F0**((2 - kappa)/kappa)*Phi**((kappa - 1)/kappa)  # path of a round
        A2.cap: T_k*Phi**(1/kappa) <= F0**(1/kappa) where Phi <= F0, kappa in [1, 2]
            # the path of a round is at most F0^(1/kappa)
        A3: sqrt(T_k)*sigma_k = sqrt(K)/(gamma*n*sqrt(rho))*F0**((2 - kappa)/kappa)*Phi**((kappa -
            1)/kappa); free K  # accumulated noise of a round's differences
        A15.steps: T_k = 1 at kappa = 2  # kappa = 2: one step per round
        A15.c: c = 1 + 1/(64*gamma**2*L1) at kappa = 2  # kappa = 2
        A15.sigma: sigma_k = sqrt(Phi*K)/(gamma*n*sqrt(rho)) at kappa = 2; free K
            # kappa = 2: noise of a difference
        A15.one: T_k = F0/Phi at kappa = 1  # kappa = 1: F0/Phi steps
        A15.beta: beta_k = beta*gamma*L0*sqrt(K)*X/(K*F0) at kappa = 1; free K X
            # kappa = 1: failure probability per estimate
        A16: 1 <= T_k, h <= F0**(1/kappa)/(4*gamma*L1) where Phi <= F0, kappa in [1, 2]
            # a round makes at least one step, no longer than the first round's
        A17: X = sqrt(d/rho)/n; definition  # rate variable
        """,
    ),
    *claims_of(
        "Lemma 9, descent, and contraction of a round in the proof of Theorem 1",
        """
        A4: 4*L1*h = Phi**(1/kappa)/gamma; definition  # step length, whatever the data
        A4.eta: h/(7/8*Phi**(1/kappa)/gamma) = 2/(7*L1)  # largest step size
        A5: 1/64 <= 7/8/16 - 1/256  # Lemma 9
        A6: 1 - (c - 1)/c = 1/c; free c  # contraction per round
        A7: c/(c - 1) = 1 + 64*F0**(-(2 - kappa)/kappa)*gamma**2*L1  # rounds needed per factor e
        A8: u/(1 + u) <= log(1 + u) where u in [1/64, 64]
            # log(1 + u) >= u/(1 + u) makes K sufficient
        """,
    ),
    *claims_of(
        "Theorem 1 and Lemma 2, rounds, floor and failure probability",
        """
        A9: K/log(R) = c/(c - 1) where 1 < R  # K is the rounds per factor e times log R
        A9.R: log(R) = log(F0) + kappa*log(n*sqrt(rho)/(gamma*L0*sqrt(d)))
            # the bracket of K as the paper prints it
        """,
        Enumeration(
            "A10",
            _recursion_is_maximum,
            [
                (Fraction(p, 8), q, k)
                for p in (9, 12, 20)
                for q in (3, 50, 4000)
                for k in (1, 5, 17)
            ],
            statement="Phi_k = max(c^-k F0, floor) solves the recursion",
        ),
        """
        A11: 4*L0*sqrt(K*d*log(1/beta_k))/(n*sqrt(rho)) = level**(1/kappa)/(8*gamma) at beta_k =
            exp(-ell); free K beta_k  # at the floor the gradient error bound meets the stop test
        A12: K*(F0/(gamma*L0*sqrt(K)*X)**kappa)**((2 - kappa)/kappa)*beta_k = beta; free K
            # beta' times the number of estimates is beta
        """,
    ),
    *claims_of(
        "Lemma 1, radius of the trajectory",
        """
        A13: K*F0**(1/kappa)/(4*gamma*L1) = (F0**(1/kappa)/(4*gamma*L1) + 16*gamma*F0**((kappa -
            1)/kappa))*log(R)  # radius of the trajectory, Lemma 1
        """,
    ),
    *claims_of(
        "remark after Theorem 1, F0 = (gamma L0)^kappa",
        """
        A14: a = gamma**kappa*L1/L0**(2 - kappa) at F0 = (gamma*L0)**kappa
            # condition number when nothing better than Lipschitz is known of F0
        """,
    ),
)
