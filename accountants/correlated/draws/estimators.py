r"""Which draws estimate delta? Unbiased estimators for both directions, some with a proved range.

Removing a record costs H(P || Q) = E_P[(1 - e^eps / L)_+], and adding one costs H(Q || P) = E_Q[(1
- e^eps L)_+]. Each estimator draws from a law of its own and keeps the log-likelihood ratios, from
which the terms at every epsilon follow.

=================== ========== ===================================== ===============================
estimator           direction  law                                   range of the terms
=================== ========== ===================================== ===============================
``Direct``          both       P or Q                                1
``Tilted``          remove     half P, half L^2 Q / E[L^2]           close to the Renyi bound
``PowerTilted``     remove     B^q Q / E[B^q], B >= L a product      a Renyi bound of order q
``Counts``          remove     more participations, which attract    none proved
``ShiftRemove``     remove     P, moved along its mean               none proved
``ShiftAdd``        add        Q, moved against the mean             a half-space bound
``Bins``            both       as above, in one dimension a bin      1, or the Renyi bound
``Mirrored``        both       P, for a record that is replaced      1
``MirroredBins``    both       such a record, one dimension a bin    1
=================== ========== ===================================== ===============================

By Kahane's interpolation no pair of a record and its replacement costs more than C y against -C y
(docs/correlated.md, "Mixed signs"). Both directions are mirror images, so that one answers. The
terms are (1 - e^eps L(-x) / L(x))_+ for x with the record, L its likelihood ratio against none.

>>> from dpcal.accountants.correlated.likelihood import GridEngine
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(8, 0.6), noise_multiplier=1.1)
>>> law = Poisson(0.2).automaton(8)
>>> direct = Direct(Setting(mechanism, law, GridEngine(mechanism, law)), "remove")
>>> kept = direct.draw(1000, np.random.default_rng(0))
>>> terms = direct.terms(kept, 0.5)
>>> bool(0 < terms.mean() < terms.max() <= direct.largest(0.5))
True
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.correlated.likelihood import Engine, ParticleEngine
from dpcal.accountants.correlated.mechanism import Mechanism, Plain
from dpcal.accountants.participations import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = ["Direct", "Estimator", "Mirrored", "OfSetting", "Setting", "rising"]

Floats = NDArray[np.float64]

# Normals that are drawn at once, 1 MB: more would not fit the cache of a core.
_NOISE_AT_ONCE = 2**17


class Estimator(Protocol):
    """Draws, and the terms whose mean is delta."""

    @property
    def direction(self) -> str:
        """``"remove"`` or ``"add"``."""

    @property
    def steps(self) -> int:
        """Number of values of one draw."""

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, or None."""


@dataclass(frozen=True, eq=False)
class OfSetting(Plain):
    """Draws of a run, one value for each round."""

    setting: Setting

    @property
    def steps(self) -> int:
        """Number of rounds, which is the number of values of one draw."""
        return self.setting.mechanism.steps

    def largest(self, epsilon: float) -> float | None:
        """Return a proved bound on the terms, which is 1 for plain draws, or None."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Setting(Plain):
    """A mechanism, a law of participations, and an engine for their likelihood ratio."""

    mechanism: Mechanism
    law: Automaton
    engine: Engine

    @property
    def slack(self) -> float:
        """Largest error of the engine's log L."""
        return self.engine.slack

    @cached_property
    def mean(self) -> Floats:
        """C E[y], of shape (steps,)."""
        return self.mechanism.means(np.ascontiguousarray(self.law.rates[:, None]))[:, 0]

    def noise(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return draws from Q, of shape (steps, draws)."""
        return self.mechanism.sigma * generator.standard_normal((self.mechanism.steps, draws))

    def add_noise(self, x: Floats, generator: np.random.Generator) -> None:
        """Add a draw from Q to each column of x, in place, without another array of its size."""
        rows = max(1, _NOISE_AT_ONCE // x.shape[1])
        for t in range(0, len(x), rows):
            part = x[t : t + rows]
            part += self.mechanism.sigma * generator.standard_normal(part.shape)

    def with_record(self, draws: int, generator: np.random.Generator) -> tuple[Floats, Any]:
        """Return draws from P, and their participations."""
        y, first = self.law.sample(draws, generator)
        x = self.mechanism.means(y)
        self.add_noise(x, generator)
        return x, (y, first)

    def telling(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return observations of usual and of frequent records, to test likelihood ratios on."""
        x = self.mechanism.means(self.law.telling(draws, generator))
        self.add_noise(x, generator)
        return x

    def log_ratio(self, x: Floats, generator: np.random.Generator, reference: Any = None) -> Floats:
        """Return log L of observations; their array is overwritten."""
        a = self.mechanism.fields(x)
        if isinstance(self.engine, ParticleEngine):
            return self.engine.log_ratio(a, generator, reference)
        return self.engine.log_ratio(a)

    def require_exact(self, estimator: str) -> None:
        """Refuse one-sided or random likelihoods for an estimator that is not monotone in them."""
        if not self.engine.exact:
            raise UnsupportedEvent(
                f"{estimator} needs likelihood ratios, not bounds or estimates of them; use Direct."
            )


def rising(log_l: Floats, epsilon: float) -> Floats:
    """Return (1 - e^(epsilon - l))_+."""
    return np.where(log_l > epsilon, -np.expm1(np.minimum(epsilon - log_l, 0.0)), 0.0)


@dataclass(frozen=True, eq=False)
class Direct(OfSetting):
    """Draws from P (remove) or Q (add) themselves."""

    direction: str

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        if self.direction == "remove":
            x, reference = self.setting.with_record(draws, generator)
            return self.setting.log_ratio(x, generator, reference)[None]
        return self.setting.log_ratio(self.setting.noise(draws, generator), generator)[None]

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        loss = kept[0] if self.direction == "remove" else -kept[0]
        return rising(loss + self.setting.slack, epsilon)


@dataclass(frozen=True, eq=False)
class Mirrored(OfSetting):
    """Draws with the record, and the likelihood ratio of C y against -C y, which is exact."""

    direction: ClassVar[str] = "remove"

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        self.setting.require_exact("Mirrored")
        x, _ = self.setting.with_record(draws, generator)
        a, engine = self.setting.mechanism.fields(x), self.setting.engine
        opposite = engine.log_ratio(-a)
        return np.asarray(engine.log_ratio(a) - opposite)[None]

    def terms(self, kept: Floats, epsilon: float) -> Floats:
        """Return terms >= 0 whose mean is delta, or at least delta."""
        return rising(kept[0] + 2 * self.setting.slack, epsilon)
