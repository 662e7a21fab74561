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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._files import check_regular, document_of
from dpcal._spending import Spender
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import LedgerMismatch, reason_of
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.noise import noise_of
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import Vector, digest_of, numbers
from dpcal.optim.objectives.base import Objective

__all__ = [
    "StoredOracle",
    "check_owner",
    "is_garbled",
    "opened",
    "parsed",
    "read_ledger",
    "sentences",
    "whole",
]

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS run (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS answers (position INTEGER PRIMARY KEY, question TEXT NOT NULL, "
    "answer BLOB NOT NULL, entry TEXT NOT NULL, state TEXT NOT NULL)",
)

# Seconds to wait while another process writes to the file, which takes milliseconds on a free disk.
_PATIENCE = 10.0


class StoredOracle(Spender):
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
        # A run that is refused must leave no file, so its oracle is made before the file is. After
        # that nothing removes the file: another process may have put its run into it meanwhile.
        made = None
        if not self._path.exists():
            made = PrivateOracle(objective, plan, seed=seed, noise=noise)
        self._file = opened(self._path)
        try:
            with sentences(self._path):
                known = self._known()
                if not known and made is None:
                    made = PrivateOracle(objective, plan, seed=seed, noise=noise)
                self._inner = (
                    self._entered(objective, plan, made, noise)
                    if not known and made is not None
                    else self._restored(objective, plan, known, noise)
                )
                self._own()
        except BaseException:
            self._file.close()
            raise
        self._inner._streams.in_file = True
        self._position = 0

    def _known(self) -> dict[str, str]:
        """Return what the file says of its run; nothing before there is one."""
        return dict(self._file.execute("SELECT name, value FROM run").fetchall())

    def _own(self) -> None:
        """Own the file, as the last run that opened it: two runs must not go on from one state."""
        self._owner = secrets.token_hex(16)
        with self._file:
            self._file.execute("INSERT OR REPLACE INTO run VALUES ('owner', ?)", (self._owner,))
        (self._stored,) = self._file.execute("SELECT count(*) FROM answers").fetchone()

    def _entered(
        self, objective: Objective, plan: Plan, made: PrivateOracle, noise: str | None
    ) -> PrivateOracle:
        """Write a new run into the file, and return its oracle: ``made``, unless the file has one.

        Of several processes that start a run at once, one writes it, and the others go on from it.
        """
        about = _about(objective, plan, noise) | {"root": json.dumps(made._streams.root)}
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            known = self._known()
            if not known:
                self._file.executemany("INSERT INTO run VALUES (?, ?)", about.items())
        return self._restored(objective, plan, known, noise) if known else made

    def _restored(
        self, objective: Objective, plan: Plan, known: dict[str, str], noise: str | None
    ) -> PrivateOracle:
        """Return an oracle with the randomness of the run in the file."""
        # Files of earlier releases do not name the noise, which was always Gaussian.
        noise = noise or known.setdefault("noise", "gaussian")
        for name, value in _about(objective, plan, noise).items():
            if known.get(name) != value:
                raise ValueError(f"store {str(self._path)!r} holds a run with other {name}.")
        oracle = object.__new__(PrivateOracle)
        with whole(self._path):
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
            with sentences(self._path), self._file:
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
        asked = self._inner._asked(name, kind, noise_multiplier)
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
        with sentences(self._path):
            row = self._file.execute(
                f"SELECT {columns} FROM answers WHERE position = ?", (self._position,)
            ).fetchone()
        if row is None or row[0] != question:
            raise LedgerMismatch(
                f"answer {self._position} in store {str(self._path)!r} is to another question: "
                "start the run with the same call that it was started with."
            )
        numbers_due = 1 if asked.kind in ("gradient norm", "scalar") else self.dimension
        with whole(self._path):
            answer = np.frombuffer(row[1], dtype="<f8", count=numbers_due).astype(np.float64)
        inner = self._inner
        inner._admit((asked, 1))
        if asked.correlation is not None:
            inner._batches.rounds[asked.name].begin(again=True)
        elif asked.composition == "disjoint" or asked.epoch is not None:
            inner._batches.sample(asked)
        self._position += 1
        if self._position == self._stored:
            with whole(self._path):
                inner._streams.move_to(parsed(self._path, row[2]))
        return answer


def _about(objective: Objective, plan: Plan, noise: str | None) -> dict[str, str]:
    """Return what must be the same whenever a run is started again."""
    return {
        "plan": plan.to_json(),
        "records": hashlib.blake2b(objective.digest(), digest_size=32).hexdigest(),
        "noise": noise_of(noise, plan, objective.dimension, objective),
    }


def read_ledger(path: str | os.PathLike[str]) -> Ledger:
    """Return the ledger of all releases of the run in a store; a ValueError if there is none."""
    if not Path(path).exists():
        raise ValueError(f"path must be of a store, got {str(path)!r}, where there is none.")
    file = opened(Path(path))
    try:
        with sentences(path):
            known = dict(file.execute("SELECT name, value FROM run").fetchall())
            rows = file.execute("SELECT entry FROM answers ORDER BY position").fetchall()
    finally:
        file.close()
    if "plan" not in known:
        raise ValueError(f"path must be of a store that holds a run, got {str(path)!r}.")
    with whole(path):
        plan = Plan.from_json(known["plan"])
        entries = [Query(**parsed(path, entry)) for (entry,) in rows]
        about = (plan.n, plan.neighboring_relation)
        return Ledger(*about, entries=entries, accountant=plan.accountant)


def check_owner(file: sqlite3.Connection, path: Path, owner: str) -> None:
    """Refuse, by LedgerMismatch, to write where another run has opened the file since."""
    row = file.execute("SELECT value FROM run WHERE name = 'owner'").fetchone()
    if row is None or row[0] != owner:
        raise LedgerMismatch(
            f"store {str(path)!r} was opened by another run, which goes on in its place; the "
            "answer was not released."
        )


def parsed(path: str | os.PathLike[str], text: str) -> Any:
    """Return values of a row that hold JSON."""
    try:
        return document_of(text)
    except (ValueError, TypeError) as error:
        raise _Damaged(_DAMAGED.format(str(path), "a row of it holds no JSON")) from error


_DAMAGED = "store {!r} is damaged, {}: go on with a copy of it that is whole."


class _Damaged(ValueError):  # noqa: N818 -- what the file is
    """The sentence on a store that is damaged."""


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[None]:
    """Replace the errors of reading a damaged row by a sentence."""
    try:
        yield
    except _Damaged:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        told = f"a row of it is not what a run writes ({type(error).__name__}: {error})"
        raise _Damaged(_DAMAGED.format(str(path), told)) from error


@contextmanager
def sentences(path: str | os.PathLike[str]) -> Iterator[None]:
    """Replace SQLite's errors by sentences that name the file."""
    try:
        yield
    except UnicodeDecodeError as error:  # of a column's name
        raise ValueError(_DAMAGED.format(str(path), "a text of it is no UTF-8")) from error
    except sqlite3.ProgrammingError as error:
        raise ValueError(f"store {str(path)!r} is closed, because its run has ended.") from error
    except sqlite3.OperationalError as error:
        if is_garbled(error):
            raise ValueError(_DAMAGED.format(str(path), "a text of it is no UTF-8")) from error
        raise OSError(f"store {str(path)!r} cannot be read or written: {error}.") from error
    except sqlite3.Error as error:
        raise ValueError(_DAMAGED.format(str(path), error)) from error


def is_garbled(error: sqlite3.Error) -> bool:
    """Return whether a text that is no UTF-8 was read; SQLite's own words would repeat it."""
    return "Could not decode" in str(error)


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
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        file.close()
        raise ValueError(
            f"store must be a path of a file of this kind, got {str(path)!r}: {error}."
        ) from error
    return file
