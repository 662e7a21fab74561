"""Which records are held out? Each one's own coin says so, and moves nobody else.

Where records may come and go, the coin of a record is a keyed hash of what it holds, and of how
many equal records stand before it: one record more, or one that is changed, leaves the coins of all
the others as they were. Where their number is told, and neighbors differ in what one of them holds,
coins are dealt to places in the table, so that the number of those held out is told, too.

>>> import numpy as np
>>> records = np.arange(2000.0).reshape(1000, 2)
>>> key = b"a secret of the run"
>>> coins = coins_of(digests(records.T, key), key)
>>> fewer = np.delete(records, 17, axis=0)
>>> bool(np.array_equal(coins_of(digests(fewer.T, key), key), np.delete(coins, 17)))
True
>>> 0.15 < float((coins < 0.2).mean()) < 0.25
True
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

__all__ = ["coins_of", "coins_of_people", "dealt", "digests", "within_group_size"]

_BITS = 53  # of a coin: as many as a double between 0 and 1 holds


def digests(columns: Iterable[NDArray[np.float64]], key: bytes) -> NDArray[np.uint64]:
    """Return 64 bits for each record, by a hash with a secret key.

    Parameters
    ----------
    columns
        One or more, each of shape (m,).
    key
        At most 64 bytes.
    """
    columns = [*columns]
    start, *secrets = _secrets(key, "records", len(columns) + 1)
    state = np.full(len(columns[0]), start)
    for column, secret in zip(columns, secrets, strict=True):
        # Zero has two signs, which are one value. Each step is one to one in the state: records
        # that differ in one cell never collide.
        state = _mixed((state + (column + 0.0).view(np.uint64)) ^ secret)
    return state


def coins_of(digest: NDArray[np.uint64], key: bytes) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each record, by a keyed hash of it alone.

    Equal records have coins of their own, by how many of them stand before.

    Parameters
    ----------
    digest
        What :func:`digests` returned, shape (m,).
    key
        At most 64 bytes.
    """
    first, second = _secrets(key, "coins", 2)
    rank = _rank(digest).astype(np.uint64)
    return _uniform(_mixed(_mixed(digest ^ first) + _mixed(rank ^ second)))


def _secrets(key: bytes, role: str, count: int) -> NDArray[np.uint64]:
    entropy = int.from_bytes(blake2b(role.encode(), key=key).digest(), "little")
    return np.random.default_rng(entropy).integers(0, 2**64, count, dtype=np.uint64)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits, one to one (Steele, Lea and Flood 2014, SplitMix64, its finalizer).

    The claim rests on no strength of this hash: what a coin depends on is its own record. A
    cryptographic one takes a million calls.
    """
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(state ^ (state >> np.uint64(31)))


def _uniform(digest: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (digest >> np.uint64(64 - _BITS)).astype(np.float64) * 2.0**-_BITS


def _rank(values: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return how many equal values stand before each."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(values)])
    lengths = np.diff(np.r_[starts, len(values)])
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = np.arange(len(values)) - np.repeat(starts, lengths)
    return rank


def coins_of_people(names: Iterable[str], key: bytes) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each person, by a keyed hash of the person's name."""
    joined = b"".join(blake2b(name.encode(), key=key, digest_size=8).digest() for name in names)
    return _uniform(np.frombuffer(joined, dtype="<u8").astype(np.uint64))


def dealt(count: int, key: bytes) -> NDArray[np.float64]:
    """Return a number in (0, 1) for each of so many places: equally spaced ones, in a random order.

    Examples
    --------
    >>> int((dealt(1000, b"secret") < 0.2).sum())
    200
    """
    entropy = int.from_bytes(blake2b(b"places", key=key).digest(), "little")
    return (np.random.default_rng(entropy).permutation(count) + 0.5) / count


def within_group_size(people: NDArray[np.int64], group_size: int, key: bytes) -> NDArray[np.bool_]:
    """Return which rows stay so that nobody has more than ``group_size``.

    Which of a person's rows stay is drawn from the key and row numbers; no value has a say.

    Parameters
    ----------
    people
        Number of the person whose row it is, shape (m,).
    group_size
        At least 1.
    key
        At most 64 bytes.

    Examples
    --------
    >>> people = np.array([0, 1, 0, 0, 1])
    >>> kept = within_group_size(people, 2, b"secret")
    >>> [int((people[kept] == each).sum()) for each in (0, 1)]
    [2, 2]
    """
    entropy = int.from_bytes(blake2b(b"rows beyond the group size", key=key).digest(), "little")
    order = np.random.default_rng(entropy).permutation(len(people))
    rank = np.empty(len(people), dtype=np.intp)
    rank[order] = _rank(people[order].astype(np.uint64))
    return rank < group_size
