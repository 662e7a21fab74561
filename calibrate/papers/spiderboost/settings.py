"""Symbols of the paper, and its settings as printed and as corrected."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary, settings_of

QUANTITIES = (
    Quantity("n", "number of records", range="[1, oo)", whole=True),
    Quantity("d", "dimension", range="[1, oo)", whole=True),
    Quantity("epsilon", "target epsilon"),
    Quantity("Lam", "log(1/delta)"),
    Quantity("F0", "public bound on the initial gap", {"gradient": 1, "parameter": 1}),
    Quantity("L0", "Lipschitz constant", {"gradient": 1}),
    Quantity("L1", "smoothness constant", {"gradient": 1, "parameter": -1}),
    Quantity("W", "bound on the norm of the minimizer", {"parameter": 1}),
    Quantity("D", "depth of the tree", range="[1, oo)", whole=True),
    Quantity("K_t", "inner steps", range="[1, oo)", whole=True),
    Quantity("T", "rounds of Algorithm 1 or 2", whole=True),
    Quantity("rounds", "rounds of Algorithm 3", range="[1, oo)", whole=True),
    Quantity("k", "embedding dimension", range="[1, oo)", whole=True),
    Quantity("kappa", "common scale of the noise multipliers"),
    *auxiliary("B Ct G N R_t Xn alphat depth ell eta_t j m move mu_t p r rank tau1 tau2 u v x z"),
    *auxiliary("A w", range="(-oo, oo)"),
)

SETTINGS = settings_of(
    """
    abar: sqrt(d*Lam)/(n*epsilon)  # rate variable
    T1: (F0*L1)**(1/3)*L0**(-2*(1/3))*abar**(-4*(1/3)); printed
        ((F0*L1)**(1/4)/sqrt(L0*abar))**(4*(1/3))  # Theorem 9, first branch of T, and its proof
    T: Max(T1, 1/abar); up  # Theorem 9
    q: 1/(2*T*abar**2); printed n**2*epsilon**2/(L1**2*T*d*Lam); down  # Theorem 9
    b1: n; up  # Theorem 9
    b2: Min(n, Max(1/(T*abar**2), n/sqrt(T))); printed
        Max((L0*n*epsilon/sqrt(F0*L1*d*Lam))**(2*(1/3)),
        (L0*n*d*Lam)**(1/3)/((L1*F0)**(1/6)*epsilon**(2*(1/3)))); up  # Theorem 9
    eta: 1/(2*L1)  # Theorem 9
    sigma1: L0/b1*kappa*sqrt(Max(1, b1**2*T/(q*n**2))); printed L0*kappa*Max(1/b1,
        sqrt(T)/sqrt(q*n))  # Algorithm 1, line 2
    sigma2: L1/b2*kappa*Max(1, b2*sqrt(T)/n)  # Algorithm 1, line 3
    cap2: 2*L0/b2*kappa*Max(1, b2*sqrt(T)/n)  # Algorithm 1, line 4
    tau1_sq: d*sigma1**2; printed L0**2/b1 + L0**2*sigma1**2  # Section 3.1
    tau2_sq: L1**2/b2 + d*sigma2**2; printed L1**2/b2**2 + d*sigma2**2  # Theorem 9, proof
    b: sqrt(Max(n**(4*(1/3)), n*sqrt(d + 1)/epsilon)); printed Max(n**(2*(1/3)),
        sqrt(n*d**(1/4))/sqrt(epsilon))  # Theorem 4
    alpha: L0*sqrt(2*Max(1/b, (d + 1)/(b*epsilon)**2)); printed L0*sqrt(2*Max(1/b,
        d/(b*epsilon)**2))  # Theorem 4, in terms of b
    beta: alpha*sqrt(Min(1, b*epsilon**2/(d + 1))); printed alpha*Min(1, sqrt(b*epsilon)/sqrt(d))  #
        Theorem 4
    lam: L0**2/(L1*W**2)*Min(1/n, d/(n*epsilon)**2); printed L0**2/(L1*W)*Min(1/n, d/(n*epsilon)**2)
        # Theorem 5.1
    sigma_t: 8*L0*rounds*sqrt(K_t*Lam)/(n*epsilon); printed 8*L0*K_t*sqrt(Lam)/(n*epsilon)  #
        Theorem 5
    """
)
