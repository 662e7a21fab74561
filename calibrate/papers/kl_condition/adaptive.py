"""Claims of the paper: adaptive."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

ADAPTIVE = (
    *claims_of(
        "Lemma 12, descent of Algorithm 3",
        """
        D2: 3*G**2/(8*L1) + inner/(4*L1) - noise/(8*L1) = 0 at inner = -G**2, noise = G**2
            # no step, no descent
        D3: (G**2 - s**2)/(8*L1) <= (G**2 - v**2)/(4*L1) at v = sqrt((G**2 + s**2)/2)
            # halved noise gives the claimed descent
        D10: sigma_t**2*d*ell = N_t**2  # gradient noise follows the norm
        """,
    ),
    *claims_of(
        "Lemma 13 and Theorem 4, phases of Algorithm 3",
        """
        D4: J*(Phi/u)**(2/kappa)/(16*gamma**2*L1) = (u - 1)/u*Phi where 1 < u at J = (u*F0/Phi)**((2
            - kappa)/kappa), L1 = F0**((2 - kappa)/kappa)/(16*gamma**2*(u - 1))  # steps per phase
        D6: Phi**((kappa - 2)/kappa)*Phi**(-2/kappa) = Phi**((kappa - 4)/kappa)
        D7: Phi**((4 - kappa)/kappa) = F0**((2 - kappa)/kappa)*W**2 where kappa < 4 at Phi = F0**((2
            - kappa)/(4 - kappa))*W**(2*kappa/(4 - kappa))
            # solving the privacy term for the excess risk
        D7.main: main_term**((4 - kappa)/kappa) = F0**((2 -
            kappa)/kappa)*gamma**2*L0**2*d*ell*p_max/(n**2*rho) where kappa < 4
            # the main term solves it
        D8: (1 + x)/x = 1 + 8*gamma**2*L1 at x = 1/(8*gamma**2*L1)
        D9: (sqrt(N**(2*(2 - kappa)/(4 - kappa)))/N)**kappa = N**(-2*kappa/(4 - kappa)) where kappa
            < 4  # norm budget when kappa is known
        """,
    ),
)
