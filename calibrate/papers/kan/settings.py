"""Symbols of the paper, and its settings as printed and as corrected."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary, settings_of

QUANTITIES = (
    Quantity("n", "number of records", range="[1, oo)", whole=True),
    Quantity("d", "input dimension", range="[1, oo)", whole=True),
    Quantity("B", "batch size", range="[1, oo)", whole=True),
    Quantity("T", "steps", range="[1, oo)", whole=True),
    Quantity("epsilon", "target epsilon"),
    Quantity("Lam", "log(1/delta)"),
    Quantity("gamma", "margin, a public number", range="(0, 1]"),
    Quantity("lam", "correlation of the noise", range="(0, 1)"),
    Quantity("r", "sampling rate B/n", range="(0, 1]"),
    Quantity("growth_sq", "squared bound on the row sums"),
    Quantity("relation", "1 for zero-out, 2 for replace-one", range="[1, 2]"),
    *auxiliary("C D G L beta c ell eta j kappa m nu order p q rho t u v w x y"),
    *auxiliary("De U Ws Wt Z Zp gr", range="(-oo, oo)"),
)

SETTINGS = settings_of(
    """
    growth_sq: ((1 - lam**T)/(1 - lam))**2  # Lemma F.11, squared
    taus: r*T + sqrt(3*r*T*log(2) + 3*r*T*Lam)  # Lemma F.10
    kappa_sq: 2*relation**2*growth_sq*taus*(log(5/2) + Lam)/epsilon**2; printed
        8*growth_sq*taus*(log(5/2) + Lam)/epsilon**2  # Theorem F.12
    T55: sqrt(n)/gamma; up  # Corollary 5.5
    B55: Min(n, Max(gamma*sqrt(n), n*sqrt(epsilon/T55))); printed gamma*sqrt(n); up  # Corollary 5.5
    eta55: Min(1, gamma**2*sqrt(n)*epsilon/sqrt(d))  # Corollary 5.5
    m55: gamma**(-4); up  # Corollary 5.5
    T53: Min(sqrt(n)/gamma, n*epsilon*gamma/sqrt(d)); printed Min(sqrt(n)/gamma,
        n*epsilon*gamma**2/sqrt(d)); up  # Corollary 5.3
    m53: gamma**(-4); printed gamma**(-6); up  # Corollary 5.3
    delta56: 1/n; printed 1/(gamma*n)  # Corollary 5.6
    T56: n**2/(gamma**2*B); up  # Corollary 5.6
    eta56: B/n  # Corollary 5.6
    """
)
