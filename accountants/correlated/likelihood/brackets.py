"""Which bounds on likelihood ratios are proved? Chords, tangents, and a mean-field minorant.

>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(8, 0.6), noise_multiplier=1.1)
>>> law = Poisson(0.2).automaton(8)
>>> a = mechanism.fields(1.5 * np.sin(np.arange(1.0, 9.0))[:, None])
>>> sides = (BracketEngine(mechanism, law, upper=side) for side in (True, False))
>>> high, low = (each.log_ratio(a)[0] for each in sides)
>>> bool(low < 0.013272011634 < high < low + 1e-3)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.likelihood.base import Engine, Floats, decay_of, largest_state
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.limits import hold
from dpcal.accountants.participations import Automaton
from dpcal.errors import UnsupportedEvent

__all__ = ["BracketEngine", "likely_end", "mean_field_minorant"]

# Ratio of neighboring nodes of a bracket: a chord over 0.1 of a state is hardly above the values.
_RATIO = 0.9
# From this decay on its powers are more nodes than those of the ratio 0.9, tenfold and more.
_LARGEST_RATIO = 0.99
# Most powers of a decay near 1 that a sum is bounded with.
_MOST_POWERS = 10_000


@dataclass(frozen=True, eq=False)
class BracketEngine(Engine):
    """A proved bound on log L, above or below, for ``C[t, u] = decay^(t - u)``.

    Parameters
    ----------
    mechanism, law
        A mechanism of kind ``"lambda-CGD"``, and its law of participations.
    upper
        Whether the bound lies above.
    end
        Last node.
    per_decay
        Nodes for each factor of decay; more make the bound tighter.
    smallest
        Smallest positive node.
    """

    upper: bool = True
    end: float = 9.0
    per_decay: int | None = None
    smallest: float = 1e-2

    exact = False

    @cached_property
    def nodes(self) -> Floats:
        """Nodes closed under multiplication with decay, so that idle rounds are not interpolated.

        Of a decay near 1, whose powers are many, the ratio is 0.9, and they are.
        """
        decay = decay_of(self.mechanism)
        end = min(self.end, largest_state(decay))
        # The ratio of neighbors is near 0.9, for every decay.
        split = self.per_decay or max(1, round(math.log(decay) / math.log(_RATIO)))
        ratio = decay ** (1 / split) if decay < _LARGEST_RATIO else _RATIO
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
        decay, s = decay_of(self.mechanism), self.nodes
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
            self.law.tables,
            self.upper,
        )
        # Every round adds a few roundings of numbers of the size of log M. The rounding of the
        # fields moves x, which has a continuous law, by as little.
        slack = 1e-14 * self.mechanism.steps * (100 + np.abs(a).max(initial=0.0))
        return np.asarray(bound + slack if self.upper else bound - slack)


def mean_field_minorant(mechanism: Mechanism, law: Automaton, a: Floats) -> Floats:
    """Return a lower bound on log L for independent participations, in O(rounds) for each draw.

    Jensen's inequality under the product law that is tilted by the fields alone.
    """
    if not law.independent:
        raise UnsupportedEvent("The mean-field bound needs independent participations.")
    h = a - 0.5 * mechanism.energies[:, None]
    joined = law.join + h
    log_total = np.logaddexp(law.idle, joined)
    rho = np.exp(joined - log_total)
    pairs = np.triu(mechanism.gram, 1)
    return np.asarray(log_total.sum(axis=0) - np.einsum("ti,ti->i", rho, pairs @ rho))


def likely_end(mechanism: Mechanism, law: Automaton) -> float:
    """Return a state that participations exceed with probability < 1e-9, plus a margin of 3.

    From the Chernoff bound of a sum of independent participations at the law's largest rate,
    for laws whose participations are independent or repel each other.
    """
    decay = decay_of(mechanism)
    top = largest_state(decay)
    rate = float(np.exp(law.join).max())
    if not law.independent or top <= 9:
        return top
    count = math.ceil(math.log(1e-6) / math.log(decay))
    # Of many powers, those beyond the number of rounds never count.
    count = min(count, max(_MOST_POWERS, mechanism.steps))
    hold(60 * count, f"steps={mechanism.steps}")
    powers = decay ** np.arange(count)
    tilts = np.geomspace(0.05, 30, 60)
    log_mgf = np.log1p(rate * np.expm1(tilts[:, None] * powers)).sum(axis=1)
    goal = math.log(1e9 * mechanism.steps)
    return min(top, float(((log_mgf + goal) / tilts).min()) + 3.0)
