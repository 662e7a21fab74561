"""A search for records that two silos share: the claim of each would understate their epsilon.

A record of two silos is in the answers of both, so its epsilon is composed of both. So silos that
share a record are refused:

>>> import numpy as np
>>> from dpcal.optim import Squared
>>> Z = np.random.default_rng(0).uniform(-1, 1, (7, 2))
>>> silos = [Silo(Squared(rows, rows[:, 0])) for rows in (Z[:3], Z[3:5], Z[4:])]
>>> check_distinct(silos)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: silos must have records of their own, got a record of silo 1 in silo 2 too. Where ...

Keyed digests are compared. The key is drawn afresh, and dropped after the comparison. Silos of this
process are compared here, where their records are. A silo elsewhere sends its digests only for
``overlap="all"``: then the server, which has the key, can test guesses of its records, and learns
which of the records other silos have too. The claim does not cover this, nor the refusal itself,
which reveals to the owner of the server that a record is in two silos.

A process keeps digests for its own results, to find the records of a run in other data:

>>> outcome, one = type("Outcome", (), {})(), Squared(Z[:4], Z[:4, 0])
>>> remember(outcome, [one])
>>> about(outcome, Squared(Z[3:5], Z[3:5, 0])), about(outcome, Squared(Z[4:], Z[4:, 0]))
(True, False)
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from dpcal._internal import validate
from dpcal.optim.objectives.base import Objective
from dpcal.optim.silos.local import Answerer, Silo

OVERLAPS = ("local", "all", "ignore")

# Bytes of a key that cannot be guessed.
_KEY = 32


def check_distinct(silos: Sequence[Answerer], overlap: str = "local") -> None:
    """Refuse silos that hold the same record.

    Your own silo classes take part if they have a method ``fingerprints(key)`` as :class:`Silo`
    has, and need it for ``"all"``. See :func:`dpcal.optim.distributed_psgd` for the values of
    ``overlap``; for ``"ignore"``, whole data sets in this process are compared.
    """
    validate.choice(OVERLAPS, overlap=overlap)
    wholes = [silo.objective.digest() for silo in silos if isinstance(silo, Silo)]
    if len(set(wholes)) < len(wholes):
        raise ValueError("silos must have records of their own, got the same records twice.")
    if overlap == "ignore" or (len(silos) == 1 and isinstance(silos[0], Silo)):
        return
    key, owner = secrets.token_bytes(_KEY), dict[bytes, int]()
    for number, silo in enumerate(silos):
        for each in _fingerprints(silo, number, key, everywhere=overlap == "all"):
            first = owner.setdefault(each, number)
            if first != number:
                raise ValueError(
                    f"silos must have records of their own, got a record of silo {first} in silo "
                    f"{number} too. Where these are different people, who look alike, say so with "
                    "overlap='ignore'."
                )


def _fingerprints(silo: Answerer, number: int, key: bytes, *, everywhere: bool) -> Iterable[bytes]:
    """Return the digests of a silo that takes part in the comparison; none of another silo."""
    if not (everywhere or isinstance(silo, Silo)):
        return ()
    if isinstance(silo, Silo):
        return silo.objective.fingerprints(key)
    own = getattr(silo, "fingerprints", None)
    if own is None:
        raise ValueError(
            "overlap must be 'local' or 'ignore' where a silo gives no fingerprints, got 'all', "
            f"and silo {number} has no method of that name."
        )
    prints: Iterable[bytes] = own(key)
    return prints


# Digests of whole data sets, and weak references to the objectives, of each result. Digests confirm
# guesses of records: they are secret, and stay out of results, which are released.
_KNOWN: WeakKeyDictionary[Any, tuple[frozenset[bytes], WeakSet[Objective]]] = WeakKeyDictionary()


def remember(result: Any, objectives: Iterable[Objective]) -> None:
    """Remember in this process that a result was about the records of these objectives."""
    given = list(objectives)
    digests = frozenset(objective.digest() for objective in given)
    _KNOWN[result] = digests, WeakSet(given)


def about(result: Any, objective: Objective, *, each: bool = True) -> bool:
    """Return whether a result of this process is known to be about any of an objective's records.

    With ``each``, records are compared one by one with the records of the run's objectives that are
    still in this process; otherwise only whole data sets are compared.
    """
    known = _KNOWN.get(result)
    if known is None:
        return False
    digests, objectives = known
    if objective.digest() in digests:
        return True
    return each and any(_share(other, objective) for other in objectives)


def _share(one: Objective, other: Objective) -> bool:
    """Return whether two data sets of one class, in this process, have a record in common."""
    key = secrets.token_bytes(_KEY)
    return not {*one.fingerprints(key)}.isdisjoint(other.fingerprints(key))
