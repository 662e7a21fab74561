"""Who works? This process, an executor of ``concurrent.futures``, or a Dask client.

>>> list(mapping(None)(abs, [-1, 2]))
[1, 2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def mapping(executor: Any) -> Callable[..., Iterable[Any]]:
    """Return ``map`` of an executor, a Dask client, or this process for None.

    Results come in the order of the arguments.
    """
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor()
    return map if executor is None else executor.map
