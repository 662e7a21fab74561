"""Claims of the paper: proximal."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Enumeration, claims_of


def _weights_sum_to_one(steps: int) -> bool:
    """The weights 2 t / (T (T + 1)) of Algorithm 4 sum to one."""
    return sum(Fraction(2 * k, steps * (steps + 1)) for k in range(1, steps + 1)) == 1


PROXIMAL = (
    *claims_of(
        "Theorem 2, proof for Algorithm 2",
        """
        C1: (1 + x)/x = 1 + 32*F0**((kappa - 2)/kappa)*gamma**2*Ltil at x = F0**((2 -
            kappa)/kappa)/(32*gamma**2*Ltil)  # stages per factor e of the printed Algorithm 2
        C2: Ltil/4*(Phi**(1/kappa)/(2*gamma*Ltil))**2 = Phi**(2/kappa)/(16*gamma**2*Ltil)
            # decrease forced by the KL condition
        C3: Phi**(2/kappa) = Phi**((2 - kappa)/kappa)*Phi  # exponents
        C3.contraction: 1/u <= u**(-2/kappa) where 1 <= u, kappa in [2, oo]
            # c^(-2/kappa) >= 1/c for kappa >= 2
        C4: L0 + 2*u*L0/(2*u) = 2*L0  # Lipschitz constant on the ball
        C9: Phi**((2 - kappa)/kappa)/(32*u*gamma**2) = 1/4 at u = Phi**((2 -
            kappa)/kappa)/(8*gamma**2)  # largest contraction of a stage
        C9.weight: y = 1/4 at Ltil = Phi**((2 - kappa)/kappa)/(8*gamma**2*(1 + x))
            # the staged weight contracts by the most wherever Ltil is smaller
        C9.cap: y <= 1/4 where kappa in [2, oo]  # y is at most 1/4
        C9.half: Phi/4 <= 4**(-2/kappa)*Phi where kappa in [2, oo]  # splitting at Phi/4
        C10: Phi**((2 - kappa)/kappa)/(32*u*gamma**2)*Phi/2 = Phi**(2/kappa)/(64*u*gamma**2)
            # allowed error of the inner solver
        C10.floor: Phi**(2/kappa)/(64*gamma**2) = A*L0**2*X**2*T*Lam at Phi =
            (8*sqrt(A)*gamma*L0*X*sqrt(T*Lam))**kappa; free X
            # the repaired floor is where the inner solver's error fits
        C10.level: level_prox**(2/kappa)/(64*gamma**2) = A*L0**2*d*T*Lam/(n**2*rho)
            # the floor setting is that value
        C11: (32*gamma**2*Ltil*u)**(kappa/2) = u where 2 < kappa at u =
            (32*gamma**2*Ltil)**(-kappa/(kappa - 2))
            # where the printed floor falls below the inner error
        C12: u/2 <= -log(1 - u/2) where u in [1/100, 1/4]  # log(1/(1 - y/2)) >= y/2
        C12.stages: T_prox/log(R) = Max(8, 2/(F0**((2 - kappa)/kappa)/(32*Ltil*gamma**2))) where 1 <
            R  # stages are 2/y at the smallest y
        """,
    ),
    *claims_of(
        "Lemma 3 and Theorem 9, utility of Algorithm 4",
        Enumeration("C5", _weights_sum_to_one, list(range(1, 40)), statement="weights sum to 1"),
        """
        C6: t*(1/(2*eta_in) - Ltil/2) - (t - 1)/(2*eta_in)*t/(t + 1) = 0
            # the weighted descent sum telescopes
        C7.noise: u**2/2 = 2*L0**2*ell_in**2/d at u = 2*L0*ell_in/sqrt(d)
        C7.rate: 4*L0**2*ell_in**2/(Ltil*T_in) = 4*L0**2*d/(Ltil*n**2*rho); definition
            # noise term of Lemma 3
        C7.tail: L0**2/(Ltil*T_in) = L0**2*d/(Ltil*n**2*rho*ell_in**2); definition
            # deterministic term of Lemma 3
        C8: 2/3*-(1/2) + 1/3 = 0  # the distance cancels
        C13: 2*(4*L0**2 + d*2*L0**2*T_in/(n**2*rho))/(u*T_in) = (4 +
            8/ell_in**2)*L0**2*d/(u*n**2*rho)  # Algorithm 4 in expectation
        """,
    ),
)
