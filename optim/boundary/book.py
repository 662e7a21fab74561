"""The budget book: one file for all runs about a data set, with the total that they may spend.

A total (epsilon, delta) is written once. The book admits a run before a record is read: it composes
the run's whole plan with the plans of all earlier runs, and refuses the run if they overrun the
total. A run that is admitted has a row, on the disk, before its first answer. A run that was
killed, interrupted or diverged keeps its row and its cost. Only a run without an answer is free.

>>> import tempfile
>>> from dpcal import optim
>>> from dpcal.calibrate import Plan, Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=20)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=14.0, delta=1e-6)
>>> records = optim.Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1])
>>> folder = tempfile.TemporaryDirectory()
>>> book = BudgetBook(folder.name + "/clinic.budget", epsilon=16.0, delta=1e-6)
>>> result = optim.noisy_gd(records, plan, learning_rate=0.1, store=book)
>>> print(f"{book.spent():.3f}", book.runs[0].state)
12.595 all 20 planned answers
>>> optim.noisy_gd(records, plan, learning_rate=0.1, store=book)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: This run would bring what is spent on these records to epsilon = ...
>>> folder.cleanup()

The meaning of the total depends on how runs are chosen:

============ =============================== ===================================================
composition  a run may depend on             theorem
             results of earlier runs
============ =============================== ===================================================
``exact``    no                              all plans as one mechanism, to its certified cost
``renyi``    yes                             Renyi filter (Feldman and Zrnic 2021; Lecuyer 2021)
``zcdp``     yes, Gaussian answers only      zCDP filter (Whitehouse, Ramdas, Rogers and Wu 2023)
``gdp``      yes, Gaussian answers only      GDP filter (Smith and Thakurta 2022)
============ =============================== ===================================================

The file holds a key, and tags of seeds and of records under that key. The file is a secret, because
guesses can be tested against the tags. The book holds only the runs that were given it.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import os
import sqlite3
import warnings
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.accountants import Epsilon
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.plan import Plan
from dpcal.errors import LedgerMismatch, NoiseReused
from dpcal.optim.account import Account, Charge, HasAccount
from dpcal.optim.boundary.kept import BookFile, Row, Snapshot, Statement, moment, run_of
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import observed
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.boundary.store import read_ledger, stored
from dpcal.optim.objectives.base import Objective

Records = str | os.PathLike[str] | ArrayLike

_ENTER = "INSERT OR IGNORE INTO records VALUES (?, ?, ?)"


@dataclass(frozen=True, kw_only=True, eq=False)
class BookedRun:
    """A run in a budget book.

    Attributes
    ----------
    number, label
        Number of the run, 1 for the first in the book; and its name.
    started, ended
        Dates and times, in ISO 8601; ``ended`` is None for a run that goes on, or was killed.
    plan
        Plan or event of the run, charged as a whole.
    ledger
        Answers of the run. None if only the event of ``plan`` is known, and before the run ends,
        unless it was opened again.
    """

    number: int
    label: str
    started: str
    ended: str | None
    plan: Plan | Charge
    ledger: Ledger | None

    @classmethod
    def of(cls, row: Row) -> Self:
        """Return the run of a row."""
        told = {name: row[name] for name in ("number", "label", "started", "ended")}
        ledger = None if row["ledger"] is None else Ledger.from_json(row["ledger"])
        return cls(**told, plan=run_of(row["plan"]), ledger=ledger)

    @property
    def state(self) -> str:
        """State of the run, in words."""
        if self.ended is None:
            return "goes on, or was killed"
        if self.ledger is None or isinstance(self.plan, Charge):
            return "charged whole"
        planned = sum(query.count for query in self.plan.queries)
        given = self.ledger.answers
        return f"{'all' if given == planned else f'{given} of'} {planned} planned answers"

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        told = {name: getattr(self, name) for name in ("number", "label", "started", "ended")}
        ledger = None if self.ledger is None else json.loads(self.ledger.to_json())
        plan = json.loads(self.plan.to_json())
        return {**told, "state": self.state, "plan": plan, "ledger": ledger}


class BudgetBook(HasAccount):
    """A total (epsilon, delta) for a data set, in a file, and the runs that were paid from it.

    Optimizers take a book as their ``store``; :meth:`oracle` makes an oracle that is in the book.
    A ValueError is raised if there is neither a book nor a total, the file is not a budget book, it
    differs from the arguments, or it is about other records.

    Parameters
    ----------
    path
        Path of the file. The file is made if there is none, and then you must give a total.
    epsilon, delta
        The total of a new book: epsilon > 0 and delta in (0, 1). For an existing book, None or
        its own; :meth:`change_total` changes it.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``; the relation of the
        first charged run when omitted. Runs under another relation are refused.
    composition
        ``"exact"`` (for a new book when omitted), ``"renyi"``, ``"zcdp"`` or ``"gdp"``.
    records
        The data set: a path of a file, or arrays. The first records are entered as a keyed digest:
        into a new book at once, into a book without records with the first run that answers. Later
        records must be in the book. See :meth:`add_records`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighboring_relation: str | None = None,
        composition: str | None = None,
        records: Records | None = None,
    ) -> None:
        given = {
            "epsilon": epsilon,
            "delta": delta,
            "neighboring_relation": validate.relation(neighboring_relation),
            "composition": composition,
        }
        told = {name: value for name, value in given.items() if value is not None}
        asked = Account(**{"epsilon": 1.0, "delta": 0.5, **told})
        self._file = BookFile(path)
        self._pending: tuple[str, str] | None = None
        self._store: str | os.PathLike[str] | None = None
        new = not self._file.exists()
        if new:
            if epsilon is None or delta is None:
                raise ValueError(
                    f"There is no {self._file}; a new one needs its total, epsilon and delta."
                )
            asked.left()
            self._file.begin(asked)
        self._check(told)
        if records is not None:
            self.about(records)
        if new:
            self._file.decide(self._entries)

    def _check(self, told: dict[str, Any]) -> None:
        """Refuse arguments that contradict the book."""
        account = self.account
        for name, value in told.items():
            own = getattr(account, name)
            if value != own:
                known = "of its first run" if own is None else repr(own)
                raise ValueError(
                    f"{name} must be that of {self._file}, {known}, or be left out, got {value!r}."
                )

    @property
    def account(self) -> Account:
        """The total and all runs that are paid from it, at this moment."""
        return self._file.snapshot().account

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def composition(self) -> str:
        """Composition of runs: ``"exact"``, ``"renyi"``, ``"zcdp"`` or ``"gdp"``."""
        return self.account.composition

    @property
    def runs(self) -> tuple[BookedRun, ...]:
        """Every run that was admitted, in order."""
        rows = self._file.snapshot("TRUE").runs
        with self._file.whole():
            return tuple(BookedRun.of(row) for row in rows)

    @property
    def totals(self) -> tuple[tuple[str, float, float], ...]:
        """Every total that the book had: its date, epsilon and delta."""
        rows = self._file.snapshot().totals
        return tuple((row["since"], row["epsilon"], row["delta"]) for row in rows)

    @property
    def records(self) -> tuple[tuple[str, str], ...]:
        """Names of the book's records, each with the time of its entry."""
        return tuple((row["name"], row["added"]) for row in self._file.snapshot().records)

    def unfinished(self) -> tuple[str, ...]:
        """Return a sentence for each run without an end in the book; its whole plan is charged."""
        return tuple(
            f"run {run.number} ({run.label}, since {run.started}) goes on, or was killed: it is "
            f"charged as planned, epsilon {run.plan.epsilon:g} at delta {run.plan.delta:g}"
            for run in self.runs
            if run.ended is None
        )

    def spent(self, delta: float | None = None) -> Epsilon:
        """Return the certified epsilon of all runs in the book, at the total's delta or another.

        The epsilon is the exact composition of their plans. It holds if no run was chosen by
        results of earlier runs; see :meth:`spent_whatever_was_chosen`.
        """
        return self.account.spent(delta)

    def spent_whatever_was_chosen(self) -> float:
        """Return an epsilon at the total's delta that holds however runs were chosen.

        The epsilon is from an :class:`dpcal.accountants.Odometer`. It is larger than :meth:`spent`,
        and valid if later runs, and the time to stop, depend on results of earlier runs.
        UnsupportedEvent is raised for correlated noise on random batches, which has no Renyi
        divergence here.
        """
        return self.account.spent_whatever_was_chosen()

    def left(self) -> float:
        """Return the epsilon, at the total's delta, of one more Gaussian run that would fit.

        Runs compose to less than the sum of their epsilons, so this is not the difference of the
        total and :meth:`spent`. The epsilon is rounded down, and 0 if nothing fits.
        """
        return self.account.left()

    def check(self, plan: Plan | Charge) -> None:
        """Refuse a plan as :meth:`oracle` does on account of the budget; nothing is written."""
        self.account.admit(plan)

    def oracle(
        self,
        objective: Objective,
        plan: Plan,
        *,
        seed: Seed = None,
        label: str = "",
        every: int = 1,
    ) -> PrivateOracle:
        """Return an oracle with its run in the book.

        The run's row is written before its first answer. That answer is refused if other runs have
        used up the total by then. The row is completed when the run ends, when the oracle is
        dropped, or when the interpreter exits. If the process is killed the row charges the whole
        plan.

        Parameters
        ----------
        objective, plan, seed
            See :class:`dpcal.optim.PrivateOracle`.
        label
            Name of the run in the book; the optimizer's name when omitted.
        every
            Number of answers in a transaction of the run's file; see :meth:`with_store`.

        Raises
        ------
        BudgetExceeded
            If the run would overrun the total; no record was touched.
        NoiseReused
            If an earlier run of the book had the seed.
        ValueError
            If the plan is for another neighboring relation than the book.
        OSError
            If the book cannot be written; no query was answered.
        """
        if every != 1 and self._store is None:
            raise ValueError(
                f"store_every goes with a file of answers, got store_every={every!r} with a book "
                "alone: give book.with_store(path)."
            )
        if self._store is None:
            oracle = PrivateOracle(objective, plan, seed=seed)
        else:
            oracle = stored(self._store, objective, plan, seed=seed, every=every)
        oracle.closes_with_run = True
        try:
            self._enter(oracle, label)
        except BaseException:
            oracle.close()
            raise
        return oracle

    def with_store(self, store: str | os.PathLike[str]) -> Self:
        """Return a ``store`` for optimizers: this book, with a file that holds the run itself.

        A run that was killed and is started again goes on in its row, and is charged once.
        """
        made = copy.copy(self)
        made._store = store
        return made

    def add_records(self, records: Records, name: str | None = None) -> None:
        """Enter records about the same people: a corrected file, or another form of it.

        Records are a path of a file, or arrays. ``name`` is their name in the book; a file's name
        when omitted.
        """
        row = (self._tag("records", bytes_of(records)), name or name_of(records), moment())
        self._file.decide(lambda now: [(_ENTER, row)])

    def change_total(self, *, epsilon: float | None = None, delta: float | None = None) -> None:
        """Change the total, epsilon >= 0 and delta in (0, 1); None leaves a number unchanged.

        The book keeps the former total, with its date. A book that composes by a filter and holds a
        run raises a ValueError: a filter's theorem needs a total fixed before the first run.
        """

        def changed(now: Snapshot) -> list[Statement]:
            old = now.account
            new = (
                old.epsilon if epsilon is None else validate.positive(epsilon=epsilon),
                old.delta if delta is None else validate.probability(delta=delta),
            )
            if new == (old.epsilon, old.delta):
                return []
            if old.composition != "exact" and old.charged:
                raise ValueError(
                    f"The total of a book with composition {old.composition!r} must be "
                    "fixed before its first run: the filter's theorem covers no other."
                )
            row = (len(now.totals) + 1, moment(), *new)
            return [("INSERT INTO totals VALUES (?, ?, ?, ?)", row)]

        self._file.decide(changed)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the book, without its secrets, as JSON values."""
        return {
            "neighboring_relation": self.neighboring_relation,
            "composition": self.composition,
            "group_size": self.group_size,
            "unit": unit_of(self.group_size),
            "total": {"epsilon": self.epsilon, "delta": self.delta},
            "totals": [list(total) for total in self.totals],
            "records": [list(each) for each in self.records],
            "spent": self.spent().to_dict(),
            "left": self.left(),
            "runs": [run.to_dict() for run in self.runs],
        }

    def about(self, records: Records) -> Self:
        """Return this book, for runs about these records, a path of a file or arrays.

        A ValueError is raised if the book is about other records. If the book has no records, these
        are entered with the first run that answers: a refused run leaves the book as it is.
        """
        self._pending = self._tag("records", bytes_of(records)), name_of(records)
        self._entries(self._file.snapshot())
        return self

    def _entries(self, now: Snapshot) -> list[Statement]:
        """Return statements that enter the next run's records; refuse others than the book's."""
        known = {row["tag"] for row in now.records}
        if self._pending is None or self._pending[0] in known:
            return []
        tag, name = self._pending
        if known:
            names = ", ".join(repr(row["name"]) for row in now.records)
            raise ValueError(
                f"records must be those that {self._file} is about ({names}), "
                f"got others in {name!r}: use another book, or enter them as another "
                "form of the same people's records (add_records; dpcal budget FILE --add-records)."
            )
        return [(_ENTER, (tag, name, moment()))]

    def _tag(self, role: str, secret: bytes) -> str:
        """Return a keyed digest."""
        key = bytes.fromhex(self._file.snapshot().facts["key"])
        return hmac.new(key, role.encode() + b"\0" + secret, hashlib.sha256).hexdigest()

    def _enter(self, oracle: PrivateOracle, label: str) -> None:
        """Refuse a run, or have its row written or the run refused before its first answer."""
        if observed():
            self.check(oracle.plan)
            return
        plan, streams, owed = oracle.plan, oracle._streams, oracle._owed
        root = self._tag("root", streams.root["secret"].encode())
        seed = None if streams._seed is None else self._tag("seed", streams._seed.encode())
        same: tuple[Any, ...] = ("root = ? OR seed = ?", root, seed)

        def entered(now: Snapshot) -> list[Statement]:
            row = now.runs[0] if now.runs else None
            if row and seed is not None:
                raise NoiseReused(
                    f"{self._file} has seen this seed: two runs that share "
                    "their noise give the records away. Use another seed, or seed=None; where "
                    "runs differ in a learning rate, one seed for each of them. To "
                    "reproduce a run that was released, run it without the book."
                )
            if row is None:
                return self._written(now, plan, label or plan.optimizer, seed, root, None)
            if row["plan"] != plan.to_json():
                number = row["number"]
                raise LedgerMismatch(f"run {number} in the budget book has another plan.")
            return []

        now = self._file.snapshot(*same)
        statements = entered(now)

        def pay() -> None:
            if owed is not None:
                owed()
            # The decision at the opening holds unless another process has written since.
            if not (statements and self._file.write(now.version, *statements)):
                self._file.decide(entered, *same)

        oracle._owed = pay
        ends = weakref.finalize(oracle, self._complete, root, oracle.ledger, os.getpid())
        oracle._ends = ends

    def _written(self, now: Snapshot, plan: Plan | Charge, *row: str | None) -> list[Statement]:
        """Return statements that write a row and the next run's records, if the plan fits."""
        order = now.account.admit(plan).order
        label, *rest = row
        columns = "label, started, plan, seed, root, ended"
        insert = f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?)"
        written = [*self._entries(now), (insert, (label, moment(), plan.to_json(), *rest))]
        if order is not None and "order" not in now.facts:
            written.append(("INSERT INTO about VALUES ('order', ?)", (repr(order),)))
        return written

    def charge(self, run: Plan | Charge) -> None:
        """Write the row of a run before anything is released, or refuse it as ``check`` does.

        Under an observer nothing is released, and the run costs nothing.
        """
        if observed():
            self.check(run)
            return

        own = run.optimizer, None, None, moment()
        self._file.decide(lambda now: self._written(now, run, *own))

    def _complete(self, root: str, ledger: Ledger, process: int) -> None:
        """Complete a run's row, in the process that opened it; warn if this fails.

        A run without an answer has no row. The row keeps the run's largest ledger: a run that ends
        before it has caught up with its file is charged for the answers in the file.
        """
        if process != os.getpid():
            return
        ledger.end()

        def completed(now: Snapshot) -> list[Statement]:
            held = [ledger]
            if now.runs and self._store is not None:
                held.append(read_ledger(self._store))
            with self._file.whole():
                held += [Ledger.from_json(row["ledger"]) for row in now.runs if row["ledger"]]
            largest = max(held, key=lambda each: each.answers).to_json()
            end = "UPDATE runs SET ended = ?, ledger = ? WHERE number = ?"
            return [(end, (moment(), largest, row["number"])) for row in now.runs]

        try:
            self._file.decide(completed, "root = ?", root)
        except (OSError, ValueError, sqlite3.Error) as error:
            warnings.warn(
                f"a run stays in the budget book as one that did not end: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def name_of(records: Records) -> str:
    """Return the name of a file, or a word for arrays."""
    return Path(records).name if isinstance(records, str | os.PathLike) else "arrays"


def bytes_of(records: Records) -> bytes:
    """Return a digest of a file's content, or of an array's shape, type and numbers."""
    if isinstance(records, str | os.PathLike):
        with open(records, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    array = np.ascontiguousarray(records)
    if array.dtype.hasobject:
        raise TypeError(f"records must be a path or an array of numbers, got {type(records)}.")
    head = json.dumps({"shape": array.shape, "dtype": array.dtype.str}).encode()
    return hashlib.sha256(head + b"\0" + array.tobytes()).digest()
