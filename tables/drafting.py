r"""Draft of a schema for a table. The draft lists everything that it copied from the table.

>>> table = {"age": [41, None, 97], "sick": ["no", "yes", "yes"]}
>>> schema, comments = draft(Source(table), target="sick")
>>> schema.column("age").range, schema.column("age").impute, schema.column("age").copied
((41.0, 97.0), 69.0, ('range', 'impute'))
>>> comments["age"]
'some cells are missing'
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection
from typing import Any

from dpcal.tables.reading import Source, polars
from dpcal.tables.schema import Column, Schema

# Texts beyond which a column is no category: each text costs a feature, and noise.
_MOST_CATEGORIES = 30
_OFTEN_MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")
_NO_CATEGORY = "(missing)"

ROW_NUMBERS = ("", "Unnamed: 0")
_ROW_NUMBER = re.compile(r"|index|level_0|row(_?(number|nr|id))?|unnamed: ?\d+", re.IGNORECASE)
_PERSON = re.compile(
    r"(.*(^|[_ .-]))?(id|key|uuid|guid|ssn|mrn|nhs|person|patient|user|customer|client|member|"
    r"subject|employee|student|name|email|phone|account)([_ .-]?(id|no|nr|num|number|code))?s?",
    re.IGNORECASE,
)
_JOINED = re.compile(r"[a-z]+I[Dd]")
_DATE = (
    r"^((\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})([T ].*)?"
    r"|(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))$"
)
# Smallest number of rows in which repeated values are evidence.
_FEW = 20


class _Seen:
    """Summary of a column, with at most two texts more than the limit of categories.

    Whole numbers look like codes where they are of one length, and sparse in their range.
    """

    def __init__(self, series: Any) -> None:
        pl = polars()
        texts = series.cast(pl.String).str.strip_chars()
        texts = texts.filter(texts != "")
        values = texts.cast(pl.Float64, strict=False)
        finite = values.is_finite().fill_null(False)
        numbers, most = values.filter(finite), _MOST_CATEGORIES
        self.cells, self.missing = len(texts), len(series) - len(texts)
        self.distinct = int(texts.n_unique())
        self.texts = {*texts.unique().head(most + 2)}
        self.not_numbers = {*texts.filter(~finite).unique().head(most)}
        self.low, self.high = math.inf, -math.inf
        if len(numbers):
            self.low, self.high = float(numbers.min()), float(numbers.max())
        self.whole = bool((numbers == numbers.floor()).all())
        self.are_dates = (texts.str.contains(_DATE).sum() or 0) > 0.9 * self.cells > 0
        low, high = abs(self.low), abs(self.high)
        sparse = high - low + 1 > 4 * self.distinct
        self.are_codes = sparse and low >= 1000 and len(f"{low:.0f}") == len(f"{high:.0f}")

    def is_number(self, marks: Collection[str]) -> bool:
        """Return whether all cells are numbers, except the marks of a missing cell."""
        return self.low <= self.high and self.not_numbers <= {*marks}


def draft(source: Source, *, target: str | None = None) -> tuple[Schema, dict[str, str]]:
    """Return a schema that the table meets, and a comment on each column that needs one.

    Ranges and categories are read off the records: a reader of the draft learns facts about the
    records that no noise covers. The column's ``copied`` lists each such field: replace the field
    by a public value, and take it off the list.

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
    frame = source.frame()
    seen = {name: _Seen(frame[name]) for name in source.columns}
    numbers = [each for each in seen.values() if each.is_number(_OFTEN_MISSING)]
    marks = sorted({mark for each in numbers for mark in each.not_numbers})
    found = {name: _column(name, each, marks, name == target) for name, each in seen.items()}
    columns = tuple(column for column, _ in found.values())
    schema = Schema(columns=columns, target=target, missing_values=tuple(marks))
    return schema, {name: text for name, (_, text) in found.items() if text}


def schema_of_numbers(source: Source) -> Schema:
    """Return a schema of numbers, for tables without a schema."""
    numbers = [name for name in source.columns if name in ROW_NUMBERS]
    if numbers:
        raise ValueError(
            "table must hold no numbers of its rows as a feature, got a column named "
            f"{numbers[0]!r}. {drafts_one(source)}"
        )
    return Schema(columns=tuple(Column(name=name, type="number") for name in source.columns))


def drafts_one(source: Source) -> str:
    """Return the sentence with the command that drafts the missing schema of a table."""
    file = "FILE" if source.in_memory else shlex.quote(str(source.path))
    return (
        "Without a schema every feature must be a number: "
        f"'dpcal schema {file} -o schema.toml' drafts one, with types and categories."
    )


def _column(name: str, seen: _Seen, marks: list[str], is_target: bool) -> tuple[Column, str]:
    """Return the description of one column, and a comment with the reason."""
    texts = sorted(seen.texts - {*marks})
    number, many = seen.is_number(marks), seen.distinct > _MOST_CATEGORIES + 1
    missing = seen.missing > 0 or bool(seen.not_numbers & {*marks})
    comment = "some cells are missing" if missing else ""

    def made(kind: str, *copied: str, **fields: Any) -> tuple[Column, str]:
        return Column(name=name, type=kind, copied=copied, **fields), comment

    if is_target and len(texts) == 2 and not many:
        rule = "drop-row" if missing else "refuse"
        return made("class", "categories", categories=tuple(texts), missing=rule)
    reason = "" if is_target else _no_feature(name, seen, number=number)
    if reason == "" and not number and len(texts) < 2:
        classes = '; a target needs type = "class" and classes = two texts' if is_target else ""
        reason = (f"holds only {texts[0]!r}" if texts else "holds nothing") + classes
    elif reason == "" and not number and (many or len(texts) > _MOST_CATEGORIES):
        reason = f"more than {_MOST_CATEGORIES} texts: give the categories that are public"
    if reason:
        return Column(name=name, type="drop"), reason
    if not number:
        filled = {"missing": "impute", "impute": _NO_CATEGORY} if missing else {}
        texts += [_NO_CATEGORY] if missing else []
        return made("category", "categories", categories=tuple(texts), unknown="ignore", **filled)
    low, high = _outward(seen.low, -1), _outward(seen.high, 1)
    low, high = (low, high) if low < high else (low - 1, high + 1)
    if not missing:
        return made("number", "range", range=(low, high))
    middle = low / 2 + high / 2
    return made("number", "range", "impute", range=(low, high), missing="impute", impute=middle)


def _no_feature(name: str, seen: _Seen, *, number: bool) -> str:
    """Return why a column is not a feature (row numbers, dates, ids, persons); "" for a feature."""
    rows = "numbers of rows, as a data frame writes them"
    if name in ROW_NUMBERS:
        return rows
    if seen.are_dates:
        return "dates: a model reads numbers, such as days since a day that is public, or a season"
    if seen.cells < _FEW or (number and not seen.whole):
        return ""
    said = bool(_PERSON.fullmatch(name) or _JOINED.fullmatch(name)) or seen.are_codes
    if seen.distinct == seen.cells:
        in_turn = seen.high - seen.low == seen.distinct - 1
        if _ROW_NUMBER.fullmatch(name):
            return rows
        alone = said or in_turn or not number
        return "id: no two rows share it, so a model can learn nothing from it" if alone else ""
    if seen.distinct <= _MOST_CATEGORIES or (number and not said):
        return ""
    return (
        'person? Its values repeat: if it names the person of a row, use type = "person", and '
        "group_size at the top, the most rows of a person that a rule allows; while it is dropped, "
        "a claim is about one row, not one person"
    )


def _outward(value: float, direction: int) -> float:
    """Round to two digits, down for -1 and up for 1."""
    if value == 0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    rounded = (math.floor if direction < 0 else math.ceil)(value / scale) * scale
    # The text of a rounded product could lie on the wrong side of the value.
    text = float(f"{rounded:.6g}")
    return text if (text <= value if direction < 0 else text >= value) else value
