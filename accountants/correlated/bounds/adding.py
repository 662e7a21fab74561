r"""Closed bounds on the delta of adding a record.

Adding a record costs delta(eps) = E_Q (1 - e^eps L)_+, with Q the law N(0, sigma^2 I) of outputs
without it. Four bounds hold; the smallest one counts. The third one needs a few plain draws.

**Half-spaces.** For any law rho of participations y in place of the true law s, log L >= <x, m> /
sigma^2 - kappa with m = C E y and kappa = E ||C y||^2 / (2 sigma^2) + KL(rho | s), expectations
under rho: the log of a mean of exponentials is at least the mean under rho of their exponents, less
KL(rho | s) (Donsker and Varadhan). So log L is at least normal, mu N - kappa with mu = ||m|| /
sigma. Here rho has a share of the chances of a free record, and KL adds up over the rounds in which
the record is free (chain rule); or rho is the law itself.

**A convex log-likelihood.** With f = log L and o_t the largest odds of a participation in round t
given all others, three facts bound the moments of 1 / L. With independent rounds of chance r_t the
odds are r_t / (1 - r_t). With b-min-separation a participation takes the place of b rounds in which
a free record does not join. The odds are then at most r / (1 - r)^b.

1. f is convex in the output x. By the variational formula of Boue and Dupuis (1998),
   -log E e^(-p f) is the least ``E[p f(B + v) + |v|^2 / 2]`` over adapted drifts v, and f(B + v) is
   at least f(B) + <grad f(B), v>. The rest is quadratic in v, with the least value p E f - p^2
   Var(f) / 2, because f(B) - E f is the integral of ``E[grad f(B) | F_s]``:

       E_Q L^(-p) <= exp(-p E f + p^2 Var(f) / 2),    Var(f) <= sigma^2 E |grad f|^2 (Poincare).

2. ``sigma^2 grad f = C E[y | x]``. Given x and the other rounds, the log-odds of y_t are at most
   log o_t + h_t with h_t = (C^T x)_t / sigma^2 - J_tt / 2 and J = C^T C / sigma^2, because
   participations repel each other for C >= 0, so that ``E[y_t | x]`` is at most o_t e^(h_t). The
   mean of e^(h_t + h_u) under Q is e^(J_tu), and therefore

       Var(f) <= V = sum_{t,u} o_t o_u J_tu e^(J_tu).

3. -E f = KL(Q || P) is half the integral of ``E |C E[y | x]|^2`` over 1 / sigma^2 from 0 on (Verdu
   2010, Mismatched estimation and relative entropy), so that

       -E f <= K = (1 / 2) sum_{t,u} o_t o_u (e^(J_tu) - 1).

Since (1 - u)_+ <= c u^(-p), c = p^p / (p + 1)^(p + 1), delta(eps) <= c exp(p (K - eps) + p^2 V / 2)
for every p > 0.

**A convex tail.** L is a mixture of exponentials of linear functions of a Gaussian output
x. Hence log L is convex in x, its sublevel sets satisfy Ehrhard's inequality, and

    u(s) = Phi^-1(Q(log L <= s))    is concave in s

(Ehrhard 1983; Borell 2003). Bounds at two levels s1 < s2 therefore bound u at every lower level:
u(s) <= u(s1) - (s1 - s) (u(s2) - u(s1)) / (s2 - s1) for s <= s1. Both probabilities come from the
order statistics of n draws from Q (Clopper and Pearson 1934). The probability below the k-th draw
is at most a variable of law Beta(k, n - k + 1), and the probability up to the k-th draw is at least
such a variable. This holds at every number of draws. The few k that are tried share the failure
probability. Delta is then at most the delta of a Gaussian log L, for every C and every law of
participations.

**Never taking part.** L is at least the probability of no participation.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(1000, 0.5), noise_multiplier=2 / 0.75**0.5)
>>> bound = Adding.of(mechanism, Joining.of(Poisson(0.01), 1000))
>>> bound.delta(2.0) < 1e-10
True
>>> log_l = np.random.default_rng(0).normal(-0.08, 0.4, (1, 4096))
>>> tail = ConvexTail.of(log_l, failure_probability=1e-9)
>>> bool(half_space_delta(np.array(0.08), np.array(0.4), 2.0) < tail.delta(2.0) < 1e-4)
True
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from dpcal.accountants.correlated.bounds.base import MARGIN, Bound, half_space_delta
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Floats

_Pairs = tuple[tuple[float, float], ...]

# Most entries of the means of epochs in memory at once: 32 MB.
_AT_ONCE = 2**22
# Shares of the true rates, each of them valid; a finer list gains below a percent of delta.
_SHARES = np.geomspace(1e-3, 3.0, 60)
# Logarithm of an exponential; a larger one proves nothing.
_LARGEST = 600.0
_POWERS = np.geomspace(1e-3, 1e5, 400)
# Empirical probabilities of the two levels: outside, bounds on them are relatively wide.
_LOW = np.linspace(0.01, 0.6, 23)
_HIGH = np.linspace(0.5, 0.97, 19)


@dataclass(frozen=True, eq=False)
class Adding(Bound):
    """Bounds on adding a record.

    Parameters
    ----------
    pairs
        Pairs (kappa, mu), each a proof that log L is at least the normal variable mu N - kappa.
    tail
        K and the root of V, which bound the moments of 1 / L by the moments of a normal loss; None
        without such a bound.
    never
        Epsilon from which delta is zero: -log of the probability of no participation.
    """

    pairs: _Pairs
    tail: tuple[float, float] | None = None
    never: float = math.inf

    method: ClassVar[str] = "half-spaces and a convex log-likelihood, for adding a record"

    @classmethod
    def of(cls, mechanism: Mechanism, joining: Joining) -> Adding:
        """Return the bounds for a record that takes part in this way.

        The bounds hold if C is Toeplitz, if rounds are independent, if participations are at least
        as many rounds apart as C has bands, or for one random round an epoch.
        """
        if joining.epoch:
            return cls((_of_epochs(mechanism, joining.epoch),))
        never = -float(np.log1p(-joining.chances).sum()) * (1 + MARGIN)
        parts = math.ceil(_SHARES.size * mechanism.steps / _AT_ONCE)
        found = [_of_shares(mechanism, joining, each) for each in np.array_split(_SHARES, parts)]
        pairs = tuple(itertools.chain.from_iterable(found))
        return cls(pairs, lower_tail(mechanism, joining.odds), never)

    @classmethod
    def of_bins(cls, gram: Floats) -> Adding:
        """Return the bound for one of several bins, from products of their means over sigma^2."""
        kappa = 0.5 * float(np.diagonal(gram).mean()) * (1 + MARGIN)
        return cls(((kappa, math.sqrt(float(gram.mean()))),))

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta of adding a record at an epsilon >= 0."""
        if epsilon >= self.never:
            return 0.0
        kappas, mus = np.array(self.pairs).reshape(-1, 2).T
        found = float(half_space_delta(kappas, mus, epsilon).min(initial=1.0))
        if self.tail is not None:
            p, (mean, deviation) = _POWERS, self.tail
            exponents = p * (mean - epsilon) + 0.5 * (p * deviation) ** 2
            exponents += p * np.log(p) - (p + 1) * np.log1p(p)
            found = min(found, math.exp(min(0.0, float(exponents.min()) * (1 - 1e-12) + 1e-12)))
        return found

    def log_mgf(self, c: float, direction: str) -> float:
        """Return a bound on log M(c) of adding a record: on E_Q L^(-c)."""
        known = self.pairs if self.tail is None else (*self.pairs, self.tail)
        moments = (c * kappa + 0.5 * (c * mu) ** 2 for kappa, mu in known)
        return min(moments) if direction == "add" else math.inf


def lower_tail(mechanism: Mechanism, odds: Floats) -> tuple[float, float] | None:
    """Return K and the root of V for the largest odds of each round; None if they overflow."""
    if mechanism.column is None:
        J, weights = mechanism.gram, np.asarray(odds[:, None] * odds)
    else:
        J = mechanism.overlaps[: mechanism.bands]
        pairs = 2.0 * (mechanism.steps - np.arange(len(J)))
        pairs[0] = mechanism.steps
        weights = np.asarray(pairs * float(odds.max()) ** 2)
    if J.max() > _LARGEST:
        return None
    mean = 0.5 * float((weights * np.expm1(J)).sum()) * (1 + MARGIN)
    return mean, math.sqrt(float((weights * J * np.exp(J)).sum())) * (1 + MARGIN)


@dataclass(frozen=True, eq=False)
class ConvexTail(Bound):
    """Bounds on adding a record from an empirical law of log L under Q.

    Parameters
    ----------
    lines
        Rows (s1, kappa, mu): log L is stochastically at least mu N - kappa below s1, so that
        ``Q(log L <= s) <= Phi((s + kappa) / mu)`` for s <= s1.
    """

    lines: Floats

    method: ClassVar[str] = "convexity of log-likelihoods"

    @classmethod
    def of(cls, log_l: Floats, *, failure_probability: float, draws: int = 0) -> ConvexTail:
        """Return the tail that draws from Q prove.

        Parameters
        ----------
        log_l
            Upper and lower bounds on log-likelihood ratios of independent draws from Q, shape
            (2, draws), or the ratios, shape (1, draws).
        failure_probability
            Probability in (0, 1) that any of the bounds on probabilities is wrong.
        draws
            Number of draws of a later proof, if given: the result is then an estimate of the tail
            that these draws will prove, and not a proof.
        """
        from scipy.stats import beta

        (above, below), kept = np.sort(log_l[[0, -1]], axis=1), log_l.shape[1]
        each = failure_probability / (len(_LOW) + len(_HIGH))
        low, high = (np.ceil(levels * kept).astype(int) for levels in (_LOW, _HIGH))
        first = below[low - 1] - 1e-12 * (1 + np.abs(below[low - 1]))
        second, draws = above[high - 1], draws or kept
        low, high = low * draws // kept, high * draws // kept
        most = np.asarray(beta.isf(each, low, draws - low + 1)) * (1 + 1e-9)
        least = np.asarray(beta.ppf(each, high, draws - high + 1)) * (1 - 1e-9)
        known = np.isfinite(first)[:, None] & np.isfinite(second)
        i, j = np.nonzero(known & (most[:, None] < least) & (first[:, None] < second))
        left, right = ndtri(most[i]), ndtri(least[j])
        slope = (right - left) / (second[j] - first[i]) * (1 - 1e-9)
        return cls(np.stack([first[i], left / slope - first[i], 1 / slope], axis=1))

    def delta(self, epsilon: float) -> float:
        """Return a bound on delta of adding a record at an epsilon >= 0."""
        kappas, mus = self.lines[self.lines[:, 0] >= -epsilon, 1:].T
        return float(half_space_delta(kappas, mus, epsilon).min(initial=1.0))


def _of_epochs(mechanism: Mechanism, M: int) -> tuple[float, float]:
    """Return kappa and mu of one random round an epoch of M rounds, for the law itself."""
    mean = mechanism.means(np.full((mechanism.steps, 1), 1 / M))
    epochs = np.arange(mechanism.steps) // M
    width = max(1, _AT_ONCE // mechanism.steps)
    same = 0.0
    for first in range(0, mechanism.steps // M, width):
        part = mechanism.means((epochs[:, None] == first + np.arange(width)) / M)
        same += float((part**2).sum())
    # Rounds of one epoch are never joined together; rounds of two epochs are independent.
    pairs = (float((mean**2).sum()) - same) / mechanism.variance
    energy = pairs + float(mechanism.energies.sum()) / M
    return 0.5 * energy * (1 + MARGIN), float(np.linalg.norm(mean)) / mechanism.sigma


def _of_shares(
    mechanism: Mechanism, joining: Joining, shares: Floats
) -> Iterable[tuple[float, float]]:
    """Return kappa and mu of laws with shares of the chances of a free record."""
    p, apart = joining.chances[:, None], joining.separation
    q = np.minimum(shares * p, 1 - 1e-12)
    rates, free = _rates(q, apart)
    means = mechanism.means(rates)
    norms = np.linalg.norm(means, axis=0) / mechanism.sigma
    energies = mechanism.energies @ rates
    if joining.independent:
        energies = norms**2 + mechanism.energies @ (rates * (1 - rates))
    elif mechanism.bands > apart:
        products, before = mechanism.overlaps, np.cumsum(rates, axis=0)[::-1]
        lags = slice(apart, mechanism.bands)
        energies = energies + 2 * products[lags] @ (before[lags] * rates[: mechanism.bands - apart])
    with np.errstate(divide="ignore", invalid="ignore"):
        joins = np.where(q > 0, q * np.log(q / p), 0.0)
    divergences = joins + (1 - q) * (np.log1p(-q) - np.log1p(-p))
    kappas = (0.5 * energies + (free * divergences).sum(axis=0)) * (1 + MARGIN)
    return zip(kappas.tolist(), norms.tolist(), strict=True)


def _rates(chances: Floats, separation: int) -> tuple[Floats, Floats]:
    """Return probabilities of joining each round and of being free, for chances when free.

    All are of shape (rounds, columns).
    """
    if separation == 1:
        return chances, np.ones_like(chances)
    rates, free = np.zeros_like(chances), np.zeros_like(chances)
    now = np.ones(chances.shape[1])
    for t, each in enumerate(chances):
        if t >= separation:
            now = now + rates[t - separation]
        free[t], rates[t] = now, now * each
        now = now - rates[t]
    return rates, free
