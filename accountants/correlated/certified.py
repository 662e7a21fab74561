r"""What can be proved without statistics? Deterministic bounds under random participation.

* :func:`revealed_delta`: give the pattern of participations away. What is left is a Gaussian
  mechanism, of which the law of ||C y|| counts, or of the number of participations. Any sampler,
  both directions.
* :func:`variational_delta`: log L >= <x, m> / sigma^2 - kappa for any law of participations in
  place of the true one (Jensen). Adding a record, independent participations.
* :func:`renyi_epsilon`: Renyi moments of the mixture, restricted to patterns whose state stays
  below a cap that is left with probability at most delta / 10. Removing a record, lambda-CGD with
  Poisson sampling. Without the cap, moments of an order above 1 + 2 z^2 (1 - lambda) / (1 + lambda)
  log(1 / r) grow exponentially in the number of rounds, driven by records that always take part.
* :func:`projection_delta`: a *lower* bound, from one linear statistic of the output.

Each bound is rounded outward, far more than its arithmetic can err.

>>> from types import SimpleNamespace
>>> from dpcal.accountants.correlated.samplers import Poisson
>>> C = np.tril(0.5 ** np.maximum(np.subtract.outer(np.arange(100), np.arange(100)), 0))
>>> run = SimpleNamespace(steps=100, matrix=lambda: C, decay=0.5)
>>> mechanism = Mechanism.of(run, noise_multiplier=4.0)
>>> revealed = least_epsilon(Revealed(mechanism, Poisson(0.01).automaton(100)).delta, 1e-5)
>>> sampled, method = renyi_epsilon(mechanism, 0.01, 1e-5)
>>> sampled < revealed / 4
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr, ndtr
from scipy.stats import binom

from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.estimators import Setting, half_space
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.samplers import Automaton

__all__ = [
    "Revealed",
    "least_epsilon",
    "norms_law",
    "projection_delta",
    "renyi_epsilon",
    "revealed_delta",
    "variational_bins_delta",
    "variational_delta",
    "worst_norms",
]

Floats = NDArray[np.float64]

# Relative, outward.
_MARGIN = 1e-9
# Patterns whose norm is so unlikely count as the worst of all.
_UNLIKELY = 1e-14


def gaussian_delta(epsilon: float, mu: Floats) -> Floats:
    """Deltas of Gaussian mechanisms with sensitivity mu >= 0 over sigma, rounded up."""
    safe = np.where(mu > 0, mu, 1.0)
    high = ndtr(safe / 2 - epsilon / safe)
    low = np.exp(np.minimum(epsilon + log_ndtr(-safe / 2 - epsilon / safe), 0.0))
    up = np.maximum(high - low, 0.0) + _MARGIN * 1e-3 * high
    return np.where(mu > 0, np.minimum(up, 1.0), 0.0)


def worst_norms(mechanism: Mechanism) -> Floats:
    """Bounds on ||C y|| over patterns of 0, 1, ..., steps participations, over sigma.

    Attained by the first k rounds for C Toeplitz with non-increasing columns (Kalinin and Lampert
    2024); else from the k largest sums of the k largest entries of the rows of C^T C.
    """
    C, T = mechanism.matrix, mechanism.steps
    column = C[:, 0]
    if mechanism.decay is not None or (
        (np.diff(column) <= 0).all()
        and all(np.array_equal(C[t:, t], column[: T - t]) for t in range(T))
    ):
        norms = np.linalg.norm(np.cumsum(C, axis=1), axis=0) / mechanism.sigma
    else:
        norms = _row_norms(mechanism.gram)
    return np.asarray(np.concatenate([[0.0], norms]) * (1 + _MARGIN))


def _row_norms(gram: Floats) -> Floats:
    """Bounds on the norms of sums of 1, 2, ... columns, from their Gram matrix >= 0."""
    rows = np.cumsum(-np.sort(-gram, axis=1), axis=1)
    return np.sqrt([np.sort(rows[:, k])[::-1][: k + 1].sum() for k in range(len(gram))])


@dataclass(frozen=True, eq=False)
class RevealedGroup:
    """The bound with participations known, for a record that may join some rounds only.

    Parameters
    ----------
    gram
        C^T C / sigma^2 >= 0 of the rounds that the record may join, each independently.
    rate
        Probability in (0, 1] of joining one of them.

    Notes
    -----
    Joint convexity of the hockey-stick divergence over patterns, of which each number of
    participations is charged the largest norm ||C y|| that its rounds could have.
    """

    gram: Floats
    rate: float

    @cached_property
    def _law(self) -> tuple[Floats, Floats]:
        """Probabilities of 0, 1, ... participations, and bounds on ||C y|| / sigma."""
        count = len(self.gram)
        weights = binom.pmf(np.arange(count + 1), count, self.rate)
        return weights, np.concatenate([[0.0], _row_norms(self.gram)]) * (1 + _MARGIN)

    def delta(self, epsilon: float) -> float:
        """Return the bound at an epsilon >= 0."""
        weights, norms = self._law
        return min(1.0, float(weights @ gaussian_delta(epsilon, norms)) * (1 + _MARGIN))


@dataclass(frozen=True, eq=False)
class Revealed:
    """The bound with participations known: the mean of Gaussian deltas over a record's patterns.

    Of each number of participations the worst pattern is taken or, for lambda-CGD and independent
    participations, the law of ||C y|| with rounding up, whichever gives less.

    Parameters
    ----------
    mechanism
        Of any kind.
    law
        An automaton, or log-probabilities of 0, 1, ..., steps participations.
    """

    mechanism: Mechanism
    law: Automaton | Floats

    @cached_property
    def _laws(self) -> list[tuple[Floats, Floats]]:
        """Probabilities and bounds on ||C y|| / sigma."""
        mechanism, law = self.mechanism, self.law
        counts = law.counts() if isinstance(law, Automaton) else law
        found = [(np.exp(counts), worst_norms(mechanism))]
        if isinstance(law, Automaton) and law.start.size == 1 and mechanism.decay is not None:
            found.append(norms_law(mechanism, law))
        return found

    def delta(self, epsilon: float) -> float:
        """Return the bound at an epsilon >= 0."""
        return min(
            min(1.0, float(weights @ gaussian_delta(epsilon, norms)) * (1 + _MARGIN))
            for weights, norms in self._laws
        )


def revealed_delta(mechanism: Mechanism, law: Automaton | Floats, epsilon: float) -> float:
    """Return the bound of :class:`Revealed` at one epsilon >= 0."""
    return Revealed(mechanism, law).delta(epsilon)


def norms_law(mechanism: Mechanism, law: Automaton) -> tuple[Floats, Floats]:
    """Probabilities and values of ||C y|| / sigma, rounded up, for lambda-CGD.

    Parameters
    ----------
    mechanism
        Of kind ``"lambda-CGD"``.
    law
        Of independent participations.
    """
    decay, rates = float(mechanism.decay or 0.0), np.exp(law.join[:, 0])
    # Nodes closed under multiplication with decay, at ratios near 0.95, down to a hundredth.
    top = 1 / (1 - decay)
    split = max(1, round(math.log(decay) / math.log(0.95)))
    ratio = decay ** (1 / split)
    count = math.ceil(math.log(100 * top) / -math.log(ratio))
    s = np.concatenate([[0.0], top * ratio ** np.arange(count, -1.0, -1.0)])

    def rounded(states: Floats) -> NDArray[np.intc]:
        index = np.searchsorted(s, states * (1 - 1e-12), side="left")
        return np.minimum(index, s.size - 1).astype(np.intc)

    worst = float(worst_norms(mechanism)[-1])
    reach, cells = worst * worst, 256
    while True:
        weights = kernels.energy_law(
            mechanism.energies, rates, s, rounded(decay * s), rounded(decay * s + 1), decay,
            reach / (cells - 1), cells,
        )  # fmt: skip
        beyond = np.cumsum(weights[::-1])[::-1]
        likely = int(np.searchsorted(-beyond, -_UNLIKELY)) + 1
        if cells > 256 or likely <= 2:
            break
        if likely >= cells // 2:
            cells = 2048
            continue
        reach *= likely / cells
    norms = np.sqrt(np.arange(cells + 1) * (reach / (cells - 1)))
    norms[-1] = worst
    return weights * (1 + _MARGIN), norms * (1 + _MARGIN)


def variational_delta(setting: Setting, epsilon: float) -> tuple[float, float]:
    """Return a bound on delta of adding a record, and the share of the rates that proves it.

    Parameters
    ----------
    setting
        With independent participations.
    epsilon
        Number >= 0.
    """
    if epsilon >= -setting.law.never:
        return 0.0, 1.0
    best = (1.0, 1.0)
    for share in np.geomspace(1e-3, 3.0, 60):
        _, kappa, mu = half_space(setting, float(share))
        best = min(best, (_half_space_delta(kappa, mu, epsilon), float(share)))
    return best


def variational_bins_delta(gram: Floats, epsilon: float) -> float:
    """Return a bound on delta of adding a record to a uniform one of several bins.

    Parameters
    ----------
    gram
        Products of the means of the bins over sigma^2, of shape (bins, bins).
    epsilon
        Number >= 0.

    Notes
    -----
    Jensen's inequality: log L is at least the mean over bins of u_k - gram_kk / 2.
    """
    kappa = 0.5 * float(np.diagonal(gram).mean())
    return _half_space_delta(kappa, math.sqrt(float(gram.mean())), epsilon)


def _half_space_delta(kappa: float, mu: float, epsilon: float) -> float:
    """E(1 - e^(epsilon - kappa + mu N))_+ for N standard normal, rounded up."""
    cut = (kappa - epsilon) / mu
    high = float(ndtr(cut))
    low = math.exp(min(epsilon - kappa + mu * mu / 2 + float(log_ndtr(cut - mu)), 0.0))
    # Both terms carry the rounding of kappa and of sums over the rounds.
    return max(high - low, 0.0) + _MARGIN * high


def _exceedance(decay: float, rate: float, rounds: int, cap: float, cells: int) -> float:
    """Upper bound on the probability that a state exceeds the cap, with states rounded up."""
    s = np.linspace(0.0, cap, cells + 1)
    beyond = cells + 1
    value = np.zeros(cells + 2)
    value[beyond] = 1.0

    def rounded(state: Floats) -> NDArray[np.intp]:
        index = np.ceil(state / cap * cells * (1 + 1e-14)).astype(np.intp)
        return np.where(state > cap, beyond, np.minimum(index, cells))

    idle, join = rounded(decay * s), rounded(decay * s + 1)
    for _ in range(rounds):
        value[:-1] = (1 - rate) * value[idle] + rate * value[join]
    return float(value[0]) * (1 + _MARGIN)


def state_cap(decay: float, rate: float, rounds: int, tail: float) -> float:
    """Return a state that one record's participations exceed with probability at most ``tail``."""
    low, high = 1.0, 1 / (1 - decay)
    for _ in range(12):
        middle = 0.5 * (low + high)
        if _exceedance(decay, rate, rounds, middle, 1000) <= tail:
            high = middle
        else:
            low = middle
    return high


def renyi_epsilon(mechanism: Mechanism, rate: float, delta: float) -> tuple[float, str]:
    """Return an epsilon of removing a record, with its method; infinite if no order helps.

    Parameters
    ----------
    mechanism
        Of kind ``"lambda-CGD"``.
    rate
        Poisson sampling probability.
    delta
        Number in (0, 1).

    Notes
    -----
    The moment of order q of the restricted law is bounded through the sum S of the states of q
    replicas, S' = decay S + Bin(q, r), and sum_i s_i^2 >= w S^2 / q + (1 - w) sum_u decay^(2 (t -
    u)) N_u for every w in [0, 1]. States are rounded up on a grid, on which the moment increases.
    """
    decay = float(mechanism.decay or 0.0)
    tail = delta / 10
    cap = state_cap(decay, rate, mechanism.steps, tail)

    def moment(q: int, w: float, cells: int) -> float:
        k = np.arange(q + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            stays = np.where(k < q, (q - k) * np.log1p(-rate), 0.0)
        binomial = gammaln(q + 1) - gammaln(k + 1) - gammaln(q - k + 1) + k * math.log(rate) + stays
        value = kernels.aggregated_moment(
            binomial,
            mechanism.energies,
            decay,
            q * cap,
            (0.5 - 0.5 * w / q) / mechanism.variance,
            1 - w,
            cells,
        )
        return value + _MARGIN * (1 + abs(value))

    def converted(q: int, log_moment: float) -> float:
        chernoff = (q - 1) * math.log(q - 1) - q * math.log(q)
        return max(0.0, (log_moment + chernoff - math.log(delta - tail)) / (q - 1))

    found = [
        (converted(q, moment(q, w, 300)), q, w)
        for q in (2, 3, 4, 6, 8, 11, 16, 24)
        for w in (0.0, 0.3, 1.0)
    ]
    _, q, w = min(found)
    best = converted(q, moment(q, w, 6000))
    return best, f"Renyi order {q}, states at most {cap:.4g}"


def least_epsilon(bound: Callable[[float], float], delta: float, start: float = 1.0) -> float:
    """Return a number at which a non-increasing bound on delta is at most ``delta``; inf if none.

    The least such number up to a relative 1e-9.
    """
    if bound(0.0) <= delta:
        return 0.0
    low, high = 0.0, start
    while bound(high) > delta:
        low, high = high, 2 * high
        if high > 1e7:
            return math.inf
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if bound(middle) <= delta else (middle, high)
    return high


def projection_delta(setting: Setting, epsilon: float) -> float:
    """Return a lower bound on delta of removing a record, from one linear statistic.

    Parameters
    ----------
    setting
        With independent participations.
    epsilon
        Number >= 0.

    Notes
    -----
    Along the mean of the output, the record adds sum_t v_t y_t to a standard normal. Each v_t is
    rounded down to a grid, and delta is at least P(A) - e^eps Q(A) for A a half-line.
    """
    mechanism, rates = setting.mechanism, setting.law.rates
    w = setting.mean / np.linalg.norm(setting.mean)
    v = mechanism.matrix.T @ w / mechanism.sigma
    spread = math.sqrt(float((v * v * rates).sum()))
    top = min(float(v.sum()), float(v @ rates) + 12 * spread + 6 * float(v.max()))
    cells = 4096
    law = np.zeros(cells + 1)
    law[0] = 1.0
    for step, rate in zip(np.floor(v / top * cells * (1 - 1e-12)).astype(int), rates, strict=True):
        moved = np.zeros_like(law)
        moved[step:] = law[: law.size - step]
        moved[-1] += law[law.size - step :].sum()
        law = (1 - rate) * law + rate * moved
    values = np.arange(cells + 1) * (top / cells)
    best = 0.0
    for cut in np.linspace(-2.0, float(values[-1]) + 10.0, 600):
        caught = float(law @ ndtr(values - cut))
        best = max(best, caught * (1 - 1e-10) - math.exp(epsilon + float(log_ndtr(-cut))))
    return best
