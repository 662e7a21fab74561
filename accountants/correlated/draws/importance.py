"""Which draws contain rare outputs? Importance samplers for both directions.

>>> from dpcal.accountants.correlated.draws.estimators import Setting
>>> from dpcal.accountants.correlated.likelihood import GridEngine
>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(50, 0.5), noise_multiplier=3.0)
>>> law = Poisson(0.02).automaton(50)
>>> moved = ShiftAdd(Setting(mechanism, law, GridEngine(mechanism, law)), share=1.0, scale=2.0)
>>> kept = moved.draw(500, np.random.default_rng(0))
>>> bool(moved.terms(kept, 0.1).max() <= moved.largest(0.1) < 1)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpcal import _validate
from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.bounds.half_space import half_space
from dpcal.accountants.correlated.draws.estimators import Floats, OfSetting, rising
from dpcal.accountants.correlated.likelihood import largest_state
from dpcal.accountants.correlated.likelihood.base import chebyshev, interpolation
from dpcal.errors import UnsupportedEvent

__all__ = ["Counts", "ShiftAdd", "ShiftRemove"]

# Part of P in the law of an importance sampler, so that no weight exceeds its inverse. With a
# smaller part, draws of usual records weigh more; with a larger one, fewer draws are left for rare
# records.
DEFENSIVE = 0.1


class _Weighted(OfSetting):
    """Draws for removing a record that keep log L and the logarithms of their weights."""

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        return np.asarray(rising(kept[0], epsilon) * np.exp(kept[1]))

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""
        return None


@dataclass(frozen=True, eq=False)
class ShiftRemove(_Weighted):
    """P moved by ``scale`` times its mean: an importance sampler for many small participations."""

    scale: float
    direction: str = "remove"

    def __post_init__(self) -> None:
        self.setting.require_exact("ShiftRemove")

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        setting = self.setting
        shift = self.scale * setting.mean
        x, _ = setting.with_record(draws, generator)
        plain = generator.random(draws) < DEFENSIVE
        x += np.where(plain, 0.0, 1.0) * shift[:, None]
        linear = (shift @ x - 0.5 * shift @ shift) / setting.mechanism.variance
        moved = setting.log_ratio(x - shift[:, None], generator) + linear
        return weighted(setting.log_ratio(x, generator), moved)


def weighted(log_l: Floats, log_proposal: Floats) -> Floats:
    """Return log L, and log dP / dP' for the proposal mixed with P."""
    mixed = np.logaddexp(math.log(DEFENSIVE) + log_l, math.log1p(-DEFENSIVE) + log_proposal)
    return np.stack([log_l, log_l - mixed])


@dataclass(frozen=True, eq=False)
class Counts(_Weighted):
    """Participations that may repeat within a round and attract one another, mixed with P.

    In state s, a round has k participations with probability proportional to
    ``odds[k] exp(attraction k decay s)``.
    """

    odds: tuple[float, ...]
    attraction: float
    direction: str = "remove"

    def __post_init__(self) -> None:
        self.setting.require_exact("Counts")
        if self.setting.mechanism.decay is None or not self.setting.law.independent:
            raise UnsupportedEvent("Counts draws need lambda-CGD and independent participations.")

    def _log_chance(self, s: Floats) -> Floats:
        """Return log-probabilities of 0, 1, ... participations after the states s."""
        k = np.arange(len(self.odds))[:, None]
        tilt = self.attraction * float(self.setting.mechanism.decay or 0.0)
        logs = np.log(np.array(self.odds))[:, None] + tilt * k * s
        return np.asarray(logs - logsumexp(logs, axis=0))

    def patterns(
        self, draws: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.intc], Floats]:
        """Return participations in each round, and the states before it, each (steps, draws)."""
        mechanism, rates = self.setting.mechanism, self.setting.law.rates
        decay = float(mechanism.decay or 0.0)
        plain = generator.random(draws) < DEFENSIVE
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
        """Return log L, and log dP / dP', of draws with given participations."""
        setting, mechanism = self.setting, self.setting.mechanism
        x = mechanism.means(counts.astype(float)) + setting.noise(counts.shape[1], generator)
        a = mechanism.fields(x)
        return weighted(setting.engine.log_ratio(a), self.log_proposal(a))

    def log_proposal(self, a: Floats) -> Floats:
        """Return log dP' / dQ of the proposal without its part of P."""
        mechanism = self.setting.mechanism
        decay, most = float(mechanism.decay or 0.0), len(self.odds) - 1
        end = min(most * largest_state(decay), 1.5 * max(9.0, largest_state(decay)))
        s, weights = chebyshev(28, end)
        steps = [interpolation(s, weights, np.minimum(decay * s + j, end)) for j in range(most + 1)]
        return kernels.counts_log_ratio(
            a, mechanism.energies, s, np.stack(steps), decay, self._log_chance(s)
        )

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        return self.losses(self.patterns(draws, generator)[0], generator)

    def fitted(
        self, level_of: Callable[[Floats, Counts], float], generator: np.random.Generator
    ) -> Counts:
        """Return the proposal of this family nearest to the draws that determine delta.

        This is the cross-entropy method (Rubinstein and Kroese 2004): the level rises to the
        epsilon that ``level_of`` computes from the latest draws, and at each level the weighted
        likelihood of the participations is maximised.
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
        """Return the proposal of largest weighted likelihood, by damped Newton steps."""
        chosen = weight > 0
        if not chosen.any():
            return self
        w = np.broadcast_to(weight[chosen] / weight[chosen].sum(), counts[:, chosen].shape).ravel()
        n, s = counts[:, chosen].ravel(), before[:, chosen].ravel()
        most = len(self.odds) - 1
        decay = float(self.setting.mechanism.decay or 0.0)
        seen = np.array([w[n == k].sum() for k in range(most + 1)])
        theta = np.append(np.log(np.array(self.odds[1:]) / self.odds[0]), self.attraction)
        # One pseudo-round for each kind of round keeps the odds of kinds that were not drawn
        # finite.
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
class ShiftAdd(OfSetting):
    """Q moved against the mean of independent participations with rates ``share`` times theirs.

    For any law rho of participations, log L >= <x, m> / sigma^2 - kappa with m = C E_rho[y] and
    kappa = E_rho ||C y||^2 / (2 sigma^2) + KL(rho || s). Draws with L < e^-eps lie in a half-space,
    on which the weights of the move are bounded.
    """

    share: float
    scale: float
    direction: str = "add"
    proved: bool = True

    def __post_init__(self) -> None:
        # With a negative scale the half-space gives no bound on weights.
        _validate.positive(scale=self.scale)
        if self.proved:
            _validate.positive(share=self.share)

    @cached_property
    def half_space(self) -> tuple[Floats, float, float]:
        """The values m, kappa, and mu = ||m|| / sigma."""
        return half_space(self.setting.mechanism, self.setting.law, self.share)

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        setting = self.setting
        m, _, mu = self.half_space
        x = setting.noise(draws, generator) - self.scale * m[:, None]
        log_weight = self.scale * (m @ x) / setting.mechanism.variance
        log_weight += 0.5 * (self.scale * mu) ** 2
        return np.stack([setting.log_ratio(x, generator), log_weight])

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        terms = rising(-kept[0] + self.setting.slack, epsilon) * np.exp(kept[1])
        largest = self.largest(epsilon)
        return np.asarray(terms if largest is None else np.minimum(terms, largest))

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""
        if not self.proved:
            return None
        _, kappa, mu = self.half_space
        exponent = self.scale * (kappa - epsilon) + 0.5 * (self.scale * mu) ** 2
        return math.exp(min(exponent, 600.0)) * (1 + 1e-9)
