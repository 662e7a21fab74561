r"""What does Theorem 1 promise once its own settings are put into it? A fixed point, in numbers.

The schedule is implicit: the threshold needs the error, the error needs batches, these need the
number of calls, which needs the threshold. Corrected (errata E1 to E5, E16 to E18), with iota = s
mu and the two absolute constants s and C left open:

    chi = 4 sqrt(C) s^(3/2) mu^(5/2) psi,  alpha = 4 chi,  eta = sqrt(rho alpha) / (M^2 iota^3)
    Gamma = iota / (s eta sqrt(rho alpha)),  R = iota^(-3/2) sqrt(alpha / rho)
    Phi = s / (8 iota^4) sqrt(alpha^3 / rho),  saddles = U / Phi,  Q = ln(saddles / omega) / ln(8/7)
    calls = Q (U s^3 mu^5 / (2 chi^2 eta) + Gamma) + saddles + 1

and half of the records for fresh gradients, half for differences. kappa is the one with the least
error. Even at s = C = 1 the logarithms ask for more records than there are; the proof's own s is
above 50,000:

>>> at = solved(G=1.0, M=1.0, rho=1.0, U=1.0, d=10, m=1, z=8.45, n=1e6)
>>> at.converged, at.vacuous
(True, True)
>>> solved(G=1.0, M=1.0, rho=1.0, U=1.0, d=10, m=1, z=8.45, n=1e40).vacuous
False
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpcal._roots import minimum

__all__ = ["FixedPoint", "solved"]

# Largest number of rounds of the fixed point, with steps halved in logarithms; about 60 suffice.
_ROUNDS = 1000
# Change of the logarithm of a step at which the fixed point has settled.
_SETTLED = 1e-9
# Steps of a golden section in the logarithm of kappa, over 1e-40 to 1e10 in relative units.
_SECTIONS = 90


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """The settings of Theorem 1 where they agree with each other; letters as in the module."""

    problem: Mapping[str, Any]
    n: float
    alpha: float
    mu: float
    psi: float
    eta: float
    kappa: float
    b1: float
    b2: float
    steps: float
    rounds: float
    radius: float
    calls: float
    converged: bool

    @property
    def vacuous_gradient(self) -> bool:
        """Whether every point passes the gradient's test: alpha >= G."""
        return bool(self.alpha >= self.problem["G"])

    @property
    def vacuous_hessian(self) -> bool:
        """Whether every point passes the Hessian's test: rho alpha > M^2."""
        return bool(self.problem["rho"] * self.alpha > self.problem["M"] ** 2)

    @property
    def vacuous(self) -> bool:
        """Whether the theorem says nothing."""
        return self.vacuous_gradient or self.vacuous_hessian

    @property
    def infeasible(self) -> bool:
        """Whether a batch would hold less than one record, or more than there are."""
        return min(self.b1, self.b2) < 1 or max(self.b1, self.b2) > self.n

    def at_size(self, n: float) -> FixedPoint:
        """Return the fixed point of the problem with ``n`` >= 1 records in each silo."""
        return solved(**self.problem, n=n)


def solved(
    *,
    G: float,
    M: float,
    rho: float,
    U: float,
    d: int,
    m: int,
    z: float,
    n: float,
    omega: float = 0.05,
    s: float = 1.0,
    C: float = 1.0,
) -> FixedPoint:
    """Solve the settings for their fixed point, from alpha = G and mu = 1.

    Parameters
    ----------
    G, M, rho, U
        Lipschitz constants of loss, gradient and Hessian, and the initial gap; > 0.
    d, m, n
        Parameters, silos, records of a silo.
    z
        Noise multiplier, in units of one record's contribution.
    omega
        Failure probability in (0, 1), split evenly over its three parts.
    s, C
        The absolute constants.
    """
    share = omega / 3
    log_alpha, mu, log_calls = math.log(G), 1.0, math.log(max(n, 2.0))
    change = math.inf
    for _ in range(_ROUNDS):
        alpha = math.exp(log_alpha)
        eta, Gamma, saddles, Q, calls = _path((M, rho, U, s, share), alpha=alpha, mu=mu)
        log_calls += (math.log(calls) - log_calls) / 2
        kappa, psi, r, b1, b2 = _least_error(
            (G, M, U, d, m, z, n), eta=eta, chi=alpha / 4, calls=math.exp(log_calls)
        )
        wanted = _log_factor(
            (M, rho, d, s, C, share), mu=mu, psi=psi, r=r, eta=eta, calls=calls, saddles=saddles
        )
        target = math.log(16 * math.sqrt(C) * s**1.5 * wanted**2.5 * psi)
        change = max(abs(target - log_alpha), abs(math.log(wanted / mu)))
        log_alpha += (target - log_alpha) / 2
        mu = math.sqrt(mu * wanted)
        if change < _SETTLED:
            break
    return FixedPoint(
        problem={"G": G, "M": M, "rho": rho, "U": U, "d": d, "m": m, "z": z}
        | {"omega": omega, "s": s, "C": C},
        n=n,
        alpha=alpha,
        mu=mu,
        psi=psi,
        eta=eta,
        kappa=kappa,
        b1=b1,
        b2=b2,
        steps=Gamma,
        rounds=Q,
        radius=(s * mu) ** -1.5 * math.sqrt(alpha / rho),
        calls=calls,
        converged=change < 1e-6,
    )


def _path(
    constants: tuple[float, float, float, float, float], *, alpha: float, mu: float
) -> tuple[float, float, float, float, float]:
    """Return eta, Gamma, the number of saddle points, Q, and the number of calls."""
    M, rho, U, s, share = constants
    iota = s * mu
    eta = min(math.sqrt(rho * alpha) / (M**2 * iota**3), 1 / M)
    Gamma = iota / (s * eta * math.sqrt(rho * alpha))
    saddles = max(1.0, U * 8 * iota**4 / s * math.sqrt(rho / alpha**3))
    Q = max(1.0, math.log(saddles / share) / math.log(8 / 7))
    effective = U * s**3 * mu**5 / (2 * (alpha / 4) ** 2 * eta)
    return eta, Gamma, saddles, Q, Q * (effective + Gamma) + saddles + 1


def _least_error(
    problem: tuple[float, float, float, int, int, float, float],
    *,
    eta: float,
    chi: float,
    calls: float,
) -> tuple[float, float, float, float, float]:
    """Return kappa with the least error, that error, its noise, and both batches."""
    G, M, U, d, m, z, n = problem
    b2 = n / (2 * calls)
    # Thousands of values of kappa are tried: what they share is computed once.
    moved, G2, M2, z2, change = U + 0.75 * calls * eta * chi**2, G**2, M**2, z**2, M / b2

    def at(log_kappa: float) -> tuple[float, float, float, float, float]:
        kappa = math.exp(log_kappa)
        b1 = n / (2 * (1 + 6 * eta / kappa * moved))
        spread = 4 * (G2 / b1 + M2 * kappa / b2) / m
        # Products, for they become infinite where powers of floats raise an error.
        fresh = G / b1
        noise = z2 * (fresh * fresh + kappa * change * change) / m
        return kappa, math.sqrt(spread + d * noise), math.sqrt(noise), b1, b2

    scale = math.log((G / M) ** 2)
    return at(minimum(lambda x: at(x)[1], scale - 92, scale + 23, sections=_SECTIONS))


def _log_factor(
    constants: tuple[float, float, int, float, float, float],
    *,
    mu: float,
    psi: float,
    r: float,
    eta: float,
    calls: float,
    saddles: float,
) -> float:
    """Return the next mu: the largest of the five entries that the proof asks for."""
    M, rho, d, s, C, share = constants
    inner = math.log(max(math.e, 8 * C**0.25 * math.sqrt(psi / rho) / (s**0.75 * eta * r)))
    outer = 9 * d * inner / (C**0.25 * s**0.75 * eta * math.sqrt(rho * psi))
    growth = 160 * math.sqrt(2) * C**0.25 * s**0.75 * mu**1.25 * M * math.sqrt(psi / rho) / r
    return max(
        math.log(outer) / s,
        math.log2(growth),
        math.pow(C * math.log(2 * calls / share) / (8 * s**3), 0.2),
        math.log(2 * saddles / share) / s,
        1.0,
    )
