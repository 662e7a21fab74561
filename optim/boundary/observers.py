"""How do tests and attacks watch the inside of oracles? By an observer; other runs have none.

An observer sees sums without noise, which reveal single records. It runs in the process that holds
the records, for their owner, and its observations must not be released.
:mod:`dpcal.optim.attacks` records and replays whole runs with it.

>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, PrivateOracle
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=3.0, delta=1e-6)
>>> class Counter:
...     opened = 0
...     def streams(self, seed, plan, digest):
...         return Streams(seed, plan, digest)
...     def watched(self, mechanism, plan, ledger):
...         self.opened += 1
...         return mechanism
>>> counter = Counter()
>>> with observing(counter):
...     oracle = PrivateOracle(Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1]), plan)
>>> counter.opened
1
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from tempfile import mkstemp
from threading import Lock, Thread
from typing import Any, Protocol

from numpy.typing import NDArray

from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import UnobservedOracle
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import Vector

__all__ = ["Chooser", "Observer", "choosing", "observed", "observing", "streams", "watched"]

# Gives a query's answer: of the query, the public numbers that it is asked at, the scores, and a
# function that chooses.
Chooser = Callable[[Query, Vector, Any, Callable[[], NDArray[Any]]], NDArray[Any]]


class Observer(Protocol):
    """Receives every oracle that is opened, and may replace its mechanism by one that observes."""

    def streams(self, seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
        """Return the random streams of an oracle that is about to be opened."""

    def watched(self, mechanism: Mechanism, plan: Plan, ledger: Ledger) -> Mechanism:
        """Return the mechanism that the oracle uses in place of its own."""

    def choosing(self, plan: Plan, ledger: Ledger) -> Chooser:
        """Return what gives the answers of an oracle that chooses among candidates."""


_OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)

# Holds the number of the process that observes, and the name of a file that is there as long as it
# does. Processes that it starts meanwhile, in whatever way, inherit the variable, and so refuse to
# open oracles while the file is there: one that outlives the observation opens them again.
_OBSERVING = "DPCAL_OBSERVING"


class _Active:
    """The observations of this process, and the number of oracles that each of them missed."""

    def __init__(self) -> None:
        self.missed: dict[object, int] = {}
        self._before: str | None = None
        self._lock = Lock()
        self._start: Callable[[Thread], None] | None = None

    def begin(self) -> object:
        """Enter an observation; it includes threads that observed code starts."""
        with self._lock:
            token = object()
            if not self.missed:
                self._start, self._before = Thread.start, os.environ.get(_OBSERVING)
                descriptor, path = mkstemp(prefix="dpcal-observing-")
                os.close(descriptor)
                os.environ[_OBSERVING] = f"{os.getpid()}:{path}"
                Thread.start = _started_inside(Thread.start)  # type: ignore[method-assign, assignment]
            self.missed[token] = 0
            return token

    def end(self, token: object) -> int:
        """Remove an observation; return the number of oracles that it may have missed."""
        with self._lock:
            missed = self.missed.pop(token)
            if not self.missed and self._start is not None:
                Thread.start = self._start  # type: ignore[method-assign, assignment]
                with suppress(OSError):
                    os.unlink(_observing()[1])
                del os.environ[_OBSERVING]
                if self._before is not None:
                    os.environ[_OBSERVING] = self._before
            return missed

    def miss(self) -> None:
        """Count an oracle that was opened outside of the observed code."""
        with self._lock:
            for token in self.missed:
                self.missed[token] += 1


_ACTIVE = _Active()


def _observing() -> tuple[str, str]:
    """Return the process that observes this one or itself, and the file that is there meanwhile."""
    process, _, path = os.environ.get(_OBSERVING, "").partition(":")
    return process, path


def _started_inside(start: Callable[[Thread], None]) -> Callable[[Thread], None]:
    """Return a function that starts threads, in which observed code stays observed."""

    def started(thread: Thread) -> None:
        if _OBSERVER.get() is not None:
            thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    return started


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let ``observer`` watch every oracle that is opened inside, and in threads started inside.

    UnobservedOracle is raised at the end if the process opened an oracle elsewhere meanwhile: in an
    older thread, which may belong to the code inside or not.
    """
    before, token = _OBSERVER.set(observer), _ACTIVE.begin()
    try:
        yield
    finally:
        _OBSERVER.reset(before)
        missed = _ACTIVE.end(token)
    if missed:
        raise UnobservedOracle(
            f"{missed} oracles were opened in threads that had been started before: nobody saw "
            "what they answered. Start the threads of a run inside of it, and let the process do "
            "nothing else meanwhile."
        )


def _present() -> Observer | None:
    """Return the observer of this context; refuse an oracle that its observer cannot see."""
    observer = _OBSERVER.get()
    process, path = _observing()
    if process != str(os.getpid()) and os.path.exists(path):
        raise UnobservedOracle(
            "an oracle cannot be observed in a process of its own: let the run that is attacked "
            "work in threads."
        )
    if observer is None and _ACTIVE.missed:
        _ACTIVE.miss()
    return observer


def observed() -> bool:
    """Return whether an observer watches the oracles that are opened here: they release nothing."""
    return _OBSERVER.get() is not None


def streams(seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
    """Return the random streams of a new oracle."""
    observer = _OBSERVER.get()
    if observer is None:
        return Streams(seed, plan, digest)
    return observer.streams(seed, plan, digest)


def watched(mechanism: Mechanism, plan: Plan, ledger: Ledger) -> Mechanism:
    """Return the mechanism of a new oracle: its own, or an observer's."""
    observer = _present()
    return mechanism if observer is None else observer.watched(mechanism, plan, ledger)


def choosing(plan: Plan, ledger: Ledger) -> Chooser:
    """Return what gives the answers of a new oracle that chooses among candidates."""
    observer = _present()
    return _unseen if observer is None else observer.choosing(plan, ledger)


def _unseen(
    query: Query, at: Vector, scores: Any, choose: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    return choose()
