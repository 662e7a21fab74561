r"""Files of tables: text with any separator and encoding, or parquet, read by polars.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp()) / "people.csv"
>>> _ = path.write_bytes("\ufeffname;age\nZoë;41\n".encode())
>>> source = Source(path)
>>> source.separator, source.columns
(';', ('name', 'age'))
>>> source.frame(numbers=["age"]).rows()
[('Zoë', 41.0)]
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpcal._internal import lazy
from dpcal._internal.files import check_cells, check_lines, check_regular
from dpcal.errors import MissingExtra, extra, reason_of

_numpy = lazy.Module("numpy")

EXTRAS = ("polars", "matplotlib")
SEPARATORS = (",", ";", "\t", "|")
HEAD = 1 << 16  # bytes in which the row of column names must end
# First bytes of zstd, bzip2, xz and zlib files; then gzip, which polars would unpack unasked.
_PACKED = (b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"x\x01", b"x\x9c", b"x\xda")
_GZIP = b"\x1f\x8b"
_WRONG = (OSError, EOFError, ValueError, LookupError, csv.Error, zlib.error)
# Beginnings of polars' messages about rows with a wrong number of cells.
_CELLS = ("names not specified", "more fields", "not found in CSV")


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


def check_extras() -> None:
    """Refuse a training without the packages that it needs, before a record is read."""
    missing = [name for name in EXTRAS if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"train needs {' and '.join(missing)}: {extra('train')}. No record was read."
        )


class Source:
    """A file that holds a table.

    Parameters
    ----------
    path
        Path of a text file with a row of column names, which can be compressed (.gz), or of a file
        that ends in .parquet. Or a table in memory, as :func:`table_of` takes it, which is read as
        its text would be; its missing cells and NaN are missing.
    separator
        Separator of cells, one character (default: detected in the row of names).
    encoding
        Encoding of the text (default: UTF-8).
    decimal_comma
        Numbers look like 3,14.
    missing_values
        Texts that stand for a missing cell, in addition to the empty text.

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
        self._decimal_comma, self._missing = decimal_comma, ["", *missing_values]
        self.in_memory = not isinstance(path, str | Path)
        self._text = _written(path) if self.in_memory else None
        self.path = Path("table in memory" if self.in_memory else path)
        self.separator = "," if self.in_memory else separator
        if separator is not None and (len(separator) != 1 or ord(separator) > 127):
            raise ValueError(f"separator must be one ASCII character, got {separator!r}.")
        with self._reading():
            self._names = self._open(encoding)
        self.columns = tuple(name.strip() for name in self._names)
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(
                f"table must name its columns distinctly, got {', '.join(self.columns)}."
            )

    @property
    def records(self) -> Any:
        """Identity of the table for a budget book: the path, or the bytes of a table in memory."""
        return _numpy.frombuffer(self._text or b"", "uint8") if self.in_memory else self.path

    @property
    def _is_parquet(self) -> bool:
        return self.path.suffix.lower() in (".parquet", ".pq")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise one sentence with the reason why the file cannot be read."""
        pl = polars()
        try:
            yield
        except (*_WRONG, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            reason = reason_of(error).strip().split("\n")[0].rstrip(".")
            if isinstance(error, pl.exceptions.PanicException):
                reason = "it is damaged"
            if any(words in reason for words in _CELLS):
                reason = "a row has another number of cells than the row of column names"
            if isinstance(error, UnicodeError) or "utf-8" in reason:
                reason += "; name its encoding, such as encoding='latin-1'"
            raise ValueError(
                f"table must be a readable file, got {str(self.path)!r}: {reason}."
            ) from error

    def _open(self, encoding: str | None) -> list[str]:
        """Return the columns' names; keep the text in memory where polars cannot read the file.

        Long lines, and text that is far larger than its file, are refused before polars reads it.
        """
        if self._text is not None:
            return self._names_of(self._text[:HEAD])
        check_regular(self.path)
        size = self.path.stat().st_size
        if self._is_parquet:
            frame = polars().scan_parquet(self.path)
            names = list(frame.collect_schema())
            check_cells(frame.select(polars().len()).collect().item() * len(names), size)
            return names
        packed = self.path.suffix.lower() == ".gz"
        with open(self.path, "rb") as file:
            first = file.read(8)
        if first.startswith(_PACKED) or (first.startswith(_GZIP) and not packed):
            raise ValueError("it is compressed in a way that is not read: unpack it first")
        opener: Any = gzip.open if packed else open
        with opener(self.path, "rb") as file:
            check_lines(file, size)
        with opener(self.path, "rb") as file:
            head = file.read(HEAD)
            if encoding is not None:
                text = (head + file.read()).decode(encoding).removeprefix("\ufeff")
                self._text = text.encode()
                head = self._text[:HEAD]
        return self._names_of(head)

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a table without one of these columns."""
        for name in names:
            if name not in self.columns:
                raise ValueError(f"table must have a column {name!r}, as in the schema.")

    def _names_of(self, head: bytes) -> list[str]:
        text = head.decode("utf-8-sig", errors="replace")
        if not text.strip():
            raise ValueError(self._empty())

        def cells(mark: str) -> list[str]:
            return next(csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=False))

        self.separator = self.separator or max(SEPARATORS, key=lambda mark: len(cells(mark)))
        return cells(self.separator)

    def _empty(self) -> str:
        return (
            "table must hold a row of column names and at least one record, got "
            f"{str(self.path)!r}."
        )

    def frame(
        self, *, numbers: Collection[str] = (), columns: Collection[str] | None = None
    ) -> Any:
        """Return the table as a polars data frame, with the stripped names.

        Parameters
        ----------
        numbers
            Names of the columns that are read as numbers, or as texts where one of their cells is
            no number. The others are texts.
        columns
            Names of the columns that are read; all of them when omitted.

        Raises
        ------
        ValueError
            If the file cannot be read, or has no record.
        """
        kept, pl = self.columns if columns is None else columns, polars()
        with self._reading():
            frame = self._collected(set(numbers), kept)
            if frame is None:
                frame = self._collected(set(), kept)
                if self._decimal_comma:
                    texts = pl.col([*numbers]).str.replace(",", ".", literal=True)
                    frame = frame.with_columns(texts)
        if not frame.height:
            raise ValueError(self._empty())
        return frame

    def _collected(self, numbers: set[str], columns: Collection[str]) -> Any:
        """Return columns of the table; None where a cell that should be a number is none."""
        pl = polars()
        if self._is_parquet:
            names = dict(zip(self._names, self.columns, strict=True))
            return pl.scan_parquet(self.path).rename(names).select(columns).collect()
        types = [pl.Float64 if name in numbers else pl.String for name in self.columns]
        scan = pl.scan_csv(
            self.path if self._text is None else io.BytesIO(self._text),
            separator=self.separator,
            # Names of the table can collide with names that polars makes up.
            has_header=False,
            skip_rows=1,
            schema=dict(zip(self.columns, types, strict=True)),
            null_values=self._missing,
            decimal_comma=self._decimal_comma,
            glob=False,
        )
        try:
            return scan.select(columns).collect()
        except pl.exceptions.ComputeError as error:
            # The message of polars quotes the cell, which belongs to a record.
            if str(error).startswith("could not parse"):
                return None
            raise


def source_of(table: Any, missing_values: Collection[str] = ()) -> Source:
    """Open a table, unless it is open."""
    if isinstance(table, Source):
        return table
    return Source(Path(table) if isinstance(table, str) else table, missing_values=missing_values)


def _written(table: Any) -> bytes:
    """Return a table in memory as the text of a file."""
    pl, frame = polars(), table_of(table)
    if not frame.width:
        raise ValueError("table must hold a column, got none.")
    try:
        floats = pl.col(pl.Float32, pl.Float64)
        return str(frame.with_columns(floats.fill_nan(None)).write_csv()).encode()
    except pl.exceptions.PolarsError as error:
        raise ValueError(
            f"table must hold numbers, texts and dates, got columns of {frame.schema}."
        ) from error


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
        return Source(table).frame()
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
