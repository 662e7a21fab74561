"""Settings of the paper, as printed and as derived."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Setting

SETTINGS = (
    Setting("X", "sqrt(d)/(n*sqrt(rho))", source="rate variable"),
    Setting(
        "a",
        "F0**(-(2 - kappa)/kappa)*gamma**2*L1",
        printed="L1*gamma/F0**((2 - kappa)/2)",
        source="condition number; the remark after Lemma 1 has other units",
    ),
    Setting("c", "1 + 1/(64*a)", source="Algorithm 1"),
    Setting(
        "R",
        "F0/(gamma*L0*X)**kappa",
        printed="F0/(L0*X)**kappa",
        source="Algorithm 1; the logarithm in appendix B.3 lacks gamma",
    ),
    Setting("K", "(1 + 64*a)*log(R)", source="Algorithm 1", rounding="up"),
    Setting(
        "beta_k",
        "beta/K*(gamma*L0*sqrt(K)*X/F0**(1/kappa))**(2 - kappa)",
        source="Algorithm 1, beta'",
    ),
    Setting("level", "(32*gamma*L0*sqrt(K*log(1/beta_k))*X)**kappa", source="Algorithm 1, floor"),
    Setting(
        "T_k",
        "(F0/Phi)**((2 - kappa)/kappa)",
        printed="(F0/Phi)**((kappa - 2)/2)",
        source="Algorithm 1; the proof of Theorem 1 prints another exponent",
        rounding="up",
    ),
    Setting("h", "Phi**(1/kappa)/(4*gamma*L1)", source="Algorithm 1, step length"),
    Setting("D0", "2*L0/n", printed="L0/n", source="sensitivity of the mean gradient"),
    Setting(
        "D_k", "2*L1*h/n", printed="Phi**(1/kappa)/n", source="Lemma 8, sensitivity of a difference"
    ),
    Setting("D0_ar", "L0/n", source="the same, add or remove"),
    Setting("D_k_ar", "L1*h/n", source="the same, add or remove"),
    Setting("sigma_hat", "L0*sqrt(K)/(n*sqrt(rho))", source="Algorithm 1, printed noise"),
    Setting(
        "sigma_k",
        "Phi**(1/kappa)*sqrt(T_k*K)/(gamma*n*sqrt(rho))",
        source="Algorithm 1, printed noise",
    ),
    Setting("sigma_0", "sqrt(D0*(D0 + m*D_k)*K/(2*rho))", source="exact split of a round"),
    Setting("sigma_1", "sqrt(D_k*(D0 + m*D_k)*K/(2*rho))", source="exact split of a round"),
    Setting(
        "lam",
        "Max(Ltil, Phi**((2 - kappa)/kappa)/(8*gamma**2))",
        printed="Ltil",
        source="Algorithm 2, proximal weight",
    ),
    Setting(
        "T_prox",
        "Max(8, 64*F0**((kappa - 2)/kappa)*gamma**2*Ltil)*log(R)",
        printed="(1 + 32*F0**((kappa - 2)/kappa)*gamma**2*Ltil)*log(R)",
        source="Algorithm 2",
        rounding="up",
    ),
    Setting("y", "Phi**((2 - kappa)/kappa)/(32*lam*gamma**2)", source="Algorithm 2"),
    Setting("level_prox", "(8*sqrt(A)*gamma*L0*X*sqrt(T*Lam))**kappa", source="Algorithm 2, floor"),
    Setting("T_in", "n**2*rho*ell_in**2/d", source="Algorithm 4", rounding="up"),
    Setting(
        "sigma_in",
        "sqrt(2*(T - 1)/rho)*L0/n",
        printed="2*L0*sqrt(T/rho)/n",
        source="Algorithm 4, noise",
    ),
    Setting("eta_in", "2/(Ltil*(t + 1))", printed="1/(Ltil*t)", source="Algorithm 4, step"),
    Setting("sigma_norm", "L0/(sqrt(n)*rho**(1/4))", source="Algorithm 3, norm noise"),
    Setting("floor_t", "2*L0/(n*sqrt(rho))", source="Algorithm 3, floor of the gradient noise"),
    Setting("sigma_t", "N_t/sqrt(d*ell)", source="Algorithm 3, gradient noise above its floor"),
    Setting(
        "charge",
        "D0**2/(2*sigma_t**2)",
        printed="L0**2*d*ell/(n**2*N_t**2)",
        source="Algorithm 3, budget charged for a gradient",
    ),
    Setting(
        "main_term",
        "F0**((2 - kappa)/(4 - kappa))*(gamma*L0*sqrt(d*ell*p_max)/(n*sqrt(rho)))**(2*kappa/"
        "(4 - kappa))",
        printed="(gamma*L0*sqrt(d*ell*p_max)/(n*sqrt(rho)))**(2*kappa/(4 - kappa))",
        source="Theorem 4, first term",
    ),
    Setting(
        "Delta",
        "(L0*sqrt(d)/(n*epsilon))**(tau/(tau - 1))",
        printed="L0*sqrt(d)/(n*epsilon)",
        source="Theorem 6",
    ),
)
