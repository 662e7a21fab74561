"""Observers of the inside of oracles, for tests and attacks; other runs have none.

An observer sees sums without noise, which reveal single records. An observer runs in the process
that holds the records, for their owner. Its observations must not be released.
:mod:`dpcal.optim.attacks` records and replays whole runs with it.

>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, PrivateOracle
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=3.0, delta=1e-6)
>>> class Counter(Observer):
...     opened = 0
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
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import UnobservedOracle
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import Vector

__all__ = ["Chooser", "Observer", "observed", "observing", "present", "seen"]

Chooser = Callable[[Query, Vector, Any, Callable[[], NDArray[Any]]], NDArray[Any]]


class Observer:
    """Receives every oracle that is opened, and changes nothing; subclasses see its answers."""

    def streams(self, seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
        """Return the random streams of an oracle that is about to be opened."""
        return Streams(seed, plan, digest)

    def watched(self, mechanism: Mechanism, plan: Plan, ledger: Ledger) -> Mechanism:
        """Return the mechanism that the oracle uses in place of its own."""
        return mechanism

    def choosing(self, plan: Plan, ledger: Ledger) -> Chooser:
        """Return the function that answers for an oracle that chooses among candidates."""
        return lambda query, at, scores, choose: choose()


_NOBODY = Observer()
_OBSERVER: ContextVar[Observer] = ContextVar("observer", default=_NOBODY)

# Observations that go on, each with its process and the number of oracles that it missed.
_MISSED: dict[tuple[int, object], int] = {}
_LOCK = Lock()


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let ``observer`` watch every oracle that is opened inside, in this thread's context.

    UnobservedOracle is raised at the end if the process opened an oracle elsewhere meanwhile: in
    another thread, which may or may not belong to the code inside.
    """
    token = os.getpid(), object()
    before = _OBSERVER.set(observer)
    with _LOCK:
        _MISSED[token] = 0
    try:
        yield
    finally:
        _OBSERVER.reset(before)
        with _LOCK:
            missed = _MISSED.pop(token)
    if missed:
        raise UnobservedOracle(
            f"{missed} oracles were opened in other threads: nobody saw what they answered. Start "
            "the threads of a run with contextvars.copy_context().run, and let the process do "
            "nothing else meanwhile."
        )


def present() -> Observer:
    """Return the observer of this context, for an oracle that is about to be opened."""
    return _OBSERVER.get()


def seen() -> Observer:
    """Return the observer of an oracle that is opened; refuse one that its observer cannot see."""
    observer = _OBSERVER.get()
    with _LOCK:
        if any(process != os.getpid() for process, _ in _MISSED):
            raise UnobservedOracle(
                "an oracle cannot be observed in a forked process: let the run that is attacked "
                "work in threads."
            )
        for token in _MISSED if observer is _NOBODY else ():
            _MISSED[token] += 1
    return observer


def observed() -> bool:
    """Return whether an observer watches the oracles that are opened here: they release nothing."""
    return _OBSERVER.get() is not _NOBODY
