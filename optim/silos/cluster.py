"""Is it a client of a Dask cluster that can work? Checks before anything is sent to its workers.

The example needs the extra ``dask``:

>>> import importlib.util
>>> importlib.util.find_spec("distributed") is None or callable(workers_of)
True
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from dpcal.errors import MissingExtra, extra, reason_of

__all__ = ["check_versions", "workers_of"]


def workers_of(client: Any, user: str) -> list[str]:
    """Return the addresses of a cluster's workers, for a ``user`` whom errors name.

    MissingExtra is raised without the package ``distributed``, TypeError for what is not its
    ``Client``, and ValueError for a cluster without workers.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra(
            f"{user} needs distributed, which is not installed: {extra('dask')}."
        ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {client!r}.")
    known = sorted(client.scheduler_info(n_workers=-1).get("workers", ()))
    if not known:
        raise ValueError("client must have workers, got a cluster with none.")
    return known


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
