r"""Which draws estimate delta? Unbiased estimators for both directions, some with a proved range.

Removing a record asks for H(P || Q) = E_P[(1 - e^eps / L)_+], adding one for
H(Q || P) = E_Q[(1 - e^eps L)_+]. Each estimator draws from a law of its own choice and keeps the
log-likelihood ratios, from which the terms at every epsilon follow.

=================== ========== ===================================== ===============================
estimator           direction  law                                   range of the terms
=================== ========== ===================================== ===============================
:class:`Direct`     both       P or Q                                1
:class:`Tilted`     remove     half P, half L^2 Q / E[L^2]           close to the Renyi bound
:class:`Counts`     remove     more participations, which attract    none proved
:class:`ShiftRemove` remove    P, moved along its mean               none proved
:class:`ShiftAdd`   add        Q, moved against the mean             a half-space bound
:class:`Bins`       both       as above, in one dimension a bin      1, or the Renyi bound
=================== ========== ===================================== ===============================

>>> bins = Bins(np.eye(50), "remove", order=2)
>>> kept = bins.draw(1000, np.random.default_rng(0))
>>> bool(bins.terms(kept, 0.5).max() <= bins.largest(0.5) < 0.2)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpcal import _validate
from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.likelihood import (
    VALIDATED,
    BracketEngine,
    Engine,
    GridEngine,
    ParticleEngine,
    VectorEngine,
    chebyshev,
    interpolation,
    largest_state,
)
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.samplers import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = [
    "Bins",
    "Counts",
    "Direct",
    "Estimator",
    "Setting",
    "ShiftAdd",
    "ShiftRemove",
    "Tilted",
]

Floats = NDArray[np.float64]

# Part of P in the law of an importance sampler, so that no weight exceeds its inverse.
_DEFENSIVE = 0.1


class Estimator(Protocol):
    """Draws, and the terms whose mean is delta."""

    @property
    def direction(self) -> str:
        """``"remove"`` or ``"add"``."""

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return what is kept of draws, of shape (rows, draws)."""

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A mechanism, a law of participations, and an engine for their likelihood ratio."""

    mechanism: Mechanism
    law: Automaton
    engine: Engine

    @property
    def slack(self) -> float:
        """By how much the engine's log L may be off."""
        return VALIDATED if isinstance(self.engine, GridEngine | VectorEngine) else 0.0

    @cached_property
    def mean(self) -> Floats:
        """C E[y], of shape (steps,)."""
        return self.mechanism.means(np.ascontiguousarray(self.law.rates[:, None]))[:, 0]

    def noise(self, draws: int, generator: np.random.Generator) -> Floats:
        """Draws from Q, of shape (steps, draws)."""
        return self.mechanism.sigma * generator.standard_normal((self.mechanism.steps, draws))

    def with_record(self, draws: int, generator: np.random.Generator) -> tuple[Floats, Any]:
        """Draws from P, and the participations that they came from."""
        y, first = self.law.sample(draws, generator)
        x = self.mechanism.means(y)
        x += self.noise(draws, generator)
        return x, (y, first)

    def telling(self, draws: int, generator: np.random.Generator) -> Floats:
        """Observations of usual and of busy records, on which likelihood ratios are tested."""
        x = self.mechanism.means(self.law.telling(draws, generator))
        return np.asarray(x + self.noise(draws, generator))

    def log_ratio(self, x: Floats, generator: np.random.Generator, reference: Any = None) -> Floats:
        """Log L of observations, which are consumed."""
        a = self.mechanism.fields(x)
        if isinstance(self.engine, ParticleEngine):
            return self.engine.log_ratio(a, generator, reference)
        return self.engine.log_ratio(a)

    def require_exact(self, estimator: str) -> None:
        """Refuse one-sided or random likelihoods where an estimator is not monotone in them."""
        if isinstance(self.engine, BracketEngine | ParticleEngine):
            raise UnsupportedEvent(
                f"{estimator} needs likelihood ratios, not bounds or estimates of them; use Direct."
            )


def _rising(log_l: Floats, epsilon: float) -> Floats:
    """(1 - e^(epsilon - l))_+."""
    return np.where(log_l > epsilon, -np.expm1(np.minimum(epsilon - log_l, 0.0)), 0.0)


@dataclass(frozen=True, eq=False)
class Direct:
    """Draws from P (remove) or Q (add) themselves."""

    setting: Setting
    direction: str

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return what is kept of draws, of shape (rows, draws)."""
        if self.direction == "remove":
            x, reference = self.setting.with_record(draws, generator)
            return self.setting.log_ratio(x, generator, reference)[None]
        return self.setting.log_ratio(self.setting.noise(draws, generator), generator)[None]

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        loss = kept[0] if self.direction == "remove" else -kept[0]
        return _rising(loss + self.setting.slack, epsilon)

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Tilted:
    """Half of the draws from P, half from L^2 Q / E_Q[L^2], for ``C[t, u] = decay^(t - u)``.

    A draw from the second law is C (y1 + y2) and noise, for two patterns with probability
    proportional to s(y1) s(y2) exp(<C y1, C y2> / sigma^2), which are drawn forward with exact
    look-ahead. The terms (L - e^eps)_+ / (1/2 L + 1/2 L^2 / E[L^2]) are bounded by about twice the
    order-2 Renyi conversion of delta.
    """

    setting: Setting
    nodes: int = 24
    direction: str = "remove"

    def __post_init__(self) -> None:
        self.setting.require_exact("Tilted")
        if self.setting.mechanism.decay is None or self.setting.law.start.size > 1:
            raise UnsupportedEvent("Tilted draws need lambda-CGD and independent participations.")

    @cached_property
    def ahead(self) -> Floats:
        """Logarithm of the mean weight of later rounds, of shape (steps + 1, nodes, nodes)."""
        return self._ahead(self.nodes)

    def _ahead(self, nodes: int) -> Floats:
        mechanism, law = self.setting.mechanism, self.setting.law
        decay = float(mechanism.decay or 0.0)
        s, weights = chebyshev(nodes, largest_state(decay))
        to = [interpolation(s, weights, np.minimum(decay * s + k, s[-1])) for k in (0, 1)]
        overlap = [
            [np.outer(decay * s + i, decay * s + j) / mechanism.variance for j in (0, 1)]
            for i in (0, 1)
        ]
        out = np.zeros((mechanism.steps + 1, nodes, nodes))
        for t in range(mechanism.steps, 0, -1):
            log_y = law.idle[t - 1, 0], law.join[t - 1, 0]
            out[t - 1] = np.logaddexp.reduce(
                [
                    to[i] @ out[t] @ to[j].T + overlap[i][j] + log_y[i] + log_y[j]
                    for i in (0, 1)
                    for j in (0, 1)
                ]
            )
        return out

    @property
    def log_moment(self) -> float:
        """Log E_Q[L^2]."""
        return float(self.ahead[0, 0, 0])

    def validated(self) -> bool:
        """Whether more nodes change the log-moment by at most 1e-7."""
        finer = float(self._ahead(self.nodes + 12)[0, 0, 0])
        return abs(finer - self.log_moment) <= VALIDATED

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return what is kept of draws, of shape (rows, draws)."""
        setting, mechanism = self.setting, self.setting.mechanism
        plain = generator.random(draws) < 0.5
        x, _ = setting.with_record(draws, generator)
        decay = float(mechanism.decay or 0.0)
        s, weights = chebyshev(self.nodes, largest_state(decay))
        tilted = int(draws - plain.sum())
        x[:, ~plain] = kernels.tilted_pair_states(
            self.ahead[1:], s, weights, decay, mechanism.variance, setting.law.rates, tilted,
            generator,
        ) + setting.noise(tilted, generator)  # fmt: skip
        return setting.log_ratio(x, generator)[None]

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        log_l, slack = kept[0], self.setting.slack
        # (L - e^eps)_+ / L, over 1/2 + 1/2 L / E[L^2].
        weight = np.logaddexp(0.0, log_l - self.log_moment) - math.log(2)
        terms = _rising(log_l + slack, epsilon) * np.exp(-weight + 4 * slack)
        return np.asarray(np.minimum(terms, self.largest(epsilon)))

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms, or None."""
        # With u = L / e^eps, (u - 1) / (u / 2 + c u^2) is largest at u = 1 + sqrt(1 + 1 / (2 c)).
        c = 0.5 * math.exp(min(epsilon - self.log_moment, 600.0))
        u = 1 + math.sqrt(1 + 0.5 / c)
        return (u - 1) / (0.5 * u + c * u * u) * (1 + 1e-6)


@dataclass(frozen=True, eq=False)
class ShiftRemove:
    """P moved by ``scale`` times its mean: an importance sampler for many small participations."""

    setting: Setting
    scale: float
    direction: str = "remove"

    def __post_init__(self) -> None:
        self.setting.require_exact("ShiftRemove")

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return what is kept of draws, of shape (rows, draws)."""
        setting = self.setting
        shift = self.scale * setting.mean
        x, _ = setting.with_record(draws, generator)
        plain = generator.random(draws) < _DEFENSIVE
        x += np.where(plain, 0.0, 1.0) * shift[:, None]
        linear = (shift @ x - 0.5 * shift @ shift) / setting.mechanism.variance
        moved = setting.log_ratio(x - shift[:, None], generator) + linear
        return _weighted(setting.log_ratio(x, generator), moved)

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        return np.asarray(_rising(kept[0], epsilon) * np.exp(kept[1]))

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""
        return None


def _weighted(log_l: Floats, log_proposal: Floats) -> Floats:
    """Log L, and log dP / dP' for the proposal mixed with P."""
    mixed = np.logaddexp(math.log(_DEFENSIVE) + log_l, math.log1p(-_DEFENSIVE) + log_proposal)
    return np.stack([log_l, log_l - mixed])


@dataclass(frozen=True, eq=False)
class Counts:
    """Participations that may repeat within a round and attract one another, mixed with P.

    In state s, a round has k participations with probability proportional to
    ``odds[k] exp(attraction k decay s)``.
    """

    setting: Setting
    odds: tuple[float, ...]
    attraction: float
    direction: str = "remove"

    def __post_init__(self) -> None:
        self.setting.require_exact("Counts")
        if self.setting.mechanism.decay is None or self.setting.law.start.size > 1:
            raise UnsupportedEvent("Counts draws need lambda-CGD and independent participations.")

    def _log_chance(self, s: Floats) -> Floats:
        """Log-probabilities of 0, 1, ... participations after the states s."""
        k = np.arange(len(self.odds))[:, None]
        tilt = self.attraction * float(self.setting.mechanism.decay or 0.0)
        logs = np.log(np.array(self.odds))[:, None] + tilt * k * s
        return np.asarray(logs - logsumexp(logs, axis=0))

    def patterns(
        self, draws: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.intc], Floats]:
        """Participations in each round, and the states before it, each (steps, draws)."""
        mechanism, rates = self.setting.mechanism, self.setting.law.rates
        decay = float(mechanism.decay or 0.0)
        plain = generator.random(draws) < _DEFENSIVE
        counts = np.empty((mechanism.steps, draws), dtype=np.intc)
        before = np.empty((mechanism.steps, draws))
        s = np.zeros(draws)
        for t in range(mechanism.steps):
            before[t] = s
            uniform = generator.random(draws)
            reached = np.cumsum(np.exp(self._log_chance(s)), axis=0)[:-1]
            counts[t] = np.where(plain, uniform < rates[t], (uniform > reached).sum(axis=0))
            s = decay * s + counts[t]
        return counts, before

    def losses(self, counts: NDArray[np.intc], generator: np.random.Generator) -> Floats:
        """Log L, and log dP / dP', of draws with given participations."""
        setting, mechanism = self.setting, self.setting.mechanism
        x = mechanism.means(counts.astype(float)) + setting.noise(counts.shape[1], generator)
        a = mechanism.fields(x)
        return _weighted(setting.engine.log_ratio(a), self.log_proposal(a))

    def log_proposal(self, a: Floats) -> Floats:
        """Log dP' / dQ of the proposal without its part of P."""
        mechanism = self.setting.mechanism
        decay, most = float(mechanism.decay or 0.0), len(self.odds) - 1
        end = min(most * largest_state(decay), 1.5 * max(9.0, largest_state(decay)))
        s, weights = chebyshev(28, end)
        steps = [interpolation(s, weights, np.minimum(decay * s + j, end)) for j in range(most + 1)]
        return kernels.counts_log_ratio(
            a, mechanism.energies, s, np.stack(steps), decay, self._log_chance(s)
        )

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return what is kept of draws, of shape (rows, draws)."""
        return self.losses(self.patterns(draws, generator)[0], generator)

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        return np.asarray(_rising(kept[0], epsilon) * np.exp(kept[1]))

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""
        return None

    def fitted(
        self, level_of: Callable[[Floats, Counts], float], generator: np.random.Generator
    ) -> Counts:
        """The proposal of this family nearest to the draws that decide delta.

        Cross-entropy method (Rubinstein and Kroese 2004): the level rises to the epsilon that
        ``level_of`` reads off the latest draws, and at each level the weighted likelihood of the
        participations is maximised.
        """
        proposal, reached = self, 0
        for _ in range(15):
            counts, before = proposal.patterns(2048, generator)
            kept = proposal.losses(counts, generator)
            goal, high = level_of(kept, proposal), float(np.quantile(kept[0], 0.9))
            weight = proposal.terms(kept, min(goal, high))
            proposal = proposal._step(counts, before, weight)
            reached += high >= goal
            if reached == 3:
                break
        return proposal

    def _step(self, counts: NDArray[np.intc], before: Floats, weight: Floats) -> Counts:
        """Maximise the weighted likelihood over odds and attraction by damped Newton steps."""
        chosen = weight > 0
        if not chosen.any():
            return self
        w = np.broadcast_to(weight[chosen] / weight[chosen].sum(), counts[:, chosen].shape).ravel()
        n, s = counts[:, chosen].ravel(), before[:, chosen].ravel()
        most = len(self.odds) - 1
        decay = float(self.setting.mechanism.decay or 0.0)
        seen = np.array([w[n == k].sum() for k in range(most + 1)])
        theta = np.append(np.log(np.array(self.odds[1:]) / self.odds[0]), self.attraction)
        # One pseudo-round for each kind of round keeps kinds that were not seen finite.
        prior = 1e-3
        for _ in range(10):
            logs = np.zeros((most + 1, n.size))
            for k in range(1, most + 1):
                logs[k] = theta[k - 1] + theta[-1] * k * decay * s
            p = np.exp(logs - logsumexp(logs, axis=0))
            mean_k = (np.arange(most + 1)[:, None] * p).sum(axis=0)
            score = np.empty(most + 1)
            score[:-1] = seen[1:] - p[1:] @ w + prior * (1 - np.exp(theta[:-1]))
            score[-1] = float((w * decay * s) @ (n - mean_k)) - prior * theta[-1]
            information = np.zeros((most + 1, most + 1))
            information[:-1, :-1] = -(p[1:] * w) @ p[1:].T + np.diag(p[1:] @ w)
            information[:-1, :-1] += prior * np.diag(np.exp(theta[:-1]))
            kinds = np.arange(1, most + 1)[:, None]
            cross = (p[1:] * (kinds - mean_k)) @ (w * decay * s)
            information[:-1, -1] = information[-1, :-1] = cross
            spread = ((np.arange(most + 1) ** 2)[:, None] * p).sum(axis=0) - mean_k**2
            information[-1, -1] = float((w * (decay * s) ** 2) @ spread) + prior
            step = np.linalg.solve(information, score)
            step *= min(1.0, 1.0 / float(np.abs(step).max()))
            theta = theta + step
            if np.abs(step).max() < 1e-4:
                break
        odds = np.append(1.0, np.exp(theta[:-1]))
        odds /= odds.sum()
        return Counts(self.setting, tuple(float(x) for x in odds), float(theta[-1]))


@dataclass(frozen=True, eq=False)
class ShiftAdd:
    """Q moved against the mean of independent participations with rates ``share`` times theirs.

    For any law rho of participations, log L >= <x, m> / sigma^2 - kappa with m = C E_rho[y] and
    kappa = E_rho ||C y||^2 / (2 sigma^2) + KL(rho || s). Draws with L < e^-eps lie in a half-space,
    on which the weights of the move are bounded.
    """

    setting: Setting
    share: float
    scale: float
    direction: str = "add"
    proved: bool = True

    def __post_init__(self) -> None:
        # The other way, the half-space bounds no weight.
        _validate.positive(scale=self.scale)
        if self.proved:
            _validate.positive(share=self.share)

    @cached_property
    def half_space(self) -> tuple[Floats, float, float]:
        """m, kappa, and mu = ||m|| / sigma."""
        return half_space(self.setting, self.share)

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return what is kept of draws, of shape (rows, draws)."""
        setting = self.setting
        m, _, mu = self.half_space
        x = setting.noise(draws, generator) - self.scale * m[:, None]
        log_weight = self.scale * (m @ x) / setting.mechanism.variance
        log_weight += 0.5 * (self.scale * mu) ** 2
        return np.stack([setting.log_ratio(x, generator), log_weight])

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        terms = _rising(-kept[0] + self.setting.slack, epsilon) * np.exp(kept[1])
        largest = self.largest(epsilon)
        return np.asarray(terms if largest is None else np.minimum(terms, largest))

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""
        if not self.proved:
            return None
        _, kappa, mu = self.half_space
        exponent = self.scale * (kappa - epsilon) + 0.5 * (self.scale * mu) ** 2
        return math.exp(min(exponent, 600.0)) * (1 + 1e-9)


def half_space(setting: Setting, share: float) -> tuple[Floats, float, float]:
    """m, kappa and mu = ||m|| / sigma of independent participations at ``share`` of the rates.

    Raises
    ------
    UnsupportedEvent
        If participations are not independent.
    """
    mechanism, law = setting.mechanism, setting.law
    if law.start.size > 1:
        raise UnsupportedEvent("The half-space bound needs independent participations.")
    rates = np.exp(law.join[:, 0])
    q = np.minimum(share * rates, np.where(rates < 1, 1 - 1e-12, 1.0))
    m = mechanism.means(np.ascontiguousarray(q[:, None]))[:, 0]
    energy = float(m @ m) / mechanism.variance + float(mechanism.energies @ (q * (1 - q)))
    with np.errstate(divide="ignore", invalid="ignore"):
        joins = np.where(q > 0, q * np.log(q / rates), 0.0)
        idles = np.where(q < 1, (1 - q) * (np.log1p(-q) - np.log1p(-rates)), 0.0)
    kappa = 0.5 * energy + float(joins.sum() + idles.sum())
    return m, kappa, float(np.linalg.norm(m)) / mechanism.sigma


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

    @cached_property
    def _root(self) -> Floats:
        values, vectors = np.linalg.eigh(self.gram)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def _tuples(self) -> Floats:
        """Log-weights of the q-tuples of bins."""
        A = self.gram
        if self.order == 1:
            return np.zeros(A.shape[0])
        return A if self.order == 2 else A[:, :, None] + A[:, None, :] + A[None]

    @property
    def log_moment(self) -> float:
        """Log E_Q[L^order]."""
        return float(logsumexp(self._tuples)) - self.order * math.log(self.gram.shape[0])

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return what is kept of draws, of shape (rows, draws)."""
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

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        if self.direction == "add":
            return _rising(-kept[0], epsilon)
        # (L - e^eps)_+ / (L^q / E[L^q]).
        exponent = self.log_moment - (self.order - 1) * kept[0]
        terms = _rising(kept[0], epsilon) * np.exp(np.minimum(exponent, 600.0))
        return np.asarray(np.minimum(terms, self.largest(epsilon)))

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms, or None."""
        q = self.order
        if q == 1:
            return 1.0
        exponent = self.log_moment - (q - 1) * epsilon + (q - 1) * math.log(q - 1)
        return math.exp(min(exponent - q * math.log(q), 600.0)) * (1 + 1e-9)
