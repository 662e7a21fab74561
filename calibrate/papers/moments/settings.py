"""Symbols of the paper, and its settings as printed and as corrected."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary, settings_of

QUANTITIES = (
    Quantity("T", "steps", range="[1, oo)", whole=True),
    Quantity("N", "records", range="[1, oo)", whole=True),
    Quantity("q", "sampling probability L/N", range="(0, 1)"),
    Quantity("epsilon", "target epsilon"),
    Quantity("Lam", "log(1/delta)"),
    Quantity("C", "clip of a gradient", {"loss": 1, "parameter": -1}),
    Quantity("eta", "learning rate", {"loss": -1, "parameter": 2}),
    Quantity("lam", "order of a moment", range="[1, oo)", whole=True),
    Quantity("s", "noise multiplier of Lemma 3", range="[1, oo)"),
    Quantity("u", "1/s^2", range="(0, 1]"),
    Quantity("z", "an output along the changed gradient", range="(-oo, oo)"),
    Quantity("c1", "constant of Theorem 1"),
    Quantity("c2", "constant of Theorem 1"),
    Quantity("e", "epsilon of one step on a known lot"),
    Quantity("share", "part of delta for the steps", range="[1/1000, 999/1000]"),
    *auxiliary("A S x y"),
)

SETTINGS = settings_of(
    """
    sigma: c2*q*sqrt(T*Lam)/epsilon  # Theorem 1
    order: 2*Lam/epsilon  # Theorem 1, proof
    alpha: 32/15*T*q**2*lam**2/s**2; printed T*q**2*lam**2/s**2  # Theorem 1, proof
    textbook: 5/4*exp(-(x*e)**2/2); printed 4/5*exp(-(x*e)**2/2)  # Section 2.1
    lot: q*N  # Algorithm 1, input
    once: sqrt(2*log(5/4*100*100000/share))/4  # Section 3.1, example: one step on its lot
    step: log(99/100 + 1/100*exp(once)); printed once/100  # Section 3.1, example: one step
    """
)
