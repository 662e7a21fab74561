"""Can a run survive its process? Yes: every answer is in a file before it leaves the oracle.

One transaction holds an answer, its entry of the ledger and the state of the random streams. A run
that was killed is started again with the same call: it gets the answers in the file to the same
questions, without reading a record, and goes on from there with the same noise. So it ends at the
same parameters, bit for bit, for any optimizer, and every released answer is in the file.

With ``every = k`` a transaction holds k answers. They stay in the process until it is on the disk:
:class:`dpcal.optim.Run` writes waiting answers before a callback is called, before a result is
returned and before an error leaves an optimizer. Answers that wait when the process is killed were
not released; they are drawn again, with the same noise.

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
import math
import os
import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._files import check_regular
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import LedgerMismatch, reason_of
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import noise_of
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import Vector, digest_of, numbers
from dpcal.optim.objectives.base import Objective

__all__ = ["StoredOracle", "check_owner", "opened", "parsed", "read_ledger"]

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS run (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS answers (position INTEGER PRIMARY KEY, question TEXT NOT NULL, "
    "answer BLOB NOT NULL, entry TEXT NOT NULL, state TEXT NOT NULL)",
)

# Seconds to wait while another process writes to the file, which takes milliseconds on a free disk.
_PATIENCE = 10.0


class StoredOracle:
    """An oracle whose answers are in a file before they leave it.

    A ValueError is raised if the file is not such a store, or has another plan or other records.

    Parameters
    ----------
    path
        Of the file, which is made if there is none. Only its owner can read it.
    objective, plan, noise
        As of a :class:`dpcal.optim.PrivateOracle`; for a run in the file, the same as before.
    seed
        Of a new run. A run in the file keeps its own randomness.
    every
        Answers of a transaction, at least 1. With more than 1, the caller must call :meth:`flush`
        before anything that depends on an answer leaves the process.

    Attributes
    ----------
    closes_with_run
        Whether the file is closed when a run ends.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        objective: Objective,
        plan: Plan,
        *,
        seed: Seed = None,
        noise: str | None = None,
        every: int = 1,
    ) -> None:
        self.closes_with_run = False
        self._every = _validate.count(store_every=every)
        self._waiting: list[tuple[int, str, bytes, str]] = []
        # Questions of several threads are answered, and written, one after the other.
        self._lock = RLock()
        self._path = Path(path)
        new = not self._path.exists()
        self._file = opened(self._path)
        try:
            self._inner = self._started(objective, plan, seed, noise)
            self._inner._streams.in_file = True
        except BaseException:
            self._file.close()
            if new:
                self._path.unlink(missing_ok=True)
            raise
        # The last run to open the file owns it: two runs must not go on from one state.
        self._owner = secrets.token_hex(16)
        with self._file:
            self._file.execute("INSERT OR REPLACE INTO run VALUES ('owner', ?)", (self._owner,))
        (self._stored,) = self._file.execute("SELECT count(*) FROM answers").fetchone()
        self._position = 0

    def _started(
        self, objective: Objective, plan: Plan, seed: Seed, noise: str | None
    ) -> PrivateOracle:
        """Return the oracle that answers, with the randomness of the run in the file."""
        records = hashlib.blake2b(objective.digest(), digest_size=32).hexdigest()
        known = dict(self._file.execute("SELECT name, value FROM run").fetchall())
        if known:
            # Files of earlier releases do not name the noise, which was always Gaussian.
            noise = noise or known.setdefault("noise", "gaussian")
        about = {
            "plan": plan.to_json(),
            "records": records,
            "noise": noise_of(noise, plan, objective.dimension, objective),
        }
        if not known:
            oracle = PrivateOracle(objective, plan, seed=seed, noise=noise)
            about["root"] = json.dumps(oracle._streams.root)
            with self._file:
                self._file.executemany("INSERT INTO run VALUES (?, ?)", about.items())
            return oracle
        for name, value in about.items():
            if known.get(name) != value:
                raise ValueError(f"store {str(self._path)!r} holds a run with other {name}.")
        oracle = object.__new__(PrivateOracle)
        streams = Streams.restored(parsed(self._path, known["root"]), plan)
        oracle._open(objective, plan, streams, noise=noise)
        return oracle

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return self._inner.dimension

    @property
    def l2(self) -> float:
        """Strength of the regulariser."""
        return self._inner.l2

    @property
    def linear_loss(self) -> tuple[str, float] | None:
        """Name and largest weight of the loss of a linear model, whose defaults are known."""
        return self._inner.linear_loss

    @property
    def plan(self) -> Plan:
        """Plan of the run."""
        return self._inner.plan

    @property
    def ledger(self) -> Ledger:
        """The answers so far in this process, which include the file's once it has caught up."""
        return self._inner.ledger

    @property
    def held(self) -> Ledger:
        """All releases: the content of the file, while the run has not caught up with it."""
        return read_ledger(self._path) if self._position < self._stored else self.ledger

    @property
    def public(self) -> np.random.Generator:
        """A generator for public choices."""
        return self._inner.public

    @property
    def seed_given(self) -> bool:
        """Whether a seed was given when the run was new."""
        return self._inner.seed_given

    @property
    def read_from_data(self) -> tuple[str, ...]:
        """Names of what was read off the records to make the objective."""
        return self._inner.read_from_data

    @property
    def noise(self) -> str:
        """How noise is drawn: the keyword of :func:`dpcal.optim.run`."""
        return self._inner.noise

    def remaining(self, query: str) -> int:
        """Return the number of answers that are left to the query."""
        return self._inner.remaining(query)

    def affords(self, query: str, noise_multiplier: float) -> bool:
        """Return whether one more answer to an adaptive query, with this noise, is allowed."""
        return self._inner.affords(query, noise_multiplier)

    def gradient(
        self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """See :meth:`dpcal.optim.PrivateOracle.gradient`."""
        return self._answer("gradient", query, noise_multiplier, w)

    def difference(
        self, w: ArrayLike, v: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """See :meth:`dpcal.optim.PrivateOracle.difference`."""
        return self._answer("gradient difference", query, noise_multiplier, w, v)

    def norm(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """See :meth:`dpcal.optim.PrivateOracle.norm`."""
        return float(self._answer("gradient norm", query, noise_multiplier, w)[0])

    def scalar(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """See :meth:`dpcal.optim.PrivateOracle.scalar`."""
        return float(self._answer("scalar", query, noise_multiplier, w)[0])

    def one_pass(
        self,
        w: ArrayLike,
        query: str,
        *,
        learning_rate: float,
        strength: float = 0.0,
        center: ArrayLike | None = None,
        radius: float = math.inf,
    ) -> Vector:
        """See :meth:`dpcal.optim.PrivateOracle.one_pass`."""
        toward = np.zeros(self.dimension) if center is None else center
        settings = {"learning_rate": learning_rate, "strength": strength, "radius": radius}
        return self._answer("one pass", query, None, w, toward, **settings)

    def flush(self) -> None:
        """Write the answers that are waiting, in one transaction.

        LedgerMismatch is raised if another run has opened the file since; no waiting answer may
        then be released.
        """
        with self._lock:
            if not self._waiting:
                return
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                check_owner(self._file, self._path, self._owner)
                rows = [(*row, "") for row in self._waiting[:-1]]
                # The positions after the last answer: a run goes on from there, not before.
                rows.append((*self._waiting[-1], json.dumps(self._inner._streams.positions())))
                self._file.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", rows)
            self._waiting.clear()

    def close(self) -> None:
        """Write the waiting answers, and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def _answer(
        self,
        kind: str,
        name: str,
        noise_multiplier: float | None,
        *at: ArrayLike,
        **settings: float,
    ) -> Vector:
        with self._lock:
            return self._answered(kind, name, noise_multiplier, *at, **settings)

    def _answered(
        self,
        kind: str,
        name: str,
        noise_multiplier: float | None,
        *at: ArrayLike,
        **settings: float,
    ) -> Vector:
        """Return the next answer: from the file, or a new one that waits for its transaction."""
        points = [numbers("w", each) for each in at]
        words = repr((kind, name, noise_multiplier, *settings.values())).encode()
        question = digest_of(np.frombuffer(words, dtype=np.uint8), *points).hex()
        asked = self._inner._admission.asked(name, kind, noise_multiplier)
        if self._position < self._stored:
            return self._again(asked, question)
        ask: dict[str, Callable[..., Any]] = {
            "gradient": self._inner.gradient,
            "gradient difference": self._inner.difference,
            "gradient norm": self._inner.norm,
            "scalar": self._inner.scalar,
        }
        if kind == "one pass":
            start, center = points
            answer = self._inner.one_pass(start, name, center=center, **settings)
        else:
            answer = np.atleast_1d(ask[kind](*points, name, noise_multiplier=noise_multiplier))
        self._waiting.append(
            (
                self._position,
                question,
                np.asarray(answer, dtype="<f8").tobytes(),
                json.dumps(asked.with_count(1).to_dict()),
            )
        )
        if len(self._waiting) >= self._every:
            self.flush()
        self._position = self._stored = self._position + 1
        return np.asarray(answer, dtype=np.float64)

    def _again(self, asked: Query, question: str) -> Vector:
        """Return an answer in the file, and set the state of the oracle to that after it."""
        columns = "question, answer, state"
        row = self._file.execute(
            f"SELECT {columns} FROM answers WHERE position = ?", (self._position,)
        ).fetchone()
        if row is None or row[0] != question:
            raise LedgerMismatch(
                f"answer {self._position} in store {str(self._path)!r} is to another question: "
                "start the run with the same call that it was started with."
            )
        inner = self._inner
        inner._admission.spend(asked, 1)
        if asked.correlation is not None:
            inner._batches.rounds[asked.name].begin(again=True)
        elif asked.composition == "disjoint" or asked.epoch is not None:
            inner._batches.sample(asked)
        self._position += 1
        if self._position == self._stored:
            inner._streams.move_to(parsed(self._path, row[2]))
        return np.frombuffer(row[1], dtype="<f8").astype(np.float64)


def read_ledger(path: str | os.PathLike[str]) -> Ledger:
    """Return the ledger of all releases of the run in a store; a ValueError if there is none."""
    if not Path(path).exists():
        raise ValueError(f"path must be of a store, got {str(path)!r}, where there is none.")
    file = opened(Path(path))
    try:
        known = dict(file.execute("SELECT name, value FROM run").fetchall())
        rows = file.execute("SELECT entry FROM answers ORDER BY position").fetchall()
    finally:
        file.close()
    if "plan" not in known:
        raise ValueError(f"path must be of a store that holds a run, got {str(path)!r}.")
    plan = Plan.from_json(known["plan"])
    entries = [Query(**parsed(path, entry)) for (entry,) in rows]
    return Ledger(plan.n, plan.neighboring_relation, entries=entries)


def check_owner(file: sqlite3.Connection, path: Path, owner: str) -> None:
    """Refuse, by LedgerMismatch, to write where another run has opened the file since."""
    (last,) = file.execute("SELECT value FROM run WHERE name = 'owner'").fetchone()
    if last != owner:
        raise LedgerMismatch(
            f"store {str(path)!r} was opened by another run, which goes on in its place; the "
            "answer was not released."
        )


def parsed(path: str | os.PathLike[str], text: str) -> Any:
    """Return values of a row that hold JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"store {str(path)!r} is damaged, a row of it holds no JSON: go on with a copy of it "
            "that is whole."
        ) from error


def opened(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that only its owner can read."""
    if not path.exists():
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise ValueError(
                "store must be a path in a folder that can be written to, got "
                f"{str(path)!r}: {reason_of(error)}."
            ) from error
    try:
        check_regular(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"store must be a path of a file of this kind, got {str(path)!r}: {reason_of(error)}."
        ) from error
    file = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False)
    try:
        # A transaction is on the disk when it is committed, also if the machine fails.
        file.execute("PRAGMA synchronous = FULL")
        file.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            file.execute(statement)
        file.commit()
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except (sqlite3.Error, OSError) as error:
        file.close()
        raise ValueError(
            f"store must be a path of a file of this kind, got {str(path)!r}: {error}."
        ) from error
    return file
