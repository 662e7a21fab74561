"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from sympy import Rational, log, sqrt

from dpcal.calibrate.auditing.language import Quantity, positive, real

n, d, rho, beta, F0, gamma, kappa, L0, L1, Ltil = positive("n d rho beta F0 gamma kappa L0 L1 Ltil")

X, a, c, R, K, beta_k, level = positive("X a c R K beta_k level")

Phi, Phi_before, T_k, m, h = positive("Phi Phi_before T_k m h")

D0, D_k, D0_ar, D_k_ar = positive("D0 D_k D0_ar D_k_ar")

sigma_hat, sigma_k, sigma_0, sigma_1 = positive("sigma_hat sigma_k sigma_0 sigma_1")

T, t, T_prox, lam, y, level_prox, A, Lam = positive("T t T_prox lam y level_prox A Lam")

T_in, ell_in, sigma_in, eta_in = positive("T_in ell_in sigma_in eta_in")

N, ell, N_t, sigma_t, charge, sigma_norm = positive("N ell N_t sigma_t charge sigma_norm")

s_n, G, s, W, J, p_max, main_term = positive("s_n G s W J p_max main_term")

tau, x, r, D, Delta, epsilon, u, v, Nz, rho_sel = positive("tau x r D Delta epsilon u v Nz rho_sel")

noise, inner, w = real("noise inner w")

HALF = Rational(1, 2)

TO_TWO = {kappa: (1, 2)}

ROOT = Phi ** (1 / kappa)

START = F0 ** (1 / kappa)

LOG = log(1 / beta_k)

GAIN = F0 ** ((2 - kappa) / kappa)

QUANTITIES = (
    Quantity(tau, "growth exponent of the lower bound", range="(1, oo)"),
    Quantity(n, "number of records"),
    Quantity(d, "dimension"),
    Quantity(rho, "zCDP budget"),
    Quantity(beta, "failure probability"),
    Quantity(beta_k, "failure probability of one answer", range="(0, 1)"),
    Quantity(kappa, "KL exponent"),
    Quantity(F0, "public bound on the initial excess risk", {"loss": 1}),
    Quantity(gamma, "KL constant", {"loss": 1 / kappa - 1, "parameter": 1}),
    Quantity(L0, "Lipschitz constant", {"loss": 1, "parameter": -1}),
    Quantity(L1, "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity(Ltil, "weak convexity constant", {"loss": 1, "parameter": -2}),
    Quantity(Phi, "target excess risk of a round", {"loss": 1}),
    Quantity(m, "gradient differences released in a round"),
    Quantity(K, "number of rounds"),
    Quantity(T, "number of steps"),
    Quantity(t, "index of a step"),
    Quantity(ell, "logarithmic factor"),
    Quantity(ell_in, "logarithmic factor"),
    Quantity(Lam, "logarithmic factor"),
    Quantity(A, "constant of the inner solver"),
    Quantity(N_t, "noisy gradient norm", {"loss": 1, "parameter": -1}),
    Quantity(s_n, "bound on the norm noise", {"loss": 1, "parameter": -1}),
    Quantity(p_max, "number of phases"),
)

Y = Phi ** ((2 - kappa) / kappa) / (32 * u * gamma**2)

X05 = 3 * G**2 / (8 * L1) + inner / (4 * L1) - noise / (8 * L1)

_S_AT = {sigma_t: 2 * L0 / (n * sqrt(rho))}
