"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from sympy import Rational

from dpcal.calibrate.auditing.language import Quantity, positive, real

n, d, epsilon, ell, ell1, F0, L, M, mu, rho, K = positive("n d epsilon ell ell1 F0 L M mu rho K")

eb, rr, T1, T, q, S1, S2, eta, B1_sq, B2_sq = positive("eb rr T1 T q S1 S2 eta B1_sq B2_sq")

sigma_v, sigma_u, C1, C2, z, z1, z2, multiplier = positive(
    "sigma_v sigma_u C1 C2 z z1 z2 multiplier"
)

alpha, alpha_h, eta_h, iota, R, r, r0, t_thres, D_bar = positive(
    "alpha alpha_h eta_h iota R r r0 t_thres D_bar"
)

L_Phi, rho_phi, delta2, kappa, C, lam, m = positive("L_Phi rho_phi delta2 kappa C lam m")

T_pop, q_pop, S1_pop, S2_pop = positive("T_pop q_pop S1_pop S2_pop")

x, u, v, w, g, k, th, dx, ga, t, nu, D = positive("x u v w g k th dx ga t nu D")

p, y = real("p y")

HALF = Rational(1, 2)

_R = Rational

GRADIENT = {"loss": 1, "parameter": -1}

QUANTITIES = (
    Quantity(n, "number of records"),
    Quantity(d, "dimension of the joint release, d1 + d2"),
    Quantity(epsilon, "target epsilon"),
    Quantity(ell, "log(1/delta)"),
    Quantity(F0, "initial gap of the value function", {"loss": 1}),
    Quantity(L, "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity(M, "Lipschitz constant", GRADIENT),
    Quantity(L_Phi, "smoothness of the value function", {"loss": 1, "parameter": -2}),
    Quantity(rho_phi, "Hessian Lipschitz constant", {"loss": 1, "parameter": -3}),
    Quantity(alpha, "target accuracy", GRADIENT),
    Quantity(K, "inner steps"),
    Quantity(iota, "logarithmic factor"),
    Quantity(multiplier, "noise multiplier"),
    Quantity(eb, "rate variable"),
    Quantity(T, "outer iterations"),
    Quantity(q, "refresh period"),
)

U = 3 * th + 6 * L**2 * dx
