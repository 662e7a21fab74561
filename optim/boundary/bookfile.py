"""The content of a budget book's file at one moment, and its changes.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> file = BookFile(folder.name + "/clinic.budget")
>>> file.begin(Account(epsilon=2.0, delta=1e-6))
>>> found = file.snapshot()
>>> found.account.composition, found.runs
('exact', [])
>>> file.write(found.version, ("INSERT INTO records VALUES (?, ?, ?)", ("tag", "name", "now")))
True
>>> file.write(-1, ("DELETE FROM records", ()))
False
>>> folder.cleanup()
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from dpcal.optim.account import Account, charge_of
from dpcal.optim.boundary.kept import KeptFile, Statement, facts_of, moment

__all__ = ["BookFile", "Row", "Snapshot", "run_of"]

Row = dict[str, Any]

_RUN, _END = ("label", "started", "plan"), ("ended", "ledger")

run_of = lru_cache(maxsize=2**14)(charge_of)


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
