"""Was this result about these records? What a process remembers of its own results.

>>> from dpcal.optim.problems import Trigonometric
>>> outcome, one = type("Outcome", (), {})(), Trigonometric.drawn(9, 2, seed=0)
>>> remember(outcome, [one])
>>> about(outcome, Trigonometric.drawn(9, 2, seed=0)), about(outcome, Trigonometric.drawn(9, 2))
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from dpcal.optim.objectives.base import Objective

__all__ = ["about", "remember"]

# A digest of records is a secret: whoever guesses them could confirm the guess. It is kept beside
# results and not in them, for results are released, and goes with the process.
_KNOWN: WeakKeyDictionary[Any, frozenset[bytes]] = WeakKeyDictionary()


def remember(result: Any, objectives: Iterable[Objective]) -> None:
    """Remember in this process which records a result was about.

    Parameters
    ----------
    result
        Of a run.
    objectives
        With its records.
    """
    _KNOWN[result] = frozenset(objective.digest() for objective in objectives)


def about(result: Any, objective: Objective) -> bool:
    """Return whether a result of this process is known to be about these very records.

    Parameters
    ----------
    result
        Of a run.
    objective
        With the records.
    """
    return objective.digest() in _KNOWN.get(result, frozenset())
