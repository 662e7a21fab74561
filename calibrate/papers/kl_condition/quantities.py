"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary

QUANTITIES = (
    Quantity("tau", "growth exponent of the lower bound", range="(1, oo)"),
    Quantity("n", "number of records", range="[1, oo)"),
    Quantity("d", "dimension", range="[1, oo)"),
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
    Quantity("m", "gradient differences released in a round", range="[0, oo)"),
    Quantity("K", "number of rounds"),
    Quantity("T", "number of steps"),
    Quantity("t", "index of a step"),
    Quantity("ell", "logarithmic factor"),
    Quantity("ell_in", "logarithmic factor"),
    Quantity("Lam", "logarithmic factor"),
    Quantity("A", "constant of the inner solver"),
    Quantity("N_t", "noisy gradient norm", {"loss": 1, "parameter": -1}),
    Quantity("s_n", "bound on the norm noise", {"loss": 1, "parameter": -1}),
    Quantity("p_max", "number of phases"),
    *auxiliary("D Delta G J N Nz Phi_before W epsilon r rho_sel s u v x"),
    *auxiliary("inner noise w", range="(-oo, oo)"),
)
