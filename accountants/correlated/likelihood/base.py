"""How is a likelihood ratio computed? The engines' protocol, and polynomials through nodes.

>>> s, weights = chebyshev(5, 2.0)
>>> matrix = interpolation(s, weights, np.array([0.3, 1.7]))
>>> bool(np.allclose(matrix @ s**3, [0.3**3, 1.7**3]))
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Automaton

__all__ = [
    "VALIDATED",
    "Engine",
    "Floats",
    "chebyshev",
    "decay_of",
    "interpolation",
    "largest_state",
]

Floats = NDArray[np.float64]

# Largest change of log L between two resolutions, on draws of both laws. Terms of delta change by
# at most this relative size; the estimators add it as a slack, so a larger value only widens them.
VALIDATED = 1e-7


@dataclass(frozen=True, eq=False)
class Engine(ABC):
    """Maps fields to log-likelihood ratios.

    Attributes
    ----------
    mechanism, law
        The run, and the automaton of participations.
    exact
        Whether log L is computed, and not a bound on it or a random estimate of it.
    slack
        Largest error of log L.
    """

    mechanism: Mechanism
    law: Automaton

    exact: ClassVar[bool] = True
    slack: ClassVar[float] = 0.0

    @abstractmethod
    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""


def chebyshev(nodes: int, end: float) -> tuple[Floats, Floats]:
    """Return Chebyshev-Lobatto nodes of [0, end], increasing, and their barycentric weights."""
    k = np.arange(nodes)
    weights = np.where(k % 2, -1.0, 1.0)
    weights[[0, -1]] *= 0.5
    return end * 0.5 * (1 - np.cos(np.pi * k / (nodes - 1))), weights


def interpolation(s: Floats, weights: Floats, at: Floats) -> Floats:
    """Return the matrix from values at the nodes s to values of their polynomial elsewhere."""
    gaps = at[:, None] - s[None, :]
    hits = np.abs(gaps) < 1e-13 * max(1.0, s[-1])
    gaps[hits] = 1.0
    matrix = weights / gaps
    matrix /= matrix.sum(axis=1, keepdims=True)
    matrix[hits.any(axis=1)] = 0.0
    matrix[hits] = 1.0
    return np.ascontiguousarray(matrix)


def largest_state(decay: float) -> float:
    """Return the supremum 1 / (1 - decay) of the states, at most 1e6."""
    return min(1 / (1 - decay), 1e6)


def decay_of(mechanism: Mechanism) -> float:
    """Return the decay of a mechanism of kind ``"lambda-CGD"``."""
    if mechanism.decay is None:
        raise ValueError(f"mechanism must be of kind 'lambda-CGD', got {mechanism.kind!r}.")
    return mechanism.decay
