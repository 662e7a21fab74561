r"""How likely is an output with the record, against without? Likelihood ratios.

Every engine maps fields ``a = C^T x / sigma^2`` of shape (rounds, draws) to log L. For
``C[t, u] = decay^(t - u)`` the past enters through one number, s_t = decay s_{t-1} + y_t, and

    M_{t-1}(s) = (1 - r) M_t(decay s) + r exp(h_t - decay b_t s) M_t(decay s + 1),    L = M_0(0),

with b_t the energy of column t and h_t = a_t - b_t / 2. Each M_t is the Laplace transform of a
positive measure: log M_t is smooth, convex and decreasing.

* :class:`GridEngine` interpolates log M_t at Chebyshev nodes, and refines them until 64 draws agree
  to 1e-7; the error falls geometrically in the number of nodes.
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
    "largest_state",
    "mean_field_minorant",
    "refined",
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
    """Log M at Chebyshev nodes of the state, for ``C[t, u] = decay^(t - u)``.

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
    """

    mechanism: Mechanism
    law: Automaton
    nodes: int = 16
    end: float | None = None

    @cached_property
    def _grid(self) -> tuple[Floats, Floats, Floats]:
        decay = _decay(self.mechanism)
        top = largest_state(decay)
        end = top if self.end is None else min(self.end, top)
        s, weights = chebyshev(self.nodes, end)
        idle = interpolation(s, weights, decay * s)
        return s, idle, interpolation(s, weights, np.minimum(decay * s + 1, end))

    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""
        s, W0, W1 = self._grid
        decay = _decay(self.mechanism)
        return kernels.grid_log_ratio(
            a, self.mechanism.energies, s, W0, W1, decay, *self.law.tables
        )


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


def refined(engine: GridEngine, draws: list[Floats]) -> GridEngine:
    """The engine with nodes and range raised until given fields change by at most 1e-7.

    Raises
    ------
    UnsupportedEvent
        If 160 nodes are not enough.
    """
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
