r"""How rarely is an output unlikely with the record? A tail from a few plain draws, by convexity.

Adding a record costs delta(eps) = E_Q (1 - e^eps L)_+, where L is a mixture of exponentials of
linear functions of a Gaussian output x. Hence log L is convex in x, its sublevel sets satisfy
Ehrhard's inequality, and

    u(s) = Phi^-1(Q(log L <= s))    is concave in s

(Ehrhard 1983; Borell 2003). Bounds at two levels s1 < s2 therefore bound u at every lower level:
u(s) <= u(s1) - (s1 - s) (u(s2) - u(s1)) / (s2 - s1) for s <= s1. Both probabilities come from the
order statistics of n draws from Q: the probability below the k-th draw is at most a variable of law
Beta(k, n - k + 1), and that up to it is at least one (Clopper and Pearson 1934), which holds at
every number of draws; the failure probability is shared among the few k that are tried. Delta is
then at most that of a Gaussian log L, whatever C and the law of participations are.

>>> log_l = np.random.default_rng(0).normal(-0.08, 0.4, 4096)
>>> bound = ConvexTail.of(np.stack([log_l, log_l]), failure_probability=1e-9)
>>> truth = half_space_delta(0.08, 0.4, 2.0)
>>> truth < bound.delta(2.0) < 1e-4
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpcal.accountants.correlated.bounds.adding import half_space_delta
from dpcal.accountants.correlated.bounds.base import Bound

__all__ = ["ConvexTail"]

# Empirical probabilities of the lower level that is tried. All of them are proofs at once; outside
# this range, bounds on a probability are wide relative to it.
_LOW = np.linspace(0.01, 0.6, 23)
# Empirical probabilities of the upper level that is tried; the range has the same reason.
_HIGH = np.linspace(0.5, 0.97, 19)


@dataclass(frozen=True, eq=False)
class ConvexTail(Bound):
    """Bounds on adding a record from an empirical law of log L under Q.

    Parameters
    ----------
    lines
        Rows (s1, kappa, mu): below s1, log L is stochastically at least kappa-shifted Gaussian,
        that is ``Q(log L <= s) <= Phi((s + kappa) / mu)``.
    """

    lines: NDArray[np.float64]

    method: ClassVar[str] = "convexity of log-likelihoods"

    @classmethod
    def of(cls, log_l: NDArray[np.float64], *, failure_probability: float) -> ConvexTail:
        """Return the tail that draws from Q prove.

        Parameters
        ----------
        log_l
            Upper and lower bounds on log-likelihood ratios of independent draws from Q, shape
            (2, draws), or the ratios, shape (1, draws).
        failure_probability
            Probability in (0, 1) that any of the bounds on probabilities is wrong.
        """
        from scipy.stats import beta

        (above, below), draws = np.sort(log_l[[0, -1]], axis=1), log_l.shape[1]
        each = failure_probability / (len(_LOW) + len(_HIGH))
        low, high = (np.ceil(levels * draws).astype(int) for levels in (_LOW, _HIGH))
        first = below[low - 1] - 1e-12 * (1 + np.abs(below[low - 1]))
        second = above[high - 1]
        most = np.asarray(beta.isf(each, low, draws - low + 1)) * (1 + 1e-9)
        least = np.asarray(beta.ppf(each, high, draws - high + 1)) * (1 - 1e-9)
        known = np.isfinite(first)[:, None] & np.isfinite(second)
        i, j = np.nonzero(known & (most[:, None] < least) & (first[:, None] < second))
        left, right = ndtri(most[i]), ndtri(least[j])
        slope = (right - left) / (second[j] - first[i]) * (1 - 1e-9)
        return cls(np.stack([first[i], left / slope - first[i], 1 / slope], axis=1))

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta of adding a record at an epsilon >= 0."""
        found = [
            half_space_delta(kappa, mu, epsilon)
            for first, kappa, mu in self.lines
            if -epsilon <= first
        ]
        return min(1.0, *found) if found else 1.0
