"""Claims of the paper: constants."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Private, Release, claims_of

CONSTANTS = (
    *claims_of(
        "(43)",
        """
        C02: 144*k/K*(2*L**2*dx + 2*ga) + (144*k/K + 120*ell1)*(3*th + 6*L**2*dx) +
            120*ell1*L**2/w/(36*L**2)*(9*th + 21*L**2*dx + 3*ga) = (288*k/K + 10*ell1/w)*ga +
            (432*k/K + 360*ell1 + 30*ell1/w)*th + (1152*k/K + 720*ell1 + 70*ell1/w)*L**2*dx
            # coefficients of (43), lambda = 1/(6 L)
        """,
    ),
    *claims_of(
        "(36)-(37), contraction",
        """
        C03: x/(1 - x) = 3*kappa + 2 at x = 1 - 2/(6*L)*mu*L/(mu + L), L = kappa*mu
            # contraction of an ascent step
        C03.kappa: 1 - 2/(6*L)*mu*L/(mu + L) = 36/37 at L = 34/3*mu
            # where the contraction is 36/37
        """,
    ),
    *claims_of(
        "Algorithm 3, noise and releases",
        """
        D04: 2*(exp(x) - 1) <= exp(2*x) - 1 where x in [1/100, 5]
            # two blocks from one batch cost more than twice one
        D06: v**2*u/(v*w**2) + g**2*k/(g*w**2) = (v*u + g*k)/w**2  # cost of a split noise budget
        """,
        Private(
            "D07",
            (Release("2*C1/S1", "sigma_v"),),
            rho="1/(2*multiplier**2)",
            free="S1",
            statement="a refresh costs what its multiplier says",
        ),
        Private(
            "D08",
            (Release("2*C2/S2", "sigma_u"),),
            rho="1/(2*multiplier**2)",
            free="S2",
            statement="an increment costs what its multiplier says",
        ),
        """
        D07.std: sigma_v*S1/(2*C1) = multiplier  # multiplier of a refresh
        D08.std: sigma_u*S2/(2*C2) = multiplier; free S2; definition  # of an increment
        """,
    ),
    *claims_of(
        "Assumptions 2 to 4, Hessian of the value function",
        """
        G01: rho*(1 + 2*kappa + kappa**2)*(1 + kappa) = rho*(1 + kappa)**3
        """,
    ),
)
