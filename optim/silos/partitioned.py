"""One data set in partitions on the workers of a Dask cluster, as an objective for any optimizer.

Client and workers are one trusted party: clipped sums without noise reach the client, whose oracle
adds the noise once and keeps the one ledger. Where owners do not trust each other, see
:class:`dpcal.optim.DaskSilos`.

With discrete noise (the default) sums are whole numbers, and their total does not depend on the
order of addition: a run has the same bits on any number of workers and partitions. The example
needs the extra ``dask``:

>>> import importlib.util
>>> importlib.util.find_spec("distributed") is None or callable(Partitioned)
True
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from dpcal import _validate
from dpcal.accountants.samplers import everyone
from dpcal.errors import DpcalError, MissingExtra, extra, reason_of
from dpcal.optim.objectives.arrays import AllRows, Rows, Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Asked, Contributions, gradients, losses

__all__ = ["Partitioned", "PartitionsLost", "check_versions"]

# Seconds after which a partition that does not answer counts as lost.
_PATIENCE = 600.0
# Seconds in which a cluster that lost all its workers has one again: a nanny starts a process in a
# few, a queue of jobs in a minute.
_RESTART = 60.0
# Seconds between two looks for a worker.
_PAUSE = 0.1
# How often a lost partition is read again, on a worker that is there.
_TRIES = 3
# Row numbers that are compared at once, 512 KB of them.
_TOGETHER = 1 << 16


class PartitionsLost(DpcalError):  # noqa: N818 -- like the other ends of a run
    """A partition cannot be read again: no worker is left, or its records are others.

    ``optim.released(error)`` is the ledger of the answers so far, with the one that was asked.
    """


@dataclass(frozen=True)
class _Facts:
    """What the parts of one data set share, and how many records a part has."""

    n: int
    shared: tuple[int, float, int, int | None, tuple[str, float] | None, bool, tuple[str, ...]]
    print_: bytes


class Partitioned(Objective):
    """Records in partitions, each held by a worker of a Dask cluster.

    A partition is read where it is held. If its worker dies, another one reads it again, and the
    sum is asked for again, about the same rows. The noise is drawn once, and the ledger holds the
    answer once.

    Parameters
    ----------
    client
        A ``distributed.Client``; MissingExtra is raised if that package is not installed.
    makers
        A function for each partition that returns its :class:`Objective`, is called on a worker,
        and gives the same records each time; all with the same parameters and regulariser.
        Records are numbered through the partitions in their order.
    arguments
        What each maker is called with: a tuple a partition, whose Dask futures (of chunks of an
        array, or of parts of a data frame) become their values.
    timeout
        Seconds > 0 after which a partition that does not answer counts as lost.
    overlap
        ``"refuse"``: two partitions that hold the same records in the same order are taken for one
        that is given twice, whose records would count twice. ``"ignore"``: they are different
        people, who look alike. The information in a refusal is outside the claim.

    Raises
    ------
    ValueError
        If there is no worker or no partition, a worker has another version of this package, a
        partition is given twice, or partitions differ in what they must share.

    Notes
    -----
    A round sends the parameters, and the numbers of its rows unless it is about all; its sums come
    back. Optimizers that need losses or Hessians of single records at the client, or passes over
    records in turn, are refused as for a function of one's own.
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
        try:
            from dask.base import tokenize
            from distributed import Client
        except ImportError:
            raise MissingExtra(
                f"Partitioned needs distributed, which is not installed: {extra('dask')}."
            ) from None
        if not isinstance(client, Client):
            raise TypeError(f"client must be a distributed.Client, got {client!r}.")
        given = [()] * len(makers) if arguments is None else list(arguments)
        if not len(makers) or len(given) != len(makers):
            raise ValueError(
                "makers must be one for each partition and at least one, with a tuple of arguments "
                f"each, got {len(makers)} and {len(given)}."
            )
        _validate.choice(("refuse", "ignore"), overlap=overlap)
        _check_distinct([tokenize(pair) for pair in zip(makers, given, strict=True)])
        check_versions(client)
        self._client, self._timeout = client, _validate.positive(timeout=timeout)
        self._makers = list(zip(makers, given, strict=True))
        placed = [self._placed(j, worker) for j, worker in enumerate(self._near())]
        self._actors = [each.result(self._timeout) for each in placed]
        self._facts = [actor.facts().result(timeout=self._timeout) for actor in self._actors]
        if overlap == "refuse":
            # Partitions without records are equal, and count nothing twice.
            _check_distinct([facts.print_ if facts.n else j for j, facts in enumerate(self._facts)])
        first = self._facts[0]
        for j, facts in enumerate(self._facts):
            if facts.shared != first.shared:
                raise ValueError(
                    "partitions must have the same dimension, l2, penalized, group_size, "
                    f"linear_loss, checked and read_from_data, got {first.shared} of partition 0 "
                    f"and {facts.shared} of partition {j}."
                )
        self.dimension, self.l2, self.penalized, self.group_size = first.shared[:4]
        self.linear_loss, checked, self.read_from_data = first.shared[4:]
        # A class that a user derived from this one is tested, whatever its partitions are.
        self.checked = type(self).checked and checked
        self._ends = np.cumsum([0, *(facts.n for facts in self._facts)])
        self.n = int(self._ends[-1])

    def _workers(self) -> list[str]:
        known = sorted(self._client.scheduler_info(n_workers=-1).get("workers", ()))
        if not known:
            raise ValueError("client must have workers, got a cluster with none.")
        return known

    def _wait_for_a_worker(self) -> None:
        """Wait until a worker is there, or refuse a cluster that is gone or stays without one."""
        end = time.monotonic() + min(_RESTART, self._timeout)
        while True:
            try:
                self._workers()
            except ValueError:
                if self._client.status != "running" or time.monotonic() > end:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    def _near(self) -> list[str]:
        """Return a worker for each partition: by turns, or one that has its first future."""
        workers = self._workers()
        firsts = [next(filter(_is_future, given), None) for _, given in self._makers]
        held = self._client.who_has([each for each in firsts if each is not None])
        return [
            next(iter(held.get(getattr(each, "key", None), ())), workers[j % len(workers)])
            for j, each in enumerate(firsts)
        ]

    def _placed(self, j: int, worker: str | None = None) -> Any:
        """Place a partition on a worker, or on any that the scheduler takes for alive."""
        maker, given = self._makers[j]
        where = None if worker is None else [worker]
        return self._client.submit(_Part, maker, *given, actor=True, workers=where, pure=False)

    def _total(self, how: str, kind: str, rows: Rows | None, *given: Any) -> Any:
        """Ask every partition that has some of the rows, and add what comes back."""
        calls: dict[int, tuple[Any, ...]]
        if rows is None or isinstance(rows, AllRows) or _are_all(rows, self.n):
            calls = {j: (how, kind, None) for j, facts in enumerate(self._facts) if facts.n}
        else:
            ordered = np.sort(rows)
            cuts = np.searchsorted(ordered, self._ends)
            asked = [j for j in range(len(self._actors)) if cuts[j] < cuts[j + 1]] or [0]
            calls = {j: (how, kind, ordered[cuts[j] : cuts[j + 1]] - self._ends[j]) for j in asked}
        return sum(self._answers({j: (*call, *given) for j, call in calls.items()}))

    def _answers(self, calls: Mapping[int, tuple[Any, ...]]) -> list[Any]:
        """Return what partitions answer, in their order; all are asked before the first answers."""
        waiting = {j: self._asked(j, call) for j, call in calls.items()}
        return [self._answer(j, waiting[j], calls[j]) for j in calls]

    def _asked(self, j: int, call: tuple[Any, ...]) -> Any:
        """Return the answer to come of a partition; None if its worker is known to be lost."""
        try:
            return self._actors[j].call(*call)
        except Exception:  # any error of the transport
            return None

    def _answer(self, j: int, answer: Any, call: tuple[Any, ...]) -> Any:
        """Return what a partition answers, which is read again if its worker is lost."""
        for _ in range(_TRIES):
            try:
                found = answer and answer.result(timeout=self._timeout)
            except Exception:  # any error of the transport
                found = None
            if found is None:
                self._read_again(j)
                answer = self._asked(j, call)
                continue
            value, raised = found
            if raised is not None:
                raise raised
            return value
        raise PartitionsLost(f"partition {j} was lost {_TRIES} times in a row.")

    def _read_again(self, j: int) -> None:
        """Place a partition on another worker, and check that its records are the same."""
        try:
            self._wait_for_a_worker()
            actor = self._placed(j).result(self._timeout)
            facts = actor.facts().result(timeout=self._timeout)
        except Exception as error:
            why = str(error).rstrip(".")
            raise PartitionsLost(f"partition {j} cannot be read again: {why}.") from error
        if facts != self._facts[j]:
            raise PartitionsLost(f"partition {j} was read again, with other records.")
        self._actors[j] = actor

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`: sums of partitions."""
        return self._asked_for("gradients", self.dimension, rows, *at)

    def loss_contributions(self, rows: Rows, w: Vector) -> Contributions:
        """See :meth:`Objective.loss_contributions`: sums of partitions."""
        return self._asked_for("losses", 1, rows, w)

    def _asked_for(self, kind: str, size: int, rows: Rows | None, *at: Vector) -> Contributions:
        def total(how: str, bound: float) -> Any:
            return self._total(how, kind, rows, bound, *at)

        return Asked(size, partial(total, "clipped"), partial(total, "whole"))

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`: of two whole sums, which no partition changes."""
        state = hashlib.blake2b(digest_size=32)
        for w in _places(self.dimension):
            state.update(self._total("whole", "gradients", None, 1.0, w).tobytes())
        return state.digest()

    def fingerprints(self, key: bytes) -> list[bytes]:
        """See :meth:`Objective.fingerprints`."""
        calls = dict.fromkeys(range(len(self._actors)), ("plain", "fingerprints", None, key))
        return [each for some in self._answers(calls) for each in some]


def check_versions(client: Any) -> None:
    """Refuse a cluster of which a worker has another version of this package, or none.

    Parameters
    ----------
    client
        A ``distributed.Client``.

    Raises
    ------
    ValueError
        If it does, or the cluster does not answer.
    """
    here = version("dpcal")
    try:
        found = client.run(version, "dpcal")
    except Exception as error:
        raise ValueError(
            f"client must be of a cluster whose workers answer and have dpcal {here}, got "
            f"{type(error).__name__}: {reason_of(error)}."
        ) from error
    for worker, there in sorted(found.items()):
        if there != here:
            raise ValueError(f"workers must have dpcal {here}, as here, got {there} on {worker}.")


def _is_future(value: Any) -> bool:
    return hasattr(value, "key") and hasattr(value, "result")


def _check_distinct(marks: Sequence[Hashable]) -> None:
    """Refuse a partition that is given twice: one with the mark of an earlier one."""
    seen: dict[Hashable, int] = {}
    for j, mark in enumerate(marks):
        first = seen.setdefault(mark, j)
        if first != j:
            raise ValueError(
                "partitions must have records of their own, or these would count twice: partition "
                f"{j} is partition {first} again. Where different people look alike, say so with "
                "overlap='ignore'."
            )


def _are_all(rows: Rows, n: int) -> bool:
    """Return whether rows are 0 to n - 1 in their order, without another array of this length."""
    return len(rows) == n and all(
        np.array_equal(rows[i : i + _TOGETHER], np.arange(i, min(i + _TOGETHER, n)))
        for i in range(0, n, _TOGETHER)
    )


def _places(dimension: int) -> tuple[Vector, Vector]:
    return np.zeros(dimension), np.linspace(-1.0, 1.0, dimension)


class _Part:
    """A partition on a worker."""

    def __init__(self, maker: Callable[..., Objective], *given: Any) -> None:
        self._objective = maker(*given)
        self._everyone = everyone(self._objective.n)

    def facts(self) -> _Facts:
        """Return what is told of the partition; the print is a secret, like the records."""
        made = self._objective
        shared = (made.dimension, made.l2, made.penalized, made.group_size, made.linear_loss)
        return _Facts(made.n, (*shared, made.checked, made.read_from_data), made.digest())

    def call(
        self, how: str, kind: str, rows: Rows | None, *given: Any
    ) -> tuple[Any, Exception | None]:
        """Return a sum and an error, one of them None, to tell errors from a lost worker."""
        rows = self._everyone if rows is None else rows
        try:
            with np.errstate(all="ignore"):
                if kind == "fingerprints":
                    return self._objective.fingerprints(*given), None
                bound, *at = given
                ask = gradients if kind == "gradients" else losses
                return getattr(ask(self._objective, rows, *at), how)(bound), None
        except Exception as error:
            return None, error
