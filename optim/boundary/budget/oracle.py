"""Oracles whose runs are in a budget book: the row is written first, and completed at the end.

A row is completed when its run ends, when its oracle is dropped, or when the interpreter exits,
also after an exception or Ctrl-C. If the process is killed the row stays as it was written, and
charges the run's whole plan.

>>> import tempfile
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import BudgetBook, Logistic
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=20)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=14.0, delta=1e-6)
>>> folder = tempfile.TemporaryDirectory()
>>> book = BudgetBook(folder.name + "/clinic.budget", epsilon=16.0, delta=1e-6)
>>> oracle = book.oracle(Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1]), plan)
>>> book.runs[0].state
'goes on, or was killed'
>>> _ = oracle.gradient([0.0, 0.0], "gradient")
>>> del oracle
>>> book.runs[0].state, book.runs[0].charged
('1 of 20 planned answers', True)
>>> folder.cleanup()
"""

from __future__ import annotations

import os
import sqlite3
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dpcal import _validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import LedgerMismatch
from dpcal.optim.boundary import observers
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.boundary.store import StoredOracle, read_ledger
from dpcal.optim.objectives.base import Objective

__all__ = ["BookedLedger", "BookedOracle", "Booking", "StoredBookedOracle"]


class Booking(Protocol):
    """The methods of a book that an oracle calls."""

    def check(self, plan: Plan) -> None:
        """Refuse a plan that does not fit; nothing is written."""
        ...

    def _enter(self, plan: Plan, streams: Streams, label: str) -> int:
        """Write the row of a run, or refuse the run; return the row's number."""
        ...

    def _confirm(self, number: int, streams: Streams) -> None:
        """Refuse a run's first answer unless its row is there and charged."""
        ...

    def _complete(self, number: int, ledger: Ledger) -> None:
        """Complete a row by its ledger."""
        ...


class BookedLedger(Ledger):
    """A ledger that takes answers while the run's row in the book is charged, and only then.

    A copy of it is an ordinary ledger.
    """

    _charged = False
    _process = 0
    _confirm: Callable[[], None] | None = None

    def charge(self, confirm: Callable[[], None]) -> None:
        """Take answers from now on, in this process, the first if ``confirm`` does not refuse."""
        self._charged, self._process, self._confirm = True, os.getpid(), confirm

    def record(self, query: Query, count: int = 1) -> None:
        """Append ``count`` >= 1 answers to ``query``, if the plan allows them.

        LedgerMismatch is raised if the row in the book charges nothing, or the ledger is another
        process's.
        """
        if not self._charged or os.getpid() != self._process:
            raise LedgerMismatch(
                "the run's row in the budget book was written by another process, or has ended "
                "with or without an answer: make oracles after a fork, and a new one for a new run."
            )
        if self._confirm is not None:
            self.check(query, count)
            # Another process may have changed the row since it was written.
            self._confirm()
            self._confirm = None
        super().record(query, count)

    def complete(self, book: Booking, number: int, store: Path | None) -> None:
        """Complete the row in the process that wrote it; warn if this fails.

        ``store`` is the file of the run, or None. A run that ends before it has caught up with its
        file is charged for the answers in the file.
        """
        if os.getpid() != self._process:
            return
        # A row that has an end takes no answers.
        self._charged = False
        try:
            held = self if store is None else read_ledger(store)
            book._complete(number, max(held, self, key=lambda ledger: ledger.answers))
        except (OSError, ValueError, sqlite3.Error) as error:
            warnings.warn(
                f"run {number} stays in the budget book as one that did not end: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def __reduce__(self) -> tuple[Callable[[str], Ledger], tuple[Any, ...]]:
        return Ledger.from_json, (self.to_json(),)


class BookedOracle(PrivateOracle):
    """A :class:`dpcal.optim.PrivateOracle` whose run is in a budget book.

    ``label`` is the name of the run in the book; the optimizer's name when empty. The row is
    completed when a run ends if ``closes_with_run``.
    """

    closes_with_run = True

    def __init__(
        self,
        objective: Objective,
        plan: Plan,
        *,
        book: Booking,
        seed: Seed = None,
        noise: str | None = None,
        label: str = "",
    ) -> None:
        _validate.instance(Objective, objective=objective)
        ledger = _ledger_of(_validate.instance(Plan, plan=plan))
        streams = observers.streams(seed, plan, objective.digest)
        self._open(objective, plan, streams, ledger=ledger, noise=noise)
        self._ends = _entered(self, book, plan, streams, ledger, label)

    def close(self) -> None:
        """Complete the run's row in the book."""
        self._ends()


class StoredBookedOracle(StoredOracle):
    """A :class:`~dpcal.optim.boundary.store.StoredOracle` whose run is in a budget book.

    ``book`` and ``label`` are those of :class:`BookedOracle`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        objective: Objective,
        plan: Plan,
        *,
        book: Booking,
        seed: Seed = None,
        noise: str | None = None,
        every: int = 1,
        label: str = "",
    ) -> None:
        super().__init__(path, objective, plan, seed=seed, noise=noise, every=every)
        self.closes_with_run = True
        inner = self._inner
        ledger = _ledger_of(plan)
        try:
            self._ends = _entered(self, book, plan, inner._streams, ledger, label, self._path)
        except BaseException:
            super().close()
            raise
        inner._ledger = ledger

    def close(self) -> None:
        """Complete the run's row in the book, and close the run's own file."""
        # The row is completed last, because it counts the answers in the file.
        try:
            super().close()
        finally:
            self._ends()


def _ledger_of(plan: Plan) -> Ledger:
    """Return the ledger of a run: an ordinary one if it is observed, because it costs nothing."""
    return (Ledger if observers.observed() else BookedLedger).of(plan)


def _entered(
    oracle: object,
    book: Booking,
    plan: Plan,
    streams: Streams,
    ledger: Ledger,
    label: str,
    store: Path | None = None,
) -> Callable[[], object]:
    """Write the run's row, and return the function that completes it."""
    if not isinstance(ledger, BookedLedger):
        book.check(plan)
        return lambda: None
    number = book._enter(plan, streams, label)
    ledger.charge(partial(book._confirm, number, streams))
    return weakref.finalize(oracle, ledger.complete, book, number, store)
