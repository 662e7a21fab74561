"""Is a file fit to be read? Checks that are made before a parser sees its bytes.

>>> document_of("[" * 1000 + "]" * 1000)
Traceback (most recent call last):
    ...
ValueError: it is nested more than 100 deep
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from dpcal.errors import reason_of

LARGEST_DOCUMENT = 1 << 25  # bytes of a document; parsed, it takes up to 25 times that
DEEPEST = 100
LARGEST_LINE = 1 << 24
LARGEST_RATIO = 100  # of a compressed table's text to its file, beyond SMALL bytes
SMALL = 1 << 24
LONGEST_REASON = 400

# Possessive, so that a long text takes no memory for ways back.
_JSON_TEXTS = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TEXTS = re.compile(_JSON_TEXTS.pattern + r"|'[^'\n]*'", re.DOTALL)


def check_regular(path: Path) -> None:
    """Raise ``ValueError`` if there is something at a path that is no regular file.

    A pipe or a device may block for ever, or never end. OSError is raised if there is nothing.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", str(path))
    if not stat.S_ISREG(mode):
        raise ValueError("it is a pipe or a device, and must be a regular file")


def text_of(path: Path, must: str, *, encoding: str | None = "utf-8") -> str:
    """Return the text of a file of at most ``LARGEST_DOCUMENT`` bytes.

    Raises
    ------
    ValueError
        With the form that the file must have, if it cannot be read.
    """
    try:
        check_regular(path)
        with open(path, "rb") as file:
            content = file.read(LARGEST_DOCUMENT + 1)
        if len(content) > LARGEST_DOCUMENT:
            raise ValueError(f"it has more than {LARGEST_DOCUMENT >> 20} MiB")
        return content.decode(encoding or "utf-8").replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        raise ValueError(f"{must}, got {str(path)!r}: {reason_of(error)}.") from error


def _refused(constant: str) -> Any:
    raise ValueError(f"it holds {constant}, which is no JSON")


def _json(text: str) -> Any:
    return json.loads(text, parse_constant=_refused)


def document_of(text: str, loads: Callable[[str], Any] = _json) -> Any:
    """Parse a text of JSON, or of the format of ``loads``, of at most ``DEEPEST`` levels.

    Raises
    ------
    ValueError
        If it is longer than ``LARGEST_DOCUMENT``, nested deeper, holds NaN, or is no such text.
    """
    if len(text) > LARGEST_DOCUMENT:
        raise ValueError(f"it has more than {LARGEST_DOCUMENT >> 20} MiB")
    bare = (_JSON_TEXTS if loads is _json else _TEXTS).sub("", text)
    steps = ((mark in "[{") - (mark in "]}") for mark in re.findall(r"[][{}]", bare))
    deepest = max(accumulate(steps), default=0)
    if loads is not _json:
        # A key with dots opens a table for each of them.
        deepest = max(deepest, *(line.count(".") for line in bare.splitlines()), 0)
    if deepest > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    return loads(text)


def fields_of(text: str, must: str) -> Any:
    """Return the content of a JSON text; raise ``ValueError`` with the form that it must have."""
    try:
        return document_of(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{must}, got {_short(str(error))}.") from error


@contextmanager
def read_as(must: str) -> Iterator[None]:
    """Return how the fields of a document must be, in no more words than a screen has."""
    try:
        yield
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"{must}, got {_short(str(error))}.") from error
    except ValueError as error:
        if len(str(error)) <= LONGEST_REASON:
            raise
        raise ValueError(_short(str(error))) from None


def _short(reason: str) -> str:
    """Return a sentence without its middle, where it holds a value of thousands of letters."""
    if len(reason) <= LONGEST_REASON:
        return reason
    return f"{reason[: LONGEST_REASON // 2]} ... {reason[-LONGEST_REASON // 4 :]}"


def document(path: Path, must: str) -> Any:
    """Return the content of a JSON file; raise ``ValueError`` with the form that it must have."""
    text = text_of(path, must)
    try:
        return document_of(text)
    except ValueError as error:
        raise ValueError(f"{must}, got {str(path)!r}: {reason_of(error)}.") from error


def check_lines(file: BinaryIO, size: int) -> None:
    """Read a table's text to its end, and refuse one that would take its reader's memory.

    Parameters
    ----------
    file
        The text, decompressed while it is read.
    size
        Number of bytes of the file, compressed or not.

    Raises
    ------
    ValueError
        If a line is longer than ``LARGEST_LINE`` bytes, or the text is larger than ``SMALL`` bytes
        and ``LARGEST_RATIO`` times the file.
    """
    length = whole = 0
    while part := file.read(1 << 20):
        whole += len(part)
        first = part.find(b"\n")
        length = length + len(part) if first < 0 else length + first
        if length > LARGEST_LINE:
            raise ValueError(
                f"a line has more than {LARGEST_LINE >> 20} MiB; end lines with a line feed, and "
                "drop columns of long texts"
            )
        if first >= 0:
            length = len(part) - part.rfind(b"\n") - 1
        if whole > max(SMALL, LARGEST_RATIO * size):
            raise ValueError(
                f"its text is more than {LARGEST_RATIO} times as large as the file; decompress "
                "it first if it is meant to be"
            )


def check_cells(cells: int, size: int) -> None:
    """Refuse a table with more cells than a file of so many bytes may hold: ``ValueError``."""
    if cells > max(SMALL, LARGEST_RATIO * size):
        raise _too_large()


def _too_large() -> ValueError:
    return ValueError(
        f"it may be more than {LARGEST_RATIO} times as large as the file; decompress it first if "
        "it is meant to be"
    )
