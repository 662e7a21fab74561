r"""Which file is this? Text with any separator and encoding, or parquet, by polars.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp()) / "people.csv"
>>> _ = path.write_bytes("\ufeffname;age\nZoë;41\n".encode())
>>> source = Source(path)
>>> source.separator, source.columns
(';', ('name', 'age'))
>>> [batch.rows() for batch in source.batches(numbers=["age"])]
[[('Zoë', 41.0)]]
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpcal._files import check_cells, check_lines, check_regular
from dpcal.errors import MissingExtra, extra, reason_of

__all__ = ["NotANumber", "Source", "polars", "table_of"]

_Taken = TypeVar("_Taken")
SEPARATORS = (",", ";", "\t", "|")
ROWS = 1 << 14  # of a batch: 20 numbers of each are 2.6 MB, which a processor keeps at hand
HEAD = 1 << 16  # bytes in which the row of column names must end
# First bytes of zstd, bzip2, xz and zlib files, and of gzip, which polars would unpack unasked.
_PACKED = (b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"x\x01", b"x\x9c", b"x\xda")
_GZIP = b"\x1f\x8b"


def polars() -> Any:
    """Return the module that reads tables.

    Raises
    ------
    MissingExtra
        If it is not installed.
    """
    try:
        import polars as module
    except ImportError as error:
        raise MissingExtra(f"Tables are read by polars: {extra('train')}.") from error
    return module


class NotANumber(ValueError):  # noqa: N818 -- reads as what happened
    """A cell that should be a number is none."""


class Source:
    """A file that holds a table.

    Parameters
    ----------
    path
        Of text with a row of column names, which may be compressed (.gz), or of a file that ends in
        .parquet. Or a table in memory, as :func:`table_of` takes it, which is read as
        its text would be; its missing cells and NaN are missing.
    separator
        One character; found in the row of names when omitted.
    encoding
        Of text, as Python names it; UTF-8 when omitted.
    decimal_comma
        Whether numbers are written like 3,14.
    missing_values
        Texts that stand for a missing cell, beside the empty one.

    Attributes
    ----------
    separator
        As given or found; None for parquet.
    in_memory
        Whether no file holds the table.
    columns
        Names, stripped of blanks.

    Raises
    ------
    MissingExtra
        If polars is not installed.
    ValueError
        If the file cannot be read, or its columns have no distinct names.
    """

    def __init__(
        self,
        path: Any,
        *,
        separator: str | None = None,
        encoding: str | None = None,
        decimal_comma: bool = False,
        missing_values: Collection[str] = (),
    ) -> None:
        self._polars = polars()
        self._decimal_comma = decimal_comma
        self._missing = ["", *missing_values]
        self._text: bytes | None = None
        if not isinstance(path, str | Path):
            path, self._text = "table in memory", self._written(path)
            separator, encoding = ",", None
        self.path = Path(path)
        self.in_memory = self._text is not None
        self.separator: str | None = None
        if separator is not None and (len(separator) != 1 or ord(separator) > 127):
            raise ValueError(f"separator must be one ASCII character, got {separator!r}.")
        wrong = (OSError, EOFError, ValueError, LookupError, csv.Error, zlib.error)
        try:
            if self._text is not None:
                names = self._names_of(self._text[:HEAD].decode(errors="replace"), separator)
            elif self._is_parquet:
                check_regular(self.path)
                frame = self._polars.scan_parquet(self.path)
                names = list(frame.collect_schema())
                rows = frame.select(self._polars.len()).collect().item()
                check_cells(rows * len(names), self.path.stat().st_size)
            else:
                check_regular(self.path)
                names = self._open_text(separator, encoding)
        except (*wrong, self._polars.exceptions.PolarsError) as error:
            raise self._unreadable(error) from error
        except self._polars.exceptions.PanicException as error:
            raise self._unreadable(ValueError("it is damaged")) from error
        self._names = names
        self.columns = tuple(name.strip() for name in names)
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(
                f"table must name its columns distinctly, got {', '.join(self.columns)}."
            )

    @property
    def records(self) -> Any:
        """What a budget book knows the table by: the path, or the bytes of a table in memory."""
        return np.frombuffer(self._text or b"", np.uint8) if self.in_memory else self.path

    def _written(self, table: Any) -> bytes:
        """Return a table in memory as text."""
        pl, frame = self._polars, table_of(table)
        if not frame.width:
            raise ValueError("table must hold a column, got none.")
        try:
            floats = pl.col(pl.Float32, pl.Float64)
            text = frame.with_columns(floats.fill_nan(None)).write_csv()
        except pl.exceptions.PolarsError as error:
            raise ValueError(
                f"table must hold numbers, texts and dates, got columns of {frame.schema}."
            ) from error
        return str(text).encode()

    @property
    def _is_parquet(self) -> bool:
        return self.path.suffix.lower() in (".parquet", ".pq")

    def _unreadable(self, error: Exception) -> ValueError:
        reason = reason_of(error).strip().split("\n")[0].rstrip(".")
        if (
            "names not specified" in reason
            or "more fields" in reason
            or "not found in CSV" in reason
        ):
            reason = "a row has another number of cells than the row of column names"
        if isinstance(error, UnicodeError) or "utf-8" in reason:
            reason += "; name its encoding, such as encoding='latin-1'"
        return ValueError(f"table must be a readable file, got {str(self.path)!r}: {reason}.")

    def _open_text(self, separator: str | None, encoding: str | None) -> list[str]:
        """Return the columns' names; keep the text in memory where polars cannot read the file.

        Long lines, and text that is far larger than its file, are refused before polars reads it.
        """
        packed = self.path.suffix.lower() == ".gz"
        with open(self.path, "rb") as file:
            first = file.read(8)
        if first.startswith(_PACKED) or (first.startswith(_GZIP) and not packed):
            raise ValueError("it is compressed in a way that is not read: unpack it first")
        opener: Any = gzip.open if packed else open
        with opener(self.path, "rb") as file:
            check_lines(file, self.path.stat().st_size)
        with opener(self.path, "rb") as file:
            head = file.read(HEAD)
            if encoding is not None:
                text = (head + file.read()).decode(encoding).removeprefix("\ufeff")
                self._text = text.encode()
                head = self._text[:HEAD]
        return self._names_of(head.decode("utf-8-sig", errors="replace"), separator)

    def _names_of(self, head: str, separator: str | None) -> list[str]:
        if not head.strip():
            raise ValueError(self._empty())

        def cells(mark: str) -> list[str]:
            return next(csv.reader(io.StringIO(head, newline=""), delimiter=mark, strict=False))

        self.separator = separator or max(SEPARATORS, key=lambda mark: len(cells(mark)))
        return cells(self.separator)

    def _empty(self) -> str:
        return (
            "table must hold a row of column names and at least one record, got "
            f"{str(self.path)!r}."
        )

    def batches(
        self,
        *,
        numbers: Collection[str] = (),
        columns: Collection[str] | None = None,
        as_text: bool = False,
        rows: int = ROWS,
    ) -> Iterator[Any]:
        """Yield the table in parts, as polars data frames with the stripped names.

        Parameters
        ----------
        numbers
            Names of the columns that are read as numbers. The others are texts.
        columns
            Names of the columns that are read; all of them when omitted.
        as_text
            Whether numbers are texts, too: to find out which one cannot be read.
        rows
            How many of them a part has, about.

        Raises
        ------
        NotANumber
            If a cell that should be a number is none.
        ValueError
            If the file cannot be read, or has no record.
        """
        pl = self._polars
        seen = 0
        try:
            scan = self._scan(set() if as_text else set(numbers))
            if as_text and self._decimal_comma:
                scan = scan.with_columns(pl.col(list(numbers)).str.replace(",", ".", literal=True))
            if columns is not None:
                scan = scan.select(list(columns))
            for batch in scan.collect_batches(chunk_size=rows, maintain_order=True):
                if batch.height:
                    seen += batch.height
                    yield batch
        except pl.exceptions.PanicException as error:
            raise self._unreadable(ValueError("it is damaged")) from error
        except (pl.exceptions.PolarsError, OSError) as error:
            if str(error).startswith("could not parse"):
                # The message of polars quotes the cell, which is a record's.
                raise NotANumber("a cell that should be a number is none.") from None
            raise self._unreadable(error) from error
        if not seen:
            raise ValueError(self._empty())

    def read(self, take: Callable[[Iterator[Any]], _Taken], **how: Any) -> _Taken:
        """Return what a function makes of :meth:`batches`; again, of texts, after a NotANumber.

        Blanks around a number are no harm, and what is no number is named by its column.
        """
        try:
            return take(self.batches(**how))
        except NotANumber:
            return take(self.batches(**how, as_text=True))

    def _scan(self, numbers: set[str]) -> Any:
        pl = self._polars
        if self._is_parquet:
            frame = pl.scan_parquet(self.path)
        else:
            types = [pl.Float64 if name in numbers else pl.String for name in self.columns]
            return pl.scan_csv(
                self.path if self._text is None else io.BytesIO(self._text),
                separator=self.separator,
                # The row of names was read before: names may repeat those that polars makes up.
                has_header=False,
                skip_rows=1,
                schema=dict(zip(self.columns, types, strict=True)),
                null_values=self._missing,
                decimal_comma=self._decimal_comma,
                glob=False,
            )
        return frame.rename(dict(zip(self._names, self.columns, strict=True)))


def table_of(table: Any) -> Any:
    """Return a table as a polars data frame.

    Parameters
    ----------
    table
        A polars or pandas data frame, a mapping from names to columns, a list of mappings from
        names to cells, or the path of a file.

    Raises
    ------
    MissingExtra
        If polars is not installed.
    TypeError
        If it is none of these.
    """
    pl = polars()
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, str | Path):
        return pl.concat(list(Source(Path(table)).batches()))
    if isinstance(table, Mapping | list):
        return pl.DataFrame(table, strict=False)
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return pl.DataFrame(
            {str(name): table[name].tolist() for name in table.columns}, strict=False
        )
    raise TypeError(
        "table must be a data frame, a mapping from names to columns, a list of rows as mappings, "
        f"or the path of a file, got {type(table).__name__}."
    )
