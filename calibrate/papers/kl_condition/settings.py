"""Symbols of the paper, and its settings as printed and as corrected."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary, settings_of

QUANTITIES = (
    Quantity("tau", "growth exponent of the lower bound", range="(1, oo)"),
    Quantity("n", "number of records", range="[1, oo)", whole=True),
    Quantity("d", "dimension", range="[1, oo)", whole=True),
    Quantity("rho", "zCDP budget"),
    Quantity("beta", "failure probability", range="(0, 1)"),
    Quantity("beta_k", "failure probability of one answer", range="(0, 1)"),
    Quantity("kappa", "KL exponent", range="[1, oo)"),
    Quantity("F0", "public bound on the initial excess risk", {"loss": 1}),
    Quantity("gamma", "KL constant", {"loss": "1/kappa - 1", "parameter": 1}),
    Quantity("L0", "Lipschitz constant", {"loss": 1, "parameter": -1}),
    Quantity("L1", "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity("Ltil", "weak convexity constant", {"loss": 1, "parameter": -2}),
    Quantity("Phi", "target excess risk of a round", {"loss": 1}),
    Quantity("m", "gradient differences released in a round", range="[0, oo)", whole=True),
    Quantity("K", "number of rounds", whole=True),
    Quantity("T", "number of steps", whole=True),
    Quantity("t", "index of a step", whole=True),
    Quantity("ell", "logarithmic factor"),
    Quantity("ell_in", "logarithmic factor"),
    Quantity("Lam", "logarithmic factor"),
    Quantity("A", "constant of the inner solver"),
    Quantity("N_t", "noisy gradient norm", {"loss": 1, "parameter": -1}),
    Quantity("s_n", "bound on the norm noise", {"loss": 1, "parameter": -1}),
    Quantity("p_max", "number of phases", whole=True),
    *auxiliary("D Delta G J N Nz Phi_before W epsilon r rho_sel s u v x"),
    *auxiliary("inner noise w", range="(-oo, oo)"),
)

SETTINGS = settings_of(
    """
    X: sqrt(d)/(n*sqrt(rho))  # rate variable
    a: F0**(-(2 - kappa)/kappa)*gamma**2*L1; printed L1*gamma/F0**((2 - kappa)/2)  # condition
        number; the remark after Lemma 1 has other units
    c: 1 + 1/(64*a)  # Algorithm 1, line 2
    R: F0/(gamma*L0*X)**kappa; printed F0/(L0*X)**kappa  # Algorithm 1, line 3; the
        logarithm in appendix B.3 lacks gamma
    K: (1 + 64*a)*log(R); up  # Algorithm 1, line 3
    beta_k: beta/K*(gamma*L0*sqrt(K)*X/F0**(1/kappa))**(2 - kappa)  # Algorithm 1, line 3
    level: (32*gamma*L0*sqrt(K*log(1/beta_k))*X)**kappa  # Algorithm 1, line 6
    T_k: (F0/Phi)**((2 - kappa)/kappa); printed (F0/Phi)**((kappa - 2)/2); up  # Algorithm 1, line
        7; the proof of Theorem 1 prints another exponent
    h: Phi**(1/kappa)/(4*gamma*L1)  # Algorithm 1, line 11
    D0: 2*L0/n; printed L0/n  # sensitivity of the mean gradient
    D_k: 2*L1*h/n; printed Phi**(1/kappa)/n  # Lemma 8, sensitivity of a difference
    D0_ar: L0/n  # the same, add or remove
    D_k_ar: L1*h/n  # the same, add or remove
    sigma_hat: L0*sqrt(K)/(n*sqrt(rho))  # Algorithm 1, line 4
    sigma_k: Phi**(1/kappa)*sqrt(T_k*K)/(gamma*n*sqrt(rho))  # Algorithm 1, line 7
    sigma_0: sqrt(D0*(D0 + m*D_k)*K/(2*rho))  # exact split of a round
    sigma_1: sqrt(D_k*(D0 + m*D_k)*K/(2*rho))  # exact split of a round
    lam: Max(Ltil, Phi**((2 - kappa)/kappa)/(8*gamma**2)); printed Ltil  # Algorithm 2, line 4
    T_prox: Max(8, 64*F0**((kappa - 2)/kappa)*gamma**2*Ltil)*log(R); printed (1 + 32*F0**((kappa -
        2)/kappa)*gamma**2*Ltil)*log(R); up  # Algorithm 2, line 1
    y: Phi**((2 - kappa)/kappa)/(32*lam*gamma**2)  # Algorithm 2
    level_prox: (8*sqrt(A)*gamma*L0*X*sqrt(T*Lam))**kappa  # Algorithm 2, floor
    T_in: n**2*rho*ell_in**2/d; up  # Theorem 9
    sigma_in: sqrt(2*(T - 1)/rho)*L0/n; printed 2*L0*sqrt(T/rho)/n  # Theorem 9
    eta_in: 2/(Ltil*(t + 1)); printed 1/(Ltil*t)  # Algorithm 4, line 3, and Theorem 9
    sigma_norm: L0/(sqrt(n)*rho**(1/4))  # Algorithm 3, line 3
    floor_t: 2*L0/(n*sqrt(rho))  # Algorithm 3, line 4
    sigma_t: N_t/sqrt(d*ell)  # Algorithm 3, line 4
    charge: D0**2/(2*sigma_t**2); printed L0**2*d*ell/(n**2*N_t**2)  # Algorithm 3, line 6
    main_term: F0**((2 - kappa)/(4 - kappa))*(gamma*L0*sqrt(d*ell*p_max)/(n*sqrt(rho)))**(2*kappa/(4
        - kappa)); printed (gamma*L0*sqrt(d*ell*p_max)/(n*sqrt(rho)))**(2*kappa/(4 - kappa))  #
        Theorem 4, first term
    Delta: (L0*sqrt(d)/(n*epsilon))**(tau/(tau - 1)); printed L0*sqrt(d)/(n*epsilon)  # Theorem 6
    """
)
