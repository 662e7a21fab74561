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
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.tables.reading import Source, polars
from dpcal.tables.schema import Column, Schema

__all__ = ["ROW_NUMBERS", "draft", "likely_target"]

# Texts of a column, beyond which they are no categories: each costs a feature, and noise.
_MOST_CATEGORIES = 30
# How missing cells are often written, beside the empty one.
_OFTEN_MISSING = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")
_NO_CATEGORY = "(missing)"

# Names that data frames give to the numbers of their rows, and nobody gives to a column.
ROW_NUMBERS = ("", "Unnamed: 0")
# How names say what a column is: the number of a row, an id or a person, what is predicted, or what
# is known only when all is over.
_ROW_NUMBER = re.compile(r"|index|level_0|row(_?(number|nr|id))?|unnamed: ?\d+", re.IGNORECASE)
_PERSON = re.compile(
    r"(.*(^|[_ .-]))?(id|key|uuid|guid|ssn|mrn|nhs|person|patient|user|customer|client|member|"
    r"subject|employee|student|name|email|phone|account)([_ .-]?(id|no|nr|num|number|code))?s?",
    re.IGNORECASE,
)
_JOINED = re.compile(r"[a-z]+I[Dd]")
_TARGET = re.compile(
    r"target|label|class|outcome|y|result|sick|disease|diagnosis|churn(ed)?|default(ed)?|died|"
    r"survived|response|fraud",
    re.IGNORECASE,
)
_LATER = re.compile(
    r".*(length.of.stay|(^|[_ ])los($|[_ ])|duration|discharge|outcome|died|death|final|result|"
    r"end.?date|total.?cost).*",
    re.IGNORECASE,
)
# ISO 8601, or day, month and year, with or without a time.
_DATE = (
    r"^((\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})([T ].*)?"
    r"|(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))$"
)
# Fewer rows tell nothing of what repeats.
_FEW = 20


class _Seen:
    """Summary of the part of a column that was read so far."""

    def __init__(self) -> None:
        self.missing = 0
        self.not_numbers: set[str] = set()
        self.low, self.high = math.inf, -math.inf
        self.texts: set[str] = set()
        self.many = False
        self.whole = True
        self.dates = self.cells = 0
        self._prints: list[NDArray[np.uint64]] = []

    @property
    def distinct(self) -> int:
        """Number of different texts, up to collisions of 64 bits."""
        return len(np.unique(np.concatenate(self._prints))) if self._prints else 0

    def add(self, series: Any) -> None:
        """Take in a part of the column."""
        pl = polars()
        texts = series.cast(pl.String).str.strip_chars()
        texts = texts.filter(texts != "")
        self.cells += len(texts)
        self.dates += int(texts.str.contains(_DATE).sum() or 0)
        self._prints.append(texts.unique().hash().to_numpy())
        self.missing += len(series) - len(texts)
        values = texts.cast(pl.Float64, strict=False)
        finite = values.is_finite().fill_null(False)
        numbers = values.filter(finite)
        if len(numbers):
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))
            self.whole = self.whole and bool((numbers == numbers.floor()).all())
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
        if name != target and column.type != "drop" and _LATER.fullmatch(name):
            comment = _joined(comment, "is it known of a new row? If not, it must be dropped")
        columns.append(column)
        if comment:
            comments[name] = comment
    schema = Schema(columns=tuple(columns), target=target, missing_values=tuple(marks))
    likely = likely_target(schema) if target is None else None
    if likely is not None:
        comments[likely] = _joined(
            comments.get(likely, ""), f"perhaps what is predicted: --target {likely}"
        )
    return schema, comments


def likely_target(schema: Schema) -> str | None:
    """Return the column that is most likely to be predicted, going by names and numbers of texts.

    It has two categories, or a name that says so; the last such column counts.
    """
    described = [each for each in schema.columns if each.type in ("number", "category", "class")]
    named = [each.name for each in described if _TARGET.fullmatch(each.name)]
    two = [each.name for each in described if len(each.categories) == 2]
    found = named or two
    return found[-1] if found else None


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


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
    if (who := "" if is_target else _whose(name, seen, is_number=is_number)) != "":
        return Column(name=name, type="drop"), who
    if not is_target and seen.dates > 0.9 * seen.cells > 0:
        return Column(name=name, type="drop"), (
            "dates: a model reads numbers, such as days since a day that is public, or a season"
        )
    if is_number:
        return _number(name, seen, missing), comment
    if len(texts) < 2:
        held = f"only {texts[0]!r}" if texts else "nothing"
        classes = '; a target needs type = "class" and classes = two texts' if is_target else ""
        return Column(name=name, type="drop"), f"holds {held}{classes}"
    if seen.many or len(texts) > _MOST_CATEGORIES:
        return Column(name=name, type="drop"), (
            f"more than {_MOST_CATEGORIES} texts: give the categories that are public"
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


def _whose(name: str, seen: _Seen, *, is_number: bool) -> str:
    """Return why a column is no feature but tells whose row it is; nothing if it may be one."""
    if name in ROW_NUMBERS:
        return "numbers of rows, as a data frame writes them"
    if seen.cells < _FEW or (is_number and not seen.whole) or seen.dates > 0.9 * seen.cells:
        return ""
    distinct = seen.distinct
    said = bool(_PERSON.fullmatch(name) or _JOINED.fullmatch(name))
    if distinct == seen.cells:
        in_turn = is_number and seen.high - seen.low == distinct - 1
        if _ROW_NUMBER.fullmatch(name):
            return "numbers of rows, as a data frame writes them"
        if said or in_turn or not is_number or _same_length(seen):
            return "id: no two rows share it, so a model can learn nothing from it"
        return ""
    if distinct <= _MOST_CATEGORIES or (is_number and not (said or _same_length(seen))):
        return ""
    return (
        'person? Its values repeat: if it tells whose row it is, type = "person", and group_size '
        "at the top, the most rows of a person that a rule allows; while it is dropped, a claim is "
        "about one row, not one person"
    )


def _same_length(seen: _Seen) -> bool:
    """Return whether whole numbers look like codes: of one length, and far more than are used."""
    low, high = abs(seen.low), abs(seen.high)
    sparse = high - low + 1 > 4 * seen.distinct
    return sparse and low >= 1000 and len(f"{low:.0f}") == len(f"{high:.0f}")


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
