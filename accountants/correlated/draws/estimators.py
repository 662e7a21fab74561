r"""Which draws estimate delta? Plain ones, and those of balls in bins.

Removing a record costs H(P || Q) = E_P[(1 - e^eps / L)_+], and adding one costs H(Q || P) = E_Q[(1
- e^eps L)_+]. Each estimator draws from a law of its
own and keeps bounds on log L above and below it, from which terms at every epsilon follow: their
mean is at least delta, or at most.

===================== =========================================== ================================
estimator             law                                         range of the terms
===================== =========================================== ================================
``Direct``            P, outputs with the record                  1
``Without``           Q, outputs without the record, for adding   1
``Tilted``            B^q Q / E[B^q], B >= L without overlaps     a Renyi bound of order q
``Bins``              L^q Q / E[L^q], in one dimension a bin      1 for q = 1, or the Renyi bound
===================== =========================================== ================================

>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import Poisson
>>> mechanism = Mechanism.of(LambdaCGD(8, 0.6), noise_multiplier=1.1)
>>> plain = Direct(Likelihood.of(mechanism, Poisson(0.2).automaton(8)))
>>> terms = plain.terms(plain.draw(1000, np.random.default_rng(0)), 0.5)
>>> bool(0 < terms.mean() < terms.max() <= plain.largest(0.5))
True
>>> bins = Bins(np.eye(50), "remove", order=2)
>>> kept = bins.draw(1000, np.random.default_rng(0))
>>> bool(bins.terms(kept, 0.5).max() <= bins.largest(0.5) < 0.2)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpcal.accountants.correlated.bounds.replicas import log_tangent
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import Plain

__all__ = ["Bins", "Direct", "Estimator", "Without"]

Floats = NDArray[np.float64]

# Normals that are drawn at once, 1 MB: more would not fit the cache of a core.
_NOISE_AT_ONCE = 2**17


# Above this logarithm a range is useless, and its exponential would overflow.
_HOPELESS = 600.0


def _rising(log_l: Floats, epsilon: float) -> Floats:
    """Return (1 - e^(epsilon - l))_+."""
    return np.where(log_l > epsilon, -np.expm1(np.minimum(epsilon - log_l, 0.0)), 0.0)


class Estimator(Plain):
    """Draws from a law, and terms whose mean is delta of one direction.

    Rows are kept of each draw: bounds on log L above and below it, and the logarithm of Q over the
    law where that is not plain.

    Attributes
    ----------
    direction
        ``"remove"`` or ``"add"``.
    order
        1 for plain draws, else the order q of a Renyi bound.
    log_moment
        The logarithm of E_Q of the power that tilts.
    """

    direction: str = "remove"
    order: int = 1
    log_moment: float = 0.0

    @property
    def steps(self) -> int:
        """Rounds of a draw."""
        raise NotImplementedError

    def draw(self, size: int, generator: np.random.Generator) -> Floats:
        """Return the rows of some draws, shape (rows, size)."""
        raise NotImplementedError

    def terms(self, kept: Floats, epsilon: float, *, above: bool = True) -> Floats:
        """Return terms >= 0 whose mean is at least delta, or at most."""
        if self.direction == "add":
            return _rising(-kept[1 if above else 0], epsilon)
        loss = kept[0 if above else 1]
        terms = _rising(loss, epsilon)
        if self.order == 1:
            return terms
        # A draw in doubt has no weight, and any term up to the largest.
        power = np.where(np.isnan(kept[2]), np.inf if above else -np.inf, kept[2] + loss)
        return np.asarray(
            np.minimum(terms * np.exp(np.minimum(power, _HOPELESS)), self.largest(epsilon))
        )

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms, which is 1 for plain draws."""
        if self.order == 1:
            return 1.0
        exponent = log_tangent(self.order, epsilon) + self.log_moment
        return math.exp(min(exponent, _HOPELESS)) * (1 + 1e-6)


@dataclass(frozen=True, eq=False)
class Direct(Estimator):
    """Draws of outputs with the record, one value for each round."""

    engine: Likelihood

    @property
    def steps(self) -> int:
        """Number of rounds, which is the number of values of one draw."""
        return self.engine.mechanism.steps

    def noisy(self, x: Floats, generator: np.random.Generator) -> Floats:
        """Return x with a draw from Q added to each column, in place, by parts."""
        rows = max(1, _NOISE_AT_ONCE // x.shape[1])
        for t in range(0, len(x), rows):
            part = x[t : t + rows]
            part += self.engine.mechanism.sigma * generator.standard_normal(part.shape)
        return x

    def sides(self, a: Floats) -> Floats:
        """Return bounds on log L above and below it, of shape (2, draws); none where in doubt."""
        high = self.engine.log_ratio(a)
        low = high if self.engine.exact else self.engine.log_ratio(a, above=False)
        slack = self.engine.slack
        return np.stack(
            [
                np.where(np.isnan(high), np.inf, high + slack),
                np.where(np.isnan(low), -np.inf, low - slack),
            ]
        )

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        mechanism, (y, _) = self.engine.mechanism, self.engine.law.sample(draws, generator)
        return self.sides(mechanism.fields(self.noisy(mechanism.means(y), generator)))


@dataclass(frozen=True, eq=False)
class Without(Direct):
    """Draws of outputs without the record, for the law of their likelihood ratios."""

    direction = "add"

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        x = self.noisy(np.zeros((self.steps, draws)), generator)
        return self.sides(self.engine.mechanism.fields(x))


@dataclass(frozen=True, eq=False)
class Bins(Estimator):
    """Balls in bins: the likelihood ratio in one dimension for each bin.

    L = mean_k exp(u_k - A_kk / 2), where u = M^T x / sigma^2 and A = M^T M / sigma^2 for the means
    M of the bins. For order q = 2 or 3, draws from L^q Q / E_Q[L^q] come from q-tuples of bins with
    probability proportional to exp of their overlaps, and the terms never exceed the order-q Renyi
    conversion of delta.

    Parameters
    ----------
    gram
        A, of shape (bins, bins).
    direction
        ``"remove"`` or ``"add"``.
    order
        1, 2 or 3; 1 for adding.
    """

    gram: Floats
    direction: str
    order: int = 1

    @property
    def steps(self) -> int:
        """Number of bins, which is the number of values of one draw."""
        return len(self.gram)

    @cached_property
    def _root(self) -> Floats:
        values, vectors = np.linalg.eigh(self.gram)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def _tuples(self) -> Floats:
        """Return log-weights of the q-tuples of bins."""
        A = self.gram
        if self.order == 1:
            return np.zeros(A.shape[0])
        return A if self.order == 2 else A[:, :, None] + A[:, None, :] + A[None]

    @cached_property
    def log_moment(self) -> float:  # type: ignore[override]
        """Log E_Q[L^order]."""
        return float(logsumexp(self._tuples)) - self.order * math.log(self.gram.shape[0])

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the values that are kept of each draw, shape (rows, draws)."""
        bins = self.gram.shape[0]
        u = generator.standard_normal((draws, bins)) @ self._root.T
        if self.direction == "remove":
            reached = np.cumsum(np.exp(self._tuples - self._tuples.max()).ravel())
            chosen = np.searchsorted(reached, generator.random(draws) * reached[-1], side="right")
            chosen = np.minimum(chosen, reached.size - 1)
            for bin_of in np.unravel_index(chosen, self._tuples.shape):
                u += self.gram[bin_of]
        u -= 0.5 * np.diagonal(self.gram)
        log_l = logsumexp(u, axis=1) - math.log(bins)
        return np.stack([log_l, log_l, self.log_moment - self.order * log_l])
