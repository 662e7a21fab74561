"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from sympy import Rational

from dpcal.calibrate.auditing.language import Quantity, positive

n, m, d, epsilon, G, M, U, rho, psi, kappa = positive("n m d epsilon G M U rho psi kappa")

s, C, c, mu, iota, chi, alpha, eta, Gamma, R = positive("s C c mu iota chi alpha eta Gamma R")

Phi, b1, b2, T, Q, saddles, omega, r, g, z = positive("Phi b1 b2 T Q saddles omega r g z")

k13, k24, k14, k23, a13, a24, a14, a23 = positive("k13 k24 k14 k23 a13 a24 a14 a23")

e1, e2, e3, e4 = positive("e1 e2 e3 e4")

x, u, v, w, L, A, N, t, Lam = positive("x u v w L A N t Lam")

HALF = Rational(1, 2)

GRADIENT = {"loss": 1, "parameter": -1}

QUANTITIES = (
    Quantity(n, "records per client"),
    Quantity(m, "clients"),
    Quantity(d, "dimension"),
    Quantity(epsilon, "target epsilon"),
    Quantity(G, "Lipschitz constant", GRADIENT),
    Quantity(M, "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity(rho, "Lipschitz constant of the Hessian", {"loss": 1, "parameter": -3}),
    Quantity(U, "initial gap", {"loss": 1}),
    Quantity(psi, "size of the oracle's error", GRADIENT),
    Quantity(r, "noise per coordinate", GRADIENT),
    Quantity(kappa, "drift after which the oracle refreshes", {"parameter": 2}),
    Quantity(mu, "logarithmic factor"),
    Quantity(s, "absolute constant"),
    Quantity(C, "absolute constant"),
    Quantity(omega, "failure probability"),
    Quantity(T, "oracle calls"),
)

TO = Rational


def drift_window(calls: int) -> bool:
    """The drift tested at call t ends with x_{t-1} - x_{t-2}."""
    moves = [k * k for k in range(1, calls + 1)]
    tested = sum(moves[: calls - 1])
    return tested == sum(k * k for k in range(1, calls))
