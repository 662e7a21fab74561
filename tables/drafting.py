r"""What would a schema of this table look like? A draft, which says what it copied from the table.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp()) / "people.csv"
>>> _ = path.write_text("age,sick\n41,no\n,yes\n97,yes\n")
>>> schema, comments = draft(Source(path), target="sick")
>>> schema.column("age").range, schema.column("age").impute, schema.column("age").copied
((41.0, 97.0), 69.0, ('range', 'impute'))
>>> comments["age"]
'some cells are missing'
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dpcal.tables.reading import Source, polars
from dpcal.tables.schema import Column, Schema

__all__ = ["draft"]

# Texts of a column, beyond which they are no categories: each costs a feature, and noise.
_MOST_CATEGORIES = 30
# How missing cells are often written, beside the empty one.
_OFTEN_MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")
_NO_CATEGORY = "(missing)"


class _Seen:
    """Summary of the part of a column that was read so far."""

    def __init__(self) -> None:
        self.missing = 0
        self.not_numbers: set[str] = set()
        self.low, self.high = math.inf, -math.inf
        self.texts: set[str] = set()
        self.many = False

    def add(self, series: Any) -> None:
        """Take in a part of the column."""
        pl = polars()
        texts = series.cast(pl.String).str.strip_chars()
        texts = texts.filter(texts != "")
        self.missing += len(series) - len(texts)
        values = texts.cast(pl.Float64, strict=False)
        finite = values.is_finite().fill_null(False)
        numbers = values.filter(finite)
        if len(numbers):
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))
        self.not_numbers |= set(texts.filter(~finite).unique().head(_MOST_CATEGORIES).to_list())
        if not self.many:
            self.texts |= set(texts.unique().head(_MOST_CATEGORIES + 2).to_list())
            self.many = len(self.texts) > _MOST_CATEGORIES + 1


def draft(source: Source, *, target: str | None = None) -> tuple[Schema, dict[str, str]]:
    """Return a schema that the table meets, and a comment on each column that needs one.

    Ranges and categories are read off the records: whoever sees them learns something of the
    records that no noise covers. Each is listed in the column's ``copied``, to be replaced by what
    is known in public, and taken off that list.

    Parameters
    ----------
    source
        The file.
    target
        Name of the column that is predicted, if it is known.

    Raises
    ------
    ValueError
        If the file cannot be read, or has no such column.
    """
    seen = {name: _Seen() for name in source.columns}
    if target is not None and target not in seen:
        known = ", ".join(map(repr, seen))
        raise ValueError(f"target must be one of the columns {known}, got {target!r}.")
    for batch in source.batches():
        for name, each in seen.items():
            each.add(batch[name])
    marks = _marks_of_missing(seen)
    columns, comments = [], {}
    for name, each in seen.items():
        column, comment = _column(name, each, marks, is_target=name == target)
        columns.append(column)
        if comment:
            comments[name] = comment
    return Schema(columns=tuple(columns), target=target, missing_values=tuple(marks)), comments


def _marks_of_missing(seen: dict[str, _Seen]) -> list[str]:
    """Texts that stand for missing cells: the only ones in a column that are no numbers."""
    found: set[str] = set()
    for each in seen.values():
        if each.low <= each.high and each.not_numbers <= set(_OFTEN_MISSING):
            found |= each.not_numbers
    return sorted(found)


def _column(name: str, seen: _Seen, marks: list[str], *, is_target: bool) -> tuple[Column, str]:
    """Describe one column."""
    texts = sorted(seen.texts - set(marks))
    is_number = seen.low <= seen.high and seen.not_numbers <= set(marks)
    missing = seen.missing > 0 or bool(seen.not_numbers & set(marks))
    comment = "some cells are missing" if missing else ""
    if is_target and len(texts) == 2 and not seen.many:
        rule = "drop-row" if missing else "refuse"
        return Column(
            name=name, type="class", categories=tuple(texts), missing=rule, copied=("categories",)
        ), comment
    if is_number:
        return _number(name, seen, missing), comment
    if len(texts) < 2:
        held = f"only {texts[0]!r}" if texts else "nothing"
        return Column(name=name, type="drop"), f"holds {held}"
    if seen.many or len(texts) > _MOST_CATEGORIES:
        return Column(name=name, type="drop"), (
            f"more than {_MOST_CATEGORIES} texts: give the categories that are public, or use "
            'type = "person" if it tells whose row it is'
        )
    filled: dict[str, Any] = {"missing": "impute", "impute": _NO_CATEGORY} if missing else {}
    categories = (*texts, _NO_CATEGORY) if missing else tuple(texts)
    return Column(
        name=name,
        type="category",
        categories=categories,
        unknown="ignore",
        copied=("categories",),
        **filled,
    ), comment


def _number(name: str, seen: _Seen, missing: bool) -> Column:
    low, high = _outward(seen.low, -1), _outward(seen.high, 1)
    if not low < high:
        low, high = low - 1, high + 1
    column = Column(name=name, type="number", range=(low, high), copied=("range",))
    if not missing:
        return column
    middle = low / 2 + high / 2
    return replace(column, missing="impute", impute=middle, copied=("range", "impute"))


def _outward(value: float, direction: int) -> float:
    """Round to two digits, down for -1 and up for 1."""
    if value == 0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    rounded = (math.floor if direction < 0 else math.ceil)(value / scale) * scale
    # Written with few digits; a rounded product could lie on the wrong side of the value.
    text = float(f"{rounded:.6g}")
    return text if (text <= value if direction < 0 else text >= value) else value
