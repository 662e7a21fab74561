"""Tables and sentences as text of at most 80 letters a line, where the cells allow it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

_WIDTH = 80


def columns(rows: Iterable[Sequence[str]], *, right: int | None = None) -> list[str]:
    """Return a table of cells; each column is as wide as its widest cell.

    The last cell of a row is wrapped to lines of 80 letters where 40 of them or more are left for
    it. In a row with fewer cells it takes the place of all columns that are left.

    Parameters
    ----------
    rows
        The cells of each row, one or more.
    right
        First of the columns that are aligned on the right; none when omitted.

    >>> columns([("run", "epsilon"), ("1", "0.5")])
    ['run  epsilon', '1    0.5']
    >>> columns([("run", "epsilon", "steps"), ("1", "0.5", "10"), ("2", "refused")], right=1)
    ['run  epsilon  steps', '1        0.5     10', '2    refused']
    """
    table = [*rows]
    count = max(map(len, table))
    widths = [0] * count
    for row in table:
        for place, cell in enumerate(row if len(row) == count else row[:-1]):
            widths[place] = max(widths[place], len(cell))
    lines = []
    for *cells, last in table:
        if right is not None and len(cells) == count - 1:
            cells[right:] = map(str.rjust, cells[right:], widths[right:])
            last = last.rjust(widths[-1])
        start = "".join(cell.ljust(width + 2) for cell, width in zip(cells, widths, strict=False))
        lines += _under(start, last)
    return lines


def _under(start: str, last: str) -> list[str]:
    """Return lines that begin with a start and wrap the last cell behind it."""
    width = _WIDTH - len(start)
    parts = textwrap.wrap(last, width) if width >= _WIDTH // 2 else [last]
    first, *others = parts or [""]
    return [(start + first).rstrip(), *(" " * len(start) + part for part in others)]


def wrapped(texts: Iterable[str]) -> list[str]:
    """Return texts in lines of at most 80 letters; each text begins a line.

    >>> wrapped(["One.", "Two."])
    ['One.', 'Two.']
    """
    return [line for text in texts for line in textwrap.wrap(text, _WIDTH)]
