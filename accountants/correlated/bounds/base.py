"""Proved bounds on delta at an epsilon, and on epsilon at a delta.

A bound holds for one or both directions of zeroing out a record. :class:`Least` takes the smallest
of several proofs, :class:`Worst` the largest for both directions. Both compute delta and epsilon
from the same proofs.

>>> class Tail(Bound):
...     method = "an exponential tail"
...     def delta(self, epsilon): return math.exp(-epsilon)
>>> class Constant(Bound):
...     method = "a constant"
...     def delta(self, epsilon): return 0.01
>>> found = Tail().epsilon(1e-3)
>>> round(found.value, 6), found.method
(6.907755, 'an exponential tail')
>>> both = Least((Tail(), Constant()))
>>> both.proof(1.0).method, both.proof(6.0).method
('a constant', 'an exponential tail')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpcal._internal.roots import NoBracket, Stop, bisect, bracket
from dpcal.accountants.participations import Floats

Tried = TypeVar("Tried")

# Relative, outward: sums of 1e12 numbers >= 0, columns of C (1e-12) and transforms err less.
MARGIN = 1e-9

# Relative width at which the search for epsilon ends; the result is the upper end.
_WIDTH = 1e-9
_LARGEST_EPSILON = 1e7
_PROGRESS = 1e-3
_HALVINGS = 10**4


class Proof(NamedTuple):
    """A proved value, the name of its bound, and a lower bound.

    Attributes
    ----------
    value
        A delta, or an epsilon; an infinite epsilon means that nothing is proved.
    method
        Name of the bound.
    lower
        Lower bound on the cost of the run; 0 if none is known.
    """

    value: float
    method: str
    lower: float = 0.0


class Bound:
    """An upper bound on the privacy of one run, as delta at an epsilon and as epsilon at a delta.

    A subclass computes ``delta`` or ``proof``, which must not increase with epsilon.

    Attributes
    ----------
    method
        Name of the bound.
    """

    method: ClassVar[str]

    @property
    def adding(self) -> Bound:
        """The bound on adding a record."""
        return self

    def proof(self, epsilon: float) -> Proof:
        """Return a bound on delta at an epsilon >= 0."""
        return Proof(self.delta(epsilon), self.method)

    def delta(self, epsilon: float) -> float:
        """Return the bound on delta itself, at most 1."""
        return self.proof(epsilon).value

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""
        return Proof(least_epsilon(self.delta, delta), self.method)

    def log_mgf(self, c: float, direction: str) -> float:
        """Return a bound on log M(c) of the privacy loss, by which it composes with other losses.

        Parameters
        ----------
        c
            Number > 0: the Renyi order less one.
        direction
            ``"remove"`` or ``"add"``.
        """
        return math.inf


@dataclass(frozen=True, eq=False)
class Least(Bound):
    """The smallest of several bounds on the same quantity.

    Parameters
    ----------
    parts
        The bounds.
    """

    parts: tuple[Bound, ...]

    _of: ClassVar[Callable[..., Any]] = min

    @property
    def adding(self) -> Bound:
        """The bound on adding a record."""
        return type(self)(tuple(part.adding for part in self.parts))

    def _one(self, found: list[Proof]) -> Proof:
        value, method, _ = type(self)._of(found)
        return Proof(value, method, max(each.lower for each in found))

    def proof(self, epsilon: float) -> Proof:
        """Return the bound on delta."""
        return self._one([part.proof(epsilon) for part in self.parts])

    def epsilon(self, delta: float) -> Proof:
        """Return the bound on epsilon."""
        return self._one([part.epsilon(delta) for part in self.parts])

    def log_mgf(self, c: float, direction: str) -> float:
        """Return the bound on log M(c)."""
        return float(type(self)._of(part.log_mgf(c, direction) for part in self.parts))


class Worst(Least):
    """The largest of several bounds that must all hold, such as one for each group."""

    _of = max


class Directions(Worst):
    """A bound on removing a record and another one on adding it; the larger one counts."""

    @property
    def adding(self) -> Bound:
        """The bound on adding a record."""
        return self.parts[1]

    def log_mgf(self, c: float, direction: str) -> float:
        """Return the bound on log M(c) of the direction."""
        return self.parts[direction == "add"].log_mgf(c, direction)


def half_space_delta(kappa: Floats, mu: Floats, epsilon: float) -> Floats:
    """Return E(1 - e^(epsilon - kappa + mu N))_+ for N standard normal, rounded up.

    With kappa = mu^2 / 2 it is the delta of a Gaussian mechanism of sensitivity mu over sigma.
    """
    cut = (kappa - epsilon) / np.where(mu > 0, mu, 1.0)
    high = np.where(mu > 0, ndtr(cut), kappa > epsilon)
    low = np.exp(np.minimum(epsilon - kappa + 0.5 * mu * mu + log_ndtr(cut - mu), 0.0))
    # The margin covers the rounding of kappa and of sums over the rounds in both terms.
    return np.asarray(np.maximum(high - low, 0.0) + MARGIN * high)


def least_epsilon(bound: Callable[[float], float], delta: float) -> float:
    """Return the least epsilon at which the bound on delta is at most ``delta``, or infinity.

    The result is the least such number up to a relative 1e-9. The bound must not increase.
    """
    if bound(0.0) <= delta:
        return 0.0

    def meets(epsilon: float) -> bool:
        return bound(epsilon) <= delta

    try:
        sides = bracket(meets, miss=0.0, start=1.0, last=_LARGEST_EPSILON)
    except NoBracket:
        return math.inf
    return bisect(meets, sides, Stop(relative=_WIDTH, evaluations=_HALVINGS)).meet


def least_until_rising(tried: Iterable[tuple[float, Tried]]) -> tuple[float, Tried]:
    """Return the pair of least value; stop after two pairs in a row that gain nothing.

    ``tried`` yields one pair or more. A pair gains nothing if its value is not below the previous
    value by a thousandth.
    """
    pairs = iter(tried)
    best = next(pairs)
    last, worse = best[0], 0
    for value, each in pairs:
        worse = 0 if last - value > _PROGRESS * abs(value) else worse + 1
        best, last = ((value, each) if value < best[0] else best), value
        if worse == 2:
            break
    return best
