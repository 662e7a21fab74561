"""How is a budget book kept? One SQLite file, written in transactions that a crash leaves whole.

Every method opens and closes the file, so that threads, processes and crashes need no care. The
write-ahead log is on the disk when a transaction is committed (``synchronous=FULL``). A decision
that is made from the rows is written with the version of the rows: if another process wrote in
between, nothing is written, and the decision is made again.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> file = BookFile(folder.name + "/clinic.budget")
>>> facts = {"key": "0" * 64, "made": "now", "neighboring_relation": "", "composition": "exact"}
>>> file.make(facts, ("INSERT INTO totals VALUES (1, 'now', 2.0, 1e-6)", ()))
>>> now = file.snapshot()
>>> now.facts["composition"], now.count
('exact', 0)
>>> file.write(now.version, ("INSERT INTO records VALUES (?, ?, ?)", ("tag", "name", "now")))
True
>>> file.write(-1, ("DELETE FROM records", ()))
False
>>> folder.cleanup()
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._files import check_regular
from dpcal.accountants.directions import RELATIONS
from dpcal.optim.boundary.budget.account import COMPOSITIONS
from dpcal.optim.boundary.store import is_garbled

__all__ = ["FORMAT", "BookFile", "Records", "Snapshot", "Statement", "bytes_of", "name_of"]

Records = str | os.PathLike[str] | ArrayLike

FORMAT = "dpcal budget book 1"

_SCHEMA = (
    "CREATE TABLE book (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE totals (position INTEGER PRIMARY KEY, since TEXT NOT NULL, "
    "epsilon REAL NOT NULL, delta REAL NOT NULL)",
    "CREATE TABLE records (tag TEXT PRIMARY KEY, name TEXT NOT NULL, added TEXT NOT NULL)",
    "CREATE TABLE runs (number INTEGER PRIMARY KEY, label TEXT NOT NULL, started TEXT NOT NULL, "
    "plan TEXT NOT NULL, seed TEXT UNIQUE, root TEXT UNIQUE, ended TEXT, ledger TEXT, "
    "free INTEGER NOT NULL DEFAULT 0)",
)

# What a book says of itself, beside its format and the version of its rows.
_FACTS = ("key", "made", "neighboring_relation", "composition")

# Seconds to wait while another process writes, which takes milliseconds on a free disk.
_PATIENCE = 30.0

Statement = tuple[str, tuple[Any, ...]]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Content of a book at one moment.

    Every change of the book increases ``version``. The other fields are the ``facts`` about the
    book, by name, the rows of the tables ``totals`` and ``records``, the number ``count`` of all
    runs, the rows of the ``runs`` that were asked for, and the plans that are ``charged``, in their
    order of writing, of which ``first`` is known in any case.
    """

    version: int
    facts: dict[str, str]
    totals: list[Row]
    records: list[Row]
    count: int
    runs: list[Row]
    charged: list[str]
    first: str | None


class BookFile:
    """The file of a budget book at a path, opened by each method."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def exists(self) -> bool:
        """Return whether there is a file."""
        return self.path.exists()

    def make(self, facts: Mapping[str, str], *statements: Statement) -> None:
        """Make the file with these facts, whole or not at all; only its owner can read it.

        FileExistsError is raised if there is a file.
        """
        # The file is built under another name, so that a reader sees a whole book or none.
        beside = BookFile(self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}"))
        try:
            with self._named():
                os.close(os.open(beside.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with beside._open() as file, self._named():
                file.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    file.execute(statement)
                rows = {"format": FORMAT, "version": "0", **facts}
                file.executemany("INSERT INTO book VALUES (?, ?)", rows.items())
                for statement, values in statements:
                    file.execute(statement, values)
                file.execute("COMMIT")
            # The last connection has emptied the log into the file. A link, unlike a renaming,
            # replaces no book that another process has made meanwhile.
            os.link(beside.path, self.path)
        finally:
            for leftover in ("", "-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{beside.path}{leftover}")

    def snapshot(self, which: str = "FALSE", *values: Any, charged: bool = False) -> Snapshot:
        """Return the content of the book at one moment; ValueError if it is not a budget book.

        Parameters
        ----------
        which, values
            An SQL condition on runs, and its values: rows of these runs are returned.
        charged
            Whether the plans that are charged are returned.
        """
        with self._open() as file, self._named():
            file.execute("BEGIN")
            facts = {str(name): str(value) for name, value in file.execute("SELECT * FROM book")}
            totals, records = (
                [dict(row) for row in file.execute(f"SELECT * FROM {table} ORDER BY rowid")]
                for table in ("totals", "records")
            )
            asked = file.execute(f"SELECT * FROM runs WHERE {which} ORDER BY number", values)
            runs = [dict(row) for row in asked]
            # Runs have the numbers from 1 on, also where a row was lost.
            (count,) = file.execute("SELECT ifnull(max(number), 0) FROM runs").fetchone()
            costs = "SELECT plan FROM runs WHERE NOT free ORDER BY number LIMIT ?"
            plans = [plan for (plan,) in file.execute(costs, [-1 if charged else 1])]
            file.execute("COMMIT")
        if facts.get("format") != FORMAT or not facts.get("version", "").isdecimal():
            raise ValueError(
                f"{str(self.path)!r} must be a budget book of format {FORMAT!r}, got "
                f"{facts.get('format')!r}."
            )
        self._check(facts, totals, runs)
        return Snapshot(
            version=int(facts["version"]),
            facts=facts,
            totals=totals,
            records=records,
            count=count,
            runs=runs,
            charged=plans if charged else [],
            first=plans[0] if plans else None,
        )

    def _check(self, facts: Mapping[str, str], totals: list[Row], runs: list[Row]) -> None:
        """Refuse a book whose facts, totals or runs are not those that a book writes."""
        told = next((f"it has no {name}" for name in _FACTS if name not in facts), "")
        if not told and not (
            re.fullmatch(r"[0-9a-f]{64}", facts["key"])
            and facts["neighboring_relation"] in ("", *RELATIONS)
            and facts["composition"] in COMPOSITIONS
            and totals
            and all(map(_is_total, totals))
            and all(map(_is_run, runs))
        ):
            told = "a row of it is not what a book writes"
        if told:
            raise self.damaged(told)

    def damaged(self, told: str) -> ValueError:
        """Return the sentence on a book that is damaged."""
        return ValueError(
            f"budget book {str(self.path)!r} is damaged, {told}: go on with a copy of it that is "
            "whole."
        )

    def write(self, version: int, *statements: Statement) -> bool:
        """Write statements in one transaction, and return True, if the book's version is this one.

        They are then on the disk. If they cannot be written an OSError is raised and nothing is
        written; a value that must be unique and is in the book raises sqlite3.IntegrityError.
        """
        with self._open() as file, self._named():
            file.execute("BEGIN IMMEDIATE")
            try:
                (now,) = file.execute("SELECT value FROM book WHERE name = 'version'").fetchone()
                if int(now) != version:
                    file.execute("ROLLBACK")
                    return False
                for statement, values in statements:
                    file.execute(statement, values)
                file.execute(
                    "UPDATE book SET value = ? WHERE name = 'version'", (str(version + 1),)
                )
                file.execute("COMMIT")
            except BaseException:
                # After some errors SQLite has already rolled back.
                if file.in_transaction:
                    file.execute("ROLLBACK")
                raise
        return True

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self.exists():
            raise ValueError(f"There is no budget book {str(self.path)!r}.")
        try:
            check_regular(self.path)
        except ValueError as error:
            raise ValueError(f"{str(self.path)!r} must be a budget book: {error}.") from error
        with self._named():
            file = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        with closing(file):
            file.row_factory = sqlite3.Row
            with self._named():
                file.execute("PRAGMA journal_mode = WAL")
                file.execute("PRAGMA synchronous = FULL")
            yield file

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Replace SQLite's errors by sentences that name the file."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except UnicodeDecodeError as error:  # of a column's name
            raise self.damaged("a text in it is no UTF-8") from error
        except (sqlite3.OperationalError, OSError) as error:
            if "no such table" in str(error):
                raise ValueError(f"{str(self.path)!r} must be a budget book: {error}.") from error
            if isinstance(error, sqlite3.Error) and is_garbled(error):
                raise self.damaged("a text in it is no UTF-8") from error
            raise OSError(
                f"Budget book {str(self.path)!r} cannot be read or written: {error}."
            ) from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{str(self.path)!r} must be a budget book: {error}.") from error


def _is_total(row: Row) -> bool:
    epsilon, delta = row.get("epsilon"), row.get("delta")
    if not (isinstance(epsilon, float) and isinstance(delta, float)):
        return False
    return 0 < epsilon < math.inf and 0 < delta < 1


def _is_run(row: Row) -> bool:
    always = all(isinstance(row.get(name), str) for name in ("label", "started", "plan"))
    return always and all(isinstance(row.get(name, 0), str | None) for name in ("ended", "ledger"))


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
