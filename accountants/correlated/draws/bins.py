"""Which draws estimate delta for balls in bins? One Gaussian dimension for each bin.

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
from scipy.special import logsumexp

from dpcal.accountants.correlated.draws.estimators import Floats, rising

__all__ = ["Bins"]


@dataclass(frozen=True, eq=False)
class Bins:
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
    def log_moment(self) -> float:
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
        return np.asarray(logsumexp(u, axis=1) - math.log(bins))[None]

    def terms(self, kept: Floats, epsilon: float, *, above: bool = True) -> Floats:
        """Return terms >= 0 whose mean is delta: likelihood ratios are exact."""
        if self.direction == "add":
            return rising(-kept[0], epsilon)
        # The term is (L - e^eps)_+ / (L^q / E[L^q]).
        exponent = self.log_moment - (self.order - 1) * kept[0]
        terms = rising(kept[0], epsilon) * np.exp(np.minimum(exponent, 600.0))
        return np.asarray(np.minimum(terms, self.largest(epsilon)))

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms."""
        q = self.order
        if q == 1:
            return 1.0
        exponent = self.log_moment - (q - 1) * epsilon + (q - 1) * math.log(q - 1)
        return math.exp(min(exponent - q * math.log(q), 600.0)) * (1 + 1e-9)
