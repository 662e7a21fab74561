"""What does a budget book hold at one moment, and how is it changed? The rows of its one file.

A decision that is made from the rows is written with the version of the rows: if another process
wrote in between, nothing is written, and the decision is made again.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> file = BookFile(folder.name + "/clinic.budget")
>>> file.begin({"key": "0" * 64, "made": "now", "neighboring_relation": "", "composition": "exact"},
...            ("now", 2.0, 1e-6))
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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpcal.accountants.directions import RELATIONS
from dpcal.optim.boundary.budget.account import COMPOSITIONS
from dpcal.optim.boundary.kept import KeptFile, Statement, facts_of

__all__ = ["BookFile", "Records", "Snapshot", "bytes_of", "name_of"]

Records = str | os.PathLike[str] | ArrayLike

# Facts about a book, beside its format and the version of its rows.
_FACTS = ("key", "made", "neighboring_relation", "composition")
# Columns of numbers, of texts, and of texts that a run has at its end.
_TOTAL, _RUN, _END = ("epsilon", "delta"), ("label", "started", "plan"), ("ended", "ledger")

Row = dict[str, Any]


class Snapshot(NamedTuple):
    """Content of a book at one moment.

    Every change of the book increases ``version``. The other fields are the ``facts`` about the
    book, by name, the rows of the tables ``totals`` and ``records``, the number ``count`` of all
    runs, the rows of the ``runs`` that were asked for, and the plans that are ``charged``, in their
    order of writing; the first of them alone if they were not asked for.
    """

    version: int
    facts: dict[str, str]
    totals: list[Row]
    records: list[Row]
    count: int
    runs: list[Row]
    charged: list[str]


class BookFile(KeptFile):
    """The file of a budget book at a path, opened by each method."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "budget book")

    def begin(self, facts: Mapping[str, str], total: tuple[str, float, float]) -> None:
        """Make a book with these facts and its first total, unless there is one."""
        told = {"version": "0", **facts}.items()
        rows = [("INSERT INTO about VALUES (?, ?)", row) for row in told]
        self.make(*rows, ("INSERT INTO totals VALUES (1, ?, ?, ?)", total))

    def snapshot(self, which: str = "FALSE", *values: Any, charged: bool = False) -> Snapshot:
        """Return the content of the book at one moment; ValueError if it is not a budget book.

        Parameters
        ----------
        which, values
            An SQL condition on runs, and its values: rows of these runs are returned.
        charged
            Whether the plans that are charged are returned.
        """
        with self.opened() as file:
            file.execute("BEGIN")
            facts = facts_of(file)
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
        self._check(facts, totals, runs)
        return Snapshot(int(facts["version"]), facts, totals, records, count, runs, plans)

    def decide(
        self,
        decide: Callable[[Snapshot], list[Statement]],
        which: str = "FALSE",
        *values: Any,
        charged: bool = False,
    ) -> None:
        """Write what ``decide`` makes of the book's content, anew if it has changed meanwhile.

        The other arguments are those of :meth:`snapshot`.
        """
        while True:
            now = self.snapshot(which, *values, charged=charged)
            statements = decide(now)
            if not statements or self.write(now.version, *statements):
                return

    def _check(self, facts: Mapping[str, str], totals: list[Row], runs: list[Row]) -> None:
        """Refuse a book whose facts, totals or runs are not those that a book writes."""
        for name in _FACTS:
            if name not in facts:
                raise self.damaged(f"it has no {name}")
        if not (
            str(facts.get("version")).isdecimal()
            and re.fullmatch(r"[0-9a-f]{64}", facts["key"])
            and facts["neighboring_relation"] in ("", *RELATIONS)
            and facts["composition"] in COMPOSITIONS
            and totals
            and all(isinstance(row.get(name), float) for row in totals for name in _TOTAL)
            and all(0 < row["epsilon"] < math.inf and 0 < row["delta"] < 1 for row in totals)
            and all(isinstance(row.get(name), str) for row in runs for name in _RUN)
            and all(isinstance(row.get(name), str | None) for row in runs for name in _END)
        ):
            raise self.damaged("a row of it is not what a book writes")

    def write(self, version: int, *statements: Statement) -> bool:
        """Write statements in one transaction, and return True, if the book's version is this one.

        They are then on the disk. If they cannot be written nothing is.
        """
        with self.opened() as file, self.writing(file):
            (now,) = file.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
            if int(now) != version:
                return False
            for statement, values in statements:
                file.execute(statement, values)
            file.execute("UPDATE about SET value = ? WHERE name = 'version'", (str(version + 1),))
        return True


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
