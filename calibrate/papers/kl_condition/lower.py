"""Claims of the paper: lower."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

LOWER = (
    *claims_of(
        "Theorem 6, construction",
        """
        F1: (2**(-(tau - 1)/tau)*u)**(tau/(tau - 1)) = 1/2*4**((tau - 1)/tau)*(tau/(tau -
            1))**(1/tau)*Delta**(1/tau)/D where tau in [1, oo] at u = 4**((tau -
            1)**2/tau**2)*(Delta*tau/(D**tau*(tau - 1)))**((tau - 1)/tau**2)
            # growth constant of the first level
        F2: u**tau*2**(tau - 2)*tau*(tau - 1)*v**(tau - 2) = u**(tau/(tau - 1))*L0**((tau - 2)/(tau
            - 1))*(tau**(1/(tau - 1))*(tau - 1)) where tau in [1, oo] at v =
            (L0/(2*tau*u**tau*2**(tau - 2)))**(1/(tau - 1))  # smoothness of a level
        F3: (L0*2**(2 - tau)/(2*tau*u**tau))**(1/(tau - 1)) = D*4**((1 - tau)/tau)*L0**(1/(tau -
            1))*Delta**(-1/tau)*tau**(-1/(tau - 1))*((tau - 1)/tau)**(1/tau) at u = (1/2*4**((tau -
            1)/tau)*(tau/(tau - 1))**(1/tau)*Delta**(1/tau)/D)**((tau - 1)/tau)  # radius of a level
        """,
    ),
    *claims_of(
        "Theorem 8, instance",
        """
        F5: (2*u)**(kappa/(kappa - 1)) = 2*r*u where 1 < kappa at u = 1/2*r**(kappa - 1)
            # instance of Theorem 8
        F5.value: 2*r*u = (1/(n*epsilon))**kappa at u = 1/2*(n*epsilon)**(1 - kappa), r =
            1/(n*epsilon)  # value of Theorem 8
        """,
    ),
    *claims_of(
        "Theorem 7, instance",
        """
        F6.slope: 8*u*D = 4*Nz*L0/n at u = Nz*L0/(2*n*D)
        F6.margin: 16*u*D**2 - 4*D*L0*Nz/n = 4*Nz*L0*D/n at u = Nz*L0/(2*n*D)
            # margin outside the ball
        """,
    ),
    *claims_of(
        "Lemma 7, tightness",
        """
        F7: ((kappa - 1)/(kappa*gamma)*u)**(kappa/(kappa - 1)) = u**(kappa/(kappa - 1))*(kappa -
            1)/kappa where 1 < kappa, kappa in [1, oo] at gamma = ((kappa - 1)/kappa)**(1/kappa)
            # Lemma 7 is tight on r^p/p
        """,
    ),
)
