"""Which likelihood ratios come from a grid of one state? Noise ``C[t, u] = decay^(t - u)``.

>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(8, 0.6), noise_multiplier=1.1)
>>> law = Poisson(0.2).automaton(8)
>>> a = mechanism.fields(1.5 * np.sin(np.arange(1.0, 9.0))[:, None])
>>> coarse, fine = (GridEngine(mechanism, law, nodes=n).log_ratio(a)[0] for n in (16, 48))
>>> bool(abs(coarse - fine) < 1e-7)
True
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
    decay_of,
    interpolation,
    largest_state,
)
from dpcal.errors import UnsupportedEvent

__all__ = ["GridEngine", "refined"]


@dataclass(frozen=True, eq=False)
class GridEngine(Engine):
    """M at Chebyshev nodes of the state, or log M, for ``C[t, u] = decay^(t - u)``.

    Parameters
    ----------
    mechanism, law
        A mechanism of kind ``"lambda-CGD"``, and its law of participations.
    nodes
        Number of nodes.
    end
        States beyond it are treated as equal to it, which can only raise L; None for no limit.
    logarithmic
        Whether log M is interpolated for all draws. This is always so if ``end`` is given or
        ``nodes`` is not a multiple of 4.

    Notes
    -----
    Polynomials through M take products only, and both branches of the recursion share them: without
    ``end``, ``s -> decay s`` and ``s -> decay s + 1`` are mirror images in the middle of the
    states. For each draw the values are those of ``exp(tilt s) M(s)``, with a tilt that makes both
    ends about equal.

    A polynomial is close to M in units of its largest value, and log L needs its relative error,
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

    nodes: int = 16
    end: float | None = None
    logarithmic: bool = False

    slack = VALIDATED

    @cached_property
    def _grid(self) -> tuple[Floats, Floats, Floats]:
        decay = decay_of(self.mechanism)
        top = largest_state(decay)
        end = top if self.end is None else min(self.end, top)
        s, weights = chebyshev(self.nodes, end)
        idle = interpolation(s, weights, decay * s)
        return s, idle, interpolation(s, weights, np.minimum(decay * s + 1, end))

    @property
    def mirrored(self) -> bool:
        """Whether M itself is interpolated, for the draws with a small error bound."""
        whole = self.end is None and 1 - decay_of(self.mechanism) > 1e-6
        return whole and self.nodes % 4 == 0 and not self.logarithmic

    @cached_property
    def _halves(self) -> Floats:
        """Return the matrix of idle rounds, for sums and differences of mirrored values.

        Each block holds rows that are mirror images; the shape is (nodes / 4, nodes / 2, 8).
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
        """Return weights of sums of mirrored values for 2 a_e rho^2 / (1 - rho)."""
        decay, degree = decay_of(self.mechanism), self.nodes - 1
        even = degree - 1
        weights = np.cos(np.pi * even / degree * np.arange(self.nodes // 2)) * 2 / degree
        weights[0] *= 0.5
        # After taking part in every round, a round changes log M by decay energy / (1 - decay).
        end = largest_state(decay)
        steepest = decay * end * float(self.mechanism.energies.max())
        # Tilts are known to within 0.1.
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
            decay_of(self.mechanism),
            4 * self.nodes * 2.0**-53,
            tolerance,
            self.law.tables,
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
        decay = decay_of(self.mechanism)
        return kernels.grid_log_ratio(a, self.mechanism.energies, s, W0, W1, decay, self.law.tables)


# Numbers of nodes for M itself; with more nodes, log M on fewer nodes is as fast.
_LIKELIHOOD_NODES = (16, 20, 24, 32, 40, 48)


def refined(engine: GridEngine, draws: list[Floats]) -> GridEngine:
    """Return the fastest engine whose error on given fields is small enough.

    This is M itself on the fewest nodes that decide at least 15 of 16 draws, and agree to 1e-7 with
    log M on more than twice as many. Otherwise it is log M, with nodes and range raised until the
    values at the fields change by at most 1e-7.

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
    """Return whether M decides most draws, and agrees with log M on a finer grid."""
    left = [np.isnan(engine.trusted(a)) for a in draws]
    if float(np.concatenate(left).mean()) > 1 / 16:
        return False
    finer = replace(engine, nodes=2 * engine.nodes + 16, logarithmic=True)
    change = [np.abs(engine.log_ratio(a) - finer.log_ratio(a)).max() for a in draws]
    return bool(max(change) <= VALIDATED)
