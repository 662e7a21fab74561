"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from fractions import Fraction

from sympy import Max, Rational

from dpcal.calibrate.auditing.language import Quantity, positive, real

n, d, epsilon, Lam, F0, L0, L1, W = positive("n d epsilon Lam F0 L0 L1 W")

abar, T1, T, q, b1, b2, eta = positive("abar T1 T q b1 b2 eta")

sigma1, sigma2, cap2, tau1_sq, tau2_sq = positive("sigma1 sigma2 cap2 tau1_sq tau2_sq")

kappa, move, x, u, v, r = positive("kappa move x u v r")

b, D, depth, beta, alpha, alphat, Ct, p, ell, z = positive("b D depth beta alpha alphat Ct p ell z")

m, k, K_t, lam, lam_1, eta_t, sigma_t, R_t, mu_t, j = positive(
    "m k K_t lam lam_1 eta_t sigma_t R_t mu_t j"
)

N, rank, Xn, B, G, tau1, tau2 = positive("N rank Xn B G tau1 tau2")

w, A = real("w A")

HALF = Rational(1, 2)

THIRD = Rational(1, 3)

QUANTITIES = (
    Quantity(n, "number of records"),
    Quantity(d, "dimension"),
    Quantity(epsilon, "target epsilon"),
    Quantity(Lam, "log(1/delta)"),
    Quantity(F0, "public bound on the initial gap", {"gradient": 1, "parameter": 1}),
    Quantity(L0, "Lipschitz constant", {"gradient": 1}),
    Quantity(L1, "smoothness constant", {"gradient": 1, "parameter": -1}),
    Quantity(W, "bound on the norm of the minimizer", {"parameter": 1}),
    Quantity(D, "depth of the tree"),
    Quantity(K_t, "inner steps"),
    Quantity(T, "rounds"),
    Quantity(k, "embedding dimension"),
    Quantity(kappa, "common scale of the noise multipliers"),
)


def depth_first(depth: int) -> list[str]:
    """Return the labels of a binary tree in depth-first order, without the root."""

    def visit(label: str) -> list[str]:
        here = [label] if label else []
        return here if len(label) == depth else here + visit(label + "0") + visit(label + "1")

    return visit("")


def floored_depth(size: int) -> bool:
    """The largest D with D 2^(D + 1) <= b keeps D 2^D/b <= 1/2."""
    depth = max(k for k in range(1, 30) if k * 2 ** (k + 1) <= size)
    return Fraction(depth * 2**depth, size) <= FRACTION_HALF


FRACTION_HALF = Fraction(1, 2)

_FIRST = {T: T1}

LATE = {d: b * epsilon**2 * (1 + x) - 1}

LEMMA5 = (L0**2 / b + beta**2 / 2) * Max(1, (d + 1) / (b * epsilon**2))

kap = x  # condition number of a subproblem
