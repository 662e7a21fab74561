"""Claims of the paper: privacy."""

from __future__ import annotations

from sympy import diff, exp, log

from dpcal.calibrate.auditing.language import Definition, Identity
from dpcal.calibrate.schedules.kan.quantities import (
    HALF,
    B,
    Lam,
    R,
    T,
    epsilon,
    growth_sq,
    kappa,
    kappa_sq,
    n,
    order,
    q,
    r,
    relation,
    taus,
    u,
    x,
)

_order = 1 + 2 * Lam / epsilon

PRIVACY = (
    Identity(
        "I11",
        8 * order * T * B**2 / (n**2 * u),
        epsilon / 2,
        at={
            order: _order,
            u: 16 * B**2 * T / (n**2 * epsilon) + 32 * B**2 * T * Lam / (n**2 * epsilon**2),
        },
        statement="algebra of D.9, given 8",
    ),
    Identity("I12", Lam / (order - 1), epsilon / 2, at={order: _order}, statement="conversion"),
    Identity(
        "I13",
        diff(4 * (exp(4 * x) - 1), x),
        16 * exp(4 * x),
        statement="first coefficient of the amplification bound at x = 1/kappa^2",
    ),
    Identity(
        "I13.eight",
        1 / (order - 1) * q**2 * order * (order - 1) / 2 * 16 / kappa**2,
        8 * order * q**2 / kappa**2,
        statement="where the 8 comes from",
    ),
    Identity(
        "I14",
        (u / (r * T)) * r * T / 3,
        Lam + log(2),
        at={u: 3 * (Lam + log(2))},
        statement="Chernoff exponent",
    ),
    Identity(
        "I14.tau",
        (taus - r * T) ** 2,
        3 * r * T * (Lam + log(2)),
        statement="deviation of the participations",
    ),
    Definition(
        "I15",
        kappa_sq,
        2 * (relation * growth_sq**HALF) ** 2 * taus * (log(R(5, 2)) + Lam) / epsilon**2,
        free=(growth_sq, taus),
        statement="classical Gaussian noise at sensitivity relation g sqrt(tau)",
    ),
    Identity(
        "I15.zero",
        kappa_sq * epsilon**2 / (growth_sq * taus * log(R(5, 2)) + growth_sq * taus * Lam),
        2,
        at={relation: 1},
        free=(growth_sq, taus),
        statement="constant 2 under zero-out",
    ),
    Identity(
        "I15.replace",
        kappa_sq * epsilon**2 / (growth_sq * taus * log(R(5, 2)) + growth_sq * taus * Lam),
        8,
        at={relation: 2},
        free=(growth_sq, taus),
        statement="constant 8 under replace-one",
    ),
    Identity("I36", 8 * r * T * Lam / (32 * r**2 * T * Lam), 1 / (4 * r), statement="no r^2"),
)
