"""Is a result about these records? A process keeps digests for its own results.

One record in common is enough:

>>> import numpy as np
>>> from dpcal.optim import Squared
>>> Z = np.random.default_rng(0).uniform(-1, 1, (18, 2))
>>> outcome, one = type("Outcome", (), {})(), Squared(Z[:9], Z[:9, 0])
>>> remember(outcome, [one])
>>> about(outcome, Squared(Z[:4], Z[:4, 0])), about(outcome, Squared(Z[9:], Z[9:, 0]))
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from dpcal.optim.objectives.base import Objective
from dpcal.optim.silos.overlap import share

__all__ = ["about", "remember"]


class _Known(NamedTuple):
    """Digests of whole data sets, and weak references to the objectives."""

    digests: frozenset[bytes]
    objectives: WeakSet[Objective]


# A digest of records is a secret, because it confirms guesses of them. Results are released, so
# digests are not kept in them, and they end with the process.
_KNOWN: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()


def remember(result: Any, objectives: Iterable[Objective]) -> None:
    """Remember in this process that a result was about the records of these objectives."""
    given = list(objectives)
    digests = frozenset(objective.digest() for objective in given)
    _KNOWN[result] = _Known(digests, WeakSet(given))


def about(result: Any, objective: Objective, *, each: bool = True) -> bool:
    """Return whether a result of this process is known to be about any of an objective's records.

    With ``each``, records are compared one by one with those of the run's objectives that are still
    in this process; otherwise only whole data sets are.
    """
    known = _KNOWN.get(result)
    if known is None:
        return False
    if objective.digest() in known.digests:
        return True
    return each and any(share(other, objective) for other in known.objectives)
