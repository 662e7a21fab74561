"""Answers that state how they are known: exactly, proved, or from draws.

>>> from dpcal.accountants.correlated.answers import CorrelatedEpsilon
>>> answer = CorrelatedEpsilon(1.5, lower=1.2, method="a bound", label="certified", estimate=1.5)
>>> answer + 1.0, answer.label, answer.estimate
(2.5, 'certified', 1.5)
"""

from __future__ import annotations

import math
from typing import Any, Self

from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.correlated.bounds.base import Proof

EXACT, CERTIFIED = "exact", "certified"
WITH_CONFIDENCE = "statistical with certified confidence"


class _Provenance:
    """Further fields of an answer about correlated noise, next to its interval."""

    label: str
    estimate: float
    failure_probability = 0.0
    draws = 0
    seed: int | None = None
    certified = math.inf
    note = ""

    def __new__(
        cls, upper: float, *, lower: float, method: str, label: str, estimate: float, **stated: Any
    ) -> Self:
        known = {"accountant": "correlated", "neighboring_relation": "zero-out"}
        known = {name: stated.pop(name, value) for name, value in known.items()}
        self = super().__new__(cls, upper, lower=lower, method=method, **known)  # type: ignore[call-arg]
        vars(self).update(label=label, estimate=estimate, **stated)
        return self

    @classmethod
    def proved(cls, proof: Proof, **stated: Any) -> Self:
        """Return an answer without draws: the proved value is its estimate, too."""
        value, method, lower = proof
        known = {"method": method, "estimate": value, "certified": value}
        return cls(value, lower=min(lower, value), **known, **stated)  # type: ignore[arg-type]


class CorrelatedEpsilon(_Provenance, Epsilon):
    """An epsilon under correlated noise: a float equal to its upper bound.

    Attributes
    ----------
    label
        ``"exact"``, ``"certified"`` or ``"statistical with certified confidence"``.
    lower, upper
        The interval; the float is its upper end.
    estimate
        The value that the draws estimate, without their error.
    failure_probability
        Probability that the bounds from draws are wrong. Where the label promises confidence, the
        probability is part of the delta of the epsilon.
    draws, seed
        Number of draws, and the seed that fixes them.
    certified
        A deterministic upper bound, for comparison; infinite if none was found.
    note
        The reason why a deterministic bound is the answer, if draws were wanted.
    method, neighboring_relation
        The method, and the neighboring relation.
    """


class CorrelatedDelta(_Provenance, Delta):
    """A delta under correlated noise, with the attributes of :class:`CorrelatedEpsilon`."""
