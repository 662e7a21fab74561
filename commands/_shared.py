"""What commands have in common: the types of their options, opened tables, a bar of progress."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import dpcal

__all__ = ["Accountant", "Relation", "TableFile", "bar", "check_new"]

Accountant = Literal["auto", "characteristic", "renyi", "pld", "prv"]
Relation = Literal["add-or-remove-one", "replace-one", "replace-special"]


class TableFile:
    """A file with a table, as commands are told it."""

    @staticmethod
    def of(
        table: Path,
        *,
        separator: str | None = None,
        encoding: str | None = None,
        decimal_comma: bool = False,
    ) -> Any:
        """Return what opens a table, given the texts that stand for a missing cell.

        Parameters
        ----------
        table
            Text with a row of column names, also in gzip, or parquet.
        separator
            Of cells (default: found in the file).
        encoding
            Of text (default: UTF-8).
        decimal_comma
            Numbers look like 3,14.
        """
        how: dict[str, Any] = {"separator": separator, "encoding": encoding}
        return partial(dpcal.tables.Source, table, decimal_comma=decimal_comma, **how)


def check_new(path: Path, *, force: bool) -> None:
    """Raise ``ValueError`` unless a file can be written without a loss: none is there, or force."""
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise ValueError(f"output must be a file in an existing folder, got {str(path)!r}.")
    if path.exists() and not force:
        raise ValueError(
            f"output must be a new file, but {str(path)!r} is there; --force replaces it."
        )


def bar(text: str, unit: str) -> Callable[[int, int], None]:
    """Return what shows on a terminal how many units are done, of how many; erased at the end."""
    from tqdm import tqdm

    shown = tqdm(desc=text, unit=unit, leave=False, disable=None, delay=1.0)

    def reach(done: int, total: int) -> None:
        shown.total = total
        shown.update(done - shown.n)
        if done >= total:
            shown.close()

    return reach
