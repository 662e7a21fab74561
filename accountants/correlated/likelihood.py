r"""Likelihood ratios of outputs with a record against outputs without it.

With fields ``a = C^T x / sigma^2``, G = C^T C / sigma^2 and s the law of a record's participations,

    L(x) = sum_y s(y) exp(sum_t y_t (a_t - G_tt / 2) - sum_{u < t} y_t y_u G_tu).

The past enters a round through a state of the law and a memory of C:

=========== ==================================================== ==================================
memory      contents                                             where
=========== ==================================================== ==================================
``none``    nothing                                              participations that no column of C
                                                                 reaches from one to the other
``window``  the last ``bands - 1`` participations                at most 12 bands
``sum``     S = sum_u d^(t - u - 1) y_u, a decaying sum          lambda-CGD, one buffer
=========== ==================================================== ==================================

so that L is a sum of products of numbers >= 0 over paths of a finite automaton, from the last round
on. For S the automaton has a few nodes. The weight of later rounds after S,

    M_{t-1}(S) = (1 - r) M_t(d S) + r exp(a_t - G_tt / 2 - g_t S) M_t(d S + 1),    L = M_0(0),

is a mixture of decreasing exponentials of S, hence convex and decreasing. A sum that is rounded at
random to the two nodes around it, with its mean kept, never weighs less. A sum that is rounded up
never weighs more. Both are proved bounds, above and below L. The sum 1 and its decays are nodes, so
that no path of one or two participations is rounded.

Leaving out all overlaps of different rounds (``none``) is a bound above L, too, because C >= 0.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import Poisson
>>> mechanism = Mechanism.of(LambdaCGD(8, 0.6), noise_multiplier=1.1)
>>> a = mechanism.fields(1.5 * np.sin(np.arange(1.0, 9.0))[:, None])
>>> law = Poisson(0.2).automaton(8)
>>> print(f"{Likelihood(mechanism, law, 'window').log_ratio(a)[0]:.12f}")
0.013272011634
>>> rounded = Likelihood(mechanism, law, "sum")
>>> low, high = rounded.log_ratio(a, above=False), rounded.log_ratio(a)
>>> print(f"{low[0]:.5f} {high[0]:.5f}")
0.01185 0.01328
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.participations import Automaton
from dpcal.accountants.rounding import UNIT

Floats = NDArray[np.float64]
_Cells = tuple[NDArray[np.intc], Floats]

# Ratio of neighboring nodes, and the one where overlaps exceed 1: they add below 1e-4 to log L.
_RATIO, _CLOSER = 0.7, 0.95
# Decays from here on are no power of the ratio: this would make too many nodes.
_SLOW = 0.98
# Smallest node above 0: smaller sums weigh nothing.
_SMALLEST = 1e-2
# Relative distance to a node that counts as rounding, so that the sum is the node.
_CLOSE = 1e-14


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log-likelihood ratios of outputs, exact or between two bounds.

    Parameters
    ----------
    mechanism, law
        The run, and the automaton of participations.
    memory
        Memory of the past: ``"none"``, ``"window"`` or ``"sum"``; see
        :attr:`Mechanism.memory <dpcal.accountants.correlated.mechanism.Mechanism.memory>`.
    """

    mechanism: Mechanism
    law: Automaton
    memory: str

    @property
    def exact(self) -> bool:
        """Whether both bounds are L itself, up to rounding."""
        return self.memory != "sum"

    @property
    def slack(self) -> float:
        """Largest rounding error of log L."""
        return (16 * self.mechanism.steps + 64) * UNIT * (1 + float(self.mechanism.energies.max()))

    @cached_property
    def _nodes(self) -> Floats:
        """Sums of the automaton, from 0 up to the largest possible sum."""
        decay = self._decay
        goal = _RATIO if self.mechanism.energies.max() <= 1 else _CLOSER
        ratio = decay ** (1 / max(1, round(math.log(decay) / math.log(goal))))
        if decay >= _SLOW:
            ratio = goal
        largest = min(1 / (1 - decay), self.mechanism.steps)
        above = math.ceil(-math.log(largest) / math.log(ratio))
        below = math.ceil(math.log(_SMALLEST) / math.log(ratio))
        return np.concatenate([[0.0], ratio ** np.arange(below, -above - 1.0, -1.0)])

    @property
    def _decay(self) -> float:
        return (self.mechanism.walk or (0.0, 0.0))[0]

    def _weights(self, above: bool) -> tuple[Floats, NDArray[np.intp]]:
        """Return distinct rows of exp(-overlap) over the memories, and the row of each round."""
        T = self.mechanism.steps
        if self.memory == "none":
            return np.ones((1, 1)), np.zeros(T, dtype=np.intp)
        if self.memory == "window":
            rows, kinds = self.mechanism.gram_bands
            lags = np.arange(1, self.mechanism.bands)
            memories = (np.arange(2**lags.size) >> (lags - 1)[:, None] & 1).astype(float)
            return np.exp(-(rows[:, 1:] @ memories)), kinds
        # Each round rounds the sum by less than this part of it, outward.
        outward = 1 + (-2 if above else 2) * _CLOSE * T
        couplings, kinds = np.unique(self.mechanism.couplings * outward, return_inverse=True)
        return np.exp(-np.outer(couplings, self._nodes)), kinds

    def _cells(self, joins: int, above: bool) -> _Cells:
        """Return where each memory leads: the first of two memories, and the share of the other."""
        if self.memory != "sum":
            words = 2 ** (self.mechanism.bands - 1) if self.memory == "window" else 1
            to = (np.arange(words) << 1 | joins) & (words - 1)
            return to.astype(np.intc), np.zeros(words)
        nodes = self._nodes
        moved = np.minimum(self._decay * nodes + joins, nodes[-1])
        cell = np.searchsorted(nodes, moved * (1 - _CLOSE), side="left")
        cell = np.clip(cell - 1, 0, nodes.size - 2)
        share = np.clip((moved - nodes[cell]) / (nodes[cell + 1] - nodes[cell]), 0.0, 1.0)
        share[share > (1 - 10 * _CLOSE if above else 0)] = 1.0
        whole = (share == 1) & (cell < nodes.size - 2)
        return (cell + whole).astype(np.intc), np.where(whole, 0.0, share)

    def log_ratio(self, a: Floats, *, above: bool = True) -> Floats:
        """Return log L of every column of fields, a bound above or below it; NaN if in doubt.

        A draw is in doubt if it is so far from all usual draws that a double overflows.

        Parameters
        ----------
        a
            Fields, shape (rounds, draws).
        above
            Whether the bound lies above.
        """
        return kernels.log_ratios(
            a, 0.5 * self.mechanism.energies, *self._automata[above], self.law.tables
        )

    @cached_property
    def _automata(self) -> list[tuple[_Cells, _Cells, Floats, NDArray[np.intp]]]:
        """Return moves and weights of the automata of the bounds below and above."""
        return [
            (self._cells(0, above), self._cells(1, above), *self._weights(above))
            for above in (False, True)
        ]
