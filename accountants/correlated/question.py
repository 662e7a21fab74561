"""Which engine answers a question about a run? One run under a sampler.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> question = Question.of(LambdaCGD(50, 0.5), Poisson(0.02), 2.0, Options(seed=0))
>>> question.route, type(question.setting("remove").engine).__name__
('grid', 'GridEngine')
"""

from __future__ import annotations

import os
import secrets
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpcal import _validate
from dpcal.accountants.correlated.bounds import Bound, proved, proved_adding
from dpcal.accountants.correlated.bounds.proved import Nothing, proved_replaced
from dpcal.accountants.correlated.draws.estimators import Estimator, Setting
from dpcal.accountants.correlated.draws.montecarlo import Progress, Sample, simulate
from dpcal.accountants.correlated.likelihood import (
    BracketEngine,
    Engine,
    GridEngine,
    ParticleEngine,
    TransferEngine,
    likely_end,
    refined,
    refined_vector,
)
from dpcal.accountants.correlated.mechanism import Mechanism, Shape, Shaped
from dpcal.accountants.correlated.table import Row, chosen
from dpcal.accountants.participations import Automaton
from dpcal.accountants.samplers import Sampler
from dpcal.errors import UnsupportedEvent

__all__ = ["ARITHMETIC", "STATISTICS", "Options", "Question"]

STATISTICS = ("certified", "asymptotic", "none")
ARITHMETIC = ("validated", "bracketed")

# Default probability that bounds from draws are wrong, as a part of the target delta. A larger part
# takes more of delta; a smaller one needs more draws, in proportion to its logarithm.
_PART_OF_DELTA = 1e-2
# The default if delta is computed; the probability is added to it.
_WITHOUT_TARGET = 1e-9
# The default for intervals that hold only asymptotically: smaller values would be unreliable.
_ASYMPTOTIC = 0.05

# Key of the random stream of pilots; no chunk of draws has this key.
_PILOT_STREAM = 2**31


@dataclass(frozen=True)
class Options:
    """Settings of the draws: the arguments that epsilon and delta of correlated noise share."""

    statistics: str = "certified"
    draws: int = 100_000
    failure_probability: float | None = None
    seed: int | None = None
    arithmetic: str = "validated"
    particles: int = 32
    executor: Executor | Any | None = None
    progress: bool | Progress = False
    checkpoint: str | os.PathLike[str] | None = None
    save_every: int = 50

    def __post_init__(self) -> None:
        _validate.choice(STATISTICS, statistics=self.statistics)
        _validate.choice(ARITHMETIC, arithmetic=self.arithmetic)
        _validate.count(draws=self.draws)
        _validate.seed(seed=self.seed)
        _validate.count(particles=self.particles)
        _validate.count(save_every=self.save_every)
        if self.failure_probability is not None:
            _validate.probability(failure_probability=self.failure_probability)

    def seeded(self) -> Options:
        """Return the options with a seed, a fresh and secret one if there is none."""
        return replace(self, seed=secrets.randbits(63)) if self.seed is None else self

    def pilot(self) -> np.random.Generator:
        """Return a generator for draws that only choose a method."""
        sequence = np.random.SeedSequence(self.seed, spawn_key=(_PILOT_STREAM,))
        return np.random.Generator(np.random.PCG64(sequence))

    def failure(self, target: float | None, *, proved: bool) -> float:
        """Return the probability that bounds from the draws of both directions are wrong.

        Parameters
        ----------
        target
            Delta, if it is given.
        proved
            Whether confidence bounds hold at every number of draws.
        """
        asked = self.failure_probability
        if not proved:
            return _ASYMPTOTIC if asked is None else asked
        part = _WITHOUT_TARGET if target is None else _PART_OF_DELTA * target
        if asked is None:
            return part
        # The given probability may be meant for normal intervals, and may be far above delta. A
        # part of delta must be smaller.
        return asked if self.statistics == "certified" else min(asked, part)

    def simulate(self, estimator: Estimator, stream: int) -> Sample:
        """Return draws, with one checkpoint file for each direction."""
        path = None if self.checkpoint is None else f"{os.fspath(self.checkpoint)}.{stream}"
        return simulate(
            estimator,
            draws=self.draws,
            seed=int(self.seed or 0),
            stream=stream,
            executor=self.executor,
            progress=self.progress,
            checkpoint=path,
            save_every=self.save_every,
        )


@dataclass(frozen=True, eq=False)
class Question:
    """A mechanism under a sampler, the route that the table chose, and how to draw.

    Attributes
    ----------
    mechanism, sampler, options
        The run, and how to draw.
    route
        Name of the method.
    refusal
        Reason why draws cannot answer, or None if they can.
    replaced
        Whether the record is replaced, and not left out.
    """

    mechanism: Mechanism
    sampler: Sampler
    route: str
    options: Options
    refusal: str | None = None
    replaced: bool = False

    @classmethod
    def of(
        cls,
        strategy: Shaped | Shape,
        sampler: Sampler,
        noise_multiplier: float,
        options: Options,
        *,
        replaced: bool = False,
    ) -> Question:
        """Return the question about a strategy (or its shape), with the chosen route."""
        sigma = _validate.noise(noise_multiplier=noise_multiplier)
        shape = strategy if isinstance(strategy, Shape) else Shape.of(strategy)
        mechanism = Mechanism(shape, sigma)
        row = chosen(mechanism, sampler)
        route, refusal = row.route, row.refusal
        if replaced:
            route, refusal = _of_replaced(mechanism, sampler, row)
        return cls(mechanism, sampler, route, options.seeded(), refusal, replaced)

    @cached_property
    def law(self) -> Automaton:
        """The law of one record's participations."""
        return self.sampler.automaton(self.mechanism.steps)

    @cached_property
    def proved(self) -> Bound:
        """The smallest bound on both directions that needs no draws."""
        bound = proved_replaced if self.replaced else proved
        return bound(self.mechanism, self.sampler)

    @cached_property
    def proved_adding(self) -> Bound:
        """The smallest bound on adding a record that needs no draws.

        If it is replaced, both directions are mirror images, and removing bounds both.
        """
        if self.replaced:
            return Nothing(0.0)
        return proved_adding(self.mechanism, self.sampler, self.proved)

    def setting(self, direction: str) -> Setting:
        """The mechanism, the law, and the engine for a direction."""
        return Setting(self.mechanism, self.law, self._engine(direction))

    def _engine(self, direction: str) -> Engine:
        if self.route in ("separated", "transfer"):
            return TransferEngine(self.mechanism, self.law, separated=self.route == "separated")
        if self.route == "particles":
            return ParticleEngine(self.mechanism, self.law, self.options.particles)
        if self.route == "states":
            return self._states
        if self.options.arithmetic == "validated" and self._grid is not None:
            return self._grid
        end = likely_end(self.mechanism, self.law)
        return BracketEngine(self.mechanism, self.law, upper=direction == "remove", end=end)

    @cached_property
    def _grid(self) -> GridEngine | None:
        """The grid, refined on draws of both laws; None if it would need too many nodes."""
        rng = self.options.pilot()
        end = likely_end(self.mechanism, self.law)
        engine = GridEngine(self.mechanism, self.law, 16, end)
        setting = Setting(self.mechanism, self.law, engine)
        x = setting.telling(32, rng)
        fields = [self.mechanism.fields(x), self.mechanism.fields(setting.noise(32, rng))]
        try:
            return refined(engine, fields)
        except UnsupportedEvent:
            return None

    @cached_property
    def _states(self) -> Engine:
        """The grid of states, refined on draws of both laws; particles if it is too large."""
        rng = self.options.pilot()
        particles = ParticleEngine(self.mechanism, self.law, self.options.particles)
        setting = Setting(self.mechanism, self.law, particles)
        x = np.concatenate([setting.telling(24, rng), setting.noise(8, rng)], axis=1)
        try:
            return refined_vector(self.mechanism, self.law, [self.mechanism.fields(x)])
        except UnsupportedEvent:
            return particles

    @property
    def name(self) -> str:
        """The route that is used in the end."""
        if self.route == "states" and isinstance(self._states, ParticleEngine):
            return "particles"
        return self.route


def _of_replaced(mechanism: Mechanism, sampler: Sampler, row: Row) -> tuple[str, str | None]:
    """Return the route of draws for a replaced record, or the reason why there is none."""
    if row.route in ("product", "separated"):
        return row.route, None
    if sampler.equally_likely(mechanism.steps) is not None:
        return "bins", None
    if row.route != "groups" and mechanism.kind in ("diagonal", "banded"):
        return "transfer", None
    return row.route, (
        "a replaced record is drawn where likelihood ratios are exact: for banded strategies, and "
        "for balls in bins"
    )
