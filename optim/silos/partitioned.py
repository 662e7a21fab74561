"""One data set in partitions on the workers of a Dask cluster, as an objective for any optimizer.

Client and workers are one trusted party: clipped sums without noise reach the client. The client's
oracle adds the noise once and keeps the one ledger. Owners who do not trust each other have a
:class:`dpcal.optim.Silo` each, in processes of their own.

Sums are whole numbers, and their total does not depend on the
order of addition: a run has the same bits on any number of workers and partitions. The example
needs the extra ``dask``:

>>> import importlib.util
>>> importlib.util.find_spec("distributed") is None or callable(Partitioned)
True
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from operator import methodcaller
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.errors import DpcalError
from dpcal.optim.objectives.arrays import AllRows, Rows, Vector, parameters
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Asked, Contributions, gradients, losses, trusted
from dpcal.optim.silos.parts import Parts

# Seconds after which partitions that do not answer count as lost.
_PATIENCE = 600.0

_SHARED: tuple[str, ...] = ("dimension", "l2", "penalized", "group_size")
_SHARED += ("linear_loss", "checked", "read_from_data")


class PartitionsLost(DpcalError):  # noqa: N818 -- like the other ends of a run
    """Partitions cannot be read again: no worker is left, or their records have changed.

    ``optim.released(error)`` is the ledger of the answers so far, the last query included.
    """


@trusted
class Partitioned(Objective):
    """Records in partitions, each held by a worker of a Dask cluster.

    A partition is a future, and so is each of its sums. If a worker dies, the scheduler lets
    another worker read its partitions and take the same sums again. The noise is drawn once, and
    the ledger holds the answer once.

    Parameters
    ----------
    make
        Function of a partition of each table that returns its :class:`Objective`. It is called on a
        worker, and gives the same records each time; all objectives have the same parameters and
        regulariser. Records are numbered through the partitions in their order.
    records, *others
        Dask arrays, data frames or series with the same partitions, computed on the cluster of the
        ``distributed.Client`` in use. A row need not be a record: for example, ``make`` reads the
        file that a row names.
    timeout
        Seconds > 0 after which partitions that do not answer count as lost, also where no worker is
        left to read them.
    overlap
        ``"refuse"``: two partitions that hold the same records in the same order count as one
        partition that is given twice, because its records would count twice. ``"ignore"``: they are
        different people, who look alike. The information in a refusal is outside the claim.

    Raises
    ------
    MissingExtra
        Without the package ``distributed``.
    ValueError
        If there is no client, no worker or no partition, a worker has another version of this
        package, a partition is given twice, or partitions differ in an attribute that they must
        share.

    Notes
    -----
    A round sends the parameters, and the numbers of its rows unless it is about all; its sums come
    back. Optimizers that need losses or Hessians of single records at the client, or passes over
    records in turn, are refused, as for your own function.
    """

    checked = True
    rows_are_arrays = False

    def __init__(
        self,
        make: Callable[..., Objective],
        records: Any,
        *others: Any,
        timeout: float = _PATIENCE,
        overlap: str = "refuse",
    ) -> None:
        validate.choice(("refuse", "ignore"), overlap=overlap)
        self._timeout = validate.positive(timeout=timeout)
        tables = (records, *others)
        if not isinstance(records, Parts):
            tables = tuple(Parts.of(*tables))
        self._client = tables[0].client
        self._parts = tables[0].mapped(partial(_Part, make), *tables[1:])
        found = self._gathered(self._client.map(_facts, self._parts, pure=False))
        self._prints, self._sizes, shared = zip(*found, strict=True)
        if overlap == "refuse":
            self._check_distinct()
        for j, other in enumerate(shared):
            if other != shared[0]:
                raise ValueError(
                    "partitions must have the same dimension, l2, penalized, group_size, "
                    f"linear_loss, checked and read_from_data, got {shared[0]} of partition 0 "
                    f"and {other} of partition {j}."
                )
        vars(self).update(zip(_SHARED, shared[0], strict=True))
        # A class that a user derived from this one is tested, whatever its partitions are.
        self.checked = type(self).checked and self.checked
        self.n = sum(self._sizes)

    def _check_distinct(self) -> None:
        """Refuse a partition that is given twice: one with the records of an earlier one."""
        marks = [print_ if self._sizes[j] else j for j, print_ in enumerate(self._prints)]
        for j, mark in enumerate(marks):
            first = marks.index(mark)
            if first != j:
                raise ValueError(
                    "partitions must have records of their own, or these would count twice: "
                    f"partition {j} is partition {first} again. Where different people look alike, "
                    "say so with overlap='ignore'."
                )

    def _total(self, how: str, kind: str, rows: Rows, at: tuple[Vector, ...], bound: float) -> Any:
        """Query every partition that has some of the rows, and add the results."""
        each: dict[int, Any] = dict(enumerate(map(AllRows, self._sizes)))
        if not isinstance(rows, AllRows):
            ordered, ends = np.sort(rows), np.cumsum([0, *self._sizes])
            cuts = np.searchsorted(ordered, ends)
            asked = [j for j in each if cuts[j] < cuts[j + 1]] or [0]
            each = {j: ordered[cuts[j] : cuts[j + 1]] - ends[j] for j in asked}
        calls = {j: (_sum, how, kind, some, bound, *at) for j, some in each.items()}
        return sum(self._answers(calls))

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures that are done in time."""
        from distributed import wait

        wait(futures, timeout=self._timeout)
        found: list[Any] = self._client.gather(futures)
        return found

    def _answers(self, calls: Mapping[int, tuple[Any, ...]]) -> list[Any]:
        """Return the results of functions of the partitions' objectives, in the order of calls."""
        parts, given = [self._parts[j] for j in calls], zip(*calls.values(), strict=True)
        try:
            found = self._gathered(self._client.map(_asked, parts, *given, pure=False))
        except Exception as error:  # from the transport, or from a maker that is called again
            why = str(error).rstrip(".") or type(error).__name__
            raise PartitionsLost(
                f"partitions were lost, and cannot be read again: {why}."
            ) from error
        for j, (print_, _, raised) in zip(calls, found, strict=True):
            if raised is not None:
                raise raised
            if print_ != self._prints[j]:
                raise PartitionsLost(f"partition {j} was read again, with other records.")
        return [value for _, value, _ in found]

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`: sums of partitions."""
        return self._handed("gradients", self.dimension, rows, *at)

    def loss_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """See :meth:`Objective.loss_contributions`: sums of partitions."""
        return self._handed("losses", 1, rows, w)

    def _handed(self, kind: str, size: int, rows: Rows, *at: Vector) -> Contributions:
        clipped, whole = (partial(self._total, how, kind, rows, at) for how in ("clipped", "whole"))
        return Asked(size, clipped, whole)

    def loss(self, w: ArrayLike) -> float:
        """Return the regularised mean loss at ``w``, shape (dimension,). Not private."""
        w = parameters(w, self.dimension)
        total = float(self._total("clipped", "losses", AllRows.of(self.n), (w,), math.inf)[0])
        return total / self.n + self.regularizer(w)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`: two whole sums, which do not depend on the partitions."""
        state = hashlib.blake2b(digest_size=32)
        for w in self._places():
            state.update(self._total("whole", "gradients", AllRows.of(self.n), (w,), 1.0).tobytes())
        return state.digest()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """See :meth:`Objective.fingerprints`."""
        calls = dict.fromkeys(range(len(self._parts)), (methodcaller("fingerprints", key),))
        return [each for some in self._answers(calls) for each in some]


class _Part:
    """A partition on a worker. Another worker reads it again: records are not sent around."""

    def __init__(self, maker: Callable[..., Objective], *given: Any) -> None:
        self._made = (maker, *given)
        with np.errstate(all="ignore"):
            self.objective = maker(*given)
        # The digest is a secret, like the records.
        self.print_ = self.objective.digest()

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), self._made

    def __sizeof__(self) -> int:
        # The scheduler computes where a part lies, unless the part is small.
        return 8 * self.objective.n * self.objective.dimension


def _facts(part: _Part) -> tuple[bytes, int, tuple[Any, ...]]:
    """Return a partition's print, number of records, and the attributes that parts share."""
    made = part.objective
    return part.print_, made.n, tuple(getattr(made, name) for name in _SHARED)


def _asked(
    part: _Part, ask: Callable[..., Any], *given: Any
) -> tuple[bytes, Any, Exception | None]:
    """Return a partition's print, and an answer or an error (a lost worker returns neither)."""
    try:
        with np.errstate(all="ignore"):
            return part.print_, ask(part.objective, *given), None
    except Exception as error:
        return part.print_, None, error


def _sum(objective: Objective, how: str, kind: str, rows: Any, bound: float, *at: Vector) -> Any:
    """Return a sum of gradients or losses, in whole steps or in doubles."""
    ask = gradients if kind == "gradients" else losses
    return getattr(ask(objective, np.asarray(rows), *at), how)(bound)
