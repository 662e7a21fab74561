r"""How rarely is an output unlikely with the record, without draws? Log-likelihoods are convex.

Adding a record costs delta(eps) = E_Q (1 - e^eps L)_+. With f = log L, Q Gaussian with covariance
sigma^2 I, and participations that are independent, three facts bound it.

1. f is convex in the output x. By the variational formula of Boue and Dupuis (1998),
   -log E e^(-p f) is the least ``E[p f(B + v) + |v|^2 / 2]`` over adapted drifts v, and f(B + v) is
   at least f(B) + <grad f(B), v>. What is left is quadratic in v, and its least value is
   -p^2 Var(f) / 2, because f(B) - E f is the integral of ``E[grad f(B) | F_s]``:

       E_Q L^(-p) <= exp(-p E f + p^2 Var(f) / 2),    Var(f) <= sigma^2 E |grad f|^2 (Poincare).

2. ``sigma^2 grad f = C E[y | x]``. Given x and the other rounds, the log-odds of y_t are at most
   logit r_t + h_t, because participations repel each other for C >= 0, so that ``E[y_t | x]`` is at
   most o_t e^(h_t), with odds o_t = r_t / (1 - r_t). With J = C^T C / sigma^2, the mean of
   e^(h_t + h_u) under Q is e^(J_tu), and therefore

       Var(f) <= V = sum_{t,u} o_t o_u J_tu e^(J_tu).

3. -E f = KL(Q || P) is half the integral of ``E |C E[y | x]|^2`` over 1 / sigma^2 from 0 on (Verdu
   2010, Mismatched estimation and relative entropy), so that

       -E f <= K = (1 / 2) sum_{t,u} o_t o_u (e^(J_tu) - 1).

Since (1 - u)_+ <= c u^(-p), c = p^p / (p + 1)^(p + 1), delta(eps) <= c exp(p (K - eps) + p^2 V / 2)
for every p > 0.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(1000, 0.5), noise_multiplier=2 / 0.75**0.5)
>>> bound = LowerTail(mechanism, Poisson(0.01).automaton(1000))
>>> bound.delta(2.0) < 1e-10
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.correlated.bounds.base import Bound, Moments, Proof, normal_moments
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Automaton
from dpcal.accountants.rounding import UNIT

__all__ = ["LowerTail"]

Floats = NDArray[np.float64]

# Relative margin, outward: sums of up to 1e12 numbers >= 0 round by less.
_MARGIN = 1e-9
# Error of a Fourier correlation, in units of its largest entry.
_FOURIER = 1e-13
# Largest logarithm of an exponential that is computed: beyond it the exponential overflows, and
# proves nothing.
_LARGEST = 600.0
# Powers p that are tried; their spacing of a few percent has no visible effect on the bound.
_POWERS = np.geomspace(1e-3, 1e5, 400)


@dataclass(frozen=True, eq=False)
class LowerTail(Bound):
    """Bounds on adding a record by the Gaussian lower tail of a convex log-likelihood.

    Parameters
    ----------
    mechanism
        A mechanism of any kind.
    law
        Law of independent participations.
    """

    mechanism: Mechanism
    law: Automaton

    method: ClassVar[str] = "lower tail of a convex log-likelihood"

    @cached_property
    def _products(self) -> tuple[Floats, Floats]:
        """Entries of J (or bounds on them), and the products of odds that they count with."""
        from scipy.signal import fftconvolve

        self.law.require_independent(f"bound by the {self.method}")
        rates = self.law.rates
        with np.errstate(divide="ignore"):
            odds = rates / (1 - rates)
        column = self.mechanism.column
        if column is None:
            return self.mechanism.gram, np.asarray(odds[:, None] * odds)
        T, c = len(column), column[: self.mechanism.bands]
        # Later columns overlap in fewer rounds: the first columns bound all others.
        products = fftconvolve(c, c[::-1])[len(c) - 1 :]
        products = np.maximum(products, 0.0) + _FOURIER * float(c @ c)
        products[0] = float(c @ c) * (1 + _MARGIN)
        pairs = 2.0 * (T - np.arange(len(c)))
        pairs[0] = T
        weights = np.asarray(pairs * float(odds.max()) ** 2)
        return np.asarray(products / self.mechanism.variance), weights

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Return K and V."""
        J, weights = self._products
        if not np.isfinite(weights).all() or J.max() > _LARGEST:
            return math.inf, math.inf
        mean = float((weights * np.expm1(J)).sum())
        variance = float((weights * J * np.exp(J)).sum())
        return 0.5 * mean * (1 + _MARGIN), variance * (1 + _MARGIN)

    def log_delta(self, epsilon: float) -> Proof:
        """Return a bound on the logarithm of delta at an epsilon >= 0."""
        mean, variance = self._moments
        if math.isinf(mean):
            return Proof(0.0, self.method)
        p = _POWERS
        exponents = p * (mean - epsilon) + 0.5 * p * p * variance
        exponents += p * np.log(p) - (p + 1) * np.log1p(p)
        return Proof(min(0.0, float(exponents.min()) * (1 - 1e-12) + 1e-12), self.method)

    def moments(self, c: float, direction: str) -> Moments:
        """Return a bound on log M(c) of adding a record: on E_Q L^(-c)."""
        mean, variance = self._moments
        known = direction == "add" and math.isfinite(mean)
        return normal_moments([(mean, math.sqrt(variance) * (1 + UNIT))] if known else (), c)
