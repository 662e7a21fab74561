"""Tables of one row a record, in partitions on the workers of a Dask cluster.

Estimators and ``dpcal train`` compute with them as with arrays, by
:mod:`dpcal.optim.objectives.placed`. The rows stay on the workers: functions of them are computed
there, when an oracle asks for a sum. The example needs the extra ``dask``:

>>> import importlib.util
>>> importlib.util.find_spec("distributed") is None or callable(Parts.of)
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcal.optim.objectives.arrays import digest_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.domains import counted, counted_together
from dpcal.optim.silos.partitioned import Partitioned
from dpcal.optim.silos.reading import Cut, cut_of

__all__ = ["Parts"]

Make = Callable[..., Any]


@dataclass(frozen=True)
class _Applied:
    """A function of tables that are functions of a partition's sources."""

    function: Make
    made: tuple[Make, ...]

    def __call__(self, *sources: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.function(*(each(*sources) for each in self.made))


class Parts:
    """A table of one row a record whose rows lie in partitions; see :class:`Cut`.

    Parameters
    ----------
    cut
        The data set.
    made
        Returns a partition's rows, of its sources; it is called on workers.
    empty
        A table of no records, of the same columns.
    """

    def __init__(self, cut: Cut, made: Make, empty: Any) -> None:
        self.cut, self._made, self.empty = cut, made, empty

    @classmethod
    def of(cls, *collections: Any) -> list[Self]:
        """Return Dask collections, data frames or arrays with equal partitions, as tables."""
        cut, empties = cut_of(*collections)
        return [cls(cut, partial(_taken, place), each) for place, each in enumerate(empties)]

    def __len__(self) -> int:
        return sum(self.cut.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole table."""
        return (len(self), *self.empty.shape[1:])

    def applied(self, function: Make, *others: Parts) -> Parts:
        """Return the table ``function(self, *others)``, whose rows depend on their own rows."""
        with np.errstate(all="ignore"):
            empty = function(self.empty, *(other.empty for other in others))
        made = _Applied(function, (self._made, *(other._made for other in others)))
        return Parts(self.cut, made, empty)

    def objective(self, make: Callable[..., Objective], *others: Parts) -> Partitioned:
        """Return the objective ``make(self, *others)`` of the records where they are."""
        made = _Applied(make, (self._made, *(other._made for other in others)))
        makers = [made] * len(self.cut.sizes)
        # Rows of one table are different records, whether or not they look alike.
        return Partitioned(self.cut.client, makers, arguments=self.cut.sources, overlap="ignore")

    def counted(
        self, column: int | None = None, known: Parts | None = None
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Return different labels in sort order, and how many known records have each."""
        made = (self._made,) if known is None else (self._made, known._made)
        return counted_together(self.cut.ask(_Applied(partial(_counted, column), made)))

    def column(self, number: int) -> NDArray[Any]:
        """Return a column of all records, 8 bytes each, in memory here."""
        parts = self.cut.ask(_Applied(partial(_column, number), (self._made,)))
        return np.concatenate(parts)

    def digest(self) -> bytes:
        """Return bytes that depend on all records; a secret, like the records."""
        found = self.cut.ask(_Applied(_digest, (self._made,)))
        return hashlib.blake2b(b"".join(found), digest_size=32).digest()


def _taken(place: int, *sources: Any) -> Any:
    return sources[place]


def _column(number: int, rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows[:, number])


def _counted(
    column: int | None, rows: NDArray[Any], known: Any = slice(None)
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    return counted((rows if column is None else rows[:, column])[known])


def _digest(rows: NDArray[Any]) -> bytes:
    return digest_of(rows if rows.dtype.kind in "biuf" else rows.astype(str))
