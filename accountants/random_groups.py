"""Groups of records that a random number decides, in memory that does not grow with the records.

>>> groups = RandomGroups(2, 5, np.random.default_rng(0))
>>> [rows.tolist() for rows in groups]
[[3, 4], [0, 1, 2]]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpcal.accountants.sampler_base import Rows

__all__ = ["RandomGroups"]

# Row numbers of groups that are kept at once, 32 MB of them; fewer would draw more often.
_KEPT = 1 << 22
# Records whose groups are drawn at once, 8 MB of them.
_TOGETHER = 1 << 20


class RandomGroups:
    """Increasing row numbers of groups, of which each of n records draws one uniformly, in turn.

    Row numbers of many records are not kept: the same draws are made again for some groups at a
    time. In between, the generator is where all draws have left it.

    Parameters
    ----------
    count, n
        Numbers of groups >= 1 and of records >= 0.
    generator
        Its bit generator has a ``state`` that can be set; n numbers are drawn at once.
    """

    def __init__(self, count: int, n: int, generator: np.random.Generator) -> None:
        self._count, self._n, self._generator = count, n, generator
        self._start = generator.bit_generator.state
        self._sizes = np.zeros(count, np.intp)
        for _, group in self._drawn():
            self._sizes += np.bincount(group, minlength=count)
        self._kept: list[Rows] | None = None

    def __iter__(self) -> Iterator[Rows]:
        """Yield the row numbers of each group."""
        if self._n <= _KEPT:
            self._kept = self._kept or self._some(0, self._count)
            yield from self._kept
            return
        first = 0
        while first < self._count:
            last = first + max(1, int((self._sizes[first:].cumsum() <= _KEPT).sum()))
            yield from self._some(first, last)
            first = last

    def _drawn(self) -> Iterator[tuple[int, Rows]]:
        """Yield the first row number and the groups of some records at a time."""
        for first in range(0, self._n, _TOGETHER):
            size = min(_TOGETHER, self._n - first)
            yield first, self._generator.integers(self._count, size=size)

    def _some(self, first: int, last: int) -> list[Rows]:
        """Draw again, and return the row numbers of the groups ``first`` to ``last - 1``."""
        rows = np.empty(self._sizes[first:last].sum(), np.intp)
        # Labels of 16 bits or less are sorted by their digits, in time that is linear.
        labels, at = np.empty(len(rows), np.min_scalar_type(last - first)), 0
        bits = self._generator.bit_generator
        now, bits.state = bits.state, self._start
        try:
            for row, group in self._drawn():
                found = np.flatnonzero((group >= first) & (group < last))
                end = at + len(found)
                rows[at:end], labels[at:end], at = found + row, group[found] - first, end
        finally:
            bits.state = now
        ends = self._sizes[first : last - 1].cumsum()
        return np.split(rows[np.argsort(labels, kind="stable")], ends)
