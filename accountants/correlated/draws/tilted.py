"""Which draws have a small proved range? Draws of the law tilted by the squared likelihood.

>>> from dpcal.accountants.correlated.draws.estimators import Setting
>>> from dpcal.accountants.correlated.likelihood import GridEngine
>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(50, 0.5), noise_multiplier=3.0)
>>> law = Poisson(0.02).automaton(50)
>>> tilted = Tilted(Setting(mechanism, law, GridEngine(mechanism, law)))
>>> kept = tilted.draw(500, np.random.default_rng(0))
>>> bool(tilted.terms(kept, 0.5).max() <= tilted.largest(0.5) < 0.5)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.draws.estimators import Floats, OfSetting, rising
from dpcal.accountants.correlated.likelihood import VALIDATED, largest_state
from dpcal.accountants.correlated.likelihood.base import chebyshev, interpolation
from dpcal.errors import UnsupportedEvent

__all__ = ["Tilted"]


@dataclass(frozen=True, eq=False)
class Tilted(OfSetting):
    """Half of the draws from P, half from L^2 Q / E_Q[L^2], for ``C[t, u] = decay^(t - u)``.

    A draw from the second law is C (y1 + y2) plus noise, for two patterns with probability
    proportional to s(y1) s(y2) exp(<C y1, C y2> / sigma^2), which are drawn forward with exact
    look-ahead. The terms (L - e^eps)_+ / (1/2 L + 1/2 L^2 / E[L^2]) are bounded by about twice the
    order-2 Renyi conversion of delta.
    """

    nodes: int = 24
    direction: str = "remove"

    def __post_init__(self) -> None:
        self.setting.require_exact("Tilted")
        if self.setting.mechanism.decay is None or not self.setting.law.independent:
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
        """Return the numbers that are kept of draws, shape (rows, draws)."""
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
        # The term is (L - e^eps)_+ / L, over 1/2 + 1/2 L / E[L^2].
        weight = np.logaddexp(0.0, log_l - self.log_moment) - math.log(2)
        terms = rising(log_l + slack, epsilon) * np.exp(-weight + 4 * slack)
        return np.asarray(np.minimum(terms, self.largest(epsilon)))

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms, or None."""
        # With u = L / e^eps, the ratio (u - 1) / (u / 2 + c u^2) is largest at u = 1 + sqrt(1 + 1 /
        # (2 c)).
        c = 0.5 * math.exp(min(epsilon - self.log_moment, 600.0))
        u = 1 + math.sqrt(1 + 0.5 / c)
        return (u - 1) / (0.5 * u + c * u * u) * (1 + 1e-6)
