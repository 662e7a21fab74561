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
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from operator import methodcaller
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.accountants.samplers import everyone
from dpcal.errors import DpcalError, needing, reason_of
from dpcal.optim.objectives.arrays import AllRows, Rows, Vector, parameters
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Asked, Contributions, gradients, losses, trusted

__all__ = ["Partitioned", "PartitionsLost", "check_cluster"]

# Seconds after which partitions that do not answer count as lost.
_PATIENCE = 600.0

_SHARED: tuple[str, ...] = ("dimension", "l2", "penalized", "group_size")
_SHARED += ("linear_loss", "checked", "read_from_data")


def check_cluster(client: Any) -> None:
    """Refuse a cluster if a worker has another version of this package, or no version.

    Parameters
    ----------
    client
        A ``distributed.Client``.

    Raises
    ------
    MissingExtra
        Without the package ``distributed``.
    TypeError
        If the client is not one of that package.
    ValueError
        If it has no workers, one has another version, or the cluster does not answer.
    """
    with needing("dask"):
        from distributed import Client
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {client!r}.")
    here = version("dpcal")
    try:
        found = client.run(version, "dpcal")
    except Exception as error:
        raise ValueError(
            f"client must be of a cluster whose workers answer and have dpcal {here}, got "
            f"{type(error).__name__}: {reason_of(error)}."
        ) from error
    if not found:
        raise ValueError("client must have workers, got a cluster with none.")
    for worker, there in sorted(found.items()):
        if there != here:
            raise ValueError(f"workers must have dpcal {here}, as here, got {there} on {worker}.")


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
    client
        A ``distributed.Client``; MissingExtra is raised if that package is not installed.
    makers
        A function for each partition that returns its :class:`Objective`, is called on a worker,
        and gives the same records each time; all with the same parameters and regulariser.
        Records are numbered through the partitions in their order.
    arguments
        Arguments of each maker: a tuple a partition. Dask futures in it (of chunks of an array, or
        of parts of a data frame) become their values.
    timeout
        Seconds > 0 after which partitions that do not answer count as lost, also where no worker is
        left to read them.
    overlap
        ``"refuse"``: two partitions that hold the same records in the same order count as one
        partition that is given twice, because its records would count twice. ``"ignore"``: they are
        different people, who look alike. The information in a refusal is outside the claim.

    Raises
    ------
    ValueError
        If there is no worker or no partition, a worker has another version of this package, a
        partition is given twice, or partitions differ in an attribute that they must share.

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
        client: Any,
        makers: Sequence[Callable[..., Objective]],
        *,
        arguments: Sequence[tuple[Any, ...]] | None = None,
        timeout: float = _PATIENCE,
        overlap: str = "refuse",
    ) -> None:
        check_cluster(client)
        from dask.base import tokenize
        from distributed import wait

        given = [()] * len(makers) if arguments is None else list(arguments)
        if not len(makers) or len(given) != len(makers):
            raise ValueError(
                "makers must be one for each partition and at least one, with a tuple of arguments "
                f"each, got {len(makers)} and {len(given)}."
            )
        validate.choice(("refuse", "ignore"), overlap=overlap)
        made = [(maker, *some) for maker, some in zip(makers, given, strict=True)]
        _check_distinct(list(map(tokenize, made)))
        self._client, self._timeout = client, validate.positive(timeout=timeout)
        self._parts = [client.submit(_Part, *each, pure=False) for each in made]
        asked = client.map(_facts, self._parts, pure=False)
        wait(asked, timeout=self._timeout)
        found = client.gather(asked)
        self._prints, sizes, shared = zip(*found, strict=True)
        if overlap == "refuse":
            # Partitions without records are equal, and count nothing twice.
            _check_distinct([print_ if n else j for j, (print_, n, _) in enumerate(found)])
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
        self._ends = np.cumsum([0, *sizes])
        self.n = int(self._ends[-1])

    def _total(
        self, how: str, kind: str, rows: Rows | None, at: tuple[Vector, ...], bound: float
    ) -> Any:
        """Query every partition that has some of the rows, and add the results."""
        each: dict[int, Rows | None]
        if rows is None or isinstance(rows, AllRows):
            each = dict.fromkeys(range(len(self._parts)))
        else:
            ordered = np.sort(rows)
            cuts = np.searchsorted(ordered, self._ends)
            asked = [j for j in range(len(self._parts)) if cuts[j] < cuts[j + 1]] or [0]
            each = {j: ordered[cuts[j] : cuts[j + 1]] - self._ends[j] for j in asked}
        calls = {j: (_sum, how, kind, some, bound, *at) for j, some in each.items()}
        return sum(self._answers(calls))

    def _answers(self, calls: Mapping[int, tuple[Any, ...]]) -> list[Any]:
        """Return the results of functions of the partitions' objectives, in the order of calls."""
        from distributed import wait

        try:
            parts = [self._parts[j] for j in calls]
            asked = self._client.map(_asked, parts, *zip(*calls.values(), strict=True), pure=False)
            wait(asked, timeout=self._timeout)
            found = self._client.gather(asked)
        except Exception as error:  # of the transport, or of a maker that is called again
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
        total = float(self._total("clipped", "losses", None, (w,), math.inf)[0])
        return total / self.n + self.regularizer(w)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`: two whole sums, which do not depend on the partitions."""
        state = hashlib.blake2b(digest_size=32)
        for w in (np.zeros(self.dimension), np.linspace(-1.0, 1.0, self.dimension)):
            state.update(self._total("whole", "gradients", None, (w,), 1.0).tobytes())
        return state.digest()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """See :meth:`Objective.fingerprints`."""
        calls = dict.fromkeys(range(len(self._parts)), (methodcaller("fingerprints", key),))
        return [each for some in self._answers(calls) for each in some]


def _check_distinct(marks: Sequence[Hashable]) -> None:
    """Refuse a partition that is given twice: one with the mark of an earlier one."""
    for j, mark in enumerate(marks):
        first = marks.index(mark)
        if first != j:
            raise ValueError(
                "partitions must have records of their own, or these would count twice: partition "
                f"{j} is partition {first} again. Where different people look alike, say so with "
                "overlap='ignore'."
            )


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


def _sum(
    objective: Objective, how: str, kind: str, rows: Rows | None, bound: float, *at: Vector
) -> Any:
    """Return a sum of gradients or losses, in whole steps or in doubles."""
    rows = everyone(objective.n) if rows is None else rows
    ask = gradients if kind == "gradients" else losses
    return getattr(ask(objective, rows, *at), how)(bound)
