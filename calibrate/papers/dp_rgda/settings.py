"""Symbols of the paper, and its settings as printed and as corrected."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary, settings_of

GRADIENT = {"loss": 1, "parameter": -1}
QUANTITIES = (
    Quantity("n", "number of records", range="[1, oo)", whole=True),
    Quantity("d", "dimension of the joint release, d1 + d2", range="[1, oo)", whole=True),
    Quantity("epsilon", "target epsilon"),
    Quantity("ell", "log(1/delta)"),
    Quantity("F0", "initial gap of the value function", {"loss": 1}),
    Quantity("L", "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity("M", "Lipschitz constant", GRADIENT),
    Quantity("L_Phi", "smoothness of the value function", {"loss": 1, "parameter": -2}),
    Quantity("rho_phi", "Hessian Lipschitz constant", {"loss": 1, "parameter": -3}),
    Quantity("alpha", "target accuracy", GRADIENT),
    Quantity("K", "inner steps", range="[1, oo)", whole=True),
    Quantity("iota", "logarithmic factor"),
    Quantity("multiplier", "noise multiplier"),
    Quantity("eb", "rate variable"),
    Quantity("T", "outer iterations", range="[1, oo)", whole=True),
    Quantity("q", "refresh period"),
    *auxiliary("C C1 C2 D delta2 dx ell1 g ga j k kappa lam m mu nu rho rr t th u v w x z z1 z2"),
    *auxiliary("p y", range="(-oo, oo)"),
)

SETTINGS = settings_of(
    """
    eb: sqrt(d*ell)/(n*epsilon)  # rate variable
    T1: ((L*F0)**(1/4)/(sqrt(M)*eb))**(4/3)  # Lemma 5
    T: Max(T1, 1/eb); printed Max(T1, n*epsilon/(sqrt(d)*ell)); up  # Lemma 5
    q: 1/(T*eb**2); printed n**2*epsilon**2/(L**2*T*d*ell); down  # Lemma 5
    S1: n; up  # Theorem 1
    S2: Min(n, Max(1/(T*eb**2), n/sqrt(T*K))); printed Max((M*n*epsilon/sqrt(F0*L*d*ell))**(2/3),
        (M*n*d*ell)**(1/3)/(L*F0)**(1/6)); up  # Theorem 1
    eta: alpha/(2*L_Phi); printed 1/(2*L)  # Lemma 5; Algorithm 2, line 6
    B1_sq: M**2*T*eb**2/q; printed T*eb**2/q  # Lemma 5, proof
    B2_sq: L**2*T*eb**2; printed T**2*eb**4  # Lemma 5, proof
    sigma_v: multiplier*2*C1/S1; printed C1*sqrt(ell)/epsilon*Max(1/S1, sqrt(T)/(sqrt(q)*n))  #
        Algorithm 3, line 1
    sigma_u: multiplier*2*C2/S2; printed C2*sqrt(ell)/epsilon*Max(1/S2, sqrt(T)/n)  # Algorithm 3,
        line 2
    alpha_h: sqrt(rho_phi*alpha)  # Definition 4
    R: alpha_h/(24*rho_phi*iota); printed 1/(2*L_Phi*eta_h)  # Lemma 7
    r: R/2; printed R  # Lemma 6
    eta_h: 1/L_Phi; printed r0/(2*alpha**2)  # Lemma 7, escape step at its cap
    r0: delta2*r/sqrt(d)  # Lemma 6
    t_thres: 4*iota/(eta_h*alpha_h); printed 2*iota/eta_h; up  # Lemma 6
    D_bar: ((R - r)/t_thres)**2; printed (R/t_thres)**2  # Lemma 6
    T_pop: 4*L_Phi*F0/alpha**2; up  # one-pass schedule
    S1_pop: rr/alpha; up  # one-pass schedule, privacy dominates
    q_pop: (S1_pop/rr)**(2/3); down  # one-pass schedule
    S2_pop: rr*sqrt(q_pop); up  # one-pass schedule
    """
)
