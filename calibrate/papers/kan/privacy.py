"""Claims of the paper: privacy."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

PRIVACY = (
    *claims_of(
        "Theorem D.9, conversion from RDP",
        """
        I11: 8*order*T*B**2/(n**2*u) = epsilon/2 at order = 1 + 2*Lam/epsilon, u =
            16*B**2*T/(n**2*epsilon) + 32*B**2*T*Lam/(n**2*epsilon**2)  # algebra of D.9, given 8
        I12: Lam/(order - 1) = epsilon/2 at order = 1 + 2*Lam/epsilon  # conversion
        """,
    ),
    *claims_of(
        "Lemma D.7, first coefficient",
        """
        I13: 16*x <= 4*(exp(4*x) - 1)  # first coefficient of the amplification bound, x = 1/kappa^2
        I13.eight: q**2/(order - 1)*order*(order - 1)/2*16/kappa**2 = 8*order*q**2/kappa**2 where 1
            < order  # where the 8 comes from
        """,
    ),
    *claims_of(
        "Lemma F.10, Chernoff bound",
        """
        I14: u/(r*T)*r*T/3 = Lam + log(2) at u = 3*(Lam + log(2)); definition  # Chernoff exponent
        I14.tau: (taus - r*T)**2 = 3*r*T*(Lam + log(2)); definition
            # deviation of the participations
        """,
    ),
    *claims_of(
        "Theorem F.12, noise",
        """
        I15: kappa_sq = 2*(relation*growth_sq**(1/2))**2*taus*(log(5/2) + Lam)/epsilon**2;
            definition; free growth_sq taus
            # classical Gaussian noise at sensitivity relation g sqrt(tau)
        I15.zero: kappa_sq*epsilon**2/(growth_sq*taus*log(5/2) + growth_sq*taus*Lam) = 2 at relation
            = 1; free growth_sq taus  # constant 2 under zero-out
        I15.replace: kappa_sq*epsilon**2/(growth_sq*taus*log(5/2) + growth_sq*taus*Lam) = 8 at
            relation = 2; free growth_sq taus  # constant 8 under replace-one
        """,
    ),
    *claims_of(
        "Theorems 5.1 and 5.4, compared",
        """
        I36: 8*r*T*Lam/(32*r**2*T*Lam) = 1/(4*r)  # no r^2
        """,
    ),
)
