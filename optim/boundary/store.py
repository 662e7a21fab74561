"""The file of one run, which holds every answer before the answer leaves the oracle.

One transaction holds an answer, its entry of the ledger and the state of the random streams. To go
on with a run that was killed, make the same call again. The run gets the answers in the file to the
same questions, without reading a record, and goes on from there with the same noise. So it ends at
the same parameters, bit for bit, for any optimizer, and every released answer is in the file.

With ``every = k`` a transaction holds k answers. The answers stay in the process until the
transaction is on the disk: :class:`dpcal.optim.Run` writes waiting answers before a callback is
called, before a result is returned and before an error leaves an optimizer. If the process is
killed, waiting answers were not released; they are drawn again, with the same noise.

The file is a secret, like a seed: whoever reads it can draw the noise again and subtract it.

>>> import tempfile
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, noisy_gd
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=20)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=40.0, delta=1e-6)
>>> records = Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1])
>>> with tempfile.TemporaryDirectory() as folder:
...     path = folder + "/run.db"
...     part = noisy_gd(records, plan, learning_rate=0.1, store=path, callback_every=7,
...                     callback=lambda progress: progress.step == 14)
...     whole = noisy_gd(records, plan, learning_rate=0.1, store=path)
>>> part.ledger.count("gradient"), whole.ledger.count("gradient"), whole.complete
(14, 20, True)
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from threading import RLock

import numpy as np

from dpcal._internal import validate
from dpcal._internal.files import document_of
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import LedgerMismatch
from dpcal.optim.boundary.kept import KeptFile, facts_of, moment
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import numbers_in
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import Vector, digest_of
from dpcal.optim.objectives.base import Objective


class Store(KeptFile):
    """The file of one run, held open: its secret root, and a row an answer.

    The last run that opened the file owns it: two runs must not go on from one state.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "store")
        self._owner = secrets.token_hex(16)

    @cached_property
    def _file(self) -> sqlite3.Connection:
        """A connection to the existing file."""
        self.hide()
        return self.connect()

    def checked(self, about: Mapping[str, str]) -> dict[str, str]:
        """Return the facts about the run in the file, its plan and its root; none before a run.

        A ValueError is raised if the run has another plan or other facts.
        """
        if "_file" not in vars(self) and not self.exists():
            return {}
        with self.named():
            run = self._file.execute("SELECT plan, root FROM runs").fetchone()
            known = {} if run is None else {**facts_of(self._file), **dict(run)}
        for name, value in about.items():
            if known and known.get(name) != value:
                raise ValueError(f"{self} holds a run with other {name}.")
        return known

    def begin(self, about: Mapping[str, str], streams: Streams) -> None:
        """Own the file and make the streams its run's streams; write the run if there is none.

        If several processes start a run at once, one writes it, and the others go on from it. The
        run is known by its ``plan``, in JSON, and other facts; see :meth:`checked`.
        """
        root = None if self.checked(about) else json.dumps(streams.root)
        if "_file" not in vars(self):
            self.make()
        with self.writing(self._file):
            known = self.checked(about)
            if known:
                with self.whole():
                    streams.adopt(document_of(known["root"]))
            else:
                columns = "number, label, started, plan, root"
                row = moment(), about["plan"], root or json.dumps(streams.root)
                self._file.execute(f"INSERT INTO runs ({columns}) VALUES (1, '', ?, ?, ?)", row)
            facts = {**about, "owner": self._owner}
            del facts["plan"]
            self._file.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", facts.items())

    @contextmanager
    def owned(self) -> Iterator[sqlite3.Connection]:
        """Write the changes in one transaction; LedgerMismatch if another run opened the file."""
        with self.writing(self._file):
            row = self._file.execute("SELECT value FROM about WHERE name = 'owner'").fetchone()
            if row is None or row[0] != self._owner:
                raise LedgerMismatch(
                    f"{self} was opened by another run, which goes on in its place; "
                    "the answer was not released."
                )
            yield self._file

    def row(self, position: int) -> sqlite3.Row | None:
        """Return the row of an answer, if there is one."""
        with self.named():
            asked = "SELECT question, answer, entry, state FROM answers WHERE position = ?"
            found: sqlite3.Row | None = self._file.execute(asked, (position,)).fetchone()
        return found

    def put(self, position: int, question: str, answer: bytes, entry: str) -> None:
        """Write a question, and its answer unless that is empty; refuse others in their place."""
        with self.owned() as file:
            held = self.row(position)
            if held is None:
                row = (position, question, answer, entry, "")
                file.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", row)
            elif held["question"] != question:
                raise LedgerMismatch(
                    f"answer {position} in {self} is to other parameters: start the "
                    "run from a checkpoint of it, with the same learning rate and settings."
                )
            elif answer and held["answer"] not in (b"", answer):
                raise LedgerMismatch(
                    f"answer {position} in {self} was another one: the records, the "
                    "loss and the size of pieces must be those of the run. It was not released."
                )
            elif answer:
                change = "UPDATE answers SET answer = ? WHERE position = ?"
                file.execute(change, (answer, position))

    def close(self) -> None:
        """Close the file, which stays: another process may have put its run into it."""
        if "_file" in vars(self):
            self._file.close()


class Answers(Store):
    """The answers of an oracle, which are in a file before they leave it.

    Parameters
    ----------
    path
        Path of the file, which is made with the first run. Only its owner can read it.
    every
        Number of answers in a transaction, at least 1. With more than 1, :meth:`flush` must be
        called before anything that depends on an answer leaves the process.
    """

    def __init__(self, path: str | os.PathLike[str], every: int) -> None:
        self._every = validate.count(store_every=every)
        super().__init__(path)
        self._at = self._stored = 0
        self._state: str | None = None
        self._waiting: list[tuple[int, str, bytes, str]] = []
        self._lock = RLock()

    def begin(self, about: Mapping[str, str], streams: Streams) -> None:
        """See :class:`Store`; answers of the file come first, and new ones after them."""
        super().begin(about, streams)
        self._streams = streams
        with self.named():
            (self._stored,) = self._file.execute("SELECT count(*) FROM answers").fetchone()

    def again(self, query: Query, points: tuple[Vector, ...]) -> Vector | None:
        """Return the next answer if the file holds it, after it was admitted; else None.

        LedgerMismatch is raised if the file holds an answer to another question.
        """
        if self._at >= self._stored:
            if self._state is not None:
                with self.whole():
                    self._streams.move_to(document_of(self._state))
                self._state = None
            return None
        row = self.row(self._at)
        if row is None or row["question"] != _question(query, points):
            raise LedgerMismatch(
                f"answer {self._at} in {self} is to another question: start the run "
                "with the same call that it was started with."
            )
        due = numbers_in(query, len(points[0]))
        with self.whole():
            answer = np.frombuffer(row["answer"], dtype="<f8", count=due).astype(np.float64)
        self._at += 1
        self._state = row["state"]
        return answer

    def keep(self, query: Query, points: tuple[Vector, ...], answer: Vector) -> None:
        """Keep a new answer; if the transaction is full, it is on the disk."""
        with self._lock:
            entry = json.dumps(query.with_count(1).to_dict())
            words = np.asarray(answer, dtype="<f8").tobytes()
            self._waiting.append((self._at, _question(query, points), words, entry))
            self._at = self._stored = self._at + 1
            if len(self._waiting) >= self._every:
                self.flush()

    def flush(self) -> None:
        """Write the waiting answers, in one transaction.

        LedgerMismatch is raised if another run has opened the file since; no waiting answer may
        then be released.
        """
        with self._lock:
            if not self._waiting:
                return
            rows = [(*row, "") for row in self._waiting[:-1]]
            # The positions after the last answer: a run goes on from there, not before.
            rows.append((*self._waiting[-1], json.dumps(self._streams.positions())))
            with self.owned() as file:
                file.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", rows)
            self._waiting.clear()

    def close(self) -> None:
        """Write the waiting answers, and close the file."""
        try:
            self.flush()
        finally:
            super().close()

    def held(self, ledger: Ledger) -> Ledger:
        """Return all releases: the file's, while a run with this ledger has not caught up."""
        return read_ledger(self.path) if self._at < self._stored else ledger


def _question(query: Query, points: tuple[Vector, ...]) -> str:
    """Return a digest of a query and its points."""
    noise = None if query.budget is None else query.noise_multiplier
    words = repr((query.kind, query.name, noise)).encode()
    return digest_of(np.frombuffer(words, dtype=np.uint8), *points).hex()


def stored(
    path: str | os.PathLike[str],
    objective: Objective,
    plan: Plan,
    *,
    seed: Seed = None,
    every: int = 1,
) -> PrivateOracle:
    """Return an oracle with answers that are in a file before they leave it.

    A ValueError is raised if the file is not a store, or has another plan or other records.

    Parameters
    ----------
    path, every
        See :class:`Answers`.
    objective, plan
        See :class:`dpcal.optim.PrivateOracle`; for a run in the file, the same as before.
    seed
        Seed of a new run. A run in the file keeps its own randomness.
    """
    kept = Answers(path, every)
    oracle = PrivateOracle(objective, plan, seed=seed)
    records = hashlib.blake2b(objective.digest(), digest_size=32).hexdigest()
    about = {"plan": plan.to_json(), "records": records, "noise": oracle.noise}
    try:
        kept.begin(about, oracle._streams)
    except BaseException:
        kept.close()
        raise
    oracle._kept = kept
    return oracle


def read_ledger(path: str | os.PathLike[str]) -> Ledger:
    """Return the ledger of all releases of the run in a store; a ValueError if there is none."""
    kept = KeptFile(path, "store")
    with kept.opened() as file:
        run = file.execute("SELECT plan FROM runs").fetchone()
        rows = file.execute("SELECT entry FROM answers ORDER BY position").fetchall()
    if run is None:
        raise ValueError(f"store {str(path)!r} must hold a run, got none.")
    with kept.whole():
        plan = Plan.from_json(run["plan"])
        entries = [Query(**document_of(row["entry"])) for row in rows]
        about = (plan.n, plan.neighboring_relation)
        return Ledger(*about, entries=entries, accountant=plan.accountant)
