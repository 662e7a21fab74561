"""Which likelihood ratios come from a grid of up to three states? Sums of geometric series.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import BLT
>>> mechanism = Mechanism.of(BLT(8, (0.9,), (0.3,)), noise_multiplier=1.1)
>>> engine = VectorEngine(mechanism, Poisson(0.2).automaton(8), (16,), (2.0,))
>>> engine.log_ratio(mechanism.fields(np.zeros((8, 1)))).shape
(1,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.likelihood.base import (
    VALIDATED,
    Engine,
    Floats,
    chebyshev,
    interpolation,
)
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = ["VectorEngine", "refined_vector"]


@dataclass(frozen=True, eq=False)
class VectorEngine(Engine):
    """Log M at a tensor grid of Chebyshev nodes, where the past is a vector of states.

    For ``C[t + k, t] = sum_j scales[j] decays[j]^(k - 1)``, the states w_j <- decays[j] w_j + y_t
    carry all of the past, and

        M_{t-1}(w) = (1 - r) M_t(D w) + r exp(h_t - <g_t, w>) M_t(D w + 1),    L = M_0(0),

    where D multiplies each state with its decay and ``g_t`` is ``mechanism.couplings[t]``.

    Parameters
    ----------
    mechanism, law
        A mechanism of kind ``"BLT"``, and its law of participations.
    nodes
        Number of nodes of each axis.
    middles
        For each axis the state below which half of its nodes lie. Possible states often reach a
        hundred times further than those of usual records, and log M is flat there.
    """

    nodes: tuple[int, ...]
    middles: tuple[float, ...]

    slack = VALIDATED

    @cached_property
    def _axes(self) -> list[_Axis]:
        decays, _ = series_of(self.mechanism)
        return [
            _Axis.of(float(decay), self.mechanism.steps, count, middle)
            for decay, count, middle in zip(decays, self.nodes, self.middles, strict=True)
        ]

    @cached_property
    def _grid(self) -> tuple[Floats, Floats, Floats]:
        """Return the states of the nodes, and the matrices of both branches for each axis."""
        decays, _ = series_of(self.mechanism)
        widest = max(self.nodes)
        W = np.zeros((2, decays.size, widest * widest))
        for j, (decay, axis) in enumerate(zip(decays, self._axes, strict=True)):
            for y in (0, 1):
                moved = axis.weights_at(decay * axis.states + y)
                W[y, j, : moved.size] = moved.ravel()
        idle, join = W.reshape(2, decays.size, widest, widest)
        parts = np.meshgrid(*(axis.states for axis in self._axes), indexing="ij")
        points = np.stack([part.ravel() for part in parts], axis=1)
        return np.ascontiguousarray(points), idle, join

    @cached_property
    def _origin(self) -> Floats:
        """Return the weights of the nodes at the state without participations."""
        out = np.ones(1)
        for axis in self._axes:
            out = np.outer(out, axis.weights_at(np.zeros(1))).ravel()
        return out

    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""
        points, W0, W1 = self._grid
        return kernels.vector_log_ratio(
            a,
            self.mechanism.energies,
            self.mechanism.couplings,
            np.array(self.nodes, dtype=np.intc),
            points,
            W0,
            W1,
            self._origin,
            self.law.tables,
        )


def series_of(mechanism: Mechanism) -> tuple[Floats, Floats]:
    if mechanism.series is None:
        raise ValueError(f"mechanism must be of kind 'BLT', got {mechanism.kind!r}.")
    return mechanism.series


@dataclass(frozen=True, eq=False)
class _Axis:
    """Chebyshev nodes u of [0, 1] as states ``low + span u squeeze / (1 - (1 - squeeze) u)``."""

    u: Floats
    barycentric: Floats
    low: float
    span: float
    squeeze: float

    @classmethod
    def of(cls, decay: float, steps: int, nodes: int, middle: float) -> _Axis:
        """Return states of a decay, in an interval that both kinds of rounds map into itself."""
        u, barycentric = chebyshev(nodes, 1.0)
        if decay < 0:
            span = (1 - decay) / (1 - decay * decay)
            return cls(u, barycentric, decay / (1 - decay * decay), span, 1.0)
        # The axis extends far beyond the states of records, to where log M is flat: a shorter one
        # would cut off states of the grid, which makes a corner that a polynomial does not follow.
        span = min(8.0 * steps, 1 / max(1 - decay, 1e-300))
        return cls(u, barycentric, 0.0, span, min(1.0, middle / max(span - middle, 1e-300)))

    @property
    def states(self) -> Floats:
        return self.low + self.span * self.u * self.squeeze / (1 - (1 - self.squeeze) * self.u)

    def weights_at(self, states: Floats) -> Floats:
        """Return the matrix from values at the nodes to values at states, at most the largest."""
        x = np.clip((states - self.low) / self.span, 0.0, 1.0)
        return interpolation(self.u, self.barycentric, x / (self.squeeze + (1 - self.squeeze) * x))


# Most nodes of a grid, over all axes together. A larger grid takes more time than particles.
MOST_NODES = 1000


def refined_vector(mechanism: Mechanism, law: Automaton, draws: list[Floats]) -> VectorEngine:
    """Return the engine with the fewest nodes on each axis that are accurate on given fields.

    It is accurate if eight more nodes on any axis change log L by at most 1e-7.

    Raises
    ------
    UnsupportedEvent
        If this takes more than 1000 nodes.
    """
    largest = _common_states(mechanism, law)
    nodes = tuple(6 for _ in largest)
    while True:
        size = math.prod(nodes)
        if size > MOST_NODES:
            raise UnsupportedEvent(
                f"A grid of states would need more than {MOST_NODES} nodes, with {nodes} on its "
                "axes."
            )
        found = []
        for reach in (1.0, 2.0, 4.0):
            middles = tuple(reach * state for state in largest)
            engine = VectorEngine(mechanism, law, nodes, middles)
            values = [engine.log_ratio(a) for a in draws]
            found.append((_change(engine, values, draws, None), reach, engine, values))
        change, _, engine, values = min(found, key=lambda row: row[:2])
        if change <= VALIDATED:
            return engine
        if not math.isfinite(change):
            raise UnsupportedEvent("The noise is too small: likelihood ratios overflow.")
        each = [_change(engine, values, draws, axis) for axis in range(len(nodes))]
        step = 4 if change > 1e3 * VALIDATED else 2
        nodes = tuple(n + step * (c > 0.1 * max(each)) for n, c in zip(nodes, each, strict=True))


def _change(
    engine: VectorEngine, values: list[Floats], draws: list[Floats], axis: int | None
) -> float:
    """Return the change of the values with eight more nodes on one axis, or on all."""
    more = [8 if axis in (None, other) else 0 for other in range(len(engine.nodes))]
    finer = replace(engine, nodes=tuple(n + m for n, m in zip(engine.nodes, more, strict=True)))
    better = [finer.log_ratio(a) for a in draws]
    return max(float(np.abs(u - v).max()) for u, v in zip(values, better, strict=True))


def _common_states(mechanism: Mechanism, law: Automaton) -> tuple[float, ...]:
    """Return the largest states of 1024 records with a fixed seed."""
    y, _ = law.sample(1024, np.random.default_rng(0))
    largest = []
    for decay in series_of(mechanism)[0]:
        states = np.array(y)
        kernels.ar1_states(states, float(decay))
        largest.append(max(1.0, float(states.max())))
    return tuple(largest)
