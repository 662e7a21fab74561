"""The SQLite file that keeps runs; a crash leaves its transactions whole or not at all.

A store is the file of one run, and a budget book is the file of all runs about a data set. Table
``about`` holds facts by name, ``runs`` a row a run, and ``answers`` a row an answer of a store. A
book also has the tables ``totals`` and ``records``. A transaction that is committed stays if the
process is killed. A book's transaction stays also if power fails just after it (``synchronous =
EXTRA``). There is no second file that a copy would have to include, except while a transaction is
written.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> kept = KeptFile(folder.name + "/clinic.budget", "budget book")
>>> kept.exists()
False
>>> kept.make()
>>> with kept.opened() as file, kept.writing(file):
...     _ = file.execute("INSERT INTO about VALUES ('made', 'now')")
>>> with kept.opened() as file:
...     print(facts_of(file))
{'format': 'dpcal budget book 2', 'made': 'now'}
>>> KeptFile(kept.path, "store").connect()  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: '...' must be a store of format 'dpcal store 2', got 'dpcal budget book 2': ...
>>> folder.cleanup()
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from dpcal._internal.files import check_regular
from dpcal.errors import reason_of
from dpcal.optim.account import Account, charge_of

_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE totals (position INTEGER PRIMARY KEY, since TEXT NOT NULL, "
    "epsilon REAL NOT NULL, delta REAL NOT NULL)",
    "CREATE TABLE records (tag TEXT PRIMARY KEY, name TEXT NOT NULL, added TEXT NOT NULL)",
    "CREATE TABLE runs (number INTEGER PRIMARY KEY, label TEXT NOT NULL, "
    "started TEXT NOT NULL, plan TEXT NOT NULL, seed TEXT UNIQUE, root TEXT UNIQUE, ended TEXT, "
    "ledger TEXT)",
    "CREATE TABLE answers (position INTEGER PRIMARY KEY, question TEXT NOT NULL, "
    "answer BLOB NOT NULL, entry TEXT NOT NULL, state TEXT NOT NULL)",
)

Statement = tuple[str, tuple[Any, ...]]
Row = dict[str, Any]

_RUN, _END = ("label", "started", "plan"), ("ended", "ledger")

run_of = lru_cache(maxsize=2**14)(charge_of)

# Seconds: another process writes for milliseconds on a free disk.
_PATIENCE = 30.0


class Snapshot(NamedTuple):
    """Content of a book at one moment.

    Every change of the book increases ``version``. The other fields are the ``facts`` about the
    book by name, the rows of the tables ``totals`` and ``records``, the selected rows of the
    ``runs``, and the ``account`` of all runs.
    """

    version: int
    facts: dict[str, str]
    totals: list[Row]
    records: list[Row]
    runs: list[Row]
    account: Account


class KeptFile:
    """The file of one run or many, at a path; ``kind`` is ``"store"`` or ``"budget book"``.

    Every error is a sentence that names the file: an OSError if the file cannot be read or written,
    and a ValueError if it is of another kind or damaged.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self.path, self.kind = Path(path), kind
        self._format = f"dpcal {kind} 2"

    def __str__(self) -> str:
        """Return the file's kind and name, as sentences have them."""
        return f"{self.kind} {str(self.path)!r}"

    def exists(self) -> bool:
        """Return whether something is at the path, other than a file without a byte."""
        found = self.path.exists()
        return found and not (self.path.is_file() and not self.path.stat().st_size)

    def make(self, *statements: Statement) -> None:
        """Make the file with the rows of some statements, unless another process has made it.

        The file is made whole or not at all, and only its owner can read it.
        """
        try:
            self.path.touch(0o600)
        except OSError as error:
            raise ValueError(
                f"{str(self.path)!r}, a {self.kind}, must be in a folder that can be written to: "
                f"{reason_of(error)}."
            ) from error
        self.hide()
        with self.opened() as file, self.writing(file):
            if "about" in _tables(file):
                return
            for statement in _SCHEMA:
                file.execute(statement)
            file.execute("INSERT INTO about VALUES ('format', ?)", (self._format,))
            for statement, values in statements:
                file.execute(statement, values)

    def hide(self) -> None:
        """Let only its owner read the file."""
        if self.path.stat().st_mode & 0o077:
            with self.named():
                self.path.chmod(0o600)

    def connect(self) -> sqlite3.Connection:
        """Return a connection to an existing file in the format of this release."""
        try:
            check_regular(self.path)
        except FileNotFoundError as error:
            raise ValueError(f"There is no {self}.") from error
        except (OSError, ValueError) as error:
            raise self._other(reason_of(error)) from error
        with self.named():
            file = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                file.row_factory = sqlite3.Row
                # A row of a book survives a power failure; a store writes a hundred times as often.
                level = "FULL" if self.kind == "store" else "EXTRA"
                file.execute(f"PRAGMA synchronous = {level}")
                self._check_format(file)
            except BaseException:
                file.close()
                raise
        return file

    def _check_format(self, file: sqlite3.Connection) -> None:
        tables = _tables(file)
        if not tables:
            return
        found = facts_of(file).get("format") if "about" in tables else None
        if found != self._format:
            raise ValueError(
                f"{str(self.path)!r} must be a {self.kind} of format {self._format!r}, got "
                f"{found!r}: a file of an earlier release goes on with that release."
            )

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that is closed at the end, so that threads and forks need no care."""
        file = self.connect()
        try:
            with self.named():
                yield file
        finally:
            file.close()

    @contextmanager
    def writing(self, file: sqlite3.Connection) -> Iterator[None]:
        """Commit all statements executed inside, or none, while no other process writes.

        A transaction of this connection that an interrupt left open is rolled back before.
        """
        with self.named():
            if file.in_transaction:
                file.execute("ROLLBACK")
            file.execute("BEGIN IMMEDIATE")
            try:
                yield
                file.execute("COMMIT")
            except BaseException:
                if file.in_transaction:
                    file.execute("ROLLBACK")
                raise

    def damaged(self, told: str) -> ValueError:
        """Return the sentence on a file that is damaged."""
        return ValueError(f"{self} is damaged, {told}: go on with a copy of it that is whole.")

    def _other(self, told: object) -> ValueError:
        return ValueError(f"{str(self.path)!r} must be a {self.kind}: {told}.")

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Replace the errors of reading a damaged row by a sentence."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            told = f"a row of it is not what a run writes ({type(error).__name__}: {error})"
            raise self.damaged(told) from error

    @contextmanager
    def named(self) -> Iterator[None]:
        """Replace SQLite's errors by sentences that name the file."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise self.damaged("a text of it is no UTF-8") from error
        except sqlite3.ProgrammingError as error:
            raise ValueError(f"{self} is closed, because its run has ended.") from error
        except (sqlite3.Error, OSError) as error:
            told = str(error)
            if "Could not decode" in told:  # SQLite's message would repeat the text
                raise self.damaged("a text of it is no UTF-8") from error
            if "no such table" in told or "not a database" in told:
                raise self._other(told) from error
            if isinstance(error, sqlite3.OperationalError | OSError):
                raise OSError(f"{self} cannot be read or written: {told}.") from error
            raise self.damaged(told) from error


class BookFile(KeptFile):
    """The file of a budget book at a path, opened by each method.

    A decision that is made from the rows is written with the version of the rows: if another
    process wrote in between, nothing is written, and the decision is made again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "budget book")

    def begin(self, account: Account) -> None:
        """Make a book of this empty account, unless there is a book."""
        facts = {
            "version": "0",
            "key": secrets.token_hex(32),
            "made": moment(),
            "neighboring_relation": account.neighboring_relation or "",
            "composition": account.composition,
        }
        rows = [("INSERT INTO about VALUES (?, ?)", row) for row in facts.items()]
        total = (moment(), account.epsilon, account.delta)
        self.make(*rows, ("INSERT INTO totals VALUES (1, ?, ?, ?)", total))

    def snapshot(self, which: str = "FALSE", *values: Any) -> Snapshot:
        """Return the content of the book at one moment; ValueError if it is not a budget book.

        The snapshot has the rows of the runs that an SQL condition selects, with its values.
        """
        with self.opened() as file:
            file.execute("BEGIN")
            facts = facts_of(file)
            totals, records, plans, runs = (
                [dict(row) for row in file.execute(f"SELECT {what}", given)]
                for what, given in (
                    ("* FROM totals ORDER BY position", ()),
                    ("* FROM records ORDER BY rowid", ()),
                    ("plan, count(*) AS many FROM runs GROUP BY plan ORDER BY min(number)", ()),
                    (f"* FROM runs WHERE {which} ORDER BY number", values),
                )
            )
        texts = [row[name] for row in runs for name in _RUN]
        ends = [row[name] for row in runs for name in _END if row[name] is not None]
        with self.whole():
            if not all(isinstance(text, str) for text in (*texts, *ends)):
                raise TypeError("a column of texts has something else")
            charged = tuple((run_of(row["plan"]), row["many"]) for row in plans)
            first = charged[0][0].neighboring_relation if charged else None
            account = Account(
                epsilon=totals[-1]["epsilon"],
                delta=totals[-1]["delta"],
                neighboring_relation=facts["neighboring_relation"] or first,
                composition=facts["composition"],
                charged=charged,
                order=float(facts["order"]) if "order" in facts else None,
                owner=str(self),
            )
            if len(bytes.fromhex(facts["key"])) != 32:
                raise ValueError("its key has another length")
            return Snapshot(int(facts["version"]), facts, totals, records, runs, account)

    def decide(
        self, decide: Callable[[Snapshot], list[Statement]], which: str = "FALSE", *values: Any
    ) -> None:
        """Write the statements of ``decide``; decide anew if the book has changed meanwhile.

        The other arguments are as in :meth:`snapshot`.
        """
        while True:
            now = self.snapshot(which, *values)
            statements = decide(now)
            if not statements or self.write(now.version, *statements):
                return

    def write(self, version: int, *statements: Statement) -> bool:
        """Write statements in one transaction, and return True, if the book's version is this one.

        On return the statements are on the disk. If they cannot be written, nothing is written.
        """
        with self.opened() as file, self.writing(file):
            (now,) = file.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
            if int(now) != version:
                return False
            for statement, values in statements:
                file.execute(statement, values)
            file.execute("UPDATE about SET value = ? WHERE name = 'version'", (str(version + 1),))
        return True


def _tables(file: sqlite3.Connection) -> set[str]:
    return {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def facts_of(file: sqlite3.Connection) -> dict[str, str]:
    """Return the facts that a file holds, by name."""
    return dict(file.execute("SELECT name, value FROM about").fetchall())


def moment() -> str:
    """Return the date and time, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
