"""Claims of the paper: escape."""

from __future__ import annotations

from sympy import gamma as gamma_function
from sympy import log, pi, sqrt

from dpcal.calibrate.auditing.language import Bound, Claim, Definition, Identity, Units
from dpcal.calibrate.schedules.dp_rgda.quantities import (
    _R,
    F0,
    D,
    D_bar,
    L,
    L_Phi,
    R,
    alpha,
    alpha_h,
    d,
    delta2,
    eta,
    eta_h,
    g,
    iota,
    r0,
    rho,
    rho_phi,
    t_thres,
    u,
    x,
)

ESCAPE: tuple[Claim, ...] = (
    Identity(
        "X02",
        u * ((1 + u * g) ** 4 - 1) / (u * g),
        ((1 + u * g) ** 4 - 1) / g,
        statement="the escape step cancels in the accumulated error (four steps)",
    ),
    Identity(
        "X05",
        _R(3, 2) * eta_h * t_thres * rho_phi * R,
        _R(1, 4),
        free=(eta_h,),
        statement="Hessian drift of a phase",
    ),
    Definition("X10", alpha_h, sqrt(rho_phi) * sqrt(alpha), statement="curvature threshold"),
    Identity(
        "X11",
        D_bar,
        (eta_h * alpha / (192 * iota**2)) ** 2,
        free=(eta_h,),
        statement="allowed movement of a phase",
    ),
    Identity(
        "X12",
        F0 * sqrt(rho) / alpha ** _R(3, 2) * (L / sqrt(rho * alpha)),
        F0 * L / alpha**2,
        statement="escapes times length has the order of the descent",
    ),
    Identity(
        "X13",
        eta * (alpha - alpha / 4) - L_Phi * eta**2 / 2,
        eta * alpha / 2,
        statement="descent of a normalized step",
    ),
    Identity("X14", r0 * sqrt(d) / delta2, R / 2, statement="coupling gap and radius"),
    Bound("X15", eta_h * L_Phi, 1, statement="escape step is stable"),
    Identity("X15.cap", eta_h * L_Phi, 1, statement="escape step at its cap"),
    Identity("X16", t_thres * eta_h * alpha_h, 4 * iota, free=(eta_h,), statement="phase length"),
    Bound(
        "X17",
        x / 2,
        log(1 + x),
        on={x: (_R(1, 100), 1)},
        statement="log(1 + x) >= x/2, growth of a phase",
    ),
    Bound(
        "X08",
        gamma_function(D / 2 + 1) / (sqrt(pi) * gamma_function((D + 1) / 2) * sqrt(D)),
        1,
        on={D: (1, 64)},
        statement="volume ratio of neighboring dimensions, d up to 64",
    ),
    Units("X18.R", R, {"parameter": 1}, statement="escape radius"),
    Units("X18.eta", eta_h, {"parameter": 2, "loss": -1}, statement="escape step"),
    Units("X18.D", D_bar, {"parameter": 2}, statement="allowed squared movement"),
    Units("X18.t", t_thres, {}, statement="phase length"),
)
