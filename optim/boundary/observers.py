"""Who watches what happens inside oracles? An observer, for tests and attacks; nobody otherwise.

An observer sees sums without noise, which nobody may see who is to be kept from the records. It
runs in the process that holds them, for the one who may see them, and what is observed is not
released. :mod:`dpcal.optim.attacks` records and replays whole runs with it.

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
...     oracle = PrivateOracle(Logistic([[0.0], [1.0]], [0, 1]), plan)
>>> counter.opened
1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.boundary.seeds import Seed, Streams

__all__ = ["Observer", "observing", "streams", "watched"]


class Observer(Protocol):
    """Is told of every oracle that is opened, and may stand between it and its mechanism."""

    def streams(self, seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
        """Return the random streams of an oracle that is about to be opened."""
        ...

    def watched(self, mechanism: Mechanism, plan: Plan, ledger: Ledger) -> Mechanism:
        """Return what the oracle asks in place of its mechanism."""
        ...


_OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let ``observer`` watch every oracle that is opened inside, in this thread."""
    before = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(before)


def streams(seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
    """Return the random streams of a new oracle."""
    observer = _OBSERVER.get()
    if observer is None:
        return Streams(seed, plan, digest)
    return observer.streams(seed, plan, digest)


def watched(mechanism: Mechanism, plan: Plan, ledger: Ledger) -> Mechanism:
    """Return what a new oracle asks: its mechanism, or an observer's."""
    observer = _OBSERVER.get()
    return mechanism if observer is None else observer.watched(mechanism, plan, ledger)
