"""Symbols and quantities of the paper, and what several of its files use."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary

GRADIENT = {"loss": 1, "parameter": -1}

QUANTITIES = (
    Quantity("n", "records per client", range="[1, oo)"),
    Quantity("m", "clients", range="[1, oo)"),
    Quantity("d", "dimension", range="[1, oo)"),
    Quantity("epsilon", "target epsilon"),
    Quantity("G", "Lipschitz constant", GRADIENT),
    Quantity("M", "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity("rho", "Lipschitz constant of the Hessian", {"loss": 1, "parameter": -3}),
    Quantity("U", "initial gap", {"loss": 1}),
    Quantity("psi", "size of the oracle's error", GRADIENT),
    Quantity("r", "noise per coordinate", GRADIENT),
    Quantity("kappa", "drift after which the oracle refreshes", {"parameter": 2}),
    Quantity("mu", "logarithmic factor", range="[1, oo)"),
    Quantity("s", "absolute constant"),
    Quantity("C", "absolute constant"),
    Quantity("omega", "failure probability", range="(0, 1)"),
    Quantity("T", "oracle calls", range="[1, oo)"),
    *auxiliary("A L Lam N c g t u v w x z"),
)


def drift_window(calls: int) -> bool:
    """The drift tested at call t ends with x_{t-1} - x_{t-2}."""
    moves = [k * k for k in range(1, calls + 1)]
    tested = sum(moves[: calls - 1])
    return tested == sum(k * k for k in range(1, calls))
