"""Which examples may be used, so that each of their owners has at most k? From a public graph.

>>> choose_examples([["ann"], ["ann", "bob"], ["bob"], ["bob"]], rows=1, ids=["a", "b", "c", "d"])
(0, 3)
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from dpcal import _validate

__all__ = ["choose_examples"]


def choose_examples(
    owners: Iterable[Iterable[Hashable]], rows: int, ids: Sequence[int | str]
) -> tuple[int, ...]:
    """Return the positions of examples, in order, of which each owner has at most ``rows``.

    Examples are taken by ascending number of owners, ties by the SHA-256 of their ids, where all
    their owners still have fewer than ``rows``. The choice is at most a + 1 times smaller than the
    largest one, with a the most owners of an example: an example that is left out has an owner with
    ``rows`` chosen ones, the largest choice has at most ``rows`` of each owner, and a chosen one is
    counted by at most a owners.

    Who owns what must be public and fixed, and so must the ids: only contents are protected.
    Removing a user then blanks at most ``rows`` chosen examples, which is ``User(rows)`` under
    "replace-special".

    Parameters
    ----------
    owners
        The owners of each example, at least one; an owner named twice counts once.
    rows
        Most chosen examples of an owner, k >= 1.
    ids
        A distinct public id of each example, a string or a whole number.

    Raises
    ------
    ValueError
        If an example has no owner, or ids are not distinct or not as many as examples.
    """
    most = _validate.count(rows=rows)
    sets = [frozenset([each] if isinstance(each, str) else each) for each in owners]
    if len(ids) != len(sets):
        raise ValueError(f"ids must be as many as examples, {len(sets)}, got {len(ids)}.")
    names = [str(each) for each in ids]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"ids must be distinct, got {repeated[0]!r} more than once.")
    if frozenset() in sets:
        bare = sets.index(frozenset())
        raise ValueError(f"owners must name an owner of each example, got none at {bare}.")
    ranks = [hashlib.sha256(name.encode()).digest() for name in names]
    taken: Counter[Hashable] = Counter()
    chosen = []
    for i in sorted(range(len(sets)), key=lambda i: (len(sets[i]), ranks[i])):
        if all(taken[owner] < most for owner in sets[i]):
            taken.update(sets[i])
            chosen.append(i)
    return tuple(sorted(chosen))
