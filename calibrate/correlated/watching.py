"""How far is a calibration? Lines of text from a thread or process to its caller.

>>> seen = []
>>> teller = Teller("lambda-CGD", lambda name, line: seen.append((name, line)))
>>> teller("noise multiplier 1.3")
>>> teller("noise multiplier 1.2")        # less than a second later
>>> seen
[('lambda-CGD', 'noise multiplier 1.3')]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from multiprocessing import Manager
from queue import Empty
from typing import Any, TypeVar

__all__ = ["Teller", "Watch", "finished", "mailbox"]

# Called with a strategy's name and a line of text.
Watch = Callable[[str, str], None]
Value = TypeVar("Value")

# Seconds between two lines of one calibration, and between two readings of a queue.
_PAUSE, _LOOK = 1.0, 0.2


class Teller:
    """Passes on lines of one calibration, at most one a second.

    Parameters
    ----------
    name
        Name of the strategy.
    tell
        Called with the name and a line of text. A queue's ``put`` takes both as one pair.
    """

    def __init__(self, name: str, tell: Any) -> None:
        self.name = name
        self._tell = tell
        self._next = -1.0

    def __call__(self, line: str) -> None:
        """Pass a line on, or drop it if the last one is less than a second old."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _PAUSE
        if hasattr(self._tell, "put"):
            # The listener may be gone; the calibration goes on.
            with suppress(OSError, EOFError):
                self._tell.put((self.name, line))
            return
        self._tell(self.name, line)


@contextmanager
def mailbox(wanted: bool) -> Iterator[Any]:
    """Open a queue that threads and processes of this machine can write to, or None."""
    if not wanted:
        yield None
        return
    with Manager() as manager:
        yield manager.Queue()


def finished(
    futures: dict[Future[Value], int], queue: Any, watch: Watch | None
) -> Iterator[tuple[int, Value]]:
    """Yield places and values of futures as they are done, and pass on their lines meanwhile."""
    pending = set(futures)
    while pending:
        done, pending = wait(
            pending, timeout=None if queue is None else _LOOK, return_when=FIRST_COMPLETED
        )
        _pass_on(queue, watch)
        for future in done:
            yield futures[future], future.result()


def _pass_on(queue: Any, watch: Watch | None) -> None:
    if queue is None or watch is None:
        return
    with suppress(Empty):
        while True:
            watch(*queue.get_nowait())
