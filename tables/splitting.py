"""Choice of the held-out records. Each record has a coin of its own, which moves no other record.

Under add-or-remove-one, the coin of a record is a keyed hash of its content, and of the number of
equal records before it: an added or changed record leaves the coins of all other records as they
were. Where the number of records is published, and neighbors differ in the content of one record,
coins are dealt to places in the table, so that the number of held-out records is published, too.

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

_BITS = 53  # of a coin: the digits of a double in [0, 1)


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
        # -0.0 is 0.0. Each step is one to one: records that differ in one cell never collide.
        state = _mixed((state + (column + 0.0).view(np.uint64)) ^ secret)
    return state


def coins_of(digest: NDArray[np.uint64], key: bytes) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each record, by a keyed hash of this record only.

    Equal records have different coins, by the number of equal records before them.

    Parameters
    ----------
    digest
        Result of :func:`digests`, shape (m,).
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

    The claim needs no strength of this hash, because a coin depends on its own record only. A
    cryptographic hash takes a million calls.
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
    """Return which rows stay, so that each person has at most ``group_size`` rows.

    The key and the row numbers decide which of a person's rows stay; their values have no effect.

    Parameters
    ----------
    people
        Number of the row's person, shape (m,).
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
