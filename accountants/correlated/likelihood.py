r"""How likely is an output with the record, against without? Likelihood ratios.

Every engine maps fields ``a = C^T x / sigma^2`` of shape (rounds, draws) to log L. For
``C[t, u] = decay^(t - u)`` the past enters through one number, s_t = decay s_{t-1} + y_t, and

    M_{t-1}(s) = (1 - r) M_t(decay s) + r exp(h_t - decay b_t s) M_t(decay s + 1),    L = M_0(0),

with b_t the energy of column t and h_t = a_t - b_t / 2. Each M_t is the Laplace transform of a
positive measure: log M_t is smooth, convex and decreasing.

* :class:`GridEngine` interpolates M_t at Chebyshev nodes, and log M_t for the draws whose error by
  M_t may be too large; :func:`refined` adds nodes until 64 draws agree to 1e-7 with log M_t at more
  than twice as many. The error falls geometrically in the number of nodes.
* :class:`VectorEngine` does the same on a grid of up to three states, for sums of geometric series.
* :class:`BracketEngine` proves bounds: chords lie above a convex function, tangents below.
* :class:`TransferEngine` carries the last ``bands - 1`` participations, exact up to rounding.
* :class:`ParticleEngine` estimates L without bias for any C >= 0. By Jensen's inequality every
  delta that it gives is too large on average, never too small.

>>> import numpy as np
>>> from types import SimpleNamespace
>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.correlated.samplers import Poisson
>>> C = np.tril(0.6 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8))))
>>> strategy = SimpleNamespace(steps=8, matrix=lambda: C, decay=0.6)
>>> mechanism = Mechanism.of(strategy, noise_multiplier=1.1)
>>> x = 1.5 * np.sin(np.arange(1, 9))[:, None]
>>> engine = GridEngine(mechanism, Poisson(0.2).automaton(8), nodes=48)
>>> print(f"{engine.log_ratio(mechanism.fields(x))[0]:.12f}")
0.013272011634
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.samplers import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = [
    "BracketEngine",
    "Engine",
    "GridEngine",
    "ParticleEngine",
    "TransferEngine",
    "VectorEngine",
    "largest_state",
    "mean_field_minorant",
    "refined",
    "refined_vector",
]

Floats = NDArray[np.float64]

# Largest difference of log L between two resolutions, on draws of both laws.
VALIDATED = 1e-7

_NO_REFERENCE = np.empty((0, 0))


class Engine(Protocol):
    """Maps fields to log-likelihood ratios."""

    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""


def chebyshev(nodes: int, end: float) -> tuple[Floats, Floats]:
    """Chebyshev-Lobatto nodes of [0, end], increasing, and their barycentric weights."""
    k = np.arange(nodes)
    weights = np.where(k % 2, -1.0, 1.0)
    weights[[0, -1]] *= 0.5
    return end * 0.5 * (1 - np.cos(np.pi * k / (nodes - 1))), weights


def interpolation(s: Floats, weights: Floats, at: Floats) -> Floats:
    """Matrix that maps values at the nodes s to values of their polynomial at other points."""
    gaps = at[:, None] - s[None, :]
    hits = np.abs(gaps) < 1e-13 * max(1.0, s[-1])
    gaps[hits] = 1.0
    matrix = weights / gaps
    matrix /= matrix.sum(axis=1, keepdims=True)
    matrix[hits.any(axis=1)] = 0.0
    matrix[hits] = 1.0
    return np.ascontiguousarray(matrix)


def largest_state(decay: float) -> float:
    """The supremum 1 / (1 - decay) of the states, at most 1e6."""
    return min(1 / (1 - decay), 1e6)


def _decay(mechanism: Mechanism) -> float:
    if mechanism.decay is None:
        raise ValueError(f"mechanism must be of kind 'lambda-CGD', got {mechanism.kind!r}.")
    return mechanism.decay


@dataclass(frozen=True, eq=False)
class GridEngine:
    """M at Chebyshev nodes of the state, or log M, for ``C[t, u] = decay^(t - u)``.

    Parameters
    ----------
    mechanism
        Of kind ``"lambda-CGD"``.
    law
        Automaton of participations.
    nodes
        Number of nodes.
    end
        States beyond it are treated as equal to it, which can only raise L; None for no limit.
    logarithmic
        Whether log M is interpolated for all draws. It is wherever ``end`` is given or ``nodes`` is
        not a multiple of 4.

    Notes
    -----
    Polynomials through M cost products alone, and both branches of the recursion share them:
    without ``end``, ``s -> decay s`` and ``s -> decay s + 1`` are mirror images in the middle of
    the states. For each draw the values are those of ``exp(tilt s) M(s)``, with a tilt that makes
    both ends about equal.

    A polynomial is close to M in units of its largest value, and log L asks for its relative error,
    which therefore is bounded for each draw and round. exp(tilt s) M(s) is a mixture of
    exponentials exp(c z), z in [-1, 1], whose k-th Chebyshev coefficient is 2 I_k(c): for even k it
    is positive whatever the sign of c. Hence nothing cancels in an even coefficient of the
    polynomial, a_e with e = nodes - 2, not even coefficients that fold back on it. As I_{k+1}(c) /
    I_k(c) <= rho = c / (e + 1/2 + sqrt((e + 1/2)^2 + c^2)) for k >= e and the largest c (Amos
    1974), the error is at most 2 a_e rho^2 / (1 - rho). That and a bound on rounding, over the
    smallest value, is the relative error of a round, and to first order the sum over all rounds
    bounds the error of log L. Draws whose sum exceeds 1e-7, or with a value that is not positive,
    are left to log M at twice as many nodes: it is exact for a single exponential, where the
    polynomial is worst. Each draw is judged by itself.
    """

    mechanism: Mechanism
    law: Automaton
    nodes: int = 16
    end: float | None = None
    logarithmic: bool = False

    @cached_property
    def _grid(self) -> tuple[Floats, Floats, Floats]:
        decay = _decay(self.mechanism)
        top = largest_state(decay)
        end = top if self.end is None else min(self.end, top)
        s, weights = chebyshev(self.nodes, end)
        idle = interpolation(s, weights, decay * s)
        return s, idle, interpolation(s, weights, np.minimum(decay * s + 1, end))

    @property
    def mirrored(self) -> bool:
        """Whether M itself is interpolated, as far as it is trusted."""
        whole = self.end is None and 1 - _decay(self.mechanism) > 1e-6
        return whole and self.nodes % 4 == 0 and not self.logarithmic

    @cached_property
    def _halves(self) -> Floats:
        """The matrix of idle rounds, for sums and differences of mirrored values.

        Blocks hold rows that are each other's mirror images, of shape (nodes / 4, nodes / 2, 8).
        """
        n = self.nodes
        _, W, _ = self._grid
        first = np.arange(0, n // 2, 2)
        rows = W[np.stack([first, n - 1 - first, first + 1, n - 2 - first], axis=1)]
        left, right = rows[:, :, : n // 2], rows[:, :, : n // 2 - 1 : -1]
        halves = np.concatenate([left + right, left - right], axis=1) / 2
        return np.ascontiguousarray(halves.transpose(0, 2, 1))

    @cached_property
    def _tail(self) -> Floats:
        """Weights of sums of mirrored values for 2 a_e rho^2 / (1 - rho)."""
        decay, degree = _decay(self.mechanism), self.nodes - 1
        even = degree - 1
        weights = np.cos(np.pi * even / degree * np.arange(self.nodes // 2)) * 2 / degree
        weights[0] *= 0.5
        # After taking part in every round, a round changes log M by decay energy / (1 - decay).
        end = largest_state(decay)
        steepest = decay * end * float(self.mechanism.energies.max())
        # Tilts are right to 0.1.
        c = 0.5 * end * steepest + 0.1
        rho = c / (even + 0.5 + math.hypot(even + 0.5, c))
        return np.asarray(weights * (2 * rho**2 / (1 - rho)))

    def trusted(self, a: Floats, *, tolerance: float = VALIDATED) -> Floats:
        """Return log L by M itself, with NaN for draws whose error may exceed ``tolerance``."""
        return kernels.likelihood_log_ratio(
            a,
            self.mechanism.energies,
            self._grid[0],
            self._halves,
            self._tail,
            _decay(self.mechanism),
            4 * self.nodes * 2.0**-53,
            tolerance,
            *self.law.tables,
        )

    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""
        if self.mirrored:
            found = self.trusted(a)
            doubtful = np.isnan(found)
            if doubtful.any():
                finer = replace(self, nodes=2 * self.nodes, logarithmic=True)
                found[doubtful] = finer.log_ratio(np.ascontiguousarray(a[:, doubtful]))
            return found
        s, W0, W1 = self._grid
        decay = _decay(self.mechanism)
        return kernels.grid_log_ratio(
            a, self.mechanism.energies, s, W0, W1, decay, *self.law.tables
        )


@dataclass(frozen=True, eq=False)
class VectorEngine:
    """Log M at a tensor grid of Chebyshev nodes, where the past is a vector of states.

    For ``C[t + k, t] = sum_j scales[j] decays[j]^(k - 1)``, the states w_j <- decays[j] w_j + y_t
    carry all of the past, and

        M_{t-1}(w) = (1 - r) M_t(D w) + r exp(h_t - <g_t, w>) M_t(D w + 1),    L = M_0(0),

    where D multiplies each state with its decay and ``g_t`` is ``mechanism.couplings[t]``.

    Parameters
    ----------
    mechanism
        Of kind ``"BLT"``.
    law
        Automaton of participations.
    nodes
        Number of nodes of each axis.
    middles
        States that half of the nodes of each axis lie below. An axis reaches as far as states can,
        often a hundred times further than those of records do, and log M is flat there.
    """

    mechanism: Mechanism
    law: Automaton
    nodes: tuple[int, ...]
    middles: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of nodes in all."""
        return math.prod(self.nodes)

    @cached_property
    def _axes(self) -> list[_Axis]:
        decays, _ = _series(self.mechanism)
        return [
            _Axis.of(float(decay), self.mechanism.steps, count, middle)
            for decay, count, middle in zip(decays, self.nodes, self.middles, strict=True)
        ]

    @cached_property
    def _grid(self) -> tuple[Floats, Floats, Floats]:
        """States of the nodes, and the matrices of both branches for each axis."""
        decays, _ = _series(self.mechanism)
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
        """Weights of the nodes at the state without participations."""
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
            *self.law.tables,
        )


def _series(mechanism: Mechanism) -> tuple[Floats, Floats]:
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
        """States of a decay, in an interval that idle rounds and participations map into itself."""
        u, barycentric = chebyshev(nodes, 1.0)
        if decay < 0:
            span = (1 - decay) / (1 - decay * decay)
            return cls(u, barycentric, decay / (1 - decay * decay), span, 1.0)
        # An axis that ended where records can just get would cut off states of the grid, and a
        # polynomial follows no corner; this far out log M is flat.
        span = min(8.0 * steps, 1 / max(1 - decay, 1e-300))
        return cls(u, barycentric, 0.0, span, min(1.0, middle / max(span - middle, 1e-300)))

    @property
    def states(self) -> Floats:
        return self.low + self.span * self.u * self.squeeze / (1 - (1 - self.squeeze) * self.u)

    def weights_at(self, states: Floats) -> Floats:
        """Matrix that maps values at the nodes to values at states, at most the largest."""
        x = np.clip((states - self.low) / self.span, 0.0, 1.0)
        return interpolation(self.u, self.barycentric, x / (self.squeeze + (1 - self.squeeze) * x))


@dataclass(frozen=True, eq=False)
class BracketEngine:
    """A proved bound on log L, above or below, for ``C[t, u] = decay^(t - u)``.

    Parameters
    ----------
    mechanism, law
        As for :class:`GridEngine`.
    upper
        Whether the bound lies above.
    end
        Last node.
    per_decay
        Nodes for each factor of decay; more make the bound tighter.
    smallest
        Smallest positive node.
    """

    mechanism: Mechanism
    law: Automaton
    upper: bool = True
    end: float = 9.0
    per_decay: int | None = None
    smallest: float = 1e-2

    @cached_property
    def nodes(self) -> Floats:
        """Nodes closed under multiplication with decay, so that idle rounds cost nothing."""
        decay = _decay(self.mechanism)
        end = min(self.end, largest_state(decay))
        # A ratio of neighbors near 0.9 whatever the decay.
        split = self.per_decay or max(1, round(math.log(decay) / math.log(0.9)))
        ratio = decay ** (1 / split)
        count = math.ceil(math.log(self.smallest / end) / math.log(ratio))
        positive = end * ratio ** np.arange(count, -1.0, -1.0)
        positive[-1] = end
        return np.concatenate([[0.0], positive])

    def _cells(self, at: Floats) -> tuple[NDArray[np.intc], Floats]:
        s = self.nodes
        at = np.minimum(at, s[-1])
        cell = np.clip(np.searchsorted(s, at, side="right") - 1, 0, s.size - 2)
        return cell.astype(np.intc), (at - s[cell]) / (s[cell + 1] - s[cell])

    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""
        decay, s = _decay(self.mechanism), self.nodes
        cell0, share0 = self._cells(decay * s)
        cell1, share1 = self._cells(decay * s + 1)
        bound = kernels.bracket_log_ratio(
            a,
            self.mechanism.energies,
            s,
            cell0,
            cell1,
            share0,
            share1,
            decay,
            *self.law.tables,
            self.upper,
        )
        # Every round adds a few roundings of numbers of the size of log M; the roundings of the
        # fields themselves move x, whose law is continuous, by as little.
        slack = 1e-14 * self.mechanism.steps * (100 + np.abs(a).max(initial=0.0))
        return np.asarray(bound + slack if self.upper else bound - slack)


@dataclass(frozen=True, eq=False)
class TransferEngine:
    """Transfer matrix over the last participations, for a banded Gram matrix.

    Parameters
    ----------
    mechanism
        With at most 12 bands.
    law
        Automaton of participations.
    separated
        Whether participations are surely at least ``bands`` rounds apart, so that they do not
        interact and no past needs to be carried.
    """

    mechanism: Mechanism
    law: Automaton
    separated: bool = False

    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""
        gram = self.mechanism.gram_bands
        if self.separated:
            gram = np.ascontiguousarray(gram[:, :1])
        return kernels.banded_log_ratio(a, gram, *self.law.tables)


@dataclass(frozen=True, eq=False)
class ParticleEngine:
    """An unbiased estimate of L for any C >= 0, from particles that look at all of x.

    Parameters
    ----------
    mechanism, law
        Of any kind with C >= 0.
    particles
        Number of particles; more make the estimate, and so delta, less inflated.

    Notes
    -----
    Andrieu, Doucet and Holenstein 2010 (conditional sequential Monte Carlo); Andrieu and Roberts
    2009 (pseudo-marginal arguments). (u - e^eps)_+ and (1 - e^eps u)_+ are convex in u.
    """

    mechanism: Mechanism
    law: Automaton
    particles: int = 32

    def log_ratio(
        self,
        a: Floats,
        generator: np.random.Generator | None = None,
        reference: tuple[Floats, NDArray[np.intc]] | None = None,
    ) -> Floats:
        """Return log of the estimate; draws from P pass the participations that they came from."""
        if generator is None:
            generator = np.random.default_rng(0)
        y, first = reference or (_NO_REFERENCE, np.empty(0, dtype=np.intc))
        return kernels.particle_log_ratio(
            a, self.mechanism.gram, *self.law.tables, self.particles, y, first, generator
        )


def mean_field_minorant(mechanism: Mechanism, law: Automaton, a: Floats) -> Floats:
    """A lower bound on log L for independent participations, in O(rounds) for each draw.

    Jensen's inequality under the product law that is tilted by the fields alone.
    """
    if law.start.size != 1:
        raise UnsupportedEvent("The mean-field bound needs independent participations.")
    h = a - 0.5 * mechanism.energies[:, None]
    joined = law.join + h
    log_total = np.logaddexp(law.idle, joined)
    rho = np.exp(joined - log_total)
    pairs = np.triu(mechanism.gram, 1)
    return np.asarray(log_total.sum(axis=0) - np.einsum("ti,ti->i", rho, pairs @ rho))


def likely_end(mechanism: Mechanism, law: Automaton) -> float:
    """A state that one record's participations exceed with probability < 1e-9, and a margin of 3.

    From the Chernoff bound of a sum of independent participations at the law's largest rate,
    for laws whose participations are independent or repel each other.
    """
    decay = _decay(mechanism)
    top = largest_state(decay)
    rate = float(np.exp(law.join).max())
    if law.start.size > 1 or top <= 9:
        return top
    powers = decay ** np.arange(math.ceil(math.log(1e-6) / math.log(decay)))
    tilts = np.geomspace(0.05, 30, 60)
    log_mgf = np.log1p(rate * np.expm1(tilts[:, None] * powers)).sum(axis=1)
    goal = math.log(1e9 * mechanism.steps)
    return min(top, float(((log_mgf + goal) / tilts).min()) + 3.0)


# Of all axes together; a grid with more of them costs more than particles do.
MOST_NODES = 1000


def refined_vector(mechanism: Mechanism, law: Automaton, draws: list[Floats]) -> VectorEngine:
    """The engine with the fewest nodes on each axis that given fields vouch for.

    Another eight nodes on an axis change log L by at most 1e-7.

    Raises
    ------
    UnsupportedEvent
        If that takes more than 1000 nodes.
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
    """How far values move with eight more nodes on one axis, or on all."""
    more = [8 if axis in (None, other) else 0 for other in range(len(engine.nodes))]
    finer = replace(engine, nodes=tuple(n + m for n, m in zip(engine.nodes, more, strict=True)))
    better = [finer.log_ratio(a) for a in draws]
    return max(float(np.abs(u - v).max()) for u, v in zip(values, better, strict=True))


def _common_states(mechanism: Mechanism, law: Automaton) -> tuple[float, ...]:
    """The largest states of 1024 records with a fixed seed."""
    y, _ = law.sample(1024, np.random.default_rng(0))
    largest = []
    for decay in _series(mechanism)[0]:
        states = np.array(y)
        kernels.ar1_states(states, float(decay))
        largest.append(max(1.0, float(states.max())))
    return tuple(largest)


# Numbers of nodes for M itself; with more of them, log M on fewer is as fast.
_LIKELIHOOD_NODES = (16, 20, 24, 32, 40, 48)


def refined(engine: GridEngine, draws: list[Floats]) -> GridEngine:
    """The cheapest engine that given fields vouch for.

    That is M itself on the fewest nodes that decide at least 15 of 16 draws, and agree to 1e-7 with
    log M on more than twice as many. Otherwise it is log M, with nodes and range raised until the
    fields change by at most 1e-7.

    Raises
    ------
    UnsupportedEvent
        If 160 nodes are not enough.
    """
    for nodes in _LIKELIHOOD_NODES:
        direct = replace(engine, nodes=nodes, end=None)
        if direct.mirrored and _vouched(direct, draws):
            return direct
    engine = replace(engine, logarithmic=True)
    values = [engine.log_ratio(a) for a in draws]
    while engine.nodes <= 160:
        end = None if engine.end is None else engine.end + 3
        finer = replace(engine, nodes=engine.nodes + 16, end=end)
        better = [finer.log_ratio(a) for a in draws]
        change = max(np.abs(u - v).max() for u, v in zip(values, better, strict=True))
        if change <= VALIDATED:
            return engine
        engine, values = finer, better
    raise UnsupportedEvent(
        f"The likelihood ratio changes by {change:.1e} between {engine.nodes - 16} and "
        f"{engine.nodes} nodes: the noise is too small for interpolation. Use the bracket."
    )


def _vouched(engine: GridEngine, draws: list[Floats]) -> bool:
    """Whether M decides most draws, and log M on more nodes than it falls back on agrees."""
    left = [np.isnan(engine.trusted(a)) for a in draws]
    if float(np.concatenate(left).mean()) > 1 / 16:
        return False
    finer = replace(engine, nodes=2 * engine.nodes + 16, logarithmic=True)
    change = [np.abs(engine.log_ratio(a) - finer.log_ratio(a)).max() for a in draws]
    return bool(max(change) <= VALIDATED)
