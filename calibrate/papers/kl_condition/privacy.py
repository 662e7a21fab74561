"""Claims of the paper: privacy."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Private, Release, claims_of

PRIVACY = (
    *claims_of(
        "Lemma 8, privacy of Algorithm 1, cost of each answer",
        """
        B1: D0**2/(2*sigma_hat**2) = 2*rho/K; free K  # round start
        B1.ar: D0_ar**2/(2*sigma_hat**2) = rho/(2*K); free K  # round start, add or remove
        B2: D_k**2/(2*sigma_k**2) = rho/(8*K*T_k); free K T_k  # one difference, printed noise
        B2.ar: D_k_ar**2/(2*sigma_k**2) = rho/(32*K*T_k); free K T_k
            # one difference, printed noise, add or remove
        B3: K*(D0**2/(2*sigma_hat**2) + T_k*D_k**2/(2*sigma_k**2)) = 17/8*rho; free K T_k
            # printed noise, replace-one: 17/8 of the budget
        """,
        Private(
            "B3.ar",
            (Release("D0_ar", "sigma_hat", "K"), Release("D_k_ar", "sigma_k", "K*T_k")),
            rho="17/32*rho",
            neighboring_relation="add-or-remove-one",
            free="K T_k",
            statement="printed noise, add or remove with a public n: 17/32 of the budget",
        ),
        """
        B3.loop: (K*D0**2/(2*sigma_hat**2) + K*(T_k + 1)*D_k**2/(2*sigma_k**2))/rho = 9/4 at kappa =
            2; free K  # printed loop at kappa = 2: 9/4 of the budget
        B5.total: K*(D0**2/(2*sigma_0**2) + m*D_k**2/(2*sigma_1**2)) = rho; free K
            # the exact split costs exactly rho
        B5.ratio: sigma_0**2/sigma_1**2 = D0/D_k; free K
            # stationarity of the split: variances in proportion to sensitivities
        B5.variance: sigma_0**2 + m*sigma_1**2 = (D0 + m*D_k)**2*K/(2*rho); free K
            # accumulated variance of the exact split
        B6: T_k*D_k <= L0/(2*n) where Phi <= F0, F0 <= (gamma*L0)**kappa, kappa in [1, 2]
            # the differences of a round add at most L0/(2 n) of sensitivity
        B6.constant: 5/2/sqrt(2) <= 2  # so the floor constant 32 stays
        """,
    ),
    *claims_of(
        "Lemma 3 and Theorem 9, privacy of Algorithm 4",
        """
        B7: D0**2/(2*(4*L0**2*T/(n**2*rho))) = rho/(2*T)  # Alg 4
        """,
        Private(
            "B7.total",
            (Release("D0", "sigma_in", "T - 1"),),
            rho="rho",
            where="2 <= T",
            statement="Algorithm 4 with exact noise is rho-zCDP under replace-one",
        ),
    ),
    *claims_of(
        "Theorem 3, privacy of Algorithm 3, cost of each answer",
        """
        B8.norm: D0**2/(2*sigma_norm**2) = 2*sqrt(rho)/n  # cost of a norm
        B8.norm.ar: D0_ar**2/(2*sigma_norm**2) = sqrt(rho)/(2*n)  # cost of a norm, add or remove
        B8.gradient: charge = 2*L0**2*d*ell/(n**2*N_t**2)  # cost of a gradient of Algorithm 3
        B8.switch: L0**2*d*ell/(n**2*N_t**2) = rho/4 at N_t = 2*L0*sqrt(d*ell)/(n*sqrt(rho))
            # where the two branches of sigma_t meet
        """,
    ),
    *claims_of(
        "Theorem 5, exponential mechanism of the selection",
        """
        B9: n*sqrt(rho)/(2*L0)*2*D0_ar = sqrt(rho); definition  # selection, AR
        B9.ro: n*sqrt(rho)/(2*L0)*2*D0 = 2*sqrt(rho); definition  # selection, RO
        """,
    ),
)
