"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary

GRADIENT = {"loss": 1, "parameter": -1}

QUANTITIES = (
    Quantity("n", "number of records", range="[1, oo)"),
    Quantity("d", "dimension of the joint release, d1 + d2", range="[1, oo)"),
    Quantity("epsilon", "target epsilon"),
    Quantity("ell", "log(1/delta)"),
    Quantity("F0", "initial gap of the value function", {"loss": 1}),
    Quantity("L", "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity("M", "Lipschitz constant", GRADIENT),
    Quantity("L_Phi", "smoothness of the value function", {"loss": 1, "parameter": -2}),
    Quantity("rho_phi", "Hessian Lipschitz constant", {"loss": 1, "parameter": -3}),
    Quantity("alpha", "target accuracy", GRADIENT),
    Quantity("K", "inner steps", range="[1, oo)"),
    Quantity("iota", "logarithmic factor"),
    Quantity("multiplier", "noise multiplier"),
    Quantity("eb", "rate variable"),
    Quantity("T", "outer iterations", range="[1, oo)"),
    Quantity("q", "refresh period"),
    *auxiliary("C C1 C2 D delta2 dx ell1 g ga k kappa lam m mu nu rho rr t th u v w x z z1 z2"),
    *auxiliary("p y", range="(-oo, oo)"),
)
