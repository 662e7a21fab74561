"""Silos on the workers of a Dask cluster: actors that hold records, and answer with noise.

Each silo is an actor on one worker, and is lost with it. Its releases are in the server's ledger,
which holds an answer from before the silo is called, and in the silo's own file if it has one. The
example needs the extra ``dask``:

>>> import importlib.util
>>> importlib.util.find_spec("distributed") is None or callable(DaskSilos)
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from dpcal._internal import validate
from dpcal.optim.objectives.base import Objective
from dpcal.optim.silos.local import Answerer, Silo, SiloLost
from dpcal.optim.silos.partitioned import told, workers_of

__all__ = ["DaskSilos"]

# Seconds of an answer after which a silo counts as lost: a batch takes milliseconds, and a worker
# that died is noticed within a few seconds.
_PATIENCE = 120.0

# Of a silo, those that are called from elsewhere.
_METHODS = ("describe", "open", "answer", "close", "ledger", "fingerprints")


class DaskSilos(list[Answerer]):
    """Silos on the workers of a Dask cluster.

    They keep a ledger and noise for each owner, and protect no records from whoever has a client of
    the cluster: a client can run any function on a worker, where the records are. Silos of owners
    who trust neither each other nor the server are in processes of their owners.

    Parameters
    ----------
    client
        A ``distributed.Client``; MissingExtra is raised if that package is not installed.
    makers
        One for each silo: a function without arguments that returns its objective, or a
        :class:`Silo` with a file or a seed, and is called on the worker; or an objective, which is
        sent there.
    workers, timeout
        The address of each silo's worker, by turns when omitted; and seconds > 0 after which a silo
        that does not answer counts as lost.
    """

    def __init__(
        self,
        client: Any,
        makers: Sequence[Callable[[], Objective | Silo] | Objective],
        *,
        workers: Sequence[str] | None = None,
        timeout: float = _PATIENCE,
    ) -> None:
        known = workers_of(client)
        if workers is None:
            workers = [known[j % len(known)] for j in range(len(makers))]
        if len(workers) != len(makers):
            raise ValueError(
                f"workers must be one for each of {len(makers)} silos, got {len(workers)}."
            )
        timeout = validate.positive(timeout=timeout)
        placed = [
            client.submit(_Actor, maker, actor=True, workers=[worker], pure=False)
            for maker, worker in zip(makers, workers, strict=True)
        ]
        actors = [future.result(timeout) for future in placed]
        super().__init__(cast(Answerer, _Remote(each, timeout)) for each in actors)


class _Actor:
    """A silo on a worker. Its errors are returned, to be distinguished from a lost worker."""

    def __init__(self, maker: Callable[[], Objective | Silo] | Objective) -> None:
        made = maker if isinstance(maker, Objective) else maker()
        # Whoever sent the maker of an objective can have its records, and so their digests.
        self._silo = made if isinstance(made, Silo) else Silo(made, gives_digests=True)

    def call(
        self, name: str, given: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[Any, Exception | None]:
        """Call a method of the silo; return its value and its error, one of them None."""
        return told(getattr(self._silo, name), *given, **options)


class _Remote:
    """A silo on a worker: its methods are called there, and raise SiloLost if it is gone."""

    def __init__(self, actor: Any, timeout: float) -> None:
        self._actor, self._timeout = actor, timeout

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _METHODS:
            raise AttributeError(name)
        return partial(self._called, name)

    def _called(self, name: str, *given: Any, **options: Any) -> Any:
        try:
            asked = self._actor.call(name, given, options)
            value, raised = asked.result(timeout=self._timeout)
        except Exception as error:  # any error of the transport
            raise SiloLost from error
        if raised is not None:
            raise raised
        return value
