"""Groups and orders of records that random numbers decide, in memory that does not grow with n.

>>> groups = RandomGroups(2, 5, np.random.default_rng(0))
>>> [rows.tolist() for rows in groups]
[[3, 4], [0, 1, 2]]
>>> order = RandomOrder(5, np.random.default_rng(0))
>>> order.take(3).tolist(), order.take(3).tolist()
([2, 4, 3], [0, 1])
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpcal.accountants.sampler_base import Floats, Rows

# Row numbers of groups that are kept at once: 32 MB.
_KEPT = 1 << 22
# Records that draw their groups at once: 8 MB.
_TOGETHER = 1 << 20


def is_long(n: int) -> bool:
    """Return whether 8 bytes for each of n records are more than is kept at once."""
    return n > _KEPT


class RandomGroups:
    """Increasing row numbers of groups; each of n records draws a uniform subset of them.

    Row numbers of many records are not kept: the same draws are made again for some groups at a
    time. In between, the generator is where all draws have left it.

    Parameters
    ----------
    count, n
        Numbers of groups >= 1 and of records >= 0.
    generator
        Its bit generator has a ``state`` that can be set; n numbers are drawn at once.
    each
        Number of groups that a record draws, from 1 to ``count``; all subsets are equally likely.
    """

    def __init__(
        self, count: int, n: int, generator: np.random.Generator, *, each: int = 1
    ) -> None:
        self._count, self._n, self._each, self._generator = count, n, each, generator
        self._start = generator.bit_generator.state
        self._sizes = np.zeros(count, np.intp)
        for _, group in self._drawn():
            self._sizes += np.bincount(group.ravel(), minlength=count)
        self._kept: list[Rows] | None = None

    def __iter__(self) -> Iterator[Rows]:
        """Yield the row numbers of each group."""
        if self._n * self._each <= _KEPT:
            self._kept = self._kept or self._some(0, self._count)
            yield from self._kept
            return
        first = 0
        while first < self._count:
            last = first + max(1, int((self._sizes[first:].cumsum() <= _KEPT).sum()))
            yield from self._some(first, last)
            first = last

    def _drawn(self) -> Iterator[tuple[int, Rows]]:
        """Yield a row number and the groups of the records from there on, shape (m, each)."""
        together = max(1, _TOGETHER // self._each)
        for first in range(0, self._n, together):
            size = min(together, self._n - first)
            groups = self._generator.integers(self._count, size=size)[:, np.newaxis]
            for drawn in range(1, self._each):
                found = self._generator.integers(self._count - drawn, size=size)
                groups.sort(axis=1)
                for taken in groups.T:
                    found += found >= taken
                groups = np.column_stack([groups, found])
            yield first, groups

    def _some(self, first: int, last: int) -> list[Rows]:
        """Draw again, and return the row numbers of the groups ``first`` to ``last - 1``."""
        rows = np.empty(self._sizes[first:last].sum(), np.intp)
        # NumPy sorts labels of 16 bits or less by radix, in linear time.
        labels, at = np.empty(len(rows), np.min_scalar_type(last - first)), 0
        bits = self._generator.bit_generator
        now, bits.state = bits.state, self._start
        try:
            for row, drawn in self._drawn():
                group = drawn.ravel()
                found = np.flatnonzero((group >= first) & (group < last))
                end = at + len(found)
                rows[at:end], labels[at:end] = found // self._each + row, group[found] - first
                at = end
        finally:
            bits.state = now
        ends = self._sizes[first : last - 1].cumsum()
        return np.split(rows[np.argsort(labels, kind="stable")], ends)


class RandomOrder:
    """The row numbers of n records in a uniformly random order, which is handed out in parts.

    The order of many records is not kept. Each row draws one of several groups, and each group is
    shuffled when its turn comes: this is the order of independent uniform numbers with the groups
    as first digits, so all orders are equally likely (Rao 1961; Sandelius 1962).

    Parameters
    ----------
    n
        Number of records >= 0.
    generator
        The generator of :class:`RandomGroups`. A long order draws from it until the end is handed
        out.
    """

    def __init__(self, n: int, generator: np.random.Generator) -> None:
        self._generator = generator
        self._groups: Iterator[Rows] = iter(())
        self._left: Rows = np.empty(0, np.intp)
        if is_long(n):
            self._groups = iter(RandomGroups(-(-n // _TOGETHER), n, generator))
        else:
            self._left = generator.permutation(n).astype(np.intp)

    def take(self, size: int) -> Rows:
        """Return the next ``size`` >= 0 row numbers; fewer, or none, at the end."""
        parts = [self._left[:size]]
        self._left, missing = self._left[size:], size - len(parts[0])
        while missing and (group := next(self._groups, None)) is not None:
            shuffled = self._generator.permutation(group)
            parts.append(shuffled[:missing])
            self._left, missing = shuffled[missing:], missing - len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def later_states(law: Floats, n: int, generator: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw a state for each of n records; return those that are not 0, with row numbers first.

    The law is the probabilities of the states 0, 1, ..., shape (states,). Row numbers increase.
    """
    rows, states = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for first in range(0, n, _TOGETHER):
        drawn = generator.choice(len(law), size=min(_TOGETHER, n - first), p=law)
        found = np.flatnonzero(drawn)
        rows.append(found + first)
        states.append(drawn[found])
    return np.concatenate(rows), np.concatenate(states)
