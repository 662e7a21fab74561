"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary

QUANTITIES = (
    Quantity("n", "number of records", range="[1, oo)"),
    Quantity("d", "dimension", range="[1, oo)"),
    Quantity("epsilon", "target epsilon"),
    Quantity("Lam", "log(1/delta)"),
    Quantity("F0", "public bound on the initial gap", {"gradient": 1, "parameter": 1}),
    Quantity("L0", "Lipschitz constant", {"gradient": 1}),
    Quantity("L1", "smoothness constant", {"gradient": 1, "parameter": -1}),
    Quantity("W", "bound on the norm of the minimizer", {"parameter": 1}),
    Quantity("D", "depth of the tree", range="[1, oo)"),
    Quantity("K_t", "inner steps", range="[1, oo)"),
    Quantity("T", "rounds of Algorithm 1 or 2"),
    Quantity("rounds", "rounds of Algorithm 3", range="[1, oo)"),
    Quantity("k", "embedding dimension", range="[1, oo)"),
    Quantity("kappa", "common scale of the noise multipliers"),
    *auxiliary(
        "B Ct G N R_t Xn alphat depth ell eta_t j lam_1 m move mu_t p r rank tau1 tau2 u v x z"
    ),
    *auxiliary("A w", range="(-oo, oo)"),
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
